/* describe.c - what is told about lists. See matching.h.
 *
 * Questions go to the loop of the list and are answered there, into the arena of who asks, who
 * waits. The pollers of a divided list are those of all its partitions. */
#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

struct question {
    struct matching *matching;
    struct address address;
    bool has_status;
    bool is_member; /* only pollers are wanted, and only if it is there */
    struct arena *arena;
    API(DescribeTaskListResponse) *told;
    struct division division;
};

/* --- pollers -------------------------------------------------------------------------------------
 */

static API(PollerInfo) *
find_poller(const API(DescribeTaskListResponse) *told, const char *identity)
{
    for (size_t i = 0; i < told->n_pollers; i++) {
        if (strcmp(told->pollers[i]->identity, identity) == 0)
            return told->pollers[i];
    }
    return NULL;
}

static bool
is_newer(const GOOGLE(Timestamp) *one, const GOOGLE(Timestamp) *other)
{
    return one->seconds != other->seconds ? one->seconds > other->seconds
                                          : one->nanos > other->nanos;
}

/* `is_first`: nobody was told yet, so nobody can be told twice. */
static void
tell_poller(const struct poller *poller, struct arena *arena, bool is_first,
            API(DescribeTaskListResponse) *told)
{
    API(PollerInfo) *info = message_new(arena, API_TYPE(poller_info));
    info->identity = arena_text(arena, poller->identity);
    info->rate_per_second = poller->rate;
    info->last_access_time = presence_make_timestamp(arena, poller->seen);
    API(PollerInfo) *known = is_first ? NULL : find_poller(told, poller->identity);
    if (known == NULL)
        told->pollers[told->n_pollers++] = info;
    else if (is_newer(info->last_access_time, known->last_access_time))
        *known = *info;
}

static void
tell_pollers(struct task_list *list, struct arena *arena, API(DescribeTaskListResponse) *told)
{
    pollers_forget_old(list);
    bool is_first = told->n_pollers == 0;
    size_t cursor = 0, count = told->n_pollers + map_count(list->pollers);
    API(PollerInfo) **pollers = arena_zalloc(arena, count, sizeof(void *));
    if (!is_first)
        memcpy(pollers, told->pollers, told->n_pollers * sizeof(void *));
    told->pollers = pollers;
    void *value;
    while (map_next(list->pollers, &cursor, NULL, &value))
        tell_poller(value, arena, is_first, told);
    check(told->n_pollers <= count);
}

/* --- figures -------------------------------------------------------------------------------------
 */

/* All tasks up to this number came into memory. */
static int64_t
read_level(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return backlog->number_parked > backlog->read ? backlog->number_parked : backlog->read;
}

/* All tasks up to this number are done. */
static int64_t
ack_level(const struct task_list *list)
{
    int64_t level = read_level(list);
    if (!list_is_empty(&list->backlog.outstanding))
        level = list_entry(list->backlog.outstanding.next, struct outstanding, node)->number - 1;
    list_each(node, &list->waiting) {
        const struct offer *offer = list_entry(node, struct offer, node);
        if (offer->task->number <= level)
            level = offer->task->number - 1;
    }
    return level;
}

static void
tell_groups(struct task_list *list, struct arena *arena, API(TaskListStatus) *status)
{
    typedef API(TaskListStatus__IsolationGroupMetricsEntry) entry_t;
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->place->matching->options.dynamic;
    const char *const *groups = dynamic_list(dynamic, DYNAMIC_ISOLATION_GROUPS, &filter, arena);
    size_t count = 0;
    while (groups[count] != NULL)
        count++;
    status->isolation_group_metrics = arena_zalloc(arena, count, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        entry_t *entry =
            message_new(arena, API_TYPE(task_list_status__isolation_group_metrics_entry));
        entry->key = (char *)groups[i];
        entry->value = message_new(arena, API_TYPE(isolation_group_metrics));
        entry->value->new_tasks_per_second = isolation_load(list, groups[i]);
        entry->value->poller_count = (int64_t)pollers_of_group(list, groups[i]);
        status->isolation_group_metrics[i] = entry;
    }
    status->n_isolation_group_metrics = count;
    wire_map_sort(arena, status->isolation_group_metrics, &status->n_isolation_group_metrics);
}

