/* matching.c - the doors of matching, and the way between loops. See matching.h.
 *
 * A list lives on the loop that its key hashes to; what comes from another loop travels there as a
 * letter: an offer carries its own, a poll has one of the door's memory. New offers and new polls
 * may be refused where the mailbox is full. What follows from something accepted (a poll that comes
 * back, a task that is returned, passed on or done) may not, and is bounded by it.
 *
 * Withdrawing a poll needs a second letter, since the first may still be on its way. The list ends
 * the poll by it, or, if the poll had ended by itself, sends it back: the door gets its poll only
 * when neither letter is out any more. */
#include "matching/matching.h"

#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"

/* --- where things live -------------------------------------------------------------------------
 */

/* Partitions of one list are on loops side by side: a hot list uses them all. */
struct place *
place_of(struct matching *matching, const struct address *address)
{
    uint64_t hash =
        map_hash(slice_text(address->name)) ^ map_hash(slice_text(address->domain_id)) * 31;
    uint64_t at = hash % matching->loops + (uint64_t)address->type + (uint64_t)address->partition;
    return &matching->places[at % matching->loops];
}

struct address
task_address(const struct task *task)
{
    return (struct address){task->domain_id, task->type, task->list, task->partition};
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

static struct address
poll_address(const struct poll *poll)
{
    return (struct address){poll->domain_id, poll->type, poll->list, poll->partition};
}

struct loop *
place_loop(const struct place *place)
{
    return loop_at((unsigned)(place - place->matching->places));
}

struct place *
place_here(struct matching *matching)
{
    return &matching->places[loop_index(loop_self())];
}

static bool
place_is_here(const struct place *place)
{
    return place_loop(place) == loop_self();
}

void
letter_arrived(struct matching *matching)
{
    size_t before = atomic_fetch_sub(&matching->travelling, 1);
    check(before > 0);
}

void
matching_send(struct matching *matching, struct loop *to, struct letter *letter)
{
    atomic_fetch_add(&matching->travelling, 1);
    loop_post_answer(to, letter);
}

bool
matching_try_send(struct matching *matching, struct loop *to, struct letter *letter)
{
    atomic_fetch_add(&matching->travelling, 1);
    if (loop_post(to, letter))
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

/* --- offers --------------------------------------------------------------------------------------
 */

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
offer_new(struct matching *matching, const struct task *task, enum errand errand)
{
    struct arena *arena = arena_new(512);
    struct offer *offer = arena_make(arena, struct offer);
    offer->arena = arena;
    offer->matching = matching;
    offer->task = task_copy(task, arena);
    task_find_partition(offer->task, arena);
    offer->errand = errand;
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
    if (offer->task->row == 0 || matching->places[here].is_drained)
        return;
    matching->options.task_done(matching->options.context, offer->task);
}

static void
offer_run(struct offer *offer)
{
    const struct task *task = offer->task;
    struct address address = task_address(task);
    if (offer->errand == ERRAND_VISIT)
        address.partition = offer->host;
    struct place *place = place_of(offer->matching, &address);
    check(place_is_here(place));
    if (offer->errand == ERRAND_ADD && family_redirect(place, offer))
        return;
    struct task_list *list = list_get(place, &address, task->kind);
    switch (offer->errand) {
    case ERRAND_ADD:
        list_receive(list, offer);
        break;
    case ERRAND_RETURN:
        list_return(list, offer);
        break;
    case ERRAND_FINISH:
        list_finish(list, offer);
        break;
    case ERRAND_UNASK:
        list_unask(list, offer);
        break;
    case ERRAND_VISIT:
        member_host(list, offer);
        break;
    }
}

static void
offer_delivered(struct letter *letter)
{
    struct offer *offer = container_of(letter, struct offer, letter);
    letter_arrived(offer->matching);
    offer_run(offer);
}

void
offer_send(struct offer *offer)
{
    struct address address = task_address(offer->task);
    struct place *place = place_of(offer->matching, &address);
    offer->letter.deliver = offer_delivered;
    if (place_is_here(place))
        offer_run(offer);
    else
        matching_send(offer->matching, place_loop(place), &offer->letter);
}

void
offer_visit(struct offer *offer, int32_t host)
{
    struct address address = task_address(offer->task);
    check(host != offer->task->partition && list_is_empty(&offer->node));
    address.partition = offer->host = host;
    offer->errand = ERRAND_VISIT;
    offer->letter.deliver = offer_delivered;
    matching_send(offer->matching, place_loop(place_of(offer->matching, &address)), &offer->letter);
}

bool
matching_add(struct matching *matching, const struct task *task)
{
    if (atomic_load(&matching->is_draining) || matching_is_full(matching, task->domain_id))
        return false;
    struct offer *offer = offer_new(matching, task, ERRAND_ADD);
    offer->task->number = 0;
    if (offer->task->partition == 0)
        offer->task->partition = family_choose_write(place_here(matching), offer->task);
    struct address address = task_address(offer->task);
    struct place *place = place_of(matching, &address);
    offer->letter.deliver = offer_delivered;
    if (place_is_here(place)) {
        offer_run(offer);
        return true;
    }
    if (matching_try_send(matching, place_loop(place), &offer->letter))
        return true;
    offer_free(offer);
    return false;
}

void
matching_return(struct matching *matching, const struct task *task)
{
    offer_send(offer_new(matching, task, ERRAND_RETURN));
}

void
matching_finish(struct matching *matching, const struct task *task)
{
    if (task->row == 0 && task->number != 0)
        offer_send(offer_new(matching, task, ERRAND_FINISH));
}

/* --- polls ---------------------------------------------------------------------------------------
 */

/* Both letters are home, or one that was never sent. */
static void
poll_give_back(struct poll *poll)
{
    check(!poll->is_parked);
    poll->back(poll, poll->end);
}

static void
poll_came_home(struct letter *letter)
{
    struct poll *poll = container_of(letter, struct poll, letter);
    struct matching *matching = poll->owner;
    letter_arrived(matching);
    check(poll->home == loop_self() && !poll->is_ended);
    poll->is_ended = true;
    family_note_backlog(place_here(matching), poll);
    if (!poll->is_recalled || poll->end == POLL_WITHDRAWN)
        poll_give_back(poll);
}

void
poll_go_home(struct poll *poll, enum poll_end end)
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
    poll->owner = list->place->matching;
    poll->letter.deliver = poll_came_home;
    matching_send(list->place->matching, poll->home, &poll->letter);
}

static void
poll_delivered(struct letter *letter)
{
    struct poll *poll = container_of(letter, struct poll, letter);
    struct matching *matching = poll->owner;
    struct address address = poll_address(poll);
    struct place *place = place_of(matching, &address);
    check(place_is_here(place) && !poll->is_parked);
    letter_arrived(matching);
    list_poll(list_get(place, &address, poll->kind), poll);
}

void
matching_poll(struct matching *matching, struct poll *poll)
{
    poll->partition = family_choose_read(place_here(matching), poll);
    struct address address = poll_address(poll);
    struct place *place = place_of(matching, &address);
    poll->home = loop_self();
    poll->owner = matching;
    poll->task = NULL;
    poll->task_arena = NULL;
    poll->failure = NULL;
    poll->start = NULL;
    poll->request_id = NULL;
    poll->backlog = poll->waited = 0;
    poll->is_parked = poll->is_recalled = poll->is_ended = false;
    poll->is_claimed = poll->is_withdrawn = poll->has_recall = false;
    list_init(&poll->node);
    poll->letter.deliver = poll_delivered;
    if (place_is_here(place)) {
        list_poll(list_get(place, &address, poll->kind), poll);
    } else if (!matching_try_send(matching, place_loop(place), &poll->letter)) {
        poll->end = POLL_FAILED;
        poll->failure = "Too much is on its way to the task list, try again.";
        poll->letter.deliver = poll_came_home;
        matching_send(matching, poll->home, &poll->letter);
    }
}

/* The poll had ended before the recall came to its list. */
static void
recall_came_home(struct letter *letter)
{
    struct poll *poll = container_of(letter, struct poll, recall);
    letter_arrived(poll->owner);
    check(poll->is_ended); /* one sender's letters arrive in order */
    poll_give_back(poll);
}

static void
recall_delivered(struct letter *letter)
{
    struct poll *poll = container_of(letter, struct poll, recall);
    if (poll->is_parked) {
        struct task_list *list = poll->owner;
        letter_arrived(list->place->matching);
        list_withdraw(list, poll);
        return;
    }
    if (poll->is_claimed) {
        poll->is_withdrawn = poll->has_recall = true;
        return;
    }
    poll_return_recall(poll);
}

void
poll_return_recall(struct poll *poll)
{
    poll->recall.deliver = recall_came_home;
    loop_post_answer(poll->home, &poll->recall); /* still the same letter: counted once */
}

void
matching_withdraw(struct matching *matching, struct poll *poll)
{
    check(poll->home == loop_self() && (!poll->is_ended || poll->is_recalled));
    struct address address = poll_address(poll);
    struct place *place = place_of(matching, &address);
    if (place_is_here(place)) {
        if (poll->is_parked)
            list_withdraw(poll->owner, poll);
        else if (poll->is_claimed)
            poll->is_withdrawn = true;
        return;
    }
    if (poll->is_recalled)
        return;
    poll->is_recalled = true;
    poll->recall.deliver = recall_delivered;
    matching_send(matching, place_loop(place), &poll->recall);
}
