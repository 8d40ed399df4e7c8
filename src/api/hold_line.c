/* hold_line.c - the lines of calls. See hold_line.h, hold.h.
 *
 * All that is held of a domain is on one loop, chosen by its id: there its calls are counted, stand
 * in lines, one per workflow id, and the news of the domain are heard. A call goes there in a
 * fiber, takes its place and waits until it is the first of its line and the domain drains no more;
 * then its own fiber, on its own loop, has it answered, and only then the place is given up.
 *
 * A call that goes to another cluster has a place, too, for as long as it is there: it may wait in
 * that cluster's line when the workflow comes here, and whoever comes then must not pass it. It
 * goes at once if all before it went to the same cluster, where they have a line. One that has
 * waited, or was refused there and goes somewhere else, goes when it is the first. The order is
 * that of arrival at one cluster; of calls that came to two it is kept as far as both hear of a
 * move in time. */
#include "api/hold_line.h"

#include "base/check.h"
#include "base/memory.h"
#include "domain/drain.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"

/* --- what is held of a domain, on its loop ---- */

struct hold_domain {
    struct arena *arena; /* holds it */
    const char *id;
    struct map *lines;     /* workflow id → struct hold_line */
    size_t count, waiting; /* calls in them; those of them that had to wait */
    struct domain_listener listener;
};

struct hold_line {
    struct list holds; /* the first is the one whose turn it is */
};

/* Where a call goes, as its home loop knows it. */
struct way {
    bool is_pending;     /* a drain to here has to end first */
    const char *cluster; /* another one, until the next yield; NULL: it is answered here */
};

static struct way
find_way(const struct hold *hold)
{
    const struct domains *domains = hold->api->options.domains;
    const struct domain *domain = domains_find_id(domains, hold->subject.domain_id);
    if (domain == NULL)
        return (struct way){0};
    if (hold->subject.is_unknown)
        return (struct way){.is_pending = hold_is_draining_to_here(hold->api, domain)};
    struct active_cluster active =
        domains_active_run(domains, domain, &hold->subject.attribute, hold->subject.last_version);
    bool is_elsewhere = active.status == ACTIVE_ELSEWHERE && !hold->is_passed_on;
    return (struct way){.is_pending = active.status == ACTIVE_PENDING,
                        .cluster = is_elsewhere ? active.cluster_name : NULL};
}

static void
wake_line(struct hold_line *line)
{
    list_each(node, &line->holds) {
        struct hold *hold = list_entry(node, struct hold, node);
        if (hold->fiber != NULL)
            fiber_wake(hold->fiber);
    }
}

static void
wake_domain(struct hold_domain *domain)
{
    size_t cursor = 0;
    void *line;
    while (map_next(domain->lines, &cursor, NULL, &line))
        wake_line(line);
}

static void
hear_domain(struct domain_listener *listener, const struct domain_news *news)
{
    struct hold_domain *domain = container_of(listener, struct hold_domain, listener);
    bool is_moved = news->domain != NULL && strcmp(news->domain->id, domain->id) == 0;
#ifndef CADENZA_PLANT_held_calls_overtake
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
    domain->lines = map_new();
    domain->listener.hear = hear_domain;
    domains_listen(hold->api->options.domains, &domain->listener);
    map_put(loop->held, id, domain);
    return domain;
}

static void
drop_domain_if_empty(struct api *api, struct hold_domain *domain)
{
    if (domain->count > 0)
        return;
    check(map_count(domain->lines) == 0);
    map_remove(api_here(api)->held, slice_text(domain->id));
    domains_unlisten(&domain->listener);
    map_free(domain->lines);
    arena_free(domain->arena);
}

/* --- a place in a line ---- */

static bool
is_first(const struct hold *hold)
{
    return hold->line->holds.next == &hold->node;
}

static void
enter_line(struct hold *hold, struct hold_domain *domain)
{
    struct slice id = slice_text(hold->subject.workflow_id);
    struct hold_line *line = map_get(domain->lines, id);
    if (line == NULL) {
        line = memory_zalloc(1, sizeof *line);
        list_init(&line->holds);
        map_put(domain->lines, id, line);
    }
    list_push_back(&line->holds, &hold->node);
    hold->domain = domain;
    hold->line = line;
    hold->is_in_line = true;
    domain->count++;
}

void
hold_line_leave(void *argument)
{
    struct hold *hold = argument;
    struct hold_domain *domain = hold->domain;
    check(hold->is_in_line && hold->fiber == NULL);
    list_remove(&hold->node);
    if (list_is_empty(&hold->line->holds)) {
        map_remove(domain->lines, slice_text(hold->subject.workflow_id));
        memory_free(hold->line);
    } else {
        wake_line(hold->line);
    }
    check(domain->count > 0);
    domain->count--;
    domain->waiting -= hold->has_waited;
    hold->is_in_line = false;
    drop_domain_if_empty(hold->api, domain);
}

