/* contract_lineage.c - lineages that share nodes read as one history each, and are deleted without
 * harm to others. */
#include "base/random.h"
#include "base/test.h"
#include "store/history_lineage.h"
#include "store/test/contract.h"

#define SHARD PARTITION_OF_SHARD(5)

static struct uuid
uuid_of(uint8_t number)
{
    struct uuid uuid = {{0}};
    uuid.bytes[15] = number;
    return uuid;
}

/* Adds a node to the line's own branch; its events are "branch:first-next". */
static void
add_node(struct contract *contract, struct batch *batch, const struct history_lineage *lineage,
         int64_t first, int64_t next, uint64_t sequence)
{
    struct history_branch own = history_lineage_own(lineage);
    struct history_node node = {.first_event_id = first, .next_event_id = next};
    node.range_id = 1;
    node.sequence = sequence;
    node.events = slice_text(arena_format(contract->arena, "%c:%lld-%lld", own.branch.bytes[15],
                                          (long long)first, (long long)next));
    batch_add_node(batch, &own, &node);
}

/* Writes nodes that begin at each of the ids and end where the next one begins; 0 is the last. */
static void
write_nodes(struct contract *contract, const struct history_lineage *lineage, const int64_t *ids)
{
    struct batch *batch = batch_new(contract->arena, SHARD, 1);
    for (; ids[1] != 0; ids++)
        add_node(contract, batch, lineage, ids[0], ids[1], (uint64_t)ids[0]);
    contract_commit(contract, batch, contract_guard(contract, SHARD));
    contract_flush(contract);
}

/* The pages of a read as "branch:first-next ... | ..."; what follows the first page is read on. */
static const char *
read_lineage(struct contract *contract, const struct history_lineage *lineage, int64_t from,
             int64_t to, size_t bytes_max)
{
    const char *list = "";
    struct error *(*reading)(struct store *, struct partition, const struct history_lineage *,
                             int64_t, int64_t, size_t, struct arena *, struct history_page *) =
        store_read_lineage;
    while (from < to) {
        struct history_page page;
        EXPECT_OK(
            reading(contract->store, SHARD, lineage, from, to, bytes_max, contract->arena, &page));
        EXPECT(page.count > 0 && page.next_event_id > from && page.next_event_id <= to);
        for (size_t i = 0; i < page.count; i++)
            list = arena_format(contract->arena, "%s%.*s ", list, SLICE_ARG(page.node[i].events));
        from = page.next_event_id;
        list = from < to ? arena_format(contract->arena, "%s| ", list) : list;
        reading = store_read_lineage_on;
    }
    return list;
}

static size_t
count_nodes(struct contract *contract)
{
    struct scan scan = {.partition = SHARD, .kind = ROW_HISTORY};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    return rows.count;
}

/* The lines of history_lineage.h. */
struct three {
    struct history_lineage a, b, c;
};

static struct three
write_three(struct contract *contract)
{
    struct history_branch root = {uuid_of('t'), uuid_of('a')};
    struct three three;
    three.a = history_lineage_root(&root, contract->arena);
    write_nodes(contract, &three.a, (int64_t[]){1, 3, 4, 6, 7, 0});
    three.b = history_lineage_fork(&three.a, 4, uuid_of('b'), contract->arena);
    write_nodes(contract, &three.b, (int64_t[]){4, 5, 6, 0});
    three.c = history_lineage_fork(&three.b, 5, uuid_of('c'), contract->arena);
    write_nodes(contract, &three.c, (int64_t[]){5, 8, 0});
    return three;
}

void
contract_a_fork_shares_the_nodes_before_it_and_copies_none(struct contract *contract)
{
    struct three three = write_three(contract);
    EXPECT_EQ(count_nodes(contract), 4 + 2 + 1);
    EXPECT_TEXT(read_lineage(contract, &three.a, 1, 7, 0), "a:1-3 a:3-4 a:4-6 a:6-7 ");
    EXPECT_TEXT(read_lineage(contract, &three.b, 1, 6, 0), "a:1-3 a:3-4 b:4-5 b:5-6 ");
    EXPECT_TEXT(read_lineage(contract, &three.c, 1, 8, 0), "a:1-3 a:3-4 b:4-5 c:5-8 ");
    EXPECT_EQ(history_lineage_holder(&three.c, 3).branch.bytes[15], 'a');
    EXPECT_EQ(history_lineage_holder(&three.c, 4).branch.bytes[15], 'b');
    EXPECT_EQ(history_lineage_holder(&three.c, 500).branch.bytes[15], 'c');
    /* From whichever line it is made, a fork stands on the same nodes. */
    struct history_lineage one = history_lineage_fork(&three.a, 3, uuid_of('d'), contract->arena);
    struct history_lineage other = history_lineage_fork(&three.c, 3, uuid_of('d'), contract->arena);
    EXPECT(one.count == 2 && other.count == 2);
    EXPECT(memcmp(one.spans, other.spans, 2 * sizeof *one.spans) == 0);
    contract_reopen(contract);
    EXPECT_TEXT(read_lineage(contract, &three.c, 1, 8, 0), "a:1-3 a:3-4 b:4-5 c:5-8 ");
}

