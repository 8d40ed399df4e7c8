/* active_script.c - see active_script.h. */
#include "sim/active/active_script.h"

#include <string.h>

static const struct load_attribute regions[] = {{"region", "region0", "cluster0"},
                                                {"region", "region1", "cluster1"}};

/* --- life ---- */

void
active_play(unsigned clusters, void (*run)(struct script *script))
{
    struct script_attributes attributes = {regions, array_length(regions), .is_forwarded = true};
    script_play_attributes(clusters, &attributes, run);
}

void
active_play_seed(unsigned clusters, int seed_index, void (*run)(struct script *script))
{
    struct script_attributes attributes = {regions, array_length(regions), .is_forwarded = true,
                                           .seed_index = seed_index};
    script_play_attributes(clusters, &attributes, run);
}

void
active_play_unforwarded(unsigned clusters, void (*run)(struct script *script))
{
    struct script_attributes attributes = {regions, array_length(regions)};
    script_play_attributes(clusters, &attributes, run);
}

void
active_play_regions(unsigned clusters, void (*run)(struct script *script))
{
    struct script_attributes attributes = {regions, array_length(regions), .has_regions = true,
                                           .is_forwarded = true};
    script_play_attributes(clusters, &attributes, run);
}

/* --- clients ---- */

API(ActiveClusterSelectionPolicy) *
active_policy(struct script *script, const char *scope, const char *name)
{
    return API_NEW(script->arena, active_cluster_selection_policy,
                   .cluster_attribute = API_NEW(script->arena, cluster_attribute,
                                                .scope = (char *)scope, .name = (char *)name));
}

API(StartWorkflowExecutionRequest) *
active_start_request(struct script *script, const char *id, const char *region)
{
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, id);
    if (region != NULL)
        request->active_cluster_selection_policy = active_policy(script, "region", region);
    return request;
}

const char *
active_start(struct script *script, unsigned cluster, const char *id, const char *region)
{
    const char *run_id;
    EXPECT_OK(script_try_start(script, cluster, active_start_request(script, id, region), &run_id));
    return run_id;
}

struct error *
active_signal_with_start(struct script *script, unsigned cluster,
                         API(StartWorkflowExecutionRequest) *start, const char *signal,
                         const char **run_id)
{
    API(SignalWithStartWorkflowExecutionResponse) *response = NULL;
    struct error *err =
        SCRIPT_CALL(script, cluster, &response, signal_with_start_workflow_execution,
                    .start_request = start, .signal_name = (char *)signal);
    *run_id = err == NULL ? response->run_id : "";
    return err;
}

struct error *
active_try_move(struct script *script, const char *region, unsigned to)
{
    struct load_call call = {.clients = script->clients, .host = to, .arena = script->arena};
    struct load_attribute attribute = {"region", region,
                                       arena_format(script->arena, "cluster%u", to)};
    struct load_failover failover = {.name = SCRIPT_DOMAIN, .attribute = &attribute};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    struct error *err = load_failover(&call, &failover, &domain);
    fiber_set_deadline(NEVER);
    return err;
}

void
active_move(struct script *script, const char *region, unsigned to)
{
    EXPECT_OK(active_try_move(script, region, to));
}

static const char *
where_is(const API(Domain) *domain, const char *region)
{
    const API(ActiveClusters) *clusters = domain->active_clusters;
    EXPECT_EQ(clusters->n_active_clusters_by_cluster_attribute, 1);
    const API(ClusterAttributeScope) *scope =
        clusters->active_clusters_by_cluster_attribute[0]->value;
    for (size_t i = 0; i < scope->n_cluster_attributes; i++)
        if (strcmp(scope->cluster_attributes[i]->key, region) == 0)
            return scope->cluster_attributes[i]->value->active_cluster_name;
    return "";
}

void
active_await_move(struct script *script, unsigned cluster, const char *region, unsigned to)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    const char *wanted = arena_format(script->arena, "cluster%u", to);
    int64_t limit = clock_monotonic() + WITHIN;
    for (;;) {
        API(Domain) *domain = NULL;
        fiber_set_deadline(limit);
        EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
        fiber_set_deadline(NEVER);
        if (strcmp(where_is(domain, region), wanted) == 0)
            return;
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 10 * NS_PER_MS);
    }
}

/* --- workers ---- */

void
active_end(struct script *script, unsigned cluster, const char *id)
{
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL);
    EXPECT_TEXT(task->workflow_execution->workflow_id, id);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, cluster, task, &end, 1));
}

API(Decision) *
active_start_child(struct script *script, const char *id, API(ActiveClusterSelectionPolicy) *policy)
{
    return API_DECISION(script->arena, start_child_workflow_execution, .workflow_id = (char *)id,
                        .workflow_type = API_NEW(script->arena, workflow_type, .name = "scripted"),
                        .active_cluster_selection_policy = policy);
}

/* --- looking ---- */

void
active_expect_written(const API(History) *history, size_t first, unsigned cluster)
{
    EXPECT(history->n_events > first);
    for (size_t i = first; i < history->n_events; i++)
        EXPECT_EQ(sim_group_of_version(history->events[i]->version), (int)cluster);
}

static int
close_status(struct script *script, unsigned cluster, const char *id, const char *run_id)
{
    API(DescribeWorkflowExecutionRequest) *request = API_NEW(
        script->arena, describe_workflow_execution_request, .domain = SCRIPT_DOMAIN,
        .workflow_execution = script_execution(script, id, run_id == NULL ? "" : (char *)run_id));
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    struct error *err = script_call(script, cluster, request, &response);
    return err != NULL ? -1 : (int)response->workflow_execution_info->close_status;
}

void
active_expect_closed(struct script *script, unsigned cluster, const char *id, const char *run_id,
                     int status)
{
    int64_t limit = clock_monotonic() + WITHIN;
    int found;
    while ((found = close_status(script, cluster, id, run_id)) != status) {
        if (clock_monotonic() > limit)
            TEST_FAIL("in cluster%u the close status of %s is %d, not %d", cluster, id, found,
                      status);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

const char *
active_region(const API(History) *history)
{
    const API(ActiveClusterSelectionPolicy) *policy =
        history->events[0]
            ->workflow_execution_started_event_attributes->active_cluster_selection_policy;
    return policy == NULL ? "" : policy->cluster_attribute->name;
}
