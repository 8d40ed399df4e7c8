/* runs_out.c - GetReplicationMessages: a peer follows the rows that our shards have for it.
 *
 * The peer says of each shard up to where it has read, and up to where it needs the rows no more. A
 * real Cadence cluster has applied all that it has read: its first number is both. Ours reads on
 * while it applies, and sends two numbers; PROCESSED_NOTHING if it has applied nothing yet.
 *
 * Each place that has some of the shards is asked once, all at the same time: it answers as soon as
 * one of its shards has rows, and then the others are cancelled. If none has, the call waits for a
 * few seconds. The size of an answer is limited: the peer asks again for what does not fit. Shards
 * that we do not have send nothing except failover markers (markers_out.c). */
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "engine/replicated.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "replication/inside.h"
#include "replication/runs.h"
#include "route/owner.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ROWS_MAX   ((size_t)250)             /* of a shard */
#define BYTES_MAX  ((size_t)2 * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */
#define WAIT_SLICE (250 * NS_PER_MS)         /* how soon a shutdown is noticed */

struct run_poll;

/* What a shard has, be it ours or not. */
struct shard_page {
    uint32_t number;
    struct replication_page page;
};

/* The shards of one place. */
struct place_share {
    struct run_poll *run_poll;
    unsigned place;
    struct arena *arena; /* its own: the place fills it */
    struct fiber *fiber; /* that waits for it; NULL: it has ended */
    vector_of(INTERNAL(ReplicationFrom) *) shards;
    INTERNAL(ReplicationPages) answer;
    bool has_tasks;
    struct error *err;
};

struct run_poll {
    struct replication *replication;
    const struct cluster *cluster;
    bool can_resync; /* the peer reads the runs instead, if rows were dropped */
    struct place_share *shares;
    unsigned share_count;
    vector_of(struct shard_page) absent_shards; /* that we do not have */
    bool has_markers;                           /* for one of those */
    struct latch open;
    int64_t deadline; /* of the waiting */
    struct arena *arena;
};

/* --- at the places of the shards ---- */

static struct error *
ask_share(struct place_share *share)
{
    const struct run_poll *run_poll = share->run_poll;
    INTERNAL(ReplicationPoll) poll = INTERNAL_VALUE(REPLICATION_POLL__INIT);
    int64_t wait = run_poll->deadline - clock_monotonic();
    poll.cluster = presence_make_text(run_poll->cluster->name);
    poll.can_resync = run_poll->can_resync;
    poll.rows_max = ROWS_MAX;
    poll.bytes_max = BYTES_MAX / run_poll->share_count;
    poll.wait = wait > 0 ? wait : 0;
    poll.shards = share->shards.items;
    poll.n_shards = share->shards.count;
    return engine_poll_replication(run_poll->replication->options.engine, share->place, &poll,
                                   share->arena, &share->answer);
}

/* They need not wait any longer. */
static void
cancel_shares(struct run_poll *run_poll)
{
    for (unsigned i = 0; i < run_poll->share_count; i++)
        if (run_poll->shares[i].fiber != NULL)
            fiber_cancel(run_poll->shares[i].fiber);
}

static void
share_fiber(void *argument)
{
    struct place_share *share = argument;
    share->err = ask_share(share);
    share->fiber = NULL;
    for (size_t i = 0; share->err == NULL && i < share->answer.n_pages; i++) {
        const INTERNAL(ReplicationPage) *page = share->answer.pages[i];
        share->has_tasks = share->has_tasks || page->n_tasks > 0 || page->resync_to > 0;
    }
    if (share->has_tasks || share->err != NULL)
        cancel_shares(share->run_poll);
    latch_done(&share->run_poll->open);
}

/* Must it answer now, whatever it has? */
static bool
is_over(const struct run_poll *run_poll)
{
    return fiber_is_cancelled() || clock_monotonic() >= fiber_deadline() ||
           atomic_load(&run_poll->replication->is_shutting_down);
}

static void
ask_shares(struct run_poll *run_poll)
{
    latch_init(&run_poll->open, 0);
    for (unsigned i = 0; i < run_poll->share_count; i++) {
        if (run_poll->shares[i].shards.count == 0)
            continue;
        latch_add(&run_poll->open, 1);
        run_poll->shares[i].fiber =
            fiber_start("replication out", share_fiber, &run_poll->shares[i]);
    }
    while (!is_over(run_poll) && !latch_wait_until(&run_poll->open, clock_monotonic() + WAIT_SLICE))
        continue;
    if (run_poll->open.open > 0)
        cancel_shares(run_poll);
    latch_wait(&run_poll->open);
    for (unsigned i = 0; i < run_poll->share_count; i++)
        check(run_poll->shares[i].fiber == NULL);
}

