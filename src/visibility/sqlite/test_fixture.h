/* test_fixture.h - a folder and a real platform for one test, and a database file in it. */
#ifndef CADENZA_VISIBILITY_SQLITE_TEST_FIXTURE_H
#define CADENZA_VISIBILITY_SQLITE_TEST_FIXTURE_H

#include "base/test.h"
#include "visibility/sqlite/test_runs.h"

struct visibility_fixture {
    struct arena *arena;
    char *folder; /* removed at the end */
    char *path;   /* in it: of the database */
    struct attribute_set *attributes;
};

/* A new place, and its end. */
void visibility_fixture_begin(struct visibility_fixture *visibility_fixture);
void visibility_fixture_end(struct visibility_fixture *visibility_fixture);
/* Runs a test as a fiber in the place, with two loops; in a place of its own. */
void visibility_fixture_run_in(struct visibility_fixture *visibility_fixture,
                               void (*run)(struct visibility_fixture *visibility_fixture,
                                           void *argument),
                               void *argument);
void visibility_fixture_run(void (*run)(struct visibility_fixture *visibility_fixture,
                                        void *argument),
                            void *argument);
/* Opens the database, which must succeed. Yields. */
struct visibility *visibility_fixture_open(struct visibility_fixture *visibility_fixture);
/* Removes all files. */
void visibility_fixture_clear(struct visibility_fixture *visibility_fixture);
/* How many files of the folder have this text in their name. */
int visibility_fixture_count_files(struct visibility_fixture *visibility_fixture, const char *text);

/* Feeds runs first .. end - 1 to shard 1, with rows one above the number. Yields. */
void visibility_fixture_feed(struct visibility_fixture *visibility_fixture,
                             struct visibility *visibility, uint64_t first, uint64_t end);
/* The count of a query's runs. Yields. */
int64_t visibility_fixture_count(struct visibility_fixture *visibility_fixture,
                                 struct visibility *visibility, const char *query);

#endif
