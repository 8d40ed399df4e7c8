/* message_test.c - each value of matching is what it was when it has been read and is written
 * again: no field of its message is forgotten on either side. In simulation, where the clock stands
 * still meanwhile. */
#include "base/test.h"
#include "matching/test/fixture.h"
#include "matching/values.h"
#include "route/tell.h"
#include "wire/message.h"

static INTERNAL(Task) * sample_task(struct arena *arena)
{
    return INTERNAL_NEW(arena, task, .type = TASK_ACTIVITY, .kind = LIST_STICKY,
                        .domain_id = "domain", .list = "host:1", .normal_list = "orders",
                        .run_domain_id = "another", .workflow_id = "workflow", .run_id = "run",
                        .schedule_id = 5, .attempt = 6, .created_time = 7, .expiry_time = 8,
                        .shard = 9, .range_id = 10, .row = 11, .isolation_group = "zone",
                        .number = 12, .partition = 13);
}

static INTERNAL(ListId) * sample_list(struct arena *arena)
{
    return INTERNAL_NEW(arena, list_id, .domain_id = "domain", .type = TASK_ACTIVITY,
                        .name = "orders", .partition = 3);
}

/* The message itself must say something in each of its fields: what is not set is not compared. */
static void
expect_same(struct matching_fixture *matching_fixture, const struct route_notice *notice,
            size_t fields, const ProtobufCMessage *message)
{
    struct arena *arena = matching_fixture->arena;
    struct route_service service = {.context = matching_fixture->matching};
    struct slice bytes = message_encode(arena, message);
    struct route_value *value = notice->decode(bytes);
    EXPECT_EQ(message->descriptor->n_fields, fields);
    EXPECT(value != NULL);
    value->service = &service;
    EXPECT(slice_equal(notice->encode(value, arena), bytes));
    notice->free(value);
}
#define EXPECT_SAME(notice, fields, name, ...)                                                     \
    expect_same(matching_fixture, (notice), (fields),                                              \
                &INTERNAL_NEW(matching_fixture->arena, name, __VA_ARGS__)->base)

MATCHING_TEST(list_message, an_offer_says_everything_of_its_task, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) *task = sample_task(matching_fixture->arena);
    for (uint32_t action = 0; action < OFFER_ACTION_COUNT; action++)
        EXPECT_SAME(&offer_notices[action], 3, list_offer, .host = 14, .task = task,
                    .action = action);
    task->is_query = true;
    task->query_id = "query";
    task->query = (ProtobufCBinaryData){3, (uint8_t *)"why"};
    EXPECT_SAME(&offer_notices[OFFER_RETURN], 3, list_offer, .host = 14, .task = task,
                .action = OFFER_RETURN);
}

MATCHING_TEST(list_message, a_poll_and_its_end_come_as_they_went, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) *task = sample_task(matching_fixture->arena);
    INTERNAL(ListId) *list = sample_list(matching_fixture->arena);
    ProtobufCBinaryData start = {4, (uint8_t *)"told"};
    EXPECT_SAME(&poll_notice, 10, list_poll, .place = 1, .number = 2, .list = list,
                .kind = LIST_STICKY, .domain_name = "shop", .base_list = "base",
                .identity = "worker", .isolation_group = "zone", .rate_per_second = 4.5,
                .patience = 5);
    EXPECT_SAME(&poll_end_notice, 7, list_poll_end, .number = 2, .backlog = 3, .waited = 4,
                .end = POLL_WITHDRAWN);
    EXPECT_SAME(&matched_notice, 7, list_poll_end, .number = 2, .backlog = 3, .waited = 4,
                .end = POLL_MATCHED, .task = task);
    EXPECT_SAME(&matched_notice, 7, list_poll_end, .number = 2, .backlog = 3, .waited = 4,
                .end = POLL_MATCHED, .task = task, .request_id = "start", .start = start);
    EXPECT_SAME(&recall_notice, 2, list_recall, .place = 1, .number = 2);
}

MATCHING_TEST(list_message, a_reservation_its_answer_and_its_end, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) *task = sample_task(matching_fixture->arena);
    INTERNAL(ListId) *list = sample_list(matching_fixture->arena);
    ProtobufCBinaryData start = {4, (uint8_t *)"told"};
    EXPECT_SAME(&reserve_notice, 3, list_reserve, .place = 1, .number = 2, .list = list);
    EXPECT_SAME(&reserved_notice, 6, list_reserved, .number = 2, .list = 6);
    EXPECT_SAME(&reserved_notice, 6, list_reserved, .number = 2, .list = 6, .is_granted = true,
                .identity = "worker", .poll_place = 4, .poll_number = 5);
    EXPECT_SAME(&released_notice, 7, list_reservation_end, .place = 1, .number = 2, .poll_place = 4,
                .poll_number = 5);
    EXPECT_SAME(&delivered_notice, 7, list_reservation_end, .place = 1, .number = 2,
                .poll_place = 4, .poll_number = 5, .task = task, .request_id = "start",
                .start = start);
}

MATCHING_TEST(list_message, what_partitions_tell_each_other, fixture_run(body, NULL, 1))
{
    struct arena *arena = matching_fixture->arena;
    EXPECT_SAME(&member_notice, 7, list_notice, .list = sample_list(arena), .from = 1,
                .kind = NOTICE_RATE, .peer = 2, .count = 3, .is_hungry = true, .rate = 4.5);

    int32_t ids[] = {0, 2, 5};
    INTERNAL(ListSeat) *near =
        INTERNAL_NEW(arena, list_seat, .partition = 2, .group = UINT64_C(0xfedcba9876543210));
    INTERNAL(ListSeat) *
        both[] = {INTERNAL_NEW(arena, list_seat, .partition = 5, .group = 7), near};
    EXPECT_SAME(&group_notice, 7, list_division, .key = {3, (uint8_t *)"key"}, .version = 6,
                .reads = ids, .n_reads = 3, .writes = ids, .n_writes = 2, .read_seats = both,
                .n_read_seats = 2, .write_seats = &near, .n_write_seats = 1, .rate_requested = 8.5);
}

MATCHING_TEST(list_message, what_is_no_value_is_not_read, fixture_run(body, NULL, 1))
{
    EXPECT(offer_notices[OFFER_ADD].decode(slice_text("\x08\x09")) == NULL);
    EXPECT(poll_notice.decode(slice_text("")) == NULL);
    EXPECT(matched_notice.decode(slice_text("")) == NULL); /* matched, and no task */
    EXPECT(reserve_notice.decode(slice_text("")) == NULL);
    EXPECT(member_notice.decode(slice_text("")) == NULL);
    EXPECT(recall_notice.decode(slice_text("\xff")) == NULL);
}
