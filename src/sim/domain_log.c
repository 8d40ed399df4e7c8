/* domain_log.c - see domain_log.h. */
#include "sim/domain_log.h"

#include "cadenza/storage/v1/domain.pb-c.h"
#include "store/key.h"
#include "wire/message.h"
#include "wire/names.h"

#define PAGE 200

struct error *
domain_rows_visit(struct store *store, enum row_kind kind, struct arena *arena,
                  struct error *(*visit)(void *context, const struct row *row, struct arena *arena),
                  void *context)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS, .kind = kind, .rows_max = PAGE};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(store, &scan, arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = visit(context, &rows.row[i], arena);
        if (err != NULL)
            return err;
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

struct walk {
    uint64_t first, last; /* versions in the log; 0: none yet */
    uint64_t guard;
    uint8_t *is_used; /* by version: a domain was written last by it */
};

static struct error *
visit_change(void *context, const struct row *row, struct arena *arena)
{
    struct walk *walk = context;
    struct slice key = row->key;
    uint64_t version = 0;
    if (!key_take_u64(&key, &version))
        return error_new(arena, ERR_CORRUPT, "a key of the log is no number");
    if (walk->last != 0 && version != walk->last + 1)
        return error_new(arena, ERR_CORRUPT, "version %llu follows %llu in the log",
                         (unsigned long long)version, (unsigned long long)walk->last);
    if (walk->first == 0)
        walk->first = version;
    walk->last = version;
    return NULL;
}

static struct error *
visit_domain(void *context, const struct row *row, struct arena *arena)
{
    struct walk *walk = context;
    STORED(DomainRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_record), row->value, &record);
    if (err != NULL)
        return err;
    uint64_t version = (uint64_t)record->notification_version;
    if (version == 0 || version > walk->guard || walk->is_used[version])
        return error_new(arena, ERR_CORRUPT, "domain %s has version %llu; the counter is at %llu",
                         record->domain->name, (unsigned long long)version,
                         (unsigned long long)walk->guard);
    walk->is_used[version] = 1;
    return NULL;
}

struct error *
domain_log_check(struct store *store, struct arena *arena)
{
    struct walk walk = {0};
    struct error *err = store_guard(store, PARTITION_OF_DOMAINS, arena, &walk.guard);
    if (err == NULL)
        err = domain_rows_visit(store, ROW_DOMAIN_LOG, arena, visit_change, &walk);
    if (err != NULL)
        return err;
    /* The newest rows stay. The first write of all may have been none of a domain: without a row.
     */
    if (walk.guard > 1 && walk.last != walk.guard)
        return error_new(arena, ERR_CORRUPT, "the log ends at %llu, the counter is at %llu",
                         (unsigned long long)walk.last, (unsigned long long)walk.guard);
    walk.is_used = arena_zalloc(arena, walk.guard + 1, 1);
    return domain_rows_visit(store, ROW_DOMAIN, arena, visit_domain, &walk);
}
