/* incoming.h - events of another cluster on their way into a workflow id: what the files that take
 * them in share. Only the files of incoming/ and repair/ include it.
 *
 *   incoming.c      locks, loads, reads, applies, submits, waits
 *   read.c          what has to be read before: the history that wins, the base run of a reset
 *   apply.c         the batch becomes part of a history of its run
 *   prior.c         what the source is asked for before a run gives way
 *   current_run.c   which run has the workflow id
 *   lost.c          what lost is kept in mind
 *   check.c         what must be true of it */
#ifndef CADENZA_ENGINE_INCOMING_INCOMING_H
#define CADENZA_ENGINE_INCOMING_INCOMING_H

#include "engine/replicated.h"
#include "engine/shard/context.h"
#include "engine/shard/inside.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"

struct incoming {
    struct tenure *tenure;
    const struct replicated_events *events;
    struct arena *arena;
    struct replicated_outcome *outcome;
    struct replicated_batch batch;
    const char *begun_run_id;   /* of the run that continues this one; NULL: none is known */
    struct workflow *workflow;  /* locked */
    struct loaded_run *target;  /* NULL: the run is not here */
    bool target_was_zombie;     /* before the batch */
    struct loaded_run *current; /* has the workflow id; NULL: none has; may be the target */
    bool has_begun_run;         /* the run that continues it is here already */
    /* The newest runs of what the run and the one that continues it belong to, which may have the
     * id then; NULL: none, or not here. */
    struct loaded_run *candidates[2];
    bool lacks_prior; /* the run that it begins from is not here */
    /* The run has something that is in no history, from before memory was lost: it becomes what its
     * history says. */
    bool drops_buffered;
    /* So has the run with the workflow id, which gives way: it is to be rebuilt first. */
    bool forgets_current;
    struct run_branches local;
    struct batch_verdict verdict;
    /* The run as another history of it says, or a reset's, up to where the batch begins; and
     * batches of that which go with the step. */
    struct run *rebuilt;
    vector_of(struct history_node) nodes;
    struct step_context context;
    ticket_t ticket; /* to wait for */
};

/* --- read.c; these yield ---- */

/* Reads what the verdict needs. May change it: a base run that is not here is a gap. Errors: the
 * store's; ERR_BAD_REQUEST, the batch begins inside another. */
must_use struct error *incoming_read(struct incoming *incoming);

/* A run with its names and without anything else; its branch. */
struct run *incoming_name_run(const struct run_key *key);
void incoming_name_branch(struct run *run, const struct history_branch *branch);

/* --- rebuild.c; yields ---- */

/* The open run is what its history says: what is buffered goes, attempts start again. The lock of
 * the id is held, and all of the run is in the store. A commit of its own. `outcome` NULL: not
 * wanted. Errors: the store's, ERR_SERVICE_BUSY. */
must_use struct error *incoming_rebuild(struct tenure *tenure, struct workflow *workflow,
                                        struct loaded_run *loaded, struct arena *arena,
                                        struct run_rebuilt *outcome, ticket_t *ticket);

/* --- the rest does not yield ---- */

/* One run of the step. */
struct incoming_run {
    struct mutation *mutation;
    struct loaded_run *loaded; /* NULL: it begins */
};

/* --- check.c ---- */

/* Aborts unless what is said there holds: of a batch whose place is known, until the step is made;
 * of the step, before it is submitted. */
struct incoming_step;
void incoming_check(const struct incoming *incoming);
void incoming_step_check(const struct incoming *incoming, const struct incoming_step *step);

/* --- apply.c ---- */

/* The step as the batch means it for its run, and for the one that continues it. Error:
 * ERR_BAD_REQUEST, an event does not fit: all is as before. */
struct incoming_step {
    struct incoming_run target;
    struct incoming_run begun;      /* mutation NULL: none */
    struct incoming_run suppressed; /* the run that had the workflow id and gives way; or NULL; it
                                     * is the target's mutation if the batch is not the run's */
    struct incoming_run revived;    /* a third run that has the id now, and is open; or NULL */
    bool is_side;                   /* the batch goes to a history that is not the run's */
    struct history_branch branch;   /* that one's own */
    bool target_is_current;
    struct run *holder; /* has the workflow id afterwards; NULL: as before */
};
must_use struct error *incoming_apply(struct incoming *incoming, struct incoming_step *step);
void incoming_cancel(struct incoming *incoming, struct incoming_step *step);
/* Writes the batch of a history that is not the run's. */
void incoming_put_side(const struct incoming *incoming, const struct incoming_step *step,
                       struct step_batch *batch);

/* --- prior.c ---- */

/* The run that a new one goes on from, or that it has its first events of; NULL: none. */
const char *incoming_origin(const struct incoming *incoming);
/* Is there another run that the source is to be asked for, before the step is made? Then the
 * outcome says so. */
bool incoming_lacks_origin(const struct incoming *incoming);
bool incoming_lacks_end(const struct incoming *incoming, const struct incoming_step *step);

/* --- current_run.c ---- */

/* Did this cluster lose memory since it wrote the run last? Then it must not write with that
 * version again: others may have what it does not remember. What was buffered is in their history
 * if it was written there before memory was lost. */
bool incoming_has_lost(const struct incoming *incoming, const struct run *run);

/* Reads the runs that may have the id afterwards. Yields. */
must_use struct error *incoming_load_candidates(struct incoming *incoming);
/* Would the run that has the id, open, give way to another if the step is made? */
bool incoming_gives_way(const struct incoming *incoming, const struct incoming_step *step);
/* Gives the workflow id to the run that leads. */
void incoming_contest(struct incoming *incoming, struct incoming_step *step);
/* The context for the end of a run that gives way: it has the version of its last event. */
const struct run_context *incoming_context_to_end(const struct incoming *incoming,
                                                  const struct run *run);
/* A mutation of a run as a step of its own, for commands. */
struct step incoming_step_of(const struct incoming *incoming, struct mutation *mutation);

/* --- lost.c ---- */

/* Did a client cause the event, so that it has to happen again if it lost? */
bool incoming_is_of_client(const API(HistoryEvent) *event);
/* Rows that say what lost with this step: what clients caused is to happen again. */
void incoming_send_lost(struct incoming *incoming, struct incoming_step *step);
/* And for people: which histories lost, from where on. */
void incoming_put_lost(const struct incoming *incoming, const struct incoming_step *step,
                       struct step_batch *batch);

#endif
