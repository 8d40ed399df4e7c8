/* mutation.c - opening a step, taking it back, and changing records within it.
 *
 * There are three sorts of changes, and each has its way back: the core is kept as a copy of the
 * struct (what it points to is never written to, only replaced), records go back by the journal,
 * and events and outbox rows are lists that are cut. Numbers that were taken from the shard's
 * sequence are not given back: they only have to rise. */
#include "engine/run/inside.h"

struct mutation *
mutation_begin(struct run *run, const struct run_context *context, struct arena *arena)
{
    check(run->core != NULL);
    check(context->ids != NULL && context->ids->next < context->ids->end);
    struct mutation *mutation = arena_make(arena, struct mutation);
    mutation->run = run;
    mutation->context = context;
    mutation->arena = arena;
    mutation->first_row = context->ids->next;
    memcpy(&mutation->before, run->core, sizeof mutation->before);
    return mutation;
}

struct mutation *
mutation_begin_new(struct run *run, const struct run_context *context, struct arena *arena)
{
    check(run->core->alarm_row == 0 && run->core->state != 0);
    struct mutation *mutation = mutation_begin(run, context, arena);
    journal_add_all(mutation);
    return mutation;
}

struct run *
mutation_run(const struct mutation *mutation)
{
    return mutation->run;
}

const struct run_context *
mutation_context(const struct mutation *mutation)
{
    return mutation->context;
}

struct arena *
mutation_arena(const struct mutation *mutation)
{
    return mutation->arena;
}

bool
mutation_is_empty(const struct mutation *mutation)
{
    return mutation->journal.count == 0 && mutation->events.count == 0 &&
           mutation->rows.count == 0 &&
           memcmp(&mutation->before, mutation->run->core, sizeof mutation->before) == 0;
}

struct mutation_savepoint
mutation_savepoint(const struct mutation *mutation)
{
    struct mutation_savepoint savepoint;
    mutation_check(mutation);
    memcpy(&savepoint.core, mutation->run->core, sizeof savepoint.core);
    savepoint.journal = mutation->journal.count;
    savepoint.events = mutation->events.count;
    savepoint.rows = mutation->rows.count;
    savepoint.held = mutation->held.count;
    savepoint.is_holding = mutation->is_holding;
    return savepoint;
}

void
mutation_rewind(struct mutation *mutation, const struct mutation_savepoint *savepoint)
{
    mutation_check(mutation);
    check(savepoint->events <= mutation->events.count && savepoint->rows <= mutation->rows.count);
    check(savepoint->held <= mutation->held.count);
    check(mutation->is_holding || !savepoint->is_holding); /* not back into a list that is over */
    journal_undo(mutation, savepoint->journal);
    mutation->events.count = savepoint->events;
    mutation->rows.count = savepoint->rows;
    mutation->held.count = savepoint->held;
    mutation->is_holding = savepoint->is_holding;
    memcpy(mutation->run->core, &savepoint->core, sizeof savepoint->core);
    mutation_check(mutation);
}

void
mutation_cancel(struct mutation *mutation)
{
    mutation_check(mutation);
    mutation->is_over = true;
    if (mutation->is_replacing)
        return; /* the run is in no row: it goes as it is */
    journal_undo(mutation, 0);
    memcpy(mutation->run->core, &mutation->before, sizeof mutation->before);
    mutation->events.count = mutation->rows.count = mutation->held.count = 0;
}

STORED(RunRecord) *
mutation_core(struct mutation *mutation)
{
    check(!mutation->is_over);
    return mutation->run->core;
}

/* A record of the same fields. What they point to is shared: it is never written to. */
static void *
record_copy(struct run *run, const void *record, size_t size)
{
    void *copy = arena_alloc(run->arena, size);
    return memcpy(copy, record, size);
}

STORED(PendingDecision) *
mutation_change_decision(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision != NULL);
    core->decision = record_copy(mutation->run, core->decision, sizeof *core->decision);
    return core->decision;
}

STORED(PendingActivity) *
mutation_change_activity(struct mutation *mutation, int64_t schedule_id)
{
    const STORED(PendingActivity) *old = run_find_activity(mutation->run, schedule_id);
    check_that(old != NULL, "no activity %lld is pending", (long long)schedule_id);
    STORED(PendingActivity) *copy = record_copy(mutation->run, old, sizeof *old);
    journal_set(mutation, PENDING_ACTIVITY, (uint64_t)schedule_id, NULL, copy);
    return copy;
}

