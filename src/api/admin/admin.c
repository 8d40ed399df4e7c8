/* admin.c - what operators ask about runs, shards and hosts (E-076).
 *
 * Some of AdminAPI has no meaning here: no queue is processed up to some level, and no row needs an
 * operator to remove it. Such calls say why, and what to use instead. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

#define PAGE_SIZE_DEFAULT 100

static struct error *
find_run(struct rpc_call *call, const char *domain_name, const API(WorkflowExecution) *execution,
         struct run_key *key)
{
    struct call_domain domain;
    struct error *err = validate_domain(call, domain_name, &domain);
    if (err == NULL)
        err = validate_execution(execution, call->arena);
    if (err == NULL)
        *key = (struct run_key){domain.id, execution->workflow_id, execution->run_id};
    return err;
}

struct error *
api_admin_describe_workflow(struct rpc_call *call)
{
    const ADMIN(DescribeWorkflowExecutionRequest) *request =
        (const ADMIN(DescribeWorkflowExecutionRequest) *)call->request;
    ADMIN(DescribeWorkflowExecutionResponse) *response =
        (ADMIN(DescribeWorkflowExecutionResponse) *)call->response;
    struct engine *engine = api_of(call)->options.engine;
    struct run_key key;
    struct error *err = find_run(call, request->domain, request->workflow_execution, &key);
    if (err != NULL)
        return err;
    struct run_inspection inspection;
    err = engine_inspect_run(engine, &key, call->arena, &inspection);
    if (err != NULL)
        return err;
    response->shard_id = (int32_t)inspection.shard;
    response->history_addr = (char *)engine_host(engine);
    response->mutable_state_in_cache = (char *)inspection.in_memory;
    response->mutable_state_in_database =
        (char *)(inspection.in_store == NULL ? "" : inspection.in_store);
    return NULL;
}

struct error *
api_admin_refresh_tasks(struct rpc_call *call)
{
    const ADMIN(RefreshWorkflowTasksRequest) *request =
        (const ADMIN(RefreshWorkflowTasksRequest) *)call->request;
    struct run_key key;
    struct error *err = find_run(call, request->domain, request->workflow_execution, &key);
    if (err != NULL)
        return err;
    return engine_refresh(api_of(call)->options.engine, &key, call->arena);
}

/* E-077 */
struct error *
api_admin_maintain_corrupt(struct rpc_call *call)
{
    const ADMIN(MaintainCorruptWorkflowRequest) *request =
        (const ADMIN(MaintainCorruptWorkflowRequest) *)call->request;
    ADMIN(MaintainCorruptWorkflowResponse) *response =
        (ADMIN(MaintainCorruptWorkflowResponse) *)call->response;
    struct run_key key;
    struct shard_repaired repaired = {0};
    struct error *err = find_run(call, request->domain, request->workflow_execution, &key);
    if (err != NULL)
        return err;
    err = engine_repair(api_of(call)->options.engine, &key, call->arena, &repaired);
    response->history_deleted = repaired.was_corrupt && !repaired.is_history_left;
    response->executions_deleted = repaired.was_corrupt;
    response->visibility_deleted = repaired.was_corrupt;
    return err;
}

/* --- shards ---- */

struct error *
api_admin_describe_host(struct rpc_call *call)
{
    ADMIN(DescribeHistoryHostResponse) *response =
        (ADMIN(DescribeHistoryHostResponse) *)call->response;
    struct engine *engine = api_of(call)->options.engine;
    uint32_t count = engine_shard_count(engine);
    response->shard_ids = arena_zalloc(call->arena, count, sizeof *response->shard_ids);
    for (uint32_t i = 0; i < count; i++) {
        struct shard_state state;
        struct error *err = engine_shard_state(engine, i, call->arena, &state);
        if (err != NULL)
            return err;
        if (state.is_owned)
            response->shard_ids[response->n_shard_ids++] = (int32_t)i;
    }
    response->number_of_shards = (int32_t)response->n_shard_ids;
    response->address = (char *)engine_host(engine);
    response->shard_controller_status =
        response->n_shard_ids == count ? "started" : "started, some shards are not owned";
    response->domain_cache = message_new(call->arena, ADMIN_TYPE(domain_cache_info));
    response->domain_cache->num_of_items_in_cache_by_id =
        response->domain_cache->num_of_items_in_cache_by_name =
            (int64_t)domains_count(api_of(call)->options.domains);
    return NULL;
}

