/* describe.c - what operators see of lists. See matching.h.
 *
 * Questions go to the owner of the list, and to each place where all lists are asked for. The
 * pollers of a divided list are those of all its partitions. */
#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"
#include "route/ask.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

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
add_poller(API(DescribeTaskListResponse) *response, API(PollerInfo) *info, bool is_first)
{
    API(PollerInfo) *known = is_first ? NULL : find_poller(response, info->identity);
    if (known == NULL)
        response->pollers[response->n_pollers++] = info;
    else if (is_newer(info->last_access_time, known->last_access_time))
        *known = *info;
}

static API(PollerInfo) *
describe_poller(const struct poller *poller, struct arena *arena)
{
    API(PollerInfo) *info = message_new(arena, API_TYPE(poller_info));
    info->identity = arena_text(arena, poller->identity);
    info->rate_per_second = poller->rate;
    info->last_access_time = presence_make_timestamp(arena, poller->seen);
    return info;
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
        add_poller(response, describe_poller(value, arena), is_first);
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
answer_reads(const struct division *division, struct arena *arena, int32_t **reads, size_t *count)
{
    *reads = arena_zalloc(arena, division->reads, sizeof **reads);
    memcpy(*reads, division->read, division->reads * sizeof **reads);
    *count = division->reads;
}

static struct error *
serve_describe(void *context, struct owner owner, const void *argument, struct arena *arena,
               void *result)
{
    const INTERNAL(DescribeListRequest) *request = argument;
    INTERNAL(DescribeListAnswer) *answer = result;
    struct loop_lists *loop_lists = loop_lists_here(context);
    struct list_id list_id = list_id_from_message(request->list);
    API(DescribeTaskListResponse) *response =
        message_new(arena, API_TYPE(describe_task_list_response));
    answer->description = response;
    struct task_list *list = list_find(loop_lists, &list_id);
    if (list == NULL && request->has_status)
        list = list_get(loop_lists, &list_id, LIST_NORMAL);
    if (list == NULL)
        return NULL;
    if (request->has_status) {
        list_wait_loaded(list);
        response->task_list_status = describe_status(list, arena);
    }
    describe_pollers(list, arena, response);
    if (request->is_member)
        return NULL;
    struct division division;
    describe_list(list, arena, response);
    root_division(list, &division);
    if (list->partition != 0 || list->kind != LIST_NORMAL || division.reads <= 1)
        return NULL;
    response->partition_config = division_message(list, &division, arena);
    answer_reads(&division, arena, &answer->reads, &answer->n_reads);
    return NULL;
}

/* Only reads, and keeps the list in memory. */
static const struct route_question describe_question = {
    .name = "list.describe",
    .request = INTERNAL_TYPE(describe_list_request),
    .answer = INTERNAL_TYPE(describe_list_answer),
    .serve = serve_describe,
    .may_come_twice = true,
};

static struct error *
ask(struct matching *matching, const struct list_id *list_id, bool has_status, bool is_member,
    struct arena *arena, INTERNAL(DescribeListAnswer) * answer)
{
    INTERNAL(ListId) list;
    INTERNAL(DescribeListRequest) request = INTERNAL_VALUE(DESCRIBE_LIST_REQUEST__INIT);
    list_id_to_message(list_id, &list);
    request.list = &list;
    request.has_status = has_status;
    request.is_member = is_member;
    return route_ask(list_owner(list_id), &matching->service, &describe_question, &request, arena,
                     answer);
}

static void
add_pollers(API(DescribeTaskListResponse) *response, const API(DescribeTaskListResponse) *more,
            struct arena *arena)
{
    size_t count = response->n_pollers + more->n_pollers;
    API(PollerInfo) **pollers = arena_zalloc(arena, count, sizeof(void *));
    if (response->n_pollers > 0)
        memcpy(pollers, response->pollers, response->n_pollers * sizeof(void *));
    bool is_first = response->n_pollers == 0;
    response->pollers = pollers;
    for (size_t i = 0; i < more->n_pollers; i++)
        add_poller(response, more->pollers[i], is_first);
    check(response->n_pollers <= count);
}

struct error *
matching_describe(struct matching *matching, const struct list_spot *spot, bool has_status,
                  struct arena *arena, API(DescribeTaskListResponse) *response)
{
    struct list_id list_id = {spot->domain_id, spot->type, spot->name.list, spot->name.partition};
    INTERNAL(DescribeListAnswer) whole = INTERNAL_VALUE(DESCRIBE_LIST_ANSWER__INIT);
    struct error *err = ask(matching, &list_id, has_status, false, arena, &whole);
    if (err != NULL)
        return err;
    *response = *whole.description;
    for (size_t i = 0; err == NULL && i < whole.n_reads; i++) {
        INTERNAL(DescribeListAnswer) member = INTERNAL_VALUE(DESCRIBE_LIST_ANSWER__INIT);
        list_id.partition = whole.reads[i];
        if (list_id.partition == 0)
            continue;
        err = ask(matching, &list_id, false, true, arena, &member);
        if (err == NULL)
            add_pollers(response, member.description, arena);
    }
    return err;
}

/* --- many lists ------------------------------------------------------------------------------- */

static struct error *
serve_find_division(void *context, struct owner owner, const void *argument, struct arena *arena,
                    void *result)
{
    const INTERNAL(FindDivisionRequest) *request = argument;
    INTERNAL(FindDivisionAnswer) *answer = result;
    struct list_id list_id = list_id_from_message(request->list);
    struct task_list *list = list_get(loop_lists_here(context), &list_id, LIST_NORMAL);
    struct division division;
    list_wait_loaded(list);
    root_division(list, &division);
    if (list->kind != LIST_NORMAL)
        division.reads = 1;
    answer_reads(&division, arena, &answer->reads, &answer->n_reads);
    return NULL;
}

/* Only reads, and keeps the list in memory. */
static const struct route_question find_division_question = {
    .name = "list.find_division",
    .request = INTERNAL_TYPE(find_division_request),
    .answer = INTERNAL_TYPE(find_division_answer),
    .serve = serve_find_division,
    .may_come_twice = true,
};

struct error *
matching_list_partitions(struct matching *matching, const struct list_spot *spot,
                         struct arena *arena, API(TaskListPartitionMetadata) ***partitions,
                         size_t *count)
{
    struct list_id list_id = {spot->domain_id, spot->type, spot->name.list, 0};
    INTERNAL(ListId) list;
    INTERNAL(FindDivisionRequest) request = INTERNAL_VALUE(FIND_DIVISION_REQUEST__INIT);
    INTERNAL(FindDivisionAnswer) answer = INTERNAL_VALUE(FIND_DIVISION_ANSWER__INIT);
    list_id_to_message(&list_id, &list);
    request.list = &list;
    struct error *err = route_ask(list_owner(&list_id), &matching->service, &find_division_question,
                                  &request, arena, &answer);
    if (err != NULL)
        return err;
    *count = answer.n_reads;
    *partitions = arena_zalloc(arena, *count, sizeof(void *));
    for (size_t i = 0; i < *count; i++) {
        struct list_name name = {spot->name.list, answer.reads[i]};
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
    const INTERNAL(GatherListsRequest) * request;
    struct arena *arena;
    struct map *lists[TASK_TYPE_COUNT]; /* name → GatheredList */
};

static INTERNAL(GatheredList) * gathered_list(struct describe_gathering *describe_gathering,
                                              enum task_type type, const char *name)
{
    struct map *lists = describe_gathering->lists[type];
    INTERNAL(GatheredList) *gathered = map_get(lists, slice_text(name));
    if (gathered != NULL)
        return gathered;
    struct arena *arena = describe_gathering->arena;
    gathered = message_new(arena, INTERNAL_TYPE(gathered_list));
    gathered->type = type;
    gathered->name = arena_text(arena, name);
    gathered->description = message_new(arena, API_TYPE(describe_task_list_response));
    map_put(lists, slice_text(name), gathered);
    return gathered;
}

static void
gather_list(struct describe_gathering *describe_gathering, struct task_list *list)
{
    const INTERNAL(GatherListsRequest) *request = describe_gathering->request;
    bool is_wanted = request->has_all_kinds || list->kind == LIST_NORMAL;
    if (!is_wanted || strcmp(list->domain_id, request->domain_id) != 0)
        return;
    INTERNAL(GatheredList) *gathered = gathered_list(describe_gathering, list->type, list->name);
    API(DescribeTaskListResponse) *response = gathered->description;
    describe_pollers(list, describe_gathering->arena, response);
    gathered->has_root |= list->partition == 0;
    if (list->partition == 0 || response->task_list == NULL)
        describe_list(list, describe_gathering->arena, response);
    if (list->partition != 0)
        response->task_list->name = gathered->name;
}

static size_t
put_gathered(const struct map *lists, INTERNAL(GatheredList) * *out)
{
    size_t cursor = 0, count = 0;
    void *gathered;
    while (map_next(lists, &cursor, NULL, &gathered))
        out[count++] = gathered;
    return count;
}

static struct error *
serve_gather(void *context, struct owner owner, const void *argument, struct arena *arena,
             void *result)
{
    INTERNAL(GatherListsAnswer) *answer = result;
    struct describe_gathering describe_gathering = {
        .request = argument, .arena = arena, .lists = {map_new(), map_new()}};
    size_t cursor = 0;
    void *list;
    while (map_next(loop_lists_here(context)->lists, &cursor, NULL, &list))
        gather_list(&describe_gathering, list);
    for (int type = 0; type < TASK_TYPE_COUNT; type++)
        answer->n_lists += map_count(describe_gathering.lists[type]);
    answer->lists = arena_zalloc(arena, answer->n_lists, sizeof(void *));
    size_t count = 0;
    for (int type = 0; type < TASK_TYPE_COUNT; type++) {
        count += put_gathered(describe_gathering.lists[type], answer->lists + count);
        map_free(describe_gathering.lists[type]);
    }
    return NULL;
}

/* Only reads. */
static const struct route_question gather_question = {
    .name = "list.gather",
    .request = INTERNAL_TYPE(gather_lists_request),
    .answer = INTERNAL_TYPE(gather_lists_answer),
    .serve = serve_gather,
    .may_come_twice = true,
};

static void
merge_gathered(struct describe_gathering *describe_gathering, INTERNAL(GatheredList) * more)
{
    INTERNAL(GatheredList) *gathered =
        gathered_list(describe_gathering,
                      more->type == TASK_DECISION ? TASK_DECISION : TASK_ACTIVITY, more->name);
    add_pollers(gathered->description, more->description, describe_gathering->arena);
    if (more->has_root || gathered->description->task_list == NULL)
        gathered->description->task_list = more->description->task_list;
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
            entry_->value = ((INTERNAL(GatheredList) *)value_)->description;                       \
            response->field[response->n_##field++] = entry_;                                       \
        }                                                                                          \
        wire_map_sort(arena, response->field, &response->n_##field);                               \
    } while (0)

struct error *
matching_list_lists(struct matching *matching, const char *domain_id, struct arena *arena,
                    API(GetTaskListsByDomainResponse) *response)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    INTERNAL(GatherListsRequest) request = INTERNAL_VALUE(GATHER_LISTS_REQUEST__INIT);
    request.domain_id = (char *)domain_id;
    request.has_all_kinds =
        dynamic_flag(matching->options.dynamic, DYNAMIC_ALL_LIST_KINDS, &filter);
    struct describe_gathering describe_gathering = {.arena = arena,
                                                    .lists = {map_new(), map_new()}};
    struct error *err = NULL;
    for (unsigned i = 0; err == NULL && i < route_place_count(); i++) {
        INTERNAL(GatherListsAnswer) answer = INTERNAL_VALUE(GATHER_LISTS_ANSWER__INIT);
        err = route_ask(owner_at_place(i), &matching->service, &gather_question, &request, arena,
                        &answer);
        for (size_t k = 0; err == NULL && k < answer.n_lists; k++)
            merge_gathered(&describe_gathering, answer.lists[k]);
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
