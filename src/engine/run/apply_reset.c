/* apply_reset.c - the event with which a reset leaves its base run: the new run has the events
 * before it. The event says who asked for the reset, and from when the run counts its time. */
#include "engine/run/inside.h"

/* Who reset which run. */
struct reset_names {
    const char *base_run_id, *new_run_id, *request_id;
};

static bool
read_names(const API(HistoryEvent) *event, struct reset_names *names)
{
    if (event->attributes_case == EVENT_KIND(DECISION_TASK_FAILED)) {
        const API(DecisionTaskFailedEventAttributes) *failed =
            event->decision_task_failed_event_attributes;
        *names = (struct reset_names){failed->base_run_id, failed->new_run_id, failed->request_id};
        return failed->cause ==
               API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    }
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        event->decision_task_timed_out_event_attributes;
    *names =
        (struct reset_names){timed_out->base_run_id, timed_out->new_run_id, timed_out->request_id};
    return timed_out->cause ==
           API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET);
}

/* As if it were started now; but it has waited for its first decision already. */
static void
set_times(STORED(RunRecord) *core, int64_t time)
{
    core->start_time = core->execution_time = time;
    core->timeout_time =
        core->execution_timeout == 0 ? 0 : core->start_time + core->execution_timeout * SECOND;
    bool is_cut = core->attempt > 0 && core->expiration_time != 0; /* */
    if (is_cut && (core->timeout_time == 0 || core->expiration_time < core->timeout_time))
        core->timeout_time = core->expiration_time;
}

/* Activities that nobody works on: their time begins now. */
static void
begin_activities(struct mutation *mutation, int64_t time)
{
    const struct run *run = mutation->run;
    uint64_t key;
    void *value;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, &key, &value);) {
        if (((const STORED(PendingActivity) *)value)->started_id != EVENT_NONE)
            continue;
        STORED(PendingActivity) *activity = mutation_change_activity(mutation, (int64_t)key);
        if (activity->expiration_time != 0)
            activity->expiration_time += time - activity->scheduled_time;
        activity->scheduled_time = time;
    }
}

void
apply_reset(struct mutation *mutation, const API(HistoryEvent) *event)
{
    struct run *run = mutation->run;
    STORED(RunRecord) *core = mutation_core(mutation);
    struct reset_names names;
    /* The run may have the events of another one that was reset, too. */
    if (!read_names(event, &names) || names.base_run_id[0] == '\0' ||
        strcmp(names.new_run_id, core->run_id) != 0)
        return;
    check(core->first_decision_time == 0);
    core->create_request_id = run_keep_text(run, names.request_id);
    core->reset_request_id = core->create_request_id;
    core->reset_run_id = core->run_id;
    set_times(core, event_time(event));
    begin_activities(mutation, event_time(event));
}
