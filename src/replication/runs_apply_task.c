/* runs_apply_task.c - one message of another cluster: read, applied by the engine, and what it
 * lacks fetched first.
 *
 * A gap is filled from the source of the message, batch by batch, by the same door. The history
 * that is fetched may itself stand on a run that is not here (a reset): then that is fetched before
 * it, and so on, a few runs deep. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/mark.h"
#include "replication/runs_apply.h"
#include "rpc/client.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define RAW_PATH     "/uber.cadence.admin.v1.AdminAPI/GetWorkflowExecutionRawHistoryV2"
#define RAW_TIMEOUT  (10 * NS_PER_S)
#define PAGE_BATCHES 100
#define GAPS_MAX     8 /* of one batch: each brings events that were missing */
#define DEPTH_MAX    4 /* runs that stand on each other */

/* One fetch or apply on its way. */
struct walk {
    const struct apply_world *world;
    unsigned depth;
    bool is_away;    /* the source could not be asked */
    bool is_gone;    /* the source has the run no more (E-061) */
    bool is_refused; /* the source knows no such events */
};

static struct error *fill_gap(struct walk *walk, const struct foreign_gap *gap,
                              struct arena *arena);

/* What the source knows of another run, which would give way or was before: if it has nothing of
 * it that fits, there is nothing to wait for. */
static struct error *
fetch_prior(struct walk *walk, const struct foreign_gap *gap, struct foreign_priors *priors,
            struct arena *arena)
{
    check(priors->count < FOREIGN_PRIORS_MAX);
    priors->run_id[priors->count++] = gap->key.run_id;
    if (walk->depth == DEPTH_MAX)
        return NULL;
    struct error *err = fill_gap(walk, gap, arena);
    bool is_vain = walk->is_refused || (err != NULL && err->kind == ERR_BAD_REQUEST);
    mark(walk->is_gone || is_vain ? "prior_not_there" : "prior_fetched");
    walk->is_gone = walk->is_refused = false;
    return is_vain ? NULL : err;
}

/* Applies events; what they lack is fetched first. */
static struct error *
apply_events(struct walk *walk, const struct foreign_events *events, struct arena *arena,
             struct foreign_outcome *outcome)
{
    struct foreign_priors priors = {0};
    struct foreign_events asking = *events;
    asking.priors = &priors;
    for (unsigned gaps = 0; gaps < GAPS_MAX; gaps++) {
        *outcome = (struct foreign_outcome){0};
        struct error *err = engine_apply_foreign(walk->world->engine, &asking, arena, outcome);
        if (err != NULL || outcome->place != FOREIGN_LACKS)
            return err;
        err = outcome->gap.is_prior ? fetch_prior(walk, &outcome->gap, &priors, arena)
                                    : fill_gap(walk, &outcome->gap, arena);
        if (err != NULL || walk->is_gone)
            return err;
        mark("replication_gap_filled");
    }
    return error_new(arena, ERR_UNAVAILABLE, "Events of run %s are still missing.",
                     events->key.run_id);
}

