/* runs_resync.c - a cluster that was unreachable for so long that messages for it were dropped, or
 * that lost memory, reads the runs of their source instead, page by page, and fetches what it
 * lacks. See apply_all_runs.
 *
 * A run of which all branches are here already is skipped, so starting over after a crash costs
 * little more than reading the pages. Nothing depends on the order of the runs: whatever is fetched
 * is applied like every message (runs_apply_task.c). */
#include "base/check.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "replication/in/runs_apply.h"
#include "rpc/client.h"
#include "wire/message.h"

#define LIST_PATH    "/cadenza.admin.v1.ReplicationAPI/ListRuns"
#define CALL_TIMEOUT (10 * NS_PER_S)
#define RUN_TIMEOUT  (60 * NS_PER_S)
#define PAGE_RUNS    100
#define RUNS_AT_ONCE 16

static struct error *
ask_page(const struct apply_world *world, STORE_API(ListRunsRequest) *request, struct arena *arena,
         STORE_API(ListRunsResponse) **page)
{
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = rpc_client_call(world->client, LIST_PATH, &request->base, arena,
                                        &cadenza__admin__v1__list_runs_response__descriptor, page);
    fiber_set_deadline(NEVER);
    return err;
}

/* Fetches what is missing of one branch, the current one or another. */
static struct error *
fetch_history(const struct apply_world *world, const struct run_key *key, struct versions versions,
              bool is_current, struct arena *arena)
{
    check(versions.count > 0);
    struct run_branches local = {0};
    struct error *err = engine_find_branches(world->engine, key, arena, &local);
    if (err != NULL && err->kind != ERR_ENTITY_NOT_EXISTS)
        return err;
    struct version_item last = versions_last(versions);
    bool is_here = err == NULL;
    struct replicated_gap range = {.key = *key};
    size_t index;
    if (is_here && branches_find_event(&local, last) < local.count)
        return NULL;
    if (is_here && !branches_find_common(&local, versions, &index, &range.base))
        range.base = (struct version_item){0};
    if (!is_current)
        range.end = (struct version_item){last.event_id + 1, last.event_version};
    bool is_away;
    probe("resync_fetched");
    return apply_range(world, &range, arena, &is_away);
}

static struct error *
apply_activities(const struct apply_world *world, const STORE_API(ListedRun) *run,
                 struct arena *arena)
{
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < run->n_activities; i++) {
        struct replicated_outcome outcome; /* if it lacks events, the run has moved on since */
        err = engine_apply_replicated_activity(world->engine, run->activities[i], arena, &outcome);
    }
    return err;
}

/* A message that names the run and has no events: merging it fetches them (runs_apply_task.c). */
static struct error *
dead_letter_run(const struct apply_world *world, const struct dropped_shard *dropped_shard,
                const STORE_API(ListedRun) *run, const struct error *cause, struct arena *arena)
{
    check(run->n_histories > 0);
    ADMIN(HistoryTaskV2Attributes) *lacking =
        message_new(arena, ADMIN_TYPE(history_task_v2_attributes));
    lacking->domain_id = run->domain_id;
    lacking->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    lacking->workflow_execution->workflow_id = run->workflow_id;
    lacking->workflow_execution->run_id = run->run_id;
    lacking->version_history_items = run->histories[0]->items;
    lacking->n_version_history_items = run->histories[0]->n_items;
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_HISTORY_V2);
    task->source_task_id = dropped_shard->to;
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES);
    task->history_task_v2_attributes = lacking;
    const struct dead_lettered_task dead_lettered = {dropped_shard->source, dropped_shard->shard,
                                                     task, cause};
    return dead_letter_task(world, &dead_lettered, arena);
}

/* The branches, then the state of activities, of which there are no events yet. */
static struct error *
fetch_run(const struct apply_world *world, const STORE_API(ListedRun) *run, struct arena *arena)
{
    struct run_key key = {run->domain_id, run->workflow_id, run->run_id};
    struct error *err = NULL;
    if (domains_find_id(world->domains, run->domain_id) == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "Domain %s is not here yet.", run->domain_id);
    fiber_set_deadline(clock_monotonic() + RUN_TIMEOUT);
    for (size_t i = 0; err == NULL && i < run->n_histories; i++) {
        struct versions versions =
            versions_receive(run->histories[i]->items, run->histories[i]->n_items, arena);
        if (versions.count > 0)
            err = fetch_history(world, &key, versions, i == 0, arena);
    }
    if (err == NULL)
        err = apply_activities(world, run, arena);
    fiber_set_deadline(NEVER);
    return err;
}

