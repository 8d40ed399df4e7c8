/* fixture_rebuild.c - is a run what its history says? Everything is compared, field by field, but
 * for what no event tells: each such field is named here, with the reason. */
#include <stdio.h>

#include "engine/command/test/fixture.h"
#include "engine/run/rebuild.h"
#include "wire/message.h"

/* A field of a record that is left out. */
#define FORGET_TEXT(record, field) ((record)->field = (char *)protobuf_c_empty_string)
#define FORGET(record, field)      ((record)->field = 0)

/* Of the core: not in any event. */
static void
forget_core(STORED(RunRecord) *core)
{
    FORGET(core, alarm_time); /* the shard's */
    FORGET(core, alarm_row);
    FORGET(core, children_row);
    FORGET(core, auto_reset_time);
    FORGET(core, last_updated_time); /* of the last write, an event or not */
    FORGET(core, buffered_next);
    FORGET_TEXT(core, chain_request_id); /* how the run came about, beyond its first event */
    FORGET(core, jitter_start);
    FORGET_TEXT(core, reset_request_id);
    FORGET_TEXT(core, reset_run_id);
    FORGET(core, waits_for_parent); /* between a child and its parent */
    FORGET(core, ask_parent_time);
    core->sticky_task_list = NULL; /* between the run and a worker */
    FORGET(core, sticky_timeout);
    FORGET(core, sticky_time);
    FORGET_TEXT(core, client_library_version);
    FORGET_TEXT(core, client_feature_version);
    FORGET_TEXT(core, client_name);
    FORGET(core, decision_attempt); /* attempts leave no events */
    FORGET(core, decision_retry_time);
    FORGET_TEXT(core, decision_failure);
}

static void
forget_decision(STORED(RunRecord) *core)
{
    if (core->decision == NULL)
        return;
    if (core->decision->attempt > 0) {
        core->decision = NULL; /* transient: not in the history */
        return;
    }
    FORGET(core->decision, row);
    core->decision->task_list = NULL;                /* a sticky one is of one worker */
    FORGET(core->decision, schedule_timeout_time);   /* of a sticky list */
    FORGET(core->decision, original_scheduled_time); /* of the first heartbeat */
}

/* Started, if it has a retry policy, and tried again without an event. */
static void
forget_activity(STORED(PendingActivity) *activity)
{
    FORGET(activity, row);
    FORGET(activity, heartbeat_time);
    activity->heartbeat_details = NULL;
    FORGET_TEXT(activity, last_worker_identity);
    activity->last_failure = NULL;
    if (activity->retry_policy == NULL)
        return;
    FORGET(activity, attempt);
    FORGET(activity, started_id);
    FORGET(activity, started_time);
    FORGET(activity, scheduled_time);
    FORGET(activity, event_version);
    FORGET_TEXT(activity, request_id);
    FORGET_TEXT(activity, identity);
}

static void
expect_same(const char *what, const ProtobufCMessage *rebuilt, const ProtobufCMessage *stored,
            struct arena *arena)
{
    struct slice one = message_encode(arena, rebuilt), other = message_encode(arena, stored);
    if (slice_equal(one, other))
        return;
    for (unsigned i = 0; i < rebuilt->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &rebuilt->descriptor->fields[i];
        bool is_number = field->type != PROTOBUF_C_TYPE_MESSAGE &&
                         field->type != PROTOBUF_C_TYPE_STRING &&
                         field->type != PROTOBUF_C_TYPE_BYTES;
        if (is_number && memcmp((const char *)rebuilt + field->offset,
                                (const char *)stored + field->offset, 4) != 0)
            printf("    perhaps %s.%s\n", what, field->name);
    }
    TEST_FAIL("%s: a run and what its history says differ", what); /* the seed is the test's */
}

static void
expect_same_activities(const struct run *rebuilt, const struct run *stored, struct arena *arena)
{
    void *value;
    for (size_t cursor = 0; map64_next(stored->activities, &cursor, NULL, &value);) {
        STORED(PendingActivity) *one = message_copy(arena, value);
        const STORED(PendingActivity) *other = run_find_activity(rebuilt, one->schedule_id);
        EXPECT(other != NULL);
        STORED(PendingActivity) *copy = message_copy(arena, &other->base);
        if (one->retry_policy == NULL) /* a start that was buffered is written later */
            EXPECT(copy->started_time >= one->started_time);
        copy->started_time = one->started_time;
        forget_activity(one);
        forget_activity(copy);
        expect_same("activity", &copy->base, &one->base, arena);
    }
    EXPECT_EQ(map64_count(rebuilt->activities), map64_count(stored->activities));
}

