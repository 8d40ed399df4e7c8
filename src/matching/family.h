/* family.h - lists of several partitions. Only files of matching/ include it.
 *
 * A list that is too hot for one loop is divided. Partition 0, the root, has the list's name and
 * stands for it; the others are lists of their own, on other loops, with their own rows in the
 * store. New tasks go to the write partitions in turn, polls to the read partitions.
 *
 * Three parts are played:
 *   a family   what each loop knows of a divided list, told by its root: where tasks and polls go
 *   a member   every partition: tells the root when it has polls and nothing for them, or tasks and
 *              no poll; hands its tasks to polls of others when it is invited to
 *   the root   decides how the list is divided, and brings the two together
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
 * the same way. What each of them believes of another may be old; then a visit is in vain, and the
 * answer is what is true. Everything is told again from time to time.
 *
 * The root's record says which partitions may have rows: it is durable before tasks go there, so
 * that a new owner looks at all of them. */
#ifndef CADENZA_MATCHING_FAMILY_H
#define CADENZA_MATCHING_FAMILY_H

#include "base/arena.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "fiber/loop.h"
#include "fiber/timer.h"
#include "matching/load.h"
#include "route/task.h"
#include "wire/names.h"

#define PARTITIONS_MAX    128
#define BALANCE_THRESHOLD 100 /* tasks: polls go by weight when a backlog is longer */
#define INVITED_MAX       32  /* tasks that an invitation is for */
#define SEATS_MAX         256 /* isolation groups of all partitions of a list */

struct matching;
struct offer;
struct place;
struct poll;
struct task_list;

/* Which list, or partition of one. */
struct address {
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
struct family {
    struct division division;
    size_t read_turn, write_turn;
    int64_t weights[PARTITIONS_MAX]; /* backlog of each read partition as last seen; -1: never */
    double rate_asked;               /* of all partitions together */
};

struct scaler {
    struct timer timer;
    struct lasting over, under; /* the load is too high, too low */
};

/* What a partition has told and was told. */
struct member {
    struct deferred report;
    bool is_hungry_told;
    size_t idle_told;     /* polls that the root knows of */
    size_t invited;       /* tasks that it may still hand out ... */
    int32_t invited_to;   /* ... to polls of this partition */
    int64_t refreshed;    /* root: when the settings were looked at last, monotonic */
    struct scaler scaler; /* root's */
};

/* What the root knows of a partition. */
struct part {
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
    struct division told; /* to the loops */
    double rate_told;
    size_t turn;       /* whom to invite next */
    size_t part_count; /* that were heard of */
    struct part parts[PARTITIONS_MAX];
};

/* What a record that is on its way to the store holds. */
struct record_mark {
    int32_t highest;
    int64_t version;
};

/* --- family.c: what a loop knows; no yield ------------------------------------------------------
 */

/* The partition that a new task goes to. */
int32_t family_choose_write(struct place *place, const struct task *task);
/* The partition that a poll goes to. */
int32_t family_choose_read(struct place *place, const struct poll *poll);
/* A poll is back: how much waits where it was. */
void family_note_backlog(struct place *place, const struct poll *poll);
/* A task came to a partition that takes none any more: it goes to the root instead. */
bool family_redirect(struct place *place, struct offer *offer);
/* The family of the list; NULL: it is not divided. */
struct family *family_of(const struct task_list *list);
/* Tells every loop how the list is divided now. */
void family_tell(struct task_list *root, const struct division *division);
void families_free(struct place *place);
bool division_has_read(const struct division *division, int32_t partition);
bool division_has_write(const struct division *division, int32_t partition);
/* The invariants of a division: the root is first, in order, none twice. */
void division_check(const struct division *division);

/* --- member.c: all on the list's loop, no yield
 * --------------------------------------------------- */

void member_init(struct task_list *list);
void member_free(struct task_list *list);
/* Tasks or polls came or went. */
void member_changed(struct task_list *list);
/* A poller asks for so many tasks per second, of all partitions together; the last one counts. */
void member_ask_rate(struct task_list *list, double rate);
/* What a partition has of the rate of all. */
double member_rate(const struct task_list *list, double rate);
/* A task of another partition visits. */
void member_host(struct task_list *list, struct offer *offer);
/* Tells all again, in case something was lost. */
void member_tend(struct task_list *list);
/* Other partitions have polls: what is stored here is wanted. */
bool member_is_looked_for(const struct task_list *list);

/* Messages between members and their root. */
enum note_kind {
    NOTE_HUNGRY,   /* → root */
    NOTE_IDLE,     /* → root: `count` polls */
    NOTE_INVITED,  /* root →: `count` tasks for `peer` */
    NOTE_ANSWERED, /* → root: `count` of those for `peer` were not used; `is_hungry` */
    NOTE_AWAKE,    /* root →: look what is stored; tell all anew */
    NOTE_DRAINED,  /* → root: nothing is here, and nothing comes */
    NOTE_RATE,     /* → root: a poller asks for `rate` */
};
struct note {
    enum note_kind kind;
    int32_t peer;
    size_t count;
    bool is_hungry;
    double rate;
};
void note_send(const struct task_list *from, int32_t to, struct note note);

/* --- root.c: on the root's loop ------------------------------------------------------------------
 */

/* Looks how the list is to be divided, and sees to it. */
void root_refresh(struct task_list *list);
/* The store was looked at. NULL: no record. */
void root_adopt(struct task_list *list, const STORED(TaskListRecord) *record);
/* Is there something that has to be in the record, and is not? */
bool root_wants_record(const struct task_list *list);
struct record_mark root_mark(const struct task_list *list);
/* It is durable. */
void root_recorded(struct task_list *list, struct record_mark written);
/* A member tells. */
void root_hear(struct task_list *list, int32_t from, const struct note *note);
/* How the list is to be divided. */
void root_division(const struct task_list *list, struct division *division);
/* Copies what is to be, or was, stored. */
void root_keep_config(struct root *root, const API(TaskListPartitionConfig) *config);
/* The scaler's timer. */
void root_scale(struct timer *timer);
/* It is divided like that from now on; recorded, then told. */
void root_set_config(struct task_list *list, const API(TaskListPartitionConfig) *config);
/* The list leaves memory. */
void root_free(struct task_list *list);

/* --- divide.c ------------------------------------------------------------------------------------
 */

/* As it is shown, in the arena. */
API(TaskListPartitionConfig) *division_message(const struct task_list *list,
                                               const struct division *division,
                                               struct arena *arena);
/* Looks at the load of the list, and divides it by that. No yield. */
void scaler_run(struct task_list *list);

#endif
