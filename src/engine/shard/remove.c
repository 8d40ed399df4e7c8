/* remove.c - a closed run is deleted at an operator's word, before its time. See retain.c for how.
 *
 * What the run has still to tell others (its parent, its children) are rows of the outbox that name
 * it: they are waited for, so that nobody sees half of it. After a crash the run is there, or
 * nobody finds it; what may be left of its rows goes when its wake-up timer fires. */
#include "base/check.h"
#include "engine/shard/inside.h"
#include "engine/shard/retain.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define ROWS_AT_ONCE 200
#define PAUSE_FIRST  (5 * NS_PER_MS) /* doubled each time */
#define PAUSE_MOST   (200 * NS_PER_MS)

static bool
names_run(const struct row *row, const struct run_key *key, struct arena *arena)
{
    STORED(TransferRow) *transfer = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(transfer_row), row->value, &transfer);
    return err == NULL && strcmp(transfer->run_id, key->run_id) == 0 &&
           strcmp(transfer->workflow_id, key->workflow_id) == 0 &&
           strcmp(transfer->domain_id, key->domain_id) == 0;
}

/* Has the run anything left in the outbox? Error: ERR_BUSY, it has. Yields. */
static struct error *
check_closed(struct tenure *tenure, const struct run_key *key, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    struct slice from = transfer_key(1, arena);
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        struct scan scan = {.partition = shard->partition,
                            .kind = ROW_TRANSFER,
                            .from = from,
                            .rows_max = ROWS_AT_ONCE};
        struct error *err = store_scan(shard->options.store, &scan, scratch, &rows);
        if (err != NULL)
            return error_copy(arena, err);
        for (size_t i = 0; i < rows.count; i++) {
            if (!names_run(&rows.row[i], key, scratch))
                continue;
            probe("removal_waits_for_outbox");
            return error_new(arena, ERR_BUSY, "run %s has something to do", key->run_id);
        }
        if (rows.count > 0)
            from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

static struct error *
remove_once(struct shard *shard, const struct run_key *key, struct arena *arena, bool *may_try)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    *may_try = false;
    if (err != NULL)
        return err;
    err = check_closed(tenure, key, arena);
    if (err == NULL)
        err = tenure_delete_now(tenure, key, arena);
    bool is_lost = tenure->is_over && !shard->is_closing;
    *may_try = err != NULL && (err->kind == ERR_BUSY || is_lost);
    tenure_leave(tenure);
    return err;
}

struct error *
shard_remove(struct shard *shard, const struct run_key *key, struct arena *arena)
{
    int64_t pause = PAUSE_FIRST;
    check(key->run_id[0] != '\0');
    for (;;) {
        bool may_try;
        struct error *err = remove_once(shard, key, arena, &may_try);
        if (!may_try)
            return err;
        err = fiber_sleep(pause, arena);
        if (err != NULL)
            return err;
        pause = pause * 2 < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
    }
}
