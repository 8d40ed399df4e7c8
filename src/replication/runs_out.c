/* runs_out.c - GetReplicationMessages: a peer follows the rows that our shards have for it.
 *
 * The peer says of each shard how far it has read and how far it needs nothing any more. A real
 * Cadence cluster has done all that it has read: its first number is both. Ours reads on while it
 * applies, and tells both apart; one that has done nothing yet says PROCESSED_NOTHING.
 *
 * Each loop that has some of the shards is asked once, all at the same time: it answers as soon as
 * one of its shards has rows, and the others are called off then. If none has, the call waits for a
 * few seconds. An answer has its size: what does not fit is asked for again. Of shards that we do
 * not have there is nothing to say but that a domain drains (markers_out.c). */
#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/mark.h"
#include "fiber/sync.h"
#include "replication/inside.h"
#include "replication/runs.h"
#include "route/route.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ROWS_MAX    ((size_t)250)             /* of a shard */
#define BYTES_MAX   ((size_t)2 * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */
#define WAIT_MAX    (4 * NS_PER_S)
#define WAIT_SLICE  (250 * NS_PER_MS) /* a server that is being drained is noticed so soon */
#define WAIT_MARGIN NS_PER_S          /* before the caller's deadline */

struct poll;

/* What is asked of one shard. */
struct asked {
    struct shard *shard;
    struct replication_wanted wanted;
    struct replication_page page;
    bool is_read;
    struct replication_watch watch;
    struct part *part;
};

/* A shard that we do not have. */
struct beyond {
    uint32_t number;
    struct replication_page page;
};

/* The shards of one loop. */
struct part {
    struct poll *poll;
    unsigned loop;
    struct arena *arena;
    struct fiber *fiber; /* that waits for it; NULL: it has ended */
    vector_of(struct asked *) asked;
    bool has_tasks;
    struct fiber_cond news; /* on that loop */
    struct error *err;
};

struct poll {
    struct replication *replication;
    const struct cluster *cluster;
    bool can_resync; /* it reads the runs if it is told to */
    struct part *parts;
    unsigned part_count;
    vector_of(struct beyond) beyond;
    bool has_markers; /* for one of those */
    struct latch open;
    int64_t deadline; /* of the waiting */
    struct arena *arena;
};

/* --- on a loop of shards ---- */

static void
read_shard(struct part *part, struct asked *asked, size_t *bytes)
{
    if (*bytes >= asked->wanted.bytes_max)
        return; /* asked for again */
    asked->wanted.bytes_max -= *bytes;
    struct error *err =
        shard_read_replication(asked->shard, &asked->wanted, part->arena, &asked->page);
    asked->wanted.bytes_max += *bytes;
    if (err != NULL) {
        part->err = err; /* the others may have something to say */
        return;
    }
    asked->is_read = true;
    part->has_tasks = part->has_tasks || asked->page.count > 0 || asked->page.resync_to > 0;
    for (size_t i = 0; i < asked->page.count; i++)
        *bytes += asked->page.tasks[i].length;
    asked->wanted.after = (int64_t)asked->page.last;
    asked->wanted.acknowledged = -1;
}

static void
note_news(struct replication_watch *watch)
{
    struct asked *asked = container_of(watch, struct asked, watch);
    fiber_cond_broadcast(&asked->part->news);
}

/* Waits until one of the shards has rows. False: no more waiting. Yields. */
static bool
wait_news(struct part *part)
{
    bool is_fired = false;
    for (size_t i = 0; i < part->asked.count; i++) {
        struct asked *asked = part->asked.items[i];
        asked->watch.after = (uint64_t)asked->wanted.after;
        if (asked->is_read)
            shard_watch_replication(asked->shard, &asked->watch);
        is_fired = is_fired || (asked->is_read && list_is_empty(&asked->watch.node));
    }
    int64_t now = clock_monotonic();
    int64_t next =
        now + WAIT_SLICE < part->poll->deadline ? now + WAIT_SLICE : part->poll->deadline;
    enum wake wake = is_fired ? WAKE_READY : fiber_cond_wait(&part->news, next);
    for (size_t i = 0; i < part->asked.count; i++)
        list_remove(&part->asked.items[i]->watch.node);
    return wake != WAKE_CANCELLED && clock_monotonic() < part->poll->deadline &&
           !atomic_load(&part->poll->replication->is_draining);
}

