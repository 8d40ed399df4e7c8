/* network.h - connections between simulated hosts, for the files of this folder only.
 *
 * A link is a connection: two ends and two flows of bytes, one each way. Links belong to the world.
 * A socket is what host code holds of one end; it lies in the host's heap. An end without socket is
 * not accepted yet, or closed.
 *
 *   written by the code → in flight (segments, each with its moment of arrival) → arrived → read by
 * the code
 *
 * At most `window` bytes are between written and read: back-pressure. Positions count bytes since
 * the beginning. */
#ifndef CADENZA_FIBER_SIM_NETWORK_H
#define CADENZA_FIBER_SIM_NETWORK_H

#include "fiber/sim/inside.h"
#include "fiber/sync.h"

struct segment {
    uint64_t end; /* position after its last byte */
    int64_t at;
};

struct flow {
    struct end *writer, *reader;
    uint8_t *buffer; /* a ring: position modulo capacity; grows up to the window */
    size_t capacity;
    size_t window;
    uint64_t written, arrived, read;
    uint64_t released;        /* how much the writer knows to be read; ≤ read */
    struct segment *segments; /* in flight, oldest first, a ring */
    size_t segment_first, segment_count, segment_room;
    int64_t last_at;      /* when the newest segment arrives: no later one may overtake */
    bool is_finished;     /* the writer has ended the stream at `written` */
    bool is_end_arrived;  /* and the reader can know it */
    bool is_lost;         /* a cut swallowed a segment; nothing more arrives */
    bool is_writer_stuck; /* found no room; waits for the reader to make some */
    struct event arrival, window_update, timeout;
};

enum handshake_phase {
    HANDSHAKE_ASK,     /* the client's request is on its way to the server */
    HANDSHAKE_ACCEPT,  /* the server's acceptance is on its way back */
    HANDSHAKE_REFUSE,  /* or its refusal */
    HANDSHAKE_FINISHED /* either way */
};

enum end_state {
    END_NONE,       /* the server's before the handshake reached it */
    END_CONNECTING, /* the client's during the handshake */
    END_WAITING,    /* the server's until it is accepted */
    END_OPEN,
    END_CLOSED, /* by its own host: closed, abandoned, crashed */
};

struct end {
    struct link *link;
    unsigned side; /* 0: client, 1: server; it writes to flows[side] */
    struct host *host;
    struct list node; /* in host->ends from CONNECTING or WAITING until CLOSED */
    enum end_state state;
    bool is_broken;     /* reset or timed out: reads and writes fail */
    bool is_reset_owed; /* a cut swallowed the reset; it comes when the way is healed */
    struct socket *socket;
    struct event reset;        /* on its way to this end */
    struct listener *listener; /* WAITING: whose backlog it is in */
    struct list backlog;
};

struct link {
    struct list node; /* in world->links */
    uint64_t id;
    struct end ends[2];
    struct flow flows[2]; /* [side]: written by ends[side] */
    bool is_forced;       /* broken from outside: resets pass every cut, bytes arrive no more */

    struct event handshake;
    enum handshake_phase phase;
    unsigned tries;      /* of this phase: each waits longer */
    struct host *server; /* NULL: there is no such host */
    unsigned port;
    unsigned client_port;
    const char *refusal; /* why the handshake failed; NULL: it has not */
    struct sim_loop *connecting_loop;
    struct fiber *connecting; /* waits for the handshake */
};

struct socket {
    struct end *end;
    struct sim_loop *loop; /* NULL: accepted, not adopted */
    struct fiber *waiter;
    unsigned want;
    char peer[80];
};

struct listener {
    struct list node; /* in host->listeners */
    struct host *host;
    struct sim_loop *loop;
    unsigned port;
    char address[80];
    bool is_closed;
    struct list backlog; /* struct end */
    size_t backlog_count;
    struct fiber_cond arrivals;
};

/* --- link.c: bytes --------------------------------------------------------------------------- */

/* A new link of `client` to nobody yet, its handshake not begun. */
struct link *link_new(struct host *client);
/* A seeded latency of the way between two hosts. */
int64_t link_latency(struct world *world, const struct host *from, const struct host *to);
/* What the end's socket can do now: SOCKET_READABLE, SOCKET_WRITABLE. */
unsigned end_can(const struct end *end);
/* Its writer waits for room: makes sure that it is woken. */
void end_want_room(struct end *end);
/* As socket_read and socket_write. */
int64_t end_read(struct end *end, void *bytes, size_t room);
int64_t end_write(struct end *end, const void *bytes, size_t count);
/* Closes an end for its host, in order or, if `is_abrupt` or bytes were left unread, by a reset.
 * Frees the link when the other end is gone too. The socket stays the caller's to free. */
void end_close(struct end *end, bool is_abrupt);
/* Puts an end into the hands of its host. */
void end_open(struct end *end, struct host *host, enum end_state state);

/* --- link_fault.c: resets, cuts -------------------------------------------------------------- */

/* Sends a reset to an end; it arrives behind the bytes already under way to it. */
void end_send_reset(struct end *end);
/* Something of this flow was not acknowledged because of a cut: its writer gives up after a time.
 */
void flow_start_timeout(struct flow *flow);
/* Wakes the fiber that waits for what the end can do. */
void end_wake(struct end *end);
void reset_fire(struct world *world, struct event *event);
void timeout_fire(struct world *world, struct event *event);

/* --- handshake.c ----------------------------------------------------------------------------- */

void handshake_fire(struct world *world, struct event *event);
/* Begins the handshake of a new link with `server`; NULL: there is no such host. */
void handshake_begin(struct link *link, struct host *server, unsigned port);
/* Ends it with a refusal; wakes the fiber that waits for it. */
void handshake_refuse(struct link *link, const char *why);
/* Takes an end out of its listener's backlog, if it is in one. */
void backlog_remove(struct end *end);

/* --- for the world --------------------------------------------------------------------------- */

/* The process on the host is gone: its ends are closed, abruptly after a crash, its listeners
 * forgotten. */
void network_drop_host(struct host *host, bool is_abrupt);
void network_heal(struct world *world, struct host *from, struct host *to);
void network_break(struct world *world, struct host *one, struct host *other);
/* All hosts are gone; frees what is left. */
void network_free(struct world *world);

#endif
