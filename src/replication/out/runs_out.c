/* runs_out.c - GetReplicationMessages: a peer follows the rows that our shards have for it.
 *
 * The peer says of each shard up to where it has read, and up to where it needs the rows no more. A
 * real Cadence cluster has applied all that it has read: its first number is both. Ours reads on
 * while it applies, and sends two numbers; PROCESSED_NOTHING if it has applied nothing yet.
 *
 * Each loop that has some of the shards is asked once, all at the same time: it answers as soon as
 * one of its shards has rows, and then the others are cancelled. If none has, the call waits for a
 * few seconds. The size of an answer is limited: the peer asks again for what does not fit. Shards
 * that we do not have send nothing except failover markers (markers_out.c). */
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "fiber/sync.h"
#include "replication/inside.h"
#include "replication/runs.h"
#include "route/route.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ROWS_MAX   ((size_t)250)             /* of a shard */
#define BYTES_MAX  ((size_t)2 * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */
#define WAIT_SLICE (250 * NS_PER_MS)         /* how soon a shutdown is noticed */

struct run_poll;

/* What is asked of one shard. */
struct shard_poll {
    struct shard *shard;
    struct replication_wanted wanted;
    struct replication_page page;
    bool is_read;
    struct replication_watch watch;
    struct loop_share *loop_share;
};

/* A shard that we do not have. */
struct absent_shard {
    uint32_t number;
    struct replication_page page;
};

/* The shards of one loop. */
struct loop_share {
    struct run_poll *run_poll;
    unsigned loop;
    struct arena *arena;
    struct fiber *fiber; /* that waits for it; NULL: it has ended */
    vector_of(struct shard_poll *) shard_poll;
    bool has_tasks;
    struct fiber_cond rows_came; /* on that loop */
    struct error *err;
};

struct run_poll {
    struct replication *replication;
    const struct cluster *cluster;
    bool can_resync; /* the peer reads the runs instead, if rows were dropped */
    struct loop_share *loop_shares;
    unsigned loop_share_count;
    vector_of(struct absent_shard) absent_shard;
    bool has_markers; /* for one of those */
    struct latch open;
    int64_t deadline; /* of the waiting */
    struct arena *arena;
};

/* --- on a loop of shards ---- */

static void
read_shard(struct loop_share *loop_share, struct shard_poll *shard_poll, size_t *bytes)
{
    if (*bytes >= shard_poll->wanted.bytes_max)
        return; /* asked for again */
    shard_poll->wanted.bytes_max -= *bytes;
    struct error *err = shard_read_replication(shard_poll->shard, &shard_poll->wanted,
                                               loop_share->arena, &shard_poll->page);
    shard_poll->wanted.bytes_max += *bytes;
    if (err != NULL) {
        loop_share->err = err; /* other shards may still have rows */
        return;
    }
    check(shard_poll->page.count <= shard_poll->wanted.rows_max);
    check(shard_poll->page.resync_to == 0 || shard_poll->page.count == 0);
    shard_poll->is_read = true;
    loop_share->has_tasks =
        loop_share->has_tasks || shard_poll->page.count > 0 || shard_poll->page.resync_to > 0;
    for (size_t i = 0; i < shard_poll->page.count; i++)
        *bytes += shard_poll->page.tasks[i].length;
    shard_poll->wanted.after = (int64_t)shard_poll->page.last;
    shard_poll->wanted.acknowledged = -1;
}

static void
note_rows(struct replication_watch *watch)
{
    struct shard_poll *shard_poll = container_of(watch, struct shard_poll, watch);
    fiber_cond_broadcast(&shard_poll->loop_share->rows_came);
}

