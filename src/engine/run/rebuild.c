/* rebuild.c - a run rebuilt from its history. See rebuild.h.
 *
 * Each batch is a step of its own whose rows are thrown away: only the state that it leaves counts.
 * Row numbers come from a private sequence, and are cleared at the end. */
#include "engine/run/rebuild.h"

#include "engine/run/fits.h"
#include "engine/run/inside.h"
#include "wire/presence.h"

void
rebuild_begin(struct rebuild *rebuild, struct run *run, const struct run_context *context,
              struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    check(core->state == 0 && core->run_id[0] != '\0' && core->branch_id.len == 16);
    *rebuild = (struct rebuild){.run = run, .context = *context, .arena = arena};
    rebuild->ids = (struct row_ids){.next = 1, .end = UINT64_MAX};
    run->core->next_event_id = 1;
}

/* Is it about the activity with this schedule id, or the timer with this started id? */
static bool
event_is_about(const API(HistoryEvent) *event, int64_t id)
{
    int64_t schedule_id;
    if (event->attributes_case == EVENT_KIND(ACTIVITY_TASK_STARTED))
        return event->activity_task_started_event_attributes->scheduled_event_id == id;
    if (event->attributes_case == EVENT_KIND(TIMER_FIRED))
        return event->timer_fired_event_attributes->started_event_id == id;
    return event_started_id(event, &schedule_id) != NULL && schedule_id == id;
}

/* What is pending under the id that the event gives to a new one; 0: nothing is. */
static int64_t
find_namesake(const struct run *run, const API(HistoryEvent) *event)
{
    if (event->attributes_case == EVENT_KIND(ACTIVITY_TASK_SCHEDULED)) {
        const STORED(PendingActivity) *activity =
            run_find_activity_id(run, event->activity_task_scheduled_event_attributes->activity_id);
        return activity == NULL ? 0 : activity->schedule_id;
    }
    if (event->attributes_case != EVENT_KIND(TIMER_STARTED))
        return 0;
    const STORED(PendingTimer) *timer =
        run_find_timer(run, event->timer_started_event_attributes->timer_id);
    return timer == NULL ? 0 : timer->started_id;
}

/* The end of what it is about was applied before its turn. */
static bool
is_of_the_past(struct rebuild *rebuild, const API(HistoryEvent) *event)
{
    for (size_t i = 0; i < rebuild->ended.count; i++) {
        if (!event_is_about(event, rebuild->ended.items[i]))
            continue;
        if (event->attributes_case != EVENT_KIND(ACTIVITY_TASK_STARTED)) /* its end: the last one */
            vector_remove(&rebuild->ended, i);
        return true;
    }
    return false;
}

static void
remove_namesake(struct mutation *mutation, const API(HistoryEvent) *event, int64_t id)
{
    if (event->attributes_case == EVENT_KIND(ACTIVITY_TASK_SCHEDULED))
        mutation_remove_activity(mutation, id);
    else
        mutation_remove_timer(mutation, event->timer_started_event_attributes->timer_id);
}

/* An id is used again whose activity or timer ended while a decision was started. When it happened
 * the end was applied at once, so the id was free; but the end was buffered, so in the history it
 * is behind the new one, in the same batch or, if that was large, in a later one. */
static void
end_namesake(struct rebuild *rebuild, struct mutation *mutation, const API(HistoryEvent) *event)
{
    int64_t id = find_namesake(rebuild->run, event);
    if (id == 0)
        return;
    remove_namesake(mutation, event, id);
    vector_push_in(&rebuild->ended, rebuild->arena, id);
}

const char *
rebuild_find_misfit(const struct rebuild *rebuild, const API(HistoryEvent) *event)
{
    for (size_t i = 0; i < rebuild->ended.count; i++)
        if (event_is_about(event, rebuild->ended.items[i]))
            return run_find_misplaced(rebuild->run, event); /* it changes nothing else */
    return run_find_misfit(rebuild->run, event);
}

void
rebuild_read_ended(struct rebuild *rebuild)
{
    const STORED(RunRecord) *core = rebuild->run->core;
    for (size_t i = 0; i < core->n_ended; i++)
        vector_push_in(&rebuild->ended, rebuild->arena, core->ended[i]);
}

void
rebuild_store_ended(const struct rebuild *rebuild)
{
    struct run *run = rebuild->run;
    size_t count = rebuild->ended.count;
    run->core->n_ended = count;
    run->core->ended = arena_zalloc(run->arena, count, sizeof run->core->ended[0]);
    if (count > 0)
        memcpy(run->core->ended, rebuild->ended.items, count * sizeof run->core->ended[0]);
}

/* The event as it is applied. One without a time stays so in the history, and is taken to have
 * happened with the one before it; the first one, as Cadence has it, when time began. */
static const API(HistoryEvent) *
with_time(const struct rebuild *rebuild, const API(HistoryEvent) *event, API(HistoryEvent) *timed)
{
    int64_t last = rebuild->run->core->last_event_time;
    if (presence_time(event->event_time) > 0)
        return event;
    *timed = *event;
    timed->event_time = presence_make_timestamp(rebuild->arena, last > 0 ? last : 1);
    return timed;
}

