/* history.c - history nodes as rows, and reading them as one line of events.
 *
 *   key    tree, branch, first event id, range id descending, sequence descending
 *   value  format (1 byte), next event id (8 bytes), the events
 *
 * So at each event id the node with the highest (range id, sequence) comes first, and reading
 * forward is: take the first node at the expected id, expect its next id, skip what begins below.
 *
 * Reading from inside a node is harder, because an orphan may hold the id too. What is known: an
 * owner's orphans on a branch follow each other without a gap, from the event id M that
 * was the next one when the owner lost the shard; the next owner, with a higher range id, wrote its
 * first node at M or has written none. So of all nodes that hold an id, the highest one is of the
 * run; and going back from a candidate along nodes of its range id, M cannot be passed unseen. */
#include "store/history.h"

#include "base/check.h"
#include "store/key.h"

#define NODE_FORMAT    1
#define NODE_HEAD_SIZE ((size_t)9)
#define PAGE_ROWS_MAX  256
#define BACK_ROWS_MAX  32

/* What a read is about, for its helpers. */
struct history_reader {
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

    uint8_t *value = arena_alloc(batch->arena, NODE_HEAD_SIZE + node->events.length);
    value[0] = NODE_FORMAT;
    for (int i = 0; i < 8; i++)
        value[1 + i] = (uint8_t)((uint64_t)node->next_event_id >> (56 - 8 * i));
    if (node->events.length > 0)
        memcpy(value + NODE_HEAD_SIZE, node->events.data, node->events.length);
    batch_put(batch, ROW_HISTORY, key_end(&key),
              slice_of(value, NODE_HEAD_SIZE + node->events.length));
}

void
batch_delete_nodes(struct batch *batch, const struct history_branch *branch, int64_t from_event_id)
{
    batch_delete_range(batch, ROW_HISTORY, key_of_event(branch, from_event_id, batch->arena),
                       key_after_branch(branch, batch->arena));
}

/* ---- reading ---- */

static struct error *
reader_error(const struct history_reader *reader, int64_t event_id, const char *what)
{
    char tree[UUID_TEXT_LENGTH + 1], branch[UUID_TEXT_LENGTH + 1];
    uuid_format(&reader->branch->tree, tree);
    uuid_format(&reader->branch->branch, branch);
    return error_new(reader->arena, ERR_CORRUPT, "%s, tree %s, branch %s: %s at event id %lld",
                     partition_name(reader->shard, reader->arena), tree, branch, what,
                     (long long)event_id);
}

static struct error *
reader_decode(const struct history_reader *reader, const struct row *row, struct history_node *node)
{
    struct uuid tree, branch;
    struct slice key = row->key;
    struct slice value = row->value;
    bool is_key = key_take_uuid(&key, &tree) && key_take_uuid(&key, &branch) &&
                  key_take_i64(&key, &node->first_event_id) &&
                  key_take_u64_descending(&key, &node->range_id) &&
                  key_take_u64_descending(&key, &node->sequence) && key.length == 0;
    if (!is_key)
        return reader_error(reader, 0, "a key that is no node's");
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
struct search {
    int64_t event_id;
    bool has_best;
    struct history_node best; /* the highest so far that holds event_id */
    int64_t chain;            /* the lowest event id reached from best along its range id */
    struct history_node
        group; /* the highest node seen at group.first_event_id that ends at chain */
    bool has_group;
    bool is_over;
};

/* The search has seen all nodes that begin at some event id, and goes on below. */
static void
search_end_group(struct search *search)
{
    if (!search->has_group)
        return;
    search->has_group = false;
    if (search->group.range_id < search->best.range_id)
        search->is_over = true; /* best's range id began here, and none above did */
    search->chain = search->group.first_event_id;
}

static void
search_see(struct search *search, const struct history_node *node)
{
    if (search->has_group && node->first_event_id != search->group.first_event_id)
        search_end_group(search);
    if (search->is_over)
        return;
    bool holds = node->next_event_id > search->event_id;
    if (holds && (!search->has_best || node_is_above(node, &search->best))) {
        search->has_best = true;
        search->best = *node;
        search->chain = node->first_event_id;
        search->has_group = false;
    } else if (search->has_best && node->next_event_id == search->chain &&
               (!search->has_group || node_is_above(node, &search->group))) {
        search->has_group = true;
        search->group = *node;
    }
}

/* Where the node begins that holds event_id, which is no node's beginning. */
static struct error *
reader_find_beginning(const struct history_reader *reader, int64_t event_id, int64_t *beginning)
{
    struct search search = {.event_id = event_id};
    struct scan scan = {.partition = reader->shard, .kind = ROW_HISTORY, .is_backward = true};
    scan.from = key_of_event(reader->branch, INT64_MIN, reader->arena);
    scan.to = key_of_event(reader->branch, event_id, reader->arena);
    scan.rows_max = BACK_ROWS_MAX;
    struct rows rows = {.has_more = true};
    while (rows.has_more && !search.is_over) {
        struct error *err = store_scan(reader->store, &scan, reader->arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++) {
            struct history_node node;
            err = reader_decode(reader, &rows.row[i], &node);
            if (err == NULL)
                search_see(&search, &node);
        }
        if (err != NULL)
            return err;
        if (rows.has_more)
            scan.to = rows.row[rows.count - 1].key;
    }
    if (!search.has_best)
        return reader_error(reader, event_id, "no node");
    *beginning = search.best.first_event_id;
    return NULL;
}

/* Adds the nodes among `rows` that continue the page. page->node has room for all of them. */
static struct error *
page_take_rows(const struct history_reader *reader, const struct rows *rows, size_t bytes_max,
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

/* Nothing begins at page->next_event_id. At the start of a read it may be inside a node. */
static struct error *
reader_miss(const struct history_reader *reader, bool *is_aligned, struct history_page *page)
{
    if (*is_aligned)
        return reader_error(reader, page->next_event_id, "no node");
    *is_aligned = true;
    return reader_find_beginning(reader, page->next_event_id, &page->next_event_id);
}

/* Fills the page from page->next_event_id on. */
static struct error *
reader_fill(const struct history_reader *reader, int64_t to_event_id, size_t bytes_max,
            struct history_page *page)
{
    size_t bytes = 0;
    bool is_aligned = false;
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
            err = reader_miss(reader, &is_aligned, page);
        is_aligned = true;
    }
    return err;
}

struct error *
store_read_history(struct store *store, struct partition shard, const struct history_branch *branch,
                   int64_t from_event_id, int64_t to_event_id, size_t bytes_max,
                   struct arena *arena, struct history_page *page)
{
    check_that(from_event_id <= to_event_id, "events %lld to %lld", (long long)from_event_id,
               (long long)to_event_id);
    *page = (struct history_page){.next_event_id = from_event_id};
    struct history_reader reader = {store, shard, branch, arena};
    struct error *err = reader_fill(&reader, to_event_id, bytes_max, page);
    if (page->next_event_id > to_event_id)
        page->next_event_id = to_event_id; /* the last node reaches further */
    return err;
}
