/* graceful_script_test.c - a domain drains from one cluster to another: the markers, and what a
 * crash does at every point in between.
 *
 * The scenario has one run of each kind that the hand-over could hurt: one that is idle, one with a
 * started decision and what was taken meanwhile, one with a timer, one that is not decided yet, one
 * that asks other shards for something in the middle of it. It is played without harm first, which
 * counts the points at which a crash of a cluster makes a difference; then once for each of these,
 * with a crash there. Clusters have different numbers of shards. The store of the source is watched
 * as it becomes durable: one marker in each shard, and no event of the old version behind it. */
#include "sim/scripts/script_drain.h"

#include <stdio.h>
#include <string.h>

#include "cadenza/storage/v1/run.pb-c.h"
#include "store/key.h"

#define TYPE(name) CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_##name
#define TASK(name) ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_##name)

#define SOURCE      0
#define TARGET      1
#define SHARDS_MAX  8
#define SIGNALS_MAX 64
#define TIMEOUT     300 /* seconds: nothing may come to this */
#define PROMPT      (20 * NS_PER_S)

static const char *const run_ids[] = {"idle", "buffered", "timed", "fresh", "asking", "asked"};
#define ID_COUNT (sizeof run_ids / sizeof run_ids[0])
#define CHILD    "child"

struct drain_fixture {
    /* The harm. */
    unsigned victim;
    uint64_t at; /* crashes at this point; 0: at none */
    bool is_armed, has_struck;
    uint64_t armed_at[2], points[2];
    /* What was seen of the source's store. */
    int64_t old_version;
    unsigned markers[SHARDS_MAX];
    unsigned late; /* events of the old version behind a marker */
    /* Signals that were acknowledged. */
    struct signal {
        const char *id;
        char name[32];
        bool is_acknowledged;
    } signals[SIGNALS_MAX];
    unsigned signal_count;
};

static struct drain_fixture *
test_of(const struct script *script)
{
    return script->fixture->test;
}

/* --- the source's store ---- */

static void
see_row(void *context, struct partition partition, enum row_kind kind, struct slice key,
        struct slice value)
{
    struct drain_fixture *test = context;
    if (kind != ROW_REPLICATION)
        return;
    struct arena *arena = arena_new(0);
    STORED(ReplicationRow) *row = NULL;
    EXPECT_OK(message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(replication_row), value, &row));
    EXPECT(partition.number < SHARDS_MAX);
    if (row->type == TYPE(MARKER))
        test->markers[partition.number]++;
    else if (row->type == TYPE(EVENTS) && test->markers[partition.number] > 0 &&
             row->versions[row->n_versions - 1]->event_version <= test->old_version)
        test->late++;
    arena_free(arena);
}

static void
watch_source(struct script *script)
{
    memory_base_watch(script->sim->hosts[SOURCE].base,
                      (struct memory_watch){.landed = see_row, .context = test_of(script)});
}

static uint64_t
points_of(const struct script *script, unsigned cluster)
{
    return memory_base_points(script->sim->hosts[cluster].base);
}

static bool
is_struck_now(const struct script *script)
{
    const struct drain_fixture *test = test_of(script);
    return test->is_armed && !test->has_struck && test->at > 0 &&
           points_of(script, test->victim) >= test->armed_at[test->victim] + test->at;
}

static void
strike(struct script *script)
{
    struct drain_fixture *test = test_of(script);
    struct sim_host *host = &script->sim->hosts[test->victim];
    test->has_struck = true;
    sim_host_crash(host);
    sim_host_start(host);
}

/* --- calls ---- */

static void
send_signal(struct script *script, unsigned cluster, const char *id)
{
    struct drain_fixture *test = test_of(script);
    EXPECT(test->signal_count < SIGNALS_MAX);
    struct signal *signal = &test->signals[test->signal_count];
    signal->id = id;
    snprintf(signal->name, sizeof signal->name, "s%u", test->signal_count++);
    signal->is_acknowledged = script_signal(script, cluster, id, signal->name) == NULL;
}

/* Only where it is active, what is asked there is done. */
static bool
is_active(struct script *script, unsigned cluster)
{
    unsigned number = test_of(script)->signal_count;
    send_signal(script, cluster, "idle");
    return test_of(script)->signals[number].is_acknowledged;
}

static int64_t
await_active(struct script *script, unsigned cluster, int64_t within)
{
    int64_t begin = clock_monotonic();
    for (unsigned turn = 0; !is_active(script, cluster); turn++) {
        EXPECT(clock_monotonic() - begin < within);
        if (test_of(script)->signal_count + 4 < SIGNALS_MAX / 2)
            send_signal(script, SOURCE, run_ids[turn % ID_COUNT]);
        script_sleep(script, 20 * NS_PER_MS);
        if (test_of(script)->signal_count + 2 >= SIGNALS_MAX)
            test_of(script)->signal_count -= 1; /* it was refused */
    }
    return clock_monotonic() - begin;
}

