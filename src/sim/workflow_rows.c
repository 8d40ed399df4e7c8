/* workflow_rows.c - when every workflow has ended, does the store hold anything that waits? See
 * workflow_load.h.
 *
 * Looks with a store of its own. Rows go a little later than what they stood for, so it looks again
 * for a while; what is there then is a leak:
 *   1. no row of an outbox, no stored task;
 *   2. every run is closed, and has the alarm of its deletion; there are no others;
 *   3. what is pending belongs to a run that is there, and is nothing that waits for an id;
 *   4. the current run of an id is there, and is the last of its chain.
 * And when the retention of all has passed: no row of any run. */
#include <stdio.h>

#include "engine/run/run.h"
#include "fiber/clock.h"
#include "sim/workflow_inside.h"
#include "store/key.h"
#include "store/memory/memory.h"
#include "wire/message.h"

#define LOOKS_MAX 180 /* a second apart */
#define PAGE      100

/* One look. */
struct look {
    struct store *store;
    struct arena *arena;
    unsigned shard;
    const char *leak; /* the first thing found that should not be there */
};

static void
leak_found(struct look *look, const char *what, const char *of)
{
    if (look->leak == NULL)
        look->leak = arena_format(look->arena, "shard %u: %s %s", look->shard, what, of);
}

static struct error *
each_row(struct look *look, enum row_kind kind,
         struct error *(*visit)(struct look *look, const struct row *row))
{
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(look->shard), .kind = kind, .rows_max = PAGE};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(look->store, &scan, look->arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = visit(look, &rows.row[i]);
        if (err != NULL)
            return err;
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, look->arena);
    }
    return NULL;
}

static struct error *
visit_transfer(struct look *look, const struct row *row)
{
    STORED(TransferRow) *transfer = NULL;
    struct error *err = message_decode_as(look->arena, ERR_CORRUPT, STORED_TYPE(transfer_row),
                                          row->value, &transfer);
    if (err == NULL)
        leak_found(look, "a row of the outbox is left of", transfer->workflow_id);
    return err;
}

static struct error *
visit_timer(struct look *look, const struct row *row)
{
    STORED(TimerRow) *timer = NULL;
    struct error *err =
        message_decode_as(look->arena, ERR_CORRUPT, STORED_TYPE(timer_row), row->value, &timer);
    if (err != NULL)
        return err;
    struct run_key key = {timer->domain_id, timer->workflow_id, timer->run_id};
    STORED(RunRecord) *core = NULL;
    bool found = false;
    struct slice value, place = row->key;
    int64_t time;
    uint64_t number = 0;
    struct slice row_key = run_row_key(&key, look->arena);
    err = store_get(look->store, PARTITION_OF_SHARD(look->shard), ROW_RUN, row_key, look->arena,
                    &found, &value);
    if (err == NULL && found)
        err = run_read_row(row_key, value, look->arena, &core);
    if (err != NULL)
        return err;
    if (core == NULL || !key_take_i64(&place, &time) || !key_take_u64(&place, &number) ||
        core->alarm_row != number)
        leak_found(look, "an alarm is left of", timer->workflow_id);
    return NULL;
}

static struct error *
visit_run(struct look *look, const struct row *row)
{
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(row->key, row->value, look->arena, &core);
    if (err != NULL)
        return err;
    if (core->close_status == 0)
        leak_found(look, "a run is open of", core->workflow_id);
    if (core->alarm_row == 0 || core->delete_time <= core->close_time)
        leak_found(look, "a closed run will not be deleted:", core->workflow_id);
    if (core->alarm_time < core->delete_time || core->is_deleting)
        leak_found(look, "a closed run is deleted early:", core->workflow_id);
    return NULL;
}

/* domain id, workflow id, run id, kind: rows.c of engine/run/. */
static struct error *
visit_pending(struct look *look, const struct row *row)
{
    struct slice key = row->key, parts[3], value;
    uint64_t kind;
    bool is_read = true, found = false;
    for (size_t i = 0; is_read && i < array_length(parts); i++)
        is_read = key_take_text(&key, look->arena, &parts[i]);
    size_t prefix = row->key.length - key.length;
    if (!is_read || !key_take_u64(&key, &kind))
        return error_new(look->arena, ERR_CORRUPT, "the key of a pending row cannot be read");
    const char *id = arena_text_of(look->arena, parts[1]);
    if (kind == PENDING_BUFFERED)
        leak_found(look, "a buffered event is left of", id);
    struct error *err = store_get(look->store, PARTITION_OF_SHARD(look->shard), ROW_RUN,
                                  slice_of(row->key.data, prefix), look->arena, &found, &value);
    if (err == NULL && !found)
        leak_found(look, "something is pending without a run of", id);
    return err;
}

