/* active_moves_script_test.c - regions of an active-active domain move between clusters: their
 * workflows go along at once, and no others are touched. */
#include <stdlib.h>
#include <string.h>

#include "sim/active/active_script.h"
#include "wire/errors.h"

/* --- a region is failed over ---- */

static API(PollForDecisionTaskResponse) *
poll_at_once(struct script *script, unsigned cluster, const char *id)
{
    int64_t began = clock_monotonic();
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL);
    EXPECT_TEXT(task->workflow_execution->workflow_id, id);
    EXPECT(clock_monotonic() - began < AT_ONCE);
    return task;
}

/* wf1 waits for a timer when its region goes, wf2 has its first decision pending, wf3 was started
 * with a delay before, wf4 is started afterwards in the old cluster. */
SCRIPT_TEST(active_moves, workflows_of_a_region_finish_in_the_cluster_that_it_goes_to,
            active_play(2, body), "G-031")
{
    active_start(script, 0, "wf1", "region0");
    API(Decision) *timer = script_start_timer(script, 20), *end = script_complete_workflow(script);
    script_decide(script, 0, &timer, 1);
    active_start(script, 0, "wf2", "region0");
    script_await(script, 1, "wf1", 5);
    script_await(script, 1, "wf2", 2);
    API(StartWorkflowExecutionRequest) *delayed = active_start_request(script, "wf3", "region0");
    delayed->delay_start = presence_make_duration(script->arena, 10);
    const char *run_id;
    EXPECT_OK(script_try_start(script, 0, delayed, &run_id));
    script_await(script, 1, "wf3", 1);
    active_move(script, "region0", 1);
    EXPECT_OK(script_complete(script, 1, poll_at_once(script, 1, "wf2"), &end, 1));
    active_await_move(script, 0, "region0", 1);
    active_start(script, 0, "wf4", "region0"); /* goes on to cluster 1 */
    EXPECT_OK(script_complete(script, 1, poll_at_once(script, 1, "wf4"), &end, 1));
    active_end(script, 1, "wf3");
    active_end(script, 1, "wf1"); /* its timer */
    EXPECT(script_poll(script, 0, NS_PER_S) == NULL);
    static const struct {
        const char *id;
        size_t moved; /* the first event that cluster 1 wrote */
    } workflows[] = {{"wf1", 5}, {"wf2", 2}, {"wf3", 1}, {"wf4", 0}};
    for (size_t i = 0; i < array_length(workflows); i++) {
        const char *id = workflows[i].id;
        active_expect_closed(script, 0, id, NULL, CLOSE(COMPLETED));
        script_expect_same(script, id);
        API(History) *history = script_history(script, 0, id, "");
        active_expect_written(history, workflows[i].moved, 1);
        for (size_t j = 0; j < workflows[i].moved; j++)
            EXPECT_EQ(sim_group_of_version(history->events[j]->version), 0);
    }
}

/* A decision that a worker of the old cluster has begun does not keep the new one waiting. */
SCRIPT_TEST(active_moves, nobody_waits_for_the_timeout_of_a_decision_begun_elsewhere,
            active_play(2, body), "G-055", "G-037")
{
    active_start(script, 0, "w", "region0");
    API(PollForDecisionTaskResponse) *old = script_poll(script, 0, WITHIN);
    EXPECT(old != NULL);
    script_await(script, 1, "w", 3);
    active_move(script, "region0", 1);
    API(PollForDecisionTaskResponse) *task = poll_at_once(script, 1, "w");
    active_await_move(script, 0, "region0", 1);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT(script_complete(script, 0, old, &end, 1) != NULL); /* too late */
    EXPECT_OK(script_complete(script, 1, task, &end, 1));
    script_expect_same(script, "w");
}

/* --- activities ---- */

SCRIPT_TEST(active_moves, an_activity_that_waits_is_given_out_where_its_workflow_goes,
            active_play(2, body), "G-031", "G-055")
{
    active_start(script, 0, "w", "region0");
    API(Decision) *activity = script_schedule_activity(script, false);
    script_decide(script, 0, &activity, 1);
    script_await(script, 1, "w", 5);
    EXPECT(script_poll_activity(script, 1, NS_PER_S) == NULL);
    active_move(script, "region0", 1);
    int64_t began = clock_monotonic();
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 1, WITHIN);
    EXPECT(task != NULL);
    EXPECT(clock_monotonic() - began < AT_ONCE);
    active_await_move(script, 0, "region0", 1);
    EXPECT(script_poll_activity(script, 0, NS_PER_S) == NULL);
    EXPECT_OK(SCRIPT_CALL(script, 1, NULL, respond_activity_task_completed,
                          .task_token = task->task_token));
    active_end(script, 1, "w");
    script_expect_same(script, "w");
    active_expect_written(script_history(script, 0, "w", ""), 5, 1);
}

