/* root.c - the first partition of a divided list: how the list is divided, and who meets whom. See
 * partition_group.h.
 *
 * A change of the division is recorded first and published afterwards: nobody sends a task to a
 * partition that a new owner would not look at. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
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

/* --- the division ----------------------------------------------------------------------------- */

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
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
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

/* --- recording and telling -------------------------------------------------------------------- */

static bool
may_be_divided(const struct task_list *list)
{
    return list->partition == 0 && list->kind == LIST_NORMAL && !list->loop_lists->is_drained;
}

static struct root *
root_make(struct task_list *list)
{
    check(list->partition == 0);
    if (list->root == NULL) {
        list->root = memory_zalloc(1, sizeof *list->root);
        list->root->arena = arena_new(0);
        divide_evenly(&list->root->published, 1, 1);
        list->root->rate_published = list->rate_requested;
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
    if (root->published.reads > 1 && !list->loop_lists->is_drained) {
        struct division whole;
        divide_evenly(&whole, 1, 1);
        partition_group_publish(list, &whole);
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
           root_record_state(list).version > root->version_recorded;
}

struct record_state
root_record_state(const struct task_list *list)
{
    const struct root *root = list->root;
    if (root == NULL)
        return (struct record_state){0};
    return (struct record_state){root->highest, root->config == NULL ? 0 : root->config->version};
}

void
root_recorded(struct task_list *list, struct record_state written)
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
    check(root->partition_state_count <= PARTITIONS_MAX && root->highest < PARTITIONS_MAX);
    for (size_t i = 0; i < root->partition_state_count;
         i++) /* they report again, and ignore old invitations */
        root->partition_states[i] =
            (struct partition_state){.is_drained = root->partition_states[i].is_drained};
    int32_t last = (int32_t)root->partition_state_count - 1; /* also those that were only polled */
    if (last < root->highest)
        last = root->highest;
    for (int32_t i = 0; i <= last; i++)
        notice_send(list, i, (struct notice){.kind = NOTICE_AWAKE});
}

/* Copies what is to be, or was, stored. */
static void
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
        root->version_recorded = root_record_state(list).version;
        root->highest_recorded = highest;
        if (root->highest < highest)
            root->highest = highest;
        root_wake_members(list);
    }
    list->member.refreshed = 0;
    root_refresh(list);
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
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
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
    if (division_is_same(&division, &root->published) &&
        root->rate_published == list->rate_requested)
        return;
    check(root->highest_recorded >= highest_of(&division)); /* before tasks go there */
    root->published = division;
    for (size_t i = 0; i < division.writes; i++)
        root->partition_states[division.write[i]].is_drained = false;
    root->rate_published = list->rate_requested;
    partition_group_publish(list, &division);
    member_changed(list);
}

/* --- bringing together ------------------------------------------------------------------------ */

/* A partition with polls, another one than `guest`; -1: none. */
static int32_t
find_host(const struct root *root, size_t guest)
{
    for (size_t i = 0; i < root->partition_state_count; i++) {
        size_t at = (root->turn + i) % root->partition_state_count;
        if (at != guest && root->partition_states[at].idle > 0)
            return (int32_t)at;
    }
    return -1;
}

static void
bring_together(struct task_list *list)
{
    struct root *root = list->root;
    for (size_t i = 0; i < root->partition_state_count; i++) {
        size_t guest = (root->turn + i) % root->partition_state_count;
        struct partition_state *partition_state = &root->partition_states[guest];
        if (!partition_state->is_hungry || partition_state->is_invited)
            continue;
        int32_t host = find_host(root, guest);
        if (host < 0)
            continue;
        size_t *idle = &root->partition_states[host].idle;
        size_t count = *idle < INVITED_MAX ? *idle : INVITED_MAX;
        check(count > 0 && (size_t)host != guest);
        *idle -= count;
        partition_state->is_invited = true;
        notice_send(list, (int32_t)guest,
                    (struct notice){.kind = NOTICE_INVITED, .peer = host, .count = count});
    }
    root->turn++;
}

static struct partition_state *
root_partition_state(struct root *root, int32_t partition)
{
    check(partition >= 0 && partition < PARTITIONS_MAX);
    if (root->partition_state_count <= (size_t)partition)
        root->partition_state_count = (size_t)partition + 1;
    return &root->partition_states[partition];
}

static void
receive_rate(struct task_list *list, double rate)
{
    list->rate_requested = rate;
    list->member.refreshed = 0;
    root_refresh(list);
}

void
root_receive(struct task_list *list, int32_t from, const struct notice *notice)
{
    struct root *root = root_make(list);
    struct partition_state *partition_state = root_partition_state(root, from);
    check(notice->kind != NOTICE_INVITED && notice->kind != NOTICE_AWAKE); /* a member's */
    switch (notice->kind) {
    case NOTICE_HUNGRY:
        partition_state->is_hungry = true;
        partition_state->is_drained = false;
        break;
    case NOTICE_IDLE:
        partition_state->idle = notice->count;
        break;
    case NOTICE_ANSWERED:
        check(notice->count <= INVITED_MAX && notice->peer != from);
        partition_state->is_invited = false;
        partition_state->is_hungry = notice->is_hungry;
        root_partition_state(root, notice->peer)->idle += notice->count;
        break;
    case NOTICE_RATE:
        receive_rate(list, notice->rate);
        break;
    case NOTICE_EMPTY:
        partition_state->is_drained = true;
        break;
    case NOTICE_INVITED:
    case NOTICE_AWAKE:
        break;
    }
    if (!list->backlog.is_loaded)
        backlog_kick(list);
    bring_together(list);
}
