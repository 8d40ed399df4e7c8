/* contract_history.c - a branch of nodes reads as one lineage of events, whatever lies beside it.
 */
#include "base/test.h"
#include "store/history.h"
#include "store/test/contract.h"

#define SHARD PARTITION_OF_SHARD(3)

static struct history_branch
branch_of(uint8_t tree, uint8_t branch)
{
    struct history_branch result;
    memset(&result, 0, sizeof result);
    result.tree.bytes[15] = tree;
    result.branch.bytes[15] = branch;
    return result;
}

/* Adds a node whose events are "first-next@range.sequence". */
static void
add_node(struct contract *contract, struct batch *batch, const struct history_branch *branch,
         int64_t first, int64_t next, uint64_t range_id, uint64_t sequence)
{
    struct history_node node = {.first_event_id = first, .next_event_id = next};
    node.range_id = range_id;
    node.sequence = sequence;
    node.events = slice_text(arena_format(contract->arena, "%lld-%lld@%llu.%llu", (long long)first,
                                          (long long)next, (unsigned long long)range_id,
                                          (unsigned long long)sequence));
    batch_add_node(batch, branch, &node);
}

struct span {
    int64_t first, next;
    uint64_t range_id, sequence;
};

/* Writes nodes in one batch; they end with one whose first event id is 0. */
static void
write_nodes(struct contract *contract, const struct history_branch *branch, const struct span *span)
{
    struct batch *batch = batch_new(contract->arena, SHARD, 1);
    for (; span->first != 0; span++)
        add_node(contract, batch, branch, span->first, span->next, span->range_id, span->sequence);
    contract_commit(contract, batch, contract_guard(contract, SHARD));
    contract_flush(contract);
}

/* The pages of a read as "first-next@range.sequence ... | ...". */
static const char *
read_nodes(struct contract *contract, const struct history_branch *branch, int64_t from, int64_t to,
           size_t bytes_max)
{
    const char *list = "";
    while (from < to) {
        struct history_page page;
        EXPECT_OK(store_read_history(contract->store, SHARD, branch, from, to, bytes_max,
                                     contract->arena, &page));
        EXPECT(page.count > 0 && page.next_event_id > from && page.next_event_id <= to);
        for (size_t i = 0; i < page.count; i++)
            list = arena_format(contract->arena, "%s%.*s ", list, SLICE_ARG(page.node[i].events));
        from = page.next_event_id;
        list = from < to ? arena_format(contract->arena, "%s| ", list) : list;
    }
    return list;
}

void
contract_nodes_are_read_in_order_of_events(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1), before = branch_of(1, 0),
                          after = branch_of(1, 2), other = branch_of(2, 1);
    static const struct span neighbours[] = {{1, 9, 1, 1}, {9, 300, 1, 2}, {0}};
    write_nodes(contract, &before, neighbours);
    write_nodes(contract, &after, neighbours);
    write_nodes(contract, &other, neighbours);
    static const struct span spans[] = {
        {200, 301, 2, 9}, {1, 3, 1, 1}, {3, 4, 1, 2}, {4, 200, 1, 3}, {0}};
    write_nodes(contract, &branch, spans);
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 301, 0), "1-3@1.1 3-4@1.2 4-200@1.3 200-301@2.9 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 3, 200, 0), "3-4@1.2 4-200@1.3 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 2, 0), "1-3@1.1 "); /* reaches further */
    EXPECT_TEXT(read_nodes(contract, &branch, 200, 301, 0), "200-301@2.9 ");
    struct history_page page;
    EXPECT_OK(store_read_history(contract->store, SHARD, &branch, 4, 4, 0, contract->arena, &page));
    EXPECT_EQ(page.count, 0);
    EXPECT_EQ(page.next_event_id, 4);
    EXPECT_OK(
        store_read_history(contract->store, SHARD, &branch, 3, 301, 0, contract->arena, &page));
    EXPECT_EQ(page.node[1].first_event_id, 4);
    EXPECT_EQ(page.node[1].next_event_id, 200);
    EXPECT_EQ(page.node[2].range_id, 2);
    EXPECT_EQ(page.node[2].sequence, 9);
}

