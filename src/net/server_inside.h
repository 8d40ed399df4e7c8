/* server_inside.h - the server's own structures. Private to net/server*.c and its fuzzer.
 *
 * Who owns what: the server has one server_loop per loop of the process; a server_loop has its
 * connections and spare calls; a session is one HTTP/2 connection without its socket's waiting; a
 * call belongs to its session until its stream is closed and its handler has returned, whichever
 * comes last.
 *
 * A call moves like this (each arrow is a function of server_call.c):
 *
 *   RECEIVING → READY → RUNNING → PARKED → ANSWERED → (freed)
 *       └─────────┴────────┴─────────┴──────────────↗        an answer may come from every state
 *   RUNNING, or ANSWERED while the handler still runs → GONE when the stream closes; freed when the
 * handler returns. */
#ifndef CADENZA_NET_SERVER_INSIDE_H
#define CADENZA_NET_SERVER_INSIDE_H

#include <stdatomic.h>

#include "fiber/clock.h"
#include "fiber/sync.h"
#include "fiber/timer.h"
#include "net/http2.h"
#include "net/inbox.h"
#include "net/server.h"

/* Bounds that nobody needs to configure. */
#define HEADER_BYTES_MAX      65536 /* names and values of one request */
#define HEADER_COUNT_MAX      128
#define HEADER_PLACES         64    /* of names in a block */
#define HANDLERS_MAX          4096  /* of one connection at a time, with those of cancelled calls */
#define RUNNERS_MAX           16384 /* fibers with a handler, of all loops together */
#define UNREAD_ANSWERS_MAX    10000 /* a peer that leaves more unread is not read either */
#define SPARE_CALLS_MAX       1024  /* kept for reuse, per loop */
#define RESET_COST            20    /* taken from the abuse budget for a stream that ends so */
#define RAPID_RESET_AGE       NS_PER_S        /* a stream reset younger than this costs budget */
#define ABUSE_BUDGET_MAX      20000           /* frames that do nothing useful; more means GOAWAY */
#define ABUSE_BUDGET_PER_S    10000           /* what comes back per second */
#define ABUSE_BUDGET_PER_CALL 8               /* and with every good request */
#define HANDSHAKE_TIMEOUT     (10 * NS_PER_S) /* TLS, preface and first SETTINGS */
#define LINGER_TIMEOUT        (NS_PER_S / 2)  /* for a peer to read what we sent last */
#define LINGER_CLOSING        (NS_PER_S / 10) /* the same while the server closes */
#define LINGER_BYTES          (1 << 20)
#define NOTICE_TIMEOUT        (1 * NS_PER_S)  /* between the two GOAWAYs of a graceful end */
#define PING_ACK_DELAY        (2 * NS_PER_MS) /* of one that nothing else takes along */
#define REQUEST_ARENA_MAX     4096            /* larger messages grow with what has come */
#define CALL_ARENA_SIZE       960   /* and 64 of its own; a poll that waits needs no more */
#define CALL_ARENA_FREE       1024  /* of an arena, not counted: streams_max bounds it */
#define SMALL_REQUEST         65536 /* counted, but refused only at the bound itself */
#define ABUSE_BUDGET_PER_DATA 2     /* for the two window updates that an answer's frame brings */
#define WORTHY_DATA           512   /* smaller DATA frames of ours give no budget back */
#define DESCRIPTORS_KEPT      512   /* for files of the store, the HTTP door and peers */

struct server_metrics {
    struct gauge *connections, *streams, *handlers, *parked;
    struct counter *accepted, *refused, *calls, *bytes_in, *bytes_out, *resets, *protocol_errors;
};

/* --- headers of a request, shared by all calls of a connection that sent the same ---- */

/* What the headers alone say about a request. */
struct header_verdict {
    bool is_malformed;       /* not even HTTP/2: the stream is reset */
    int http_status;         /* not 200: not gRPC at all, answered with this */
    enum grpc_status status; /* not OK: refused before the body is read */
    const char *message;     /* literal */
};

