/* group_plan_test.c - the plan of a group: ports, folders, and settings that a server accepts. */
#include "base/test.h"
#include "cli/servers/group.h"
#include "cluster/group.h"
#include "config/config.h"

ARENA_TEST(group_plan, the_defaults_are_three_clusters_on_the_ports_of_cadences_samples)
{
    struct group_plan plan;
    EXPECT_OK(group_make_plan(NULL, NULL, NULL, arena, &plan));
    EXPECT_EQ(plan.count, 3);
    EXPECT_TEXT(group_folder(&plan, 2, arena), "./data-group/cluster2");
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(group_grpc_port(&plan, i), 7833 + 1000 * (int)i);
        EXPECT_EQ(group_http_port(&plan, i), 8088 + 1000 * (int)i);
    }
}

ARENA_TEST(group_plan, numbers_out_of_range_are_refused_with_the_range)
{
    struct group_plan plan;
    EXPECT_TEXT(group_make_plan("0", NULL, NULL, arena, &plan)->message,
                "--clusters: '0' is not a number from 1 to 9");
    EXPECT_KIND(group_make_plan("10", NULL, NULL, arena, &plan), ERR_BAD_REQUEST);
    EXPECT_KIND(group_make_plan("three", NULL, NULL, arena, &plan), ERR_BAD_REQUEST);
    EXPECT_KIND(group_make_plan(NULL, "0", NULL, arena, &plan), ERR_BAD_REQUEST);
    EXPECT_OK(group_make_plan("9", "57280", "d", arena, &plan));
    EXPECT_EQ(group_http_port(&plan, 8), 65535);
    EXPECT_TEXT(group_make_plan("9", "57281", "d", arena, &plan)->message,
                "--base-port: '57281' is not a number from 1 to 57280");
}

ARENA_TEST(group_plan, every_cluster_gets_settings_that_name_the_same_group)
{
    struct group_plan plan;
    EXPECT_OK(group_make_plan("9", "20000", "d", arena, &plan));
    for (unsigned i = 0; i < plan.count; i++) {
        struct config *config = NULL;
        const struct cluster_group *group = NULL;
        EXPECT_OK(config_parse(slice_text(group_settings(&plan, i, arena)), "config.yaml",
                               &config_environment_of_process, arena, &config));
        EXPECT_OK(cluster_group_load(config, arena, &group));
        EXPECT_TEXT(group->current->name, arena_format(arena, "cluster%u", i));
        EXPECT_TEXT(group->primary->name, "cluster0");
        EXPECT_EQ(group->count, 9);
        EXPECT_EQ(group->failover_version_increment, 10);
        EXPECT_EQ(group->current->initial_failover_version, i);
        EXPECT_TEXT(group->current->rpc_address,
                    arena_format(arena, "127.0.0.1:%u", 20000 + 1000 * i));
        EXPECT_EQ(config_integer(config, "services.frontend.rpc.grpcPort"),
                  group_grpc_port(&plan, i));
        config_free(config);
    }
}
