/* messages.c - see messages.h. */
#include "engine/incoming/messages.h"

#include "base/check.h"
#include "engine/run/run_key.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PLACE(name) INTERNAL_VALUE(REPLICATED_PLACE__REPLICATED_PLACE_##name)

/* --- events ---- */

static INTERNAL(ReplicatedPriors) *
    priors_to_message(const struct replicated_priors *priors, struct arena *arena)
{
    INTERNAL(ReplicatedPriors) *message = message_new(arena, INTERNAL_TYPE(replicated_priors));
    check(priors->count <= REPLICATED_PRIORS_MAX);
    message->run_ids = arena_zalloc(arena, priors->count, sizeof message->run_ids[0]);
    message->n_run_ids = priors->count;
    for (size_t i = 0; i < priors->count; i++)
        message->run_ids[i] = presence_make_text(priors->run_id[i]);
    return message;
}

void
replicated_events_to_message(const struct replicated_events *events, struct arena *arena,
                             INTERNAL(ReplicatedEvents) * message)
{
    message->key = arena_make(arena, INTERNAL(RunKey));
    *message->key = run_key_to_message(&events->key);
    message->versions = versions_store(events->versions, arena);
    message->n_versions = events->versions.count;
    message->events = (API(HistoryEvent) **)(uintptr_t)events->events;
    message->n_events = events->count;
    message->begun_events = (API(HistoryEvent) **)(uintptr_t)events->begun_events;
    message->n_begun_events = events->begun_count;
    if (events->priors != NULL)
        message->priors = priors_to_message(events->priors, arena);
}

void
replicated_events_from_message(const INTERNAL(ReplicatedEvents) * message, struct arena *arena,
                               struct replicated_priors *priors, struct replicated_events *events)
{
    *events = (struct replicated_events){
        .key = run_key_from_message(message->key),
        .versions = versions_read(message->versions, message->n_versions, arena),
        .events = message->events,
        .count = message->n_events,
        .begun_events = message->begun_events,
        .begun_count = message->n_begun_events,
        .priors = message->priors == NULL ? NULL : priors,
    };
    *priors = (struct replicated_priors){0};
    for (size_t i = 0; message->priors != NULL && i < message->priors->n_run_ids; i++) {
        check(i < REPLICATED_PRIORS_MAX);
        priors->run_id[priors->count++] = message->priors->run_ids[i];
    }
}

/* --- what came of them ---- */

static STORED(VersionItem) *
item_to_message(struct version_item item, struct arena *arena)
{
    STORED(VersionItem) *message = message_new(arena, STORED_TYPE(version_item));
    message->event_id = item.event_id;
    message->event_version = item.event_version;
    return message;
}

static struct version_item
item_from_message(const STORED(VersionItem) *message)
{
    check(message != NULL);
    return (struct version_item){message->event_id, message->event_version};
}

static INTERNAL(ReplicatedGap) *
    gap_to_message(const struct replicated_gap *gap, struct arena *arena)
{
    INTERNAL(ReplicatedGap) *message = message_new(arena, INTERNAL_TYPE(replicated_gap));
    message->key = arena_make(arena, INTERNAL(RunKey));
    *message->key = run_key_to_message(&gap->key);
    message->after = item_to_message(gap->base, arena);
    message->before = item_to_message(gap->end, arena);
    message->is_prior = gap->is_prior;
    return message;
}

void
replicated_outcome_to_message(const struct replicated_outcome *outcome, struct arena *arena,
                              INTERNAL(ReplicatedOutcome) * message)
{
    static const INTERNAL(ReplicatedPlace) places[] = {
        [REPLICATED_APPLIED] = PLACE(APPLIED),
        [REPLICATED_KNOWN] = PLACE(KNOWN),
        [REPLICATED_LACKS] = PLACE(LACKS),
    };
    check((size_t)outcome->place < array_length(places));
    message->place = places[outcome->place];
    if (outcome->place == REPLICATED_LACKS)
        message->gap = gap_to_message(&outcome->gap, arena);
}

void
replicated_outcome_from_message(const INTERNAL(ReplicatedOutcome) * message,
                                struct replicated_outcome *outcome)
{
    *outcome = (struct replicated_outcome){
        .place = message->place == PLACE(APPLIED) ? REPLICATED_APPLIED
                 : message->place == PLACE(KNOWN) ? REPLICATED_KNOWN
                                                  : REPLICATED_LACKS,
    };
    if (outcome->place != REPLICATED_LACKS)
        return;
    check(message->place == PLACE(LACKS) && message->gap != NULL);
    outcome->gap = (struct replicated_gap){
        .key = run_key_from_message(message->gap->key),
        .base = item_from_message(message->gap->after),
        .end = item_from_message(message->gap->before),
        .is_prior = message->gap->is_prior,
    };
}

/* --- runs ---- */

static ADMIN(VersionHistory) *
show_history(const struct run_branch *branch, struct arena *arena)
{
    ADMIN(VersionHistory) *history = message_new(arena, ADMIN_TYPE(version_history));
    history->items = versions_send(branch->versions, arena);
    history->n_items = branch->versions.count;
    return history;
}

static STORE_API(ListedRun) *
show_run(const struct listed_run *run, struct arena *arena)
{
    STORE_API(ListedRun) *shown = message_new(arena, &cadenza__admin__v1__listed_run__descriptor);
    shown->domain_id = (char *)run->key.domain_id;
    shown->workflow_id = (char *)run->key.workflow_id;
    shown->run_id = (char *)run->key.run_id;
    shown->histories = arena_zalloc(arena, run->branches.count + 1, sizeof shown->histories[0]);
    for (size_t i = 0; i < run->branches.count; i++)
        shown->histories[shown->n_histories++] = show_history(&run->branches.branch[i], arena);
    shown->activities = run->activities;
    shown->n_activities = run->activity_count;
    return shown;
}

void
listed_runs_to_message(const struct listed_runs *listed, struct arena *arena,
                       STORE_API(ListRunsResponse) *message)
{
    message->runs = arena_zalloc(arena, listed->count + 1, sizeof message->runs[0]);
    for (size_t i = 0; i < listed->count; i++)
        message->runs[message->n_runs++] = show_run(&listed->runs[i], arena);
    message->next_page_token = presence_make_bytes(listed->next);
}