/* The run that the events continue theirs as, if they were known and it may not be. */
static struct error *
apply_begun(struct walk *walk, const struct foreign_events *events, struct arena *arena)
{
    if (events->begun_count == 0)
        return NULL;
    const API(HistoryEvent) *last = events->events[events->count - 1];
    if (last->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
        return NULL;
    const API(HistoryEvent) *newest = events->begun_events[events->begun_count - 1];
    struct version_item *item = arena_make(arena, struct version_item);
    *item = (struct version_item){newest->event_id, newest->version};
    struct foreign_events begun = {
        .key = {events->key.domain_id, events->key.workflow_id,
                last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id},
        .versions = {item, 1},
        .events = events->begun_events,
        .count = events->begun_count,
    };
    struct foreign_outcome outcome;
    return apply_events(walk, &begun, arena, &outcome);
}

/* --- fetching ---- */

static ADMIN(VersionHistoryItem) *
send_item(struct version_item item, struct arena *arena)
{
    if (item.event_id == 0)
        return NULL;
    ADMIN(VersionHistoryItem) *sent = message_new(arena, ADMIN_TYPE(version_history_item));
    sent->event_id = item.event_id;
    sent->version = item.event_version;
    return sent;
}

static struct error *
ask_raw(struct walk *walk, ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request,
        struct arena *arena, ADMIN(GetWorkflowExecutionRawHistoryV2Response) **response)
{
    int64_t before = fiber_deadline(), latest = clock_monotonic() + RAW_TIMEOUT;
    fiber_set_deadline(latest < before ? latest : before);
    struct error *err =
        rpc_client_call(walk->world->client, RAW_PATH, &request->base, arena,
                        ADMIN_TYPE(get_workflow_execution_raw_history_v2_response), response);
    fiber_set_deadline(before);
    walk->is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS;
    walk->is_away = err != NULL && !walk->is_gone && err->kind != ERR_BAD_REQUEST;
    if (walk->is_gone)
        mark("replication_source_lost_run");
    walk->is_refused = err != NULL && err->kind == ERR_BAD_REQUEST;
    if (walk->is_refused) /* says nothing about the message */
        return error_new(arena, ERR_UNAVAILABLE, "The source refuses: %s", err->message);
    return walk->is_gone ? NULL : err;
}

/* A run that was continued has a next one, of which nobody else may tell us. */
static struct error *
follow_chain(struct walk *walk, const struct foreign_events *events, struct arena *arena)
{
    const API(HistoryEvent) *last = events->events[events->count - 1];
    if (last->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
        return NULL;
    struct foreign_gap next = {
        .key = {events->key.domain_id, events->key.workflow_id,
                last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id}};
    struct run_branches branches;
    struct error *err = engine_find_branches(walk->world->engine, &next.key, arena, &branches);
    if (err == NULL || err->kind != ERR_ENTITY_NOT_EXISTS || walk->depth == DEPTH_MAX)
        return err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    err = fill_gap(walk, &next, arena);
    walk->is_gone = false; /* of that run alone */
    return err;
}

/* A range of a run's events on its way. The first events of a run that a reset made are another
 * run's: they are passed over, and the reset's own begin it, from the run that is here. */
struct fetch {
    bool may_skip, is_begun;
    bool is_skipping; /* its reset has not come yet */
    bool has_skipped;
};

static bool
is_copied_start(const API(HistoryEvent) *event, const char *run_id)
{
    if (event->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES))
        return false;
    const char *original =
        event->workflow_execution_started_event_attributes->original_execution_run_id;
    return original[0] != '\0' && strcmp(original, run_id) != 0;
}

static bool
is_reset_of(const API(HistoryEvent) *event, const char *run_id)
{
    const char *made = "";
    if (event->attributes_case ==
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_FAILED_EVENT_ATTRIBUTES))
        made = event->decision_task_failed_event_attributes->new_run_id;
    if (event->attributes_case ==
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_TIMED_OUT_EVENT_ATTRIBUTES))
        made = event->decision_task_timed_out_event_attributes->new_run_id;
    return strcmp(made, run_id) == 0;
}

static bool
is_passed_over(struct fetch *fetch, const API(HistoryEvent) *first, const char *run_id)
{
    if (!fetch->is_begun)
        fetch->is_skipping = fetch->may_skip && is_copied_start(first, run_id);
    fetch->is_begun = true;
    if (fetch->is_skipping && is_reset_of(first, run_id))
        fetch->is_skipping = false;
    fetch->has_skipped = fetch->has_skipped || fetch->is_skipping;
    return fetch->is_skipping;
}

