/* restore_script.c - see restore_script.h. */
#include "sim/peers/restore_script.h"

#include <string.h>

#include "sim/world/histories.h"

static const char *const before[] = {"idle",      "timed",     "ended",     "again",
                                     "renewed.0", "renewed.1", "renewed.2", "busy"};
#define DECISION_TIME (12 * NS_PER_S) /* a started decision has timed out */

static const char *const after[] = {"new.idle", "new.timed", "new.ended", "new.fresh", "new.busy"};

/* --- hosts ---- */

static void
keep(struct script *script, void *context)
{
    sim_host_keep(&script->sim->hosts[*(unsigned *)context]);
}

static void
set_back(struct script *script, void *context)
{
    struct sim_host *host = &script->sim->hosts[*(unsigned *)context];
    if (host_is_running(host->host))
        sim_host_crash(host);
    sim_host_restore(host);
}

void
script_keep(struct script *script, unsigned cluster)
{
    script_outside(script, keep, &cluster);
}

void
script_set_back(struct script *script, unsigned cluster)
{
    script_outside(script, set_back, &cluster);
}

void
script_restore(struct script *script, unsigned cluster)
{
    script_set_back(script, cluster);
    script_restart(script, cluster);
}

bool
script_is_recovering(const struct script *script, unsigned cluster)
{
    return !memory_base_is_whole(script->sim->hosts[cluster].base);
}

void
script_await_whole(struct script *script, unsigned cluster)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    while (script_is_recovering(script, cluster)) {
        if (clock_monotonic() > limit)
            TEST_FAIL("cluster%u does not recover", cluster);
        script_sleep(script, 20 * NS_PER_MS);
    }
}

struct way {
    unsigned one, other;
};

static void
cut_way(struct script *script, void *context)
{
    const struct way *way = context;
    struct sim_host *hosts = script->sim->hosts;
    world_cut(script->sim->world, hosts[way->one].host, hosts[way->other].host);
    world_cut(script->sim->world, hosts[way->other].host, hosts[way->one].host);
}

static void
heal_way(struct script *script, void *context)
{
    const struct way *way = context;
    struct sim_host *hosts = script->sim->hosts;
    world_heal(script->sim->world, hosts[way->one].host, hosts[way->other].host);
    world_heal(script->sim->world, hosts[way->other].host, hosts[way->one].host);
}

void
script_cut(struct script *script, unsigned one, unsigned other)
{
    script_outside(script, cut_way, &(struct way){one, other});
}

void
script_join(struct script *script, unsigned one, unsigned other)
{
    script_outside(script, heal_way, &(struct way){one, other});
}

/* --- work ---- */

/* One decision task; its workflow's id says what comes of it. False: there was none. */
static bool
work_once(struct script *script, unsigned cluster)
{
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, NS_PER_S);
    if (task == NULL)
        return false;
    const char *id = task->workflow_execution->workflow_id;
    API(Decision) *decision = strstr(id, "timed") != NULL ? script_start_timer(script, 3000)
                              : strstr(id, "ended") != NULL || strstr(id, "again") != NULL
                                  ? script_complete_workflow(script)
                                  : NULL;
    if (strstr(id, "busy") != NULL) /* it stays started */
        return true;
    EXPECT_OK(script_complete(script, cluster, task, &decision, decision != NULL));
    return true;
}

static void
work(struct script *script, unsigned cluster)
{
    while (work_once(script, cluster))
        continue;
}

static void
begin(struct script *script, const char *const *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(ids[i], "fresh") == NULL)
            script_start(script, 0, ids[i]);
    work(script, 0);
    for (size_t i = 0; i < count; i++)
        if (strstr(ids[i], "fresh") != NULL)
            script_start(script, 0, ids[i]);
    for (size_t i = 0; i < count; i++)
        script_expect_same(script, ids[i]);
}

void
lost_begin(struct script *script)
{
    begin(script, before, array_length(before));
    EXPECT_OK(script_signal(script, 0, "busy", "buffered"));
    script_keep(script, 0);
}

static void
note_run(struct script *script, struct lost_time *lost, const char *id)
{
    script_expect_same(script, id);
    API(History) *history = script_history(script, 1, id, "");
    EXPECT(history != NULL && lost->count < LOST_RUNS_MAX);
    const API(DescribeWorkflowExecutionResponse) *described = script_describe(script, 1, id);
    EXPECT(described != NULL);
    int64_t version = history->events[history->n_events - 1]->version;
    lost->version = version > lost->version ? version : lost->version;
    lost->runs[lost->count++] =
        (struct lost_run){.id = id,
                          .run_id = described->workflow_execution_info->workflow_execution->run_id,
                          .events = history->n_events,
                          .bytes = message_encode(script->arena, &history->base)};
}

/* Another run of an old id. */
static void
start_again(struct script *script, const char *id)
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, id);
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    EXPECT_OK(script_try_start(script, 0, request, &run_id));
}

