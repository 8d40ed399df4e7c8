/* place.c - where shards are: what they hand over is gathered for a moment and sent to the feeder.
 *
 * So much is on its way or waits with the feeder as BYTES_MAX allows; then shards keep their
 * updates. The feeder says how much of it is done by counting bytes from the beginning, so that
 * what it says once need not arrive: it says more the next time. If nothing is heard for long
 * although there is no room, everything was lost, or the feeder that knew of it is gone. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "visibility/feed/inside.h"

#define FORGET_DELAY (10 * NS_PER_S)

static struct feed_place *
place_here(struct feeder *feeder)
{
    return &feeder->places[route_place_here()];
}

static void
place_check(const struct feed_place *place)
{
    check(place->done <= place->given);
    check(place->gathered == NULL || !list_is_empty(&place->gathered->updates));
    check((place->gathered == NULL) == !timer_is_pending(&place->timer));
}

static void
place_send(struct feed_place *place)
{
    struct visibility_batch *batch = place->gathered;
    place->gathered = NULL;
    batch->end = place->given;
    route_tell_surely(owner_of_domains(), &place->feeder->service, &visibility_updates_notice,
                      &batch->value);
}

static void
timer_fire(struct timer *timer)
{
    place_send(container_of(timer, struct feed_place, timer));
}

void
place_init(struct feed_place *place, struct feeder *feeder)
{
    *place = (struct feed_place){.feeder = feeder};
    timer_init(&place->timer, timer_fire);
}

void
place_free(struct feed_place *place)
{
    check(place->gathered == NULL); /* it was flushed */
}

static bool
has_room(struct feed_place *place, int64_t now)
{
    if (place->given == place->done)
        place->heard = now;
    if (place->given - place->done <= BYTES_MAX)
        return true;
    if (now - place->heard < FORGET_DELAY)
        return false;
    probe("visibility_updates_forgotten");
    place->done = place->given;
    place->heard = now;
    return true;
}

bool
place_give(void *context, struct visibility_update *update)
{
    struct feeder *feeder = context;
    struct feed_place *place = place_here(feeder);
    int64_t now = clock_monotonic();
    place_check(place);
    if (atomic_load(&feeder->is_stopping) || !has_room(place, now))
        return false;
    if (place->gathered == NULL) {
        place->gathered = visibility_batch_new((unsigned)route_here().number);
        timer_start(&place->timer, now + GATHER_DELAY);
    }
    update->time = now;
    list_push_back(&place->gathered->updates, &update->node);
    place->gathered->bytes += update->size;
    place->given += update->size;
    return true;
}

void
place_take_levels(void *context, struct route_value *value)
{
    struct feeder *feeder = context;
    struct feed_place *place = place_here(feeder);
    struct visibility_levels *levels = container_of(value, struct visibility_levels, value);
    if (levels->done > place->done && levels->done <= place->given) {
        place->done = levels->done;
        place->heard = clock_monotonic();
    }
    for (size_t i = 0; i < levels->count; i++) {
        const struct visibility_level *level = &levels->level[i];
        feeder->options.on_fed(feeder->options.context, level->shard, level->fed, level->safe);
    }
    memory_free(levels);
}

void
place_take_flush(void *context, struct route_value *value)
{
    struct feed_place *place = place_here(context);
    check(atomic_load(&place->feeder->is_stopping)); /* nothing is gathered after this */
    timer_stop(&place->timer);
    if (place->gathered != NULL)
        place_send(place);
    memory_free(container_of(value, struct visibility_flush, value));
}
