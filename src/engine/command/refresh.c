/* refresh.c - the tasks of an open run are sent again, and its wake-up timer is set again, without
 * an event. For runs that replace another history, and in case something was lost. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "engine/run/apply.h"

static void
refresh_activities(struct mutation *mutation)
{
    const struct run *run = mutation_run(mutation);
    uint64_t key;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, &key, NULL);) {
        const STORED(PendingActivity) *old = run_find_activity(run, (int64_t)key);
        if (old->started_id != EVENT_NONE || old->row == 0)
            continue; /* a worker has it, or the wake-up timer sends it in time */
        mutation_drop_transfer(mutation, old->row);
        mutation_change_activity(mutation, old->schedule_id)->row = 0;
        activity_dispatch(mutation, (int64_t)key);
    }
}

/* Sending changes records, not keys. */
static void
refresh_cross_tasks(struct mutation *mutation)
{
    const struct run *run = mutation_run(mutation);
    /* A child that was started may have reported to a history that lost. */
    bool is_global = mutation_context(mutation)->domain->record->domain->is_global_domain;
    uint64_t key;
    void *value;
    for (size_t cursor = 0; map64_next(run->children, &cursor, &key, &value);)
        if (is_global || ((const STORED(PendingChild) *)value)->started_id == EVENT_NONE)
            run_send_child(mutation, (int64_t)key);
    for (size_t cursor = 0; map64_next(run->externals, &cursor, &key, NULL);)
        run_send_external(mutation, (int64_t)key);
    if (run->core->waits_for_parent)
        run_ask_parent(mutation);
}

struct error *
command_refresh(struct step *step)
{
    struct mutation *mutation = step->mutation;
    check(mutation != NULL);
    const struct run *run = mutation_run(mutation);
    step_check(step);
    if (!run_is_open(run))
        return NULL; /* nothing of it is due ever */
    int64_t next_event_id = run->core->next_event_id;
    if (run_has_pending_decision(run) && !run_has_started_decision(run))
        mutation_resend_decision(mutation);
    refresh_activities(mutation);
    refresh_cross_tasks(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    core->alarm_row = 0; /* the end of the step sets another */
    core->alarm_time = 0;
    check(core->next_event_id == next_event_id);
    return NULL;
}
