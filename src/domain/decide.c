/* decide.c - register, update and deprecate, decided. See decide.h.
 *
 * A record is built as a shallow copy of the one before: what a request does not touch points into
 * the old record, which its reference keeps alive until the new one is encoded. Maps are kept
 * sorted by key and without repeats, so that equal domains have equal bytes. */
#include "domain/decide.h"

#include "base/check.h"
#include "domain/entries.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SECONDS_PER_DAY (24LL * 3600)

struct error *
domain_error_unknown(const char *name_or_id, struct arena *arena)
{
    return error_new(arena, ERR_ENTITY_NOT_EXISTS, "Domain %s does not exist.", name_or_id);
}

static struct error *
check_permission(const char *token, const struct domain_rules *rules, struct arena *arena)
{
    if (rules->is_admin_protected && (token[0] == '\0' || strcmp(token, rules->admin_token) != 0))
        return error_new(arena, ERR_BAD_REQUEST, "No permission to do this operation.");
    return NULL;
}

/* A global domain is changed in the primary cluster only, and not while others may know it better.
 */
static struct error *
check_may_change(bool is_global, const struct domain_rules *rules, struct arena *arena)
{
    if (!is_global)
        return NULL;
    if (!cluster_group_is_primary(rules->group))
        return error_new(
            arena, ERR_BAD_REQUEST,
            "Cluster is not primary cluster, cannot do domain registration or domain update.");
    if (rules->is_catching_up)
        return error_new(arena, ERR_SERVICE_BUSY,
                         "This cluster was restored from a backup and has not caught up with its "
                         "group yet; global domains cannot be changed here until then.");
    return NULL;
}

static struct error *
check_name(const char *name, const struct domain_rules *rules, struct arena *arena)
{
    if (name[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Domain not set on request.");
    if ((int64_t)strlen(name) > rules->name_length_max)
        return error_new(arena, ERR_BAD_REQUEST, "Domain length exceeds limit.");
    return NULL;
}

static bool
has_only_name_characters(const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!is_letter && !(*at >= '0' && *at <= '9') && *at != '-')
            return false;
    }
    return name[0] != '\0';
}

/* Whole days; what is left over does not count. Absent: 0 days, which is too few. */
static struct error *
read_retention(const GOOGLE(Duration) *duration, struct arena *arena, int64_t *days)
{
    struct maybe_int64 seconds;
    struct error *err =
        presence_read_duration(arena, "workflow_execution_retention_period", duration, &seconds);
    if (err == NULL)
        *days = seconds.value / SECONDS_PER_DAY;
    return err;
}

static struct error *
set_retention(API(Domain) *domain, const GOOGLE(Duration) *duration,
              const struct domain_rules *rules, struct arena *arena)
{
    int64_t days = 0;
    struct error *err = read_retention(duration, arena, &days);
    if (err != NULL)
        return err;
    if (days > rules->retention_days_max)
        return error_new(arena, ERR_BAD_REQUEST, "RetentionDays is invalid.");
    if (days < rules->retention_days_min)
        return error_new(arena, ERR_BAD_REQUEST, "A valid retention period is not set on request.");
    domain->workflow_execution_retention_period =
        presence_make_duration(arena, days * SECONDS_PER_DAY);
    return NULL;
}

static struct error *
check_required_data(const API(RegisterDomainRequest) *request, const struct domain_rules *rules,
                    struct arena *arena)
{
    for (const char *const *key = rules->required_data_keys; *key != NULL; key++) {
        if (wire_map_find(request->data, request->n_data, *key) == NULL)
            return error_new(arena, ERR_BAD_REQUEST, "domain data error, missing required key %s",
                             *key);
    }
    return NULL;
}

/* --- where a domain lives -------------------------------------------------------------------- */

static struct error *
check_cluster_name(const char *name, const struct cluster_group *group, struct arena *arena)
{
    const struct cluster *cluster = cluster_group_find(group, name);
    if (cluster == NULL || !cluster->is_enabled)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid cluster name: %s", name);
    return NULL;
}

