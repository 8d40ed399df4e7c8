/* runs_in.c - see runs_in.h. */
#include "replication/runs_in.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "replication/pursuit.h"
#include "replication/runs_apply.h"
#include "route/route.h"
#include "rpc/client.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH         "/uber.cadence.admin.v1.AdminAPI/GetReplicationMessages"
#define DLQ_PATH     "/uber.cadence.admin.v1.AdminAPI/GetDLQReplicationMessages"
#define RESEND_PATH  "/uber.cadence.admin.v1.AdminAPI/ResendReplicationTasks"
#define CALL_TIMEOUT (10 * NS_PER_S)
#define TRY_TIMEOUT  NS_PER_S         /* for a peer that was away, when somebody asks about it */
#define RUN_TIMEOUT  (180 * NS_PER_S) /* for all of a run's events; each page has its own */

struct peer {
    struct followed base;
    struct runs_in *in;
    struct applier *applier;
    struct arena *echo; /* an answer that is applied once more; NULL: none */
    const ADMIN(GetReplicationMessagesResponse) *echoed;
    struct counter *fetched, *resynced;
};

struct runs_in {
    struct runs_in_options options;
    struct pursuit pursuit;
    struct latch operations; /* calls of others that are under way */
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
    request->is_urgent = peer->base.is_away;
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

static struct apply_world
world_of(const struct peer *peer)
{
    const struct runs_in_options *options = &peer->in->options;
    return (struct apply_world){.engine = options->engine,
                                .domains = options->domains,
                                .group = options->group,
                                .client = peer->base.client};
}

/* We were away for so long that messages were dropped: the runs say what they said. */
static struct error *
resync(struct peer *peer, struct arena *arena, bool *is_resynced)
{
    struct apply_world world = world_of(peer);
    const struct log *log = peer->in->options.log;
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < applier_shard_count(peer->applier); i++) {
        struct dropped dropped = {peer->base.cluster->name, i, applier_resync_to(peer->applier, i)};
        if (dropped.to == 0)
            continue;
        log_info(log,
                 "Changes of a cluster were dropped while this one was away: reading its runs.",
                 log_text("source-cluster", peer->base.cluster->name),
                 log_number("shard-id", (int64_t)i));
        err = apply_all_runs(&world, &dropped, log, arena);
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
peer_round(struct followed *followed, struct arena *arena)
{
    struct peer *peer = (struct peer *)followed;
    play_echo(peer);
    applier_wait_room(peer->applier);
    int64_t begin = clock_monotonic();
    ADMIN(GetReplicationMessagesRequest) *request = make_request(peer, arena);
    ADMIN(GetReplicationMessagesResponse) *response = NULL;
    struct arena *kept = arena_new(0);
    fiber_set_deadline(begin + CALL_TIMEOUT);
    struct error *err = rpc_client_call(peer->base.client, PATH, &request->base, kept,
                                        ADMIN_TYPE(get_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err == NULL)
        err = agreement_check(&peer->base.agreement, peer->in->options.group, peer->base.cluster,
                              presence_read_bytes(response->group_settings), kept);
    if (err != NULL) {
        err = error_wrap(error_copy(arena, err), "asking cluster %s", peer->base.cluster->name);
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
    if (err != NULL || is_resynced || count > 0 || has_more || peer->base.is_away)
        return err; /* one that was away is known to be back at once */
    return pursuit_rest(begin, arena);
}

/* --- life ---- */

static struct followed *
make_peer(void *context, const struct cluster *cluster)
{
    struct runs_in *in = context;
    struct peer *peer = memory_zalloc(1, sizeof *peer);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "runs", NULL};
    peer->in = in;
    peer->fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                    "Messages that a peer sent.", labels);
    peer->base.failed = metrics_counter(metrics, "cadence_replication_tasks_fetch_failed",
                                        "Rounds of following a peer that failed.", labels);
    peer->resynced = metrics_counter(metrics, "replication_shards_resynced",
                                     "Shards of a peer of which the runs were read.", labels);
    return &peer->base;
}

static void
begin_peer(struct followed *followed)
{
    struct peer *peer = (struct peer *)followed;
    peer->applier = applier_new(&(struct applier_options){
        .world = peer->in->options, .source = followed->cluster, .client = followed->client});
}

static void
drop_peer(struct followed *followed)
{
    struct peer *peer = (struct peer *)followed;
    applier_free(peer->applier);
    if (peer->echo != NULL)
        arena_free(peer->echo);
    memory_free(peer);
}

struct runs_in *
runs_in_start(const struct runs_in_options *options)
{
    check(options->engine != NULL && options->domains != NULL && options->group != NULL);
    struct runs_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    latch_init(&in->operations, 0);
    const struct pursuit_options pursuit = {
        .ways = {options->group, options->tls, options->tokens},
        .log = options->log,
        .fiber_name = "runs-in",
        .fails = "The runs of a cluster cannot be followed, trying again.",
        .goes_on = "The runs of a cluster are followed again.",
        .mark = "runs_peer_failed",
        .make = make_peer,
        .begin = begin_peer,
        .round = peer_round,
        .drop = drop_peer,
        .context = in,
    };
    pursuit_start(&in->pursuit, &pursuit);
    return in;
}

void
runs_in_stop(struct runs_in *in)
{
    pursuit_stop(&in->pursuit);
    latch_wait(&in->operations);
    pursuit_free(&in->pursuit);
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
    list_each(node, &operation->in->pursuit.peers) {
        struct peer *peer = list_entry(node, struct peer, base.node);
        if (strcmp(peer->base.cluster->name, operation->source) == 0)
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
    operation->err = rpc_client_call(peer->base.client, RESEND_PATH, &request->base, arena,
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
        rpc_client_call(peer->base.client, DLQ_PATH, &request->base, operation->arena,
                        ADMIN_TYPE(get_dlqreplication_messages_response), operation->response);
}

/* On loop 0, as long as the peers are there. */
static void
operate_here(void *argument)
{
    struct operation *operation = argument;
    struct runs_in *in = operation->in;
    const struct peer *peer = find_peer(operation);
    if (in->pursuit.is_stopping)
        operation->err = error_new(operation->arena, ERR_UNAVAILABLE, "The server is stopping.");
    if (peer == NULL || in->pursuit.is_stopping)
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

/* What is told of a peer that was away is found out now: it may have come back since the last try.
 */
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
    latch_add(&listing->in->operations, 1);
    pursuit_try_away(&listing->in->pursuit, clock_monotonic() + TRY_TIMEOUT);
    latch_done(&listing->in->operations);
    listing->states = arena_zalloc(arena, group->count, sizeof *listing->states);
    list_each(node, &listing->in->pursuit.peers) {
        const struct peer *peer = list_entry(node, struct peer, base.node);
        check(listing->count < group->count);
        struct peer_state *state = &listing->states[listing->count++];
        *state = (struct peer_state){
            .cluster = peer->base.cluster,
            .failure = peer->base.is_away ? arena_text(arena, peer->base.failure) : NULL,
            .has_other_settings = peer->base.is_away && peer->base.has_told_conflict,
            .heard = peer->base.heard};
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
