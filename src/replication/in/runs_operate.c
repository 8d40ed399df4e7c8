/* runs_operate.c - what operators want of a peer whose runs are followed. See runs_in.h.
 *
 * It is done where the peers are followed, which is where the domains live. All of it is what a
 * peer's messages do anyway, so each question may come twice: what is known already changes
 * nothing. If an answer is lost, the operator asks again. */
#include <string.h>

#include "base/check.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "replication/in/runs_inside.h"
#include "rpc/client.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RESEND_PATH "/uber.cadence.admin.v1.AdminAPI/ResendReplicationTasks"
#define TRY_TIMEOUT NS_PER_S /* for an unreachable peer, when an operator asks for the list */
#define RUN_TIMEOUT (180 * NS_PER_S) /* for all of a run's events; each page has its own */

/* --- where peers are followed ---- */

/* The latch keeps the peers while an operation runs; its fiber's deadline is lower meanwhile. */
struct operation {
    struct runs_in *in;
    const struct run_source *run_source;
    int64_t deadline_before;
};

static struct error *
operation_begin(struct operation *operation, struct runs_in *in, const char *source,
                int64_t timeout, struct arena *arena)
{
    *operation = (struct operation){.in = in};
    list_each(node, &in->follow_loop.peers) {
        struct run_source *run_source = list_entry(node, struct run_source, base.node);
        if (strcmp(run_source->base.cluster->name, source) == 0)
            operation->run_source = run_source;
    }
    if (in->follow_loop.is_stopping)
        return error_new(arena, ERR_UNAVAILABLE, "The server is stopping.");
    if (operation->run_source == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "Cluster '%s' is not one that is followed.",
                         source);
    int64_t latest = clock_monotonic() + timeout;
    operation->deadline_before = fiber_deadline();
    latch_add(&in->operations, 1);
    fiber_set_deadline(latest < operation->deadline_before ? latest : operation->deadline_before);
    return NULL;
}

static void
operation_end(struct operation *operation)
{
    fiber_set_deadline(operation->deadline_before);
    latch_done(&operation->in->operations);
}

static struct error *
serve_apply(void *in, struct owner owner, const void *argument, struct arena *arena, void *answer)
{
    const INTERNAL(PeerApply) *request = argument;
    struct operation operation;
    struct error *err = operation_begin(&operation, in, request->source, PEER_CALL_TIMEOUT, arena);
    if (err != NULL)
        return err;
    struct apply_world world = run_source_world(operation.run_source);
    enum applied applied = apply_task(&world, request->task, true, arena, &err);
    check(applied == APPLIED || err != NULL);
    operation_end(&operation);
    return err;
}

static struct version_item
item_from_message(const INTERNAL(PeerRangeEnd) * message)
{
    return message == NULL ? (struct version_item){0}
                           : (struct version_item){message->event_id, message->version};
}

static struct error *
serve_resend(void *in, struct owner owner, const void *argument, struct arena *arena, void *answer)
{
    const INTERNAL(PeerResend) *request = argument;
    struct replicated_gap range = {
        .key = {request->domain_id, request->workflow_id, request->run_id},
        .base = item_from_message(request->start),
        .end = item_from_message(request->end),
        .is_prior = request->is_prior,
    };
    struct operation operation;
    bool is_away;
    struct error *err = operation_begin(&operation, in, request->source, RUN_TIMEOUT, arena);
    if (err != NULL)
        return err;
    struct apply_world world = run_source_world(operation.run_source);
    err = apply_range(&world, &range, arena, &is_away);
    operation_end(&operation);
    return err;
}

static struct error *
serve_push(void *context, struct owner owner, const void *argument, struct arena *arena,
           void *answer)
{
    struct runs_in *in = context;
    const INTERNAL(PeerPush) *wanted = argument;
    struct operation operation;
    struct error *err = operation_begin(&operation, in, wanted->target, RUN_TIMEOUT, arena);
    if (err != NULL)
        return err;
    ADMIN(ResendReplicationTasksRequest) *request =
        message_new(arena, ADMIN_TYPE(resend_replication_tasks_request));
    ADMIN(ResendReplicationTasksResponse) *response = NULL;
    request->domain_id = wanted->domain_id;
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = wanted->workflow_id;
    request->workflow_execution->run_id = wanted->run_id;
    request->remote_cluster = (char *)in->options.group->current->name;
    err = rpc_client_call(operation.run_source->base.client, RESEND_PATH, &request->base, arena,
                          ADMIN_TYPE(resend_replication_tasks_response), &response);
    operation_end(&operation);
    return err;
}

