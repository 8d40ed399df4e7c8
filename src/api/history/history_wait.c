/* history_wait.c - readers of history that wait for new events, as records. See history.h.
 *
 * A wait lives on two loops: its call on the one of the connection, its watch on the one of the
 * shard. They talk by loop messages, each of which is on its way at most once:
 *
 *   connection                        shard
 *   watch  ------------------------>  shard_watch
 *          <------------------------  fired     there are events, or the shard was lost
 *   stop   ------------------------>  shard_unwatch       (time is over, caller gone, drain)
 *          <------------------------  stopped
 *
 * Once `stop` was sent, only `stopped` counts: messages of one sender arrive in order, so
 * everything that the shard's loop had sent came before it, and nothing else refers to the record
 * then. */
#include "api/history/history.h"
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "fiber/timer.h"
#include "route/route.h"

#define PAUSE                                                                                      \
    (20 * NS_PER_MS) /* after it was woken for nothing: the shard or its memory was lost */

struct history_wait {
    struct parked parked;
    struct history_question question; /* in the arena */
    uint32_t shard;
    struct loop *owner_loop; /* of the connection */
    struct timer timer;
    bool is_watching; /* `watch` was sent; neither `fired` nor `stopped` has come */
    bool is_stopping; /* `stop` was sent */
    struct loop_message watch, stop, fired, stopped;
    struct run_watch run; /* the shard's loop has it until `fired` or `stopped` has come */
};

static void proceed(void *argument);

/* On the connection's loop. The timer runs only while the shard may still be left in peace. */
static void
history_wait_check(const struct history_wait *wait)
{
    check(wait->owner_loop == loop_self());
    check(wait->is_watching || !wait->is_stopping);
    check(!timer_is_pending(&wait->timer) || (wait->is_watching && !wait->is_stopping));
}

/* --- on the shard's loop -------------------------------------------------------------------------
 */

static struct shard *
shard_of(const struct history_wait *wait)
{
    return engine_shard(wait->parked.api->options.engine, wait->shard);
}

static void
fire(struct run_watch *run, bool is_lost)
{
    struct history_wait *wait = container_of(run, struct history_wait, run);
    loop_post_answer(wait->owner_loop, &wait->fired);
}

static void
deliver_watch(struct loop_message *message)
{
    struct history_wait *wait = container_of(message, struct history_wait, watch);
    shard_watch(shard_of(wait), &wait->question.key, &wait->run);
}

static void
deliver_stop(struct loop_message *message)
{
    struct history_wait *wait = container_of(message, struct history_wait, stop);
    shard_unwatch(shard_of(wait), &wait->run);
    loop_post_answer(wait->owner_loop, &wait->stopped);
}

/* --- on the connection's loop --------------------------------------------------------------------
 */

static void
start_proceeding(struct history_wait *wait)
{
    wait->is_watching = false;
    timer_stop(&wait->timer);
    fiber_start("history_wait", proceed, wait);
}

static void
deliver_fired(struct loop_message *message)
{
    struct history_wait *wait = container_of(message, struct history_wait, fired);
    history_wait_check(wait);
    check(wait->is_watching);
    if (!wait->is_stopping)
        start_proceeding(wait);
}

static void
deliver_stopped(struct loop_message *message)
{
    struct history_wait *wait = container_of(message, struct history_wait, stopped);
    history_wait_check(wait);
    check(wait->is_stopping);
    wait->is_stopping = false;
    start_proceeding(wait);
}

static void
stop_watching(struct history_wait *wait)
{
    history_wait_check(wait);
    if (!wait->is_watching || wait->is_stopping)
        return;
    wait->is_stopping = true;
    timer_stop(&wait->timer);
    route_answer_to_shard(wait->shard, &wait->stop);
}

static void
time_is_over(struct timer *timer)
{
    stop_watching(container_of(timer, struct history_wait, timer));
}