static struct error *
apply_batch(struct walk *walk, struct fetch *fetch, const struct run_key *key,
            struct versions versions, const API(DataBlob) *blob, struct arena *arena)
{
    API(HistoryEvent) **events = NULL;
    struct foreign_events batch = {.key = *key, .versions = versions};
    struct error *err = thrift_decode_history(
        arena, ERR_BAD_REQUEST, presence_read_bytes(blob->data), &events, &batch.count);
    if (err != NULL || batch.count == 0 || is_passed_over(fetch, events[0], key->run_id))
        return err;
    batch.events = events;
    struct foreign_outcome outcome;
    err = apply_events(walk, &batch, arena, &outcome);
    return err != NULL || walk->is_gone ? err : follow_chain(walk, &batch, arena);
}

static struct error *
apply_page(struct walk *walk, struct fetch *fetch, const struct run_key *key,
           const ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page, struct arena *arena)
{
    if (page->n_history_batches == 0)
        return NULL;
    if (page->version_history == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The answer has no version history.");
    struct versions versions =
        versions_receive(page->version_history->items, page->version_history->n_items, arena);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && !walk->is_gone && i < page->n_history_batches; i++)
        err = apply_batch(walk, fetch, key, versions, page->history_batches[i], arena);
    return err;
}

static struct error *
fetch_range(struct walk *walk, struct fetch *fetch, const struct foreign_gap *gap,
            const char *domain_name, struct arena *arena)
{
    ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request =
        message_new(arena, ADMIN_TYPE(get_workflow_execution_raw_history_v2_request));
    request->domain = (char *)domain_name;
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)gap->key.workflow_id;
    request->workflow_execution->run_id = (char *)gap->key.run_id;
    request->start_event = send_item(gap->base, arena);
    request->end_event = send_item(gap->end, arena);
    request->page_size = PAGE_BATCHES;
    struct error *err = NULL;
    do {
        ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page = NULL;
        err = ask_raw(walk, request, arena, &page);
        if (err != NULL || walk->is_gone)
            break;
        request->next_page_token = page->next_page_token;
        err = apply_page(walk, fetch, &gap->key, page, arena);
    } while (err == NULL && !walk->is_gone && request->next_page_token.len > 0);
    return err;
}

static struct error *
fill_gap(struct walk *walk, const struct foreign_gap *gap, struct arena *arena)
{
    const struct domain *domain = domains_find_id(walk->world->domains, gap->key.domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s is not here yet.",
                                        gap->key.domain_id);
    if (walk->depth == DEPTH_MAX)
        return error_new(arena, ERR_BAD_REQUEST, "Too many runs stand on each other.");
    walk->depth++;
    const char *domain_name = arena_text(arena, domain->name);
    struct fetch fetch = {.may_skip = gap->base.event_id == 0};
    struct error *err = fetch_range(walk, &fetch, gap, domain_name, arena);
    bool is_base_gone = walk->is_gone && fetch.has_skipped;
    if (is_base_gone || (err == NULL && fetch.is_skipping)) { /* then its copies are all there is */
        walk->is_gone = false;
        fetch = (struct fetch){0};
        err = fetch_range(walk, &fetch, gap, domain_name, arena);
    }
    walk->depth--;
    return err;
}

struct error *
apply_range(const struct apply_world *world, const struct foreign_gap *range, struct arena *arena,
            bool *is_away)
{
    struct walk walk = {.world = world};
    struct error *err = fill_gap(&walk, range, arena);
    *is_away = walk.is_away;
    if (err == NULL && walk.is_gone)
        err = errors_entity_not_exists(arena, NULL, "The remote cluster has no run %s.",
                                       range->key.run_id);
    return err;
}

/* --- messages ---- */

static struct error *
read_blob(const API(DataBlob) *blob, struct arena *arena, API(HistoryEvent) *const **events,
          size_t *count)
{
    API(HistoryEvent) **decoded = NULL;
    if (blob == NULL)
        return NULL;
    struct error *err = thrift_decode_history(arena, ERR_BAD_REQUEST,
                                              presence_read_bytes(blob->data), &decoded, count);
    *events = decoded;
    return err;
}

