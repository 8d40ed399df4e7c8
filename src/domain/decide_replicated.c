/* decide_replicated.c - a change that another cluster made, merged into what is known here. See
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
 * nothing about where the domain is: somebody who moves an attribute does not know who moves the
 * domain at the same time. It must never fall, and must be one of the active cluster: of two the
 * greater one holds, raised to the next one of the cluster that the moved version names. That may
 * be a number that nobody has told, so it depends on the order of messages; like every change it
 * is told, and once all have the same moved version all numbers belong to one cluster and the
 * greatest stands.
 *
 * Attributes are merged one by one even when the message's failover is the newer one: otherwise two
 * clusters that move different attributes at the same time would each throw away the other's.
 * Deleting is final: the last record of a deleted domain stays behind, by id, and a late message
 * cannot bring the domain back.
 *
 * Notification versions, recent failovers and times are this cluster's own and are not merged. The
 * history is: a change that is a failover carries its entry, which every cluster keeps as it is, by
 * its id, marked as superseded where nothing that it moved is in effect any more. What moved cannot
 * be told from the records: they may have been merged with others on the way. */
#include <string.h>

#include "base/check.h"
#include "domain/decide_told.h"
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
#ifdef CADENZA_PLANT_failover_version_ge
    return theirs >= ours; /* planted: a failover that is known already is applied again */
#else
    return theirs > ours;
#endif
}

/* Are names and ids the same here and there? */
static struct error *
check_collision(const struct domain *by_name, const struct domain *by_id, const struct merge *merge)
{
    const ADMIN(DomainTaskAttributes) *task = merge->task;
    if (by_name != NULL && strcmp(by_name->id, task->id) != 0)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The name %s belongs to domain %s here, and to domain %s in cluster %s.",
                         task->domain->name, by_name->id, task->id, merge->source);
    if (by_id != NULL && strcmp(by_id->name, task->domain->name) != 0)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The id %s belongs to domain %s here, and to domain %s in cluster %s.",
                         task->id, by_id->name, task->domain->name, merge->source);
    if (by_id != NULL && !by_id->record->domain->is_global_domain)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "Domain %s is local here, and global in cluster %s.", task->domain->name,
                         merge->source);
    return NULL;
}

/* --- the verbs ---------------------------------------------------------------------------------
 */

static bool
merge_settings(STORED(DomainRecord) *record, const struct merge *merge)
{
    if (merge->task->config_version <= record->config_version)
        return false;
    check(strcmp(record->domain->id, merge->task->id) == 0);
    const API(Domain) ours = *record->domain;
    *record->domain = *told_domain(merge);
    record->domain->active_cluster_name = ours.active_cluster_name;
    record->domain->failover_version = ours.failover_version;
    record->domain->active_clusters = ours.active_clusters;
    record->config_version = merge->task->config_version;
    return true;
}

/* The smallest version of that cluster that is below neither: see the head. */
static struct error *
join_versions(const char *cluster_name, int64_t ours, const struct merge *merge, int64_t *version)
{
    const struct cluster_group *group = merge->rules->group;
    const struct cluster *cluster = cluster_group_find(group, cluster_name);
    int64_t theirs = merge->task->failover_version;
    *version = theirs > ours ? theirs : ours;
    if (cluster_group_of_version(group, *version) == cluster)
        return NULL;
    if (cluster == NULL || !cluster_group_next_version(group, cluster, *version, version))
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: cluster %s, where it is active, has no failover version above "
                         "%lld here.",
                         merge->task->domain->name, cluster_name, (long long)*version);
    return NULL;
}

/* *has_moved: another version, or a move that was not known. */
static struct error *
merge_active_cluster(STORED(DomainRecord) *record, const struct merge *merge, bool *has_moved)
{
    API(Domain) *domain = record->domain;
    bool is_theirs = merge->moved_version > domain_record_moved_version(record);
    const char *name =
        is_theirs ? merge->task->domain->active_cluster_name : domain->active_cluster_name;
    int64_t version = -1;
    struct error *err = join_versions(name, domain->failover_version, merge, &version);
    if (err != NULL)
        return err;
    check(version >= domain->failover_version && version >= merge->moved_version);
    *has_moved = is_theirs || is_newer(version, domain->failover_version);
    domain->active_cluster_name = (char *)name;
    domain->failover_version = version;
    if (is_theirs)
        decide_set_moved_version(record, merge->moved_version, merge->arena);
    return NULL;
}

