/* slot.c - the polls of the lists of system workflows, and the work on what they get. See inside.h.
 *
 * A call of served_list_want makes a slot, up to a bound for the list and one for the loop. A slot
 * polls, works, polls again, and ends when a poll comes back empty. Matching asks for nobody while
 * a poll is parked, so the one call that could be missed comes while all slots of the list are in
 * use: it is remembered, and the next poll that comes back empty is repeated. */
#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "route/owner.h"
#include "system/inside.h"

/* --- invariants ---- */

static void
worker_slot_check(const struct worker_slot *slot, const struct served_list *served_list)
{
    check(slot->served_list == served_list);
    check(!slot->is_polling || slot->fiber == NULL); /* matching has it, or a fiber, or nobody */
}

static void
served_list_check(const struct served_list *served_list, const struct system_loop *loop)
{
    unsigned count = 0;
    check(served_list->loop == loop);
    list_each(node, &served_list->slots) {
        worker_slot_check(list_entry(node, struct worker_slot, node), served_list);
        count++;
    }
    check(served_list->slot_count == count && count <= LIST_SLOTS_MAX);
    /* An idle list is dropped: each has a slot, or waits for one. */
    check(count > 0 || !list_is_empty(&served_list->hungry));
}

void
system_loop_check(const struct system_loop *loop)
{
    unsigned slots = 0, counted = 0;
    check(loop == &loop->frame->loops[route_place_here()]);
    for (int type = 0; type < TASK_TYPE_COUNT; type++) {
        check(loop->slot_count[type] <= LOOP_SLOTS_MAX);
        slots += loop->slot_count[type];
    }
    check(loop->working.open >= slots); /* one that is ending is counted a moment longer */
    if (!CHECK_DEEPLY)
        return;
    size_t cursor = 0;
    void *value;
    while (map_next(loop->served_lists, &cursor, NULL, &value)) {
        const struct served_list *served_list = value;
        served_list_check(served_list, loop);
        counted += served_list->slot_count;
    }
    check(counted == slots);
}

/* --- served lists ---- */

static struct served_list *
served_list_get(struct system_loop *loop, const char *domain_id, const char *list,
                enum task_type type)
{
    struct arena *arena = arena_new(512);
    struct slice key = slice_text(arena_format(arena, "%d/%s/%s", (int)type, domain_id, list));
    struct served_list *served_list = map_get(loop->served_lists, key);
    if (served_list != NULL) {
        arena_free(arena);
        return served_list;
    }
    served_list = arena_make(arena, struct served_list);
    served_list->loop = loop;
    served_list->arena = arena;
    served_list->key = key;
    served_list->type = type;
    served_list->domain_id = arena_text(arena, domain_id);
    const struct domain *domain = domains_find_id(loop->frame->domains, domain_id);
    served_list->domain_name = arena_text(arena, domain == NULL ? "" : domain->name);
    served_list->list = arena_text(arena, list);
    list_init(&served_list->slots);
    list_init(&served_list->hungry);
    map_put(loop->served_lists, key, served_list);
    return served_list;
}

static void
served_list_drop_if_idle(struct served_list *served_list)
{
    if (served_list->slot_count > 0 || !list_is_empty(&served_list->hungry))
        return;
    void *removed = map_remove(served_list->loop->served_lists, served_list->key);
    check(removed == served_list);
    arena_free(served_list->arena);
}

/* --- slots ---- */

static void poll_back(struct poll *poll, enum poll_end end);

static void
slot_poll(struct worker_slot *slot)
{
    struct served_list *served_list = slot->served_list;
    check(!slot->is_polling && slot->fiber == NULL);
    check(served_list->loop->is_open && !served_list->loop->is_stopping);
    slot->poll = (struct poll){.type = served_list->type,
                               .kind = LIST_NORMAL,
                               .domain_id = served_list->domain_id,
                               .domain_name = served_list->domain_name,
                               .list = served_list->list,
                               .base_list = "",
                               .identity = SYSTEM_IDENTITY,
                               .rate_per_second = -1,
                               .expiry = clock_monotonic() + POLL_LINGER,
                               .back = poll_back};
    slot->is_polling = true;
    matching_poll(served_list->loop->frame->parts.matching, &slot->poll);
}

