/* audit.c - see audit.h.
 *
 * A record's number is the guard that its commit leaves, so numbers are unique and rise even where
 * several hosts write. */
#include "audit/audit.h"

#include "audit/summary.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "store/key.h"
#include "wire/message.h"

#define TRIES_MAX 5
#define PAGE_ROWS 256

struct audit {
    struct audit_options options;
};

struct audit *
audit_new(const struct audit_options *options)
{
    struct audit *audit = memory_zalloc(1, sizeof *audit);
    audit->options = *options;
    return audit;
}

void
audit_free(struct audit *audit)
{
    memory_free(audit);
}

/* --- writing ---- */

static struct error *
try_store(struct audit *audit, STORE_API(AuditRecord) *record, struct arena *arena)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    int64_t kept = dynamic_integer(audit->options.dynamic, DYNAMIC_AUDIT_RECORDS_MAX, &filter);
    uint64_t guard;
    struct error *err = store_guard(audit->options.store, PARTITION_OF_AUDIT, arena, &guard);
    if (err != NULL)
        return err;
    record->number = guard + 1;
    struct batch *batch = batch_new(arena, PARTITION_OF_AUDIT, guard + 1);
    batch_put(batch, ROW_AUDIT, key_of_number(guard + 1, arena),
              message_encode(arena, &record->base));
    if (kept > 0 && guard + 1 > (uint64_t)kept)
        batch_delete_range(batch, ROW_AUDIT, key_of_number(0, arena),
                           key_of_number(guard + 2 - (uint64_t)kept, arena));
    return store_commit(audit->options.store, batch, guard, arena);
}

/* Another call, or another host, may write at the same time. */
static struct error *
store_record(struct audit *audit, STORE_API(AuditRecord) *record, struct arena *arena)
{
    struct error *err = NULL;
    for (int i = 0; i < TRIES_MAX; i++) {
        err = try_store(audit, record, arena);
        if (err == NULL || (err->kind != ERR_FENCED && err->kind != ERR_BUSY))
            break;
    }
    return err;
}

void
audit_note(void *context, struct rpc_call *call, const struct error *err)
{
    struct audit *audit = context;
    struct arena *arena = call->arena;
    if (rpc_method(call)->auditing != AUDITED)
        return;
    STORE_API(AuditRecord) *record =
        message_new(arena, &cadenza__admin__v1__audit_record__descriptor);
    record->time_nanoseconds = clock_wall();
    record->actor = (char *)access_caller_name(audit->options.access, call);
    record->peer = (char *)call->arrival.peer;
    record->operation = (char *)rpc_method_name(call);
    struct rpc_subject subject;
    rpc_subject(call, &subject);
    record->domain = (char *)subject.domain;
    record->request = (char *)summary_of(call->request, arena);
    record->result = err == NULL ? "ok" : (char *)error_kind_name(err->kind);
    record->message = err == NULL ? "" : (char *)err->message;
    struct error *failed = store_record(audit, record, arena);
    log_info(audit->options.log, "An operator's call.", log_text("actor", record->actor),
             log_text("peer", record->peer), log_text("operation", record->operation),
             log_text("wf-domain-name", record->domain), log_text("request", record->request),
             log_text("result", record->result), log_text("error", record->message));
    if (failed != NULL)
        log_fail(audit->options.log, "The record of an operator's call was not stored.",
                 log_error(failed), log_text("operation", record->operation));
}

/* --- reading ---- */

static bool
is_wanted(const struct audit_filter *filter, const STORE_API(AuditRecord) *record)
{
    bool is_of_domain = filter->domain[0] == '\0' || strcmp(filter->domain, record->domain) == 0;
    return is_of_domain &&
           (filter->operation[0] == '\0' || strcmp(filter->operation, record->operation) == 0);
}

struct error *
audit_list(struct audit *audit, const struct audit_filter *filter, struct arena *arena,
           STORE_API(AuditRecord) ***records, size_t *count, uint64_t *next)
{
    *records = arena_zalloc(arena, filter->count_max + 1, sizeof **records);
    *count = 0;
    *next = filter->before == 0 ? UINT64_MAX : filter->before;
    while (*count < filter->count_max) {
        struct scan scan = {.partition = PARTITION_OF_AUDIT,
                            .kind = ROW_AUDIT,
                            .to = key_of_number(*next, arena),
                            .rows_max = PAGE_ROWS,
                            .is_backward = true};
        struct rows rows;
        struct error *err = store_scan(audit->options.store, &scan, arena, &rows);
        check(err != NULL || rows.count > 0 || !rows.has_more);
        for (size_t i = 0; err == NULL && i < rows.count && *count < filter->count_max; i++) {
            STORE_API(AuditRecord) *record;
            err =
                message_decode_as(arena, ERR_CORRUPT, &cadenza__admin__v1__audit_record__descriptor,
                                  rows.row[i].value, &record);
            if (err != NULL)
                break;
            *next = record->number;
            if (is_wanted(filter, record))
                (*records)[(*count)++] = record;
        }
        if (err != NULL)
            return err;
        if (!rows.has_more && *count < filter->count_max) {
            *next = 0;
            return NULL;
        }
    }
    return NULL;
}