static bool
merge_attributes(STORED(DomainRecord) *record, const struct merge *merge)
{
    struct attributes ours = attributes_read_all(record->domain->active_clusters,
                                                 record->removed_attributes, merge->arena);
    struct attributes theirs = attributes_read_all(merge->task->domain->active_clusters,
                                                   merge->task->removed_attributes, merge->arena);
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
            attributes_add(&ours, theirs_one, merge->arena);
    }
    if (has_moved) {
        record->domain->active_clusters = attributes_write(&ours, merge->arena);
        record->removed_attributes = attributes_write_removed(&ours, merge->arena);
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
note_move(const struct domain *current, STORED(DomainRecord) *record, const struct merge *merge)
{
    const API(Domain) *before = current->record->domain, *after = record->domain;
    bool was_active_active = before->active_clusters != NULL;
    record->failover_notification_version = (int64_t)merge->moment->notification_version;
    bool is_elsewhere = strcmp(before->active_cluster_name, after->active_cluster_name) != 0;
    if (after->active_clusters == NULL && !was_active_active && is_elsewhere)
        decide_add_recent(record, before->active_cluster_name, after->active_cluster_name, "",
                          type_of(record), merge->moment, merge->arena);
}

/* The failover that the message tells, marked if it came too late. */
static STORED(FailoverRecord) *
take_told(const struct merge *merge, const STORED(DomainRecord) *after)
{
    check(merge->told != NULL);
    merge->told->is_superseded = !decide_is_in_effect(merge->told, after, merge->arena);
#ifdef CADENZA_PLANT_superseded_unmarked
    merge->told->is_superseded = false; /* planted: it came too late, and looks as any other */
#endif
    return merge->told;
}

static void
create(const struct merge *merge, struct domain_decision *decision)
{
    STORED(DomainRecord) *record = message_new(merge->arena, STORED_TYPE(domain_record));
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = told_domain(merge);
    record->config_version = merge->task->config_version;
    record->previous_failover_version = -1;
    record->removed_attributes = merge->task->removed_attributes;
    decide_set_moved_version(record, merge->moved_version, merge->arena);
    record->last_updated_time = merge->moment->now;
    decide_merge_drains(NULL, &merge->drains, merge->arena, record);
    *decision = (struct domain_decision){.what = DOMAIN_CREATED, .next = record};
    if (merge->told == NULL)
        return;
    decision->failover = take_told(merge, record);
    record->failover_notification_version = (int64_t)merge->moment->notification_version;
    if (record->domain->active_clusters == NULL)
        decide_add_recent(record, "", record->domain->active_cluster_name, "", type_of(record),
                          merge->moment, merge->arena);
}

/* Another make of server tells of no failovers. That the domain itself moved gracefully is seen
 * from the version that it left. */
static API(FailoverType)
type_told(const struct merge *merge)
{
    return merge->drains.count > 0 ? API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL)
                                   : API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE);
}

/* What is remembered of the change: the failover that its maker tells; or, of another make of
 * server, what it looks like from here: one of these that came too late leaves no trace. */
static STORED(FailoverRecord) *
failover_of(const struct domain *current, const STORED(DomainRecord) *after, bool has_moved,
            const struct merge *merge)
{
    if (merge->told != NULL)
        return take_told(merge, after);
    if (!has_moved || merge->task->tells_failovers)
        return NULL;
    STORED(FailoverRecord) *failover = decide_failover_record(
        current->record->domain, after->domain, merge->task->failover_version, merge->source,
        merge->moment, merge->arena);
    if (failover != NULL)
        failover->type = type_told(merge);
    return failover;
}

static struct error *
update(const struct domain *current, const struct merge *merge, struct domain_decision *decision)
{
    STORED(DomainRecord) *record = decide_copy(current, merge->moment, merge->arena);
    bool has_moved = false, has_settings = merge_settings(record, merge);
    struct error *err = merge_active_cluster(record, merge, &has_moved);
    if (err != NULL)
        return err;
    has_moved = merge_attributes(record, merge) || has_moved;
    bool has_drained =
        decide_merge_drains(current->record, &merge->drains, merge->arena, record) && !has_moved;
    check(record->domain->failover_version >= current->record->domain->failover_version);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (has_settings || has_moved || has_drained)
        *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    if (has_moved)
        note_move(current, record, merge);
    decision->failover = failover_of(current, record, has_moved, merge);
    return NULL;
}

/* Of a domain that this cluster never had: a message about it may still come, by another way or out
 * of the dead letters, and shall not bring it to life. */
static void
bury_unknown(const struct merge *merge, struct domain_decision *decision)
{
    STORED(DomainRecord) *last = message_new(merge->arena, STORED_TYPE(domain_record));
    last->format = DOMAIN_RECORD_FORMAT;
    last->domain = told_domain(merge);
    last->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    last->config_version = merge->task->config_version;
    last->previous_failover_version = -1;
    last->last_updated_time = merge->moment->now;
    *decision = (struct domain_decision){.what = DOMAIN_DELETED, .next = last};
}

/* By name, and by id where the message has one: another domain of that name stays. */
static struct error *delete (const struct domain *by_name, const struct domain *by_id,
                             const struct merge *merge, struct domain_decision *decision)
{
    const char *id = merge->task->id;
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (by_name == NULL || (id[0] != '\0' && strcmp(by_name->id, id) != 0)) {
        if (id[0] != '\0' && by_id == NULL)
            bury_unknown(merge, decision);
        return NULL;
    }
    if (!by_name->record->domain->is_global_domain)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "Domain %s is local here; cluster %s cannot delete it.", by_name->name,
                         merge->source);
    STORED(DomainRecord) *last = decide_copy(by_name, merge->moment, merge->arena);
    last->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    *decision = (struct domain_decision){.what = DOMAIN_DELETED, .next = last};
    return NULL;
}

struct error *
domain_decide_replicated(const struct domain *by_name, const struct domain *by_id,
                         const ADMIN(DomainTaskAttributes) *task, const char *source,
                         const struct domain_rules *rules, const struct domain_moment *moment,
                         struct arena *arena, struct domain_decision *decision)
{
    check(task != NULL && source[0] != '\0');
    struct merge merge = {task, source, rules, moment, arena, NULL, {0}, -1};
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    struct error *err = told_check_form(&merge);
    if (err != NULL || is_deleted(by_id))
        return err;
    if (task->domain_operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        return delete (by_name, by_id, &merge, decision);
    err = check_collision(by_name, by_id, &merge);
    if (err == NULL)
        err = told_read(&merge);
    if (err != NULL)
        return err;
    if (by_id != NULL)
        return update(by_id, &merge, decision);
    create(&merge, decision);
    return NULL;
}
