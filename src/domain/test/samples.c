/* samples.c - see samples.h. For tests only. */
#include "domain/test/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "domain/attributes.h"
#include "wire/message.h"
#include "wire/presence.h"

const char *const sample_names[SAMPLE_CLUSTERS] = {"east", "west", "north", "gone"};

#define CLUSTER(name_, version, is_enabled_)                                                       \
    {                                                                                              \
        .name = name_, .is_enabled = is_enabled_, .initial_failover_version = version,             \
        .new_initial_failover_version = -1,                                                        \
    }
static const struct cluster clusters[SAMPLE_CLUSTERS] = {
    CLUSTER("east", 0, true), CLUSTER("west", 1, true), CLUSTER("north", 2, true),
    CLUSTER("gone", 3, false)};
#define GROUP(index)                                                                               \
    {                                                                                              \
        .failover_version_increment = 10, .current = &clusters[index], .primary = &clusters[EAST], \
        .clusters = clusters, .count = SAMPLE_CLUSTERS                                             \
    }
static const struct cluster_group groups[SAMPLE_CLUSTERS] = {GROUP(EAST), GROUP(WEST), GROUP(NORTH),
                                                             GROUP(GONE)};
static const char *const no_keys[] = {NULL};

const struct cluster_group *
sample_group(int current)
{
    return &groups[current];
}

struct domain_rules
sample_rules(int current)
{
    return (struct domain_rules){.group = &groups[current],
                                 .retention_days_min = 1,
                                 .retention_days_max = 30,
                                 .name_length_max = 100,
                                 .attributes_max = 20000,
                                 .bad_binaries_max = 10,
                                 .required_data_keys = no_keys,
                                 .failover_timeout_max = 300,
                                 .admin_token = "secret"};
}

struct domain_moment
sample_moment(uint64_t n)
{
    struct domain_moment moment = {.now = 1000000000LL * (int64_t)n, .notification_version = n};
    memcpy(moment.fresh.bytes, &n, sizeof n);
    return moment;
}

API(ActiveClusters) *
sample_attributes(const char *text, struct arena *arena)
{
    struct attributes attributes = {0};
    char *rest = arena_text(arena, text);
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
        struct attribute attribute = {.scope = strsep(&one, ".")};
        attribute.name = strsep(&one, ":");
        attribute.cluster_name = strsep(&one, "=");
        attribute.failover_version = one == NULL ? 0 : strtoll(one, NULL, 10);
        check(attribute.cluster_name != NULL);
        attributes_add(&attributes, &attribute, arena);
    }
    return attributes_write(&attributes, arena);
}

const char *
sample_print(const API(ActiveClusters) *active, struct arena *arena)
{
    struct attributes attributes = attributes_read(active, arena);
    const char *text = "";
    for (size_t i = 0; i < attributes.count; i++) {
        const struct attribute *one = &attributes.all[i];
        text = arena_format(arena, "%s%s%s.%s:%s=%lld", text, i > 0 ? "," : "", one->scope,
                            one->name, one->cluster_name, (long long)one->failover_version);
    }
    return text;
}

API(ClusterReplicationConfiguration) **
sample_clusters(struct arena *arena, size_t count)
{
    API(ClusterReplicationConfiguration) **list = arena_zalloc(arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = API_NEW(arena, cluster_replication_configuration,
                          .cluster_name = (char *)sample_names[i]);
    }
    return list;
}

API(RegisterDomainRequest) *
sample_register(int active, const char *attributes, struct arena *arena)
{
    API(RegisterDomainRequest) *request =
        API_NEW(arena, register_domain_request, .name = "orders", .is_global_domain = true,
                .workflow_execution_retention_period = presence_make_duration(arena, 3 * 24 * 3600),
                .active_cluster_name = (char *)sample_names[active], .n_clusters = 3,
                .clusters = sample_clusters(arena, 3));
    if (attributes != NULL)
        request->active_clusters = sample_attributes(attributes, arena);
    return request;
}

API(FailoverDomainRequest) *
sample_failover(const char *cluster_name, const char *attributes, struct arena *arena)
{
    API(FailoverDomainRequest) *request =
        API_NEW(arena, failover_domain_request, .domain_name = "orders");
    if (cluster_name != NULL)
        request->domain_active_cluster_name = (char *)cluster_name;
    if (attributes != NULL)
        request->active_clusters = sample_attributes(attributes, arena);
    return request;
}

API(UpdateDomainRequest) *
sample_update(const char *paths, struct arena *arena)
{
    API(UpdateDomainRequest) *request = API_NEW(
        arena, update_domain_request, .name = "orders",
        .update_mask = GOOGLE_NEW(arena, field_mask,
                                  .paths = arena_zalloc(arena, 1 + strlen(paths), sizeof(char *))));
    char *rest = arena_text(arena, paths);
    for (char *one; (one = strsep(&rest, ",")) != NULL;)
        request->update_mask->paths[request->update_mask->n_paths++] = one;
    return request;
}

API(UpdateDomainRequest) *
sample_removal(const char *scope, const char *name, struct arena *arena)
{
    API(UpdateDomainRequest) *request = sample_update("", arena);
    request->removes_all_attributes = scope == NULL;
    if (scope == NULL)
        return request;
    request->removed_attributes = arena_zalloc(arena, 1, sizeof *request->removed_attributes);
    request->removed_attributes[0] =
        API_NEW(arena, cluster_attribute, .scope = (char *)scope, .name = (char *)name);
    request->n_removed_attributes = 1;
    return request;
}

void
sample_drain(STORED(DomainRecord) *record, int64_t failover_version, struct arena *arena)
{
    STORED(Drain) *drain =
        STORED_NEW(arena, drain, .source_cluster = "east", .failover_version = failover_version,
                   .previous_failover_version = failover_version - 1, .end_time = 12345);
    record->drains = arena_zalloc(arena, 1, sizeof(STORED(Drain) *));
    record->drains[record->n_drains++] = drain;
    record->failover_end_time = drain->end_time;
}
