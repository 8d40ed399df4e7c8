/* message_test.c - bytes into messages: the rules of protobuf. What is refused is in
 * refusal_test.c. Bytes are written by hand, since no library writes all that is allowed. */
#include "wire/message.h"

#include <stdio.h>

#include "base/test.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/maps.h"
#include "wire/names.h"
#include "wire/presence.h"

#define BYTES(text) ((struct slice)SLICE_LITERAL(text))

ARENA_TEST(message, what_was_encoded_is_decoded)
{
    API(RegisterDomainRequest) *request = API_NEW(
        arena, register_domain_request, .name = "orders", .is_global_domain = true,
        .workflow_execution_retention_period = GOOGLE_NEW(arena, duration, .seconds = 86400));
    struct slice bytes = message_encode(arena, &request->base);

    API(RegisterDomainRequest) *again;
    EXPECT_OK(message_decode(arena, API_TYPE(register_domain_request), bytes, &again));
    EXPECT_TEXT(again->name, "orders");
    EXPECT_TEXT(again->description, "");
    EXPECT(again->is_global_domain);
    EXPECT_EQ(again->workflow_execution_retention_period->seconds, 86400);
    EXPECT(again->active_clusters == NULL);
    EXPECT(slice_equal(message_encode(arena, &again->base), bytes));
}

ARENA_TEST(message, one_that_is_made_with_some_fields_has_the_others_unset)
{
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(arena, start_workflow_execution_request, .workflow_id = "wf",
                .task_list = API_NEW(arena, task_list, .name = "work"));
    EXPECT(request->base.descriptor == API_TYPE(start_workflow_execution_request));
    EXPECT_TEXT(request->workflow_id, "wf");
    EXPECT_TEXT(request->domain, "");
    EXPECT_TEXT(request->task_list->name, "work");
    EXPECT(request->workflow_type == NULL);
    EXPECT_EQ(message_encode(arena, &API_NEW(arena, payload)->base).length, 0);
}

ARENA_TEST(message, a_decision_is_made_around_its_attributes)
{
    API(Decision) *decision = API_DECISION(arena, start_timer, .timer_id = "t");
    EXPECT_EQ(decision->attributes_case,
              API_VALUE(DECISION__ATTRIBUTES_START_TIMER_DECISION_ATTRIBUTES));
    EXPECT_TEXT(decision->start_timer_decision_attributes->timer_id, "t");
}

ARENA_TEST(message, of_a_lent_request_only_the_bytes_stay_where_they_are)
{
    API(RespondActivityTaskCompletedRequest) *request =
        API_NEW(arena, respond_activity_task_completed_request, .identity = "worker",
                .result = API_NEW(arena, payload, .data = presence_make_bytes(BYTES("done"))));
    struct slice bytes = message_encode(arena, &request->base);

    ProtobufCMessage *lent = NULL;
    EXPECT_OK(message_decode_lent(arena, request->base.descriptor, bytes, &lent));
    request = (API(RespondActivityTaskCompletedRequest) *)lent;
    const uint8_t *result = request->result->data.data, *text = (const uint8_t *)request->identity;
    EXPECT(slice_equal(presence_read_bytes(request->result->data), BYTES("done")));
    EXPECT(result >= bytes.data && result < bytes.data + bytes.length);
    EXPECT_TEXT(request->identity, "worker");
    EXPECT(text < bytes.data || text >= bytes.data + bytes.length);
    EXPECT(slice_equal(message_encode(arena, lent), bytes));
}

ARENA_TEST(message, no_bytes_are_an_empty_message_and_the_reverse)
{
    API(RegisterDomainRequest) *request;
    EXPECT_OK(
        message_decode(arena, API_TYPE(register_domain_request), (struct slice){0}, &request));
    EXPECT_TEXT(request->name, "");
    EXPECT_EQ(message_encode(arena, &request->base).length, 0);
}

ARENA_TEST(message, nothing_points_into_the_bytes)
{
    char bytes[] = "\x0a\x02"
                   "ab\x12\x02"
                   "cd";
    API(WorkflowExecution) *execution;
    EXPECT_OK(message_decode(arena, API_TYPE(workflow_execution), slice_of(bytes, sizeof bytes - 1),
                             &execution));
    memset(bytes, 'x', sizeof bytes);
    EXPECT_TEXT(execution->workflow_id, "ab");
    EXPECT_TEXT(execution->run_id, "cd");
}

ARENA_TEST(message, bytes_may_hold_anything)
{
    API(Payload) *payload;
    EXPECT_OK(message_decode(arena, API_TYPE(payload), BYTES("\x0a\x03\x00\xff\x80"), &payload));
    EXPECT(slice_equal(slice_of(payload->data.data, payload->data.len), BYTES("\x00\xff\x80")));
}

