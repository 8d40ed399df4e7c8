/* tale.h - a schedule's run told event by event. For tests of schedule/.
 *
 * Events are kept in wire form and read anew for each plan, so that every plan is made of the
 * history alone. */
#ifndef CADENZA_SCHEDULE_TALE_H
#define CADENZA_SCHEDULE_TALE_H

#include "base/test.h"
#include "schedule/inside.h"

struct tale {
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
API(CreateScheduleRequest) *tale_request(struct arena *arena, const char *cron);
void tale_begin(struct tale *tale, struct arena *arena, const API(CreateScheduleRequest) *request);
void tale_begin_with(struct tale *tale, struct arena *arena, struct slice input, int64_t now);
/* Moves time to so many seconds. */
void tale_at(struct tale *tale, int64_t seconds);
void tale_signal(struct tale *tale, const char *name, const ProtobufCMessage *request);
/* The timer rings if it is due. Plans, and adds the events that the plan becomes. */
void tale_decide(struct tale *tale);
/* The activity ends: all of its fires started; only the first `count` of them; or it is lost. */
void tale_fired(struct tale *tale);
void tale_fired_some(struct tale *tale, size_t count, STORED(ScheduleEnd) end);
void tale_lost(struct tale *tale);
/* Looks; a run has ended so. */
void tale_closed(struct tale *tale, const char *run_id, API(WorkflowExecutionCloseStatus) status);
const STORED(ScheduleProgress) *tale_progress(const struct tale *tale);

#endif