static struct error *
visit_current(struct look *look, const struct row *row)
{
    STORED(CurrentRecord) *current = NULL;
    struct error *err = message_decode_as(look->arena, ERR_CORRUPT, STORED_TYPE(current_record),
                                          row->value, &current);
    if (err != NULL)
        return err;
    struct slice key = row->key, domain_id, workflow_id;
    if (!key_take_text(&key, look->arena, &domain_id) ||
        !key_take_text(&key, look->arena, &workflow_id))
        return error_new(look->arena, ERR_CORRUPT, "the key of a current run cannot be read");
    const char *id = arena_text_of(look->arena, workflow_id);
    struct run_key run = {arena_text_of(look->arena, domain_id), id, current->run_id};
    bool found = false;
    struct slice value;
    err = store_get(look->store, PARTITION_OF_SHARD(look->shard), ROW_RUN,
                    run_row_key(&run, look->arena), look->arena, &found, &value);
    if (err == NULL && !found)
        leak_found(look, "the current run is not there of", id);
    if (current->close_status ==
        API_VALUE(
            WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW))
        leak_found(look, "the current run is not the last of", id);
    return err;
}

static struct error *
look_at_shards(struct look *look)
{
    static const struct {
        enum row_kind kind;
        struct error *(*visit)(struct look *look, const struct row *row);
    } kinds[] = {{ROW_TRANSFER, visit_transfer},
                 {ROW_TIMER, visit_timer},
                 {ROW_RUN, visit_run},
                 {ROW_PENDING, visit_pending},
                 {ROW_CURRENT, visit_current}};
    struct error *err = NULL;
    for (look->shard = 0; look->shard < SIM_SHARDS; look->shard++) {
        for (size_t i = 0; err == NULL && i < array_length(kinds); i++)
            err = each_row(look, kinds[i].kind, kinds[i].visit);
    }
    return err;
}

static struct error *
look_at_tasks(struct look *look)
{
    struct walk_rows rows;
    struct error *err = store_walk(look->store, ROW_TASK, NULL, 1, look->arena, &rows);
    if (err == NULL && rows.count > 0 && look->leak == NULL)
        look->leak = "a stored task is left";
    return err;
}

static struct error *
look_at_all(struct look *look)
{
    struct error *err = look_at_shards(look);
    return err != NULL ? err : look_at_tasks(look);
}

static struct error *
visit_any(struct look *look, const struct row *row)
{
    (void)row;
    leak_found(look, "something", "is left of a run");
    return NULL;
}

/* Is there anything at all of any run? */
static struct error *
look_for_any(struct look *look)
{
    static const enum row_kind kinds[] = {ROW_TRANSFER, ROW_TIMER, ROW_RUN, ROW_PENDING,
                                          ROW_CURRENT};
    struct error *err = NULL;
    for (look->shard = 0; look->shard < SIM_SHARDS; look->shard++) {
        for (size_t i = 0; err == NULL && i < array_length(kinds); i++)
            err = each_row(look, kinds[i], visit_any);
    }
    return err != NULL ? err : look_at_tasks(look);
}

static void
look_until_clean(struct workflow_load *load, struct error *(*look_at)(struct look *look))
{
    struct look look = {.store = memory_open(load->sim->hosts[0].base)};
    bool is_clean = false;
    for (int i = 0; i < LOOKS_MAX && !is_clean && load->verdict.violation == NULL; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        look.arena = arena;
        look.leak = NULL;
        struct error *err = look_at(&look);
        if (err != NULL)
            verdict_violate(&load->verdict, "the store cannot be read: %s", err->message);
        is_clean = look.leak == NULL;
        if (i + 1 == LOOKS_MAX && !is_clean)
            verdict_violate(&load->verdict, "%s", look.leak);
        if (!is_clean && fiber_sleep(NS_PER_S, arena) != NULL)
            break;
    }
    store_close(look.store);
}

void
workflow_check_rows(struct workflow_load *load)
{
    look_until_clean(load, look_at_all);
}

void
workflow_check_gone(struct workflow_load *load)
{
    look_until_clean(load, look_for_any);
}
