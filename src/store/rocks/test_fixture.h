/* test_fixture.h - a folder and a real platform for one test, and short ways to fill a store in it.
 */
#ifndef CADENZA_STORE_ROCKS_TEST_FIXTURE_H
#define CADENZA_STORE_ROCKS_TEST_FIXTURE_H

#include "store/rocks/test_load.h"

struct rocks_fixture {
    struct arena *arena;
    char *folder;             /* of the test, removed at its end */
    char *data;               /* in it: the data folder, not made yet */
    uint64_t fresh_bytes_max; /* see rocks.h; 0: as the load has it */
};

/* A new place, and its end. */
void rocks_fixture_begin(struct rocks_fixture *rocks_fixture);
void rocks_fixture_end(struct rocks_fixture *rocks_fixture);
/* Runs a test as a fiber in a place of its own, with two loops. */
void rocks_fixture_run(void (*run)(struct rocks_fixture *rocks_fixture));
#define ROCKS_TEST(suite, title, ...)                                                              \
    TEST_IN(suite, title, struct rocks_fixture *rocks_fixture, rocks_fixture_run(body),            \
            ##__VA_ARGS__)

/* The rest yields; an error fails the test. */

/* Opens the data folder with the options of the load. */
struct store *rocks_fixture_open(struct rocks_fixture *rocks_fixture);
/* A key of one number; puts a row "value" under it, at the guard there is. */
struct slice rocks_fixture_key(struct rocks_fixture *rocks_fixture, uint64_t number);
void rocks_fixture_put(struct rocks_fixture *rocks_fixture, struct store *store,
                       struct partition partition, enum row_kind kind, uint64_t number);
/* All rows of a kind. */
size_t rocks_fixture_count(struct rocks_fixture *rocks_fixture, struct store *store,
                           struct partition partition, enum row_kind kind);
uint64_t rocks_fixture_guard(struct rocks_fixture *rocks_fixture, struct store *store,
                             struct partition partition);

/* The largest file of a data folder's database with that ending. Does not yield. */
char *rocks_fixture_find_file(struct arena *arena, const char *data, const char *ending);
/* Cuts the zeros off that a log ends in (runway.c). Does not yield. */
void rocks_fixture_drop_runway(const char *log);
/* Runs a command of the shell, which must succeed. */
void rocks_fixture_shell(const char *command);

#endif
