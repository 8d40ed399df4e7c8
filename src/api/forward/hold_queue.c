/* hold_queue.c - the queues of calls. See hold_queue.h, hold.h.
 *
 * All that is held of a domain is on one loop, chosen by its id: there its calls are counted and
 * queue up, one queue per workflow id, and changes of the domain are listened for. A call sends a
 * fiber there, which takes a place and waits until the call is the first of its queue and the
 * domain has ended draining; then the call is answered by its own fiber, on its own loop, and only
 * after that the place is given up.
 *
 * A call that goes to another cluster has a place, too, for as long as it is there: it may wait in
 * that cluster's queue when the workflow moves here, and a call that comes then must not overtake
 * it. It goes at once if all before it went to the same cluster, which has a queue for them. One
 * that has waited, or was refused there and goes somewhere else, goes when it is the first. The
 * order is that of arrival at one cluster; between calls that came to different clusters it is kept
 * as far as both learn of a move in time. */
#include "api/forward/hold_queue.h"

#include "base/check.h"
#include "base/memory.h"
#include "domain/drain.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "wire/errors.h"

/* --- what is held of a domain, on its loop ---- */

struct hold_domain {
    struct arena *arena; /* holds it */
    const char *id;
    struct map *queues;    /* workflow id → struct hold_queue */
    size_t count, waiting; /* calls in them; those of them that had to wait */
    struct domain_listener listener;
};

struct hold_queue {
    struct list holds; /* struct hold; the first has its turn */
};

/* Where a call goes, as the loop of its domain knows it. */
struct destination {
    bool is_pending;     /* a drain to here has to end first */
    const char *cluster; /* another one, until the next yield; NULL: it is answered here */
};

static struct destination
find_destination(const struct hold *hold)
{
    const struct domains *domains = hold->api->options.domains;
    const struct domain *domain = domains_find_id(domains, hold->subject.domain_id);
    if (domain == NULL)
        return (struct destination){0};
    if (hold->subject.is_unknown)
        return (struct destination){.is_pending =
                                        domain_drains_to_here(domain, hold->api->options.group)};
    struct active_cluster active =
        domains_active_run(domains, domain, &hold->subject.attribute, hold->subject.last_version);
    bool is_elsewhere = active.status == ACTIVE_ELSEWHERE && !hold->is_passed_on;
    return (struct destination){.is_pending = active.status == ACTIVE_PENDING,
                                .cluster = is_elsewhere ? active.cluster_name : NULL};
}

/* The calls of one queue; adds those that had to wait. */
static size_t
queue_check(const struct hold_domain *domain, const struct hold_queue *queue, size_t *waiting)
{
    size_t count = 0;
    list_each(node, &queue->holds) {
        const struct hold *hold = list_entry(node, struct hold, node);
        check(hold->is_queued && hold->domain == domain && hold->queue == queue);
        *waiting += hold->has_waited;
        count++;
    }
    check(count > 0);
    return count;
}

static void
hold_domain_check(const struct hold_domain *domain)
{
    size_t count = 0, waiting = 0, cursor = 0;
    void *queue;
    check(domain->waiting <= domain->count && map_count(domain->queues) <= domain->count);
    check((domain->count == 0) == (map_count(domain->queues) == 0));
    if (!CHECK_DEEPLY)
        return;
    while (map_next(domain->queues, &cursor, NULL, &queue))
        count += queue_check(domain, queue, &waiting);
    check(count == domain->count && waiting == domain->waiting);
}

static void
wake_queue(struct hold_queue *queue)
{
    list_each(node, &queue->holds) {
        struct hold *hold = list_entry(node, struct hold, node);
        if (hold->fiber != NULL)
            fiber_wake(hold->fiber);
    }
}

static void
wake_domain(struct hold_domain *domain)
{
    size_t cursor = 0;
    void *queue;
    while (map_next(domain->queues, &cursor, NULL, &queue))
        wake_queue(queue);
}

static void
on_domain_change(struct domain_listener *listener, const struct domain_notification *news)
{
    struct hold_domain *domain = container_of(listener, struct hold_domain, listener);
    bool is_moved = news->domain != NULL && strcmp(news->domain->id, domain->id) == 0;
#ifndef CADENZA_FAULT_held_calls_overtake
    is_moved = is_moved || news->entity_count > 0;
#endif
    if (is_moved)
        wake_domain(domain);
}

