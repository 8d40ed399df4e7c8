/* drains.c - the coordinator: graceful failovers to this cluster, from their beginning to their
 * end. See domains.h.
 *
 * What there is to do follows from the store alone: a record says that a thing is pending here,
 * until when and with which version; rows say which shards of the source are ready. So a host that
 * starts goes on where the last one stopped, and two hosts on the same store do not disturb each
 * other: the end is a change of the domain, decided on what is true then, and the second one
 * changes nothing.
 *
 * One fiber waits for the first of: all shards of some drain ready, some drain's time is up, some
 * drain taken out of its record by somebody else (by force, or by a newer version). */
#include "domain/drains.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define RETRY_DELAY   NS_PER_S /* after an error of the store */
#define MISSING_SHOWN 32

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
    const struct domains_options *options = &drains->domains->options;
    bool has_changed = false, is_deleted = book_is_deleted(domain);
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
        mark("drain_begun");
        log_info(options->log, "A graceful failover to this cluster is under way.",
                 log_text("domain", domain->name), log_text("from", drain->source_cluster),
                 log_text("scope", drain->scope), log_text("attribute", drain->name),
                 log_number("failover-version", drain->failover_version));
        list_push_back(&drains->pending, &pending_new(domain->id, domain->name, drain)->node);
        has_changed = true;
    }
    if (has_changed)
        drains_wake(drains);
}

static void
hear(struct domain_listener *listener, const struct domain_news *news)
{
    struct drains *drains = container_of(listener, struct drains, listener);
    if (news->domain != NULL)
        follow_domain(drains, news->domain);
}

/* --- the end ------------------------------------------------------------------------------------
 */

struct ending {
    struct drain_end end;
    const struct pending *pending;
    bool is_done; /* it is this that ended it */
};

static struct error *
decide_drained(const struct wish *wish, const struct domain_rules *rules,
               const struct domain_moment *moment, struct domain_decision *decision)
{
    struct ending *ending = (struct ending *)wish->request;
    const struct domain *current = book_find_id(&wish->domains->newest, ending->end.domain_id);
    struct error *err =
        domain_decide_drained(current, &ending->end, rules, moment, wish->arena, decision);
    ending->is_done = err == NULL && decision->what == DOMAIN_UPDATED;
    return err;
}

static void
add_deletes(const struct wish *wish, struct batch *batch)
{
    const struct ending *ending = wish->request;
    batch_delete_drain(batch, ending->pending);
}

static const char *
join_missing(const struct pending *pending, struct arena *arena)
{
    size_t count;
    const char **missing = pending_list_missing(pending, arena, &count);
    const char *text = "";
    for (size_t i = 0; i < count && i < MISSING_SHOWN; i++)
        text = arena_format(arena, "%s%s%s", text, i == 0 ? "" : "; ", missing[i]);
    return count <= MISSING_SHOWN ? text : arena_format(arena, "%s; and more", text);
}

