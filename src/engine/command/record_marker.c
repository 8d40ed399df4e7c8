/* record_marker.c - the decision to note something in the history: opaque to us. */
#include "base/check.h"
#include "engine/command/inside.h"

void
decide_record_marker(struct deciding *deciding, const API(Decision) *decision)
{
    const API(RecordMarkerDecisionAttributes) *wish = decision->record_marker_decision_attributes;
    const struct facts *facts = mutation_facts(deciding->mutation);
    size_t length = strlen(wish->marker_name);
    if (length == 0 || (int64_t)length > facts_integer(facts, DYNAMIC_MARKER_NAME_LENGTH)) {
        deciding_refuse(deciding, FAILED_CAUSE(BAD_RECORD_MARKER_ATTRIBUTES),
                        length == 0 ? "MarkerName is not set on decision."
                                    : "MarkerName exceeds length limit.");
        return;
    }
    if (!deciding_may_hold(deciding, wish->details == NULL ? 0 : wish->details->data.len,
                           "RecordMarkerDecisionAttributes.Details"))
        return;
    API(HistoryEvent) *event = mutation_new_event(deciding->mutation, EVENT_KIND(MARKER_RECORDED));
    API(MarkerRecordedEventAttributes) *attributes = event->marker_recorded_event_attributes;
    attributes->marker_name = wish->marker_name;
    attributes->details = wish->details;
    attributes->header = wish->header;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    mutation_add_event(deciding->mutation, event);
}
