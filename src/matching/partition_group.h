/* partition_group.h - lists of several partitions. Only files of matching/ include it.
 *
 * A list with more tasks than one loop can take is divided. Partition 0, the root, has the list's
 * name and stands for it; the others are lists of their own, on other loops, with their own rows in
 * the store. New tasks go to the write partitions in turn, polls to the read partitions.
 *
 * Three parts work together:
 *   - a group is what each loop knows of a divided list: where tasks and polls go;
 *   - a member is a partition: it notifies the root when it has polls and nothing for them, or
 *     tasks and no poll, and hands its tasks to polls of other partitions when it is invited;
 *   - the root decides how the list is divided, and brings the two together.
 *
 * So a lone poller gets every task, wherever they are:
 *
 *     member with a task       root                 member with a poll
 *        │ ── hungry ─────────▶ │ ◀───────────── idle ── │
 *        │ ◀──────── invited ── │                        │
 *        │ ── visit: the task itself ──────────────────▶ │ ──▶ the poll goes home with it
 *        │ ── answered ───────▶ │     (or, if the poll has gone, the task returns)
 *
 * A partition that new tasks do not go to any more (read only), or no polls either, is emptied in
 * the same way. What each of them believes of another may be old. Then a visit is in vain, and the
 * answer corrects the belief. Everything is sent again from time to time.
 *
 * The root's record says which partitions may have rows: it is durable before tasks go there, so
 * that a new owner looks at all of them. */
#ifndef CADENZA_MATCHING_PARTITION_GROUP_H
#define CADENZA_MATCHING_PARTITION_GROUP_H

#include "base/arena.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "fiber/loop.h"
#include "fiber/timer.h"
#include "matching/task_load.h"
#include "route/task.h"
#include "wire/names.h"

#define PARTITIONS_MAX    128
#define BALANCE_THRESHOLD 100 /* tasks: polls go by weight when a backlog is longer */
#define INVITED_MAX       32  /* tasks that an invitation is for */
#define SEATS_MAX         256 /* isolation groups of all partitions of a list */

struct matching;
struct offer;
struct loop_lists;
struct poll;
struct task_list;

/* Which list, or partition of one. */
struct list_id {
    const char *domain_id;
    enum task_type type;
    const char *name;
    int32_t partition;
};

/* Which partitions are for which isolation groups: one without a seat is for all. */
struct seats {
    size_t count;
    struct {
        int32_t partition;
        uint64_t group; /* hash of its name */
    } seat[SEATS_MAX];
};

/* How a list is divided: ids of partitions, in order. */
struct division {
    int64_t version; /* of what was set by somebody; 0: by the settings */
    size_t reads, writes;
    int32_t read[PARTITIONS_MAX], write[PARTITIONS_MAX];
    struct seats read_seats, write_seats;
};

/* A divided list, as one loop knows it. */
struct partition_group {
    struct division division;
    size_t read_turn, write_turn;
    int64_t weights[PARTITIONS_MAX]; /* backlog of each read partition as last seen; -1: never */
    double rate_requested;           /* of all partitions together */
};

struct scaler {
    struct timer timer;
    struct lasting over, under; /* the load is too high, too low */
};

/* What a partition has reported to its root, and what the root sent to it. */
struct member {
    struct deferred report;
    bool is_hungry_reported;
    size_t idle_reported; /* polls that the root knows of */
    size_t invited;       /* tasks that it may still hand out ... */
    int32_t invited_to;   /* ... to polls of this partition */
    int64_t refreshed;    /* root: when the settings were looked at last, monotonic */
    struct scaler scaler; /* root's */
};

/* What the root knows of a partition. */
struct partition_state {
    bool is_hungry;  /* has tasks and no poll */
    bool is_invited; /* has not answered yet */
    bool is_drained; /* takes no tasks any more, and has none */
    size_t idle;     /* polls with nothing for them */
};

struct root {
    struct arena *arena;                  /* of config */
    API(TaskListPartitionConfig) *config; /* stored, or to be stored; NULL: the settings count */
    int32_t highest;                      /* partition that may have rows */
    int32_t highest_recorded;             /* durably */
    int64_t version_recorded;
    struct division published; /* to the loops */
    double rate_published;
    size_t turn;                  /* whom to invite next */
    size_t partition_state_count; /* that have reported */
    struct partition_state partition_states[PARTITIONS_MAX];
};

