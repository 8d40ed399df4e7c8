/* workflow_rows.c - when every workflow has ended, does the store hold anything that waits? See
 * workflow_load.h.
 *
 * Looks with a store of its own. Rows go a little later than what they stood for, so it looks again
 * for a while; what is there then is a leak:
 *   1. no row of an outbox, no stored task;
 *   2. every run is closed, and has the wake-up timer of its deletion; there are no others;
 *   3. what is pending belongs to a run that is there, and is nothing that waits for an id;
 *   4. the current run of an id is there, and is the last of its chain.
 * And when the retention of all has passed: no row of any run. */
#include <stdio.h>

#include "engine/run/run.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "store/key.h"
#include "store/memory/memory.h"
#include "wire/message.h"

#define SCANS_MAX 180 /* a second apart */
#define PAGE      100

/* One look. */
struct leak_scan {
    struct store *store;
    struct arena *arena;
    unsigned shard;
    const char *leak; /* the first thing found that should not be there */
};

static void
leak_found(struct leak_scan *leak_scan, const char *what, const char *of)
{
    if (leak_scan->leak == NULL)
        leak_scan->leak =
            arena_format(leak_scan->arena, "shard %u: %s %s", leak_scan->shard, what, of);
}

static struct error *
each_row(struct leak_scan *leak_scan, enum row_kind kind,
         struct error *(*visit)(struct leak_scan *leak_scan, const struct row *row))
{
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(leak_scan->shard), .kind = kind, .rows_max = PAGE};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(leak_scan->store, &scan, leak_scan->arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = visit(leak_scan, &rows.row[i]);
        if (err != NULL)
            return err;
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, leak_scan->arena);
    }
    return NULL;
}

static struct error *
visit_transfer(struct leak_scan *leak_scan, const struct row *row)
{
    STORED(TransferRow) *transfer = NULL;
    struct error *err = message_decode_as(leak_scan->arena, ERR_CORRUPT, STORED_TYPE(transfer_row),
                                          row->value, &transfer);
    if (err == NULL)
        leak_found(leak_scan, "a row of the outbox is left of", transfer->workflow_id);
    return err;
}

static struct error *
visit_timer(struct leak_scan *leak_scan, const struct row *row)
{
    STORED(TimerRow) *timer = NULL;
    struct error *err = message_decode_as(leak_scan->arena, ERR_CORRUPT, STORED_TYPE(timer_row),
                                          row->value, &timer);
    if (err != NULL)
        return err;
    struct run_key key = {timer->domain_id, timer->workflow_id, timer->run_id};
    STORED(RunRecord) *core = NULL;
    bool found = false;
    struct slice value, place = row->key;
    int64_t time;
    uint64_t number = 0;
    struct slice row_key = run_row_key(&key, leak_scan->arena);
    err = store_get(leak_scan->store, PARTITION_OF_SHARD(leak_scan->shard), ROW_RUN, row_key,
                    leak_scan->arena, &found, &value);
    if (err == NULL && found)
        err = run_read_row(row_key, value, leak_scan->arena, &core);
    if (err != NULL)
        return err;
    if (core == NULL || !key_take_i64(&place, &time) || !key_take_u64(&place, &number) ||
        core->alarm_row != number)
        leak_found(leak_scan, "a wake-up timer is left of", timer->workflow_id);
    return NULL;
}

static struct error *
visit_run(struct leak_scan *leak_scan, const struct row *row)
{
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(row->key, row->value, leak_scan->arena, &core);
    if (err != NULL)
        return err;
    if (core->close_status == 0)
        leak_found(leak_scan, "a run is open of", core->workflow_id);
    if (core->alarm_row == 0 || core->delete_time <= core->close_time)
        leak_found(leak_scan, "a closed run will not be deleted:", core->workflow_id);
    if (core->alarm_time < core->delete_time || core->is_deleting)
        leak_found(leak_scan, "a closed run is deleted early:", core->workflow_id);
    return NULL;
}

/* domain id, workflow id, run id, kind: rows.c of engine/run/. */
static struct error *
visit_pending(struct leak_scan *leak_scan, const struct row *row)
{
    struct slice key = row->key, parts[3], value;
    uint64_t kind;
    bool is_read = true, found = false;
    for (size_t i = 0; is_read && i < array_length(parts); i++)
        is_read = key_take_text(&key, leak_scan->arena, &parts[i]);
    size_t prefix = row->key.length - key.length;
    if (!is_read || !key_take_u64(&key, &kind))
        return error_new(leak_scan->arena, ERR_CORRUPT, "the key of a pending row cannot be read");
    const char *id = arena_text_of(leak_scan->arena, parts[1]);
    if (kind == PENDING_BUFFERED)
        leak_found(leak_scan, "a buffered event is left of", id);
    struct error *err =
        store_get(leak_scan->store, PARTITION_OF_SHARD(leak_scan->shard), ROW_RUN,
                  slice_of(row->key.data, prefix), leak_scan->arena, &found, &value);
    if (err == NULL && !found)
        leak_found(leak_scan, "something is pending without a run of", id);
    return err;
}

