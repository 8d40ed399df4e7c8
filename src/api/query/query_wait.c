/* query_wait.c - a query waits at the shard of its run: for the first decision, or for the end of
 * one. See query.h.
 *
 * The record lives on two loops, which talk by loop messages as in history_wait.c: `begin` and
 * `stop` go to the shard, `fired` and `stopped` come back. Once `stop` was sent only `stopped`
 * counts: one sender's messages arrive in order, so the shard does not refer to the record any
 * more. */
#include "api/query/query.h"
#include "base/check.h"
#include "fiber/probe.h"
#include "route/route.h"
#include "wire/message.h"

/* --- on the shard's loop -------------------------------------------------------------------------
 */

static struct shard *
shard_of(const struct querier *querier)
{
    return engine_shard(querier->parked.api->options.engine, querier->wait.shard);
}

static void
watch_fired(struct run_watch *watch, bool is_lost)
{
    struct querier *querier = container_of(watch, struct querier, wait.watch);
    querier->wait.end = QUERY_FREE;
    loop_post_answer(querier->owner_loop, &querier->wait.fired);
}

/* The result belongs to the call that completes the decision: it is copied. */
static void
query_fired(struct run_query *query, enum query_end end, const API(WorkflowQueryResult) *result)
{
    struct querier *querier = container_of(query, struct querier, wait.query);
    struct shard_wait *wait = &querier->wait;
    wait->end = end;
    if (result != NULL) {
        wait->result_arena = arena_new(1024);
        struct slice bytes = message_encode(wait->result_arena, &result->base);
        struct error *err = message_decode_as(
            wait->result_arena, ERR_CORRUPT, API_TYPE(workflow_query_result), bytes, &wait->result);
        check_that(err == NULL, "a result that we encoded cannot be read");
    }
    loop_post_answer(querier->owner_loop, &wait->fired);
}

static void
deliver_begin(struct loop_message *message)
{
    struct querier *querier = container_of(message, struct querier, wait.begin);
    if (querier->wait.is_keeping)
        shard_keep_query(shard_of(querier), &querier->key, &querier->wait.query);
    else
        shard_watch(shard_of(querier), &querier->key, &querier->wait.watch);
}

static void
deliver_stop(struct loop_message *message)
{
    struct querier *querier = container_of(message, struct querier, wait.stop);
    if (querier->wait.is_keeping)
        shard_drop_query(shard_of(querier), &querier->wait.query);
    else
        shard_unwatch(shard_of(querier), &querier->wait.watch);
    loop_post_answer(querier->owner_loop, &querier->wait.stopped);
}

/* --- on the call's loop --------------------------------------------------------------------------
 */

static void
came_back(struct querier *querier)
{
    querier_check(querier);
    check(querier->holder == HELD_BY_SHARD);
    querier->holder = HELD_BY_FIBER;
    querier->wait.is_stopping = false;
    timer_stop(&querier->timer);
    fiber_start("query", querier_proceed, querier);
}

static void
deliver_fired(struct loop_message *message)
{
    struct querier *querier = container_of(message, struct querier, wait.fired);
    check(querier->holder == HELD_BY_SHARD); /* until `stopped` if it is stopping */
    if (!querier->wait.is_stopping)
        came_back(querier);
}

static void
deliver_stopped(struct loop_message *message)
{
    struct querier *querier = container_of(message, struct querier, wait.stopped);
    check(querier->wait.is_stopping);
    came_back(querier);
}

void
shard_wait_init(struct querier *querier)
{
    struct shard_wait *wait = &querier->wait;
    wait->shard = engine_shard_of(querier->parked.api->options.engine, querier->key.workflow_id);
    wait->begin.deliver = deliver_begin;
    wait->stop.deliver = deliver_stop;
    wait->fired.deliver = deliver_fired;
    wait->stopped.deliver = deliver_stopped;
    list_init(&wait->watch.node);
    wait->watch.fire = watch_fired;
    list_init(&wait->query.node);
    wait->query.fire = query_fired;
    wait->query.id = querier->id;
    wait->query.bytes = querier->question;
    wait->end = QUERY_FREE;
}

bool
shard_wait_begin(struct querier *querier, bool is_keeping, int64_t until)
{
    struct shard_wait *wait = &querier->wait;
    querier_check(querier);
    check(querier->holder == HELD_BY_FIBER);
    wait->is_keeping = is_keeping;
    wait->end = QUERY_FREE;
    wait->watch.next_event_id = querier->awaited;
    if (!route_post_to_shard(wait->shard, &wait->begin))
        return false;
    querier->holder = HELD_BY_SHARD;
    timer_start(&querier->timer, until);
    return true;
}

void
shard_wait_stop(struct querier *querier)
{
    querier_check(querier);
    check(querier->holder == HELD_BY_SHARD);
    if (querier->wait.is_stopping)
        return;
    querier->wait.is_stopping = true;
    timer_stop(&querier->timer);
    route_answer_to_shard(querier->wait.shard, &querier->wait.stop);
}