/* A run that was deleted since, or that can never be applied, does not stop the others. */
static struct error *
apply_run(const struct apply_world *world, const struct dropped_shard *dropped_shard,
          const STORE_API(ListedRun) *run, const struct log *log, struct arena *arena)
{
    struct error *err = fetch_run(world, run, arena);
    if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
        return NULL;
    if (err->kind != ERR_BAD_REQUEST || run->n_histories == 0)
        return err;
    probe("resync_dead_letter_kept");
    log_warn(log, "A run of another cluster cannot be applied and became a dead letter.",
             log_text("source-cluster", dropped_shard->source), log_text("wf-id", run->workflow_id),
             log_text("wf-run-id", run->run_id), log_error(err));
    return dead_letter_run(world, dropped_shard, run, err, arena);
}

/* --- a page, some runs at a time: each takes a few calls to the source, and commits here ---- */

struct page_work {
    const struct apply_world *world;
    const struct dropped_shard *dropped_shard;
    const struct log *log;
    const STORE_API(ListRunsResponse) *page;
    size_t next; /* the first run that nobody has begun with */
    struct latch open;
    struct error *err; /* the first one; in the arena */
    struct arena *arena;
    struct page_worker {
        struct page_work *work;
        struct fiber *fiber; /* NULL: it has ended */
    } workers[RUNS_AT_ONCE];
};

static void
work_on_page(void *argument)
{
    struct page_worker *worker = argument;
    struct page_work *work = worker->work;
    while (work->err == NULL && work->next < work->page->n_runs) {
        const STORE_API(ListedRun) *run = work->page->runs[work->next++];
        scoped(arena_drop) struct arena *own = arena_new(0);
        struct error *err = apply_run(work->world, work->dropped_shard, run, work->log, own);
        if (err != NULL && work->err == NULL)
            work->err = error_copy(work->arena, err);
    }
    worker->fiber = NULL;
    latch_done(&work->open);
}

/* Who waits was cancelled: the others end with what is under way. */
static void
cancel_work(struct page_work *work)
{
    if (work->err == NULL)
        work->err = error_new(work->arena, ERR_CANCELLED, "reading the runs was cancelled");
    for (size_t i = 0; i < RUNS_AT_ONCE; i++)
        if (work->workers[i].fiber != NULL)
            fiber_cancel(work->workers[i].fiber);
    latch_wait(&work->open);
}

static struct error *
apply_page(const struct page_work *pattern)
{
    struct page_work work = *pattern;
    const struct dropped_shard *dropped_shard = work.dropped_shard;
    for (size_t i = 0; dropped_shard->on_listed != NULL && i < work.page->n_runs; i++)
        dropped_shard->on_listed(dropped_shard->context, work.page->runs[i]);
    latch_init(&work.open, 0);
    for (size_t i = 0; i < RUNS_AT_ONCE && i < work.page->n_runs; i++) {
        latch_add(&work.open, 1);
        work.workers[i].work = &work;
        work.workers[i].fiber = fiber_start("runs of a peer", work_on_page, &work.workers[i]);
    }
    if (!latch_wait_until(&work.open, NEVER))
        cancel_work(&work);
    check(work.open.open == 0);
    return work.err;
}

struct error *
apply_all_runs(const struct apply_world *world, const struct dropped_shard *dropped_shard,
               const struct log *log, struct arena *arena)
{
    check(dropped_shard->to > 0 && fiber_deadline() == NEVER);
    STORE_API(ListRunsRequest) *request =
        message_new(arena, &cadenza__admin__v1__list_runs_request__descriptor);
    request->cluster_name = (char *)world->group->current->name;
    request->shard_id = (int32_t)dropped_shard->shard;
    request->page_size = PAGE_RUNS;
    request->is_recovering = dropped_shard->on_listed != NULL && dropped_shard->shard == 0;
    request->looks_back = dropped_shard->looks_back && dropped_shard->shard == 0;
    struct error *err = NULL;
    do {
        STORE_API(ListRunsResponse) *page = NULL;
        err = ask_page(world, request, arena, &page);
        if (err == NULL)
            err = apply_page(&(struct page_work){.world = world,
                                                 .dropped_shard = dropped_shard,
                                                 .log = log,
                                                 .page = page,
                                                 .arena = arena});
        if (err == NULL)
            request->next_page_token = page->next_page_token;
    } while (err == NULL && request->next_page_token.len > 0);
    return err == NULL ? NULL
                       : error_wrap(err, "reading the runs of shard %u", dropped_shard->shard);
}
