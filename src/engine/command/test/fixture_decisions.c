/* fixture_decisions.c - decisions for the lists of workers in the world of fixture.h. */
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

API(Decision) *
fixture_decision(struct fixture *fixture, API(Decision__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field = message_find_field(API_TYPE(decision), (uint32_t)kind);
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    void *attributes = message_new(fixture->arena, field->descriptor);
    memcpy((char *)decision + field->offset, &attributes, sizeof attributes);
    decision->attributes_case = kind;
    return decision;
}

API(Decision) *
fixture_complete_run(struct fixture *fixture)
{
    API(Decision) *decision = FIXTURE_DECISION(fixture, COMPLETE_WORKFLOW_EXECUTION);
    decision->complete_workflow_execution_decision_attributes->result =
        fixture_payload(fixture, "result");
    return decision;
}

API(Decision) *
fixture_fail_run(struct fixture *fixture, const char *reason)
{
    API(Decision) *decision = FIXTURE_DECISION(fixture, FAIL_WORKFLOW_EXECUTION);
    API(Failure) *failure = message_new(fixture->arena, API_TYPE(failure));
    failure->reason = (char *)reason;
    failure->details = presence_make_bytes(slice_text("details"));
    decision->fail_workflow_execution_decision_attributes->failure = failure;
    return decision;
}

API(Decision) *
fixture_cancel_run(struct fixture *fixture)
{
    API(Decision) *decision = FIXTURE_DECISION(fixture, CANCEL_WORKFLOW_EXECUTION);
    decision->cancel_workflow_execution_decision_attributes->details =
        fixture_payload(fixture, "cancelled");
    return decision;
}

API(Decision) *
fixture_continue_as_new(struct fixture *fixture)
{
    return FIXTURE_DECISION(fixture, CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
}

API(Decision) *
fixture_marker(struct fixture *fixture, const char *name)
{
    API(Decision) *decision = FIXTURE_DECISION(fixture, RECORD_MARKER);
    decision->record_marker_decision_attributes->marker_name = (char *)name;
    decision->record_marker_decision_attributes->details = fixture_payload(fixture, name);
    return decision;
}

API(Decision) *
fixture_timer(struct fixture *fixture, const char *timer_id, int64_t seconds)
{
    API(Decision) *decision = FIXTURE_DECISION(fixture, START_TIMER);
    decision->start_timer_decision_attributes->timer_id = (char *)timer_id;
    decision->start_timer_decision_attributes->start_to_fire_timeout =
        fixture_duration(fixture, seconds);
    return decision;
}