static void
tell_end(struct drains *drains, const struct pending *pending, STORED(DrainEnd) end,
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
    bool is_complete = end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE;
    const STORED(Drain) *drain = pending->drain;
    mark(is_complete                                                   ? "drain_complete"
         : end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT ? "drain_timed_out"
         : end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED    ? "drain_forced"
                                                                       : "drain_superseded");
    log_at(drains->domains->options.log,
           end == CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT ? LOG_WARN : LOG_INFO,
           words[end], log_text("domain", pending->domain_name), log_text("scope", drain->scope),
           log_text("attribute", drain->name),
           log_number("failover-version", drain->failover_version),
           log_number("shards-ready", pending_ready_shards(pending)),
           log_number("shards", pending_shards(pending)),
           log_text("missing", join_missing(pending, arena)),
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
    list_remove(&pending->node);
    pending_drop(pending);
    gauge_markers(drains);
}

/* All ready, or its time is up: what was pending is active. */
static struct error *
finish(struct drains *drains, struct pending *pending, STORED(DrainEnd) end, struct arena *arena)
{
    struct domains *domains = drains->domains;
    const STORED(Drain) *drain = pending->drain;
    struct ending ending = {.pending = pending,
                            .end = {.domain_id = pending->domain_id,
                                    .scope = drain->scope,
                                    .name = drain->name,
                                    .failover_version = drain->failover_version}};
    struct error *err = pending_report(domains, pending, end, arena, &ending.end.failover);
    if (err != NULL)
        return err;
    struct wish wish = {.domains = domains,
                        .name = pending->domain_name,
                        .request = &ending,
                        .decide = decide_drained,
                        .add = add_deletes,
                        .reports_end = true,
                        .arena = arena};
    wish_run(&wish);
    domain_drop(wish.changed);
    if (wish.err != NULL || !ending.is_done) /* somebody was faster: then it is over all the same */
        return wish.err;
    tell_end(drains, pending, end, arena);
    forget(drains, pending);
    return NULL;
}

/* The report of one that something else ended: a change of the domain in nothing but that its
 * history says so, which is told to the other clusters like any other. */
struct burial {
    const struct pending *pending;
    STORED(FailoverRecord) *failover; /* NULL: the history has it, or no entry */
    bool is_told;
};

static struct error *
decide_report(const struct wish *wish, const struct domain_rules *rules,
              const struct domain_moment *moment, struct domain_decision *decision)
{
    struct burial *burial = (struct burial *)wish->request;
    const struct domain *current = book_find_id(&wish->domains->newest, burial->pending->domain_id);
    (void)rules;
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    burial->is_told = current != NULL;
    if (burial->is_told)
        domain_decide_report(current, burial->failover, moment, wish->arena, decision);
    return NULL;
}

static void
add_burial(const struct wish *wish, struct batch *batch)
{
    const struct burial *burial = wish->request;
    batch_delete_drain(batch, burial->pending);
}

static void
fill_burial(void *context, struct batch *batch)
{
    const struct burial *burial = context;
    batch_delete_drain(batch, burial->pending);
    if (burial->failover != NULL)
        batch_add_failover(batch, burial->failover);
}

/* Of a domain that is gone nobody is told. */
static struct error *
write_burial(struct domains *domains, struct burial *burial, struct arena *arena)
{
    struct wish wish = {.domains = domains,
                        .name = burial->pending->domain_name,
                        .request = burial,
                        .decide = decide_report,
                        .add = add_burial,
                        .arena = arena};
    if (burial->failover != NULL) {
        wish_run(&wish);
        domain_drop(wish.changed);
    }
    if (wish.err != NULL || burial->is_told)
        return wish.err;
    return domains_write(domains, fill_burial, burial, arena);
}

/* Is it active here, with the version that the drain made? */
static bool
is_in_effect(struct drains *drains, const struct pending *pending)
{
    struct domains *domains = drains->domains;
    const struct domain *domain = book_find_id(&domains->books[0], pending->domain_id);
    const STORED(Drain) *drain = pending->drain;
    struct cluster_attribute attribute = {drain->scope[0] == '\0' ? NULL : drain->scope,
                                          drain->name};
    if (domain == NULL)
        return false;
    struct active_cluster active = domain_active(domain, &attribute, domains->options.group);
    return active.status == ACTIVE_HERE &&
           domain_moved_version(domain, &attribute) == drain->failover_version;
}

/* How it ended: the row says so that was left with its end, unless another host has reported it. */
static STORED(DrainEnd)
end_of(struct drains *drains, const struct pending *pending)
{
    if (pending->end != 0)
        return pending->end;
    return is_in_effect(drains, pending) ? CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED
                                         : CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED;
}

/* Somebody else ended it: by force, with another failover, or another host of this cluster did. */
static struct error *
bury(struct drains *drains, struct pending *pending, struct arena *arena)
{
    struct burial burial = {.pending = pending};
    struct error *err = pending_read(drains->domains, pending, arena);
    STORED(DrainEnd) end = end_of(drains, pending);
    if (err == NULL)
        err = pending_report(drains->domains, pending, end, arena, &burial.failover);
    if (err == NULL)
        err = write_burial(drains->domains, &burial, arena);
    if (err != NULL)
        return err;
    if (burial.failover != NULL)
        tell_end(drains, pending, end, arena);
    forget(drains, pending);
    return NULL;
}

/* --- the fiber ----------------------------------------------------------------------------------
 */

/* What is to be done about it now, if anything. Yields. */
static struct error *
look_after(struct drains *drains, struct pending *pending, struct arena *arena)
{
    struct error *err = NULL;
    if (pending->is_over)
        return bury(drains, pending, arena);
    if (!pending->is_read)
        err = pending_read(drains->domains, pending, arena);
    gauge_markers(drains);
    if (err != NULL || pending->is_over)
        return err;
    if (pending_is_ready(pending))
        return finish(drains, pending, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE, arena);
    if (clock_wall() >= pending->drain->end_time)
        return finish(drains, pending, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT, arena);
    return NULL;
}

/* One that was not looked after in this round; NULL: all were. */
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
look_after_all(struct drains *drains, struct arena *arena)
{
    struct error *err = NULL;
    if (!drains->is_swept) {
        drains->is_swept = true;
        err = drains_sweep(drains, arena);
        drains->is_swept = drains->is_swept && err == NULL;
    }
    drains->round++; /* one that ends leaves the list, and others may come meanwhile */
    struct pending *pending = NULL;
    while (err == NULL && !drains->domains->is_closing && (pending = next_of(drains)) != NULL) {
        pending_take(pending);
        pending->round = drains->round;
        err = look_after(drains, pending, arena);
        pending_drop(pending);
    }
    return err;
}

/* On the monotonic clock, when something is to be done though nothing happens. */
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
    struct domains *domains = drains->domains;
    enum wake wake = WAKE_READY;
    while (!domains->is_closing && wake != WAKE_CANCELLED) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = look_after_all(drains, arena);
        if (err != NULL)
            log_warn(domains->options.log, "Graceful failovers are looked after later.",
                     log_error(err));
        int64_t next = err != NULL ? clock_monotonic() + RETRY_DELAY : next_time(drains);
        if (!domains->is_closing && !drains->is_woken)
            wake = fiber_cond_wait(&drains->changed, next);
        drains->is_woken = false;
    }
    latch_done(&domains->fibers);
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
    struct metrics *metrics = drains->domains->options.metrics;
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
                        "Markers that were known, or that nobody waited for (any more).", NULL);
    drains->metrics.markers = metrics_gauge(
        metrics, "cadence_failover_marker_count",
        "Shards of sources that are ready, of graceful failovers under way; 0 after the end.",
        NULL);
}

void
drains_open(struct domains *domains)
{
    struct drains *drains = memory_zalloc(1, sizeof *drains);
    drains->domains = domains;
    list_init(&drains->pending);
    fiber_cond_init(&drains->changed);
    domains->drains = drains;
    make_metrics(drains);
    struct tree_row *row = tree_at_least(domains->books[0].names, slice_text(""));
    for (; row != NULL; row = tree_next(row))
        follow_domain(drains, row->value);
    drains->listener.hear = hear;
    domains_listen(domains, &drains->listener);
    latch_add(&domains->fibers, 1);
    drains->fiber = fiber_start("domains-drains", coordinate, drains);
}

void
drains_stop(struct domains *domains)
{
    if (domains->drains == NULL)
        return;
    check(domains->is_closing);
    fiber_cancel(domains->drains->fiber);
}

void
drains_free(struct domains *domains)
{
    struct drains *drains = domains->drains;
    if (drains == NULL)
        return;
    domains_unlisten(&drains->listener);
    while (!list_is_empty(&drains->pending)) {
        struct pending *pending = list_entry(drains->pending.next, struct pending, node);
        list_remove(&pending->node);
        pending_drop(pending);
    }
    memory_free(drains);
}
