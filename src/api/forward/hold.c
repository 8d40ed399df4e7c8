/* hold.c - the way of one call, in its own fiber. See hold.h; the queues are hold_queue.c.
 *
 * The loops learn of a change of a domain one after the other, and so do the shards: a call may be
 * refused although its loop knows already that the domain is active. Such a refusal names this
 * cluster as the active one, and is over in a moment: the call keeps its place in the queue and
 * tries again. */
#include "api/forward/hold_queue.h"

#include "base/check.h"
#include "domain/drain.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define ANSWER_TIME   (100 * NS_PER_MS) /* before its deadline a caller gets the refusal */
#define RETRY_PAUSE   (5 * NS_PER_MS)   /* until a shard has learned what its loop knows */
#define CLUSTER_PAUSE (20 * NS_PER_MS)  /* until another cluster has */

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
hold_is_draining(const struct api *api, const struct domain *domain)
{
    return domain->record->n_drains > 0 ||
           (domain->is_recovering && domains_are_recovering(api->options.domains));
}

static void
begin_hold(struct hold *hold, struct rpc_call *call)
{
    const struct dynamic *dynamic = hold->api->options.dynamic;
    const struct dynamic_filter filter = filter_of(hold->subject.domain_name);
    check(hold->owner_loop == NULL && !hold->is_queued); /* once for each call */
    int64_t longest = dynamic_duration(dynamic, DYNAMIC_HOLD_CALLS_TIME, &filter);
    int64_t count_max = dynamic_integer(dynamic, DYNAMIC_HOLD_CALLS_MAX, &filter);
    int64_t deadline = call->arrival.deadline - ANSWER_TIME;
    hold->began = clock_monotonic();
    hold->limit = hold->began + longest < deadline ? hold->began + longest : deadline;
    hold->count_max = count_max < 0 ? 0 : (size_t)count_max;
    uint64_t hash = map_hash(slice_text(hold->subject.domain_id));
    hold->owner_loop = loop_at((unsigned)(hash % loop_count()));
}

/* Waits for the call's turn. Yields. */
static struct error *
take_turn(struct hold *hold, struct rpc_call *call)
{
    if (hold->owner_loop == NULL) {
        begin_hold(hold, call);
        atomic_fetch_add(hold->held, 1); /* before it is on its way: the next call looks at this */
    }
    if (hold->has_waited && clock_monotonic() >= hold->limit)
        return hold_queue_too_long(hold);
    struct error *err = loop_call(hold->owner_loop, hold_queue_wait, hold, hold->arena);
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
    if (hold->owner_loop == NULL)
        return;
    bool was_held = hold->has_waited || (err != NULL && err->kind == ERR_SERVICE_BUSY);
    if (hold->is_queued)
        loop_call_surely(hold->owner_loop, hold_queue_leave, hold);
    unsigned before = atomic_fetch_sub(hold->held, 1);
    check(before > 0 && !hold->is_queued);
    if (was_held)
        count_held(hold, err);
}

/* Is the refusal only a matter of time? So it is when a shard of this cluster has not learned yet
 * what this loop knows, and, for a call in a queue, when a cluster has not learned yet of a move.
 * Then waits a moment. Yields. */
static bool
try_soon(struct hold *hold, struct rpc_call *call, const struct error *err)
{
    const char *redirect = forward_find_redirect(call, err, "");
    bool is_here =
        redirect != NULL && strcmp(redirect, hold->api->options.group->current->name) == 0;
    bool is_shard_late = is_here && hold->subject.status == ACTIVE_HERE;
    bool is_cluster_late = hold->is_queued && !hold->is_passed_on && redirect != NULL;
    if (!is_shard_late && !is_cluster_late)
        return false;
    if (hold->owner_loop == NULL) {
        begin_hold(hold, call);
        atomic_fetch_add(hold->held, 1);
    }
    probe(is_shard_late ? "call_before_its_shard" : "call_before_its_cluster");
    int64_t pause = is_shard_late ? RETRY_PAUSE : CLUSTER_PAUSE;
    return clock_monotonic() + pause < hold->limit && fiber_sleep(pause, hold->arena) == NULL;
}

/* The call was refused since the domain is not active where it was asked: is there something to
 * wait for? It has been waited for then, and *err says how that ended. Yields. */
static bool
wait_again(struct hold *hold, struct rpc_call *call, struct error **err)
{
    if (!forward_find_subject(call, &hold->subject))
        return false;
    bool is_pending = hold->subject.status == ACTIVE_PENDING;
    if (!is_pending && !try_soon(hold, call, *err))
        return false;
    hold->is_refused = true;
    if (is_pending || hold->is_queued)
        *err = take_turn(hold, call);
    else
        *err = NULL;
    return *err == NULL;
}

/* Answers it where it goes; if it is refused there, where the refusal points to, in its turn.
 * Yields. */
static struct error *
serve_in_turn(struct hold *hold, struct rpc_call *call, const struct hold_subject *known,
              const struct call_handling *call_handling)
{
    const char *redirect;
    struct error *err = forward_serve(call, known, call_handling, &redirect);
    if (redirect == NULL)
        return err;
    hold->is_refused = true;
    err = hold->is_queued ? take_turn(hold, call) : NULL;
    return err != NULL ? err : forward_follow(call, call_handling, redirect);
}

/* Must it take its turn? A call that is answered here with no other before it need not. *is_known:
 * what it is about has been looked up. Yields as forward_find_subject does. */
static bool
needs_turn(struct hold *hold, struct rpc_call *call, const struct hold_hints *hints, bool *is_known)
{
    bool may_wait = hints->may_drain || atomic_load(hold->held) > 0;
    *is_known = (may_wait || hints->may_forward) && forward_find_subject(call, &hold->subject);
    if (!*is_known)
        return false;
    bool is_away = hold->subject.status == ACTIVE_ELSEWHERE;
#ifdef CADENZA_FAULT_held_calls_overtake
    return may_wait && !is_away;
#endif
    return may_wait || (is_away && !hold->is_passed_on) || atomic_load(hold->held) > 0;
}

struct error *
hold_serve(struct rpc_call *call, const struct hold_hints *hints,
           const struct call_handling *call_handling)
{
    struct api *api = api_of(call);
    struct hold hold = {.api = api,
                        .arena = call->arena,
                        .held = &api->held[hints->hash % HOLD_BUCKETS],
                        .is_passed_on = api_is_forwarded(call)};
    struct error *err = NULL;
    bool is_known;
    list_init(&hold.node);
    if (needs_turn(&hold, call, hints, &is_known))
        err = take_turn(&hold, call);
    if (err == NULL)
        err = serve_in_turn(&hold, call, is_known && !hold.has_waited ? &hold.subject : NULL,
                            call_handling);
    while (err != NULL && err->kind == ERR_DOMAIN_NOT_ACTIVE && wait_again(&hold, call, &err)) {
        call->response = message_new(call->arena, call->response->descriptor);
        err = serve_in_turn(&hold, call, NULL, call_handling);
    }
    end_hold(&hold, err);
    return err;
}
