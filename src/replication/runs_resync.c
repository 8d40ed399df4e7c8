/* runs_resync.c - a cluster that was away so long that messages for it were dropped reads the runs
 * of their source instead, page by page, and fetches what it lacks. See apply_all_runs.
 *
 * A run that has all events of all histories that the source has of it is passed over, so beginning
 * anew after a crash costs little more than the pages. Nothing depends on the order of the runs:
 * whatever is fetched goes through the same door as every message (runs_apply_task.c). */
#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/mark.h"
#include "replication/runs_apply.h"
#include "rpc/client.h"
#include "wire/message.h"

#define LIST_PATH    "/cadenza.admin.v1.ReplicationAPI/ListRuns"
#define CALL_TIMEOUT (10 * NS_PER_S)
#define RUN_TIMEOUT  (60 * NS_PER_S)
#define PAGE_RUNS    100

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

/* Fetches what is not here of one history, the current one or another. */
static struct error *
fetch_history(const struct apply_world *world, const struct run_key *key, struct versions versions,
              bool is_current, struct arena *arena)
{
    struct run_branches local = {0};
    struct error *err = engine_find_branches(world->engine, key, arena, &local);
    if (err != NULL && err->kind != ERR_ENTITY_NOT_EXISTS)
        return err;
    struct version_item last = versions_last(versions);
    bool is_here = err == NULL;
    struct foreign_gap range = {.key = *key};
    size_t index;
    if (is_here && branches_find_event(&local, last) < local.count)
        return NULL;
    if (is_here && !branches_find_common(&local, versions, &index, &range.base))
        range.base = (struct version_item){0};
    if (!is_current)
        range.end = (struct version_item){last.event_id + 1, last.event_version};
    bool is_away;
    mark("resync_fetched");
    return apply_range(world, &range, arena, &is_away);
}

static struct error *
apply_activities(const struct apply_world *world, const STORE_API(ListedRun) *run,
                 struct arena *arena)
{
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < run->n_activities; i++) {
        struct foreign_outcome outcome; /* what lacks events now has moved on meanwhile */
        err = engine_apply_foreign_activity(world->engine, run->activities[i], arena, &outcome);
    }
    return err;
}

/* A message that names the run and has no events: merging it fetches them (runs_apply_task.c). */
static struct error *
park_run(const struct apply_world *world, const struct dropped *dropped,
         const STORE_API(ListedRun) *run, const struct error *cause, struct arena *arena)
{
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
    task->source_task_id = dropped->to;
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES);
    task->history_task_v2_attributes = lacking;
    const struct parked_task parked = {dropped->source, dropped->shard, task, cause};
    return park_task(world, &parked, arena);
}

/* Its histories, then what its activities have no events of yet. */
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

/* One that was deleted meanwhile, or that can never be applied, does not stop the others. */
static struct error *
apply_run(const struct apply_world *world, const struct dropped *dropped,
          const STORE_API(ListedRun) *run, const struct log *log, struct arena *arena)
{
    struct error *err = fetch_run(world, run, arena);
    if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
        return NULL;
    if (err->kind != ERR_BAD_REQUEST || run->n_histories == 0)
        return err;
    mark("resync_parked");
    log_warn(log, "A run of another cluster cannot be applied, and was parked.",
             log_text("source-cluster", dropped->source), log_text("wf-id", run->workflow_id),
             log_text("wf-run-id", run->run_id), log_error(err));
    return park_run(world, dropped, run, err, arena);
}

struct error *
apply_all_runs(const struct apply_world *world, const struct dropped *dropped,
               const struct log *log, struct arena *arena)
{
    STORE_API(ListRunsRequest) *request =
        message_new(arena, &cadenza__admin__v1__list_runs_request__descriptor);
    request->cluster_name = (char *)world->group->current->name;
    request->shard_id = (int32_t)dropped->shard;
    request->page_size = PAGE_RUNS;
    struct error *err = NULL;
    do {
        STORE_API(ListRunsResponse) *page = NULL;
        err = ask_page(world, request, arena, &page);
        for (size_t i = 0; err == NULL && i < page->n_runs; i++) {
            scoped(arena_drop) struct arena *own = arena_new(0);
            err = apply_run(world, dropped, page->runs[i], log, own);
            if (err != NULL)
                err = error_copy(arena, err);
        }
        if (err == NULL)
            request->next_page_token = page->next_page_token;
    } while (err == NULL && request->next_page_token.len > 0);
    return err == NULL ? NULL : error_wrap(err, "reading the runs of shard %u", dropped->shard);
}
