/* journal.c - the records of what is pending, and how to take changes of them back.
 *
 * Records are values: a change puts another record in the old one's place, and the journal keeps
 * the old one. So taking back is putting old pointers back, last first, and the journal is at the
 * same time the list of rows that the step has to write.
 *
 *   1. An activity is in both of its maps, or in none.
 *   2. What a journal entry names lives as long as the run or the step. */
#include "engine/run/inside.h"

static void *
number_set(struct map64 **map, uint64_t number, void *record)
{
    if (record == NULL)
        return map64_remove(*map, number);
    if (*map == NULL)
        *map = map64_new();
    return map64_put(*map, number, record);
}

static void *
text_set(struct map **map, const char *text, void *record)
{
    if (record == NULL)
        return map_remove(*map, slice_text(text));
    if (*map == NULL)
        *map = map_new();
    return map_put(*map, slice_text(text), record);
}

static void *
activity_set(struct run *run, uint64_t schedule_id, STORED(PendingActivity) *activity)
{
    STORED(PendingActivity) *old = map64_get(run->activities, schedule_id);
    if (old != NULL) {
        void *removed = map_remove(run->activity_ids, slice_text(old->activity_id));
        check(removed == old);
    }
    if (activity == NULL) {
        map64_remove(run->activities, schedule_id);
        return old;
    }
    check((uint64_t)activity->schedule_id == schedule_id);
    void *other = text_set(&run->activity_ids, activity->activity_id, activity);
    check_that(other == NULL, "two pending activities are called %s", activity->activity_id);
    return number_set(&run->activities, schedule_id, activity);
}

static void *
birth_set(struct run *run, void *record)
{
    void *old = run->birth;
    run->birth = record;
    return old;
}

void *
records_get(const struct run *run, enum pending_kind kind, uint64_t number, const char *text)
{
    switch (kind) {
    case PENDING_ACTIVITY:
        return map64_get(run->activities, number);
    case PENDING_TIMER:
        return map_get(run->timers, slice_text(text));
    case PENDING_BUFFERED:
        return map64_get(run->buffered, number);
    case PENDING_SIGNAL_REQUEST:
        return map_get(run->signal_requests, slice_text(text));
    case PENDING_CHILD:
        return map64_get(run->children, number);
    case PENDING_EXTERNAL:
        return map64_get(run->externals, number);
    case PENDING_BIRTH:
        return run->birth;
    }
    unreachable("pending kind %d", (int)kind);
}

void *
records_set(struct run *run, enum pending_kind kind, uint64_t number, const char *text,
            void *record)
{
    switch (kind) {
    case PENDING_ACTIVITY:
        return activity_set(run, number, record);
    case PENDING_TIMER:
        return text_set(&run->timers, text, record);
    case PENDING_BUFFERED:
        return number_set(&run->buffered, number, record);
    case PENDING_SIGNAL_REQUEST:
        return text_set(&run->signal_requests, text, record);
    case PENDING_CHILD:
        return number_set(&run->children, number, record);
    case PENDING_EXTERNAL:
        return number_set(&run->externals, number, record);
    case PENDING_BIRTH:
        return birth_set(run, record);
    }
    unreachable("pending kind %d", (int)kind);
}

void
journal_set(struct mutation *mutation, enum pending_kind kind, uint64_t number, const char *text,
            void *record)
{
    check(!mutation->is_over);
    void *old = records_set(mutation->run, kind, number, text, record);
    check(old != NULL || record != NULL);
    check(old != record); /* the old one is the way back: it is never written to */
    vector_push_in(&mutation->journal, mutation->arena,
                   (struct run_change){.kind = kind, .number = number, .text = text, .old = old});
}

static void
journal_add(struct mutation *mutation, enum pending_kind kind, uint64_t number, const char *text)
{
    vector_push_in(&mutation->journal, mutation->arena,
                   (struct run_change){.kind = kind, .number = number, .text = text});
}

void
journal_add_all(struct mutation *mutation)
{
    const struct run *run = mutation->run;
    uint64_t number;
    void *value;
    for (size_t cursor = 0; map64_next(run->activities, &cursor, &number, NULL);)
        journal_add(mutation, PENDING_ACTIVITY, number, NULL);
    for (size_t cursor = 0; map_next(run->timers, &cursor, NULL, &value);)
        journal_add(mutation, PENDING_TIMER, 0, ((STORED(PendingTimer) *)value)->timer_id);
    for (size_t cursor = 0; map_next(run->signal_requests, &cursor, NULL, &value);)
        journal_add(mutation, PENDING_SIGNAL_REQUEST, 0,
                    ((STORED(SignalRequest) *)value)->request_id);
    for (size_t cursor = 0; map64_next(run->children, &cursor, &number, NULL);)
        journal_add(mutation, PENDING_CHILD, number, NULL);
    for (size_t cursor = 0; map64_next(run->externals, &cursor, &number, NULL);)
        journal_add(mutation, PENDING_EXTERNAL, number, NULL);
#ifndef CADENZA_FAULT_birth_not_written
    if (run->birth != NULL)
        journal_add(mutation, PENDING_BIRTH, 0, NULL);
#endif
    check(map64_count(run->buffered) == 0);
}

void
journal_undo(struct mutation *mutation, size_t count)
{
    check(count <= mutation->journal.count);
    if (mutation->noted > count) { /* what it saw is taken back */
        dues_forget(mutation->run);
        mutation->noted = count;
    }
    while (mutation->journal.count > count) {
        struct run_change change = vector_pop(&mutation->journal);
        records_set(mutation->run, change.kind, change.number, change.text, change.old);
    }
}

void
buffered_put(struct mutation *mutation, const API(HistoryEvent) *event)
{
    struct run *run = mutation->run;
    STORED(BufferedEvent) *buffered = message_new(run->arena, STORED_TYPE(buffered_event));
    buffered->number = run->core->buffered_next++;
    buffered->event = run_keep_message(run, &event->base);
    check(map64_get(run->buffered, buffered->number) == NULL);
    journal_set(mutation, PENDING_BUFFERED, buffered->number, NULL, buffered);
}

void
buffered_remove(struct mutation *mutation, uint64_t number)
{
    check(map64_get(mutation->run->buffered, number) != NULL);
    journal_set(mutation, PENDING_BUFFERED, number, NULL, NULL);
}

/* A rewind may have changed the order of the map: the numbers give the order. */
static int
buffered_compare(const void *a, const void *b)
{
    uint64_t one = (*(STORED(BufferedEvent) *const *)a)->number;
    uint64_t other = (*(STORED(BufferedEvent) *const *)b)->number;
    check(one != other);
    return one < other ? -1 : 1;
}

STORED(BufferedEvent) **
buffered_all(const struct mutation *mutation, size_t *count)
{
    const struct map64 *map = mutation->run->buffered;
    STORED(BufferedEvent) **all = arena_zalloc(mutation->arena, map64_count(map), sizeof *all);
    size_t cursor = 0;
    void *value;
    *count = 0;
    while (map64_next(map, &cursor, NULL, &value))
        all[(*count)++] = value;
    check(*count == map64_count(map));
    if (*count > 1)
        qsort(all, *count, sizeof(all[0]), buffered_compare);
    return all;
}