/* Waits until one of the shards has rows. False: the call must answer now. Yields. */
static bool
wait_rows(struct loop_share *loop_share)
{
    bool is_fired = false;
    for (size_t i = 0; i < loop_share->shard_poll.count; i++) {
        struct shard_poll *shard_poll = loop_share->shard_poll.items[i];
        check(list_is_empty(&shard_poll->watch.node));
        check(!shard_poll->is_read || shard_poll->wanted.acknowledged < 0); /* it was told once */
        shard_poll->watch.after = (uint64_t)shard_poll->wanted.after;
        if (shard_poll->is_read)
            shard_watch_replication(shard_poll->shard, &shard_poll->watch);
        is_fired = is_fired || (shard_poll->is_read && list_is_empty(&shard_poll->watch.node));
    }
    int64_t now = clock_monotonic();
    int64_t next = now + WAIT_SLICE < loop_share->run_poll->deadline
                       ? now + WAIT_SLICE
                       : loop_share->run_poll->deadline;
    enum wake wake = is_fired ? WAKE_READY : fiber_cond_wait(&loop_share->rows_came, next);
    for (size_t i = 0; i < loop_share->shard_poll.count; i++)
        list_remove(&loop_share->shard_poll.items[i]->watch.node);
    return wake != WAKE_CANCELLED && clock_monotonic() < loop_share->run_poll->deadline &&
           !atomic_load(&loop_share->run_poll->replication->is_shutting_down);
}

static void
loop_share_run(void *argument)
{
    struct loop_share *loop_share = argument;
    check(loop_index(loop_self()) == loop_share->loop);
    fiber_cond_init(&loop_share->rows_came);
    bool goes_on = true;
    while (goes_on && !loop_share->has_tasks) {
        size_t bytes = 0;
        for (size_t i = 0; i < loop_share->shard_poll.count; i++)
            read_shard(loop_share, loop_share->shard_poll.items[i], &bytes);
        goes_on = !loop_share->has_tasks && loop_share->err == NULL && wait_rows(loop_share);
    }
}

/* --- on the loop of the call ---- */

static void
loop_share_fiber(void *argument)
{
    struct loop_share *loop_share = argument;
    struct run_poll *run_poll = loop_share->run_poll;
    struct error *err =
        loop_call(loop_at(loop_share->loop), loop_share_run, loop_share, loop_share->arena);
    loop_share->err = err != NULL ? err : loop_share->err;
    loop_share->fiber = NULL;
    for (unsigned i = 0; i < run_poll->loop_share_count; i++) {
        struct loop_share *other = &run_poll->loop_shares[i];
        if ((loop_share->has_tasks || loop_share->err != NULL) && other->fiber != NULL)
            fiber_cancel(other->fiber); /* it need not wait any longer */
    }
    latch_done(&run_poll->open);
}

