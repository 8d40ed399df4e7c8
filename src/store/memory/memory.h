/* memory.h - the engine for simulation: rows in memory, with a model of what a crash does to
 * unsynced writes.
 *
 * The rows live in a base, outside of any host: it is the disk. A host opens a store on the base;
 * several hosts may open the same base at once (a shared store), or one alone (a local disk).
 * Commits that wait become a group, which is written after a seeded delay and durable after
 * another. When a host crashes, what it had in flight is lost, except a seeded prefix of the group
 * that was being written (it landed, nobody was notified). Readers see durable rows only.
 *
 * Works on linux too, without delays. A base takes no lock: the loop that opened a store does the
 * work for all loops of the process, so stores of one base must be opened on the same loop of a
 * process. In simulation all hosts share a thread, and this does not matter. */
#ifndef CADENZA_STORE_MEMORY_H
#define CADENZA_STORE_MEMORY_H

#include "store/store.h"

struct memory_base;

/* `seed` decides delays and what survives; 0: no delays. May be called outside of any host or
 * inside: its memory is in no host's heap. */
struct memory_base *memory_base_new(uint64_t seed);
/* No store may be open on it, except those of hosts that are gone. */
void memory_base_free(struct memory_base *base);
/* Upper bounds of the delays, ns, in place of the defaults. */
void memory_base_set_delays(struct memory_base *base, int64_t write_max, int64_t sync_max,
                            int64_t read_max);

size_t memory_base_rows(const struct memory_base *base);
/* Those of one kind, in all partitions. */
size_t memory_base_count(const struct memory_base *base, enum row_kind kind);
/* Commits that have reached the base so far. */
uint64_t memory_base_commits(const struct memory_base *base);
/* Points so far at which a crash makes a difference: a commit arrived, a group was written, a group
 * became durable. A test walks "crash at point k" for k = 1, 2, … */
uint64_t memory_base_points(const struct memory_base *base);
/* Commits that landed in a crash: their writer was never told. */
uint64_t memory_base_landed(const struct memory_base *base);
/* Commits that a crash took: nobody was notified that they are durable. */
uint64_t memory_base_lost(const struct memory_base *base);

/* Sees every put of a commit at the moment it becomes durable, in the order of the log: for
 * checkers. No yield; what it is shown is gone afterwards. */
struct memory_watch {
    void (*landed)(void *context, struct partition partition, enum row_kind kind, struct slice key,
                   struct slice value);
    void *context;
};
void memory_base_watch(struct memory_base *base, struct memory_watch watch);

/* From now on every write fails as a broken local log does, until memory_base_repair: a store
 * that meets it fails what is in flight and stays failed until it is opened again. */
void memory_base_break(struct memory_base *base);
void memory_base_repair(struct memory_base *base);

/* A backup: another base with what is durable in this one now; stores may be open on it. To be
 * freed. */
struct memory_base *memory_base_copy(const struct memory_base *base);
/* Sets the base back to a copy of it, as a backup is restored into a folder: its rows are the
 * copy's, and the guard of every shard is above all that it had. The stores on it say that they
 * lost memory (store_memory) until store_set_whole. No store may be open on it. */
void memory_base_restore(struct memory_base *base, const struct memory_base *copy);
/* Does it not say so, or not any more? */
bool memory_base_is_whole(const struct memory_base *base);

/* Several hosts may have it open from now on: no store on it is alone. */
void memory_base_share(struct memory_base *base);

/* Opens a store for the calling host (or the linux process), on the current loop. */
struct store *memory_open(struct memory_base *base);
/* To be called when the host that opened `store` has crashed: decides what of its writes in flight
 * landed, forgets the rest. `store` is a handle number, since the struct is gone with the host's
 * memory. Harmless for a store that was closed. */
uint64_t memory_handle(const struct store *store);
void memory_crash(struct memory_base *base, uint64_t handle);

#endif
