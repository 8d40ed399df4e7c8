/* rebuild.c - the shard's part of visibility is rebuilt from its runs: when it lacks rows that are
 * gone, or because somebody asks for it.
 *
 * A whole range of the shard's numbers is set aside for it. First the shard record says that all
 * rows below the end of the range are gone (and they go): from then on visibility is not whole
 * unless it has the last number of the range, so after a crash the next owner rebuilds it again.
 * Then visibility drops what it has of the shard, and every run gets a number of the range; the
 * last run gets the last. Steps that are taken meanwhile leave rows with higher numbers, which are
 * read afterwards.
 *
 * Numbers of an owner that was overtaken are all below the range: what it still hands over is too
 * old, and visibility ignores it. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/feed/visibility.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RUNS_PAGE  100
#define ROOM_DELAY (10 * NS_PER_MS)

struct visibility_rebuilding {
    struct tenure *tenure;
    uint64_t next, end; /* numbers that are left */
    uint64_t runs;
    /* The run that was found last: it waits until it is known whether it is the last one. */
    STORED(RunRecord) *held;
    struct arena *held_arena;
};

static struct error *
wait_room(struct visibility_rebuilding *visibility_rebuilding, struct arena *arena)
{
    probe("rebuild_waited_for_room");
    struct error *err = fiber_sleep(ROOM_DELAY, arena);
    if (err == NULL && visibility_rebuilding->tenure->is_over)
        err = tenure_error(visibility_rebuilding->tenure, arena);
    return err;
}

/* Visibility drops what it has of the shard up to `row`. Yields. */
static struct error *
start_over(struct visibility_rebuilding *visibility_rebuilding, uint64_t row, struct arena *arena)
{
    struct tenure *tenure = visibility_rebuilding->tenure;
    struct visibility_update *update = visibility_update_new(&(struct visible_change){
        .shard = tenure->shard->options.number, .row = row, .is_beginning = true});
    struct error *err = NULL;
    while (err == NULL && !visibility_hand_over(tenure, update))
        err = wait_room(visibility_rebuilding, arena);
    if (err != NULL)
        memory_free(update);
    return err;
}

/* Hands over the run that is held. Yields. */
static struct error *
give_held(struct visibility_rebuilding *visibility_rebuilding, uint64_t row, struct arena *arena)
{
    STORED(RunRecord) *core = visibility_rebuilding->held;
    check(row < visibility_rebuilding->end && visibility_rebuilding->runs > 0);
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    struct error *err = NULL;
    while (err == NULL && !visibility_give(visibility_rebuilding->tenure, &key, core, row,
                                           visibility_rebuilding->held_arena))
        err = wait_room(visibility_rebuilding, arena);
    visibility_rebuilding->held = NULL;
    return err;
}

static struct error *
take_run(struct visibility_rebuilding *visibility_rebuilding, const struct row *row,
         struct arena *arena)
{
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(row->key, row->value, arena, &core);
    if (err != NULL || core->is_deleting)
        return err;
    if (visibility_rebuilding->held != NULL)
        err = give_held(visibility_rebuilding, visibility_rebuilding->next++, arena);
    if (err != NULL)
        return err;
    check_that(visibility_rebuilding->next < visibility_rebuilding->end - 1,
               "a shard has more runs than numbers of a range");
    arena_reset(visibility_rebuilding->held_arena);
    visibility_rebuilding->held = message_copy(visibility_rebuilding->held_arena, &core->base);
    visibility_rebuilding->runs++;
    return NULL;
}

/* Yields. */
static struct error *
take_runs(struct visibility_rebuilding *visibility_rebuilding, struct arena *arena)
{
    struct shard *shard = visibility_rebuilding->tenure->shard;
    struct scan scan = {.partition = shard->partition, .kind = ROW_RUN, .rows_max = RUNS_PAGE};
    struct rows rows = {.has_more = true};
    struct error *err = NULL;
    while (err == NULL && rows.has_more) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        err = store_scan(shard->options.store, &scan, page, &rows);
        check(err != NULL || rows.count > 0 || !rows.has_more); /* each page comes further */
        for (size_t i = 0; err == NULL && i < rows.count; i++)
            err = take_run(visibility_rebuilding, &rows.row[i], page);
        if (err == NULL && visibility_rebuilding->tenure->is_over)
            err = tenure_error(visibility_rebuilding->tenure, page);
        if (err == NULL && rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        err = err == NULL ? NULL : error_copy(arena, err);
    }
    return err;
}

/* All rows below the range go, and the record says so. Yields. */
static struct error *
set_aside(struct visibility_rebuilding *visibility_rebuilding, struct arena *arena)
{
    struct tenure *tenure = visibility_rebuilding->tenure;
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    while (!writer_has_room(tenure->writer)) {
        struct error *err = wait_room(visibility_rebuilding, arena);
        if (err != NULL)
            return err;
    }
    check(!tenure->is_over);
    tenure_reserve_range(tenure, &visibility_rebuilding->next, &visibility_rebuilding->end);
    visibility_leave_from(tenure, visibility_rebuilding->end);
    struct batch *batch = tenure_batch(tenure, arena);
    batch_delete_range(batch, ROW_VISIBLE, visible_key(1, arena),
                       visible_key(visibility_rebuilding->end, arena));
    visibility_feed->trimmed = visibility_rebuilding->end - 1;
    visibility_feed->is_without = false;
    tenure->is_record_due = true;
    return tenure_wait(tenure, tenure_submit(tenure, batch), arena);
}

struct error *
visibility_rebuild(struct tenure *tenure, struct arena *arena)
{
    struct visibility_rebuilding visibility_rebuilding = {.tenure = tenure,
                                                          .held_arena = arena_new(0)};
    uint64_t wanted = tenure->visibility_feed.rebuilds_wanted;
    check(wanted > tenure->visibility_feed.rebuilds_done);
    check(tenure->visibility_feed.is_begun); /* what visibility has was asked before */
    struct error *err = set_aside(&visibility_rebuilding, arena);
    if (err == NULL)
        err = start_over(&visibility_rebuilding, visibility_rebuilding.next - 1, arena);
    if (err == NULL)
        err = take_runs(&visibility_rebuilding, arena);
    if (err == NULL && visibility_rebuilding.held != NULL)
        err = give_held(&visibility_rebuilding, visibility_rebuilding.end - 1, arena);
    else if (err == NULL)
        err = start_over(&visibility_rebuilding, visibility_rebuilding.end - 1,
                         arena); /* there is no run */
    arena_free(visibility_rebuilding.held_arena);
    if (err != NULL)
        return err;
    probe("visibility_rebuilt");
    log_info(tenure->shard->options.log, "The visibility records of a shard were rebuilt.",
             log_number("shard-id", tenure->shard->options.number),
             log_number("number", (int64_t)visibility_rebuilding.runs));
    tenure->visibility_feed.rebuilt_runs = visibility_rebuilding.runs;
    tenure->visibility_feed.rebuilds_done = wanted;
    return NULL;
}
