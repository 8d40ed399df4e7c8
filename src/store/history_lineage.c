/* history_lineage.c - lineages over shared branches. See history_lineage.h.
 *
 * Reading a lineage is reading its spans one after the other, each as history.c reads a branch.
 * Where a span ends a node ends (rule 3), so the next span begins with a node of the run: only the
 * first one may need a walk to find its node. */
#include "store/history_lineage.h"

#include "base/check.h"
#include "store/key.h"

static bool
uuid_is(const struct uuid *one, const struct uuid *other)
{
    return memcmp(one->bytes, other->bytes, sizeof one->bytes) == 0;
}

void
history_lineage_check(const struct history_lineage *lineage)
{
    check(lineage->count > 0);
    check(lineage->spans[lineage->count - 1].next_event_id == HISTORY_OPEN);
    for (size_t i = 1; i < lineage->count; i++) {
        check(lineage->spans[i - 1].next_event_id < lineage->spans[i].next_event_id);
        for (size_t j = 0; CHECK_DEEPLY && j < i; j++)
            check(!uuid_is(&lineage->spans[i].branch, &lineage->spans[j].branch));
    }
}

/* The index of the span that holds an event id. */
static size_t
lineage_find(const struct history_lineage *lineage, int64_t event_id)
{
    size_t i = 0;
    while (event_id >= lineage->spans[i].next_event_id)
        i++;
    check(i < lineage->count);
    return i;
}

struct history_lineage
history_lineage_root(const struct history_branch *branch, struct arena *arena)
{
    struct history_span *span = arena_zalloc(arena, 1, sizeof *span);
    *span = (struct history_span){branch->branch, HISTORY_OPEN};
    return (struct history_lineage){branch->tree, span, 1};
}

struct history_lineage
history_lineage_fork(const struct history_lineage *lineage, int64_t next_event_id,
                     struct uuid branch, struct arena *arena)
{
    check_that(next_event_id > 1 && next_event_id < HISTORY_OPEN, "a fork before event %lld",
               (long long)next_event_id);
    size_t shared = lineage_find(lineage, next_event_id - 1) + 1;
    struct history_span *spans = arena_zalloc(arena, shared + 1, sizeof *spans);
    memcpy(spans, lineage->spans, shared * sizeof *spans);
    spans[shared - 1].next_event_id = next_event_id;
    spans[shared] = (struct history_span){branch, HISTORY_OPEN};
    struct history_lineage fork = {lineage->tree, spans, shared + 1};
    history_lineage_check(&fork);
    return fork;
}

struct history_branch
history_lineage_own(const struct history_lineage *lineage)
{
    return (struct history_branch){lineage->tree, lineage->spans[lineage->count - 1].branch};
}

struct history_branch
history_lineage_holder(const struct history_lineage *lineage, int64_t event_id)
{
    return (struct history_branch){lineage->tree,
                                   lineage->spans[lineage_find(lineage, event_id)].branch};
}

/* ---- reading ---- */

/* What a read is about, for its helpers. */
struct lineage_reader {
    struct store *store;
    struct partition shard;
    const struct history_lineage *lineage;
    int64_t to_event_id;
    size_t bytes_max;
    struct arena *arena;
};

static void
page_append(struct history_page *page, const struct history_page *more, struct arena *arena)
{
    struct history_node *node = arena_zalloc(arena, page->count + more->count, sizeof *node);
    if (page->count > 0)
        memcpy(node, page->node, page->count * sizeof *node);
    if (more->count > 0)
        memcpy(node + page->count, more->node, more->count * sizeof *node);
    page->node = node;
    page->count += more->count;
    page->next_event_id = more->next_event_id;
}

/* Rule 3. */
static struct error *
check_fork(const struct lineage_reader *reader, const struct history_span *span,
           const struct history_page *page)
{
    if (page->count == 0 || page->node[page->count - 1].next_event_id <= span->next_event_id)
        return NULL;
    char tree[UUID_TEXT_LENGTH + 1], branch[UUID_TEXT_LENGTH + 1];
    uuid_format(&reader->lineage->tree, tree);
    uuid_format(&span->branch, branch);
    return error_new(reader->arena, ERR_CORRUPT,
                     "%s, tree %s, branch %s: a node reaches over the fork at event id %lld",
                     partition_name(reader->shard, reader->arena), tree, branch,
                     (long long)span->next_event_id);
}

/* What the page still lacks of the span that holds page->next_event_id. */
static struct error *
reader_add_span(const struct lineage_reader *reader, bool is_known, size_t bytes_max,
                struct history_page *page)
{
    const struct history_lineage *lineage = reader->lineage;
    const struct history_span *span = &lineage->spans[lineage_find(lineage, page->next_event_id)];
    struct history_branch branch = {lineage->tree, span->branch};
    int64_t end = span->next_event_id;
    end = end < reader->to_event_id ? end : reader->to_event_id;
    struct history_page more;
    struct error *err = (is_known ? store_read_history_on : store_read_history)(
        reader->store, reader->shard, &branch, page->next_event_id, end, bytes_max, reader->arena,
        &more);
    if (err == NULL)
        err = check_fork(reader, span, &more);
    if (err != NULL)
        return err;
    page_append(page, &more, reader->arena);
    return NULL;
}

static struct error *
reader_fill(const struct lineage_reader *reader, bool is_known, struct history_page *page)
{
    while (page->next_event_id < reader->to_event_id) {
        size_t bytes = history_page_bytes(page);
        if (reader->bytes_max > 0 && bytes >= reader->bytes_max && page->count > 0)
            return NULL;
        size_t left = reader->bytes_max > 0 ? reader->bytes_max - bytes : 0;
        struct error *err = reader_add_span(reader, is_known || page->count > 0, left, page);
        if (err != NULL)
            return err;
    }
    return NULL;
}

struct error *
store_read_lineage(struct store *store, struct partition shard,
                   const struct history_lineage *lineage, int64_t from_event_id,
                   int64_t to_event_id, size_t bytes_max, struct arena *arena,
                   struct history_page *page)
{
    history_lineage_check(lineage);
    check(from_event_id <= to_event_id);
    *page = (struct history_page){.next_event_id = from_event_id};
    struct lineage_reader reader = {store, shard, lineage, to_event_id, bytes_max, arena};
    return reader_fill(&reader, false, page);
}

struct error *
store_read_lineage_on(struct store *store, struct partition shard,
                      const struct history_lineage *lineage, int64_t from_event_id,
                      int64_t to_event_id, size_t bytes_max, struct arena *arena,
                      struct history_page *page)
{
    history_lineage_check(lineage);
    check(from_event_id <= to_event_id);
    *page = (struct history_page){.next_event_id = from_event_id};
    struct lineage_reader reader = {store, shard, lineage, to_event_id, bytes_max, arena};
    return reader_fill(&reader, true, page);
}
