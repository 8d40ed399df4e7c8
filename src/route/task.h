/* task.h - a task on its way from the run that has it to the poller that gets it.
 *
 * The engine makes it with an outbox row, matching lets it wait, the call that polled records its
 * start with the engine; the answer to that says that all of it is durable. Owners know this value,
 * not each other. */
#ifndef CADENZA_ROUTE_TASK_H
#define CADENZA_ROUTE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "cadenza/internal/v1/task.pb-c.h"
#include "wire/names.h"

enum task_type { TASK_DECISION = 0, TASK_ACTIVITY = 1 };
#define TASK_TYPE_COUNT 2

enum list_kind { LIST_NORMAL, LIST_STICKY, LIST_EPHEMERAL };

struct task {
    enum task_type type;
    enum list_kind kind;
    const char *domain_id;   /* whose list it is on (an activity's may differ from its run's) */
    const char *list;        /* name of the list */
    const char *normal_list; /* sticky: who gets it if nobody polls; else "" */
    const char *run_domain_id;
    const char *workflow_id;
    const char *run_id;
    int64_t schedule_id;
    int32_t attempt;
    int64_t created_time; /* wall clock, ns */
    int64_t expiry_time;  /* wall clock, ns; 0: none. Dropped when it waits longer */
    /* The outbox row that backs it: the row stays until the task was started, dropped or
     * stored by matching. row 0: none is left. */
    uint32_t shard;
    uint64_t range_id;
    uint64_t row;
    const char *isolation_group; /* that its run was started from; "" or NULL: none */
    int64_t number;    /* matching's own: its place in the list; 0: it never waited there */
    int32_t partition; /* matching's own: which partition of the list it is on */
    /* A query: who asks, and the encoded WorkflowQuery. It has no row and no schedule id, changes
     * nothing and is never stored: when it is lost, the asker asks again. NULL: not a query. */
    const char *query_id;
    struct slice query;
};

static inline bool
task_is_query(const struct task *task)
{
    return task->query_id != NULL;
}

/* A deep copy into the arena. */
struct task *task_copy(const struct task *task, struct arena *arena);
/* As part of a message between owners, and back. Nothing is copied. */
INTERNAL(Task) task_to_message(const struct task *task);
struct task task_from_message(const INTERNAL(Task) * message);

#endif
