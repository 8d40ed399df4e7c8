/* domain_log.c - see domain_log.h. */
#include "sim/world/domain_log.h"

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

struct log_scan {
    uint64_t first, last; /* versions in the log; 0: none yet */
    uint64_t guard;
    uint8_t *is_used; /* by version: a domain was written last by it */
};

static struct error *
visit_change(void *context, const struct row *row, struct arena *arena)
{
    struct log_scan *log_scan = context;
    struct slice key = row->key;
    uint64_t version = 0;
    if (!key_take_u64(&key, &version))
        return error_new(arena, ERR_CORRUPT, "a key of the log is not a number");
    if (log_scan->last != 0 && version != log_scan->last + 1)
        return error_new(arena, ERR_CORRUPT, "version %llu follows %llu in the log",
                         (unsigned long long)version, (unsigned long long)log_scan->last);
    if (log_scan->first == 0)
        log_scan->first = version;
    log_scan->last = version;
    return NULL;
}

static struct error *
visit_domain(void *context, const struct row *row, struct arena *arena)
{
    struct log_scan *log_scan = context;
    STORED(DomainRecord) *record = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(domain_record), row->value, &record);
    if (err != NULL)
        return err;
    uint64_t version = (uint64_t)record->notification_version;
    if (version == 0 || version > log_scan->guard || log_scan->is_used[version])
        return error_new(arena, ERR_CORRUPT, "domain %s has version %llu; the counter is at %llu",
                         record->domain->name, (unsigned long long)version,
                         (unsigned long long)log_scan->guard);
    log_scan->is_used[version] = 1;
    return NULL;
}

struct error *
domain_log_check(struct store *store, struct arena *arena)
{
    struct log_scan log_scan = {0};
    struct error *err = store_guard(store, PARTITION_OF_DOMAINS, arena, &log_scan.guard);
    if (err == NULL)
        err = domain_rows_visit(store, ROW_DOMAIN_LOG, arena, visit_change, &log_scan);
    if (err != NULL)
        return err;
    /* The newest rows stay. The very first write may not have been about a domain: then it has
     * no row.
     */
    if (log_scan.guard > 1 && log_scan.last != log_scan.guard)
        return error_new(arena, ERR_CORRUPT, "the log ends at %llu, the counter is at %llu",
                         (unsigned long long)log_scan.last, (unsigned long long)log_scan.guard);
    log_scan.is_used = arena_zalloc(arena, log_scan.guard + 1, 1);
    return domain_rows_visit(store, ROW_DOMAIN, arena, visit_domain, &log_scan);
}
