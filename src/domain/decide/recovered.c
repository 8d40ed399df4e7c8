/* recovered.c - this cluster lost memory and has read from the others what they know: what is
 * active here goes on with versions that nobody has seen. See decide.h and design/031.
 *
 * The events that were lost had versions that this cluster will not write with again, so no two
 * events can have the same id, the same version and different content. The domain is told to stay
 * where it is: its version rises and the version that moved it does not, so a move that somebody
 * else made meanwhile wins. An attribute has one version only; the greater one stands. */
#include <string.h>

#include "base/check.h"
#include "domain/decide/common.h"

static bool
is_here(const char *cluster_name, const struct domain_rules *rules)
{
    return strcmp(cluster_name, rules->group->current->name) == 0;
}

/* The smallest version of the cluster above both. */
static struct error *
version_above(int64_t version, int64_t heard, const struct cluster *cluster,
              const struct domain_rules *rules, struct arena *arena, int64_t *next)
{
    int64_t least = version > heard ? version : heard;
    if (__builtin_add_overflow(least, 1, &least) ||
        !cluster_group_next_version(rules->group, cluster, least, next))
        return error_new(arena, ERR_BAD_REQUEST,
                         "No failover version is left for cluster %s: the next one would pass the "
                         "largest number.",
                         cluster->name);
    check(*next > version && *next > heard);
    return NULL;
}

/* What was pending by a graceful failover is over with the version that it made. */
static struct drain_change
drop_drain(const char *scope, const char *name)
{
    return (struct drain_change){.scope = scope, .name = name};
}

static struct error *
raise_attributes(STORED(DomainRecord) *record, int64_t heard, const struct domain_rules *rules,
                 struct arena *arena, struct drain_change *changes, size_t *count)
{
    API(Domain) *domain = record->domain;
    struct attributes all =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < all.count; i++) {
        struct attribute *attribute = &all.all[i];
        if (attribute->is_removed || !is_here(attribute->cluster_name, rules))
            continue;
        err = version_above(attribute->failover_version, heard, rules->group->current, rules, arena,
                            &attribute->failover_version);
        changes[(*count)++] = drop_drain(attribute->scope, attribute->name);
    }
    if (err == NULL && *count > 0)
        domain->active_clusters = attributes_write(&all, arena);
    return err;
}

/* The version of the domain belongs to the cluster where it is by default, wherever its attributes
 * are; it rises with each of them. */
static struct error *
raise_domain(STORED(DomainRecord) *record, int64_t heard, const struct domain_rules *rules,
             struct arena *arena)
{
    API(Domain) *domain = record->domain;
    const struct cluster *cluster = cluster_group_find(rules->group, domain->active_cluster_name);
    if (cluster == NULL) /* it is active nowhere by default */
        return NULL;
    return version_above(decide_version_above_removed(record, arena),
                         cluster == rules->group->current ? heard : -1, cluster, rules, arena,
                         &domain->failover_version);
}

struct error *
domain_decide_recovered(const struct domain *current, int64_t heard,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision)
{
    const API(Domain) *before = current->record->domain;
    check(before->is_global_domain && current->is_recovering && heard >= -1);
    struct attributes known = attributes_read(before->active_clusters, arena);
    struct drain_change *changes = arena_zalloc(arena, known.count + 1, sizeof *changes);
    size_t count = 0;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    if (is_here(before->active_cluster_name, rules))
        changes[count++] = drop_drain("", "");
    struct error *err = raise_attributes(record, heard, rules, arena, changes, &count);
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    if (err == NULL && count > 0)
        err = raise_domain(record, heard, rules, arena);
    if (err != NULL || count == 0)
        return err;
    decide_change_drains(record, changes, count, arena);
    record->failover_notification_version = (int64_t)moment->notification_version;
    const char *origin = rules->group->current->name;
    *decision = (struct domain_decision){
        .what = DOMAIN_UPDATED,
        .next = record,
        .is_recovered = true,
        .failover = decide_failover_record(before, record->domain, record->domain->failover_version,
                                           origin, moment, arena),
    };
    decide_check(current, decision);
    return NULL;
}
