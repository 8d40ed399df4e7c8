/* message.h - the message that replicates a change of a global domain to other clusters. Pure. */
#ifndef CADENZA_DOMAIN_MESSAGE_H
#define CADENZA_DOMAIN_MESSAGE_H

#include "base/arena.h"
#include "cadenza/storage/v1/domain.pb-c.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "wire/names.h"

/* Points into `change`. Its source_task_id is the notification version that the change left. */
ADMIN(ReplicationTask) *domain_replication_task(const STORED(DomainChange) *change,
                                                struct arena *arena);

#endif
