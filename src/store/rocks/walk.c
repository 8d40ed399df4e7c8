/* walk.c - rows of one ORDERED kind, and guards, over all partitions: for start-up and for people
 * who look. */
#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

struct walk {
    struct arena *arena;
    size_t rows_max; /* 0: no limit */
    vector_of(struct walk_row) rows;
    bool has_more;
    const char *complaint; /* a key that is none */
};

static bool
walk_take(void *context, struct slice key, struct slice value)
{
    struct walk *walk = context;
    if (walk->rows_max > 0 && walk->rows.count >= walk->rows_max) {
        walk->has_more = true;
        return false;
    }
    unsigned kind;
    struct walk_row row = {.value = arena_slice(walk->arena, value)};
    struct slice rest = arena_slice(walk->arena, key);
    walk->complaint = layout_take(&rest, walk->arena, &kind, &row.partition);
    row.key = rest;
    if (walk->complaint != NULL)
        return false;
    vector_push_in(&walk->rows, walk->arena, row);
    return true;
}

static void
walk_restart(void *context)
{
    struct walk *walk = context;
    vector_clear(&walk->rows);
    walk->has_more = false;
}

/* All rows whose kind byte is `kind`, behind (partition, key) if `after` is not NULL. */
static struct error *
walk_kind(struct rocks *rocks, unsigned kind, const struct walk_row *after, struct walk *walk)
{
    struct arena *arena = walk->arena;
    check(kind < ROW_KIND_END && walk->rows.count == 0);
    struct slice nothing = slice_of(NULL, 0);
    struct range range = {.family = FAMILY_ORDERED,
                          .from = layout_key(arena, kind, nothing, nothing),
                          .to = layout_key(arena, kind + 1, nothing, nothing),
                          .prefix = 1,
                          .rows_max = walk->rows_max,
                          .take = walk_take,
                          .restart = walk_restart,
                          .context = walk};
    if (after != NULL) {
        struct slice last =
            layout_key(arena, kind, partition_key(after->partition, arena), after->key);
        range.from = layout_key(arena, kind, slice_skip(last, 1), slice_of("", 1));
    }
    struct error *err = range_read(rocks, &range, arena);
    if (err == NULL && walk->complaint != NULL)
        err = error_new(arena, ERR_CORRUPT, "a stored row has %s", walk->complaint);
    return err;
}

struct error *
walk_rows(struct store *store, enum row_kind kind, const struct walk_row *after, size_t rows_max,
          struct arena *arena, struct walk_rows *rows)
{
    check(layout_family(kind) == FAMILY_ORDERED);
    struct walk walk = {.arena = arena, .rows_max = rows_max};
    struct error *err = walk_kind(rocks_of(store), kind, after, &walk);
    if (err != NULL)
        return err;
    *rows = (struct walk_rows){
        .row = walk.rows.items, .count = walk.rows.count, .has_more = walk.has_more};
    return NULL;
}

struct error *
walk_guards(struct store *store, const struct partition *after, size_t count_max,
            struct arena *arena, struct walk_guard **guards, size_t *count)
{
    struct walk walk = {.arena = arena, .rows_max = count_max};
    struct walk_row last = {0};
    if (after != NULL)
        last.partition = *after;
    struct error *err =
        walk_kind(rocks_of(store), LAYOUT_GUARD, after == NULL ? NULL : &last, &walk);
    if (err != NULL)
        return err;
    *count = walk.rows.count;
    *guards = arena_zalloc(arena, walk.rows.count + 1, sizeof **guards);
    for (size_t i = 0; i < walk.rows.count; i++) {
        (*guards)[i].partition = walk.rows.items[i].partition;
        if (!layout_guard_read(walk.rows.items[i].value, &(*guards)[i].guard))
            return error_new(arena, ERR_CORRUPT, "the guard of %s is not 8 bytes",
                             partition_name(walk.rows.items[i].partition, arena));
    }
    return NULL;
}