/* The objects of nghttp2 as which a field came last, NULL: not known yet; and the end of its entry.
 */
struct header_field {
    nghttp2_rcbuf *name, *value;
    size_t end;
};

/* Entries { uint16 name length, uint16 value length, name, value }; all but grpc-timeout, which
 * changes with every call. */
struct header_block {
    unsigned references; /* of calls */
    bool is_cached;
    struct slice path;
    const void *method;  /* of the path; NULL: the service has none */
    int64_t body_length; /* what they say; -1: nothing */
    struct header_verdict verdict;
    unsigned pseudo_count; /* of pseudo fields, which come first */
    unsigned field_count;
    struct header_field *fields;
    uint8_t places[HEADER_PLACES]; /* first field whose name belongs there, from 1; 0: none */
    size_t length;
    uint8_t bytes[];
};

#define HEADER_CACHE_SIZE 8 /* a worker calls about so many methods */
/* Collects the header block that is just arriving, and remembers the last distinct ones. */
struct header_gather {
    uint8_t *bytes; /* of one that is not known */
    size_t length, room;
    size_t held;                /* bytes of all blocks that calls refer to */
    struct header_block *guess; /* a known one that begins with the fields that came; NULL: none */
    unsigned field_count;       /* of these, timeouts not among them */
    unsigned timeout_count;
    unsigned timeout_place; /* how many fields came before the first */
    bool is_too_large;
    bool is_disordered;          /* it came before a pseudo field */
    nghttp2_rcbuf *timeout_name; /* as it came last; NULL: never */
    uint8_t timeout[9];          /* text of grpc-timeout */
    uint8_t timeout_length;
    struct header_block *cache[HEADER_CACHE_SIZE]; /* most recently used first */
};

struct header_entry {
    struct slice name;
    struct slice value;
};

/* `is_trailers`: not of a request. */
void header_begin(struct header_gather *gather, bool is_trailers);
void header_add(struct header_gather *gather, nghttp2_rcbuf *name, nghttp2_rcbuf *value);
/* The block, new or known, with one more reference. `server`: whose service name rpc-service must
 * be, and which knows methods. */
struct header_block *header_end(struct header_gather *gather, const struct grpc_server *server);
/* Were they good trailers? */
bool header_end_trailers(struct header_gather *gather);
/* The next of gathered entries; false: there is none. */
bool header_next(struct slice *rest, struct header_entry *entry);
struct slice header_find(const struct header_block *block, struct slice name);
struct call_header *header_list(const struct header_block *block, struct arena *arena,
                                size_t *count);
/* Takes one reference back. */
void header_release(struct header_gather *gather, struct header_block *block);
void header_gather_free(struct header_gather *gather);

/* server_fields.c: may such fields be a request's, or stand behind its body, as far as HTTP/2
 * knows? `body_length`: what they say about it, -1: nothing. */
bool fields_are_request(struct slice fields, int64_t *body_length);
bool fields_are_trailers(struct slice fields);
/* How many pseudo fields they begin with. */
unsigned fields_count_pseudo(struct slice fields);
/* What gRPC says to them. */
struct header_verdict fields_judge(const struct header_block *block, struct slice service_name);

/* --- a session ---- */

enum call_state {
    CALL_RECEIVING, /* headers are here, the body is not */
    CALL_READY,     /* whole, waits for a runner */
    CALL_RUNNING,   /* its handler runs and has not answered */
    CALL_PARKED,    /* kept by somebody who will answer */
    CALL_ANSWERED,  /* the answer is with HTTP/2, the stream still open */
    CALL_GONE,      /* the stream is closed, the handler still runs */
    CALL_STATE_COUNT
};

