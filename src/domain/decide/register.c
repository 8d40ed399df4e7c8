/* register.c - a new domain, decided. See decide.h. */
#include <string.h>

#include "base/check.h"
#include "domain/active.h"
#include "domain/decide/common.h"
#include "domain/entries.h"
#include "wire/maps.h"
#include "wire/message.h"

/* Domains of the server's own have ids that tools know; NULL: it is not one of them. */
static const char *
find_own_id(const char *name)
{
    static const struct {
        const char *name, *id;
    } known[] = {
        {"cadence-system", "32049b68-7872-4094-8e63-d0dd59896a83"},
        {"cadence-batcher", "3116607e-419b-4783-85fc-47726a4c3fe9"},
        {"cadence-shadower", "59c51119-1b41-4a28-986d-d6e377716f82"},
    };
    for (size_t i = 0; i < array_length(known); i++) {
        if (strcmp(known[i].name, name) == 0)
            return known[i].id;
    }
    return NULL;
}

/* What operators demand of users' domains does not apply to the server's own. */
static struct domain_rules
own_rules(const struct domain_rules *rules)
{
    static const char *const nothing[] = {NULL};
    struct domain_rules own = *rules;
    own.retention_days_min = 1;
    own.retention_days_max = INT64_MAX;
    own.name_length_max = INT64_MAX;
    own.required_data_keys = nothing;
    own.is_admin_protected = false;
    return own;
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

static struct error *
check_request(const struct domain *current, const API(RegisterDomainRequest) *request,
              const struct domain_rules *rules, struct arena *arena)
{
    int64_t days = 0;
    struct error *err = decide_check_name(request->name, rules, arena);
    if (err == NULL)
        err = decide_read_retention(request->workflow_execution_retention_period, arena, &days);
    if (err == NULL && days > rules->retention_days_max)
        err = error_new(arena, ERR_BAD_REQUEST, "RetentionDays is invalid.");
    if (err == NULL)
        err = check_required_data(request, rules, arena);
    if (err == NULL)
        err = decide_check_permission(request->security_token, rules, arena);
    if (err == NULL)
        err = decide_check_may_change(request->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    if (current != NULL)
        return error_new(arena, ERR_DOMAIN_ALREADY_EXISTS, "Domain already exists.");
    if (!has_only_name_characters(request->name))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Domain name can only include alphanumeric and dash characters.");
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

static STORED(DomainRecord) *
record_new(const API(RegisterDomainRequest) *request, const struct domain_rules *rules,
           const struct domain_moment *moment, struct arena *arena)
{
    API(Domain) *domain = message_new(arena, API_TYPE(domain));
    const char *own_id = find_own_id(request->name);
    char id[UUID_TEXT_LENGTH + 1];
    uuid_format(&moment->fresh, id);
    domain->id = arena_text(arena, own_id != NULL ? own_id : id);
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

static void
set_first_version(STORED(DomainRecord) *record, const struct cluster_group *group,
                  struct arena *arena)
{
    API(Domain) *domain = record->domain;
    domain->failover_version = FAILOVER_VERSION_LOCAL;
    if (!domain->is_global_domain)
        return;
    const struct cluster *active = cluster_group_find(group, domain->active_cluster_name);
    check(active != NULL); /* decide_check_clusters has seen to it */
    bool has_version = cluster_group_next_version(group, active, 0, &domain->failover_version);
    check(has_version);
    decide_set_moved_version(record, domain->failover_version, arena);
}

static struct error *
set_first_archival(API(Domain) *domain, const API(RegisterDomainRequest) *request,
                   const struct domain_rules *rules, struct arena *arena)
{
    struct archival history = {request->history_archival_status, request->history_archival_uri};
    struct archival visibility = {request->visibility_archival_status,
                                  request->visibility_archival_uri};
    if (history.status == 0)
        history.status = rules->history_archival.default_status;
    if (visibility.status == 0)
        visibility.status = rules->visibility_archival.default_status;
    return decide_set_archival(domain, history, visibility, rules, arena);
}

/* The attributes that the request names, with those of the older form: region → cluster. */
static API(ActiveClusters) *
requested_attributes(const API(RegisterDomainRequest) *request, struct arena *arena)
{
    struct attributes requested = attributes_read(request->active_clusters, arena);
    for (size_t i = 0; i < request->n_active_clusters_by_region; i++) {
        const API(RegisterDomainRequest__ActiveClustersByRegionEntry) *entry =
            request->active_clusters_by_region[i];
        struct attribute region = {
            .scope = REGION_SCOPE, .name = entry->key, .cluster_name = entry->value};
        if (attributes_find(&requested, region.scope, region.name) == NULL)
            attributes_add(&requested, &region, arena);
    }
    return attributes_write(&requested, arena);
}

struct error *
domain_decide_register(const struct domain *current, const API(RegisterDomainRequest) *request,
                       const struct domain_rules *rules, const struct domain_moment *moment,
                       struct arena *arena, struct domain_decision *decision)
{
    struct domain_rules own = own_rules(rules);
    if (find_own_id(request->name) != NULL)
        rules = &own;
    struct error *err = check_request(current, request, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = record_new(request, rules, moment, arena);
    API(Domain) *domain = record->domain;
    err = decide_set_retention(domain, request->workflow_execution_retention_period, rules, arena);
    if (err == NULL && domain->is_global_domain) /* to a local one attributes mean nothing */
        err = decide_first_attributes(requested_attributes(request, arena), rules, arena,
                                      &domain->active_clusters);
    if (err == NULL)
        err = decide_check_clusters(domain, rules->group, arena);
    if (err == NULL)
        err = set_first_archival(domain, request, rules, arena);
    if (err != NULL)
        return err;
    set_first_version(record, rules->group, arena);
    *decision = (struct domain_decision){.what = DOMAIN_CREATED, .next = record};
    decide_check(current, decision);
    return NULL;
}