/* --- a wave, and those that stay ---- */

#define WAVE 30

/* Of every region, and of none, there are runs with a decision that a worker has begun. */
SCRIPT_TEST(active_moves, a_wave_of_tasks_goes_with_its_region_and_others_are_not_touched,
            active_play(2, body), "G-037", "G-028")
{
    const struct {
        const char *id, *region;
        unsigned home;
    } others[] = {{"other", "region1", 1}, {"default", NULL, 0}};
    API(PollForDecisionTaskResponse) *begun[2];
    size_t events[2];
    for (size_t i = 0; i < 2; i++) {
        active_start(script, others[i].home, others[i].id, others[i].region);
        begun[i] = script_poll(script, others[i].home, WITHIN);
        EXPECT(begun[i] != NULL);
        EXPECT_OK(script_signal(script, others[i].home, others[i].id, "buffered"));
        events[i] = script_await(script, 1 - others[i].home, others[i].id, 3)->n_events;
    }
    for (int i = 0; i < WAVE; i++) {
        const char *id = arena_format(script->arena, "wave%d", i);
        active_start(script, 0, id, "region0");
        script_await(script, 1, id, 2);
    }
    active_move(script, "region0", 1);
    int64_t began = clock_monotonic();
    API(Decision) *end = script_complete_workflow(script);
    for (int i = 0; i < WAVE; i++) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
        EXPECT(task != NULL);
        EXPECT(strncmp(task->workflow_execution->workflow_id, "wave", 4) == 0);
        EXPECT_OK(script_complete(script, 1, task, &end, 1));
    }
    EXPECT(clock_monotonic() - began < 5 * NS_PER_S); /* decisions time out after 10 */
    active_await_move(script, 0, "region0", 1);
    script_sleep(script, NS_PER_S);
    for (size_t i = 0; i < 2; i++) { /* no event, no other version, and the decisions count */
        API(History) *history = script_history(script, others[i].home, others[i].id, "");
        EXPECT_EQ(history->n_events, events[i]);
        active_expect_written(history, 0, others[i].home);
        API(Decision) *timer = script_start_timer(script, 60);
        EXPECT_OK(script_complete(script, others[i].home, begun[i], &timer, 1));
        active_end(script, others[i].home, others[i].id); /* the signal's */
        script_expect_same(script, others[i].id);
        active_expect_written(script_history(script, 0, others[i].id, ""), 0, others[i].home);
    }
}

/* --- the domain's own cluster moves ---- */

SCRIPT_TEST(active_moves, the_default_moves_without_the_regions, active_play(2, body), "G-036")
{
    active_start(script, 0, "region", "region0");
    API(PollForDecisionTaskResponse) *begun = script_poll(script, 0, WITHIN);
    active_start(script, 0, "default", NULL);
    script_await(script, 1, "region", 3);
    script_await(script, 1, "default", 2);
    script_failover(script, 1);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 1, poll_at_once(script, 1, "default"), &end, 1));
    EXPECT_OK(script_complete(script, 0, begun, &end, 1));
    script_expect_same(script, "region");
    script_expect_same(script, "default");
    active_expect_written(script_history(script, 1, "region", ""), 0, 0);
    active_expect_written(script_history(script, 0, "default", ""), 2, 1);
}

/* --- schedules ---- */

SCRIPT_TEST(active_moves, schedules_go_on_where_their_region_goes, active_play(2, body), "G-032")
{
    static const char *const ids[] = {"wf1", "wf2"}, *const regions[] = {"region0", "region1"};
    const char *run_id;
    for (unsigned i = 0; i < 2; i++) {
        API(StartWorkflowExecutionRequest) *request =
            active_start_request(script, ids[i], regions[i]);
        request->cron_schedule = "@every 10s";
        EXPECT_OK(script_try_start(script, i, request, &run_id));
    }
    active_end(script, 0, "wf1");
    active_end(script, 1, "wf2");
    script_sleep(script, NS_PER_S);
    script_expect_same(script, "wf1");
    active_move(script, "region0", 1);
    active_await_move(script, 0, "region0", 1);
    API(Decision) *end = script_complete_workflow(script);
    int fires[2] = {0, 0};
    for (int i = 0; i < 6; i++) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, 1, 40 * NS_PER_S);
        EXPECT(task != NULL);
        fires[strcmp(task->workflow_execution->workflow_id, "wf2") == 0]++;
        EXPECT_OK(script_complete(script, 1, task, &end, 1));
    }
    EXPECT_EQ(fires[0], 3);
    EXPECT_EQ(fires[1], 3);
    script_expect_same(script, "wf1");
    script_expect_same(script, "wf2");
    EXPECT_TEXT(active_region(script_history(script, 0, "wf1", "")), "region0");
    EXPECT(script_poll(script, 0, NS_PER_S) == NULL);
}

