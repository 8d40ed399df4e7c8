/* types.c - what the server serves itself. See types.h. */
#include "system/types.h"

#include <stddef.h>

#include "system/system.h"

static const struct system_workflow *const workflows[] = {
    &diagnostics_workflow,
    &bulk_workflow,
    &bulk_workflow_v2,
    NULL,
};

static const struct system_activity *const activities[] = {
    &diagnostics_activity,
    &bulk_activity,
    &bulk_activity_v2,
    NULL,
};

const struct system_types system_types = {workflows, activities};