/* --- the worker ---- */

/* One that is asked waits until it was. */
static bool
is_to_end(const char *id, const API(History) *history)
{
    bool was_asked = strcmp(id, "asked") != 0 || script_count_signals(history, "external") > 0;
    return was_asked && script_count_signals(history, "end") > 0;
}

/* What a worker decides by what it sees. */
static size_t
decide(struct script *script, const API(PollForDecisionTaskResponse) *task,
       API(Decision) **decisions)
{
    const char *id = task->workflow_execution->workflow_id;
    const API(History) *history = task->history;
    size_t count = 0;
    bool has_asked =
        script_count_events(history, EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)) > 0;
    bool has_timer = script_count_events(history, EVENT(TIMER_STARTED)) > 0;
    if (strcmp(id, "asking") == 0 && !has_asked) {
        decisions[count++] = script_ask_other(script, "asked", "external");
        decisions[count++] = script_start_child(script, CHILD);
    } else if (strcmp(id, "timed") == 0 && !has_timer) {
        decisions[count++] = script_start_timer(script, 3);
    } else if (strcmp(id, CHILD) == 0 || is_to_end(id, history)) {
        decisions[count++] = script_complete_workflow(script);
    }
    return count;
}

static bool
is_closed(struct script *script, const char *id)
{
    API(DescribeWorkflowExecutionResponse) *described = script_describe(script, TARGET, id);
    return described != NULL && described->workflow_execution_info->close_time != NULL;
}

/* All runs come to their ends in the target. */
static void
work_off(struct script *script)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    size_t closed = 0;
    while (closed < ID_COUNT + 1) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, TARGET, NS_PER_S);
        API(Decision) *decisions[2];
        size_t count = task == NULL ? 0 : decide(script, task, decisions);
        if (task != NULL)
            EXPECT_OK(script_complete(script, TARGET, task, decisions, count));
        EXPECT(clock_monotonic() < limit);
        closed = is_closed(script, CHILD);
        for (size_t i = 0; task == NULL && i < ID_COUNT; i++)
            closed += is_closed(script, run_ids[i]);
    }
}

/* --- what must be true at the end ---- */

static void
expect_no_failure(const API(History) *history)
{
    EXPECT_EQ(script_count_events(history, EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED)), 0);
    EXPECT_EQ(script_count_events(history, EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED)), 0);
    for (size_t i = 1; i < history->n_events; i++)
        EXPECT(history->events[i]->version >= history->events[i - 1]->version);
}

static void
expect_whole(struct script *script)
{
    const struct drain_fixture *test = test_of(script);
    for (size_t i = 0; i < ID_COUNT; i++) {
        script_expect_same(script, run_ids[i]);
        expect_no_failure(script_history(script, TARGET, run_ids[i], ""));
    }
    for (unsigned i = 0; i < test->signal_count; i++) {
        const struct signal *signal = &test->signals[i];
        unsigned found =
            script_count_signals(script_history(script, TARGET, signal->id, ""), signal->name);
        EXPECT(found <= 1);
        EXPECT(found == 1 || !signal->is_acknowledged);
    }
    EXPECT_EQ(script_count_signals(script_history(script, TARGET, "asked", ""), "external"), 1);
    EXPECT_EQ(script_count_signals(script_history(script, TARGET, "buffered", ""), "taken"), 1);
    static const char *const never[] = {"history_forked", "history_switched", "divergence_noted",
                                        "conflict_terminated", "run_becomes_zombie"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        EXPECT_EQ(world_probe_count(script->sim->world, never[i]), 0);
    EXPECT_EQ(test->late, 0);
    for (uint32_t i = 0; i < script->fixture->shards[SOURCE]; i++)
        EXPECT_EQ(test->markers[i], 1);
}

/* --- the scenario ---- */

/* Runs of each kind; the decisions of two of them are left open. */
static API(PollForDecisionTaskResponse) *
begin_runs(struct script *script)
{
    API(PollForDecisionTaskResponse) *asking = NULL;
    for (size_t i = 0; i < ID_COUNT; i++) {
        if (strcmp(run_ids[i], "fresh") != 0)
            script_start(script, SOURCE, run_ids[i]);
    }
    for (size_t i = 0; i + 1 < ID_COUNT; i++) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, SOURCE, WITHIN);
        EXPECT(task != NULL);
        const char *id = task->workflow_execution->workflow_id;
        API(Decision) *decisions[2];
        if (strcmp(id, "buffered") == 0)
            EXPECT_OK(script_signal(script, SOURCE, "buffered", "taken"));
        else if (strcmp(id, "asking") == 0)
            asking = task;
        else
            EXPECT_OK(
                script_complete(script, SOURCE, task, decisions, decide(script, task, decisions)));
    }
    script_start(script, SOURCE, "fresh");
    return asking;
}

