/* home.c - what a run belongs to, which says where it is active. */
#include "engine/inside.h"

struct look_home {
    struct arena *arena;
    struct run_home *home;
};

static void
look_home(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct look_home *look = context;
    const API(ActiveClusterSelectionPolicy) *policy = run->core->active_cluster_selection_policy;
    look->home->is_open = run_is_open(run);
    look->home->last_version = run_last_version(run);
    if (policy != NULL && policy->cluster_attribute != NULL) {
        look->home->scope = arena_text(look->arena, policy->cluster_attribute->scope);
        look->home->name = arena_text(look->arena, policy->cluster_attribute->name);
    }
}

struct error *
engine_home(struct engine *engine, const struct run_key *key, struct arena *arena,
            struct run_home *home)
{
    struct look_home look = {.arena = arena, .home = home};
    *home = (struct run_home){0};
    return engine_look(engine, key, look_home, &look, arena);
}
