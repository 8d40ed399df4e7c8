/* sites.c - see sites.h. */
#include "domain/sites.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"

const struct cluster sites_clusters[SITES_CLUSTERS] = {
    {.name = "east", .is_enabled = true, .new_initial_failover_version = -1},
    {.name = "west",
     .is_enabled = true,
     .initial_failover_version = 1,
     .new_initial_failover_version = -1},
    {.name = "south",
     .is_enabled = true,
     .initial_failover_version = 2,
     .new_initial_failover_version = -1},
};

static void
site_open(struct sites *sites, struct site *site)
{
    site->store = memory_open(site->base);
    struct domains_options options = {
        .store = site->store,
        .group = &site->group,
        .dynamic = sites->dynamic,
        .metrics = site == &sites->site[WEST] ? sites->metrics : NULL,
    };
    EXPECT_OK(domains_open(&options, sites->arena, &site->domains));
}

static void
site_close(struct site *site)
{
    domains_close(site->domains);
    store_close(site->store);
}

struct domains *
sites_open_twin(struct sites *sites, int site, struct store **store)
{
    *store = memory_open(sites->site[site].base);
    struct domains_options options = {.store = *store,
                                      .group = &sites->site[site].group,
                                      .dynamic = sites->dynamic,
                                      .refresh_interval = NS_PER_S};
    struct domains *twin = NULL;
    EXPECT_OK(domains_open(&options, sites->arena, &twin));
    return twin;
}

void
sites_reopen(struct sites *sites, int index)
{
    site_close(&sites->site[index]);
    site_open(sites, &sites->site[index]);
}

void
sites_restart(struct sites *sites)
{
    sites->arena = arena_new(0);
    sites->dynamic = dynamic_new(NULL);
    sites->metrics = metrics_new();
    for (int i = 0; i < 2; i++)
        site_open(sites, &sites->site[i]);
}

void
sites_open(struct sites *sites)
{
    *sites = (struct sites){0};
    for (int i = 0; i < 2; i++) {
        struct site *site = &sites->site[i];
        site->base = memory_base_new(0);
        site->group = (struct cluster_group){.failover_version_increment = 10,
                                             .current = &sites_clusters[i],
                                             .primary = &sites_clusters[EAST],
                                             .clusters = sites_clusters,
                                             .count = SITES_CLUSTERS};
    }
    sites_restart(sites);
}

void
sites_close(struct sites *sites)
{
    for (int i = 0; i < 2; i++) {
        site_close(&sites->site[i]);
        memory_base_free(sites->site[i].base);
    }
    dynamic_free(sites->dynamic);
    metrics_free(sites->metrics);
    arena_free(sites->arena);
}

/* --- what clients and the network do -----------------------------------------------------------
 */

struct domains *
sites_at(struct sites *sites, int site)
{
    return sites->site[site].domains;
}

struct error *
sites_try_register(struct domains *domains, const char *name, bool is_global, struct arena *arena)
{
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = (char *)name;
    request->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    request->is_global_domain = is_global;
    size_t count = is_global ? SITES_CLUSTERS : 0;
    request->clusters = arena_zalloc(arena, count, sizeof *request->clusters);
    for (; request->n_clusters < count; request->n_clusters++) {
        API(ClusterReplicationConfiguration) *cluster =
            message_new(arena, API_TYPE(cluster_replication_configuration));
        cluster->cluster_name = (char *)sites_clusters[request->n_clusters].name;
        request->clusters[request->n_clusters] = cluster;
    }
    return domains_register(domains, request, arena, NULL);
}

void
sites_register(struct sites *sites, int site, const char *name, bool is_global)
{
    EXPECT_OK(sites_try_register(sites_at(sites, site), name, is_global, sites->arena));
}

void
sites_describe(struct sites *sites, int site, const char *name, const char *description)
{
    API(UpdateDomainRequest) *request = message_new(sites->arena, API_TYPE(update_domain_request));
    request->name = (char *)name;
    request->description = (char *)description;
    request->update_mask = message_new(sites->arena, GOOGLE_TYPE(field_mask));
    request->update_mask->n_paths = 1;
    request->update_mask->paths = (char *[]){"description"};
    EXPECT_OK(domains_update(sites_at(sites, site), request, sites->arena, NULL));
}

void
sites_failover(struct sites *sites, int site, const char *name, int to)
{
    API(FailoverDomainRequest) *request =
        message_new(sites->arena, API_TYPE(failover_domain_request));
    request->domain_name = (char *)name;
    request->domain_active_cluster_name = (char *)sites_clusters[to].name;
    EXPECT_OK(domains_failover(sites_at(sites, site), request, sites->arena, NULL));
}

void
sites_delete(struct sites *sites, int site, const char *name)
{
    API(DeprecateDomainRequest) *deprecate =
        message_new(sites->arena, API_TYPE(deprecate_domain_request));
    deprecate->name = (char *)name;
    EXPECT_OK(domains_deprecate(sites_at(sites, site), deprecate, sites->arena, NULL));
    API(DeleteDomainRequest) *request = message_new(sites->arena, API_TYPE(delete_domain_request));
    request->name = (char *)name;
    EXPECT_OK(domains_delete(sites_at(sites, site), request, sites->arena, NULL));
}

struct domain_changes
sites_read_log(struct sites *sites, int site, uint64_t after, size_t count_max)
{
    struct domain_changes changes;
    EXPECT_OK(domains_read_log(sites_at(sites, site), after, count_max, clock_monotonic(),
                               sites->arena, &changes));
    return changes;
}

/* Carries what is new in one cluster's log to the other. */
void
sites_feed(struct sites *sites, int from)
{
    struct site *site = &sites->site[from];
    struct domain_changes changes = sites_read_log(sites, from, site->fed, 1000);
    for (size_t i = 0; i < changes.count; i++) {
        site->fed = changes.version[i];
        const STORED(DomainChange) *change = changes.change[i];
        if (change->record == NULL) {
            struct entity_records rows = {change->entities, change->n_entities};
            EXPECT_OK(domains_apply_entities(sites_at(sites, !from), sites_clusters[from].name,
                                             &rows, sites->arena));
            continue;
        }
        if (!change->record->domain->is_global_domain)
            continue;
        ADMIN(ReplicationTask) *task = domain_replication_task(changes.change[i], sites->arena);
        EXPECT_EQ(task->source_task_id, changes.version[i]);
        EXPECT_OK(
            domains_apply(sites_at(sites, !from), sites_clusters[from].name, task, sites->arena));
    }
}

void
sites_acknowledge(struct sites *sites, int site)
{
    struct domains *domains = sites_at(sites, site);
    uint64_t newest = domains_notification_version(domains);
    for (int i = 0; i < SITES_CLUSTERS; i++) {
        const char *follower = arena_format(sites->arena, "cluster:%s", sites_clusters[i].name);
        if (i != site)
            EXPECT_OK(domains_note_follower(domains, follower, newest, sites->arena));
    }
}
