/* test_place.h - a folder and a real ground for one test, and short ways to fill a store in it. */
#ifndef CADENZA_STORE_ROCKS_TEST_PLACE_H
#define CADENZA_STORE_ROCKS_TEST_PLACE_H

#include "store/rocks/test_load.h"

struct place {
    struct arena *arena;
    char *folder;             /* of the test, removed at its end */
    char *data;               /* in it: the data folder, not made yet */
    uint64_t fresh_bytes_max; /* see rocks.h; 0: as the load has it */
};

/* A new place, and its end. */
void place_begin(struct place *place);
void place_end(struct place *place);
/* Runs a test as a fiber in a place of its own, with two loops. */
void place_run(void (*run)(struct place *place));

/* The rest yields; an error fails the test. */

/* Opens the data folder with the options of the load. */
struct store *place_open(struct place *place);
/* A key of one number; puts a row "value" under it, at the guard there is. */
struct slice place_key(struct place *place, uint64_t number);
void place_put(struct place *place, struct store *store, struct partition partition,
               enum row_kind kind, uint64_t number);
/* All rows of a kind. */
size_t place_count(struct place *place, struct store *store, struct partition partition,
                   enum row_kind kind);
uint64_t place_guard(struct place *place, struct store *store, struct partition partition);

/* The largest file of a data folder's database with that ending. Does not yield. */
char *place_find_file(struct arena *arena, const char *data, const char *ending);
/* Cuts the zeros off that a log ends in (runway.c). Does not yield. */
void place_drop_runway(const char *log);
/* Runs a command of the shell, which must succeed. */
void place_shell(const char *command);

#endif