static struct hold_domain *
find_domain(struct hold *hold)
{
    struct api_loop *loop = api_here(hold->api);
    struct slice id = slice_text(hold->subject.domain_id);
    if (loop->held == NULL)
        loop->held = map_new();
    struct hold_domain *domain = map_get(loop->held, id);
    if (domain != NULL)
        return domain;
    struct arena *arena = arena_new(0);
    domain = arena_make(arena, struct hold_domain);
    domain->arena = arena;
    domain->id = arena_text(arena, hold->subject.domain_id);
    domain->queues = map_new();
    domain->listener.on_change = on_domain_change;
    domains_listen(hold->api->options.domains, &domain->listener);
    map_put(loop->held, id, domain);
    return domain;
}

static void
drop_domain_if_empty(struct api *api, struct hold_domain *domain)
{
    if (domain->count > 0)
        return;
    check(map_count(domain->queues) == 0);
    map_remove(api_here(api)->held, slice_text(domain->id));
    domains_unlisten(&domain->listener);
    map_free(domain->queues);
    arena_free(domain->arena);
}

/* --- a place in a queue ---- */

static bool
is_first(const struct hold *hold)
{
    check(hold->is_queued);
    return hold->queue->holds.next == &hold->node;
}

static void
enter_queue(struct hold *hold, struct hold_domain *domain)
{
    struct slice id = slice_text(hold->subject.workflow_id);
    struct hold_queue *queue = map_get(domain->queues, id);
    check(!hold->is_queued && !hold->has_waited && list_is_empty(&hold->node));
    if (queue == NULL) {
        queue = memory_zalloc(1, sizeof *queue);
        list_init(&queue->holds);
        map_put(domain->queues, id, queue);
    }
    list_push_back(&queue->holds, &hold->node);
    hold->domain = domain;
    hold->queue = queue;
    hold->is_queued = true;
    domain->count++;
    hold_domain_check(domain);
}

void
hold_queue_leave(void *argument)
{
    struct hold *hold = argument;
    struct hold_domain *domain = hold->domain;
    check(hold->is_queued && hold->fiber == NULL && hold->owner_loop == loop_self());
    list_remove(&hold->node);
    if (list_is_empty(&hold->queue->holds)) {
        map_remove(domain->queues, slice_text(hold->subject.workflow_id));
        memory_free(hold->queue);
    } else {
        wake_queue(hold->queue);
    }
    check(domain->count > 0 && domain->waiting >= (size_t)hold->has_waited);
    domain->count--;
    domain->waiting -= hold->has_waited;
    hold->is_queued = false;
    hold_domain_check(domain);
    drop_domain_if_empty(hold->api, domain);
}

/* It needs a place: the domain drains, other calls are before it, or it goes to another cluster. */
static bool
needs_queueing(const struct hold *hold, const struct hold_domain *domain)
{
    struct destination destination = find_destination(hold);
    bool has_queue = map_get(domain->queues, slice_text(hold->subject.workflow_id)) != NULL;
    return has_queue || destination.is_pending || destination.cluster != NULL;
}

/* Have all before it gone to that cluster? */
static bool
follows_to(const struct hold *hold, const char *cluster)
{
    list_each(node, &hold->queue->holds) {
        const struct hold *other = list_entry(node, struct hold, node);
        if (other == hold)
            return true;
        if (other->sent_to == NULL || strcmp(other->sent_to, cluster) != 0)
            return false;
    }
    return true;
}

/* May a call that another cluster sent go before others? It does not wait for a call that is in
 * another cluster, nor for those behind that one: each of two clusters may have sent a call to the
 * other, and they would wait for each other. */
static bool
may_pass(const struct hold *hold)
{
    bool is_blocked = list_entry(hold->queue->holds.next, struct hold, node)->sent_to != NULL;
    list_each(node, &hold->queue->holds) {
        const struct hold *other = list_entry(node, struct hold, node);
        if (other == hold)
            return true;
        if (other->sent_to == NULL && (other->is_passed_on || !is_blocked))
            return false;
    }
    return true;
}

