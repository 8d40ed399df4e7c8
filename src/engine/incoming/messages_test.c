/* messages_test.c - what other clusters sent survives the way between owners. */
#include "engine/incoming/messages.h"

#include "base/test.h"
#include "engine/test/history_sample.h"
#include "wire/message.h"

static struct replicated_events
cross_over(const struct replicated_events *events, struct replicated_priors *priors,
           struct arena *arena)
{
    INTERNAL(ReplicatedEvents) message = INTERNAL_VALUE(REPLICATED_EVENTS__INIT), *again = NULL;
    replicated_events_to_message(events, arena, &message);
    struct slice bytes = message_encode(arena, &message.base);
    EXPECT_OK(message_decode(arena, INTERNAL_TYPE(replicated_events), bytes, &again));
    struct replicated_events read;
    replicated_events_from_message(again, arena, priors, &read);
    return read;
}

ARENA_TEST(incoming_messages, a_batch_survives_the_way)
{
    API(HistoryEvent) *event = message_new(arena, API_TYPE(history_event));
    event->event_id = 7;
    event->version = 11;
    struct replicated_priors asked = {.run_id = {"other"}, .count = 1}, priors;
    struct replicated_events events = {.key = {"domain", "wf", "run"},
                                       .versions = VERSIONS({3, 1}, {7, 11}),
                                       .events = &event,
                                       .count = 1,
                                       .begun_events = &event,
                                       .begun_count = 1,
                                       .priors = &asked};
    struct replicated_events read = cross_over(&events, &priors, arena);
    EXPECT_TEXT(read.key.domain_id, "domain");
    EXPECT_TEXT(read.key.workflow_id, "wf");
    EXPECT_TEXT(read.key.run_id, "run");
    EXPECT_TEXT(sample_text(read.versions, arena), "(3,1)(7,11)");
    EXPECT(read.count == 1 && read.begun_count == 1);
    EXPECT_EQ(read.events[0]->event_id, 7);
    EXPECT_EQ(read.begun_events[0]->version, 11);
    EXPECT(read.priors == &priors && priors.count == 1);
    EXPECT_TEXT(priors.run_id[0], "other");
}

/* That a source cannot be asked is something else than that it was not asked yet. */
ARENA_TEST(incoming_messages, no_priors_are_not_none)
{
    struct replicated_priors none = {0}, priors;
    struct replicated_events events = {.key = {"domain", "wf", "run"}};
    EXPECT(cross_over(&events, &priors, arena).priors == NULL);
    events.priors = &none;
    EXPECT(cross_over(&events, &priors, arena).priors == &priors);
    EXPECT_EQ(priors.count, 0);
}

ARENA_TEST(incoming_messages, an_outcome_survives_the_way)
{
    static const enum replicated_place places[] = {REPLICATED_APPLIED, REPLICATED_KNOWN,
                                                   REPLICATED_LACKS};
    for (size_t i = 0; i < array_length(places); i++) {
        struct replicated_outcome read,
            outcome = {.place = places[i],
                       .gap = {{"domain", "wf", "run"}, ITEM(3, 1), ITEM(0, 0), .is_prior = true}};
        INTERNAL(ReplicatedOutcome) message = INTERNAL_VALUE(REPLICATED_OUTCOME__INIT), *again;
        replicated_outcome_to_message(&outcome, arena, &message);
        struct slice bytes = message_encode(arena, &message.base);
        EXPECT_OK(message_decode(arena, INTERNAL_TYPE(replicated_outcome), bytes, &again));
        replicated_outcome_from_message(again, &read);
        EXPECT_EQ(read.place, places[i]);
        if (places[i] != REPLICATED_LACKS)
            continue;
        EXPECT_TEXT(read.gap.key.run_id, "run");
        EXPECT(version_item_equal(read.gap.base, ITEM(3, 1)));
        EXPECT(version_item_equal(read.gap.end, ITEM(0, 0)));
        EXPECT(read.gap.is_prior);
    }
}
