/* replicated_read.c - what a message of another cluster says, read and checked. See
 * replicated_read.h.
 */
#include "domain/decide/replicated_read.h"

#include <string.h>

#include "base/check.h"
#include "domain/drain.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A cluster that was removed from this cluster's group is accepted: neither it nor the remainder of
 * its versions is known here, and others may still have it. Otherwise nothing about the domain
 * could be learned until it is active elsewhere. */
static struct error *
check_version(const char *cluster_name, int64_t failover_version,
              const struct domain_merge *domain_merge)
{
    const struct cluster_group *group = domain_merge->rules->group;
    const struct cluster *cluster = cluster_group_find(group, cluster_name);
    const struct cluster *owner = cluster_group_of_version(group, failover_version);
    if (cluster_name[0] == '\0')
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s names no active cluster.",
                         domain_merge->task->domain->name);
    if (cluster != owner || failover_version < 0)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: failover version %lld does not belong to cluster %s; do all "
                         "clusters of the group have the same clusterGroupMetadata?",
                         domain_merge->task->domain->name, (long long)failover_version,
                         cluster_name);
    return NULL;
}

static struct error *
check_content(const struct domain_merge *domain_merge)
{
    const API(Domain) *domain = domain_merge->task->domain;
    if (domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED) &&
        domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED))
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s has a status that no domain has: %d.",
                         domain->name, domain->status);
    struct error *err = check_version(domain->active_cluster_name,
                                      domain_merge->task->failover_version, domain_merge);
    struct attributes attributes = attributes_read(domain->active_clusters, domain_merge->arena);
    for (size_t i = 0; err == NULL && i < attributes.count; i++)
        err = check_version(attributes.all[i].cluster_name, attributes.all[i].failover_version,
                            domain_merge);
    return err;
}

struct error *
replicated_check_form(const struct domain_merge *domain_merge)
{
    const ADMIN(DomainTaskAttributes) *task = domain_merge->task;
    if (task->domain_operation < ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE) ||
        task->domain_operation > ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The message has an operation that is not known: %d.",
                         task->domain_operation);
    if (task->domain == NULL || task->domain->name[0] == '\0')
        return error_new(domain_merge->arena, ERR_BAD_REQUEST, "The message names no domain.");
    bool deletes = task->domain_operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
    if (deletes)
        return NULL;
    if (task->id[0] == '\0')
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s does not have its id.", task->domain->name);
    return check_content(domain_merge);
}

static struct error *
read_failover(struct domain_merge *domain_merge)
{
    struct slice bytes = presence_read_bytes(domain_merge->task->failover_record);
    if (bytes.length == 0)
        return NULL;
    struct error *err = message_decode(domain_merge->arena, STORED_TYPE(failover_record), bytes,
                                       &domain_merge->replicated);
    if (err != NULL)
        return error_wrap(err, "failover_record");
    const STORED(FailoverRecord) *replicated = domain_merge->replicated;
    if (replicated->id[0] == '\0' || strcmp(replicated->domain_id, domain_merge->task->id) != 0 ||
        replicated->failover_version < 0)
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s carries a failover of another domain.",
                         domain_merge->task->domain->name);
    return NULL;
}

/* Reads which version moved the domain to where the source has it: without a moved version (Cadence
 * sends none) its newest. */
static struct error *
read_moved(struct domain_merge *domain_merge)
{
    const ADMIN(DomainTaskAttributes) *task = domain_merge->task;
    const struct cluster_group *group = domain_merge->rules->group;
    struct maybe_int64 replicated = presence_read_int64(task->moved_version);
    domain_merge->moved_version = replicated.is_set ? replicated.value : task->failover_version;
    if (domain_merge->moved_version > task->failover_version || domain_merge->moved_version < 0 ||
        cluster_group_of_version(group, domain_merge->moved_version) !=
            cluster_group_of_version(group, task->failover_version))
        return error_new(domain_merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: version %lld cannot have moved what has failover version "
                         "%lld.",
                         task->domain->name, (long long)domain_merge->moved_version,
                         (long long)task->failover_version);
    return NULL;
}

