/* managed.c - the workflows of a managed failover: pick, then batch after batch. See managed.h. */
#include "system/managed.h"

#include "api/workflow/diagnose.h"
#include "base/check.h"
#include "base/json.h"
#include "system/fold.h"
#include "system/types.h"
#include "wire/maps.h"

#define STEP_TIME     20 /* seconds */
#define STEP_INTERVAL 2
#define PICK_EXPIRY   600
#define MOVE_EXPIRY   60
#define WAIT_TIMER    "wait"

struct managed_state {
    enum managed_kind kind;
    struct slice input;
    struct managed_params params;
    const char *error;   /* why it failed; NULL: it has not */
    const char *starter; /* who started it */
    bool is_picked;
    struct managed_moves moves; /* valid once is_picked */
    struct slice batch;         /* in work, or the last one */
    size_t done;                /* of the moves, in this direction */
    bool is_back;               /* a drill on its way back */
    struct managed_outcomes outcomes, back_outcomes;
    int64_t scheduled;
    bool is_working, is_waiting, has_waited;
    bool is_paused, is_cancel_requested;
    bool is_aborted; /* it was ended early */
};

/* --- the fold ---- */

static const char *
read_operator(const API(Memo) *memo, struct arena *arena)
{
    const char *name = "unknown", *member;
    const API(Memo__FieldsEntry) *entry =
        memo == NULL ? NULL : wire_map_find(memo->fields, memo->n_fields, "operator");
    if (entry == NULL)
        return name;
    struct slice text = fold_payload(entry->value, arena);
    struct json_reader reader =
        object_begin(slice_text(arena_format(arena, "{\"operator\":%.*s}", (int)text.length,
                                             (const char *)text.data)),
                     arena);
    while (object_next(&reader, &member))
        object_text(&reader, &name);
    return object_end(&reader) ? name : "unknown";
}

static void
fold_started(struct managed_state *state,
             const API(WorkflowExecutionStartedEventAttributes) *attributes, struct arena *arena)
{
    bool is_known = managed_kind_find(attributes->workflow_type->name, &state->kind);
    check(is_known); /* only such runs come here */
    state->input = fold_payload(attributes->input, arena);
    state->starter = read_operator(attributes->memo, arena);
    struct error *err = managed_read_params(state->input, state->kind, arena, &state->params);
    state->error = err == NULL ? NULL : err->message;
}

/* A batch that ended badly may have been moved or not: all of it counts as failed. */
static void
fail_batch(struct managed_outcomes *outcomes, struct slice batch, const char *why,
           struct arena *arena)
{
    struct managed_moves moves;
    if (!managed_read_moves(batch, arena, &moves))
        return;
    for (size_t i = 0; i < moves.count; i++)
        managed_add_outcome(outcomes, moves.all[i].domain, why, arena);
}

static const char *
describe_end(const struct fold_end *end, struct arena *arena)
{
    bool has_details = end->how == FOLD_FAILED && end->details.length > 0;
    return has_details ? arena_text_of(arena, end->details) : "it took too long";
}

static void
fold_end(struct managed_state *state, const struct fold_end *end, struct arena *arena)
{
    struct managed_outcomes *outcomes = state->is_back ? &state->back_outcomes : &state->outcomes;
    bool is_good = end->how == FOLD_COMPLETED;
    state->is_working = false;
    if (!state->is_picked) {
        state->is_picked = is_good && managed_read_moves(end->result, arena, &state->moves);
        if (!state->is_picked)
            state->error = describe_end(end, arena);
        return;
    }
    if (!is_good || !managed_add_outcomes(outcomes, end->result, arena))
        fail_batch(outcomes, state->batch, describe_end(end, arena), arena);
    state->done += (size_t)state->params.batch_size;
    if (state->done > state->moves.count)
        state->done = state->moves.count;
}

static void
fold_timer(struct managed_state *state)
{
    state->is_waiting = false;
    state->has_waited = true;
    if (!state->is_back && state->done == state->moves.count) {
        state->is_back = true;
        state->done = 0;
    }
}