static struct error *
visit_current(struct leak_scan *leak_scan, const struct row *row)
{
    STORED(CurrentRecord) *current = NULL;
    struct error *err = message_decode_as(leak_scan->arena, ERR_CORRUPT,
                                          STORED_TYPE(current_record), row->value, &current);
    if (err != NULL)
        return err;
    struct slice key = row->key, domain_id, workflow_id;
    if (!key_take_text(&key, leak_scan->arena, &domain_id) ||
        !key_take_text(&key, leak_scan->arena, &workflow_id))
        return error_new(leak_scan->arena, ERR_CORRUPT, "the key of a current run cannot be read");
    const char *id = arena_text_of(leak_scan->arena, workflow_id);
    struct run_key run = {arena_text_of(leak_scan->arena, domain_id), id, current->run_id};
    bool found = false;
    struct slice value;
    err = store_get(leak_scan->store, PARTITION_OF_SHARD(leak_scan->shard), ROW_RUN,
                    run_row_key(&run, leak_scan->arena), leak_scan->arena, &found, &value);
    if (err == NULL && !found)
        leak_found(leak_scan, "the current run is not there of", id);
    if (current->close_status ==
        API_VALUE(
            WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW))
        leak_found(leak_scan, "the current run is not the last of", id);
    return err;
}

static struct error *
scan_shards(struct leak_scan *leak_scan)
{
    static const struct {
        enum row_kind kind;
        struct error *(*visit)(struct leak_scan *leak_scan, const struct row *row);
    } kinds[] = {{ROW_TRANSFER, visit_transfer},
                 {ROW_TIMER, visit_timer},
                 {ROW_RUN, visit_run},
                 {ROW_PENDING, visit_pending},
                 {ROW_CURRENT, visit_current}};
    struct error *err = NULL;
    for (leak_scan->shard = 0; leak_scan->shard < SIM_SHARDS; leak_scan->shard++) {
        for (size_t i = 0; err == NULL && i < array_length(kinds); i++)
            err = each_row(leak_scan, kinds[i].kind, kinds[i].visit);
    }
    return err;
}

static struct error *
scan_tasks(struct leak_scan *leak_scan)
{
    struct walk_rows rows;
    struct error *err = store_walk(leak_scan->store, ROW_TASK, NULL, 1, leak_scan->arena, &rows);
    if (err == NULL && rows.count > 0 && leak_scan->leak == NULL)
        leak_scan->leak = "a stored task is left";
    return err;
}

static struct error *
scan_all(struct leak_scan *leak_scan)
{
    struct error *err = scan_shards(leak_scan);
    return err != NULL ? err : scan_tasks(leak_scan);
}

static struct error *
visit_any(struct leak_scan *leak_scan, const struct row *row)
{
    (void)row;
    leak_found(leak_scan, "something", "is left of a run");
    return NULL;
}

/* Is there anything at all of any run? */
static struct error *
scan_for_any(struct leak_scan *leak_scan)
{
    static const enum row_kind kinds[] = {ROW_TRANSFER, ROW_TIMER, ROW_RUN, ROW_PENDING,
                                          ROW_CURRENT};
    struct error *err = NULL;
    for (leak_scan->shard = 0; leak_scan->shard < SIM_SHARDS; leak_scan->shard++) {
        for (size_t i = 0; err == NULL && i < array_length(kinds); i++)
            err = each_row(leak_scan, kinds[i], visit_any);
    }
    return err != NULL ? err : scan_tasks(leak_scan);
}

static void
scan_until_clean(struct workflow_load *load,
                 struct error *(*scan_once)(struct leak_scan *leak_scan))
{
    struct leak_scan leak_scan = {.store = memory_open(load->sim->hosts[0].base)};
    bool is_clean = false;
    for (int i = 0; i < SCANS_MAX && !is_clean && load->verdict.violation == NULL; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        leak_scan.arena = arena;
        leak_scan.leak = NULL;
        struct error *err = scan_once(&leak_scan);
        if (err != NULL)
            verdict_violate(&load->verdict, "the store cannot be read: %s", err->message);
        is_clean = leak_scan.leak == NULL;
        if (i + 1 == SCANS_MAX && !is_clean)
            verdict_violate(&load->verdict, "%s", leak_scan.leak);
        if (!is_clean && fiber_sleep(NS_PER_S, arena) != NULL)
            break;
    }
    store_close(leak_scan.store);
}

void
workflow_check_rows(struct workflow_load *load)
{
    scan_until_clean(load, scan_all);
}

void
workflow_check_gone(struct workflow_load *load)
{
    scan_until_clean(load, scan_for_any);
}
