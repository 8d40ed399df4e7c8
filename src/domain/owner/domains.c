/* domains.c - opening, closing and reading. See domains.h. */
#include "domain/domains.h"

#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"
#include "route/owner.h"

static void
show_version(struct domains *domains)
{
    if (domains->options.metrics == NULL)
        return;
    domains->version_gauge =
        metrics_gauge(domains->options.metrics, "cadence_domain_notification_version",
                      "The number of this cluster's newest change of a domain.", NULL);
    gauge_set(domains->version_gauge, (int64_t)domains->domain_caches[0].notification_version);
}

struct error *
domains_open(const struct domains_options *options, struct arena *arena, struct domains **domains)
{
    check(route_is_here(owner_of_domains()));
    check(options->refresh_interval >= 0);
    check(options->store != NULL && options->group != NULL && options->dynamic != NULL);
    unsigned loops = route_place_count();
    struct domains *opened =
        memory_zalloc(1, sizeof *opened + loops * sizeof opened->domain_caches[0]);
    opened->options = *options;
    atomic_init(&opened->is_recovering, options->is_catching_up);
    opened->service.context = opened;
    opened->loops = loops;
    list_init(&opened->undurable);
    opened->followers = map_new();
    fiber_cond_init(&opened->ready);
    fiber_cond_init(&opened->grew);
    fiber_mutex_init(&opened->regrouping);
    latch_init(&opened->writer_users, 0);
    latch_init(&opened->loop_messages, 0);
    latch_init(&opened->fibers, 0);
    domain_cache_init(&opened->newest);
    for (unsigned i = 0; i < loops; i++)
        domain_cache_init(&opened->domain_caches[i]);
    opened->listeners_by_loop = loop_listeners_new(loops);

    struct error *err = domains_load(opened, arena);
    if (err == NULL)
        err = domain_isolation_load(opened, arena);
    if (err != NULL) {
        domains_close(opened);
        return err;
    }
    check(opened->writer != NULL && opened->is_loaded && list_is_empty(&opened->undurable));
    show_version(opened);
    domains_show_recovery(opened);
    if (options->refresh_interval > 0) {
        latch_add(&opened->fibers, 1);
        opened->refresher = fiber_start("domains-refresh", domains_refresh, opened);
    }
    *domains = opened;
    return NULL;
}

struct route_service *
domains_service(struct domains *domains)
{
    return &domains->service;
}

void
domains_close(struct domains *domains)
{
    check(route_is_here(owner_of_domains()) && !domains->is_closing);
    domains->is_closing = true;
    fiber_cond_broadcast(&domains->ready);
    fiber_cond_broadcast(&domains->grew);
    if (domains->refresher != NULL)
        fiber_cancel(domains->refresher);
    latch_wait(&domains->fibers);
    check(!domains->is_reloading);
    if (domains->writer != NULL)
        writer_close(domains->writer); /* what was submitted becomes durable, and is published */
    latch_wait(&domains->loop_messages);
    while (!list_is_empty(&domains->undurable)) {
        struct list *node = list_pop_front(&domains->undurable);
        change_drop(list_entry(node, struct change, node));
    }
    for (unsigned i = 0; i < domains->loops; i++)
        domain_cache_free(&domains->domain_caches[i]);
    domain_cache_free(&domains->newest);
    follow_free(domains);
    memory_free(domains->listeners_by_loop);
    domain_isolation_free(domains);
    memory_free(domains);
}

/* What waits to become durable rises without a gap, behind what is. */
static void
undurable_check(const struct domains *domains)
{
    uint64_t version = domains->durable;
    ticket_t ticket = 0;
    list_each(node, &domains->undurable) {
        const struct change *change = list_entry(node, struct change, node);
        check(change->ticket > ticket && change->version == version + 1);
        check(change->loops_left == domains->loops && change->references > 0);
        ticket = change->ticket;
        version = change->version;
    }
    check(version == writer_guard(domains->writer));
}

void
domains_check(const struct domains *domains)
{
    uint64_t shown = domains->domain_caches[0].notification_version;
    check(route_is_here(owner_of_domains()));
    check(domains->is_loaded ? shown == domains->durable : shown >= domains->durable);
    check(domains->writer == NULL || domains->log_floor <= writer_guard(domains->writer));
    if (list_is_empty(&domains->undurable))
        return;
    const struct change *oldest = list_entry(domains->undurable.next, struct change, node);
    const struct change *newest = list_entry(domains->undurable.prev, struct change, node);
    check(domains->writer != NULL && oldest->version > domains->durable);
    check(newest->version <= writer_guard(domains->writer));
    check(newest->ticket - oldest->ticket >= newest->version - oldest->version);
    if (CHECK_DEEPLY)
        undurable_check(domains);
}

static const struct domain_cache *
domain_cache_here(const struct domains *domains)
{
    return &domains->domain_caches[route_place_here()];
}

struct domain *
domains_find_name(const struct domains *domains, const char *name)
{
    return domain_cache_find_name(domain_cache_here(domains), name);
}

struct domain *
domains_find_id(const struct domains *domains, const char *id)
{
    return domain_cache_find_id(domain_cache_here(domains), id);
}

size_t
domains_list(const struct domains *domains, const char *after, struct domain **found,
             size_t count_max)
{
    const struct domain_cache *domain_cache = domain_cache_here(domains);
    struct tree_row *row = tree_at_least(domain_cache->names, slice_text(after));
    if (row != NULL && slice_equal(row->key, slice_text(after)))
        row = tree_next(row);
    size_t count = 0;
    for (; row != NULL && count < count_max; row = tree_next(row))
        found[count++] = row->value;
    return count;
}

size_t
domains_count(const struct domains *domains)
{
    return tree_count(domain_cache_here(domains)->names);
}

uint64_t
domains_notification_version(const struct domains *domains)
{
    return domain_cache_here(domains)->notification_version;
}
