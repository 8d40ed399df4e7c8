/* matching.c - the interface of matching, and the way between loops. See matching.h.
 *
 * A list lives on the loop that its key hashes to; what comes from another loop travels there as a
 * message: an offer carries its own, a poll's is in its caller's memory. New offers and new polls
 * may be refused when the mailbox is full. What follows from something accepted (a poll that comes
 * back, a task that is returned, passed on or done) is never refused, since what was accepted
 * bounds it.
 *
 * Withdrawing a poll needs a second message, since the first may still be on its way. The list ends
 * the poll by it, or, if the poll had ended by itself, sends it back: the caller gets its poll back
 * only when both messages are back. */
#include "matching/matching.h"

#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"

/* --- where things live ------------------------------------------------------------------------ */

/* Partitions of one list are on loops side by side: a hot list uses them all. */
struct loop_lists *
loop_lists_of(struct matching *matching, const struct list_id *list_id)
{
    uint64_t hash =
        map_hash(slice_text(list_id->name)) ^ map_hash(slice_text(list_id->domain_id)) * 31;
    uint64_t at = hash % matching->loops + (uint64_t)list_id->type + (uint64_t)list_id->partition;
    return &matching->per_loop[at % matching->loops];
}

struct list_id
list_id_of_task(const struct task *task)
{
    return (struct list_id){task->domain_id, task->type, task->list, task->partition};
}

void
task_find_partition(struct task *task, struct arena *arena)
{
    struct list_name name;
    if (task->kind != LIST_NORMAL || task->partition != 0 ||
        !list_name_parse(task->list, arena, &name))
        return;
    task->list = name.list;
    task->partition = name.partition;
}

static struct list_id
list_id_of_poll(const struct poll *poll)
{
    return (struct list_id){poll->domain_id, poll->type, poll->list, poll->partition};
}

struct loop *
loop_lists_loop(const struct loop_lists *loop_lists)
{
    return loop_at((unsigned)(loop_lists - loop_lists->matching->per_loop));
}

struct loop_lists *
loop_lists_here(struct matching *matching)
{
    return &matching->per_loop[loop_index(loop_self())];
}

static bool
loop_lists_are_here(const struct loop_lists *loop_lists)
{
    return loop_lists_loop(loop_lists) == loop_self();
}

void
message_arrived(struct matching *matching)
{
    size_t before = atomic_fetch_sub(&matching->travelling, 1);
    check(before > 0);
}

void
matching_send(struct matching *matching, struct loop *to, struct loop_message *message)
{
    atomic_fetch_add(&matching->travelling, 1);
    loop_post_answer(to, message);
}

bool
matching_try_send(struct matching *matching, struct loop *to, struct loop_message *message)
{
    atomic_fetch_add(&matching->travelling, 1);
    if (loop_post(to, message))
        return true;
    atomic_fetch_sub(&matching->travelling, 1);
    return false;
}

void
matching_count(struct counter *counter, uint64_t amount)
{
    if (counter != NULL)
        counter_add(counter, amount);
}

/* --- offers ----------------------------------------------------------------------------------- */

static atomic_size_t *
share_of(struct matching *matching, const char *domain_id)
{
    return &matching->held_by[map_hash(slice_text(domain_id)) % DOMAIN_SHARES];
}

bool
matching_is_full(struct matching *matching, const char *domain_id)
{
    return atomic_load(&matching->held) >= TASKS_MAX ||
           atomic_load(share_of(matching, domain_id)) >= TASKS_SHARE;
}

static void
offer_uncount(const struct offer *offer)
{
    size_t held = atomic_fetch_sub(&offer->matching->held, 1);
    size_t share = atomic_fetch_sub(share_of(offer->matching, offer->task->domain_id), 1);
    check(held > 0 && share > 0);
}

struct offer *
offer_new(struct matching *matching, const struct task *task, enum offer_action offer_action)
{
    struct arena *arena = arena_new(512);
    struct offer *offer = arena_make(arena, struct offer);
    offer->arena = arena;
    offer->matching = matching;
    offer->task = task_copy(task, arena);
    task_find_partition(offer->task, arena);
    offer->offer_action = offer_action;
    list_init(&offer->node);
    atomic_fetch_add(&matching->held, 1);
    atomic_fetch_add(share_of(matching, task->domain_id), 1);
    return offer;
}

