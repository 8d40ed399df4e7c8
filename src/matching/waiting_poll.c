/* waiting_poll.c - polls at their lists, and the way there and back. See values.h.
 *
 *     caller's place                        list
 *     matching_poll      ── list.poll ────▶ parked, or matched at once
 *     matching_withdraw  ── list.recall ──▶ still there: ended as withdrawn; else nothing happens
 *                        ◀── list.matched, list.poll_end ── ended
 */
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "wire/message.h"

/* --- finding one ---- */

static uint32_t
slot_of(uint64_t number)
{
    return (uint32_t)(number & (((uint64_t)1 << POLL_SLOT_BITS) - 1));
}

static void
remember(struct place_polls *place_polls, struct waiting_poll *poll)
{
    uint32_t slot = slot_of(poll->caller.number), before = place_polls->capacity;
    while (slot >= place_polls->capacity)
        place_polls->capacity = place_polls->capacity == 0 ? 16 : 2 * place_polls->capacity;
    if (before < place_polls->capacity) {
        size_t size = sizeof *place_polls->by_slot;
        place_polls->by_slot = memory_realloc(place_polls->by_slot, place_polls->capacity * size);
        memset(place_polls->by_slot + before, 0, (place_polls->capacity - before) * size);
    }
    place_polls->by_slot[slot] = poll; /* its caller has given up what was there before */
}

static void
forget(struct place_polls *place_polls, const struct waiting_poll *poll)
{
    uint32_t slot = slot_of(poll->caller.number);
    check(slot < place_polls->capacity);
    if (place_polls->by_slot[slot] == poll)
        place_polls->by_slot[slot] = NULL;
}

void
place_polls_free(struct place_polls *place_polls)
{
    memory_free(place_polls->by_slot);
}

struct waiting_poll *
waiting_poll_find(struct loop_lists *loop_lists, struct waiter caller)
{
    const struct place_polls *place_polls = &loop_lists->callers[caller.place];
    uint32_t slot = slot_of(caller.number);
    struct waiting_poll *poll = slot < place_polls->capacity ? place_polls->by_slot[slot] : NULL;
    return poll == NULL || poll->caller.number != caller.number ? NULL : poll;
}

/* --- one block with its texts ---- */

struct waiting_poll *
waiting_poll_new(const struct poll *poll, const struct list_id *list_id, struct waiter caller)
{
    const char *group = poll->isolation_group == NULL ? "" : poll->isolation_group;
    const char *base_list = poll->base_list == NULL ? "" : poll->base_list;
    size_t domain_size = strlen(list_id->domain_id) + 1, list_size = strlen(list_id->name) + 1;
    size_t name_size = strlen(poll->domain_name) + 1, base_size = strlen(base_list) + 1;
    size_t identity_size = strlen(poll->identity) + 1, group_size = strlen(group) + 1;
    struct waiting_poll *made = memory_alloc(sizeof *made + domain_size + list_size + name_size +
                                             base_size + identity_size + group_size);
    char *at = (char *)(made + 1);
    *made = (struct waiting_poll){.caller = caller,
                                  .list_id = *list_id,
                                  .kind = poll->kind,
                                  .rate_per_second = poll->rate_per_second,
                                  .expiry = poll->expiry};
    made->identity = text_put(&at, poll->identity, identity_size);
    made->isolation_group = text_put(&at, group, group_size);
    made->list_id.domain_id = text_put(&at, list_id->domain_id, domain_size);
    made->list_id.name = text_put(&at, list_id->name, list_size);
    made->domain_name = text_put(&at, poll->domain_name, name_size);
    made->base_list = text_put(&at, base_list, base_size);
    list_init(&made->node);
    return made;
}

void
waiting_poll_free(struct waiting_poll *poll)
{
    check(poll->list == NULL && list_is_empty(&poll->node));
    if (poll->arena != NULL)
        arena_free(poll->arena);
    memory_free(poll);
}

static void
value_free(struct route_value *value)
{
    waiting_poll_free(container_of(value, struct waiting_poll, value));
}

/* --- to the list ---- */

