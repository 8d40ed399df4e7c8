/* look.c - questions about a run: its shard looks at it, and answers when all that it saw is
 * durable. See inside.h. */
#include "engine/inside.h"
#include "engine/run/run_key.h"

typedef void look_function(void *served_look, const struct run *run,
                           const STORED(CurrentRecord) *current);

static struct error *
ask(struct engine *engine, const struct run_key *key, bool is_sure,
    const struct route_question *question, struct arena *arena, void *answer)
{
    INTERNAL(RunKey) names = run_key_to_message(key);
    INTERNAL(RunLook) request = INTERNAL_VALUE(RUN_LOOK__INIT);
    request.key = &names;
    request.is_sure = is_sure;
    return engine_ask(engine, key->workflow_id, question, &request, arena, answer);
}

struct error *
engine_ask_look(struct engine *engine, const struct run_key *key,
                const struct route_question *question, struct arena *arena, void *answer)
{
    return ask(engine, key, false, question, arena, answer);
}

struct error *
engine_ask_look_surely(struct engine *engine, const struct run_key *key,
                       const struct route_question *question, struct arena *arena, void *answer)
{
    return ask(engine, key, true, question, arena, answer);
}

struct error *
engine_serve_look(void *engine, struct owner owner, const void *request, look_function *look,
                  struct arena *arena, void *answer)
{
    const INTERNAL(RunLook) *wanted = request;
    struct run_key key = run_key_from_message(wanted->key);
    struct shard *shard = engine_served_shard(engine, owner);
    struct served_look served = {.engine = engine, .arena = arena, .answer = answer};
    return (wanted->is_sure ? shard_look_surely : shard_look)(shard, &key, look, &served, arena);
}
