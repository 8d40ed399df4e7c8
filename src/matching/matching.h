/* matching.h - task lists: tasks meet pollers.
 *
 * A list (domain, name, type) lives on one loop. A task that finds a waiting poller goes to it at
 * once; else it waits in memory up to a bound, then in the store, in order. A task in memory has
 * its outbox row behind it (route/task.h): a crash loses nothing, the shard offers it again. A task
 * that was stored no longer needs the row.
 *
 * A poll is a record of its caller, not a fiber. It belongs to the caller, to matching while it
 * waits, and to the caller again once it was matched, has expired or was withdrawn. */
#ifndef CADENZA_MATCHING_MATCHING_H
#define CADENZA_MATCHING_MATCHING_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/dynamic.h"
#include "route/reservation.h"
#include "route/task.h"
#include "store/store.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "uber/cadence/api/v1/tasklist.pb-c.h"
#include "wire/names.h"

/* Partition n > 0 of list T is the list "/__cadence_sys/T/n". */
#define PARTITION_PREFIX "/__cadence_sys/"

struct list_name {
    const char *list;  /* of the whole list, in the arena */
    int32_t partition; /* 0: the first, or all of it */
};
/* Takes a name apart. False: it begins like the name of a partition, but is not one; then a list
 * has this name. */
must_use bool list_name_parse(const char *text, struct arena *arena, struct list_name *name);
/* The name of a partition, in the arena. */
const char *list_name_format(const struct list_name *name, struct arena *arena);

struct matching_options {
    struct store *store;
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics;
    const char *host;
    bool is_alone;      /* no other host has lists in this store */
    uint32_t polls_max; /* that wait at a time, of the callers of one loop; 0: a default */
    /* The task no longer needs its outbox row (it is stored, or expired and was dropped). Any loop;
     * no yield. No longer called on a loop that matching_shut_down has reached. */
    void (*task_done)(void *context, const struct task *task);
    /* The name of a domain; NULL: there is none. Any loop; no yield. Lives until the next yield.
     * May be NULL: then names are learned from polls. */
    const char *(*domain_name)(void *context, const char *domain_id);
    /* Is the isolation group drained, for all or for this domain? Any loop; no yield. May be NULL:
     * none is. */
    bool (*is_isolation_group_drained)(void *context, const char *domain_id, const char *group);
    /* Does the server itself work on the list? Such a list stores nothing: the shard keeps a task
     * that does not fit. Any loop; no yield. May be NULL: on none. */
    bool (*is_served)(void *context, const char *domain_id, const char *list);
    /* Tasks or queries wait on such a list, or a partition of it, and nobody polls there. Called on
     * its loop, again and again as long as that is so; no yield. */
    void (*wanted)(void *context, const char *domain_id, const char *list, enum task_type type);
    /* What is to be known of a start that a reservation brought (struct reservation), as bytes and
     * back, in the arena. Any loop; no yield. May be NULL: then a start that goes to another host
     * is in doubt there, and its poller asks. */
    struct slice (*start_encode)(void *context, enum task_type type, const void *start,
                                 struct arena *arena);
    void *(*start_decode)(void *context, enum task_type type, struct slice bytes,
                          struct arena *arena);
    void *context;
};

struct matching;

struct matching *matching_new(const struct matching_options *options);
/* Every poll was ended (matching_shut_down), nobody adds. On loop 0. Yields; ignores cancellation.
 */
void matching_free(struct matching *matching);
/* From now on every poll ends empty, those that wait now included, and no task is taken. Any loop;
 * no yield. */
void matching_shut_down(struct matching *matching);

/* Takes a task. Any loop; no yield; copies it. A sticky list that nobody polled in the last ten
 * seconds passes it on to its normal list. False: no room now, try again later. */
must_use bool matching_add(struct matching *matching, const struct task *task);

/* Why a poll comes back. */
enum poll_end {
    POLL_MATCHED, /* `task` is set: the caller records its start, unless `start` says what became of
                     it */
    POLL_EMPTY,   /* its time is over, or the server drains */
    POLL_WITHDRAWN, /* the caller asked for it */
    POLL_FAILED,    /* no room, or the store failed: `failure` says why */
};

