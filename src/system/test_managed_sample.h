/* test_managed_sample.h - for tests of managed failover: a domain with two cluster attributes. */
#ifndef CADENZA_SYSTEM_TEST_MANAGED_SAMPLE_H
#define CADENZA_SYSTEM_TEST_MANAGED_SAMPLE_H

#include "base/arena.h"
#include "uber/cadence/api/v1/domain.pb-c.h"
#include "wire/names.h"

/* region:one and region:two, each in a cluster. */
API(ActiveClusters) *sample_attributes(struct arena *arena, char *one, char *two);
/* Where they are: "cluster0 cluster1". */
const char *sample_clusters(const API(ActiveClusters) *clusters, struct arena *arena);

#endif
