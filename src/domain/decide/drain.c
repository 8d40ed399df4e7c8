/* drain.c - graceful failovers, decided: how they begin, and how they end. See decide.h and
 * common.h.
 *
 *   from \ to      active          passive             pending active
 *   active         -               a failover away     never
 *   passive        by force        -                   gracefully
 *   pending active all ready,      a newer version     -
 *                  or the timeout, elsewhere
 *                  or by force
 *
 * A drain belongs to one thing (the domain, or an attribute) and to the failover version that it
 * made of it. Every move of that thing ends it, including a move by force to where it drains to:
 * that is how an operator completes it, and it takes no new version. The end never touches a
 * failover version: what was written as pending is what will be active. */
#include <string.h>

#include "base/check.h"
#include "domain/decide/common.h"
#include "domain/drain.h"
#include "wire/message.h"
#include "wire/presence.h"

#define NANOSECONDS 1000000000LL

#define REFUSE_NOT_TARGET "Cannot start the graceful failover from a to-be-passive cluster."
#define REFUSE_IS_ACTIVE                                                                           \
    "Cannot start the graceful failover from an active cluster to an active cluster."
#define REFUSE_CONCURRENT "Cannot start concurrent graceful failover."

/* --- the list of a record ----------------------------------------------------------------------
 */

/* What Cadence's fields say of the domain's own. */
static void
show_own(STORED(DomainRecord) *record)
{
    record->previous_failover_version = -1;
    record->failover_end_time = 0;
    if (record->n_drains == 0 || drain_compare(record->drains[0], "", "") != 0)
        return;
    record->previous_failover_version = record->drains[0]->previous_failover_version;
    record->failover_end_time = record->drains[0]->end_time;
}

size_t
decide_change_drains(STORED(DomainRecord) *record, const struct drain_change *changes, size_t count,
                     struct arena *arena)
{
    STORED(Drain) **merged = arena_zalloc(arena, record->n_drains + count + 1, sizeof *merged);
    size_t put = 0, old = 0, dropped = 0;
    for (size_t i = 0; i < count; i++) {
        const struct drain_change *change = &changes[i];
        int order = -1;
        check(i == 0 || drain_order(changes[i - 1].scope, changes[i - 1].name, change->scope,
                                    change->name) < 0);
        while (old < record->n_drains &&
               (order = drain_compare(record->drains[old], change->scope, change->name)) < 0)
            merged[put++] = record->drains[old++];
        if (old < record->n_drains && order == 0) { /* it was there: the change has its place */
            dropped++;
            old++;
        }
        if (change->drain != NULL)
            merged[put++] = change->drain;
    }
    while (old < record->n_drains)
        merged[put++] = record->drains[old++];
    check(put <= record->n_drains + count && dropped <= count);
    record->drains = merged;
    record->n_drains = put;
    show_own(record);
    return dropped;
}

/* Takes one out; false: there was none. */
static bool
decide_drop_drain(STORED(DomainRecord) *record, const char *scope, const char *name,
                  struct arena *arena)
{
    struct drain_change change = {.scope = scope, .name = name};
    return decide_change_drains(record, &change, 1, arena) > 0;
}

/* --- beginning ---------------------------------------------------------------------------------
 */

struct error *
decide_read_timeout(const struct move *move, const struct domain_rules *rules, struct arena *arena,
                    int64_t *timeout)
{
    struct maybe_int64 seconds;
    struct error *err =
        presence_read_duration(arena, "failover_timeout", move->failover_timeout, &seconds);
    *timeout = 0;
    if (err != NULL || !seconds.is_set)
        return err;
    if (seconds.value <= 0)
        return error_new(arena, ERR_BAD_REQUEST, "FailoverTimeoutInSeconds must be positive");
    if (seconds.value > rules->failover_timeout_max)
        return error_new(arena, ERR_BAD_REQUEST,
                         "FailoverTimeoutInSeconds %lld exceeds the maximum allowed %lld",
                         (long long)seconds.value, (long long)rules->failover_timeout_max);
    *timeout = seconds.value * NANOSECONDS;
    return NULL;
}

/* One attribute of a graceful move. */
static struct error *
check_attribute(const struct attributes *known, const struct attribute *requested,
                const struct domain_rules *rules, struct arena *arena)
{
    const struct attribute *now = attributes_find(known, requested->scope, requested->name);
    if (now == NULL)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_NOTHING_MOVES);
    if (strcmp(requested->cluster_name, rules->group->current->name) != 0)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_NOT_TARGET);
    if (strcmp(requested->cluster_name, now->cluster_name) == 0)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_IS_ACTIVE);
    return NULL;
}

struct error *
decide_check_graceful(const struct domain *current, const struct move *move,
                      const struct domain_rules *rules, struct arena *arena)
{
    const API(Domain) *domain = current->record->domain;
    struct attributes wanted = attributes_read(move->attributes, arena);
    bool moves_itself = move->active_cluster_name != NULL;
    /* Of a domain with attributes these move gracefully, not the default. */
    if (moves_itself ? wanted.count > 0 || domain->active_clusters != NULL : wanted.count == 0)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_NOTHING_MOVES);
    if (domain_drains_to_here(current, rules->group))
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_CONCURRENT);
    struct attributes known = attributes_read(domain->active_clusters, arena);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < wanted.count; i++)
        err = check_attribute(&known, &wanted.all[i], rules, arena);
    if (err != NULL || !moves_itself)
        return err;
    if (strcmp(move->active_cluster_name, rules->group->current->name) != 0)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_NOT_TARGET);
    if (strcmp(move->active_cluster_name, domain->active_cluster_name) == 0)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_IS_ACTIVE);
    return NULL;
}

