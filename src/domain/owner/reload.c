/* reload.c - reading the domains: all at start, then what changed, whenever a commit failed or
 * another host wrote.
 *
 * What was decided and did not become durable is taken back, and the rows of the log since the last
 * known version are read: mostly none or a few. Only at start, or when the log was trimmed
 * meanwhile, everything is read: guard, all rows, guard again, and the log between the two guards
 * on top. Rows may be written while we read; all that we saw is at most as new as the second guard,
 * so the state is then exactly that of the second guard. The difference goes to the loops, in
 * order.
 */
#include <stdlib.h>

#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"

#define PAGE_ROWS 1000
#define RETRY_MIN (50 * NS_PER_MS)
#define RETRY_MAX (5 * NS_PER_S)

/* Everything up to `version` is known and durable. */
static void
reach(struct domains *domains, uint64_t version)
{
    check(version >= domains->durable);
    domains->durable = version;
    domains_check(domains);
    fiber_cond_broadcast(&domains->grew);
}

/* Loop 0, after each group: what is durable goes to the loops; a failure voids the rest. */
static void
on_writer_durable(void *context, ticket_t durable, const struct error *failure)
{
    struct domains *domains = context;
    while (!list_is_empty(&domains->undurable)) {
        struct change *change = list_entry(domains->undurable.next, struct change, node);
        if (change->ticket > durable)
            break;
        check(change->ticket > 0);
        list_remove(&change->node);
        uint64_t version = change->version;
        change_publish(change);
        reach(domains, version);
    }
    if (failure != NULL)
        domains_start_reload(domains);
}

/* --- by the log ---------------------------------------------------------------------------------
 */

/* Enters a change of the log in `newest`; `publishes`: and sends it to the loops. */
static void
take_change(struct domains *domains, uint64_t version, const STORED(DomainChange) *logged,
            bool publishes)
{
    struct change *change = NULL;
    check(!publishes || version == domains->durable + 1);
    check((logged->record == NULL) == (logged->n_entities > 0));
    if (logged->record == NULL) {
        change = change_new_entities(domains, logged->entities, logged->n_entities, version);
    } else {
        struct domain *domain = domain_from_record(logged->record);
        domain_mark(domains, domain, false);
        change = change_new(domains, domain, version);
        domain_drop(domain);
    }
    change_enter(change, &domains->newest);
    if (!publishes) {
        change_drop(change);
        return;
    }
    change_publish(change);
    reach(domains, version);
}

/* Follows the log from `known` to `guard`. *is_cut: it cannot be followed. */
static struct error *
follow_log(struct domains *domains, uint64_t known, uint64_t guard, bool publishes,
           struct arena *arena, bool *is_cut)
{
    *is_cut = false;
    while (known < guard) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct domain_changes changes;
        struct error *err = log_scan(domains, known, guard, PAGE_ROWS, page, &changes);
        if (err != NULL)
            return error_copy(arena, err);
        *is_cut = changes.is_cut;
        if (*is_cut)
            return NULL;
        for (size_t i = 0; i < changes.count; i++)
            take_change(domains, changes.version[i], changes.change[i], publishes);
        known += changes.count;
        check(changes.count > 0 && known <= guard);
    }
    return NULL;
}

/* --- everything ---------------------------------------------------------------------------------
 */

static struct error *
enter_row(struct domains *domains, struct slice bytes, struct arena *arena)
{
    struct domain *domain = NULL;
    struct error *err = domain_decode(bytes, arena, &domain);
    if (err != NULL)
        return err;
    domain_mark(domains, domain, false);
    domain_cache_enter(&domains->newest, domain);
    domain_drop(domain);
    return NULL;
}

static struct error *
enter_entity(struct domains *domains, struct slice bytes, struct arena *arena)
{
    struct entity *entity = NULL;
    struct error *err = entity_decode(bytes, arena, &entity);
    if (err != NULL)
        return err;
    domain_cache_enter_entity(&domains->newest, entity);
    entity_drop(entity);
    return NULL;
}

