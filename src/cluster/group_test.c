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

ARENA_TEST(group, a_server_without_a_group_is_alone_and_primary)
{
    struct config *config = config_default();
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_EQ(group->count, 1);
    EXPECT_TEXT(group->current->name, "cluster0");
    EXPECT(cluster_group_is_primary(group));
    config_free(config);
}

ARENA_TEST(group, a_server_alone_under_another_name_is_its_own_primary)
{
    struct config *config = config_of("clusterGroupMetadata: {currentClusterName: east}\n", arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_TEXT(group->current->name, "east");
    EXPECT(cluster_group_is_primary(group));
    config_free(config);
}

/* The numbers of three clusters with increment 100: registered in a, to b, back to a. */
ARENA_TEST(group, the_next_version_is_the_smallest_one_of_the_target)
{
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

ARENA_TEST(group, every_version_belongs_to_the_cluster_that_made_it, "J-006")
{
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

ARENA_TEST(group, all_faults_are_listed_together_and_name_their_keys, "J-005")
{
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
                           "cluster a and cluster b have the same initial",
                           "c.initialFailoverVersion is 10"};
    for (size_t i = 0; i < array_length(parts); i++)
        EXPECT(strstr(err->message, parts[i]) != NULL);
    config_free(config);
}

static struct error *
load(const char *yaml, struct arena *arena, const struct cluster_group **group)
{
    struct config *config = config_of(yaml, arena);
    struct error *err = cluster_group_load(config, arena, group);
    config_free(config);
    return err;
}

/* J-005, one fault at a time: the smallest group that has it, and what the refusal has to say. */
static const struct {
    const char *yaml, *says;
} faults[] = {
    {"{currentClusterName: x, clusterGroup: {a: {}}, primaryClusterName: a}",
     "currentClusterName is 'x', which is not in clusterGroup"},
    {"{currentClusterName: '', clusterGroup: {a: {}}, primaryClusterName: a}",
     "currentClusterName is ''"},
    {"{currentClusterName: a, clusterGroup: {a: {}}, primaryClusterName: ''}",
     "primaryClusterName is ''"},
    {"{currentClusterName: a, clusterGroup: {a: {}}}", "primaryClusterName is 'cluster0'"},
    {"{failoverVersionIncrement: 0}", "failoverVersionIncrement is 0"},
    {"{failoverVersionIncrement: 0, currentClusterName: lonely}", "failoverVersionIncrement is 0"},
    {"{failoverVersionIncrement: -7}", "failoverVersionIncrement is -7"},
    {"{clusterGroup: {cluster0: {initialFailoverVersion: -1}}}",
     "clusterGroup.cluster0.initialFailoverVersion is -1"},
    {"{clusterGroup: {cluster0: {initialFailoverVersion: 10}}}",
     "clusterGroup.cluster0.initialFailoverVersion is 10"},
    {"{clusterGroup: {cluster0: {newInitialFailoverVersion: 10}}}",
     "clusterGroup.cluster0.newInitialFailoverVersion is 10"},
    {"{clusterGroup: {cluster0: {newInitialFailoverVersion: -2}}}",
     "clusterGroup.cluster0.newInitialFailoverVersion is -2"},
    {"{clusterGroup: {cluster0: {}, b: {enabled: false}}}",
     "cluster cluster0 and cluster b have the same initial failover version (0)"},
    {"{clusterGroup: {cluster0: {newInitialFailoverVersion: 3}, d: {initialFailoverVersion: "
     "3, rpcAddress: 'h:1'}}}",
     "have the same initial failover version (3)"},
    {"{clusterGroup: {cluster0: {}, d: {initialFailoverVersion: 3, rpcName: '', rpcAddress: "
     "'h:1'}}}",
     "clusterGroup.d.rpcName is not set"},
    {"{clusterGroup: {cluster0: {}, d: {initialFailoverVersion: 3, rpcAddress: 'h:1', "
     "authorizationProvider: {enable: true}}}}",
     "clusterGroup.d.authorizationProvider.privateKey is not set"},
    {"{clusterGroup: {cluster0: {}, d: {initialFailoverVersion: 3, rpcAddress: 'h:99999'}}}",
     "clusterGroup.d.rpcAddress: 'h:99999' is not an address: port '99999'"},
    {"{clusterGroup: {cluster0: {rpcTransport: pigeon}}}",
     "clusterGroup.cluster0.rpcTransport is 'pigeon'"},
    {"{clusterGroup: {cluster0: {}}, regions: {here: {initialFailoverVersion: 0}}}",
     "cluster cluster0 and region here have the same initial failover version (0)"},
    {"{clusterGroup: {cluster0: {}}, regions: {x: {initialFailoverVersion: 4},"
     " y: {initialFailoverVersion: 4}}}",
     "region x and region y have the same initial failover version (4)"},
    {"{clusterGroup: {cluster0: {}}, regions: {here: {initialFailoverVersion: 10}}}",
     "regions.here.initialFailoverVersion is 10"},
    {"{clusterGroup: {cluster0: {region: there}}, regions: {here: {initialFailoverVersion: "
     "3}}}",
     "clusterGroup.cluster0.region is 'there', which is not under "
     "clusterGroupMetadata.regions; "
     "add it there"},
    {"{clusterGroup: {cluster0: {region: there}}}",
     "clusterGroup.cluster0.region is 'there', which is not under "
     "clusterGroupMetadata.regions"},
    {"{clusterGroup: {cluster0: {}, d: {initialFailoverVersion: 3}}}",
     "clusterGroup.d.rpcAddress is not set; give host:port"},
    {"{clusterGroup: {cluster0: {enabled: false}}}",
     "clusterGroup.cluster0.enabled is false, and clusterGroupMetadata.currentClusterName says "
     "that this server is that cluster"},
};

TEST(group, every_fault_refuses_the_start_and_names_its_key, "J-005")
{
    for (size_t i = 0; i < array_length(faults); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        const struct cluster_group *group = NULL;
        struct error *err =
            load(arena_format(arena, "clusterGroupMetadata: %s\n", faults[i].yaml), arena, &group);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        if (strstr(err->message, faults[i].says) == NULL)
            TEST_FAIL("fault %zu: '%s' is not in '%s'", i, faults[i].says, err->message);
        if (strchr(err->message, '\n') != NULL)
            TEST_FAIL("fault %zu: more than one in '%s'", i, err->message);
    }
}

/* The groups that Cadence's own samples have: three clusters on one machine, and one alone that has
 * begun to migrate its versions. */
ARENA_TEST(group, the_groups_of_cadences_samples_load, "J-010", "J-011")
{
    const struct cluster_group *group = NULL;
    for (int i = 0; i < 3; i++) {
        const char *yaml = arena_format(
            arena,
            "persistence: {numHistoryShards: 4}\n"
            "clusterGroupMetadata:\n"
            "  clusterRedirectionPolicy: {policy: all-domain-apis-forwarding}\n"
            "  failoverVersionIncrement: 10\n"
            "  primaryClusterName: cluster0\n"
            "  currentClusterName: cluster%d\n"
            "  clusterGroup:\n"
            "    cluster0: {enabled: true, initialFailoverVersion: 1, rpcName: cadence-frontend,"
            " rpcAddress: 'localhost:7833', rpcTransport: grpc}\n"
            "    cluster1: {enabled: true, initialFailoverVersion: 0, rpcName: cadence-frontend,"
            " rpcAddress: 'localhost:8833', rpcTransport: grpc}\n"
            "    cluster2: {enabled: true, initialFailoverVersion: 2, rpcName: cadence-frontend,"
            " rpcAddress: 'localhost:9833', rpcTransport: grpc}\n",
            i);
        struct config *config = config_of(yaml, arena);
        int64_t next;
        EXPECT_OK(cluster_group_load(config, arena, &group));
        EXPECT_EQ(group->count, 3);
        EXPECT_EQ(cluster_group_is_primary(group), i == 0);
        EXPECT(group->current == &group->clusters[i]);
        EXPECT(cluster_group_next_version(group, &group->clusters[1], 1, &next));
        EXPECT_EQ(next, 10);
        EXPECT_TEXT(cluster_group_of_version(group, 12)->name, "cluster2");
        config_free(config);
    }
    struct config *config =
        config_of("clusterGroupMetadata:\n"
                  "  failoverVersionIncrement: 10\n"
                  "  primaryClusterName: cluster0\n"
                  "  currentClusterName: cluster0\n"
                  "  clusterGroup: {cluster0: {enabled: true, initialFailoverVersion: 0,"
                  " newInitialFailoverVersion: 1, rpcAddress: 'localhost:7833'}}\n",
                  arena);
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_TEXT(cluster_group_of_version(group, 10)->name, "cluster0");
    EXPECT_TEXT(cluster_group_of_version(group, 11)->name, "cluster0");
    config_free(config);
}

/* The example of the design of active-active domains, with the addresses that it leaves out. */
static const char regions_of_the_design[] =
    "clusterGroupMetadata:\n"
    "    primaryClusterName: cluster0\n"
    "    failoverVersionIncrement: 100\n"
    "    regions:\n"
    "        us-west: {initialFailoverVersion: 1}\n"
    "        us-east: {initialFailoverVersion: 3}\n"
    "        eu-west: {initialFailoverVersion: 5}\n"
    "    clusterGroup:\n"
    "        cluster0: {initialFailoverVersion: 0, region: us-west}\n"
    "        cluster1: {initialFailoverVersion: 2, region: us-west, rpcAddress: 'b:1'}\n"
    "        cluster2: {initialFailoverVersion: 4, region: us-east, rpcAddress: 'c:1'}\n"
    "        cluster3: {initialFailoverVersion: 6, region: eu-west, rpcAddress: 'd:1'}\n";

ARENA_TEST(group, a_group_with_regions_loads)
{
    struct config *config = config_of(regions_of_the_design, arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_TEXT(group->current->name, "cluster0");
    EXPECT(cluster_group_is_primary(group));
    EXPECT_EQ(group->count, 4);
    EXPECT_EQ(group->region_count, 3);
    EXPECT_TEXT(group->current->region, "us-west");
    EXPECT_TEXT(cluster_group_find(group, "cluster3")->region, "eu-west");
    EXPECT(cluster_group_find_region(group, "us-south") == NULL);
    EXPECT_EQ(cluster_group_find_region(group, "us-east")->initial_failover_version, 3);
    config_free(config);
}

/* --- two files ---- */

#define EAST_FILE                                                                                  \
    "clusterGroupMetadata:\n"                                                                      \
    "  failoverVersionIncrement: 100\n"                                                            \
    "  primaryClusterName: east\n"                                                                 \
    "  currentClusterName: east\n"                                                                 \
    "  regions: {us: {initialFailoverVersion: 5}}\n"                                               \
    "  clusterGroup:\n"                                                                            \
    "    east: {initialFailoverVersion: 0, rpcAddress: 'e:1', region: us}\n"                       \
    "    west: {initialFailoverVersion: 1, rpcAddress: 'w:1', newInitialFailoverVersion: 11}\n"

/* Every setting that must be the same, one at a time; and what only one of them has yet. */
TEST(group, clusters_say_what_their_files_have_differently_and_both_values)
{
    static const struct {
        const char *increment, *current, *regions, *clusters, *says; /* NULL: they agree */
    } files[] = {
        {"100", "west", "us: {initialFailoverVersion: 5}",
         "east: {rpcAddress: 'e:1', region: us}, west: {initialFailoverVersion: 1, "
         "newInitialFailoverVersion: 11}",
         NULL},
        /* Nothing of the region and of the second version yet, but of a third cluster. */
        {"100", "west", "",
         "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 1}, "
         "south: {initialFailoverVersion: 2, rpcAddress: 's:1'}",
         NULL},
        /* The second version is the first one there, the migration being over. */
        {"100", "west", "", "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 11}", NULL},
        {"7", "west", "", "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 1}",
         "failoverVersionIncrement is 100 here and 7 in west"},
        {"100", "west", "", "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 3}",
         "clusterGroup.west.initialFailoverVersion is 1 here and 3 in west"},
        {"100", "west", "",
         "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 1, "
         "newInitialFailoverVersion: 12}",
         "clusterGroup.west.newInitialFailoverVersion is 11 here and 12 in west"},
        {"100", "west", "us: {initialFailoverVersion: 6}",
         "east: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 1}",
         "regions.us.initialFailoverVersion is 5 here and 6 in west"},
        {"100", "west", "eu: {initialFailoverVersion: 6}",
         "east: {rpcAddress: 'e:1', region: eu}, west: {initialFailoverVersion: 1}",
         "clusterGroup.east.region is us here and eu in west"},
        {"100", "west", "", "oast: {rpcAddress: 'e:1'}, west: {initialFailoverVersion: 1}",
         "initial failover version 0 is of cluster east here and of cluster oast in west"},
        {"100", "north", "", "east: {rpcAddress: 'e:1'}, north: {initialFailoverVersion: 2}",
         "the name of the cluster at w:1 is west here and north in west"},
    };
    for (size_t i = 0; i < array_length(files); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct config *ours_config = config_of(EAST_FILE, arena), *theirs_config = NULL;
        const struct cluster_group *ours = NULL, *theirs = NULL;
        EXPECT_OK(cluster_group_load(ours_config, arena, &ours));
        theirs_config =
            config_of(arena_format(arena,
                                   "clusterGroupMetadata: {failoverVersionIncrement: %s, "
                                   "primaryClusterName: %s, currentClusterName: %s, regions: {%s}, "
                                   "clusterGroup: {%s}}\n",
                                   files[i].increment, files[i].current, files[i].current,
                                   files[i].regions, files[i].clusters),
                      arena);
        EXPECT_OK(cluster_group_load(theirs_config, arena, &theirs));
        const char *text =
            cluster_group_conflict(ours, theirs, cluster_group_find(ours, "west"), arena);
        bool is_right =
            files[i].says == NULL ? text == NULL : text != NULL && strcmp(text, files[i].says) == 0;
        if (!is_right)
            TEST_FAIL("file %zu: '%s'", i, text == NULL ? "they agree" : text);
        config_free(ours_config);
        config_free(theirs_config);
    }
}

ARENA_TEST(group, of_many_differences_the_first_are_listed)
{
    const struct cluster_group *ours = NULL, *theirs = NULL;
    EXPECT_OK(load(EAST_FILE, arena, &ours));
    EXPECT_OK(load("clusterGroupMetadata: {failoverVersionIncrement: 50, primaryClusterName: west, "
                   "currentClusterName: west, regions: {us: {initialFailoverVersion: 9}}, "
                   "clusterGroup: {east: {initialFailoverVersion: 7, rpcAddress: 'e:1'}, west: "
                   "{initialFailoverVersion: 8}}}\n",
                   arena, &theirs));
    const char *text =
        cluster_group_conflict(ours, theirs, cluster_group_find(ours, "west"), arena);
    EXPECT(strstr(text, "increment") != NULL || strstr(text, "Increment is 100") != NULL);
    EXPECT(strstr(text, "; and 1 more") != NULL);
}

/* Its numbers: domains at 0 and 102, entities at 1 and 3. */
ARENA_TEST(group, a_version_is_of_a_cluster_or_of_a_region_and_never_of_both)
{
    struct config *config = config_of(regions_of_the_design, arena);
    const struct cluster_group *group = NULL;
    EXPECT_OK(cluster_group_load(config, arena, &group));
    EXPECT_TEXT(cluster_group_of_version(group, 0)->name, "cluster0");
    EXPECT_TEXT(cluster_group_of_version(group, 102)->name, "cluster1");
    EXPECT_TEXT(cluster_group_of_version(group, 6)->name, "cluster3");
    EXPECT_TEXT(cluster_group_region_of_version(group, 1)->name, "us-west");
    EXPECT_TEXT(cluster_group_region_of_version(group, 3)->name, "us-east");
    EXPECT_TEXT(cluster_group_region_of_version(group, 103)->name, "us-east");
    EXPECT(cluster_group_of_version(group, 1) == NULL);
    EXPECT(cluster_group_region_of_version(group, 102) == NULL);
    EXPECT(cluster_group_region_of_version(group, FAILOVER_VERSION_LOCAL) == NULL);
    for (int64_t version = 0; version < 1000; version++)
        EXPECT(cluster_group_of_version(group, version) == NULL ||
               cluster_group_region_of_version(group, version) == NULL);
    config_free(config);
}

/* A group of `count` clusters, built by hand: `first`, `first` + 1, ... are their versions. */
static struct cluster_group
group_by_hand(struct cluster *clusters, size_t count, int64_t first, int64_t increment)
{
    for (size_t i = 0; i < count; i++)
        clusters[i] = (struct cluster){.name = "x",
                                       .initial_failover_version = first + (int64_t)i,
                                       .new_initial_failover_version = -1};
    return (struct cluster_group){.failover_version_increment = increment,
                                  .current = clusters,
                                  .primary = clusters,
                                  .clusters = clusters,
                                  .count = count};
}

static void
expect_next(const struct cluster_group *group, size_t target, int64_t from, int64_t wanted)
{
    int64_t next = -1;
    EXPECT(cluster_group_next_version(group, &group->clusters[target], from, &next));
    EXPECT_EQ(next, wanted);
}

/* D-036 (clusters 0, 1, 2 by 100), D-037 (1, 2 by 10) and D-038 (0, 1 by 10); and an attribute at
 * 10 that moves to the second of three by 10 takes 11, then back 20. */
TEST(group, the_numbers_of_the_documents_come_out, "D-036", "D-037", "D-038")
{
    struct cluster clusters[3];
    struct cluster_group by_hundred = group_by_hand(clusters, 3, 0, 100);
    expect_next(&by_hundred, 0, 0, 0);
    expect_next(&by_hundred, 1, 0, 1);
    expect_next(&by_hundred, 0, 1, 100);
    struct cluster_group by_ten = group_by_hand(clusters, 2, 1, 10);
    expect_next(&by_ten, 0, 0, 1);
    expect_next(&by_ten, 1, 1, 2);
    expect_next(&by_ten, 0, 2, 11);
    struct cluster_group from_zero = group_by_hand(clusters, 3, 0, 10);
    expect_next(&from_zero, 1, 0, 1);
    expect_next(&from_zero, 0, 1, 10);
    expect_next(&from_zero, 1, 10 + 1, 11);
    expect_next(&from_zero, 0, 11 + 1, 20);
    expect_next(&from_zero, 2, 52, 52);     /* to where it is: the version stays, */
    expect_next(&from_zero, 2, 52 + 1, 62); /* or rises where it has to */
}

/* While versions of the old remainder are about, new ones come of the new remainder. */
ARENA_TEST(group, a_cluster_that_migrates_takes_new_versions_and_keeps_the_old_ones, "D-047")
{
    struct cluster clusters[2];
    struct cluster_group group = group_by_hand(clusters, 2, 0, 10);
    clusters[1].new_initial_failover_version = 7;
    expect_next(&group, 1, 0, 1);
    const struct cluster_group *migrated = cluster_group_migrate(&group, arena);
    expect_next(migrated, 1, 0, 7);
    expect_next(migrated, 1, 8, 17);
    expect_next(migrated, 0, 8, 10); /* this one has no other */
    EXPECT(migrated->current == &migrated->clusters[0]);
    EXPECT(migrated->primary == &migrated->clusters[0]);
    for (int64_t version = 1; version < 100; version += 10) {
        EXPECT(cluster_group_of_version(&group, version) == &clusters[1]);
        EXPECT(cluster_group_of_version(&group, version + 6) == &clusters[1]);
        EXPECT(cluster_group_of_version(migrated, version) == &migrated->clusters[1]);
        EXPECT(cluster_group_of_version(migrated, version + 6) == &migrated->clusters[1]);
    }
}

static void
expect_all_next(const struct cluster_group *group)
{
    int64_t increment = group->failover_version_increment;
    for (int64_t from = 0; from < 3 * increment; from++) {
        for (size_t i = 0; i < group->count; i++) {
            int64_t wanted = from;
            while (wanted % increment != group->clusters[i].initial_failover_version)
                wanted++;
            expect_next(group, i, from, wanted);
            EXPECT(cluster_group_of_version(group, wanted) == &group->clusters[i]);
        }
    }
}

/* Every increment to 8, every number of clusters and every first version that fits: the next
 * version is the smallest one that is not below, found by trying all. */
TEST(group, the_next_version_is_right_for_every_small_group, "D-035")
{
    for (int64_t increment = 1; increment <= 8; increment++) {
        for (size_t count = 1; count <= (size_t)increment; count++) {
            for (int64_t first = 0; first + (int64_t)count <= increment; first++) {
                struct cluster clusters[8];
                struct cluster_group group = group_by_hand(clusters, count, first, increment);
                expect_all_next(&group);
            }
        }
    }
}

/* At the end of the numbers there is no next version for most, and never a wrapped one. */
TEST(group, the_next_version_never_wraps_around)
{
    for (int64_t increment = 1; increment <= 8; increment++) {
        for (int64_t initial = 0; initial < increment; initial++) {
            struct cluster cluster;
            struct cluster_group group = group_by_hand(&cluster, 1, initial, increment);
            for (int64_t back = 0; back < 3 * increment; back++) {
                int64_t from = INT64_MAX - back, next = -1;
                bool has_next = cluster_group_next_version(&group, &cluster, from, &next);
                int64_t steps = (initial - from % increment + increment) % increment;
                EXPECT(has_next == (steps <= back));
                EXPECT(!has_next || next == from + steps);
            }
        }
    }
}
