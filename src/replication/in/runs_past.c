/* runs_past.c - a cluster that lost memory reads the runs of every peer, and ends its recovery when
 * it has all of them (design/031). See runs_in.h.
 *
 * Each peer's own fiber reads that peer, shard by shard, by the way of a cluster that was away for
 * too long. What is read is not remembered over a restart: reading begins again, and passes over
 * what is here. */
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "domain/entity.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "replication/in/runs_inside.h"
#include "route/owner.h"

#define LOOK_BACK_PAUSE (10 * NS_PER_S)

/* Of one domain. */
struct heard {
    struct heard_versions versions;
};

void
runs_past_init(struct runs_in *in)
{
    in->is_recovering = in->options.is_recovering;
    in->heard = map_new();
    check(!in->is_recovering || (in->options.recovered != NULL && in->options.have_past != NULL));
}

void
runs_past_free(struct runs_in *in)
{
    size_t cursor = 0;
    void *value;
    while (map_next(in->heard, &cursor, NULL, &value))
        memory_free(value);
    map_free(in->heard);
}

void
runs_in_read_past(struct runs_in *in)
{
    check(route_is_here(owner_of_domains()));
    if (in->may_read_past)
        in->has_domains_again = true;
    in->may_read_past = true;
}

struct heard_versions
runs_in_heard(const struct runs_in *in, const char *domain_id)
{
    const struct heard *heard = map_get(in->heard, slice_text(domain_id));
    return heard == NULL ? (struct heard_versions){-1, -1, 0} : heard->versions;
}

/* --- reading ---- */

/* What a run of an entity wrote with has the version of its region in it. */
static void
note_version(struct runs_in *in, const char *domain_id, int64_t version)
{
    const struct cluster_group *group = in->options.group;
    if (version < 0 || cluster_group_of_version(group, version) != group->current)
        return;
    struct heard *heard = map_get(in->heard, slice_text(domain_id));
    if (heard == NULL) {
        heard = memory_zalloc(1, sizeof *heard);
        heard->versions = (struct heard_versions){-1, -1, 0};
        map_put(in->heard, slice_text(domain_id), heard);
    }
    int64_t plain = entity_region_version(version, group);
    if (plain > heard->versions.version)
        heard->versions.version = plain;
    if (entity_is_version(version, group) && version > heard->versions.entity_version)
        heard->versions.entity_version = version;
}

static void
note_listed(void *context, const STORE_API(ListedRun) *run)
{
    for (size_t i = 0; i < run->n_histories; i++)
        for (size_t j = 0; j < run->histories[i]->n_items; j++)
            note_version(context, run->domain_id, run->histories[i]->items[j]->version);
}

static struct error *
read_shards(struct run_source *run_source, uint32_t *read, bool looks_back, struct arena *arena)
{
    struct runs_in *in = run_source->in;
    struct apply_world world = run_source_world(run_source);
    struct error *err = NULL;
    while (err == NULL && *read < applier_shard_count(run_source->applier)) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        int64_t retrieved = applier_retrieved(run_source->applier, *read);
        struct dropped_shard dropped_shard = {.source = run_source->base.cluster->name,
                                              .shard = *read,
                                              .to = retrieved > 0 ? retrieved : 1,
                                              .looks_back = looks_back,
                                              .on_listed = looks_back ? NULL : note_listed,
                                              .context = in};
        err = apply_all_runs(&world, &dropped_shard, in->options.log, own);
        if (err != NULL)
            return error_copy(arena, err);
        ++*read;
        gauge_set(run_source->past_shown, run_source->past_read);
        probe("past_of_shard_read");
    }
    return err;
}

/* --- the end ---- */

bool
runs_past_is_waived(const struct runs_in *in, const struct cluster *cluster)
{
    for (size_t i = 0; in->options.waived != NULL && in->options.waived[i] != NULL; i++)
        if (strcmp(in->options.waived[i], cluster->name) == 0)
            return true;
    return false;
}

static bool
have_all_past(const struct runs_in *in)
{
    list_each(node, &in->follow_loop.peers) {
        const struct run_source *run_source = list_entry(node, struct run_source, base.node);
        if (!run_source->has_past && !runs_past_is_waived(in, run_source->base.cluster))
            return false;
    }
    return true;
}

/* One fiber ends it, whichever comes first. Reading may have taken hours: what happened to the
 * domains meanwhile is asked for once more. */
static struct error *
end_recovery(struct runs_in *in, struct arena *arena)
{
    if (in->is_ending || !in->is_recovering)
        return NULL;
    if (!in->is_asking_again) {
        in->is_asking_again = true;
        in->options.have_past(in->options.context);
    }
    if (!in->has_domains_again)
        return NULL;
    in->is_ending = true;
    struct error *err = in->options.recovered(in->options.context, arena);
    in->is_ending = false;
    if (err == NULL)
        in->is_recovering = false;
    return err;
}

/* --- afterwards ---- */

/* What had come from here before memory was lost may have waited at the peer for events that only
 * this cluster had. Now it is told that they are gone, and goes on without them: then it has runs
 * that it did not have when it was asked. A crash before that forgets it. */
static void
look_back(struct run_source *run_source)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (clock_monotonic() < run_source->look_back_time)
        return;
    uint32_t read = 0;
    struct error *err = read_shards(run_source, &read, true, arena);
    run_source->look_back_time = clock_monotonic() + LOOK_BACK_PAUSE;
    if (err != NULL)
        return;
    probe("looked_back");
    run_source->has_looked_back = true;
}

struct error *
runs_past_read(struct run_source *run_source, struct arena *arena)
{
    struct runs_in *in = run_source->in;
    if (!in->is_recovering && run_source->has_past && !run_source->has_looked_back)
        look_back(run_source);
    if (!in->is_recovering || !in->may_read_past)
        return NULL;
    if (!run_source->has_past) {
        struct error *err = read_shards(run_source, &run_source->past_read, false, arena);
        if (err != NULL)
            return error_wrap(err, "reading what this cluster lost from cluster %s",
                              run_source->base.cluster->name);
        run_source->has_past = true;
        log_info(in->options.log,
                 "All runs of a cluster were read, and what was lost here of them.",
                 log_text("source-cluster", run_source->base.cluster->name),
                 log_number("shards", run_source->past_read));
    }
    return have_all_past(in) ? end_recovery(in, arena) : NULL;
}
