/* partition_group.c - what each loop knows of divided lists: where tasks and polls go. See
 * partition_group.h.
 *
 * The root notifies all loops; a loop that does not know sends everything to the root, which is
 * always right. How much waits in a partition is learned from the polls that come back from it. */
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "wire/message.h"

bool
list_name_parse(const char *text, struct arena *arena, struct list_name *name)
{
    *name = (struct list_name){.list = text};
    size_t prefix = strlen(PARTITION_PREFIX);
    if (strncmp(text, PARTITION_PREFIX, prefix) != 0)
        return true;
    const char *slash = strrchr(text, '/');
    int64_t partition;
    if ((size_t)(slash - text) <= prefix ||
        !text_parse_int64(slice_text(slash + 1), 1, PARTITIONS_MAX - 1, &partition))
        return false;
    name->list = arena_text_of(arena, slice_of(text + prefix, (size_t)(slash - text) - prefix));
    name->partition = (int32_t)partition;
    return true;
}

const char *
list_name_format(const struct list_name *name, struct arena *arena)
{
    if (name->partition == 0)
        return name->list;
    return arena_format(arena, PARTITION_PREFIX "%s/%d", name->list, (int)name->partition);
}

static bool
has(const int32_t *ids, size_t count, int32_t partition)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == partition)
            return true;
    }
    return false;
}

bool
division_has_write(const struct division *division, int32_t partition)
{
    return has(division->write, division->writes, partition);
}

static void
check_ids(const int32_t *ids, size_t count)
{
    check(count >= 1 && count <= PARTITIONS_MAX && ids[0] == 0);
    for (size_t i = 1; i < count; i++)
        check(ids[i] > 0 && ids[i] < PARTITIONS_MAX && !has(ids, i, ids[i]));
}

void
division_check(const struct division *division)
{
    check(division->writes <= division->reads && division->version >= 0);
    check(division->read_seats.count <= SEATS_MAX && division->write_seats.count <= SEATS_MAX);
    check_ids(division->read, division->reads);
    check_ids(division->write, division->writes);
}

/* NULL: the list is not divided. Costs nothing where none is. */
static struct partition_group *
partition_group_find(struct loop_lists *loop_lists, const struct list_id *list_id)
{
    if (map_count(loop_lists->partition_groups) == 0)
        return NULL;
    struct list_id root = *list_id;
    root.partition = 0;
    struct partition_group *partition_group =
        map_get(loop_lists->partition_groups, list_id_key(&root, loop_lists->scratch));
    arena_reset(loop_lists->scratch);
    return partition_group;
}

struct partition_group *
partition_group_of(const struct task_list *list)
{
    struct list_id list_id = list_id_of(list);
    return partition_group_find(list->loop_lists, &list_id);
}

/* --- choosing --------------------------------------------------------------------------------- */

static bool
seats_take(const struct seats *seats, int32_t partition, uint64_t group)
{
    bool is_for_all = true;
    for (size_t i = 0; i < seats->count; i++) {
        if (seats->seat[i].partition != partition)
            continue;
        if (seats->seat[i].group == group)
            return true;
        is_for_all = false;
    }
    return is_for_all;
}

/* One of the partitions that are for the group, always the same; of all, if none is. */
static size_t
choose_seat(const struct seats *seats, const int32_t *ids, size_t count, uint64_t group)
{
    size_t fitting[PARTITIONS_MAX], found = 0;
    check(count > 0 && count <= PARTITIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (seats_take(seats, ids[i], group))
            fitting[found++] = i;
    }
    return found == 0 ? (size_t)(group % count) : fitting[group % found];
}

/* Tasks and pollers of an isolation group meet in the same partition. */
static bool
choose_by_group(const struct loop_lists *loop_lists, const struct dynamic_filter *filter,
                const char *group, const struct division *division, bool is_write, size_t *choice)
{
    const struct dynamic *dynamic = loop_lists->matching->options.dynamic;
    if (group == NULL || group[0] == '\0' ||
        !dynamic_flag(dynamic, DYNAMIC_TASK_LIST_ISOLATION, filter))
        return false;
    uint64_t hash = map_hash(slice_text(group));
    *choice = is_write
                  ? choose_seat(&division->write_seats, division->write, division->writes, hash)
                  : choose_seat(&division->read_seats, division->read, division->reads, hash);
    return true;
}

static const char *
domain_name(const struct loop_lists *loop_lists, const char *domain_id)
{
    const struct matching_options *options = &loop_lists->matching->options;
    return options->domain_name == NULL ? NULL : options->domain_name(options->context, domain_id);
}

