/* polls.c - polls at the place of their callers: a table of those that were given to a list. See
 * values.h.
 *
 * A poll ends when what the list sends comes, or by itself: some time after its expiry the place
 * gives it up, whatever became of it elsewhere. What comes later is dropped. So nothing that is
 * lost on the way leaks a poll, and nothing that comes twice ends one twice.
 *
 * A place takes half as many polls as its table can hold: one more ends as failed. It is in the
 * table until then, too, which is in the next tick, so there is always room. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

#define SLOTS_MAX ((uint32_t)1 << POLL_SLOT_BITS)
#define POLLS_MAX (SLOTS_MAX / 2)
#define NO_SLOT   UINT32_MAX

static void sweep(struct timer *timer);

void
poll_table_init(struct poll_table *poll_table)
{
    poll_table->free_first = NO_SLOT;
    timer_init(&poll_table->sweep, sweep);
}

void
poll_table_free(struct poll_table *poll_table)
{
    check(poll_table->count == 0);
    timer_stop(&poll_table->sweep);
    memory_free(poll_table->slots);
}

static void
grow(struct poll_table *poll_table)
{
    uint32_t before = poll_table->capacity, after = before == 0 ? 16 : 2 * before;
    check(after <= SLOTS_MAX);
    poll_table->slots = memory_realloc(poll_table->slots, after * sizeof *poll_table->slots);
    for (uint32_t i = after; i > before; i--) {
        poll_table->slots[i - 1] = (struct poll_slot){.free_next = poll_table->free_first};
        poll_table->free_first = i - 1;
    }
    poll_table->capacity = after;
}

static void
plan_sweep(struct poll_table *poll_table)
{
    if (poll_table->count > 0 && !timer_is_pending(&poll_table->sweep))
        timer_start(&poll_table->sweep, clock_monotonic() + POLL_SWEEP);
}

static void
poll_enter(struct poll_table *poll_table, struct poll *poll, int64_t given_up)
{
    check(poll->number == 0);
    if (poll_table->free_first == NO_SLOT)
        grow(poll_table);
    uint32_t slot = poll_table->free_first;
    poll_table->free_first = poll_table->slots[slot].free_next;
    poll_table->slots[slot] = (struct poll_slot){.poll = poll, .given_up = given_up};
    poll_table->count++;
    poll->number = ++poll_table->turn << POLL_SLOT_BITS | slot;
    plan_sweep(poll_table);
}

/* The poll is its caller's again. */
static void
poll_leave(struct poll_table *poll_table, struct poll *poll)
{
    uint32_t slot = (uint32_t)(poll->number & (SLOTS_MAX - 1));
    check(slot < poll_table->capacity && poll_table->slots[slot].poll == poll);
    check(poll_table->count > 0);
    poll_table->slots[slot] = (struct poll_slot){.free_next = poll_table->free_first};
    poll_table->free_first = slot;
    poll_table->count--;
    poll->number = 0;
}

/* NULL: it has ended before. */
static struct poll *
poll_find(const struct poll_table *poll_table, uint64_t number)
{
    uint32_t slot = (uint32_t)(number & (SLOTS_MAX - 1));
    struct poll *poll = slot < poll_table->capacity ? poll_table->slots[slot].poll : NULL;
    return poll == NULL || poll->number != number ? NULL : poll;
}

/* --- polls that nobody ends ---- */

static void
sweep(struct timer *timer)
{
    struct poll_table *poll_table = container_of(timer, struct poll_table, sweep);
    int64_t now = clock_monotonic();
    for (uint32_t i = 0; i < poll_table->capacity; i++) {
        struct poll *poll = poll_table->slots[i].poll;
        if (poll == NULL || now < poll_table->slots[i].given_up)
            continue;
#ifdef CADENZA_FAULT_lost_recall_leaks
        if (poll->is_recalled)
            continue;
#endif
        probe("poll_given_up");
        poll_leave(poll_table, poll);
        poll->back(poll, POLL_EMPTY);
    }
    plan_sweep(poll_table);
}