/* --- there and back ---- */

/* Each time the version rises, also when the region comes back to where it was. */
SCRIPT_TEST(active_moves, the_version_rises_with_every_move_and_only_then, active_play(3, body))
{
    active_start(script, 0, "w", "region0");
    static const unsigned homes[] = {1, 2, 0, 1, 0};
    script_decide(script, 0, NULL, 0);
    size_t events = 4;
    for (size_t i = 0; i < array_length(homes); i++) {
        script_await(script, homes[i], "w", events);
        active_move(script, "region0", homes[i]);
        EXPECT_OK(script_signal(script, homes[i], "w", "go"));
        script_decide(script, homes[i], NULL, 0);
        events += 4;
        for (unsigned cluster = 0; cluster < 3; cluster++)
            active_await_move(script, cluster, "region0", homes[i]);
    }
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 0, "w", "");
    EXPECT_EQ(history->n_events, events);
    for (size_t i = 1; i < history->n_events; i++) {
        const API(HistoryEvent) *before = history->events[i - 1], *event = history->events[i];
        bool is_moved = i % 4 == 0 && i >= 4;
        EXPECT(is_moved ? event->version > before->version : event->version == before->version);
        if (i >= 4)
            EXPECT_EQ(sim_group_of_version(event->version), (int)homes[i / 4 - 1]);
    }
}

/* --- forwarding ---- */

/* Each kind of call goes to where its workflow is, whichever cluster is asked. */
SCRIPT_TEST(active_moves, calls_go_to_where_their_workflow_is, active_play(2, body), "G-050",
            "G-019")
{
    const char *first = active_start(script, 0, "w", "region1"); /* by the request */
    script_await(script, 0, "w", 2);
    active_expect_written(script_history(script, 1, "w", ""), 0, 1);
    EXPECT_OK(script_signal(script, 0, "w", "by-id"));
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        script->arena, signal_workflow_execution_request, .domain = SCRIPT_DOMAIN,
        .workflow_execution = script_execution(script, "w", first), .signal_name = "by-run");
    EXPECT_OK(script_call(script, 0, request, NULL));
    API(History) *history = script_await(script, 0, "w", 4);
    active_expect_written(history, 0, 1);
    active_end(script, 1, "w");
    script_await(script, 0, "w", 7);
    /* The closed run says nothing about a signal with start: its request does. */
    const char *second;
    API(StartWorkflowExecutionRequest) *start = active_start_request(script, "w", "region0");
    start->workflow_id_reuse_policy = REUSE(ALLOW_DUPLICATE);
    EXPECT_OK(active_signal_with_start(script, 1, start, "go", &second));
    active_expect_written(script_history(script, 0, "w", second), 0, 0);
    /* Nobody knows where this one is: it is answered where it was asked. */
    struct error *err = script_signal(script, 1, "nobody", "go");
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    /* Of the run that is named, else of the current one. */
    script_await(script, 1, "w", 3);
    EXPECT_OK(script_signal(script, 1, "w", "current"));
    active_expect_written(script_await(script, 0, "w", 4), 0, 0);
    request->signal_name = "closed";
    err = script_call(script, 0, request, NULL);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Workflow execution already completed.");
}

/* --- what is told of it ---- */

/* A line of /metrics with this beginning, its value; -1: none. */
static long
read_metric(struct script *script, unsigned cluster, const char *series)
{
    struct slice text = sim_host_metrics(&script->sim->hosts[cluster], script->arena);
    const char *page = arena_format(script->arena, "%.*s", (int)text.length, text.data);
    const char *line = strstr(page, series);
    return line == NULL ? -1 : strtol(line + strlen(series), NULL, 10);
}

#define LOOKUP(what, function)                                                                     \
    "active_cluster_manager_lookup_" what "_count{fn=\"" function                                  \
    "\",domain=\"flows\",is_active_active_domain=\"true\"} "

#define BY_ATTRIBUTE "GetActiveClusterInfoByClusterAttribute"
#define BY_WORKFLOW  "GetActiveClusterInfoByWorkflow"
#define BY_CURRENT   "GetActiveClusterSelectionPolicyForCurrentWorkflow"

