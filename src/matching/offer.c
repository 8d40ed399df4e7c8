/* offer.c - offers as values: tasks on their way to a list. See values.h.
 *
 * An offer counts as held (TASKS_MAX) from when it has arrived until it is gone: what is on its way
 * is bounded by the mailboxes. */
#include "base/check.h"
#include "matching/inside.h"
#include "wire/message.h"

static struct matching *
offer_matching(const struct offer *offer)
{
    return offer->value.service->context;
}

void
offer_hold(struct matching *matching, struct offer *offer)
{
    check(!offer->is_held);
    offer->is_held = true;
    atomic_fetch_add(&matching->held, 1);
    atomic_fetch_add(matching_share_of(matching, offer->task->domain_id), 1);
}

static void
offer_let_go(struct offer *offer)
{
    if (!offer->is_held)
        return;
    struct matching *matching = offer_matching(offer);
    size_t held = atomic_fetch_sub(&matching->held, 1);
    size_t share = atomic_fetch_sub(matching_share_of(matching, offer->task->domain_id), 1);
    check(held > 0 && share > 0);
    offer->is_held = false;
}

static struct offer *
offer_make(struct arena *arena, struct task *task, enum offer_action offer_action)
{
    struct offer *offer = arena_make(arena, struct offer);
    offer->arena = arena;
    offer->task = task;
    offer->offer_action = offer_action;
    list_init(&offer->node);
    return offer;
}

struct offer *
offer_new(struct matching *matching, const struct task *task, enum offer_action offer_action)
{
    struct arena *arena = arena_new(512);
    struct offer *offer = offer_make(arena, task_copy(task, arena), offer_action);
    offer->value.service = &matching->service;
    task_find_partition(offer->task, arena);
    return offer;
}

void
offer_free(struct offer *offer)
{
    check(list_is_empty(&offer->node) && !offer->is_known);
    offer_let_go(offer);
    arena_free(offer->arena);
}

void
offer_hand_over(struct offer *offer, struct waiting_poll *poll)
{
    check(list_is_empty(&offer->node) && !offer->is_known);
    offer_let_go(offer);
    poll->task = offer->task;
    poll->arena = offer->arena;
}

void
offer_row_done(struct offer *offer)
{
    struct matching *matching = offer_matching(offer);
    if (offer->task->row == 0 || loop_lists_here(matching)->is_drained)
        return;
    matching->options.task_done(matching->options.context, offer->task);
}

/* --- as values ---- */

static struct slice
offer_encode(const struct route_value *value, struct arena *arena)
{
    const struct offer *offer = container_of(value, struct offer, value);
    INTERNAL(Task) task = task_to_message(offer->task);
    INTERNAL(ListOffer) message = INTERNAL_VALUE(LIST_OFFER__INIT);
    message.action = offer->offer_action;
    message.host = offer->host;
    message.task = &task;
    return message_encode(arena, &message.base);
}

static struct route_value *
offer_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    INTERNAL(ListOffer) * message;
    struct error *err =
        message_decode_as(scratch, ERR_INTERNAL, INTERNAL_TYPE(list_offer), bytes, &message);
    if (err != NULL || message->task == NULL || message->action >= OFFER_ACTION_COUNT)
        return NULL;
    struct arena *arena = arena_new(512);
    struct offer *offer = offer_make(arena, task_copy_message(message->task, arena),
                                     (enum offer_action)message->action);
    offer->host = message->host;
    return &offer->value;
}

static void
offer_value_free(struct route_value *value)
{
    offer_free(container_of(value, struct offer, value));
}

/* Which list it is for. */
static struct list_id
list_id_of_offer(const struct offer *offer)
{
    struct list_id list_id = list_id_of_task(offer->task);
    if (offer->offer_action == OFFER_FORWARD)
        list_id.partition = offer->host;
    return list_id;
}

static void
offer_take(void *context, struct route_value *value)
{
    struct matching *matching = context;
    struct offer *offer = container_of(value, struct offer, value);
    const struct task *task = offer->task;
    struct list_id list_id = list_id_of_offer(offer);
    struct loop_lists *loop_lists = loop_lists_here(matching);
    check(!CHECK_DEEPLY || route_is_here(list_owner(&list_id)));
    offer_hold(matching, offer);
    if (offer->offer_action == OFFER_ADD && partition_group_redirect(loop_lists, offer))
        return;
    struct task_list *list = list_get(loop_lists, &list_id, task->kind);
    switch (offer->offer_action) {
    case OFFER_ADD:
        list_receive(list, offer);
        break;
    case OFFER_RETURN:
        list_return(list, offer);
        break;
    case OFFER_FINISH:
        list_finish(list, offer);
        break;
    case OFFER_CANCEL_QUERY:
        list_cancel_query(list, offer);
        break;
    case OFFER_FORWARD:
        member_take_forwarded(list, offer);
        break;
    }
    task_list_check(list);
}

#define OFFER_NOTICE(text, ...)                                                                    \
    {                                                                                              \
        .name = (text), .encode = offer_encode, .decode = offer_decode, .free = offer_value_free,  \
        .take = offer_take, __VA_ARGS__                                                            \
    }

const struct route_notice offer_notices[OFFER_ACTION_COUNT] = {
    /* Lost: its outbox row would stay offered until its shard is taken again, and no earlier. So it
     * is not lost within a cluster of one host; between hosts its shard has to hear that it came.
     * Twice: the list knows the row while it has it; after that another poll gets it, and the shard
     * does not start it again. */
    [OFFER_ADD] = OFFER_NOTICE("list.offer", .may_come_twice = true),
    /* Lost: as a new one. Twice: as a new one; a query has its answer then, or none waits for it.
     */
    [OFFER_RETURN] = OFFER_NOTICE("list.return", .may_come_twice = true),
    /* Lost: the list reads the row again after a minute, and its start is found to be void. Twice:
     * a number that is done is done. */
    [OFFER_FINISH] = OFFER_NOTICE("list.finish", .may_be_lost = true, .may_come_twice = true),
    /* Lost: the query expires, or finds that nobody waits for its answer. Twice: it is gone. */
    [OFFER_CANCEL_QUERY] =
        OFFER_NOTICE("list.cancel_query", .may_be_lost = true, .may_come_twice = true),
    /* As a task that comes back. */
    [OFFER_FORWARD] = OFFER_NOTICE("list.forward", .may_come_twice = true),
};

void
offer_send(struct offer *offer)
{
    struct list_id list_id = list_id_of_offer(offer);
    offer_let_go(offer);
    route_tell_surely(list_owner(&list_id), offer->value.service,
                      &offer_notices[offer->offer_action], &offer->value);
}

bool
offer_try_send(struct offer *offer)
{
    struct list_id list_id = list_id_of_offer(offer);
    if (route_tell(list_owner(&list_id), offer->value.service, &offer_notices[offer->offer_action],
                   &offer->value))
        return true;
    offer_free(offer);
    return false;
}

/* Not at once, even if the other partition lives here: this one is in the middle of a step. */
void
offer_forward(struct offer *offer, int32_t host)
{
    check(host != offer->task->partition && list_is_empty(&offer->node));
    offer->host = host;
    offer->offer_action = OFFER_FORWARD;
    struct list_id list_id = list_id_of_offer(offer);
    offer_let_go(offer);
    route_tell_later(list_owner(&list_id), offer->value.service, &offer_notices[OFFER_FORWARD],
                     &offer->value);
}