/* One thing that moves. */
struct moved {
    char *scope, *name;
    char *source_cluster;
    int64_t from, to; /* failover versions */
};

/* All clusters of the domain that take part, but this one. */
static void
list_others(const API(Domain) *domain, const struct cluster_group *group, struct arena *arena,
            STORED(Drain) *drain)
{
    drain->waits_for = arena_zalloc(arena, domain->n_clusters + 1, sizeof *drain->waits_for);
    for (size_t i = 0; i < domain->n_clusters; i++) {
        const struct cluster *cluster =
            cluster_group_find(group, domain->clusters[i]->cluster_name);
#ifdef CADENZA_FAULT_drain_waits_for_source
        /* fault: what a third cluster wrote is not waited for */
        if (strcmp(domain->clusters[i]->cluster_name, drain->source_cluster) != 0)
            continue;
#endif
        if (cluster != NULL && cluster->is_enabled && cluster != group->current)
            drain->waits_for[drain->n_waits_for++] = (char *)cluster->name;
    }
}

/* By force nothing drains: what did is over. */
static struct drain_change
change_of(const STORED(DomainRecord) *record, const struct moved *moved, int64_t timeout,
          const struct cluster_group *group, const struct domain_moment *moment,
          struct arena *arena)
{
    struct drain_change change = {.scope = moved->scope, .name = moved->name};
    if (timeout == 0)
        return change;
    check(moved->to > moved->from && moved->from >= 0);
    char id[UUID_TEXT_LENGTH + 1];
    uuid_format(&moment->fresh, id);
    STORED(Drain) *drain = message_new(arena, STORED_TYPE(drain));
    drain->scope = moved->scope;
    drain->name = moved->name;
    drain->source_cluster = moved->source_cluster;
    drain->failover_version = moved->to;
    drain->previous_failover_version = moved->from;
    drain->start_time = moment->now;
    drain->end_time = moment->now + timeout;
    drain->failover_id = arena_text(arena, id); /* history.c gives it the same one */
    drain->domain_failover_version = record->domain->failover_version;
    list_others(record->domain, group, arena, drain);
    change.drain = drain;
    return change;
}

void
decide_begin_drains(const struct domain *current, const struct move *move, int64_t timeout,
                    const struct cluster_group *group, const struct domain_moment *moment,
                    struct arena *arena, STORED(DomainRecord) *record)
{
    const API(Domain) *before = current->record->domain, *after = record->domain;
    struct attributes wanted = attributes_read(move->attributes, arena);
    struct attributes old = attributes_read(before->active_clusters, arena);
    struct attributes new = attributes_read(after->active_clusters, arena);
    struct drain_change *changes = arena_zalloc(arena, wanted.count + 1, sizeof *changes);
    size_t count = 0;
    check(timeout >= 0);
    if (move->active_cluster_name != NULL) {
        struct moved moved = {"", "", before->active_cluster_name, before->failover_version,
                              after->failover_version};
        changes[count++] = change_of(record, &moved, timeout, group, moment, arena);
    }
    for (size_t i = 0; i < wanted.count; i++) { /* in order of scope and name */
        const struct attribute *requested = &wanted.all[i];
        const struct attribute *from = attributes_find(&old, requested->scope, requested->name);
        const struct attribute *to = attributes_find(&new, requested->scope, requested->name);
        check(to != NULL && (from != NULL || timeout == 0));
        if (from == NULL)
            continue;
        struct moved moved = {to->scope, to->name, from->cluster_name, from->failover_version,
                              to->failover_version};
        changes[count++] = change_of(record, &moved, timeout, group, moment, arena);
    }
    decide_change_drains(record, changes, count, arena);
}

bool
decide_ends_drain(const struct domain *current, const struct move *move, struct arena *arena)
{
    struct attributes wanted = attributes_read(move->attributes, arena);
    if (move->active_cluster_name != NULL && domain_find_drain(current, NULL) != NULL)
        return true;
    for (size_t i = 0; i < wanted.count; i++) {
        struct cluster_attribute attribute = {wanted.all[i].scope, wanted.all[i].name};
        if (domain_find_drain(current, &attribute) != NULL)
            return true;
    }
    return false;
}

/* --- ending ------------------------------------------------------------------------------------
 */

struct error *
domain_decide_drained(const struct domain *current, const struct drain_end *end,
                      const struct domain_rules *rules, const struct domain_moment *moment,
                      struct arena *arena, struct domain_decision *decision)
{
    *decision = (struct domain_decision){.what = DOMAIN_UNCHANGED};
    struct cluster_attribute attribute = {end->scope, end->name};
    const STORED(Drain) *drain = current == NULL ? NULL : domain_find_drain(current, &attribute);
    if (drain == NULL || drain->failover_version != end->failover_version ||
        !drain_is_to_here(drain, rules->group)) /* another host was faster, or it is over (F-028) */
        return NULL;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    bool is_dropped = decide_drop_drain(record, end->scope, end->name, arena);
    check(is_dropped);
    /* No new version (F-029), but everything that waits for the domain has to be notified. */
    record->failover_notification_version = (int64_t)moment->notification_version;
    check(record->domain->failover_version == current->record->domain->failover_version);
    *decision =
        (struct domain_decision){.what = DOMAIN_UPDATED, .next = record, .failover = end->failover};
    decide_check(current, decision);
    return NULL;
}

void
domain_decide_report(const struct domain *current, STORED(FailoverRecord) *failover,
                     const struct domain_moment *moment, struct arena *arena,
                     struct domain_decision *decision)
{
    check(failover != NULL);
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    record->last_updated_time = current->record->last_updated_time; /* no cool-down begins */
    *decision =
        (struct domain_decision){.what = DOMAIN_UPDATED, .next = record, .failover = failover};
    decide_check(current, decision);
}
