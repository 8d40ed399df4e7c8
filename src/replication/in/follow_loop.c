/* follow_loop.c - see follow_loop.h. */
#include "replication/in/follow_loop.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "route/owner.h"

#define PAUSE_MIN     (100 * NS_PER_MS)
#define PAUSE_MAX     (5 * NS_PER_S)
#define POLL_INTERVAL NS_PER_S /* of a peer that answers at once though it has nothing */

/* True between two rounds. */
static void
followed_peer_check(const struct followed_peer *peer)
{
    const struct peer_settings *settings = &peer->peer_settings;
    check(peer->cluster != peer->follow_loop->options.ways.group->current);
    check(peer->pause >= PAUSE_MIN && peer->pause <= PAUSE_MAX);
    check(peer->is_away || (!peer->is_refused && !peer->has_logged_conflict));
    check((settings->accepted == NULL) == (settings->length == 0));
    check(settings->accepted == NULL || !settings->has_conflict);
}

static void
log_conflict(const struct followed_peer *peer, const struct error *err)
{
    log_at(peer->follow_loop->options.log, LOG_ERROR,
           "A cluster has other group settings than this one and is not followed. Make "
           "clusterGroupMetadata the same in both files and restart the server whose file changed; "
           "following goes on from where it stopped.",
           log_text("source-cluster", peer->cluster->name), log_error(err));
}

static void
note_failure(struct followed_peer *peer, const struct error *err)
{
    const struct follow_loop_options *options = &peer->follow_loop->options;
    bool is_refused = err->kind == ERR_ACCESS_DENIED;
    counter_add(peer->failed, 1);
    probe(options->probe);
    if (is_refused && !peer->is_refused)
        log_warn(options->log, PEER_REFUSES, log_text("source-cluster", peer->cluster->name),
                 log_error(err));
    else if (peer->peer_settings.has_conflict && !peer->has_logged_conflict)
        log_conflict(peer, err);
    else if (!peer->is_away)
        log_warn(options->log, options->failing_text,
                 log_text("source-cluster", peer->cluster->name), log_error(err));
    peer->is_away = true;
    peer->is_refused = is_refused;
    peer->has_logged_conflict = peer->peer_settings.has_conflict;
    snprintf(peer->failure, sizeof peer->failure, "%s", err->message);
}

static void
note_success(struct followed_peer *peer)
{
    const struct follow_loop_options *options = &peer->follow_loop->options;
    if (peer->is_away)
        log_info(options->log, options->resumed_text,
                 log_text("source-cluster", peer->cluster->name));
    peer->is_away = false;
    peer->is_refused = false;
    peer->has_logged_conflict = false;
    peer->succeeded_at = clock_wall();
    peer->pause = PAUSE_MIN;
}

/* False: the fiber shall end. */
static bool
pause_peer(struct followed_peer *peer)
{
    int64_t until = clock_monotonic() + peer->pause;
    enum wake wake = WAKE_READY;
    check(peer->is_away && fiber_deadline() == NEVER);
    for (peer->is_hurried = false; wake == WAKE_READY && !peer->is_hurried;)
        wake = fiber_cond_wait(&peer->hurried, until);
    return wake != WAKE_CANCELLED;
}

static void
follow_peer(void *argument)
{
    struct followed_peer *peer = argument;
    struct follow_loop *follow_loop = peer->follow_loop;
    while (!follow_loop->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        peer->peer_settings.has_conflict = false;
        struct error *err = follow_loop->options.round(peer, arena);
        check(err != NULL || !peer->peer_settings.has_conflict);
        if (follow_loop->is_stopping)
            break;
        if (err == NULL)
            note_success(peer);
        else
            note_failure(peer, err);
        followed_peer_check(peer);
        peer->rounds++;
        fiber_cond_broadcast(&peer->ended);
        if (err == NULL)
            continue;
        if (!pause_peer(peer))
            break;
        peer->pause = peer->pause * 2 > PAUSE_MAX ? PAUSE_MAX : peer->pause * 2;
    }
    latch_done(&follow_loop->fibers);
}

static void
start_peer(struct follow_loop *follow_loop, const struct cluster *cluster)
{
    const struct follow_loop_options *options = &follow_loop->options;
    struct followed_peer *peer = options->make(options->context, cluster);
    check(peer->failed != NULL);
    peer->follow_loop = follow_loop;
    peer->cluster = cluster;
    peer->client = peer_client_new(&options->ways, cluster);
    peer->pause = PAUSE_MIN;
    fiber_cond_init(&peer->hurried);
    fiber_cond_init(&peer->ended);
    followed_peer_check(peer);
    if (options->begin != NULL)
        options->begin(peer);
    list_push_back(&follow_loop->peers, &peer->node);
    latch_add(&follow_loop->fibers, 1);
    peer->fiber = fiber_start(options->fiber_name, follow_peer, peer);
}

void
follow_loop_start(struct follow_loop *follow_loop, const struct follow_loop_options *options)
{
    check(route_is_here(owner_of_domains()));
    *follow_loop = (struct follow_loop){.options = *options};
    list_init(&follow_loop->peers);
    latch_init(&follow_loop->fibers, 0);
    const struct cluster_group *group = options->ways.group;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        bool has_address = cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0';
        if (cluster != group->current && cluster->is_enabled && has_address)
            start_peer(follow_loop, cluster);
    }
}

void
follow_loop_stop(struct follow_loop *follow_loop)
{
    check(route_is_here(owner_of_domains()) && !follow_loop->is_stopping);
    follow_loop->is_stopping = true;
    list_each(node, &follow_loop->peers)
        fiber_cancel(list_entry(node, struct followed_peer, node)->fiber);
    list_each(node, &follow_loop->peers)
        fiber_cond_broadcast(&list_entry(node, struct followed_peer, node)->ended);
    latch_wait(&follow_loop->fibers);
}

void
follow_loop_free(struct follow_loop *follow_loop)
{
    check(follow_loop->is_stopping && follow_loop->fibers.open == 0);
    while (!list_is_empty(&follow_loop->peers)) {
        struct followed_peer *peer =
            list_entry(list_pop_front(&follow_loop->peers), struct followed_peer, node);
        struct grpc_client *client = peer->client;
        peer_settings_free(&peer->peer_settings);
        follow_loop->options.drop(peer);
        grpc_client_free(client);
    }
}

/* Ends the pause, or an attempt that hangs, and waits for the end of a round. False: no time. */
static bool
try_peer(struct followed_peer *peer, int64_t deadline)
{
    uint64_t before = peer->rounds;
    grpc_client_hurry(peer->client);
    peer->is_hurried = true;
    fiber_cond_broadcast(&peer->hurried);
    while (peer->rounds == before && !peer->follow_loop->is_stopping)
        if (fiber_cond_wait(&peer->ended, deadline) != WAKE_READY)
            return false;
    return true;
}

void
follow_loop_try_away(struct follow_loop *follow_loop, int64_t deadline)
{
    check(route_is_here(owner_of_domains()));
    list_each(node, &follow_loop->peers) {
        struct followed_peer *peer = list_entry(node, struct followed_peer, node);
        /* The first round may be one that began when the peer was still away. */
        for (int tries = 0; tries < 2 && peer->is_away && !follow_loop->is_stopping; tries++)
            if (!try_peer(peer, deadline))
                return;
    }
}

struct error *
follow_loop_rest(int64_t begin, struct arena *arena)
{
    int64_t next = begin + POLL_INTERVAL, now = clock_monotonic();
    check(begin <= now);
    return next > now ? fiber_sleep(next - now, arena) : NULL;
}
