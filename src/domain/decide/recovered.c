/* recovered.c - this cluster lost memory and has read from the others what they know: what is
 * active here goes on with versions that nobody has seen. See decide.h and design/031.
 *
 * What it wrote and forgot had versions that it does not write with again, ever (lost_below), so no
 * two events can have the same id, the same version and different content. All that is active here
 * gets the same version, the first one above those. The domain is told to stay where it is: its
 * version rises and the version that moved it does not, so a move that somebody else made meanwhile
 * wins. An attribute has one version only; the greater one stands. */
#include <string.h>

#include "base/check.h"
#include "domain/decide/common.h"
#include "domain/entity.h"

static bool
is_here(const char *cluster_name, const struct domain_rules *rules)
{
    return strcmp(cluster_name, rules->group->current->name) == 0;
}

static struct error *
refuse_exhausted(const struct cluster *cluster, struct arena *arena)
{
    return error_new(arena, ERR_BAD_REQUEST,
                     "No failover version is left for cluster %s: the next one would pass the "
                     "largest number.",
                     cluster->name);
}

/* The higher of two versions, if the second one is this cluster's. */
static int64_t
higher(int64_t highest, int64_t version, const struct cluster_group *group)
{
    bool is_own = version >= 0 && cluster_group_of_version(group, version) == group->current;
    return is_own && version > highest ? version : highest;
}

/* The highest version that this cluster can have written with, of what is no entity. */
static int64_t
highest_lost(const STORED(DomainRecord) *record, const struct heard_versions *heard,
             const struct cluster_group *group, struct arena *arena)
{
    const API(Domain) *domain = record->domain;
    struct attributes all =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    int64_t highest = record->lost_below - 1;
    highest = higher(highest, domain->failover_version, group);
    highest = higher(highest, heard->version, group);
    for (size_t i = 0; i < all.count; i++)
        highest = higher(highest, all.all[i].failover_version, group);
    return highest;
}

/* What was pending by a graceful failover is over with the version that it made. */
static struct drain_change
drop_drain(const char *scope, const char *name)
{
    return (struct drain_change){.scope = scope, .name = name};
}

/* Fills `changes` with what was raised; how many. */
static size_t
raise_attributes(STORED(DomainRecord) *record, int64_t next, const struct domain_rules *rules,
                 struct arena *arena, struct drain_change *changes)
{
    API(Domain) *domain = record->domain;
    struct attributes all =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++) {
        struct attribute *attribute = &all.all[i];
        if (attribute->is_removed || !is_here(attribute->cluster_name, rules))
            continue;
        check(next > attribute->failover_version);
        attribute->failover_version = next;
        changes[count++] = drop_drain(attribute->scope, attribute->name);
    }
    if (count > 0)
        domain->active_clusters = attributes_write(&all, arena);
    return count;
}

/* The version of the domain belongs to the cluster where it is by default, wherever its attributes
 * are; it rises with each of them. */
static struct error *
raise_domain(STORED(DomainRecord) *record, int64_t next, const struct domain_rules *rules,
             struct arena *arena)
{
    API(Domain) *domain = record->domain;
    const struct cluster *cluster = cluster_group_find(rules->group, domain->active_cluster_name);
    int64_t least = decide_version_above_removed(record, arena);
    if (cluster == NULL) /* it is active nowhere by default */
        return NULL;
    if (cluster == rules->group->current && next > least)
        domain->failover_version = next;
    else if (__builtin_add_overflow(least, 1, &least) ||
             !cluster_group_next_version(rules->group, cluster, least, &domain->failover_version))
        return refuse_exhausted(cluster, arena);
    return NULL;
}

/* Raises what is active here. *is_raised: something is. */
static struct error *
raise_here(STORED(DomainRecord) *record, int64_t next, const struct domain_rules *rules,
           struct arena *arena, bool *is_raised)
{
    const API(Domain) *domain = record->domain;
    struct attributes known = attributes_read(domain->active_clusters, arena);
    struct drain_change *changes = arena_zalloc(arena, known.count + 1, sizeof *changes);
    size_t count = 0;
    if (is_here(domain->active_cluster_name, rules))
        changes[count++] = drop_drain("", "");
    count += raise_attributes(record, next, rules, arena, changes + count);
    *is_raised = count > 0;
    if (count == 0)
        return NULL;
    decide_change_drains(record, changes, count, arena);
    return raise_domain(record, next, rules, arena);
}

struct error *
domain_decide_recovered(const struct domain *current, const struct heard_versions *heard,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision)
{
    const struct cluster_group *group = rules->group;
    const API(Domain) *before = current->record->domain;
    check(before->is_global_domain && heard->version >= -1 && heard->entity_version >= -1);
    check(!entity_is_version(heard->version, group));
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    int64_t next = -1, lost = highest_lost(record, heard, group, arena), skipped = 0;
    if (__builtin_mul_overflow(heard->rounds_skipped, group->failover_version_increment,
                               &skipped) ||
        __builtin_add_overflow(lost, skipped, &lost) || lost == INT64_MAX ||
        !cluster_group_next_version(group, group->current, lost + 1, &next))
        return refuse_exhausted(group->current, arena);
    record->lost_below = lost + 1;
    if (heard->entity_version >= record->lost_entity_below)
        record->lost_entity_below = heard->entity_version + 1;
    bool is_raised;
#ifdef CADENZA_FAULT_lost_version_kept
    next = lost; /* fault: it goes on with the version that it had */
#endif
    struct error *err = raise_here(record, next, rules, arena, &is_raised);
    if (err != NULL)
        return err;
    if (!is_raised) /* no cool-down begins */
        record->last_updated_time = current->record->last_updated_time;
    if (is_raised || record->n_drains > 0) /* markers are due again */
        record->failover_notification_version = (int64_t)moment->notification_version;
    *decision = (struct domain_decision){
        .what = DOMAIN_UPDATED,
        .next = record,
        .is_recovered = true,
        .failover = decide_failover_record(before, record->domain, record->domain->failover_version,
                                           group->current->name, moment, arena),
    };
    decide_check(current, decision);
    return NULL;
}
