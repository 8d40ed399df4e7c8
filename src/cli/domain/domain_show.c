/* domain_show.c - domains and failovers for people. See domain_show.h. */
#include "cli/domain/domain_show.h"

#include "base/buffer.h"
#include "cli/domain/domain_drain.h"
#include "cli/output/table.h"

#define SECONDS_PER_DAY (24 * 3600)
#define MOVES_MAX       20 /* of a graceful failover that are shown one by one */

int64_t
domain_retention_days(const API(Domain) *domain)
{
    const GOOGLE(Duration) *retention = domain->workflow_execution_retention_period;
    return retention == NULL ? 0 : retention->seconds / SECONDS_PER_DAY;
}

/* Has it cluster attributes? */
static bool
domain_has_attributes(const API(Domain) *domain)
{
    const API(ActiveClusters) *active = domain->active_clusters;
    for (size_t i = 0; active != NULL && i < active->n_active_clusters_by_cluster_attribute; i++) {
        if (active->active_clusters_by_cluster_attribute[i]->value->n_cluster_attributes > 0)
            return true;
    }
    return false;
}

const char *
domain_status_text(const API(Domain) *domain, struct arena *arena)
{
    return show_enum(API_TYPE(domain_status), "DOMAIN_STATUS_", (int)domain->status, arena);
}

const char *
archival_status_text(API(ArchivalStatus) status, struct arena *arena)
{
    if (status == API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_INVALID))
        return "DISABLED";
    return show_enum(API_TYPE(archival_status), "ARCHIVAL_STATUS_", (int)status, arena);
}

const char *
failover_type_text(API(FailoverType) type, struct arena *arena)
{
    return show_enum(API_TYPE(failover_type), "FAILOVER_TYPE_", (int)type, arena);
}

static const char *
yes_or_no(bool value)
{
    return value ? "true" : "false";
}

static const char *
cluster_names(const API(Domain) *domain, struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < domain->n_clusters; i++)
        names = arena_format(arena, "%s%s%s", names, i > 0 ? ", " : "",
                             show_text(domain->clusters[i]->cluster_name, arena));
    return names;
}

static const char *
data_text(const API(Domain) *domain, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < domain->n_data; i++)
        text = arena_format(arena, "%s%s%s=%s", text, i > 0 ? ", " : "",
                            show_text(domain->data[i]->key, arena),
                            show_text(domain->data[i]->value, arena));
    return text;
}

/* --- one domain ----------------------------------------------------------------------------------
 */

static void
line(struct buffer *text, const char *label, const char *value, struct arena *arena)
{
    buffer_append_format(text, "%s: %s\n", label, show_text(value, arena));
}

static void
show_settings(const API(Domain) *domain, struct buffer *text, struct arena *arena)
{
    line(text, "Name", domain->name, arena);
    line(text, "UUID", domain->id, arena);
    line(text, "Description", domain->description, arena);
    line(text, "OwnerEmail", domain->owner_email, arena);
    line(text, "DomainData", data_text(domain, arena), arena);
    line(text, "Status", domain_status_text(domain, arena), arena);
    buffer_append_format(text, "RetentionInDays: %lld\n", (long long)domain_retention_days(domain));
    line(text, "IsGlobal(XDC)Domain", yes_or_no(domain->is_global_domain), arena);
    line(text, "ActiveClusterName", domain->active_cluster_name, arena);
    line(text, "IsActiveActiveDomain", yes_or_no(domain_has_attributes(domain)), arena);
    line(text, "Clusters",
         domain->is_global_domain ? cluster_names(domain, arena) : "N/A, Not a global domain",
         arena);
    buffer_append_format(text, "FailoverVersion: %lld\n", (long long)domain->failover_version);
    line(text, "HistoryArchivalStatus",
         archival_status_text(domain->history_archival_status, arena), arena);
    if (domain->history_archival_uri[0] != '\0')
        line(text, "HistoryArchivalURI", domain->history_archival_uri, arena);
    line(text, "VisibilityArchivalStatus",
         archival_status_text(domain->visibility_archival_status, arena), arena);
    if (domain->visibility_archival_uri[0] != '\0')
        line(text, "VisibilityArchivalURI", domain->visibility_archival_uri, arena);
}