static struct slice
poll_encode(const struct route_value *value, struct arena *arena)
{
    const struct waiting_poll *poll = container_of(value, struct waiting_poll, value);
    INTERNAL(ListId) list;
    list_id_to_message(&poll->list_id, &list);
    INTERNAL(ListPoll) message = INTERNAL_VALUE(LIST_POLL__INIT);
    message.place = poll->caller.place;
    message.number = poll->caller.number;
    message.list = &list;
    message.kind = poll->kind;
    message.domain_name = (char *)poll->domain_name;
    message.base_list = (char *)poll->base_list;
    message.identity = (char *)poll->identity;
    message.isolation_group = (char *)poll->isolation_group;
    message.rate_per_second = poll->rate_per_second;
    message.patience = poll->expiry - clock_monotonic();
    return message_encode(arena, &message.base);
}

static struct route_value *
poll_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListPoll) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_poll), bytes, &message);
    if (err != NULL || message->list == NULL)
        return NULL;
    struct list_id list_id = list_id_from_message(message->list);
    struct poll poll = {.kind = (enum list_kind)message->kind,
                        .domain_name = message->domain_name,
                        .base_list = message->base_list,
                        .identity = message->identity,
                        .isolation_group = message->isolation_group,
                        .rate_per_second = message->rate_per_second,
                        .expiry = clock_monotonic() + message->patience};
    struct waiter caller = {message->place, message->number};
    return &waiting_poll_new(&poll, &list_id, caller)->value;
}

static void
poll_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    struct waiting_poll *poll = container_of(value, struct waiting_poll, value);
    struct loop_lists *loop_lists = loop_lists_here(matching);
    check(poll->list == NULL);
    check(!CHECK_DEEPLY || route_is_here(list_owner(&poll->list_id)));
    struct place_polls *place_polls = &loop_lists->callers[poll->caller.place];
    if (poll->caller.number <= place_polls->newest) {
        probe("poll_came_again");
        waiting_poll_free(poll);
        return;
    }
    place_polls->newest = poll->caller.number;
    remember(place_polls, poll);
    list_take_poll(list_get(loop_lists, &poll->list_id, poll->kind), poll);
}

/* Lost: its caller gives it up some time after its expiry. Twice: the numbers of a place rise, so
 * the second one is dropped. */
const struct route_notice poll_notice = {
    .name = "list.poll",
    .encode = poll_encode,
    .decode = poll_decode,
    .free = value_free,
    .take = poll_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

bool
waiting_poll_send(struct matching *matching, struct waiting_poll *poll)
{
    return route_tell(list_owner(&poll->list_id), &matching->service, &poll_notice, &poll->value);
}

/* --- and back ---- */

static struct slice
end_encode(const struct route_value *value, struct arena *arena)
{
    const struct waiting_poll *poll = container_of(value, struct waiting_poll, value);
    INTERNAL(Task) task;
    INTERNAL(ListPollEnd) message = INTERNAL_VALUE(LIST_POLL_END__INIT);
    message.number = poll->caller.number;
    message.end = poll->end;
    message.backlog = poll->backlog;
    message.waited = poll->waited;
    if (poll->task != NULL) {
        task = task_to_message(poll->task);
        message.task = &task;
        message.request_id = poll->request_id == NULL ? "" : (char *)poll->request_id;
        message.start = start_to_message(poll->value.service->context, poll->task, poll->start,
                                         poll->start_bytes, arena);
    }
    return message_encode(arena, &message.base);
}

static void
read_task(struct waiting_poll *poll, const INTERNAL(ListPollEnd) * message)
{
    poll->arena = arena_new(1024);
    poll->task = task_copy_message(message->task, poll->arena);
    if (message->request_id[0] != '\0')
        poll->request_id = arena_text(poll->arena, message->request_id);
    poll->start_bytes = arena_slice(poll->arena, slice_of(message->start.data, message->start.len));
}

static struct route_value *
end_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    INTERNAL(ListPollEnd) * message;
    struct error *err =
        message_decode_as(scratch, ERR_INTERNAL, INTERNAL_TYPE(list_poll_end), bytes, &message);
    if (err != NULL || (message->end == POLL_MATCHED) != (message->task != NULL))
        return NULL;
    struct waiting_poll *poll = memory_zalloc(1, sizeof *poll);
    list_init(&poll->node);
    poll->caller.number = message->number;
    poll->end = (enum poll_end)message->end;
    poll->backlog = message->backlog;
    poll->waited = message->waited;
    if (message->task != NULL)
        read_task(poll, message);
    return &poll->value;
}

