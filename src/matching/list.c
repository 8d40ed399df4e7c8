/* list.c - one list: offers meet polls. See inside.h.
 *
 * Either polls wait or offers do, unless the list gives
 * out only so many tasks per second. Nothing here yields; what has to be read or taken first is
 * left to a worker (work.c), which calls list_dispatch when it is done. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

/* --- finding ---------------------------------------------------------------------------------- */

struct slice
list_id_key(const struct list_id *list_id, struct arena *arena)
{
    const char *word = list_id->type == TASK_DECISION ? "decision" : "activity";
    if (list_id->partition == 0) { /* for every task and poll: not by a format */
        size_t domain = strlen(list_id->domain_id), name = strlen(list_id->name);
        size_t length = domain + strlen("/decision/") + name;
        char *text = arena_alloc(arena, length), *at = mempcpy(text, list_id->domain_id, domain);
        *at++ = '/';
        at = mempcpy(at, word, strlen("decision")); /* both words have this length */
        *at++ = '/';
        memcpy(at, list_id->name, name);
        return slice_of(text, length);
    }
    /* Not by the name that it shows: that could be the name of a list, too. */
    return slice_text(arena_format(arena, "%s/%s.%d/%s", list_id->domain_id, word,
                                   (int)list_id->partition, list_id->name));
}

struct list_id
list_id_of(const struct task_list *list)
{
    return (struct list_id){list->domain_id, list->type, list->name, list->partition};
}

static void
throttle_over(struct timer *timer)
{
    list_dispatch(container_of(timer, struct task_list, throttle));
}

static void
isolation_over(struct timer *timer)
{
    list_dispatch(container_of(timer, struct task_list, isolation));
}

static struct task_list *
list_new(struct loop_lists *loop_lists, const struct list_id *list_id)
{
    const struct matching_options *options = &loop_lists->matching->options;
    struct arena *arena = arena_new(512);
    struct task_list *list = arena_make(arena, struct task_list);
    int64_t now = clock_monotonic();
    list->loop_lists = loop_lists;
    list->arena = arena;
    list->key = list_id_key(list_id, arena);
    list->domain_id = arena_text(arena, list_id->domain_id);
    list->name = arena_text(arena, list_id->name);
    list->partition = list_id->partition;
    list->type = list_id->type;
    list->base_name = "";
    const char *domain_name = options->domain_name == NULL
                                  ? NULL
                                  : options->domain_name(options->context, list->domain_id);
    if (domain_name != NULL)
        list->domain_name = arena_text(arena, domain_name);
    list->is_served = options->is_served != NULL &&
                      options->is_served(options->context, list->domain_id, list->name);
    list_init(&list->inbox);
    list_init(&list->busy);
    list_init(&list->waiting);
    list_init(&list->queries);
    list_init(&list->polls);
    list->known = map64_new();
    list->pollers = map_new();
    list->rate_requested = LIMIT_RATE_DEFAULT;
    limit_init(&list->limit, LIMIT_RATE_DEFAULT, now);
    timer_init(&list->throttle, throttle_over);
    timer_init(&list->isolation, isolation_over);
    list->used = list->looked = now;
    list->polled = now - STICKY_WINDOW;
    backlog_init(list);
    member_init(list);
    list_tend_begin(list);
    check(list->partition >= 0 && list->partition < PARTITIONS_MAX);
    map_put(loop_lists->lists, list->key, list);
    return list;
}

struct task_list *
list_find(struct loop_lists *loop_lists, const struct list_id *list_id)
{
    struct task_list *list = map_get(loop_lists->lists, list_id_key(list_id, loop_lists->scratch));
    arena_reset(loop_lists->scratch);
    return list;
}

/* Nothing is on it: it may be of either kind. */
static bool
is_blank(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return list_is_unused(list) && backlog->read == backlog->written && !backlog->is_worked &&
           !backlog->is_queued && backlog->writer == NULL;
}

struct task_list *
list_get(struct loop_lists *loop_lists, const struct list_id *list_id, enum list_kind kind)
{
    check(loop_lists_are_here(loop_lists));
    struct task_list *list = list_find(loop_lists, list_id);
    if (list == NULL)
        list = list_new(loop_lists, list_id);
    if (list->kind != kind && is_blank(list))
        list->kind = kind;
    return list;
}

static void
free_offers(struct task_list *list, struct list *offers)
{
    struct list *node;
    while ((node = list_pop_front(offers)) != NULL) {
        struct offer *offer = list_entry(node, struct offer, node);
        list_forget(list, offer);
        offer_free(offer);
    }
}

