/* runs_apply_task.c - one message of another cluster: read, applied by the engine, and what it
 * lacks fetched first.
 *
 * A gap is filled from the source of the message, batch by batch, through the same function that
 * applies messages. The history that is fetched may itself build on a run that is not here (the
 * base run of a reset, or the run that was continued as this one): then that is fetched first, and
 * so on. A cluster that was cut off for a while may lack a chain of a hundred such runs. So the
 * recursion goes a few runs deep; deeper gaps are put on a list, oldest last, and filled from its
 * end, and then the message is applied once more. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "replication/in/runs_apply.h"
#include "rpc/client.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define RAW_PATH     "/uber.cadence.admin.v1.AdminAPI/GetWorkflowExecutionRawHistoryV2"
#define RAW_TIMEOUT  (10 * NS_PER_S)
#define PAGE_BATCHES 100
#define GAPS_MAX     8   /* of one batch: each brings events that were missing */
#define DEPTH_MAX    4   /* runs that build on each other, in one recursion */
#define DEEPER_MAX   256 /* runs that one message may put on the list */

/* One fetch or apply on its way. */
struct apply_attempt {
    const struct apply_world *world;
    struct arena *arena; /* of the lists */
    unsigned depth;
    vector_of(struct replicated_gap) deeper; /* to be filled, the last one first */
    vector_of(const char *) deep_runs;       /* all that were ever in the list */
    bool is_away;                            /* the source could not be asked */
    bool is_gone;                            /* the source no longer has the run (E-061) */
    bool is_refused;                         /* the source knows no such events */
};

static void
apply_attempt_check(const struct apply_attempt *attempt)
{
    check(attempt->depth <= DEPTH_MAX);
    check(attempt->deep_runs.count <= DEEPER_MAX);
    check(attempt->deeper.count <= attempt->deep_runs.count); /* a run is on the list once, ever */
    check(attempt->is_away + attempt->is_gone + attempt->is_refused <= 1);
}

static struct error *fill_gap(struct apply_attempt *apply_attempt, const struct replicated_gap *gap,
                              struct arena *arena);

/* Puts the gap on the list; the error ends the attempt. NULL: it was on the list before, or the
 * list is full. */
static struct error *
fill_later(struct apply_attempt *apply_attempt, const struct replicated_gap *gap,
           struct arena *arena)
{
#ifdef CADENZA_FAULT_deep_gaps_left
    return NULL; /* a fault: deeper gaps count as not there */
#endif
    check(apply_attempt->depth == DEPTH_MAX);
    for (size_t i = 0; i < apply_attempt->deep_runs.count; i++) {
        if (strcmp(apply_attempt->deep_runs.items[i], gap->key.run_id) == 0)
            return NULL;
    }
    if (apply_attempt->deep_runs.count == DEEPER_MAX)
        return NULL;
    probe("gap_is_deep");
    vector_push_in(&apply_attempt->deep_runs, apply_attempt->arena,
                   arena_text(apply_attempt->arena, gap->key.run_id));
    struct replicated_gap kept = *gap;
    kept.key = (struct run_key){arena_text(apply_attempt->arena, gap->key.domain_id),
                                arena_text(apply_attempt->arena, gap->key.workflow_id),
                                apply_attempt->deep_runs.items[apply_attempt->deep_runs.count - 1]};
    vector_push_in(&apply_attempt->deeper, apply_attempt->arena, kept);
    return error_new(arena, ERR_UNAVAILABLE, "Run %s is to be fetched first.", gap->key.run_id);
}

/* Fetches another run, which was before this one or would lose the workflow id to it. If the source
 * has nothing of it that fits, there is nothing to wait for. */
static struct error *
fetch_prior(struct apply_attempt *apply_attempt, const struct replicated_gap *gap,
            struct replicated_priors *priors, struct arena *arena)
{
    check(gap->is_prior && priors->count < REPLICATED_PRIORS_MAX);
    priors->run_id[priors->count++] = gap->key.run_id;
    if (apply_attempt->depth == DEPTH_MAX)
        return fill_later(apply_attempt, gap, arena);
    struct error *err = fill_gap(apply_attempt, gap, arena);
    bool has_nothing = apply_attempt->is_refused || (err != NULL && err->kind == ERR_BAD_REQUEST);
    probe(apply_attempt->is_gone || has_nothing ? "prior_not_there" : "prior_fetched");
    apply_attempt->is_gone = apply_attempt->is_refused = false;
    return has_nothing ? NULL : err;
}