static void
run_loop_shares(struct run_poll *run_poll)
{
    latch_init(&run_poll->open, 0);
    for (unsigned i = 0; i < run_poll->loop_share_count; i++) {
        if (run_poll->loop_shares[i].shard_poll.count == 0)
            continue;
        latch_add(&run_poll->open, 1);
        run_poll->loop_shares[i].fiber =
            fiber_start("replication out", loop_share_fiber, &run_poll->loop_shares[i]);
    }
    /* If the call is cancelled, the shares still end soon, by their deadline. */
    latch_wait(&run_poll->open);
    for (unsigned i = 0; i < run_poll->loop_share_count; i++)
        check(run_poll->loop_shares[i].fiber == NULL);
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
free_loop_shares(void *kept)
{
    struct run_poll *run_poll = kept;
    check(run_poll->open.open == 0);
    for (unsigned i = 0; i < run_poll->loop_share_count; i++)
        arena_free(run_poll->loop_shares[i].arena);
}

/* A shard without tasks is left out where others have some: it is asked again. */
static bool
is_included(const struct run_poll *run_poll, const struct replication_page *page)
{
    bool has_tasks = run_poll->has_markers;
    for (unsigned i = 0; i < run_poll->loop_share_count; i++)
        has_tasks = has_tasks || run_poll->loop_shares[i].has_tasks;
    return page->count > 0 || page->resync_to > 0 || !has_tasks;
}

static void
answer(struct rpc_call *call, struct run_poll *run_poll)
{
    struct pieces_list pieces = {0};
    for (unsigned i = 0; i < run_poll->loop_share_count; i++) {
        for (size_t j = 0; j < run_poll->loop_shares[i].shard_poll.count; j++) {
            const struct shard_poll *shard_poll = run_poll->loop_shares[i].shard_poll.items[j];
            if (shard_poll->is_read && is_included(run_poll, &shard_poll->page))
                add_entry(&pieces, &shard_poll->page, shard_number(shard_poll->shard), call->arena);
        }
    }
    vector_each(absent_shard, &run_poll->absent_shard) {
        if (is_included(run_poll, &absent_shard->page))
            add_entry(&pieces, &absent_shard->page, absent_shard->number, call->arena);
    }
    ADMIN(GetReplicationMessagesResponse) *response =
        (ADMIN(GetReplicationMessagesResponse) *)call->response;
    response->shard_count = (int32_t)engine_shard_count(run_poll->replication->options.engine);
    response->group_settings = presence_make_bytes(run_poll->replication->settings);
    call->pieces = pieces.list.items;
    call->piece_count = pieces.list.count;
    call->release = free_loop_shares;
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
    struct absent_shard absent_shard = {.number = (uint32_t)token->shard_id};
    markers_read(run_poll->replication, run_poll->cluster, token->last_retrieved_message_id,
                 run_poll->arena, &absent_shard.page);
    run_poll->has_markers = run_poll->has_markers || absent_shard.page.count > 0;
    vector_push_in(&run_poll->absent_shard, run_poll->arena, absent_shard);
}

static void
add_token(struct run_poll *run_poll, const ADMIN(ReplicationToken) *token)
{
    struct engine *engine = run_poll->replication->options.engine;
    if (token->shard_id >= 0 && (uint32_t)token->shard_id >= engine_shard_count(engine))
        add_absent_shard(run_poll, token);
    if (token->shard_id < 0 || (uint32_t)token->shard_id >= engine_shard_count(engine))
        return;
    uint32_t number = (uint32_t)token->shard_id;
    check(route_loop_of_shard(number) < run_poll->loop_share_count);
    struct loop_share *loop_share = &run_poll->loop_shares[route_loop_of_shard(number)];
    struct shard_poll *shard_poll = arena_make(run_poll->arena, struct shard_poll);
    *shard_poll = (struct shard_poll){
        .shard = engine_shard(engine, number),
        .wanted = {.cluster = run_poll->cluster,
                   .after = token->last_retrieved_message_id,
                   .acknowledged = acknowledged(token),
                   .can_resync = run_poll->can_resync,
                   .rows_max = ROWS_MAX,
                   .bytes_max = BYTES_MAX / run_poll->loop_share_count},
        .loop_share = loop_share,
        .watch = {.cluster = run_poll->cluster, .fire = note_rows},
    };
    list_init(&shard_poll->watch.node);
    vector_push_in(&loop_share->shard_poll, run_poll->arena, shard_poll);
}

/* An error of one shard counts only if the others have nothing. */
static struct error *
run_poll_error(const struct run_poll *run_poll)
{
    struct error *err = NULL;
    for (unsigned i = 0; i < run_poll->loop_share_count; i++) {
        if (run_poll->loop_shares[i].has_tasks || run_poll->has_markers)
            return NULL;
        if (run_poll->loop_shares[i].err != NULL &&
            run_poll->loop_shares[i].err->kind != ERR_CANCELLED)
            err = run_poll->loop_shares[i].err;
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
        .loop_share_count = loop_count(),
        .loop_shares = arena_zalloc(call->arena, loop_count(), sizeof(struct loop_share)),
        .deadline = replication_wait_until(call->arrival.deadline),
        .arena = call->arena,
    };
    for (unsigned i = 0; i < run_poll->loop_share_count; i++) {
        run_poll->loop_shares[i].run_poll = run_poll;
        run_poll->loop_shares[i].loop = i;
        run_poll->loop_shares[i].arena = arena_new(0);
    }
    for (size_t i = 0; i < request->n_tokens; i++)
        add_token(run_poll, request->tokens[i]);
    if (run_poll->has_markers || request->is_urgent)
        run_poll->deadline = 0;
    run_loop_shares(run_poll);
    err = run_poll_error(run_poll);
    check(call->pieces == NULL && call->release == NULL);
    if (err == NULL) {
        answer(call, run_poll);
        return NULL;
    }
    err = error_copy(call->arena, err);
    free_loop_shares(run_poll);
    return err;
}