SCRIPT_TEST(active_moves, looking_for_the_active_cluster_is_counted, active_play(2, body), "G-056")
{
    const char *run_id;
    active_start(script, 0, "w", "region1");
    script_await(script, 0, "w", 2);
    EXPECT_OK(script_signal(script, 0, "w", "one"));
    EXPECT_OK(script_signal(script, 0, "w", "two"));
    EXPECT_KIND(script_signal(script, 0, "nobody", "three"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(active_signal_with_start(script, 0, active_start_request(script, "w", "region0"),
                                       "four", &run_id));
    EXPECT_EQ(read_metric(script, 0, LOOKUP("request", BY_ATTRIBUTE)), 1);
    EXPECT_EQ(read_metric(script, 0, LOOKUP("success", BY_ATTRIBUTE)), 1);
    EXPECT_EQ(read_metric(script, 0, LOOKUP("success", BY_CURRENT)), 1);
    long found = read_metric(script, 0, LOOKUP("success", BY_WORKFLOW));
    long unknown = read_metric(script, 0, LOOKUP("failure", BY_WORKFLOW));
    EXPECT(found >= 2 && unknown >= 1); /* reading its history asks too */
    EXPECT_EQ(read_metric(script, 0, LOOKUP("request", BY_WORKFLOW)), found + unknown);
}

/* --- a cluster that the domain does not have ---- */

static void
leave_out_the_last(struct script *script)
{
    script->domain_clusters = 2;
}

/* Cluster 2 has no runs of the domain: it cannot know where one is active, and asks a cluster
 * that does. */
static void
play_outside(struct script *script)
{
    active_start(script, 2, "w", "region1"); /* goes to cluster 1 */
    EXPECT_OK(script_signal(script, 2, "w", "one"));
    API(History) *history = script_await(script, 0, "w", 3);
    active_expect_written(history, 0, 1);
    active_start(script, 2, "v", "region0");
    EXPECT_OK(script_signal(script, 2, "v", "two"));
    active_expect_written(script_await(script, 1, "v", 3), 0, 0);
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    EXPECT_OK(script_signal(script, 2, "w", "three"));
    active_expect_written(script_await(script, 1, "w", 4), 3, 0);
    EXPECT_KIND(script_signal(script, 2, "nobody", "four"), ERR_ENTITY_NOT_EXISTS);
    EXPECT(world_probe_count(script->sim->world, "call_of_outsider") >= 4);
}

TEST(active_moves, a_cluster_that_the_domain_does_not_have_passes_all_calls_on)
{
    static const struct load_attribute regions[] = {{"region", "region0", "cluster0"},
                                                    {"region", "region1", "cluster1"}};
    struct script_attributes attributes = {regions, array_length(regions), .is_forwarded = true};
    script_play_on(&(struct script_fixture){.clusters = 3,
                                            .attributes = &attributes,
                                            .begin = leave_out_the_last,
                                            .run = play_outside});
}

/* --- an attribute that is taken away ---- */

static void
remove_region(struct script *script, const char *region)
{
    API(UpdateDomainRequest) *request =
        API_NEW(script->arena, update_domain_request, .name = SCRIPT_DOMAIN, .security_token = "",
                .update_mask = GOOGLE_NEW(script->arena, field_mask));
    static char *paths[] = {"removed_attributes"};
    request->update_mask->paths = paths;
    request->update_mask->n_paths = 1;
    request->removed_attributes = arena_alloc(script->arena, sizeof(void *));
    request->removed_attributes[0] = active_policy(script, "region", region)->cluster_attribute;
    request->n_removed_attributes = 1;
    request->is_forced = true;
    EXPECT_OK(script_call(script, 0, request, NULL));
}

/* Nobody works on its workflows; nothing of them is lost, and they go on when it is back. */
SCRIPT_TEST(active_moves, workflows_of_an_attribute_that_is_gone_wait_for_it, active_play(2, body),
            "G-020")
{
    active_start(script, 1, "w", "region1");
    script_await(script, 0, "w", 2);
    remove_region(script, "region1");
    script_sleep(script, 2 * NS_PER_S);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT(script_poll(script, i, NS_PER_S) == NULL);
        EXPECT_KIND(script_signal(script, i, "w", "go"), ERR_BAD_REQUEST);
        EXPECT_EQ(script_history(script, i, "w", "")->n_events, 2);
    }
    EXPECT(read_metric(script, 1, "\nactive_cluster_unresolved_rows ") >= 1);
    active_move(script, "region1", 0);
    active_end(script, 0, "w");
    script_expect_same(script, "w");
    active_expect_written(script_history(script, 1, "w", ""), 2, 0);
}
