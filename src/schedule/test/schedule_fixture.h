/* schedule_fixture.h - a schedule's run, event by event. For tests of schedule/.
 *
 * Events are kept in wire form and folded again for each plan, so that every plan is made from the
 * history alone. */
#ifndef CADENZA_SCHEDULE_TEST_SCHEDULE_FIXTURE_H
#define CADENZA_SCHEDULE_TEST_SCHEDULE_FIXTURE_H

#include "base/test.h"
#include "schedule/inside.h"

struct schedule_fixture {
    struct arena *arena;
    struct slice *events;
    size_t count;
    int64_t now;            /* wall clock, ns, of the next event */
    struct schedule folded; /* of all of them */
    struct schedule_plan plan;
    STORED(ScheduleTask) *task; /* of the newest plan that fires */
    struct schedule_limits limits;
};

/* A schedule of "@every 60s" that is made at 1000 s, unless the request is changed. */
API(CreateScheduleRequest) *schedule_fixture_request(struct arena *arena, const char *cron);
void schedule_fixture_begin(struct schedule_fixture *schedule_fixture, struct arena *arena,
                            const API(CreateScheduleRequest) *request);
void schedule_fixture_begin_with(struct schedule_fixture *schedule_fixture, struct arena *arena,
                                 struct slice input, int64_t now);
/* Moves time to so many seconds. */
void schedule_fixture_at(struct schedule_fixture *schedule_fixture, int64_t seconds);
void schedule_fixture_signal(struct schedule_fixture *schedule_fixture, const char *name,
                             const ProtobufCMessage *request);
/* The timer fires if it is due. Plans, and adds the events that the plan becomes. */
void schedule_fixture_decide(struct schedule_fixture *schedule_fixture);
/* The activity ends: all of its fires started; only the first `count` of them; or it is lost. */
void schedule_fixture_fired(struct schedule_fixture *schedule_fixture);
void schedule_fixture_fired_some(struct schedule_fixture *schedule_fixture, size_t count,
                                 STORED(ScheduleEnd) end);
void schedule_fixture_lost(struct schedule_fixture *schedule_fixture);
/* Looks; a run has ended so. */
void schedule_fixture_closed(struct schedule_fixture *schedule_fixture, const char *run_id,
                             API(WorkflowExecutionCloseStatus) status);
const STORED(ScheduleProgress) *
schedule_fixture_progress(const struct schedule_fixture *schedule_fixture);

#endif
