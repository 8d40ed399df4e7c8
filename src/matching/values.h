/* values.h - what goes to task lists and comes from them, as values of route/. Only files of
 * matching/ include it.
 *
 * A list talks to four kinds of places: shards that offer tasks and reserve polls, callers that
 * poll, and the other partitions of a divided list. Each value is one block, or lies in the arena
 * that goes with it; it names who waits for what comes of it by a place and a number:
 *
 *   - a poll: the caller keeps its struct poll in the table of its place, the list has a struct
 *     waiting_poll of its own, which is also what comes back. What comes back under a number that
 *     is not known any more is dropped, and a task that came with it goes back to its list.
 *   - a reservation: the shard's place keeps it, the list notes its place and number in the poll.
 *
 * Numbers of a place only rise: so a list knows a poll that comes twice. */
#ifndef CADENZA_MATCHING_VALUES_H
#define CADENZA_MATCHING_VALUES_H

#include <string.h>

#include "base/map.h"
#include "cadenza/internal/v1/list.pb-c.h"
#include "fiber/timer.h"
#include "matching/matching.h"
#include "matching/partition_group.h"
#include "route/tell.h"
#include "wire/names.h"

#define POLL_SLOT_BITS   22              /* of the table of a place; the rest is a turn */
#define POLL_GRACE       (40 * NS_PER_S) /* after its expiry a caller gives its poll up */
#define POLL_SWEEP       (5 * NS_PER_S)  /* how often a place looks for such polls */
#define DRAIN_GRACE      (5 * NS_PER_S)  /* the same, when the server drains */
#define RESERVE_PATIENCE NS_PER_S        /* of a shard, for the answer of a list */
#define RESERVED_MAX     (30 * NS_PER_S) /* after its expiry the list takes its poll back */

/* Numbers stay (ListOffer). */
enum offer_action {
    OFFER_ADD = 0,
    OFFER_RETURN = 1,
    OFFER_FINISH = 2,
    OFFER_CANCEL_QUERY = 3,
    OFFER_FORWARD = 4,
};
#define OFFER_ACTION_COUNT 5

struct offer {
    struct route_value value; /* on its way to a list */
    struct list node;
    struct arena *arena; /* all of this */
    struct task *task;
    enum offer_action offer_action;
    ticket_t ticket; /* in flight: the batch that it is in */
    bool is_known;   /* in list->known */
    bool is_held;    /* counted in matching->held: it has arrived */
    int32_t host;    /* visiting: the partition whose poll it is for */
};

/* Who waits for an answer: a number of a place. Number 0: nobody. */
struct waiter {
    unsigned place;
    uint64_t number;
};

/* A poll as its list has it: on its way there, parked, reserved, and on its way back. There are
 * very many, and most of the time they only lie there: what a match touches is in front. */
struct waiting_poll {
    struct route_value value;
    struct waiter caller;
    struct task_list *list; /* where it waits; NULL: it is on its way */
    struct list node;       /* where it is parked */
    struct timer timer;     /* its expiry; while it is reserved: when it is taken back */
    int64_t since;          /* when it came, monotonic */
    enum poll_end end;
    bool is_parked;
    bool is_withdrawn; /* while it was reserved */
    /* What it takes home. */
    struct task *task; /* in the arena, as what follows; NULL: none */
    struct arena *arena;
    int64_t backlog, waited;
    const char *request_id;
    void *start;
    struct slice start_bytes;  /* the same, as it came from elsewhere */
    struct waiter reserved_by; /* kept for a task that is about to exist (reservation.c) */
    /* What it came with. */
    int64_t expiry; /* monotonic */
    double rate_per_second;
    struct list_id list_id; /* texts behind the struct */
    const char *identity, *isolation_group, *domain_name, *base_list;
    enum list_kind kind;
};

/* --- the caller's side -------------------------------------------------------------------------
 */

struct poll_slot {
    struct poll *poll; /* NULL: free */
    int64_t given_up;  /* monotonic: it ends by itself then */
    uint32_t free_next;
};

/* The polls that were given to lists from one place, by number. */
struct poll_table {
    struct poll_slot *slots;
    uint32_t capacity, count, free_first;
    uint64_t turn;
    struct timer sweep;
};

/* --- the list's side ---------------------------------------------------------------------------
 */

/* The polls of the callers at one place that are at the lists of this loop. */
struct place_polls {
    uint64_t newest; /* number of the newest poll that came */
    struct waiting_poll **by_slot;
    uint32_t capacity;
};

/* --- the rows: how each value is written, and what becomes of it if it is lost ------------------
 */

extern const struct route_notice offer_notices[OFFER_ACTION_COUNT]; /* offer.c */
extern const struct route_notice poll_notice, matched_notice, poll_end_notice,
    recall_notice; /* waiting_poll.c */
extern const struct route_notice reserve_notice, reserved_notice, delivered_notice,
    released_notice;                            /* reserving.c */
extern const struct route_notice member_notice; /* member.c */
extern const struct route_notice group_notice;  /* partition_group.c */

