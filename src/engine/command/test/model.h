/* model.h - what a run should be, in the simplest words: a list of events and a few small tables.
 *
 * Nothing here uses the engine: rules are written a second time, slowly, from what users rely on.
 * model_test.c does the same to a run and to a model and compares the two after every step.
 *
 * Times are ns, durations seconds. A model has one run; what follows it (continue as new, a start
 * after a close) is a new model. */
#ifndef CADENZA_ENGINE_COMMAND_TEST_MODEL_H
#define CADENZA_ENGINE_COMMAND_TEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define MODEL_EVENTS_MAX     1024
#define MODEL_ACTIVITIES_MAX 8
#define MODEL_TIMERS_MAX     8
#define MODEL_REQUESTS_MAX   512
#define MODEL_SECOND         1000000000LL

/* What a caller is told. */
enum model_answer {
    MODEL_DONE,
    MODEL_NOT_FOUND,         /* no such run, decision or activity */
    MODEL_CLOSED,            /* the run is closed */
    MODEL_TAKEN,             /* somebody else has the task */
    MODEL_ALREADY_REQUESTED, /* a cancellation was asked for before */
    MODEL_INTERNAL,
};

/* An event: its name, what it points to, one number and one text that tell it from its like. */
struct model_event {
    const char *name;
    int64_t id; /* 0: still buffered */
    const struct model_event *refers[2];
    int64_t number; /* attempt, cause or type of timeout */
    char text[16];  /* id of an activity or timer, name of a signal or marker */
    bool goes_last; /* when buffered events are written */
};

struct model_policy {
    bool is_set;
    int64_t initial, maximum, expiration; /* seconds */
    int coefficient;
    int32_t attempts;
    bool boom_is_final, start_is_final; /* the reason "boom", a schedule-to-start timeout */
};

struct model_timeouts {
    int64_t schedule_to_close, schedule_to_start, start_to_close, heartbeat;
};

enum model_phase { MODEL_WAITING, MODEL_SENT, MODEL_RUNNING };

struct model_activity {
    bool is_pending;
    char id[8];
    struct model_event *scheduled, *started, *cancel;
    enum model_phase phase; /* waits for its next attempt, has a task, was started */
    int32_t attempt;
    int64_t scheduled_time, started_time, alive_time, expiration_time;
    struct model_timeouts timeouts;
    struct model_policy policy;
    char request[16]; /* of the poll that started it */
    int beat;         /* details of the last heartbeat; 0: none */
};

struct model_timer {
    bool is_pending;
    char id[8];
    struct model_event *started;
    int64_t fire_time;
};

enum model_decision_state { MODEL_NONE, MODEL_SCHEDULED, MODEL_STARTED };

struct model_decision {
    enum model_decision_state state;
    int32_t attempt; /* more than 0: its events are not in the history */
    struct model_event *scheduled, *started;
    size_t history_count; /* when it was scheduled without an event */
    int64_t deadline;     /* 0: none */
    bool is_sticky;
    char request[16];
};

struct model {
    struct arena *arena;
    int64_t now;
    bool is_open;
    const char *close; /* name of the close event */
    int64_t execution_timeout, decision_timeout;
    int64_t timeout_time, first_decision_time;
    size_t history_count, buffer_count, held_count;
    struct model_event *history[MODEL_EVENTS_MAX], *buffer[MODEL_EVENTS_MAX];
    struct model_event *held[MODEL_EVENTS_MAX]; /* what a list of decisions brought about */
    bool is_deciding;                           /* such a list is worked through */
    struct model_activity activities[MODEL_ACTIVITIES_MAX];
    struct model_timer timers[MODEL_TIMERS_MAX];
    struct model_decision decision;
    int32_t failed_attempts; /* when none is pending */
    int64_t retry_time;      /* none is pending, and the next attempt comes then; 0: it does not */
    int64_t sticky_timeout;  /* 0: not sticky */
    bool is_cancel_requested;
    char cancel_request[16];
    size_t signal_count;
    char signals[MODEL_REQUESTS_MAX][16]; /* request ids that were taken */
};

