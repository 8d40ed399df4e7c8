/* replication_poll.c - what another cluster asks of the shards of one place: rows that they have
 * for it. See replicated.h.
 *
 * The place answers as soon as one of its shards has rows. If none has, it waits for as long as the
 * question says, or until that is cancelled, and then tells how far each of them was looked at. */
#include "base/check.h"
#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/inside.h"
#include "engine/replicated.h"
#include "fiber/clock.h"
#include "fiber/sync.h"
#include "wire/message.h"
#include "wire/presence.h"

#define WAIT_SLICE (250 * NS_PER_MS) /* how often all are looked at, while there are no rows */

struct place_poll;

/* What is asked of one shard. */
struct shard_poll {
    struct shard *shard;
    struct replication_wanted wanted;
    struct replication_page page;
    bool is_read;
    struct replication_watch watch;
    struct place_poll *place_poll;
};

struct place_poll {
    struct shard_poll *shards;
    size_t count;
    bool has_tasks;
    struct fiber_cond rows_came;
    int64_t deadline; /* of the waiting */
    struct arena *arena;
    struct error *err;
};

static void
read_shard(struct place_poll *place_poll, struct shard_poll *shard_poll, size_t *bytes)
{
    if (*bytes >= shard_poll->wanted.bytes_max)
        return; /* asked for again */
    shard_poll->wanted.bytes_max -= *bytes;
    struct error *err = shard_read_replication(shard_poll->shard, &shard_poll->wanted,
                                               place_poll->arena, &shard_poll->page);
    shard_poll->wanted.bytes_max += *bytes;
    if (err != NULL) {
        place_poll->err = err; /* other shards may still have rows */
        return;
    }
    check(shard_poll->page.count <= shard_poll->wanted.rows_max);
    check(shard_poll->page.resync_to == 0 || shard_poll->page.count == 0);
    shard_poll->is_read = true;
    place_poll->has_tasks =
        place_poll->has_tasks || shard_poll->page.count > 0 || shard_poll->page.resync_to > 0;
    for (size_t i = 0; i < shard_poll->page.count; i++)
        *bytes += shard_poll->page.tasks[i].length;
    shard_poll->wanted.after = (int64_t)shard_poll->page.last;
    shard_poll->wanted.acknowledged = -1;
}

static void
note_rows(struct replication_watch *watch)
{
    struct shard_poll *shard_poll = container_of(watch, struct shard_poll, watch);
    fiber_cond_broadcast(&shard_poll->place_poll->rows_came);
}

/* Waits until one of the shards has rows. False: it must answer now. Yields. */
static bool
wait_rows(struct place_poll *place_poll)
{
    bool is_fired = false;
    for (size_t i = 0; i < place_poll->count; i++) {
        struct shard_poll *shard_poll = &place_poll->shards[i];
        check(list_is_empty(&shard_poll->watch.node));
        check(!shard_poll->is_read || shard_poll->wanted.acknowledged < 0); /* it was told once */
        shard_poll->watch.after = (uint64_t)shard_poll->wanted.after;
        if (shard_poll->is_read)
            shard_watch_replication(shard_poll->shard, &shard_poll->watch);
        is_fired = is_fired || (shard_poll->is_read && list_is_empty(&shard_poll->watch.node));
    }
    int64_t now = clock_monotonic();
    int64_t next =
        now + WAIT_SLICE < place_poll->deadline ? now + WAIT_SLICE : place_poll->deadline;
    enum wake wake = is_fired ? WAKE_READY : fiber_cond_wait(&place_poll->rows_came, next);
    for (size_t i = 0; i < place_poll->count; i++)
        list_remove(&place_poll->shards[i].watch.node);
    return wake != WAKE_CANCELLED && clock_monotonic() < place_poll->deadline;
}