/* --- message.c: as they are written ------------------------------------------------------------
 */

/* A task with texts of its own, in the arena. */
struct task *task_copy_message(const INTERNAL(Task) * message, struct arena *arena);
void list_id_to_message(const struct list_id *list_id, INTERNAL(ListId) * message);
/* With the texts of the message. */
struct list_id list_id_from_message(const INTERNAL(ListId) * message);
/* For a struct slice whose bytes nobody changes. */
ProtobufCBinaryData slice_to_message(struct slice bytes);
/* Copies a text of that size, with its NUL, to *at and moves it behind. */
static inline const char *
text_put(char **at, const char *text, size_t size)
{
    char *copy = *at;
    *at = (char *)mempcpy(copy, text, size);
    return copy;
}

/* --- offer.c -----------------------------------------------------------------------------------
 */

/* A new one of the sender: it is counted once it has arrived. */
struct offer *offer_new(struct matching *matching, const struct task *task,
                        enum offer_action offer_action);
void offer_free(struct offer *offer);
/* It is here from now on, and counts. */
void offer_hold(struct matching *matching, struct offer *offer);
/* Gives the task to the poll: from now on the arena is the caller's. */
void offer_hand_over(struct offer *offer, struct waiting_poll *poll);
/* Sends it to the list that its task names now. */
void offer_send(struct offer *offer);
/* The same for a new task. False: the mailbox is full; the offer is freed. */
must_use bool offer_try_send(struct offer *offer);
/* Sends it to a partition of its list, for one of its polls. It comes home by OFFER_RETURN if
 * none waits there by then. */
void offer_forward(struct offer *offer, int32_t host);
/* Notifies the owner of the outbox row, if there is one, that the row may go. */
void offer_row_done(struct offer *offer);

/* --- polls.c: the caller's side ----------------------------------------------------------------
 */

void poll_table_init(struct poll_table *poll_table);
/* No poll may be in it. */
void poll_table_free(struct poll_table *poll_table);
/* The server drains: those whose end does not come are given up soon. */
void poll_table_drain(struct poll_table *poll_table);
/* A poll comes home: it ends, or it is dropped if nobody waits for it. */
void poll_came_home(struct matching *matching, struct waiting_poll *poll);

/* --- waiting_poll.c: the list's side -----------------------------------------------------------
 */

/* The list's record of a poll, with texts of its own. */
struct waiting_poll *waiting_poll_new(const struct poll *poll, const struct list_id *list_id,
                                      struct waiter caller);
void waiting_poll_free(struct waiting_poll *poll);
/* Sends it to its list. False: too much is on its way there; it is the caller's. */
must_use bool waiting_poll_send(struct matching *matching, struct waiting_poll *poll);
/* Sends one that is parked, or never came to a list, home. */
void waiting_poll_send_back(struct matching *matching, struct waiting_poll *poll,
                            enum poll_end end);
/* Asks the list for a poll of this place. */
void waiting_poll_recall(struct matching *matching, const struct list_id *list_id, uint64_t number);
/* NULL: it is not here (any more). */
struct waiting_poll *waiting_poll_find(struct loop_lists *loop_lists, struct waiter caller);
void place_polls_free(struct place_polls *place_polls);
static inline bool
waiting_poll_is_reserved(const struct waiting_poll *poll)
{
    return poll->reserved_by.number != 0;
}
/* Nobody waits for the task that a poll or reservation had: it goes back to its list. One that was
 * started with its step cannot: the timeouts of its run cover that. */
void task_of_nobody(struct matching *matching, const struct task *task, bool is_started);

/* --- reservation.c: on the list's loop, no yield -----------------------------------------------
 */

/* What a reservation's poll takes home: all in the arena. */
struct reservation_outcome {
    struct task *task; /* NULL: nothing */
    const char *request_id;
    void *start;
    struct slice start_bytes; /* the same, as it came from elsewhere */
    struct arena *arena;
};

/* A poll for a task that is about to exist; NULL: such a task would have to wait. */
struct waiting_poll *reservation_grant(struct loop_lists *loop_lists, const struct list_id *list_id,
                                       struct waiter shard);
/* The reserved poll goes home with the task; the arena is its own. */
void reservation_give(struct waiting_poll *poll, const struct reservation_outcome *outcome);
/* The lists end: nobody waits for those that are still reserved. */
void reservations_forget(struct loop_lists *loop_lists);
/* The reserved poll waits on, or ends if it was withdrawn. */
void reservation_release(struct waiting_poll *poll);

/* --- start: what is to be known of a start that a reservation brought ---------------------------
 */

/* For a message, if it did not come as bytes anyhow; empty: it cannot be written, so the start is
 * in doubt. */
ProtobufCBinaryData start_to_message(const struct matching *matching, const struct task *task,
                                     void *start, struct slice start_bytes, struct arena *arena);
/* In the arena; NULL: it is in doubt. */
void *start_from_message(const struct matching *matching, const struct task *task,
                         struct slice bytes, struct arena *arena);

#endif