/* Applies events; what they lack is fetched first. */
static struct error *
apply_events(struct apply_attempt *apply_attempt, const struct replicated_events *events,
             struct arena *arena, struct replicated_outcome *outcome)
{
    check(events->count > 0);
    struct replicated_priors priors = {0};
    struct replicated_events asking = *events;
    asking.priors = &priors;
    for (unsigned gaps = 0; gaps < GAPS_MAX; gaps++) {
        *outcome = (struct replicated_outcome){0};
        struct error *err =
            engine_apply_replicated(apply_attempt->world->engine, &asking, arena, outcome);
        if (err != NULL || outcome->place != REPLICATED_LACKS)
            return err;
        err = outcome->gap.is_prior ? fetch_prior(apply_attempt, &outcome->gap, &priors, arena)
                                    : fill_gap(apply_attempt, &outcome->gap, arena);
        if (err != NULL || apply_attempt->is_gone)
            return err;
        probe("replication_gap_filled");
    }
    return error_new(arena, ERR_UNAVAILABLE, "Events of run %s are still missing.",
                     events->key.run_id);
}

/* The events were known, but the run that they are continued as may not be: applies its first
 * batch.
 */
static struct error *
apply_begun(struct apply_attempt *apply_attempt, const struct replicated_events *events,
            struct arena *arena)
{
    check(events->count > 0);
    if (events->begun_count == 0)
        return NULL;
    const API(HistoryEvent) *last = events->events[events->count - 1];
    if (last->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
        return NULL;
    const API(HistoryEvent) *newest = events->begun_events[events->begun_count - 1];
    struct version_item *item = arena_make(arena, struct version_item);
    *item = (struct version_item){newest->event_id, newest->version};
    struct replicated_events begun = {
        .key = {events->key.domain_id, events->key.workflow_id,
                last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id},
        .versions = {item, 1},
        .events = events->begun_events,
        .count = events->begun_count,
    };
    struct replicated_outcome outcome;
    return apply_events(apply_attempt, &begun, arena, &outcome);
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
ask_raw(struct apply_attempt *apply_attempt,
        ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request, struct arena *arena,
        ADMIN(GetWorkflowExecutionRawHistoryV2Response) **response)
{
    int64_t before = fiber_deadline(), latest = clock_monotonic() + RAW_TIMEOUT;
    fiber_set_deadline(latest < before ? latest : before);
    struct error *err =
        rpc_client_call(apply_attempt->world->client, RAW_PATH, &request->base, arena,
                        ADMIN_TYPE(get_workflow_execution_raw_history_v2_response), response);
    fiber_set_deadline(before);
    apply_attempt->is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS;
    apply_attempt->is_away = err != NULL && !apply_attempt->is_gone && err->kind != ERR_BAD_REQUEST;
    if (apply_attempt->is_gone)
        probe("replication_source_lost_run");
    apply_attempt->is_refused = err != NULL && err->kind == ERR_BAD_REQUEST;
    apply_attempt_check(apply_attempt);
    if (apply_attempt->is_refused) /* says nothing about the message */
        return error_new(arena, ERR_UNAVAILABLE, "The source refuses: %s", err->message);
    return apply_attempt->is_gone ? NULL : err;
}

/* The run was continued as another one, which no other message may bring: fetches that. */
static struct error *
follow_chain(struct apply_attempt *apply_attempt, const struct replicated_events *events,
             struct arena *arena)
{
    check(events->count > 0);
    const API(HistoryEvent) *last = events->events[events->count - 1];
    if (last->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
        return NULL;
    struct replicated_gap next = {
        .key = {events->key.domain_id, events->key.workflow_id,
                last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id}};
    struct run_branches branches;
    struct error *err =
        engine_find_branches(apply_attempt->world->engine, &next.key, arena, &branches);
    if (err == NULL || err->kind != ERR_ENTITY_NOT_EXISTS || apply_attempt->depth == DEPTH_MAX)
        return err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    err = fill_gap(apply_attempt, &next, arena);
    apply_attempt->is_gone = false; /* of that run alone */
    return err;
}

/* A range of a run's events on its way. The first events of a run that a reset made are another
 * run's: they are skipped, and the events of the reset begin it, from the run that is here. */
struct fetch {
    bool may_skip, is_begun;
    bool is_skipping; /* the event of its reset has not come yet */
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
    check(fetch->may_skip || !fetch->has_skipped);
    return fetch->is_skipping;
}

static struct error *
apply_batch(struct apply_attempt *apply_attempt, struct fetch *fetch, const struct run_key *key,
            struct versions versions, const API(DataBlob) *blob, struct arena *arena)
{
    API(HistoryEvent) **events = NULL;
    struct replicated_events batch = {.key = *key, .versions = versions};
    struct error *err = thrift_decode_history(
        arena, ERR_BAD_REQUEST, presence_read_bytes(blob->data), &events, &batch.count);
    if (err != NULL || batch.count == 0 || is_passed_over(fetch, events[0], key->run_id))
        return err;
    batch.events = events;
    struct replicated_outcome outcome;
    err = apply_events(apply_attempt, &batch, arena, &outcome);
    return err != NULL || apply_attempt->is_gone ? err : follow_chain(apply_attempt, &batch, arena);
}

static struct error *
apply_page(struct apply_attempt *apply_attempt, struct fetch *fetch, const struct run_key *key,
           const ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page, struct arena *arena)
{
    if (page->n_history_batches == 0)
        return NULL;
    if (page->version_history == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The answer has no version history.");
    struct versions versions =
        versions_receive(page->version_history->items, page->version_history->n_items, arena);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && !apply_attempt->is_gone && i < page->n_history_batches; i++)
        err = apply_batch(apply_attempt, fetch, key, versions, page->history_batches[i], arena);
    return err;
}

static struct error *
fetch_range(struct apply_attempt *apply_attempt, struct fetch *fetch,
            const struct replicated_gap *gap, const char *domain_name, struct arena *arena)
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
    request->is_recovering = domains_are_recovering(apply_attempt->world->domains);
    struct error *err = NULL;
    do {
        ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page = NULL;
        err = ask_raw(apply_attempt, request, arena, &page);
        if (err != NULL || apply_attempt->is_gone)
            break;
        request->next_page_token = page->next_page_token;
        err = apply_page(apply_attempt, fetch, &gap->key, page, arena);
    } while (err == NULL && !apply_attempt->is_gone && request->next_page_token.len > 0);
    return err;
}

static struct error *
fill_gap(struct apply_attempt *apply_attempt, const struct replicated_gap *gap, struct arena *arena)
{
    const struct domain *domain =
        domains_find_id(apply_attempt->world->domains, gap->key.domain_id);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s is not here yet.",
                                        gap->key.domain_id);
    if (apply_attempt->depth == DEPTH_MAX) {
        struct error *later = fill_later(apply_attempt, gap, arena);
        return later != NULL
                   ? later
                   : error_new(arena, ERR_BAD_REQUEST, "Too many runs build on each other.");
    }
    apply_attempt->depth++;
    const char *domain_name = arena_text(arena, domain->name);
    struct fetch fetch = {.may_skip = gap->base.event_id == 0};
    struct error *err = fetch_range(apply_attempt, &fetch, gap, domain_name, arena);
    bool is_base_gone = apply_attempt->is_gone && fetch.has_skipped;
    if (is_base_gone || (err == NULL && fetch.is_skipping)) { /* then the copies are all there is */
        apply_attempt->is_gone = false;
        fetch = (struct fetch){0};
        err = fetch_range(apply_attempt, &fetch, gap, domain_name, arena);
    }
    check(apply_attempt->depth > 0);
    apply_attempt->depth--;
    apply_attempt_check(apply_attempt);
    return err;
}

/* Fills the gaps on the list. True: apply once more what put them there. False: *err is why not. */
static bool
fill_deeper(struct apply_attempt *apply_attempt, struct error **err, struct arena *arena)
{
    check(apply_attempt->depth == 0);
    if (apply_attempt->deeper.count == 0)
        return false;
    while (apply_attempt->deeper.count > 0) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        size_t count = apply_attempt->deeper.count;
        struct replicated_gap gap = apply_attempt->deeper.items[count - 1];
        struct error *failure = fill_gap(apply_attempt, &gap, own);
        check(apply_attempt->depth == 0 && apply_attempt->deeper.count >= count);
        bool has_nothing = apply_attempt->is_gone || apply_attempt->is_refused ||
                           (failure != NULL && failure->kind == ERR_BAD_REQUEST);
        apply_attempt->is_gone = apply_attempt->is_refused = false;
        if (apply_attempt->deeper.count > count) /* it builds on another run */
            continue;
        if (failure != NULL && !has_nothing) {
            *err = error_copy(arena, failure);
            return false;
        }
        apply_attempt->deeper.count--;
    }
    probe("deep_gaps_filled");
    return true;
}

