/* domains_in.c - see domains_in.h.
 *
 * The position in a peer's log is kept in memory and stored from time to time: after many messages,
 * or when the peer has nothing more. It is never ahead of what was applied durably, and only what
 * is stored is acknowledged. Messages that come again after a restart change nothing. */
#include "replication/in/domains_in.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "replication/in/follow_loop.h"
#include "route/owner.h"
#include "rpc/client.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH             "/uber.cadence.admin.v1.AdminAPI/GetDomainReplicationMessages"
#define CALL_TIMEOUT     (10 * NS_PER_S)
#define SHORT_TIMEOUT    (3 * NS_PER_S) /* while somebody waits to hear that all have sent */
#define UNSTORED_MAX     200            /* messages until the position is stored */
#define FROM_START       (-2)           /* lower than any id, and not -1, which is "my last ack" */
#define POSITION_UNKNOWN (-1)

struct domain_source {
    struct followed_peer base;
    struct domains_in *in;
    int64_t position;  /* applied up to here, in its log; POSITION_UNKNOWN at first */
    int64_t stored;    /* what the store has: this is acknowledged, so that the peer keeps what we
                        * would ask for again after a crash */
    bool has_position; /* `position` was read from the store */
    unsigned unstored; /* messages since it was stored */
    bool is_moved;     /* `position` is not what is stored */
    bool has_sent_all; /* since the start, it had nothing more for us at least once */
    struct counter *fetched, *applied;
    struct histogram *latency;
};

struct domains_in {
    struct domains_in_options options;
    struct follow_loop follow_loop;
    struct gauge *dead_newest;
    bool has_caught_up;  /* options.caught_up was called, since all were last asked */
    unsigned generation; /* how often all were asked */
};

static bool
is_waived(const struct domains_in *in, const struct cluster *cluster)
{
    for (size_t i = 0; in->options.waived != NULL && in->options.waived[i] != NULL; i++)
        if (strcmp(in->options.waived[i], cluster->name) == 0)
            return true;
    return false;
}

/* True between two rounds. Positions may fall: a source that was restored starts over. */
static void
domain_source_check(const struct domain_source *source)
{
    check(source->has_position ||
          (source->stored == POSITION_UNKNOWN && !source->is_moved && source->unstored == 0));
    check(!source->has_position || source->is_moved || source->stored == source->position);
    check(source->has_sent_all || !source->in->has_caught_up ||
          is_waived(source->in, source->base.cluster));
    check(source->has_position || !source->has_sent_all);
}

/* --- one round ----------------------------------------------------------------------------------
 */

static struct error *
fetch(struct domain_source *domain_source, struct arena *arena,
      const ADMIN(ReplicationMessages) **messages)
{
    ADMIN(GetDomainReplicationMessagesRequest) *request =
        message_new(arena, ADMIN_TYPE(get_domain_replication_messages_request));
    bool is_known = domain_source->position != POSITION_UNKNOWN;
    request->cluster_name = (char *)domain_source->in->options.group->current->name;
    request->last_retrieved_message_id = presence_make_int64(
        arena, (struct maybe_int64){true, is_known ? domain_source->position : FROM_START});
    request->last_processed_message_id =
        presence_make_int64(arena, (struct maybe_int64){true, domain_source->stored});
    ADMIN(GetDomainReplicationMessagesResponse) *response = NULL;
    bool is_waited_for =
        domain_source->in->options.caught_up != NULL && !domain_source->in->has_caught_up;
    fiber_set_deadline(clock_monotonic() + (is_waited_for ? SHORT_TIMEOUT : CALL_TIMEOUT));
    struct error *err =
        rpc_client_call(domain_source->base.client, PATH, &request->base, arena,
                        ADMIN_TYPE(get_domain_replication_messages_response), &response);
    fiber_set_deadline(NEVER);
    if (err == NULL)
        err = peer_settings_check(&domain_source->base.peer_settings,
                                  domain_source->in->options.group, domain_source->base.cluster,
                                  presence_read_bytes(response->group_settings), arena);
    if (err == NULL && response->messages == NULL)
        err = error_new(arena, ERR_UNCATEGORISED, "the answer has no messages");
    if (err == NULL)
        *messages = response->messages;
    return err;
}

