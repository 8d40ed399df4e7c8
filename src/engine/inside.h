/* inside.h - what the files of engine/ itself share. */
#ifndef CADENZA_ENGINE_INSIDE_H
#define CADENZA_ENGINE_INSIDE_H

#include "cadenza/internal/v1/shard_calls.pb-c.h"
#include "engine/engine.h"
#include "route/ask.h"

struct engine {
    struct engine_options options;
    struct route_service service; /* by which its shards are asked and told */
    struct shard **shards;        /* each used on its loop only */
    struct waits *waits;          /* by place (waits.c) */
    struct counter *reapplied;    /* NULL without metrics */
};

/* Asks the shard of a workflow id, or one by its number. Yields. Errors: those of route_ask. */
must_use struct error *engine_ask(struct engine *engine, const char *workflow_id,
                                  const struct route_question *question, const void *request,
                                  struct arena *arena, void *answer);
must_use struct error *engine_ask_shard(struct engine *engine, uint32_t number,
                                        const struct route_question *question, const void *request,
                                        struct arena *arena, void *answer);
/* The same for a question that is answered with nothing but that it was done. */
must_use struct error *engine_ask_done(struct engine *engine, const char *workflow_id,
                                       const struct route_question *question, const void *request,
                                       struct arena *arena);
/* The shard of a workflow id, for those who are where it lives: its own cross-workflow tasks. */
struct shard *engine_own_shard(struct engine *engine, const char *workflow_id);
/* Parts of engine_open and engine_close (waits.c). */
void waits_init(struct engine *engine);
void waits_free(struct engine *engine);
/* For those who serve a question: the shard that was asked, on its loop. */
struct shard *engine_served_shard(void *engine, struct owner owner);

/* What a look at a run fills, where its shard lives. */
struct served_look {
    const struct engine *engine;
    struct arena *arena;
    void *answer; /* of the question */
};
/* A question whose request is a RunLook (look.c); the second one: what was acknowledged before is
 * seen. Yield. Errors: those of shard_look. */
must_use struct error *engine_ask_look(struct engine *engine, const struct run_key *key,
                                       const struct route_question *question, struct arena *arena,
                                       void *answer);
must_use struct error *engine_ask_look_surely(struct engine *engine, const struct run_key *key,
                                              const struct route_question *question,
                                              struct arena *arena, void *answer);
/* For those who serve one: calls `look`, with a struct served_look, under the lock of the run. */
must_use struct error *engine_serve_look(void *engine, struct owner owner, const void *request,
                                         void (*look)(void *served_look, const struct run *run,
                                                      const STORED(CurrentRecord) *current),
                                         struct arena *arena, void *answer);

/* As part of a question. Texts stay where they are. */
INTERNAL(TaskName) task_name_to_message(const struct task_name *name);
struct task_name task_name_from_message(const INTERNAL(TaskName) * message);

/* The run's next decision, for a step that will schedule it if none is pending. */
size_t engine_foresee_decision(void *context, const struct run *run,
                               const STORED(CurrentRecord) *current, struct foreseen *tasks);

/* Does what a row of the outbox asks for on other workflows (cross/cross_tasks.c). Yields. */
must_use struct error *engine_run_cross_task(void *engine, struct cross_task *cross_task,
                                             struct arena *arena);

/* One cross-workflow task while it is done. */
struct cross_task_work {
    struct engine *engine;
    struct cross_task *cross_task;
    struct run_key source; /* whose row it is */
    bool is_void;          /* nothing is to be done: the row is of a history that lost */
    struct arena *arena;
};
typedef struct error *decide_function(void *context, struct step *step);
/* May the row be about a record with this version? Else it is of a history that lost (E-007). */
bool cross_task_fits(const struct cross_task_work *work, int64_t event_version);
/* A step of the run whose row it is, as long as the shard is the one that has the row. */
must_use struct error *cross_task_step_source(struct cross_task_work *work, decide_function *decide,
                                              void *context);
