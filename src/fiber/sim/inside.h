/* inside.h - the parts of a world, for the files of this folder only.
 *
 * Memory: what the world owns (links, disks, itself) comes from the world's own heap, by
 * world_memory(); what host code holds by pointer and gives back (sockets, listeners, files,
 * workers) comes from the host's heap. The world reaches these through lists of the host (ends,
 * listeners, files, events), and a crash empties the lists before it frees the heap: nothing of the
 * world points into a heap that is gone. */
#ifndef CADENZA_FIBER_SIM_INSIDE_H
#define CADENZA_FIBER_SIM_INSIDE_H

#include <stddef.h>

#include "base/memory.h"
#include "fiber/core.h"
#include "fiber/sim/event.h"
#include "fiber/sim/world.h"

struct disk;

/* Messages on their way from one sender to one loop, in order. */
struct channel {
    struct list messages;
    size_t message_count;
    struct event arrival;
    struct sim_loop *to;
};

struct sim_loop {
    struct loop loop; /* first: the core knows only this */
    struct host *host;
    struct list inbox;        /* messages that have arrived and wait for the next tick */
    size_t message_count;     /* in the inbox and on the way: bounded */
    struct channel *channels; /* by sender: each loop of the host, then code on no loop */
    bool is_ready;
    size_t ready_index;  /* where it stands in the world's list of loops that can run */
    int64_t not_before;  /* a loop that has just ticked is busy until then */
    int64_t due_planned; /* what `due` is scheduled for; NEVER: not scheduled */
    struct event due;
};

struct platform {
    struct host *host;
};

struct host {
    struct platform platform;
    struct world *world;
    char *name;
    unsigned index;
    unsigned loop_count;
    struct sim_loop *loops;
    struct heap *heap;     /* of its present or last run; NULL before the first */
    struct random entropy; /* what its code takes for chance */
    int64_t skew;          /* of its wall clock */

    bool is_running;
    bool is_ending; /* the first fiber has returned, the others are being cancelled */
    void (*function)(void *argument);
    void *argument;
    void (*stop)(void *context); /* platform_on_stop */
    void *stop_context;
    bool is_stop_asked;
    struct event signal;
    struct event patience; /* ends when an orderly end takes too long */

    struct list events;    /* that die with it */
    struct list ends;      /* of connections: struct end */
    struct list listeners; /* struct listener */
    struct list files;     /* struct file: open handles */
    size_t pool_count;     /* pieces of work that wait in the pool */
    unsigned port_next;    /* for listeners on port 0 and for clients */

    struct disk *disk;
    bool is_disk_failing;
    uint64_t disk_writes;
    uint64_t crash_at; /* value of disk_writes that it does not survive; 0: none */
    void (*crashed)(void *context);
    void *crashed_context;
};

struct probe_count {
    char *name;
    uint64_t count;
};

struct world {
    struct world_options options;
    struct heap *heap; /* of all that the world owns but itself */
    int64_t now;
    struct priority events;
    uint64_t event_sequence;
    struct random choices;   /* for the test: world_random */
    struct random chance;    /* for everything that happens in the world */
    struct random crossings; /* for what becomes of messages between owners */
    struct sim_loop **ready; /* loops that can run now; in no order, but always in the same */
    size_t ready_count;
    size_t ready_room;
    struct host **hosts;
    unsigned host_count;
    bool *cuts;      /* host_count × host_count: [from × host_count + to] */
    int64_t *delays; /* the same: how much longer a way may take, ns */
    struct list links;
    uint64_t link_sequence;
    uint64_t steps;
    uint64_t hash;
    struct probe_count *probes; /* sorted by name */
    size_t probe_count;
    bool is_stepping;
};

/* --- world.c --------------------------------------------------------------------------------- */

/* Zeroed memory of the world, whichever heap is selected. Freed by memory_free. */
void *world_memory(struct world *world, size_t count, size_t size);
/* Resizes a block of the world, which may be NULL. */
void *world_memory_resize(struct world *world, void *block, size_t size);
char *world_text(struct world *world, const char *text);
/* Uniform in low … high, by the seed. */
int64_t world_between(struct world *world, int64_t low, int64_t high);
/* True once in `times`, by the seed. */
bool world_once_in(struct world *world, uint64_t times);
/* Adds a step to the hash; prints it if asked. `host` NULL: the world itself. */
void world_trace(struct world *world, const struct host *host, unsigned loop, enum step_kind kind,
                 const char *what, uint64_t number);
/* Adds bytes that a host let out. */
void world_trace_bytes(struct world *world, const void *bytes, size_t count);
struct host *world_find_host(struct world *world, const char *name, size_t length);
/* How much longer the way may take than usual; 0: it is not slow. */
int64_t world_delay(const struct world *world, const struct host *from, const struct host *to);
bool world_is_cut(const struct world *world, const struct host *from, const struct host *to);

/* trace.c: frees the names of probes. */
void probes_free(struct world *world);

/* --- run.c: loops ---------------------------------------------------------------------------- */

/* The loop and host that run this code; a check if there is none. */
struct sim_loop *sim_loop_self(void);
struct host *sim_host_self(void);
void sim_loop_init(struct sim_loop *loop, struct host *host, unsigned index);
/* Forgets messages, plans and readiness: before a start and after an end. */
void sim_loop_clear(struct sim_loop *loop);
void sim_loop_free(struct sim_loop *loop);
/* Runs one tick of a loop that can run. */
void sim_loop_step(struct sim_loop *loop);
/* Plans the next tick from what the core has to do. After everything that may have changed it. */
void sim_loop_plan(struct sim_loop *loop);
/* Makes a waiting fiber of `loop` runnable, from outside of any loop or from any loop of the host.
 */
void sim_loop_wake(struct sim_loop *loop, struct fiber *fiber);
/* Makes `loop` the current one and its host's heap the selected one, and back. */
struct surroundings {
    struct loop *loop;
    struct heap *heap;
};
struct surroundings sim_enter(struct sim_loop *loop);
void sim_leave(struct surroundings before);

/* port.c: whose blocking work runs now, on no loop; NULL: nobody's. */
void port_set_host_at_work(struct host *host);
bool port_is_at_work(void);

/* --- pool.c: what a fiber waits for, uncancellable ------------------------------------------ */

struct job {
    struct event event;
    struct sim_loop *loop;
    struct fiber *fiber;
    bool is_done;
};
/* Schedules `fire` after `delay` and waits until it has called job_done. Yields. The job may live
 * on the stack of the fiber: a crash forgets the event before it drops the stack. */
void job_wait(struct job *job, enum step_kind kind, uint64_t number, int64_t delay,
              void (*fire)(struct world *world, struct event *event));
void job_done(struct job *job);
/* Lets `delay` pass. Yields. Nothing on the loop's own stack, where nobody can wait. */
void job_pause(enum step_kind kind, int64_t delay);

/* --- host.c ---------------------------------------------------------------------------------- */

struct host *host_create(struct world *world, const char *name, unsigned loops);
void host_destroy(struct host *host);
/* host_crash for a step of the world: not from code of the host, which would be gone on return. */
void host_crash_inside(struct host *host);
/* Goes on with the end of a host whose first fiber has returned. After each of its steps. */
void host_advance_end(struct host *host);

#endif
