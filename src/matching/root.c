/* root.c - the first partition of a divided list: how the list is divided, and who meets whom. See
 * family.h.
 *
 * A change of the division is recorded first and told afterwards: nobody sends a task to a
 * partition that a new owner would not look at. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"
#include "wire/message.h"

#define REFRESH_INTERVAL NS_PER_S

/* The hash of the group's name is enough: groups that share one only share their partitions. */
static void
seats_add(struct seats *seats, int32_t partition, const API(TaskListPartition) *value)
{
    for (size_t i = 0; value != NULL && i < value->n_isolation_groups; i++) {
        check(seats->count < SEATS_MAX);
        seats->seat[seats->count].partition = partition;
        seats->seat[seats->count++].group = map_hash(slice_text(value->isolation_groups[i]));
    }
}

/* --- the division --------------------------------------------------------------------------------
 */

static void
divide_evenly(struct division *division, int64_t reads, int64_t writes)
{
    reads = reads < 1 ? 1 : reads > PARTITIONS_MAX ? PARTITIONS_MAX : reads;
    writes = writes < 1 ? 1 : writes > reads ? reads : writes;
    *division = (struct division){.reads = (size_t)reads, .writes = (size_t)writes};
    for (int32_t i = 0; i < (int32_t)reads; i++)
        division->read[i] = division->write[i] = i;
}

static void
divide_by_settings(const struct task_list *list, struct division *division)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->place->matching->options.dynamic;
    divide_evenly(division, dynamic_integer(dynamic, DYNAMIC_READ_PARTITIONS, &filter),
                  dynamic_integer(dynamic, DYNAMIC_WRITE_PARTITIONS, &filter));
}

static void
divide_by_config(const API(TaskListPartitionConfig) *config, struct division *division)
{
    check(config->n_read_partitions <= PARTITIONS_MAX);
    check(config->n_write_partitions <= config->n_read_partitions);
    *division = (struct division){.version = config->version};
    for (size_t i = 0; i < config->n_read_partitions; i++) {
        division->read[division->reads++] = config->read_partitions[i]->key;
        seats_add(&division->read_seats, config->read_partitions[i]->key,
                  config->read_partitions[i]->value);
    }
    for (size_t i = 0; i < config->n_write_partitions; i++) {
        division->write[division->writes++] = config->write_partitions[i]->key;
        seats_add(&division->write_seats, config->write_partitions[i]->key,
                  config->write_partitions[i]->value);
    }
}

void
root_division(const struct task_list *list, struct division *division)
{
    if (list->root != NULL && list->root->config != NULL)
        divide_by_config(list->root->config, division);
    else
        divide_by_settings(list, division);
}

static bool
division_is_same(const struct division *one, const struct division *other)
{
    return one->version == other->version && one->reads == other->reads &&
           one->writes == other->writes;
}

/* --- recording and telling -----------------------------------------------------------------------
 */

static bool
may_be_divided(const struct task_list *list)
{
    return list->partition == 0 && list->kind == LIST_NORMAL && !list->place->is_drained;
}

static struct root *
root_make(struct task_list *list)
{
    check(list->partition == 0);
    if (list->root == NULL) {
        list->root = memory_zalloc(1, sizeof *list->root);
        list->root->arena = arena_new(0);
        divide_evenly(&list->root->told, 1, 1);
        list->root->rate_told = list->rate_asked;
        member_changed(list); /* it is one from now on, with what it has already */
    }
    return list->root;
}

void
root_free(struct task_list *list)
{
    struct root *root = list->root;
    if (root == NULL)
        return;
    if (root->told.reads > 1 && !list->place->is_drained) {
        struct division whole;
        divide_evenly(&whole, 1, 1);
        family_tell(list, &whole);
    }
    arena_free(root->arena);
    memory_free(root);
    list->root = NULL;
}

