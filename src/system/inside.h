/* inside.h - the frame from inside. Only files of system/ include it.
 *
 * frame.c is its life, slot.c who polls and works, decision.c and activity.c what is done with a
 * task, history.c how a run becomes a state.
 *
 * A slot is one poll or one task in work; it belongs to a served list, which is a task list on one
 * loop. Everything of both happens on that loop. A slot is with matching (it polls), with its fiber
 * (a task is in work), or it is being ended. */
#ifndef CADENZA_SYSTEM_INSIDE_H
#define CADENZA_SYSTEM_INSIDE_H

#include <stdatomic.h>

#include "base/map.h"
#include "fiber/sync.h"
#include "matching/matching.h"
#include "system/system.h"

#define LIST_SLOTS_MAX 32
#define LOOP_SLOTS_MAX 256 /* of each type of task */
#define POLL_LINGER    (2 * NS_PER_S)
#define DECISION_TIME  (60 * NS_PER_S) /* for one decision or query */
#define DOUBT_PAUSE    (100 * NS_PER_MS)

struct served_list {
    struct system_loop *loop;
    struct arena *arena; /* all of this */
    struct slice key;
    enum task_type type;
    const char *domain_id, *domain_name, *list;
    struct list slots; /* struct slot */
    unsigned slot_count;
    bool is_missed;     /* a poll was wanted while all slots were in use */
    struct list hungry; /* in loop->hungry: wants a slot, and the loop has none left */
};

struct worker_slot {
    struct list node; /* in served_list->slots */
    struct served_list *served_list;
    struct poll poll;
    bool is_polling;
    struct fiber *fiber; /* NULL: no task is in work */
};

/* What belongs to one loop. */
struct system_loop {
    struct system_frame *frame;
    struct map *served_lists;
    unsigned slot_count[TASK_TYPE_COUNT];
    struct list hungry[TASK_TYPE_COUNT]; /* struct served_list */
    bool is_open, is_stopping;
    struct latch working; /* slots */
};

struct system_frame {
    const struct system_types *types;
    struct domains *domains;
    struct system_parts parts; /* since it is open */
    unsigned loop_count;
    struct system_loop *loops; /* one each */
};

/* --- slot.c ---- */

/* Makes sure that somebody polls the list, now or when a slot is free. */
void served_list_want(struct system_loop *loop, const char *domain_id, const char *list,
                      enum task_type type);
/* Gives slots to the lists that wait for one, as long as there are some. */
void loop_feed(struct system_loop *loop);
void slots_stop(struct system_loop *loop);
/* Checks the counts of a loop, and, in builds that check deeply, all its lists and slots. On that
 * loop. */
void system_loop_check(const struct system_loop *loop);

/* --- decision.c, activity.c: one task of matching, in a fiber ---- */

/* False: better wait a moment before the next. */
bool work_on_decision(struct system_frame *frame, const struct task *task);
bool work_on_activity(struct system_frame *frame, const struct task *task);

/* The type of that name; NULL: it is not served there. */
const struct system_workflow *system_find_workflow(const struct system_frame *frame,
                                                   const char *domain_id, const char *type);
const struct system_activity *system_find_activity(const struct system_frame *frame,
                                                   const char *domain_id, const char *type);

#endif
