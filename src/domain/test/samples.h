/* samples.h - a group of three clusters and the requests that tests of domains make in it.
 *
 *   cluster   initial version   increment 10
 *   east      0                 the primary
 *   west      1
 *   north     2
 *   gone      3                 not enabled */
#ifndef CADENZA_DOMAIN_TEST_SAMPLES_H
#define CADENZA_DOMAIN_TEST_SAMPLES_H

#include "domain/decide/decide.h"
#include "domain/message.h"

enum { EAST, WEST, NORTH, GONE, SAMPLE_CLUSTERS };
extern const char *const sample_names[SAMPLE_CLUSTERS];

/* The group as that cluster sees it. */
const struct cluster_group *sample_group(int current);
/* Generous rules in that cluster. */
struct domain_rules sample_rules(int current);
/* The n-th moment: each has its own time and id, and its notification version is n. */
struct domain_moment sample_moment(uint64_t n);

/* "region.london:west,region.paris:east" */
API(ActiveClusters) *sample_attributes(const char *text, struct arena *arena);
/* The other way round, with versions: "region.london:west=1,region.paris:east=0". */
const char *sample_print(const API(ActiveClusters) *clusters, struct arena *arena);
API(ClusterReplicationConfiguration) **sample_clusters(struct arena *arena, size_t count);

/* "orders", global, in the first three clusters, active in one of them; attributes may be NULL. */
API(RegisterDomainRequest) *sample_register(int active, const char *attributes,
                                            struct arena *arena);
/* Of "orders". `cluster_name` and `attributes` NULL: not given. */
API(FailoverDomainRequest) *sample_failover(const char *cluster_name, const char *attributes,
                                            struct arena *arena);
/* The domain itself drains to whose version this is, and that cluster knows until when. */
void sample_drain(STORED(DomainRecord) *record, int64_t failover_version, struct arena *arena);
/* Of "orders", with a mask of these paths, separated by commas. */
API(UpdateDomainRequest) *sample_update(const char *paths, struct arena *arena);
/* Of "orders": an attribute is taken away; scope NULL: all are. */
API(UpdateDomainRequest) *sample_removal(const char *scope, const char *name, struct arena *arena);

#endif
