/* domains_out.c - GetDomainReplicationMessages: a peer follows the log of our domains.
 *
 * The peer says how far it has read and how far it has applied. The second is its acknowledgement
 * and lets the log be trimmed. Changes of local domains are skipped. If there is nothing to send,
 * the call waits for a few seconds, but never so long that the answer would miss the caller's
 * deadline: Cadence's clusters give 10 s. Every global domain is sent to every cluster, as
 * Cadence does, whether the domain lists that cluster or not: it may list it tomorrow. */
#include "base/check.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "domain/message.h"
#include "fiber/clock.h"
#include "replication/inside.h"
#include "route/ask.h"
#include "wire/message.h"
#include "wire/presence.h"

#define MESSAGES_MAX    100
#define BYTES_MAX       (2u * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */
#define WAIT_MAX        (4 * NS_PER_S)
#define WAIT_MARGIN     NS_PER_S /* before the caller's deadline */
#define FROM_LAST_ACK   (-1)
#define ACK_NAME_FORMAT "cluster:%s"

/* One call, where the domains are. */
struct domain_poll {
    struct domains *domains;
    const INTERNAL(DomainLogPoll) * request; /* follower: "cluster:<name>" */
    bool begins; /* it is to be told everything (domains_follower_begins) */
    struct arena *arena;
    ADMIN(ReplicationMessages) *messages; /* the answer */
};

/* Where to read on. -1: after what was acknowledged last; lower: from the very beginning. */
static uint64_t
position_of(const struct domain_poll *domain_poll)
{
    int64_t position = domain_poll->request->retrieved;
    if (domain_poll->begins)
        return 0;
    if (position == FROM_LAST_ACK)
        position = domains_follower_position(domain_poll->domains, domain_poll->request->follower);
    return position < 0 ? 0 : (uint64_t)position;
}

/* Adds rows of the entity table; returns their size in bytes. */
static size_t
add_entities(struct domain_poll *domain_poll, const STORED(DomainChange) *change)
{
    ADMIN(ReplicationMessages) *messages = domain_poll->messages;
    size_t bytes = 0, count = messages->n_entity_records + change->n_entities;
    ProtobufCBinaryData *records = arena_zalloc(domain_poll->arena, count, sizeof *records);
    if (messages->n_entity_records > 0)
        memcpy(records, messages->entity_records, messages->n_entity_records * sizeof *records);
    messages->entity_records = records;
    for (size_t i = 0; i < change->n_entities; i++) {
        STORED(EntityRecord) sent = *change->entities[i];
        sent.notification_version = 0; /* it is this cluster's own */
        struct slice encoded = message_encode(domain_poll->arena, &sent.base);
        records[messages->n_entity_records++] = presence_make_bytes(encoded);
        bytes += encoded.length;
    }
    check(messages->n_entity_records == count);
    return bytes;
}

/* Adds the changes of global domains and of entities; *after is how far the answer reaches. */
static void
add_messages(struct domain_poll *domain_poll, const struct domain_changes *changes, uint64_t *after)
{
    ADMIN(ReplicationMessages) *messages = domain_poll->messages;
    size_t bytes = 0;
    check(messages->n_replication_tasks == 0);
    messages->replication_tasks =
        arena_zalloc(domain_poll->arena, changes->count, sizeof *messages->replication_tasks);
    for (size_t i = 0; i < changes->count && bytes < BYTES_MAX; i++) {
        check(changes->version[i] > *after || i == 0); /* i == 0: it may start over */
        *after = changes->version[i];
        if (changes->change[i]->record == NULL) {
            bytes += add_entities(domain_poll, changes->change[i]);
            continue;
        }
        if (!changes->change[i]->record->domain->is_global_domain)
            continue;
        ADMIN(ReplicationTask) *task =
            domain_replication_task(changes->change[i], domain_poll->arena);
        messages->replication_tasks[messages->n_replication_tasks++] = task;
        bytes += protobuf_c_message_get_packed_size(&task->base);
    }
    if (changes->count == 0)
        *after = changes->newest;
    check(*after <= changes->newest && messages->n_replication_tasks <= changes->count);
    messages->has_more = *after < changes->newest;
}