static void
show_attributes(const API(Domain) *domain, struct buffer *text, struct arena *arena)
{
    struct table table = {.columns = 3, .arena = arena};
    if (!domain_has_attributes(domain))
        return;
    table_add(&table, "Cluster attribute", "Active cluster", "Failover version");
    const API(ActiveClusters) *active = domain->active_clusters;
    for (size_t i = 0; i < active->n_active_clusters_by_cluster_attribute; i++) {
        const char *scope = active->active_clusters_by_cluster_attribute[i]->key;
        const API(ClusterAttributeScope) *names =
            active->active_clusters_by_cluster_attribute[i]->value;
        for (size_t n = 0; n < names->n_cluster_attributes; n++) {
            const API(ActiveClusterInfo) *info = names->cluster_attributes[n]->value;
            table_add(&table,
                      arena_format(arena, "%s.%s", scope, names->cluster_attributes[n]->key),
                      info->active_cluster_name,
                      arena_format(arena, "%lld", (long long)info->failover_version));
        }
    }
    buffer_append_format(text, "\nActive clusters by cluster attribute:\n%s", table_text(&table));
}

static void
show_bad_binaries(const API(Domain) *domain, struct buffer *text, struct arena *arena)
{
    struct table table = {.columns = 4, .arena = arena};
    const API(BadBinaries) *bad = domain->bad_binaries;
    if (bad == NULL || bad->n_binaries == 0)
        return;
    table_add(&table, "Binary checksum", "Operator", "Since", "Reason");
    for (size_t i = 0; i < bad->n_binaries; i++) {
        const API(BadBinaryInfo) *info = bad->binaries[i]->value;
        table_add(&table, bad->binaries[i]->key, info->operator_,
                  show_time(info->created_time, arena), info->reason);
    }
    buffer_append_format(text, "\nBad binaries to reset:\n%s", table_text(&table));
}

static void
show_isolation_groups(const API(Domain) *domain, struct buffer *text, struct arena *arena)
{
    struct table table = {.columns = 2, .arena = arena};
    const API(IsolationGroupConfiguration) *groups = domain->isolation_groups;
    if (groups == NULL || groups->n_isolation_groups == 0)
        return;
    table_add(&table, "Isolation group", "State");
    for (size_t i = 0; i < groups->n_isolation_groups; i++) {
        const API(IsolationGroupPartition) *group = groups->isolation_groups[i];
        table_add(&table, group->name,
                  show_enum(API_TYPE(isolation_group_state), "ISOLATION_GROUP_STATE_",
                            (int)group->state, arena));
    }
    buffer_append_format(text, "\nIsolation groups:\n%s", table_text(&table));
}

static const char *
show_attribute(const API(ClusterAttribute) *attribute, struct arena *arena)
{
    return attribute == NULL ? "(domain)"
                             : arena_format(arena, "%s.%s", show_text(attribute->scope, arena),
                                            show_text(attribute->name, arena));
}

static void
show_graceful_failover(const API(Domain) *domain, struct buffer *text, struct arena *arena)
{
    const API(FailoverInfo) *info = domain->failover_info;
    if (info == NULL)
        return;
    buffer_append_format(text,
                         "\nGraceful failover under way:\nFailoverVersion: %lld\nStarted: %s\n"
                         "Ends at the latest: %s\nShards done: %d, pending: %zu\n",
                         (long long)info->failover_version,
                         show_time(info->failover_start_timestamp, arena),
                         show_time(info->failover_expire_timestamp, arena),
                         info->completed_shard_count, info->n_pending_shards);
    for (size_t i = 0; i < info->n_moves && i < MOVES_MAX; i++) {
        const API(FailoverProgress) *move = info->moves[i];
        const char *shards = drain_shards(move->clusters, move->n_clusters, arena);
        buffer_append_format(text, "Handed over of %s: %s\n",
                             show_attribute(move->cluster_attribute, arena),
                             shards == NULL ? "-" : shards);
    }
    if (info->n_moves > MOVES_MAX)
        buffer_append_format(text, "%zu more attributes move.\n", info->n_moves - MOVES_MAX);
}

const char *
domain_show(const API(Domain) *domain, struct arena *arena)
{
    struct buffer text = {0};
    show_settings(domain, &text, arena);
    show_attributes(domain, &text, arena);
    show_graceful_failover(domain, &text, arena);
    show_bad_binaries(domain, &text, arena);
    show_isolation_groups(domain, &text, arena);
    const char *kept = arena_text_of(arena, buffer_slice(&text));
    buffer_free(&text);
    return kept;
}

const char *
domain_show_described(const API(DescribeDomainResponse) *described, struct arena *arena)
{
    const char *shown = domain_show(described->domain, arena);
    if (described->is_recovering)
        shown =
            arena_format(arena,
                         "%s\nRecovering: this cluster lost memory, and decides nothing for the "
                         "domain until it has read from the other clusters what it had; 'cadenza "
                         "admin cluster peers' shows for whom it waits.\n",
                         shown);
    if (described->cluster_notification_version == 0) /* another make of server */
        return shown;
    return arena_format(arena,
                        "%s\nNotificationVersion: %lld\nFailoverNotificationVersion: %lld\n"
                        "ClusterNotificationVersion: %lld\n",
                        shown, (long long)described->notification_version,
                        (long long)described->failover_notification_version,
                        (long long)described->cluster_notification_version);
}

