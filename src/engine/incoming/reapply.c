/* reapply.c - signals, cancel requests and terminations among events that lost happen again where
 * the workflow goes on. See replicated.h, command_reapply. Run by engine_run_cross_task
 * (cross/cross_tasks.c), which fibers of the outbox call (outbox/cross_task_fibers.c).
 *
 * The row of the outbox that the loss left is a cross-workflow task of every cluster that has it,
 * active or not: it reads the events and hands them to the current run, here or by the port in the
 * cluster that is active.
 */
#include "base/check.h"
#include "cadenza/internal/v1/replication.pb-c.h"
#include "domain/active.h"
#include "engine/incoming/incoming.h"
#include "engine/inside.h"
#include "engine/replicated.h"
#include "engine/run/rebuild.h"
#include "engine/run/run_key.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define REASON     "events-reapplication"
#define PAGE_BYTES ((size_t)1 << 20)
#define ROUNDS_MAX 3 /* the run may close again between the reset and the signals */

/* ---- to the current run ---- */

struct reapply_request {
    struct reapply_command command;
    struct reapply_answer answer;
};

static struct error *
decide_reapply(void *context, struct step *step)
{
    struct reapply_request *wanted = context;
    return command_reapply(step, &wanted->command, &wanted->answer);
}

static struct error *
serve_reapply(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    const INTERNAL(ReapplyEvents) *events = request;
    INTERNAL(ReappliedEvents) *done = answer;
    struct run_key lost = run_key_from_message(events->key);
    check(events->n_events > 0); /* the first one names a reset */
    struct reapply_request wanted = {.command = {.run_id = lost.run_id,
                                                 .last_version = events->last_version,
                                                 .events = events->events,
                                                 .count = events->n_events}};
    struct shard_step step = {.key = {lost.domain_id, lost.workflow_id, ""},
                              .needs_run = true,
                              .decide = decide_reapply,
                              .context = &wanted};
    struct error *err = shard_step(engine_served_shard(engine, owner), &step, arena);
    done->run_id = presence_make_text(wanted.answer.run_id);
    done->reset_event_id = wanted.answer.reset_event_id;
    done->is_dropped = wanted.answer.is_dropped;
    return err;
}

/* Lost: the row of the outbox is worked off again, or the other cluster sends the events again; the
 * run knows those that it has. Twice: not, an event behind the end of the run would reset it. */
static const struct route_question reapply_question = {
    .name = "shard.reapply",
    .request = INTERNAL_TYPE(reapply_events),
    .answer = INTERNAL_TYPE(reapplied_events),
    .serve = serve_reapply,
};

static struct error *
ask_reapply(struct engine *engine, const struct run_key *lost, struct reapply_request *wanted,
            struct arena *arena)
{
    INTERNAL(RunKey) key = run_key_to_message(lost);
    INTERNAL(ReapplyEvents) request = INTERNAL_VALUE(REAPPLY_EVENTS__INIT);
    INTERNAL(ReappliedEvents) answer = INTERNAL_VALUE(REAPPLIED_EVENTS__INIT);
    request.key = &key;
    request.last_version = wanted->command.last_version;
    request.events = (API(HistoryEvent) **)(uintptr_t)wanted->command.events;
    request.n_events = wanted->command.count;
    struct error *err =
        engine_ask(engine, lost->workflow_id, &reapply_question, &request, arena, &answer);
    wanted->answer =
        (struct reapply_answer){answer.run_id, answer.reset_event_id, answer.is_dropped};
    return err;
}

/* The current run is closed: it begins again from its last decision. A repeat is the same reset.
 * One that cannot be reset (its children go on without it) never can: then the report of what lost
 * has the events, and nobody else. */
static struct error *
reset_current(struct engine *engine, const struct run_key *key, struct reapply_request *wanted,
              struct arena *arena)
{
    API(ResetWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(reset_workflow_execution_request));
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)key->workflow_id;
    request->workflow_execution->run_id = (char *)wanted->answer.run_id;
    request->reason = (char *)REASON;
    request->decision_finish_event_id = wanted->answer.reset_event_id;
    /* Of this run: the one that an earlier reset made may have been closed again, by then. */
    request->request_id = arena_format(
        arena, "%s:%s", reapply_name(wanted->command.run_id, wanted->command.events[0], arena),
        wanted->answer.run_id);
    const char *run_id;
    check(wanted->answer.reset_event_id > 0 && !wanted->answer.is_dropped);
    probe("reset_for_reapplication");
    struct error *err = engine_reset(engine, key->domain_id, request, arena, &run_id);
    if (err == NULL || err->kind != ERR_BAD_REQUEST)
        return err;
    struct run_key current = {key->domain_id, key->workflow_id, ""};
    struct history_state state;
    err = engine_history_state(engine, &current, arena, &state);
    if (err != NULL || strcmp(state.run_id, wanted->answer.run_id) != 0)
        return err; /* another run has the id meanwhile: that one is asked next */
    wanted->answer.reset_event_id = 0;
    wanted->answer.is_dropped = true;
    return NULL;
}