static void
hurry(struct parked *parked)
{
    stop_watching(container_of(parked, struct history_wait, parked));
}

/* False: too much is on its way there. */
static bool
start_watching(struct history_wait *wait, int64_t next_event_id)
{
    history_wait_check(wait);
    check(!wait->is_watching && next_event_id >= 1);
    wait->run.next_event_id = next_event_id;
    wait->is_watching = route_post_to_shard(wait->shard, &wait->watch);
    if (wait->is_watching)
        timer_start(&wait->timer, wait->question.wait_until);
    return wait->is_watching;
}

static void
finish(struct history_wait *wait, struct error *err, const struct history_answer *answer)
{
    history_wait_check(wait);
    check(!wait->is_watching); /* else the shard would still refer to the record */
    if (wait->parked.call != NULL && err == NULL)
        history_fill(wait->parked.call, answer);
    parked_answer(&wait->parked, err);
    parked_end(&wait->parked);
}

/* In a fiber of its own: looks again, and answers or goes on waiting. A caller that goes away
 * meanwhile costs one look in vain. */
static void
proceed(void *argument)
{
    struct history_wait *wait = argument;
    struct parked *parked = &wait->parked;
    struct error *err = NULL;
    struct history_answer answer = {0};
    if (parked->call == NULL) {
        parked_end(parked);
        return;
    }
    fiber_set_deadline(parked->deadline);
    bool may_wait = clock_monotonic() < wait->question.wait_until;
    err = history_read(parked->api, &wait->question, may_wait, parked->arena, &answer);
    if (err == NULL && answer.must_wait) {
        probe("history_wait_for_nothing");
        err = fiber_sleep(PAUSE, parked->arena);
    }
    if (err == NULL && answer.must_wait && parked->call != NULL &&
        !atomic_load(&parked->api->is_draining)) {
        if (start_watching(wait, answer.next_event_id))
            return;
        err = error_new(parked->arena, ERR_UNAVAILABLE, "too many readers begin to wait");
    }
    answer.must_wait = false; /* an empty page is an answer, too */
    finish(wait, err, &answer);
}

/* --- the beginning -------------------------------------------------------------------------------
 */

/* The question with all it points to, in the record's own arena. */
static struct history_question
copy_question(const struct history_question *question, struct arena *arena)
{
    struct history_question copy = *question;
    copy.key = (struct run_key){.domain_id = arena_text(arena, question->key.domain_id),
                                .workflow_id = arena_text(arena, question->key.workflow_id),
                                .run_id = arena_text(arena, question->key.run_id)};
    copy.token.run_id = copy.key.run_id;
    copy.token.transient = arena_slice(arena, question->token.transient);
    copy.token.branch = arena_slice(arena, question->token.branch);
    return copy;
}

struct error *
history_wait_begin(struct rpc_call *call, const struct history_question *question,
                   int64_t next_event_id)
{
    if (fiber_is_cancelled())
        return error_new(call->arena, ERR_CANCELLED, "the caller has gone");
    struct arena *arena = arena_new(2048);
    struct history_wait *wait = arena_make(arena, struct history_wait);
    wait->parked = (struct parked){.api = api_of(call), .arena = arena, .hurry = hurry};
    wait->question = copy_question(question, arena);
    wait->shard = engine_shard_of(wait->parked.api->options.engine, question->key.workflow_id);
    wait->owner_loop = loop_self();
    timer_init(&wait->timer, time_is_over);
    wait->watch.deliver = deliver_watch;
    wait->stop.deliver = deliver_stop;
    wait->fired.deliver = deliver_fired;
    wait->stopped.deliver = deliver_stopped;
    list_init(&wait->run.node);
    wait->run.fire = fire;
    if (!start_watching(wait, next_event_id)) {
        arena_free(arena);
        return error_new(call->arena, ERR_UNAVAILABLE, "too many readers begin to wait");
    }
    parked_begin(&wait->parked, call);
    return NULL;
}
