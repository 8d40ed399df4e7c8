/* waits.c - see waits.h: the table of each place, and what the shards have of it. */
#include "engine/waits.h"

#include "base/check.h"
#include "base/memory.h"
#include "engine/inside.h"
#include "engine/wait_values.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RENEWAL (10 * NS_PER_S) /* it is asked for again: it may have been lost, or its end */
#define LIFE    (35 * NS_PER_S) /* without being asked for again: the one who waited is gone */

/* What belongs to one place. */
struct waits {
    struct map64 *asked; /* number → struct run_waiter, of those who wait here */
    struct map64 *kept;  /* number → struct wait_value, of shards that live here */
    /* Of the last wait. It begins anywhere: one of another process is not mistaken for it. */
    uint64_t number;
};

static const struct route_notice wait_notice, wait_stop_notice, wait_end_notice;

void
waits_init(struct engine *engine)
{
    engine->waits = memory_zalloc(route_place_count(), sizeof *engine->waits);
    for (unsigned place = 0; place < route_place_count(); place++)
        engine->waits[place] =
            (struct waits){.asked = map64_new(), .kept = map64_new(), .number = entropy_u64()};
}

void
waits_free(struct engine *engine)
{
    for (unsigned place = 0; place < route_place_count(); place++) {
        check(map64_count(engine->waits[place].asked) == 0);
        check(map64_count(engine->waits[place].kept) == 0);
        map64_free(engine->waits[place].asked);
        map64_free(engine->waits[place].kept);
    }
    memory_free(engine->waits);
}

static struct waits *
waits_here(struct engine *engine)
{
    return &engine->waits[route_place_here()];
}

/* --- at the shard --------------------------------------------------------------------------------
 */

static struct shard *
shard_of(const struct wait_value *wait)
{
    return engine_served_shard(wait->engine, owner_of_shard(wait->shard));
}

static void
forget(struct wait_value *wait)
{
    struct wait_value *removed = map64_remove(waits_here(wait->engine)->kept, wait->number);
    check(removed == wait);
    timer_stop(&wait->life);
    memory_free(wait);
}

/* Tells who waits. Later: a step that is under way must not be called back. */
static void
end_wait(struct wait_value *wait, enum query_end end, struct slice result)
{
    struct wait_end_value *ended = wait_end_value_new(wait->number, end, result);
    route_tell_later(owner_at_place(wait->place), &wait->engine->service, &wait_end_notice,
                     &ended->value);
    forget(wait);
}

static void
watch_fired(struct run_watch *watch, bool is_lost)
{
    (void)is_lost; /* it looks again in any case */
    end_wait(container_of(watch, struct wait_value, watch), QUERY_FREE, (struct slice){0});
}

/* The result belongs to the call that completes the decision. */
static void
query_fired(struct run_query *query, enum query_end end, const API(WorkflowQueryResult) *result)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice bytes = {0};
    if (result != NULL)
        bytes = message_encode(arena, &result->base);
    end_wait(container_of(query, struct wait_value, query), end, bytes);
}

static void
take_back(struct wait_value *wait)
{
    if (wait->what.query_id != NULL)
        shard_drop_query(shard_of(wait), &wait->query);
    else
        shard_unwatch(shard_of(wait), &wait->watch);
    forget(wait);
}

static void
life_is_over(struct timer *timer)
{
    probe("wait_forgotten");
    take_back(container_of(timer, struct wait_value, life));
}

static void
start_waiting(struct wait_value *wait)
{
    list_init(&wait->watch.node);
    wait->watch.fire = watch_fired;
    wait->watch.next_event_id = wait->what.next_event_id;
    list_init(&wait->query.node);
    wait->query.fire = query_fired;
    wait->query.id = wait->what.query_id;
    wait->query.bytes = wait->what.question;
    timer_init(&wait->life, life_is_over);
    timer_start(&wait->life, clock_monotonic() + LIFE);
    if (wait->what.query_id != NULL)
        shard_keep_query(shard_of(wait), &wait->what.key, &wait->query);
    else
        shard_watch(shard_of(wait), &wait->what.key, &wait->watch);
}

static void
take_wait(void *context, struct route_value *value)
{
    struct engine *engine = context;
    struct wait_value *wait = container_of(value, struct wait_value, value);
    struct map64 *kept = waits_here(engine)->kept;
    struct wait_value *known = map64_get(kept, wait->number);
    if (known != NULL) {
        timer_start(&known->life, clock_monotonic() + LIFE);
        memory_free(wait);
        return;
    }
    wait->engine = engine;
    map64_put(kept, wait->number, wait);
    start_waiting(wait);
}

static void
take_stop(void *context, struct route_value *value)
{
    struct wait_stop_value *stop = container_of(value, struct wait_stop_value, value);
    struct wait_value *wait = map64_get(waits_here(context)->kept, stop->number);
    if (wait != NULL)
        take_back(wait);
    memory_free(stop);
}