struct session {
    struct http2_pipe pipe; /* first: nghttp2 gives it to the send callback */
    struct server_loop *owner_loop;
    const char *peer;
    struct list runnable_node;           /* in the loop's `runnable` while it has calls to run */
    struct list calls[CALL_STATE_COUNT]; /* each in the order in which they came there */
    size_t call_count;                   /* all that live */
    size_t handler_count;                /* fibers that run */
    struct header_gather headers;
    size_t request_bytes;    /* weights of all calls: requests, and what handlers left in arenas */
    size_t receiving_bytes;  /* those of calls that are RECEIVING */
    size_t answer_bytes;     /* of calls that are ANSWERED, prefixes included */
    int64_t answer_moved_at; /* when a DATA frame last went, or the first of them began to wait */
    size_t answer_count;     /* calls that are ANSWERED */
    uint64_t bytes_shown;    /* of the pipe's bytes_out, in the metrics already */
    size_t owed;             /* received, not yet given back to the connection's window */
    int64_t began;           /* monotonic */
    int64_t last_received;   /* when the last bytes came */
    int64_t ping_sent;       /* 0: none is under way */
    size_t ping_acks;        /* with HTTP/2, not sent yet */
    struct timer ack_timer;  /* then a lone one goes */
    int64_t abuse_budget;    /* left, see ABUSE_BUDGET_MAX */
    int64_t abuse_budget_at; /* when it was last refilled */
    bool has_settings;       /* the peer's first SETTINGS came: it speaks HTTP/2 */
    bool is_goaway_sent;     /* first GOAWAY sent */
    bool is_final_goaway_sent; /* second GOAWAY sent */
    bool is_ended;             /* all streams are gone; only handlers are waited for */
    bool is_relieving;         /* calls are being refused to make room */
    int64_t goaway_sent_at;
    struct call_memory memory; /* the handlers' */
};

struct grpc_call {
    struct list node; /* in session->calls[state] */
    struct session *session;
    struct header_block *headers; /* NULL: answered, and its handler does not run */
    struct arena *arena;          /* the handler's alone while that runs, on whatever loop */
    struct fiber *fiber;          /* of the handler, NULL when it does not run */
    struct inbox inbox;           /* the request */
    struct slice reply;           /* in the arena */
    size_t reply_sent;            /* bytes of prefix and reply handed to HTTP/2 */
    size_t weight;                /* its part of session->request_bytes */
    struct timer timer;           /* at the deadline */
    int64_t began, deadline;
    void (*on_gone)(void *context);
    void *gone_context;
    int32_t stream_id;
    uint8_t state; /* enum call_state */
    bool has_timeout : 1;
    bool has_reply : 1;  /* the answer is a message, not a bare status */
    bool is_whole : 1;   /* the request has ended */
    bool is_expired : 1; /* the server answered in place of the handler, whose answer is dropped */
    bool is_closed : 1;  /* its stream is */
    bool is_parked : 1;  /* the handler has parked it, also when it was gone already */
    uint8_t timeout_length;
    uint8_t timeout[9];
};

/* Makes a session on a socket (NULL: no output), its SETTINGS queued. */
void session_init(struct session *session, struct server_loop *owner_loop, struct socket *socket,
                  const char *peer);
/* Feeds what came from the socket. False: of no use any more; flush (a GOAWAY may be there) and end
 * it. */
must_use bool session_receive(struct session *session, struct slice bytes);
/* Looks at the clock: timeouts, keepalive, the steps of a graceful end. False: end it now. `next`:
 * when to look again. */
must_use bool session_tick(struct session *session, int64_t now, int64_t *next);
/* Checks the sums over its calls, each of which is in the list of its state. */
void session_check(const struct session *session);
/* Will nothing more come or go? */
bool session_is_over(const struct session *session);
/* Every stream is gone from here on; handlers are cancelled. Closes the pipe. */
void session_end(struct session *session);
/* After session_end and when no handler runs. */
void session_free(struct session *session);
/* All that is held for the peer. */
size_t session_held(const struct session *session);
/* Gives received bytes back to the connection's window unless too much is held; refuses requests
 * that could never become whole because of that. */