struct error *
api_admin_describe_shards(struct rpc_call *call)
{
    const ADMIN(DescribeShardDistributionRequest) *request =
        (const ADMIN(DescribeShardDistributionRequest) *)call->request;
    ADMIN(DescribeShardDistributionResponse) *response =
        (ADMIN(DescribeShardDistributionResponse) *)call->response;
    struct engine *engine = api_of(call)->options.engine;
    uint32_t count = engine_shard_count(engine);
    if (request->page_size < 0 || request->page_id < 0)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "page_size and page_id must not be negative.");
    uint64_t size = request->page_size == 0 ? PAGE_SIZE_DEFAULT : (uint64_t)request->page_size;
    uint64_t from = size * (uint64_t)request->page_id, to = from + size;
    to = to < count ? to : count;
    response->number_of_shards = (int32_t)count;
    response->shards =
        arena_zalloc(call->arena, from < to ? to - from : 0, sizeof *response->shards);
    for (uint64_t i = from; i < to; i++) {
        struct shard_state state;
        struct error *err = engine_shard_state(engine, (uint32_t)i, call->arena, &state);
        if (err != NULL)
            return err;
        ADMIN(DescribeShardDistributionResponse__ShardsEntry) *entry = message_new(
            call->arena, ADMIN_TYPE(describe_shard_distribution_response__shards_entry));
        entry->key = (int32_t)i;
        entry->value = (char *)(state.is_owned ? engine_host(engine) : "unknown");
        response->shards[response->n_shards++] = entry;
    }
    return NULL;
}

struct error *
api_admin_close_shard(struct rpc_call *call)
{
    const ADMIN(CloseShardRequest) *request = (const ADMIN(CloseShardRequest) *)call->request;
    return engine_close_shard(api_of(call)->options.engine, (uint32_t)request->shard_id,
                              call->arena);
}

struct error *
api_admin_describe_queue(struct rpc_call *call)
{
    const ADMIN(DescribeQueueRequest) *request = (const ADMIN(DescribeQueueRequest) *)call->request;
    ADMIN(DescribeQueueResponse) *response = (ADMIN(DescribeQueueResponse) *)call->response;
    struct shard_state state;
    struct error *err = engine_shard_state(api_of(call)->options.engine,
                                           (uint32_t)request->shard_id, call->arena, &state);
    if (err != NULL)
        return err;
    bool is_timer = request->task_type == ADMIN_VALUE(TASK_TYPE__TASK_TYPE_TIMER);
    response->n_processing_queue_states = 1;
    response->processing_queue_states = arena_zalloc(call->arena, 1, sizeof(char *));
    response->processing_queue_states[0] =
        is_timer
            ? arena_format(call->arena,
                           "shard %d, range %llu: %zu wake-up timers in memory, %zu of them held, "
                           "fired up to %lld",
                           request->shard_id, (unsigned long long)state.range_id, state.wakeups,
                           state.wakeups_held, (long long)state.wakeup_level)
            : arena_format(
                  call->arena, "shard %d, range %llu: %zu rows in memory, %zu of them held, %s",
                  request->shard_id, (unsigned long long)state.range_id, state.transfers,
                  state.transfers_held,
                  state.has_unread_transfers ? "others in the store" : "none in the store only");
    return NULL;
}

/* --- what has no meaning ---- */

struct error *
api_admin_remove_task(struct rpc_call *call)
{
    return error_new(
        call->arena, ERR_BAD_REQUEST,
        "RemoveTask has no meaning here: a row goes with the step that does it, and one "
        "that is void is dropped. RefreshWorkflowTasks writes the rows of a run again.");
}

struct error *
api_admin_reset_queue(struct rpc_call *call)
{
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "ResetQueue has no meaning here: no level says how far rows were processed. "
                     "CloseShard has a shard read all of them again.");
}