static struct error *
check_clusters(const API(Domain) *domain, const struct cluster_group *group, struct arena *arena)
{
    struct error *err = check_cluster_name(domain->active_cluster_name, group, arena);
    bool has_active = false;
    for (size_t i = 0; err == NULL && i < domain->n_clusters; i++) {
        err = check_cluster_name(domain->clusters[i]->cluster_name, group, arena);
        has_active = has_active ||
                     strcmp(domain->clusters[i]->cluster_name, domain->active_cluster_name) == 0;
    }
    if (err != NULL)
        return err;
    if (domain->is_global_domain)
        return has_active ? NULL
                          : error_new(arena, ERR_BAD_REQUEST,
                                      "Active cluster is not contained in all clusters.");
    if (strcmp(domain->active_cluster_name, group->current->name) != 0)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid local domain active cluster");
    if (domain->n_clusters != 1 || !has_active)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid local domain clusters");
    return NULL;
}

static void
set_clusters(API(Domain) *domain, const API(RegisterDomainRequest) *request,
             const struct cluster_group *group, struct arena *arena)
{
    bool is_given = request->active_cluster_name[0] != '\0';
    domain->active_cluster_name =
        is_given ? request->active_cluster_name : (char *)group->current->name;
    domain->n_clusters = request->n_clusters;
    domain->clusters = request->clusters;
    if (request->n_clusters > 0)
        return;
    API(ClusterReplicationConfiguration) *only =
        message_new(arena, API_TYPE(cluster_replication_configuration));
    only->cluster_name = domain->active_cluster_name;
    domain->n_clusters = 1;
    domain->clusters = arena_zalloc(arena, 1, sizeof *domain->clusters);
    domain->clusters[0] = only;
}

/* --- archival --------------------------------------------------------------------------------- */

static struct error *
set_archival(API(Domain) *domain, struct archival history, struct archival visibility,
             struct arena *arena)
{
    struct archival next;
    struct archival now = {domain->history_archival_status, domain->history_archival_uri};
    struct error *err = archival_next(now, history, arena, &next);
    if (err != NULL)
        return err;
    domain->history_archival_status = next.status;
    domain->history_archival_uri = (char *)next.uri;

    now = (struct archival){domain->visibility_archival_status, domain->visibility_archival_uri};
    err = archival_next(now, visibility, arena, &next);
    if (err != NULL)
        return err;
    domain->visibility_archival_status = next.status;
    domain->visibility_archival_uri = (char *)next.uri;
    return NULL;
}

/* --- register ----------------------------------------------------------------------------------
 */

static struct error *
check_register(const struct domain *current, const API(RegisterDomainRequest) *request,
               const struct domain_rules *rules, struct arena *arena)
{
    int64_t days = 0;
    struct error *err = check_name(request->name, rules, arena);
    if (err == NULL)
        err = read_retention(request->workflow_execution_retention_period, arena, &days);
    if (err == NULL && days > rules->retention_days_max)
        err = error_new(arena, ERR_BAD_REQUEST, "RetentionDays is invalid.");
    if (err == NULL)
        err = check_required_data(request, rules, arena);
    if (err == NULL)
        err = check_permission(request->security_token, rules, arena);
    if (err != NULL)
        return err;
    err = check_may_change(request->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    if (current != NULL)
        return error_new(arena, ERR_DOMAIN_ALREADY_EXISTS, "Domain already exists.");
    if (!has_only_name_characters(request->name))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Domain name can only include alphanumeric and dash characters.");
    if (request->active_clusters != NULL &&
        request->active_clusters->n_active_clusters_by_cluster_attribute > 0)
        return error_new(
            arena, ERR_BAD_REQUEST,
            "Cluster attributes (active_clusters) are not supported by this server version.");
    return NULL;
}

static STORED(DomainRecord) *
record_new(const API(RegisterDomainRequest) *request, const struct domain_rules *rules,
           const struct domain_moment *moment, struct arena *arena)
{
    API(Domain) *domain = message_new(arena, API_TYPE(domain));
    char id[UUID_TEXT_LENGTH + 1];
    uuid_format(&moment->fresh, id);
    domain->id = arena_text(arena, id);
    domain->name = request->name;
    domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED);
    domain->description = request->description;
    domain->owner_email = request->owner_email;
    domain->is_global_domain = request->is_global_domain;
    domain->history_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED);
    domain->visibility_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED);
    domain->data = data_merge(0, NULL, request->n_data, request->data, arena, &domain->n_data);
    set_clusters(domain, request, rules->group, arena);

    STORED(DomainRecord) *record = message_new(arena, STORED_TYPE(domain_record));
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = domain;
    record->previous_failover_version = -1;
    record->last_updated_time = moment->now;
    return record;
}

