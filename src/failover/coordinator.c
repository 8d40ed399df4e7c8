/* coordinator.c - graceful failovers to this cluster, from their beginning to their end. See
 * drains.h.
 *
 * What there is to do follows from the store alone: a record says that a thing is pending here,
 * until when and with which version; rows say which shards of the source are ready. So a host that
 * starts goes on where the last one stopped, and two hosts on the same store do not disturb each
 * other: the end is a change of the domain, decided on what is true then, and the second one
 * changes nothing.
 *
 * One fiber waits for the first of: all shards of some drain ready, some drain's time is up, some
 * drain taken out of its record by something else (a move by force, or a newer version). */
#include "base/check.h"
#include "base/memory.h"
#include "domain/active.h"
#include "domain/domain_cache.h"
#include "failover/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "route/owner.h"
#include "wire/message.h"

#define RETRY_DELAY    NS_PER_S /* after an error of the store */
#define MISSING_LOGGED 32
#define PAGE_DOMAINS   256

/* --- following the domains ----------------------------------------------------------------------
 */

struct pending *
drains_find(struct drains *drains, const char *domain_id, const char *scope, const char *name,
            int64_t failover_version)
{
    list_each(node, &drains->pending) {
        struct pending *pending = list_entry(node, struct pending, node);
        if (!pending->is_over && pending->drain->failover_version == failover_version &&
            strcmp(pending->domain_id, domain_id) == 0 &&
            strcmp(pending->drain->scope, scope) == 0 && strcmp(pending->drain->name, name) == 0)
            return pending;
    }
    return NULL;
}

void
drains_check(const struct drains *drains)
{
    list_each(node, &drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        if (!CHECK_DEEPLY)
            break;
        pending_check(pending);
        check(pending->round <= drains->round);
    }
}

/* Does the record still have it? */
static bool
is_in(const struct pending *pending, const struct domain *domain, const struct cluster_group *group)
{
    struct cluster_attribute attribute = {pending->drain->scope, pending->drain->name};
    const STORED(Drain) *drain = domain_find_drain(domain, &attribute);
    return drain != NULL && drain->failover_version == pending->drain->failover_version &&
           drain_is_to_here(drain, group);
}

static void
gauge_markers(const struct drains *drains)
{
    int64_t count = 0;
    list_each(node, &drains->pending)
        count += pending_ready_shards(list_entry(node, struct pending, node));
    if (drains->metrics.markers != NULL)
        gauge_set(drains->metrics.markers, count);
}

static void
follow_domain(struct drains *drains, const struct domain *domain)
{
    const struct drains_options *options = &drains->options;
    bool has_changed = false, is_deleted = domain_cache_is_deleted(domain);
    check(route_is_here(owner_of_domains()));
    list_each(node, &drains->pending) {
        struct pending *pending = list_entry(node, struct pending, node);
        if (!pending->is_over && strcmp(pending->domain_id, domain->id) == 0 &&
            (is_deleted || !is_in(pending, domain, options->group)))
            pending->is_over = has_changed = true;
    }
    for (size_t i = 0; i < domain->record->n_drains && !is_deleted; i++) {
        const STORED(Drain) *drain = domain->record->drains[i];
        if (!drain_is_to_here(drain, options->group) ||
            drains_find(drains, domain->id, drain->scope, drain->name, drain->failover_version) !=
                NULL)
            continue;
        probe("drain_begun");
        log_info(options->log, "A graceful failover to this cluster is under way.",
                 log_text("domain", domain->name), log_text("from", drain->source_cluster),
                 log_text("scope", drain->scope), log_text("attribute", drain->name),
                 log_number("failover-version", drain->failover_version));
        list_push_back(&drains->pending, &pending_new(domain->id, domain->name, drain)->node);
        has_changed = true;
    }
    drains_check(drains);
    if (has_changed)
        drains_wake(drains);
}

