/* hold.c - see hold.h.
 *
 * All that is held of a domain is on one loop, chosen by its id: there its calls are counted, stand
 * in lines, one per workflow id, and the news of the domain are heard. A call goes there in a
 * fiber, takes its place and waits until it is the first of its line and the domain drains no more;
 * then its own fiber, on its own loop, has it answered, and only then the place is given up.
 *
 * The loops hear of a domain one after the other, and so do the shards: a call may be refused
 * although its loop knows that the domain is active. Such a refusal names this cluster as the
 * active one; it is a matter of a moment, so the call keeps its place and tries again. */
#include "api/hold.h"

#include "base/check.h"
#include "base/memory.h"
#include "domain/drain.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/mark.h"
#include "wire/errors.h"

#define ANSWER_TIME                                                                                \
    (100 * NS_PER_MS)               /* before its deadline a caller is told that it was in vain    \
                                     */
#define RETRY_PAUSE (5 * NS_PER_MS) /* until a shard has heard what its loop knows */

/* --- what is held of a domain, on its loop ---- */

struct hold_domain {
    struct arena *arena; /* holds it */
    const char *id;
    struct map *lines; /* workflow id → struct hold_line */
    size_t count;      /* calls in them */
    struct domain_listener listener;
};

struct hold_line {
    struct list holds; /* the first is the one whose turn it is */
};

/* A call that waits, in its own fiber's stack. */
struct hold {
    struct api *api;
    struct arena *arena;
    struct hold_subject subject;
    struct loop *home;
    int64_t began, limit; /* monotonic */
    size_t count_max;
    bool is_in_line; /* it must leave */
    /* On the home loop. */
    struct list node; /* in its line */
    struct hold_domain *domain;
    struct hold_line *line;
    struct fiber *fiber; /* waits there; NULL: nobody does */
    struct error *err;   /* of the last trip */
};

static bool
is_draining_here(const struct domain *domain, const struct hold *hold)
{
    const struct domains *domains = hold->api->options.domains;
    if (domain == NULL)
        return false;
    if (hold->subject.is_unknown)
        return hold_is_draining_to_here(hold->api, domain);
    return domains_active_run(domains, domain, &hold->subject.attribute, hold->subject.last_version)
               .status == ACTIVE_PENDING;
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
    if (news->domain != NULL && strcmp(news->domain->id, domain->id) == 0)
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
    } else {
        mark("call_held_behind");
    }
    list_push_back(&line->holds, &hold->node);
    hold->domain = domain;
    hold->line = line;
    hold->is_in_line = true;
    domain->count++;
}

/* Who comes next may go. On the home loop. */
static void
leave_line(void *argument)
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
    hold->is_in_line = false;
    drop_domain_if_empty(hold->api, domain);
}

/* Somebody has to wait: the domain drains, or others stand before this one. */
static bool
must_wait(const struct hold *hold, const struct hold_domain *domain)
{
    const struct domain *known =
        domains_find_id(hold->api->options.domains, hold->subject.domain_id);
    bool has_line = map_get(domain->lines, slice_text(hold->subject.workflow_id)) != NULL;
    return has_line || is_draining_here(known, hold);
}

static bool
is_turn(const struct hold *hold)
{
    const struct domain *known =
        domains_find_id(hold->api->options.domains, hold->subject.domain_id);
    return is_first(hold) && !is_draining_here(known, hold);
}

static struct error *
too_long(const struct hold *hold)
{
    mark("call_held_too_long");
    return errors_service_busy(
        hold->arena, "",
        "Domain %s is on its way to another cluster, which takes longer than "
        "the call could wait. Nothing was done, try again.",
        hold->subject.domain_name);
}

static struct error *
wait_in_line(struct hold *hold)
{
    enum wake wake = WAKE_READY;
    while (!is_turn(hold)) {
        if (atomic_load_explicit(&hold->api->is_draining, memory_order_relaxed))
            return errors_service_busy(hold->arena, "", "Shutting down");
        if (wake == WAKE_DEADLINE)
            return too_long(hold);
        if (wake == WAKE_CANCELLED)
            return wake_error(wake, hold->arena, "waiting for a failover to end");
        hold->fiber = fiber_self();
        wake = fiber_wait(hold->limit);
        hold->fiber = NULL;
    }
    return NULL;
}

/* Waits until it is the call's turn, with a place in the line from the start on. On the home loop.
 */
static void
trip_wait(void *argument)
{
    struct hold *hold = argument;
    struct hold_domain *domain = hold->domain;
    hold->err = NULL;
    if (!hold->is_in_line) {
        domain = find_domain(hold);
        if (!must_wait(hold, domain)) {
            drop_domain_if_empty(hold->api, domain);
            return;
        }
        if (domain->count >= hold->count_max) {
            mark("call_held_full");
            hold->err = errors_service_busy(
                hold->arena, "",
                "Domain %s is on its way to another cluster, and too many calls wait for that. "
                "Nothing was done, try again.",
                hold->subject.domain_name);
            drop_domain_if_empty(hold->api, domain);
            return;
        }
        mark("call_held");
        enter_line(hold, domain);
    }
    hold->err = wait_in_line(hold);
}

/* --- the call's own fiber ---- */

static struct dynamic_filter
filter_of(const char *domain_name)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name;
    return filter;
}

bool
hold_is_enabled(const struct api *api, const struct domain *domain)
{
    const struct dynamic_filter filter = filter_of(domain->name);
    return dynamic_flag(api->options.dynamic, DYNAMIC_HOLD_CALLS, &filter);
}

