/* system.h - the server's own workers: the frame that serves the types of worker.h.
 *
 * Lists of system workflows store nothing (matching.h): when a task waits without a poll, matching
 * calls the frame, which polls on the list's loop. A poll is a record, a fiber exists only while a
 * task is in work. After the last task a poll lingers a moment, then the list is quiet again: a
 * list that nobody uses costs nothing, in however many domains it could be.
 *
 * The polls and fibers of each list and of each loop are bounded; a list that gets none is
 * remembered and comes next. */
#ifndef CADENZA_SYSTEM_SYSTEM_H
#define CADENZA_SYSTEM_SYSTEM_H

#include "route/task.h"
#include "system/worker.h"

struct system_frame;

/* What is served; each list ends with NULL. */
struct system_types {
    const struct system_workflow *const *workflows;
    const struct system_activity *const *activities;
};
/* All that this server has (types.c). */
extern const struct system_types system_types;

/* Before matching is made. `domains` is needed at once, the other parts at system_open. */
struct system_frame *system_new(const struct system_types *types, struct domains *domains);
/* Ports of matching. Any loop; no yield. */
bool system_serves(const struct system_frame *frame, const char *domain_id, const char *list);
void system_wanted(struct system_frame *frame, const char *domain_id, const char *list,
                   enum task_type type);
/* Begins to work, also on what was wanted before. Once, in a fiber. Yields. */
void system_open(struct system_frame *frame, const struct system_parts *parts);
/* Ends all work, and waits for it: activities end without a report, and are tried again elsewhere,
 * or later. After matching_shut_down, while the parts are still there. Yields; cannot be
 * cancelled. */
void system_stop(struct system_frame *frame);
/* After matching_free. */
void system_free(struct system_frame *frame);

/* Registers the domains of system workflows, which exist from the first start on. Errors:
 * the owner's. Yields. */
must_use struct error *system_register_domains(struct domains *domains,
                                               const struct dynamic *dynamic, struct arena *arena);

#endif
