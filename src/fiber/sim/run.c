/* run.c - the loops of simulated hosts: when one can run, and one tick of it.
 *
 * A loop is in one of three places: ready (it can tick now; the world draws one of these), planned
 * (its event `due` waits for a timer, or for the moment when the loop is no longer busy), or idle
 * (only an event from outside can give it work). sim_loop_plan puts it where it belongs; it is
 * called after everything that may change that, so that no step ever looks at all loops.
 *
 * Ticks cost no work in virtual time but they end: a loop that has ticked is busy for about a
 * microsecond. Timers are a little late, never early, as on a real machine: that is also what mixes
 * loops whose timers are due at the same moment. */
#include "base/check.h"
#include "fiber/sim/inside.h"

#define TICK_COST_MIN  200
#define TICK_COST_MAX  2000
#define TIMER_LATE_MAX 10000

/* --- ready ----------------------------------------------------------------------------------- */

static void
ready_add(struct sim_loop *loop)
{
    struct world *world = loop->host->world;
    check(!loop->is_ready);
    if (world->ready_count == world->ready_room) {
        world->ready_room = world->ready_room == 0 ? 16 : 2 * world->ready_room;
        size_t size = world->ready_room * sizeof *world->ready;
        world->ready = world_memory_resize(world, world->ready, size);
    }
    loop->is_ready = true;
    loop->ready_index = world->ready_count;
    world->ready[world->ready_count++] = loop;
}

static void
ready_remove(struct sim_loop *loop)
{
    struct world *world = loop->host->world;
    check(loop->is_ready && world->ready[loop->ready_index] == loop);
    struct sim_loop *last = world->ready[--world->ready_count];
    world->ready[loop->ready_index] = last;
    last->ready_index = loop->ready_index;
    loop->is_ready = false;
}

/* --- plans ----------------------------------------------------------------------------------- */

static void
plan_fire(struct world *world, struct event *event)
{
    struct sim_loop *loop = container_of(event, struct sim_loop, due);
    loop->due_planned = NEVER;
    sim_loop_plan(loop);
}

static void
plan_at(struct sim_loop *loop, int64_t time)
{
    struct world *world = loop->host->world;
    if (loop->due_planned == time)
        return;
    loop->due_planned = time;
    if (time == NEVER) {
        event_cancel(world, &loop->due);
        return;
    }
    int64_t late = world_between(world, 0, TIMER_LATE_MAX);
    event_schedule(world, &loop->due, loop->host, time > NEVER - late ? NEVER - 1 : time + late);
}

void
sim_loop_plan(struct sim_loop *loop)
{
    int64_t now = loop->host->world->now;
    if (loop->is_ready)
        return;
    int64_t due = list_is_empty(&loop->inbox) ? core_loop_due(&loop->loop) : 0;
    if (due > now) {
        plan_at(loop, due);
    } else if (loop->not_before > now) {
        plan_at(loop, loop->not_before);
    } else {
        plan_at(loop, NEVER);
        ready_add(loop);
    }
}

/* --- life ------------------------------------------------------------------------------------ */

static void messages_arrive(struct world *world, struct event *event);

void
sim_loop_init(struct sim_loop *loop, struct host *host, unsigned index)
{
    loop->host = host;
    list_init(&loop->inbox);
    event_init(&loop->due, STEP_DUE, host, plan_fire);
    loop->due.loop = index;
    loop->due_planned = NEVER;
    unsigned senders = host->loop_count + 1;
    loop->channels = world_memory(host->world, senders, sizeof *loop->channels);
    for (unsigned i = 0; i < senders; i++) {
        struct channel *channel = &loop->channels[i];
        list_init(&channel->messages);
        channel->to = loop;
        event_init(&channel->arrival, STEP_MESSAGES, host, messages_arrive);
        channel->arrival.loop = index;
    }
    core_loop_init(&loop->loop, &host->platform, index);
}

void
sim_loop_clear(struct sim_loop *loop)
{
    struct world *world = loop->host->world;
    if (loop->is_ready)
        ready_remove(loop);
    event_cancel(world, &loop->due);
    loop->due_planned = NEVER;
    loop->not_before = 0;
    list_init(&loop->inbox); /* the messages were in the host's heap */
    loop->message_count = 0;
    for (unsigned i = 0; i <= loop->host->loop_count; i++) {
        struct channel *channel = &loop->channels[i];
        event_cancel(world, &channel->arrival);
        list_init(&channel->messages);
        channel->message_count = 0;
    }
    core_loop_init(&loop->loop, &loop->host->platform, loop->loop.head.index);
    loop->loop.now = world->now;
}