void
list_free(struct task_list *list)
{
    check(list->poll_count == 0 && list->users == 0 && list->backlog.writer == NULL);
    timer_stop(&list->throttle);
    timer_stop(&list->isolation);
    timer_stop(&list->tend);
    list_remove(&list->busy);
    free_offers(list, &list->inbox);
    free_offers(list, &list->waiting);
    free_offers(list, &list->queries);
    free_offers(list, &list->backlog.pending);
    free_offers(list, &list->backlog.in_flight);
    backlog_free(list);
    pollers_free(list);
    isolation_free(list);
    member_free(list);
    check(map64_count(list->known) == 0);
    map64_free(list->known);
    void *removed = map_remove(list->loop_lists->lists, list->key);
    check(removed == list);
    arena_free(list->arena);
}

/* --- what it is ------------------------------------------------------------------------------- */

bool
list_is_sticky(const struct task_list *list)
{
    return list->kind == LIST_STICKY;
}

struct dynamic_filter
list_filter(const struct task_list *list)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = list->domain_name;
    filter.domain_id = list->domain_id;
    filter.task_list_name = list->name;
    filter.task_type = (int)list->type;
    return filter;
}

static const struct dynamic *
settings(const struct task_list *list)
{
    return list->loop_lists->matching->options.dynamic;
}

size_t
list_bound(const struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    int64_t bound = dynamic_integer(settings(list), DYNAMIC_TASKS_IN_MEMORY, &filter);
    bool is_tight = atomic_load(&list->loop_lists->matching->held) > TASKS_MAX / 2;
    if (is_tight && bound > TASKS_TIGHT)
        bound = TASKS_TIGHT;
    return bound < 0 ? 0 : (size_t)bound;
}

bool
list_is_polled(const struct task_list *list)
{
    return list->poll_count > 0 || clock_monotonic() - list->polled < STICKY_WINDOW;
}

bool
offer_is_expired(const struct offer *offer, int64_t wall)
{
    return offer->task->expiry_time != 0 && offer->task->expiry_time <= wall;
}

/* --- one task, one offer ---------------------------------------------------------------------- */

/* A hint only: two rows may share a number, and then the older is not found any more. */
static uint64_t
known_key(const struct task *task)
{
    return task->row ^ (uint64_t)task->shard * UINT64_C(0x9e3779b97f4a7c15);
}

static struct offer *
list_find_known(const struct task_list *list, const struct task *task)
{
    struct offer *offer = task->row == 0 ? NULL : map64_get(list->known, known_key(task));
    if (offer == NULL || offer->task->row != task->row || offer->task->shard != task->shard)
        return NULL;
    return offer;
}

void
list_know(struct task_list *list, struct offer *offer)
{
    if (offer->task->row == 0)
        return;
    struct offer *before = map64_put(list->known, known_key(offer->task), offer);
    check(before != offer && !offer->is_known);
    if (before != NULL)
        before->is_known = false;
    offer->is_known = true;
}

void
list_forget(struct task_list *list, struct offer *offer)
{
    if (offer->is_known)
        map64_remove(list->known, known_key(offer->task));
    offer->is_known = false;
}

/* The shard has a new owner and offers what is here already: one offer is enough, and it counts for
 * the new owner. */
bool
list_merge(struct task_list *list, struct offer *offer)
{
    struct offer *known = list_find_known(list, offer->task);
    if (known == NULL)
        return false;
    check(known != offer && known->is_known && !offer->is_known);
    probe("task_offered_again");
    if (offer->task->range_id > known->task->range_id)
        known->task->range_id = offer->task->range_id;
    offer_free(offer);
    return true;
}

/* --- waiting in memory ------------------------------------------------------------------------ */

void
list_add_waiting(struct task_list *list, struct offer *offer)
{
    check(list_is_empty(&offer->node));
    backlog_number(list, offer);
    list_push_back(&list->waiting, &offer->node);
    list->waiting_count++;
}

void
list_remove_waiting(struct task_list *list, struct offer *offer)
{
    check(list->waiting_count > 0);
    list_remove(&offer->node);
    list->waiting_count--;
}

void
list_expire(struct task_list *list, struct offer *offer)
{
    check(list_is_empty(&offer->node));
    probe("task_expired");
    matching_count(list->loop_lists->matching->counters.expired, 1);
    list_forget(list, offer);
    offer_row_done(offer);
    if (offer->task->row == 0)
        backlog_finish(list, offer->task->number);
    offer_free(offer);
}

void
list_pass_on_one(struct task_list *list, struct offer *offer)
{
    struct task *task = offer->task;
    check(list_is_sticky(list) && list_is_empty(&offer->node));
    if (task->normal_list[0] == '\0') { /* there is nobody else */
        list_add_waiting(list, offer);
        return;
    }
    list_forget(list, offer);
    probe("sticky_task_passed_on");
    matching_count(list->loop_lists->matching->counters.passed_on, 1);
    task->kind = LIST_NORMAL;
    task->list = task->normal_list;
    task->normal_list = "";
    task->number = 0;
    offer->offer_action = OFFER_ADD;
    offer_send(offer);
}

