/* remove.c - a run is deleted at an operator's word: ended first, if it is open, so that those who
 * know it hear of it. One that is corrupt goes as it is. See engine.h. */
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "wire/message.h"

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

static struct error *
serve_remove(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    struct run_key key = run_key_from_message(request);
    return shard_remove(engine_served_shard(engine, owner), &key, arena);
}

/* A run that is gone is no error: so the operator may ask again, and it may come twice. */
static const struct route_question remove_question = {
    .name = "shard.remove",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_remove,
    .may_come_twice = true,
};

struct error *
engine_remove(struct engine *engine, const struct run_key *key, const char *identity,
              struct arena *arena)
{
    struct history_state state = {0};
    struct error *err = engine_history_state(engine, key, arena, &state);
    if (err != NULL)
        return err;
    struct run_key run = {key->domain_id, key->workflow_id, state.run_id};
    INTERNAL(RunKey) request = run_key_to_message(&run);
    if (state.is_open)
        err = end_run(engine, &run, identity, arena);
    if (err == NULL)
        err = engine_ask_done(engine, key->workflow_id, &remove_question, &request, arena);
    return err != NULL ? err : engine_visibility_wait(engine, arena);
}

static struct error *
serve_repair(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    INTERNAL(RunRepaired) *told = answer;
    struct run_key key = run_key_from_message(request);
    struct shard_repaired repaired = {0};
    struct error *err = shard_repair(engine_served_shard(engine, owner), &key, arena, &repaired);
    told->was_corrupt = repaired.was_corrupt;
    told->is_history_left = repaired.is_history_left;
    return err;
}

/* No answer: the operator asks again, and hears that there is nothing to repair. */
static const struct route_question repair_question = {
    .name = "shard.repair",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(run_repaired),
    .serve = serve_repair,
};

struct error *
engine_repair(struct engine *engine, const struct run_key *key, struct arena *arena,
              struct shard_repaired *repaired)
{
    INTERNAL(RunKey) request = run_key_to_message(key);
    INTERNAL(RunRepaired) told = INTERNAL_VALUE(RUN_REPAIRED__INIT);
    struct error *err =
        engine_ask(engine, key->workflow_id, &repair_question, &request, arena, &told);
    *repaired = (struct shard_repaired){.was_corrupt = told.was_corrupt,
                                        .is_history_left = told.is_history_left};
    return err != NULL || !repaired->was_corrupt ? err : engine_visibility_wait(engine, arena);
}