struct error *
apply_range(const struct apply_world *world, const struct replicated_gap *range,
            struct arena *arena, bool *is_away)
{
    struct apply_attempt apply_attempt = {.world = world, .arena = arena};
    struct error *err;
    do
        err = fill_gap(&apply_attempt, range, arena);
    while (err != NULL && fill_deeper(&apply_attempt, &err, arena));
    check(apply_attempt.depth == 0);
    *is_away = apply_attempt.is_away;
    if (err == NULL && apply_attempt.is_gone)
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
apply_history(struct apply_attempt *apply_attempt, const ADMIN(HistoryTaskV2Attributes) *attributes,
              struct arena *arena)
{
    const API(WorkflowExecution) *execution = attributes->workflow_execution;
    if (execution == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The message names no run.");
    if (attributes->n_version_history_items == 0) {
        probe("replication_without_versions");
        return NULL; /* from before version histories existed (E-047) */
    }
    struct replicated_events events = {
        .key = {attributes->domain_id, execution->workflow_id, execution->run_id},
        .versions = versions_receive(attributes->version_history_items,
                                     attributes->n_version_history_items, arena),
    };
    if (attributes->events == NULL) { /* a dead letter of a resync: the whole run */
        const struct replicated_gap run = {.key = events.key};
        return fill_gap(apply_attempt, &run, arena);
    }
    struct error *err = read_blob(attributes->events, arena, &events.events, &events.count);
    if (err == NULL)
        err =
            read_blob(attributes->new_run_events, arena, &events.begun_events, &events.begun_count);
    if (err == NULL && events.count == 0)
        err = error_new(arena, ERR_BAD_REQUEST, "The message has no events.");
    if (err != NULL)
        return err;
    struct replicated_outcome outcome;
    err = apply_events(apply_attempt, &events, arena, &outcome);
    if (err == NULL && outcome.place == REPLICATED_KNOWN && !apply_attempt->is_gone)
        err = apply_begun(apply_attempt, &events, arena);
    return err;
}

static struct error *
apply_activity(struct apply_attempt *apply_attempt,
               const ADMIN(SyncActivityTaskAttributes) *attributes, struct arena *arena)
{
    if (attributes->version_history == NULL || attributes->version_history->n_items == 0)
        return NULL; /* E-047 */
    struct replicated_outcome outcome = {0};
    struct error *err =
        engine_apply_replicated_activity(apply_attempt->world->engine, attributes, arena, &outcome);
    if (err != NULL || outcome.place != REPLICATED_LACKS)
        return err;
    err = fill_gap(apply_attempt, &outcome.gap, arena);
    if (err == NULL && !apply_attempt->is_gone)
        err = engine_apply_replicated_activity(apply_attempt->world->engine, attributes, arena,
                                               &outcome);
    return err;
}

/* *is_ours: the domain lists this cluster. Error: the domain itself has not arrived yet. */
static struct error *
check_domain(const struct apply_world *world, const char *domain_id, struct arena *arena,
             bool *is_ours)
{
    const struct domain *domain = domains_find_id(world->domains, domain_id);
    if (domain == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "Domain %s is not here yet.", domain_id);
    *is_ours = domain_has_cluster(domain->record->domain, world->group->current->name);
    return NULL;
}

static struct error *
apply_any(struct apply_attempt *apply_attempt, const ADMIN(ReplicationTask) *task, bool is_forced,
          struct arena *arena)
{
    const char *domain_id = task_domain(task);
    if (domain_id == NULL ||
        task->attributes_case ==
            ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES))
        return NULL; /* not about runs */
    bool is_ours = false;
    struct error *err = check_domain(apply_attempt->world, domain_id, arena, &is_ours);
    if (err != NULL)
        return err;
    if (!is_ours && !is_forced) {
        probe("replication_not_for_us");
        return NULL;
    }
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES))
        return apply_history(apply_attempt, task->history_task_v2_attributes, arena);
    return apply_activity(apply_attempt, task->sync_activity_task_attributes, arena);
}

enum applied
apply_task(const struct apply_world *world, const ADMIN(ReplicationTask) *task, bool is_forced,
           struct arena *arena, struct error **cause)
{
    struct apply_attempt apply_attempt = {.world = world, .arena = arena};
    do
        *cause = apply_any(&apply_attempt, task, is_forced, arena);
    while (*cause != NULL && fill_deeper(&apply_attempt, cause, arena));
    check(apply_attempt.depth == 0);
    if (*cause == NULL)
        return APPLIED;
    if (apply_attempt.is_away)
        return APPLY_LACKS;
    return (*cause)->kind == ERR_BAD_REQUEST ? APPLY_NEVER : APPLY_AGAIN;
}
