/* recent.c - history batches that were written lately, in the bytes in which they are stored.
 *
 * A worker that gets a decision gets the events that led to it, and they were decided here moments
 * ago. To read them back would be a pass over every table of the store, whose price grows with what
 * the store holds. So a copy stays until the run closes: per branch, the newest batches without a
 * gap; of all branches, the ones used last, bounded in bytes.
 *
 * Invariants:
 *   1. The batches of a branch follow each other: each begins where the one before ends. They are
 *      what the store has or will have of these events, for as long as the tenure lasts: only its
 *      owner writes them, and a batch that fails ends the tenure and all that it knows.
 *   2. What is not durable is not given out: a batch has the ticket of its step.
 *   3. bytes is the sum over all branches, and no more than bytes_max between two calls. */
#include "engine/shard/recent.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/probe.h"

#define BATCH_WEIGHT  (sizeof(struct recent_batch))
#define BRANCH_WEIGHT ((size_t)256) /* with its place in the map */

struct recent_batch {
    struct list link; /* in recent_branch.batches */
    ticket_t ticket;
    struct history_node node; /* its events lie behind it */
};

struct recent_branch {
    struct list link; /* in recent.used */
    struct history_branch branch;
    struct list batches; /* struct recent_batch, the oldest first; never empty */
    size_t bytes;
};

_Static_assert(sizeof(struct history_branch) == 32, "its bytes are a key");

static struct slice
branch_key(const struct history_branch *branch)
{
    return slice_of((const uint8_t *)branch, sizeof *branch);
}

/* The batches of a branch follow each other (1), and weigh what is counted (3). */
static size_t
branch_check(const struct recent_branch *branch)
{
    size_t bytes = 0;
    int64_t next_event_id = 0;
    check(!list_is_empty(&branch->batches));
    list_each(link, &branch->batches) {
        const struct recent_batch *batch = list_entry(link, struct recent_batch, link);
        check(next_event_id == 0 || batch->node.first_event_id == next_event_id);
        next_event_id = batch->node.next_event_id;
        bytes += BATCH_WEIGHT + batch->node.events.length;
    }
    check(bytes == branch->bytes);
    return bytes + BRANCH_WEIGHT;
}

void
recent_check(const struct recent *recent)
{
    check(recent->bytes <= recent->bytes_max); /* 3 */
    check(recent->bytes >= map_count(recent->by_branch) * BRANCH_WEIGHT);
    if (!CHECK_DEEPLY || map_count(recent->by_branch) > CHECK_ROWS_MAX / 8)
        return;
    size_t bytes = 0;
    list_each(link, &recent->used)
        bytes += branch_check(list_entry(link, struct recent_branch, link));
    check(bytes == recent->bytes);
}

void
recent_init(struct tenure *tenure, size_t bytes_max)
{
    struct recent *recent = &tenure->recent;
    recent->by_branch = map_new();
    recent->bytes_max = bytes_max;
    list_init(&recent->used);
}

static void
drop_oldest(struct recent *recent, struct recent_branch *branch)
{
    struct recent_batch *batch =
        list_entry(list_pop_front(&branch->batches), struct recent_batch, link);
    size_t weight = BATCH_WEIGHT + batch->node.events.length;
    check(branch->bytes >= weight && recent->bytes >= weight); /* 3 */
    branch->bytes -= weight;
    recent->bytes -= weight;
    memory_give(batch, weight);
}

static void
branch_free(struct recent *recent, struct recent_branch *branch)
{
    while (!list_is_empty(&branch->batches))
        drop_oldest(recent, branch);
    check(branch->bytes == 0 && recent->bytes >= BRANCH_WEIGHT); /* 3 */
    recent->bytes -= BRANCH_WEIGHT;
    list_remove(&branch->link);
    struct recent_branch *removed = map_remove(recent->by_branch, branch_key(&branch->branch));
    check(removed == branch);
    memory_free(branch);
}

void
recent_free(struct tenure *tenure)
{
    struct recent *recent = &tenure->recent;
    while (!list_is_empty(&recent->used))
        branch_free(recent, list_entry(recent->used.next, struct recent_branch, link));
    check(recent->bytes == 0 && map_count(recent->by_branch) == 0);
    map_free(recent->by_branch);
}

void
recent_forget(struct tenure *tenure, const struct history_branch *branch)
{
    struct recent_branch *known = map_get(tenure->recent.by_branch, branch_key(branch));
    if (known != NULL)
        branch_free(&tenure->recent, known);
}

static struct recent_branch *
branch_new(struct recent *recent, const struct history_branch *branch)
{
    struct recent_branch *made = memory_zalloc(1, sizeof *made);
    made->branch = *branch;
    list_init(&made->link);
    list_init(&made->batches);
    recent->bytes += BRANCH_WEIGHT;
    map_put(recent->by_branch, branch_key(branch), made);
    return made;
}

