/* thrift_test.c - blobs that others made, and what presence means on both sides.
 *
 * thrift_vectors.txt has one event of each kind as another implementation wrote it: the rows of the
 * table are right only if ids, types and order agree with it byte for byte. */
#include "wire/thrift.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/test.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LINE_MAX_BYTES 65536

static struct slice
hex_decode(struct arena *arena, const char *text)
{
    size_t length = strlen(text) / 2;
    uint8_t *bytes = arena_alloc(arena, length);
    for (size_t i = 0; i < length; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'}, *end;
        bytes[i] = (uint8_t)strtoul(digits, &end, 16);
        check(*end == '\0');
    }
    return slice_of(bytes, length);
}

static char *
hex_encode(struct arena *arena, struct slice bytes)
{
    char *text = arena_alloc(arena, 2 * bytes.length + 1);
    for (size_t i = 0; i < bytes.length; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes.data[i]);
    return text;
}

/* The only event of a blob. */
static API(HistoryEvent) *
decode_one(struct arena *arena, const char *hex)
{
    API(HistoryEvent) **events;
    size_t count;
    EXPECT_OK(thrift_decode_history(arena, ERR_CORRUPT, hex_decode(arena, hex), &events, &count));
    EXPECT_EQ(count, 1);
    return events[0];
}

static char *
encode_one(struct arena *arena, API(HistoryEvent) *event)
{
    return hex_encode(arena, thrift_encode_history(arena, &event, 1));
}

/* The event of "name history blob", in both directions. */
static void
expect_vector(struct arena *arena, char *line)
{
    char *rest, *name = strtok_r(line, " ", &rest);
    char *history_hex = strtok_r(NULL, " ", &rest), *blob_hex = strtok_r(NULL, " \n", &rest);
    API(History) *history;
    EXPECT_OK(message_decode(arena, API_TYPE(history), hex_decode(arena, history_hex), &history));
    EXPECT_EQ(history->n_events, 1);
    const ProtobufCFieldDescriptor *arm =
        message_find_field(API_TYPE(history_event), history->events[0]->attributes_case);
    EXPECT(strncmp(arm->name, name, strlen(name)) == 0);
    EXPECT_TEXT(encode_one(arena, history->events[0]), blob_hex);
    history->events[0] = decode_one(arena, blob_hex);
    EXPECT_TEXT(hex_encode(arena, message_encode(arena, &history->base)), history_hex);
}

TEST(thrift, every_kind_of_event_is_written_and_read_as_cadence_does_it)
{
    static char line[LINE_MAX_BYTES];
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *path = getenv("THRIFT_VECTORS");
    if (path == NULL)
        TEST_SKIP("THRIFT_VECTORS does not name the file");
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    unsigned count = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (line[0] != '#') {
            expect_vector(arena, line);
            count++;
        }
    fclose(file);
    EXPECT_EQ(count, 45);
}

static API(HistoryEvent) *
event_new(struct arena *arena, API(HistoryEvent__AttributesCase) arm,
          const ProtobufCMessageDescriptor *type)
{
    return API_NEW(arena, history_event, .attributes_case = arm,
                   .workflow_execution_started_event_attributes = message_new(arena, type));
}

