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
decide_upsert_search_attributes(struct decision_list *decision_list, const API(Decision) *decision)
{
    API(SearchAttributes) *request =
        decision->upsert_workflow_search_attributes_decision_attributes->search_attributes;
    if (request == NULL || request->n_indexed_fields == 0) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_SEARCH_ATTRIBUTES),
                             request == NULL ? "SearchAttributes is not set on decision."
                                             : "IndexedFields is empty on decision.");
        return;
    }
    struct error *err = run_context_check_search(mutation_context(decision_list->mutation), request,
                                                 decision_list->step->arena);
    if (err != NULL) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_SEARCH_ATTRIBUTES), "%s",
                             err->message);
        return;
    }
    if (!decision_list_may_hold(decision_list, size_of(request),
                                "UpsertWorkflowSearchAttributesDecisionAttributes"))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES));
    API(UpsertWorkflowSearchAttributesEventAttributes) *attributes =
        event->upsert_workflow_search_attributes_event_attributes;
    attributes->search_attributes = request;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(decision_list->mutation, event);
}
