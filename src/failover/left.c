/* left.c - drains that something else ended, and rows that nobody needs any more. See inside.h.
 *
 * The change that took such a drain out of its record left a row that says how it ended
 * (domain/drain_end.h). It is entered in the history with what was missing, and then all rows of
 * the drain go. */
#include "base/check.h"
#include "domain/active.h"
#include "failover/inside.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define PAGE_ROWS 1000

/* --- reading ------------------------------------------------------------------------------------
 */

bool
drain_left_is(struct slice rest, struct arena *arena)
{
    struct slice cluster;
    return key_take_text(&rest, arena, &cluster) && cluster.length == 0 && rest.length == 0;
}

static struct error *
read_left(struct slice value, struct arena *arena, STORED(DrainLeftRecord) **left)
{
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(drain_left_record), value, left);
    if (err != NULL || (*left)->format != DRAIN_LEFT_FORMAT || (*left)->drain == NULL)
        return error_new(arena, ERR_CORRUPT, "a graceful failover that is over cannot be read");
    return NULL;
}

struct error *
pending_enter_left(struct pending *pending, struct slice value, struct arena *arena)
{
    STORED(DrainLeftRecord) *left = NULL;
    struct error *err = read_left(value, arena, &left);
    if (err != NULL)
        return err;
    pending->end = left->end;
    pending->end_time = left->end_time;
    return NULL;
}

/* --- what a host that is gone left behind
 * ------------------------------------------------------------
 */

/* What a key is about. */
struct drain_name {
    const char *domain_id, *scope, *name;
    int64_t failover_version;
    bool is_left; /* it says how the drain ended */
};

static bool
read_key(struct slice key, struct arena *arena, struct drain_name *name)
{
    struct slice domain_id, scope, rest;
    bool is_good = key_take_text(&key, arena, &domain_id) && key_take_text(&key, arena, &scope) &&
                   key_take_text(&key, arena, &rest) && key_take_i64(&key, &name->failover_version);
    if (!is_good)
        return false;
    name->domain_id = arena_text_of(arena, domain_id);
    name->scope = arena_text_of(arena, scope);
    name->name = arena_text_of(arena, rest);
    name->is_left = drain_left_is(key, arena);
    return true;
}

/* Is the version in effect, or was it? If not, another host knows more than this one. */
static bool
is_past(const struct drains *drains, const struct drain_name *name)
{
    const struct domain *domain = domains_find_id(drains->options.domains, name->domain_id);
    if (domain == NULL)
        return true;
    struct cluster_attribute attribute = {name->scope[0] == '\0' ? NULL : name->scope, name->name};
    return domain_active(domain, &attribute, drains->options.group).failover_version >=
           name->failover_version;
}

struct drain_sweep {
    struct slice *keys;
    size_t count;
};

static void
fill_sweep(void *context, struct batch *batch)
{
    const struct drain_sweep *sweep = context;
    for (size_t i = 0; i < sweep->count; i++)
        batch_delete(batch, ROW_DOMAIN_DRAIN, sweep->keys[i]);
}

/* Is it in the list, though it may be over? */
static bool
is_listed(const struct drains *drains, const struct drain_name *name)
{
    list_each(node, &drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        if (pending->drain->failover_version == name->failover_version &&
            strcmp(pending->domain_id, name->domain_id) == 0 &&
            strcmp(pending->drain->scope, name->scope) == 0 &&
            strcmp(pending->drain->name, name->name) == 0)
            return true;
    }
    return false;
}

/* Its end has not been reported: adds it to the list, as one that is over. */
static struct error *
take_left(struct drains *drains, const struct drain_name *name, struct slice value,
          struct arena *arena)
{
    STORED(DrainLeftRecord) *left = NULL;
    struct error *err = read_left(value, arena, &left);
    if (err != NULL)
        return err;
    probe("drain_left_found");
    struct pending *pending = pending_new(name->domain_id, left->domain_name, left->drain);
    pending->is_over = true;
    list_push_back(&drains->pending, &pending->node);
    return NULL;
}

static struct error *
sweep_row(struct drains *drains, const struct row *row, struct drain_sweep *sweep,
          struct arena *arena)
{
    struct drain_name name;
    bool is_named = read_key(row->key, arena, &name);
    if (is_named && is_listed(drains, &name))
        return NULL;
    if (is_named && name.is_left)
        return take_left(drains, &name, row->value, arena);
    if (!is_named || is_past(drains, &name))
        sweep->keys[sweep->count++] = row->key;
    return NULL;
}

struct error *
drains_sweep(struct drains *drains, struct arena *arena)
{
    struct scan scan = {
        .partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN_DRAIN, .rows_max = PAGE_ROWS};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(drains->options.store, &scan, arena, &rows);
        if (err != NULL)
            return err;
        struct drain_sweep sweep = {.keys =
                                        arena_zalloc(arena, rows.count + 1, sizeof(struct slice))};
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = sweep_row(drains, &rows.row[i], &sweep, arena);
        check(sweep.count <= rows.count);
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        if (err == NULL && sweep.count > 0)
            err = domains_write(drains->options.domains, fill_sweep, &sweep, arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}
