/* message.c - the message that replicates a change to other clusters. See message.h.
 *
 * It holds the whole domain after the change, as Cadence's does, and beside it the entry that the
 * change made in the failover history: records do not show what moved (decide/replicated.c). */
#include "domain/message.h"

#include "base/check.h"
#include "domain/domain.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The failover as its maker made it; whether it was superseded is each cluster's own. */
static ProtobufCBinaryData
failover_bytes(const STORED(FailoverRecord) *failover, struct arena *arena)
{
    STORED(FailoverRecord) copy = *failover;
    copy.is_superseded = false;
    return presence_make_bytes(message_encode(arena, &copy.base));
}

/* Does the message say that the change is a failover? */
static bool
sends_failover(const STORED(DomainChange) *change)
{
#ifdef CADENZA_FAULT_own_move_not_sent
    /* fault: a domain with attributes does not say that its own active cluster moved */
    const STORED(FailoverRecord) *failover = change->failover;
    if (failover != NULL && failover->n_cluster_failovers > 0 &&
        failover->cluster_failovers[0]->cluster_attribute == NULL &&
        change->record->domain->active_clusters != NULL)
        return false;
#endif
    return change->failover != NULL;
}

/* When a drain ends is decided by its target alone. */
static void
add_drains(const STORED(DomainRecord) *record, struct arena *arena,
           ADMIN(DomainTaskAttributes) *attributes)
{
    attributes->drains = arena_zalloc(arena, record->n_drains + 1, sizeof *attributes->drains);
    for (size_t i = 0; i < record->n_drains; i++) {
        STORED(Drain) copy = *record->drains[i];
        copy.end_time = 0;
        attributes->drains[attributes->n_drains++] =
            presence_make_bytes(message_encode(arena, &copy.base));
    }
}

ADMIN(ReplicationTask) *
domain_replication_task(const STORED(DomainChange) *change, struct arena *arena)
{
    const STORED(DomainRecord) *record = change->record;
    check(record->domain->is_global_domain);
    ADMIN(DomainTaskAttributes) *attributes =
        message_new(arena, ADMIN_TYPE(domain_task_attributes));
    attributes->domain_operation = change->operation;
    attributes->id = record->domain->id;
    attributes->config_version = record->config_version;
    attributes->failover_version = record->domain->failover_version;
    attributes->previous_failover_version = record->previous_failover_version;

    API(Domain) *domain = arena_make(arena, API(Domain));
    *domain = *record->domain;
    domain->id = "";
    domain->failover_version = 0;
    domain->is_global_domain = false;
    if (domain->status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED))
        domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    attributes->domain = domain;
    attributes->removed_attributes = record->removed_attributes;
    attributes->tells_failovers = true;
    attributes->moved_version =
        presence_make_int64(arena, (struct maybe_int64){true, domain_record_moved_version(record)});
    if (sends_failover(change))
        attributes->failover_record = failover_bytes(change->failover, arena);
    add_drains(record, arena, attributes);

    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_DOMAIN);
    task->source_task_id = record->notification_version;
    task->creation_time = presence_make_timestamp(arena, record->last_updated_time);
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES);
    task->domain_task_attributes = attributes;
    return task;
}
