/* types.h - the system workflows and activities that this server serves; types.c lists them. */
#ifndef CADENZA_SYSTEM_TYPES_H
#define CADENZA_SYSTEM_TYPES_H

#include "system/worker.h"

/* diagnostics.c: the diagnosis of a run. */
extern const struct system_workflow diagnostics_workflow;
extern const struct system_activity diagnostics_activity;

/* bulk.c, bulk_activity.c: batch jobs. */
extern const struct system_workflow bulk_workflow, bulk_workflow_v2;
extern const struct system_activity bulk_activity, bulk_activity_v2;

/* deprecation.c, deprecation_steps.c: the deprecation of a domain. */
extern const struct system_workflow deprecation_workflow;
extern const struct system_activity deprecation_check, deprecation_archival, deprecation_mark,
    deprecation_terminate, deprecation_count;
/* schedule.c, schedule_fire.c: a schedule, and what it starts. */
extern const struct system_workflow schedule_workflow;
extern const struct system_activity schedule_activity;
/* managed.c, managed_pick.c, managed_move.c: managed failover. */
extern const struct system_workflow managed_failover, managed_failover_v2, managed_rebalance,
    managed_rebalance_v2;
extern const struct system_activity managed_pick_activity, managed_move_activity;

#endif