static void
part_run(void *argument)
{
    struct part *part = argument;
    fiber_cond_init(&part->news);
    bool goes_on = true;
    while (goes_on && !part->has_tasks) {
        size_t bytes = 0;
        for (size_t i = 0; i < part->asked.count; i++)
            read_shard(part, part->asked.items[i], &bytes);
        goes_on = !part->has_tasks && part->err == NULL && wait_news(part);
    }
}

/* --- on the loop of the call ---- */

static void
part_fiber(void *argument)
{
    struct part *part = argument;
    struct poll *poll = part->poll;
    struct error *err = loop_call(loop_at(part->loop), part_run, part, part->arena);
    part->err = err != NULL ? err : part->err;
    part->fiber = NULL;
    for (unsigned i = 0; i < poll->part_count; i++) {
        struct part *other = &poll->parts[i];
        if ((part->has_tasks || part->err != NULL) && other->fiber != NULL)
            fiber_cancel(other->fiber); /* waits no more */
    }
    latch_done(&poll->open);
}

static void
run_parts(struct poll *poll)
{
    latch_init(&poll->open, 0);
    for (unsigned i = 0; i < poll->part_count; i++) {
        if (poll->parts[i].asked.count == 0)
            continue;
        latch_add(&poll->open, 1);
        poll->parts[i].fiber = fiber_start("replication out", part_fiber, &poll->parts[i]);
    }
    /* The call may be cancelled; the parts end soon then, by themselves. */
    latch_wait(&poll->open);
}

/* --- the answer ---- */

#define TAG(number) ((uint8_t)((number) << 3 | 2)) /* of a field that has a length */

static size_t
put_varint(uint8_t *to, uint64_t number)
{
    size_t length = 0;
    for (; number >= 0x80; number >>= 7)
        to[length++] = (uint8_t)(number | 0x80);
    to[length++] = (uint8_t)number;
    return length;
}

struct pieces_list {
    vector_of(struct slice) list;
};

/* A field of which the bytes come as other pieces. */
static struct slice
field_head(uint8_t tag, size_t length, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, 11);
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
    uint8_t *key = arena_alloc(arena, 11);
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

/* The pages live in the parts. */
static void
free_parts(void *kept)
{
    struct poll *poll = kept;
    for (unsigned i = 0; i < poll->part_count; i++)
        arena_free(poll->parts[i].arena);
}

/* A shard without tasks is left out where others have some: it is asked again. */
static bool
is_told(const struct poll *poll, const struct replication_page *page)
{
    bool has_tasks = poll->has_markers;
    for (unsigned i = 0; i < poll->part_count; i++)
        has_tasks = has_tasks || poll->parts[i].has_tasks;
    return page->count > 0 || page->resync_to > 0 || !has_tasks;
}

static void
answer(struct rpc_call *call, struct poll *poll)
{
    struct pieces_list pieces = {0};
    for (unsigned i = 0; i < poll->part_count; i++) {
        for (size_t j = 0; j < poll->parts[i].asked.count; j++) {
            const struct asked *asked = poll->parts[i].asked.items[j];
            if (asked->is_read && is_told(poll, &asked->page))
                add_entry(&pieces, &asked->page, shard_number(asked->shard), call->arena);
        }
    }
    vector_each(beyond, &poll->beyond) {
        if (is_told(poll, &beyond->page))
            add_entry(&pieces, &beyond->page, beyond->number, call->arena);
    }
    ADMIN(GetReplicationMessagesResponse) *response =
        (ADMIN(GetReplicationMessagesResponse) *)call->response;
    response->shard_count = (int32_t)engine_shard_count(poll->replication->options.engine);
    response->group_settings = presence_make_bytes(poll->replication->settings);
    call->pieces = pieces.list.items;
    call->piece_count = pieces.list.count;
    call->release = free_parts;
    call->kept = poll;
}