void
contract_a_history_page_ends_at_its_limit(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1);
    struct batch *batch = batch_new(contract->arena, SHARD, 1);
    for (int64_t i = 1; i <= 1000; i++)
        add_node(contract, batch, &branch, i, i + 1, 1, (uint64_t)i);
    contract_commit(contract, batch, 0);
    contract_flush(contract);
    const char *whole = read_nodes(contract, &branch, 1, 1001, 0);
    EXPECT(strchr(whole, '|') == NULL);
    EXPECT(strstr(whole, " 1000-1001@1.1000 ") != NULL);
    for (size_t limit = 1; limit < 20000; limit = limit * 3 + 1) {
        const char *paged = read_nodes(contract, &branch, 1, 1001, limit);
        const char *left = whole;
        for (; *paged != '\0'; paged++) /* the same, but for the page marks */
            if (*paged == '|')
                paged++;
            else
                EXPECT_EQ(*paged, *left++);
        EXPECT_EQ(*left, '\0');
    }
    struct history_page page;
    EXPECT_OK(
        store_read_history(contract->store, SHARD, &branch, 1, 1001, 1, contract->arena, &page));
    EXPECT_EQ(page.count, 1);
    EXPECT_OK(
        store_read_history(contract->store, SHARD, &branch, 1, 1001, 500, contract->arena, &page));
    EXPECT(page.count > 5 && page.count < 100);
}

void
contract_a_read_inside_a_node_begins_with_that_node(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1);
    static const struct span spans[] = {{1, 5, 1, 1}, {5, 9, 1, 2}, {9, 12, 2, 1}, {0}};
    write_nodes(contract, &branch, spans);
    EXPECT_TEXT(read_nodes(contract, &branch, 4, 5, 0), "1-5@1.1 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 8, 10, 0), "5-9@1.2 9-12@2.1 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 11, 12, 0), "9-12@2.1 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 6, 12, 1), "5-9@1.2 | 9-12@2.1 ");
}

/* Owner 3 lost the shard at event 5 and left nodes behind, longer and shorter than those of owner
 * 4; owner 2 had lost it at 5 as well. */
void
contract_orphans_are_never_read(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1);
    static const struct span spans[] = {
        {1, 3, 1, 1},   {3, 5, 1, 2},                                   /* owner 1 */
        {5, 6, 2, 1},   {6, 7, 2, 2},   {7, 20, 2, 3},                  /* owner 2: orphans */
        {5, 7, 3, 1},   {7, 9, 3, 2},   {9, 30, 3, 3},                  /* owner 3: orphans */
        {5, 8, 4, 1},   {8, 13, 4, 2},  {8, 12, 4, 1},  {13, 15, 4, 3}, /* owner 4 */
        {15, 17, 5, 1}, {15, 16, 4, 9}, {15, 19, 4, 8}, {0}};
    write_nodes(contract, &branch, spans);
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 17, 0),
                "1-3@1.1 3-5@1.2 5-8@4.1 8-13@4.2 13-15@4.3 15-17@5.1 ");
    static const char *const holder[] = {
        [1] = "1-3@1.1 ",    [2] = "1-3@1.1 ",    [3] = "3-5@1.2 ",    [4] = "3-5@1.2 ",
        [5] = "5-8@4.1 ",    [6] = "5-8@4.1 ",    [7] = "5-8@4.1 ",    [8] = "8-13@4.2 ",
        [9] = "8-13@4.2 ",   [10] = "8-13@4.2 ",  [11] = "8-13@4.2 ",  [12] = "8-13@4.2 ",
        [13] = "13-15@4.3 ", [14] = "13-15@4.3 ", [15] = "15-17@5.1 ", [16] = "15-17@5.1 "};
    for (int64_t id = 1; id < (int64_t)array_length(holder); id++)
        EXPECT_TEXT(read_nodes(contract, &branch, id, id + 1, 0), holder[id]);
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 17, 1),
                "1-3@1.1 | 3-5@1.2 | 5-8@4.1 | 8-13@4.2 | 13-15@4.3 | 15-17@5.1 ");
}

/* An orphan may begin at the very id that is asked for, inside a longer node of the run. Many
 * orphans: more than are looked at in one go. */
void
contract_an_orphan_that_begins_inside_a_node_is_not_read(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1), other = branch_of(1, 2);
    static const struct span spans[] = {{1, 5, 1, 1},  {5, 8, 1, 2},   {8, 10, 1, 3},
                                        {5, 10, 2, 1}, {10, 12, 2, 2}, {0}};
    write_nodes(contract, &branch, spans);
    EXPECT_TEXT(read_nodes(contract, &branch, 8, 10, 0), "5-10@2.1 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 8, 12, 1), "5-10@2.1 | 10-12@2.2 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 10, 12, 0), "10-12@2.2 ");
    struct span many[102] = {{1, 2, 1, 1}};
    for (int i = 1; i < 100; i++)
        many[i] = (struct span){i + 1, i + 2, 1, (uint64_t)i + 1};
    many[100] = (struct span){2, 200, 2, 1};
    write_nodes(contract, &other, many);
    EXPECT_TEXT(read_nodes(contract, &other, 90, 200, 0), "2-200@2.1 ");
    EXPECT_TEXT(read_nodes(contract, &other, 2, 3, 0), "2-200@2.1 ");
    EXPECT_TEXT(read_nodes(contract, &other, 1, 3, 0), "1-2@1.1 2-200@2.1 ");
    static const struct span chance[] = {/* an orphan of owner 1 ends where one of owner 2 begins */
                                         {1, 2, 1, 1}, {5, 6, 1, 2}, {2, 6, 2, 1},
                                         {6, 9, 2, 2}, {2, 9, 3, 1}, {0}};
    struct history_branch third = branch_of(1, 3);
    write_nodes(contract, &third, chance);
    EXPECT_TEXT(read_nodes(contract, &third, 6, 9, 0), "2-9@3.1 ");
}