int32_t
partition_group_choose_write(struct loop_lists *loop_lists, const struct task *task)
{
    struct list_id list_id = list_id_of_task(task);
    struct partition_group *partition_group =
        task->kind == LIST_NORMAL ? partition_group_find(loop_lists, &list_id) : NULL;
    if (partition_group == NULL)
        return 0;
    const struct division *division = &partition_group->division;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name(loop_lists, task->domain_id);
    size_t choice;
    if (!choose_by_group(loop_lists, &filter, task->isolation_group, division, true, &choice))
        choice = partition_group->write_turn++ % division->writes;
    return division->write[choice];
}

/* By backlog, if all are known and one is long; false: in turn. */
static bool
choose_by_weight(const struct partition_group *partition_group, size_t *choice)
{
    int64_t sum = 0;
    bool is_long = false;
    for (size_t i = 0; i < partition_group->division.reads; i++) {
        if (partition_group->weights[i] < 0)
            return false;
        sum += partition_group->weights[i];
        is_long |= partition_group->weights[i] > BALANCE_THRESHOLD;
    }
    if (!is_long)
        return false;
    check(sum > BALANCE_THRESHOLD);
    int64_t at = (int64_t)entropy_below((uint64_t)sum);
    size_t i = 0;
    while (at >= partition_group->weights[i])
        at -= partition_group->weights[i++];
    check(i < partition_group->division.reads);
    *choice = i;
    return true;
}

static size_t
choose_read(struct loop_lists *loop_lists, struct partition_group *partition_group,
            const struct poll *poll)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = poll->domain_name;
    filter.task_list_name = poll->list;
    filter.task_type = (int)poll->type;
    size_t count = partition_group->division.reads, choice;
    if (choose_by_group(loop_lists, &filter, poll->isolation_group, &partition_group->division,
                        false, &choice))
        return choice;
    const char *strategy =
        dynamic_text(loop_lists->matching->options.dynamic, DYNAMIC_LOAD_BALANCER, &filter);
    if (strcmp(strategy, "random") == 0)
        return (size_t)entropy_below(count);
    if (strcmp(strategy, "round-robin") != 0 && choose_by_weight(partition_group, &choice)) {
        probe("partition_by_weight");
        return choice;
    }
    return partition_group->read_turn++ % count;
}

int32_t
partition_group_choose_read(struct loop_lists *loop_lists, const struct poll *poll)
{
    check(poll->partition_wanted >= 0 && poll->partition_wanted < PARTITIONS_MAX);
    if (poll->partition_wanted > 0)
        return poll->partition_wanted;
    struct list_id list_id = {poll->domain_id, poll->type, poll->list, 0};
    struct partition_group *partition_group =
        poll->kind == LIST_NORMAL ? partition_group_find(loop_lists, &list_id) : NULL;
    return partition_group == NULL
               ? 0
               : partition_group->division.read[choose_read(loop_lists, partition_group, poll)];
}

void
partition_group_note_backlog(struct loop_lists *loop_lists, const struct poll *poll)
{
    if (map_count(loop_lists->partition_groups) == 0) /* before the poll is read: it is long ago */
        return;
    struct list_id list_id = {poll->domain_id, poll->type, poll->list, 0};
    struct partition_group *partition_group =
        poll->kind == LIST_NORMAL ? partition_group_find(loop_lists, &list_id) : NULL;
    if (partition_group == NULL)
        return;
    check(poll->backlog >= 0);
    for (size_t i = 0; i < partition_group->division.reads; i++) {
        if (partition_group->division.read[i] == poll->partition)
            partition_group->weights[i] = poll->backlog;
    }
}

bool
partition_group_redirect(struct loop_lists *loop_lists, struct offer *offer)
{
    if (offer->task->partition == 0)
        return false;
    struct list_id list_id = list_id_of_task(offer->task);
    const struct partition_group *partition_group = partition_group_find(loop_lists, &list_id);
    if (partition_group != NULL &&
        division_has_write(&partition_group->division, offer->task->partition))
        return false;
    probe("task_to_a_drained_partition");
    offer->task->partition = 0;
    offer_send(offer);
    return true;
}

/* --- being notified --------------------------------------------------------------------------- */

struct division_notice {
    struct route_value value;
    struct division division;
    double rate_requested;
    size_t key_length;
    char key[];
};

static struct division_notice *
division_notice_new(const struct division *division, double rate_requested, struct slice key)
{
    struct division_notice *division_notice = memory_alloc(sizeof *division_notice + key.length);
    division_notice->value = (struct route_value){0};
    division_notice->division = *division;
    division_notice->rate_requested = rate_requested;
    division_notice->key_length = key.length;
    memcpy(division_notice->key, key.data, key.length);
    return division_notice;
}

static size_t
seats_to_message(const struct seats *seats, INTERNAL(ListSeat) * **out, struct arena *arena)
{
    *out = arena_zalloc(arena, seats->count, sizeof(void *));
    for (size_t i = 0; i < seats->count; i++) {
        (*out)[i] = message_new(arena, INTERNAL_TYPE(list_seat));
        (*out)[i]->partition = seats->seat[i].partition;
        (*out)[i]->group = seats->seat[i].group;
    }
    return seats->count;
}