void
mutation_put_activity(struct mutation *mutation, STORED(PendingActivity) *activity)
{
    check(activity->schedule_id > 0);
    check(activity->schedule_id < mutation->run->core->next_event_id);
    check(run_find_activity(mutation->run, activity->schedule_id) == NULL);
    journal_set(mutation, PENDING_ACTIVITY, (uint64_t)activity->schedule_id, NULL, activity);
}

void
mutation_remove_activity(struct mutation *mutation, int64_t schedule_id)
{
    check(run_find_activity(mutation->run, schedule_id) != NULL);
    journal_set(mutation, PENDING_ACTIVITY, (uint64_t)schedule_id, NULL, NULL);
}

void
mutation_put_timer(struct mutation *mutation, STORED(PendingTimer) *timer)
{
    check(timer->started_id > 0 && timer->started_id < mutation->run->core->next_event_id);
    check(run_find_timer(mutation->run, timer->timer_id) == NULL);
    journal_set(mutation, PENDING_TIMER, 0, timer->timer_id, timer);
}

void
mutation_remove_timer(struct mutation *mutation, const char *timer_id)
{
    const STORED(PendingTimer) *timer = run_find_timer(mutation->run, timer_id);
    check_that(timer != NULL, "no timer %s is pending", timer_id);
    journal_set(mutation, PENDING_TIMER, 0, timer->timer_id, NULL);
}

void
mutation_put_signal_request(struct mutation *mutation, const char *request_id)
{
    struct run *run = mutation->run;
    check(request_id[0] != '\0'); /* "" is the request of everybody who names none */
    if (map_get(run->signal_requests, slice_text(request_id)) != NULL)
        return;
    STORED(SignalRequest) *request = message_new(run->arena, STORED_TYPE(signal_request));
    request->request_id = run_keep_text(run, request_id);
    journal_set(mutation, PENDING_SIGNAL_REQUEST, 0, request->request_id, request);
}

STORED(PendingChild) *
mutation_change_child(struct mutation *mutation, int64_t initiated_id)
{
    const STORED(PendingChild) *old = run_find_child(mutation->run, initiated_id);
    check_that(old != NULL, "no child %lld is pending", (long long)initiated_id);
    STORED(PendingChild) *copy = record_copy(mutation->run, old, sizeof *old);
    journal_set(mutation, PENDING_CHILD, (uint64_t)initiated_id, NULL, copy);
    return copy;
}

void
mutation_put_child(struct mutation *mutation, STORED(PendingChild) *child)
{
    check(child->initiated_id > 0);
    check(child->initiated_id < mutation->run->core->next_event_id);
    check(run_find_child(mutation->run, child->initiated_id) == NULL);
    journal_set(mutation, PENDING_CHILD, (uint64_t)child->initiated_id, NULL, child);
}

void
mutation_remove_child(struct mutation *mutation, int64_t initiated_id)
{
    check_that(run_find_child(mutation->run, initiated_id) != NULL, "no child %lld is pending",
               (long long)initiated_id);
    journal_set(mutation, PENDING_CHILD, (uint64_t)initiated_id, NULL, NULL);
}

STORED(PendingExternal) *
mutation_change_external(struct mutation *mutation, int64_t initiated_id)
{
    const STORED(PendingExternal) *old = run_find_external(mutation->run, initiated_id);
    check_that(old != NULL, "no external %lld is pending", (long long)initiated_id);
    STORED(PendingExternal) *copy = record_copy(mutation->run, old, sizeof *old);
    journal_set(mutation, PENDING_EXTERNAL, (uint64_t)initiated_id, NULL, copy);
    return copy;
}

void
mutation_put_external(struct mutation *mutation, STORED(PendingExternal) *external)
{
    check(external->initiated_id > 0);
    check(external->initiated_id < mutation->run->core->next_event_id);
    check(run_find_external(mutation->run, external->initiated_id) == NULL);
    journal_set(mutation, PENDING_EXTERNAL, (uint64_t)external->initiated_id, NULL, external);
}

void
mutation_remove_external(struct mutation *mutation, int64_t initiated_id)
{
    check_that(run_find_external(mutation->run, initiated_id) != NULL, "nothing of %lld is pending",
               (long long)initiated_id);
    journal_set(mutation, PENDING_EXTERNAL, (uint64_t)initiated_id, NULL, NULL);
}

const API(TaskList) *
mutation_decision_list(const struct mutation *mutation)
{
    const STORED(RunRecord) *core = mutation->run->core;
    if (core->sticky_task_list == NULL)
        return core->task_list;
    int64_t age = mutation->context->now - core->sticky_time;
    bool is_fresh = age <= run_context_duration(mutation->context, DYNAMIC_STICKY_TTL);
    return is_fresh ? core->sticky_task_list : core->task_list;
}
