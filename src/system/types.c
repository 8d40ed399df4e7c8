/* types.c - what the server serves itself. See types.h. */
#include "system/types.h"

#include <stddef.h>

#include "system/system.h"

static const struct system_workflow *const workflows[] = {
    &diagnostics_workflow, &schedule_workflow,
    &bulk_workflow,        &bulk_workflow_v2,
    &deprecation_workflow, &managed_failover,
    &managed_failover_v2,  &managed_rebalance,
    &managed_rebalance_v2, NULL,
};

static const struct system_activity *const activities[] = {
    &diagnostics_activity, &schedule_activity,     &bulk_activity,         &bulk_activity_v2,
    &deprecation_check,    &deprecation_archival,  &deprecation_mark,      &deprecation_terminate,
    &deprecation_count,    &managed_pick_activity, &managed_move_activity, NULL,
};

const struct system_types system_types = {workflows, activities};
