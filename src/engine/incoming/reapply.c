/* reapply.c - what clients did to histories and runs that lost happens again where the workflow
 * goes on. See replicated.h, command_reapply.
 *
 * The row of the outbox that the loss left is a cross-workflow task of every cluster that has it,
 * active or not: it reads the events and hands them to the current run, here or by the port in the
 * cluster that is active.
 */
#include "base/check.h"
#include "domain/active.h"
#include "engine/incoming/incoming.h"
#include "engine/inside.h"
#include "engine/replicated.h"
#include "engine/run/rebuild.h"
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

/* The version that wrote the current run last, before anything of this comes. */
static void
look_version(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    *(int64_t *)context = run_last_version(run);
}

struct current_look {
    const char *run_id;
    bool is_current;
};

static void
look_current(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct current_look *look = context;
    look->is_current = strcmp(run->core->run_id, look->run_id) == 0;
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
    struct current_look look = {.run_id = wanted->answer.run_id};
    struct run_key current = {key->domain_id, key->workflow_id, ""};
    err = engine_look(engine, &current, look_current, &look, arena);
    if (err != NULL || !look.is_current)
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
    struct shard_step step = {
        .key = current, .needs_run = true, .decide = decide_reapply, .context = &wanted};
    struct error *err = NULL;
    if (count == 0)
        return NULL;
    err = engine_look(engine, &current, look_version, &wanted.command.last_version, arena);
    for (int round = 0; err == NULL && round < ROUNDS_MAX; round++) {
        err = engine_step(engine, &step, arena);
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

struct lost_look {
    const STORED(TransferRow) *row;
    struct arena *arena;
    struct history_lineage lineage;
    bool is_there;
};

static void
look_lost(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct lost_look *look = context;
    struct run_branches branches = branches_read(run->core, look->arena);
    for (size_t i = 0; i < branches.count && !look->is_there; i++) {
        struct history_branch own = history_lineage_own(&branches.branch[i].lineage);
        look->is_there =
            slice_equal(slice_of(own.branch.bytes, 16), presence_read_bytes(look->row->branch_id));
        look->lineage = branches.branch[i].lineage;
    }
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
    struct lost_look look = {.row = work->cross_task->transfer, .arena = work->arena};
    struct error *err = engine_look(work->engine, &work->source, look_lost, &look, work->arena);
    if (err != NULL || !look.is_there)
        return cross_task_is_void(err) ? NULL : err;
    events_t events = {0};
    err = read_lost(work, &look.lineage, &events);
    return err != NULL || events.count == 0 ? err : hand_on(work, &events);
}
