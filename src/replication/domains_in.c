/* domains_in.c - see domains_in.h.
 *
 * The place in a peer's log is kept in memory and stored from time to time: after many messages, or
 * when the peer has nothing more. It is never ahead of what was applied durably, and only what is
 * stored is acknowledged. Messages that come again after a restart change nothing. */
#include "replication/domains_in.h"

#include "base/check.h"
#include "base/list.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "fiber/sync.h"
#include "replication/peer.h"
#include "rpc/client.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH             "/uber.cadence.admin.v1.AdminAPI/GetDomainReplicationMessages"
#define CALL_TIMEOUT     (10 * NS_PER_S)
#define PAUSE_MIN        (100 * NS_PER_MS)
#define PAUSE_MAX        (5 * NS_PER_S)
#define POLL_INTERVAL    NS_PER_S /* of a peer that answers at once though it has nothing */
#define UNSTORED_MAX     200      /* messages until the place is stored */
#define FROM_START       (-2)     /* lower than any id, and not -1, which is "my last ack" */
#define PLACE_IS_UNKNOWN (-1)

struct peer {
    struct list node;
    struct domains_in *in;
    const struct cluster *cluster;
    struct grpc_client *client;
    struct fiber *fiber;
    int64_t place;     /* applied up to here, in its log; PLACE_IS_UNKNOWN at first */
    int64_t stored;    /* the same as the store has it: this is acknowledged, so that the peer keeps
                        * what we would ask for again after a crash */
    bool has_place;    /* `place` was read from the store */
    unsigned unstored; /* messages since it was stored */
    bool is_moved;     /* and is not stored */
    bool is_away;      /* the last call failed; for the log */
    bool is_refused;   /* it wants another token; for the log, too */
    bool has_told_all; /* since the start, it had nothing more for us at least once */
    int64_t pause;     /* until the next try */
    struct counter *fetched, *applied, *failed;
    struct histogram *latency;
};

struct domains_in {
    struct domains_in_options options;
    struct list peers;
    struct latch fibers;
    struct gauge *dead_newest;
    bool has_caught_up; /* and said so */
    bool is_stopping;
};

/* --- one round ----------------------------------------------------------------------------------
 */

