/* failover_fixture.h - "orders" in one cluster, asked for one thing after the other. For the tests
 * failover_*.c. */
#ifndef CADENZA_DOMAIN_TEST_FAILOVER_FIXTURE_H
#define CADENZA_DOMAIN_TEST_FAILOVER_FIXTURE_H

#include "base/test.h"
#include "domain/test/samples.h"

/* One domain in one cluster, and what became of it last. */
struct failover_fixture {
    struct arena *arena;
    struct domain_rules rules; /* of the cluster that is asked */
    struct domain *domain;
    struct domain_decision decision;
    uint64_t moment; /* counts */
};

/* "orders" as registered in east: global, active in one of the clusters, attributes may be NULL. */
struct failover_fixture orders_active_in(int active, const char *attributes);
/* A local one. */
struct failover_fixture local_orders(void);
void failover_fixture_drop(struct failover_fixture *failover_fixture);
/* Moments are a second apart. */
struct domain_moment next_moment(struct failover_fixture *failover_fixture);
/* Takes over what was decided. */
void adopt(struct failover_fixture *failover_fixture);
/* Decides; what is not refused is adopted (but for failover_request). */
struct error *failover_request(struct failover_fixture *failover_fixture,
                               const API(FailoverDomainRequest) *request);
struct error *failover(struct failover_fixture *failover_fixture, const char *cluster_name,
                       const char *attributes);
struct error *update(struct failover_fixture *failover_fixture,
                     const API(UpdateDomainRequest) *request);
/* What the last change says to others, through the wire. */
ADMIN(DomainTaskAttributes) *message_of(const struct failover_fixture *failover_fixture);

#define FAILOVER_FIXTURE(name, active, attributes)                                                 \
    scoped(failover_fixture_drop) struct failover_fixture name =                                   \
        orders_active_in(active, attributes)

#define EXPECT_REFUSED(err, text)                                                                  \
    do {                                                                                           \
        struct error *refusal = (err);                                                             \
        EXPECT_KIND(refusal, ERR_BAD_REQUEST);                                                     \
        EXPECT_TEXT(refusal->message, text);                                                       \
    } while (0)
#define DOMAIN_OF(failover_fixture)  ((failover_fixture).domain->record->domain)
#define VERSION_OF(failover_fixture) (DOMAIN_OF(failover_fixture)->failover_version)
#define PRINT_OF(failover_fixture)                                                                 \
    sample_print(DOMAIN_OF(failover_fixture)->active_clusters, (failover_fixture).arena)
#define CONFIG_OF(failover_fixture) ((failover_fixture).domain->record->config_version)
#define NOTICED_OF(failover_fixture)                                                               \
    ((failover_fixture).domain->record->failover_notification_version)

#define LOCAL_REFUSAL "Local domains cannot perform failovers or change replication configuration"
#define MIXED_REFUSAL "Cannot set active cluster to current cluster when other parameters are set."
#define NOT_THERE     "Active cluster is not contained in all clusters."
#define NOT_PRIMARY                                                                                \
    "Cluster is not primary cluster, cannot do domain registration or domain update."
#define NO_CHANGE                                                                                  \
    "a failover was requested, but there was no change detected, the configuration was not "       \
    "updated"

#endif