struct poll {
    /* Set by the caller before matching_poll; must stay until the poll comes back. */
    enum task_type type;
    enum list_kind kind;
    const char *domain_id, *domain_name;
    const char *list;
    const char *base_list; /* of a sticky one: the normal list; else "" */
    const char *identity;
    const char *isolation_group; /* "" or NULL: none */
    int32_t partition_wanted;    /* of the list; 0: matching chooses */
    double rate_per_second;      /* activity polls; negative: not given */
    int64_t expiry;              /* monotonic: comes back empty then */
    /* Called exactly once per matching_poll, on the loop that called it, no yield: the poll is the
     * caller's again. */
    void (*back)(struct poll *poll, enum poll_end end);
    /* Filled when it comes back. */
    struct task *task;        /* in task_arena */
    struct arena *task_arena; /* the caller's: freed by it */
    /* Where it was reserved: the id of the start, and what is known of it; NULL: it is in doubt. */
    const char *request_id;
    void *start;
    int64_t backlog; /* tasks that wait, about */
    int64_t waited;  /* ns between poll and match */
    const char *failure;
    int32_t partition; /* that it was given to */
    /* matching's own. */
    uint64_t number; /* in the table of its place; 0: it is the caller's */
    bool is_recalled;
};

/* Gives a poll to its list. It waits until `expiry`, but not longer than
 * matching.longPollExpirationInterval. Any loop; no yield; never calls `back` itself. */
void matching_poll(struct matching *matching, struct poll *poll);
/* Asks for it back; on its caller's loop, only between matching_poll and `back`. It may come back
 * matched all the same. No yield. */
void matching_withdraw(struct matching *matching, struct poll *poll);
/* A matched task that was not started (its poller had gone before): it goes to the next poller,
 * before the others. Any loop; no yield; copies it. */
void matching_return(struct matching *matching, const struct task *task);
/* A matched task was started, or was found to be void: a stored one (row 0) is deleted. The caller
 * calls either this or matching_return, once for each matched poll; a stored task for which it
 * calls neither is offered again after a minute, and found started then. Any loop; no yield. */
void matching_finish(struct matching *matching, const struct task *task);

/* Asks for a poll that waits, for a task that is about to exist; see route/reservation.h. Any loop;
 * no yield.
 */
enum reservation_end matching_reserve(struct matching *matching, struct reservation *reservation);
void matching_end_reservation(struct matching *matching, struct reservation *reservation);

/* Takes a query: it goes to the next poll of its list, before tasks, until `expiry_time`. It is
 * never stored and never passed on to another list. The caller whose poll gets it tells the asker
 * what became of it; if it cannot, it gives the query back by matching_return. Yields; copies it.
 * Errors: ERR_STICKY_WORKER_UNAVAILABLE (a sticky list that nobody polled in the last ten seconds),
 * ERR_SERVICE_BUSY (no room), ERR_UNAVAILABLE (the server drains). */
must_use struct error *matching_add_query(struct matching *matching, const struct task *query,
                                          struct arena *arena);
/* Nobody waits for the query any more: if no poll has it yet, none gets it. Any loop; no yield. */
void matching_cancel_query(struct matching *matching, const struct task *query);

/* --- describing lists: all yield -------------------------------------------------------------- */

/* Which list, or which partition of it. */
struct list_spot {
    enum task_type type;
    const char *domain_id;
    struct list_name name;
};

/* What DescribeTaskList returns: name and kind, how it is divided, pollers of the last five minutes
 * (of all partitions, if it is the whole list), and on request the status of the partition. */
must_use struct error *matching_describe(struct matching *matching, const struct list_spot *spot,
                                         bool has_status, struct arena *arena,
                                         API(DescribeTaskListResponse) *response);
/* All partitions that may have tasks, in order. */
must_use struct error *matching_list_partitions(struct matching *matching,
                                                const struct list_spot *spot, struct arena *arena,
                                                API(TaskListPartitionMetadata) ***partitions,
                                                size_t *count);
/* The lists of a domain that are in use; normal ones, unless the settings say all. */
must_use struct error *matching_list_lists(struct matching *matching, const char *domain_id,
                                           struct arena *arena,
                                           API(GetTaskListsByDomainResponse) *response);
/* Divides a list from now on, durably; all loops know it soon after. Errors: ERR_BAD_REQUEST (not a
 * division, or the scaler has the list), the store's, ERR_DEADLINE and ERR_CANCELLED (it may have
 * been done). */
must_use struct error *matching_divide(struct matching *matching, const struct list_spot *spot,
                                       const API(TaskListPartitionConfig) *config,
                                       struct arena *arena);

#endif