/* Reads on until there is something to send, or the deadline has come. */
static struct error *
read_messages(struct domain_poll *domain_poll)
{
    uint64_t after = position_of(domain_poll);
    int64_t deadline = clock_monotonic() + domain_poll->request->wait;
    struct domain_changes changes;
    bool has_ended = false;
    while (domain_poll->messages->n_replication_tasks == 0 &&
           domain_poll->messages->n_entity_records == 0 && !has_ended) {
        struct error *err = domains_read_log(domain_poll->domains, after, MESSAGES_MAX, deadline,
                                             domain_poll->arena, &changes);
        if (err != NULL)
            return err;
        has_ended = changes.count == 0 && !changes.is_cut;
        add_messages(domain_poll, &changes, &after);
    }
    domain_poll->messages->last_retrieved_message_id = (int64_t)after;
    domains_note_given(domain_poll->domains, domain_poll->request->follower, after);
    return NULL;
}

static struct error *
serve_poll(void *domains, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    const INTERNAL(DomainLogPoll) *request = argument;
    struct domain_poll domain_poll = {
        .domains = domains,
        .request = request,
        .begins = domains_follower_begins(domains, request->follower, request->retrieved),
        .arena = arena,
        .messages = result};
    int64_t processed = domain_poll.begins ? -1 : request->processed;
    struct error *err = processed < 0
                            ? NULL
                            : domains_set_follower_position(domains, domain_poll.request->follower,
                                                            (uint64_t)processed, arena);
    return err != NULL ? err : read_messages(&domain_poll);
}

/* Lost: the peer asks again from where it was. Twice: what is acknowledged is so already, and the
 * rest reads. */
static const struct route_question poll_question = {
    .name = "domains.poll",
    .request = INTERNAL_TYPE(domain_log_poll),
    .answer = ADMIN_TYPE(replication_messages),
    .serve = serve_poll,
    .may_come_twice = true,
};

/* If there is little time, half of it is for the way back. */
int64_t
replication_wait_until(int64_t call_deadline)
{
    int64_t now = clock_monotonic();
    int64_t left = call_deadline > now ? call_deadline - now : 0;
    int64_t wait = left > 2 * WAIT_MARGIN ? left - WAIT_MARGIN : left / 2;
    return now + (wait > WAIT_MAX ? WAIT_MAX : wait);
}

struct error *
replication_check_peer(const struct cluster_group *group, const char *name, struct arena *arena)
{
    const struct cluster *cluster = cluster_group_find(group, name);
    if (cluster == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Cluster '%s' is not in the cluster group of %s; add it to "
                         "clusterGroupMetadata there.",
                         name, group->current->name);
    if (cluster == group->current)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Cluster %s asks itself for changes; is the rpcAddress of a peer wrong?",
                         name);
    return NULL;
}

static int64_t
read_id(const GOOGLE(Int64Value) *value)
{
    struct maybe_int64 id = presence_read_int64(value);
    return id.is_set ? id.value : FROM_LAST_ACK;
}

struct error *
replication_get_domain_messages(struct rpc_call *call)
{
    const ADMIN(GetDomainReplicationMessagesRequest) *request =
        (const ADMIN(GetDomainReplicationMessagesRequest) *)call->request;
    ADMIN(GetDomainReplicationMessagesResponse) *response =
        (ADMIN(GetDomainReplicationMessagesResponse) *)call->response;
    const struct replication *replication = replication_of(call);
    struct error *err =
        replication_check_peer(replication->options.group, request->cluster_name, call->arena);
    if (err != NULL)
        return err;
    INTERNAL(DomainLogPoll) poll = INTERNAL_VALUE(DOMAIN_LOG_POLL__INIT);
    poll.follower = arena_format(call->arena, ACK_NAME_FORMAT, request->cluster_name);
    poll.processed = read_id(request->last_processed_message_id);
    poll.retrieved = read_id(request->last_retrieved_message_id);
    poll.wait = replication_wait_until(call->arrival.deadline) - clock_monotonic();
    response->messages = message_new(call->arena, ADMIN_TYPE(replication_messages));
    response->group_settings = presence_make_bytes(replication->settings);
    return route_ask(owner_of_domains(), domains_service(replication->options.domains),
                     &poll_question, &poll, call->arena, response->messages);
}
