/* visible_rebuild.c - the lists are made anew from the runs of a shard: when they lack rows that
 * are gone, or because somebody asks for it.
 *
 * A whole range of the shard's numbers is set aside for it. First the shard record says that all
 * rows below the end of the range are gone (and they go): from then on lists that do not have its
 * last number are not whole, whatever crashes, and are made anew by the next owner. Then the lists
 * drop what they have of the shard, and every run gets a number of the range; the last run gets the
 * last. Steps that are taken meanwhile leave rows with higher numbers, which are read afterwards.
 *
 * Numbers of an owner that was overtaken are all below the range: what it still hands over is too
 * old for the lists. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define RUNS_PAGE  100
#define ROOM_DELAY (10 * NS_PER_MS)

struct rebuild {
    struct tenure *tenure;
    uint64_t next, end; /* numbers that are left */
    uint64_t runs;
    /* The run that was found last: it waits until it is known whether it is the last one. */
    STORED(RunRecord) *held;
    struct arena *held_arena;
};

static struct error *
wait_room(struct rebuild *rebuild, struct arena *arena)
{
    mark("rebuild_waited_for_room");
    struct error *err = fiber_sleep(ROOM_DELAY, arena);
    if (err == NULL && rebuild->tenure->is_over)
        err = tenure_error(rebuild->tenure, arena);
    return err;
}

/* The lists drop what they have up to `row`. Yields. */
static struct error *
begin_anew(struct rebuild *rebuild, uint64_t row, struct arena *arena)
{
    struct tenure *tenure = rebuild->tenure;
    struct visible_parcel *parcel = visible_pack(&(struct visible_change){
        .shard = tenure->shard->options.number, .row = row, .is_beginning = true});
    struct error *err = NULL;
    while (err == NULL && !visible_hand_over(tenure, parcel))
        err = wait_room(rebuild, arena);
    if (err != NULL)
        memory_free(parcel);
    return err;
}

/* Hands over the run that is held. Yields. */
static struct error *
give_held(struct rebuild *rebuild, uint64_t row, struct arena *arena)
{
    STORED(RunRecord) *core = rebuild->held;
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    struct error *err = NULL;
    while (err == NULL && !visible_give(rebuild->tenure, &key, core, row, rebuild->held_arena))
        err = wait_room(rebuild, arena);
    rebuild->held = NULL;
    return err;
}

static struct error *
take_run(struct rebuild *rebuild, const struct row *row, struct arena *arena)
{
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(row->key, row->value, arena, &core);
    if (err != NULL || core->is_deleting)
        return err;
    if (rebuild->held != NULL)
        err = give_held(rebuild, rebuild->next++, arena);
    if (err != NULL)
        return err;
    check_that(rebuild->next < rebuild->end - 1, "a shard has more runs than numbers of a range");
    arena_reset(rebuild->held_arena);
    rebuild->held = message_copy(rebuild->held_arena, &core->base);
    rebuild->runs++;
    return NULL;
}

/* Yields. */
static struct error *
take_runs(struct rebuild *rebuild, struct arena *arena)
{
    struct shard *shard = rebuild->tenure->shard;
    struct scan scan = {.partition = shard->partition, .kind = ROW_RUN, .rows_max = RUNS_PAGE};
    struct rows rows = {.has_more = true};
    struct error *err = NULL;
    while (err == NULL && rows.has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        err = store_scan(shard->options.store, &scan, page, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = take_run(rebuild, &rows.row[i], page);
        if (err == NULL && rebuild->tenure->is_over)
            err = tenure_error(rebuild->tenure, page);
        if (err == NULL && rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        err = err == NULL ? NULL : error_copy(arena, err);
    }
    return err;
}

/* All rows below the range go, and the record says so. Yields. */
static struct error *
set_aside(struct rebuild *rebuild, struct arena *arena)
{
    struct tenure *tenure = rebuild->tenure;
    struct visible *visible = &tenure->visible;
    while (!writer_has_room(tenure->writer)) {
        struct error *err = wait_room(rebuild, arena);
        if (err != NULL)
            return err;
    }
    tenure_reserve_range(tenure, &rebuild->next, &rebuild->end);
    visible_leave_from(tenure, rebuild->end);
    struct batch *batch = tenure_batch(tenure, arena);
    batch_delete_range(batch, ROW_VISIBLE, visible_key(1, arena), visible_key(rebuild->end, arena));
    visible->trimmed = rebuild->end - 1;
    visible->is_without = false;
    tenure->is_record_due = true;
    return tenure_wait(tenure, tenure_submit(tenure, batch), arena);
}

struct error *
visible_rebuild(struct tenure *tenure, struct arena *arena)
{
    struct rebuild rebuild = {.tenure = tenure, .held_arena = arena_new(0)};
    uint64_t wanted = tenure->visible.rebuilds_wanted;
    struct error *err = set_aside(&rebuild, arena);
    if (err == NULL)
        err = begin_anew(&rebuild, rebuild.next - 1, arena);
    if (err == NULL)
        err = take_runs(&rebuild, arena);
    if (err == NULL && rebuild.held != NULL)
        err = give_held(&rebuild, rebuild.end - 1, arena);
    else if (err == NULL)
        err = begin_anew(&rebuild, rebuild.end - 1, arena); /* there is no run */
    arena_free(rebuild.held_arena);
    if (err != NULL)
        return err;
    mark("lists_rebuilt");
    log_info(tenure->shard->options.log, "The lists of runs were made anew.",
             log_number("shard-id", tenure->shard->options.number),
             log_number("number", (int64_t)rebuild.runs));
    tenure->visible.rebuilt_runs = rebuild.runs;
    tenure->visible.rebuilds_done = wanted;
    return NULL;
}