/* --- the answer ---- */

#define TAG(number) ((uint8_t)((number) << 3 | 2)) /* of a field that has a length */

#define VARINT_MAX 10 /* bytes of a 64 bit number */

static size_t
put_varint(uint8_t *to, uint64_t number)
{
    size_t length = 0;
    for (; number >= 0x80; number >>= 7)
        to[length++] = (uint8_t)(number | 0x80);
    to[length++] = (uint8_t)number;
    check(length <= VARINT_MAX);
    return length;
}

struct pieces_list {
    vector_of(struct slice) list;
};

/* The tag and length of a field whose bytes follow as other pieces. */
static struct slice
field_head(uint8_t tag, size_t length, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, 1 + VARINT_MAX);
    bytes[0] = tag;
    return slice_of(bytes, 1 + put_varint(bytes + 1, length));
}

static struct slice
page_rest(const struct replication_page *page, struct arena *arena)
{
    ADMIN(ReplicationMessages) *messages = message_new(arena, ADMIN_TYPE(replication_messages));
    messages->last_retrieved_message_id = (int64_t)page->last;
    messages->has_more = page->has_more;
    messages->resync_to = (int64_t)page->resync_to;
    messages->sync_shard_status = message_new(arena, ADMIN_TYPE(sync_shard_status));
    messages->sync_shard_status->timestamp = presence_make_timestamp(arena, clock_wall());
    return message_encode(arena, &messages->base);
}

/* One entry of the map: shard → messages. */
static void
add_entry(struct pieces_list *pieces, const struct replication_page *page, uint32_t number,
          struct arena *arena)
{
    struct slice *heads = arena_zalloc(arena, page->count, sizeof heads[0]);
    struct slice rest = page_rest(page, arena);
    size_t length = rest.length;
    for (size_t i = 0; i < page->count; i++) {
        heads[i] = field_head(TAG(1), page->tasks[i].length, arena);
        length += heads[i].length + page->tasks[i].length;
    }
    struct slice value = field_head(TAG(2), length, arena);
    uint8_t *key = arena_alloc(arena, 1 + VARINT_MAX);
    key[0] = 1 << 3;
    size_t key_length = 1 + put_varint(key + 1, number);
    struct slice entry = field_head(TAG(1), key_length + value.length + length, arena);
    vector_push_in(&pieces->list, arena, entry);
    vector_push_in(&pieces->list, arena, slice_of(key, key_length));
    vector_push_in(&pieces->list, arena, value);
    for (size_t i = 0; i < page->count; i++) {
        vector_push_in(&pieces->list, arena, heads[i]);
        vector_push_in(&pieces->list, arena, page->tasks[i]);
    }
    vector_push_in(&pieces->list, arena, rest);
}

/* The pages live in the arenas of the shares. */
static void
free_shares(void *kept)
{
    struct run_poll *run_poll = kept;
    check(run_poll->open.open == 0);
    for (unsigned i = 0; i < run_poll->share_count; i++)
        arena_free(run_poll->shares[i].arena);
}

/* A shard without tasks is left out where others have some: it is asked again. */
static bool
is_included(const struct run_poll *run_poll, const struct replication_page *page)
{
    bool has_tasks = run_poll->has_markers;
    for (unsigned i = 0; i < run_poll->share_count; i++)
        has_tasks = has_tasks || run_poll->shares[i].has_tasks;
    return page->count > 0 || page->resync_to > 0 || !has_tasks;
}

static struct replication_page
page_from_message(const INTERNAL(ReplicationPage) * message, struct arena *arena)
{
    struct replication_page page = {
        .tasks = arena_zalloc(arena, message->n_tasks, sizeof page.tasks[0]),
        .count = message->n_tasks,
        .last = message->last,
        .has_more = message->has_more,
        .resync_to = message->resync_to,
    };
    for (size_t i = 0; i < page.count; i++)
        page.tasks[i] = presence_read_bytes(message->tasks[i]);
    return page;
}

static void
answer(struct rpc_call *call, struct run_poll *run_poll)
{
    struct pieces_list pieces = {0};
    for (unsigned i = 0; i < run_poll->share_count; i++) {
        const INTERNAL(ReplicationPages) *pages = &run_poll->shares[i].answer;
        for (size_t j = 0; j < pages->n_pages; j++) {
            struct replication_page page = page_from_message(pages->pages[j], call->arena);
            if (is_included(run_poll, &page))
                add_entry(&pieces, &page, pages->pages[j]->shard, call->arena);
        }
    }
    vector_each(absent_shard, &run_poll->absent_shards) {
        if (is_included(run_poll, &absent_shard->page))
            add_entry(&pieces, &absent_shard->page, absent_shard->number, call->arena);
    }
    ADMIN(GetReplicationMessagesResponse) *response =
        (ADMIN(GetReplicationMessagesResponse) *)call->response;
    response->shard_count = (int32_t)engine_shard_count(run_poll->replication->options.engine);
    response->group_settings = presence_make_bytes(run_poll->replication->settings);
    call->pieces = pieces.list.items;
    call->piece_count = pieces.list.count;
    call->release = free_shares;
    call->kept = run_poll;
}