static API(TaskListStatus) *
tell_status(struct task_list *list, struct arena *arena)
{
    const struct backlog *backlog = &list->backlog;
    API(TaskListStatus) *status = message_new(arena, API_TYPE(task_list_status));
    list_set_rate(list);
    status->backlog_count_hint = backlog_count(list);
    status->read_level = read_level(list);
    status->ack_level = ack_level(list);
    status->rate_per_second = list->limit.rate;
    status->new_tasks_per_second = load_per_second(&list->load, clock_monotonic());
    status->empty = status->backlog_count_hint == 0;
    status->task_id_block = message_new(arena, API_TYPE(task_idblock));
    status->task_id_block->start_id = ((int64_t)backlog->range - 1) * TASK_BLOCK + 1;
    status->task_id_block->end_id = (int64_t)backlog->range * TASK_BLOCK;
    tell_groups(list, arena, status);
    return status;
}

/* --- one list ------------------------------------------------------------------------------------
 */

void
list_wait_loaded(struct task_list *list)
{
    list->users++;
    backlog_kick(list);
    while (!list->backlog.is_loaded && !list_is_sticky(list) && !list->place->is_drained &&
           !timer_is_pending(&list->backlog.retry)) {
        enum wake wake = fiber_cond_wait(&list->backlog.loaded, NEVER);
        if (wake != WAKE_READY)
            break;
    }
    list->users--;
}

static API(TaskListKind)
wire_kind(enum list_kind kind)
{
    switch (kind) {
    case LIST_STICKY:
        return API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    case LIST_EPHEMERAL:
        return API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL);
    case LIST_NORMAL:
        break;
    }
    return API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
}

static void
tell_list(const struct task_list *list, struct arena *arena, API(DescribeTaskListResponse) *told)
{
    struct list_name name = {arena_text(arena, list->name), list->partition};
    told->task_list = message_new(arena, API_TYPE(task_list));
    told->task_list->name = (char *)list_name_format(&name, arena);
    told->task_list->kind = wire_kind(list->kind);
}

static void
answer(void *argument)
{
    struct question *question = argument;
    struct place *place = place_of(question->matching, &question->address);
    struct task_list *list = list_find(place, &question->address);
    if (list == NULL && question->has_status)
        list = list_get(place, &question->address, LIST_NORMAL);
    if (list == NULL)
        return;
    if (question->has_status) {
        list_wait_loaded(list);
        question->told->task_list_status = tell_status(list, question->arena);
    }
    tell_pollers(list, question->arena, question->told);
    if (question->is_member)
        return;
    tell_list(list, question->arena, question->told);
    root_division(list, &question->division);
    if (list->partition == 0 && list->kind == LIST_NORMAL && question->division.reads > 1)
        question->told->partition_config =
            division_message(list, &question->division, question->arena);
}

static struct error *
ask(struct question *question)
{
    struct place *place = place_of(question->matching, &question->address);
    return loop_call(place_loop(place), answer, question, question->arena);
}

struct error *
matching_describe(struct matching *matching, const struct list_spot *spot, bool has_status,
                  struct arena *arena, API(DescribeTaskListResponse) *told)
{
    struct question question = {
        .matching = matching,
        .address = {spot->domain_id, spot->type, spot->name.list, spot->name.partition},
        .has_status = has_status,
        .arena = arena,
        .told = told};
    struct error *err = ask(&question);
    question.has_status = false;
    question.is_member = true;
    bool is_whole = told->partition_config != NULL;
    for (size_t i = 0; err == NULL && is_whole && i < question.division.reads; i++) {
        question.address.partition = question.division.read[i];
        if (question.address.partition != 0)
            err = ask(&question);
    }
    return err;
}

/* --- many lists ----------------------------------------------------------------------------------
 */

static void
find_division(void *argument)
{
    struct question *question = argument;
    struct place *place = place_of(question->matching, &question->address);
    struct task_list *list = list_get(place, &question->address, LIST_NORMAL);
    list_wait_loaded(list);
    root_division(list, &question->division);
    if (list->kind != LIST_NORMAL)
        question->division.reads = 1;
}

