/* runs_in.c - see runs_in.h. */
#include "replication/in/runs_in.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "replication/in/runs_inside.h"
#include "rpc/client.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH "/uber.cadence.admin.v1.AdminAPI/GetReplicationMessages"

/* --- one round ---- */

static ADMIN(GetReplicationMessagesRequest) *
make_request(const struct run_source *run_source, struct arena *arena)
{
    ADMIN(GetReplicationMessagesRequest) *request =
        message_new(arena, ADMIN_TYPE(get_replication_messages_request));
    uint32_t count = applier_shard_count(run_source->applier);
    check(count > 0 && count <= INT32_MAX); /* shards are numbered by int32 on the wire */
    request->cluster_name = (char *)run_source->in->options.group->current->name;
    request->can_resync = true;
    request->is_urgent = run_source->base.is_away || run_source->in->is_recovering;
    request->tokens = arena_zalloc(arena, count, sizeof request->tokens[0]);
    request->n_tokens = count;
    for (uint32_t i = 0; i < count; i++) {
        ADMIN(ReplicationToken) *token = message_new(arena, ADMIN_TYPE(replication_token));
        token->shard_id = (int32_t)i;
        token->last_retrieved_message_id = applier_retrieved(run_source->applier, i);
        token->last_processed_message_id = applier_processed(run_source->applier, i);
        request->tokens[i] = token;
    }
    return request;
}

struct apply_world
run_source_world(const struct run_source *run_source)
{
    const struct runs_in_options *options = &run_source->in->options;
    return (struct apply_world){.engine = options->engine,
                                .domains = options->domains,
                                .drains = options->drains,
                                .group = options->group,
                                .client = run_source->base.client};
}

/* This cluster was unreachable for so long that the source dropped messages: its runs have all that
 * the messages had. */
static struct error *
resync(struct run_source *run_source, struct arena *arena, bool *is_resynced)
{
    struct apply_world world = run_source_world(run_source);
    const struct log *log = run_source->in->options.log;
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < applier_shard_count(run_source->applier); i++) {
        struct dropped_shard dropped_shard = {run_source->base.cluster->name, i,
                                              applier_resync_to(run_source->applier, i)};
        if (dropped_shard.to == 0)
            continue;
        log_info(log,
                 "Changes of a cluster were dropped while this one was away: reading its runs.",
                 log_text("source-cluster", run_source->base.cluster->name),
                 log_number("shard-id", (int64_t)i));
        err = apply_all_runs(&world, &dropped_shard, log, arena);
        if (err == NULL) {
            probe("replication_resynced");
            counter_add(run_source->resynced, 1);
            applier_note_resynced(run_source->applier, i);
            *is_resynced = true;
        }
    }
    return err;
}

static void
note_polled(struct run_source *run_source)
{
    run_source->is_polling = false;
    run_source->polls++;
    fiber_cond_broadcast(&run_source->polled);
}

static struct error *
peer_round(struct followed_peer *followed_peer, struct arena *arena)
{
    struct run_source *run_source = (struct run_source *)followed_peer;
    check(route_is_here(owner_of_domains()) && !run_source->in->follow_loop.is_stopping);
    check(fiber_deadline() == NEVER);
    applier_wait_room(run_source->applier);
    int64_t begin = clock_monotonic();
    ADMIN(GetReplicationMessagesRequest) *request = make_request(run_source, arena);
    ADMIN(GetReplicationMessagesResponse) *response = NULL;
    struct arena *kept = arena_new(0);
    fiber_set_deadline(begin + PEER_CALL_TIMEOUT);
    run_source->is_polling = true;
    struct error *err = rpc_client_call(run_source->base.client, PATH, &request->base, kept,
                                        ADMIN_TYPE(get_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err == NULL)
        err = peer_settings_check(&run_source->base.peer_settings, run_source->in->options.group,
                                  run_source->base.cluster,
                                  presence_read_bytes(response->group_settings), kept);
    if (err != NULL) {
        err =
            error_wrap(error_copy(arena, err), "asking cluster %s", run_source->base.cluster->name);
        arena_free(kept);
        note_polled(run_source);
        return err;
    }
    size_t count;
    bool has_more;
    applier_add(run_source->applier, response, kept, &count, &has_more);
    run_source->has_answered = true;
    note_polled(run_source);
    counter_add(run_source->fetched, count);
    bool is_resynced = false;
    err = resync(run_source, arena, &is_resynced);
    if (err == NULL)
        err = runs_past_read(run_source, arena);
    if (err != NULL || is_resynced || count > 0 || has_more || run_source->base.is_away)
        return err; /* a peer that came back is asked again at once */
    return follow_loop_rest(begin, arena);
}

/* --- life ---- */

static struct followed_peer *
make_peer(void *context, const struct cluster *cluster)
{
    struct runs_in *in = context;
    check(cluster != in->options.group->current);
    struct run_source *run_source = memory_zalloc(1, sizeof *run_source);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "runs", NULL};
    run_source->in = in;
    fiber_cond_init(&run_source->polled);
    run_source->fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                          "Messages that a peer sent.", labels);
    run_source->base.failed = metrics_counter(metrics, "cadence_replication_tasks_fetch_failed",
                                              "Rounds of following a peer that failed.", labels);
    run_source->resynced =
        metrics_counter(metrics, "replication_shards_resynced",
                        "Shards of a peer whose runs were read after a long absence.", labels);
    const char *peer_only[] = {"source_cluster", cluster->name, NULL};
    run_source->past_shown = metrics_gauge(metrics, "cadenza_recovering_shards_read",
                                           "Shards of a peer whose runs were read since this "
                                           "cluster was started without its memory.",
                                           peer_only);
    return &run_source->base;
}

static void
begin_peer(struct followed_peer *followed_peer)
{
    struct run_source *run_source = (struct run_source *)followed_peer;
    run_source->applier = applier_new(&(struct applier_options){.world = run_source->in->options,
                                                                .source = followed_peer->cluster,
                                                                .client = followed_peer->client});
}

static void
drop_peer(struct followed_peer *followed_peer)
{
    struct run_source *run_source = (struct run_source *)followed_peer;
    applier_free(run_source->applier);
    memory_free(run_source);
}

struct runs_in *
runs_in_start(const struct runs_in_options *options)
{
    check(options->engine != NULL && options->domains != NULL && options->group != NULL);
    check(options->metrics != NULL);
    struct runs_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    in->service.context = in;
    latch_init(&in->operations, 0);
    runs_past_init(in);
    const struct follow_loop_options follow_loop = {
        .ways = {options->group, options->tls, options->tokens},
        .log = options->log,
        .fiber_name = "runs-in",
        .failing_text = "The runs of a cluster cannot be followed, trying again.",
        .resumed_text = "The runs of a cluster are followed again.",
        .probe = "runs_peer_failed",
        .make = make_peer,
        .begin = begin_peer,
        .round = peer_round,
        .drop = drop_peer,
        .context = in,
    };
    follow_loop_start(&in->follow_loop, &follow_loop);
    return in;
}

void
runs_in_stop(struct runs_in *in)
{
    follow_loop_stop(&in->follow_loop);
    latch_wait(&in->operations); /* they use the peers' clients */
    follow_loop_free(&in->follow_loop);
    runs_past_free(in);
    memory_free(in);
}