struct error *
domain_decide_register(const struct domain *current, const API(RegisterDomainRequest) *request,
                       const struct domain_rules *rules, const struct domain_moment *moment,
                       struct arena *arena, STORED(DomainRecord) **next)
{
    struct error *err = check_register(current, request, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = record_new(request, rules, moment, arena);
    err = set_retention(record->domain, request->workflow_execution_retention_period, rules, arena);
    if (err == NULL)
        err = check_clusters(record->domain, rules->group, arena);
    if (err == NULL)
        err = set_archival(
            record->domain,
            (struct archival){request->history_archival_status, request->history_archival_uri},
            (struct archival){request->visibility_archival_status,
                              request->visibility_archival_uri},
            arena);
    if (err != NULL)
        return err;

    record->domain->failover_version = FAILOVER_VERSION_LOCAL;
    if (request->is_global_domain) {
        const struct cluster *active =
            cluster_group_find(rules->group, record->domain->active_cluster_name);
        bool has_version =
            cluster_group_next_version(rules->group, active, 0, &record->domain->failover_version);
        check(has_version);
    }
    *next = record;
    return NULL;
}

/* --- update -------------------------------------------------------------------------------------
 */

/* Is the field one that the request sets? Without a mask every field is. */
static bool
is_set(const API(UpdateDomainRequest) *request, const char *field)
{
    return presence_mask_has(request->update_mask, field);
}

/* Fields that would move the domain. A blank one means nothing, even if a missing mask "sets" it.
 */
static bool
asks_for_failover(const API(UpdateDomainRequest) *request)
{
    return (is_set(request, "active_cluster_name") && request->active_cluster_name[0] != '\0') ||
           (is_set(request, "active_clusters") && request->active_clusters != NULL) ||
           (is_set(request, "clusters") && request->n_clusters > 0) ||
           (is_set(request, "failover_timeout") && request->failover_timeout != NULL);
}

static struct error *
update_bad_binaries(API(Domain) *domain, const API(UpdateDomainRequest) *request,
                    const struct domain_rules *rules, const struct domain_moment *moment,
                    struct arena *arena)
{
    bool adds = is_set(request, "bad_binaries") && request->bad_binaries != NULL;
    const char *removed = is_set(request, "delete_bad_binary") ? request->delete_bad_binary : "";
    if (!adds && removed[0] == '\0')
        return NULL;
    API(BadBinaries) *next = bad_binaries_merge(
        domain->bad_binaries, adds ? request->bad_binaries : NULL, moment->now, arena);
    if ((int64_t)next->n_binaries > rules->bad_binaries_max)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Total resetBinaries cannot exceed the max limit: %lld",
                         (long long)rules->bad_binaries_max);
    if (removed[0] != '\0' && !bad_binaries_remove(next, removed))
        return error_new(arena, ERR_BAD_REQUEST, "Bad binary checksum %s doesn't exists.", removed);
    domain->bad_binaries = next;
    return NULL;
}

