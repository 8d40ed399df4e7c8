/* replicated.c - a change that another cluster made, merged into what is known here. See
 * decide.h.
 *
 * The record of a global domain is a join of parts, each with a version of its own, and of each
 * part the one with the greater version wins:
 *
 *   part                                version                    who writes it
 *   settings, list of clusters          config version             the primary cluster
 *   active cluster                      moved version              any; says where it is active
 *   each attribute                      its failover version       any; says where it is active,
 *                                                                  or that it was taken away
 *
 * Equal versions have equal contents: the settings have one writer, and a failover version names
 * the cluster that it makes active. So the order in which messages arrive, and how often, does not
 * matter.
 *
 * The moved version is the failover version that moved the domain itself (docs/design/023). The
 * failover version that is shown, and written into events, rises with attributes too, so it says
 * nothing about where the domain is: a cluster that moves an attribute does not know which cluster
 * moves the domain at the same time. It must never fall, and must be one of the active cluster's:
 * of two the greater one wins, raised to the next one of the cluster that the moved version names.
 * That may be a number that no message had, so it depends on the order of messages. Like every
 * change it is replicated, and once all clusters have the same moved version, all numbers belong to
 * one cluster and the greatest wins.
 *
 * Attributes are merged one by one even when the message's failover is the newer one: otherwise two
 * clusters that move different attributes at the same time would each throw away the other's.
 * Deleting is final: the last record of a deleted domain stays behind, by id, and a late message
 * cannot bring the domain back.
 *
 * Notification versions, recent failovers and times are this cluster's own and are not merged. The
 * history is: a change that is a failover carries its entry, which every cluster keeps as it is, by
 * its id, marked as superseded where nothing that it moved is in effect any longer. The records do
 * not show what moved: they may have been merged with others on the way. */
#include <string.h>

#include "base/check.h"
#include "domain/decide/replicated_read.h"
#include "wire/message.h"

static bool
is_deleted(const struct domain *domain)
{
    return domain != NULL &&
           domain->record->domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
}

static bool
is_newer(int64_t theirs, int64_t ours)
{
#ifdef CADENZA_FAULT_failover_version_ge
    return theirs >= ours; /* fault: a failover that is known already is applied again */
#else
    return theirs > ours;
#endif
}

/* Are names and ids the same here and there? */
static struct error *
check_collision(const struct domain *by_name, const struct domain *by_id,
                const struct domain_merge *domain_merge)
{
    const ADMIN(DomainTaskAttributes) *task = domain_merge->task;
    if (by_name != NULL && strcmp(by_name->id, task->id) != 0)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The name %s belongs to domain %s here, and to domain %s in cluster %s.",
                         task->domain->name, by_name->id, task->id, domain_merge->source);
    if (by_id != NULL && strcmp(by_id->name, task->domain->name) != 0)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The id %s belongs to domain %s here, and to domain %s in cluster %s.",
                         task->id, by_id->name, task->domain->name, domain_merge->source);
    if (by_id != NULL && !by_id->record->domain->is_global_domain)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "Domain %s is local here, and global in cluster %s.", task->domain->name,
                         domain_merge->source);
    return NULL;
}

/* --- the verbs ---------------------------------------------------------------------------------
 */

static bool
merge_settings(STORED(DomainRecord) *record, const struct domain_merge *domain_merge)
{
    if (domain_merge->task->config_version <= record->config_version)
        return false;
    check(strcmp(record->domain->id, domain_merge->task->id) == 0);
    const API(Domain) ours = *record->domain;
    *record->domain = *replicated_domain(domain_merge);
    record->domain->active_cluster_name = ours.active_cluster_name;
    record->domain->failover_version = ours.failover_version;
    record->domain->active_clusters = ours.active_clusters;
    record->config_version = domain_merge->task->config_version;
    return true;
}

/* The smallest version of that cluster that is below neither: see the head. */
static struct error *
join_versions(const char *cluster_name, int64_t ours, const struct domain_merge *domain_merge,
              int64_t *version)
{
    const struct cluster_group *group = domain_merge->rules->group;
    const struct cluster *cluster = cluster_group_find(group, cluster_name);
    int64_t theirs = domain_merge->task->failover_version;
    *version = theirs > ours ? theirs : ours;
    if (cluster_group_of_version(group, *version) == cluster)
        return NULL;
    if (cluster == NULL || !cluster_group_next_version(group, cluster, *version, version))
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: cluster %s, where it is active, has no failover version above "
                         "%lld here.",
                         domain_merge->task->domain->name, cluster_name, (long long)*version);
    return NULL;
}

