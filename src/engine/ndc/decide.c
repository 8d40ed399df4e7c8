/* decide.c - where events of another cluster belong. See decide.h. */
#include "engine/ndc/decide.h"

#include "base/check.h"
#include "engine/run/mutation.h"

/* ---- the batch ---- */

/* The last event before the reset is one of the base run; the event that says so begins a run. */
static bool
begins_reset(const API(HistoryEvent) *event)
{
    if (event->attributes_case == EVENT_KIND(DECISION_TASK_FAILED)) {
        const API(DecisionTaskFailedEventAttributes) *failed =
            event->decision_task_failed_event_attributes;
        return failed->cause ==
                   API_VALUE(
                       DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_RESET_WORKFLOW) &&
               failed->base_run_id[0] != '\0' && failed->new_run_id[0] != '\0';
    }
    if (event->attributes_case != EVENT_KIND(DECISION_TASK_TIMED_OUT))
        return false;
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        event->decision_task_timed_out_event_attributes;
    return timed_out->cause ==
               API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET) &&
           timed_out->base_run_id[0] != '\0' && timed_out->new_run_id[0] != '\0';
}

static const char *
find_fault(const struct replicated_batch *batch)
{
    if (batch->first_event_id < 1 || batch->next_event_id <= batch->first_event_id)
        return "it has no events";
    if (!versions_are_valid(batch->versions))
        return "its version history is out of order";
    struct version_item first = {batch->first_event_id, batch->event_version};
    struct version_item last = {batch->next_event_id - 1, batch->event_version};
    if (!versions_contain(batch->versions, first) || !versions_contain(batch->versions, last))
        return "its version history does not have its events";
    return NULL;
}

struct error *
replicated_batch_read(API(HistoryEvent) *const *events, size_t count, struct versions versions,
                      struct arena *arena, struct replicated_batch *batch)
{
    if (count == 0)
        return error_new(arena, ERR_BAD_REQUEST, "encounter empty history batch");
    int64_t first = events[0]->event_id, version = events[0]->version;
    for (size_t i = 0; i < count; i++) {
        if (events[i]->event_id != first + (int64_t)i)
            return error_new(arena, ERR_BAD_REQUEST, "event ID mismatch: %lld behind %lld",
                             (long long)events[i]->event_id, (long long)first + (long long)i - 1);
        if (events[i]->version != version)
            return error_new(arena, ERR_BAD_REQUEST,
                             "event version mismatch: %lld and %lld in one batch",
                             (long long)version, (long long)events[i]->version);
    }
    *batch = (struct replicated_batch){.versions = versions,
                                       .first_event_id = first,
                                       .next_event_id = first + (int64_t)count,
                                       .event_version = version,
                                       .is_reset = begins_reset(events[0])};
    const char *fault = find_fault(batch);
    return fault == NULL ? NULL
                         : error_new(arena, ERR_BAD_REQUEST, "The batch is wrong: %s.", fault);
}

/* ---- the verdict ---- */

static struct batch_verdict
verdict_wrong(const char *fault)
{
    return (struct batch_verdict){.place = BATCH_IS_WRONG, .fault = fault};
}

static struct batch_verdict
verdict_gap(const struct replicated_batch *batch, size_t branch, struct version_item base)
{
    return (struct batch_verdict){.place = BATCH_LACKS_EVENTS,
                                  .branch = branch,
                                  .base = base,
                                  .end = {batch->first_event_id, batch->event_version}};
}

static struct batch_verdict
decide_new_run(const struct replicated_batch *batch)
{
    if (batch->first_event_id == 1)
        return (struct batch_verdict){.place = BATCH_BEGINS, .is_current = true};
    if (batch->is_reset)
        return (struct batch_verdict){.place = BATCH_BEGINS_AT_RESET, .is_current = true};
    return verdict_gap(batch, 0, (struct version_item){0});
}

/* The batch begins right behind the base, which is in this history. */
static struct batch_verdict
decide_place(const struct run_branches *local, const struct replicated_batch *batch, size_t branch,
             struct version_item base)
{
    struct batch_verdict verdict = {.branch = branch, .base = base};
    struct version_item last = versions_last(local->branch[branch].versions);
    verdict.place = version_item_equal(last, base) ? BATCH_EXTENDS : BATCH_FORKS;
    bool is_current = verdict.place == BATCH_EXTENDS && branch == 0;
    int64_t highest = versions_last(local->branch[0].versions).event_version;
    if (!is_current && batch->event_version == highest)
        return verdict_wrong("its version belongs to the current history, but the batch does not");
    verdict.is_switch = !is_current && batch->event_version > highest;
    verdict.is_current = is_current || verdict.is_switch;
    return verdict;
}

struct batch_verdict
batch_decide(const struct run_branches *local, const struct replicated_batch *batch)
{
    const char *fault = find_fault(batch);
    if (fault != NULL)
        return verdict_wrong(fault);
    if (local->count == 0)
        return decide_new_run(batch);
    size_t branch = 0;
    struct version_item base;
    if (!branches_find_common(local, batch->versions, &branch, &base))
        return verdict_wrong("it has nothing in common with the run");
    if (batch->next_event_id - 1 <= base.event_id)
        return (struct batch_verdict){.place = BATCH_IS_KNOWN, .branch = branch, .base = base};
    if (batch->first_event_id <= base.event_id)
        return verdict_wrong("some of its events are known: other clusters have other batches");
    if (batch->first_event_id > base.event_id + 1)
        return verdict_gap(batch, branch, base);
    check(branch < local->count && versions_contain(local->branch[branch].versions, base));
    return decide_place(local, batch, branch, base);
}

struct run_branches
batch_accept(const struct run_branches *local, const struct replicated_batch *batch,
             const struct batch_verdict *verdict, const struct history_branch *fresh,
             struct arena *arena)
{
    struct version_item last = {batch->next_event_id - 1, batch->event_version};
    struct run_branches grown;
    check((verdict->place == BATCH_BEGINS) == (local->count == 0));
    if (verdict->place == BATCH_BEGINS) {
        struct versions versions = versions_append((struct versions){0}, last, arena);
        grown = branches_begin(fresh, versions, arena);
    } else if (verdict->place == BATCH_EXTENDS) {
        grown = branches_append(local, verdict->branch, last, arena);
    } else {
        check(verdict->place == BATCH_FORKS);
        grown = branches_fork(local, verdict->branch, verdict->base, fresh->branch, last, arena);
    }
    check(grown.count == local->count + (verdict->place != BATCH_EXTENDS));
    bool is_current = version_item_equal(versions_last(grown.branch[0].versions), last);
    check(is_current == verdict->is_current);
    check(is_current || !verdict->is_switch);
    return grown;
}

/* ---- activities ---- */

enum activity_place
activity_decide(const struct run_branches *local, struct versions versions, int64_t schedule_id,
                struct version_item *base)
{
    check(local->count > 0);
    struct versions here = local->branch[0].versions;
    if (!versions_are_valid(versions) || !versions_find_common(here, versions, base))
        return ACTIVITY_IS_WRONG;
    struct version_item mine = versions_last(here), theirs = versions_last(versions);
    if (version_item_equal(mine, *base) || version_item_equal(theirs, *base))
        return schedule_id > base->event_id ? ACTIVITY_LACKS_EVENTS : ACTIVITY_FITS;
    return theirs.event_version < mine.event_version ? ACTIVITY_IS_OVERRULED
                                                     : ACTIVITY_LACKS_EVENTS;
}