static void
fold_other(struct managed_state *state, const API(HistoryEvent) *event, struct arena *arena)
{
    struct fold_end end = {0};
    if (fold_activity_end(&end, event, arena))
        fold_end(state, &end, arena);
}

static void
fold_signal(struct managed_state *state, const char *name)
{
    if (strcmp(name, MANAGED_PAUSE) == 0)
        state->is_paused = true;
    else if (strcmp(name, MANAGED_RESUME) == 0)
        state->is_paused = false;
}

static void
fold(void *context, const API(HistoryEvent) *event, struct arena *arena)
{
    struct managed_state *state = context;
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED):
        fold_started(state, event->workflow_execution_started_event_attributes, arena);
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED):
        fold_signal(state, event->workflow_execution_signaled_event_attributes->signal_name);
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        state->is_cancel_requested = true;
        break;
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        state->scheduled++;
        state->is_working = true;
        state->has_waited = false;
        state->batch = fold_payload(event->activity_task_scheduled_event_attributes->input, arena);
        break;
    case EVENT_KIND(TIMER_STARTED):
        state->is_waiting = true;
        break;
    case EVENT_KIND(TIMER_FIRED):
        fold_timer(state);
        break;
    case EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED):
    case EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT):
    case EVENT_KIND(WORKFLOW_EXECUTION_CANCELED):
        state->is_aborted = true;
        break;
    default:
        fold_other(state, event, arena);
        break;
    }
}

static void
managed_state_check(const struct managed_state *state)
{
    check(state->done <= state->moves.count);
    check(state->is_picked || state->done == 0);
    check(state->outcomes.count <= state->outcomes.capacity);
    check(state->back_outcomes.count <= state->back_outcomes.capacity);
}

/* --- what comes next ---- */

static bool
is_done(const struct managed_state *state)
{
    bool is_last = state->is_back || state->params.drill_wait == 0;
    return state->is_picked && is_last && state->done == state->moves.count;
}

static void
schedule(const struct managed_state *state, const char *type, struct slice input, int64_t expiry,
         struct system_decider *decider)
{
    struct arena *arena = decider->arena;
    system_schedule(decider,
                    &(struct system_activity_order){
                        .id = arena_format(arena, "%lld", (long long)state->scheduled),
                        .type = type,
                        .list = MANAGED_LIST,
                        .input = input,
                        .start_to_close = STEP_TIME,
                        .retry = system_retry(arena, STEP_INTERVAL, expiry, MANAGED_ERROR)});
}

static struct slice
next_batch(const struct managed_state *state, struct arena *arena)
{
    size_t left = state->moves.count - state->done;
    size_t size = (size_t)state->params.batch_size;
    check(state->is_picked && left > 0 && size > 0);
    struct managed_moves batch = {.count = left < size ? left : size};
    batch.all = arena_zalloc(arena, batch.count, sizeof batch.all[0]);
    for (size_t i = 0; i < batch.count; i++) {
        const struct managed_move *move = &state->moves.all[state->done + i];
        batch.all[i] = state->is_back ? managed_reverse(move, arena) : *move;
    }
    return managed_write_moves(&batch, arena);
}

static struct slice
result_of(const struct managed_state *state, struct arena *arena)
{
    struct buffer out = {0};
    buffer_append_text(&out, "{");
    if (state->kind == KIND_FAILOVER_V2 || state->kind == KIND_REBALANCE_V2) {
        managed_append_outcomes(&out, &state->outcomes);
    } else {
        managed_append_names(&out, "SuccessDomains", &state->outcomes, false);
        buffer_append_text(&out, ",");
        managed_append_names(&out, "FailedDomains", &state->outcomes, true);
    }
    if (state->kind == KIND_FAILOVER) {
        buffer_append_text(&out, ",");
        managed_append_names(&out, "SuccessResetDomains", &state->back_outcomes, false);
        buffer_append_text(&out, ",");
        managed_append_names(&out, "FailedResetDomains", &state->back_outcomes, true);
    } else if (state->kind == KIND_FAILOVER_V2) {
        buffer_append_text(&out, ",");
        managed_append_snapshots(&out, &state->moves);
    }
    buffer_append_text(&out, "}");
    return managed_take(&out, arena);
}