/* --- the question ---- */

/* What the peer needs no more; negative: it does not say. */
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

/* The peer has more shards than we have. */
static void
add_beyond(struct poll *poll, const ADMIN(ReplicationToken) *token)
{
    struct beyond beyond = {.number = (uint32_t)token->shard_id};
    markers_read(poll->replication, poll->cluster, token->last_retrieved_message_id, poll->arena,
                 &beyond.page);
    poll->has_markers = poll->has_markers || beyond.page.count > 0;
    vector_push_in(&poll->beyond, poll->arena, beyond);
}

static void
add_token(struct poll *poll, const ADMIN(ReplicationToken) *token)
{
    struct engine *engine = poll->replication->options.engine;
    if (token->shard_id >= 0 && (uint32_t)token->shard_id >= engine_shard_count(engine))
        add_beyond(poll, token);
    if (token->shard_id < 0 || (uint32_t)token->shard_id >= engine_shard_count(engine))
        return;
    uint32_t number = (uint32_t)token->shard_id;
    struct part *part = &poll->parts[route_loop_of_shard(number)];
    struct asked *asked = arena_make(poll->arena, struct asked);
    *asked = (struct asked){
        .shard = engine_shard(engine, number),
        .wanted = {.cluster = poll->cluster,
                   .after = token->last_retrieved_message_id,
                   .acknowledged = acknowledged(token),
                   .can_resync = poll->can_resync,
                   .rows_max = ROWS_MAX,
                   .bytes_max = BYTES_MAX / poll->part_count},
        .part = part,
        .watch = {.cluster = poll->cluster, .fire = note_news},
    };
    list_init(&asked->watch.node);
    vector_push_in(&part->asked, poll->arena, asked);
}

/* Half of a short time is for the way back. */
static int64_t
wait_until(int64_t call_deadline)
{
    int64_t now = clock_monotonic();
    int64_t left = call_deadline > now ? call_deadline - now : 0;
    int64_t wait = left > 2 * WAIT_MARGIN ? left - WAIT_MARGIN : left / 2;
    return now + (wait > WAIT_MAX ? WAIT_MAX : wait);
}

/* An error of one shard counts only if the others have nothing. */
static struct error *
poll_error(const struct poll *poll)
{
    struct error *err = NULL;
    for (unsigned i = 0; i < poll->part_count; i++) {
        if (poll->parts[i].has_tasks || poll->has_markers)
            return NULL;
        if (poll->parts[i].err != NULL && poll->parts[i].err->kind != ERR_CANCELLED)
            err = poll->parts[i].err;
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
    struct poll *poll = arena_make(call->arena, struct poll);
    *poll = (struct poll){
        .replication = replication,
        .cluster = cluster_group_find(group, request->cluster_name),
        .can_resync = request->can_resync,
        .part_count = loop_count(),
        .parts = arena_zalloc(call->arena, loop_count(), sizeof(struct part)),
        .deadline = wait_until(grpc_call_deadline(call->grpc)),
        .arena = call->arena,
    };
    for (unsigned i = 0; i < poll->part_count; i++) {
        poll->parts[i].poll = poll;
        poll->parts[i].loop = i;
        poll->parts[i].arena = arena_new(0);
    }
    for (size_t i = 0; i < request->n_tokens; i++)
        add_token(poll, request->tokens[i]);
    if (poll->has_markers || request->is_urgent)
        poll->deadline = 0;
    run_parts(poll);
    err = poll_error(poll);
    if (err == NULL) {
        answer(call, poll);
        return NULL;
    }
    err = error_copy(call->arena, err);
    free_parts(poll);
    return err;
}
