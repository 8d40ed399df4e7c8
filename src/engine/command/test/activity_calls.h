/* activity_calls.h - what workers do with activities in the world of fixture.h, in short words. */
#ifndef CADENZA_ENGINE_COMMAND_TEST_ACTIVITY_CALLS_H
#define CADENZA_ENGINE_COMMAND_TEST_ACTIVITY_CALLS_H

#include "engine/command/test/fixture.h"

/* Seconds; 0: not given. */
struct activity_timeouts {
    int64_t schedule_to_close, schedule_to_start, start_to_close, heartbeat;
};

/* A decision that schedules activity `id` of type "act" with these timeouts, on the run's list. */
API(Decision) *activity_decision(struct fixture *fixture, const char *id,
                                 struct activity_timeouts timeouts);
API(ScheduleActivityTaskDecisionAttributes) *activity_attributes(API(Decision) *decision);
/* A good one with a retry policy: 2 s, doubled, at most `attempts`; expires after `expiration`. */
API(Decision) *retried_activity_decision(struct fixture *fixture, const char *id, int32_t attempts,
                                         int64_t expiration);
API(Decision) *cancel_activity_decision(struct fixture *fixture, const char *id);
API(Decision) *cancel_timer_decision(struct fixture *fixture, const char *id);

/* Begins a run whose first decision says this. */
#define calls_begin(fixture, ...)                                                                  \
    (fixture_begin(fixture), EXPECT(fixture_poll_decision(fixture)),                               \
     EXPECT_OK(fixture_complete((fixture), __VA_ARGS__)))
/* Starts the oldest activity task; the test fails if there is none. What its token names. */
struct task_name calls_poll_activity(struct fixture *fixture);
must_use struct error *calls_start_activity(struct fixture *fixture, const struct task_name *task,
                                            const char *request_id, struct activity_start *start);
/* What a call by id names. */
struct task_name calls_by_id(const char *activity_id);

must_use struct error *calls_complete(struct fixture *fixture, struct task_name task);
must_use struct error *calls_fail(struct fixture *fixture, struct task_name task,
                                  const char *reason);
must_use struct error *calls_cancel(struct fixture *fixture, struct task_name task);
must_use struct error *calls_heartbeat(struct fixture *fixture, struct task_name task,
                                       const char *details, bool *is_cancel_requested);
/* command_wake, as the decision of a step. */
must_use struct error *calls_decide_wake(void *context, struct step *step);
/* The clock jumps, then the wake-up timer fires late. */
void calls_wake_late(struct fixture *fixture, int64_t nanoseconds);

/* The pending activity of this id, or NULL. */
const STORED(PendingActivity) *calls_activity(const struct fixture *fixture, const char *id);
/* The newest stored event. */
API(HistoryEvent) *calls_last_event(const struct fixture *fixture);
/* The newest stored event of a kind; the test fails if there is none. */
API(HistoryEvent) *calls_find_event(const struct fixture *fixture,
                                    API(HistoryEvent__AttributesCase) kind);
/* How the newest decision failed: cause and text of its event. */
void calls_expect_refused(struct fixture *fixture, int cause, const char *text);

#endif
