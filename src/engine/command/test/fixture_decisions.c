/* fixture_decisions.c - decisions for the lists of workers in the world of fixture.h. */
#include "engine/command/test/fixture.h"
#include "wire/presence.h"

API(Decision) *
fixture_decision(struct fixture *fixture, API(Decision__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field = message_find_field(API_TYPE(decision), (uint32_t)kind);
    API(Decision) *decision = API_NEW(fixture->arena, decision);
    void *attributes = message_new(fixture->arena, field->descriptor);
    memcpy((char *)decision + field->offset, &attributes, sizeof attributes);
    decision->attributes_case = kind;
    return decision;
}

API(Decision) *
fixture_complete_run(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, complete_workflow_execution,
                        .result = fixture_payload(fixture, "result"));
}

API(Decision) *
fixture_fail_run(struct fixture *fixture, const char *reason)
{
    return API_DECISION(fixture->arena, fail_workflow_execution,
                        .failure = API_NEW(fixture->arena, failure, .reason = (char *)reason,
                                           .details = presence_make_bytes(slice_text("details"))));
}

API(Decision) *
fixture_cancel_run(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, cancel_workflow_execution,
                        .details = fixture_payload(fixture, "cancelled"));
}

API(Decision) *
fixture_continue_as_new(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, continue_as_new_workflow_execution);
}

API(Decision) *
fixture_marker(struct fixture *fixture, const char *name)
{
    return API_DECISION(fixture->arena, record_marker, .marker_name = (char *)name,
                        .details = fixture_payload(fixture, name));
}

API(Decision) *
fixture_timer(struct fixture *fixture, const char *timer_id, int64_t seconds)
{
    return API_DECISION(fixture->arena, start_timer, .timer_id = (char *)timer_id,
                        .start_to_fire_timeout = fixture_duration(fixture, seconds));
}
