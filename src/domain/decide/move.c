/* move.c - a failover of a global domain or of its attributes, decided. See common.h.
 *
 * The failover version of the domain becomes the smallest one of the target that is not below the
 * old one, so that a move is newer than all before. A domain with attributes takes a strictly
 * greater one with each move, even when only an attribute moves, so that a client that watches the
 * domain's version sees every failover. A request that names the cluster where the domain already
 * is, and moves nothing else, is accepted and changes nothing. An attribute that moves takes a
 * strictly greater version of its own; one that is told to stay where it is keeps its version. The
 * version that moved the domain itself is kept beside it: it says which of two moves that did not
 * know of each other wins. Versions that a client sends are ignored. The version of the settings
 * never changes here: it has one writer, the primary, and failovers have many. */
#include <string.h>

#include "base/check.h"
#include "domain/active.h"
#include "domain/decide/common.h"
#include "wire/presence.h"

static struct error *
refuse_exhausted(const char *what, const struct cluster *cluster, struct arena *arena)
{
    return error_new(arena, ERR_BAD_REQUEST,
                     "%s has no failover version left for cluster %s: the next one would pass "
                     "the largest number; use a new domain instead.",
                     what, cluster->name);
}

/* --- attributes ------------------------------------------------------------------------------- */

static struct error *
check_attribute_names(const struct attribute *attribute, const struct domain_rules *rules,
                      struct arena *arena)
{
    if (attribute->scope[0] == '\0' || attribute->name[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST,
                         "A cluster attribute needs a scope and a name; neither may be empty.");
    if ((int64_t)strlen(attribute->scope) > rules->name_length_max ||
        (int64_t)strlen(attribute->name) > rules->name_length_max)
        return error_new(arena, ERR_BAD_REQUEST,
                         "The scope or name of a cluster attribute exceeds %lld bytes.",
                         (long long)rules->name_length_max);
    return NULL;
}

static struct error *
check_attribute(const struct attribute *requested, const struct domain_rules *rules,
                struct arena *arena)
{
    struct error *err = check_attribute_names(requested, rules, arena);
    if (err != NULL)
        return err;
    const struct cluster *cluster = cluster_group_find(rules->group, requested->cluster_name);
    if (cluster == NULL || !cluster->is_enabled)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid active cluster name: %s",
                         requested->cluster_name);
    if (requested->failover_version < 0)
        return error_new(arena, ERR_BAD_REQUEST, "invalid failover version: %lld",
                         (long long)requested->failover_version);
    return NULL;
}

/* What this cluster takes is above what it wrote with before it lost memory. */
static int64_t
above_lost(int64_t least, const STORED(DomainRecord) *record, const struct cluster *target,
           const struct domain_rules *rules)
{
    bool is_here = target == rules->group->current;
    return is_here && record->lost_below > least ? record->lost_below : least;
}

/* What the next version of an attribute must be above, -1: nothing. Workflows of one that was taken
 * away may have followed the domain meanwhile, so if it comes back it is newer than both. */
static int64_t
version_before(const struct attribute *known, const API(Domain) *domain)
{
    if (known == NULL)
        return -1;
    bool followed = known->is_removed && domain->failover_version > known->failover_version;
    return followed ? domain->failover_version : known->failover_version;
}

/* Moves one attribute, or adds it. */
static struct error *
move_attribute(const STORED(DomainRecord) *record, struct attributes *attributes,
               const struct attribute *requested, const struct domain_rules *rules,
               struct arena *arena, bool *has_moved)
{
    struct error *err = check_attribute(requested, rules, arena);
    if (err != NULL)
        return err;
    const struct cluster *target = cluster_group_find(rules->group, requested->cluster_name);
    struct attribute *known = attributes_find(attributes, requested->scope, requested->name);
    bool is_there = known != NULL && !known->is_removed;
    if (is_there && strcmp(known->cluster_name, requested->cluster_name) == 0)
        return NULL;
    struct attribute next = *requested;
    int64_t least = 0;
    if (__builtin_add_overflow(version_before(known, record->domain), 1, &least) ||
        !cluster_group_next_version(rules->group, target, above_lost(least, record, target, rules),
                                    &next.failover_version))
        return refuse_exhausted("The cluster attribute", target, arena);
    check(known == NULL || next.failover_version > known->failover_version);
    check(cluster_group_of_version(rules->group, next.failover_version) == target);
#ifdef CADENZA_FAULT_attribute_version_reused
    bool is_first = cluster_group_next_version(rules->group, target, 0, &next.failover_version);
    check(is_first); /* fault: what comes back has the version that it had there before */
#endif
    *has_moved = true;
    if (known != NULL)
        *known = next;
    else
        attributes_add(attributes, &next, arena);
    return NULL;
}

