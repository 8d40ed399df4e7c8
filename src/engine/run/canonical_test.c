/* canonical_test.c - what is written is what every cluster can keep. */
#include "base/test.h"
#include "engine/run/test_samples.h"
#include "wire/thrift.h"

static API(HistoryEvent) *
new_event(struct arena *arena, API(HistoryEvent__AttributesCase) kind)
{
    const ProtobufCFieldDescriptor *field = event_field(kind);
    API(HistoryEvent) *event = API_NEW(arena, history_event);
    void *attributes = message_new(arena, field->descriptor);
    memcpy((char *)event + field->offset, &attributes, sizeof attributes);
    event->attributes_case = kind;
    return event;
}

static API(Header) *
new_header(struct arena *arena, const char *const *keys, size_t count)
{
    API(Header) *header = API_NEW(arena, header, .n_fields = count);
    header->fields = arena_zalloc(arena, count, sizeof(header->fields[0]));
    for (size_t i = 0; i < count; i++) {
        header->fields[i] = message_new(arena, API_TYPE(header__fields_entry));
        header->fields[i]->key = arena_text(arena, keys[i]);
        header->fields[i]->value = API_NEW(
            arena, payload, .data = presence_make_bytes(slice_text(arena_format(arena, "%zu", i))));
    }
    return header;
}

ARENA_TEST(canonical, durations_become_whole_seconds_and_the_callers_stay_as_they_are)
{
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(DECISION_TASK_SCHEDULED));
    GOOGLE(Duration) *given = presence_make_duration_nanoseconds(arena, 2999999999);
    event->decision_task_scheduled_event_attributes->start_to_close_timeout = given;
    thrift_make_canonical(arena, event);
    const GOOGLE(Duration) *kept =
        event->decision_task_scheduled_event_attributes->start_to_close_timeout;
    EXPECT_EQ(kept->seconds, 2);
    EXPECT_EQ(kept->nanos, 0);
    EXPECT_EQ(given->nanos, 999999999);
}

ARENA_TEST(canonical, timeouts_fit_into_32_bits_but_a_timer_may_be_longer)
{
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(DECISION_TASK_SCHEDULED));
    event->decision_task_scheduled_event_attributes->start_to_close_timeout =
        presence_make_duration(arena, (int64_t)1 << 33);
    thrift_make_canonical(arena, event);
    EXPECT_EQ(event->decision_task_scheduled_event_attributes->start_to_close_timeout->seconds,
              INT32_MAX);
    event = new_event(arena, EVENT_KIND(TIMER_STARTED));
    event->timer_started_event_attributes->start_to_fire_timeout =
        presence_make_duration(arena, (int64_t)1 << 33);
    thrift_make_canonical(arena, event);
    EXPECT_EQ(event->timer_started_event_attributes->start_to_fire_timeout->seconds,
              (int64_t)1 << 33);
}

ARENA_TEST(canonical, maps_are_sorted_and_each_key_is_there_once)
{
    static const char *const keys[] = {"b", "a", "b"};
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(MARKER_RECORDED));
    API(Header) *given = new_header(arena, keys, 3);
    event->marker_recorded_event_attributes->header = given;
    thrift_make_canonical(arena, event);
    const API(Header) *kept = event->marker_recorded_event_attributes->header;
    EXPECT_EQ(kept->n_fields, 2);
    EXPECT_TEXT(kept->fields[0]->key, "a");
    EXPECT_TEXT(kept->fields[1]->key, "b");
    EXPECT_EQ(kept->fields[1]->value->data.data[0], '2'); /* the last counts */
    EXPECT_EQ(given->n_fields, 3);
    EXPECT_TEXT(given->fields[0]->key, "b");
}

/* What has no place in the histories of other clusters is not written here either. */
ARENA_TEST(canonical, fields_that_others_cannot_keep_are_left_out)
{
    API(Failure) *failure = API_NEW(arena, failure, .options = API_NEW(arena, failure_options));
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    event->workflow_execution_failed_event_attributes->failure = failure;
    thrift_make_canonical(arena, event);
    EXPECT(event->workflow_execution_failed_event_attributes->failure->options == NULL);
    EXPECT(failure->options != NULL);

    event = new_event(arena, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
    API(ParentExecutionInfo) *parent =
        API_NEW(arena, parent_execution_info, .domain_id = "id", .domain_name = "name");
    event->workflow_execution_started_event_attributes->parent_execution_info = parent;
    thrift_make_canonical(arena, event);
    parent = event->workflow_execution_started_event_attributes->parent_execution_info;
    EXPECT_TEXT(parent->domain_id, "");
    EXPECT_TEXT(parent->domain_name, "name");
}

ARENA_TEST(canonical, an_activity_keeps_the_options_of_its_failure, "A-119")
{
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(ACTIVITY_TASK_FAILED));
    API(Failure) *failure = API_NEW(arena, failure, .options = API_NEW(arena, failure_options));
    event->activity_task_failed_event_attributes->failure = failure;
    thrift_make_canonical(arena, event);
    EXPECT(event->activity_task_failed_event_attributes->failure->options != NULL);
}

ARENA_TEST(canonical, empty_values_and_absent_ones_stay_apart, "A-031")
{
    static const char *const keys[] = {"z", "y"};
    API(HistoryEvent) *event = new_event(arena, EVENT_KIND(MARKER_RECORDED));
    API(Header) *header = new_header(arena, keys, 2);
    header->fields[0]->value->data = (ProtobufCBinaryData){0};
    event->marker_recorded_event_attributes->header = header;
    thrift_make_canonical(arena, event);
    header = event->marker_recorded_event_attributes->header;
    EXPECT_TEXT(header->fields[1]->key, "z");
    EXPECT(header->fields[1]->value != NULL);
    EXPECT_EQ(header->fields[1]->value->data.len, 0);
    EXPECT(event->marker_recorded_event_attributes->details == NULL);
}
