/* commands_failover.c - the commands that move domains between clusters by the dozen. */
#include "cli/commands.h"
#include "cli/failover.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

/* Which run is meant. */
#define WHICH   "run_id failover_drill v2 "
#define HOW     "managed_timeout managed_run_timeout failover_wait_time_second failover_batch_size "
#define FROM_TO "--source_cluster cluster0 --target_cluster cluster1"
#define SIGNAL(complete_, done_)                                                                   \
    RPC(.path = WORKFLOW_API("SignalWorkflowExecution"),                                           \
        .request = API_TYPE(signal_workflow_execution_request),                                    \
        .response = API_TYPE(signal_workflow_execution_response), .fields = "", .done = (done_),   \
        .complete = (complete_))

const struct cli_command cli_failover_commands[] = {
    {
        .words = "admin cluster failover start",
        .aliases = "s",
        .summary = "Moves the domains whose data have IsManagedByCadence=true out of one cluster "
                   "into another, batch by\nbatch: a workflow that the server works on. --dry_run "
                   "only lists them. A drill moves them back.",
        .examples = "  cadenza admin cluster failover start " FROM_TO " --dry_run\n"
                    "  cadenza admin cluster failover start " FROM_TO
                    " --failover_batch_size 5 --failover_wait_time_second 1 --watch\n"
                    "  cadenza admin cluster failover start " FROM_TO
                    " --domains orders,mail --failover_drill_wait_second 600\n",
        .flags = "target_cluster from_cluster " HOW "failover_domains failover_drill_wait_second "
                 "cron cluster_attributes_json v2 dry_run managed_watch " PRINTED REMOTE,
        .run = cli_failover_start,
    },
    {
        .words = "admin cluster failover pause",
        .aliases = "p",
        .summary = "Lets a failover wait before its next batch.",
        .examples = "  cadenza admin cluster failover pause\n",
        .flags = WHICH REMOTE,
        .rpc =
            SIGNAL(failover_complete_pause, "Failover paused on {workflow_execution.workflow_id}"),
    },
    {
        .words = "admin cluster failover resume",
        .aliases = "re",
        .summary = "Lets a failover that was paused go on.",
        .examples = "  cadenza admin cluster failover resume\n",
        .flags = WHICH REMOTE,
        .rpc = SIGNAL(failover_complete_resume,
                      "Failover resumed on {workflow_execution.workflow_id}"),
    },
    {
        .words = "admin cluster failover query",
        .aliases = "q",
        .summary = "Says how far a failover is, as JSON. With --watch it goes on saying so until "
                   "the failover has ended;\nthe exit code is 1 unless all domains moved.",
        .examples = "  cadenza admin cluster failover query\n"
                    "  cadenza admin cluster failover query --watch\n",
        .flags = WHICH "managed_watch " PRINTED REMOTE,
        .run = cli_failover_query,
    },
    {
        .words = "admin cluster failover abort",
        .aliases = "a",
        .summary = "Ends a failover; domains that have moved stay where they are.",
        .examples = "  cadenza admin cluster failover abort --reason 'a mistake'\n",
        .flags = WHICH "why " REMOTE,
        .rpc = RPC(.path = WORKFLOW_API("TerminateWorkflowExecution"),
                   .request = API_TYPE(terminate_workflow_execution_request),
                   .response = API_TYPE(terminate_workflow_execution_response), .fields = "",
                   .done = "Failover aborted", .complete = failover_complete_abort),
    },
    {
        .words = "admin cluster failover rollback",
        .aliases = "ro",
        .summary = "Ends a failover and brings back what it has moved, as a failover of its own.",
        .examples = "  cadenza admin cluster failover rollback\n",
        .flags = "run_id " HOW "dry_run managed_watch " PRINTED REMOTE,
        .run = cli_failover_rollback,
    },
    {
        .words = "admin cluster failover list",
        .aliases = "l",
        .summary = "Lists failovers that were.",
        .examples = "  cadenza admin cluster failover list\n"
                    "  cadenza admin cluster failover list --open\n",
        .flags = "open page_size more failover_drill v2 " PRINTED REMOTE,
        .run = cli_failover_list,
    },
    {
        .words = "admin cluster failover_fast",
        .aliases = "fof",
        .summary = "Moves all domains whose data have IsManagedByCadence=true to a cluster at "
                   "once, one after the other,\nwithout a workflow. It asks before it begins.",
        .examples = "  cadenza admin cluster failover_fast --target_cluster cluster1 --yes\n",
        .flags = "target_cluster yes " REMOTE,
        .run = cli_failover_fast,
    },
    {
        .words = "admin cluster rebalance start",
        .aliases = "s",
        .summary = "Moves each domain to the cluster that its data prefer (PreferredCluster). "
                   "--dry_run only lists them.",
        .examples = "  cadenza admin cluster rebalance start --dry_run\n"
                    "  cadenza admin cluster rebalance start\n",
        .flags = "v2 dry_run managed_watch " PRINTED REMOTE,
        .run = cli_rebalance_start,
    },
    {
        .words = "admin cluster rebalance list",
        .aliases = "l",
        .summary = "Lists rebalances that were.",
        .examples = "  cadenza admin cluster rebalance list\n",
        .flags = "open page_size more v2 " PRINTED REMOTE,
        .run = cli_rebalance_list,
    },
    {.words = NULL},
};