/* *has_moved: another version, or a move that was not known. */
static struct error *
merge_active_cluster(STORED(DomainRecord) *record, const struct domain_merge *domain_merge,
                     bool *has_moved)
{
    API(Domain) *domain = record->domain;
    bool is_theirs = domain_merge->moved_version > domain_record_moved_version(record);
    const char *name =
        is_theirs ? domain_merge->task->domain->active_cluster_name : domain->active_cluster_name;
    int64_t version = -1;
    struct error *err = join_versions(name, domain->failover_version, domain_merge, &version);
    if (err != NULL)
        return err;
    check(version >= domain->failover_version && version >= domain_merge->moved_version);
    *has_moved = is_theirs || is_newer(version, domain->failover_version);
    domain->active_cluster_name = (char *)name;
    domain->failover_version = version;
    if (is_theirs)
        decide_set_moved_version(record, domain_merge->moved_version, domain_merge->arena);
    return NULL;
}

static bool
merge_attributes(STORED(DomainRecord) *record, const struct domain_merge *domain_merge)
{
    struct attributes ours = attributes_read_all(record->domain->active_clusters,
                                                 record->removed_attributes, domain_merge->arena);
    struct attributes theirs =
        attributes_read_all(domain_merge->task->domain->active_clusters,
                            domain_merge->task->removed_attributes, domain_merge->arena);
    bool has_moved = false;
    for (size_t i = 0; i < theirs.count; i++) {
        const struct attribute *theirs_one = &theirs.all[i];
        struct attribute *known = attributes_find(&ours, theirs_one->scope, theirs_one->name);
        if (known != NULL && !attribute_is_newer(theirs_one, known))
            continue;
        has_moved = true;
        if (known != NULL)
            *known = *theirs_one;
        else
            attributes_add(&ours, theirs_one, domain_merge->arena);
    }
    if (has_moved) {
        record->domain->active_clusters = attributes_write(&ours, domain_merge->arena);
        record->removed_attributes = attributes_write_removed(&ours, domain_merge->arena);
    }
    return has_moved;
}

/* Of the newest failover of the domain itself. */
static API(FailoverType)
type_of(const STORED(DomainRecord) *record)
{
    return record->previous_failover_version >= 0 ? API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL)
                                                  : API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE);
}

/* What a move here entails. */
static void
note_move(const struct domain *current, STORED(DomainRecord) *record,
          const struct domain_merge *domain_merge)
{
    const API(Domain) *before = current->record->domain, *after = record->domain;
    bool was_active_active = before->active_clusters != NULL;
    record->failover_notification_version = (int64_t)domain_merge->moment->notification_version;
    bool is_elsewhere = strcmp(before->active_cluster_name, after->active_cluster_name) != 0;
    if (after->active_clusters == NULL && !was_active_active && is_elsewhere)
        decide_add_recent(record, before->active_cluster_name, after->active_cluster_name, "",
                          type_of(record), domain_merge->moment, domain_merge->arena);
}

/* The failover of the message, marked if it came too late. */
static STORED(FailoverRecord) *
take_replicated(const struct domain_merge *domain_merge, const STORED(DomainRecord) *after)
{
    check(domain_merge->replicated != NULL);
    domain_merge->replicated->is_superseded =
        !decide_is_in_effect(domain_merge->replicated, after, domain_merge->arena);
#ifdef CADENZA_FAULT_superseded_unmarked
    domain_merge->replicated->is_superseded =
        false; /* fault: it came too late, and looks like any other */
#endif
    return domain_merge->replicated;
}

static void
create(const struct domain_merge *domain_merge, struct domain_decision *decision)
{
    STORED(DomainRecord) *record = message_new(domain_merge->arena, STORED_TYPE(domain_record));
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = replicated_domain(domain_merge);
    record->config_version = domain_merge->task->config_version;
    record->previous_failover_version = -1;
    record->removed_attributes = domain_merge->task->removed_attributes;
    decide_set_moved_version(record, domain_merge->moved_version, domain_merge->arena);
    record->last_updated_time = domain_merge->moment->now;
    decide_merge_drains(NULL, &domain_merge->drains, domain_merge->arena, record);
    *decision = (struct domain_decision){.what = DOMAIN_CREATED, .next = record};
    decide_check(NULL, decision);
    if (domain_merge->replicated == NULL)
        return;
    decision->failover = take_replicated(domain_merge, record);
    record->failover_notification_version = (int64_t)domain_merge->moment->notification_version;
    if (record->domain->active_clusters == NULL)
        decide_add_recent(record, "", record->domain->active_cluster_name, "", type_of(record),
                          domain_merge->moment, domain_merge->arena);
}