bool
root_wants_record(const struct task_list *list)
{
    const struct root *root = list->root;
    if (root == NULL || !list->backlog.is_loaded)
        return false;
    return root->highest > root->highest_recorded ||
           root_mark(list).version > root->version_recorded;
}

struct record_mark
root_mark(const struct task_list *list)
{
    const struct root *root = list->root;
    if (root == NULL)
        return (struct record_mark){0};
    return (struct record_mark){root->highest, root->config == NULL ? 0 : root->config->version};
}

void
root_recorded(struct task_list *list, struct record_mark written)
{
    struct root *root = list->root;
    if (root == NULL)
        return;
    check(list->partition == 0 && written.highest <= root->highest);
    root->highest_recorded = written.highest;
    root->version_recorded = written.version;
    list->member.refreshed = 0;
    root_refresh(list);
}

static void
root_wake_members(struct task_list *list)
{
    struct root *root = list->root;
    check(root->part_count <= PARTITIONS_MAX && root->highest < PARTITIONS_MAX);
    for (size_t i = 0; i < root->part_count; i++) /* they tell anew, and take no old invitation */
        root->parts[i] = (struct part){.is_drained = root->parts[i].is_drained};
    int32_t last = (int32_t)root->part_count - 1; /* also those that were only polled */
    if (last < root->highest)
        last = root->highest;
    for (int32_t i = 0; i <= last; i++)
        note_send(list, i, (struct note){.kind = NOTE_AWAKE});
}

void
root_adopt(struct task_list *list, const STORED(TaskListRecord) *record)
{
    if (!may_be_divided(list))
        return;
    int32_t highest = record == NULL ? 0 : record->partition_highest;
    const API(TaskListPartitionConfig) *config = record == NULL ? NULL : record->partition_config;
    if (list->root != NULL || config != NULL || highest > 0) {
        struct root *root = root_make(list);
        root->config = NULL;
        if (config != NULL)
            root_keep_config(root, config);
        root->version_recorded = root_mark(list).version;
        root->highest_recorded = highest;
        if (root->highest < highest)
            root->highest = highest;
        root_wake_members(list);
    }
    list->member.refreshed = 0;
    root_refresh(list);
}

void
root_keep_config(struct root *root, const API(TaskListPartitionConfig) *config)
{
    struct arena *arena = arena_new(0);
    API(TaskListPartitionConfig) *copy = NULL;
    struct slice bytes = message_encode(arena, &config->base);
    struct error *err = message_decode(arena, API_TYPE(task_list_partition_config), bytes, &copy);
    check(err == NULL && config->version > 0);
    arena_free(root->arena);
    root->arena = arena;
    root->config = copy;
}

void
root_set_config(struct task_list *list, const API(TaskListPartitionConfig) *config)
{
    root_keep_config(root_make(list), config);
    list->member.refreshed = 0;
    root_refresh(list);
    backlog_kick(list);
}

/* The scaler looks again and again, as long as it is wanted. */
static void
scaler_plan(struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->place->matching->options.dynamic;
    struct timer *timer = &list->member.scaler.timer;
    if (timer_is_pending(timer) || !dynamic_flag(dynamic, DYNAMIC_ADAPTIVE_SCALER, &filter))
        return;
    int64_t interval = dynamic_duration(dynamic, DYNAMIC_SCALER_INTERVAL, &filter);
    timer_start(timer, clock_monotonic() + (interval < NS_PER_MS ? NS_PER_MS : interval));
}

void
root_scale(struct timer *timer)
{
    struct task_list *list = container_of(timer, struct task_list, member.scaler.timer);
    check(list->partition == 0); /* nobody else starts the timer */
    if (!may_be_divided(list))
        return;
    if (list->backlog.is_loaded)
        scaler_run(list);
    else
        backlog_kick(list);
    scaler_plan(list);
}

static int32_t
highest_of(const struct division *division)
{
    int32_t highest = 0;
    for (size_t i = 0; i < division->reads; i++)
        highest = division->read[i] > highest ? division->read[i] : highest;
    return highest;
}

