/* runs_in.c - see runs_in.h. */
#include "replication/runs_in.h"

#include <stdio.h>

#include "base/check.h"
#include "base/list.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "fiber/sync.h"
#include "replication/peer.h"
#include "replication/runs_apply.h"
#include "route/route.h"
#include "rpc/client.h"
#include "wire/message.h"

#define PATH          "/uber.cadence.admin.v1.AdminAPI/GetReplicationMessages"
#define DLQ_PATH      "/uber.cadence.admin.v1.AdminAPI/GetDLQReplicationMessages"
#define RESEND_PATH   "/uber.cadence.admin.v1.AdminAPI/ResendReplicationTasks"
#define CALL_TIMEOUT  (10 * NS_PER_S)
#define RUN_TIMEOUT   (180 * NS_PER_S) /* for all of a run's events; each page has its own */
#define PAUSE_MIN     (100 * NS_PER_MS)
#define PAUSE_MAX     (5 * NS_PER_S)
#define POLL_INTERVAL NS_PER_S /* of a peer that answers at once though it has nothing */

struct peer {
    struct list node;
    struct runs_in *in;
    const struct cluster *cluster;
    struct grpc_client *client;
    struct applier *applier;
    struct fiber *fiber;
    bool is_away;       /* the last call failed */
    char failure[256];  /* and why */
    int64_t heard;      /* when a call last succeeded, by the wall clock; 0: none has */
    int64_t pause;      /* until the next try */
    struct arena *echo; /* an answer that is applied once more; NULL: none */
    const ADMIN(GetReplicationMessagesResponse) *echoed;
    struct counter *fetched, *failed, *resynced;
};

struct runs_in {
    struct runs_in_options options;
    struct list peers;
    struct latch fibers;
    struct latch operations; /* calls of others that are under way */
    bool is_stopping;
};

/* --- one round ---- */

static ADMIN(GetReplicationMessagesRequest) *
make_request(const struct peer *peer, struct arena *arena)
{
    ADMIN(GetReplicationMessagesRequest) *request =
        message_new(arena, ADMIN_TYPE(get_replication_messages_request));
    uint32_t count = applier_shard_count(peer->applier);
    request->cluster_name = (char *)peer->in->options.group->current->name;
    request->can_resync = true;
    request->tokens = arena_zalloc(arena, count, sizeof request->tokens[0]);
    request->n_tokens = count;
    for (uint32_t i = 0; i < count; i++) {
        ADMIN(ReplicationToken) *token = message_new(arena, ADMIN_TYPE(replication_token));
        token->shard_id = (int32_t)i;
        token->last_retrieved_message_id = applier_retrieved(peer->applier, i);
        token->last_processed_message_id = applier_processed(peer->applier, i);
        request->tokens[i] = token;
    }
    return request;
}

/* A peer that does not wait until it has something is not asked all the time. */
static struct error *
rest(int64_t begin, struct arena *arena)
{
    int64_t next = begin + POLL_INTERVAL, now = clock_monotonic();
    return next > now ? fiber_sleep(next - now, arena) : NULL;
}

static struct apply_world
world_of(const struct peer *peer)
{
    const struct runs_in_options *options = &peer->in->options;
    return (struct apply_world){.engine = options->engine,
                                .domains = options->domains,
                                .group = options->group,
                                .client = peer->client};
}

/* We were away for so long that messages were dropped: the runs say what they said. */
static struct error *
resync(struct peer *peer, struct arena *arena, bool *is_resynced)
{
    struct apply_world world = world_of(peer);
    const struct log *log = peer->in->options.log;
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < applier_shard_count(peer->applier); i++) {
        if (applier_resync_to(peer->applier, i) == 0)
            continue;
        log_info(
            log, "Changes of a cluster were dropped while this one was away: reading its runs.",
            log_text("source-cluster", peer->cluster->name), log_number("shard-id", (int64_t)i));
        err = apply_all_runs(&world, i, log, arena);
        if (err == NULL) {
            mark("replication_resynced");
            counter_add(peer->resynced, 1);
            applier_note_resynced(peer->applier, i);
            *is_resynced = true;
        }
    }
    return err;
}