static void
end_take(void *context, struct route_value *value)
{
    poll_came_home(context, container_of(value, struct waiting_poll, value));
}

/* With a task. Lost: the outbox row of the task would wait until its shard is taken again, or the
 * timeouts of its run would have to find that a started one went to nobody. So it is not lost
 * within a cluster of one host. Twice: the second one has a number that is not known any more, and
 * its task goes back to the list; its shard does not start it again. */
const struct route_notice matched_notice = {
    .name = "list.matched",
    .encode = end_encode,
    .decode = end_decode,
    .free = value_free,
    .take = end_take,
    .may_come_twice = true,
};

/* Without one. Lost: its caller gives the poll up some time after its expiry. Twice: the second one
 * has a number that is not known any more. */
const struct route_notice poll_end_notice = {
    .name = "list.poll_end",
    .encode = end_encode,
    .decode = end_decode,
    .free = value_free,
    .take = end_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

void
waiting_poll_send_back(struct matching *matching, struct waiting_poll *poll, enum poll_end end)
{
    struct task_list *list = poll->list;
    check((end == POLL_MATCHED) == (poll->task != NULL));
    poll->end = end;
    if (list != NULL) {
        check(poll->is_parked && list->poll_count > 0 && !waiting_poll_is_reserved(poll));
        list_remove(&poll->node);
        list->poll_count--;
        timer_stop(&poll->timer);
        forget(&list->loop_lists->callers[poll->caller.place], poll);
        poll->is_parked = false;
        poll->waited = clock_monotonic() - poll->since;
        poll->backlog = backlog_count(list);
        poll->list = NULL;
    }
    poll->value.service = &matching->service;
    route_tell_later(owner_at_place(poll->caller.place), &matching->service,
                     end == POLL_MATCHED ? &matched_notice : &poll_end_notice, &poll->value);
}

/* --- recalls ---- */

struct poll_recall {
    struct route_value value;
    struct waiter caller;
};

static struct slice
recall_encode(const struct route_value *value, struct arena *arena)
{
    const struct poll_recall *recall = container_of(value, struct poll_recall, value);
    INTERNAL(ListRecall) message = INTERNAL_VALUE(LIST_RECALL__INIT);
    message.place = recall->caller.place;
    message.number = recall->caller.number;
    return message_encode(arena, &message.base);
}

static struct poll_recall *
recall_new(struct waiter caller)
{
    struct poll_recall *recall = memory_zalloc(1, sizeof *recall);
    recall->caller = caller;
    return recall;
}

static struct route_value *
recall_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(ListRecall) * message;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(list_recall), bytes, &message);
    if (err != NULL)
        return NULL;
    return &recall_new((struct waiter){message->place, message->number})->value;
}

static void
recall_free(struct route_value *value)
{
    memory_free(container_of(value, struct poll_recall, value));
}

static void
recall_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    const struct poll_recall *recall = container_of(value, struct poll_recall, value);
    struct waiting_poll *poll = waiting_poll_find(loop_lists_here(matching), recall->caller);
    if (poll != NULL && poll->is_parked)
        list_withdraw(poll->list, poll);
    else if (poll != NULL)
        poll->is_withdrawn = true; /* when its reservation ends */
    recall_free(value);
}

/* Lost: the poll ends by its time, at its list and at its caller's. Twice: it is gone. */
const struct route_notice recall_notice = {
    .name = "list.recall",
    .encode = recall_encode,
    .decode = recall_decode,
    .free = recall_free,
    .take = recall_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

void
waiting_poll_recall(struct matching *matching, const struct list_id *list_id, uint64_t number)
{
    struct poll_recall *recall = recall_new((struct waiter){(unsigned)route_here().number, number});
    route_tell_surely(list_owner(list_id), &matching->service, &recall_notice, &recall->value);
}