/* Time since the change was made there, by the two clusters' clocks. */
static void
observe_latency(struct domain_source *domain_source, const ADMIN(ReplicationTask) *task,
                struct arena *arena)
{
    struct maybe_int64 created;
    if (presence_read_timestamp(arena, "creation_time", task->creation_time, &created) != NULL ||
        !created.is_set)
        return;
    int64_t latency = clock_wall() - created.value;
    histogram_observe(domain_source->latency, latency > 0 ? latency : 0);
}

/* Rows of the entity table; they come beside the tasks and do not move the position. */
static struct error *
apply_entities(struct domain_source *domain_source, const ADMIN(ReplicationMessages) *messages,
               struct arena *arena)
{
    size_t count = messages->n_entity_records;
    struct entity_records rows = {arena_zalloc(arena, count, sizeof *rows.records), 0};
    for (size_t i = 0; i < count; i++) {
        STORED(EntityRecord) *row = NULL;
        struct error *err = message_decode(arena, STORED_TYPE(entity_record),
                                           presence_read_bytes(messages->entity_records[i]), &row);
        if (err != NULL) /* of a newer version: its next change sends it again */
            log_warn(domain_source->in->options.log,
                     "A row of a peer's entity table cannot be read.",
                     log_text("source-cluster", domain_source->base.cluster->name), log_error(err));
        else
            rows.records[rows.count++] = row;
    }
    domain_source->unstored += rows.count > 0;
    return domains_apply_entities(domain_source->in->options.domains,
                                  domain_source->base.cluster->name, &rows, arena);
}

/* Applies in order; the position moves with each message that is done. */
static struct error *
apply(struct domain_source *domain_source, const ADMIN(ReplicationMessages) *messages,
      struct arena *arena)
{
    const struct domains_in *in = domain_source->in;
    check(domain_source->has_position);
    counter_add(domain_source->fetched, messages->n_replication_tasks);
    struct error *err = apply_entities(domain_source, messages, arena);
    if (err != NULL)
        return err;
    for (size_t i = 0; i < messages->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = messages->replication_tasks[i];
        err = domains_apply(in->options.domains, domain_source->base.cluster->name, task, arena);
        if (err != NULL)
            return err;
        domain_source->position = task->source_task_id;
        domain_source->unstored++;
        domain_source->is_moved = true;
        counter_add(domain_source->applied, 1);
        observe_latency(domain_source, task, arena);
    }
    if (messages->n_replication_tasks > 0)
        gauge_set(in->dead_newest, (int64_t)domains_newest_dead_letter(in->options.domains));
    if (domain_source->position != messages->last_retrieved_message_id) {
        domain_source->position = messages->last_retrieved_message_id;
        domain_source->is_moved = true;
    }
    return NULL;
}

static struct error *
store_position(struct domain_source *domain_source, bool is_idle, struct arena *arena)
{
    struct domains *domains = domain_source->in->options.domains;
    check(domain_source->has_position);
    bool is_due = is_idle || domain_source->unstored >= UNSTORED_MAX ||
                  domain_source->stored == POSITION_UNKNOWN;
    if (!domain_source->is_moved || !is_due || domains_notification_version(domains) == 0)
        return NULL; /* an empty cluster stores no position, see domains.h */
    struct error *err = domains_set_position(domains, domain_source->base.cluster->name,
                                             domain_source->position, arena);
    if (err == NULL) {
        domain_source->stored = domain_source->position;
        domain_source->is_moved = false;
        domain_source->unstored = 0;
    }
    return err;
}

/* Every enabled peer is followed, and each has sent all that it had. */
static bool
all_have_sent(const struct domains_in *in)
{
    const struct cluster_group *group = in->options.group;
    size_t missing = 0;
    for (size_t i = 0; i < group->count; i++)
        missing += group->clusters[i].is_enabled && &group->clusters[i] != group->current;
    list_each(node, &in->follow_loop.peers) {
        const struct domain_source *source = list_entry(node, struct domain_source, base.node);
        missing -= source->has_sent_all || is_waived(in, source->base.cluster);
    }
    check(missing < group->count); /* only enabled peers are followed */
    return missing == 0;
}

void
domains_in_ask_again(struct domains_in *in)
{
    check(route_is_here(owner_of_domains()) && in->has_caught_up);
    in->generation++;
    in->has_caught_up = false;
    list_each(node, &in->follow_loop.peers)
        list_entry(node, struct domain_source, base.node)->has_sent_all = false;
}

