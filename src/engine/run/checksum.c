/* checksum.c - what the events of a run determine, as one number.
 *
 * It is the same in every cluster that has the same history, and after the run was rebuilt from it.
 * All else is left out, field by field: what belongs to one cluster (rows, the wake-up timer,
 * workers that remember the run), what is in no event (attempts, heartbeats), and when things were
 * written. */
#include "base/farm.h"
#include "engine/run/inside.h"

/* A field that is left out. */
#define FORGET_TEXT(record, field) ((record)->field = (char *)protobuf_c_empty_string)
#define FORGET(record, field)      ((record)->field = 0)

static uint64_t
mix(uint64_t sum, const ProtobufCMessage *message, struct arena *arena)
{
    return sum * 31 + farm_fingerprint32(message_encode(arena, message));
}

static void
forget_place(STORED(RunRecord) *core)
{
    FORGET(core, alarm_time);
    FORGET(core, alarm_row);
    FORGET(core, children_row);
    FORGET(core, auto_reset_time);
    FORGET(core, last_updated_time);
    FORGET(core, buffered_next);
    FORGET(core, delete_time); /* settings of one place */
    FORGET(core, is_deleting);
    FORGET(core, deleted_from);
    FORGET(core, tree_id.len);
    FORGET(core, branch_id.len);
    FORGET(core, n_ancestors);
    FORGET(core, n_side_branches);
    FORGET(core, history_bytes);
    FORGET(core, state); /* another run may have the workflow id */
}

static void
forget_unrecorded(STORED(RunRecord) *core)
{
    FORGET_TEXT(core, create_request_id);
    FORGET_TEXT(core, chain_request_id);
    FORGET_TEXT(core, reset_request_id);
    FORGET_TEXT(core, reset_run_id);
    FORGET(core, jitter_start);
    FORGET(core, waits_for_parent);
    FORGET(core, ask_parent_time);
    core->sticky_task_list = NULL;
    FORGET(core, sticky_timeout);
    FORGET(core, sticky_time);
    FORGET_TEXT(core, client_library_version);
    FORGET_TEXT(core, client_feature_version);
    FORGET_TEXT(core, client_name);
    FORGET(core, decision_attempt);
    FORGET(core, decision_retry_time);
    FORGET_TEXT(core, decision_failure);
}

static void
forget_decision(STORED(RunRecord) *core)
{
    if (core->decision != NULL && core->decision->attempt > 0)
        core->decision = NULL; /* in no history */
    if (core->decision == NULL)
        return;
    FORGET(core->decision, row);
    FORGET(core->decision, schedule_timeout_time);
    FORGET(core->decision, original_scheduled_time);
    FORGET(core->decision, timeout);
    if (core->decision->task_list != NULL) { /* a sticky one is of one place */
        FORGET(core->decision->task_list, kind);
        core->decision->task_list->name = core->task_list->name;
    }
}

/* Only what its scheduled event says; the rest may have been told without an event, or later. */
static uint64_t
mix_activity(uint64_t sum, const STORED(PendingActivity) *activity, struct arena *arena)
{
    STORED(PendingActivity) recorded;
    cadenza__storage__v1__pending_activity__init(&recorded);
    recorded.schedule_id = activity->schedule_id;
    recorded.activity_id = activity->activity_id;
    recorded.activity_type = activity->activity_type;
    recorded.domain_id = activity->domain_id;
    recorded.task_list = activity->task_list;
    recorded.schedule_to_close = activity->schedule_to_close;
    recorded.schedule_to_start = activity->schedule_to_start;
    recorded.start_to_close = activity->start_to_close;
    recorded.heartbeat_timeout = activity->heartbeat_timeout;
    recorded.is_cancel_requested = activity->is_cancel_requested;
    recorded.retry_policy = activity->retry_policy;
    recorded.input = activity->input;
    return mix(sum, &recorded.base, arena);
}

/* Records in any order. */
static uint64_t
sum_pending(const struct run *run, struct arena *arena)
{
    uint64_t sum = 0;
    void *value;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, NULL, &value);)
        sum += mix_activity(1, value, arena);
    for (size_t cursor = 0; map_next(run->timers, &cursor, NULL, &value);)
        sum += mix(2, value, arena);
    for (size_t cursor = 0; map_next(run->signal_requests, &cursor, NULL, &value);)
        sum += mix(3, value, arena);
    for (size_t cursor = 0; map64_next(run->children, &cursor, NULL, &value);)
        sum += mix(4, value, arena);
    for (size_t cursor = 0; map64_next(run->externals, &cursor, NULL, &value);) {
        STORED(PendingExternal) external = *(STORED(PendingExternal) *)value;
        FORGET(&external, row);
        sum += mix(5, &external.base, arena);
    }
    return sum;
}

uint64_t
run_checksum(const struct run *run)
{
    check(!run_has_buffered(run));
    struct arena *arena = arena_new(0);
    STORED(RunRecord) *core = message_copy(arena, &run->core->base);
    forget_place(core);
    forget_unrecorded(core);
    forget_decision(core);
    uint64_t sum = mix(sum_pending(run, arena), &core->base, arena);
    arena_free(arena);
    return sum;
}
