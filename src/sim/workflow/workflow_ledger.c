/* workflow_ledger.c - what was promised and what was seen. See workflow_load.h.
 *
 * An event that somebody saw is kept as a hash of its bytes, by run and id. A caller that sees
 * it again, from any host and after any crash, must see the same. The ledger is in no host's heap.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)

static int64_t
time_of(const GOOGLE(Timestamp) *time)
{
    return time == NULL ? 0 : time->seconds * NS_PER_S + time->nanos;
}

static void
see_event(struct workflow_load *load, const char *run_id, const API(HistoryEvent) *event,
          struct arena *arena)
{
    const char *name = arena_format(arena, "%s/%" PRId64, run_id, event->event_id);
    uint64_t hash = map_hash(message_encode(arena, &event->base)) | 1; /* never NULL */
    void *before = map_get(load->events, slice_text(name));
    if (before == NULL)
        map_put(load->events, slice_text(name), (void *)(uintptr_t)hash);
    else if ((uint64_t)(uintptr_t)before != hash)
        verdict_violate(&load->verdict, "event %s is not what somebody saw before", name);
}

void
ledger_see(struct workflow_load *load, const char *run_id, API(HistoryEvent) *const *events,
           size_t stored)
{
    struct heap *host = heap_select(NULL);
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < stored; i++)
        see_event(load, run_id, events[i], arena);
    arena_free(arena);
    heap_select(host);
}

const char *
ledger_unhandled_name(const char *run_id, int64_t started_id, struct arena *arena)
{
    return arena_format(arena, "u%s/%" PRId64, run_id, started_id);
}

struct reported *
ledger_promise(struct workflow_load *load, const char *name)
{
    struct reported *reported = map_get(load->reported, slice_text(name));
    if (reported != NULL)
        return reported;
    struct heap *host = heap_select(NULL);
    reported = memory_zalloc(1, sizeof *reported);
    map_put(load->reported, slice_text(name), reported);
    heap_select(host);
    return reported;
}

void
ledger_hand_out(struct workflow_load *load, const char *name)
{
    struct heap *host = heap_select(NULL);
    if (map_put(load->handed, slice_text(name), load) != NULL)
        verdict_violate(&load->verdict, "task %s was handed out twice", name);
    heap_select(host);
}

void
ledger_note_refusal(struct workflow_load *load, struct workflow_entry *entry,
                    const struct error *err)
{
    if (entry->gone_time != 0 || strstr(err->message, "execution already completed") == NULL)
        return;
    entry->gone_time = clock_wall();
    world_probe(load->sim->world, "notified_that_it_is_over");
}

void
ledger_note_ending(struct workflow_load *load, struct workflow_entry *entry, unsigned host)
{
    if (entry == NULL)
        return;
    load->ending = entry;
    load->ending_host = host;
}

struct workflow_entry *
ledger_find(struct workflow_load *load, const char *workflow_id)
{
    for (unsigned i = 0; i < load->entry_count; i++) {
        if (strcmp(load->entries[i].id, workflow_id) == 0)
            return &load->entries[i];
    }
    return NULL;
}

/* The started event of the timer that this one fires, by its id; ids are places. */
static void
check_timer(struct workflow_load *load, const char *run_id, const struct history_seen *seen,
            const API(HistoryEvent) *fired)
{
    int64_t id = fired->timer_fired_event_attributes->started_event_id;
    if (id < 1 || (size_t)id > seen->count ||
        seen->events[id - 1]->attributes_case != EVENT(TIMER_STARTED)) {
        verdict_violate(&load->verdict, "%s: a timer fired that was not started", run_id);
        return;
    }
    const API(HistoryEvent) *started = seen->events[id - 1];
    int64_t wait = time_of(fired->event_time) - time_of(started->event_time);
    int64_t asked =
        started->timer_started_event_attributes->start_to_fire_timeout->seconds * NS_PER_S;
    if (wait < asked)
        verdict_violate(&load->verdict, "%s: a timer of %" PRId64 " ms fired after %" PRId64 " ms",
                        run_id, (int64_t)(asked / NS_PER_MS), (int64_t)(wait / NS_PER_MS));
}

void
ledger_check_history(struct workflow_load *load, const char *run_id,
                     const struct history_seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        const API(HistoryEvent) *event = seen->events[i];
        if (event->event_id != (int64_t)i + 1)
            verdict_violate(&load->verdict, "%s: event %" PRId64 " stands at place %zu", run_id,
                            event->event_id, i + 1);
        if (i > 0 && time_of(event->event_time) < time_of(seen->events[i - 1]->event_time))
            verdict_violate(&load->verdict, "%s: time goes back at event %" PRId64, run_id,
                            event->event_id);
        if (event->attributes_case == EVENT(TIMER_FIRED))
            check_timer(load, run_id, seen, event);
    }
}
