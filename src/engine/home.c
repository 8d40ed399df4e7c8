/* home.c - what a run belongs to, which says where it is active. */
#include "engine/inside.h"
#include "wire/message.h"

static void
look_home(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    INTERNAL(RunHome) *answer = look->answer;
    const API(ActiveClusterSelectionPolicy) *policy = run->core->active_cluster_selection_policy;
    answer->is_open = run_is_open(run);
    answer->last_version = run_last_version(run);
    answer->cluster_attribute = NULL;
    if (policy == NULL || policy->cluster_attribute == NULL)
        return;
    answer->cluster_attribute = message_new(look->arena, API_TYPE(cluster_attribute));
    answer->cluster_attribute->scope = arena_text(look->arena, policy->cluster_attribute->scope);
    answer->cluster_attribute->name = arena_text(look->arena, policy->cluster_attribute->name);
}

static struct error *
serve_home(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    return engine_serve_look(engine, owner, request, look_home, arena, answer);
}

/* Lost: the call that is about the run fails, and comes again. Twice: it only reads. */
static const struct route_question home_question = {
    .name = "shard.home",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(run_home),
    .serve = serve_home,
    .may_come_twice = true,
};

struct error *
engine_home(struct engine *engine, const struct run_key *key, struct arena *arena,
            struct run_home *home)
{
    INTERNAL(RunHome) answer = INTERNAL_VALUE(RUN_HOME__INIT);
    struct error *err = engine_ask_look(engine, key, &home_question, arena, &answer);
    *home = (struct run_home){.last_version = answer.last_version, .is_open = answer.is_open};
    if (err == NULL && answer.cluster_attribute != NULL) {
        home->scope = answer.cluster_attribute->scope;
        home->name = answer.cluster_attribute->name;
    }
    return err;
}