/* Going on where a page ended takes no walk back, and the same nodes. */
void
contract_a_read_goes_on_where_a_page_ended(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1);
    static const struct span spans[] = {{1, 5, 1, 1},  {5, 8, 1, 2},   {8, 10, 1, 3},
                                        {5, 10, 2, 1}, {10, 12, 2, 2}, {0}};
    write_nodes(contract, &branch, spans);
    struct history_page page;
    EXPECT_OK(
        store_read_history_on(contract->store, SHARD, &branch, 5, 12, 1, contract->arena, &page));
    EXPECT(page.count == 1 && page.node[0].range_id == 2 && page.next_event_id == 10);
    EXPECT_OK(
        store_read_history_on(contract->store, SHARD, &branch, 10, 12, 1, contract->arena, &page));
    EXPECT(page.count == 1 && page.node[0].first_event_id == 10 && page.next_event_id == 12);
    EXPECT_KIND(
        store_read_history_on(contract->store, SHARD, &branch, 11, 12, 1, contract->arena, &page),
        ERR_CORRUPT);
}

static void
expect_corrupt(struct contract *contract, const struct history_branch *branch, int64_t from,
               int64_t to, const char *place)
{
    struct history_page page;
    struct error *err =
        store_read_history(contract->store, SHARD, branch, from, to, 0, contract->arena, &page);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "shard 3,") != NULL);
    EXPECT(strstr(err->message, "branch 00000000-0000-0000-0000-0000000000") != NULL);
    if (strstr(err->message, place) == NULL)
        TEST_FAIL("\"%s\" does not name \"%s\"", err->message, place);
}

void
contract_a_missing_node_is_corruption_that_names_its_place(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1), none = branch_of(1, 2);
    static const struct span spans[] = {{2, 3, 1, 1}, {3, 5, 1, 2}, {7, 9, 1, 3}, {0}};
    write_nodes(contract, &branch, spans);
    expect_corrupt(contract, &branch, 2, 9, "event id 5");
    expect_corrupt(contract, &branch, 6, 9, "event id 6");
    expect_corrupt(contract, &branch, 7, 10, "event id 9");
    expect_corrupt(contract, &branch, 1, 3, "event id 1");
    expect_corrupt(contract, &branch, 20, 21, "event id 20");
    expect_corrupt(contract, &none, 1, 3, "event id 1");
    EXPECT_TEXT(read_nodes(contract, &branch, 2, 5, 0), "2-3@1.1 3-5@1.2 ");
    EXPECT_TEXT(read_nodes(contract, &branch, 7, 9, 0), "7-9@1.3 ");
}

void
contract_deleted_nodes_are_gone_and_other_branches_stay(struct contract *contract)
{
    struct history_branch branch = branch_of(1, 1), other = branch_of(1, 0xff);
    static const struct span spans[] = {{1, 3, 1, 1}, {3, 5, 1, 2}, {5, 9, 1, 3}, {0}};
    write_nodes(contract, &branch, spans);
    write_nodes(contract, &other, spans);
    struct batch *batch = batch_new(contract->arena, SHARD, 1);
    batch_delete_nodes(batch, &branch, 3);
    add_node(contract, batch, &branch, 3, 4, 1, 4);
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 4, 0), "1-3@1.1 3-4@1.4 ");
    expect_corrupt(contract, &branch, 1, 5, "event id 4");
    EXPECT_TEXT(read_nodes(contract, &other, 1, 9, 0), "1-3@1.1 3-5@1.2 5-9@1.3 ");
    batch = batch_new(contract->arena, SHARD, 1);
    batch_delete_nodes(batch, &other, INT64_MIN);
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    expect_corrupt(contract, &other, 1, 2, "event id 1");
    EXPECT_TEXT(read_nodes(contract, &branch, 1, 4, 0), "1-3@1.1 3-4@1.4 ");
}
