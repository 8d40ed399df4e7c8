/* pollers.c - who polled a list lately. See inside.h.
 *
 * The map keeps the order of insertion; a poller that comes again is moved to its end, so the first
 * one is always the one that was seen longest ago. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "matching/inside.h"

static struct poller *
poller_new(const char *identity, const char *group)
{
    size_t length = strlen(identity), group_length = strlen(group);
    struct poller *poller = memory_alloc(sizeof *poller + length + group_length + 2);
    poller->identity = (char *)(poller + 1);
    poller->group = poller->identity + length + 1;
    memcpy(poller->identity, identity, length + 1);
    memcpy(poller->group, group, group_length + 1);
    return poller;
}

static struct poller *
oldest(const struct task_list *list)
{
    size_t cursor = 0;
    void *poller = NULL;
    return map_next(list->pollers, &cursor, NULL, &poller) ? poller : NULL;
}

static void
forget(struct task_list *list, struct poller *poller)
{
    void *removed = map_remove(list->pollers, slice_text(poller->identity));
    check(removed == poller);
    memory_free(poller);
}

void
pollers_note(struct task_list *list, const struct waiting_poll *poll)
{
    const char *group = poll->isolation_group;
    struct poller *poller = map_remove(list->pollers, slice_text(poll->identity));
    if (poller != NULL && strcmp(poller->group, group) != 0) {
        memory_free(poller);
        poller = NULL;
    }
    if (poller == NULL)
        poller = poller_new(poll->identity, group);
    poller->seen = clock_wall();
    poller->rate = poll->rate_per_second >= 0 ? poll->rate_per_second : LIMIT_RATE_DEFAULT;
    map_put(list->pollers, slice_text(poll->identity), poller);
    if (map_count(list->pollers) > POLLERS_MAX)
        forget(list, oldest(list));
}

void
pollers_forget_old(struct task_list *list)
{
    int64_t since = clock_wall() - POLLERS_WINDOW;
    struct poller *poller;
    while ((poller = oldest(list)) != NULL && poller->seen < since)
        forget(list, poller);
}

void
pollers_free(struct task_list *list)
{
    struct poller *poller;
    while ((poller = oldest(list)) != NULL)
        forget(list, poller);
    map_free(list->pollers);
}

size_t
pollers_of_group(const struct task_list *list, const char *group)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    int64_t since = clock_wall() - dynamic_duration(dynamic, DYNAMIC_ISOLATION_WINDOW, &filter);
    size_t count = 0, cursor = 0;
    void *value;
    while (map_next(list->pollers, &cursor, NULL, &value)) {
        const struct poller *poller = value;
        count += poller->seen >= since && strcmp(poller->group, group) == 0;
    }
    return count;
}