/* ---- the run ---- */

/* A new run, in the arena; with a signal, or NULL. */
struct model *model_start(struct arena *arena, int64_t now, int64_t execution_timeout,
                          int64_t decision_timeout, int64_t delay, const char *signal);
enum model_answer model_signal(struct model *model, const char *name, const char *request);
enum model_answer model_request_cancel(struct model *model, const char *request);
enum model_answer model_terminate(struct model *model);
/* Time passes, and all that is due is done. */
void model_wake(struct model *model, int64_t now);
/* When something is due next; 0: nothing. */
int64_t model_next_deadline(const struct model *model);

/* ---- decisions ---- */

enum model_order_kind {
    ORDER_ACTIVITY,
    ORDER_CANCEL_ACTIVITY,
    ORDER_TIMER,
    ORDER_CANCEL_TIMER,
    ORDER_MARKER,
    ORDER_COMPLETE,
    ORDER_FAIL,
    ORDER_CANCEL,
    ORDER_CONTINUE,
    ORDER_KIND_COUNT,
};

struct model_order {
    enum model_order_kind kind;
    char id[8];
    struct model_timeouts timeouts; /* of an activity, 0: not given */
    struct model_policy policy;
    int64_t seconds; /* of a timer */
    bool is_local;   /* the worker wants the activity with the answer */
};

/* A poller got the decision. The timeout is the caller's (it has chance in it); 0: the run's own.
 */
enum model_answer model_start_decision(struct model *model, const char *request);
void model_set_decision_timeout(struct model *model, int64_t seconds);
/* The timeout that the started decision should have: between these, seconds. */
void model_decision_timeout(const struct model *model, int64_t *least, int64_t *most);
enum model_answer model_complete_decision(struct model *model, const struct model_order *orders,
                                          size_t count, bool forces_new, int64_t sticky_timeout);
enum model_answer model_fail_decision(struct model *model, int cause);
/* The worker has the run no more in its memory. */
enum model_answer model_reset_sticky(struct model *model);

/* ---- activities ---- */

struct model_activity *model_find_activity(struct model *model, const char *id);
enum model_answer model_start_activity(struct model *model, struct model_activity *activity,
                                       const char *request);
enum model_answer model_complete_activity(struct model *model, struct model_activity *activity);
/* The activity failed with this reason. */
enum model_answer model_fail_activity(struct model *model, struct model_activity *activity,
                                      const char *reason);
enum model_answer model_cancel_activity(struct model *model, struct model_activity *activity);
/* It lives; `beat` are the details. */
enum model_answer model_heartbeat_activity(struct model *model, struct model_activity *activity,
                                           int beat, bool *is_cancel_requested);

/* ---- between the parts of the model ---- */

/* A new event, written or buffered. */
struct model_event *model_add(struct model *model, const char *name,
                              const struct model_event *first, const struct model_event *second);
/* Writes an event behind the others. */
void model_append(struct model *model, struct model_event *event);
/* What was buffered is written: ends of activities behind the rest. False: there was nothing. */
bool model_flush(struct model *model);
void model_schedule_decision(struct model *model);
void model_schedule_if_needed(struct model *model);
/* A worker failed the decision, just now: the next attempt, or a pause before it. */
void model_retry_decision(struct model *model);
/* The started decision is over without a result; `event` is written if it is an ordinary one. */
void model_end_attempt(struct model *model, const char *event, int64_t number);
void model_close(struct model *model, const char *name, const struct model_event *first);
void model_add_activity(struct model *model, const struct model_order *order,
                        const struct model_event *completed);
/* Is it about an activity that the run cannot take? */
bool model_is_bad_activity(struct model *model, const struct model_order *order, int *cause);
void model_end_activity(struct model *model, struct model_activity *activity, const char *name,
                        int64_t number);
/* Another attempt after this reason? Then it waits for it. */
bool model_retry(struct model *model, struct model_activity *activity, const char *reason);
/* What is due next of an activity: 0 dispatch, else the type of timeout; false: nothing ever. */
bool model_activity_due(const struct model_activity *activity, int64_t *time, int *type);

#endif