void
offer_free(struct offer *offer)
{
    check(list_is_empty(&offer->node) && !offer->is_known);
    offer_uncount(offer);
    arena_free(offer->arena);
}

void
offer_hand_over(struct offer *offer, struct poll *poll)
{
    check(list_is_empty(&offer->node) && !offer->is_known);
    offer_uncount(offer);
    poll->task = offer->task;
    poll->task_arena = offer->arena;
}

void
offer_row_done(struct offer *offer)
{
    struct matching *matching = offer->matching;
    unsigned here = loop_index(loop_self());
    if (offer->task->row == 0 || matching->per_loop[here].is_drained)
        return;
    matching->options.task_done(matching->options.context, offer->task);
}

static void
offer_run(struct offer *offer)
{
    const struct task *task = offer->task;
    struct list_id list_id = list_id_of_task(task);
    if (offer->offer_action == OFFER_FORWARD)
        list_id.partition = offer->host;
    struct loop_lists *loop_lists = loop_lists_of(offer->matching, &list_id);
    check(loop_lists_are_here(loop_lists));
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

static void
offer_delivered(struct loop_message *message)
{
    struct offer *offer = container_of(message, struct offer, message);
    message_arrived(offer->matching);
    offer_run(offer);
}

void
offer_send(struct offer *offer)
{
    struct list_id list_id = list_id_of_task(offer->task);
    struct loop_lists *loop_lists = loop_lists_of(offer->matching, &list_id);
    offer->message.deliver = offer_delivered;
    if (loop_lists_are_here(loop_lists))
        offer_run(offer);
    else
        matching_send(offer->matching, loop_lists_loop(loop_lists), &offer->message);
}

void
offer_forward(struct offer *offer, int32_t host)
{
    struct list_id list_id = list_id_of_task(offer->task);
    check(host != offer->task->partition && list_is_empty(&offer->node));
    list_id.partition = offer->host = host;
    offer->offer_action = OFFER_FORWARD;
    offer->message.deliver = offer_delivered;
    matching_send(offer->matching, loop_lists_loop(loop_lists_of(offer->matching, &list_id)),
                  &offer->message);
}

bool
matching_add(struct matching *matching, const struct task *task)
{
    if (atomic_load(&matching->is_shutting_down) || matching_is_full(matching, task->domain_id))
        return false;
    struct offer *offer = offer_new(matching, task, OFFER_ADD);
    offer->task->number = 0;
    if (offer->task->partition == 0)
        offer->task->partition =
            partition_group_choose_write(loop_lists_here(matching), offer->task);
    struct list_id list_id = list_id_of_task(offer->task);
    struct loop_lists *loop_lists = loop_lists_of(matching, &list_id);
    offer->message.deliver = offer_delivered;
    if (loop_lists_are_here(loop_lists)) {
        offer_run(offer);
        return true;
    }
    if (matching_try_send(matching, loop_lists_loop(loop_lists), &offer->message))
        return true;
    offer_free(offer);
    return false;
}

void
matching_return(struct matching *matching, const struct task *task)
{
    offer_send(offer_new(matching, task, OFFER_RETURN));
}

void
matching_finish(struct matching *matching, const struct task *task)
{
    if (task->row == 0 && task->number != 0)
        offer_send(offer_new(matching, task, OFFER_FINISH));
}

/* --- polls ------------------------------------------------------------------------------------ */

/* Both messages are home, or one that was never sent. */
static void
poll_give_back(struct poll *poll)
{
    check(!poll->is_parked);
    poll->back(poll, poll->end);
}

static void
poll_came_back(struct loop_message *message)
{
    struct poll *poll = container_of(message, struct poll, message);
    struct matching *matching = poll->owner;
    message_arrived(matching);
    check(poll->caller_loop == loop_self() && !poll->is_ended);
    poll->is_ended = true;
    partition_group_note_backlog(loop_lists_here(matching), poll);
    if (!poll->is_recalled || poll->end == POLL_WITHDRAWN)
        poll_give_back(poll);
}

void
poll_send_back(struct poll *poll, enum poll_end end)
{
    struct task_list *list = poll->owner;
    check(poll->is_parked && list->poll_count > 0);
    list_remove(&poll->node);
    list->poll_count--;
    timer_stop(&poll->timer);
    poll->is_parked = false;
    poll->end = end;
    poll->waited = clock_monotonic() - poll->since;
    poll->backlog = backlog_count(list);
    poll->owner = list->loop_lists->matching;
    poll->message.deliver = poll_came_back;
    matching_send(list->loop_lists->matching, poll->caller_loop, &poll->message);
}

static void
poll_delivered(struct loop_message *message)
{
    struct poll *poll = container_of(message, struct poll, message);
    struct matching *matching = poll->owner;
    struct list_id list_id = list_id_of_poll(poll);
    struct loop_lists *loop_lists = loop_lists_of(matching, &list_id);
    check(loop_lists_are_here(loop_lists) && !poll->is_parked);
    message_arrived(matching);
    list_poll(list_get(loop_lists, &list_id, poll->kind), poll);
}

void
matching_poll(struct matching *matching, struct poll *poll)
{
    poll->partition = partition_group_choose_read(loop_lists_here(matching), poll);
    struct list_id list_id = list_id_of_poll(poll);
    struct loop_lists *loop_lists = loop_lists_of(matching, &list_id);
    poll->caller_loop = loop_self();
    poll->owner = matching;
    poll->task = NULL;
    poll->task_arena = NULL;
    poll->failure = NULL;
    poll->start = NULL;
    poll->request_id = NULL;
    poll->backlog = poll->waited = 0;
    poll->is_parked = poll->is_recalled = poll->is_ended = false;
    poll->is_reserved = poll->is_withdrawn = poll->has_recall = false;
    list_init(&poll->node);
    poll->message.deliver = poll_delivered;
    if (loop_lists_are_here(loop_lists)) {
        list_poll(list_get(loop_lists, &list_id, poll->kind), poll);
    } else if (!matching_try_send(matching, loop_lists_loop(loop_lists), &poll->message)) {
        poll->end = POLL_FAILED;
        poll->failure = "Too much is on its way to the task list, try again.";
        poll->message.deliver = poll_came_back;
        matching_send(matching, poll->caller_loop, &poll->message);
    }
}

/* The poll had ended before the recall came to its list. */
static void
recall_came_back(struct loop_message *message)
{
    struct poll *poll = container_of(message, struct poll, recall);
    message_arrived(poll->owner);
    check(poll->is_ended); /* one sender's messages arrive in order */
    poll_give_back(poll);
}

static void
recall_delivered(struct loop_message *message)
{
    struct poll *poll = container_of(message, struct poll, recall);
    if (poll->is_parked) {
        struct task_list *list = poll->owner;
        message_arrived(list->loop_lists->matching);
        list_withdraw(list, poll);
        return;
    }
    if (poll->is_reserved) {
        poll->is_withdrawn = poll->has_recall = true;
        return;
    }
    poll_return_recall(poll);
}

void
poll_return_recall(struct poll *poll)
{
    poll->recall.deliver = recall_came_back;
    loop_post_answer(poll->caller_loop, &poll->recall); /* still the same message: counted once */
}

void
matching_withdraw(struct matching *matching, struct poll *poll)
{
    check(poll->caller_loop == loop_self() && (!poll->is_ended || poll->is_recalled));
    struct list_id list_id = list_id_of_poll(poll);
    struct loop_lists *loop_lists = loop_lists_of(matching, &list_id);
    if (loop_lists_are_here(loop_lists)) {
        if (poll->is_parked)
            list_withdraw(poll->owner, poll);
        else if (poll->is_reserved)
            poll->is_withdrawn = true;
        return;
    }
    if (poll->is_recalled)
        return;
    poll->is_recalled = true;
    poll->recall.deliver = recall_delivered;
    matching_send(matching, loop_lists_loop(loop_lists), &poll->recall);
}
