/* failover_test.c - what is sent for a managed failover: the input is read back by the rules that
 * the server has. */
#include "base/test.h"
#include "cli/failover/failover.h"

static struct cli_call
make_call(struct arena *arena)
{
    struct cli_call call = {.arena = arena};
    cli_give(&call, "from_cluster", "cluster0");
    cli_give(&call, "target_cluster", "cluster1");
    return call;
}

/* Gives a flag by its name, as a command line does. */
static void
give_list(struct cli_call *call, const char *key, const char **items, size_t count)
{
    const struct flag *flags = cli_flags_table(key, call, call->arena);
    *flags[0].list = (struct flag_list){items, count};
}

static void
turn_on(struct cli_call *call, const char *key)
{
    const struct flag *flags = cli_flags_table(key, call, call->arena);
    *flags[0].is_set = true;
}

static struct managed_params
read_plan(struct cli_call *call, struct failover_plan *plan)
{
    struct managed_params params;
    EXPECT_OK(failover_plan_start(call, plan));
    EXPECT_OK(managed_read_params(slice_text(plan->input), plan->kind, call->arena, &params));
    return params;
}

ARENA_TEST(failover, what_is_not_given_is_as_in_cadence, "I-T21")
{
    struct cli_call call = make_call(arena);
    struct failover_plan plan;
    struct managed_params params = read_plan(&call, &plan);
    EXPECT_TEXT(plan.workflow_id, "cadence-failover-manager");
    EXPECT_TEXT(plan.type, "cadence-sys-failoverManager-workflow");
    EXPECT_EQ(plan.timeout, 1200);
    EXPECT_TEXT(plan.cron, "");
    EXPECT_TEXT(params.sources[0], "cluster0");
    EXPECT_TEXT(params.target, "cluster1");
    EXPECT_EQ(params.batch_size, 20);
    EXPECT_EQ(params.wait, 30);
    EXPECT_EQ(params.domain_count, 0);
    EXPECT(strstr(plan.input, "Graceful") == NULL);
}

ARENA_TEST(failover, each_flag_reaches_the_workflow, "I-T21")
{
    struct cli_call call = make_call(arena);
    struct failover_plan plan;
    const char *names[] = {"a,b", "c"};
    give_list(&call, "failover_domains", names, 2);
    cli_give(&call, "failover_batch_size", "3");
    cli_give(&call, "failover_wait_time_second", "4");
    cli_give(&call, "failover_drill_wait_second", "5");
    cli_give(&call, "cron", "0 3 * * 0");
    cli_give(&call, "managed_run_timeout", "77");
    cli_give(&call, "cluster_attributes_json", "[{\"scope\":\"region\",\"name\":\"oslo\"}]");
    struct managed_params params = read_plan(&call, &plan);
    EXPECT_TEXT(plan.workflow_id, "cadence-failover-manager-drill");
    EXPECT_TEXT(plan.cron, "0 3 * * 0");
    EXPECT_EQ(plan.timeout, 77);
    EXPECT_EQ(params.domain_count, 3);
    EXPECT_TEXT(params.domains[2], "c");
    EXPECT_EQ(params.batch_size, 3);
    EXPECT_EQ(params.wait, 4);
    EXPECT_EQ(params.drill_wait, 5);
    EXPECT_EQ(params.attribute_count, 1);
    EXPECT_TEXT(params.attributes[0].name, "oslo");
    cli_give(&call, "managed_timeout", "90");
    EXPECT_OK(failover_plan_start(&call, &plan));
    EXPECT(strstr(plan.input, "\"GracefulFailoverTimeoutInSeconds\":90") != NULL);
}

ARENA_TEST(failover, the_newer_workflow_is_told_by_its_own_names, "I-T21")
{
    struct cli_call call = make_call(arena);
    struct failover_plan plan;
    turn_on(&call, "v2");
    struct managed_params params = read_plan(&call, &plan);
    EXPECT_TEXT(plan.workflow_id, "cadence-failover-v2");
    EXPECT_EQ(plan.kind, KIND_FAILOVER_V2);
    EXPECT_EQ(params.source_count, 1);
    EXPECT_EQ(params.batch_size, 20);
    failover_plan_rebalance(&call, &plan);
    EXPECT_OK(managed_read_params(slice_text(plan.input), plan.kind, arena, &params));
    EXPECT_TEXT(plan.workflow_id, "cadence-rebalance-v2");
    EXPECT_EQ(params.batch_size, 100);
}

static const char *
refusal(struct cli_call *call)
{
    struct failover_plan plan;
    struct error *err = failover_plan_start(call, &plan);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_EQ(call->exit_code, 2);
    return err->message;
}

ARENA_TEST(failover, what_cannot_be_meant_is_refused_before_anything_is_sent)
{
    struct cli_call call = make_call(arena);
    cli_give(&call, "target_cluster", "cluster0");
    EXPECT(strstr(refusal(&call), "are the same") != NULL);
    call = make_call(arena);
    cli_give(&call, "cron", "@daily");
    EXPECT(strstr(refusal(&call), "--failover_drill_wait_second") != NULL);
    call = make_call(arena);
    cli_give(&call, "cluster_attributes_json", "{}");
    EXPECT(strstr(refusal(&call), "--cluster_attributes_json") != NULL);
    call = make_call(arena);
    turn_on(&call, "v2");
    cli_give(&call, "managed_timeout", "9");
    EXPECT(strstr(refusal(&call), "FailoverTimeoutInSeconds") != NULL);
}
