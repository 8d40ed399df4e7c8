/* cancel_timer.c - a decision cancels a timer.
 *
 * A timer may have fired while the decider was deciding: its event waits in the buffer, and nobody
 * has seen it. It is taken out then, as if the timer had been cancelled in time. */
#include "base/check.h"
#include "engine/command/inside.h"

#define TIMER_UNKNOWN "TIMER_ID_UNKNOWN"

static void
add_canceled(struct decision_list *decision_list, char *timer_id, int64_t started_id)
{
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(TIMER_CANCELED));
    API(TimerCanceledEventAttributes) *attributes = event->timer_canceled_event_attributes;
    attributes->timer_id = timer_id;
    attributes->started_event_id = started_id;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    attributes->identity = (char *)decision_list->identity;
    (void)mutation_add_event(decision_list->mutation, event);
}

static void
add_failed(struct decision_list *decision_list, char *timer_id)
{
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(CANCEL_TIMER_FAILED));
    API(CancelTimerFailedEventAttributes) *attributes = event->cancel_timer_failed_event_attributes;
    attributes->timer_id = timer_id;
    attributes->cause = (char *)TIMER_UNKNOWN;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    attributes->identity = (char *)decision_list->identity;
    (void)mutation_add_event(decision_list->mutation, event);
}

/* Says what is wrong with the id; false: refused. */
static bool
is_valid(struct decision_list *decision_list, const char *timer_id)
{
    const API(DecisionTaskFailedCause) cause = FAILED_CAUSE(BAD_CANCEL_TIMER_ATTRIBUTES);
    int64_t longest = run_context_integer(decision_list->step->context, DYNAMIC_TIMER_ID_LENGTH);
    if (timer_id[0] == '\0')
        decision_list_refuse(decision_list, cause, "TimerId is not set on decision.");
    else if ((int64_t)strlen(timer_id) > longest)
        decision_list_refuse(decision_list, cause, "TimerId exceeds length limit.");
    else
        return true;
    return false;
}

void
decide_cancel_timer(struct decision_list *decision_list, const API(Decision) *decision)
{
    char *timer_id = decision->cancel_timer_decision_attributes->timer_id;
    if (!is_valid(decision_list, timer_id))
        return;
    const struct run *run = mutation_run(decision_list->mutation);
    bool is_known = run_find_timer(run, timer_id) != NULL ||
                    mutation_unbuffer_timer(decision_list->mutation, timer_id);
    if (!is_known) {
        add_failed(decision_list, timer_id);
        return;
    }
    add_canceled(decision_list, timer_id, run_find_timer(run, timer_id)->started_id);
    check(run_find_timer(run, timer_id) == NULL);
}
