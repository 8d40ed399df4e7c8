/* test_load.h - a load whose traces can be judged: for the tests of this folder and the process
 * they kill.
 *
 * Each shard counts 1, 2, 3 ...; step n is one commit that leaves traces in several kinds of rows,
 * in both column families. From the count alone follows which rows must be there and which must
 * not, so that a lost, a doubled or a half commit shows. */
#ifndef CADENZA_STORE_ROCKS_TEST_LOAD_H
#define CADENZA_STORE_ROCKS_TEST_LOAD_H

#include "store/rocks/rocks.h"

#define LOAD_SHARDS_MAX 16
#define LOAD_IN_FLIGHT  4 /* commits of a shard that wait at a time */
/* No load has that many shards: what else a process tells, see test_child.c. */
enum { RESTORE_REPORTED = LOAD_SHARDS_MAX - 2, BACKUP_REPORTED = LOAD_SHARDS_MAX - 1 };

struct load {
    struct store *store;
    uint32_t shards;
    uint64_t steps;                  /* per shard: until its count is this */
    uint64_t acked[LOAD_SHARDS_MAX]; /* highest step of each shard that was said to be durable */
    size_t padding; /* bytes of a row that each step adds in each column family, not judged */
    void (*report)(uint32_t shard, uint64_t step); /* of each such step; may be NULL */
    bool has_failed;
    const char *complaint; /* a failure that is against the contract; NULL: none */
};

/* Options of the data folder that all these tests use: memtables so small that they are often
 * flushed. */
struct rocks_options load_options(const char *path);
/* Runs one fiber per shard until all are done or the store fails. Yields. */
void load_run(struct load *load);
/* NULL if the store holds what the load left, and at least what was acked; else what is wrong.
 * Yields. */
const char *load_verify(struct store *store, uint32_t shards, const uint64_t *acked,
                        struct arena *arena);

/* A new folder under the system's place for such, real path; and its end. */
char *folder_make_temporary(struct arena *arena);
void folder_remove(const char *path);

#endif
