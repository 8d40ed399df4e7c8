/* slot.c - who polls the lists of system workflows, and works on what comes. See inside.h.
 *
 * Wanting somebody makes a slot, up to a bound for the list and one for the loop. A slot polls,
 * works, polls again, and ends when a poll comes back empty. Nobody is wanted while a poll is
 * parked, so what could be missed is a want that comes while all slots of the site are out: it is
 * remembered, and the next poll that comes back empty is given once more. */
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "system/inside.h"

/* --- sites ---- */

static struct site *
site_get(struct system_loop *loop, const char *domain_id, const char *list, enum task_type type)
{
    struct arena *arena = arena_new(512);
    struct slice key = slice_text(arena_format(arena, "%d/%s/%s", (int)type, domain_id, list));
    struct site *site = map_get(loop->sites, key);
    if (site != NULL) {
        arena_free(arena);
        return site;
    }
    site = arena_make(arena, struct site);
    site->loop = loop;
    site->arena = arena;
    site->key = key;
    site->type = type;
    site->domain_id = arena_text(arena, domain_id);
    const struct domain *domain = domains_find_id(loop->frame->domains, domain_id);
    site->domain_name = arena_text(arena, domain == NULL ? "" : domain->name);
    site->list = arena_text(arena, list);
    list_init(&site->slots);
    list_init(&site->hungry);
    map_put(loop->sites, key, site);
    return site;
}

static void
site_drop_if_idle(struct site *site)
{
    if (site->slot_count > 0 || !list_is_empty(&site->hungry))
        return;
    void *removed = map_remove(site->loop->sites, site->key);
    check(removed == site);
    arena_free(site->arena);
}

/* --- slots ---- */

static void poll_back(struct poll *poll, enum poll_end end);

static void
slot_poll(struct slot *slot)
{
    struct site *site = slot->site;
    check(!slot->is_polling && slot->fiber == NULL);
    slot->poll = (struct poll){.type = site->type,
                               .kind = LIST_NORMAL,
                               .domain_id = site->domain_id,
                               .domain_name = site->domain_name,
                               .list = site->list,
                               .base_list = "",
                               .identity = SYSTEM_IDENTITY,
                               .rate_per_second = -1,
                               .expiry = clock_monotonic() + POLL_LINGER,
                               .back = poll_back};
    slot->is_polling = true;
    matching_poll(site->loop->frame->parts.matching, &slot->poll);
}

static void
slot_begin(struct site *site)
{
    struct system_loop *loop = site->loop;
    struct slot *slot = memory_zalloc(1, sizeof *slot);
    slot->site = site;
    list_push_back(&site->slots, &slot->node);
    site->slot_count++;
    loop->slot_count[site->type]++;
    latch_add(&loop->working, 1);
    slot_poll(slot);
}

static void
slot_end(struct slot *slot)
{
    struct site *site = slot->site;
    struct system_loop *loop = site->loop;
    check(!slot->is_polling && slot->fiber == NULL && site->slot_count > 0);
    list_remove(&slot->node);
    memory_free(slot);
    site->slot_count--;
    loop->slot_count[site->type]--;
    site_drop_if_idle(site);
    loop_feed(loop);
    latch_done(&loop->working);
}

static void
slot_forget_task(struct slot *slot)
{
    if (slot->poll.task_arena != NULL)
        arena_free(slot->poll.task_arena);
    slot->poll.task_arena = NULL;
    slot->poll.task = NULL;
}

/* The fiber of a task. */
static void
slot_work(void *argument)
{
    struct slot *slot = argument;
    struct system_loop *loop = slot->site->loop;
    const struct task *task = slot->poll.task;
    enum task_type type = slot->site->type;
    bool is_done = true;
    slot->fiber = fiber_self();
    if (loop->is_stopping)
        matching_return(loop->frame->parts.matching, task);
    else
        is_done = type == TASK_DECISION ? work_on_decision(loop->frame, task)
                                        : work_on_activity(loop->frame, task);
    slot_forget_task(slot);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    if (!is_done && fiber_sleep(DOUBT_PAUSE, arena) != NULL)
        mark("system_pause_cut_short");
    slot->fiber = NULL;
    if (loop->is_stopping || !list_is_empty(&loop->hungry[type]))
        slot_end(slot); /* another list waits for its place */
    else
        slot_poll(slot);
}

static void
poll_back(struct poll *poll, enum poll_end end)
{
    struct slot *slot = container_of(poll, struct slot, poll);
    struct site *site = slot->site;
    check(slot->is_polling && slot->fiber == NULL);
    slot->is_polling = false;
    if (end == POLL_MATCHED) {
        fiber_start("system_work", slot_work, slot);
        return;
    }
    bool is_missed = site->is_missed && end == POLL_EMPTY;
    site->is_missed = false;
    if (is_missed && !site->loop->is_stopping) {
        mark("system_poll_again");
        slot_poll(slot);
    } else {
        slot_end(slot);
    }
}

/* --- bounds ---- */

void
loop_feed(struct system_loop *loop)
{
    for (int type = 0; type < TASK_TYPE_COUNT; type++) {
        struct list *hungry = &loop->hungry[type];
        while (!list_is_empty(hungry) && loop->slot_count[type] < LOOP_SLOTS_MAX && loop->is_open &&
               !loop->is_stopping) {
            struct site *site = list_entry(list_pop_front(hungry), struct site, hungry);
            list_init(&site->hungry);
            slot_begin(site);
        }
    }
}

void
site_want(struct system_loop *loop, const char *domain_id, const char *list, enum task_type type)
{
    struct site *site = site_get(loop, domain_id, list, type);
    if (site->slot_count >= SITE_SLOTS_MAX) {
        site->is_missed = true;
        return;
    }
    if (list_is_empty(&site->hungry))
        list_push_back(&loop->hungry[type], &site->hungry);
    loop_feed(loop);
}

void
slots_stop(struct system_loop *loop)
{
    size_t cursor = 0;
    void *value;
    for (int type = 0; type < TASK_TYPE_COUNT; type++) {
        struct list *node;
        while ((node = list_pop_front(&loop->hungry[type])) != NULL) {
            struct site *site = list_entry(node, struct site, hungry);
            list_init(&site->hungry);
            site_drop_if_idle(site);
        }
    }
    while (map_next(loop->sites, &cursor, NULL, &value)) {
        struct site *site = value;
        list_each(node, &site->slots) {
            struct slot *slot = list_entry(node, struct slot, node);
            if (slot->fiber != NULL)
                fiber_cancel(slot->fiber);
            else if (slot->is_polling)
                matching_withdraw(loop->frame->parts.matching, &slot->poll);
        }
    }
}
