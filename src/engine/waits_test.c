/* waits_test.c - the values of waits.h come out of their bytes as they went in. */
#include "base/memory.h"
#include "base/test.h"
#include "engine/wait_values.h"

static const struct run_wait_for news = {.key = {"d1", "order-7", "r1"}, .next_event_id = 12};
static const struct run_wait_for query = {.key = {"d1", "order-7", "r1"},
                                          .query_id = "q-1",
                                          .question = {(const uint8_t *)"\xff\0\x01", 3}};

static void
check_wait(const struct run_wait_for *what, struct arena *arena)
{
    struct wait_value *sent = wait_value_new(what);
    sent->place = 3;
    sent->number = UINT64_MAX - 1;
    sent->shard = 16383;
    struct route_value *value = wait_value_decode(wait_value_encode(&sent->value, arena));
    memory_free(sent);
    struct wait_value *came = container_of(value, struct wait_value, value);
    EXPECT(came->place == 3 && came->number == UINT64_MAX - 1 && came->shard == 16383);
    EXPECT_TEXT(came->what.key.domain_id, "d1");
    EXPECT_TEXT(came->what.key.workflow_id, "order-7");
    EXPECT_TEXT(came->what.key.run_id, "r1");
    EXPECT_EQ(came->what.next_event_id, what->next_event_id);
    EXPECT((came->what.query_id == NULL) == (what->query_id == NULL));
    if (what->query_id != NULL)
        EXPECT_TEXT(came->what.query_id, what->query_id);
    EXPECT(slice_equal(came->what.question, what->question));
    memory_free(came);
}

ARENA_TEST(waits, a_wait_and_its_query_come_out_as_they_went_in)
{
    check_wait(&news, arena);
    check_wait(&query, arena);
}

ARENA_TEST(waits, a_stop_comes_out_as_it_went_in)
{
    struct wait_stop_value stop = {.number = 7, .shard = 9};
    struct route_value *value = wait_stop_decode(wait_stop_encode(&stop.value, arena));
    struct wait_stop_value *came = container_of(value, struct wait_stop_value, value);
    EXPECT(came->number == 7 && came->shard == 9);
    memory_free(came);
}

ARENA_TEST(waits, an_end_comes_out_as_it_went_in)
{
    for (int end = QUERY_FREE; end <= QUERY_REFUSED + 1; end++) {
        struct slice result = end == QUERY_ANSWERED ? slice_text("yes") : (struct slice){0};
        struct wait_end_value *sent = wait_end_value_new(5, (enum query_end)end, result);
        struct route_value *value = wait_end_decode(wait_end_encode(&sent->value, arena));
        struct wait_end_value *came = container_of(value, struct wait_end_value, value);
        enum query_end known = end <= QUERY_REFUSED ? (enum query_end)end : QUERY_FREE;
        EXPECT(came->number == 5 && came->end == known && slice_equal(came->result, result));
        memory_free(sent);
        memory_free(came);
    }
}

ARENA_TEST(waits, what_is_no_message_is_no_value)
{
    EXPECT(wait_value_decode(slice_text("\xff\xff")) == NULL);
    EXPECT(wait_stop_decode(slice_text("\xff\xff")) == NULL);
    EXPECT(wait_end_decode(slice_text("\xff\xff")) == NULL);
}
