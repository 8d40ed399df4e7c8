/* worker.h - workflows and activities of the server's own, in C, on the same engine as everybody's.
 *
 * A workflow type is three pure functions. `fold` takes a run's events one by one into a state,
 * `decide` looks at that state and says what comes next, `query` answers from it. Nothing else is
 * kept between two decisions: whichever host gets the next one reads the history again. So a crash
 * changes nothing, and the same history gives the same decisions everywhere.
 *
 * An activity type is a function that runs in a fiber and may wait. It calls the owners (engine,
 * matching, domains, visibility) directly, heartbeats, and ends with a result or an error. If its
 * host crashes, the timeouts of the activity have it tried again, by its retry policy, with the
 * details of its last heartbeat.
 *
 * Types are served on the task list that they name, in one domain or in all. Nobody polls: matching
 * calls when something waits (system.h). */
#ifndef CADENZA_SYSTEM_WORKER_H
#define CADENZA_SYSTEM_WORKER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "engine/engine.h"
#include "uber/cadence/api/v1/decision.pb-c.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

#define SYSTEM_IDENTITY "cadence-system-worker"

/* What system workflows and activities may call. */
struct system_parts {
    struct domains *domains;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    struct engine *engine;
    struct matching *matching;
    struct visibility *visibility;
    struct registry *registry; /* of search attributes */
    struct api *api;
    struct replication *replication; /* NULL: no other cluster is followed */
    const struct log *log;
};

/* --- workflows ---- */

/* One decision, while it is made. */
struct system_decider {
    struct arena *arena; /* of this decision */
    int64_t now;         /* when the decision was started, wall clock, ns: the same in a replay */
    const char *domain_id, *workflow_id, *run_id;
    int64_t next_event_id; /* events so far, and one */
    int64_t history_bytes;
    API(Decision) **decisions; /* so far */
    size_t count, capacity;
};

struct system_workflow {
    const char *type;   /* name of the workflow type */
    const char *list;   /* the task list that it is served on */
    const char *domain; /* name of the domain whose list it is; NULL: of every domain */
    size_t state_size;  /* zeroed before the first event */
    /* The next event of the run. It lives during the call only; what is kept is copied into the
     * arena, which lives as long as the state. Pure. */
    void (*fold)(void *state, const API(HistoryEvent) *event, struct arena *arena);
    /* What comes next: adds decisions, or none to go on waiting. Pure. */
    void (*decide)(void *state, struct system_decider *decider);
    /* Answers a query; NULL: it knows none. Pure. Error: what the caller gets. */
    struct error *(*query)(void *state, const char *type, struct slice arguments,
                           struct arena *arena, struct slice *answer);
    /* Is the list served in this domain at present? If not, its tasks wait. NULL: always. No
     * yield. */
    bool (*is_on)(const struct system_parts *parts, const char *domain_id);
};

/* One more decision of any kind; its attributes are the caller's to set. The end of a run must be
 * the last decision. */
API(Decision) *system_decide(struct system_decider *decider, int attributes_case);
/* The ends of a run. */
void system_complete(struct system_decider *decider, struct slice result);
void system_fail(struct system_decider *decider, const char *reason, struct slice details);
void system_cancel(struct system_decider *decider, struct slice details);

/* An activity as it is asked for; on the list of the run. */
struct system_activity_order {
    const char *id, *type;
    struct slice input;
    int64_t start_to_close;    /* seconds; also how long it may wait for its start */
    int64_t heartbeat_timeout; /* seconds; 0: none */
    API(RetryPolicy) *retry;   /* NULL: none */
    const char *list;
};
void system_schedule(struct system_decider *decider, const struct system_activity_order *order);
/* `seconds` > 0. */
void system_start_timer(struct system_decider *decider, const char *id, int64_t seconds);
void system_cancel_timer(struct system_decider *decider, const char *id);

/* --- activities ---- */

/* An activity in work. All of it lives in its arena. */
struct system_task {
    const struct system_parts *parts;
    struct arena *arena; /* of this attempt */
    struct run_key key;  /* of the run that it belongs to; its run id is set */
    const char *workflow_type;
    const char *activity_id;
    int32_t attempt;
    int64_t scheduled_time; /* of the first attempt, wall clock, ns */
    int64_t heartbeat_timeout;
    struct slice input;
    struct slice details; /* of the last heartbeat of an earlier attempt; empty: none */
    const char *reason;   /* of a failure; may be set before an error is returned */
    /* The frame's own. */
    int64_t schedule_id;
    bool is_cancel_requested;
    bool is_gone; /* the run or the activity has ended */
};

struct system_activity {
    const char *type, *list, *domain; /* as above */
    /* Runs in a fiber; its deadline is the start-to-close timeout. An error fails the attempt with
     * task->reason and the error's message as details; if the run asked to cancel it, it is
     * cancelled, with the result as details; if the activity is gone, nothing is reported. */
    struct error *(*run)(struct system_task *task, struct slice *result);
};

/* Records that it lives and how far it got; durable when it returns NULL. Yields; the arena of the
 * task grows by it. An error means: return it, soon. Either the run asks to cancel it
 * (ERR_CANCELLED: then the result is what it leaves behind), or it has ended
 * (ERR_ENTITY_NOT_EXISTS), or the host stops, or the engine cannot be reached for a while. */
must_use struct error *system_heartbeat(struct system_task *task, struct slice details);

/* Is the error a passing one, and worth another call soon? Else it ends the attempt. */
bool system_passes(const struct error *err);

#endif