static struct error *
fetch(struct peer *peer, struct arena *arena, const ADMIN(ReplicationMessages) **messages)
{
    ADMIN(GetDomainReplicationMessagesRequest) *request =
        message_new(arena, ADMIN_TYPE(get_domain_replication_messages_request));
    bool is_known = peer->place != PLACE_IS_UNKNOWN;
    request->cluster_name = (char *)peer->in->options.group->current->name;
    request->last_retrieved_message_id =
        presence_make_int64(arena, (struct maybe_int64){true, is_known ? peer->place : FROM_START});
    request->last_processed_message_id =
        presence_make_int64(arena, (struct maybe_int64){true, peer->stored});
    ADMIN(GetDomainReplicationMessagesResponse) *response = NULL;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err =
        rpc_client_call(peer->client, PATH, &request->base, arena,
                        ADMIN_TYPE(get_domain_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err == NULL && response->messages == NULL)
        err = error_new(arena, ERR_UNCATEGORISED, "the answer has no messages");
    if (err == NULL)
        *messages = response->messages;
    return err;
}

/* Time since the change was made there, by the two clusters' clocks. */
static void
observe_latency(struct peer *peer, const ADMIN(ReplicationTask) *task, struct arena *arena)
{
    struct maybe_int64 created;
    if (presence_read_timestamp(arena, "creation_time", task->creation_time, &created) != NULL ||
        !created.is_set)
        return;
    int64_t latency = clock_wall() - created.value;
    histogram_observe(peer->latency, latency > 0 ? latency : 0);
}

/* Rows of the entity table; they stand beside the tasks, so the place stays. */
static struct error *
apply_entities(struct peer *peer, const ADMIN(ReplicationMessages) *messages, struct arena *arena)
{
    size_t count = messages->n_entity_records;
    struct entity_records rows = {arena_zalloc(arena, count, sizeof *rows.records), 0};
    for (size_t i = 0; i < count; i++) {
        STORED(EntityRecord) *row = NULL;
        struct error *err = message_decode(arena, STORED_TYPE(entity_record),
                                           presence_read_bytes(messages->entity_records[i]), &row);
        if (err != NULL) /* of a version to come: it is told again with its next change */
            log_warn(peer->in->options.log, "A row of a peer's entity table cannot be read.",
                     log_text("source-cluster", peer->cluster->name), log_error(err));
        else
            rows.records[rows.count++] = row;
    }
    peer->unstored += rows.count > 0;
    return domains_apply_entities(peer->in->options.domains, peer->cluster->name, &rows, arena);
}

/* Applies in order; the place moves with each message that is done. */
static struct error *
apply(struct peer *peer, const ADMIN(ReplicationMessages) *messages, struct arena *arena)
{
    const struct domains_in *in = peer->in;
    counter_add(peer->fetched, messages->n_replication_tasks);
    struct error *err = apply_entities(peer, messages, arena);
    if (err != NULL)
        return err;
    for (size_t i = 0; i < messages->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = messages->replication_tasks[i];
        err = domains_apply(in->options.domains, peer->cluster->name, task, arena);
        if (err != NULL)
            return err;
        peer->place = task->source_task_id;
        peer->unstored++;
        peer->is_moved = true;
        counter_add(peer->applied, 1);
        observe_latency(peer, task, arena);
    }
    if (messages->n_replication_tasks > 0)
        gauge_set(in->dead_newest, (int64_t)domains_newest_dead(in->options.domains));
    if (peer->place != messages->last_retrieved_message_id) {
        peer->place = messages->last_retrieved_message_id;
        peer->is_moved = true;
    }
    return NULL;
}

static struct error *
store_place(struct peer *peer, bool is_idle, struct arena *arena)
{
    struct domains *domains = peer->in->options.domains;
    check(peer->has_place);
    bool is_due = is_idle || peer->unstored >= UNSTORED_MAX || peer->stored == PLACE_IS_UNKNOWN;
    if (!peer->is_moved || !is_due || domains_notification_version(domains) == 0)
        return NULL; /* an empty cluster keeps no place, see domains.h */
    struct error *err = domains_set_position(domains, peer->cluster->name, peer->place, arena);
    if (err == NULL) {
        peer->stored = peer->place;
        peer->is_moved = false;
        peer->unstored = 0;
    }
    return err;
}

/* Every enabled peer is followed, and each has told all it knows. */
static bool
all_have_told(const struct domains_in *in)
{
    const struct cluster_group *group = in->options.group;
    size_t untold = 0;
    for (size_t i = 0; i < group->count; i++)
        untold += group->clusters[i].is_enabled && &group->clusters[i] != group->current;
    list_each(node, &in->peers)
        untold -= list_entry(node, struct peer, node)->has_told_all;
    return untold == 0;
}

static void
note_told_all(struct peer *peer)
{
    struct domains_in *in = peer->in;
    peer->has_told_all = true;
    if (in->has_caught_up || in->options.caught_up == NULL || !all_have_told(in))
        return;
    in->has_caught_up = true;
    in->options.caught_up(in->options.context);
}

/* A peer that does not wait until it has something is not asked all the time. */
static struct error *
rest(int64_t begin, struct arena *arena)
{
    int64_t next = begin + POLL_INTERVAL, now = clock_monotonic();
    return next > now ? fiber_sleep(next - now, arena) : NULL;
}

static struct error *
peer_round(struct peer *peer, struct arena *arena)
{
    struct domains *domains = peer->in->options.domains;
    struct error *err = NULL;
    if (!peer->has_place)
        err = domains_position(domains, peer->cluster->name, arena, &peer->place);
    if (err != NULL)
        return err;
    if (!peer->has_place)
        peer->stored = peer->place;
    peer->has_place = true;
    int64_t begin = clock_monotonic();
    const ADMIN(ReplicationMessages) *messages = NULL;
    err = fetch(peer, arena, &messages);
    if (err != NULL)
        return error_wrap(err, "asking cluster %s", peer->cluster->name);
    err = apply(peer, messages, arena);
    bool is_idle = messages->n_replication_tasks == 0 && messages->n_entity_records == 0;
    if (err == NULL)
        err = store_place(peer, is_idle, arena);
    if (err == NULL && is_idle) {
        note_told_all(peer);
        err = rest(begin, arena);
    }
    return err;
}

/* --- a fiber per peer ---------------------------------------------------------------------------
 */

static void
note_failure(struct peer *peer, const struct error *err)
{
    counter_add(peer->failed, 1);
    bool is_refused = err->kind == ERR_ACCESS_DENIED;
    if (is_refused && !peer->is_refused)
        log_warn(peer->in->options.log, PEER_REFUSES,
                 log_text("source-cluster", peer->cluster->name), log_error(err));
    else if (!peer->is_away)
        log_warn(peer->in->options.log,
                 "The domain changes of a cluster cannot be followed, trying again.",
                 log_text("source-cluster", peer->cluster->name), log_error(err));
    peer->is_away = true;
    peer->is_refused = is_refused;
}

static void
note_success(struct peer *peer)
{
    if (peer->is_away)
        log_info(peer->in->options.log, "The domain changes of a cluster are followed again.",
                 log_text("source-cluster", peer->cluster->name));
    peer->is_away = false;
    peer->is_refused = false;
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
        mark("domain_peer_failed");
        note_failure(peer, err);
        if (fiber_sleep(peer->pause, arena) != NULL)
            break;
        peer->pause = peer->pause * 2 > PAUSE_MAX ? PAUSE_MAX : peer->pause * 2;
    }
    latch_done(&peer->in->fibers);
}