static INTERNAL(PeerState) *
    state_to_message(const struct run_source *run_source, struct arena *arena)
{
    const struct followed_peer *peer = &run_source->base;
    INTERNAL(PeerState) *state = message_new(arena, INTERNAL_TYPE(peer_state));
    state->cluster = (char *)peer->cluster->name;
    state->is_away = peer->is_away;
    if (peer->is_away)
        state->failure = presence_make_bytes(arena_slice(arena, slice_text(peer->failure)));
    state->has_other_settings = peer->is_away && peer->has_logged_conflict;
    state->succeeded_at = peer->succeeded_at;
    state->waiting = applier_waiting(run_source->applier, arena, &state->oldest);
    state->is_past_wanted =
        run_source->in->is_recovering && !runs_past_is_waived(run_source->in, peer->cluster);
    state->past_read = run_source->past_read;
    state->past_shards = run_source->has_answered ? applier_shard_count(run_source->applier) : 0;
    return state;
}

/* An unreachable peer is asked once more before it is listed: it may have come back since. */
static struct error *
serve_list(void *context, struct owner owner, const void *request, struct arena *arena,
           void *result)
{
    struct runs_in *in = context;
    INTERNAL(PeerStates) *answer = result;
    size_t room = in->options.group->count;
    latch_add(&in->operations, 1);
    follow_loop_try_away(&in->follow_loop, clock_monotonic() + TRY_TIMEOUT);
    latch_done(&in->operations);
    answer->peers = arena_zalloc(arena, room, sizeof *answer->peers);
    list_each(node, &in->follow_loop.peers) {
        check(answer->n_peers < room);
        answer->peers[answer->n_peers++] =
            state_to_message(list_entry(node, struct run_source, base.node), arena);
    }
    return NULL;
}

/* An answer may be on its way that its sender does not remember. */
static struct error *
serve_applied(void *in, struct owner owner, const void *argument, struct arena *arena, void *answer)
{
    const INTERNAL(PeerNamed) *request = argument;
    struct operation operation;
    struct error *err = operation_begin(&operation, in, request->cluster, PEER_CALL_TIMEOUT, arena);
    if (err != NULL)
        return err;
    struct run_source *run_source = (struct run_source *)operation.run_source;
    uint64_t polls = run_source->polls;
    enum wake wake = WAKE_READY;
    while (run_source->is_polling && run_source->polls == polls && wake == WAKE_READY)
        wake = fiber_cond_wait(&run_source->polled, fiber_deadline());
    size_t waiting = applier_applicable(run_source->applier, request->is_all);
    if (wake != WAKE_READY)
        err = wake_error(wake, arena, "waiting for an answer of that cluster");
    else if (waiting > 0)
        err = error_new(arena, ERR_UNAVAILABLE,
                        "%zu messages that cluster %s has sent are not applied here yet.", waiting,
                        request->cluster);
    operation_end(&operation);
    return err;
}

/* --- asking ---- */

/* Lost: who asked does it again. Twice: what is applied or fetched again is known; peers.push asks
 * the other cluster once more, which fetches again and finds it known; peers.list only reads. */

static const struct route_question apply_question = {
    .name = "peers.apply",
    .request = INTERNAL_TYPE(peer_apply),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_apply,
    .may_come_twice = true,
};
static const struct route_question resend_question = {
    .name = "peers.resend",
    .request = INTERNAL_TYPE(peer_resend),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_resend,
    .may_come_twice = true,
};
static const struct route_question push_question = {
    .name = "peers.push",
    .request = INTERNAL_TYPE(peer_push),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_push,
    .may_come_twice = true,
};
static const struct route_question list_question = {
    .name = "peers.list",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(peer_states),
    .serve = serve_list,
    .may_come_twice = true,
};

