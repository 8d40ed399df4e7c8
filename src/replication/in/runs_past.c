/* runs_past.c - a cluster that lost memory reads the runs of every peer, and ends its recovery when
 * it has all of them (design/031). See runs_in.h.
 *
 * Each peer's own fiber reads that peer, shard by shard, by the way of a cluster that was away for
 * too long. What is read is not remembered over a restart: reading begins again, and passes over
 * what is here. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/probe.h"
#include "replication/in/runs_inside.h"
#include "route/owner.h"

/* The highest version of this cluster in the histories of one domain. */
struct heard {
    int64_t version;
};

void
runs_past_init(struct runs_in *in)
{
    in->is_recovering = in->options.is_recovering;
    in->heard = map_new();
    check(!in->is_recovering || in->options.recovered != NULL);
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
    in->may_read_past = true;
}

int64_t
runs_in_heard(const struct runs_in *in, const char *domain_id)
{
    const struct heard *heard = map_get(in->heard, slice_text(domain_id));
    return heard == NULL ? -1 : heard->version;
}

/* --- reading ---- */

static void
note_version(struct runs_in *in, const char *domain_id, int64_t version)
{
    const struct cluster_group *group = in->options.group;
    if (version < 0 || cluster_group_of_version(group, version) != group->current)
        return;
    struct heard *heard = map_get(in->heard, slice_text(domain_id));
    if (heard == NULL) {
        heard = memory_zalloc(1, sizeof *heard);
        map_put(in->heard, slice_text(domain_id), heard);
    }
    if (version > heard->version)
        heard->version = version;
}

static void
note_listed(void *context, const STORE_API(ListedRun) *run)
{
    for (size_t i = 0; i < run->n_histories; i++)
        for (size_t j = 0; j < run->histories[i]->n_items; j++)
            note_version(context, run->domain_id, run->histories[i]->items[j]->version);
}

static struct error *
read_shards(struct run_source *run_source, struct arena *arena)
{
    struct runs_in *in = run_source->in;
    struct apply_world world = run_source_world(run_source);
    struct error *err = NULL;
    while (err == NULL && run_source->past_read < applier_shard_count(run_source->applier)) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        int64_t retrieved = applier_retrieved(run_source->applier, run_source->past_read);
        struct dropped_shard dropped_shard = {.source = run_source->base.cluster->name,
                                              .shard = run_source->past_read,
                                              .to = retrieved > 0 ? retrieved : 1,
                                              .on_listed = note_listed,
                                              .context = in};
        err = apply_all_runs(&world, &dropped_shard, in->options.log, own);
        if (err != NULL)
            return error_copy(arena, err);
        run_source->past_read++;
        probe("past_of_shard_read");
    }
    return err;
}

/* --- the end ---- */

static bool
have_all_past(const struct runs_in *in)
{
    list_each(node, &in->follow_loop.peers) {
        const struct run_source *run_source = list_entry(node, struct run_source, base.node);
        if (!run_source->has_past)
            return false;
    }
    return true;
}

/* One fiber ends it, whichever comes first. */
static struct error *
end_recovery(struct runs_in *in, struct arena *arena)
{
    if (in->is_ending || !in->is_recovering)
        return NULL;
    in->is_ending = true;
    struct error *err = in->options.recovered(in->options.context, arena);
    in->is_ending = false;
    if (err == NULL)
        in->is_recovering = false;
    return err;
}

struct error *
runs_past_read(struct run_source *run_source, struct arena *arena)
{
    struct runs_in *in = run_source->in;
    if (!in->is_recovering || !in->may_read_past)
        return NULL;
    if (!run_source->has_past) {
        struct error *err = read_shards(run_source, arena);
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
