/* runs.c - the runs of a shard, for a cluster that was away so long that rows for it were
 * dropped: it compares their histories with its own and fetches what differs. See shard.h.
 *
 * What the store has is enough: the rows that were dropped were durable, so what they said is. */
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/outgoing/replicate.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "fiber/probe.h"

#define COMPLETED CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_COMPLETED

struct activities_look {
    struct listed_run *listed;
    struct arena *arena;
};

static bool
is_unsent(const STORED(PendingActivity) *activity)
{
    return activity->attempt > 0 || activity->heartbeat_time != 0 ||
           activity->started_id != EVENT_NONE;
}

static void
look_activities(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct activities_look *look = context;
    struct listed_run *listed = look->listed;
    size_t cursor = 0;
    void *value;
    listed->activity_count = 0; /* of a look before, whose shard was lost */
    listed->activities =
        arena_zalloc(look->arena, map64_count(run->activities) + 1, sizeof listed->activities[0]);
    while (run_is_open(run) && map64_next(run->activities, &cursor, NULL, &value)) {
        if (is_unsent(value))
            listed->activities[listed->activity_count++] =
                replicate_make_activity(run, value, look->arena);
    }
}

/* One row of the store. Yields. */
static struct error *
list_run(struct shard *shard, const struct cluster *cluster, const struct row *stored,
         struct arena *arena, struct listed_runs *listed)
{
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(stored->key, stored->value, arena, &core);
    if (err != NULL)
        return err;
    const struct domain *domain = domains_find_id(shard->options.domains, core->domain_id);
    if (domain == NULL || core->is_deleting || !domain->record->domain->is_global_domain ||
        !domain_has_cluster(domain->record->domain, cluster->name))
        return NULL;
    struct listed_run *run = &listed->runs[listed->count++];
    *run = (struct listed_run){.key = {core->domain_id, core->workflow_id, core->run_id},
                               .branches = branches_read(core, arena)};
    if (core->state == COMPLETED)
        return NULL;
    struct activities_look look = {run, arena};
    err = shard_look(shard, &run->key, look_activities, &look, arena);
    return err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
}

/* What the cluster waits for may be among what was dropped: it comes once more, behind that. */
static struct error *
repeat_markers(struct shard *shard, const struct cluster *cluster, struct arena *arena)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    NO_YIELD
    {
        err = markers_repeat(tenure, cluster, arena);
    }
    if (err == NULL) /* that they are due is durable: who takes the shard puts them */
        err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    tenure_leave(tenure);
    return err;
}

struct error *
shard_show_runs_again(struct shard *shard, struct arena *arena)
{
    const struct cluster_group *group = shard->options.group;
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    if (!replicate_leap(tenure)) {
        tenure_leave(tenure);
        return error_new(arena, ERR_UNAVAILABLE, "changes of the shard are on their way");
    }
    for (size_t i = 0; i < group->count; i++) {
        struct replication_peer *peer = &tenure->replicating.peers[i];
        bool is_other = &group->clusters[i] != group->current && group->clusters[i].is_enabled;
        if (!is_other || (peer->has_asked && !peer->can_resync))
            continue;
        /* One that has not asked since memory was lost is told when it does. Clusters that cannot
         * read runs cannot list them either: nobody recovers with their help. */
        peer->can_resync = true;
        replicate_drop(tenure, i);
    }
    if (!writer_has_room(tenure->writer))
        err = error_new(arena, ERR_UNAVAILABLE, "too many changes are waiting");
    if (err == NULL && tenure->is_record_due)
        err = tenure_wait(tenure, tenure_submit(tenure, tenure_batch(tenure, arena)), arena);
    tenure_leave(tenure);
    return err;
}

struct error *
shard_list_runs(struct shard *shard, const struct cluster *cluster, struct slice from,
                size_t count_max, struct arena *arena, struct listed_runs *listed)
{
    struct rows rows;
    struct scan scan = {.partition = shard->partition,
                        .kind = ROW_RUN,
                        .from = from,
                        .rows_max = count_max,
                        .bytes_max = (size_t)1 << 20};
    *listed = (struct listed_runs){0};
    struct error *err = from.length == 0 ? repeat_markers(shard, cluster, arena) : NULL;
    if (err == NULL)
        err = store_scan(shard->options.store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    listed->runs = arena_zalloc(arena, rows.count + 1, sizeof listed->runs[0]);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = list_run(shard, cluster, &rows.row[i], arena, listed);
    check(listed->count <= rows.count && (rows.count > 0 || !rows.has_more));
    if (err == NULL && rows.has_more)
        listed->next = key_after(rows.row[rows.count - 1].key, arena);
    probe("replicated_runs_listed");
    return err;
}
