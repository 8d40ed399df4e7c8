/* base.c - what survives hosts: durable rows, and what is on its way to them.
 *
 * A crashed host takes its commits with it, but what it had handed to the disk may be there or not.
 * So the base has a copy of every commit in flight, and decides when it is told of the crash: of
 * the group that was being written a prefix lands, in the order of the handle. What waited behind
 * the group had not been begun and is lost. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "store/key.h"
#include "store/memory/inside.h"

#define WRITE_DELAY_MAX (1 * NS_PER_MS)
#define SYNC_DELAY_MAX  (3 * NS_PER_MS)
#define READ_DELAY_MAX  (200 * NS_PER_US)

/* For scoped(heap_back) struct heap *host = heap_select(NULL): memory of the base is of no host. */
static void
heap_back(struct heap **host)
{
    heap_select(*host);
}

struct memory_base *
memory_base_new(uint64_t seed)
{
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    struct memory_base *base = memory_zalloc(1, sizeof *base);
    memory_rows_init(&base->durable);
#ifdef CADENZA_FAULT_skip_fsync
    memory_rows_init(&base->written);
#endif
    random_seed(&base->random, seed);
    list_init(&base->handles);
    if (seed != 0)
        memory_base_set_delays(base, WRITE_DELAY_MAX, SYNC_DELAY_MAX, READ_DELAY_MAX);
    return base;
}

void
memory_base_free(struct memory_base *base)
{
    if (base == NULL)
        return;
    while (!list_is_empty(&base->handles))
        memory_handle_free(list_entry(base->handles.next, struct memory_handle, node));
    memory_rows_free(&base->durable);
#ifdef CADENZA_FAULT_skip_fsync
    memory_rows_free(&base->written);
#endif
    memory_free(base);
}

void
memory_base_set_delays(struct memory_base *base, int64_t write_max, int64_t sync_max,
                       int64_t read_max)
{
    check(write_max >= 0 && sync_max >= 0 && read_max >= 0);
    base->write_max = write_max;
    base->sync_max = sync_max;
    base->read_max = read_max;
}

size_t
memory_base_rows(const struct memory_base *base)
{
    return tree_count(base->durable.rows);
}

size_t
memory_base_count(const struct memory_base *base, enum row_kind kind)
{
    return memory_rows_count(&base->durable, kind);
}

uint64_t
memory_base_commits(const struct memory_base *base)
{
    return base->commits;
}

uint64_t
memory_base_points(const struct memory_base *base)
{
    return base->points;
}

uint64_t
memory_base_landed(const struct memory_base *base)
{
    return base->landed;
}

uint64_t
memory_base_lost(const struct memory_base *base)
{
    return base->lost;
}

void
memory_base_share(struct memory_base *base)
{
    base->is_shared = true;
}

void
memory_base_break(struct memory_base *base)
{
    base->is_broken = true;
}

void
memory_base_repair(struct memory_base *base)
{
    base->is_broken = false;
}

void
memory_base_watch(struct memory_base *base, struct memory_watch watch)
{
    base->watch = watch;
}

const struct memory_rows *
memory_base_visible(const struct memory_base *base)
{
#ifdef CADENZA_FAULT_skip_fsync
    return &base->written;
#else
    return &base->durable;
#endif
}

int64_t
memory_base_delay(struct memory_base *base, int64_t max)
{
    return max == 0 ? 0 : (int64_t)random_below(&base->random, (uint64_t)max + 1);
}

/* ---- handles ---- */

struct memory_handle *
memory_handle_new(struct memory_base *base)
{
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    struct memory_handle *handle = memory_zalloc(1, sizeof *handle);
    handle->number = ++base->handle_newest;
    list_init(&handle->waiting);
    list_init(&handle->group);
    list_push_back(&base->handles, &handle->node);
    return handle;
}

static void
flight_free(struct flight *flight)
{
    list_remove(&flight->node);
    memory_free(flight);
}

static void
flights_free(struct list *flights)
{
    while (!list_is_empty(flights))
        flight_free(list_entry(flights->next, struct flight, node));
}

void
memory_handle_free(struct memory_handle *handle)
{
    flights_free(&handle->group);
    flights_free(&handle->waiting);
    list_remove(&handle->node);
    memory_free(handle);
}

/* ---- flights ---- */

