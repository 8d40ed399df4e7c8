/* history_wait.c - readers of history that wait for new events, as records. See history.h.
 *
 * A record waits by a run_waiter (engine/waits.h); when that ends, or the reader's time, a fiber
 * looks at the run again and answers, or waits on. */
#include "api/history/history.h"
#include "base/check.h"
#include "engine/waits.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "fiber/timer.h"

#define PAUSE                                                                                      \
    (20 * NS_PER_MS) /* after it was woken for nothing: the shard or its memory was lost */

struct history_wait {
    struct parked parked;
    struct history_question question; /* in the arena */
    struct timer timer;
    struct run_waiter run; /* its number is set, or a fiber has the record */
};

static void proceed(void *argument);

/* The timer runs only while it waits for the run. */
static void
history_wait_check(const struct history_wait *wait)
{
    check(!timer_is_pending(&wait->timer) || wait->run.number != 0);
}

static void
start_proceeding(struct history_wait *wait)
{
    timer_stop(&wait->timer);
    fiber_start("history_wait", proceed, wait);
}

static void
run_has_news(struct run_waiter *run, enum query_end end, struct slice result)
{
    (void)end, (void)result; /* of queries */
    start_proceeding(container_of(run, struct history_wait, run));
}

/* Harmless when a fiber has the record already. */
static void
stop_waiting(struct history_wait *wait)
{
    history_wait_check(wait);
    if (wait->run.number == 0)
        return;
    engine_wait_stop(&wait->run);
    start_proceeding(wait);
}

static void
time_is_over(struct timer *timer)
{
    stop_waiting(container_of(timer, struct history_wait, timer));
}

static void
hurry(struct parked *parked)
{
    stop_waiting(container_of(parked, struct history_wait, parked));
}

/* False: too much is on its way there. */
static bool
start_waiting(struct history_wait *wait, int64_t next_event_id)
{
    check(next_event_id >= 1);
    struct run_wait_for what = {.key = wait->question.key, .next_event_id = next_event_id};
    if (!engine_wait_begin(&wait->run, &what))
        return false;
    timer_start(&wait->timer, wait->question.wait_until);
    return true;
}

static void
finish(struct history_wait *wait, struct error *err, const struct history_answer *answer)
{
    history_wait_check(wait);
    check(wait->run.number == 0);
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
        if (start_waiting(wait, answer.next_event_id))
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
    timer_init(&wait->timer, time_is_over);
    engine_wait_init(&wait->run, wait->parked.api->options.engine, run_has_news);
    if (!start_waiting(wait, next_event_id)) {
        arena_free(arena);
        return error_new(call->arena, ERR_UNAVAILABLE, "too many readers begin to wait");
    }
    parked_begin(&wait->parked, call);
    return NULL;
}