/* --- lists ---------------------------------------------------------------------------------------
 */

static void
add_domain(struct table *table, const API(Domain) *domain, struct arena *arena)
{
    if (table->columns == 5)
        table_add(table, domain->name, domain->id, domain_status_text(domain, arena),
                  yes_or_no(domain->is_global_domain), domain->active_cluster_name);
    else
        table_add(table, domain->name, domain->id, domain_status_text(domain, arena),
                  yes_or_no(domain->is_global_domain), domain->active_cluster_name,
                  cluster_names(domain, arena),
                  arena_format(arena, "%lld", (long long)domain->failover_version),
                  arena_format(arena, "%lld", (long long)domain_retention_days(domain)),
                  archival_status_text(domain->history_archival_status, arena),
                  archival_status_text(domain->visibility_archival_status, arena));
}

const char *
domain_show_list(const struct domain_list *domains, bool is_full, struct arena *arena)
{
    struct table table = {.columns = is_full ? 10 : 5, .arena = arena};
    if (is_full)
        table_add(&table, "Name", "UUID", "Status", "Global", "Active cluster", "Clusters",
                  "Failover version", "Retention days", "History archival", "Visibility archival");
    else
        table_add(&table, "Name", "UUID", "Status", "Global", "Active cluster");
    for (size_t i = 0; i < domains->count; i++)
        add_domain(&table, domains->items[i], arena);
    return table_text(&table);
}

static const char *
cluster_and_version(const API(ActiveClusterInfo) *info, struct arena *arena)
{
    if (info == NULL || info->active_cluster_name[0] == '\0')
        return "-";
    return arena_format(arena, "%s (%lld)", info->active_cluster_name,
                        (long long)info->failover_version);
}

/* How the move of one thing ended; NULL: it has not, or was by force. */
static const API(FailoverOutcome) *
find_outcome(const API(FailoverEvent) *event, const API(ClusterAttribute) *moved)
{
    for (size_t i = 0; i < event->n_outcomes; i++) {
        const API(ClusterAttribute) *of = event->outcomes[i]->cluster_attribute;
        if (moved == NULL ? of == NULL
                          : of != NULL && strcmp(of->scope, moved->scope) == 0 &&
                                strcmp(of->name, moved->name) == 0)
            return event->outcomes[i];
    }
    return NULL;
}

/* "Force", "Graceful, complete in 0.03 s". */
static const char *
failover_kind(const API(FailoverEvent) *event, const API(ClusterAttribute) *moved,
              struct arena *arena)
{
    const char *type = failover_type_text(event->failover_type, arena);
    const API(FailoverOutcome) *outcome = find_outcome(event, moved);
    if (outcome == NULL || event->created_time == NULL || outcome->end_time == NULL)
        return type;
    const GOOGLE(Timestamp) *from = event->created_time, *to = outcome->end_time;
    double took = (double)(to->seconds - from->seconds) + (to->nanos - from->nanos) / 1e9;
    return arena_format(arena, "%s, %s in %.2f s", type, show_text(outcome->result, arena), took);
}

static void
add_failover(struct table *table, const API(FailoverEvent) *event,
             const API(ClusterFailover) *failover, struct arena *arena)
{
    const API(ClusterAttribute) *attribute = failover->cluster_attribute;
    table_add(table, show_time(event->created_time, arena), failover_kind(event, attribute, arena),
              show_attribute(attribute, arena), cluster_and_version(failover->from_cluster, arena),
              cluster_and_version(failover->to_cluster, arena), event->id);
}

const char *
domain_show_failovers(const struct failover_list *failovers, struct arena *arena)
{
    struct table table = {.columns = 6, .arena = arena};
    table_add(&table, "Time", "Type", "What", "From", "To", "Event ID");
    for (size_t i = 0; i < failovers->count; i++) {
        const API(FailoverEvent) *event = failovers->items[i];
        for (size_t n = 0; n < event->n_cluster_failovers; n++)
            add_failover(&table, event, event->cluster_failovers[n], arena);
        if (event->n_cluster_failovers == 0)
            table_add(&table, show_time(event->created_time, arena),
                      failover_kind(event, NULL, arena), "-", "-", "-", event->id);
    }
    return table_text(&table);
}
