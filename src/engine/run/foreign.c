/* foreign.c - events that another cluster decided become part of the run. See foreign.h.
 *
 * It is rebuilding, in a step that counts: each event is applied at its own time and version. What
 * the end of the step adds (the alarm, when the run was written) is of here and now again. */
#include "engine/run/foreign.h"

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
mutation_add_foreign(struct mutation *mutation, API(HistoryEvent) *const *events, size_t count)
{
    check(mutation->events.count == 0 && !mutation->is_foreign && count > 0);
    check(!run_has_buffered(mutation->run));
    const struct facts *facts = mutation->facts;
    struct rebuild rebuild = {.run = mutation->run, .facts = *facts, .arena = mutation->arena};
    mutation->is_foreign = true;
    mutation->facts = &rebuild.facts;
    rebuild_read_ended(&rebuild);
    mutation_clear_sticky(mutation); /* whoever goes on with it is another cluster's worker */
    const char *misfit = add_events(&rebuild, mutation, events, count);
    if (misfit == NULL)
        mutation_note_versions(mutation); /* so that the run can be compared with others */
    rebuild_store_ended(&rebuild);
    mutation->facts = facts;
    return misfit;
}

void
mutation_note_foreign(struct mutation *mutation)
{
    check(mutation->events.count == 0 && !mutation->is_foreign);
    mutation->is_foreign = true;
}