static void
on_change(struct domain_listener *listener, const struct domain_notification *notification)
{
    struct drains *drains = container_of(listener, struct drains, listener);
    if (notification->domain != NULL)
        follow_domain(drains, notification->domain);
}

/* --- the end ------------------------------------------------------------------------------------
 */

static const char *
join_missing(const STORED(DrainOutcome) *outcome, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < outcome->n_missing && i < MISSING_LOGGED; i++)
        text = arena_format(arena, "%s%s%s", text, i == 0 ? "" : "; ", outcome->missing[i]);
    return outcome->n_missing <= MISSING_LOGGED ? text : arena_format(arena, "%s; and more", text);
}

static uint32_t
count_ready(const STORED(DrainOutcome) *outcome)
{
    uint32_t count = 0;
    for (size_t i = 0; i < outcome->n_clusters; i++)
        count += outcome->clusters[i]->ready_count;
    return count;
}

static void
log_end(struct drains *drains, const struct pending *pending, const STORED(DrainOutcome) *outcome,
        struct arena *arena)
{
    static const char *const words[] = {
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE] =
            "A graceful failover to this cluster is complete.",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT] =
            "A graceful failover to this cluster timed out: it is active, though not all shards of "
            "the source were ready.",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED] =
            "A graceful failover to this cluster was completed by force.",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED] =
            "A graceful failover to this cluster was superseded by another failover.",
    };
    STORED(DrainEnd) end = outcome->end;
    bool is_complete = end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE;
    const STORED(Drain) *drain = pending->drain;
    probe(is_complete                                                   ? "drain_complete"
          : end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT ? "drain_timed_out"
          : end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED    ? "drain_forced"
                                                                        : "drain_superseded");
    log_at(drains->options.log,
           end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT ? LOG_WARN : LOG_INFO,
           words[end], log_text("domain", pending->domain_name), log_text("scope", drain->scope),
           log_text("attribute", drain->name),
           log_number("failover-version", drain->failover_version),
           log_number("shards-ready", count_ready(outcome)),
           log_number("shards", outcome->shard_count),
           log_text("missing", join_missing(outcome, arena)),
           log_number("milliseconds", (clock_wall() - drain->start_time) / NS_PER_MS));
    if (drains->metrics.completed == NULL)
        return;
    counter_add(is_complete ? drains->metrics.completed : drains->metrics.failures, 1);
    int64_t since =
        clock_wall() - (pending->marker_time > 0 ? pending->marker_time : drain->start_time);
    if (is_complete)
        histogram_observe(drains->metrics.latency, since > 0 ? since : 0);
}

static void
forget(struct drains *drains, struct pending *pending)
{
    check(!list_is_empty(&pending->node) && pending->references > 1); /* ours and the list's */
    list_remove(&pending->node);
    pending_drop(pending);
    gauge_markers(drains);
}

static struct drain_end
end_of_pending(const struct pending *pending)
{
    return (struct drain_end){.domain_id = pending->domain_id,
                              .domain_name = pending->domain_name,
                              .scope = pending->drain->scope,
                              .name = pending->drain->name,
                              .failover_version = pending->drain->failover_version};
}

/* All are ready, or its time is up: what was pending becomes active. */
static struct error *
finish(struct drains *drains, struct pending *pending, STORED(DrainEnd) how, struct arena *arena)
{
    struct domains *domains = drains->options.domains;
    check(!pending->is_over);
    check(how == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT || pending_is_ready(pending));
    struct drain_end end = end_of_pending(pending);
    bool is_done = false;
    STORED(DrainOutcome) *outcome = pending_outcome(pending, how, arena);
    struct error *err = domains_find_drained(domains, pending->domain_id, pending->drain, outcome,
                                             arena, &end.failover);
    if (err == NULL)
        err = domains_end_drain(domains, &end, arena, &is_done);
    if (err != NULL || !is_done) /* another host was faster: it is over all the same */
        return err;
    log_end(drains, pending, outcome, arena);
    forget(drains, pending);
    return NULL;
}

