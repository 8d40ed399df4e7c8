/* log.c - the log of changes, which followers of the domains read in order. See domains.h.
 *
 * Each change has a row under the notification version that it left, so what is between two
 * versions can be counted: if a row is missing, it was trimmed, and the reader gets the newest
 * records of all domains that changed since, which brings it to the same end: the last records of
 * deleted domains are among them. */
#include <stdlib.h>

#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/message.h"

static struct error *
decode_change(struct slice bytes, struct arena *arena, const STORED(DomainChange) **change)
{
    STORED(DomainChange) *decoded = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_change), bytes, &decoded);
    if (err != NULL)
        return error_wrap(err, "reading the log of the domains");
    bool has_domain = decoded->record != NULL && decoded->record->domain != NULL;
    if (decoded->format != DOMAIN_CHANGE_FORMAT || has_domain == (decoded->n_entities > 0))
        return error_new(arena, ERR_CORRUPT,
                         "a row of the log of the domains has a form that is not known");
    *change = decoded;
    return NULL;
}

/* Takes the rows over if none is missing behind `after`. */
static struct error *
take_rows(const struct rows *rows, uint64_t after, struct arena *arena,
          struct domain_changes *changes)
{
    changes->version = arena_zalloc(arena, rows->count, sizeof *changes->version);
    changes->change = arena_zalloc(arena, rows->count, sizeof *changes->change);
    for (size_t i = 0; i < rows->count; i++) {
        struct slice key = rows->row[i].key;
        if (!key_take_u64(&key, &changes->version[i]))
            return error_new(arena, ERR_CORRUPT, "a key of the log of the domains is not a number");
        if (changes->version[i] != after + 1 + i) {
            changes->is_cut = true;
            return NULL;
        }
        struct error *err = decode_change(rows->row[i].value, arena, &changes->change[i]);
        if (err != NULL)
            return err;
    }
    changes->count = rows->count;
    return NULL;
}

struct error *
log_scan(struct domains *domains, uint64_t after, uint64_t to, size_t count_max,
         struct arena *arena, struct domain_changes *changes)
{
    check(after < to && count_max > 0);
    struct scan scan = {.partition = PARTITION_OF_DOMAINS,
                        .kind = ROW_DOMAIN_LOG,
                        .from = key_of_number(after + 1, arena),
                        .to = key_of_number(to + 1, arena),
                        .rows_max = count_max};
    struct rows rows;
    *changes = (struct domain_changes){.newest = to};
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    if (err == NULL && rows.count == 0)
        changes->is_cut = true;
    if (err == NULL && rows.count > 0)
        err = take_rows(&rows, after, arena, changes);
    check(err != NULL || changes->is_cut == (changes->count == 0));
    check(changes->count <= count_max && changes->count <= to - after);
    return err;
}

struct error *
log_read_floor(struct domains *domains, uint64_t guard, struct arena *arena)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN_LOG, .rows_max = 1};
    struct rows rows;
    struct error *err = store_scan(domains->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    domains->log_floor = guard;
    uint64_t first = 0;
    if (rows.count > 0 && key_take_u64(&rows.row[0].key, &first) && first > 0 && first <= guard)
        domains->log_floor = first - 1;
    check(domains->log_floor <= guard);
    return NULL;
}

/* --- in place of what was trimmed ---------------------------------------------------------------
 */

static int
compare_versions(const void *one, const void *other)
{
    const struct domain *left = *(struct domain *const *)one;
    const struct domain *right = *(struct domain *const *)other;
    int64_t l = left->record->notification_version, r = right->record->notification_version;
    return l < r ? -1 : l > r;
}

static const STORED(DomainChange) *
change_from(const struct domain *domain, struct arena *arena)
{
    STORED(DomainChange) *change = message_new(arena, STORED_TYPE(domain_change));
    change->format = DOMAIN_CHANGE_FORMAT;
    change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    if (domain_cache_is_deleted(domain))
        change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
    else if (domain->record->notification_version == 1) /* the first change of all made it */
        change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    change->is_replicated = true; /* it may be; nothing tells any longer */
    STORED(DomainRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_record), domain->bytes, &record);
    check_that(err == NULL, "a record that decoded once does not decode again");
    change->record = record;
    return change;
}

/* All entities of the version of the first one; *end is behind them. */
static const STORED(DomainChange) *
change_from_entities(struct entity *const *found, size_t count, struct arena *arena, size_t *end)
{
    STORED(DomainChange) *change = message_new(arena, STORED_TYPE(domain_change));
    change->format = DOMAIN_CHANGE_FORMAT;
    change->operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_UPDATE);
    change->is_replicated = true;
    check(count > 0);
    for (*end = 0;
         *end < count && found[*end]->notification_version == found[0]->notification_version;)
        ++*end;
    change->entities = arena_zalloc(arena, *end, sizeof *change->entities);
    while (change->n_entities < *end) {
        const struct entity *entity = found[change->n_entities];
        STORED(EntityRecord) *record = entity_record(entity, arena);
        record->type = arena_text(arena, entity->type); /* the entity may go at the next yield */
        record->key = arena_text(arena, entity->key);
        record->region = arena_text(arena, entity->region);
        change->entities[change->n_entities++] = record;
    }
    return change;
}

