/* inside.h - the parts of the linux platform, for the files of this folder only.
 *
 * A loop is a thread (loop 0: the one that called linux_run) with a libuv loop. Only the mailbox,
 * the queue of the pool and the queues of workers are touched by more than one thread; the rest of
 * a struct linux_loop belongs to its thread while the platform runs. */
#ifndef CADENZA_FIBER_LINUX_INSIDE_H
#define CADENZA_FIBER_LINUX_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/vector.h"
#include "fiber/core.h"
#include "fiber/pool.h"

/* Many may push, one takes all: a stack that the owner turns round. */
struct mailbox {
    _Atomic(struct list *) newest; /* linked by `next` to older ones; NULL: empty */
    atomic_size_t count;           /* messages pushed and not yet delivered */
    atomic_bool is_sleeping;       /* the owner polls, or is about to: wake it after a push */
};

struct linux_loop {
    struct loop loop; /* first: the core knows only this */
    struct platform *platform;
    uv_loop_t uv;
    int awakener_descriptor; /* an eventfd that ends a poll from another thread; uv_async would spin
                                for slow senders */
    uv_poll_t awakener;
    uv_timer_t poll_timer;  /* ends a poll when a timer of the core is due */
    int64_t poll_timer_due; /* what it is set for; NEVER: not set */
    int64_t clock_added;    /* of the platform, when this loop last read the clock */
    struct mailbox mailbox;
    bool has_posted;                    /* in this turn, */
    bool *posted_to;                    /* to these loops */
    vector_of(struct worker *) to_wake; /* at the end of this turn */
    size_t pool_jobs;                   /* of this loop, in the pool or on the way back */
    size_t open_handles;                /* sockets, listeners and watches that nobody closed yet */
    int64_t stopping_since;             /* 0: not yet */
    bool is_quiet; /* nothing left to do; see stop.c. Written under platform->stop_lock */
    unsigned char entropy[256];
    size_t entropy_left; /* unused bytes at its end */
    pthread_t thread;
};

/* Threads for what blocks. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct list jobs; /* struct pool_job */
    size_t job_count;
    bool is_ending;
    unsigned thread_count;
    pthread_t *threads;
};

struct platform {
    struct linux_loop *loops;
    unsigned loop_count;
    struct pool pool;
    atomic_uint worker_count;
    _Atomic int64_t wall_skipped; /* the wall clock is ahead by this */
    _Atomic int64_t clock_added;  /* the loops' monotonic clock is ahead of the kernel's by this */
    unsigned descriptors, fibers; /* how many there may be: limits.c */
    void (*function)(void *argument);
    void *argument;
    atomic_bool is_stopping; /* the first fiber has returned */
    atomic_bool is_over;     /* every loop is quiet: leave */
    pthread_mutex_t stop_lock;
    bool catches_signals;
    uv_signal_t signals[2];
    void (*stop)(void *context); /* platform_on_stop */
    void *stop_context;
    bool is_stop_pending; /* a signal came before anybody asked for it */
    uv_signal_t hangup_signal;
    void (*hangup)(void *context); /* linux_on_hangup; NULL: SIGHUP ends the process */
    void *hangup_context;
    struct timer stop_timer;
};

/* The loop of this thread as ours. */
struct linux_loop *linux_loop_self(void);
/* Reads the monotonic clock into loop->now. On the loop's thread. */
void linux_clock_read(struct linux_loop *loop);

/* ---- loop.c ---- */

void linux_loop_open(struct linux_loop *loop, struct platform *platform, unsigned index);
/* Ticks and polls until the platform is over. On the loop's thread. */
void linux_loop_run(struct linux_loop *loop);
/* Closes what is left; all other threads have ended. */
void linux_loop_close(struct linux_loop *loop);
/* Ends its poll, or its next one. Any thread. */
void linux_loop_awake(struct linux_loop *loop);

/* ---- mailbox.c ---- */

/* Delivers all messages that were there when it began. */
void mailbox_deliver(struct linux_loop *loop);
/* At the end of a turn: wakes the sleeping loops that were sent messages in it. */
void mailbox_wake_owners(struct linux_loop *sender);
/* Announces that the owner is about to poll. False: it must not, messages wait. */
bool mailbox_fall_asleep(struct mailbox *mailbox);
void mailbox_wake_up(struct mailbox *mailbox);

/* ---- worker.c ---- */