/* Something has to be remembered of it: the domain drains, others stand before it, or it goes to
 * another cluster. */
static bool
needs_place(const struct hold *hold, const struct hold_domain *domain)
{
    struct way way = find_way(hold);
    bool has_line = map_get(domain->lines, slice_text(hold->subject.workflow_id)) != NULL;
    return has_line || way.is_pending || way.cluster != NULL;
}

/* Have all that stand before it gone to that cluster? */
static bool
follows_to(const struct hold *hold, const char *cluster)
{
    list_each(node, &hold->line->holds) {
        const struct hold *other = list_entry(node, struct hold, node);
        if (other == hold)
            return true;
        if (other->away_to == NULL || strcmp(other->away_to, cluster) != 0)
            return false;
    }
    return true;
}

/* A call that another cluster sent waits for no call that is away, nor for those behind that: each
 * of the two clusters may have sent one to the other. */
static bool
may_pass(const struct hold *hold)
{
    bool is_blocked = list_entry(hold->line->holds.next, struct hold, node)->away_to != NULL;
    list_each(node, &hold->line->holds) {
        const struct hold *other = list_entry(node, struct hold, node);
        if (other == hold)
            return true;
        if (other->away_to == NULL && (other->is_passed_on || !is_blocked))
            return false;
    }
    return true;
}

static bool
is_turn(struct hold *hold)
{
    struct way way = find_way(hold);
    bool is_fresh = !hold->is_refused && !hold->has_waited;
    bool may_follow = hold->is_passed_on
                          ? may_pass(hold)
                          : way.cluster != NULL && is_fresh && follows_to(hold, way.cluster);
    hold->away_to = NULL;
    if (way.is_pending || !(is_first(hold) || may_follow))
        return false;
    if (way.cluster != NULL && !hold->is_refused)
        hold->away_to = arena_text(hold->arena, way.cluster);
    return true;
}

/* What it waits for, as far as is known here. */
static const char *
cause_of(const struct hold *hold)
{
    if (find_way(hold).is_pending)
        return arena_format(hold->arena, "Domain %s is on its way to another cluster",
                            hold->subject.domain_name);
    return arena_format(hold->arena,
                        "Calls to workflow %s of domain %s that came before are not answered yet",
                        hold->subject.workflow_id, hold->subject.domain_name);
}

struct error *
hold_line_too_long(const struct hold *hold)
{
    mark("call_held_too_long");
    return errors_service_busy(hold->arena, "",
                               "%s, which takes longer than the call could wait. Nothing was done, "
                               "try again.",
                               cause_of(hold));
}

/* It has to wait; false: too many do. */
static bool
begin_to_wait(struct hold *hold)
{
    if (hold->has_waited)
        return true;
    if (hold->domain->waiting >= hold->count_max)
        return false;
    mark("call_held");
    if (!is_first(hold))
        mark("call_held_behind");
    hold->has_waited = true;
    hold->domain->waiting++;
    return true;
}

static struct error *
too_many(const struct hold *hold)
{
    mark("call_held_full");
    return errors_service_busy(hold->arena, "",
                               "%s, and too many calls wait for that. Nothing was done, try again.",
                               cause_of(hold));
}

static struct error *
wait_in_line(struct hold *hold)
{
    enum wake wake = WAKE_READY;
    while (!is_turn(hold)) {
        if (!begin_to_wait(hold))
            return too_many(hold);
        if (atomic_load_explicit(&hold->api->is_draining, memory_order_relaxed))
            return errors_service_busy(hold->arena, "", "Shutting down");
        if (wake == WAKE_DEADLINE)
            return hold_line_too_long(hold);
        if (wake == WAKE_CANCELLED)
            return wake_error(wake, hold->arena, "waiting for a failover to end");
        hold->fiber = fiber_self();
        wake = fiber_wait(hold->limit);
        hold->fiber = NULL;
    }
    return NULL;
}

void
hold_line_wait(void *argument)
{
    struct hold *hold = argument;
    struct hold_domain *domain = hold->domain;
    hold->err = NULL;
    if (!hold->is_in_line) {
        domain = find_domain(hold);
        if (!needs_place(hold, domain)) {
            drop_domain_if_empty(hold->api, domain);
            return;
        }
        enter_line(hold, domain);
    }
    hold->err = wait_in_line(hold);
}

/* --- the end of the door ---- */

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