void session_open_window(struct session *session);
/* One more frame that did nothing useful. */
void session_penalize(struct session *session, int64_t cost);
/* Resets a stream whose request is malformed. */
void session_reject(struct session *session, int32_t stream_id);
/* A good request: gives some of the budget back. */
void session_credit(struct session *session, int64_t gain);
/* The nghttp2 callbacks, server_callbacks.c. */
void session_set_callbacks(nghttp2_session_callbacks *callbacks);

/* --- calls ---- */

/* A new call of the session, state RECEIVING. Takes over the reference to `headers`. */
struct grpc_call *call_new(struct session *session, int32_t stream_id,
                           struct header_block *headers);
/* A piece of the body has come. */
void call_receive(struct grpc_call *call, struct slice piece);
/* The request has ended: run it, or say what is wrong. */
void call_complete(struct grpc_call *call);
/* Runs the handler of a READY call in the current fiber. Yields as the handler does. */
void call_run(struct grpc_call *call);
/* Answers with a bare status: refused by the transport. */
void call_refuse(struct grpc_call *call, enum grpc_status status, const char *message);
/* The stream is closed: the call is freed now, or when its handler returns. */
void call_close(struct grpc_call *call);
/* Moves the call to another state and keeps the sums of the session right. */
void call_move(struct grpc_call *call, enum call_state state);
/* Lets go of what a parked or answered call needs no longer, and gives the window back that this
 * allows; nothing while its handler runs. */
void call_shed(struct grpc_call *call);

/* server_runner.c: sees to it that the session's READY calls are run, unless it has too many
 * handlers already. */
void runner_wanted(struct session *session);

/* server_answer.c: each hands an answer to HTTP/2 and moves the call to ANSWERED. */
void answer_message(struct grpc_call *call, struct slice message);
void answer_status(struct grpc_call *call, int status, const char *message, const char *detail_type,
                   struct slice detail);
void answer_http_status(struct grpc_call *call, int http_status);
/* nghttp2's send_data_callback. */
int answer_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *frame_header,
                     size_t length, nghttp2_data_source *source, void *user_data);

/* --- the server ---- */

struct server_loop {
    struct grpc_server *server;
    struct list connections; /* struct connection */
    struct list runnable;    /* sessions with READY calls that may run, served in turn */
    unsigned runners;        /* fibers for handlers */
    unsigned runners_max;
    bool is_runner_due; /* one was started and has not begun */
    struct latch open;  /* one per connection and runner */
    struct list spare_calls;
    size_t spare_count;
    uint8_t *scratch;
    bool is_closing;
    int64_t close_deadline;
};

struct grpc_server {
    struct grpc_server_options options; /* defaults filled in */
    struct slice service_name;
    struct server_metrics metrics;
    struct loop *owner_loop; /* where it was opened; has the listener */
    struct listener *listener;
    struct latch accepting;
    unsigned next_loop;
    atomic_uint connection_count;
    unsigned loop_count;
    struct server_loop loops[];
};

void server_loop_init(struct server_loop *owner_loop, struct grpc_server *server);
void server_loop_free(struct server_loop *owner_loop);
/* Fills zeros with the defaults of server.h, looks up the metrics. */
void server_configure(struct grpc_server *server, const struct grpc_server_options *options);
/* Serves a socket on the current loop, in a fiber of its own. */
void connection_start(struct server_loop *owner_loop, struct socket *socket);
/* Begins the graceful end of all connections of this loop. */
void connection_close_all(struct server_loop *owner_loop, int64_t deadline);

/* Metrics may be absent. */
static inline void
count_add(struct counter *counter, uint64_t amount)
{
    if (counter != NULL && amount > 0)
        counter_add(counter, amount);
}

static inline void
level_add(struct gauge *gauge, int64_t amount)
{
    if (gauge != NULL)
        gauge_add(gauge, amount);
}

#endif