/* --- where it is waited --------------------------------------------------------------------------
 */

static struct owner
owner_of(const struct run_waiter *wait)
{
    return owner_of_shard(engine_shard_of(wait->engine, wait->what.key.workflow_id));
}

static bool
ask(struct run_waiter *wait)
{
    struct wait_value *asked = wait_value_new(&wait->what);
    asked->place = route_place_here();
    asked->number = wait->number;
    asked->shard = (uint32_t)owner_of(wait).number;
    if (route_tell(owner_of(wait), &wait->engine->service, &wait_notice, &asked->value))
        return true;
    memory_free(asked);
    return false;
}

static void
renew(struct timer *timer)
{
    struct run_waiter *wait = container_of(timer, struct run_waiter, renewal);
    if (ask(wait))
        wait->is_renewed = true;
    else
        probe("wait_not_renewed"); /* the next time */
    timer_start(&wait->renewal, clock_monotonic() + RENEWAL);
}

/* It does not wait any more. */
static void
end_here(struct run_waiter *wait)
{
    struct run_waiter *removed = map64_remove(waits_here(wait->engine)->asked, wait->number);
    check(removed == wait);
    wait->number = 0;
    timer_stop(&wait->renewal);
}

static void
tell_stop(const struct run_waiter *wait)
{
    struct wait_stop_value *stop = memory_zalloc(1, sizeof *stop);
    stop->number = wait->number;
    stop->shard = (uint32_t)owner_of(wait).number;
    route_tell_surely(owner_of(wait), &wait->engine->service, &wait_stop_notice, &stop->value);
}

static void
take_end(void *context, struct route_value *value)
{
    struct wait_end_value *ended = container_of(value, struct wait_end_value, value);
    struct run_waiter *wait = map64_get(waits_here(context)->asked, ended->number);
    if (wait != NULL) {
        if (wait->is_renewed) /* a renewal may have crossed the end, and begun it once more */
            tell_stop(wait);
        end_here(wait);
        wait->ended(wait, ended->end, ended->result);
    }
    memory_free(ended);
}

void
engine_wait_init(struct run_waiter *wait, struct engine *engine,
                 void (*ended)(struct run_waiter *wait, enum query_end end, struct slice result))
{
    *wait = (struct run_waiter){.ended = ended, .engine = engine};
    timer_init(&wait->renewal, renew);
}

bool
engine_wait_begin(struct run_waiter *wait, const struct run_wait_for *what)
{
    struct waits *waits = waits_here(wait->engine);
    check(wait->number == 0 && what->key.run_id[0] != '\0');
    wait->what = *what;
    wait->is_renewed = false;
    wait->number = ++waits->number;
    if (wait->number == 0)
        wait->number = ++waits->number;
    if (!ask(wait)) {
        wait->number = 0;
        return false;
    }
    map64_put(waits->asked, wait->number, wait);
    timer_start(&wait->renewal, clock_monotonic() + RENEWAL);
    return true;
}

void
engine_wait_stop(struct run_waiter *wait)
{
    if (wait->number == 0)
        return;
    tell_stop(wait);
    end_here(wait);
}

/* --- the rows ------------------------------------------------------------------------------------
 */

static void
free_wait(struct route_value *value)
{
    memory_free(container_of(value, struct wait_value, value));
}

static void
free_stop(struct route_value *value)
{
    memory_free(container_of(value, struct wait_stop_value, value));
}

static void
free_end(struct route_value *value)
{
    memory_free(container_of(value, struct wait_end_value, value));
}

/* Lost: it is told again at the next renewal, or its caller's time ends it. Twice: the second is
 * known by its number; if the first has ended meanwhile, the end of the second is nobody's. */
static const struct route_notice wait_notice = {
    .name = "run.wait",
    .encode = wait_value_encode,
    .decode = wait_value_decode,
    .free = free_wait,
    .take = take_wait,
    .may_be_lost = true,
    .may_come_twice = true,
};
/* Lost: the shard forgets the wait since it is not renewed. Twice: the number is not known. */
static const struct route_notice wait_stop_notice = {
    .name = "run.wait_stop",
    .encode = wait_stop_encode,
    .decode = wait_stop_decode,
    .free = free_stop,
    .take = take_stop,
    .may_be_lost = true,
    .may_come_twice = true,
};
/* Lost: the shard does not know the wait any more when it is renewed, and begins it again. Twice:
 * the number is not known. */
static const struct route_notice wait_end_notice = {
    .name = "run.wait_end",
    .encode = wait_end_encode,
    .decode = wait_end_decode,
    .free = free_end,
    .take = take_end,
    .may_be_lost = true,
    .may_come_twice = true,
};