/* ns; a parent whose history never comes is not waited for longer. */
#define CROSS_TASK_PARENT_UNKNOWN_MAX (3600 * (int64_t)1000000000)

/* What one workflow asks of another. The numbers are sent between clusters. */
enum cross_task_kind {
    CROSS_TASK_SIGNAL = 1,       /* PendingExternal */
    CROSS_TASK_CANCEL = 2,       /* PendingExternal */
    CROSS_TASK_END_CHILD = 3,    /* PendingChild: its policy says how */
    CROSS_TASK_PARENT_KNOWS = 4, /* nothing: the child gets its first decision */
    CROSS_TASK_CHILD_CLOSED = 5, /* TransferRow, with the close event */
    CROSS_TASK_START_CHILD = 6,  /* TransferRow, with start, parent, partition_config */
    CROSS_TASK_REQUEST = 7,      /* TransferRow, as it was accepted */
};
struct cross_task_request {
    enum cross_task_kind kind;
    struct run_key target; /* run_id "": the current run */
    struct origin origin;
    const ProtobufCMessage *body; /* as the kind says */
    int64_t asked_time;           /* when, if it may have been done already; 0: it was not */
    /* What the target was started with, if that is known: it may not be known here. */
    const API(ActiveClusterSelectionPolicy) *policy;
    bool has_policy;
    struct start_answer answer; /* of a start */
    bool is_remote;             /* another cluster has answered, be it that it is void */
};
/* Asks the shard of the target, which makes a step of it; if the target is active in another
 * cluster, there (ask.c). */
must_use struct error *cross_task_ask(struct cross_task_work *work,
                                      struct cross_task_request *wanted);
/* Asks the shard of the target, and nobody else (target.c); fills the answer of a start. */
must_use struct error *cross_task_ask_shard(struct engine *engine,
                                            struct cross_task_request *wanted, struct arena *arena);
/* The second half of cross_task_ask: the target was asked, and refused; if it named another
 * cluster, what came of it there, else the refusal. */
must_use struct error *cross_task_follow(struct cross_task_work *work,
                                         struct cross_task_request *wanted, struct error *refusal);
/* Is the run that was asked not there, or has it ended? Then there is nothing left to do. */
bool cross_task_is_void(const struct error *err);
/* Starts a child, notifies its parent, gives it its first decision (child.c). */
must_use struct error *cross_task_start_child(struct cross_task_work *work);
/* Ends children of a closed run as their policies say, a portion of them (child.c). */
must_use struct error *cross_task_end_children(struct cross_task_work *work);
/* A child that was started may have ended long ago: then its parent is notified
 * (child_closed.c). */
must_use struct error *cross_task_report_closed(struct cross_task_work *work,
                                                const STORED(PendingChild) *child,
                                                const char *run_id);
/* A child that waits finds out whether its parent knows it (orphan.c). */
must_use struct error *cross_task_ask_parent(struct cross_task_work *work);
/* Does a request that was accepted (requests.c). */
must_use struct error *cross_task_do_request(struct cross_task_work *work);
/* Signals, cancel requests and terminations among events that lost happen again
 * (incoming/reapply.c). */
must_use struct error *cross_task_reapply(struct cross_task_work *work);
/* A start, or a signal with a start, as one step. `range_id`, `dropped`: of the row of the outbox
 * that asks for it, which goes with the step; 0: none does. */
struct start_request_step {
    const struct start_command *command;
    struct start_answer *answer;
    uint64_t range_id, dropped;
    int64_t parent_version; /* as in shard_step */
    bool is_call;           /* of a client: the limit of the workflow id holds */
};
must_use struct error *engine_step_start(struct shard *shard, const char *domain_id,
                                         struct start_request_step *wanted, struct arena *arena);
/* What the end of a parent means for a child, as a step of the child: its policy says. */
struct end_child_request {
    const STORED(PendingChild) *child;
    struct origin origin;
};
must_use struct error *cross_task_decide_end_child(void *end_child_request, struct step *step);

#endif