struct error *
engine_reapply(struct engine *engine, const struct run_key *key, API(HistoryEvent) *const *events,
               size_t count, struct arena *arena)
{
    struct run_key current = {key->domain_id, key->workflow_id, ""};
    struct reapply_request wanted = {
        .command = {.run_id = key->run_id, .events = events, .count = count}};
    struct run_home home;
    if (count == 0)
        return NULL;
    struct error *err = engine_home(engine, &current, arena, &home);
    wanted.command.last_version = home.last_version; /* before anything of this comes */
    for (int round = 0; err == NULL && round < ROUNDS_MAX; round++) {
        err = ask_reapply(engine, key, &wanted, arena);
        if (err != NULL || wanted.answer.reset_event_id == 0)
            break;
        err = reset_current(engine, key, &wanted, arena);
        if (wanted.answer.is_dropped)
            break;
    }
    if (err == NULL && wanted.answer.reset_event_id != 0)
        return error_new(arena, ERR_UNAVAILABLE, "The run closes again and again.");
    if (err == NULL && wanted.answer.is_dropped)
        probe("reapplication_dropped");
    else if (err == NULL && engine->reapplied != NULL)
        counter_add(engine->reapplied, 1);
    return cross_task_is_void(err) ? NULL : err;
}

/* ---- the cross-workflow task ---- */

/* The history that lost; false: the run has it no more. */
static bool
find_lost(const struct run_branches *branches, const STORED(TransferRow) *row,
          struct history_lineage *lineage)
{
    bool is_there = false;
    for (size_t i = 0; i < branches->count && !is_there; i++) {
        struct history_branch own = history_lineage_own(&branches->branch[i].lineage);
        is_there = slice_equal(slice_of(own.branch.bytes, 16), presence_read_bytes(row->branch_id));
        *lineage = branches->branch[i].lineage;
    }
    return is_there;
}

typedef vector_of(API(HistoryEvent) *) events_t;

static struct error *
take_node(const struct history_node *node, const STORED(TransferRow) *row, struct arena *arena,
          events_t *events)
{
    const API(History) *history;
    struct error *err = rebuild_decode(node, arena, &history);
    for (size_t i = 0; err == NULL && i < history->n_events; i++) {
        API(HistoryEvent) *event = history->events[i];
        if (event->event_id >= row->schedule_id && event->event_id < row->next_event_id &&
            incoming_is_of_client(event))
            vector_push_in(events, arena, event);
    }
    return err;
}

static struct error *
read_lost(struct cross_task_work *work, const struct history_lineage *lineage, events_t *events)
{
    const STORED(TransferRow) *row = work->cross_task->transfer;
    struct history_range range = {.shard = engine_shard_of(work->engine, row->workflow_id),
                                  .lineage = *lineage,
                                  .from_event_id = row->schedule_id,
                                  .to_event_id = row->next_event_id,
                                  .is_first = true,
                                  .bytes_max = PAGE_BYTES};
    struct error *err = NULL;
    while (err == NULL && range.from_event_id < range.to_event_id) {
        struct history_page page = {0};
        err = engine_read_history(work->engine, &range, work->arena, &page);
        for (size_t i = 0; err == NULL && i < page.count; i++)
            err = take_node(&page.node[i], row, work->arena, events);
        check(err != NULL || page.next_event_id > range.from_event_id);
        range.from_event_id = page.next_event_id;
        range.is_first = false;
    }
    return err;
}

/* To where the workflow goes on: its current run may belong to something else than the one that
 * lost. */
static struct error *
hand_on(struct cross_task_work *work, const events_t *events)
{
    const struct engine_options *options = &work->engine->options;
    const STORED(TransferRow) *row = work->cross_task->transfer;
    struct run_key current = {row->domain_id, row->workflow_id, ""};
    struct run_home home;
    struct error *err = engine_home(work->engine, &current, work->arena, &home);
    if (err != NULL)
        return cross_task_is_void(err) ? NULL : err;
    const struct domain *domain = domains_find_id(options->domains, row->domain_id);
    if (domain == NULL)
        return NULL; /* nobody goes on with it */
    struct cluster_attribute attribute = {home.scope, home.name};
    struct active_cluster active =
        domains_active_run(options->domains, domain, &attribute, home.last_version);
    if (active.status == ACTIVE_HERE)
        return engine_reapply(work->engine, &work->source, events->items, events->count,
                              work->arena);
    if (active.status != ACTIVE_ELSEWHERE || options->reapply.send == NULL) /* not now (E-052) */
        return error_new(work->arena, ERR_DOMAIN_NOT_ACTIVE, "nobody to hand events to");
    probe("lost_events_handed_on");
    const char *cluster = arena_text(work->arena, active.cluster_name);
    const char *name = arena_text(work->arena, domain->name);
    return options->reapply.send(options->reapply.context,
                                 &(struct reapply_message){.cluster = cluster,
                                                           .domain_name = name,
                                                           .workflow_id = row->workflow_id,
                                                           .run_id = row->run_id,
                                                           .events = events->items,
                                                           .count = events->count},
                                 work->arena);
}

struct error *
cross_task_reapply(struct cross_task_work *work)
{
    struct run_branches branches;
    struct history_lineage lineage;
    struct error *err = engine_find_branches(work->engine, &work->source, work->arena, &branches);
    if (err != NULL || !find_lost(&branches, work->cross_task->transfer, &lineage))
        return cross_task_is_void(err) ? NULL : err;
    events_t events = {0};
    err = read_lost(work, &lineage, &events);
    return err != NULL || events.count == 0 ? err : hand_on(work, &events);
}
