/* history.c - history nodes as rows, and reading them as one lineage.
 *
 *   key    tree, branch, first event id, range id descending, sequence descending
 *   value  format (1 byte), next event id (8 bytes), the events
 *
 * So at each event id the node with the highest (range id, sequence) comes first, and reading
 * forward is: take the first node at the expected id, expect its next id, skip what begins below.
 *
 * Finding the first node is harder, because an orphan may hold the id too, or even begin at it
 * inside a longer node of the run. What is known: owners follow each other with rising range ids,
 * and each goes on where the run was when it came; so of all nodes that hold an id, the highest one
 * is of the run. It may begin anywhere before, and no node on the way shows that none higher
 * follows: one that ends where the candidate begins, of an older owner, may be an orphan that ends
 * there by chance. So the walk back goes to the beginning of the branch; a caller that knows where
 * a node begins avoids it. */
#include "store/history.h"

#include "base/check.h"
#include "store/key.h"

#define NODE_FORMAT    1
#define NODE_HEAD_SIZE ((size_t)9)
#define PAGE_ROWS_MAX  256
#define BACK_BYTES_MAX ((size_t)1 << 20)

/* What a read is about, for its helpers. */
struct node_reader {
    struct store *store;
    struct partition shard;
    const struct history_branch *branch;
    struct arena *arena;
};

static void
key_branch(struct key_writer *key, const struct history_branch *branch, struct arena *arena)
{
    key_begin(key, arena);
    key_uuid(key, branch->tree);
    key_uuid(key, branch->branch);
}

/* Where the nodes begin that begin at `event_id` or later. */
static struct slice
key_of_event(const struct history_branch *branch, int64_t event_id, struct arena *arena)
{
    struct key_writer key;
    key_branch(&key, branch, arena);
    key_i64(&key, event_id);
    return key_end(&key);
}

static struct slice
key_after_branch(const struct history_branch *branch, struct arena *arena)
{
    struct key_writer key;
    key_branch(&key, branch, arena);
    return key_after_prefix(key_end(&key), arena);
}

void
batch_add_node(struct batch *batch, const struct history_branch *branch,
               const struct history_node *node)
{
    check(node->next_event_id > node->first_event_id);
    struct key_writer key;
    key_branch(&key, branch, batch->arena);
    key_i64(&key, node->first_event_id);
    key_u64_descending(&key, node->range_id);
    key_u64_descending(&key, node->sequence);

    uint8_t *head = arena_alloc(batch->arena, NODE_HEAD_SIZE);
    head[0] = NODE_FORMAT;
    for (int i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)((uint64_t)node->next_event_id >> (56 - 8 * i));
    batch_put_headed(batch, ROW_HISTORY, key_end(&key), slice_of(head, NODE_HEAD_SIZE),
                     node->events);
}

void
batch_delete_nodes(struct batch *batch, const struct history_branch *branch, int64_t from_event_id)
{
    batch_delete_range(batch, ROW_HISTORY, key_of_event(branch, from_event_id, batch->arena),
                       key_after_branch(branch, batch->arena));
}

/* ---- reading ---- */

static struct error *
reader_error(const struct node_reader *reader, int64_t event_id, const char *what)
{
    char tree[UUID_TEXT_LENGTH + 1], branch[UUID_TEXT_LENGTH + 1];
    uuid_format(&reader->branch->tree, tree);
    uuid_format(&reader->branch->branch, branch);
    return error_new(reader->arena, ERR_CORRUPT, "%s, tree %s, branch %s: %s at event id %lld",
                     partition_name(reader->shard, reader->arena), tree, branch, what,
                     (long long)event_id);
}

static struct error *
reader_decode(const struct node_reader *reader, const struct row *row, struct history_node *node)
{
    struct uuid tree, branch;
    struct slice key = row->key;
    struct slice value = row->value;
    bool is_key = key_take_uuid(&key, &tree) && key_take_uuid(&key, &branch) &&
                  key_take_i64(&key, &node->first_event_id) &&
                  key_take_u64_descending(&key, &node->range_id) &&
                  key_take_u64_descending(&key, &node->sequence) && key.length == 0;
    if (!is_key)
        return reader_error(reader, 0, "a key that does not belong to a node");
    if (value.length < NODE_HEAD_SIZE || value.data[0] != NODE_FORMAT)
        return reader_error(reader, node->first_event_id, "a node of unknown form");
    value = slice_skip(value, 1);
    uint64_t next;
    bool has_next = key_take_u64(&value, &next);
    check(has_next);
    node->next_event_id = (int64_t)next;
    node->events = value;
    if (node->next_event_id <= node->first_event_id)
        return reader_error(reader, node->first_event_id, "a node that ends before it begins");
    return NULL;
}

static bool
node_is_above(const struct history_node *one, const struct history_node *other)
{
    if (one->range_id != other->range_id)
        return one->range_id > other->range_id;
    return one->sequence > other->sequence;
}

/* The walk back from an event id to the node of the run that holds it. */
struct node_search {
    struct scan scan;
    int64_t event_id;
    bool has_best;
    struct history_node best; /* the highest so far that holds event_id; its events are gone */
};

