/* start_timer.c - a decision starts a timer. The run's alarm does the rest (wake.c). */
#include "engine/command/inside.h"
#include "engine/command/retry.h"
#include "wire/presence.h"

/* Says what is wrong with it; false: refused. */
static bool
is_valid(struct deciding *deciding, const API(StartTimerDecisionAttributes) *wish, int64_t seconds)
{
    const API(DecisionTaskFailedCause) cause = FAILED_CAUSE(BAD_START_TIMER_ATTRIBUTES);
    int64_t longest = facts_integer(deciding->step->facts, DYNAMIC_TIMER_ID_LENGTH);
    if (wish->timer_id[0] == '\0')
        deciding_refuse(deciding, cause, "TimerId is not set on decision.");
    else if ((int64_t)strlen(wish->timer_id) > longest)
        deciding_refuse(deciding, cause, "TimerId exceeds length limit.");
    else if (seconds <= 0)
        deciding_refuse(deciding, cause, "Invalid StartToFireTimeoutSeconds: %lld",
                        (long long)seconds);
    else
        return true;
    return false;
}

void
decide_start_timer(struct deciding *deciding, const API(Decision) *decision)
{
    const API(StartTimerDecisionAttributes) *wish = decision->start_timer_decision_attributes;
    int64_t seconds = retry_seconds(wish->start_to_fire_timeout);
    if (!is_valid(deciding, wish, seconds))
        return;
    struct mutation *mutation = deciding->mutation;
    if (run_find_timer(mutation_run(mutation), wish->timer_id) != NULL) {
        deciding_refuse(deciding, FAILED_CAUSE(START_TIMER_DUPLICATE_ID), "%s", "");
        return;
    }
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(TIMER_STARTED));
    API(TimerStartedEventAttributes) *attributes = event->timer_started_event_attributes;
    attributes->timer_id = wish->timer_id;
    attributes->start_to_fire_timeout = presence_make_duration(deciding->step->arena, seconds);
    attributes->decision_task_completed_event_id = deciding->completed_id;
    (void)mutation_add_event(mutation, event);
}
