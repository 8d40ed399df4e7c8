/* cross_task_fibers.h - rows that are work on other workflows, and the order in which accepted
 * requests are done. */
#ifndef CADENZA_ENGINE_OUTBOX_CROSS_TASK_FIBERS_H
#define CADENZA_ENGINE_OUTBOX_CROSS_TASK_FIBERS_H

#include "engine/outbox/outbox.h"

struct tenure;

/* --- cross_task_fibers.c ---- */

void cross_tasks_init(struct tenure *tenure);
/* A row in no list that is to be worked off. */
void cross_tasks_add(struct tenure *tenure, struct transfer *transfer);
/* Starts what may be started. */
void cross_tasks_start(struct tenure *tenure);
/* A domain has changed: those that waited for one are tried at once. */
void cross_tasks_domain_changed(struct tenure *tenure);
/* It is gone: so is its place among those that are tried again. */
void cross_task_forget(struct cross_tasks *cross_tasks, struct transfer *transfer);
void cross_tasks_free(struct tenure *tenure);
/* Those that failed and whose time has come are ready again. */
void cross_tasks_wake(struct tenure *tenure);
/* When the next one is, as it stands at this moment; NEVER: none. */
int64_t cross_tasks_next_time(const struct cross_tasks *cross_tasks);

/* --- accept.c ---- */

/* Cross-workflow tasks that are done one after the other. */
struct request_queue {
    size_t count;                 /* known rows of it, also those that do not stand in it yet */
    const struct transfer *first; /* ready, delayed or under way; NULL: none stands in it */
    struct list waiting;          /* struct transfer, behind it */
};

/* A row that is known from now on will wait in its queue. */
void request_queue_join(struct cross_tasks *cross_tasks, const struct transfer *transfer);
/* May it be done now? Else it waits in its queue until those before it are gone. */
must_use bool request_queue_enter(struct cross_tasks *cross_tasks, struct transfer *transfer);
/* It is gone; the next of its queue is ready. */
void request_queue_leave(struct cross_tasks *cross_tasks, const struct transfer *transfer);
void request_queues_free(struct cross_tasks *cross_tasks);

#endif
