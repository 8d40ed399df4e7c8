/* pursuit.c - see pursuit.h. */
#include "replication/pursuit.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"

#define PAUSE_MIN     (100 * NS_PER_MS)
#define PAUSE_MAX     (5 * NS_PER_S)
#define POLL_INTERVAL NS_PER_S /* of a peer that answers at once though it has nothing */

static void
log_conflict(const struct followed *peer, const struct error *err)
{
    log_at(peer->pursuit->options.log, LOG_ERROR,
           "A cluster has other group settings than this one and is not followed. Make "
           "clusterGroupMetadata the same in both files and restart the server whose file changed; "
           "following goes on from where it stopped.",
           log_text("source-cluster", peer->cluster->name), log_error(err));
}

static void
note_failure(struct followed *peer, const struct error *err)
{
    const struct pursuit_options *options = &peer->pursuit->options;
    bool is_refused = err->kind == ERR_ACCESS_DENIED;
    counter_add(peer->failed, 1);
    mark(options->mark);
    if (is_refused && !peer->is_refused)
        log_warn(options->log, PEER_REFUSES, log_text("source-cluster", peer->cluster->name),
                 log_error(err));
    else if (peer->agreement.is_broken && !peer->has_told_conflict)
        log_conflict(peer, err);
    else if (!peer->is_away)
        log_warn(options->log, options->fails, log_text("source-cluster", peer->cluster->name),
                 log_error(err));
    peer->is_away = true;
    peer->is_refused = is_refused;
    peer->has_told_conflict = peer->agreement.is_broken;
    snprintf(peer->failure, sizeof peer->failure, "%s", err->message);
}

static void
note_success(struct followed *peer)
{
    const struct pursuit_options *options = &peer->pursuit->options;
    if (peer->is_away)
        log_info(options->log, options->goes_on, log_text("source-cluster", peer->cluster->name));
    peer->is_away = false;
    peer->is_refused = false;
    peer->has_told_conflict = false;
    peer->heard = clock_wall();
    peer->pause = PAUSE_MIN;
}

/* False: the fiber shall end. */
static bool
pause_peer(struct followed *peer)
{
    int64_t until = clock_monotonic() + peer->pause;
    enum wake wake = WAKE_READY;
    for (peer->is_hurried = false; wake == WAKE_READY && !peer->is_hurried;)
        wake = fiber_cond_wait(&peer->hurried, until);
    return wake != WAKE_CANCELLED;
}

static void
follow_peer(void *argument)
{
    struct followed *peer = argument;
    struct pursuit *pursuit = peer->pursuit;
    while (!pursuit->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        peer->agreement.is_broken = false;
        struct error *err = pursuit->options.round(peer, arena);
        if (pursuit->is_stopping)
            break;
        if (err == NULL)
            note_success(peer);
        else
            note_failure(peer, err);
        peer->rounds++;
        fiber_cond_broadcast(&peer->ended);
        if (err == NULL)
            continue;
        if (!pause_peer(peer))
            break;
        peer->pause = peer->pause * 2 > PAUSE_MAX ? PAUSE_MAX : peer->pause * 2;
    }
    latch_done(&pursuit->fibers);
}

static void
start_peer(struct pursuit *pursuit, const struct cluster *cluster)
{
    const struct pursuit_options *options = &pursuit->options;
    struct followed *peer = options->make(options->context, cluster);
    check(peer->failed != NULL);
    peer->pursuit = pursuit;
    peer->cluster = cluster;
    peer->client = peer_client_new(&options->ways, cluster);
    peer->pause = PAUSE_MIN;
    fiber_cond_init(&peer->hurried);
    fiber_cond_init(&peer->ended);
    if (options->begin != NULL)
        options->begin(peer);
    list_push_back(&pursuit->peers, &peer->node);
    latch_add(&pursuit->fibers, 1);
    peer->fiber = fiber_start(options->fiber_name, follow_peer, peer);
}

void
pursuit_start(struct pursuit *pursuit, const struct pursuit_options *options)
{
    check(loop_index(loop_self()) == 0);
    *pursuit = (struct pursuit){.options = *options};
    list_init(&pursuit->peers);
    latch_init(&pursuit->fibers, 0);
    const struct cluster_group *group = options->ways.group;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        bool has_address = cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0';
        if (cluster != group->current && cluster->is_enabled && has_address)
            start_peer(pursuit, cluster);
    }
}

void
pursuit_stop(struct pursuit *pursuit)
{
    check(loop_index(loop_self()) == 0 && !pursuit->is_stopping);
    pursuit->is_stopping = true;
    list_each(node, &pursuit->peers)
        fiber_cancel(list_entry(node, struct followed, node)->fiber);
    list_each(node, &pursuit->peers)
        fiber_cond_broadcast(&list_entry(node, struct followed, node)->ended);
    latch_wait(&pursuit->fibers);
}

void
pursuit_free(struct pursuit *pursuit)
{
    check(pursuit->is_stopping);
    while (!list_is_empty(&pursuit->peers)) {
        struct followed *peer = list_entry(list_pop_front(&pursuit->peers), struct followed, node);
        struct grpc_client *client = peer->client;
        agreement_free(&peer->agreement);
        pursuit->options.drop(peer);
        grpc_client_free(client);
    }
}

/* Ends the pause, or an attempt that hangs, and waits for the end of a round. False: no time. */
static bool
try_peer(struct followed *peer, int64_t deadline)
{
    uint64_t before = peer->rounds;
    grpc_client_hurry(peer->client);
    peer->is_hurried = true;
    fiber_cond_broadcast(&peer->hurried);
    while (peer->rounds == before && !peer->pursuit->is_stopping)
        if (fiber_cond_wait(&peer->ended, deadline) != WAKE_READY)
            return false;
    return true;
}

void
pursuit_try_away(struct pursuit *pursuit, int64_t deadline)
{
    check(loop_index(loop_self()) == 0);
    list_each(node, &pursuit->peers) {
        struct followed *peer = list_entry(node, struct followed, node);
        /* The first round may be one that began when the peer was still away. */
        for (int tries = 0; tries < 2 && peer->is_away && !pursuit->is_stopping; tries++)
            if (!try_peer(peer, deadline))
                return;
    }
}

struct error *
pursuit_rest(int64_t begin, struct arena *arena)
{
    int64_t next = begin + POLL_INTERVAL, now = clock_monotonic();
    return next > now ? fiber_sleep(next - now, arena) : NULL;
}