#ifdef CADENZA_FAULT_other_attribute_moved
static const char *
first_name(const struct attributes *attributes, const char *scope)
{
    size_t i = 0;
    while (strcmp(attributes->all[i].scope, scope) != 0)
        i++;
    return attributes->all[i].name;
}
#endif

static struct error *
move_attributes(STORED(DomainRecord) *record, const API(ActiveClusters) *requested,
                const struct domain_rules *rules, struct arena *arena, bool *has_moved)
{
    API(Domain) *domain = record->domain;
    struct attributes attributes =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    struct attributes wanted = attributes_read(requested, arena);
    bool moves_regions = false;
    for (size_t i = 0; i < wanted.count; i++) {
        struct error *err =
            move_attribute(record, &attributes, &wanted.all[i], rules, arena, has_moved);
        if (err != NULL)
            return err;
        moves_regions = moves_regions || strcmp(wanted.all[i].scope, REGION_SCOPE) == 0;
    }
#ifdef CADENZA_FAULT_other_attribute_moved
    if (*has_moved && wanted.count > 0) { /* fault: the first of the scope goes along */
        struct attribute along = wanted.all[0];
        along.name = (char *)first_name(&attributes, along.scope);
        struct error *fault = move_attribute(record, &attributes, &along, rules, arena, has_moved);
        check(fault == NULL);
    }
#endif
    struct error *err = decide_check_attribute_count(&attributes, rules, arena);
    if (err == NULL && moves_regions)
        err = decide_check_regions(&attributes, rules->group, arena);
    domain->active_clusters = attributes_write(&attributes, arena);
    record->removed_attributes = attributes_write_removed(&attributes, arena);
    return err;
}

struct error *
decide_first_attributes(const API(ActiveClusters) *requested, const struct domain_rules *rules,
                        struct arena *arena, API(ActiveClusters) **first)
{
    struct attributes wanted = attributes_read(requested, arena);
    for (size_t i = 0; i < wanted.count; i++) {
        struct attribute *attribute = &wanted.all[i];
        struct error *err = check_attribute_names(attribute, rules, arena);
        if (err != NULL)
            return err;
        const struct cluster *cluster = cluster_group_find(rules->group, attribute->cluster_name);
        if (cluster == NULL)
            return error_new(arena, ERR_BAD_REQUEST,
                             "Cluster %s not found. Domain cannot be registered in this cluster "
                             "for scope \"%s\" and attribute \"%s\"",
                             attribute->cluster_name, attribute->scope, attribute->name);
        bool has_version =
            cluster_group_next_version(rules->group, cluster, 0, &attribute->failover_version);
        check(has_version);
    }
    *first = attributes_write(&wanted, arena);
    struct error *err = decide_check_attribute_count(&wanted, rules, arena);
    return err != NULL ? err : decide_check_regions(&wanted, rules->group, arena);
}

/* --- the domain ------------------------------------------------------------------------------- */

static struct error *
raise_version(STORED(DomainRecord) *record, bool is_strict, const struct domain_rules *rules,
              struct arena *arena)
{
    API(Domain) *domain = record->domain;
    const struct cluster *target = cluster_group_find(rules->group, domain->active_cluster_name);
    check(target != NULL); /* decide_check_clusters has seen to it */
    int64_t least = decide_version_above_removed(record, arena), next = -1;
    if ((is_strict && __builtin_add_overflow(least, 1, &least)) ||
        !cluster_group_next_version(rules->group, target, above_lost(least, record, target, rules),
                                    &next))
        return refuse_exhausted("The domain", target, arena);
    check(next >= domain->failover_version);
    check(cluster_group_of_version(rules->group, next) == target);
    domain->failover_version = next;
    return NULL;
}

/* A default that was told to stay, or whose version rose with an attribute, has not moved: another
 * cluster may have moved it at the same time, and then that move wins. */
static bool
has_moved_itself(const API(Domain) *before, const API(Domain) *after)
{
#ifdef CADENZA_FAULT_attribute_moves_default
    return after->failover_version > before->failover_version; /* fault */
#endif
    return strcmp(before->active_cluster_name, after->active_cluster_name) != 0;
}

