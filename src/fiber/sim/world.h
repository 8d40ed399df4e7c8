/* world.h - a simulated world: hosts, a network between them, disks, one virtual clock, one seed.
 *
 * Everything happens on one thread. The world picks, by its seed, which runnable loop of which host
 * ticks next; when nobody can run it jumps to the next event. So the same seed and the same program
 * give the same trace, and an hour passes in seconds. Nothing may depend on addresses, hash order
 * of pointers, or real time.
 *
 * A host is a process on a machine with a disk. Crashing it drops its fibers, memory (its heap,
 * base/memory.h), connections and unsynced writes at once, without any cleanup code. Its disk
 * stays; starting it again runs its main function again. The caller (a test) runs outside all hosts
 * and between steps of the world. */
#ifndef CADENZA_FIBER_WORLD_H
#define CADENZA_FIBER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "fiber/fiber.h"

struct world;
struct host;

/* How messages go between the owners of a cluster (loop_crossing). Environment: CADENZA_MESSAGES is
 * "whole", "bytes" or "fail" for worlds that leave it to their seed. */
enum world_messages {
    MESSAGES_BY_SEED, /* whole, bytes and fail in turn */
    MESSAGES_WHOLE,   /* as in a process */
    MESSAGES_BYTES,   /* each is written and read again */
    MESSAGES_FAIL,    /* and those that may be are lost, or come twice */
};

struct world_options {
    uint64_t seed;
    enum world_messages messages;
    int64_t latency_min, latency_max;           /* network, one way, ns; 0, 0: 100 µs … 2 ms */
    int64_t disk_latency_min, disk_latency_max; /* per write or sync; 0, 0: 50 µs … 3 ms */
    int64_t mailbox_delay_max;                  /* between loops; 0: 20 µs */
    int64_t clock_skew_max; /* each host's wall clock is off by up to this; 0: none */
    bool print_trace;       /* one line per step to standard error, for replays */
};
#define world_new(...) world_create(&(struct world_options){__VA_ARGS__})
struct world *world_create(const struct world_options *options);
/* Ends all hosts as by a crash and frees the world. */
void world_free(struct world *world);

/* A host with `loops` loops and an empty disk, not running yet. Its address is its name: sockets
 * connect to "name:port"; a listener on any host part listens on this host. */
struct host *world_add_host(struct world *world, const char *name, unsigned loops);
const char *host_name(const struct host *host);
/* Runs function(argument) as the first fiber of loop 0. `argument` belongs to the caller, outside
 * the host's heap. */
void host_start(struct host *host, void (*function)(void *argument), void *argument);
bool host_is_running(const struct host *host);
/* Not any more; a `done` for world_run_until. */
bool host_has_ended(void *host);
/* As SIGTERM: calls what platform_on_stop asked for. The host is done when its first fiber has
 * returned. */
void host_stop(struct host *host);
/* Like pulling the plug. */
void host_crash(struct host *host);
/* Crashes the host at its `count`-th disk write or sync from now (1: the next), before it takes
 * effect in full: a test walks count = 1, 2, … to crash at every write point. 0 switches it off. */
void host_crash_at_write(struct host *host, uint64_t count);
/* Disk writes and syncs so far. */
uint64_t host_disk_writes(const struct host *host);
/* Called for every crash of the host, after its memory is gone: for models of shared things outside
 * (a store). */
void host_on_crash(struct host *host, void (*crashed)(void *context), void *context);
/* Sets the wall clock of the host ahead, or back if negative, from now on and over its restarts;
 * the monotonic clock stays. Nobody is notified. */
void host_set_clock(struct host *host, int64_t nanoseconds);
/* Blocks in the host's heap; 0 after a clean stop, or it leaks. */
size_t host_heap_blocks(const struct host *host);

/* Cuts the way from → to: bytes vanish into silence (connections hang; they break when healed or by
 * the timeouts of their users). One way; call twice for both. */
void world_cut(struct world *world, struct host *from, struct host *to);
void world_heal(struct world *world, struct host *from, struct host *to);
/* Makes the way from → to slow: each piece may take up to `delay_max` ns longer. 0: as usual again.
 */
void world_slow(struct world *world, struct host *from, struct host *to, int64_t delay_max);
/* Resets all open connections between two hosts, as a proxy that restarts. */
void world_break(struct world *world, struct host *one, struct host *other);
/* While true, every file write and sync of the host fails with ERR_IO / no space. */
void host_fail_disk(struct host *host, bool is_failing);

/* From now on no message between owners is lost or comes twice: what is looked at once all is calm
 * has an answer each time. */
void world_relent(struct world *world);

/* The virtual clock, monotonic ns from 0; wall time is this plus a fixed start in 2026 plus the
 * host's skew, which host_set_clock moves. */
int64_t world_now(const struct world *world);
/* One step. False: nothing can happen any more (no runnable fiber, no pending event). */
bool world_step(struct world *world);
/* Steps until the clock has passed `nanoseconds` more. */
void world_run_for(struct world *world, int64_t nanoseconds);
/* Steps until done(context) or `nanoseconds` have passed; returns done's last result. */
must_use bool world_run_until(struct world *world, bool (*done)(void *context), void *context,
                              int64_t nanoseconds);
/* The world's own generator, for the test's choices; part of the seed. */
struct random *world_random(struct world *world);
/* Hash over every step so far: the same seed gives the same number. */
uint64_t world_trace_hash(const struct world *world);
uint64_t world_steps(const struct world *world);

/* Probes: a scenario shows what happened in it. Host code calls world_probe through probe.h. */
void world_probe(struct world *world, const char *name);
uint64_t world_probe_count(const struct world *world, const char *name);
void world_print_probes(const struct world *world);

#endif
