/* prior.c - what the source is asked for before a run gives way. See incoming.h.
 *
 * Every cluster sends only its own events. So a third one may learn of a run from the cluster that
 * continued it before it learns of the end of the previous run from the cluster that wrote that:
 * the run that it has would give way, its late events would count as lost, and what clients did to
 * it would happen again in the next one. But a cluster that wrote to the new run had what was
 * before it, if nothing was by force. So the source is asked for that first: for the rest of the
 * run that would give way, and for the run that a new one went on from or was reset from, if that
 * is not here. What the source has not, was lost, or is gone. */
#include "base/check.h"
#include "engine/incoming/incoming.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"

static bool
may_ask(const struct incoming *incoming, const char *run_id)
{
    const struct replicated_priors *asked = incoming->events->priors;
#ifdef CADENZA_FAULT_prior_not_asked
    return false; /* fault: what is late counts as lost */
#endif
    check(asked == NULL || asked->count <= REPLICATED_PRIORS_MAX);
    if (asked == NULL || asked->count == REPLICATED_PRIORS_MAX)
        return false;
    for (size_t i = 0; i < asked->count; i++) {
        if (strcmp(asked->run_id[i], run_id) == 0)
            return false;
    }
    return strcmp(run_id, incoming->events->key.run_id) != 0;
}

static bool
ask_for(const struct incoming *incoming, const char *run_id, struct version_item base)
{
    const struct run_key *key = &incoming->events->key;
    if (!may_ask(incoming, run_id))
        return false;
    probe(base.event_id == 0 ? "origin_asked_for" : "end_asked_for");
    *incoming->outcome =
        (struct replicated_outcome){REPLICATED_LACKS,
                                    {.key = {arena_text(incoming->arena, key->domain_id),
                                             arena_text(incoming->arena, key->workflow_id),
                                             arena_text(incoming->arena, run_id)},
                                     .base = base,
                                     .is_prior = true}};
    return true;
}

const char *
incoming_origin(const struct incoming *incoming)
{
    const API(HistoryEvent) *first = incoming->events->events[0];
    const char *origin = "";
    if (incoming->target != NULL || incoming->events->priors == NULL)
        return NULL;
    if (first->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_STARTED))
        origin = first->workflow_execution_started_event_attributes->continued_execution_run_id;
    else if (incoming->batch.is_reset && first->attributes_case == EVENT_KIND(DECISION_TASK_FAILED))
        origin = first->decision_task_failed_event_attributes->base_run_id;
    else if (incoming->batch.is_reset) {
        check(first->attributes_case == EVENT_KIND(DECISION_TASK_TIMED_OUT));
        origin = first->decision_task_timed_out_event_attributes->base_run_id;
    }
    struct uuid uuid;
    return uuid_parse(slice_text(origin), &uuid) ? origin : NULL;
}

bool
incoming_lacks_origin(const struct incoming *incoming)
{
    /* Of a reset: its base run is here, but not as far as it was taken. */
    bool lacks_events = incoming->batch.is_reset && incoming->verdict.place == BATCH_LACKS_EVENTS;
    const char *origin = incoming_origin(incoming);
    return origin != NULL && (incoming->lacks_prior || lacks_events) &&
           ask_for(incoming, origin, (struct version_item){0});
}

bool
incoming_lacks_end(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct loaded_run *current = incoming->current;
    if (step->is_side || !incoming_gives_way(incoming, step))
        return false;
    struct run_branches branches = branches_read(current->run->core, incoming->arena);
    check(branches.count > 0);
    return ask_for(incoming, current->run->core->run_id,
                   versions_last(branches.branch[0].versions));
}