/* Where everything is to be active, without versions of the domain itself. *has_moved: something is
 * different from what was; otherwise the default was told to stay. */
static struct error *
move_all(const struct domain *current, const struct move *move, const struct domain_rules *rules,
         struct arena *arena, STORED(DomainRecord) *record, bool *has_moved)
{
    API(Domain) *domain = record->domain;
    *has_moved = decide_ends_drain(current, move, arena) ||
                 record->config_version != current->record->config_version;
    if (move->active_cluster_name != NULL) {
        *has_moved =
            *has_moved || strcmp(domain->active_cluster_name, move->active_cluster_name) != 0;
        domain->active_cluster_name = (char *)move->active_cluster_name;
    }
    struct error *err = NULL;
    if (move_removes(move)) {
        *has_moved = true;
        err = decide_remove_attributes(record, move, rules, arena);
    }
    if (err == NULL && move->attributes != NULL)
        err = move_attributes(record, move->attributes, rules, arena, has_moved);
    if (err != NULL)
        return err;
    if (!*has_moved && move->active_cluster_name == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "a failover was requested, but there was no change detected, the "
                         "configuration was not updated");
    return decide_check_clusters(domain, rules->group, arena);
}

/* The group may have given the cluster another initial version since the domain came to it. */
static bool
takes_new_version(const STORED(DomainRecord) *record, const struct domain_rules *rules,
                  struct arena *arena)
{
    API(Domain) domain = *record->domain;
    STORED(DomainRecord) copy = *record;
    copy.domain = &domain;
    struct error *err = raise_version(&copy, false, rules, arena);
    return err != NULL || domain.failover_version != record->domain->failover_version;
}

static API(FailoverType)
failover_type(int64_t timeout)
{
    return timeout > 0 ? API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL)
                       : API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE);
}

/* What a move in this cluster entails: everything that waits for the domain is notified, even when
 * the move only ends a drain. */
static void
note_move(const struct domain *current, const struct move *move, int64_t timeout,
          const struct domain_moment *moment, struct arena *arena, STORED(DomainRecord) *record)
{
    const API(Domain) *before = current->record->domain, *after = record->domain;
    if (after->failover_version > before->failover_version ||
        decide_ends_drain(current, move, arena))
        record->failover_notification_version = (int64_t)moment->notification_version;
    if (after->active_clusters == NULL && !move_removes(move))
        decide_add_recent(record, before->active_cluster_name, after->active_cluster_name,
                          move->reason, failover_type(timeout), moment, arena);
}

struct error *
decide_move(const struct domain *current, const struct move *move, const struct domain_rules *rules,
            const struct domain_moment *moment, struct arena *arena, STORED(DomainRecord) *record,
            struct domain_decision *decision)
{
    const API(Domain) *before = current->record->domain;
    API(Domain) *after = record->domain;
    check(before->is_global_domain && before->failover_version >= 0);
    check(record != current->record && after != before); /* a copy: `current` is shared */
    int64_t timeout = 0;
    bool has_moved = false;
    struct error *err = decide_check_caught_up(rules, arena);
    if (err == NULL)
        err = decide_read_timeout(move, rules, arena, &timeout);
    if (err == NULL && timeout > 0)
        err = decide_check_graceful(current, move, rules, arena);
    if (err == NULL)
        err = move_all(current, move, rules, arena, record, &has_moved);
    if (err == NULL && !has_moved && !takes_new_version(record, rules, arena)) {
        *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
        return NULL;
    }
    if (err == NULL && !decide_ends_drain(current, move, arena)) /* which takes effect at once */
        err = decide_check_cool_down(current, rules, moment, arena);
    bool is_active_active = after->active_clusters != NULL;
    if (err == NULL)
        err = raise_version(record, is_active_active || move_removes(move), rules, arena);
    if (err != NULL)
        return err;

    if (has_moved_itself(before, after))
        decide_set_moved_version(record, after->failover_version, arena);
    decide_begin_drains(current, move, timeout, rules->group, moment, arena, record);
    note_move(current, move, timeout, moment, arena, record);
    const char *origin = rules->group->current->name;
    *decision = (struct domain_decision){
        .what = DOMAIN_UPDATED,
        .next = record,
        .failover =
            decide_failover_record(before, after, after->failover_version, origin, moment, arena),
    };
    if (decision->failover != NULL)
        decision->failover->type = failover_type(timeout);
    decide_check(current, decision);
    return NULL;
}
