/* apply.h - the only place that turns an event into state.
 *
 * One table from the kind of event to the function that applies it, for events of commands and of
 * other clusters alike. Applying decides nothing and refuses nothing; an event that does not fit
 * the run is a bug (check). It also adds the outbox rows that follow from an event.
 *
 * Of a decision: DecisionTaskScheduled makes the pending one (none may be pending), with the
 * event's attempt, list and time, and sends its task; a list that is neither the run's own nor its
 * sticky one belongs to a worker of another cluster, and the task goes to the run's own; Started
 * fills in who started it and when, and drops the task; Completed, Failed and TimedOut remove it
 * with its task. Completed leaves decision_attempt 0 and sets previous_started_event_id; Failed and
 * TimedOut end stickiness and leave decision_attempt one more than it was (0 when a sticky one was
 * not started in time). Attempts that are not in the history (transient) are set by the commands.
 */
#ifndef CADENZA_ENGINE_RUN_APPLY_H
#define CADENZA_ENGINE_RUN_APPLY_H

#include "engine/run/mutation.h"

/* Applies one event, whose id is set (EVENT_BUFFERED for a buffered one). */
void run_apply(struct mutation *mutation, const API(HistoryEvent) *event);
/* A buffered event got its id: what points to it is set right. */
void run_apply_id(struct mutation *mutation, API(HistoryEvent) *event);

/* A signal or cancel request that is pending is sent (again); a child is started, or, if it was,
 * looked for (again). */
void run_send_external(struct mutation *mutation, int64_t initiated_id);
void run_send_child(struct mutation *mutation, int64_t initiated_id);
/* A child that waits asks its parent whether it is known, and asks again later. */
void run_ask_parent(struct mutation *mutation);

/* May an event of this kind be buffered (it was not made by a decision, nor is it about one)? */
bool event_may_be_buffered(API(HistoryEvent__AttributesCase) kind);
/* Is it what a decision of a worker asked for? Such an event never comes while one is started. */
bool event_comes_from_decision(API(HistoryEvent__AttributesCase) kind);
/* Does it end an activity or a child? Those go behind the others when buffered ones are flushed. */
bool event_goes_last(API(HistoryEvent__AttributesCase) kind);
/* Does it close a run? */
bool event_closes_run(API(HistoryEvent__AttributesCase) kind);
/* "DecisionTaskScheduled": as people know it. */
const char *event_name(API(HistoryEvent__AttributesCase) kind);

#endif
