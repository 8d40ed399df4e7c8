/* start_timer.c - a decision starts a timer. The run's wake-up timer does the rest (wake.c). */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/presence.h"

/* Says what is wrong with it; false: refused. */
static bool
is_valid(struct decision_list *decision_list, const API(StartTimerDecisionAttributes) *request,
         int64_t seconds)
{
    const API(DecisionTaskFailedCause) cause = FAILED_CAUSE(BAD_START_TIMER_ATTRIBUTES);
    int64_t longest = run_context_integer(decision_list->step->context, DYNAMIC_TIMER_ID_LENGTH);
    if (request->timer_id[0] == '\0')
        decision_list_refuse(decision_list, cause, "TimerId is not set on decision.");
    else if ((int64_t)strlen(request->timer_id) > longest)
        decision_list_refuse(decision_list, cause, "TimerId exceeds length limit.");
    else if (seconds <= 0)
        decision_list_refuse(decision_list, cause, "Invalid StartToFireTimeoutSeconds: %lld",
                             (long long)seconds);
    else
        return true;
    return false;
}

void
decide_start_timer(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(StartTimerDecisionAttributes) *request = decision->start_timer_decision_attributes;
    int64_t seconds = command_seconds(request->start_to_fire_timeout);
    if (!is_valid(decision_list, request, seconds))
        return;
    struct mutation *mutation = decision_list->mutation;
    if (run_find_timer(mutation_run(mutation), request->timer_id) != NULL) {
        decision_list_refuse(decision_list, FAILED_CAUSE(START_TIMER_DUPLICATE_ID), "%s", "");
        return;
    }
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(TIMER_STARTED));
    API(TimerStartedEventAttributes) *attributes = event->timer_started_event_attributes;
    attributes->timer_id = request->timer_id;
    attributes->start_to_fire_timeout = presence_make_duration(decision_list->step->arena, seconds);
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    (void)mutation_add_event(mutation, event);
    check(run_find_timer(mutation_run(mutation), request->timer_id) != NULL);
}