/* What came before comes again: other answers have overtaken it. */
static void
play_echo(struct peer *peer)
{
    size_t count;
    bool has_more;
    if (peer->echo == NULL || entropy_below(3) != 0)
        return;
    mark("replication_answer_again");
    applier_add(peer->applier, peer->echoed, peer->echo, &count, &has_more);
    peer->echo = NULL;
}

static void
keep_echo(struct peer *peer, const ADMIN(GetReplicationMessagesResponse) *response)
{
    unsigned every = peer->in->options.echo;
    if (every == 0 || peer->echo != NULL || entropy_below(every) != 0)
        return;
    peer->echo = arena_new(0);
    peer->echoed = message_copy(peer->echo, &response->base);
}

static struct error *
peer_round(struct peer *peer, struct arena *arena)
{
    play_echo(peer);
    applier_wait_room(peer->applier);
    int64_t begin = clock_monotonic();
    ADMIN(GetReplicationMessagesRequest) *request = make_request(peer, arena);
    ADMIN(GetReplicationMessagesResponse) *response = NULL;
    struct arena *kept = arena_new(0);
    fiber_set_deadline(begin + CALL_TIMEOUT);
    struct error *err = rpc_client_call(peer->client, PATH, &request->base, kept,
                                        ADMIN_TYPE(get_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err != NULL) {
        err = error_wrap(error_copy(arena, err), "asking cluster %s", peer->cluster->name);
        arena_free(kept);
        return err;
    }
    size_t count;
    bool has_more;
    keep_echo(peer, response);
    applier_add(peer->applier, response, kept, &count, &has_more);
    counter_add(peer->fetched, count);
    bool is_resynced = false;
    err = resync(peer, arena, &is_resynced);
    if (err != NULL || is_resynced || count > 0 || has_more)
        return err;
    return rest(begin, arena);
}

/* --- a fiber per peer ---- */

static void
note_failure(struct peer *peer, const struct error *err)
{
    counter_add(peer->failed, 1);
    if (!peer->is_away)
        log_warn(peer->in->options.log, "The runs of a cluster cannot be followed, trying again.",
                 log_text("source-cluster", peer->cluster->name), log_error(err));
    peer->is_away = true;
    snprintf(peer->failure, sizeof peer->failure, "%s", err->message);
}

static void
note_success(struct peer *peer)
{
    if (peer->is_away)
        log_info(peer->in->options.log, "The runs of a cluster are followed again.",
                 log_text("source-cluster", peer->cluster->name));
    peer->is_away = false;
    peer->heard = clock_wall();
    peer->pause = PAUSE_MIN;
}

static void
follow_peer(void *argument)
{
    struct peer *peer = argument;
    while (!peer->in->is_stopping) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = peer_round(peer, arena);
        if (peer->in->is_stopping)
            break;
        if (err == NULL) {
            note_success(peer);
            continue;
        }
        mark("runs_peer_failed");
        note_failure(peer, err);
        if (fiber_sleep(peer->pause, arena) != NULL)
            break;
        peer->pause = peer->pause * 2 > PAUSE_MAX ? PAUSE_MAX : peer->pause * 2;
    }
    latch_done(&peer->in->fibers);
}

/* --- life ---- */

static void
start_peer(struct runs_in *in, const struct cluster *cluster)
{
    struct peer *peer = memory_zalloc(1, sizeof *peer);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "runs", NULL};
    const struct peer_ways ways = {in->options.group, in->options.tls, in->options.tokens};
    peer->in = in;
    peer->cluster = cluster;
    peer->client = peer_client_new(&ways, cluster);
    peer->applier = applier_new(
        &(struct applier_options){.world = in->options, .source = cluster, .client = peer->client});
    peer->pause = PAUSE_MIN;
    peer->fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                    "Messages that a peer sent.", labels);
    peer->failed = metrics_counter(metrics, "cadence_replication_tasks_fetch_failed",
                                   "Rounds of following a peer that failed.", labels);
    peer->resynced = metrics_counter(metrics, "replication_shards_resynced",
                                     "Shards of a peer of which the runs were read.", labels);
    list_push_back(&in->peers, &peer->node);
    latch_add(&in->fibers, 1);
    peer->fiber = fiber_start("runs-in", follow_peer, peer);
}