static void
read_all(struct place_poll *place_poll)
{
    bool goes_on = true;
    while (goes_on && !place_poll->has_tasks) {
        size_t bytes = 0;
        for (size_t i = 0; i < place_poll->count; i++)
            read_shard(place_poll, &place_poll->shards[i], &bytes);
        goes_on = !place_poll->has_tasks && place_poll->err == NULL && wait_rows(place_poll);
    }
}

/* --- the question ---- */

static void
add_shard(struct engine *engine, const INTERNAL(ReplicationPoll) * asked,
          const INTERNAL(ReplicationFrom) * from, const struct cluster *cluster,
          struct place_poll *place_poll)
{
    struct shard_poll *shard_poll = &place_poll->shards[place_poll->count++];
    *shard_poll = (struct shard_poll){
        .shard = engine_served_shard(engine, owner_of_shard(from->shard)),
        .wanted = {.cluster = cluster,
                   .after = from->after,
                   .acknowledged = from->acknowledged,
                   .can_resync = asked->can_resync,
                   .rows_max = asked->rows_max,
                   .bytes_max = asked->bytes_max},
        .place_poll = place_poll,
        .watch = {.cluster = cluster, .fire = note_rows},
    };
    list_init(&shard_poll->watch.node);
}

static INTERNAL(ReplicationPage) *
    page_to_message(const struct shard_poll *shard_poll, struct arena *arena)
{
    const struct replication_page *page = &shard_poll->page;
    INTERNAL(ReplicationPage) *message = message_new(arena, INTERNAL_TYPE(replication_page));
    message->shard = shard_number(shard_poll->shard);
    message->tasks = arena_zalloc(arena, page->count, sizeof message->tasks[0]);
    message->n_tasks = page->count;
    for (size_t i = 0; i < page->count; i++)
        message->tasks[i] = presence_make_bytes(page->tasks[i]);
    message->last = page->last;
    message->has_more = page->has_more;
    message->resync_to = page->resync_to;
    return message;
}

static struct error *
serve_poll(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    const INTERNAL(ReplicationPoll) *asked = request;
    INTERNAL(ReplicationPages) *pages = answer;
    const struct engine_options *options = &((const struct engine *)engine)->options;
    const struct cluster *cluster = cluster_group_find(options->group, asked->cluster);
    if (cluster == NULL) /* of a host with another configuration */
        return error_new(arena, ERR_BAD_REQUEST, "There is no cluster %s.", asked->cluster);
    struct place_poll place_poll = {
        .shards = arena_zalloc(arena, asked->n_shards, sizeof place_poll.shards[0]),
        .deadline = clock_monotonic() + asked->wait,
        .arena = arena,
    };
    fiber_cond_init(&place_poll.rows_came);
    for (size_t i = 0; i < asked->n_shards; i++)
        add_shard(engine, asked, asked->shards[i], cluster, &place_poll);
    read_all(&place_poll);
    if (place_poll.err != NULL && !place_poll.has_tasks)
        return place_poll.err;
    pages->pages = arena_zalloc(arena, place_poll.count, sizeof pages->pages[0]);
    for (size_t i = 0; i < place_poll.count; i++)
        if (place_poll.shards[i].is_read)
            pages->pages[pages->n_pages++] = page_to_message(&place_poll.shards[i], arena);
    return NULL;
}

/* Lost: the other cluster asks again from where it is. Twice: it only reads, but waits twice as
 * long as the other cluster does. */
static const struct route_question poll_question = {
    .name = "engine.poll_replication",
    .request = INTERNAL_TYPE(replication_poll),
    .answer = INTERNAL_TYPE(replication_pages),
    .serve = serve_poll,
};

struct error *
engine_poll_replication(struct engine *engine, unsigned place,
                        const INTERNAL(ReplicationPoll) * poll, struct arena *arena,
                        INTERNAL(ReplicationPages) * pages)
{
    return route_ask(owner_at_place(place), &engine->service, &poll_question, poll, arena, pages);
}