static struct error *
apply_history(struct walk *walk, const ADMIN(HistoryTaskV2Attributes) *attributes,
              struct arena *arena)
{
    const API(WorkflowExecution) *execution = attributes->workflow_execution;
    if (execution == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The message names no run.");
    if (attributes->n_version_history_items == 0) {
        mark("replication_without_versions");
        return NULL; /* of a time before there were any (E-047) */
    }
    struct foreign_events events = {
        .key = {attributes->domain_id, execution->workflow_id, execution->run_id},
        .versions = versions_receive(attributes->version_history_items,
                                     attributes->n_version_history_items, arena),
    };
    if (attributes->events == NULL) { /* a re-sync parked the run */
        const struct foreign_gap run = {.key = events.key};
        return fill_gap(walk, &run, arena);
    }
    struct error *err = read_blob(attributes->events, arena, &events.events, &events.count);
    if (err == NULL)
        err =
            read_blob(attributes->new_run_events, arena, &events.begun_events, &events.begun_count);
    if (err == NULL && events.count == 0)
        err = error_new(arena, ERR_BAD_REQUEST, "The message has no events.");
    if (err != NULL)
        return err;
    struct foreign_outcome outcome;
    err = apply_events(walk, &events, arena, &outcome);
    if (err == NULL && outcome.place == FOREIGN_KNOWN && !walk->is_gone)
        err = apply_begun(walk, &events, arena);
    return err;
}

static struct error *
apply_activity(struct walk *walk, const ADMIN(SyncActivityTaskAttributes) *attributes,
               struct arena *arena)
{
    if (attributes->version_history == NULL || attributes->version_history->n_items == 0)
        return NULL; /* E-047 */
    struct foreign_outcome outcome = {0};
    struct error *err =
        engine_apply_foreign_activity(walk->world->engine, attributes, arena, &outcome);
    if (err != NULL || outcome.place != FOREIGN_LACKS)
        return err;
    err = fill_gap(walk, &outcome.gap, arena);
    if (err == NULL && !walk->is_gone)
        err = engine_apply_foreign_activity(walk->world->engine, attributes, arena, &outcome);
    return err;
}

/* Is it for this cluster? The domain itself may still be on its way. */
static struct error *
check_domain(const struct apply_world *world, const char *domain_id, struct arena *arena,
             bool *is_ours)
{
    const struct domain *domain = domains_find_id(world->domains, domain_id);
    if (domain == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "Domain %s is not here yet.", domain_id);
    const API(Domain) *listed = domain->record->domain;
    *is_ours = false;
    for (size_t i = 0; i < listed->n_clusters; i++)
        *is_ours =
            *is_ours || strcmp(listed->clusters[i]->cluster_name, world->group->current->name) == 0;
    return NULL;
}

static struct error *
apply_any(struct walk *walk, const ADMIN(ReplicationTask) *task, bool is_forced,
          struct arena *arena)
{
    const char *domain_id = task_domain(task);
    if (domain_id == NULL ||
        task->attributes_case ==
            ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES))
        return NULL; /* nothing that concerns runs */
    bool is_ours = false;
    struct error *err = check_domain(walk->world, domain_id, arena, &is_ours);
    if (err != NULL)
        return err;
    if (!is_ours && !is_forced) {
        mark("replication_not_for_us");
        return NULL;
    }
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES))
        return apply_history(walk, task->history_task_v2_attributes, arena);
    return apply_activity(walk, task->sync_activity_task_attributes, arena);
}

enum applied
apply_task(const struct apply_world *world, const ADMIN(ReplicationTask) *task, bool is_forced,
           struct arena *arena, struct error **cause)
{
    struct walk walk = {.world = world};
    *cause = apply_any(&walk, task, is_forced, arena);
    if (*cause == NULL)
        return APPLIED;
    if (walk.is_away)
        return APPLY_LACKS;
    return (*cause)->kind == ERR_BAD_REQUEST ? APPLY_NEVER : APPLY_AGAIN;
}
