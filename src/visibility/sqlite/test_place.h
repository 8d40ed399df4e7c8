/* test_place.h - a folder and a real ground for one test, and a database file in it. */
#ifndef CADENZA_VISIBILITY_SQLITE_TEST_PLACE_H
#define CADENZA_VISIBILITY_SQLITE_TEST_PLACE_H

#include "base/test.h"
#include "visibility/sqlite/test_runs.h"

struct place {
    struct arena *arena;
    char *folder; /* removed at the end */
    char *path;   /* in it: of the database */
    struct attribute_set *attributes;
};

/* A new place, and its end. */
void place_begin(struct place *place);
void place_end(struct place *place);
/* Runs a test as a fiber in the place, with two loops; in a place of its own. */
void place_run_in(struct place *place, void (*run)(struct place *place, void *argument),
                  void *argument);
void place_run(void (*run)(struct place *place, void *argument), void *argument);
/* Opens the database, which must succeed. Yields. */
struct visibility *place_open(struct place *place);
/* Removes all files. */
void place_clear(struct place *place);
/* How many files of the folder have this text in their name. */
int place_count_files(struct place *place, const char *text);

/* Feeds runs first .. end - 1 to shard 1, with rows one above the number. Yields. */
void place_feed(struct place *place, struct visibility *visibility, uint64_t first, uint64_t end);
/* The count of a query's runs. Yields. */
int64_t place_count(struct place *place, struct visibility *visibility, const char *query);

#endif
