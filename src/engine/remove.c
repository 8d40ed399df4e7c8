/* remove.c - a run is deleted at an operator's word: ended first, if it is open, so that those who
 * know it hear of it. One that is corrupt goes as it is. See engine.h. */
#include "engine/inside.h"
#include "route/route.h"
#include "wire/message.h"

struct remove_call {
    struct shard *shard;
    struct run_key key;
    bool is_open;
    struct shard_repaired repaired;
    struct arena *arena;
    struct error *err;
};

static void
look(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct remove_call *call = context;
    call->key.run_id = arena_text(call->arena, run->core->run_id);
    call->is_open = run_is_open(run);
}

static struct error *
end_run(struct engine *engine, const struct run_key *key, const char *identity, struct arena *arena)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(terminate_workflow_execution_request));
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)key->workflow_id;
    request->workflow_execution->run_id = (char *)key->run_id;
    request->reason = "deleted";
    request->identity = (char *)identity;
    struct error *err = engine_terminate(engine, key->domain_id, request, arena);
    return err != NULL && err->kind == ERR_ALREADY_COMPLETED ? NULL : err;
}

static void
remove_on_loop(void *argument)
{
    struct remove_call *call = argument;
    call->err = shard_remove(call->shard, &call->key, call->arena);
}

struct error *
engine_remove(struct engine *engine, const struct run_key *key, const char *identity,
              struct arena *arena)
{
    uint32_t number = engine_shard_of(engine, key->workflow_id);
    struct remove_call call = {.shard = engine->shards[number], .key = *key, .arena = arena};
    struct error *err = engine_look(engine, key, look, &call, arena);
    if (err == NULL && call.is_open)
        err = end_run(engine, &call.key, identity, arena);
    if (err == NULL)
        err = route_to_shard(number, remove_on_loop, &call, arena);
    if (err == NULL)
        err = call.err;
    return err != NULL ? err : engine_visibility_wait(engine, arena);
}

static void
repair_on_loop(void *argument)
{
    struct remove_call *call = argument;
    call->err = shard_repair(call->shard, &call->key, call->arena, &call->repaired);
}

struct error *
engine_repair(struct engine *engine, const struct run_key *key, struct arena *arena,
              struct shard_repaired *repaired)
{
    uint32_t number = engine_shard_of(engine, key->workflow_id);
    struct remove_call call = {.shard = engine->shards[number], .key = *key, .arena = arena};
    struct error *err = route_to_shard(number, repair_on_loop, &call, arena);
    if (err == NULL)
        err = call.err;
    *repaired = call.repaired;
    return err != NULL || !repaired->was_corrupt ? err : engine_visibility_wait(engine, arena);
}