/* The highest partition of the division is in the record, or will be. */
static bool
is_recorded(struct task_list *list, const struct division *division)
{
    struct root *root = list->root;
    int32_t highest = highest_of(division);
    if (root->highest < highest)
        root->highest = highest;
    return !root_wants_record(list);
}

void
root_refresh(struct task_list *list)
{
    int64_t now = clock_monotonic();
    if (!may_be_divided(list) ||
        (list->member.refreshed != 0 && now - list->member.refreshed < REFRESH_INTERVAL))
        return;
    list->member.refreshed = now;
    scaler_plan(list);
    struct division division;
    root_division(list, &division);
    if (list->root == NULL && division.reads == 1)
        return;
    struct root *root = root_make(list);
    if (!list->backlog.is_loaded || !is_recorded(list, &division)) {
        backlog_kick(list); /* comes back here when that is done */
        return;
    }
    if (division_is_same(&division, &root->told) && root->rate_told == list->rate_asked)
        return;
    check(root->highest_recorded >= highest_of(&division)); /* before tasks go there */
    root->told = division;
    for (size_t i = 0; i < division.writes; i++)
        root->parts[division.write[i]].is_drained = false;
    root->rate_told = list->rate_asked;
    family_tell(list, &division);
    member_changed(list);
}

/* --- bringing together --------------------------------------------------------------------------
 */

/* A partition with polls, another one than `guest`; -1: none. */
static int32_t
find_host(const struct root *root, size_t guest)
{
    for (size_t i = 0; i < root->part_count; i++) {
        size_t at = (root->turn + i) % root->part_count;
        if (at != guest && root->parts[at].idle > 0)
            return (int32_t)at;
    }
    return -1;
}

static void
bring_together(struct task_list *list)
{
    struct root *root = list->root;
    for (size_t i = 0; i < root->part_count; i++) {
        size_t guest = (root->turn + i) % root->part_count;
        struct part *part = &root->parts[guest];
        if (!part->is_hungry || part->is_invited)
            continue;
        int32_t host = find_host(root, guest);
        if (host < 0)
            continue;
        size_t *idle = &root->parts[host].idle;
        size_t count = *idle < INVITED_MAX ? *idle : INVITED_MAX;
        check(count > 0 && (size_t)host != guest);
        *idle -= count;
        part->is_invited = true;
        note_send(list, (int32_t)guest,
                  (struct note){.kind = NOTE_INVITED, .peer = host, .count = count});
    }
    root->turn++;
}

static struct part *
root_part(struct root *root, int32_t partition)
{
    check(partition >= 0 && partition < PARTITIONS_MAX);
    if (root->part_count <= (size_t)partition)
        root->part_count = (size_t)partition + 1;
    return &root->parts[partition];
}

static void
hear_rate(struct task_list *list, double rate)
{
    list->rate_asked = rate;
    list->member.refreshed = 0;
    root_refresh(list);
}

void
root_hear(struct task_list *list, int32_t from, const struct note *note)
{
    struct root *root = root_make(list);
    struct part *part = root_part(root, from);
    check(note->kind != NOTE_INVITED && note->kind != NOTE_AWAKE); /* a member's */
    switch (note->kind) {
    case NOTE_HUNGRY:
        part->is_hungry = true;
        part->is_drained = false;
        break;
    case NOTE_IDLE:
        part->idle = note->count;
        break;
    case NOTE_ANSWERED:
        check(note->count <= INVITED_MAX && note->peer != from);
        part->is_invited = false;
        part->is_hungry = note->is_hungry;
        root_part(root, note->peer)->idle += note->count;
        break;
    case NOTE_RATE:
        hear_rate(list, note->rate);
        break;
    case NOTE_DRAINED:
        part->is_drained = true;
        break;
    case NOTE_INVITED:
    case NOTE_AWAKE:
        break;
    }
    if (!list->backlog.is_loaded)
        backlog_kick(list);
    bring_together(list);
}