static void
start_peer(struct domains_in *in, const struct cluster *cluster)
{
    struct peer *peer = memory_zalloc(1, sizeof *peer);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "domains", NULL};
    const struct peer_ways ways = {in->options.group, in->options.tls, in->options.tokens};
    *peer = (struct peer){
        .in = in,
        .cluster = cluster,
        .client = peer_client_new(&ways, cluster),
        .place = PLACE_IS_UNKNOWN,
        .stored = PLACE_IS_UNKNOWN,
        .pause = PAUSE_MIN,
        .fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                   "Messages that a peer sent.", labels),
        .applied = metrics_counter(metrics, "cadence_replication_tasks_applied",
                                   "Messages that were applied, superseded or parked.", labels),
        .failed = metrics_counter(metrics, "cadence_replication_tasks_failed",
                                  "Rounds of following a peer that failed.", labels),
        .latency = metrics_histogram(metrics, "cadence_replication_tasks_lag",
                                     "Time from a change in a peer to its effect here.", labels),
    };
    list_push_back(&in->peers, &peer->node);
    latch_add(&in->fibers, 1);
    peer->fiber = fiber_start("domains-in", follow_peer, peer);
}

struct domains_in *
domains_in_start(const struct domains_in_options *options)
{
    check(loop_index(loop_self()) == 0);
    check(options->domains != NULL && options->group != NULL && options->metrics != NULL);
    struct domains_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    list_init(&in->peers);
    latch_init(&in->fibers, 0);
    in->dead_newest = metrics_gauge(options->metrics, "cadence_domain_replication_dlq_max_level",
                                    "The newest id in the dead letter queue of domains.", NULL);
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
domains_in_stop(struct domains_in *in)
{
    check(loop_index(loop_self()) == 0 && !in->is_stopping);
    in->is_stopping = true;
    list_each(node, &in->peers)
        fiber_cancel(list_entry(node, struct peer, node)->fiber);
    latch_wait(&in->fibers);
    while (!list_is_empty(&in->peers)) {
        struct peer *peer = list_entry(list_pop_front(&in->peers), struct peer, node);
        grpc_client_free(peer->client);
        memory_free(peer);
    }
    memory_free(in);
}