/* What a record that is on its way to the store holds. */
struct record_state {
    int32_t highest;
    int64_t version;
};

/* --- partition_group.c: what a loop knows; no yield ------------------------------------------- */

/* The partition that a new task goes to. */
int32_t partition_group_choose_write(struct loop_lists *loop_lists, const struct task *task);
/* The partition that a poll goes to. */
int32_t partition_group_choose_read(struct loop_lists *loop_lists, const struct poll *poll);
/* A poll is back: how much waits where it was. */
void partition_group_note_backlog(struct loop_lists *loop_lists, const struct poll *poll);
/* A task came to a partition that no longer accepts tasks: it goes to the root instead. */
bool partition_group_redirect(struct loop_lists *loop_lists, struct offer *offer);
/* The partition group of the list; NULL: it is not divided. */
struct partition_group *partition_group_of(const struct task_list *list);
/* Notifies every loop how the list is divided now. */
void partition_group_publish(struct task_list *root, const struct division *division);
void partition_groups_free(struct loop_lists *loop_lists);
bool division_has_write(const struct division *division, int32_t partition);
/* The invariants of a division: the root is first, in order, none twice. */
void division_check(const struct division *division);
/* The invariants of what a loop knows of a divided list. */
void partition_group_check(const struct partition_group *partition_group);

/* --- member.c: all on the list's loop, no yield ----------------------------------------------- */

void member_init(struct task_list *list);
void member_free(struct task_list *list);
/* Tasks or polls came or went. */
void member_changed(struct task_list *list);
/* A poller asks for so many tasks per second, of all partitions together; the last one counts. */
void member_request_rate(struct task_list *list, double rate);
/* What a partition has of the rate of all. */
double member_rate(const struct task_list *list, double rate);
/* A task of another partition visits. */
void member_take_forwarded(struct task_list *list, struct offer *offer);
/* Reports everything again, in case something was lost. */
void member_tend(struct task_list *list);
/* Other partitions have polls: what is stored here is wanted. */
bool member_is_wanted_elsewhere(const struct task_list *list);

/* Messages between members and their root. Numbers stay (ListNotice). */
enum notice_kind {
    NOTICE_HUNGRY,   /* → root */
    NOTICE_IDLE,     /* → root: `count` polls */
    NOTICE_INVITED,  /* root →: `count` tasks for `peer` */
    NOTICE_ANSWERED, /* → root: `count` of those for `peer` were not used; `is_hungry` */
    NOTICE_AWAKE,    /* root →: look what is stored; report everything again */
    NOTICE_EMPTY,    /* → root: nothing is here, and nothing comes */
    NOTICE_RATE,     /* → root: a poller asks for `rate` */
};
struct notice {
    enum notice_kind kind;
    int32_t peer;
    size_t count;
    bool is_hungry;
    double rate;
};
void notice_send(const struct task_list *from, int32_t to, struct notice notice);

/* --- root.c: on the root's loop --------------------------------------------------------------- */

/* Looks how the list is to be divided, and sees to it. */
void root_refresh(struct task_list *list);
/* The store was looked at. NULL: no record. */
void root_adopt(struct task_list *list, const STORED(TaskListRecord) *record);
/* Is there something that has to be in the record, and is not? */
bool root_wants_record(const struct task_list *list);
struct record_state root_record_state(const struct task_list *list);
/* It is durable. */
void root_recorded(struct task_list *list, struct record_state written);
/* A notice of a member. */
void root_receive(struct task_list *list, int32_t from, const struct notice *notice);
/* How the list is to be divided. */
void root_division(const struct task_list *list, struct division *division);
/* The scaler's timer. */
void root_scale(struct timer *timer);
/* It is divided like that from now on: recorded, then published. */
void root_set_config(struct task_list *list, const API(TaskListPartitionConfig) *config);
/* The list leaves memory. */
void root_free(struct task_list *list);

/* --- divide.c --------------------------------------------------------------------------------- */

/* As it is shown, in the arena. */
API(TaskListPartitionConfig) *division_message(const struct task_list *list,
                                               const struct division *division,
                                               struct arena *arena);
/* Looks at the load of the list, and divides it by that. No yield. */
void scaler_run(struct task_list *list);

#endif
