/* thrift_identity_test.c - events through thrift and back, at random.
 *
 * At stake: clusters compare and merge histories that each got through thrift. A field that is lost
 * on the way makes two clusters disagree about the past. Method: for every kind of event, random
 * canonical ones from the descriptors of protobuf, of all densities; the bytes before and after
 * must be the same. */
#include "base/test.h"
#include "wire/message.h"
#include "wire/test_thrift_sample.h"
#include "wire/thrift.h"

#define ROUNDS      505 /* for each seed and kind */
#define BATCH_COUNT 7

static void
expect_same(struct arena *arena, API(HistoryEvent) *const *before, size_t count)
{
    API(HistoryEvent) **after;
    size_t count_after;
    struct slice blob = thrift_encode_history(arena, before, count);
    EXPECT_OK(thrift_decode_history(arena, ERR_CORRUPT, blob, &after, &count_after));
    EXPECT_EQ(count_after, count);
    for (size_t i = 0; i < count; i++)
        if (!slice_equal(message_encode(arena, &before[i]->base),
                         message_encode(arena, &after[i]->base)))
            TEST_FAIL("arm %d of event %zu is not what it was", before[i]->attributes_case, i);
    EXPECT(slice_equal(thrift_encode_history(arena, after, count_after), blob));
}

TEST(thrift_identity, a_canonical_event_of_any_kind_comes_back_as_it_was)
{
    for (int s = 0; s < test_seed_count(); s++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct sample sample = {.arena = arena};
        random_seed(&sample.random, test_seed(s));
        for (unsigned i = 0; i < ROUNDS; i++) {
            arena_reset(arena);
            sample.fill = i % 101;
            for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++) {
                API(HistoryEvent) *event = sample_event(&sample, arm);
                expect_same(arena, &event, 1);
                EXPECT(thrift_is_canonical(arena, event));
            }
        }
    }
}

ARENA_TEST(thrift_identity, a_batch_keeps_its_events_and_their_order)
{
    struct sample sample = {.arena = arena, .fill = 60};
    random_seed(&sample.random, test_seed(0));
    API(HistoryEvent) *events[BATCH_COUNT];
    for (unsigned i = 0; i < BATCH_COUNT; i++)
        events[i] = sample_event(&sample, SAMPLE_ARM_FIRST + i * 6);
    expect_same(arena, events, BATCH_COUNT);
    expect_same(arena, events, 0);
}

/* Wild events have parts of seconds, durations that 32 bits cannot hold, unsorted maps and fields
 * that thrift does not have. */
TEST(thrift_identity, an_event_made_canonical_is_canonical)
{
    unsigned wild_count = 0;
    for (int s = 0; s < test_seed_count(); s++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct sample sample = {.arena = arena, .fill = 80, .is_wild = true};
        random_seed(&sample.random, test_seed(s));
        for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++) {
            API(HistoryEvent) *event = sample_event(&sample, arm);
            wild_count += !thrift_is_canonical(arena, event);
            struct slice blob = thrift_encode_history(arena, &event, 1);
            thrift_make_canonical(arena, event);
            EXPECT(thrift_is_canonical(arena, event));
            /* nothing was taken that thrift could have carried; order of maps apart */
            EXPECT_EQ(thrift_encode_history(arena, &event, 1).length <= blob.length, true);
        }
    }
    EXPECT(wild_count > 0);
}

ARENA_TEST(thrift_identity, a_canonical_event_made_canonical_is_the_same)
{
    struct sample sample = {.arena = arena, .fill = 70};
    random_seed(&sample.random, test_seed(0));
    for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++) {
        API(HistoryEvent) *event = sample_event(&sample, arm);
        struct slice before = message_encode(arena, &event->base);
        thrift_make_canonical(arena, event);
        EXPECT(slice_equal(message_encode(arena, &event->base), before));
    }
}

/* A peer may die in the middle of a blob; no part of one is a batch. */
ARENA_TEST(thrift_identity, no_beginning_of_a_blob_is_a_blob)
{
    struct sample sample = {.arena = arena, .fill = 50};
    random_seed(&sample.random, test_seed(0));
    for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++) {
        API(HistoryEvent) *event = sample_event(&sample, arm), **events = NULL;
        struct slice blob = thrift_encode_history(arena, &event, 1);
        size_t count = 99;
        for (size_t length = 0; length < blob.length; length++) {
            struct slice part = slice_of(blob.data, length);
            EXPECT_KIND(thrift_decode_history(arena, ERR_CORRUPT, part, &events, &count),
                        ERR_CORRUPT);
        }
        EXPECT(events == NULL && count == 99);
    }
}

/* What a flipped byte leaves readable must still be a sane batch: it encodes and decodes again. */
TEST(thrift_identity, a_mutated_blob_is_refused_or_read_as_another_batch)
{
    unsigned refused = 0, taken = 0;
    for (int s = 0; s < test_seed_count(); s++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct sample sample = {.arena = arena, .fill = 40};
        random_seed(&sample.random, test_seed(s));
        for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++) {
            API(HistoryEvent) *event = sample_event(&sample, arm), **events;
            size_t count;
            struct slice blob = thrift_encode_history(arena, &event, 1);
            uint8_t *byte = (uint8_t *)blob.data + random_below(&sample.random, blob.length);
            *byte ^= (uint8_t)(1 + random_below(&sample.random, 255));
            bool is_taken =
                thrift_decode_history(arena, ERR_BAD_REQUEST, blob, &events, &count) == NULL;
            if (is_taken)
                expect_same(arena, events, count);
            taken += is_taken;
            refused += !is_taken;
        }
    }
    EXPECT(refused > 0 && taken > 0);
}
