/* walk.c - rows of one ORDERED kind over all partitions: for people who look. */
#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

struct table_walk {
    struct arena *arena;
    size_t rows_max; /* 0: no limit */
    vector_of(struct walk_row) rows;
    bool has_more;
    const char *complaint; /* a key that is none */
};

static bool
walk_take(void *context, struct slice key, struct slice value)
{
    struct table_walk *table_walk = context;
    if (table_walk->rows_max > 0 && table_walk->rows.count >= table_walk->rows_max) {
        table_walk->has_more = true;
        return false;
    }
    unsigned kind;
    struct walk_row row = {.value = arena_slice(table_walk->arena, value)};
    struct slice rest = arena_slice(table_walk->arena, key);
    table_walk->complaint = layout_take(&rest, table_walk->arena, &kind, &row.partition);
    row.key = rest;
    if (table_walk->complaint != NULL)
        return false;
    vector_push_in(&table_walk->rows, table_walk->arena, row);
    return true;
}

static void
walk_restart(void *context)
{
    struct table_walk *table_walk = context;
    vector_clear(&table_walk->rows);
    table_walk->has_more = false;
}

/* All rows whose kind byte is `kind`, behind (partition, key) if `after` is not NULL. */
static struct error *
walk_kind(struct rocks *rocks, unsigned kind, const struct walk_row *after,
          struct table_walk *table_walk)
{
    struct arena *arena = table_walk->arena;
    check(kind < ROW_KIND_END && table_walk->rows.count == 0);
    struct slice nothing = slice_of(NULL, 0);
    struct range range = {.family = FAMILY_ORDERED,
                          .from = layout_key(arena, kind, nothing, nothing),
                          .to = layout_key(arena, kind + 1, nothing, nothing),
                          .prefix = 1,
                          .rows_max = table_walk->rows_max,
                          .take = walk_take,
                          .restart = walk_restart,
                          .context = table_walk};
    if (after != NULL) {
        struct slice last =
            layout_key(arena, kind, partition_key(after->partition, arena), after->key);
        range.from = layout_key(arena, kind, slice_skip(last, 1), slice_of("", 1));
    }
    struct error *err = range_read(rocks, &range, arena);
    if (err == NULL && table_walk->complaint != NULL)
        err = error_new(arena, ERR_CORRUPT, "a stored row has %s", table_walk->complaint);
    return err;
}

struct error *
walk_rows(struct store *store, enum row_kind kind, const struct walk_row *after, size_t rows_max,
          struct arena *arena, struct walk_rows *rows)
{
    check(layout_family(kind) == FAMILY_ORDERED);
    struct table_walk table_walk = {.arena = arena, .rows_max = rows_max};
    struct error *err = walk_kind(rocks_of(store), kind, after, &table_walk);
    if (err != NULL)
        return err;
    *rows = (struct walk_rows){.row = table_walk.rows.items,
                               .count = table_walk.rows.count,
                               .has_more = table_walk.has_more};
    return NULL;
}