/* Another server, such as Cadence's, sends no failover entries. The version that the domain left
 * shows that it moved gracefully. */
static API(FailoverType)
replicated_type(const struct domain_merge *domain_merge)
{
    return domain_merge->drains.count > 0 ? API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL)
                                          : API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE);
}

/* The history entry of the change: the one in the message; or, if another server such as Cadence's
 * made the change, one that says what it looks like from here. If such a change came too late, it
 * leaves no entry. */
static STORED(FailoverRecord) *
failover_of(const struct domain *current, const STORED(DomainRecord) *after, bool has_moved,
            const struct domain_merge *domain_merge)
{
    if (domain_merge->replicated != NULL)
        return take_replicated(domain_merge, after);
    if (!has_moved || domain_merge->task->tells_failovers)
        return NULL;
    STORED(FailoverRecord) *failover = decide_failover_record(
        current->record->domain, after->domain, domain_merge->task->failover_version,
        domain_merge->source, domain_merge->moment, domain_merge->arena);
    if (failover != NULL)
        failover->type = replicated_type(domain_merge);
    return failover;
}

static struct error *
update(const struct domain *current, const struct domain_merge *domain_merge,
       struct domain_decision *decision)
{
    STORED(DomainRecord) *record = decide_copy(current, domain_merge->moment, domain_merge->arena);
    bool has_moved = false, has_settings = merge_settings(record, domain_merge);
    struct error *err = merge_active_cluster(record, domain_merge, &has_moved);
    if (err != NULL)
        return err;
    has_moved = merge_attributes(record, domain_merge) || has_moved;
    bool has_drained =
        decide_merge_drains(current->record, &domain_merge->drains, domain_merge->arena, record) &&
        !has_moved;
    check(record->domain->failover_version >= current->record->domain->failover_version);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (has_settings || has_moved || has_drained)
        *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    if (has_moved)
        note_move(current, record, domain_merge);
    decision->failover = failover_of(current, record, has_moved, domain_merge);
    decide_check(current, decision);
    return NULL;
}

/* Of a domain that this cluster never had: a message about it may still come, from another cluster
 * or out of the dead letters, and must not create the domain. */
static void
bury_unknown(const struct domain_merge *domain_merge, struct domain_decision *decision)
{
    STORED(DomainRecord) *last = message_new(domain_merge->arena, STORED_TYPE(domain_record));
    last->format = DOMAIN_RECORD_FORMAT;
    last->domain = replicated_domain(domain_merge);
    last->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    last->config_version = domain_merge->task->config_version;
    last->previous_failover_version = -1;
    last->last_updated_time = domain_merge->moment->now;
    *decision = (struct domain_decision){.what = DOMAIN_DELETED, .next = last};
    decide_check(NULL, decision);
}

/* By name, and by id where the message has one: another domain with that name stays. */
static struct error *delete (const struct domain *by_name, const struct domain *by_id,
                             const struct domain_merge *domain_merge,
                             struct domain_decision *decision)
{
    const char *id = domain_merge->task->id;
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (by_name == NULL || (id[0] != '\0' && strcmp(by_name->id, id) != 0)) {
        if (id[0] != '\0' && by_id == NULL)
            bury_unknown(domain_merge, decision);
        return NULL;
    }
    if (!by_name->record->domain->is_global_domain)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "Domain %s is local here; cluster %s cannot delete it.", by_name->name,
                         domain_merge->source);
    STORED(DomainRecord) *last = decide_copy(by_name, domain_merge->moment, domain_merge->arena);
    last->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    *decision = (struct domain_decision){.what = DOMAIN_DELETED, .next = last};
    decide_check(by_name, decision);
    return NULL;
}

struct error *
domain_decide_replicated(const struct domain *by_name, const struct domain *by_id,
                         const ADMIN(DomainTaskAttributes) *task, const char *source,
                         const struct domain_rules *rules, const struct domain_moment *moment,
                         struct arena *arena, struct domain_decision *decision)
{
    check(task != NULL && source[0] != '\0');
    struct domain_merge domain_merge = {task, source, rules, moment, arena, NULL, {0}, -1};
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    struct error *err = replicated_check_form(&domain_merge);
    if (err != NULL || is_deleted(by_id))
        return err;
    if (task->domain_operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        return delete (by_name, by_id, &domain_merge, decision);
    err = check_collision(by_name, by_id, &domain_merge);
    if (err == NULL)
        err = replicated_read(&domain_merge);
    if (err != NULL)
        return err;
    if (by_id != NULL)
        return update(by_id, &domain_merge, decision);
    create(&domain_merge, decision);
    return NULL;
}
