/* describe.c - what operators see of lists. See matching.h.
 *
 * Questions go to the loop of the list and are answered there, into the arena of the asker, who
 * waits. The pollers of a divided list are those of all its partitions. */
#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

struct describe_call {
    struct matching *matching;
    struct list_id list_id;
    bool has_status;
    bool is_member; /* only pollers are wanted, and only if it is there */
    struct arena *arena;
    API(DescribeTaskListResponse) *response;
    struct division division;
};

/* --- pollers ---------------------------------------------------------------------------------- */

static API(PollerInfo) *
find_poller(const API(DescribeTaskListResponse) *response, const char *identity)
{
    for (size_t i = 0; i < response->n_pollers; i++) {
        if (strcmp(response->pollers[i]->identity, identity) == 0)
            return response->pollers[i];
    }
    return NULL;
}

static bool
is_newer(const GOOGLE(Timestamp) *one, const GOOGLE(Timestamp) *other)
{
    return one->seconds != other->seconds ? one->seconds > other->seconds
                                          : one->nanos > other->nanos;
}

/* `is_first`: the answer has no pollers yet, so none can come twice. */
static void
describe_poller(const struct poller *poller, struct arena *arena, bool is_first,
                API(DescribeTaskListResponse) *response)
{
    API(PollerInfo) *info = message_new(arena, API_TYPE(poller_info));
    info->identity = arena_text(arena, poller->identity);
    info->rate_per_second = poller->rate;
    info->last_access_time = presence_make_timestamp(arena, poller->seen);
    API(PollerInfo) *known = is_first ? NULL : find_poller(response, poller->identity);
    if (known == NULL)
        response->pollers[response->n_pollers++] = info;
    else if (is_newer(info->last_access_time, known->last_access_time))
        *known = *info;
}

static void
describe_pollers(struct task_list *list, struct arena *arena,
                 API(DescribeTaskListResponse) *response)
{
    pollers_forget_old(list);
    bool is_first = response->n_pollers == 0;
    size_t cursor = 0, count = response->n_pollers + map_count(list->pollers);
    API(PollerInfo) **pollers = arena_zalloc(arena, count, sizeof(void *));
    if (!is_first)
        memcpy(pollers, response->pollers, response->n_pollers * sizeof(void *));
    response->pollers = pollers;
    void *value;
    while (map_next(list->pollers, &cursor, NULL, &value))
        describe_poller(value, arena, is_first, response);
    check(response->n_pollers <= count);
}

/* --- status ----------------------------------------------------------------------------------- */

