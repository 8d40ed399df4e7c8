/* domain_json.c - domains and failovers for programs. See domain_show.h.
 *
 * Keys and nesting are those of Cadence's own JSON, so that scripts need no second form; a key
 * whose value is empty is left out, as there. Times are nanoseconds since 1970. */
#include <jansson.h>

#include "base/check.h"
#include "cli/domain/domain_show.h"
#include "cli/output/table.h"
#include "wire/presence.h"

static void
put_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_object_set_new(object, key, json_string(text));
}

static void
put_number(json_t *object, const char *key, int64_t number)
{
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void
put_time(json_t *object, const char *key, const GOOGLE(Timestamp) *time)
{
    if (time != NULL)
        put_number(object, key, presence_time(time));
}

/* Takes `value`; an empty object or array is left out. */
static void
put(json_t *object, const char *key, json_t *value)
{
    if (json_object_size(value) + json_array_size(value) > 0)
        json_object_set_new(object, key, value);
    else
        json_decref(value);
}

static json_t *
info_of(const API(Domain) *domain, struct arena *arena)
{
    json_t *info = json_object(), *data = json_object();
    put_text(info, "name", domain->name);
    put_text(info, "status", domain_status_text(domain, arena));
    put_text(info, "description", domain->description);
    put_text(info, "ownerEmail", domain->owner_email);
    for (size_t i = 0; i < domain->n_data; i++)
        json_object_set_new(data, domain->data[i]->key, json_string(domain->data[i]->value));
    put(info, "data", data);
    put_text(info, "uuid", domain->id);
    return info;
}

static json_t *
bad_binaries_of(const API(Domain) *domain)
{
    json_t *bad = json_object(), *binaries = json_object();
    for (size_t i = 0; domain->bad_binaries != NULL && i < domain->bad_binaries->n_binaries; i++) {
        const API(BadBinaryInfo) *info = domain->bad_binaries->binaries[i]->value;
        json_t *one = json_object();
        put_text(one, "reason", info->reason);
        put_text(one, "operator", info->operator_);
        put_time(one, "createdTimeNano", info->created_time);
        json_object_set_new(binaries, domain->bad_binaries->binaries[i]->key, one);
    }
    put(bad, "binaries", binaries);
    return bad;
}

static json_t *
isolation_groups_of(const API(Domain) *domain, struct arena *arena)
{
    const API(IsolationGroupConfiguration) *groups = domain->isolation_groups;
    json_t *all = json_object();
    for (size_t i = 0; groups != NULL && i < groups->n_isolation_groups; i++) {
        const API(IsolationGroupPartition) *group = groups->isolation_groups[i];
        json_t *one = json_object();
        put_text(one, "name", group->name);
        put_text(one, "state",
                 show_enum(API_TYPE(isolation_group_state), "ISOLATION_GROUP_STATE_",
                           (int)group->state, arena));
        json_object_set_new(all, group->name, one);
    }
    return all;
}

/* Its keys are upper case in Cadence's JSON. */
static json_t *
async_workflows_of(const API(Domain) *domain)
{
    const API(AsyncWorkflowConfiguration) *async = domain->async_workflow_config;
    json_t *one = json_object();
    bool is_set = async != NULL && (async->enabled || async->predefined_queue_name[0] != '\0' ||
                                    async->queue_type[0] != '\0');
    if (!is_set)
        return one;
    json_object_set_new(one, "Enabled", json_boolean(async->enabled));
    put_text(one, "PredefinedQueueName", async->predefined_queue_name);
    put_text(one, "QueueType", async->queue_type);
    return one;
}

static json_t *
configuration_of(const API(Domain) *domain, struct arena *arena)
{
    json_t *configuration = json_object();
    put_number(configuration, "workflowExecutionRetentionPeriodInDays",
               domain_retention_days(domain));
    put(configuration, "badBinaries", bad_binaries_of(domain));
    put_text(configuration, "historyArchivalStatus",
             archival_status_text(domain->history_archival_status, arena));
    put_text(configuration, "historyArchivalURI", domain->history_archival_uri);
    put_text(configuration, "visibilityArchivalStatus",
             archival_status_text(domain->visibility_archival_status, arena));
    put_text(configuration, "visibilityArchivalURI", domain->visibility_archival_uri);
    put(configuration, "isolationGroupConfiguration", isolation_groups_of(domain, arena));
    put(configuration, "asyncWorkflowConfiguration", async_workflows_of(domain));
    return configuration;
}

static json_t *
active_cluster_of(const API(ActiveClusterInfo) *info)
{
    json_t *one = json_object();
    put_text(one, "activeClusterName", info->active_cluster_name);
    put_number(one, "failoverVersion", info->failover_version);
    return one;
}

static json_t *
active_clusters_of(const API(Domain) *domain)
{
    const API(ActiveClusters) *active = domain->active_clusters;
    json_t *all = json_object(), *scopes = json_object();
    for (size_t i = 0; active != NULL && i < active->n_active_clusters_by_cluster_attribute; i++) {
        const API(ClusterAttributeScope) *scope =
            active->active_clusters_by_cluster_attribute[i]->value;
        json_t *one = json_object(), *names = json_object();
        for (size_t n = 0; n < scope->n_cluster_attributes; n++)
            json_object_set_new(names, scope->cluster_attributes[n]->key,
                                active_cluster_of(scope->cluster_attributes[n]->value));
        json_object_set_new(one, "clusterAttributes", names);
        json_object_set_new(scopes, active->active_clusters_by_cluster_attribute[i]->key, one);
    }
    put(all, "attributeScopes", scopes);
    return all;
}

static json_t *
replication_of(const API(Domain) *domain)
{
    json_t *replication = json_object(), *clusters = json_array();
    put_text(replication, "activeClusterName", domain->active_cluster_name);
    for (size_t i = 0; i < domain->n_clusters; i++)
        json_array_append_new(clusters,
                              json_pack("{s:s}", "clusterName", domain->clusters[i]->cluster_name));
    put(replication, "clusters", clusters);
    put(replication, "activeClusters", active_clusters_of(domain));
    return replication;
}

static json_t *
attribute_of(const API(ClusterAttribute) *attribute)
{
    json_t *one = json_object();
    if (attribute != NULL) {
        put_text(one, "scope", attribute->scope);
        put_text(one, "name", attribute->name);
    }
    return one;
}

/* Shards that a graceful failover waits for, by cluster. */
static json_t *
shards_of(API(ClusterShards) *const *clusters, size_t count)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_object();
        put_text(one, "cluster", clusters[i]->cluster);
        put_number(one, "shardCount", clusters[i]->shard_count);
        put_number(one, "readyCount", clusters[i]->ready_count);
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *
moves_of(const API(FailoverInfo) *info)
{
    json_t *all = json_array();
    for (size_t i = 0; i < info->n_moves; i++) {
        const API(FailoverProgress) *move = info->moves[i];
        json_t *one = json_object();
        put(one, "clusterAttribute", attribute_of(move->cluster_attribute));
        put_number(one, "failoverVersion", move->failover_version);
        put(one, "clusters", shards_of(move->clusters, move->n_clusters));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *
failover_info_of(const API(Domain) *domain)
{
    const API(FailoverInfo) *info = domain->failover_info;
    json_t *one = json_object(), *pending = json_array();
    if (info != NULL) {
        put_number(one, "failoverVersion", info->failover_version);
        put_time(one, "failoverStartTimestamp", info->failover_start_timestamp);
        put_time(one, "failoverExpireTimestamp", info->failover_expire_timestamp);
        put_number(one, "completedShardCount", info->completed_shard_count);
        for (size_t i = 0; i < info->n_pending_shards; i++)
            json_array_append_new(pending, json_integer(info->pending_shards[i]));
        put(one, "moves", moves_of(info));
    }
    put(one, "pendingShards", pending);
    return one;
}

static json_t *
domain_of(const API(Domain) *domain, struct arena *arena)
{
    json_t *all = json_object();
    json_object_set_new(all, "domainInfo", info_of(domain, arena));
    json_object_set_new(all, "configuration", configuration_of(domain, arena));
    json_object_set_new(all, "replicationConfiguration", replication_of(domain));
    put_number(all, "failoverVersion", domain->failover_version);
    json_object_set_new(all, "isGlobalDomain", json_boolean(domain->is_global_domain));
    put(all, "failoverInfo", failover_info_of(domain));
    return all;
}

/* How a graceful failover of one thing ended. */
static json_t *
outcome_of(const API(FailoverOutcome) *outcome)
{
    json_t *one = json_object(), *missing = json_array();
    put(one, "clusterAttribute", attribute_of(outcome->cluster_attribute));
    put_text(one, "result", outcome->result);
    put_time(one, "endTime", outcome->end_time);
    put_number(one, "shardCount", outcome->shard_count);
    for (size_t i = 0; i < outcome->n_missing; i++)
        json_array_append_new(missing, json_string(outcome->missing[i]));
    put(one, "missing", missing);
    put(one, "clusters", shards_of(outcome->clusters, outcome->n_clusters));
    return one;
}

static json_t *
failover_of(const API(FailoverEvent) *event, struct arena *arena)
{
    json_t *one = json_object(), *moves = json_array();
    put_text(one, "id", event->id);
    put_time(one, "createdTime", event->created_time);
    put_text(one, "failoverType", failover_type_text(event->failover_type, arena));
    for (size_t i = 0; i < event->n_cluster_failovers; i++) {
        const API(ClusterFailover) *failover = event->cluster_failovers[i];
        json_t *move = json_object();
        if (failover->from_cluster != NULL)
            json_object_set_new(move, "fromCluster", active_cluster_of(failover->from_cluster));
        if (failover->to_cluster != NULL)
            json_object_set_new(move, "toCluster", active_cluster_of(failover->to_cluster));
        if (failover->cluster_attribute != NULL)
            json_object_set_new(move, "clusterAttribute",
                                json_pack("{s:s, s:s}", "scope", failover->cluster_attribute->scope,
                                          "name", failover->cluster_attribute->name));
        json_array_append_new(moves, move);
    }
    put(one, "clusterFailovers", moves);
    json_t *outcomes = json_array();
    for (size_t i = 0; i < event->n_outcomes; i++)
        json_array_append_new(outcomes, outcome_of(event->outcomes[i]));
    put(one, "outcomes", outcomes);
    return one;
}

/* The text of `json`, which is let go. */
static const char *
finish(json_t *json, struct arena *arena)
{
    size_t length = json_dumpb(json, NULL, 0, JSON_INDENT(2));
    char *text = arena_alloc(arena, length + 2);
    size_t written = json_dumpb(json, text, length, JSON_INDENT(2));
    check(written == length);
    text[length] = '\n';
    text[length + 1] = '\0';
    json_decref(json);
    return text;
}

const char *
domain_json(const API(Domain) *domain, struct arena *arena)
{
    return finish(domain_of(domain, arena), arena);
}

const char *
domain_json_described(const API(DescribeDomainResponse) *described, struct arena *arena)
{
    json_t *all = domain_of(described->domain, arena);
    if (described->cluster_notification_version > 0) { /* Cadence servers have none */
        put_number(all, "notificationVersion", described->notification_version);
        put_number(all, "failoverNotificationVersion", described->failover_notification_version);
        put_number(all, "clusterNotificationVersion", described->cluster_notification_version);
    }
    if (described->is_recovering)
        json_object_set_new(all, "isRecovering", json_true());
    return finish(all, arena);
}

const char *
domain_json_list(const struct domain_list *domains, struct arena *arena)
{
    json_t *all = json_array();
    for (size_t i = 0; i < domains->count; i++)
        json_array_append_new(all, domain_of(domains->items[i], arena));
    return finish(all, arena);
}

const char *
domain_json_failovers(const struct failover_list *failovers, struct arena *arena)
{
    json_t *events = json_array();
    for (size_t i = 0; i < failovers->count; i++)
        json_array_append_new(events, failover_of(failovers->items[i], arena));
    return finish(json_pack("{s:o}", "failoverEvents", events), arena);
}