void
contract_lines_over_many_branches_are_read_by_page_and_from_inside(struct contract *contract)
{
    struct three three = write_three(contract);
    EXPECT_TEXT(read_lineage(contract, &three.c, 1, 8, 1), "a:1-3 | a:3-4 | b:4-5 | c:5-8 ");
    EXPECT_TEXT(read_lineage(contract, &three.c, 1, 8, 6), "a:1-3 a:3-4 | b:4-5 c:5-8 ");
    EXPECT_TEXT(read_lineage(contract, &three.c, 2, 7, 0), "a:1-3 a:3-4 b:4-5 c:5-8 ");
    EXPECT_TEXT(read_lineage(contract, &three.c, 7, 8, 0), "c:5-8 ");
    EXPECT_TEXT(read_lineage(contract, &three.c, 4, 5, 0), "b:4-5 ");
    EXPECT_TEXT(read_lineage(contract, &three.b, 3, 4, 0), "a:3-4 ");
    struct history_page page;
    EXPECT_OK(
        store_read_lineage(contract->store, SHARD, &three.c, 5, 5, 0, contract->arena, &page));
    EXPECT(page.count == 0 && page.next_event_id == 5);
    EXPECT_KIND(
        store_read_lineage(contract->store, SHARD, &three.b, 1, 7, 0, contract->arena, &page),
        ERR_CORRUPT); /* event 6 is on line a alone */
}

void
contract_a_fork_where_no_node_ends_is_corruption(struct contract *contract)
{
    struct three three = write_three(contract);
    struct history_lineage cut = history_lineage_fork(&three.a, 5, uuid_of('d'), contract->arena);
    write_nodes(contract, &cut, (int64_t[]){5, 6, 0});
    struct history_page page;
    struct error *err =
        store_read_lineage(contract->store, SHARD, &cut, 1, 6, 0, contract->arena, &page);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "over the fork at event id 5") != NULL);
    EXPECT_TEXT(read_lineage(contract, &cut, 1, 4, 0), "a:1-3 a:3-4 "); /* before it all is well */
}

/* ---- random trees ---- */

#define LINES_MAX 12
#define ACTS      150

/* A line, and all its nodes as the model has them: copied at a fork. */
struct grown {
    struct history_lineage lineage;
    struct {
        int64_t next_event_id;
        const char *text;
    } node[ACTS];
    size_t count;
};

struct forest {
    struct contract *contract;
    struct random random;
    struct grown *grown[LINES_MAX];
    size_t count;
    uint64_t sequence;
};

static size_t
below(struct forest *forest, size_t bound)
{
    return (size_t)random_below(&forest->random, bound);
}

static int64_t
grown_next(const struct grown *grown)
{
    return grown->count == 0 ? 1 : grown->node[grown->count - 1].next_event_id;
}

static void
act_append(struct forest *forest)
{
    struct contract *contract = forest->contract;
    struct grown *grown = forest->grown[below(forest, forest->count)];
    int64_t first = grown_next(grown), next = first + 1 + (int64_t)below(forest, 4);
    struct batch *batch = batch_new(contract->arena, SHARD, 1);
    add_node(contract, batch, &grown->lineage, first, next, ++forest->sequence);
    contract_commit(contract, batch, contract_guard(contract, SHARD));
    grown->node[grown->count].next_event_id = next;
    grown->node[grown->count++].text = arena_format(
        contract->arena, "%c:%lld-%lld ", history_lineage_own(&grown->lineage).branch.bytes[15],
        (long long)first, (long long)next);
}

static void
act_fork(struct forest *forest)
{
    const struct grown *base = forest->grown[below(forest, forest->count)];
    if (forest->count == LINES_MAX || base->count == 0)
        return;
    struct grown *fork = arena_make(forest->contract->arena, struct grown);
    *fork = *base;
    fork->count = 1 + below(forest, base->count);
    fork->lineage = history_lineage_fork(&base->lineage, grown_next(fork),
                                         uuid_of((uint8_t)('a' + ++forest->sequence % 150)),
                                         forest->contract->arena);
    forest->grown[forest->count++] = fork;
}

/* All nodes that have events of [from, to). */
static const char *
expected(struct forest *forest, const struct grown *grown, int64_t from, int64_t to)
{
    const char *list = "";
    int64_t first = 1;
    for (size_t i = 0; i < grown->count; first = grown->node[i++].next_event_id)
        if (first < to && grown->node[i].next_event_id > from)
            list = arena_format(forest->contract->arena, "%s%s", list, grown->node[i].text);
    return list;
}

static void
act_read(struct forest *forest)
{
    const struct grown *grown = forest->grown[below(forest, forest->count)];
    int64_t end = grown_next(grown);
    int64_t from = 1 + (int64_t)below(forest, (size_t)end);
    int64_t to = from + (int64_t)below(forest, (size_t)(end - from) + 1);
    to = to > end ? end : to;
    from = from > to ? to : from;
    contract_flush(forest->contract);
    if (from < to)
        EXPECT_TEXT(read_lineage(forest->contract, &grown->lineage, from, to, 0),
                    expected(forest, grown, from, to));
}

void
contract_random_trees_of_lines_read_as_a_naive_model_says(struct contract *contract)
{
    struct forest forest = {.contract = contract};
    random_seed(&forest.random, test_seed(0));
    struct history_branch root = {uuid_of('t'), uuid_of('a')};
    forest.grown[0] = arena_make(contract->arena, struct grown);
    forest.grown[0]->lineage = history_lineage_root(&root, contract->arena);
    forest.count = 1;
    for (int i = 0; i < ACTS; i++) {
        size_t what = below(&forest, 20);
        if (what < 8)
            act_append(&forest);
        else if (what < 11)
            act_fork(&forest);
        else
            act_read(&forest);
    }
}