#define EVENT_NEW(arena, NAME, name)                                                               \
    event_new((arena), API_VALUE(HISTORY_EVENT__ATTRIBUTES_##NAME##_EVENT_ATTRIBUTES),             \
              API_TYPE(name##_event_attributes))

/* The blob of a known event, made by thriftrw 1.34. */
TEST(thrift, a_signal_is_written_byte_for_byte_as_known)
{
    static const char blob[] =
        "590f000a0c000000010a000a00000000000000020a0014000000003b9aca0008001e0000001b0a0023ffffffff"
        "ffffffe80a002400000000000000070c01040b000a00000001730b0014000000027b7d0b001e000000026d6500"
        "0000";
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(HistoryEvent) *event =
        EVENT_NEW(arena, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled);
    event->event_id = 2;
    event->event_time = presence_make_timestamp(arena, 1000000000);
    event->version = -24;
    event->task_id = 7;
    API(WorkflowExecutionSignaledEventAttributes) *signal =
        event->workflow_execution_signaled_event_attributes;
    signal->signal_name = "s";
    signal->input = presence_make_payload(
        arena, (struct maybe_bytes){.is_set = true, .bytes = slice_text("{}")});
    signal->identity = "me";
    EXPECT_TEXT(encode_one(arena, event), blob);

    API(HistoryEvent) *again = decode_one(arena, blob);
    EXPECT(slice_equal(message_encode(arena, &again->base), message_encode(arena, &event->base)));
}

ARENA_TEST(thrift, an_empty_payload_is_not_an_absent_one)
{
    API(HistoryEvent) *event =
        EVENT_NEW(arena, WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed);
    EXPECT_TEXT(encode_one(arena, event), "590f000a0c0000000108001e000000010c0032000000");
    event->workflow_execution_completed_event_attributes->result =
        message_new(arena, API_TYPE(payload));
    char *blob = encode_one(arena, event);
    EXPECT_TEXT(blob, "590f000a0c0000000108001e000000010c00320b000a00000000000000");
    EXPECT(decode_one(arena, blob)->workflow_execution_completed_event_attributes->result != NULL);
}

ARENA_TEST(thrift, a_duration_or_time_of_0_is_not_an_absent_one)
{
    API(HistoryEvent) *event = EVENT_NEW(arena, TIMER_STARTED, timer_started);
    event->event_time = presence_make_timestamp(arena, 0);
    event->timer_started_event_attributes->start_to_fire_timeout = presence_make_duration(arena, 0);
    event = decode_one(arena, encode_one(arena, event));
    EXPECT_EQ(event->event_time->seconds, 0);
    EXPECT_EQ(event->timer_started_event_attributes->start_to_fire_timeout->seconds, 0);
    event = decode_one(arena, encode_one(arena, EVENT_NEW(arena, TIMER_STARTED, timer_started)));
    EXPECT(event->event_time == NULL);
    EXPECT(event->timer_started_event_attributes->start_to_fire_timeout == NULL);
}

/* Thrift has no Failure: that there is one is said by its reason, even by an empty one. */
ARENA_TEST(thrift, an_empty_failure_is_not_an_absent_one)
{
    API(HistoryEvent) *event = EVENT_NEW(arena, ACTIVITY_TASK_FAILED, activity_task_failed);
    event = decode_one(arena, encode_one(arena, event));
    EXPECT(event->activity_task_failed_event_attributes->failure == NULL);
    event->activity_task_failed_event_attributes->failure = message_new(arena, API_TYPE(failure));
    event = decode_one(arena, encode_one(arena, event));
    API(Failure) *failure = event->activity_task_failed_event_attributes->failure;
    EXPECT(failure != NULL && failure->details.len == 0 && failure->options == NULL);
}

ARENA_TEST(thrift, empty_infos_about_other_runs_are_not_absent_ones)
{
    API(HistoryEvent) *event =
        EVENT_NEW(arena, WORKFLOW_EXECUTION_STARTED, workflow_execution_started);
    event = decode_one(arena, encode_one(arena, event));
    EXPECT(event->workflow_execution_started_event_attributes->parent_execution_info == NULL);
    event->workflow_execution_started_event_attributes->parent_execution_info =
        message_new(arena, API_TYPE(parent_execution_info));
    event = decode_one(arena, encode_one(arena, event));
    API(ParentExecutionInfo) *parent =
        event->workflow_execution_started_event_attributes->parent_execution_info;
    EXPECT(parent != NULL && parent->workflow_execution == NULL);

    event =
        EVENT_NEW(arena, WORKFLOW_EXECUTION_CANCEL_REQUESTED, workflow_execution_cancel_requested);
    event->workflow_execution_cancel_requested_event_attributes->external_execution_info =
        message_new(arena, API_TYPE(external_execution_info));
    event = decode_one(arena, encode_one(arena, event));
    EXPECT(event->workflow_execution_cancel_requested_event_attributes->external_execution_info !=
           NULL);
}

/* A newer cluster may know reasons that we do not. */
ARENA_TEST(thrift, an_unknown_number_of_an_enum_is_kept)
{
    static const char blob[] = "590f000a0c0000000108001e000000030c004608000a000003e7000000";
    API(HistoryEvent) *event = decode_one(arena, blob);
    EXPECT_EQ(event->workflow_execution_timed_out_event_attributes->timeout_type, 1000);
    EXPECT_TEXT(encode_one(arena, event), blob);
}

/* Attributes before the type, unknown fields of every type in between. */
TEST(thrift, fields_may_come_in_any_order_and_unknown_ones_are_skipped)
{
    static const char blob[] = "59" /* History: unknown bool, i8, double, i16 */
                               "0203e801"
                               "0303e905"
                               "0403ea3ff0000000000000"
                               "0603eb0001"
                               "0f000a0c00000001"
                               "0c0032" /* result, unknown struct with a list in it */
                               "0b000a00000001780c03e80f00010800000002000000010000000200"
                               "00"
                               "0d03e80b0c000000010000000161"
                               "0b000100000000"
                               "00"                               /* that was an unknown map */
                               "0e03e90a000000010000000000000001" /* unknown set */
                               "08001e00000001"
                               "0a000a0000000000000009"
                               "00"
                               "0a03ec0000000000000001"
                               "00";
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(HistoryEvent) *event = decode_one(arena, blob);
    EXPECT_EQ(event->event_id, 9);
    EXPECT_EQ(event->workflow_execution_completed_event_attributes->result->data.len, 1);
    EXPECT_TEXT(encode_one(arena, event),
                "590f000a0c000000010a000a000000000000000908001e000000010c00320b000a000000017800"
                "0000");
}

ARENA_TEST(thrift, a_field_given_again_replaces_and_a_map_has_each_key_once)
{
    API(HistoryEvent) *event = decode_one(arena, "590f000a0c00000001"
                                                 "0a000a0000000000000001"
                                                 "0a000a0000000000000002"
                                                 "08001e00000029"
                                                 "0c01c20c00140d000a0b0b00000003"
                                                 "00000001620000000131"
                                                 "00000001610000000132"
                                                 "00000001620000000133"
                                                 "00000000");
    EXPECT_EQ(event->event_id, 2);
    API(SearchAttributes) *attributes =
        event->upsert_workflow_search_attributes_event_attributes->search_attributes;
    EXPECT_EQ(attributes->n_indexed_fields, 2);
    EXPECT_TEXT(attributes->indexed_fields[0]->key, "a");
    EXPECT_TEXT(attributes->indexed_fields[1]->key, "b");
    EXPECT_EQ(attributes->indexed_fields[1]->value->data.data[0], '3');
}

ARENA_TEST(thrift, nothing_points_into_the_bytes)
{
    char hex[] = "590f000a0c0000000108001e0000001b0c01040b000a00000001730b0014000000027b7d000000";
    struct slice bytes = hex_decode(arena, hex);
    API(HistoryEvent) **events;
    size_t count;
    EXPECT_OK(thrift_decode_history(arena, ERR_CORRUPT, bytes, &events, &count));
    memset((uint8_t *)bytes.data, 'x', bytes.length);
    EXPECT_TEXT(encode_one(arena, events[0]), hex);
}