/* Nothing is in work, and it is picked. */
static void
go_on(const struct managed_state *state, struct system_decider *decider)
{
    bool has_more = state->done < state->moves.count;
    if (is_done(state))
        system_complete(decider, result_of(state, decider->arena));
    else if (!has_more)
        system_start_timer(decider, WAIT_TIMER, state->params.drill_wait);
    else if (state->done > 0 && !state->has_waited)
        system_start_timer(decider, WAIT_TIMER, state->params.wait);
    else if (!state->is_paused)
        schedule(state, MANAGED_MOVE, next_batch(state, decider->arena), MOVE_EXPIRY, decider);
}

static void
decide(void *context, struct system_decider *decider)
{
    const struct managed_state *state = context;
    managed_state_check(state);
    if (state->error != NULL)
        system_fail(decider, MANAGED_ERROR, slice_text(state->error));
    else if (state->is_working)
        return;
    else if (state->is_cancel_requested)
        system_cancel(decider, result_of(state, decider->arena));
    else if (state->is_waiting)
        return;
    else if (!state->is_picked)
        schedule(state, MANAGED_PICK, state->input, PICK_EXPIRY, decider);
    else
        go_on(state, decider);
}

/* --- how far it is ---- */

static const char *
state_name(const struct managed_state *state)
{
    if (state->is_aborted)
        return "aborted";
    if (!state->is_picked)
        return "initialized";
    if (is_done(state))
        return "complete";
    return state->is_paused && !state->is_working ? "paused" : "running";
}

static void
append_member(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, ",\"%s\":", name);
    object_append_text(out, value);
}

static const char *
join_sources(const struct managed_params *params, struct arena *arena)
{
    const char *joined = "";
    for (size_t i = 0; i < params->source_count; i++)
        joined = arena_format(arena, "%s%s%s", joined, i == 0 ? "" : ",", params->sources[i]);
    return joined;
}

static struct error *
query(void *context, const char *type, struct slice arguments, struct arena *arena,
      struct slice *answer)
{
    const struct managed_state *state = context;
    struct buffer out = {0};
    managed_state_check(state);
    if (strcmp(type, MANAGED_QUERY) != 0)
        return error_new(arena, ERR_QUERY_FAILED, "unknown queryType %s", type);
    buffer_append_format(&out, "{\"TotalDomains\":%zu,\"Success\":%zu,\"Failed\":%zu",
                         state->moves.count, managed_count(&state->outcomes, false),
                         managed_count(&state->outcomes, true));
    append_member(&out, "State", state_name(state));
    append_member(&out, "TargetCluster", state->params.target);
    append_member(&out, "SourceCluster", join_sources(&state->params, arena));
    buffer_append_text(&out, ",");
    managed_append_names(&out, "SuccessDomains", &state->outcomes, false);
    buffer_append_text(&out, ",");
    managed_append_names(&out, "FailedDomains", &state->outcomes, true);
    buffer_append_text(&out, ",");
    managed_append_names(&out, "SuccessResetDomains", &state->back_outcomes, false);
    buffer_append_text(&out, ",");
    managed_append_names(&out, "FailedResetDomains", &state->back_outcomes, true);
    append_member(&out, "Operator", state->starter);
    buffer_append_text(&out, "}");
    *answer = managed_take(&out, arena);
    return NULL;
}

#define MANAGED(name)                                                                              \
    {                                                                                              \
        .type = (name), .list = MANAGED_LIST, .domain = SYSTEM_DOMAIN,                             \
        .state_size = sizeof(struct managed_state), .fold = fold, .decide = decide, .query = query \
    }

const struct system_workflow managed_failover = MANAGED(MANAGED_FAILOVER);
const struct system_workflow managed_failover_v2 = MANAGED(MANAGED_FAILOVER_V2);
const struct system_workflow managed_rebalance = MANAGED(MANAGED_REBALANCE);
const struct system_workflow managed_rebalance_v2 = MANAGED(MANAGED_REBALANCE_V2);