/* At the end of a turn: wakes the sleeping workers that were posted to in it. */
void worker_wake_all(struct linux_loop *sender);

/* ---- stop.c ---- */

/* After each tick once the platform is stopping: cancels fibers, finds out whether all is quiet. */
void linux_loop_stop_step(struct linux_loop *loop);
/* It may have something to do again. */
void linux_loop_unquiet(struct linux_loop *loop);
void signals_open(struct platform *platform);
void signals_close(struct platform *platform);

/* ---- limits.c ---- */

/* Raises the limit of descriptors as far as the process may, and finds out about both limits. */
void limits_open(struct platform *platform);

/* ---- pool.c ---- */

void pool_open(struct pool *pool, unsigned threads);
void pool_close(struct pool *pool);

/* A piece of blocking work. Lives until its message has been delivered to the loop that submitted
 * it. */
struct pool_job {
    struct list node; /* in pool->jobs */
    void (*work)(void *argument);
    void *argument;
    struct loop_message message;        /* the answer */
    void (*done)(struct pool_job *job); /* on the loop, after the work */
    struct linux_loop *loop;
};
/* Queues a job; `is_bounded` obeys POOL_QUEUE_MAX (false: full, nothing happened). */
must_use bool pool_submit(struct pool_job *job, bool is_bounded);
/* Runs the work and waits for it, never refused: for callers that are bounded themselves. Yields.
 */
void pool_run_unbounded(void (*work)(void *argument), void *argument);

/* ---- poller.c ---- */

/* Readiness of one descriptor: of a socket or of a listener. `events` are SOCKET_READABLE |
 * SOCKET_WRITABLE. */
struct fd_poller {
    uv_poll_t handle;
    int descriptor;
    unsigned ready;       /* what is not known to block */
    unsigned armed;       /* what epoll is asked for */
    unsigned wanted;      /* what the waiter waits for */
    struct fiber *waiter; /* NULL: nobody */
    bool is_gone;         /* libuv has let go of the handle */
    void *owner;          /* freed when it does; NULL: still in use */
};

/* Takes the descriptor on. It counts as writable until a call says otherwise; the first wait finds
 * out about reading. */
void poller_open(struct fd_poller *poller, int descriptor);
/* Waits until one of `events` is ready, fiber_wake, deadline or cancel; what is ready now. */
unsigned poller_wait(struct fd_poller *poller, unsigned events, int64_t deadline);
/* Is it known, without asking the kernel, that a call would block? Only while epoll would report
 * the contrary. */
bool poller_would_block(const struct fd_poller *poller, unsigned event);
/* A call said that it would block. */
void poller_is_blocked(struct fd_poller *poller, unsigned events);
/* Closes the descriptor. The caller must wake its waiter. */
void poller_close(struct fd_poller *poller);
/* After poller_close: frees `owner`, the block of memory that the poller is a part of, once libuv
 * allows it. */
void poller_free(struct fd_poller *poller, void *owner);

/* ---- address.c ---- */

struct addrinfo;
/* Looks an address up: at once if it is numeric, otherwise by the pool, until `deadline`. Yields.
 * *list is freed by freeaddrinfo. Errors: ERR_UNAVAILABLE, ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *address_resolve(const char *address, bool is_passive, int64_t deadline,
                                       struct arena *arena, struct addrinfo **list);
#define ADDRESS_TEXT_SIZE 64
struct sockaddr;
/* "127.0.0.1:7833" or "[::1]:7833". */
void address_print(const struct sockaddr *address, char text[ADDRESS_TEXT_SIZE]);

/* ---- socket.c, tls.c ---- */

struct ssl_st;
struct socket {
    struct fd_poller poller;
    struct linux_loop *loop; /* NULL: accepted, not adopted */
    int descriptor;
    bool is_broken;
    struct ssl_st *ssl;   /* NULL: plain */
    unsigned read_needs;  /* what the descriptor must be ready for before a read can go on: TLS may
                             have to */
    unsigned write_needs; /* write in order to read, and the other way round */
    char peer[ADDRESS_TEXT_SIZE];
};

/* Nothing goes through it any more; waits return at once. */
void socket_break(struct socket *socket);
/* A socket around a connected descriptor, of no loop yet. */
struct socket *socket_new(int descriptor, const struct sockaddr *peer);
int64_t tls_read(struct socket *socket, void *bytes, size_t room);
int64_t tls_write(struct socket *socket, const void *bytes, size_t count);
void tls_close(struct socket *socket);

#endif