/* One page of the walk. What it reads is large and of no use afterwards. */
static struct error *
search_page(const struct node_reader *reader, struct node_search *node_search, bool *has_more)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    struct node_reader reading = *reader;
    reading.arena = scratch;
    struct rows rows;
    struct error *err = store_scan(reader->store, &node_search->scan, scratch, &rows);
    for (size_t i = 0; err == NULL && i < rows.count; i++) {
        struct history_node node;
        err = reader_decode(&reading, &rows.row[i], &node);
        bool holds = err == NULL && node.next_event_id > node_search->event_id;
        if (holds && (!node_search->has_best || node_is_above(&node, &node_search->best))) {
            node_search->has_best = true;
            node_search->best = node;
            node_search->best.events = slice_of(NULL, 0);
        }
    }
    if (err != NULL)
        return error_copy(reader->arena, err);
    *has_more = rows.has_more;
    if (rows.has_more)
        node_search->scan.to = arena_slice(reader->arena, rows.row[rows.count - 1].key);
    return NULL;
}

/* Where the node of the run begins that holds event_id. */
static struct error *
reader_find_beginning(const struct node_reader *reader, int64_t event_id, int64_t *beginning)
{
    struct node_search node_search = {.event_id = event_id};
    node_search.scan = (struct scan){.partition = reader->shard,
                                     .kind = ROW_HISTORY,
                                     .is_backward = true,
                                     .rows_max = PAGE_ROWS_MAX,
                                     .bytes_max = BACK_BYTES_MAX};
    node_search.scan.from = key_of_event(reader->branch, INT64_MIN, reader->arena);
    node_search.scan.to = key_of_event(reader->branch, event_id + 1, reader->arena);
    bool has_more = true;
    while (has_more) {
        struct error *err = search_page(reader, &node_search, &has_more);
        if (err != NULL)
            return err;
    }
    if (!node_search.has_best)
        return reader_error(reader, event_id, "no node");
    *beginning = node_search.best.first_event_id;
    return NULL;
}

/* Adds the nodes among `rows` that continue the page. page->node has room for all of them. */
static struct error *
page_take_rows(const struct node_reader *reader, const struct rows *rows, size_t bytes_max,
               size_t *bytes, struct history_page *page)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct history_node node;
        struct error *err = reader_decode(reader, &rows->row[i], &node);
        if (err != NULL)
            return err;
        if (node.first_event_id < page->next_event_id)
            continue; /* lower than one we took, or an orphan inside it */
        if (bytes_max > 0 && page->count > 0 && *bytes >= bytes_max)
            return NULL;
        if (node.first_event_id > page->next_event_id)
            return NULL; /* a gap: the next scan shows it */
        page->node[page->count++] = node;
        page->next_event_id = node.next_event_id;
        *bytes += node.events.length;
    }
    return NULL;
}

static void
page_grow(struct history_page *page, size_t more, struct arena *arena)
{
    struct history_node *node = arena_zalloc(arena, page->count + more, sizeof *node);
    if (page->count > 0)
        memcpy(node, page->node, page->count * sizeof *node);
    page->node = node;
}

/* Fills the page from page->next_event_id on, where a node of the run begins. */
static struct error *
reader_fill(const struct node_reader *reader, int64_t to_event_id, size_t bytes_max,
            struct history_page *page)
{
    size_t bytes = 0;
    struct error *err = NULL;
    struct scan scan = {.partition = reader->shard, .kind = ROW_HISTORY};
    scan.to = key_of_event(reader->branch, to_event_id, reader->arena);
    scan.rows_max = PAGE_ROWS_MAX;
    while (err == NULL && page->next_event_id < to_event_id) {
        if (bytes_max > 0 && page->count > 0 && bytes >= bytes_max)
            return NULL;
        scan.from = key_of_event(reader->branch, page->next_event_id, reader->arena);
        scan.bytes_max = bytes_max > 0 ? bytes_max - bytes : 0;
        size_t count = page->count;
        struct rows rows;
        err = store_scan(reader->store, &scan, reader->arena, &rows);
        if (err != NULL)
            return err;
        page_grow(page, rows.count, reader->arena);
        err = page_take_rows(reader, &rows, bytes_max, &bytes, page);
        if (err == NULL && page->count == count)
            err = reader_error(reader, page->next_event_id, "no node");
    }
    return err;
}

struct error *
store_read_history_on(struct store *store, struct partition shard,
                      const struct history_branch *branch, int64_t from_event_id,
                      int64_t to_event_id, size_t bytes_max, struct arena *arena,
                      struct history_page *page)
{
    check_that(from_event_id <= to_event_id, "events %lld to %lld", (long long)from_event_id,
               (long long)to_event_id);
    *page = (struct history_page){.next_event_id = from_event_id};
    struct node_reader reader = {store, shard, branch, arena};
    struct error *err = reader_fill(&reader, to_event_id, bytes_max, page);
    if (page->next_event_id > to_event_id)
        page->next_event_id = to_event_id; /* the last node reaches further */
    return err;
}

struct error *
store_read_history(struct store *store, struct partition shard, const struct history_branch *branch,
                   int64_t from_event_id, int64_t to_event_id, size_t bytes_max,
                   struct arena *arena, struct history_page *page)
{
    struct node_reader reader = {store, shard, branch, arena};
    *page = (struct history_page){.next_event_id = from_event_id};
    if (from_event_id < to_event_id) {
        struct error *err = reader_find_beginning(&reader, from_event_id, &from_event_id);
        if (err != NULL)
            return err;
    }
    return store_read_history_on(store, shard, branch, from_event_id, to_event_id, bytes_max, arena,
                                 page);
}

size_t
history_page_bytes(const struct history_page *page)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->count; i++)
        bytes += page->node[i].events.length;
    return bytes;
}
