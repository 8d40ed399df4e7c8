/* input.c - a large input of an activity is stored once, in its scheduled event.
 *
 * The record of an activity is written when it is scheduled, when it starts, and with heartbeats
 * and attempts. Its input never changes, and a poller must have it without a read of history. So in
 * memory the record always has it, but it is stored with the record only if it is small. Reading a
 * run brings the large ones back from the batches that the records name: batches that are near each
 * other by one read, without the history between those that are far apart. */
#include "engine/run/inside.h"
#include "engine/run/rebuild.h"
#include "fiber/probe.h"

#define STORED_INPUT_MAX 512 /* bytes */
#define PAGE_BYTES       ((size_t)1 << 20)
#define NEAR             16 /* events: what lies between is read along */

STORED(PendingActivity) *
input_leave(STORED(PendingActivity) *activity, struct arena *arena)
{
    if (activity->input == NULL || activity->input->data.len <= STORED_INPUT_MAX)
        return activity;
    STORED(PendingActivity) *stored = arena_alloc(arena, sizeof *stored);
    memcpy(stored, activity, sizeof *stored);
    stored->input = NULL;
    stored->input_in_event = true;
    return stored;
}

/* ---- back again ---- */

typedef vector_of(STORED(PendingActivity) *) activities_t;

static int
compare_schedule_ids(const void *one, const void *other)
{
    int64_t a = (*(STORED(PendingActivity) *const *)one)->schedule_id;
    int64_t b = (*(STORED(PendingActivity) *const *)other)->schedule_id;
    return (a > b) - (a < b);
}

/* Those without their input, in the order of their events. */
static activities_t
find_without(const struct run *run, struct arena *arena)
{
    activities_t without = {0};
    void *value;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, NULL, &value);)
        if (((STORED(PendingActivity) *)value)->input_in_event)
            vector_push_in(&without, arena, value);
    if (without.count > 1)
        qsort(without.items, without.count, sizeof *without.items, compare_schedule_ids);
    return without;
}

/* Where the reading of the history stands. */
struct input_reader {
    struct store *store;
    struct partition shard;
    struct history_lineage lineage;
    struct arena *arena; /* of the page; emptied with each one */
    struct history_page page;
    size_t node;                /* of the page */
    const API(History) *events; /* of that node; NULL: not decoded */
};

/* Behind the last of those that follow each other closely, the first one being `wanted`. */
static int64_t
find_end(STORED(PendingActivity) *const *wanted, size_t count)
{
    size_t i = 1;
    while (i < count && wanted[i]->schedule_id - wanted[i - 1]->schedule_id < NEAR)
        i++;
    return wanted[i - 1]->schedule_id + 1;
}

/* Reads a page from the node on that begins at an event id. Yields. */
static struct error *
input_reader_read(struct input_reader *reader, int64_t event_id, int64_t end)
{
    arena_reset(reader->arena);
    reader->node = 0;
    reader->events = NULL;
    return store_read_lineage_on(reader->store, reader->shard, &reader->lineage, event_id, end,
                                 PAGE_BYTES, reader->arena, &reader->page);
}

static struct error *
input_reader_next(struct input_reader *reader, STORED(PendingActivity) *const *wanted, size_t count)
{
    int64_t next = reader->page.node[reader->node].next_event_id;
    int64_t batch = wanted[0]->schedule_batch_event_id;
    reader->events = NULL;
    if (++reader->node < reader->page.count)
        return NULL;
    return input_reader_read(reader, batch > next ? batch : next, find_end(wanted, count));
}

/* Goes on to the node of the first event that is wanted: its batch may be several nodes. Yields. */
static struct error *
input_reader_go_to(struct input_reader *reader, STORED(PendingActivity) *const *wanted,
                   size_t count)
{
    struct error *err = NULL;
    if (reader->page.count == 0)
        err =
            input_reader_read(reader, wanted[0]->schedule_batch_event_id, find_end(wanted, count));
    while (err == NULL && reader->page.node[reader->node].next_event_id <= wanted[0]->schedule_id)
        err = input_reader_next(reader, wanted, count);
    if (err == NULL && reader->events == NULL)
        err = rebuild_decode(&reader->page.node[reader->node], reader->arena, &reader->events);
    return err;
}

static struct error *
input_reader_take(const struct input_reader *reader, STORED(PendingActivity) *activity,
                  struct run *run)
{
    int64_t first = reader->page.node[reader->node].first_event_id;
    const API(HistoryEvent) *event = reader->events->events[activity->schedule_id - first];
    bool is_it = event->event_id == activity->schedule_id &&
                 event->attributes_case == EVENT_KIND(ACTIVITY_TASK_SCHEDULED) &&
                 event->activity_task_scheduled_event_attributes->input != NULL;
    if (!is_it)
        return error_new(reader->arena, ERR_CORRUPT, "event %lld has no input of an activity",
                         (long long)activity->schedule_id);
    activity->input = run_keep(run, event->activity_task_scheduled_event_attributes->input);
    activity->input_in_event = false;
    return NULL;
}

struct error *
inputs_return(struct store *store, struct partition shard, struct run *run, struct arena *arena)
{
#ifdef CADENZA_FAULT_large_input_lost
    return NULL;
#endif
    activities_t without = find_without(run, arena);
    if (without.count == 0 || run->core->is_deleting) /* then its history is going */
        return NULL;
    probe("inputs_read");
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    struct input_reader reader = {
        .store = store, .shard = shard, .lineage = run_lineage(run, arena), .arena = scratch};
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < without.count; i++) {
        err = input_reader_go_to(&reader, &without.items[i], without.count - i);
        if (err == NULL)
            err = input_reader_take(&reader, without.items[i], run);
    }
    return err == NULL ? NULL : error_copy(arena, err);
}