static struct error *
update_archival(API(Domain) *domain, const API(UpdateDomainRequest) *request, struct arena *arena)
{
    struct archival history = {0, ""}, visibility = {0, ""};
    if (is_set(request, "history_archival_status"))
        history.status = request->history_archival_status;
    if (is_set(request, "history_archival_uri"))
        history.uri = request->history_archival_uri;
    if (is_set(request, "visibility_archival_status"))
        visibility.status = request->visibility_archival_status;
    if (is_set(request, "visibility_archival_uri"))
        visibility.uri = request->visibility_archival_uri;
    return set_archival(domain, history, visibility, arena);
}

static struct error *
update_settings(API(Domain) *domain, const API(UpdateDomainRequest) *request,
                const struct domain_rules *rules, const struct domain_moment *moment,
                struct arena *arena)
{
    if (is_set(request, "description"))
        domain->description = request->description;
    if (is_set(request, "owner_email"))
        domain->owner_email = request->owner_email;
    if (is_set(request, "data"))
        domain->data = data_merge(domain->n_data, domain->data, request->n_data, request->data,
                                  arena, &domain->n_data);
    struct error *err = NULL;
    if (is_set(request, "workflow_execution_retention_period") &&
        request->workflow_execution_retention_period != NULL)
        err = set_retention(domain, request->workflow_execution_retention_period, rules, arena);
    if (err == NULL)
        err = update_bad_binaries(domain, request, rules, moment, arena);
    return err != NULL ? err : update_archival(domain, request, arena);
}

/* A record that differs from `current` in nothing yet; its domain may be changed. */
static STORED(DomainRecord) *
record_copy(const struct domain *current, const struct domain_moment *moment, struct arena *arena)
{
    API(Domain) *domain = arena_make(arena, API(Domain));
    *domain = *current->record->domain;
    STORED(DomainRecord) *record = arena_make(arena, STORED(DomainRecord));
    *record = *current->record;
    record->domain = domain;
    record->last_updated_time = moment->now;
    return record;
}

static struct error *
check_update(const struct domain *current, const API(UpdateDomainRequest) *request,
             const struct domain_rules *rules, struct arena *arena)
{
    struct error *err = check_name(request->name, rules, arena);
    if (err == NULL)
        err = check_permission(request->security_token, rules, arena);
    if (err != NULL)
        return err;
    if (current == NULL)
        return domain_error_unknown(request->name, arena);
    bool is_global = current->record->domain->is_global_domain;
    if (asks_for_failover(request) && !is_global)
        return error_new(
            arena, ERR_BAD_REQUEST,
            "Local domains cannot perform failovers or change replication configuration");
    if (asks_for_failover(request))
        return error_new(
            arena, ERR_BAD_REQUEST,
            "Failing over or moving a global domain is not supported by this server version.");
    return check_may_change(is_global, rules, arena);
}

struct error *
domain_decide_update(const struct domain *current, const API(UpdateDomainRequest) *request,
                     const struct domain_rules *rules, const struct domain_moment *moment,
                     struct arena *arena, STORED(DomainRecord) **next)
{
    struct error *err = check_update(current, request, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = record_copy(current, moment, arena);
    err = update_settings(record->domain, request, rules, moment, arena);
    if (err != NULL)
        return err;
    record->config_version++;
    *next = record;
    return NULL;
}

struct error *
domain_decide_deprecate(const struct domain *current, const API(DeprecateDomainRequest) *request,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, STORED(DomainRecord) **next)
{
    struct error *err = check_name(request->name, rules, arena);
    if (err == NULL)
        err = check_permission(request->security_token, rules, arena);
    if (err != NULL)
        return err;
    if (current == NULL)
        return domain_error_unknown(request->name, arena);
    err = check_may_change(current->record->domain->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = record_copy(current, moment, arena);
    record->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    record->config_version++;
    *next = record;
    return NULL;
}