/* The crash may have been the last thing that happened: it is asked again. */
static void
send_end(struct script *script, const char *id)
{
    int64_t limit = clock_monotonic() + SCRIPT_PATIENCE;
    while (script_signal(script, TARGET, id, "end") != NULL) {
        EXPECT(clock_monotonic() < limit && test_of(script)->has_struck);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

static void
play_drain(struct script *script)
{
    struct drain_fixture *test = test_of(script);
    test->old_version = script_describe_domain(script, SOURCE)->failover_version;
    API(PollForDecisionTaskResponse) *asking = begin_runs(script);
    for (unsigned i = 0; i < 2; i++)
        test->armed_at[i] = points_of(script, i);
    test->is_armed = true;
    script_begin_drain(script, TARGET, TIMEOUT);
    API(Decision) *decisions[2];
    size_t count = decide(script, asking, decisions);
    /* It may come in time, or be refused: then the next decision says the same. */
    struct error *err = script_complete(script, SOURCE, asking, decisions, count);
    EXPECT(err == NULL || err->kind == ERR_DOMAIN_NOT_ACTIVE || test->has_struck);
    int64_t took = await_active(script, TARGET, SCRIPT_PATIENCE);
    test->is_armed = false;
    for (unsigned i = 0; i < 2; i++)
        test->points[i] = points_of(script, i) - test->armed_at[i];
    EXPECT(took < PROMPT);
    for (size_t i = 0; i < ID_COUNT; i++)
        send_end(script, run_ids[i]);
    work_off(script);
    expect_whole(script);
}

static void
play_once(const uint32_t *shards, struct drain_fixture *test)
{
    script_play_on(&(struct script_fixture){.clusters = 2,
                                            .shards = shards,
                                            .run = play_drain,
                                            .begin = watch_source,
                                            .is_due = is_struck_now,
                                            .act = strike,
                                            .test = test});
}

static void
play_all_crashes(const uint32_t *shards, unsigned victim)
{
    struct drain_fixture calm = {0};
    play_once(shards, &calm);
    uint64_t points = calm.points[victim];
    EXPECT(points > 10);
    printf("%llu points\n", (unsigned long long)points);
    for (uint64_t at = 1; at <= points; at++) {
        struct drain_fixture test = {.victim = victim, .at = at};
        play_once(shards, &test);
        EXPECT(test.has_struck);
    }
}

TEST(graceful_script, a_domain_drains_and_nothing_is_lost, "F-019", "F-040")
{
    struct drain_fixture test = {0};
    play_once((const uint32_t[]){2, 3}, &test);
}

TEST(graceful_script, whenever_the_source_crashes_each_shard_notifies_once, "F-020", "F-021")
{
    play_all_crashes((const uint32_t[]){2, 3}, SOURCE);
}

TEST(graceful_script, whenever_the_target_crashes_it_goes_on, "F-035", "F-036")
{
    play_all_crashes((const uint32_t[]){2, 3}, TARGET);
}

TEST(graceful_script, whenever_the_source_crashes_a_target_with_fewer_shards_becomes_active)
{
    play_all_crashes((const uint32_t[]){3, 2}, SOURCE);
}

/* --- on the wire ---- */

/* Markers among what the source has for a cluster in one shard; they come last. */
static unsigned
count_markers(struct script *script, const char *cluster, uint32_t shard, int64_t failover_version,
              int64_t *last)
{
    ADMIN(ReplicationMessages) *page = script_messages(script, SOURCE, cluster, shard, -1);
    unsigned count = 0;
    for (size_t i = 0; i < page->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = page->replication_tasks[i];
        if (task->task_type != TASK(FAILOVER_MARKER)) {
            EXPECT_EQ(count, 0);
            continue;
        }
        const ADMIN(FailoverMarkerAttributes) *marker = task->failover_marker_attributes;
        EXPECT_TEXT(marker->domain_id, script->domain_id);
        EXPECT_EQ(marker->failover_version, failover_version);
        EXPECT(marker->creation_time != NULL && task->creation_time != NULL);
        EXPECT_TEXT(marker->scope, "");
        EXPECT_TEXT(marker->source_cluster, "cluster0");
        count++;
    }
    *last = page->last_retrieved_message_id;
    return count;
}

static void
cut_from_target(struct script *script)
{
    int64_t limit = clock_monotonic() + WITHIN;
    script_part(script); /* the third cluster still tells each of the other */
    while (strcmp(script_describe_domain(script, SOURCE)->active_cluster_name, "cluster1") != 0)
        EXPECT(clock_monotonic() < limit);
    script_sleep(script, NS_PER_S);
}

/* The target is cut off as soon as it has begun, and the test asks in its name, as a Cadence
 * cluster with more shards than the source would. */
static void
play_wire(struct script *script)
{
    for (size_t i = 0; i < ID_COUNT; i++)
        script_start(script, SOURCE, run_ids[i]);
    API(PollForDecisionTaskResponse) *open = script_poll(script, SOURCE, WITHIN);
    EXPECT(open != NULL);
    script_begin_drain(script, TARGET, TIMEOUT);
    cut_from_target(script);
    EXPECT_KIND(script_complete(script, SOURCE, open, NULL, 0), ERR_DOMAIN_NOT_ACTIVE);
    int64_t failover_version = script_describe_domain(script, TARGET)->failover_version;
    for (uint32_t shard = 0; shard < SIM_SHARDS + 3; shard++) {
        int64_t last;
        EXPECT_EQ(count_markers(script, "cluster1", shard, failover_version, &last), 1);
        EXPECT_EQ(count_markers(script, "cluster1", shard, failover_version, &last), 1);
        ADMIN(ReplicationMessages) *rest = script_messages(script, SOURCE, "cluster1", shard, last);
        EXPECT_EQ(rest->n_replication_tasks, 0); /* what was read is not told again */
    }
}

TEST(graceful_script, who_asks_for_every_shard_gets_one_marker_of_each, "F-018", "F-023")
{
    script_play(3, 0, play_wire);
}

/* A failover by force tells of no marker. */
static void
play_force(struct script *script)
{
    script_start(script, SOURCE, "idle");
    script_part(script);
    script_failover(script, TARGET);
    cut_from_target(script);
    for (uint32_t shard = 0; shard < SIM_SHARDS + 1; shard++) {
        int64_t last;
        EXPECT_EQ(count_markers(script, "cluster1", shard, 0, &last), 0);
    }
}

TEST(graceful_script, a_failover_by_force_writes_no_marker, "F-022")
{
    script_play(3, 0, play_force);
}

/* --- too late ---- */

#define SHORT 20 /* seconds */

/* The markers do not come: the target goes on when its time is up, and they change nothing when
 * they do. What the old cluster had written is not lost. */
static void
play_late(struct script *script)
{
    script_start(script, SOURCE, "idle");
    script_await(script, TARGET, "idle", 2);
    int64_t begin = clock_monotonic();
    script_begin_drain(script, TARGET, SHORT);
    cut_from_target(script);
    uint64_t ready = world_probe_count(script->sim->world, "source_shard_ready");
    EXPECT(ready >= SIM_SHARDS);    /* those of the third cluster */
    EXPECT(ready < 2 * SIM_SHARDS); /* one of the source may be faster than the cut, not all */
    int64_t failover_version = script_describe_domain(script, TARGET)->failover_version;
    while (script_signal(script, TARGET, "idle", "after") != NULL) {
        EXPECT(clock_monotonic() < begin + (SHORT + 11) * NS_PER_S);
        script_sleep(script, 100 * NS_PER_MS);
    }
    EXPECT(clock_monotonic() >= begin + SHORT * NS_PER_S);
    script_heal(script);
    script_expect_same(script, "idle");
    script_sleep(script, 5 * NS_PER_S);
    EXPECT_EQ(script_describe_domain(script, TARGET)->failover_version, failover_version);
    EXPECT(world_probe_count(script->sim->world, "marker_not_awaited") > 0);
    EXPECT_EQ(world_probe_count(script->sim->world, "source_shard_ready"), ready);
    EXPECT_OK(script_signal(script, TARGET, "idle", "still"));
}

TEST(graceful_script, markers_that_come_after_the_timeout_change_nothing, "F-030", "F-032", "F-041")
{
    script_play(3, 0, play_late);
}

/* --- switched off ---- */

static void
switch_off(struct script *script)
{
    script->sim->dynamic = "system.enableGracefulFailover:\n- value: false\n";
    watch_source(script);
}

static void
play_off(struct script *script)
{
    script_start(script, SOURCE, "idle");
    script_await(script, TARGET, "idle", 2);
    int64_t begin = clock_monotonic();
    script_begin_drain(script, TARGET, SHORT);
    await_active(script, TARGET, (SHORT + 11) * NS_PER_S);
    EXPECT(clock_monotonic() >= begin + SHORT * NS_PER_S);
    for (unsigned i = 0; i < SHARDS_MAX; i++)
        EXPECT_EQ(test_of(script)->markers[i], 0);
    script_expect_same(script, "idle");
}

TEST(graceful_script, without_the_machinery_there_are_no_markers_and_the_timeout_decides, "F-009")
{
    struct drain_fixture test = {0};
    script_play_on(&(struct script_fixture){
        .clusters = 2, .run = play_off, .begin = switch_off, .test = &test});
}
