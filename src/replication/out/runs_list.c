/* runs_list.c - ListRuns: the runs of a shard, for a cluster that was unreachable for so long that
 * messages for it were dropped. Each page is read from the store; its token is the key where the
 * next one begins. */
#include "base/check.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/replicated.h"
#include "replication/inside.h"
#include "wire/presence.h"

#define RUNS_DEFAULT 100
#define RUNS_MAX     1000

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
    const struct cluster *cluster = cluster_group_find(options->group, request->cluster_name);
    bool is_asked = request->is_recovering || request->looks_back;
    if (is_asked && request->next_page_token.len == 0)
        err = replication_check_applied(replication_of(call), cluster, request->looks_back,
                                        call->arena);
    if (err != NULL)
        return err;
    err = engine_list_runs(options->engine, (uint32_t)request->shard_id, cluster,
                           presence_read_bytes(request->next_page_token),
                           request->page_size == 0 ? RUNS_DEFAULT : (size_t)request->page_size,
                           call->arena, response);
    check(err != NULL || response->n_runs <= RUNS_MAX);
    return err;
}