void
rebuild_apply(struct rebuild *rebuild, struct mutation *mutation, API(HistoryEvent) *event)
{
    STORED(RunRecord) *core = rebuild->run->core;
    const char *misfit = rebuild_find_misfit(rebuild, event);
    check_that(misfit == NULL, "event %lld where %lld is expected: %s", (long long)event->event_id,
               (long long)core->next_event_id, misfit);
    if (event_closes_run(event->attributes_case) && run_has_started_decision(rebuild->run))
        core->decision = NULL; /* other clusters may not write down that it ended */
    API(HistoryEvent) timed;
    const API(HistoryEvent) *applied = with_time(rebuild, event, &timed);
    rebuild->context.now = event_time(applied);
    rebuild->context.event_version = event->version;
    core->next_event_id++;
    core->last_event_time = event_time(applied);
    core->last_event_task_id = event->task_id;
    vector_push_in(&mutation->events, mutation->arena, event);
    end_namesake(rebuild, mutation, event);
    if (!is_of_the_past(rebuild, event))
        run_apply(mutation, applied);
    if (event_closes_run(event->attributes_case)) {
        core->close_batch_event_id = mutation_first_event_id(mutation);
        rebuild->ended.count = 0; /* their ends were dropped */
    }
}

const char *
rebuild_try(struct rebuild *rebuild, API(HistoryEvent) *const *events, size_t count, size_t bytes,
            struct arena *arena)
{
    if (count == 0)
        return NULL;
    rebuild->context.ids = &rebuild->ids;
    struct mutation *mutation = mutation_begin(rebuild->run, &rebuild->context, arena);
    mutation->has_replicated_events = true; /* they were decided before, not in this step */
    for (size_t i = 0; i < count; i++) {
        const char *misfit = rebuild_find_misfit(rebuild, events[i]);
        if (misfit != NULL)
            return misfit;
        rebuild_apply(rebuild, mutation, events[i]);
    }
    check(mutation->events.count == count);
    mutation_note_versions(mutation);
    STORED(RunRecord) *core = rebuild->run->core;
    core->last_first_event_id = mutation_first_event_id(mutation);
    core->history_bytes += (int64_t)bytes;
    mutation->is_over = true;
    return NULL;
}

void
rebuild_add(struct rebuild *rebuild, API(HistoryEvent) *const *events, size_t count, size_t bytes,
            struct arena *arena)
{
    const char *misfit = rebuild_try(rebuild, events, count, bytes, arena);
    check_that(misfit == NULL, "a history of our own: %s", misfit);
}

void
rebuild_end(struct rebuild *rebuild)
{
    struct run *run = rebuild->run;
    size_t cursor = 0;
    void *value;
    rebuild_store_ended(rebuild);
    if (run->core->decision != NULL)
        run->core->decision->row = 0; /* nobody else has the record: it may be written to */
    while (map64_next(run->activities, &cursor, NULL, &value))
        ((STORED(PendingActivity) *)value)->row = 0;
    for (cursor = 0; map64_next(run->externals, &cursor, NULL, &value);)
        ((STORED(PendingExternal) *)value)->row = 0;
    check(run->core->state != 0 && run->core->alarm_row == 0);
}

struct error *
rebuild_decode(const struct history_node *node, struct arena *arena, const API(History) **history)
{
    API(History) *decoded = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, API_TYPE(history), node->events, &decoded);
    if (err != NULL)
        return err;
    size_t count = (size_t)(node->next_event_id - node->first_event_id);
    if (decoded->n_events != count)
        return error_new(arena, ERR_CORRUPT, "a node of %zu events that should have %zu",
                         decoded->n_events, count);
    *history = decoded;
    return NULL;
}

static struct error *
rebuild_page(struct rebuild *rebuild, const struct history_page *page, struct arena *arena)
{
    for (size_t i = 0; i < page->count; i++) {
        const API(History) *history;
        struct error *err = rebuild_decode(&page->node[i], arena, &history);
        if (err != NULL)
            return err;
        const char *misfit = rebuild_try(rebuild, history->events, history->n_events,
                                         page->node[i].events.length, arena);
        if (misfit != NULL)
            return error_new(arena, ERR_CORRUPT, "the batch from event %lld on does not fit: %s",
                             (long long)page->node[i].first_event_id, misfit);
    }
    run_compact(rebuild->run);
    return NULL;
}

struct error *
run_rebuild(struct store *store, struct partition shard, int64_t next_event_id, size_t page_bytes,
            const struct run_context *context, struct run *run, struct arena *arena)
{
    struct rebuild rebuild;
    struct history_lineage lineage = run_lineage(run, arena);
    rebuild_begin(&rebuild, run, context, arena);
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    for (int64_t from = 1; from < next_event_id;) {
        struct history_page page;
        arena_reset(scratch);
        struct error *err = store_read_lineage_on(store, shard, &lineage, from, next_event_id,
                                                  page_bytes, scratch, &page);
        if (err == NULL)
            err = rebuild_page(&rebuild, &page, scratch);
        if (err != NULL)
            return error_copy(arena, err);
        from = page.next_event_id;
    }
    rebuild_end(&rebuild);
    return NULL;
}
