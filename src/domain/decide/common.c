/* common.c - see common.h. */
#include "domain/decide/common.h"

#include <string.h>

#include "base/check.h"
#include "domain/domain.h"
#include "domain/drain.h"
#include "wire/presence.h"

#define SECONDS_PER_DAY (24LL * 3600)

/* --- checks ----------------------------------------------------------------------------------- */

struct error *
decide_check_name(const char *name, const struct domain_rules *rules, struct arena *arena)
{
    if (name[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Domain not set on request.");
    if ((int64_t)strlen(name) > rules->name_length_max)
        return error_new(arena, ERR_BAD_REQUEST, "Domain length exceeds limit.");
    return NULL;
}

struct error *
decide_check_permission(const char *token, const struct domain_rules *rules, struct arena *arena)
{
    if (rules->is_admin_protected && (token[0] == '\0' || strcmp(token, rules->admin_token) != 0))
        return error_new(arena, ERR_BAD_REQUEST, "No permission to do this operation.");
    return NULL;
}

struct error *
decide_check_lockdown(const struct domain_rules *rules, struct arena *arena)
{
    if (!rules->is_locked_down)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "Domain is not accepting fail overs at this time due to lockdown.");
}

struct error *
decide_check_caught_up(const struct domain_rules *rules, struct arena *arena)
{
    if (!rules->is_catching_up)
        return NULL;
    return error_new(arena, ERR_SERVICE_BUSY,
                     "This cluster lost memory (its store was restored or copied) and is reading "
                     "from the other clusters what it had; global domains cannot be changed here "
                     "until then. 'cadenza admin cluster peers' shows for whom it waits.");
}

struct error *
decide_check_may_change(bool is_global, const struct domain_rules *rules, struct arena *arena)
{
    if (!is_global)
        return NULL;
    if (!cluster_group_is_primary(rules->group))
        return error_new(
            arena, ERR_BAD_REQUEST,
            "Cluster is not primary cluster, cannot do domain registration or domain update.");
    return decide_check_caught_up(rules, arena);
}

struct error *
decide_check_cool_down(const struct domain *current, const struct domain_rules *rules,
                       const struct domain_moment *moment, struct arena *arena)
{
    bool is_global = current->record->domain->is_global_domain;
    if (is_global && moment->now - current->record->last_updated_time < rules->cool_down)
        return error_new(arena, ERR_SERVICE_BUSY, "Domain update too frequent.");
    return NULL;
}

static struct error *
check_cluster_name(const char *name, const struct cluster_group *group, struct arena *arena)
{
    const struct cluster *cluster = cluster_group_find(group, name);
    if (cluster == NULL || !cluster->is_enabled)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid cluster name: %s", name);
    return NULL;
}

static struct error *
check_global_clusters(const API(Domain) *domain, const struct cluster_group *group,
                      struct arena *arena)
{
    check(domain->is_global_domain);
    bool holds_all = domain_has_cluster(domain, domain->active_cluster_name);
    struct attributes attributes = attributes_read(domain->active_clusters, arena);
    for (size_t i = 0; i < attributes.count; i++) {
        struct error *err = check_cluster_name(attributes.all[i].cluster_name, group, arena);
        if (err != NULL)
            return err;
        holds_all = holds_all && domain_has_cluster(domain, attributes.all[i].cluster_name);
    }
    return holds_all ? NULL
                     : error_new(arena, ERR_BAD_REQUEST,
                                 "Active cluster is not contained in all clusters.");
}

struct error *
decide_check_clusters(const API(Domain) *domain, const struct cluster_group *group,
                      struct arena *arena)
{
    if (domain->is_global_domain && domain->active_cluster_name[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "ActiveClusterName is required for all global domains.");
    struct error *err = check_cluster_name(domain->active_cluster_name, group, arena);
    for (size_t i = 0; err == NULL && i < domain->n_clusters; i++)
        err = check_cluster_name(domain->clusters[i]->cluster_name, group, arena);
    if (err != NULL)
        return err;
    if (domain->is_global_domain)
        return check_global_clusters(domain, group, arena);
    if (strcmp(domain->active_cluster_name, group->current->name) != 0)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid local domain active cluster");
    if (domain->n_clusters != 1 || !domain_has_cluster(domain, domain->active_cluster_name))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid local domain clusters");
    return NULL;
}

/* --- parts of records ------------------------------------------------------------------------- */

static bool
is_deleted(const STORED(DomainRecord) *record)
{
    return record->domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

/* In order of scope and name, each thing once, and each drain with a version above the one it left.
 */
static void
check_drains(const STORED(DomainRecord) *record)
{
    for (size_t i = 0; i < record->n_drains; i++) {
        const STORED(Drain) *drain = record->drains[i];
        check(drain->failover_version > drain->previous_failover_version);
        check(i == 0 || drain_compare(record->drains[i - 1], drain->scope, drain->name) < 0);
    }
}

static void
domain_record_check(const STORED(DomainRecord) *record)
{
    const API(Domain) *domain = record->domain;
    check(record->format == DOMAIN_RECORD_FORMAT);
    check(domain->id[0] != '\0' && domain->name[0] != '\0');
    if (CHECK_DEEPLY) {
        check_drains(record);
        bool is_moving = record->n_drains > 0 || domain->active_clusters != NULL;
        check(domain->is_global_domain || !is_moving);
    }
    if (is_deleted(record) || !domain->is_global_domain)
        return; /* a delete may name a domain that this cluster never had, with any version */
    check(domain->failover_version >= 0);
    check(domain_record_moved_version(record) <= domain->failover_version);
}

/* What was known of where things are active is not unlearned: an attribute that there was is there,
 * or among those that were taken away, and its version has not fallen. */
static void
check_attributes(const STORED(DomainRecord) *before, const STORED(DomainRecord) *next)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct attributes old =
        attributes_read_all(before->domain->active_clusters, before->removed_attributes, arena);
    struct attributes new =
        attributes_read_all(next->domain->active_clusters, next->removed_attributes, arena);
    for (size_t i = 0; i < old.count; i++) {
        const struct attribute *kept = attributes_find(&new, old.all[i].scope, old.all[i].name);
        check(kept != NULL && kept->failover_version >= old.all[i].failover_version);
    }
}

void
decide_check(const struct domain *current, const struct domain_decision *decision)
{
    const STORED(DomainRecord) *next = decision->next;
    bool is_changed = decision->what != DOMAIN_UNCHANGED;
    check(is_changed == (next != NULL) && decision->entity_count == 0);
    if (!is_changed)
        return;
    domain_record_check(next);
    check(is_deleted(next) == (decision->what == DOMAIN_DELETED));
    check(decision->failover == NULL ||
          strcmp(decision->failover->domain_id, next->domain->id) == 0);
    if (current == NULL)
        return;
    check(decision->what != DOMAIN_CREATED);
    check(strcmp(current->id, next->domain->id) == 0);
    check(next->config_version >= current->record->config_version);
    check(next->domain->failover_version >= current->record->domain->failover_version);
    check(!next->domain->is_global_domain ||
          domain_record_moved_version(next) >= domain_record_moved_version(current->record));
    check(next->domain->is_global_domain == current->record->domain->is_global_domain);
    check(next->failover_notification_version >= current->record->failover_notification_version);
    if (CHECK_DEEPLY && !is_deleted(next))
        check_attributes(current->record, next);
}

STORED(DomainRecord) *
decide_copy(const struct domain *current, const struct domain_moment *moment, struct arena *arena)
{
    check(!is_deleted(current->record)); /* a last record stays as it is */
    API(Domain) *domain = arena_make(arena, API(Domain));
    *domain = *current->record->domain;
    STORED(DomainRecord) *record = arena_make(arena, STORED(DomainRecord));
    *record = *current->record;
    record->domain = domain;
    record->last_updated_time = moment->now;
    if (domain->is_global_domain) /* whatever raises its version next */
        decide_set_moved_version(record, domain_record_moved_version(record), arena);
    return record;
}

struct error *
decide_copy_settings(const struct domain *current, const char *name,
                     const struct domain_rules *rules, const struct domain_moment *moment,
                     struct arena *arena, STORED(DomainRecord) **record)
{
    if (current == NULL)
        return domain_error_unknown(name, arena);
    struct error *err = decide_check_cool_down(current, rules, moment, arena);
    if (err == NULL)
        err = decide_check_may_change(current->record->domain->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    *record = decide_copy(current, moment, arena);
    (*record)->config_version++;
    return NULL;
}

void
decide_set_moved_version(STORED(DomainRecord) *record, int64_t moved_version, struct arena *arena)
{
    check(moved_version >= 0 && moved_version <= record->domain->failover_version);
    record->moved_version = presence_make_int64(arena, (struct maybe_int64){true, moved_version});
}

struct error *
decide_read_retention(const GOOGLE(Duration) *duration, struct arena *arena, int64_t *days)
{
    struct maybe_int64 seconds;
    struct error *err =
        presence_read_duration(arena, "workflow_execution_retention_period", duration, &seconds);
    if (err == NULL)
        *days = seconds.value / SECONDS_PER_DAY;
    return err;
}

struct error *
decide_set_retention(API(Domain) *domain, const GOOGLE(Duration) *duration,
                     const struct domain_rules *rules, struct arena *arena)
{
    int64_t days = 0;
    struct error *err = decide_read_retention(duration, arena, &days);
    if (err != NULL)
        return err;
    if (days > rules->retention_days_max)
        return error_new(arena, ERR_BAD_REQUEST, "RetentionDays is invalid.");
    if (days < rules->retention_days_min)
        return error_new(arena, ERR_BAD_REQUEST, "A valid retention period is not set on request.");
    check(days >= 0);
    domain->workflow_execution_retention_period =
        presence_make_duration(arena, days * SECONDS_PER_DAY);
    return NULL;
}

/* The state after a request, where the cluster archives; else it stays. */
static struct error *
next_archival(struct archival now, struct archival request, const struct archival_rule *rule,
              struct arena *arena, struct archival *next)
{
    *next = now;
    if (!rule->is_enabled)
        return NULL;
    bool has_none = now.uri[0] == '\0' && request.uri[0] == '\0';
    if (has_none && request.status == API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED))
        request.uri = rule->default_uri;
    return archival_next(now, request, arena, next);
}

struct error *
decide_set_archival(API(Domain) *domain, struct archival history, struct archival visibility,
                    const struct domain_rules *rules, struct arena *arena)
{
    struct archival next;
    struct archival now = {domain->history_archival_status, domain->history_archival_uri};
    struct error *err = next_archival(now, history, &rules->history_archival, arena, &next);
    if (err != NULL)
        return err;
    domain->history_archival_status = next.status;
    domain->history_archival_uri = (char *)next.uri;

    now = (struct archival){domain->visibility_archival_status, domain->visibility_archival_uri};
    err = next_archival(now, visibility, &rules->visibility_archival, arena, &next);
    if (err != NULL)
        return err;
    domain->visibility_archival_status = next.status;
    domain->visibility_archival_uri = (char *)next.uri;
    return NULL;
}
