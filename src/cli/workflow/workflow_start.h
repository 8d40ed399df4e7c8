/* workflow_start.h - the parts of a start that one flag alone does not say. Inside cli/ only. */
#ifndef CADENZA_CLI_WORKFLOW_WORKFLOW_START_H
#define CADENZA_CLI_WORKFLOW_WORKFLOW_START_H

#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

/* Fields of a start, for struct cli_rpc; P is the path of the StartWorkflowExecutionRequest with a
 * dot behind it, or "". */
#define START_FIELDS(P)                                                                            \
    P "domain=domain! " P "workflow_id=workflow_id " P "workflow_type.name=workflow_type! " P      \
      "task_list.name=tasklist! " P "execution_start_to_close_timeout=execution_timeout " P        \
      "task_start_to_close_timeout=decision_timeout " P "cron_schedule=cron " P                    \
      "cron_overlap_policy=cron_overlap_policy " P                                                 \
      "workflow_id_reuse_policy=workflowidreusepolicy " P "delay_start=delay_start_seconds " P     \
      "jitter_start=jitter_start_seconds " P "first_run_at=first_run_at_time "
/* Flags of a start that workflow_complete_start reads. */
#define START_FLAGS                                                                                \
    "input input_file memo_key memo memo_file header_key header_value header_file "                \
    "search_attr_key search_attr_value retry_attempts retry_expiration retry_interval "            \
    "retry_backoff retry_max_interval cluster_attribute_scope cluster_attribute_name "

/* For struct cli_rpc: input, memo, header, search attributes, retries, cluster attribute; a fresh
 * id where none was given. */
struct error *workflow_complete_start(struct cli_call *call, ProtobufCMessage *request);
struct error *workflow_complete_signal_with_start(struct cli_call *call, ProtobufCMessage *request);
/* For struct cli_rpc of requests with an input: signals, queries. */
struct error *workflow_complete_signal(struct cli_call *call, ProtobufCMessage *request);
struct error *workflow_complete_query(struct cli_call *call, ProtobufCMessage *request);

#endif
