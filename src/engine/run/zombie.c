/* zombie.c - a run that has lost its workflow id to another one, while it is open.
 *
 * Only events of other clusters change it: none of its tasks is sent, nothing of it is ever due. If
 * it gets its id back its tasks are sent again (command_refresh). */
#include "engine/run/inside.h"

#define REAPPLY CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REAPPLY

bool
run_is_zombie(const struct run *run)
{
    return run->core->state == RUN_ZOMBIE && run_is_open(run);
}

/* Outbox rows that this very step added. */
static void
drop_added(struct mutation *mutation)
{
    size_t count = mutation->rows.count;
    for (size_t i = 0; i < count; i++)
        if (mutation->rows.items[i].transfer != NULL &&
            mutation->rows.items[i].transfer->type != REAPPLY)
            mutation_drop_transfer(mutation, mutation->rows.items[i].row);
}

static void
drop_recorded(struct mutation *mutation)
{
    struct run *run = mutation->run;
    uint64_t key;
    void *value;
    if (run->core->decision != NULL && run->core->decision->row != 0) {
        mutation_drop_transfer(mutation, run->core->decision->row);
        mutation_change_decision(mutation)->row = 0;
    }
    for (size_t cursor = 0; map64_next(run->activities, &cursor, &key, &value);) {
        uint64_t row = ((STORED(PendingActivity) *)value)->row;
        mutation_drop_transfer(mutation, row);
        if (row != 0) /* changing records keeps their places */
            mutation_change_activity(mutation, (int64_t)key)->row = 0;
    }
    for (size_t cursor = 0; map64_next(run->externals, &cursor, &key, &value);) {
        mutation_drop_transfer(mutation, ((STORED(PendingExternal) *)value)->row);
        mutation_change_external(mutation, (int64_t)key)->row = 0;
    }
}

void
mutation_become_zombie(struct mutation *mutation)
{
    struct run *run = mutation->run;
    if (!run_is_open(run) || run_is_zombie(run))
        return;
    check(!run_has_buffered(run));
    drop_added(mutation);
    drop_recorded(mutation);
    run_move(mutation_core(mutation), RUN_ZOMBIE, CLOSE_NONE);
    check(run_is_zombie(run));
}

bool
mutation_revive(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    if (!run_is_zombie(mutation->run))
        return false;
    bool had_decision = !core->waits_for_parent && core->first_decision_time == 0;
    run_move(core, had_decision ? RUN_RUNNING : RUN_CREATED, CLOSE_NONE);
    return true;
}