/* The run that was open in the backup has ended, and another one has its id. */
static void
renew(struct script *script, const char *id)
{
    EXPECT_OK(SCRIPT_CALL(script, 0, NULL, terminate_workflow_execution, .domain = SCRIPT_DOMAIN,
                          .workflow_execution = script_execution(script, id, ""),
                          .reason = "enough"));
    start_again(script, id);
}

void
lost_live(struct script *script, struct lost_time *lost)
{
    EXPECT_OK(script_signal(script, 0, "idle", "late"));
    EXPECT_OK(script_signal(script, 0, "timed", "late"));
    work(script, 0);
    start_again(script, "again");
    for (unsigned i = 0; i < 3; i++)
        renew(script, arena_format(script->arena, "renewed.%u", i));
    script_sleep(script, DECISION_TIME); /* the signal that was buffered is in the history */
    begin(script, after, array_length(after));
    for (size_t i = 0; i < array_length(before); i++)
        note_run(script, lost, before[i]);
    for (size_t i = 0; i < array_length(after); i++)
        note_run(script, lost, after[i]);
    int64_t version = lost_domain_version(script, 1);
    lost->version = version > lost->version ? version : lost->version;
}

/* --- what has to be true ---- */

int64_t
lost_domain_version(struct script *script, unsigned cluster)
{
    return script_describe_domain(script, cluster)->failover_version;
}

static bool
is_there(struct script *script, unsigned cluster, const struct lost_run *run)
{
    API(History) *history = script_history(script, cluster, run->id, run->run_id);
    if (history == NULL || history->n_events < run->events)
        return false;
    history->n_events = run->events;
    return slice_equal(message_encode(script->arena, &history->base), run->bytes);
}

void
lost_expect_all(struct script *script, const struct lost_time *lost)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    for (unsigned i = 0; i < lost->count; i++) {
        for (unsigned cluster = 0; cluster < script->sim->count; cluster++) {
            while (!is_there(script, cluster, &lost->runs[i])) {
                if (clock_monotonic() > limit)
                    TEST_FAIL("cluster%u does not have run %s of %s as it was", cluster,
                              lost->runs[i].run_id, lost->runs[i].id);
                script_sleep(script, 50 * NS_PER_MS);
            }
        }
    }
}

static const char *const taken[] = {"idle", "timed", "new.idle", "new.timed", "new.fresh"};

/* Until it is known that it runs, the answer is an error, and nothing is started. */
void
lost_expect_taken(struct script *script, unsigned cluster)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    for (size_t i = 0; i < array_length(taken); i++) {
        for (;;) {
            const char *run_id;
            struct error *err =
                script_try_start(script, cluster, script_start_request(script, taken[i]), &run_id);
            if (err == NULL)
                TEST_FAIL("cluster%u started %s again as %s", cluster, taken[i], run_id);
            if (err->kind == ERR_ALREADY_STARTED)
                break;
            if (clock_monotonic() > limit)
                TEST_FAIL("cluster%u says of %s: %s", cluster, taken[i], err->message);
            script_sleep(script, 50 * NS_PER_MS);
        }
    }
}

static void
expect_higher(struct script *script, unsigned cluster, const char *id, const struct lost_time *lost)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    struct error *err;
    while ((err = script_signal(script, cluster, id, "afterwards")) != NULL) {
        if (clock_monotonic() > limit)
            TEST_FAIL("cluster%u takes no signal for %s: %s", cluster, id, err->message);
        script_sleep(script, 50 * NS_PER_MS);
    }
    work(script, cluster);
    API(History) *history = script_history(script, cluster, id, "");
    EXPECT(history != NULL && script_count_signals(history, "afterwards") == 1);
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        if (event->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED) &&
            strcmp(event->workflow_execution_signaled_event_attributes->signal_name,
                   "afterwards") == 0)
            EXPECT(event->version > lost->version);
    }
}

void
lost_expect_goes_on(struct script *script, unsigned cluster, const struct lost_time *lost)
{
    expect_higher(script, cluster, "idle", lost);
    expect_higher(script, cluster, "new.idle", lost);
    expect_higher(script, cluster, "new.fresh", lost);
    for (size_t i = 0; i < array_length(before); i++)
        script_expect_same(script, before[i]);
    for (size_t i = 0; i < array_length(after); i++)
        script_expect_same(script, after[i]);
    API(History) *busy = script_history(script, cluster, "busy", "");
    EXPECT_EQ(script_count_signals(busy, "buffered"), 1);
    if (script->sim->histories != NULL && sim_histories_violation(script->sim->histories) != NULL)
        TEST_FAIL("%s", sim_histories_violation(script->sim->histories));
    for (unsigned i = 1; i < script->sim->count; i++)
        EXPECT_EQ(lost_domain_version(script, i), lost_domain_version(script, 0));
}

void
lost_expect_recovered(struct script *script, unsigned cluster, const struct lost_time *lost)
{
    lost_expect_taken(script, cluster);
    lost_expect_all(script, lost);
    script_await_whole(script, 0);
    lost_expect_goes_on(script, cluster, lost);
    script_start(script, cluster, "afterwards");
    work(script, cluster);
    script_expect_same(script, "afterwards");
    EXPECT_EQ(world_probe_count(script->sim->world, "divergence_noted"), 0);
}
