/* link_fault.c - what goes wrong with connections: resets, timeouts, cuts and their healing.
 *
 * A cut is silent. A segment that would arrive while the way is cut is lost and the flow with it:
 * real TCP would send it again after healing; here healing resets the connection, which code has to
 * survive anyway. Bytes that arrive while the way back is cut count as not acknowledged. In both
 * cases the writer gives up after USER_TIMEOUT, and only the writer: the other side sits there
 * until it sends something or the way is healed.
 *
 * A reset travels like bytes, behind those already under way, and is swallowed by a cut; then it is
 * owed. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/sim/network.h"
#include "fiber/socket.h"

#define USER_TIMEOUT (30 * NS_PER_S)

void
end_wake(struct end *end)
{
    struct socket *socket = end->socket;
    if (socket == NULL || socket->waiter == NULL || (end_can(end) & socket->want) == 0)
        return;
    struct fiber *waiter = socket->waiter;
    socket->waiter = NULL; /* one wake is enough */
    sim_loop_wake(socket->loop, waiter);
}

/* The end is broken from now on. */
static void
end_break(struct end *end)
{
    struct world *world = end->host->world;
    struct flow *in = &end->link->flows[1 - end->side];
    struct flow *out = &end->link->flows[end->side];
    if (end->state == END_CLOSED || end->is_broken)
        return;
    end->is_broken = true;
    event_cancel(world, &out->arrival);
    event_cancel(world, &out->timeout);
    event_cancel(world, &out->window_update);
    out->segment_count = 0;
    if (world_once_in(world, 2))
        in->read = in->arrived; /* what had arrived may be readable still, or gone */
    if (end->state == END_CONNECTING)
        handshake_refuse(end->link, "connection reset");
    else
        end_wake(end);
}

/* --- resets ---------------------------------------------------------------------------------- */

void
end_send_reset(struct end *end)
{
    struct flow *in = &end->link->flows[1 - end->side];
    if (end->state == END_NONE || end->state == END_CLOSED || event_is_pending(&end->reset))
        return;
    struct world *world = end->host->world;
    int64_t at = world->now + link_latency(world, in->writer->host, end->host);
    event_schedule(world, &end->reset, NULL, at > in->last_at ? at : in->last_at);
}

void
reset_fire(struct world *world, struct event *event)
{
    struct end *end = container_of(event, struct end, reset);
    struct end *peer = &end->link->ends[1 - end->side];
    if (!end->link->is_forced && world_is_cut(world, peer->host, end->host))
        end->is_reset_owed = true;
    else
        end_break(end);
}

/* --- timeouts -------------------------------------------------------------------------------- */

void
flow_start_timeout(struct flow *flow)
{
    struct world *world = flow->writer->host->world;
    if (!event_is_pending(&flow->timeout))
        event_schedule(world, &flow->timeout, NULL, world->now + USER_TIMEOUT);
}

void
timeout_fire(struct world *world, struct event *event)
{
    end_break(container_of(event, struct flow, timeout)->writer);
}

/* --- cuts, breaks, crashes ------------------------------------------------------------------- */

/* The way of the bytes of `flow` is open again. */
static void
flow_heal(struct flow *flow)
{
    struct end *reader = flow->reader;
    if (flow->is_lost) {
        end_break(flow->writer);
        end_send_reset(reader);
    } else if (reader->is_reset_owed) {
        end_send_reset(reader);
    }
    reader->is_reset_owed = false;
}

/* The way back, of acknowledgements, is open again. */
static void
flow_heal_back(struct world *world, struct flow *flow)
{
    struct host *from = flow->reader->host, *to = flow->writer->host;
    if (flow->is_lost)
        return;
    event_cancel(world, &flow->timeout);
    if (!flow->is_writer_stuck)
        flow->released = flow->read;
    else if (flow->read > flow->released)
        event_schedule(world, &flow->window_update, NULL,
                       world->now + link_latency(world, from, to));
}

void
network_heal(struct world *world, struct host *from, struct host *to)
{
    list_each(node, &world->links) {
        struct link *link = list_entry(node, struct link, node);
        for (unsigned side = 0; side < 2; side++) {
            struct flow *flow = &link->flows[side];
            if (flow->writer->host == from && flow->reader->host == to)
                flow_heal(flow);
            if (flow->writer->host == to && flow->reader->host == from)
                flow_heal_back(world, flow);
        }
    }
}

static void
link_break(struct world *world, struct link *link)
{
    link->is_forced = true;
    for (unsigned side = 0; side < 2; side++)
        event_cancel(world, &link->flows[side].arrival);
    for (unsigned side = 0; side < 2; side++)
        end_send_reset(&link->ends[side]);
}

void
network_break(struct world *world, struct host *one, struct host *other)
{
    list_each(node, &world->links) {
        struct link *link = list_entry(node, struct link, node);
        struct host *client = link->ends[0].host, *server = link->ends[1].host;
        if ((client == one && server == other) || (client == other && server == one))
            link_break(world, link);
    }
}

void
network_drop_host(struct host *host, bool is_abrupt)
{
    while (!list_is_empty(&host->ends))
        end_close(list_entry(host->ends.next, struct end, node), is_abrupt);
    while (!list_is_empty(&host->listeners))
        list_pop_front(&host->listeners);
}
