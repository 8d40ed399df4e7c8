/* upsert_search_attributes.c - the decision to change what the run can be found by. */
#include "base/check.h"
#include "engine/command/inside.h"

static size_t
size_of(const API(SearchAttributes) *attributes)
{
    size_t size = 0;
    for (size_t i = 0; i < attributes->n_indexed_fields; i++)
        size += strlen(attributes->indexed_fields[i]->key) +
                attributes->indexed_fields[i]->value->data.len;
    return size;
}

void
decide_upsert_search_attributes(struct deciding *deciding, const API(Decision) *decision)
{
    API(SearchAttributes) *wish =
        decision->upsert_workflow_search_attributes_decision_attributes->search_attributes;
    if (wish == NULL || wish->n_indexed_fields == 0) {
        deciding_refuse(deciding, FAILED_CAUSE(BAD_SEARCH_ATTRIBUTES),
                        wish == NULL ? "SearchAttributes is not set on decision."
                                     : "IndexedFields is empty on decision.");
        return;
    }
    struct error *err =
        facts_check_search(mutation_facts(deciding->mutation), wish, deciding->step->arena);
    if (err != NULL) {
        deciding_refuse(deciding, FAILED_CAUSE(BAD_SEARCH_ATTRIBUTES), "%s", err->message);
        return;
    }
    if (!deciding_may_hold(deciding, size_of(wish),
                           "UpsertWorkflowSearchAttributesDecisionAttributes"))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES));
    API(UpsertWorkflowSearchAttributesEventAttributes) *attributes =
        event->upsert_workflow_search_attributes_event_attributes;
    attributes->search_attributes = wish;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    mutation_add_event(deciding->mutation, event);
}
