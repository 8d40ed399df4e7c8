/* query_wait.c - a query waits at the shard of its run: for the first decision, or for the end of
 * one. See query.h.
 *
 * The record lives on two loops, which talk by letters as in history_wait.c: `begin` and `stop` go
 * to the shard, `fired` and `stopped` come back. Once `stop` was sent only `stopped` counts: one
 * sender's letters arrive in order, so the shard has nothing of the record any more. */
#include "api/query.h"
#include "base/check.h"
#include "fiber/mark.h"
#include "route/route.h"
#include "wire/message.h"

/* --- on the shard's loop -------------------------------------------------------------------------
 */

static struct shard *
shard_of(const struct asker *asker)
{
    return engine_shard(asker->parked.api->options.engine, asker->wait.shard);
}

static void
watch_fired(struct run_watch *watch, bool is_lost)
{
    struct asker *asker = container_of(watch, struct asker, wait.watch);
    asker->wait.end = QUERY_FREE;
    loop_post_answer(asker->home, &asker->wait.fired);
}

/* The result belongs to whoever completes the decision: it is copied. */
static void
query_fired(struct run_query *query, enum query_end end, const API(WorkflowQueryResult) *result)
{
    struct asker *asker = container_of(query, struct asker, wait.query);
    struct shard_wait *wait = &asker->wait;
    wait->end = end;
    if (result != NULL) {
        wait->result_arena = arena_new(1024);
        struct slice bytes = message_encode(wait->result_arena, &result->base);
        struct error *err = message_decode_as(
            wait->result_arena, ERR_CORRUPT, API_TYPE(workflow_query_result), bytes, &wait->result);
        check_that(err == NULL, "a result that we encoded cannot be read");
    }
    loop_post_answer(asker->home, &wait->fired);
}

static void
deliver_begin(struct letter *letter)
{
    struct asker *asker = container_of(letter, struct asker, wait.begin);
    if (asker->wait.is_keeping)
        shard_keep_query(shard_of(asker), &asker->key, &asker->wait.query);
    else
        shard_watch(shard_of(asker), &asker->key, &asker->wait.watch);
}

static void
deliver_stop(struct letter *letter)
{
    struct asker *asker = container_of(letter, struct asker, wait.stop);
    if (asker->wait.is_keeping)
        shard_drop_query(shard_of(asker), &asker->wait.query);
    else
        shard_unwatch(shard_of(asker), &asker->wait.watch);
    loop_post_answer(asker->home, &asker->wait.stopped);
}

/* --- on the call's loop --------------------------------------------------------------------------
 */

static void
came_back(struct asker *asker)
{
    check(asker->hand == HAND_SHARD);
    asker->hand = HAND_FIBER;
    asker->wait.is_stopping = false;
    timer_stop(&asker->timer);
    fiber_start("query", asker_proceed, asker);
}

static void
deliver_fired(struct letter *letter)
{
    struct asker *asker = container_of(letter, struct asker, wait.fired);
    if (!asker->wait.is_stopping)
        came_back(asker);
}

static void
deliver_stopped(struct letter *letter)
{
    struct asker *asker = container_of(letter, struct asker, wait.stopped);
    check(asker->wait.is_stopping);
    came_back(asker);
}

void
shard_wait_init(struct asker *asker)
{
    struct shard_wait *wait = &asker->wait;
    wait->shard = engine_shard_of(asker->parked.api->options.engine, asker->key.workflow_id);
    wait->begin.deliver = deliver_begin;
    wait->stop.deliver = deliver_stop;
    wait->fired.deliver = deliver_fired;
    wait->stopped.deliver = deliver_stopped;
    list_init(&wait->watch.node);
    wait->watch.fire = watch_fired;
    list_init(&wait->query.node);
    wait->query.fire = query_fired;
    wait->query.id = asker->id;
    wait->query.bytes = asker->question;
    wait->end = QUERY_FREE;
}

bool
shard_wait_begin(struct asker *asker, bool is_keeping, int64_t until)
{
    struct shard_wait *wait = &asker->wait;
    check(asker->hand == HAND_FIBER && !wait->is_stopping);
    wait->is_keeping = is_keeping;
    wait->end = QUERY_FREE;
    wait->watch.next_event_id = asker->awaited;
    if (!route_post_to_shard(wait->shard, &wait->begin))
        return false;
    asker->hand = HAND_SHARD;
    timer_start(&asker->timer, until);
    return true;
}

void
shard_wait_stop(struct asker *asker)
{
    check(asker->hand == HAND_SHARD);
    if (asker->wait.is_stopping)
        return;
    asker->wait.is_stopping = true;
    timer_stop(&asker->timer);
    route_answer_to_shard(asker->wait.shard, &asker->wait.stop);
}