static void
note_sent_all(struct domain_source *domain_source, unsigned generation)
{
    struct domains_in *in = domain_source->in;
    if (generation != in->generation)
        return; /* the round began before all were asked again */
    domain_source->has_sent_all = true;
    if (in->has_caught_up || in->options.caught_up == NULL || !all_have_sent(in))
        return;
    in->has_caught_up = true;
    in->options.caught_up(in->options.context);
}

static struct error *
peer_round(struct followed_peer *followed_peer, struct arena *arena)
{
    struct domain_source *domain_source = (struct domain_source *)followed_peer;
    struct domains *domains = domain_source->in->options.domains;
    struct error *err = NULL;
    check(route_is_here(owner_of_domains()) && fiber_deadline() == NEVER);
    domain_source_check(domain_source);
    if (!domain_source->has_position)
        err = domains_position(domains, domain_source->base.cluster->name, arena,
                               &domain_source->position);
    if (err != NULL)
        return err;
    if (!domain_source->has_position)
        domain_source->stored = domain_source->position;
    domain_source->has_position = true;
    int64_t begin = clock_monotonic();
    unsigned generation = domain_source->in->generation;
    const ADMIN(ReplicationMessages) *messages = NULL;
    err = fetch(domain_source, arena, &messages);
    if (err != NULL)
        return error_wrap(err, "asking cluster %s", domain_source->base.cluster->name);
    err = apply(domain_source, messages, arena);
    bool is_idle = messages->n_replication_tasks == 0 && messages->n_entity_records == 0;
    if (err == NULL)
        err = store_position(domain_source, is_idle, arena);
    if (err == NULL && is_idle) {
        note_sent_all(domain_source, generation);
        err = follow_loop_rest(begin, arena);
    }
    return err;
}

/* --- life ---------------------------------------------------------------------------------------
 */

static struct followed_peer *
make_peer(void *context, const struct cluster *cluster)
{
    struct domains_in *in = context;
    struct domain_source *domain_source = memory_zalloc(1, sizeof *domain_source);
    struct metrics *metrics = in->options.metrics;
    const char *labels[] = {"source_cluster", cluster->name, "kind", "domains", NULL};
    domain_source->in = in;
    domain_source->position = domain_source->stored = POSITION_UNKNOWN;
    domain_source->fetched = metrics_counter(metrics, "cadence_replication_tasks_fetched",
                                             "Messages that a peer sent.", labels);
    domain_source->applied =
        metrics_counter(metrics, "cadence_replication_tasks_applied",
                        "Messages that were applied, superseded or kept as dead letters.", labels);
    domain_source->base.failed = metrics_counter(metrics, "cadence_replication_tasks_failed",
                                                 "Rounds of following a peer that failed.", labels);
    domain_source->latency =
        metrics_histogram(metrics, "cadence_replication_tasks_lag",
                          "Time from a change in a peer to its effect here.", labels);
    return &domain_source->base;
}

static void
drop_peer(struct followed_peer *domain_source)
{
    memory_free(domain_source);
}

struct domains_in *
domains_in_start(const struct domains_in_options *options)
{
    check(options->domains != NULL && options->group != NULL && options->metrics != NULL);
    struct domains_in *in = memory_zalloc(1, sizeof *in);
    in->options = *options;
    in->dead_newest = metrics_gauge(options->metrics, "cadence_domain_replication_dlq_max_level",
                                    "The newest id in the dead letter queue of domains.", NULL);
    const struct follow_loop_options follow_loop = {
        .ways = {options->group, options->tls, options->tokens},
        .log = options->log,
        .fiber_name = "domains-in",
        .failing_text = "The domain changes of a cluster cannot be followed, trying again.",
        .resumed_text = "The domain changes of a cluster are followed again.",
        .probe = "domain_peer_failed",
        .make = make_peer,
        .round = peer_round,
        .drop = drop_peer,
        .context = in,
    };
    follow_loop_start(&in->follow_loop, &follow_loop);
    return in;
}

void
domains_in_stop(struct domains_in *in)
{
    follow_loop_stop(&in->follow_loop);
    list_each(node, &in->follow_loop.peers)
        domain_source_check(list_entry(node, struct domain_source, base.node));
    follow_loop_free(&in->follow_loop);
    memory_free(in);
}
