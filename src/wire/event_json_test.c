/* event_json_test.c - histories through JSON and back, and JSON that Cadence wrote.
 *
 * At stake: an archive is all that is left of a run. A field that is lost there is lost for ever.
 * Method: random canonical events of every kind, from the descriptors of protobuf alone, must come
 * back as they were; a file that Cadence's own code wrote must be read, and be written again with
 * the same members. */
#include "wire/event_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/test_thrift_sample.h"

#define ROUNDS 101 /* for each seed and kind: every density */

static struct slice
write_batch(const API(History) *batch, struct arena *arena)
{
    scoped(buffer_free) struct buffer out = {0};
    event_json_append_batch(&out, batch);
    return arena_slice(arena, buffer_slice(&out));
}

static API(History) *
batch_of(API(HistoryEvent) **events, size_t count, struct arena *arena)
{
    return API_NEW(arena, history, .n_events = count, .events = events);
}

TEST(event_json, a_canonical_event_of_any_kind_comes_back_as_it_was)
{
    for (int s = 0; s < test_seed_count(); s++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct sample sample = {.arena = arena};
        random_seed(&sample.random, test_seed(s));
        for (unsigned i = 0; i < ROUNDS * (SAMPLE_ARM_LAST - SAMPLE_ARM_FIRST + 1); i++) {
            API(HistoryEvent) *events[2];
            API(History) *back;
            arena_reset(arena);
            sample.fill = i % 101;
            events[0] = sample_event(&sample, SAMPLE_ARM_FIRST + i % 42);
            events[1] = sample_event(&sample, SAMPLE_ARM_FIRST + i / 7 % 42);
            API(History) *batch = batch_of(events, 2, arena);
            struct slice json = write_batch(batch, arena);
            EXPECT_EQ(object_measure(json), json.length);
            EXPECT_OK(event_json_read_batch(json, arena, &back));
            EXPECT(slice_equal(message_encode(arena, &batch->base),
                               message_encode(arena, &back->base)));
        }
    }
}

static struct slice
load_vectors(struct arena *arena)
{
    const char *path = getenv("EVENT_JSON_VECTORS");
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    uint8_t *bytes = arena_alloc(arena, 1 << 20);
    size_t count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return slice_of(bytes, count);
}

/* The file is an array of one batch with an event of every kind, each field of it set, as
 * encoding/json made it of Cadence's types. */
ARENA_TEST(event_json, a_history_that_cadence_archived_is_read_whole)
{
    struct slice file = load_vectors(arena);
    struct slice json = slice_of(file.data + 1, object_measure(slice_skip(file, 1)));
    API(History) *batch;
    EXPECT_OK(event_json_read_batch(json, arena, &batch));
    EXPECT_EQ(batch->n_events, 42);
    unsigned seen = 0;
    for (size_t i = 0; i < batch->n_events; i++) {
        EXPECT_EQ(batch->events[i]->event_id, (int64_t)i + 1);
        EXPECT_EQ(batch->events[i]->event_time->seconds, 1700000000);
        seen += batch->events[i]->attributes_case != 0;
    }
    EXPECT_EQ(seen, 42);
    const API(WorkflowExecutionStartedEventAttributes) *started =
        batch->events[0]->workflow_execution_started_event_attributes;
    EXPECT_TEXT(started->workflow_type->name, "type");
    EXPECT_EQ(started->execution_start_to_close_timeout->seconds, 7);
    EXPECT_EQ(started->first_scheduled_time->seconds, 1700000000);
    EXPECT_EQ(started->retry_policy->initial_interval->seconds, 7);
    EXPECT(slice_equal(presence_read_bytes(started->input->data), slice_text("bytes")));
}

/* Members of the file that were not taken over would be missing when it is written again. Those of
 * thrift's that have no place in protobuf are not in the file. */
ARENA_TEST(event_json, what_cadence_archived_is_written_again_as_it_was)
{
    struct slice file = load_vectors(arena);
    struct slice json = slice_of(file.data + 1, object_measure(slice_skip(file, 1)));
    API(History) *batch, *again;
    EXPECT_OK(event_json_read_batch(json, arena, &batch));
    struct slice ours = write_batch(batch, arena);
    EXPECT_OK(event_json_read_batch(ours, arena, &again));
    EXPECT(slice_equal(message_encode(arena, &batch->base), message_encode(arena, &again->base)));
    size_t theirs_members = 0, ours_members = 0;
    for (size_t i = 0; i + 1 < json.length; i++)
        theirs_members += json.data[i] == '"' && json.data[i + 1] == ':';
    for (size_t i = 0; i + 1 < ours.length; i++)
        ours_members += ours.data[i] == '"' && ours.data[i + 1] == ':';
    EXPECT_EQ(ours_members, theirs_members);
}

TEST(event_json, what_is_not_a_batch_is_refused)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"events\":{}}",
        "{\"events\":[{}]}",
        "{\"events\":[1]}",
        "{\"events\":[{\"eventId\":\"x\",\"timerFiredEventAttributes\":{}}]}",
        "{\"events\":[{\"timerFiredEventAttributes\":[]}]}",
        "{\"events\":[{\"timerFiredEventAttributes\":{}}]}x",
        "{\"events\":[{\"workflowExecutionTimedOutEventAttributes\":{\"timeoutType\":\"NO\"}}]}",
        "{\"events\":[{\"timerStartedEventAttributes\":{\"startToFireTimeoutSeconds\":1e99}}]}",
    };
    for (size_t i = 0; i < array_length(bad); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(History) *batch;
        EXPECT_KIND(event_json_read_batch(slice_text(bad[i]), arena, &batch), ERR_CORRUPT);
    }
}

/* An object of two bytes becomes a message of hundreds. */
ARENA_TEST(event_json, memory_is_bounded_by_the_bytes)
{
    scoped(buffer_free) struct buffer out = {0};
    API(History) *batch;
    buffer_append_text(&out, "{\"events\":[{\"workflowExecutionStartedEventAttributes\":"
                             "{\"prevAutoResetPoints\":{\"points\":[{}");
    for (int i = 0; i < 1000000; i++)
        buffer_append_text(&out, ",{}");
    buffer_append_text(&out, "]}}}]}");
    EXPECT_KIND(event_json_read_batch(buffer_slice(&out), arena, &batch), ERR_CORRUPT);
}
