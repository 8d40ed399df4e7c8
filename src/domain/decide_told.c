/* decide_told.c - what a message of another cluster says, read and checked. See decide_told.h. */
#include "domain/decide_told.h"

#include <string.h>

#include "domain/drain.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A cluster that was removed from the group here, and neither it nor its versions are anybody's:
 * a fact as any other. Of the domain nothing else can be learned until it is active elsewhere, and
 * others may still have that cluster. */
static struct error *
check_version(const char *cluster_name, int64_t failover_version, const struct merge *merge)
{
    const struct cluster_group *group = merge->rules->group;
    const struct cluster *cluster = cluster_group_find(group, cluster_name);
    const struct cluster *owner = cluster_group_of_version(group, failover_version);
    if (cluster_name[0] == '\0')
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s names no active cluster.",
                         merge->task->domain->name);
    if (cluster != owner || failover_version < 0)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: failover version %lld does not belong to cluster %s; do all "
                         "clusters of the group have the same clusterGroupMetadata?",
                         merge->task->domain->name, (long long)failover_version, cluster_name);
    return NULL;
}

static struct error *
check_content(const struct merge *merge)
{
    const API(Domain) *domain = merge->task->domain;
    if (domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED) &&
        domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED))
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s has a status that no domain has: %d.",
                         domain->name, domain->status);
    struct error *err =
        check_version(domain->active_cluster_name, merge->task->failover_version, merge);
    struct attributes attributes = attributes_read(domain->active_clusters, merge->arena);
    for (size_t i = 0; err == NULL && i < attributes.count; i++)
        err = check_version(attributes.all[i].cluster_name, attributes.all[i].failover_version,
                            merge);
    return err;
}

struct error *
told_check_form(const struct merge *merge)
{
    const ADMIN(DomainTaskAttributes) *task = merge->task;
    if (task->domain_operation < ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE) ||
        task->domain_operation > ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The message has an operation that is not known: %d.",
                         task->domain_operation);
    if (task->domain == NULL || task->domain->name[0] == '\0')
        return error_new(merge->arena, ERR_BAD_REQUEST, "The message names no domain.");
    bool deletes = task->domain_operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
    if (deletes)
        return NULL;
    if (task->id[0] == '\0')
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s does not have its id.", task->domain->name);
    return check_content(merge);
}

static struct error *
read_failover(struct merge *merge)
{
    struct slice bytes = presence_read_bytes(merge->task->failover_record);
    if (bytes.length == 0)
        return NULL;
    struct error *err =
        message_decode(merge->arena, STORED_TYPE(failover_record), bytes, &merge->told);
    if (err != NULL)
        return error_wrap(err, "failover_record");
    const STORED(FailoverRecord) *told = merge->told;
    if (told->id[0] == '\0' || strcmp(told->domain_id, merge->task->id) != 0 ||
        told->failover_version < 0)
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "The message about domain %s tells a failover that is none of it.",
                         merge->task->domain->name);
    return NULL;
}

/* Reads which version moved the domain to where the source has it: of another make, its newest. */
static struct error *
read_moved(struct merge *merge)
{
    const ADMIN(DomainTaskAttributes) *task = merge->task;
    const struct cluster_group *group = merge->rules->group;
    struct maybe_int64 told = presence_read_int64(task->moved_version);
    merge->moved_version = told.is_set ? told.value : task->failover_version;
    if (merge->moved_version > task->failover_version || merge->moved_version < 0 ||
        cluster_group_of_version(group, merge->moved_version) !=
            cluster_group_of_version(group, task->failover_version))
        return error_new(merge->arena, ERR_BAD_REQUEST,
                         "Domain %s: version %lld cannot have moved what has failover version "
                         "%lld.",
                         task->domain->name, (long long)merge->moved_version,
                         (long long)task->failover_version);
    return NULL;
}

static int
archival_status(int status)
{
    return status == 0 ? (int)API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED) : status;
}

API(Domain) *
told_domain(const struct merge *merge)
{
    API(Domain) *domain = arena_make(merge->arena, API(Domain));
    *domain = *merge->task->domain;
    domain->id = merge->task->id;
    domain->is_global_domain = true; /* others are not replicated */
    domain->failover_version = merge->task->failover_version;
    domain->failover_info = NULL;
    domain->history_archival_status = archival_status(domain->history_archival_status);
    domain->visibility_archival_status = archival_status(domain->visibility_archival_status);
    struct attributes attributes = attributes_read(domain->active_clusters, merge->arena);
    domain->active_clusters = attributes_write(&attributes, merge->arena);
    return domain;
}

/* A cluster of another make tells by one number that the domain itself drains. */
static void
read_plain_drain(struct merge *merge)
{
    const ADMIN(DomainTaskAttributes) *task = merge->task;
    const struct cluster *source =
        cluster_group_of_version(merge->rules->group, task->previous_failover_version);
    if (task->previous_failover_version < 0 || source == NULL ||
        task->previous_failover_version >= task->failover_version)
        return;
    STORED(Drain) *drain = message_new(merge->arena, STORED_TYPE(drain));
    drain->source_cluster = (char *)source->name;
    drain->failover_version = task->failover_version;
    drain->previous_failover_version = task->previous_failover_version;
    drain->waits_for = arena_zalloc(merge->arena, 1, sizeof *drain->waits_for);
    drain->waits_for[drain->n_waits_for++] = drain->source_cluster;
    merge->drains.drains[merge->drains.count++] = drain;
}

static bool
is_sound(const STORED(Drain) *drain)
{
    bool has_scope = drain->scope[0] != '\0', has_name = drain->name[0] != '\0';
    return has_scope == has_name && drain->previous_failover_version >= 0 &&
           drain->failover_version > drain->previous_failover_version;
}

/* Reads what the message tells of graceful failovers that are under way. */
static struct error *
read_drains(struct merge *merge)
{
    const ADMIN(DomainTaskAttributes) *task = merge->task;
    merge->drains = (struct told_drains){
        .domain = told_domain(merge),
        .moved_version = merge->moved_version,
        .drains = arena_zalloc(merge->arena, task->n_drains + 1, sizeof(STORED(Drain) *)),
        .is_complete = task->tells_failovers,
    };
    if (!task->tells_failovers)
        read_plain_drain(merge);
    for (size_t i = 0; i < task->n_drains; i++) {
        STORED(Drain) *drain = NULL;
        struct error *err = message_decode(merge->arena, STORED_TYPE(drain),
                                           presence_read_bytes(task->drains[i]), &drain);
        if (err != NULL)
            return error_wrap(err, "drains");
        size_t count = merge->drains.count;
        bool is_ordered = count == 0 || drain_compare(merge->drains.drains[count - 1], drain->scope,
                                                      drain->name) < 0;
        if (!is_sound(drain) || !is_ordered)
            return error_new(merge->arena, ERR_BAD_REQUEST,
                             "The message about domain %s tells a graceful failover that is none.",
                             task->domain->name);
        merge->drains.drains[merge->drains.count++] = drain;
    }
    return NULL;
}

struct error *
told_read(struct merge *merge)
{
    struct error *err = read_moved(merge);
    if (err == NULL)
        err = read_failover(merge);
    return err != NULL ? err : read_drains(merge);
}
