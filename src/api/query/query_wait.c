/* query_wait.c - a query waits at the shard of its run: for the first decision, or for the end of
 * one. See query.h, engine/waits.h. */
#include "api/query/query.h"
#include "base/check.h"
#include "wire/message.h"

static void
came_back(struct querier *querier)
{
    querier_check(querier);
    check(querier->holder == HELD_BY_SHARD);
    querier->holder = HELD_BY_FIBER;
    timer_stop(&querier->timer);
    fiber_start("query", querier_proceed, querier);
}

static void
run_wait_ended(struct run_waiter *run, enum query_end end, struct slice result)
{
    struct querier *querier = container_of(run, struct querier, wait.run);
    struct shard_wait *wait = &querier->wait;
    wait->end = end;
    if (end == QUERY_ANSWERED) {
        struct error *err =
            message_decode_as(querier->parked.arena, ERR_CORRUPT, API_TYPE(workflow_query_result),
                              result, &wait->result);
        check_that(err == NULL, "a result that we encoded cannot be read");
    }
    came_back(querier);
}

void
shard_wait_init(struct querier *querier)
{
    engine_wait_init(&querier->wait.run, querier->parked.api->options.engine, run_wait_ended);
    querier->wait.end = QUERY_FREE;
}

bool
shard_wait_begin(struct querier *querier, bool is_keeping, int64_t until)
{
    struct shard_wait *wait = &querier->wait;
    querier_check(querier);
    check(querier->holder == HELD_BY_FIBER);
    wait->is_keeping = is_keeping;
    wait->end = QUERY_FREE;
    struct run_wait_for what = {.key = querier->key, .next_event_id = querier->awaited};
    if (is_keeping) {
        what.query_id = querier->id;
        what.question = querier->question;
    }
    if (!engine_wait_begin(&wait->run, &what))
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
    engine_wait_stop(&querier->wait.run);
    came_back(querier);
}
