/* cluster_pair.c - see cluster_pair.h. */
#include "domain/test/cluster_pair.h"

#include "base/test.h"
#include "domain/message.h"
#include "fiber/clock.h"
#include "route/test_answers.h"
#include "wire/message.h"
#include "wire/presence.h"

const struct cluster cluster_pair_group[CLUSTER_PAIR_GROUP_SIZE] = {
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
side_open(struct cluster_pair *cluster_pair, struct side *side)
{
    side->store = memory_open(side->base);
    struct domains_options options = {
        .store = side->store,
        .group = &side->group,
        .dynamic = cluster_pair->dynamic,
        .metrics = side == &cluster_pair->side[WEST] ? cluster_pair->metrics : NULL,
    };
    EXPECT_OK(domains_open(&options, cluster_pair->arena, &side->domains));
}

static void
side_close(struct side *side)
{
    domains_close(side->domains);
    store_close(side->store);
}

struct domains *
cluster_pair_open_twin(struct cluster_pair *cluster_pair, int side, struct store **store)
{
    *store = memory_open(cluster_pair->side[side].base);
    struct domains_options options = {.store = *store,
                                      .group = &cluster_pair->side[side].group,
                                      .dynamic = cluster_pair->dynamic,
                                      .refresh_interval = NS_PER_S};
    struct domains *twin = NULL;
    EXPECT_OK(domains_open(&options, cluster_pair->arena, &twin));
    return twin;
}

void
cluster_pair_reopen(struct cluster_pair *cluster_pair, int index)
{
    side_close(&cluster_pair->side[index]);
    side_open(cluster_pair, &cluster_pair->side[index]);
}

void
cluster_pair_restart(struct cluster_pair *cluster_pair)
{
    cluster_pair->arena = arena_new(0);
    cluster_pair->dynamic = dynamic_new(NULL);
    cluster_pair->metrics = metrics_new();
    for (int i = 0; i < 2; i++)
        side_open(cluster_pair, &cluster_pair->side[i]);
}

void
cluster_pair_open(struct cluster_pair *cluster_pair)
{
    *cluster_pair = (struct cluster_pair){0};
    for (int i = 0; i < 2; i++) {
        struct side *side = &cluster_pair->side[i];
        side->base = memory_base_new(0);
        side->group = (struct cluster_group){.failover_version_increment = 10,
                                             .current = &cluster_pair_group[i],
                                             .primary = &cluster_pair_group[EAST],
                                             .clusters = cluster_pair_group,
                                             .count = CLUSTER_PAIR_GROUP_SIZE};
    }
    cluster_pair_restart(cluster_pair);
}

void
cluster_pair_close(struct cluster_pair *cluster_pair)
{
    for (int i = 0; i < 2; i++) {
        side_close(&cluster_pair->side[i]);
        memory_base_free(cluster_pair->side[i].base);
    }
    dynamic_free(cluster_pair->dynamic);
    metrics_free(cluster_pair->metrics);
    arena_free(cluster_pair->arena);
}

/* --- what clients and the network do -----------------------------------------------------------
 */

struct domains *
cluster_pair_domains(struct cluster_pair *cluster_pair, int side)
{
    return cluster_pair->side[side].domains;
}

struct error *
cluster_pair_try_register(struct domains *domains, const char *name, bool is_global,
                          struct arena *arena)
{
    API(RegisterDomainRequest) *request =
        API_NEW(arena, register_domain_request, .name = (char *)name,
                .workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600),
                .is_global_domain = is_global);
    size_t count = is_global ? CLUSTER_PAIR_GROUP_SIZE : 0;
    request->clusters = arena_zalloc(arena, count, sizeof *request->clusters);
    for (; request->n_clusters < count; request->n_clusters++) {
        request->clusters[request->n_clusters] =
            API_NEW(arena, cluster_replication_configuration,
                    .cluster_name = (char *)cluster_pair_group[request->n_clusters].name);
    }
    return domains_register(domains, request, arena, NULL);
}