struct runs_in *
runs_in_start(const struct runs_in_options *options)
{
    check(loop_index(loop_self()) == 0);
    check(options->engine != NULL && options->domains != NULL && options->group != NULL);
    struct runs_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    list_init(&in->peers);
    latch_init(&in->fibers, 0);
    latch_init(&in->operations, 0);
    const struct cluster_group *group = options->group;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        bool has_address = cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0';
        if (cluster != group->current && cluster->is_enabled && has_address)
            start_peer(in, cluster);
    }
    return in;
}

void
runs_in_stop(struct runs_in *in)
{
    in->is_stopping = true;
    list_each(node, &in->peers)
        fiber_cancel(list_entry(node, struct peer, node)->fiber);
    latch_wait(&in->fibers);
    latch_wait(&in->operations);
    list_each_safe(node, &in->peers) {
        struct peer *peer = list_entry(node, struct peer, node);
        applier_free(peer->applier);
        grpc_client_free(peer->client);
        if (peer->echo != NULL)
            arena_free(peer->echo);
        memory_free(peer);
    }
    memory_free(in);
}

/* --- for others ---- */

struct operation {
    struct runs_in *in;
    void (*run)(struct operation *operation, const struct peer *peer);
    const char *source; /* the peer that it is about */
    const ADMIN(ReplicationTask) *task;
    const struct foreign_gap *range;
    const struct run_key *key;
    int64_t timeout;
    ADMIN(ReplicationTaskInfo) **infos;
    size_t info_count;
    ADMIN(GetDLQReplicationMessagesResponse) **response;
    struct arena *arena;
    struct error *err;
};

static const struct peer *
find_peer(struct operation *operation)
{
    list_each(node, &operation->in->peers) {
        struct peer *peer = list_entry(node, struct peer, node);
        if (strcmp(peer->cluster->name, operation->source) == 0)
            return peer;
    }
    operation->err = error_new(operation->arena, ERR_BAD_REQUEST,
                               "Cluster '%s' is not one that is followed.", operation->source);
    return NULL;
}

static void
apply_here(struct operation *operation, const struct peer *peer)
{
    struct apply_world world = world_of(peer);
    enum applied applied =
        apply_task(&world, operation->task, true, operation->arena, &operation->err);
    check(applied == APPLIED || operation->err != NULL);
}

static void
resend_here(struct operation *operation, const struct peer *peer)
{
    bool is_away;
    struct apply_world world = world_of(peer);
    operation->err = apply_range(&world, operation->range, operation->arena, &is_away);
}

static void
push_here(struct operation *operation, const struct peer *peer)
{
    struct arena *arena = operation->arena;
    ADMIN(ResendReplicationTasksRequest) *request =
        message_new(arena, ADMIN_TYPE(resend_replication_tasks_request));
    ADMIN(ResendReplicationTasksResponse) *response = NULL;
    request->domain_id = (char *)operation->key->domain_id;
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)operation->key->workflow_id;
    request->workflow_execution->run_id = (char *)operation->key->run_id;
    request->remote_cluster = (char *)peer->in->options.group->current->name;
    operation->err = rpc_client_call(peer->client, RESEND_PATH, &request->base, arena,
                                     ADMIN_TYPE(resend_replication_tasks_response), &response);
}