void
list_pass_on(struct task_list *list)
{
    struct list passing;
    check(list_is_sticky(list));
    list_init(&passing);
    list_splice_back(&passing, &list->waiting);
    list->waiting_count = 0;
    struct list *node;
    while ((node = list_pop_front(&passing)) != NULL)
        list_pass_on_one(list, list_entry(node, struct offer, node));
}

/* --- meeting ---------------------------------------------------------------------------------- */

static double
rate_requested(const struct task_list *list)
{
    const struct partition_group *partition_group =
        list->partition == 0 ? NULL : partition_group_of(list);
    return partition_group == NULL ? list->rate_requested : partition_group->rate_requested;
}

void
list_set_rate(struct task_list *list)
{
    if (list->type != TASK_ACTIVITY)
        return;
    struct dynamic_filter filter = list_filter(list);
    if (list->base_name[0] != '\0')
        filter.task_list_name = list->base_name;
    double rate = dynamic_number(settings(list), DYNAMIC_TASK_LIST_RATE, &filter);
    if (rate <= 0)
        rate = rate_requested(list);
    rate = member_rate(list, rate);
    if (rate != list->limit.rate)
        limit_set_rate(&list->limit, rate, clock_monotonic());
}

bool
list_has_token(struct task_list *list)
{
    if (list->type != TASK_ACTIVITY)
        return true;
    list_set_rate(list);
    int64_t wait = limit_take(&list->limit, clock_monotonic());
    if (wait > 0 && wait < LIMIT_NEVER)
        timer_start(&list->throttle, clock_monotonic() + wait);
    return wait == 0;
}

void
list_return_token(struct task_list *list)
{
    if (list->type == TASK_ACTIVITY)
        limit_return(&list->limit);
}

void
list_match(struct task_list *list, struct offer *offer)
{
    check(list->poll_count > 0 && list_is_empty(&offer->node));
    struct waiting_poll *poll = list_entry(list->polls.next, struct waiting_poll, node);
    list_hand_out(list, offer);
    list_give(list, offer, poll);
}

void
list_give(struct task_list *list, struct offer *offer, struct waiting_poll *poll)
{
    check(poll->is_parked && poll->list == list && poll->task == NULL);
    check(offer->task->type == list->type);
    offer_hand_over(offer, poll);
    list->polled = clock_monotonic();
    matching_count(list->loop_lists->matching->counters.success, 1);
    waiting_poll_send_back(list->loop_lists->matching, poll, POLL_MATCHED);
}

void
list_hand_out(struct task_list *list, struct offer *offer)
{
    list_forget(list, offer);
    struct outstanding *row = backlog_find(list, offer->task->number);
    if (row == NULL || row->offer != offer)
        return;
    check(!row->is_done);
    row->offer = NULL;
    row->handed = clock_monotonic();
}

/* The first that waits and has not waited too long; NULL: none. */
struct offer *
list_first(struct task_list *list)
{
    int64_t wall = clock_wall();
    for (;;) {
        if (list_is_empty(&list->waiting))
            backlog_recall(list);
        if (list_is_empty(&list->waiting))
            return NULL;
        struct offer *offer = list_entry(list->waiting.next, struct offer, node);
        if (!offer_is_expired(offer, wall))
            return offer;
        list_remove_waiting(list, offer);
        list_expire(list, offer);
    }
}

static void
list_dispatch_in_order(struct task_list *list)
{
    while (list->poll_count > 0) {
        struct offer *offer = list_first(list);
        if (offer == NULL || !list_has_token(list))
            break;
        list_remove_waiting(list, offer);
        list_match(list, offer);
    }
}

void
list_dispatch(struct task_list *list)
{
    list_dispatch_queries(list);
    if (list->poll_count > 0 && list_is_isolated(list))
        list_dispatch_isolated(list);
    else
        list_dispatch_in_order(list);
    member_changed(list);
    backlog_kick(list);
    list_want(list);
    task_list_check(list);
}

/* Is there anything that a poll could get, as far as is known? */
static bool
has_work(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return list->waiting_count > 0 || list->query_count > 0 || !list_is_empty(&backlog->pending) ||
           !list_is_empty(&backlog->in_flight) ||
           (backlog->is_loaded && backlog->read < backlog->written);
}

void
list_want(struct task_list *list)
{
    const struct matching_options *options = &list->loop_lists->matching->options;
    if (!list->is_served || list->poll_count > 0 || list->loop_lists->is_drained || !has_work(list))
        return;
    options->wanted(options->context, list->domain_id, list->name, list->type);
}
