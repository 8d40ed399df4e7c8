/* check.c - what must be true of a batch on its way into a workflow id, and of the step that it
 * becomes. See incoming.h.
 *
 * None of it depends on what another cluster sent: that was judged before (ndc/), and what cannot
 * be is an error.
 *
 *   1. The lock of the workflow id is held, and the histories in `local` are those of the run as it
 *      is now.
 *   2. The verdict is about them: a batch that extends or forks one begins right behind an event of
 *      it; one that begins a run finds none.
 *   3. What was rebuilt is a history that wins, a run that begins at a reset, or one of which
 * something is dropped that is in no history.
 *   4. At most one run of the id is open afterwards, but for zombies, and that one has the id. */
#include "base/check.h"
#include "engine/incoming/incoming.h"

/* 2. */
static void
verdict_check(const struct incoming *incoming)
{
    const struct batch_verdict *verdict = &incoming->verdict;
    bool is_behind = verdict->place == BATCH_EXTENDS || verdict->place == BATCH_FORKS;
    bool is_own = verdict->place == BATCH_EXTENDS && verdict->branch == 0;
    bool begins = verdict->place == BATCH_BEGINS || verdict->place == BATCH_BEGINS_AT_RESET;
    check(!begins || (incoming->target == NULL && verdict->is_current));
    check(!verdict->is_switch || (is_behind && !is_own));
    if (!is_behind)
        return;
    check(verdict->branch < incoming->local.count);
    check(verdict->base.event_id + 1 == incoming->batch.first_event_id);
    check(verdict->is_current == (is_own || verdict->is_switch));
}

void
incoming_check(const struct incoming *incoming)
{
    bool is_reset = incoming->verdict.place == BATCH_BEGINS_AT_RESET;
    check(incoming->workflow->lock.owner == fiber_self());
    check(incoming->ticket <= writer_newest(incoming->tenure->writer));
    check((incoming->local.count > 0) == (incoming->target != NULL));
    check(incoming->target == NULL ||
          versions_last(incoming->local.branch[0].versions).event_id + 1 ==
              incoming->target->run->core->next_event_id); /* 1 */
    verdict_check(incoming);
    check(incoming->rebuilt == NULL || is_reset || incoming->verdict.is_switch ||
          incoming->drops_buffered); /* 3 */
    check(incoming->nodes.count == 0 || is_reset);
}

/* 4, of the runs that the step changes: another one that is open is what repair.c is for. */
static void
holder_check(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct mutation *begun = step->begun.mutation;
    const struct loaded_run *current = incoming->current, *revived = step->revived.loaded;
    bool is_changed = !step->is_side || step->suppressed.mutation == step->target.mutation;
    const struct run *runs[] = {
        is_changed ? mutation_run(step->target.mutation) : NULL,
        begun == NULL ? NULL : mutation_run(begun),
        current == NULL || current == incoming->target ? NULL : current->run,
        revived == NULL ? NULL : revived->run,
    };
    for (size_t i = 0; i < array_length(runs); i++)
        check(runs[i] == NULL || runs[i] == step->holder || !run_is_open(runs[i]) ||
              run_is_zombie(runs[i]));
}

void
incoming_step_check(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct incoming_run *suppressed = &step->suppressed;
    check(step->target.mutation != NULL && step->target.loaded == incoming->target);
    check(step->is_side != incoming->verdict.is_current);
    check(!step->is_side || (incoming->rebuilt == NULL && incoming->nodes.count == 0));
    check(step->begun.loaded == NULL);
    check(step->begun.mutation == NULL ||
          (incoming->begun_run_id != NULL && !incoming->has_begun_run));
    check(step->revived.loaded == NULL || step->revived.loaded->run == step->holder);
    holder_check(incoming, step);
    if (suppressed->mutation == NULL)
        return;
    check(suppressed->loaded == incoming->current && suppressed->loaded->run != step->holder);
    check((suppressed->mutation == step->target.mutation) ==
          (incoming->current == incoming->target));
}