static void
seats_from_message(struct seats *seats, INTERNAL(ListSeat) *const *message, size_t count)
{
    check(count <= SEATS_MAX);
    seats->count = count;
    for (size_t i = 0; i < count; i++) {
        seats->seat[i].partition = message[i]->partition;
        seats->seat[i].group = message[i]->group;
    }
}

static struct slice
division_encode(const struct route_value *value, struct arena *arena)
{
    const struct division_notice *notice = container_of(value, struct division_notice, value);
    const struct division *division = &notice->division;
    INTERNAL(ListDivision) message = INTERNAL_VALUE(LIST_DIVISION__INIT);
    message.key = slice_to_message(slice_of(notice->key, notice->key_length));
    message.version = division->version;
    message.rate_requested = notice->rate_requested;
    message.reads = (int32_t *)division->read;
    message.n_reads = division->reads;
    message.writes = (int32_t *)division->write;
    message.n_writes = division->writes;
    message.n_read_seats = seats_to_message(&division->read_seats, &message.read_seats, arena);
    message.n_write_seats = seats_to_message(&division->write_seats, &message.write_seats, arena);
    return message_encode(arena, &message.base);
}

static struct route_value *
division_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListDivision) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_division), bytes, &message);
    if (err != NULL || message->n_reads > PARTITIONS_MAX || message->n_writes > message->n_reads ||
        message->n_read_seats > SEATS_MAX || message->n_write_seats > SEATS_MAX)
        return NULL;
    struct division division = {
        .version = message->version, .reads = message->n_reads, .writes = message->n_writes};
    memcpy(division.read, message->reads, message->n_reads * sizeof division.read[0]);
    memcpy(division.write, message->writes, message->n_writes * sizeof division.write[0]);
    seats_from_message(&division.read_seats, message->read_seats, message->n_read_seats);
    seats_from_message(&division.write_seats, message->write_seats, message->n_write_seats);
    struct slice key = slice_of(message->key.data, message->key.len);
    return &division_notice_new(&division, message->rate_requested, key)->value;
}

static void
division_free(struct route_value *value)
{
    memory_free(container_of(value, struct division_notice, value));
}

static struct partition_group *
partition_group_new(const struct loop_lists *loop_lists)
{
    struct partition_group *partition_group = memory_zalloc(1, sizeof *partition_group);
    partition_group->read_turn = partition_group->write_turn =
        (size_t)(loop_lists - loop_lists->matching->per_loop);
    return partition_group;
}

static void
partition_group_set(struct partition_group *partition_group,
                    const struct division_notice *division_notice)
{
    bool is_same = partition_group->division.reads == division_notice->division.reads;
    partition_group->division = division_notice->division;
    partition_group->rate_requested = division_notice->rate_requested;
    for (size_t i = 0; !is_same && i < PARTITIONS_MAX; i++)
        partition_group->weights[i] = -1;
    partition_group_check(partition_group);
}

static void
division_take(void *context, struct route_value *value)
{
    struct division_notice *division_notice = container_of(value, struct division_notice, value);
    struct loop_lists *loop_lists = loop_lists_here(context);
    struct slice key = slice_of(division_notice->key, division_notice->key_length);
    struct partition_group *partition_group = map_get(loop_lists->partition_groups, key);
    if (division_notice->division.reads <= 1) {
        map_remove(loop_lists->partition_groups, key);
        memory_free(partition_group);
    } else {
        if (partition_group == NULL)
            map_put(loop_lists->partition_groups, key,
                    partition_group = partition_group_new(loop_lists));
        partition_group_set(partition_group, division_notice);
    }
    memory_free(division_notice);
}

/* Lost: a place that knows no division sends all to the root, which is right; but one that knows an
 * old one would poll partitions that are no more, and nobody tells it again. So it is not lost
 * within a cluster of one host. Twice: it is the same. */
const struct route_notice group_notice = {
    .name = "list.division",
    .encode = division_encode,
    .decode = division_decode,
    .free = division_free,
    .take = division_take,
    .may_come_twice = true,
};

/* Not at once, also here: the root is in the middle of a step. */
void
partition_group_publish(struct task_list *root, const struct division *division)
{
    struct matching *matching = root->loop_lists->matching;
    check(root->partition == 0 && root->root != NULL);
    division_check(division);
    for (unsigned i = 0; i < route_place_count(); i++)
        route_tell_later(owner_at_place(i), &matching->service, &group_notice,
                         &division_notice_new(division, root->rate_requested, root->key)->value);
    probe("task_list_divided");
}

void
partition_groups_free(struct loop_lists *loop_lists)
{
    size_t cursor = 0;
    void *partition_group;
    while (map_next(loop_lists->partition_groups, &cursor, NULL, &partition_group))
        memory_free(partition_group);
    map_free(loop_lists->partition_groups);
}
