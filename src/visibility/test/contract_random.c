/* contract_random.c - random queries over random runs, beside the naive evaluator.
 *
 * Method: feed runs, change some, take some away; then ask, page by page, and compare with what a
 * look at each run finds, order included. See contract.h. */
#include <stdlib.h>

#include "base/test.h"
#include "visibility/evaluate.h"
#include "visibility/test/contract.h"

#define RUNS    60u
#define FEEDS   200
#define QUERIES 150

struct model_run {
    bool is_there;
    struct visibility_change change;
    struct visibility_row row;
};

struct model {
    struct random random;
    struct model_run runs[RUNS];
    uint64_t rows[2]; /* of two shards */
};

/* One random change, in the model at once. */
static struct visibility_change
next_change(struct visibility_contract *contract, struct model *model)
{
    unsigned number = (unsigned)random_below(&model->random, RUNS);
    struct model_run *run = &model->runs[number];
    struct sample_run sample = sample_random_run(&model->random, contract->arena, number);
    if (run->change.domain_id != NULL) /* a run does not change its domain */
        sample.domain_id = run->change.domain_id;
    sample.shard = number % 2;
    sample.row = model->rows[number % 2] += 1 + random_below(&model->random, 3);
    run->change = sample_change(contract->arena, &sample);
    run->is_there = random_below(&model->random, 6) != 0;
    visibility_read_row(&run->change, contract->attributes, contract->arena, &run->row);
    if (!run->is_there)
        run->change.info = (struct slice){0};
    return run->change;
}

static void
feed(struct visibility_contract *contract, struct model *model)
{
    for (int left = FEEDS; left > 0;) {
        struct visibility_change changes[20];
        size_t count = 1 + random_below(&model->random, 20);
        for (size_t i = 0; i < count; i++)
            changes[i] = next_change(contract, model);
        EXPECT_OK(visibility_feed(contract->visibility, changes, count, contract->attributes,
                                  contract->arena));
        left -= (int)count;
    }
}

/* --- the naive look ------------------------------------------------------------------------- */

struct sorting {
    const struct query *query;
    const struct model_run *run;
};

static int
compare(const void *one, const void *other)
{
    const struct sorting *a = one, *b = other;
    return query_compare_positions(
        a->query, query_order_value(a->query, &a->run->row), a->run->row.column[COLUMN_RUN_ID].text,
        query_order_value(b->query, &b->run->row), b->run->row.column[COLUMN_RUN_ID].text);
}

static const char *
naive_list(struct visibility_contract *contract, const struct model *model,
           const struct query *query, int64_t *count)
{
    struct sorting found[RUNS];
    size_t matches = 0;
    for (unsigned i = 0; i < RUNS; i++) {
        const struct model_run *run = &model->runs[i];
        if (run->is_there && strcmp(run->change.domain_id, "domain") == 0 &&
            query_matches(query->where, &run->row))
            found[matches++] = (struct sorting){query, run};
    }
    qsort(found, matches, sizeof found[0], compare);
    const char *list = "";
    for (size_t i = 0; i < matches; i++)
        list = arena_format(contract->arena, "%s%s%s", list, i == 0 ? "" : " ",
                            found[i].run->change.run_id);
    *count = (int64_t)matches;
    return list;
}

static void
ask(struct visibility_contract *contract, struct model *model)
{
    const char *text = sample_random_query(&model->random, contract->arena, RUNS);
    struct query query = visibility_contract_parse(contract, text);
    int64_t wanted_count;
    const char *wanted = naive_list(contract, model, &query, &wanted_count);
    size_t page_size = 1 + random_below(&model->random, RUNS + 10);
    const char *found = visibility_contract_list(contract, text, page_size);
    if (strcmp(found, wanted) != 0)
        TEST_FAIL("%s\n  found  %s\n  wanted %s", text, found, wanted);
    if (visibility_contract_count(contract, text) != wanted_count)
        TEST_FAIL("%s: counted wrongly", text);
}

void
visibility_contract_random_queries_find_what_a_naive_look_at_each_run_finds(
    struct visibility_contract *contract)
{
    uint32_t shards[] = {0, 1};
    for (int i = 0; i < test_seed_count(); i++) {
        struct model *model = arena_make(contract->arena, struct model);
        random_seed(&model->random, test_seed(i));
        feed(contract, model);
        for (int j = 0; j < QUERIES; j++)
            ask(contract, model);
        for (size_t j = 0; j < 2; j++)
            EXPECT_OK(visibility_forget(contract->visibility, shards[j], 0, contract->arena));
    }
}
