/* message_test.c - each value of matching is what it was when it has been read and is written
 * again: no field of its message is forgotten on either side. In simulation, where the clock stands
 * still meanwhile. */
#include "base/test.h"
#include "matching/test/fixture.h"
#include "matching/values.h"
#include "route/tell.h"
#include "wire/message.h"

static INTERNAL(Task) sample_task(void)
{
    INTERNAL(Task) task = INTERNAL_VALUE(TASK__INIT);
    task.type = TASK_ACTIVITY;
    task.kind = LIST_STICKY;
    task.domain_id = "domain";
    task.list = "host:1";
    task.normal_list = "orders";
    task.run_domain_id = "another";
    task.workflow_id = "workflow";
    task.run_id = "run";
    task.schedule_id = 5;
    task.attempt = 6;
    task.created_time = 7;
    task.expiry_time = 8;
    task.shard = 9;
    task.range_id = 10;
    task.row = 11;
    task.isolation_group = "zone";
    task.number = 12;
    task.partition = 13;
    return task;
}

static INTERNAL(ListId) sample_list(void)
{
    INTERNAL(ListId) list = INTERNAL_VALUE(LIST_ID__INIT);
    list.domain_id = "domain";
    list.type = TASK_ACTIVITY;
    list.name = "orders";
    list.partition = 3;
    return list;
}

/* The message itself must say something in each field: what is not set is not compared. */
static void
check_complete(const ProtobufCMessage *message, size_t fields)
{
    EXPECT_EQ(message->descriptor->n_fields, fields);
}

static void
expect_same(struct matching_fixture *matching_fixture, const struct route_notice *notice,
            const ProtobufCMessage *message)
{
    struct arena *arena = matching_fixture->arena;
    struct route_service service = {.context = matching_fixture->matching};
    struct slice bytes = message_encode(arena, message);
    struct route_value *value = notice->decode(bytes);
    EXPECT(value != NULL);
    value->service = &service;
    EXPECT(slice_equal(notice->encode(value, arena), bytes));
    notice->free(value);
}

MATCHING_TEST(list_message, an_offer_says_everything_of_its_task, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) task = sample_task(), query = sample_task();
    INTERNAL(ListOffer) message = INTERNAL_VALUE(LIST_OFFER__INIT);
    check_complete(&message.base, 3);
    message.host = 14;
    message.task = &task;
    for (uint32_t action = 0; action < OFFER_ACTION_COUNT; action++) {
        message.action = action;
        expect_same(matching_fixture, &offer_notices[action], &message.base);
    }
    query.is_query = true;
    query.query_id = "query";
    query.query = (ProtobufCBinaryData){3, (uint8_t *)"why"};
    message.task = &query;
    expect_same(matching_fixture, &offer_notices[OFFER_RETURN], &message.base);
}

MATCHING_TEST(list_message, a_poll_and_its_end_come_as_they_went, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) task = sample_task();
    INTERNAL(ListId) list = sample_list();
    INTERNAL(ListPoll) poll = INTERNAL_VALUE(LIST_POLL__INIT);
    check_complete(&poll.base, 10);
    poll.place = 1;
    poll.number = 2;
    poll.list = &list;
    poll.kind = LIST_STICKY;
    poll.domain_name = "shop";
    poll.base_list = "base";
    poll.identity = "worker";
    poll.isolation_group = "zone";
    poll.rate_per_second = 4.5;
    poll.patience = 5;
    expect_same(matching_fixture, &poll_notice, &poll.base);

    INTERNAL(ListPollEnd) end = INTERNAL_VALUE(LIST_POLL_END__INIT);
    check_complete(&end.base, 7);
    end.number = 2;
    end.backlog = 3;
    end.waited = 4;
    end.end = POLL_WITHDRAWN;
    expect_same(matching_fixture, &poll_end_notice, &end.base);
    end.end = POLL_MATCHED;
    end.task = &task;
    expect_same(matching_fixture, &matched_notice, &end.base);
    end.request_id = "start";
    end.start = (ProtobufCBinaryData){4, (uint8_t *)"told"};
    expect_same(matching_fixture, &matched_notice, &end.base);

    INTERNAL(ListRecall) recall = INTERNAL_VALUE(LIST_RECALL__INIT);
    check_complete(&recall.base, 2);
    recall.place = 1;
    recall.number = 2;
    expect_same(matching_fixture, &recall_notice, &recall.base);
}

MATCHING_TEST(list_message, a_reservation_its_answer_and_its_end, fixture_run(body, NULL, 1))
{
    INTERNAL(Task) task = sample_task();
    INTERNAL(ListId) list = sample_list();
    INTERNAL(ListReserve) reserve = INTERNAL_VALUE(LIST_RESERVE__INIT);
    check_complete(&reserve.base, 3);
    reserve.place = 1;
    reserve.number = 2;
    reserve.list = &list;
    expect_same(matching_fixture, &reserve_notice, &reserve.base);

    INTERNAL(ListReserved) reserved = INTERNAL_VALUE(LIST_RESERVED__INIT);
    check_complete(&reserved.base, 6);
    reserved.number = 2;
    reserved.list = 6;
    expect_same(matching_fixture, &reserved_notice, &reserved.base);
    reserved.is_granted = true;
    reserved.identity = "worker";
    reserved.poll_place = 4;
    reserved.poll_number = 5;
    expect_same(matching_fixture, &reserved_notice, &reserved.base);

    INTERNAL(ListReservationEnd) end = INTERNAL_VALUE(LIST_RESERVATION_END__INIT);
    check_complete(&end.base, 7);
    end.place = 1;
    end.number = 2;
    end.poll_place = 4;
    end.poll_number = 5;
    expect_same(matching_fixture, &released_notice, &end.base);
    end.task = &task;
    end.request_id = "start";
    end.start = (ProtobufCBinaryData){4, (uint8_t *)"told"};
    expect_same(matching_fixture, &delivered_notice, &end.base);
}

MATCHING_TEST(list_message, what_partitions_tell_each_other, fixture_run(body, NULL, 1))
{
    INTERNAL(ListId) list = sample_list();
    INTERNAL(ListNotice) notice = INTERNAL_VALUE(LIST_NOTICE__INIT);
    check_complete(&notice.base, 7);
    notice.list = &list;
    notice.from = 1;
    notice.kind = NOTICE_RATE;
    notice.peer = 2;
    notice.count = 3;
    notice.is_hungry = true;
    notice.rate = 4.5;
    expect_same(matching_fixture, &member_notice, &notice.base);

    int32_t ids[] = {0, 2, 5};
    INTERNAL(ListSeat)
    seats[2] = {INTERNAL_VALUE(LIST_SEAT__INIT), INTERNAL_VALUE(LIST_SEAT__INIT)};
    INTERNAL(ListSeat) * first[] = {&seats[0]}, *both[] = {&seats[1], &seats[0]};
    INTERNAL(ListDivision) division = INTERNAL_VALUE(LIST_DIVISION__INIT);
    check_complete(&division.base, 7);
    seats[0].partition = 2;
    seats[0].group = UINT64_C(0xfedcba9876543210);
    seats[1].partition = 5;
    seats[1].group = 7;
    division.key = (ProtobufCBinaryData){3, (uint8_t *)"key"};
    division.version = 6;
    division.reads = division.writes = ids;
    division.n_reads = 3;
    division.n_writes = 2;
    division.read_seats = both;
    division.n_read_seats = 2;
    division.write_seats = first;
    division.n_write_seats = 1;
    division.rate_requested = 8.5;
    expect_same(matching_fixture, &group_notice, &division.base);
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
