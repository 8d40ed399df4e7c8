/* domains_in.c - see domains_in.h.
 *
 * The place in a peer's log is kept in memory and stored from time to time: after many messages, or
 * when the peer has nothing more. It is never ahead of what was applied durably, and only what is
 * stored is acknowledged. Messages that come again after a restart change nothing. */
#include "replication/domains_in.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "replication/pursuit.h"
#include "rpc/client.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH             "/uber.cadence.admin.v1.AdminAPI/GetDomainReplicationMessages"
#define CALL_TIMEOUT     (10 * NS_PER_S)
#define UNSTORED_MAX     200  /* messages until the place is stored */
#define FROM_START       (-2) /* lower than any id, and not -1, which is "my last ack" */
#define PLACE_IS_UNKNOWN (-1)

struct peer {
    struct followed base;
    struct domains_in *in;
    int64_t place;     /* applied up to here, in its log; PLACE_IS_UNKNOWN at first */
    int64_t stored;    /* the same as the store has it: this is acknowledged, so that the peer keeps
                        * what we would ask for again after a crash */
    bool has_place;    /* `place` was read from the store */
    unsigned unstored; /* messages since it was stored */
    bool is_moved;     /* and is not stored */
    bool has_told_all; /* since the start, it had nothing more for us at least once */
    struct counter *fetched, *applied;
    struct histogram *latency;
};

struct domains_in {
    struct domains_in_options options;
    struct pursuit pursuit;
    struct gauge *dead_newest;
    bool has_caught_up; /* and said so */
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
        rpc_client_call(peer->base.client, PATH, &request->base, arena,
                        ADMIN_TYPE(get_domain_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err == NULL)
        err = agreement_check(&peer->base.agreement, peer->in->options.group, peer->base.cluster,
                              presence_read_bytes(response->group_settings), arena);
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
                     log_text("source-cluster", peer->base.cluster->name), log_error(err));
        else
            rows.records[rows.count++] = row;
    }
    peer->unstored += rows.count > 0;
    return domains_apply_entities(peer->in->options.domains, peer->base.cluster->name, &rows,
                                  arena);
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
        err = domains_apply(in->options.domains, peer->base.cluster->name, task, arena);
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
    struct error *err = domains_set_position(domains, peer->base.cluster->name, peer->place, arena);
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
    list_each(node, &in->pursuit.peers)
        untold -= list_entry(node, struct peer, base.node)->has_told_all;
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

static struct error *
peer_round(struct followed *followed, struct arena *arena)
{
    struct peer *peer = (struct peer *)followed;
    struct domains *domains = peer->in->options.domains;
    struct error *err = NULL;
    if (!peer->has_place)
        err = domains_position(domains, peer->base.cluster->name, arena, &peer->place);
    if (err != NULL)
        return err;
    if (!peer->has_place)
        peer->stored = peer->place;
    peer->has_place = true;
    int64_t begin = clock_monotonic();
    const ADMIN(ReplicationMessages) *messages = NULL;
    err = fetch(peer, arena, &messages);
    if (err != NULL)
        return error_wrap(err, "asking cluster %s", peer->base.cluster->name);
    err = apply(peer, messages, arena);
    bool is_idle = messages->n_replication_tasks == 0 && messages->n_entity_records == 0;
    if (err == NULL)
        err = store_place(peer, is_idle, arena);
    if (err == NULL && is_idle) {
        note_told_all(peer);
        err = pursuit_rest(begin, arena);
    }
    return err;
}

/* --- life ---------------------------------------------------------------------------------------
 */

static struct followed *
make_peer(void *context, const struct cluster *cluster)
{
    struct domains_in *in = context;
    struct peer *peer = memory_zalloc(1, sizeof *peer);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "domains", NULL};
    peer->in = in;
    peer->place = peer->stored = PLACE_IS_UNKNOWN;
    peer->fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                    "Messages that a peer sent.", labels);
    peer->applied = metrics_counter(metrics, "cadence_replication_tasks_applied",
                                    "Messages that were applied, superseded or parked.", labels);
    peer->base.failed = metrics_counter(metrics, "cadence_replication_tasks_failed",
                                        "Rounds of following a peer that failed.", labels);
    peer->latency = metrics_histogram(metrics, "cadence_replication_tasks_lag",
                                      "Time from a change in a peer to its effect here.", labels);
    return &peer->base;
}

static void
drop_peer(struct followed *peer)
{
    memory_free(peer);
}

struct domains_in *
domains_in_start(const struct domains_in_options *options)
{
    check(options->domains != NULL && options->group != NULL && options->metrics != NULL);
    struct domains_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    in->dead_newest = metrics_gauge(options->metrics, "cadence_domain_replication_dlq_max_level",
                                    "The newest id in the dead letter queue of domains.", NULL);
    const struct pursuit_options pursuit = {
        .ways = {options->group, options->tls, options->tokens},
        .log = options->log,
        .fiber_name = "domains-in",
        .fails = "The domain changes of a cluster cannot be followed, trying again.",
        .goes_on = "The domain changes of a cluster are followed again.",
        .mark = "domain_peer_failed",
        .make = make_peer,
        .round = peer_round,
        .drop = drop_peer,
        .context = in,
    };
    pursuit_start(&in->pursuit, &pursuit);
    return in;
}

void
domains_in_stop(struct domains_in *in)
{
    pursuit_stop(&in->pursuit);
    pursuit_free(&in->pursuit);
    memory_free(in);
}
