/* runs_list.c - ListRuns: the runs of a shard, for a cluster that was unreachable for so long that
 * messages for it were dropped. Each page is read from the store; its token is the key where the
 * next one begins. */
#include "base/check.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/replicated.h"
#include "replication/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RUNS_DEFAULT 100
#define RUNS_MAX     1000

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

struct error *
replication_list_runs(struct rpc_call *call)
{
    const STORE_API(ListRunsRequest) *request = (const STORE_API(ListRunsRequest) *)call->request;
    STORE_API(ListRunsResponse) *response = (STORE_API(ListRunsResponse) *)call->response;
    const struct replication_options *options = &replication_of(call)->options;
    struct error *err = replication_check_peer(options->group, request->cluster_name, call->arena);
    if (err != NULL)
        return err;
    if (options->engine == NULL || request->shard_id < 0 ||
        (uint32_t)request->shard_id >= engine_shard_count(options->engine))
        return error_new(call->arena, ERR_BAD_REQUEST, "There is no shard %d.", request->shard_id);
    if (request->page_size < 0 || request->page_size > RUNS_MAX)
        return error_new(call->arena, ERR_BAD_REQUEST, "page_size: %d is not from 0 to %d.",
                         request->page_size, RUNS_MAX);
    struct listed_runs listed;
    err = engine_list_runs(options->engine, (uint32_t)request->shard_id,
                           cluster_group_find(options->group, request->cluster_name),
                           presence_read_bytes(request->next_page_token),
                           request->page_size == 0 ? RUNS_DEFAULT : (size_t)request->page_size,
                           call->arena, &listed);
    if (err != NULL)
        return err;
    check(listed.count <= RUNS_MAX);
    response->runs = arena_zalloc(call->arena, listed.count + 1, sizeof response->runs[0]);
    for (size_t i = 0; i < listed.count; i++)
        response->runs[response->n_runs++] = show_run(&listed.runs[i], call->arena);
    response->next_page_token = presence_make_bytes(listed.next);
    return NULL;
}