void
sim_loop_free(struct sim_loop *loop)
{
    memory_free(loop->channels);
}

/* --- running --------------------------------------------------------------------------------- */

struct surroundings
sim_enter(struct sim_loop *loop)
{
    loop->loop.now = loop->host->world->now;
    return (struct surroundings){.loop = core_loop_enter(&loop->loop),
                                 .heap = heap_select(loop->host->heap)};
}

void
sim_leave(struct surroundings before)
{
    heap_select(before.heap);
    core_loop_enter(before.loop);
}

static void
deliver_messages(struct sim_loop *loop)
{
    struct list messages;
    list_init(&messages);
    list_splice_back(&messages, &loop->inbox);
    for (struct list *node; (node = list_pop_front(&messages)) != NULL;) {
        struct loop_message *message = list_entry(node, struct loop_message, node);
        loop->message_count--;
        message->deliver(message);
    }
}

void
sim_loop_step(struct sim_loop *loop)
{
    struct host *host = loop->host;
    struct world *world = host->world;
    ready_remove(loop);
    world_trace(world, host, loop->loop.head.index, STEP_TICK, NULL, loop->loop.switches);
    struct surroundings before = sim_enter(loop);
    deliver_messages(loop);
    core_loop_tick(&loop->loop, world->now);
    sim_leave(before);
    loop->not_before = world->now + world_between(world, TICK_COST_MIN, TICK_COST_MAX);
    sim_loop_plan(loop);
    if (host->is_ending)
        host_advance_end(host);
}

void
sim_loop_wake(struct sim_loop *loop, struct fiber *fiber)
{
    struct surroundings before = sim_enter(loop);
    fiber_wake(fiber);
    sim_leave(before);
    sim_loop_plan(loop);
}

struct sim_loop *
sim_loop_self(void)
{
    return container_of(loop_self(), struct sim_loop, loop);
}

struct host *
sim_host_self(void)
{
    return sim_loop_self()->host;
}

/* --- mailboxes: delayed queues --------------------------------------------------------------- */

static void
channel_plan(struct channel *channel)
{
    struct world *world = channel->to->host->world;
    int64_t delay = world_between(world, 1, world->options.mailbox_delay_max);
    channel->arrival.number = channel->message_count;
    event_schedule(world, &channel->arrival, channel->to->host, world->now + delay);
}

/* All messages of a sender that wait arrive together, as by one wake-up; now and then only the
 * first of them. */
static void
messages_arrive(struct world *world, struct event *event)
{
    struct channel *channel = container_of(event, struct channel, arrival);
    size_t count = channel->message_count;
    if (count > 1 && world_once_in(world, 4))
        count = (size_t)world_between(world, 1, (int64_t)count - 1);
    channel->message_count -= count;
    for (; count > 0; count--)
        list_push_back(&channel->to->inbox, list_pop_front(&channel->messages));
    if (channel->message_count > 0)
        channel_plan(channel);
    sim_loop_plan(channel->to);
}

bool
platform_post(struct loop *to, struct loop_message *message, bool is_bounded)
{
    struct sim_loop *receiver = container_of(to, struct sim_loop, loop);
    struct host *host = receiver->host;
    struct loop *sender = core_loop_current();
    check_that(sender == NULL || sender->platform == to->platform,
               "a message never leaves its host");
    if (is_bounded && receiver->message_count >= LOOP_MAILBOX_MAX)
        return false;
    struct channel *channel =
        &receiver->channels[sender == NULL ? host->loop_count : sender->head.index];
    list_push_back(&channel->messages, &message->node);
    channel->message_count++;
    receiver->message_count++;
    if (!event_is_pending(&channel->arrival))
        channel_plan(channel);
    return true;
}

void
platform_post_all(struct loop *to, struct list *messages)
{
    struct list *node;
    while ((node = list_pop_front(messages)) != NULL) {
        bool is_posted = platform_post(to, list_entry(node, struct loop_message, node), false);
        check(is_posted);
    }
}
