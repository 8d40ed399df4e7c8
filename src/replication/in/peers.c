/* peers.c - what this cluster knows of the others: DescribePeers, and for a peer that lost memory
 * whether all that it sent is applied. */
#include "base/check.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "replication/in/runs_in.h"
#include "replication/inside.h"
#include "wire/message.h"

static STORE_API(Peer) *
show(const struct cluster *cluster, const struct peer_state *state, struct arena *arena)
{
    STORE_API(Peer) *peer = message_new(arena, &cadenza__admin__v1__peer__descriptor);
    peer->name = (char *)cluster->name;
    peer->address = (char *)cluster->rpc_address;
    peer->is_followed = state != NULL;
    if (state == NULL)
        return peer;
    check(state->cluster == cluster);
    check(state->failure != NULL || !state->has_other_settings);
    check(state->waiting > 0 || state->oldest == 0);
    peer->heard_nanoseconds = state->succeeded_at;
    peer->waiting = (int64_t)state->waiting;
    peer->oldest_nanoseconds = state->oldest;
    peer->is_away = state->failure != NULL;
    peer->has_other_settings = state->has_other_settings;
    peer->is_past_wanted = state->is_past_wanted;
    peer->past_read = (int32_t)state->past_read;
    peer->past_shards = (int32_t)state->past_shards;
    if (state->failure != NULL)
        peer->failure = (char *)state->failure;
    return peer;
}

static const struct peer_state *
find_state(const struct peer_state *states, size_t count, const struct cluster *cluster)
{
    for (size_t i = 0; i < count; i++)
        if (states[i].cluster == cluster)
            return &states[i];
    return NULL;
}

struct error *
replication_describe_peers(struct rpc_call *call)
{
    struct replication *replication = replication_of(call);
    STORE_API(DescribePeersResponse) *response = (STORE_API(DescribePeersResponse) *)call->response;
    const struct cluster_group *group = replication->options.group;
    struct runs_in *runs = atomic_load(&replication->runs);
    const struct peer_state *states = NULL;
    size_t count = 0;
    struct error *err = runs == NULL ? NULL : runs_in_list(runs, call->arena, &states, &count);
    if (err != NULL)
        return err;
    check(count < group->count); /* only others are followed */
    response->cluster = (char *)group->current->name;
    response->peers = arena_zalloc(call->arena, group->count, sizeof *response->peers);
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        if (cluster != group->current)
            response->peers[response->n_peers++] =
                show(cluster, find_state(states, count, cluster), call->arena);
    }
    check(response->n_peers < group->count);
    response->time_nanoseconds = clock_wall();
    return NULL;
}

struct error *
replication_check_applied(struct replication *replication, const struct cluster *cluster,
                          bool is_all, struct arena *arena)
{
    struct runs_in *runs = atomic_load(&replication->runs);
    return runs == NULL ? error_new(arena, ERR_UNAVAILABLE, "This cluster is starting.")
                        : runs_in_check_applied(runs, cluster->name, is_all, arena);
}