ARENA_TEST(message, unknown_fields_are_dropped)
{
    API(DescribeDomainRequest) *request;
    /* 100: a varint, a string, 64 and 32 bits, a group with a group in it; then a known field. */
    struct slice bytes = BYTES("\xa0\x06\x01\xa2\x06\x03new\xa1\x06"
                               "12345678\xa5\x06"
                               "1234\xa3\x06\xab\x06\xb0\x06\x07\xac\x06\xa4\x06\x0a\x01x");
    EXPECT_OK(message_decode(arena, API_TYPE(describe_domain_request), bytes, &request));
    EXPECT_EQ(request->base.n_unknown_fields, 0);
    EXPECT(slice_equal(message_encode(arena, &request->base), BYTES("\x0a\x01x")));
}

ARENA_TEST(message, of_a_scalar_given_twice_the_last_counts)
{
    API(WorkflowExecution) *execution;
    EXPECT_OK(message_decode(arena, API_TYPE(workflow_execution),
                             BYTES("\x0a\x01"
                                   "a\x0a\x01"
                                   "b\x12\x01r\x12\x00"),
                             &execution));
    EXPECT_TEXT(execution->workflow_id, "b");
    EXPECT_TEXT(execution->run_id, ""); /* given again, as empty */
}

/* libprotobuf-c loses the scalars of the first part here. */
ARENA_TEST(message, a_message_given_in_two_parts_is_merged)
{
    API(RegisterDomainRequest) *request;
    EXPECT_OK(message_decode(arena, API_TYPE(register_domain_request),
                             BYTES("\x2a\x02\x08\x05\x12\x01n\x2a\x02\x10\x07"), &request));
    EXPECT_EQ(request->workflow_execution_retention_period->seconds, 5);
    EXPECT_EQ(request->workflow_execution_retention_period->nanos, 7);
}

ARENA_TEST(message, of_a_oneof_the_last_arm_counts)
{
    ADMIN(DescribeHistoryHostRequest) *request;
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(describe_history_host_request),
                             BYTES("\x0a\x01h\x1a\x03\x0a\x01w\x10\x07"), &request));
    EXPECT_EQ(request->describe_by_case,
              ADMIN_VALUE(DESCRIBE_HISTORY_HOST_REQUEST__DESCRIBE_BY_SHARD_ID));
    EXPECT_EQ(request->shard_id, 7);

    /* An arm that comes back is a new one: nothing of its first life is left. */
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(describe_history_host_request),
                             BYTES("\x1a\x03\x0a\x01w\x10\x07\x1a\x03\x12\x01r"), &request));
    EXPECT_TEXT(request->workflow_execution->workflow_id, "");
    EXPECT_TEXT(request->workflow_execution->run_id, "r");
}

ARENA_TEST(message, the_same_arm_of_a_oneof_given_twice_is_merged)
{
    ADMIN(DescribeHistoryHostRequest) *request;
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(describe_history_host_request),
                             BYTES("\x1a\x03\x0a\x01w\x1a\x03\x12\x01r"), &request));
    EXPECT_TEXT(request->workflow_execution->workflow_id, "w");
    EXPECT_TEXT(request->workflow_execution->run_id, "r");
}

/* History events are nothing but their arm. */
ARENA_TEST(message, an_empty_arm_of_a_oneof_is_written)
{
    API(HistoryEvent) *event =
        API_NEW(arena, history_event, .event_id = 1,
                .attributes_case =
                    API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_STARTED_EVENT_ATTRIBUTES),
                .decision_task_started_event_attributes =
                    message_new(arena, API_TYPE(decision_task_started_event_attributes)));
    API(HistoryEvent) *again;
    EXPECT_OK(message_decode(arena, API_TYPE(history_event), message_encode(arena, &event->base),
                             &again));
    EXPECT_EQ(again->attributes_case, event->attributes_case);
    EXPECT(again->decision_task_started_event_attributes != NULL);
}

ARENA_TEST(message, numbers_of_a_repeated_field_come_packed_or_one_by_one)
{
    ADMIN(DescribeHistoryHostResponse) *response;
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(describe_history_host_response),
                             BYTES("\x10\x01\x12\x03\x02\xac\x02\x10\x04\x12\x00"), &response));
    EXPECT_EQ(response->n_shard_ids, 4);
    EXPECT_EQ(response->shard_ids[0], 1);
    EXPECT_EQ(response->shard_ids[1], 2);
    EXPECT_EQ(response->shard_ids[2], 300);
    EXPECT_EQ(response->shard_ids[3], 4);
}

