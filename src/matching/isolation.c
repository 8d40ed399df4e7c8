/* isolation.c - which poll a task may go to, where isolation groups count. See matching.h.
 *
 * A task waits for a poller of its group, but not longer than a moment, and not at all if the group
 * is drained or has no pollers: better the wrong group than none. A poller of a drained group gets
 * nothing. So the tasks that wait for their group are the newest ones, and few. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

bool
list_is_isolated(const struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    return !list_is_sticky(list) && dynamic_flag(dynamic, DYNAMIC_TASK_LIST_ISOLATION, &filter);
}

static bool
is_isolation_group_drained(const struct task_list *list, const char *group)
{
    const struct matching_options *options = &list->loop_lists->matching->options;
    return options->is_isolation_group_drained != NULL &&
           options->is_isolation_group_drained(options->context, list->domain_id, group);
}

/* Is it one of those that the settings name? If they name none, all are. */
static bool
is_known(const struct task_list *list, const char *group)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    const char *const *groups =
        dynamic_list(dynamic, DYNAMIC_ISOLATION_GROUPS, &filter, list->loop_lists->scratch);
    bool is_named = groups[0] == NULL;
    for (size_t i = 0; groups[i] != NULL; i++)
        is_named |= strcmp(groups[i], group) == 0;
    arena_reset(list->loop_lists->scratch);
    return is_named;
}

/* When the task may go to any group, wall clock; 0: now. */
static int64_t
leaks_at(const struct task_list *list, const struct offer *offer)
{
    const char *group = offer->task->isolation_group;
    check(group != NULL && !list_is_sticky(list));
    if (group[0] == '\0' || task_is_query(offer->task))
        return 0;
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    int64_t leak =
        offer->task->created_time + dynamic_duration(dynamic, DYNAMIC_ISOLATION_DURATION, &filter);
    if (leak <= clock_wall() || is_isolation_group_drained(list, group) || !is_known(list, group) ||
        pollers_of_group(list, group) == 0)
        return 0;
    return leak;
}

struct waiting_poll *
list_choose_poll(struct task_list *list, const struct offer *offer, bool is_forwarded)
{
    if (list->poll_count == 0)
        return NULL;
    if (!list_is_isolated(list))
        return list_entry(list->polls.next, struct waiting_poll, node);
    struct waiting_poll *any = NULL;
    const char *group = offer->task->isolation_group;
    list_each(node, &list->polls) {
        struct waiting_poll *poll = list_entry(node, struct waiting_poll, node);
        bool is_same = strcmp(poll->isolation_group, group) == 0;
        if ((!is_same && any != NULL) || is_isolation_group_drained(list, poll->isolation_group))
            continue;
        if (is_same)
            return poll;
        any = poll;
    }
    if (any == NULL)
        return NULL;
    int64_t leak = is_forwarded ? 0 : leaks_at(list, offer);
    if (leak == 0) {
        if (group[0] != '\0')
            probe("task_leaves_its_group");
        return any;
    }
    if (!timer_is_pending(&list->isolation)) /* the oldest comes first */
        timer_start(&list->isolation, clock_monotonic() + (leak - clock_wall()));
    return NULL;
}

void
list_dispatch_isolated(struct task_list *list)
{
    int64_t wall = clock_wall();
    backlog_recall(list);
    list_each_safe(node, &list->waiting) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (list->poll_count == 0)
            break;
        if (offer_is_expired(offer, wall)) {
            list_remove_waiting(list, offer);
            list_expire(list, offer);
            continue;
        }
        struct waiting_poll *poll = list_choose_poll(list, offer, false);
        if (poll == NULL)
            continue;
        if (!list_has_token(list))
            break;
        check(poll->is_parked && poll->list == list);
        list_remove_waiting(list, offer);
        list_hand_out(list, offer);
        list_give(list, offer, poll);
    }
}

/* --- load ------------------------------------------------------------------------------------- */

void
isolation_note(struct task_list *list, const struct task *task)
{
    const char *group = task->isolation_group;
    if (group[0] == '\0' || !list_is_isolated(list))
        return;
    if (list->group_loads == NULL)
        list->group_loads = map_new();
    struct slice key = slice_text(group);
    struct task_load *task_load = map_get(list->group_loads, key);
    if (task_load == NULL && map_count(list->group_loads) < GROUPS_MAX) {
        task_load = memory_zalloc(1, sizeof *task_load);
        map_put(list->group_loads, key, task_load);
    }
    check(map_count(list->group_loads) <= GROUPS_MAX);
    if (task_load != NULL)
        task_load_note(task_load, clock_monotonic());
}

double
isolation_load(const struct task_list *list, const char *group)
{
    struct task_load *task_load =
        list->group_loads == NULL ? NULL : map_get(list->group_loads, slice_text(group));
    return task_load == NULL ? 0 : task_load_per_second(task_load, clock_monotonic());
}

void
isolation_free(struct task_list *list)
{
    size_t cursor = 0;
    void *task_load;
    if (list->group_loads == NULL)
        return;
    check(!timer_is_pending(&list->isolation));
    while (map_next(list->group_loads, &cursor, NULL, &task_load))
        memory_free(task_load);
    map_free(list->group_loads);
}
