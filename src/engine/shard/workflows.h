/* workflows.h - workflow ids in memory (workflows.c): the lock, the current-run record and the
 * loaded runs of each, and what is to be done once its steps are durable. */
#ifndef CADENZA_ENGINE_SHARD_WORKFLOWS_H
#define CADENZA_ENGINE_SHARD_WORKFLOWS_H

#include "base/map.h"
#include "engine/shard/shard.h"
#include "fiber/sync.h"

struct tenure;

struct loaded_run {
    struct list node; /* in workflow->runs */
    struct run *run;
    unsigned undurable; /* steps of it that are not durable yet */
    /* What watchers may know. */
    int64_t durable_next_event_id;
    bool is_durably_closed;
    bool is_replaced; /* by another history, in the step that is about to be submitted */
};

/* A workflow id that is in use or was lately. */
struct workflow {
    struct list node; /* in workflows.idle while nobody has a pin */
    const char *domain_id, *workflow_id;
    struct fiber_mutex lock;
    unsigned pins; /* fibers that hold it, and steps that are not durable */
    bool has_current;
    const STORED(CurrentRecord) *current; /* once has_current: NULL is none */
    struct arena *current_arena;
    struct list runs; /* struct loaded_run */
    ticket_t newest;  /* of the newest step of this id */
};

struct workflows {
    struct map *by_key;
    struct list idle;      /* without a pin, the longest unused first */
    struct list undurable; /* struct aftermath, by ticket */
    size_t weight;         /* ids and runs */
    size_t weight_max;
};

/* What a step leaves to be done once it is durable. */
#define STEP_RUNS_MAX 4 /* the run of the request, one that begins, gives way, has its id back */
struct aftermath {
    struct list node;
    ticket_t ticket;
    struct workflow *workflow; /* pinned */
    struct aftermath_run {
        struct loaded_run *loaded;
        int64_t next_event_id;
        bool is_closed, is_replaced;
    } runs[STEP_RUNS_MAX];
    size_t run_count;
};

void workflows_init(struct tenure *tenure, size_t weight_max);
void workflows_free(struct tenure *tenure);
/* The id, pinned and locked; workflow_unlock when done. Yields. */
must_use struct error *workflow_lock(struct tenure *tenure, const struct run_key *key,
                                     struct arena *arena, struct workflow **workflow);
void workflow_unlock(struct tenure *tenure, struct workflow *workflow);
/* Reads the current-run record, if it is not known. Locked. Yields. */
must_use struct error *workflow_load_current(struct tenure *tenure, struct workflow *workflow,
                                             struct arena *arena);
/* The run, from memory or the store; NULL: none. Locked. Yields. */
must_use struct error *workflow_load_run(struct tenure *tenure, struct workflow *workflow,
                                         const char *run_id, struct arena *arena,
                                         struct loaded_run **loaded);
/* The id as it is in memory, without pin and lock; NULL: not there. */
struct workflow *workflow_find(struct tenure *tenure, const struct run_key *key,
                               struct arena *arena);
struct loaded_run *workflow_find_run(const struct workflow *workflow, const char *run_id);
/* A run that a step began. */
struct loaded_run *workflow_add_run(struct tenure *tenure, struct workflow *workflow,
                                    struct run *run);
void workflow_set_current(struct workflow *workflow, const STORED(CurrentRecord) *current);
/* The run has another history for its own: it is as it was rebuilt. The old one is freed. */
void workflow_replace_run(struct loaded_run *loaded, struct run *run);
/* Pins the id until the ticket is durable. */
struct aftermath *workflow_add_aftermath(struct tenure *tenure, struct workflow *workflow,
                                         ticket_t ticket);
void aftermath_add_run(struct aftermath *aftermath, struct loaded_run *loaded);
/* Steps up to this ticket are durable. */
void workflows_release(struct tenure *tenure, ticket_t durable);

#endif