void
cluster_pair_register(struct cluster_pair *cluster_pair, int side, const char *name, bool is_global)
{
    EXPECT_MADE(cluster_pair_try_register(cluster_pair_domains(cluster_pair, side), name, is_global,
                                          cluster_pair->arena));
}

void
cluster_pair_describe(struct cluster_pair *cluster_pair, int side, const char *name,
                      const char *description)
{
    API(UpdateDomainRequest) *request =
        API_NEW(cluster_pair->arena, update_domain_request, .name = (char *)name,
                .description = (char *)description,
                .update_mask = GOOGLE_NEW(cluster_pair->arena, field_mask, .n_paths = 1,
                                          .paths = (char *[]){"description"}));
    EXPECT_MADE(domains_update(cluster_pair_domains(cluster_pair, side), request,
                               cluster_pair->arena, NULL));
}

void
cluster_pair_failover(struct cluster_pair *cluster_pair, int side, const char *name, int to)
{
    API(FailoverDomainRequest) *request =
        API_NEW(cluster_pair->arena, failover_domain_request, .domain_name = (char *)name,
                .domain_active_cluster_name = (char *)cluster_pair_group[to].name);
    EXPECT_MADE(domains_failover(cluster_pair_domains(cluster_pair, side), request,
                                 cluster_pair->arena, NULL));
}

void
cluster_pair_delete(struct cluster_pair *cluster_pair, int side, const char *name)
{
    API(DeprecateDomainRequest) *deprecate =
        API_NEW(cluster_pair->arena, deprecate_domain_request, .name = (char *)name);
    EXPECT_MADE(domains_deprecate(cluster_pair_domains(cluster_pair, side), deprecate,
                                  cluster_pair->arena, NULL));
    API(DeleteDomainRequest) *request =
        API_NEW(cluster_pair->arena, delete_domain_request, .name = (char *)name);
    EXPECT_MADE(domains_delete(cluster_pair_domains(cluster_pair, side), request,
                               cluster_pair->arena, NULL));
}

struct domain_changes
cluster_pair_read_log(struct cluster_pair *cluster_pair, int side, uint64_t after, size_t count_max)
{
    struct domain_changes changes;
    EXPECT_OK(domains_read_log(cluster_pair_domains(cluster_pair, side), after, count_max,
                               clock_monotonic(), cluster_pair->arena, &changes));
    return changes;
}

/* Carries what is new in one cluster's log to the other. */
void
cluster_pair_replicate(struct cluster_pair *cluster_pair, int from)
{
    struct side *side = &cluster_pair->side[from];
    struct domain_changes changes =
        cluster_pair_read_log(cluster_pair, from, side->replicated, 1000);
    for (size_t i = 0; i < changes.count; i++) {
        side->replicated = changes.version[i];
        const STORED(DomainChange) *change = changes.change[i];
        if (change->record == NULL) {
            struct entity_records rows = {change->entities, change->n_entities};
            EXPECT_ANSWER(domains_apply_entities(cluster_pair_domains(cluster_pair, !from),
                                                 cluster_pair_group[from].name, &rows,
                                                 cluster_pair->arena));
            continue;
        }
        if (!change->record->domain->is_global_domain)
            continue;
        ADMIN(ReplicationTask) *task =
            domain_replication_task(changes.change[i], cluster_pair->arena);
        EXPECT_EQ(task->source_task_id, changes.version[i]);
        EXPECT_OK(domains_apply(cluster_pair_domains(cluster_pair, !from),
                                cluster_pair_group[from].name, task, cluster_pair->arena));
    }
}

void
cluster_pair_acknowledge(struct cluster_pair *cluster_pair, int side)
{
    struct domains *domains = cluster_pair_domains(cluster_pair, side);
    uint64_t newest = domains_notification_version(domains);
    for (int i = 0; i < CLUSTER_PAIR_GROUP_SIZE; i++) {
        const char *follower =
            arena_format(cluster_pair->arena, "cluster:%s", cluster_pair_group[i].name);
        if (i != side)
            EXPECT_OK(
                domains_set_follower_position(domains, follower, newest, cluster_pair->arena));
    }
}