/* Domains and entities in one order. */
struct newest {
    struct domain **domains;
    struct entity **entities;
    size_t domain_count, entity_count;
};

static void
add_newest(struct newest *newest, struct arena *arena, struct domain_changes *changes)
{
    check(newest->domain_count + newest->entity_count > 0);
    size_t at = changes->count++, end = 0;
    bool is_domain =
        newest->domain_count > 0 &&
        (newest->entity_count == 0 || (uint64_t)newest->domains[0]->record->notification_version <
                                          newest->entities[0]->notification_version);
    if (is_domain) {
        changes->version[at] = (uint64_t)newest->domains[0]->record->notification_version;
        changes->change[at] = change_from(*newest->domains++, arena);
        newest->domain_count--;
        return;
    }
    changes->version[at] = newest->entities[0]->notification_version;
    changes->change[at] = change_from_entities(newest->entities, newest->entity_count, arena, &end);
    newest->entities += end;
    newest->entity_count -= end;
}

/* The newest durable records after `after`. No yield, so they are of one moment. */
static void
take_records(const struct domains *domains, uint64_t after, size_t count_max, struct arena *arena,
             struct domain_changes *changes)
{
    const struct map *known = domains->domain_caches[0].ids;
    struct newest newest = {.domains =
                                arena_zalloc(arena, map_count(known), sizeof(struct domain *))};
    size_t cursor = 0;
    void *value = NULL;
    while (map_next(known, &cursor, NULL, &value)) {
        struct domain *domain = value;
        if ((uint64_t)domain->record->notification_version > after)
            newest.domains[newest.domain_count++] = domain;
    }
    qsort(newest.domains, newest.domain_count, sizeof *newest.domains, compare_versions);
    newest.entity_count =
        entities_after(&domains->domain_caches[0], NULL, after, arena, &newest.entities);
    size_t room = newest.domain_count + newest.entity_count;
    room = room > count_max ? count_max : room;
    *changes = (struct domain_changes){.newest = domains->durable, .is_cut = true};
    changes->version = arena_zalloc(arena, room, sizeof *changes->version);
    changes->change = arena_zalloc(arena, room, sizeof *changes->change);
    while (changes->count < room && newest.domain_count + newest.entity_count > 0)
        add_newest(&newest, arena, changes);
    for (size_t i = 1; CHECK_DEEPLY && i < changes->count; i++)
        check(changes->version[i - 1] <= changes->version[i]);
    check(changes->count == 0 || changes->version[changes->count - 1] <= domains->durable);
}

/* --- following ----------------------------------------------------------------------------------
 */

/* A reader that knows more than this host: another host was faster and its changes come soon, or
 * our store was restored from a backup, and the reader has to start again. */
static struct error *
check_ahead(struct domains *domains, struct arena *arena, uint64_t *after)
{
    if (*after <= domains->durable)
        return NULL;
    uint64_t guard = 0;
    struct error *err = store_guard(domains->options.store, PARTITION_OF_DOMAINS, arena, &guard);
    if (err == NULL && guard < *after)
        *after = 0;
    return err;
}

static struct error *
wait_growth(struct domains *domains, uint64_t after, int64_t deadline, struct arena *arena)
{
    while (after >= domains->durable && !domains->has_ended_waits && !domains->is_closing) {
        enum wake wake = fiber_cond_wait(&domains->grew, deadline);
        if (wake == WAKE_CANCELLED)
            return wake_error(wake, arena, "waiting for a change of a domain");
        if (wake == WAKE_DEADLINE)
            break;
    }
    return NULL;
}

struct error *
domains_read_log(struct domains *domains, uint64_t after, size_t count_max, int64_t deadline,
                 struct arena *arena, struct domain_changes *changes)
{
    check(route_is_here(owner_of_domains()));
    struct error *err = check_ahead(domains, arena, &after);
    if (err == NULL)
        err = wait_growth(domains, after, deadline, arena);
    if (err != NULL)
        return err;
    *changes = (struct domain_changes){.newest = domains->durable};
    if (after >= domains->durable)
        return NULL;
    bool is_cut = after < domains->log_floor;
    if (!is_cut) {
        err = log_scan(domains, after, domains->durable, count_max, arena, changes);
        if (err != NULL)
            return err;
        is_cut = changes->is_cut;
    }
    if (is_cut) {
        probe("domain_log_cut");
        take_records(domains, after, count_max, arena, changes);
    }
    return NULL;
}

void
domains_end_waits(struct domains *domains)
{
    check(route_is_here(owner_of_domains()));
    domains->has_ended_waits = true;
    fiber_cond_broadcast(&domains->grew);
}
