/* record_marker.c - the decision to write a marker into the history; its contents are the worker's.
 */
#include "base/check.h"
#include "engine/command/inside.h"

void
decide_record_marker(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(RecordMarkerDecisionAttributes) *request =
        decision->record_marker_decision_attributes;
    const struct run_context *context = mutation_context(decision_list->mutation);
    size_t length = strlen(request->marker_name);
    if (length == 0 || (int64_t)length > run_context_integer(context, DYNAMIC_MARKER_NAME_LENGTH)) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_RECORD_MARKER_ATTRIBUTES),
                             length == 0 ? "MarkerName is not set on decision."
                                         : "MarkerName exceeds length limit.");
        return;
    }
    if (!decision_list_may_hold(decision_list,
                                request->details == NULL ? 0 : request->details->data.len,
                                "RecordMarkerDecisionAttributes.Details"))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(MARKER_RECORDED));
    API(MarkerRecordedEventAttributes) *attributes = event->marker_recorded_event_attributes;
    attributes->marker_name = request->marker_name;
    attributes->details = request->details;
    attributes->header = request->header;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(decision_list->mutation, event);
}
