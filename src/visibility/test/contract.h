/* contract.h - the promises of visibility.h as tests that run on any engine.
 *
 *   static const struct visibility_subject subject = {.open = ..., ...};
 *   #define X(title, ...) TEST(memory, title, ##__VA_ARGS__)
 *       { visibility_contract_run(&subject, visibility_contract_##title); }
 *   VISIBILITY_CONTRACT(X)
 *
 * If the engine yields, all of it must run on a fiber. */
#ifndef CADENZA_VISIBILITY_TEST_CONTRACT_H
#define CADENZA_VISIBILITY_TEST_CONTRACT_H

#include "visibility/test/sample.h"
#include "visibility/visibility.h"

struct visibility_subject {
    void *context; /* given to the functions below */
    /* A new one without runs. */
    struct visibility *(*open)(void *context);
    /* Closes it and opens the same data again; NULL: it has none that would stay. */
    struct visibility *(*reopen)(void *context, struct visibility *visibility);
    /* Closes it and forgets its data. */
    void (*close)(void *context, struct visibility *visibility);
};

/* What a test gets. */
struct visibility_contract {
    const struct visibility_subject *subject;
    struct visibility *visibility;
    struct attribute_set *attributes;
    const struct query_clusters *clusters; /* for queries by ActiveCluster; NULL: not known */
    struct arena *arena;
};

/* Opens, runs the test, closes. */
void visibility_contract_run(const struct visibility_subject *subject,
                             void (*test)(struct visibility_contract *contract));

/* X(title, ids of the catalogue...): void visibility_contract_<title>(...) */
#define VISIBILITY_CONTRACT(X)                                                                     \
    /* contract_feed.c */                                                                          \
    X(a_new_one_knows_nothing)                                                                     \
    X(what_was_fed_is_listed_as_it_was, "B-026")                                                   \
    X(a_later_change_replaces_the_run)                                                             \
    X(a_change_that_is_not_above_the_level_is_skipped)                                             \
    X(a_run_that_is_gone_is_listed_no_more)                                                        \
    X(levels_belong_to_their_shards)                                                               \
    X(to_forget_a_shard_leaves_the_others)                                                         \
    X(domains_do_not_see_each_other)                                                               \
    X(a_value_of_another_type_is_kept_and_not_found)                                               \
    X(a_set_may_go_when_it_has_fed)                                                                \
    X(all_is_there_after_opening_again)                                                            \
    /* contract_list.c */                                                                          \
    X(without_order_the_newest_comes_first, "B-006", "B-025")                                      \
    X(pages_add_up_to_the_whole, "B-027")                                                          \
    X(a_full_page_has_a_token_and_the_next_is_empty, "B-028")                                      \
    X(what_is_inserted_between_two_pages_moves_nothing)                                            \
    X(a_scan_meets_every_run_once, "B-029")                                                        \
    X(every_type_sorts_both_ways, "B-024")                                                         \
    X(a_count_is_the_length_of_the_list, "B-030")                                                  \
    X(a_token_that_is_none_is_refused)                                                             \
    X(queries_find_what_they_say, "B-013", "B-014", "B-016", "B-017", "B-018", "B-019", "B-020",   \
      "B-021", "B-022", "B-023")                                                                   \
    X(where_runs_are_active_is_asked_of_what_they_belong_to)                                       \
    /* contract_random.c */                                                                        \
    X(random_queries_find_what_a_naive_look_at_each_run_finds)

#define X(title, ...) void visibility_contract_##title(struct visibility_contract *contract);
VISIBILITY_CONTRACT(X)
#undef X

/* --- for the files of the suite -------------------------------------------------------------- */

/* Feeds one run, which must succeed. */
#define CONTRACT_FEED(contract, ...)                                                               \
    visibility_contract_feed((contract), &(const struct sample_run){__VA_ARGS__})
void visibility_contract_feed(struct visibility_contract *contract, const struct sample_run *run);
/* Takes a run away. */
void visibility_contract_feed_gone(struct visibility_contract *contract,
                                   const struct sample_run *run);
/* The run ids of all pages in "domain", with blanks between. */
const char *visibility_contract_list(struct visibility_contract *contract, const char *query,
                                     size_t page_size);
/* One page, which must succeed; the token of the one before. */
struct visibility_page visibility_contract_page(struct visibility_contract *contract,
                                                const struct visibility_question *question);
struct query visibility_contract_parse(struct visibility_contract *contract, const char *query);
int64_t visibility_contract_count(struct visibility_contract *contract, const char *query);

#endif