/* All rows of the kind; *guard becomes the one of the moment of the last page. */
static struct error *
read_rows(struct domains *domains, enum row_kind kind,
          struct error *(*enter)(struct domains *domains, struct slice bytes, struct arena *arena),
          struct arena *arena, uint64_t *guard)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = kind,
                        .rows_max = PAGE_ROWS,
                        .wants_guard = true};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct error *err = store_scan(domains->options.store, &scan, page, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = enter(domains, rows.row[i].value, page);
        if (err != NULL)
            return error_copy(arena, err);
        *guard = rows.guard;
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

static int
compare_changes(const void *one, const void *other)
{
    const struct change *left = *(struct change *const *)one;
    const struct change *right = *(struct change *const *)other;
    return left->version < right->version ? -1 : left->version > right->version;
}

/* Entities that are not in the loops' caches, one change for all of one version. */
static size_t
find_new_entities(struct domains *domains, struct change **changes, struct arena *arena)
{
    struct entity **found = NULL;
    size_t count = entities_after(&domains->newest, &domains->domain_caches[0], 0, arena, &found);
    size_t made = 0;
    for (size_t i = 0, end = 0; i < count; i = end) {
        uint64_t version = found[i]->notification_version;
        for (end = i; end < count && found[end]->notification_version == version; end++)
            continue;
        scoped(arena_drop) struct arena *page = arena_new(0);
        STORED(EntityRecord) **records = arena_zalloc(page, end - i, sizeof(*records));
        for (size_t j = i; j < end; j++)
            records[j - i] = entity_record(found[j], page);
        changes[made++] = change_new_entities(domains, records, end - i, version);
    }
    return made;
}

/* Sends the loops what is in `newest` and not in their caches. */
static void
publish_difference(struct domains *domains, uint64_t guard, struct arena *arena)
{
    const struct map *known = domains->newest.ids;
    size_t room = map_count(known) + map_count(domains->newest.entities) + 1;
    struct change **changes = arena_zalloc(arena, room, sizeof(struct change *));
    size_t count = find_new_entities(domains, changes, arena), cursor = 0;
    void *value = NULL;
    check(list_is_empty(&domains->undurable)); /* else `newest` had more than what is durable */
    while (map_next(known, &cursor, NULL, &value)) {
        struct domain *domain = value;
        const struct domain *published =
            domain_cache_find_record(&domains->domain_caches[0], domain->id);
        int64_t version = domain->record->notification_version;
        if (published == NULL || published->record->notification_version < version)
            changes[count++] = change_new(domains, domain, (uint64_t)version);
    }
    qsort(changes, count, sizeof(struct change *), compare_changes);
    check(count < room);
    changes[count++] = change_new(domains, NULL, guard);
    for (size_t i = 0; i < count; i++)
        change_publish(changes[i]);
    reach(domains, guard);
}

/* *guard becomes the one that the state belongs to. */
static struct error *
load_all(struct domains *domains, uint64_t *guard, struct arena *arena)
{
    check(domains->writer == NULL && list_is_empty(&domains->undurable));
    probe("domains_read_all");
    domains->is_loaded = false; /* until all of it is */
    bool is_cut = true;
    while (is_cut) {
        uint64_t before = *guard;
        domain_cache_free(&domains->newest);
        domain_cache_init(&domains->newest);
        struct error *err = read_rows(domains, ROW_DOMAIN, enter_row, arena, guard);
        if (err == NULL)
            err = read_rows(domains, ROW_ENTITY, enter_entity, arena, guard);
        if (err == NULL)
            err = follow_log(domains, before, *guard, false, arena, &is_cut);
        if (err != NULL)
            return err;
    }
    publish_difference(domains, *guard, arena);
    domains->is_loaded = true;
    return NULL;
}

static struct error *
load_state(struct domains *domains, uint64_t *guard, struct arena *arena)
{
    struct error *err = store_guard(domains->options.store, PARTITION_OF_DOMAINS, arena, guard);
    bool is_cut = !domains->is_loaded;
    if (err == NULL && !is_cut)
        err = follow_log(domains, domains->durable, *guard, true, arena, &is_cut);
    if (err == NULL && is_cut)
        err = load_all(domains, guard, arena);
    if (err == NULL)
        err = log_read_floor(domains, *guard, arena);
    if (err == NULL)
        err = follow_read(domains, arena);
    return err;
}

struct error *
domains_load(struct domains *domains, struct arena *arena)
{
    check(domains->writer == NULL && list_is_empty(&domains->undurable));
    uint64_t guard = 0;
    struct error *err = load_state(domains, &guard, arena);
    if (err != NULL)
        return error_wrap(err, "reading the domains");
    check(domains->is_loaded && domains->durable == guard && domains->log_floor <= guard);
    domain_cache_check(&domains->newest);
    check(domains->domain_caches[0].notification_version == guard);
    domains->writer =
        writer_open(domains->options.store, PARTITION_OF_DOMAINS, guard, DOMAINS_CHANGES_MAX);
    writer_on_durable(domains->writer, on_writer_durable, domains);
    return NULL;
}

/* --- starting over ------------------------------------------------------------------------------
 */

/* Takes back what was decided after the failure, the newest first, and closes the writer.
 * Yields. */
static void
forget(struct domains *domains)
{
    check(domains->is_reloading);
    latch_wait(&domains->writer_users);
    if (domains->writer != NULL)
        writer_close(domains->writer);
    domains->writer = NULL;
    while (!list_is_empty(&domains->undurable)) {
        struct change *change = list_entry(domains->undurable.prev, struct change, node);
        list_remove(&change->node);
        if (change->domain != NULL)
            domain_cache_restore(&domains->newest, &domains->domain_caches[0], change->domain->id);
        for (size_t i = 0; i < change->entity_count; i++)
            domain_cache_restore_entity(&domains->newest, &domains->domain_caches[0],
                                        change->entities[i]);
        change_drop(change);
    }
    domain_cache_check(&domains->newest);
    /* It is again what is durable. */
    check(tree_count(domains->newest.names) == tree_count(domains->domain_caches[0].names));
    check(map_count(domains->newest.ids) == map_count(domains->domain_caches[0].ids));
    check(map_count(domains->newest.entities) == map_count(domains->domain_caches[0].entities));
}

static void
reload(void *argument)
{
    struct domains *domains = argument;
    probe("domains_reloaded");
    forget(domains);
    int64_t pause = RETRY_MIN;
    while (!domains->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = domains_load(domains, arena);
        if (err == NULL)
            break;
        log_fail(domains->options.log, "Reading the domains failed, trying again.", log_error(err));
        if (fiber_sleep(pause, arena) != NULL)
            break;
        pause = pause * 2 > RETRY_MAX ? RETRY_MAX : pause * 2;
    }
    domains->is_reloading = false;
    fiber_cond_broadcast(&domains->ready);
    latch_done(&domains->fibers);
}

void
domains_start_reload(struct domains *domains)
{
    check(route_is_here(owner_of_domains()));
    if (domains->is_reloading || domains->is_closing)
        return;
    domains->is_reloading = true;
    latch_add(&domains->fibers, 1);
    fiber_start("domains-reload", reload, domains);
}

struct error *
domains_read_others(struct domains *domains, struct arena *arena, uint64_t *guard)
{
    struct error *err = store_guard(domains->options.store, PARTITION_OF_DOMAINS, arena, guard);
    if (err == NULL && domains->writer != NULL && *guard > writer_guard(domains->writer))
        domains_start_reload(domains);
    return err;
}

void
domains_refresh(void *argument)
{
    struct domains *domains = argument;
    check(domains->options.refresh_interval > 0);
    while (!domains->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        uint64_t guard = 0;
        if (fiber_sleep(domains->options.refresh_interval, arena) != NULL)
            break;
        struct error *err = domains_read_others(domains, arena, &guard);
        if (err == NULL)
            err = domain_isolation_refresh(domains, arena);
        if (err != NULL)
            log_debug(domains->options.log, "Looking for changes of domains failed.",
                      log_error(err));
    }
    latch_done(&domains->fibers);
}
