/* link.c - a connection without faults: bytes written on one side arrive later, in order, on the
 * other.
 *
 * Each write becomes one or two segments with a drawn latency; a segment never overtakes an older
 * one. One event per flow stands for its oldest segment. Writes and reads now and then take fewer
 * bytes than they could, so that code which hopes for whole messages is found out.
 *
 * 1. read ≤ arrived ≤ written, released ≤ read, written - released ≤ window.
 * 2. The event `arrival` is pending exactly while segments are in flight and the flow is not lost.
 */
#include <string.h>

#include "base/check.h"
#include "fiber/sim/network.h"
#include "fiber/socket.h"

#define WINDOW_MIN           4096
#define WINDOW_DOUBLINGS_MAX 6
#define LOOPBACK_LATENCY_MIN 5000
#define LOOPBACK_LATENCY_MAX 50000
#define SHORT_ONCE_IN        8 /* one in so many reads and writes takes less than it could */

static void arrival_fire(struct world *world, struct event *event);
static void window_update_fire(struct world *world, struct event *event);

/* Invariant 1. */
static void
flow_check(const struct flow *flow)
{
    check(flow->released <= flow->read && flow->read <= flow->arrived);
    check(flow->arrived <= flow->written && flow->written - flow->released <= flow->window);
    check(flow->written - flow->read <= flow->capacity);
}

static void
flow_init(struct flow *flow, struct link *link, struct world *world)
{
    flow->window = (size_t)WINDOW_MIN << random_below(&world->chance, WINDOW_DOUBLINGS_MAX + 1);
    event_init(&flow->arrival, STEP_ARRIVE, NULL, arrival_fire);
    event_init(&flow->window_update, STEP_WINDOW, NULL, window_update_fire);
    event_init(&flow->timeout, STEP_TIMEOUT, NULL, timeout_fire);
    flow->arrival.number = flow->window_update.number = flow->timeout.number = link->id;
}

struct link *
link_new(struct host *client)
{
    struct world *world = client->world;
    struct link *link = world_memory(world, 1, sizeof *link);
    link->id = ++world->link_sequence;
    list_push_back(&world->links, &link->node);
    event_init(&link->handshake, STEP_CONNECT, NULL, handshake_fire);
    link->handshake.number = link->id;
    for (unsigned side = 0; side < 2; side++) {
        struct end *end = &link->ends[side];
        *end = (struct end){.link = link, .side = side};
        list_init(&end->node);
        list_init(&end->backlog);
        event_init(&end->reset, STEP_RESET, NULL, reset_fire);
        end->reset.number = link->id;
        flow_init(&link->flows[side], link, world);
        link->flows[side].writer = end;
        link->flows[side].reader = &link->ends[1 - side];
    }
    end_open(&link->ends[0], client, END_CONNECTING);
    return link;
}

static void
link_free(struct world *world, struct link *link)
{
    event_cancel(world, &link->handshake);
    for (unsigned side = 0; side < 2; side++) {
        struct flow *flow = &link->flows[side];
        check(link->ends[side].socket == NULL && list_is_empty(&link->ends[side].node));
        event_cancel(world, &link->ends[side].reset);
        event_cancel(world, &flow->arrival);
        event_cancel(world, &flow->window_update);
        event_cancel(world, &flow->timeout);
        memory_free(flow->buffer);
        memory_free(flow->segments);
    }
    list_remove(&link->node);
    memory_free(link);
}

int64_t
link_latency(struct world *world, const struct host *from, const struct host *to)
{
    if (from == to)
        return world_between(world, LOOPBACK_LATENCY_MIN, LOOPBACK_LATENCY_MAX);
    int64_t delay =
        from == NULL || to == NULL ? 0 : world_delay(world, from, to); /* nobody there */
    int64_t usual = world_between(world, world->options.latency_min, world->options.latency_max);
    return delay == 0 ? usual : usual + world_between(world, 0, delay);
}

void
end_open(struct end *end, struct host *host, enum end_state state)
{
    check(end->state == END_NONE);
    end->host = host;
    end->state = state;
    list_push_back(&host->ends, &end->node);
    end->reset.host = host;
    end->link->flows[end->side].window_update.host =
        host; /* the writer gets the window update and the timeout */
    end->link->flows[end->side].timeout.host = host;
    end->link->flows[1 - end->side].arrival.host = host;
}

/* --- writing --------------------------------------------------------------------------------- */

