/* due.c - which pending things are due first, without looking at all of them.
 *
 * A heap of moments, filled at the end of each step with the records that it changed. Entries may
 * be stale: one counts only if its record is there and is due at that very moment; others are
 * thrown away when they come to the top. So a record never has to be found in the heap. When a step
 * is taken back, or the run is compacted, the heap is forgotten, and built again from all records
 * when it is next needed.
 *
 *   1. While the heap is known, every record that was not changed in the open step has an entry
 *      for its moment.
 *   2. Entries point to texts in the run's arena. */
#include "engine/run/inside.h"

static bool
due_is_before(const struct run_due *one, const struct run_due *other)
{
    if (one->time != other->time)
        return one->time < other->time;
    if ((one->timer_id == NULL) != (other->timer_id == NULL))
        return one->timer_id == NULL;
    return one->number < other->number;
}

static void
heap_push(struct run_dues *dues, struct run_due due)
{
    vector_push(&dues->heap, due);
    struct run_due *items = dues->heap.items;
    size_t place = dues->heap.count - 1;
    while (place > 0 && due_is_before(&due, &items[(place - 1) / 2])) {
        items[place] = items[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    items[place] = due;
}

static struct run_due
heap_pop(struct run_dues *dues)
{
    struct run_due *items = dues->heap.items;
    struct run_due first = items[0], last = vector_pop(&dues->heap);
    size_t count = dues->heap.count, place = 0;
    while (2 * place + 1 < count) {
        size_t child = 2 * place + 1;
        if (child + 1 < count && due_is_before(&items[child + 1], &items[child]))
            child++;
        if (!due_is_before(&items[child], &last))
            break;
        items[place] = items[child];
        place = child;
    }
    if (count > 0)
        items[place] = last;
    return first;
}

static void
push_activity(struct run *run, const STORED(PendingActivity) *activity)
{
    int64_t time = activity_next_due(activity).time;
    if (time != 0)
        heap_push(&run->dues, (struct run_due){.time = time, .number = activity->schedule_id});
}

static void
push_timer(struct run *run, const STORED(PendingTimer) *timer)
{
    heap_push(&run->dues, (struct run_due){.time = timer->fire_time,
                                           .number = timer->started_id,
                                           .timer_id = timer->timer_id});
}

void
dues_forget(struct run *run)
{
    run->dues.is_known = false;
    vector_free(&run->dues.heap);
}

/* Builds the heap if it is not known, or mostly stale. */
static void
dues_learn(struct run *run)
{
    size_t pending = map64_count(run->activities) + map_count(run->timers);
    if (run->dues.is_known && run->dues.heap.count <= 4 * pending + 64)
        return;
    vector_clear(&run->dues.heap);
    void *value;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, NULL, &value);)
        push_activity(run, value);
    for (size_t cursor = 0; map_next(run->timers, &cursor, NULL, &value);)
        push_timer(run, value);
    run->dues.is_known = true;
}

void
dues_note(struct mutation *mutation)
{
    struct run *run = mutation->run;
    check(mutation->noted <= mutation->journal.count);
    for (; run->dues.is_known && mutation->noted < mutation->journal.count; mutation->noted++) {
        const struct run_change *change = &mutation->journal.items[mutation->noted];
        const void *record = records_get(run, change->kind, change->number, change->text);
        if (record != NULL && change->kind == PENDING_ACTIVITY)
            push_activity(run, record);
        else if (record != NULL && change->kind == PENDING_TIMER)
            push_timer(run, record);
    }
    mutation->noted = mutation->journal.count;
}

static bool
due_is_true(const struct run *run, const struct run_due *due)
{
    if (due->timer_id == NULL) {
        const STORED(PendingActivity) *activity = run_find_activity(run, due->number);
        return activity != NULL && activity_next_due(activity).time == due->time;
    }
    const STORED(PendingTimer) *timer = run_find_timer(run, due->timer_id);
    return timer != NULL && timer->started_id == due->number && timer->fire_time == due->time;
}

int64_t
mutation_next_deadline(struct mutation *mutation)
{
    struct run *run = mutation->run;
    if (!run_is_open(run) || run_is_zombie(run))
        return run_next_deadline(run); /* nothing that is pending counts any more */
    dues_note(mutation);
    dues_learn(run);
    while (run->dues.heap.count > 0 && !due_is_true(run, &run->dues.heap.items[0]))
        heap_pop(&run->dues);
    int64_t first = run->dues.heap.count == 0 ? 0 : run->dues.heap.items[0].time;
    int64_t deadline = deadline_earlier(run_core_deadline(run->core), first);
    check(!CHECK_DEEPLY || deadline == run_next_deadline(run));
    return deadline;
}

const struct run_due *
mutation_list_due(struct mutation *mutation, int64_t now, size_t *count)
{
    struct run *run = mutation->run;
    vector_of(struct run_due) list = {0};
    dues_note(mutation);
    dues_learn(run);
    while (run->dues.heap.count > 0 && run->dues.heap.items[0].time <= now) {
        struct run_due due = heap_pop(&run->dues);
        bool is_same = list.count > 0 && list.items[list.count - 1].time == due.time &&
                       list.items[list.count - 1].number == due.number;
        if (!is_same && due_is_true(run, &due))
            vector_push_in(&list, mutation->arena, due);
    }
    for (size_t i = 0; i < list.count; i++) {
        check(i == 0 || list.items[i - 1].time <= list.items[i].time);
        heap_push(&run->dues, list.items[i]); /* they are due until a step changes them */
    }
    *count = list.count;
    return list.items;
}