/* Is it active here, with the version that the drain made? */
static bool
is_in_effect(const struct drains *drains, const struct pending *pending)
{
    const struct domain *domain = domains_find_id(drains->options.domains, pending->domain_id);
    const STORED(Drain) *drain = pending->drain;
    struct cluster_attribute attribute = {drain->scope[0] == '\0' ? NULL : drain->scope,
                                          drain->name};
    if (domain == NULL)
        return false;
    struct active_cluster active = domain_active(domain, &attribute, drains->options.group);
    return active.status == ACTIVE_HERE &&
           domain_moved_version(domain, &attribute) == drain->failover_version;
}

/* How it ended: as the row says that was left with its end, unless another host has reported and
 * deleted that. */
static STORED(DrainEnd)
end_of(const struct drains *drains, const struct pending *pending)
{
    if (pending->end != 0)
        return pending->end;
    return is_in_effect(drains, pending) ? CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED
                                         : CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED;
}

/* Something else ended it: a move by force, another failover, or another host of this cluster. */
static struct error *
report_late(struct drains *drains, struct pending *pending, struct arena *arena)
{
    struct domains *domains = drains->options.domains;
    struct drain_end end = end_of_pending(pending);
    check(pending->is_over);
    struct error *err = pending_read(drains, pending, arena);
    STORED(DrainOutcome) *outcome = pending_outcome(pending, end_of(drains, pending), arena);
    if (err == NULL)
        err = domains_find_drained(domains, pending->domain_id, pending->drain, outcome, arena,
                                   &end.failover);
    if (err == NULL)
        err = domains_report_drain(domains, &end, arena);
    if (err != NULL)
        return err;
    if (end.failover != NULL)
        log_end(drains, pending, outcome, arena);
    forget(drains, pending);
    return NULL;
}

/* --- the fiber ----------------------------------------------------------------------------------
 */

/* What is to be done about it now, if anything. Yields. */
static struct error *
handle(struct drains *drains, struct pending *pending, struct arena *arena)
{
    struct error *err = NULL;
    pending_check(pending);
    if (pending->is_over)
        return report_late(drains, pending, arena);
    if (!pending->is_read)
        err = pending_read(drains, pending, arena);
    gauge_markers(drains);
    if (err != NULL || pending->is_over)
        return err;
    if (pending_is_ready(pending))
        return finish(drains, pending, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE, arena);
    if (clock_wall() >= pending->drain->end_time)
        return finish(drains, pending, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT, arena);
    return NULL;
}

/* One that was not handled in this round; NULL: all were. */
static struct pending *
next_of(const struct drains *drains)
{
    list_each(node, &drains->pending) {
        struct pending *pending = list_entry(node, struct pending, node);
        if (pending->round != drains->round)
            return pending;
    }
    return NULL;
}

static struct error *
handle_all(struct drains *drains, struct arena *arena)
{
    struct error *err = NULL;
    if (!drains->is_swept) {
        drains->is_swept = true;
        err = drains_sweep(drains, arena);
        drains->is_swept = drains->is_swept && err == NULL;
    }
    drains_check(drains);
    drains->round++; /* one that ends leaves the list, and others may come meanwhile */
    struct pending *pending = NULL;
    while (err == NULL && !drains->is_closing && (pending = next_of(drains)) != NULL) {
        pending_take(pending);
        pending->round = drains->round;
        err = handle(drains, pending, arena);
        pending_drop(pending);
    }
    return err;
}

/* When, on the monotonic clock, there is something to do even if nothing happens until then. */
static int64_t
next_time(const struct drains *drains)
{
    int64_t next = NEVER, now = clock_monotonic(), wall = clock_wall();
    list_each(node, &drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        int64_t left = pending->is_over ? 0 : pending->drain->end_time - wall;
        int64_t due = now + (left > 0 ? left : 0);
        next = due < next ? due : next;
    }
    return next;
}