static void
flow_reserve(struct world *world, struct flow *flow, size_t needed)
{
    if (needed <= flow->capacity)
        return;
    size_t capacity = flow->capacity == 0 ? 1024 : flow->capacity;
    while (capacity < needed)
        capacity *= 2;
    uint8_t *buffer = world_memory(world, capacity, 1);
    for (uint64_t position = flow->read; position < flow->written; position++)
        buffer[position & (capacity - 1)] = flow->buffer[position & (flow->capacity - 1)];
    memory_free(flow->buffer);
    flow->buffer = buffer;
    flow->capacity = capacity;
}

static void
flow_copy_in(struct world *world, struct flow *flow, const uint8_t *bytes, size_t count)
{
    flow_reserve(world, flow, (size_t)(flow->written - flow->read) + count);
    size_t place = flow->written & (flow->capacity - 1);
    size_t until_wrap = flow->capacity - place;
    size_t part = count < until_wrap ? count : until_wrap;
    memcpy(flow->buffer + place, bytes, part);
    memcpy(flow->buffer, bytes + part, count - part);
}

static void
flow_push_segment(struct world *world, struct flow *flow, struct segment segment)
{
    if (flow->segment_count == flow->segment_room) {
        size_t room = flow->segment_room == 0 ? 4 : 2 * flow->segment_room;
        struct segment *segments = world_memory(world, room, sizeof *segments);
        for (size_t i = 0; i < flow->segment_count; i++)
            segments[i] = flow->segments[(flow->segment_first + i) & (flow->segment_room - 1)];
        memory_free(flow->segments);
        flow->segments = segments;
        flow->segment_first = 0;
        flow->segment_room = room;
    }
    size_t place = (flow->segment_first + flow->segment_count) & (flow->segment_room - 1);
    flow->segments[place] = segment;
    flow->segment_count++;
}

/* Sends everything up to the position `end`, and the end if the flow is finished. */
static void
end_send(struct end *writer, uint64_t position)
{
    struct world *world = writer->host->world;
    struct flow *flow = &writer->link->flows[writer->side];
    int64_t at = world->now + link_latency(world, writer->host, flow->reader->host);
    if (at < flow->last_at)
        at = flow->last_at;
    flow->last_at = at;
    flow_push_segment(world, flow, (struct segment){.end = position, .at = at});
    if (flow->segment_count == 1 && !flow->is_lost && !writer->link->is_forced)
        event_schedule(world, &flow->arrival, NULL, at);
}

int64_t
end_write(struct end *end, const void *bytes, size_t count)
{
    struct world *world = end->host->world;
    struct flow *flow = &end->link->flows[end->side];
    if (end->is_broken)
        return SOCKET_BROKEN;
    check(end->state == END_OPEN && !flow->is_finished && count > 0);
    size_t room = flow->window - (size_t)(flow->written - flow->released);
    if (room == 0 || flow->is_writer_stuck) {
        flow->is_writer_stuck = true;
        return 0;
    }
    if (count > room)
        count = room;
    if (count > 1 && world_once_in(world, SHORT_ONCE_IN))
        count = (size_t)world_between(world, 1, (int64_t)count);
    world_trace_bytes(world, bytes, count);
    flow_copy_in(world, flow, bytes, count);
    uint64_t from = flow->written;
    flow->written += count;
    if (count > 1 && world_once_in(world, 4))
        end_send(end, from + (uint64_t)world_between(world, 1, (int64_t)count - 1));
    end_send(end, flow->written);
    flow_check(flow);
    return (int64_t)count;
}

/* --- arriving -------------------------------------------------------------------------------- */

/* False: the way is cut, the segment is lost, and so is the flow. */
static bool
flow_may_arrive(struct world *world, struct flow *flow)
{
    struct host *from = flow->writer->host, *to = flow->reader->host;
    if (world_is_cut(world, from, to)) {
        flow->is_lost = true;
        flow_start_timeout(flow);
        return false;
    }
    if (world_is_cut(world, to, from))
        flow_start_timeout(flow); /* it arrives, but its writer never learns of that */
    return true;
}

/* Takes in the segments whose time has come. */
static void
flow_take_arrived(struct world *world, struct flow *flow)
{
    while (flow->segment_count > 0) {
        struct segment *segment = &flow->segments[flow->segment_first];
        if (segment->at > world->now)
            break;
        flow->arrived = segment->end;
        flow->segment_first = (flow->segment_first + 1) & (flow->segment_room - 1);
        flow->segment_count--;
    }
    flow->is_end_arrived = flow->is_finished && flow->segment_count == 0;
    flow_check(flow);
    if (flow->segment_count > 0)
        event_schedule(world, &flow->arrival, NULL, flow->segments[flow->segment_first].at);
}

