/* schedule.h - schedules: which workflow is to start when, as a fold over the history of a run.
 *
 * A schedule is an open run of type cadence-scheduler in its user's domain. What it is now follows
 * from that run's events alone: the input (what the user said, and how far earlier runs of the
 * chain got), the signals since, the results of the activity that starts workflows, and markers
 * that hold how far a decision got. So the history alone gives the schedule, a crash changes
 * nothing, and no call depends on a worker being there.
 *
 * Everything here is pure: no clock, no I/O, no yield.
 *
 * Exactly once: every nominal time is looked at once, in order (the watermark in the progress). A
 * time that is to be started waits in one of four places until an activity reports what came of it.
 * If the report is lost the activity is asked again for the same, and the workflow id and the id of
 * the start request are functions of the schedule, the time and the backfill, so that the engine
 * knows the repeat.
 *
 * Ownership: all of a schedule lives in the arena given to schedule_fold. */
#ifndef CADENZA_SCHEDULE_SCHEDULE_H
#define CADENZA_SCHEDULE_SCHEDULE_H

#include "base/arena.h"
#include "base/cron.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cadenza/storage/v1/schedule.pb-c.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

#define SCHEDULE_TYPE      "cadence-scheduler"
#define SCHEDULE_LIST      "cadence-scheduler"
#define SCHEDULE_PREFIX    "cadence-scheduler:"
#define SCHEDULE_FIRE      "cadence-schedule-fire" /* the activity */
#define SCHEDULE_MARKER    "cadence-schedule"
#define SCHEDULE_ATTRIBUTE "CadenceSchedule" /* search attributes that begin so are ours */
#define SCHEDULE_IDENTITY  "cadence-scheduler"

/* Names of signals; each carries the request that caused it. */
#define SCHEDULE_PAUSE    "scheduler-pause"
#define SCHEDULE_UNPAUSE  "scheduler-unpause"
#define SCHEDULE_UPDATE   "scheduler-update"
#define SCHEDULE_BACKFILL "scheduler-backfill"
#define SCHEDULE_DELETE   "scheduler-delete"

#define SCHEDULE_RUN_SECONDS      (30 * 365 * 24 * 3600L) /* a run; it continues long before */
#define SCHEDULE_DECISION_SECONDS 10

#define SCHEDULE_BUFFER_MAX    1000
#define SCHEDULE_RUNNING_MAX   1000
#define SCHEDULE_BACKFILLS_MAX 10
#define SCHEDULE_COUNT_MAX     100000             /* runs of a backfill are counted up to here */
#define SCHEDULE_WINDOW        (365 * 24 * 3600L) /* seconds; catch-up where nothing else is said */
#define SCHEDULE_LATE          60                 /* seconds; a fire that is later was missed */

struct schedule {
    STORED(ScheduleDefinition) *definition; /* NULL: the run was not started by us */
    STORED(ScheduleProgress) *progress;
    struct cron cron;
    bool has_cron;      /* else no time is ever due */
    int64_t run_start;  /* wall clock, ns, of this run */
    struct slice shown; /* the search attributes of the run */
    struct arena *arena;
};

/* --- building (fold.c) --------------------------------------------------------------------------
 */

/* The next event of the run; the schedule is all zero before the first one. The arena is always the
 * same. */
void schedule_fold(struct schedule *schedule, const API(HistoryEvent) *event, struct arena *arena);
/* The input of a schedule's first run. */
struct slice schedule_first_input(const API(CreateScheduleRequest) *request, struct arena *arena);
/* Search attributes of the run: state, cron, type of the workflow, and the user's own. */
API(SearchAttributes) *schedule_attributes(const STORED(ScheduleDefinition) *definition,
                                           bool is_paused, struct arena *arena);

/* --- deciding (plan.c) --------------------------------------------------------------------------
 */

/* What the run does next. */
struct schedule_plan {
    bool is_over;              /* the run completes */
    bool continues;            /* as new; with this input */
    struct slice input;        /* of the next run */
    bool has_marker;           /* keeps this */
    struct slice marker;       /* the progress */
    bool fires;                /* an activity, with this input */
    struct slice fire_task;    /* STORED(ScheduleTask) */
    const char *cancels_timer; /* NULL: none */
    bool has_timer;            /* to be started */
    const char *timer_id;
    int64_t timer_seconds;
    API(SearchAttributes) *upsert; /* NULL: nothing changed */
};
/* A run that has this much of history continues as new as soon as it can. */
struct schedule_limits {
    int64_t events, bytes;
    int64_t age; /* ns; of the run */
};
struct schedule_now {
    int64_t time; /* wall clock, ns */
    int64_t events, bytes;
    struct schedule_limits limits;
};
/* Changes the schedule as the events of the plan will. */
void schedule_plan(struct schedule *schedule, const struct schedule_now *now,
                   struct schedule_plan *plan);

/* --- starting (fire.c) --------------------------------------------------------------------------
 */

/* The world of workflows, as the activity sees it. All may yield; errors are those that a repeat
 * may help against. */
struct schedule_port {
    /* Is it, or what it continued as, open? If not: how did it end; INVALID: it is unknown. */
    struct error *(*check_run)(void *context, const STORED(ScheduleRun) *run, bool *is_open,
                               API(WorkflowExecutionCloseStatus) *status);
    struct error *(*cancel)(void *context, const STORED(ScheduleRun) *run);
    struct error *(*terminate)(void *context, const STORED(ScheduleRun) *run);
    /* *refusal: why it can never be started, or NULL. *run_id: of the run that it started, also if
     * that was an earlier attempt; NULL: another run has the workflow id. */
    struct error *(*start)(void *context, const STORED(ScheduleTask) *task,
                           const STORED(ScheduleFire) *fire, const char **run_id,
                           const char **refusal);
    void *context;
};
/* Does what the task asks for, as far as the overlap policy allows. Yields. Errors: the port's. */
must_use struct error *schedule_fire(const STORED(ScheduleTask) *task,
                                     const struct schedule_port *port, struct arena *arena,
                                     STORED(ScheduleReport) **report);
/* The start request of a fire. */
API(StartWorkflowExecutionRequest) *schedule_start_request(const STORED(ScheduleTask) *task,
                                                           const STORED(ScheduleFire) *fire,
                                                           struct arena *arena);

/* --- showing (describe.c) -----------------------------------------------------------------------
 */

/* Everything about it at a moment. Shares memory with the schedule. */
void schedule_describe(const struct schedule *schedule, int64_t now, struct arena *arena,
                       API(DescribeScheduleResponse) *response);
/* What a list shows of it, from the search attributes of its run. */
API(ScheduleListEntry) *schedule_list_entry(const char *workflow_id,
                                            const API(SearchAttributes) *attributes,
                                            struct arena *arena);
/* Can it take one more backfill, or has it this one already? */
bool schedule_has_room(const struct schedule *schedule, const char *backfill_id);

/* --- times (times.c) ----------------------------------------------------------------------------
 */

/* The first nominal time after one, within the start and end of the spec; CRON_NEVER: none. */
int64_t schedule_next(const struct schedule *schedule, int64_t after);
/* When a nominal time is due, wall clock, ns: itself and its share of the jitter. */
int64_t schedule_due(const struct schedule *schedule, int64_t nominal);
/* How many nominal times there are after one up to another; at most `max`. */
int64_t schedule_count(const struct schedule *schedule, int64_t after, int64_t until, int64_t max);
/* A time as RFC 3339 writes it, UTC, whole seconds. */
char *schedule_time_text(int64_t seconds, struct arena *arena);

#endif