static void
hydrate_here(struct operation *operation, const struct peer *peer)
{
    ADMIN(GetDLQReplicationMessagesRequest) *request =
        message_new(operation->arena, ADMIN_TYPE(get_dlqreplication_messages_request));
    request->task_infos = operation->infos;
    request->n_task_infos = operation->info_count;
    operation->err =
        rpc_client_call(peer->client, DLQ_PATH, &request->base, operation->arena,
                        ADMIN_TYPE(get_dlqreplication_messages_response), operation->response);
}

/* On loop 0, as long as the peers are there. */
static void
operate_here(void *argument)
{
    struct operation *operation = argument;
    struct runs_in *in = operation->in;
    const struct peer *peer = find_peer(operation);
    if (in->is_stopping)
        operation->err = error_new(operation->arena, ERR_UNAVAILABLE, "The server is stopping.");
    if (peer == NULL || in->is_stopping)
        return;
    int64_t timeout = operation->timeout == 0 ? CALL_TIMEOUT : operation->timeout;
    int64_t before = fiber_deadline(), latest = clock_monotonic() + timeout;
    latch_add(&in->operations, 1);
    fiber_set_deadline(latest < before ? latest : before);
    operation->run(operation, peer);
    fiber_set_deadline(before);
    latch_done(&in->operations);
}

static struct error *
operate(struct operation *operation)
{
    struct error *err = loop_call(loop_at(0), operate_here, operation, operation->arena);
    return err != NULL ? err : operation->err;
}

struct listing {
    struct runs_in *in;
    struct arena *arena;
    struct peer_state *states;
    size_t count;
};

static void
list_here(void *argument)
{
    struct listing *listing = argument;
    struct arena *arena = listing->arena;
    const struct cluster_group *group = listing->in->options.group;
    listing->states = arena_zalloc(arena, group->count, sizeof *listing->states);
    list_each(node, &listing->in->peers) {
        const struct peer *peer = list_entry(node, struct peer, node);
        check(listing->count < group->count);
        struct peer_state *state = &listing->states[listing->count++];
        *state =
            (struct peer_state){.cluster = peer->cluster,
                                .failure = peer->is_away ? arena_text(arena, peer->failure) : NULL,
                                .heard = peer->heard};
        state->waiting = applier_waiting(peer->applier, arena, &state->oldest);
    }
}

struct error *
runs_in_list(struct runs_in *in, struct arena *arena, const struct peer_state **states,
             size_t *count)
{
    struct listing listing = {.in = in, .arena = arena};
    struct error *err = loop_call(loop_at(0), list_here, &listing, arena);
    *states = listing.states;
    *count = listing.count;
    return err;
}

struct error *
runs_in_apply(struct runs_in *in, const char *source, const ADMIN(ReplicationTask) *task,
              struct arena *arena)
{
    struct operation operation = {
        .in = in, .run = apply_here, .source = source, .task = task, .arena = arena};
    return operate(&operation);
}

struct error *
runs_in_resend(struct runs_in *in, const char *source, const struct foreign_gap *range,
               struct arena *arena)
{
    struct operation operation = {.in = in,
                                  .run = resend_here,
                                  .source = source,
                                  .range = range,
                                  .timeout = RUN_TIMEOUT,
                                  .arena = arena};
    return operate(&operation);
}

struct error *
runs_in_push(struct runs_in *in, const char *target, const struct run_key *key, struct arena *arena)
{
    struct operation operation = {.in = in,
                                  .run = push_here,
                                  .source = target,
                                  .key = key,
                                  .timeout = RUN_TIMEOUT,
                                  .arena = arena};
    return operate(&operation);
}

struct error *
runs_in_hydrate(struct runs_in *in, const char *source, ADMIN(ReplicationTaskInfo) **infos,
                size_t count, struct arena *arena,
                ADMIN(GetDLQReplicationMessagesResponse) **response)
{
    struct operation operation = {.in = in,
                                  .run = hydrate_here,
                                  .source = source,
                                  .infos = infos,
                                  .info_count = count,
                                  .response = response,
                                  .arena = arena};
    return operate(&operation);
}