/* --- the question ---- */

/* Up to where the peer needs rows no more; negative: it does not say. */
static int64_t
acknowledged(const ADMIN(ReplicationToken) *token)
{
    int64_t retrieved = token->last_retrieved_message_id;
    int64_t processed = token->last_processed_message_id;
    if (processed == PROCESSED_NOTHING)
        return -1;
    if (processed <= 0)
        return retrieved;
    return retrieved < 0 || processed < retrieved ? processed : retrieved;
}

/* A shard that only the peer has. */
static void
add_absent_shard(struct run_poll *run_poll, const ADMIN(ReplicationToken) *token)
{
    check((uint32_t)token->shard_id >= engine_shard_count(run_poll->replication->options.engine));
    struct shard_page absent = {.number = (uint32_t)token->shard_id};
    markers_read(run_poll->replication, run_poll->cluster, token->last_retrieved_message_id,
                 run_poll->arena, &absent.page);
    run_poll->has_markers = run_poll->has_markers || absent.page.count > 0;
    vector_push_in(&run_poll->absent_shards, run_poll->arena, absent);
}

static void
add_token(struct run_poll *run_poll, const ADMIN(ReplicationToken) *token)
{
    struct engine *engine = run_poll->replication->options.engine;
    if (token->shard_id >= 0 && (uint32_t)token->shard_id >= engine_shard_count(engine))
        add_absent_shard(run_poll, token);
    if (token->shard_id < 0 || (uint32_t)token->shard_id >= engine_shard_count(engine))
        return;
    unsigned place = route_place_of(owner_of_shard((uint32_t)token->shard_id));
    check(place < run_poll->share_count);
    INTERNAL(ReplicationFrom) *from = message_new(run_poll->arena, INTERNAL_TYPE(replication_from));
    from->shard = (uint32_t)token->shard_id;
    from->after = token->last_retrieved_message_id;
    from->acknowledged = acknowledged(token);
    vector_push_in(&run_poll->shares[place].shards, run_poll->arena, from);
}

/* An error of one shard counts only if the others have nothing. */
static struct error *
run_poll_error(const struct run_poll *run_poll)
{
    struct error *err = NULL;
    for (unsigned i = 0; i < run_poll->share_count; i++) {
        if (run_poll->shares[i].has_tasks || run_poll->has_markers)
            return NULL;
        if (run_poll->shares[i].err != NULL && run_poll->shares[i].err->kind != ERR_CANCELLED)
            err = run_poll->shares[i].err;
    }
    return err;
}

struct error *
replication_get_messages(struct rpc_call *call)
{
    const ADMIN(GetReplicationMessagesRequest) *request =
        (const ADMIN(GetReplicationMessagesRequest) *)call->request;
    struct replication *replication = replication_of(call);
    const struct cluster_group *group = replication->options.group;
    struct error *err = replication_check_peer(group, request->cluster_name, call->arena);
    if (err != NULL)
        return err;
    struct run_poll *run_poll = arena_make(call->arena, struct run_poll);
    *run_poll = (struct run_poll){
        .replication = replication,
        .cluster = cluster_group_find(group, request->cluster_name),
        .can_resync = request->can_resync,
        .share_count = route_place_count(),
        .shares = arena_zalloc(call->arena, route_place_count(), sizeof(struct place_share)),
        .deadline = replication_wait_until(call->arrival.deadline),
        .arena = call->arena,
    };
    for (unsigned i = 0; i < run_poll->share_count; i++)
        run_poll->shares[i] = (struct place_share){
            .run_poll = run_poll,
            .place = i,
            .arena = arena_new(0),
            .answer = INTERNAL_VALUE(REPLICATION_PAGES__INIT),
        };
    for (size_t i = 0; i < request->n_tokens; i++)
        add_token(run_poll, request->tokens[i]);
    if (run_poll->has_markers || request->is_urgent ||
        domains_are_recovering(
            replication->options.domains)) /* those who ask wait for us, or we for them */
        run_poll->deadline = 0;
    ask_shares(run_poll);
    err = run_poll_error(run_poll);
    check(call->pieces == NULL && call->release == NULL);
    if (err == NULL) {
        answer(call, run_poll);
        return NULL;
    }
    err = error_copy(call->arena, err);
    free_shares(run_poll);
    return err;
}
