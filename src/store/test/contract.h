/* contract.h - the promises of store.h as tests that run on any engine.
 *
 * An engine's test program says how to make a store and calls the suite, one TEST per promise:
 *
 *   static const struct contract_engine engine = {.name = "memory", .open = ..., ...};
 *   static void run(void (*test)(struct contract *)) { ... contract_run(&engine, test) ... }
 *   #define X(title) TEST(memory, title) { run(contract_##title); }
 *   CONTRACT_TESTS(X)
 *
 * contract_run needs a fiber; give the platform two loops, or the tests of several loops have only
 * one to work with. A failed expectation on a fiber ends the program. With `flush` every test reads
 * from where flushed rows are; run the suite twice, without and with it, if the engine has both. */
#ifndef CADENZA_STORE_TEST_CONTRACT_H
#define CADENZA_STORE_TEST_CONTRACT_H

#include "store/store.h"

struct contract_engine {
    const char *name;
    void *context; /* given to the functions below; they may yield */
    /* A new store with no rows. */
    struct store *(*open)(void *context);
    /* Closes the store and opens the same data again. */
    struct store *(*reopen)(void *context, struct store *store);
    /* Moves rows to where old ones are kept. NULL: rows stay where they were written. */
    void (*flush)(void *context, struct store *store);
    /* Closes the store and forgets its data. */
    void (*close)(void *context, struct store *store);
};

/* What a test gets. */
struct contract {
    const struct contract_engine *engine;
    struct store *store;
    struct arena *arena;
};

/* Opens a store, runs the test on it, closes it. Yields. */
void contract_run(const struct contract_engine *engine, void (*test)(struct contract *contract));

/* X(title): void contract_<title>(struct contract *contract) */
#define CONTRACT_TESTS(X)                                                                          \
    /* contract_rows.c: rows and reading them */                                                   \
    X(a_new_store_has_no_guards_and_no_rows)                                                       \
    X(a_row_is_read_as_it_was_put)                                                                 \
    X(a_deleted_row_is_gone_and_its_neighbours_stay)                                               \
    X(steps_of_a_batch_take_effect_in_their_order)                                                 \
    X(keys_of_any_bytes_come_in_order)                                                             \
    X(a_scan_stays_inside_its_kind_and_partition)                                                  \
    X(a_scan_obeys_from_and_to)                                                                    \
    X(a_scan_backwards_is_a_scan_turned_round)                                                     \
    X(pages_by_rows_or_bytes_add_up_to_the_whole)                                                  \
    X(a_range_delete_takes_exactly_its_range)                                                      \
    X(rows_put_once_are_deleted_once)                                                              \
    X(a_value_may_be_empty_or_eight_mebibytes)                                                     \
    /* contract_walk.c: partitions side by side */                                                 \
    X(a_walk_meets_every_partition_once)                                                           \
    X(task_lists_with_names_alike_do_not_mix)                                                      \
    /* contract_guard.c: guards and owners */                                                      \
    X(a_commit_with_another_guard_writes_nothing)                                                  \
    X(an_older_owner_is_fenced_for_ever)                                                           \
    X(of_owners_that_race_one_wins_each_round)                                                     \
    X(a_fenced_raise_takes_what_is_behind_it_down)                                                 \
    /* contract_confirm.c: owners that ask whether they still are */                               \
    X(an_owner_is_confirmed_until_it_is_overtaken)                                                 \
    X(a_confirmation_has_its_place_among_the_batches)                                              \
    X(a_confirmation_writes_nothing_and_needs_no_room)                                             \
    X(who_was_confirmed_had_not_been_overtaken_before)                                             \
    X(a_read_gives_the_guard_of_its_moment)                                                        \
    /* contract_writer.c: writers, and readers beside them */                                      \
    X(tickets_become_durable_in_order)                                                             \
    X(who_waited_for_a_commit_reads_it_on_every_loop)                                              \
    X(readers_never_see_half_a_batch)                                                              \
    X(a_wait_that_is_cancelled_leaves_the_batch_alone)                                             \
    X(a_writer_has_room_for_as_many_as_it_was_told)                                                \
    X(what_was_written_is_there_after_opening_again)                                               \
    /* contract_history.c: history nodes */                                                        \
    X(nodes_are_read_in_order_of_events)                                                           \
    X(a_history_page_ends_at_its_limit)                                                            \
    X(a_read_inside_a_node_begins_with_that_node)                                                  \
    X(orphans_are_never_read)                                                                      \
    X(an_orphan_that_begins_inside_a_node_is_not_read)                                             \
    X(a_read_goes_on_where_a_page_ended)                                                           \
    X(a_missing_node_is_corruption_that_names_its_place)                                           \
    X(deleted_nodes_are_gone_and_other_branches_stay)                                              \
    /* contract_lineage.c: lineages that share nodes */                                            \
    X(a_fork_shares_the_nodes_before_it_and_copies_none)                                           \
    X(lines_over_many_branches_are_read_by_page_and_from_inside)                                   \
    X(a_fork_where_no_node_ends_is_corruption)                                                     \
    X(random_trees_of_lines_read_as_a_naive_model_says)                                            \
    /* contract_model.c: random batches beside a naive model */                                    \
    X(random_batches_leave_what_a_naive_model_says)

#define X(title) void contract_##title(struct contract *contract);
CONTRACT_TESTS(X)
#undef X

/* --- for the files of the suite --------------------------------------------------------------- */

/* A slice of a literal; a key of one number. */
#define TEXT(literal) slice_of((literal), sizeof(literal) - 1)
struct slice contract_key(struct contract *contract, uint64_t number);
/* Commits, which must succeed. */
void contract_commit(struct contract *contract, const struct batch *batch, uint64_t guard_expected);
/* Puts one row; the guard is and stays `guard`, or becomes it if it was 0. */
void contract_put(struct contract *contract, struct partition partition, uint64_t guard,
                  enum row_kind kind, struct slice key, struct slice value);
/* Between writing and reading: flushes, if the engine is to be flushed. */
void contract_flush(struct contract *contract);
/* Closes and opens again. */
void contract_reopen(struct contract *contract);
/* The row's value as a text in the arena; NULL: no such row. */
const char *contract_get(struct contract *contract, struct partition partition, enum row_kind kind,
                         struct slice key);
/* All rows of a scan as "key=value key=value": keys and values must be texts. */
const char *contract_list(struct contract *contract, const struct scan *scan);
uint64_t contract_guard(struct contract *contract, struct partition partition);

#endif
