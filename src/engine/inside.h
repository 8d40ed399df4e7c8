/* inside.h - what the files of engine/ itself share. */
#ifndef CADENZA_ENGINE_INSIDE_H
#define CADENZA_ENGINE_INSIDE_H

#include <stdatomic.h>

#include "engine/engine.h"

struct engine {
    struct engine_options options;
    struct shard **shards;     /* each used on its loop only */
    atomic_size_t letters;     /* on their way to a shard */
    struct counter *reapplied; /* NULL without metrics */
};

typedef void look_function(void *context, const struct run *run,
                           const STORED(CurrentRecord) *current);

/* shard_step, shard_look and shard_look_surely on the loop of the workflow id's shard. Yield. */
must_use struct error *engine_step(struct engine *engine, const struct shard_step *step,
                                   struct arena *arena);
must_use struct error *engine_look(struct engine *engine, const struct run_key *key,
                                   look_function *look, void *context, struct arena *arena);
must_use struct error *engine_look_surely(struct engine *engine, const struct run_key *key,
                                          look_function *look, void *context, struct arena *arena);

/* The run's next decision, for a step that will schedule it if none is pending. */
size_t engine_foresee_decision(void *context, const struct run *run,
                               const STORED(CurrentRecord) *current, struct foreseen *tasks);

/* Does what a row of the outbox asks for on other workflows (errands.c). Yields. */
must_use struct error *engine_run_errand(void *engine, struct errand *errand, struct arena *arena);

/* One errand while it is done. */
struct errand_walk {
    struct engine *engine;
    struct errand *errand;
    struct run_key source; /* whose row it is */
    bool is_void;          /* nothing is to be done: the row is of a history that lost */
    struct arena *arena;
};
typedef struct error *decide_function(void *context, struct step *step);
/* May the row be about a record with this version? Else it is of a history that lost (E-007). */
bool errand_fits(const struct errand_walk *walk, int64_t event_version);
/* A step of the run whose row it is, as long as the shard is the one that has the row. */
must_use struct error *errand_step_source(struct errand_walk *walk, decide_function *decide,
                                          void *context);
/* ns; a parent whose history never comes is not waited for longer. */
#define ERRAND_PARENT_UNKNOWN_MAX (3600 * (int64_t)1000000000)

/* What one workflow asks of another. The numbers are sent between clusters. */
enum errand_kind {
    ERRAND_SIGNAL = 1,       /* PendingExternal */
    ERRAND_CANCEL = 2,       /* PendingExternal */
    ERRAND_END_CHILD = 3,    /* PendingChild: its policy says how */
    ERRAND_PARENT_KNOWS = 4, /* nothing: the child gets its first decision */
    ERRAND_CHILD_CLOSED = 5, /* TransferRow, with the close event */
    ERRAND_START_CHILD = 6,  /* TransferRow, with start, parent, partition_config */
    ERRAND_REQUEST = 7,      /* TransferRow, as it was accepted */
};
struct errand_wish {
    enum errand_kind kind;
    struct run_key target; /* run_id "": the current run */
    struct origin origin;
    const ProtobufCMessage *body; /* as the kind says */
    int64_t asked_time;           /* when, if it may have been done already; 0: it was not */
    /* What the target was started with, if that is known: it may not have been heard of here. */
    const API(ActiveClusterSelectionPolicy) *policy;
    bool has_policy;
    struct start_answer answer; /* of a start */
    bool is_abroad;             /* another cluster has answered, be it that it is void */
};
/* Asks, as a step of the target; if the target is active in another cluster, there
 * (errands_target.c). */
must_use struct error *errand_ask(struct errand_walk *walk, struct errand_wish *wish);
/* The second half of that: the target was asked, and refused; if it named another cluster, what
 * came of it there, else the refusal. */
must_use struct error *errand_follow(struct errand_walk *walk, struct errand_wish *wish,
                                     struct error *refusal);
/* Is the run that was asked not there, or has it ended? Then there is nothing left to do. */
bool errand_is_void(const struct error *err);
/* Starts a child, tells its parent, gives it its first decision (errands_child.c). */
must_use struct error *errand_start_child(struct errand_walk *walk);
/* Ends children of a closed run as their policies say, a portion of them (errands_child.c). */
must_use struct error *errand_end_children(struct errand_walk *walk);
/* A child that was started may have ended long ago: then its parent is told
 * (errands_closed.c). */
must_use struct error *errand_tell_closed(struct errand_walk *walk,
                                          const STORED(PendingChild) *child, const char *run_id);
/* A child that waits finds out whether its parent knows it (errands_orphan.c). */
must_use struct error *errand_ask_parent(struct errand_walk *walk);
/* Does a request that was accepted (requests.c). */
must_use struct error *errand_do_request(struct errand_walk *walk);
/* What clients did to events that lost happens again (reapply.c). */
must_use struct error *errand_reapply(struct errand_walk *walk);
/* A start, or a signal with a start, as one step. `range_id`, `dropped`: of the row of the outbox
 * that asks for it, which goes with the step; 0: none does. */
struct start_wish {
    const struct start_command *command;
    struct start_answer *answer;
    uint64_t range_id, dropped;
    int64_t parent_version; /* as in shard_step */
    bool is_call;           /* of a client: the limit of the workflow id holds */
};
must_use struct error *engine_step_start(struct engine *engine, const char *domain_id,
                                         struct start_wish *wish, struct arena *arena);
/* What the end of a parent means for a child, as a step of the child: its policy says. */
struct end_wish {
    const STORED(PendingChild) *child;
    struct origin origin;
};
must_use struct error *errand_decide_end_child(void *end_wish, struct step *step);

#endif