static int
archival_status(int status)
{
    return status == 0 ? (int)API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED) : status;
}

API(Domain) *
replicated_domain(const struct domain_merge *domain_merge)
{
    API(Domain) *domain = arena_make(domain_merge->arena, API(Domain));
    *domain = *domain_merge->task->domain;
    domain->id = domain_merge->task->id;
    domain->is_global_domain = true; /* others are not replicated */
    domain->failover_version = domain_merge->task->failover_version;
    domain->failover_info = NULL;
    domain->history_archival_status = archival_status(domain->history_archival_status);
    domain->visibility_archival_status = archival_status(domain->visibility_archival_status);
    struct attributes attributes = attributes_read(domain->active_clusters, domain_merge->arena);
    domain->active_clusters = attributes_write(&attributes, domain_merge->arena);
    return domain;
}

/* Cadence says with one number that the domain itself drains. */
static void
read_plain_drain(struct domain_merge *domain_merge)
{
    const ADMIN(DomainTaskAttributes) *task = domain_merge->task;
    const struct cluster *source =
        cluster_group_of_version(domain_merge->rules->group, task->previous_failover_version);
    if (task->previous_failover_version < 0 || source == NULL ||
        task->previous_failover_version >= task->failover_version)
        return;
    STORED(Drain) *drain = message_new(domain_merge->arena, STORED_TYPE(drain));
    drain->source_cluster = (char *)source->name;
    drain->failover_version = task->failover_version;
    drain->previous_failover_version = task->previous_failover_version;
    drain->waits_for = arena_zalloc(domain_merge->arena, 1, sizeof *drain->waits_for);
    drain->waits_for[drain->n_waits_for++] = drain->source_cluster;
    check(domain_merge->drains.count == 0);
    domain_merge->drains.drains[domain_merge->drains.count++] = drain;
}

static bool
is_sound(const STORED(Drain) *drain)
{
    bool has_scope = drain->scope[0] != '\0', has_name = drain->name[0] != '\0';
    return has_scope == has_name && drain->previous_failover_version >= 0 &&
           drain->failover_version > drain->previous_failover_version;
}

/* Reads what the message says of graceful failovers that are under way. */
static struct error *
read_drains(struct domain_merge *domain_merge)
{
    const ADMIN(DomainTaskAttributes) *task = domain_merge->task;
    domain_merge->drains = (struct replicated_drains){
        .domain = replicated_domain(domain_merge),
        .moved_version = domain_merge->moved_version,
        .drains = arena_zalloc(domain_merge->arena, task->n_drains + 1, sizeof(STORED(Drain) *)),
        .is_complete = task->tells_failovers,
    };
    if (!task->tells_failovers)
        read_plain_drain(domain_merge);
    for (size_t i = 0; i < task->n_drains; i++) {
        STORED(Drain) *drain = NULL;
        struct error *err = message_decode(domain_merge->arena, STORED_TYPE(drain),
                                           presence_read_bytes(task->drains[i]), &drain);
        if (err != NULL)
            return error_wrap(err, "drains");
        size_t count = domain_merge->drains.count;
        bool is_ordered = count == 0 || drain_compare(domain_merge->drains.drains[count - 1],
                                                      drain->scope, drain->name) < 0;
        if (!is_sound(drain) || !is_ordered)
            return error_new(
                domain_merge->arena, ERR_BAD_REQUEST,
                "The message about domain %s carries a graceful failover that is not valid.",
                task->domain->name);
        check(count <= task->n_drains); /* there is room for one more than those */
        domain_merge->drains.drains[domain_merge->drains.count++] = drain;
    }
    return NULL;
}

struct error *
replicated_read(struct domain_merge *domain_merge)
{
    check(domain_merge->task->domain != NULL && domain_merge->task->id[0] != '\0');
    struct error *err = read_moved(domain_merge);
    if (err == NULL)
        err = read_failover(domain_merge);
    return err != NULL ? err : read_drains(domain_merge);
}