/* All tasks up to this number came into memory. */
static int64_t
read_level(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return backlog->number_in_memory > backlog->read ? backlog->number_in_memory : backlog->read;
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
describe_groups(struct task_list *list, struct arena *arena, API(TaskListStatus) *status)
{
    typedef API(TaskListStatus__IsolationGroupMetricsEntry) entry_t;
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
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
describe_status(struct task_list *list, struct arena *arena)
{
    const struct backlog *backlog = &list->backlog;
    API(TaskListStatus) *status = message_new(arena, API_TYPE(task_list_status));
    list_set_rate(list);
    status->backlog_count_hint = backlog_count(list);
    status->read_level = read_level(list);
    status->ack_level = ack_level(list);
    status->rate_per_second = list->limit.rate;
    status->new_tasks_per_second = task_load_per_second(&list->task_load, clock_monotonic());
    status->empty = status->backlog_count_hint == 0;
    status->task_id_block = message_new(arena, API_TYPE(task_idblock));
    status->task_id_block->start_id = ((int64_t)backlog->range - 1) * TASK_BLOCK + 1;
    status->task_id_block->end_id = (int64_t)backlog->range * TASK_BLOCK;
    describe_groups(list, arena, status);
    return status;
}

/* --- one list --------------------------------------------------------------------------------- */

void
list_wait_loaded(struct task_list *list)
{
    list->users++;
    backlog_kick(list);
    while (!list->backlog.is_loaded && !list_is_sticky(list) && !list->loop_lists->is_drained &&
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
describe_list(const struct task_list *list, struct arena *arena,
              API(DescribeTaskListResponse) *response)
{
    struct list_name name = {arena_text(arena, list->name), list->partition};
    response->task_list = message_new(arena, API_TYPE(task_list));
    response->task_list->name = (char *)list_name_format(&name, arena);
    response->task_list->kind = wire_kind(list->kind);
}

static void
answer(void *argument)
{
    struct describe_call *describe_call = argument;
    struct loop_lists *loop_lists = loop_lists_of(describe_call->matching, &describe_call->list_id);
    struct task_list *list = list_find(loop_lists, &describe_call->list_id);
    if (list == NULL && describe_call->has_status)
        list = list_get(loop_lists, &describe_call->list_id, LIST_NORMAL);
    if (list == NULL)
        return;
    if (describe_call->has_status) {
        list_wait_loaded(list);
        describe_call->response->task_list_status = describe_status(list, describe_call->arena);
    }
    describe_pollers(list, describe_call->arena, describe_call->response);
    if (describe_call->is_member)
        return;
    describe_list(list, describe_call->arena, describe_call->response);
    root_division(list, &describe_call->division);
    if (list->partition == 0 && list->kind == LIST_NORMAL && describe_call->division.reads > 1)
        describe_call->response->partition_config =
            division_message(list, &describe_call->division, describe_call->arena);
}

static struct error *
ask(struct describe_call *describe_call)
{
    struct loop_lists *loop_lists = loop_lists_of(describe_call->matching, &describe_call->list_id);
    return loop_call(loop_lists_loop(loop_lists), answer, describe_call, describe_call->arena);
}

struct error *
matching_describe(struct matching *matching, const struct list_spot *spot, bool has_status,
                  struct arena *arena, API(DescribeTaskListResponse) *response)
{
    struct describe_call describe_call = {
        .matching = matching,
        .list_id = {spot->domain_id, spot->type, spot->name.list, spot->name.partition},
        .has_status = has_status,
        .arena = arena,
        .response = response};
    struct error *err = ask(&describe_call);
    describe_call.has_status = false;
    describe_call.is_member = true;
    bool is_whole = response->partition_config != NULL;
    for (size_t i = 0; err == NULL && is_whole && i < describe_call.division.reads; i++) {
        describe_call.list_id.partition = describe_call.division.read[i];
        if (describe_call.list_id.partition != 0)
            err = ask(&describe_call);
    }
    return err;
}

/* --- many lists ------------------------------------------------------------------------------- */

static void
find_division(void *argument)
{
    struct describe_call *describe_call = argument;
    struct loop_lists *loop_lists = loop_lists_of(describe_call->matching, &describe_call->list_id);
    struct task_list *list = list_get(loop_lists, &describe_call->list_id, LIST_NORMAL);
    list_wait_loaded(list);
    root_division(list, &describe_call->division);
    if (list->kind != LIST_NORMAL)
        describe_call->division.reads = 1;
}

struct error *
matching_list_partitions(struct matching *matching, const struct list_spot *spot,
                         struct arena *arena, API(TaskListPartitionMetadata) ***partitions,
                         size_t *count)
{
    struct describe_call describe_call = {
        .matching = matching,
        .list_id = {spot->domain_id, spot->type, spot->name.list, 0},
        .arena = arena};
    struct loop_lists *loop_lists = loop_lists_of(matching, &describe_call.list_id);
    struct error *err =
        loop_call(loop_lists_loop(loop_lists), find_division, &describe_call, arena);
    if (err != NULL)
        return err;
    *count = describe_call.division.reads;
    *partitions = arena_zalloc(arena, *count, sizeof(void *));
    for (size_t i = 0; i < *count; i++) {
        struct list_name name = {spot->name.list, describe_call.division.read[i]};
        API(TaskListPartitionMetadata) *response =
            message_new(arena, API_TYPE(task_list_partition_metadata));
        response->key = (char *)list_name_format(&name, arena);
        response->owner_host_name =
            arena_text(arena, matching->options.host == NULL ? "" : matching->options.host);
        (*partitions)[i] = response;
    }
    return NULL;
}

struct describe_gathering {
    struct loop_lists *loop_lists;
    const char *domain_id;
    bool has_all_kinds;
    struct arena *arena;
    struct map *lists[TASK_TYPE_COUNT]; /* name → DescribeTaskListResponse */
};

static void
gather_list(struct describe_gathering *describe_gathering, struct task_list *list)
{
    bool is_wanted = describe_gathering->has_all_kinds || list->kind == LIST_NORMAL;
    if (!is_wanted || strcmp(list->domain_id, describe_gathering->domain_id) != 0)
        return;
    struct map *lists = describe_gathering->lists[list->type];
    struct slice name = slice_text(list->name);
    API(DescribeTaskListResponse) *response = map_get(lists, name);
    if (response == NULL) {
        response = message_new(describe_gathering->arena, API_TYPE(describe_task_list_response));
        map_put(lists, name, response);
    }
    describe_pollers(list, describe_gathering->arena, response);
    if (list->partition == 0 || response->task_list == NULL)
        describe_list(list, describe_gathering->arena, response);
    if (list->partition != 0)
        response->task_list->name = arena_text(describe_gathering->arena, list->name);
}

static void
gather(void *argument)
{
    struct describe_gathering *describe_gathering = argument;
    size_t cursor = 0;
    void *list;
    while (map_next(describe_gathering->loop_lists->lists, &cursor, NULL, &list))
        gather_list(describe_gathering, list);
}

#define FILL_MAP(field, entry_type, map)                                                           \
    do {                                                                                           \
        size_t cursor_ = 0;                                                                        \
        struct slice name_;                                                                        \
        void *value_;                                                                              \
        response->field = arena_zalloc(arena, map_count(map), sizeof(void *));                     \
        while (map_next((map), &cursor_, &name_, &value_)) {                                       \
            __typeof__(response->field[0]) entry_ = message_new(arena, API_TYPE(entry_type));      \
            entry_->key = arena_text_of(arena, name_);                                             \
            entry_->value = value_;                                                                \
            response->field[response->n_##field++] = entry_;                                       \
        }                                                                                          \
        wire_map_sort(arena, response->field, &response->n_##field);                               \
    } while (0)

struct error *
matching_list_lists(struct matching *matching, const char *domain_id, struct arena *arena,
                    API(GetTaskListsByDomainResponse) *response)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    struct describe_gathering describe_gathering = {
        .domain_id = domain_id,
        .has_all_kinds = dynamic_flag(matching->options.dynamic, DYNAMIC_ALL_LIST_KINDS, &filter),
        .arena = arena,
        .lists = {map_new(), map_new()}};
    struct error *err = NULL;
    for (unsigned i = 0; err == NULL && i < matching->loops; i++) {
        describe_gathering.loop_lists = &matching->per_loop[i];
        err = loop_call(loop_at(i), gather, &describe_gathering, arena);
    }
    FILL_MAP(decision_task_list_map,
             get_task_lists_by_domain_response__decision_task_list_map_entry,
             describe_gathering.lists[TASK_DECISION]);
    FILL_MAP(activity_task_list_map,
             get_task_lists_by_domain_response__activity_task_list_map_entry,
             describe_gathering.lists[TASK_ACTIVITY]);
    map_free(describe_gathering.lists[TASK_DECISION]);
    map_free(describe_gathering.lists[TASK_ACTIVITY]);
    return err;
}