static void
coordinate(void *argument)
{
    struct drains *drains = argument;
    enum wake wake = WAKE_READY;
    while (!drains->is_closing && wake != WAKE_CANCELLED) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        /* One that lost memory ends nothing: that is a decision. */
        bool is_recovering = domains_are_recovering(drains->options.domains);
        struct error *err = is_recovering ? NULL : handle_all(drains, arena);
        if (err != NULL)
            log_warn(drains->options.log, "Handling graceful failovers failed, trying again later.",
                     log_error(err));
        bool is_soon = err != NULL || is_recovering;
        int64_t next = is_soon ? clock_monotonic() + RETRY_DELAY : next_time(drains);
        if (!drains->is_closing && !drains->is_woken)
            wake = fiber_cond_wait(&drains->changed, next);
        drains->is_woken = false;
    }
    latch_done(&drains->fibers);
}

void
drains_wake(struct drains *drains)
{
    drains->is_woken = true;
    fiber_cond_broadcast(&drains->changed);
}

/* --- opening and closing ------------------------------------------------------------------------
 */

static void
make_metrics(struct drains *drains)
{
    struct metrics *metrics = drains->options.metrics;
    if (metrics == NULL)
        return;
    drains->metrics.completed = metrics_counter(
        metrics, "cadence_graceful_failover_completed",
        "Graceful failovers to this cluster that ended with all shards ready.", NULL);
    drains->metrics.failures = metrics_counter(
        metrics, "cadence_graceful_failover_failures",
        "Graceful failovers to this cluster that timed out, or that another failover ended.", NULL);
    drains->metrics.latency =
        metrics_histogram(metrics, "cadence_graceful_failover_latency",
                          "From the first marker of the source to the end.", NULL);
    drains->metrics.inserted = metrics_counter(metrics, "cadence_failover_marker_received",
                                               "Markers of sources that were noted.", NULL);
    drains->metrics.ignored =
        metrics_counter(metrics, "cadence_failover_marker_ignored",
                        "Markers that were known already, or that no failover waited for.", NULL);
    drains->metrics.markers = metrics_gauge(
        metrics, "cadence_failover_marker_count",
        "Shards of sources that are ready, of graceful failovers under way; 0 after the end.",
        NULL);
}

/* What the domains have by now. */
static void
follow_all(struct drains *drains)
{
    struct domain *found[PAGE_DOMAINS];
    size_t count = 0;
    do {
        const char *last = count == 0 ? "" : found[count - 1]->name;
        count = domains_list(drains->options.domains, last, found, PAGE_DOMAINS);
        for (size_t i = 0; i < count; i++)
            follow_domain(drains, found[i]);
    } while (count == PAGE_DOMAINS);
}

struct drains *
drains_open(const struct drains_options *options)
{
    check(options->domains != NULL && options->store != NULL && options->group != NULL);
    struct drains *drains = memory_zalloc(1, sizeof *drains);
    drains->options = *options;
    drains->service.context = drains;
    list_init(&drains->pending);
    fiber_cond_init(&drains->changed);
    make_metrics(drains);
    follow_all(drains);
    drains->listener.on_change = on_change;
    domains_listen(options->domains, &drains->listener);
    latch_init(&drains->fibers, 1);
    drains->fiber = fiber_start("drains", coordinate, drains);
    return drains;
}

void
drains_close(struct drains *drains)
{
    check(route_is_here(owner_of_domains()) && !drains->is_closing);
    drains->is_closing = true;
    fiber_cancel(drains->fiber);
    latch_wait(&drains->fibers);
    domains_unlisten(&drains->listener);
    while (!list_is_empty(&drains->pending)) {
        struct pending *pending = list_entry(drains->pending.next, struct pending, node);
        list_remove(&pending->node);
        pending_drop(pending);
    }
    memory_free(drains);
}