static void
expect_same_texts(const char *what, const struct map *rebuilt, const struct map *stored,
                  struct arena *arena)
{
    struct slice key;
    void *value;
    for (size_t cursor = 0; map_next(stored, &cursor, &key, &value);) {
        const void *other = map_get(rebuilt, key);
        EXPECT(other != NULL);
        expect_same(what, other, value, arena);
    }
    EXPECT_EQ(map_count(rebuilt), map_count(stored));
}

static void
expect_same_cross_tasks(const struct run *rebuilt, const struct run *stored, struct arena *arena)
{
    void *value;
    uint64_t key;
    for (size_t cursor = 0; map64_next(stored->children, &cursor, &key, &value);) {
        const STORED(PendingChild) *other = run_find_child(rebuilt, (int64_t)key);
        EXPECT(other != NULL);
        expect_same("child", &other->base, value, arena);
    }
    for (size_t cursor = 0; map64_next(stored->externals, &cursor, &key, &value);) {
        STORED(PendingExternal) *one = message_copy(arena, value);
        const STORED(PendingExternal) *other = run_find_external(rebuilt, (int64_t)key);
        EXPECT(other != NULL);
        FORGET(one, row);
        expect_same("external", &other->base, &one->base, arena);
    }
    EXPECT_EQ(map64_count(rebuilt->children), map64_count(stored->children));
    EXPECT_EQ(map64_count(rebuilt->externals), map64_count(stored->externals));
}

static void
apply_history(const struct fixture *fixture, size_t index, struct run *run, struct arena *arena)
{
    const struct fixture_run *from = &fixture->runs[index];
    struct rebuild rebuild;
    rebuild_begin(&rebuild, run, &fixture->context, arena);
    size_t batch = from->batches.count;
    size_t done = 0;
    for (size_t i = 0; i < batch; i++) {
        API(History) history;
        uber__cadence__api__v1__history__init(&history);
        history.n_events = from->batches.items[i];
        history.events = from->events.items + done;
        rebuild_add(&rebuild, history.events, history.n_events,
                    message_encode(arena, &history.base).length, arena);
        done += history.n_events;
    }
    EXPECT_EQ(done, from->events.count);
    rebuild_end(&rebuild);
}

struct run *
fixture_rebuild(const struct fixture *fixture, size_t index, struct arena *arena)
{
    const STORED(RunRecord) *core = fixture->runs[index].run->core;
    struct run *run = run_new();
    run->core->domain_id = run_keep_text(run, core->domain_id);
    run->core->workflow_id = run_keep_text(run, core->workflow_id);
    run->core->run_id = run_keep_text(run, core->run_id);
    run->core->tree_id = core->tree_id;
    run->core->branch_id = core->branch_id;
    apply_history(fixture, index, run, arena);
    return run;
}

void
fixture_expect_rebuilt(const struct fixture *fixture, size_t index)
{
    const struct run *stored = fixture->runs[index].run;
    if (run_has_buffered(stored))
        return; /* buffered events have changed the run already, and are not in the history */
    struct arena *arena = arena_new(0);
    struct run *rebuilt = fixture_rebuild(fixture, index, arena);
    STORED(RunRecord) *one = message_copy(arena, &rebuilt->core->base);
    STORED(RunRecord) *other = message_copy(arena, &stored->core->base);
    forget_core(one);
    forget_core(other);
    forget_decision(one);
    forget_decision(other);
    expect_same("core", &one->base, &other->base, arena);
    expect_same_activities(rebuilt, stored, arena);
    expect_same_texts("timer", rebuilt->timers, stored->timers, arena);
    expect_same_texts("signal request", rebuilt->signal_requests, stored->signal_requests, arena);
    expect_same_cross_tasks(rebuilt, stored, arena);
    EXPECT_EQ(rebuilt->birth != NULL, stored->birth != NULL);
    if (stored->birth != NULL)
        expect_same("birth", &rebuilt->birth->base, &stored->birth->base, arena);
    run_free(rebuilt);
    arena_free(arena);
}
