/* types.h - the system workflows and activities that this server serves; types.c lists them. */
#ifndef CADENZA_SYSTEM_TYPES_H
#define CADENZA_SYSTEM_TYPES_H

#include "system/worker.h"

/* diagnostics.c: what is wrong with a run. */
extern const struct system_workflow diagnostics_workflow;
extern const struct system_activity diagnostics_activity;

/* schedule.c, schedule_fire.c: a schedule, and what it starts. */
extern const struct system_workflow schedule_workflow;
extern const struct system_activity schedule_activity;

#endif
