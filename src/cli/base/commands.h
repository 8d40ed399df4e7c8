/* commands.h - what the tables of commands share. Inside cli/ only. */
#ifndef CADENZA_CLI_BASE_COMMANDS_H
#define CADENZA_CLI_BASE_COMMANDS_H

#include "cli/base/inside.h"
#include "wire/names.h"

#define REMOTE  "address context_timeout tls_cert_path transport jwt jwt-private-key "
#define PRINTED "format print_json "
/* Fields of a request about one run. */
#define ONE_RUN                                                                                    \
    "domain=domain! workflow_execution.workflow_id=workflow_id! workflow_execution.run_id=run_id "
#define WORKFLOW_API(name) "/uber.cadence.api.v1.WorkflowAPI/" name
#define ADMIN_API(name)    "/uber.cadence.admin.v1.AdminAPI/" name
#define SCHEDULE_API(name) "/uber.cadence.api.v1.ScheduleAPI/" name

/* A row's call. */
#define RPC(...) (&(const struct cli_rpc){__VA_ARGS__})

#endif