struct flight *
memory_flight_add(struct memory_base *base, struct memory_handle *handle,
                  const struct commit *commit)
{
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    struct slice key = commit->partition_key, steps = commit->steps;
    check(commit->is_confirmation ||
          (commit->guard_next > 0 && commit->guard_next >= commit->guard_expected));
    struct flight *flight = memory_zalloc(1, sizeof *flight + key.length + steps.length);
    uint8_t *bytes = (uint8_t *)(flight + 1);
    memcpy(bytes, key.data, key.length);
    if (steps.length > 0)
        memcpy(bytes + key.length, steps.data, steps.length);
    flight->partition_key = slice_of(bytes, key.length);
    flight->steps = slice_of(bytes + key.length, steps.length);
    flight->stream = commit->stream == NULL ? 0 : commit->stream->number;
    flight->guard_expected = commit->guard_expected;
    flight->guard_next = commit->guard_next;
    flight->is_confirmation = commit->is_confirmation;
    list_push_back(&handle->waiting, &flight->node);
    base->commits += !commit->is_confirmation;
    return flight;
}

static void
doom(struct list *flights, uint64_t stream)
{
    list_each(node, flights) {
        struct flight *flight = list_entry(node, struct flight, node);
        flight->is_doomed = flight->is_doomed || flight->stream == stream;
    }
}

static void
doom_stream(struct memory_handle *handle, uint64_t stream)
{
    if (stream == 0)
        return;
    doom(&handle->group, stream);
    doom(&handle->waiting, stream);
}

static bool
is_refused(const struct memory_rows *rows, const struct flight *flight, uint64_t *guard_found)
{
    *guard_found = memory_rows_guard(rows, flight->partition_key);
#ifdef CADENZA_FAULT_accept_stale_guard
    return false;
#endif
#ifdef CADENZA_FAULT_confirm_without_guard
    if (flight->is_confirmation)
        return flight->is_doomed;
#endif
    return flight->is_doomed || *guard_found != flight->guard_expected;
}

static void
flight_apply(struct memory_rows *rows, const struct flight *flight)
{
    if (flight->is_confirmation)
        return;
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    memory_rows_apply(rows, flight->partition_key, flight->guard_next, flight->steps);
}

static void
show_watch(const struct memory_base *base, const struct flight *flight)
{
    const struct memory_watch *watch = &base->watch;
    if (watch->landed == NULL)
        return;
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    scoped(arena_drop) struct arena *arena = arena_new(256);
    struct partition partition;
    struct slice key = flight->partition_key, steps = flight->steps;
    bool is_read = partition_take(&key, arena, &partition);
    check(is_read);
    struct commit_step step;
    while (commit_next_step(&steps, &step)) {
        if (step.verb == BATCH_PUT)
            watch->landed(watch->context, partition, step.kind, step.key, step.value);
    }
}

bool
memory_flight_land(struct memory_base *base, struct memory_handle *handle, struct flight *flight,
                   uint64_t *guard_found)
{
    bool is_landing = !is_refused(&base->durable, flight, guard_found);
    if (is_landing)
        flight_apply(&base->durable, flight);
    if (is_landing)
        show_watch(base, flight);
    uint64_t stream = flight->stream;
    flight_free(flight);
    if (!is_landing)
        doom_stream(handle, stream);
    return is_landing;
}

#ifdef CADENZA_FAULT_skip_fsync
bool
memory_flight_show(struct memory_base *base, struct memory_handle *handle, struct flight *flight,
                   uint64_t *guard_found)
{
    flight->is_doomed = is_refused(&base->written, flight, guard_found);
    if (flight->is_doomed)
        doom_stream(handle, flight->stream);
    else
        flight_apply(&base->written, flight);
    return !flight->is_doomed;
}
#endif

/* ---- loss ---- */

static size_t
flights_count(const struct list *flights)
{
    size_t count = 0;
    list_each(node, flights)
        count++;
    return count;
}

void
memory_handle_lose(struct memory_base *base, struct memory_handle *handle)
{
    size_t count = flights_count(&handle->group);
    size_t prefix = (size_t)random_below(&base->random, count + 1);
    base->lost += count - prefix + flights_count(&handle->waiting);
    for (size_t i = 0; i < prefix; i++) {
        uint64_t guard_found;
        struct flight *flight = list_entry(handle->group.next, struct flight, node);
        base->landed += memory_flight_land(base, handle, flight, &guard_found);
    }
    flights_free(&handle->group);
    flights_free(&handle->waiting);
#ifdef CADENZA_FAULT_skip_fsync
    scoped(heap_back) maybe_unused struct heap *host = heap_select(NULL);
    memory_rows_copy(&base->written, &base->durable);
#endif
}

void
memory_crash(struct memory_base *base, uint64_t number)
{
    list_each_safe(node, &base->handles) {
        struct memory_handle *handle = list_entry(node, struct memory_handle, node);
        if (handle->number != number)
            continue;
        memory_handle_lose(base, handle);
        memory_handle_free(handle);
        return;
    }
}