static bool
is_turn(struct hold *hold)
{
    struct destination destination = find_destination(hold);
    bool is_fresh = !hold->is_refused && !hold->has_waited;
    bool may_follow = hold->is_passed_on ? may_pass(hold)
                                         : destination.cluster != NULL && is_fresh &&
                                               follows_to(hold, destination.cluster);
    hold->sent_to = NULL;
    if (destination.is_pending || !(is_first(hold) || may_follow))
        return false;
    if (destination.cluster != NULL && !hold->is_refused)
        hold->sent_to = arena_text(hold->arena, destination.cluster);
    return true;
}

/* What it waits for, as far as is known here. */
static const char *
cause_of(const struct hold *hold)
{
    const struct domain *domain =
        domains_find_id(hold->api->options.domains, hold->subject.domain_id);
    bool is_pending = find_destination(hold).is_pending;
    if (domain != NULL && domain->is_recovering && is_pending)
        return arena_format(hold->arena,
                            "Cluster %s lost memory (its store was restored or copied), and domain "
                            "%s waits until it has read from the others what it had",
                            hold->api->options.group->current->name, hold->subject.domain_name);
    if (is_pending)
        return arena_format(hold->arena, "Domain %s is on its way to another cluster",
                            hold->subject.domain_name);
    return arena_format(hold->arena,
                        "Calls to workflow %s of domain %s that came before are not answered yet",
                        hold->subject.workflow_id, hold->subject.domain_name);
}

struct error *
hold_queue_too_long(const struct hold *hold)
{
    probe("call_held_too_long");
    return errors_service_busy(hold->arena, "",
                               "%s, which takes longer than the call could wait. Nothing was done, "
                               "try again.",
                               cause_of(hold));
}

/* Counts it among those that wait; false: too many do. */
static bool
begin_to_wait(struct hold *hold)
{
    if (hold->has_waited)
        return true;
    if (hold->domain->waiting >= hold->count_max)
        return false;
    probe("call_held");
    if (!is_first(hold))
        probe("call_held_behind");
    hold->has_waited = true;
    hold->domain->waiting++;
    hold_domain_check(hold->domain);
    return true;
}

static struct error *
too_many(const struct hold *hold)
{
    probe("call_held_full");
    return errors_service_busy(hold->arena, "",
                               "%s, and too many calls wait for that. Nothing was done, try again.",
                               cause_of(hold));
}

static struct error *
wait_in_queue(struct hold *hold)
{
    enum wake wake = WAKE_READY;
    while (!is_turn(hold)) {
        if (!begin_to_wait(hold))
            return too_many(hold);
        if (atomic_load_explicit(&hold->api->is_draining, memory_order_relaxed))
            return errors_service_busy(hold->arena, "", "Shutting down");
        if (wake == WAKE_DEADLINE)
            return hold_queue_too_long(hold);
        if (wake == WAKE_CANCELLED)
            return wake_error(wake, hold->arena, "waiting for a failover to end");
        hold->fiber = fiber_self();
        wake = fiber_wait(hold->limit);
        hold->fiber = NULL;
    }
    return NULL;
}

void
hold_queue_wait(void *argument)
{
    struct hold *hold = argument;
    struct hold_domain *domain = hold->domain;
    check(hold->owner_loop == loop_self() && hold->fiber == NULL);
    hold->err = NULL;
    if (!hold->is_queued) {
        domain = find_domain(hold);
        if (!needs_queueing(hold, domain)) {
            drop_domain_if_empty(hold->api, domain);
            return;
        }
        enter_queue(hold, domain);
    }
    hold->err = wait_in_queue(hold);
}

/* --- closing ---- */

void
hold_hurry_here(struct api *api)
{
    struct map *held = api_here(api)->held;
    size_t cursor = 0;
    void *domain;
    while (held != NULL && map_next(held, &cursor, NULL, &domain))
        wake_domain(domain);
}

void
hold_close_here(struct api *api)
{
    struct api_loop *loop = api_here(api);
    check(loop->held == NULL || map_count(loop->held) == 0);
    map_free(loop->held);
    loop->held = NULL;
}