static const struct route_question applied_question = {
    .name = "peers.applied",
    .request = INTERNAL_TYPE(peer_named),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_applied,
    .may_come_twice = true,
};

static struct error *
operate(struct runs_in *in, const struct route_question *question, const void *request,
        struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return route_ask(owner_of_domains(), &in->service, question, request, arena, &answer);
}

struct error *
runs_in_apply(struct runs_in *in, const char *source, const ADMIN(ReplicationTask) *task,
              struct arena *arena)
{
    INTERNAL(PeerApply) request = INTERNAL_VALUE(PEER_APPLY__INIT);
    request.source = (char *)source;
    request.task = (ADMIN(ReplicationTask) *)task;
    return operate(in, &apply_question, &request, arena);
}

struct error *
runs_in_check_applied(struct runs_in *in, const char *source, bool is_all, struct arena *arena)
{
    INTERNAL(PeerNamed) request = INTERNAL_VALUE(PEER_NAMED__INIT);
    request.cluster = (char *)source;
    request.is_all = is_all;
    return operate(in, &applied_question, &request, arena);
}

static INTERNAL(PeerRangeEnd) item_to_message(struct version_item item)
{
    INTERNAL(PeerRangeEnd) message = INTERNAL_VALUE(PEER_RANGE_END__INIT);
    message.event_id = item.event_id;
    message.version = item.event_version;
    return message;
}

struct error *
runs_in_resend(struct runs_in *in, const char *source, const struct replicated_gap *range,
               struct arena *arena)
{
    INTERNAL(PeerResend) request = INTERNAL_VALUE(PEER_RESEND__INIT);
    INTERNAL(PeerRangeEnd) start = item_to_message(range->base), end = item_to_message(range->end);
    request.source = (char *)source;
    request.domain_id = (char *)range->key.domain_id;
    request.workflow_id = (char *)range->key.workflow_id;
    request.run_id = (char *)range->key.run_id;
    request.start = &start;
    request.end = &end;
    request.is_prior = range->is_prior;
    return operate(in, &resend_question, &request, arena);
}

struct error *
runs_in_push(struct runs_in *in, const char *target, const struct run_key *key, struct arena *arena)
{
    INTERNAL(PeerPush) request = INTERNAL_VALUE(PEER_PUSH__INIT);
    request.target = (char *)target;
    request.domain_id = (char *)key->domain_id;
    request.workflow_id = (char *)key->workflow_id;
    request.run_id = (char *)key->run_id;
    return operate(in, &push_question, &request, arena);
}

static struct peer_state
state_from_message(const INTERNAL(PeerState) * state, const struct cluster *cluster,
                   struct arena *arena)
{
    struct slice failure = presence_read_bytes(state->failure);
    return (struct peer_state){
        .cluster = cluster,
        .failure = state->is_away ? arena_text_of(arena, failure) : NULL,
        .has_other_settings = state->has_other_settings,
        .succeeded_at = state->succeeded_at,
        .waiting = state->waiting,
        .oldest = state->oldest,
        .is_past_wanted = state->is_past_wanted,
        .past_read = state->past_read,
        .past_shards = state->past_shards,
    };
}

struct error *
runs_in_list(struct runs_in *in, struct arena *arena, const struct peer_state **states,
             size_t *count)
{
    INTERNAL(Empty) request = INTERNAL_VALUE(EMPTY__INIT);
    INTERNAL(PeerStates) answer = INTERNAL_VALUE(PEER_STATES__INIT);
    struct error *err =
        route_ask(owner_of_domains(), &in->service, &list_question, &request, arena, &answer);
    struct peer_state *found = arena_zalloc(arena, answer.n_peers + 1, sizeof *found);
    *states = found;
    *count = 0;
    for (size_t i = 0; err == NULL && i < answer.n_peers; i++) {
        const struct cluster *cluster =
            cluster_group_find(in->options.group, answer.peers[i]->cluster);
        if (cluster != NULL) /* a host with an older file may have more */
            found[(*count)++] = state_from_message(answer.peers[i], cluster, arena);
    }
    return err;
}