bool
hold_is_draining(const struct domain *domain)
{
    return domain->record->n_drains > 0;
}

bool
hold_is_draining_to_here(const struct api *api, const struct domain *domain)
{
    for (size_t i = 0; i < domain->record->n_drains; i++)
        if (drain_is_to_here(domain->record->drains[i], api->options.group))
            return true;
    return false;
}

static void
begin_hold(struct hold *hold, struct rpc_call *call)
{
    const struct dynamic *dynamic = hold->api->options.dynamic;
    const struct dynamic_filter filter = filter_of(hold->subject.domain_name);
    int64_t longest = dynamic_duration(dynamic, DYNAMIC_HOLD_CALLS_TIME, &filter);
    int64_t count_max = dynamic_integer(dynamic, DYNAMIC_HOLD_CALLS_MAX, &filter);
    int64_t deadline = grpc_call_deadline(call->grpc) - ANSWER_TIME;
    hold->began = clock_monotonic();
    hold->limit = hold->began + longest < deadline ? hold->began + longest : deadline;
    hold->count_max = count_max < 0 ? 0 : (size_t)count_max;
    uint64_t hash = map_hash(slice_text(hold->subject.domain_id));
    hold->home = loop_at((unsigned)(hash % loop_count()));
}

/* Waits for the call's turn. Yields. */
static struct error *
take_turn(struct hold *hold, struct rpc_call *call)
{
    if (hold->home == NULL) {
        begin_hold(hold, call);
        atomic_fetch_add(&hold->api->held, 1); /* before it is on its way: who comes next looks */
    }
    if (clock_monotonic() >= hold->limit)
        return too_long(hold);
    struct error *err = loop_call(hold->home, trip_wait, hold, hold->arena);
    if (err != NULL) /* the mailbox is full */
        return errors_service_busy(hold->arena, "", "Too many calls wait for a failover.");
    return hold->err;
}

static void
count_held(const struct hold *hold, const struct error *err)
{
    struct metrics *metrics = hold->api->options.metrics;
    if (metrics == NULL)
        return;
    const char *labels[] = {"domain", hold->subject.domain_name, "result",
                            err == NULL                     ? "done"
                            : err->kind == ERR_SERVICE_BUSY ? "refused"
                            : err->kind == ERR_CANCELLED    ? "gone"
                                                            : "failed",
                            NULL};
    const char *domain[] = {"domain", hold->subject.domain_name, NULL};
    counter_add(metrics_counter(metrics, "cadence_graceful_failover_held_calls",
                                "Calls that waited for the end of a graceful failover.", labels),
                1);
    histogram_observe(metrics_histogram(metrics, "cadence_graceful_failover_held_latency",
                                        "Time from a call that had to wait to its answer.", domain),
                      clock_monotonic() - hold->began);
}

static void
end_hold(struct hold *hold, const struct error *err)
{
    if (hold->home == NULL)
        return;
    bool was_held = hold->is_in_line || (err != NULL && err->kind == ERR_SERVICE_BUSY);
    struct error *busy = NULL;
    do { /* a mailbox that is full has to be emptied, and will */
        busy = hold->is_in_line ? loop_call(hold->home, leave_line, hold, hold->arena) : NULL;
        if (busy != NULL)
            fiber_yield();
    } while (busy != NULL);
    atomic_fetch_sub(&hold->api->held, 1);
    if (was_held)
        count_held(hold, err);
}

/* A refusal of this cluster, of a shard that has not heard yet what this loop knows: soon. Yields.
 */
static bool
try_soon(struct hold *hold, struct rpc_call *call, const struct error *err)
{
    const char *told = forward_told_active(call, err, "");
    bool is_here = told != NULL && strcmp(told, hold->api->options.group->current->name) == 0;
    if (!is_here || hold->subject.status != ACTIVE_HERE)
        return false;
    if (hold->home == NULL) {
        begin_hold(hold, call);
        atomic_fetch_add(&hold->api->held, 1);
    }
    mark("call_before_its_shard");
    return clock_monotonic() + RETRY_PAUSE < hold->limit &&
           fiber_sleep(RETRY_PAUSE, hold->arena) == NULL;
}

/* The call was refused since the domain is not active where it was asked: is there something to
 * wait for? It has been waited for then, and *err says how that ended. Yields. */
static bool
wait_again(struct hold *hold, struct rpc_call *call, struct error **err)
{
    if (!forward_find_subject(call, &hold->subject))
        return false;
    if (hold->subject.status != ACTIVE_PENDING)
        return try_soon(hold, call, *err);
    *err = take_turn(hold, call);
    return *err == NULL;
}

struct error *
hold_serve(struct rpc_call *call, bool may_drain, const struct serving *serving)
{
    struct hold hold = {.api = api_of(call), .arena = call->arena};
    struct error *err = NULL;
    list_init(&hold.node);
    bool is_looked_at = may_drain || atomic_load(&hold.api->held) > 0;
    if (is_looked_at && forward_find_subject(call, &hold.subject) &&
        hold.subject.status != ACTIVE_ELSEWHERE)
        err = take_turn(&hold, call);
    if (err == NULL)
        err = forward_serve(call, serving);
    while (err != NULL && err->kind == ERR_DOMAIN_NOT_ACTIVE && wait_again(&hold, call, &err)) {
        call->response = message_new(call->arena, call->response->descriptor);
        err = forward_serve(call, serving);
    }
    end_hold(&hold, err);
    return err;
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
