/* recover.c - a cluster that lost memory knows again what the others know. See domains.h and
 * design/031.
 *
 * Every domain is marked when it is entered, unless it has recovered before; the mark is in no row,
 * since the store says that memory was lost, for as long as it is true. */
#include "base/check.h"
#include <string.h>

#include "domain/attributes.h"
#include "domain/owner/inside.h"
#include "fiber/probe.h"
#include "route/owner.h"

void
domain_mark(const struct domains *domains, struct domain *domain, bool is_recovered)
{
    const struct domain *before = domain_cache_find_record(&domains->newest, domain->id);
    bool is_marked = before == NULL || before->is_recovering;
    domain->is_recovering = domains_are_recovering(domains) && is_marked && !is_recovered &&
                            domain->record->domain->is_global_domain;
}

void
domains_show_recovery(const struct domains *domains)
{
    if (domains->options.metrics != NULL)
        gauge_set(metrics_gauge(domains->options.metrics, "cadenza_recovering",
                                "1: this cluster lost memory and has not read yet from the others "
                                "what it had.",
                                NULL),
                  domains_are_recovering(domains));
}

bool
domains_are_recovering(const struct domains *domains)
{
    return atomic_load_explicit(&domains->is_recovering, memory_order_relaxed);
}

const char *
domains_recovery_text(const struct domains *domains)
{
    const struct cluster_group *group = domains->options.group;
    if (!domains_are_recovering(domains))
        return NULL;
    for (size_t i = 0; i < group->count; i++)
        if (&group->clusters[i] != group->current && group->clusters[i].is_enabled)
            return "recovering: this cluster lost memory (its store was restored or copied). "
                   "Global "
                   "domains that are active here are not served until it has read from the other "
                   "clusters what it had; 'cadenza admin cluster peers' shows for whom it waits.";
    return "recovering: this cluster lost memory (its store was restored or copied), and no other "
           "one is enabled in its configuration that could be asked. Global domains that are "
           "active here are not served. Enable the others, or accept that what was lost stays "
           "lost: cadenza server --accept-loss all";
}

/* One domain, and what is known of it. */
struct recovery_request {
    const char *domain_id;
    struct heard_versions heard;
};

/* Is something active here with a version that was lost? */
static bool
is_to_write_lost(const struct change_request *change_request, const struct domain *domain)
{
    const struct cluster_group *group = change_request->domains->options.group;
    const API(Domain) *shown = domain->record->domain;
    struct attributes all = attributes_read(shown->active_clusters, change_request->arena);
    bool is_lost = strcmp(shown->active_cluster_name, group->current->name) == 0 &&
                   domain_has_lost(domain, shown->failover_version, group);
    for (size_t i = 0; i < all.count; i++)
        is_lost = is_lost || (strcmp(all.all[i].cluster_name, group->current->name) == 0 &&
                              domain_has_lost(domain, all.all[i].failover_version, group));
    return shown->is_global_domain && is_lost;
}

static struct error *
decide_recovered(const struct change_request *change_request, const struct domain_rules *rules,
                 const struct domain_moment *moment, struct domain_decision *decision)
{
    const struct recovery_request *request = change_request->request;
    const struct domain *current =
        domain_cache_find_id(&change_request->domains->newest, request->domain_id);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (current == NULL || (!current->is_recovering && !is_to_write_lost(change_request, current)))
        return NULL;
    return domain_decide_recovered(current, &request->heard, rules, moment, change_request->arena,
                                   decision);
}

static struct error *
recover_one(struct domains *domains, const struct domain *domain, struct heard_versions heard,
            struct arena *arena)
{
    struct recovery_request request = {arena_text(arena, domain->id), heard};
    struct change_request change_request = {.domains = domains,
                                            .name = arena_text(arena, domain->name),
                                            .request = &request,
                                            .decide = decide_recovered,
                                            .arena = arena};
    change_request_run(&change_request);
    domain_drop(change_request.changed);
    if (change_request.err == NULL)
        probe("domain_recovered");
    return change_request.err;
}

struct error *
domain_leave_lost(struct domains *domains, const char *domain_id, struct arena *arena)
{
    const struct domain *domain = domain_cache_find_id(&domains->newest, domain_id);
    if (domain == NULL || domain->record->lost_below == 0 || domain->is_recovering)
        return NULL;
    return recover_one(domains, domain, (struct heard_versions){-1, -1, 0}, arena);
}

static struct domain *
next_recovering(const struct domains *domains)
{
    size_t cursor = 0;
    void *value;
    while (map_next(domains->newest.ids, &cursor, NULL, &value)) {
        struct domain *domain = value;
        if (!domain_cache_is_deleted(domain) && domain->is_recovering)
            return domain;
    }
    return NULL;
}

struct error *
domains_recover(struct domains *domains,
                struct heard_versions (*heard)(void *context, const char *domain_id), void *context,
                struct arena *arena)
{
    check(route_is_here(owner_of_domains()) && domains_are_recovering(domains));
    const struct domain *domain;
    while ((domain = next_recovering(domains)) != NULL) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        struct error *err = recover_one(domains, domain, heard(context, domain->id), own);
        if (err != NULL)
            return error_wrap(error_copy(arena, err), "going on after memory was lost");
    }
    atomic_store_explicit(&domains->is_recovering, false, memory_order_relaxed);
    domains_show_recovery(domains);
    return NULL;
}