ARENA_TEST(message, repeated_fields_keep_all_elements_in_order)
{
    enum { COUNT = 1000 };
    uint8_t bytes[COUNT * 6];
    for (int i = 0; i < COUNT; i++) {
        char text[8];
        snprintf(text, sizeof text, "%04d", i);
        bytes[6 * i] = 0x0a;
        bytes[6 * i + 1] = 4;
        memcpy(bytes + 6 * i + 2, text, 4);
    }
    ADMIN(DescribeQueueResponse) *response;
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(describe_queue_response),
                             slice_of(bytes, sizeof bytes), &response));
    EXPECT_EQ(response->n_processing_queue_states, COUNT);
    EXPECT_TEXT(response->processing_queue_states[0], "0000");
    EXPECT_TEXT(response->processing_queue_states[512], "0512");
    EXPECT_TEXT(response->processing_queue_states[COUNT - 1], "0999");
}

ARENA_TEST(message, numbers_are_cut_to_the_size_of_their_type)
{
    ADMIN(CloseShardRequest) *request;
    EXPECT_OK(message_decode(arena, ADMIN_TYPE(close_shard_request),
                             BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &request));
    EXPECT_EQ(request->shard_id, -1);
    GOOGLE(BoolValue) *boolean;
    EXPECT_OK(message_decode(arena, GOOGLE_TYPE(bool_value), BYTES("\x08\x80\x02"), &boolean));
    EXPECT_EQ(boolean->value, 1);
    GOOGLE(DoubleValue) *number;
    EXPECT_OK(message_decode(arena, GOOGLE_TYPE(double_value),
                             BYTES("\x09\x00\x00\x00\x00\x00\x00\xf8\x3f"), &number));
    EXPECT(number->value == 1.5);
    GOOGLE(FloatValue) *small;
    EXPECT_OK(
        message_decode(arena, GOOGLE_TYPE(float_value), BYTES("\x0d\x00\x00\xc0\x3f"), &small));
    EXPECT(small->value == 1.5f);
}

ARENA_TEST(message, enum_numbers_that_we_do_not_know_are_kept)
{
    API(TaskList) *list;
    EXPECT_OK(message_decode(arena, API_TYPE(task_list), BYTES("\x10\x63"), &list));
    EXPECT_EQ(list->kind, 99);
    EXPECT(slice_equal(message_encode(arena, &list->base), BYTES("\x10\x63")));
}

ARENA_TEST(message, a_map_has_each_key_once_and_in_order)
{
    API(RegisterDomainRequest) *request;
    EXPECT_OK(message_decode(arena, API_TYPE(register_domain_request),
                             BYTES("\x42\x06\x0a\x01k\x12\x01"
                                   "1\x42\x06\x0a\x01"
                                   "a\x12\x01"
                                   "2\x42\x06\x0a\x01k\x12\x01"
                                   "3\x42\x00"),
                             &request));
    EXPECT_EQ(request->n_data, 3);
    EXPECT_TEXT(request->data[0]->key, "");
    EXPECT_TEXT(request->data[1]->key, "a");
    EXPECT_TEXT(request->data[2]->key, "k");
    EXPECT_TEXT(request->data[2]->value, "3");
    EXPECT_TEXT(wire_map_find(request->data, request->n_data, "a")->value, "2");
    EXPECT(wire_map_find(request->data, request->n_data, "b") == NULL);
}

ARENA_TEST(message, a_map_in_two_parts_is_one_map)
{
    API(StartWorkflowExecutionRequest) *request;
    EXPECT_OK(message_decode(arena, API_TYPE(start_workflow_execution_request),
                             BYTES("\x6a\x0a\x0a\x08\x0a\x01z\x12\x03\x0a\x01"
                                   "1\x6a\x0a\x0a\x08\x0a\x01"
                                   "b\x12\x03\x0a\x01"
                                   "2"),
                             &request));
    EXPECT_EQ(request->memo->n_fields, 2);
    EXPECT_TEXT(request->memo->fields[0]->key, "b");
    EXPECT_TEXT(request->memo->fields[1]->key, "z");
}

/* An entry without value is an entry with an empty one, for every reader of protobuf. */
ARENA_TEST(message, every_entry_of_a_map_has_its_value)
{
    API(Memo) *memo;
    EXPECT_OK(message_decode(arena, API_TYPE(memo), BYTES("\x0a\x03\x0a\x01k"), &memo));
    EXPECT(memo->fields[0]->value != NULL);
    EXPECT_EQ(memo->fields[0]->value->data.len, 0);
}

ARENA_TEST(message, maps_with_numbers_for_keys_are_sorted_by_value)
{
    ADMIN(DescribeShardDistributionResponse) *response;
    EXPECT_OK(message_decode(
        arena, ADMIN_TYPE(describe_shard_distribution_response),
        BYTES(
            "\x12\x02\x08\x05\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x02\x08\x03"),
        &response));
    EXPECT_EQ(response->n_shards, 3);
    EXPECT_EQ(response->shards[0]->key, -1);
    EXPECT_EQ(response->shards[1]->key, 3);
    EXPECT_EQ(response->shards[2]->key, 5);
}