struct error *
matching_list_partitions(struct matching *matching, const struct list_spot *spot,
                         struct arena *arena, API(TaskListPartitionMetadata) ***partitions,
                         size_t *count)
{
    struct question question = {.matching = matching,
                                .address = {spot->domain_id, spot->type, spot->name.list, 0},
                                .arena = arena};
    struct place *place = place_of(matching, &question.address);
    struct error *err = loop_call(place_loop(place), find_division, &question, arena);
    if (err != NULL)
        return err;
    *count = question.division.reads;
    *partitions = arena_zalloc(arena, *count, sizeof(void *));
    for (size_t i = 0; i < *count; i++) {
        struct list_name name = {spot->name.list, question.division.read[i]};
        API(TaskListPartitionMetadata) *told =
            message_new(arena, API_TYPE(task_list_partition_metadata));
        told->key = (char *)list_name_format(&name, arena);
        told->owner_host_name =
            arena_text(arena, matching->options.host == NULL ? "" : matching->options.host);
        (*partitions)[i] = told;
    }
    return NULL;
}

struct gathering {
    struct place *place;
    const char *domain_id;
    bool has_all_kinds;
    struct arena *arena;
    struct map *lists[TASK_TYPE_COUNT]; /* name → DescribeTaskListResponse */
};

static void
gather_list(struct gathering *gathering, struct task_list *list)
{
    bool is_wanted = gathering->has_all_kinds || list->kind == LIST_NORMAL;
    if (!is_wanted || strcmp(list->domain_id, gathering->domain_id) != 0)
        return;
    struct map *lists = gathering->lists[list->type];
    struct slice name = slice_text(list->name);
    API(DescribeTaskListResponse) *told = map_get(lists, name);
    if (told == NULL) {
        told = message_new(gathering->arena, API_TYPE(describe_task_list_response));
        map_put(lists, name, told);
    }
    tell_pollers(list, gathering->arena, told);
    if (list->partition == 0 || told->task_list == NULL)
        tell_list(list, gathering->arena, told);
    if (list->partition != 0)
        told->task_list->name = arena_text(gathering->arena, list->name);
}

static void
gather(void *argument)
{
    struct gathering *gathering = argument;
    size_t cursor = 0;
    void *list;
    while (map_next(gathering->place->lists, &cursor, NULL, &list))
        gather_list(gathering, list);
}

#define FILL_MAP(field, entry_type, map)                                                           \
    do {                                                                                           \
        size_t cursor_ = 0;                                                                        \
        struct slice name_;                                                                        \
        void *value_;                                                                              \
        told->field = arena_zalloc(arena, map_count(map), sizeof(void *));                         \
        while (map_next((map), &cursor_, &name_, &value_)) {                                       \
            __typeof__(told->field[0]) entry_ = message_new(arena, API_TYPE(entry_type));          \
            entry_->key = arena_text_of(arena, name_);                                             \
            entry_->value = value_;                                                                \
            told->field[told->n_##field++] = entry_;                                               \
        }                                                                                          \
        wire_map_sort(arena, told->field, &told->n_##field);                                       \
    } while (0)

struct error *
matching_list_lists(struct matching *matching, const char *domain_id, struct arena *arena,
                    API(GetTaskListsByDomainResponse) *told)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    struct gathering gathering = {
        .domain_id = domain_id,
        .has_all_kinds = dynamic_flag(matching->options.dynamic, DYNAMIC_ALL_LIST_KINDS, &filter),
        .arena = arena,
        .lists = {map_new(), map_new()}};
    struct error *err = NULL;
    for (unsigned i = 0; err == NULL && i < matching->loops; i++) {
        gathering.place = &matching->places[i];
        err = loop_call(loop_at(i), gather, &gathering, arena);
    }
    FILL_MAP(decision_task_list_map,
             get_task_lists_by_domain_response__decision_task_list_map_entry,
             gathering.lists[TASK_DECISION]);
    FILL_MAP(activity_task_list_map,
             get_task_lists_by_domain_response__activity_task_list_map_entry,
             gathering.lists[TASK_ACTIVITY]);
    map_free(gathering.lists[TASK_DECISION]);
    map_free(gathering.lists[TASK_ACTIVITY]);
    return err;
}
