/* replace.c - a run gets another history: the step replaces all that its rows say.
 *
 * The run was rebuilt from the history that won, beside the one that is stored. Its records are
 * written as those of a new run; what the old one has beyond them goes, and so does its wake-up
 * timer. Outbox rows that the old one names are dropped; those that no record names find nothing to
 * do when their turn comes, since what they are about is not in the history that won. */
#include "engine/run/inside.h"

/* The row is there, so the step must write or delete it. */
static void
note_record(struct mutation *mutation, enum pending_kind kind, uint64_t number, const char *text,
            void *old)
{
    vector_push_in(&mutation->journal, mutation->arena,
                   (struct run_change){.kind = kind, .number = number, .text = text, .old = old});
}

static void
note_numbered(struct mutation *mutation, enum pending_kind kind, const struct map64 *records)
{
    uint64_t number;
    void *value;
    for (size_t cursor = 0; map64_next(records, &cursor, &number, &value);)
        note_record(mutation, kind, number, NULL, value);
}

/* Keys are those of the old run, which outlives the step. */
static void
note_records(struct mutation *mutation, const struct run *old)
{
    void *value;
    note_numbered(mutation, PENDING_ACTIVITY, old->activities);
    note_numbered(mutation, PENDING_BUFFERED, old->buffered);
    note_numbered(mutation, PENDING_CHILD, old->children);
    note_numbered(mutation, PENDING_EXTERNAL, old->externals);
    for (size_t cursor = 0; map_next(old->timers, &cursor, NULL, &value);)
        note_record(mutation, PENDING_TIMER, 0, ((STORED(PendingTimer) *)value)->timer_id, value);
    for (size_t cursor = 0; map_next(old->signal_requests, &cursor, NULL, &value);)
        note_record(mutation, PENDING_SIGNAL_REQUEST, 0,
                    ((STORED(SignalRequest) *)value)->request_id, value);
    if (old->birth != NULL)
        note_record(mutation, PENDING_BIRTH, 0, NULL, old->birth);
}

static void
drop_rows(struct mutation *mutation, const struct run *old)
{
    void *value;
    if (old->core->decision != NULL)
        mutation_drop_transfer(mutation, old->core->decision->row);
    for (size_t cursor = 0; map64_next(old->activities, &cursor, NULL, &value);)
        mutation_drop_transfer(mutation, ((STORED(PendingActivity) *)value)->row);
    for (size_t cursor = 0; map64_next(old->externals, &cursor, NULL, &value);)
        mutation_drop_transfer(mutation, ((STORED(PendingExternal) *)value)->row);
}

/* How the run came about is in no event. */
static void
keep_birth_names(struct run *run, const STORED(RunRecord) *old)
{
    STORED(RunRecord) *core = run->core;
    core->create_request_id = run_keep_text(run, old->create_request_id);
    core->chain_request_id = run_keep_text(run, old->chain_request_id);
    core->reset_request_id = run_keep_text(run, old->reset_request_id);
    core->reset_run_id = run_keep_text(run, old->reset_run_id);
    core->jitter_start = old->jitter_start;
    core->buffered_next = old->buffered_next;
}

struct mutation *
mutation_begin_replacing(struct run *rebuilt, const struct run *old,
                         const struct run_context *context, struct arena *arena)
{
    check(strcmp(rebuilt->core->run_id, old->core->run_id) == 0);
    keep_birth_names(rebuilt, old->core);
    check(rebuilt != old && rebuilt->core->state != 0);
    check(rebuilt->core->alarm_row == 0 && rebuilt->aboard == 0);
    struct mutation *mutation = mutation_begin(rebuilt, context, arena);
    mutation->is_replacing = true;
    rebuilt->aboard = old->aboard;
    mutation->before.alarm_row = old->core->alarm_row;
    mutation->before.alarm_time = old->core->alarm_time;
    note_records(mutation, old); /* first: of several changes the first says what was there */
    journal_add_all(mutation);
    drop_rows(mutation, old);
    return mutation;
}