static void
slot_begin(struct served_list *served_list)
{
    struct system_loop *loop = served_list->loop;
    check(served_list->slot_count < LIST_SLOTS_MAX);
    check(loop->slot_count[served_list->type] < LOOP_SLOTS_MAX);
    struct worker_slot *slot = memory_zalloc(1, sizeof *slot);
    slot->served_list = served_list;
    list_push_back(&served_list->slots, &slot->node);
    served_list->slot_count++;
    loop->slot_count[served_list->type]++;
    latch_add(&loop->working, 1);
    slot_poll(slot);
}

static void
slot_end(struct worker_slot *slot)
{
    struct served_list *served_list = slot->served_list;
    struct system_loop *loop = served_list->loop;
    check(!slot->is_polling && slot->fiber == NULL && slot->poll.task_arena == NULL);
    check(served_list->slot_count > 0 && loop->slot_count[served_list->type] > 0);
    list_remove(&slot->node);
    memory_free(slot);
    served_list->slot_count--;
    loop->slot_count[served_list->type]--;
    served_list_drop_if_idle(served_list);
    loop_feed(loop);
    latch_done(&loop->working);
    system_loop_check(loop);
}

static void
slot_forget_task(struct worker_slot *slot)
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
    struct worker_slot *slot = argument;
    struct system_loop *loop = slot->served_list->loop;
    const struct task *task = slot->poll.task;
    enum task_type type = slot->served_list->type;
    bool is_done = true;
    check(!slot->is_polling && slot->fiber == NULL && task != NULL);
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
        probe("system_pause_cut_short");
    slot->fiber = NULL;
    if (loop->is_stopping || !list_is_empty(&loop->hungry[type]))
        slot_end(slot); /* another list waits for its place */
    else
        slot_poll(slot);
}

static void
poll_back(struct poll *poll, enum poll_end end)
{
    struct worker_slot *slot = container_of(poll, struct worker_slot, poll);
    struct served_list *served_list = slot->served_list;
    check(slot->is_polling && slot->fiber == NULL);
    check((end == POLL_MATCHED) == (poll->task != NULL));
    slot->is_polling = false;
    if (end == POLL_MATCHED) {
        fiber_start("system_work", slot_work, slot);
        return;
    }
    bool is_missed = served_list->is_missed && end == POLL_EMPTY;
    served_list->is_missed = false;
    if (is_missed && !served_list->loop->is_stopping) {
        probe("system_poll_again");
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
            struct served_list *served_list =
                list_entry(list_pop_front(hungry), struct served_list, hungry);
            list_init(&served_list->hungry);
            slot_begin(served_list);
        }
    }
}

void
served_list_want(struct system_loop *loop, const char *domain_id, const char *list,
                 enum task_type type)
{
    struct served_list *served_list = served_list_get(loop, domain_id, list, type);
    if (served_list->slot_count >= LIST_SLOTS_MAX) {
        served_list->is_missed = true;
        return;
    }
    if (list_is_empty(&served_list->hungry))
        list_push_back(&loop->hungry[type], &served_list->hungry);
    loop_feed(loop);
    system_loop_check(loop);
}

void
slots_stop(struct system_loop *loop)
{
    size_t cursor = 0;
    void *value;
    check(loop->is_stopping); /* or lists would get new slots meanwhile */
    for (int type = 0; type < TASK_TYPE_COUNT; type++) {
        struct list *node;
        while ((node = list_pop_front(&loop->hungry[type])) != NULL) {
            struct served_list *served_list = list_entry(node, struct served_list, hungry);
            list_init(&served_list->hungry);
            served_list_drop_if_idle(served_list);
        }
    }
    while (map_next(loop->served_lists, &cursor, NULL, &value)) {
        struct served_list *served_list = value;
        list_each(node, &served_list->slots) {
            struct worker_slot *slot = list_entry(node, struct worker_slot, node);
            if (slot->fiber != NULL)
                fiber_cancel(slot->fiber);
            else if (slot->is_polling)
                matching_withdraw(loop->frame->parts.matching, &slot->poll);
        }
    }
}
