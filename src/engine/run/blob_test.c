/* blob_test.c - what a run writes down survives the way to another cluster, byte for byte.
 *
 * At stake: clusters compare histories by ids and versions alone, so an event that changes on the
 * way is never noticed. Method: wild events of every kind are brought into the form in which a run
 * keeps them, sent as a blob, and read back. */
#include "base/test.h"
#include "engine/run/inside.h"
#include "wire/message.h"
#include "wire/test_thrift_sample.h"
#include "wire/thrift.h"

static void
expect_kept(API(HistoryEvent) *event, struct arena *arena)
{
    thrift_make_canonical(arena, event);
    API(HistoryEvent) **after;
    size_t count;
    struct slice blob = thrift_encode_kept(arena, &event, 1);
    EXPECT_OK(thrift_decode_history(arena, ERR_CORRUPT, blob, &after, &count));
    EXPECT_EQ(count, 1);
    if (!slice_equal(message_encode(arena, &event->base), message_encode(arena, &after[0]->base)))
        TEST_FAIL("%s is not what it was", event_name(event->attributes_case));
}

ARENA_TEST(blob, an_event_as_a_run_keeps_it_reaches_another_cluster_unchanged)
{
    struct sample sample = {.arena = arena, .is_wild = true};
    random_seed(&sample.random, test_seed(0));
    for (unsigned i = 0; i < 200; i++) {
        arena_reset(arena);
        sample.fill = i % 101;
        for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++)
            expect_kept(sample_event(&sample, arm), arena);
    }
}

/* What a client sends goes into events as it is. */
ARENA_TEST(blob, a_number_of_an_enum_is_kept_or_was_none)
{
    struct sample sample = {.arena = arena, .fill = 100};
    random_seed(&sample.random, test_seed(0));
    static const int numbers[] = {-1, INT32_MIN, 0, 1, 77, INT32_MAX};
    for (size_t i = 0; i < array_length(numbers); i++) {
        API(HistoryEvent) *event = sample_event(&sample, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
        API(TaskList) *list = event->workflow_execution_started_event_attributes->task_list;
        list->kind = numbers[i];
        expect_kept(event, arena);
        list = event->workflow_execution_started_event_attributes->task_list;
        EXPECT_EQ((int)list->kind, numbers[i] < 0 ? 0 : numbers[i]);
    }
}