static void
arrival_fire(struct world *world, struct event *event)
{
    struct flow *flow = container_of(event, struct flow, arrival);
    struct end *reader = flow->reader;
    if (!flow_may_arrive(world, flow))
        return;
    uint64_t before = flow->arrived;
    flow_take_arrived(world, flow);
    if (reader->state != END_CLOSED && !reader->is_broken)
        end_wake(reader);
    else if (flow->arrived > before)
        end_send_reset(flow->writer); /* nobody is there to read it */
}

/* --- reading --------------------------------------------------------------------------------- */

/* While the writer has room it learns of more at once: nobody can tell the difference. One that
 * found none learns of it after a latency, and not through a cut. */
static void
flow_notify_writer(struct world *world, struct flow *flow)
{
    struct host *from = flow->reader->host, *to = flow->writer->host;
    if (world_is_cut(world, from, to))
        return;
    if (!flow->is_writer_stuck)
        flow->released = flow->read;
    else if (!event_is_pending(&flow->window_update))
        event_schedule(world, &flow->window_update, NULL,
                       world->now + link_latency(world, from, to));
}

static void
window_update_fire(struct world *world, struct event *event)
{
    struct flow *flow = container_of(event, struct flow, window_update);
    if (world_is_cut(world, flow->reader->host, flow->writer->host))
        return; /* healing sends it again */
    flow->is_writer_stuck = false;
    flow->released = flow->read;
    end_wake(flow->writer);
}

static void
flow_copy_out(struct flow *flow, uint8_t *bytes, size_t count)
{
    size_t place = flow->read & (flow->capacity - 1);
    size_t until_wrap = flow->capacity - place;
    size_t part = count < until_wrap ? count : until_wrap;
    memcpy(bytes, flow->buffer + place, part);
    memcpy(bytes + part, flow->buffer, count - part);
}

int64_t
end_read(struct end *end, void *bytes, size_t room)
{
    struct world *world = end->host->world;
    struct flow *flow = &end->link->flows[1 - end->side];
    check(end->state == END_OPEN && room > 0);
    size_t count = (size_t)(flow->arrived - flow->read);
    if (count == 0 && end->is_broken)
        return SOCKET_BROKEN;
    if (count == 0)
        return flow->is_end_arrived ? SOCKET_END : 0;
    if (count > room)
        count = room;
    if (count > 1 && world_once_in(world, SHORT_ONCE_IN))
        count = (size_t)world_between(world, 1, (int64_t)count);
    flow_copy_out(flow, bytes, count);
    flow->read += count;
    flow_notify_writer(world, flow);
    flow_check(flow);
    return (int64_t)count;
}

unsigned
end_can(const struct end *end)
{
    const struct flow *in = &end->link->flows[1 - end->side];
    const struct flow *out = &end->link->flows[end->side];
    if (end->is_broken)
        return SOCKET_READABLE | SOCKET_WRITABLE;
    bool is_readable = in->arrived > in->read || in->is_end_arrived;
    bool is_writable = !out->is_writer_stuck && out->written - out->released < out->window;
    return (is_readable ? SOCKET_READABLE : 0) | (is_writable ? SOCKET_WRITABLE : 0);
}

void
end_want_room(struct end *end)
{
    if ((end_can(end) & SOCKET_WRITABLE) == 0)
        end->link->flows[end->side].is_writer_stuck = true;
}

/* --- closing --------------------------------------------------------------------------------- */

static void
end_say_goodbye(struct end *end, bool is_abrupt)
{
    struct flow *in = &end->link->flows[1 - end->side];
    struct flow *out = &end->link->flows[end->side];
    if (end->is_broken)
        return; /* nobody listens; a peer that still sends gets a reset */
    if (is_abrupt || in->arrived > in->read) {
        end_send_reset(in->writer);
        return;
    }
    out->is_finished = true;
    end_send(end, out->written);
}

void
end_close(struct end *end, bool is_abrupt)
{
    struct link *link = end->link;
    struct world *world = end->host->world;
    struct end *peer = &link->ends[1 - end->side];
    check(end->state != END_NONE && end->state != END_CLOSED);
    bool is_early = end->state != END_OPEN;
    backlog_remove(end);
    list_remove(&end->node);
    event_cancel(world, &end->reset);
    end->state = END_CLOSED;
    end->socket = NULL;
    if (end->side == 0) {
        link->connecting = NULL;
        event_cancel(world, &link->handshake);
    }
    if (peer->state == END_NONE || peer->state == END_CLOSED)
        link_free(world, link);
    else
        end_say_goodbye(end, is_abrupt || is_early);
}

void
network_free(struct world *world)
{
    check_that(list_is_empty(&world->links), "a connection outlived its hosts");
}
