/* commands_change.c - the commands that change workflows. */
#include "cli/base/commands.h"
#include "cli/workflow/workflow_start.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

#define RESET_WHERE                                                                                \
    "why reset_type decision_offset reset_bad_binary_checksum decided_after decided_before "       \
    "skip_signal_reapply "

const struct cli_command cli_change_commands[] = {
    {
        .words = "workflow signal",
        .aliases = "s",
        .summary = "Sends a signal to a workflow.",
        .examples =
            "  cadenza workflow signal --domain orders -w order-7 --name paid --input 12.5\n",
        .flags = "input input_file " PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(signal_workflow_execution_request),
                   .fields = ONE_RUN "signal_name=name!", .done = "Signal workflow succeeded.",
                   .complete = workflow_complete_signal),
    },
    {
        .words = "workflow signalwithstart",
        .summary = "Sends a signal to a workflow, and starts it first if it is not open.",
        .examples = "  cadenza workflow signalwithstart --domain orders --tl mail --wt greet -w "
                    "order-8 --name paid --signal_input 12.5 --input '\"Ann\"'\n",
        .flags = START_FLAGS "signal_input signal_input_file " PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(signal_with_start_workflow_execution_request),
                   .fields = START_FIELDS("start_request.") "signal_name=name!",
                   .done = "SignalWithStart workflow succeeded. Workflow Id: "
                           "{start_request.workflow_id}, run Id: {run_id}",
                   .complete = workflow_complete_signal_with_start),
    },
    {
        .words = "workflow cancel",
        .aliases = "c",
        .summary = "Requests cancellation of a workflow; its code may clean up first.",
        .examples =
            "  cadenza workflow cancel --domain orders -w order-7 --reason 'ordered twice'\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(request_cancel_workflow_execution_request),
                   .fields = ONE_RUN "cause=why", .done = "Cancel workflow succeeded."),
    },
    {
        .words = "workflow terminate",
        .aliases = "term",
        .summary = "Terminates a workflow at once, without involving its code.",
        .examples =
            "  cadenza workflow terminate --domain orders -w order-8 --reason 'a mistake'\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(terminate_workflow_execution_request),
                   .fields = ONE_RUN "reason=why", .done = "Terminate workflow succeeded."),
    },
    {
        .words = "workflow restart",
        .aliases = "res",
        .summary = "Starts a workflow again with the same input and options; an open run is "
                   "terminated first.",
        .examples = "  cadenza workflow restart --domain orders -w done-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(restart_workflow_execution_request),
                   .fields = ONE_RUN "reason=why",
                   .done = "Restarted Workflow Id: {workflow_execution.workflow_id}, run Id: "
                           "{run_id}"),
    },
    {
        .words = "workflow reset",
        .aliases = "rs",
        .summary = "Resets a workflow to a decision; it continues from there as a new "
                   "run.\nworkflow show --reset_points_only lists the possible events.",
        .examples = "  cadenza workflow reset --domain orders -w reset-7 --reset_type "
                    "LastDecisionCompleted --reason 'a bug is fixed'\n"
                    "  cadenza workflow reset --domain orders -w reset-7 --event_id 4 --reason "
                    "'a bug is fixed'\n",
        .flags = "domain workflow_id run_id reset_event_id " RESET_WHERE PRINTED REMOTE,
        .run = cli_workflow_reset,
    },
    {
        .words = "workflow reset-batch",
        .summary = "Resets many workflows: those that a query finds, or that a file lists. "
                   "--dry_run only\nshows what would be done.",
        .examples = "  cadenza workflow reset-batch --domain orders --query 'WorkflowID = "
                    "\"reset-7\"' --reset_type FirstDecisionCompleted --reason drill --dry_run\n",
        .flags = "domain reset_file query exclude_file exclude_query input_separator "
                 "input_parallelism skip_current_open skip_current_completed "
                 "skip_base_is_not_current only_non_deterministic dry_run " RESET_WHERE REMOTE,
        .run = cli_workflow_reset_batch,
    },
    {
        .words = "workflow batch start",
        .summary = "Performs one operation on all workflows that a query finds, as a job that the "
                   "server runs.\nIt counts them and asks before it begins.",
        .examples = "  cadenza workflow batch start --domain orders --query 'WorkflowType = "
                    "\"none\"' --batch_type terminate --reason 'a mistake' --yes\n"
                    "  cadenza workflow batch start --domain orders --query 'WorkflowType = "
                    "\"none\"' --batch_type replicate --source_cluster cluster0 --target_cluster "
                    "cluster1 --reason 'a new cluster' --yes\n",
        .flags = "domain query why batch_type batch_signal batch_input from_cluster "
                 "target_cluster rps concurrency batch_page_size batch_attempts "
                 "heart_beat_timeout_seconds yes " REMOTE,
        .run = cli_batch_start,
    },
    {
        .words = "workflow batch list",
        .aliases = "l",
        .summary = "Shows the batch jobs of a domain.",
        .examples = "  cadenza workflow batch list --domain orders\n",
        .flags = "domain page_size " PRINTED REMOTE,
        .run = cli_batch_list,
    },
    {
        .words = "workflow batch describe",
        .aliases = "desc",
        .summary = "Shows the progress of a batch job.",
        .examples = "  cadenza workflow batch describe --job_id job-1\n",
        .flags = "job_id " REMOTE,
        .run = cli_batch_describe,
    },
    {
        .words = "workflow batch terminate",
        .summary = "Ends a batch job; what it did so far is not undone.",
        .examples = "  cadenza workflow batch terminate --job_id job-1 --reason enough\n",
        .flags = "job_id why " REMOTE,
        .run = cli_batch_terminate,
    },
    {
        .words = "workflow activity complete",
        .aliases = "comp",
        .summary = "Completes an activity on behalf of its worker.",
        .examples = "  cadenza workflow activity complete --domain orders -w order-7 --activity_id "
                    "3 --result '\"paid\"'\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(respond_activity_task_completed_by_idrequest),
                   .fields = ONE_RUN "activity_id=activity_id! result=result identity=identity",
                   .done = "Complete activity successfully."),
    },
    {
        .words = "workflow activity fail",
        .summary = "Fails an activity on behalf of its worker.",
        .examples = "  cadenza workflow activity fail --domain orders -w order-7 --activity_id 4 "
                    "--reason 'no money'\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(respond_activity_task_failed_by_idrequest),
                   .fields = ONE_RUN "activity_id=activity_id! failure.reason=failure! "
                                     "failure.details=detail identity=identity",
                   .done = "Fail activity successfully."),
    },
    {
        .words = "workflow refresh-tasks",
        .aliases = "rt",
        .summary = "Regenerates the tasks and timers of a workflow, in case one was lost.",
        .examples = "  cadenza workflow refresh-tasks --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(refresh_workflow_tasks_request), .fields = ONE_RUN,
                   .done = "Refresh workflow task succeeded."),
    },
    {.words = NULL},
};
