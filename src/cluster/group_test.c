/* group_test.c - the cluster group: what is refused, and the arithmetic of versions. */
#include "cluster/group.h"

#include "base/test.h"

static const struct config_environment no_environment;

static struct config *
config_of(const char *yaml, struct arena *arena)
{
    struct config *config = NULL;
    EXPECT_OK(config_parse(slice_text(yaml), "test.yaml", &no_environment, arena, &config));
    return config;
}

static const char three_clusters[] =
    "clusterGroupMetadata:\n"
    "  failoverVersionIncrement: 100\n"
    "  primaryClusterName: a\n"
    "  currentClusterName: b\n"
    "  clusterGroup:\n"
    "    a: {initialFailoverVersion: 0, rpcAddress: '127.0.0.1:1'}\n"
    "    b: {initialFailoverVersion: 1}\n"
    "    c: {initialFailoverVersion: 2, newInitialFailoverVersion: 7, enabled: false}\n";

TEST(group, a_server_without_a_group_is_alone_and_primary)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = config_default();
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_EQ(group->count, 1);
    EXPECT_TEXT(group->current->name, "cluster0");
    EXPECT(cluster_group_is_primary(group));
    config_free(config);
}

TEST(group, a_server_alone_under_another_name_is_its_own_primary)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = config_of("clusterGroupMetadata: {currentClusterName: east}\n", arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_TEXT(group->current->name, "east");
    EXPECT(cluster_group_is_primary(group));
    config_free(config);
}

/* The numbers of three clusters with increment 100: registered in a, to b, back to a. */
TEST(group, the_next_version_is_the_smallest_one_of_the_target)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = config_of(three_clusters, arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    const struct cluster *a = cluster_group_find(group, "a"), *b = cluster_group_find(group, "b");
    int64_t version = -1;
    EXPECT(cluster_group_next_version(group, a, 0, &version));
    EXPECT_EQ(version, 0);
    EXPECT(cluster_group_next_version(group, b, version, &version));
    EXPECT_EQ(version, 1);
    EXPECT(cluster_group_next_version(group, a, version, &version));
    EXPECT_EQ(version, 100);
    EXPECT(!cluster_group_next_version(group, a, INT64_MAX, &version));
    EXPECT(!cluster_group_is_primary(group));
    config_free(config);
}

TEST(group, every_version_belongs_to_the_cluster_that_made_it)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = config_of(three_clusters, arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    for (int64_t from = 0; from < 1000; from++) {
        for (size_t i = 0; i < group->count; i++) {
            int64_t next = -1;
            EXPECT(cluster_group_next_version(group, &group->clusters[i], from, &next));
            EXPECT(next >= from && next < from + 100);
            EXPECT(cluster_group_of_version(group, next) == &group->clusters[i]);
        }
    }
    EXPECT(cluster_group_of_version(group, 107) == cluster_group_find(group, "c"));
    EXPECT(cluster_group_of_version(group, 50) == NULL);
    EXPECT(cluster_group_of_version(group, FAILOVER_VERSION_LOCAL) == NULL);
    config_free(config);
}

TEST(group, all_faults_are_listed_together_and_name_their_keys)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct config *config = config_of("clusterGroupMetadata:\n"
                                      "  failoverVersionIncrement: 10\n"
                                      "  primaryClusterName: nobody\n"
                                      "  currentClusterName: a\n"
                                      "  clusterGroup:\n"
                                      "    a: {initialFailoverVersion: 1}\n"
                                      "    b: {initialFailoverVersion: 1, rpcTransport: pigeon}\n"
                                      "    c: {initialFailoverVersion: 10, rpcAddress: 'h:1'}\n",
                                      arena);
    const struct cluster_group *group = NULL;
    struct error *err = cluster_group_load(config, arena, &group);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    const char *parts[] = {"primaryClusterName is 'nobody'", "b.rpcTransport is 'pigeon'",
                           "b.rpcAddress is not set", "a and b have the same initial",
                           "c.initialFailoverVersion is 10"};
    for (size_t i = 0; i < array_length(parts); i++)
        EXPECT(strstr(err->message, parts[i]) != NULL);
    config_free(config);
}