static void
add_batch(struct recent *recent, struct recent_branch *branch, const struct history_node *node,
          ticket_t ticket)
{
    check(node->first_event_id < node->next_event_id);
    struct recent_batch *batch = memory_take(BATCH_WEIGHT + node->events.length);
    batch->ticket = ticket;
    batch->node = *node;
    batch->node.events = slice_of((uint8_t *)(batch + 1), node->events.length);
    if (node->events.length > 0)
        memcpy(batch + 1, node->events.data, node->events.length);
    list_push_back(&branch->batches, &batch->link);
    branch->bytes += BATCH_WEIGHT + node->events.length;
    recent->bytes += BATCH_WEIGHT + node->events.length;
}

static const struct history_node *
newest_node(const struct recent_branch *branch)
{
    return &list_entry(branch->batches.prev, struct recent_batch, link)->node;
}

/* Back into the bounds: of the branch, then of all. */
static void
recent_trim(struct recent *recent, struct recent_branch *branch)
{
    while (branch->bytes > recent->bytes_max / RECENT_SHARE &&
           branch->batches.next != branch->batches.prev)
        drop_oldest(recent, branch);
    while (recent->bytes > recent->bytes_max && !list_is_empty(&recent->used))
        branch_free(recent, list_entry(recent->used.next, struct recent_branch, link));
    check(recent->bytes <= recent->bytes_max); /* 3 */
}

void
recent_add(struct tenure *tenure, const struct history_branch *branch,
           const struct history_node *nodes, size_t count, ticket_t ticket)
{
    struct recent *recent = &tenure->recent;
    if (count == 0)
        return;
    check(ticket <= writer_newest(tenure->writer));
    struct recent_branch *known = map_get(recent->by_branch, branch_key(branch));
    if (known != NULL && newest_node(known)->next_event_id != nodes[0].first_event_id) { /* 1 */
        branch_free(recent, known);
        known = NULL;
    }
    if (known == NULL)
        known = branch_new(recent, branch);
    for (size_t i = 0; i < count; i++) {
        check(i == 0 || nodes[i].first_event_id == nodes[i - 1].next_event_id);
        add_batch(recent, known, &nodes[i], ticket);
    }
    list_remove(&known->link);
    list_push_back(&recent->used, &known->link);
    recent_trim(recent, known);
}

/* Adds the batches that hold [from, to) to the page. False: not all of them are here. */
static bool
collect(const struct tenure *tenure, const struct recent_branch *branch,
        const struct history_range_wanted *wanted, struct arena *arena, struct history_page *page)
{
    size_t count = 0;
    list_each(link, &branch->batches)
        count++;
    page->node = arena_zalloc(arena, count, sizeof *page->node);
    page->next_event_id = wanted->from_event_id;
    list_each(link, &branch->batches) {
        const struct recent_batch *batch = list_entry(link, struct recent_batch, link);
        const struct history_node *node = &batch->node;
        if (node->next_event_id <= wanted->from_event_id)
            continue;
        bool is_here = node->first_event_id <= page->next_event_id &&
                       batch->ticket <= writer_durable(tenure->writer); /* 2 */
        if (!is_here || page->next_event_id >= wanted->to_event_id)
            break;
        struct history_node *copy = &page->node[page->count++];
        *copy = *node;
        copy->events = arena_slice(arena, node->events);
        page->next_event_id = node->next_event_id;
    }
    return page->next_event_id >= wanted->to_event_id;
}

bool
shard_recall_history(struct shard *shard, const struct history_range_wanted *wanted,
                     struct arena *arena, struct history_page *page)
{
    const struct tenure *tenure = shard->tenure;
    shard_check(shard);
    struct history_branch own = history_lineage_own(&wanted->lineage);
    struct recent_branch *branch =
        tenure == NULL ? NULL : map_get(tenure->recent.by_branch, branch_key(&own));
    *page = (struct history_page){.next_event_id = wanted->from_event_id};
    if (branch == NULL || wanted->from_event_id >= wanted->to_event_id)
        return false;
    if (!collect(tenure, branch, wanted, arena, page))
        return false;
    page->next_event_id = wanted->to_event_id; /* the last batch may reach further */
    probe("history_recalled");
    return true;
}

void
shard_recall_decision(struct shard *shard, struct arena *arena, struct decision_start *start)
{
    struct history_range_wanted wanted = {.lineage = start->lineage,
                                          .from_event_id = start->first_event_id,
                                          .to_event_id = start->next_event_id};
    if (!shard_recall_history(shard, &wanted, arena, &start->recent))
        start->recent = (struct history_page){0};
}
