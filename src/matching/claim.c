/* claim.c - polls that are kept for tasks that are about to be (route/claim.h).
 *
 * A claim gets a poll where a task that came now would get it at once: a poll waits, nothing waits
 * before the task, and the list may give one out. A poll that is claimed is in none of its list's
 * queues and has no timer; its list stays in memory. If it is withdrawn meanwhile, that counts when
 * the claim ends. A list that isolates, or that the server works on itself, grants none: there it
 * matters whose task it is. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"

static struct address
claim_address(const struct claim *claim)
{
    return (struct address){claim->domain_id, claim->type, claim->list, claim->partition};
}

/* --- on the list's loop ---- */

static bool
list_may_grant(struct task_list *list)
{
    return list->poll_count > 0 && list->waiting_count == 0 && list->ask_count == 0 &&
           list_is_empty(&list->inbox) && !list->is_served && !list->place->is_drained &&
           !list_must_store(list) && !list_is_isolated(list) && list_has_token(list);
}

static void
grant(struct task_list *list, struct claim *claim)
{
    struct poll *poll = list_entry(list->polls.next, struct poll, node);
    check(poll->is_parked && poll->owner == list && !poll->is_claimed);
    list_remove(&poll->node);
    list->poll_count--;
    timer_stop(&poll->timer);
    poll->is_parked = false;
    poll->is_claimed = true;
    list->users++;
    list->used = clock_monotonic();
    load_note(&list->load, list->used);
    claim->poll = poll;
    claim->identity = poll->identity;
    member_changed(list);
}

static void
claim_run(struct claim *claim)
{
    struct matching *matching = claim->owner;
    struct address address = claim_address(claim);
    struct task_list *list = list_find(place_of(matching, &address), &address);
    if (list != NULL && list_may_grant(list))
        grant(list, claim);
}

/* It waits again, before the others. */
static void
park_again(struct task_list *list, struct poll *poll)
{
    check(poll->is_claimed && !poll->is_parked && list->users > 0);
    list->users--;
    poll->is_claimed = false;
    poll->is_parked = true;
    list_push_front(&list->polls, &poll->node);
    list->poll_count++;
}

static void
claim_give(struct task_list *list, struct claim *claim)
{
    struct poll *poll = claim->poll;
    park_again(list, poll);
    poll->task = claim->task;
    poll->task_arena = claim->arena;
    poll->start = claim->start;
    poll->request_id = claim->request_id;
    list->polled = clock_monotonic();
    matching_count(list->place->matching->counters.success, 1);
    matching_count(list->place->matching->counters.success_sync, 1);
    bool has_recall = poll->has_recall;
    poll_go_home(poll, POLL_MATCHED);
    if (has_recall)
        poll_return_recall(poll);
}

static void
claim_release(struct task_list *list, struct poll *poll)
{
    mark("claim_released");
    list_return_token(list);
    park_again(list, poll);
    if (poll->has_recall)
        letter_arrived(list->place->matching);
    if (poll->is_withdrawn) {
        list_withdraw(list, poll);
    } else if (list->place->is_drained) {
        poll_go_home(poll, POLL_EMPTY);
    } else {
        poll_start_timer(list, poll);
        list_dispatch(list);
    }
}

static void
claim_end_here(struct claim *claim)
{
    struct poll *poll = claim->poll;
    struct task_list *list = poll->owner;
    if (claim->task != NULL)
        claim_give(list, claim);
    else
        claim_release(list, poll);
    memory_free(claim);
}

/* --- the way there and back ---- */

static void
claim_came_home(struct letter *letter)
{
    struct claim *claim = container_of(letter, struct claim, letter);
    letter_arrived(claim->owner);
    claim->answered(claim);
}

static void
claim_delivered(struct letter *letter)
{
    struct claim *claim = container_of(letter, struct claim, letter);
    claim_run(claim);
    claim->letter.deliver = claim_came_home;
    loop_post_answer(claim->home, &claim->letter); /* still the same letter: counted once */
}

static void
end_delivered(struct letter *letter)
{
    struct claim *claim = container_of(letter, struct claim, letter);
    letter_arrived(claim->owner);
    claim_end_here(claim);
}

enum claim_end
matching_claim(struct matching *matching, struct claim *claim)
{
    if (atomic_load(&matching->is_draining))
        return CLAIM_REFUSED;
    struct task task = {.type = claim->type,
                        .kind = claim->kind,
                        .domain_id = claim->domain_id,
                        .list = claim->list};
    claim->owner = matching;
    claim->home = loop_self();
    claim->partition = family_choose_write(place_here(matching), &task);
    struct address address = claim_address(claim);
    struct place *place = place_of(matching, &address);
    if (place_loop(place) == loop_self()) {
        claim_run(claim);
        return claim->identity != NULL ? CLAIM_GRANTED : CLAIM_REFUSED;
    }
    claim->letter.deliver = claim_delivered;
    return matching_try_send(matching, place_loop(place), &claim->letter) ? CLAIM_ASKED
                                                                          : CLAIM_REFUSED;
}

void
matching_end_claim(struct matching *matching, struct claim *claim)
{
    struct poll *poll = claim->poll;
    check(claim->identity != NULL && poll != NULL);
    struct task_list *list = poll->owner; /* it does not change while it is claimed */
    if (place_loop(list->place) == loop_self()) {
        claim_end_here(claim);
        return;
    }
    claim->letter.deliver = end_delivered;
    matching_send(matching, place_loop(list->place), &claim->letter);
}
