/* replicated.c - events that another cluster decided become part of the run. See replicated.h.
 *
 * This is a rebuild within a step that is committed: each event is applied at its own time and
 * version. What the end of the step adds (the wake-up timer, when the run was written) has the time
 * of this cluster again. */
#include "engine/run/replicated.h"

#include "engine/run/inside.h"
#include "engine/run/rebuild.h"

static const char *
add_events(struct rebuild *rebuild, struct mutation *mutation, API(HistoryEvent) *const *events,
           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *misfit = rebuild_find_misfit(rebuild, events[i]);
        if (misfit != NULL)
            return misfit;
        if (events[i]->version != events[0]->version)
            return "the batch has two versions";
        rebuild_apply(rebuild, mutation, events[i]);
    }
    return NULL;
}

const char *
mutation_add_replicated(struct mutation *mutation, API(HistoryEvent) *const *events, size_t count)
{
    check(mutation->events.count == 0 && !mutation->has_replicated_events && count > 0);
    check(!run_has_buffered(mutation->run) && !mutation->is_holding);
    const struct run_context *context = mutation->context;
    struct rebuild rebuild = {.run = mutation->run, .context = *context, .arena = mutation->arena};
    mutation->has_replicated_events = true;
    mutation->context = &rebuild.context;
    rebuild_read_ended(&rebuild);
    mutation_clear_sticky(mutation); /* no worker of this cluster has seen these events */
    const char *misfit = add_events(&rebuild, mutation, events, count);
    if (misfit == NULL)
        mutation_note_versions(mutation); /* now: the run is compared with others before the end */
    rebuild_store_ended(&rebuild);
    mutation->context = context;
    return misfit;
}

void
mutation_note_replicated(struct mutation *mutation)
{
    check(mutation->events.count == 0 && !mutation->has_replicated_events);
    mutation->has_replicated_events = true;
}