void
poll_table_drain(struct poll_table *poll_table)
{
    int64_t latest = clock_monotonic() + DRAIN_GRACE;
    for (uint32_t i = 0; i < poll_table->capacity; i++) {
        int64_t *given_up = &poll_table->slots[i].given_up;
        *given_up = *given_up < latest ? *given_up : latest;
    }
    plan_sweep(poll_table);
}

/* --- the interface ---- */

static int64_t
give_up_time(const struct loop_lists *loop_lists, const struct poll *poll)
{
    int64_t latest = clock_monotonic() + DRAIN_GRACE, time = poll->expiry + POLL_GRACE;
    return loop_lists->is_drained && latest < time ? latest : time;
}

static bool
is_full(const struct loop_lists *loop_lists)
{
    uint32_t most = loop_lists->matching->options.polls_max;
    return loop_lists->polls.count >= (most == 0 ? POLLS_MAX : most);
}

void
matching_poll(struct matching *matching, struct poll *poll)
{
    struct loop_lists *loop_lists = loop_lists_here(matching);
    bool is_refused = is_full(loop_lists);
    poll->partition = partition_group_choose_read(loop_lists, poll);
    poll->task = NULL;
    poll->task_arena = NULL;
    poll->failure = is_refused ? "Too many polls wait here, try again." : NULL;
    poll->start = NULL;
    poll->request_id = NULL;
    poll->backlog = poll->waited = 0;
    poll->number = 0;
    poll->is_recalled = false;
    poll_enter(&loop_lists->polls, poll, give_up_time(loop_lists, poll));
    struct list_id list_id = {poll->domain_id, poll->type, poll->list, poll->partition};
    struct waiter caller = {route_place_here(), poll->number};
    struct waiting_poll *waiting_poll = waiting_poll_new(poll, &list_id, caller);
    if (is_refused || !waiting_poll_send(matching, waiting_poll))
        waiting_poll_send_back(matching, waiting_poll, POLL_FAILED);
}

void
matching_withdraw(struct matching *matching, struct poll *poll)
{
    struct list_id list_id = {poll->domain_id, poll->type, poll->list, poll->partition};
    check(poll_find(&loop_lists_here(matching)->polls, poll->number) == poll);
    if (poll->is_recalled)
        return;
    poll->is_recalled = true;
    waiting_poll_recall(matching, &list_id, poll->number);
}

void
task_of_nobody(struct matching *matching, const struct task *task, bool is_started)
{
    probe("task_of_nobody");
    if (!is_started)
        matching_return(matching, task);
}

void
poll_came_home(struct matching *matching, struct waiting_poll *came)
{
    struct loop_lists *loop_lists = loop_lists_here(matching);
    struct poll *poll = poll_find(&loop_lists->polls, came->caller.number);
    enum poll_end end = came->end;
    if (came->start_bytes.length > 0)
        came->start = start_from_message(matching, came->task, came->start_bytes, came->arena);
#ifdef CADENZA_FAULT_lost_recall_leaks
    if (poll != NULL && poll->is_recalled && end == POLL_EMPTY) {
        waiting_poll_free(came); /* fault: the recall will bring it back */
        return;
    }
#endif
    if (poll == NULL) {
        probe("poll_ended_before");
        if (came->task != NULL)
            task_of_nobody(matching, came->task, came->start != NULL);
        waiting_poll_free(came);
        return;
    }
    poll_leave(&loop_lists->polls, poll);
    poll->task = came->task;
    poll->task_arena = came->arena;
    poll->request_id = came->request_id;
    poll->start = came->start;
    poll->backlog = came->backlog;
    poll->waited = came->waited;
    if (end == POLL_FAILED && poll->failure == NULL)
        poll->failure = "Too much is on its way to the task list, try again.";
    came->task = NULL;
    came->arena = NULL;
    waiting_poll_free(came);
    partition_group_note_backlog(loop_lists, poll);
    poll->back(poll, end);
}
