/* commands_failover.c - the commands that move domains between clusters by the dozen. */
#include "cli/base/commands.h"
#include "cli/failover/failover.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

/* Which run is meant. */
#define WHICH   "run_id failover_drill v2 "
#define HOW     "managed_timeout managed_run_timeout failover_wait_time_second failover_batch_size "
#define FROM_TO "--source_cluster cluster0 --target_cluster cluster1"
#define SIGNAL(complete_, done_)                                                                   \
    RPC(.request = API_TYPE(signal_workflow_execution_request), .fields = "", .done = (done_),     \
        .complete = (complete_))

const struct cli_command cli_failover_commands[] = {
    {
        .words = "admin cluster failover start",
        .aliases = "s",
        .summary = "Moves the domains whose data have IsManagedByCadence=true from one cluster to "
                   "another, batch by\nbatch, in a workflow that the server runs. --dry_run only "
                   "lists them. A drill moves them back.",
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
        .summary = "Pauses a failover before its next batch.",
        .examples = "  cadenza admin cluster failover pause\n",
        .flags = WHICH REMOTE,
        .rpc =
            SIGNAL(failover_complete_pause, "Failover paused on {workflow_execution.workflow_id}"),
    },
    {
        .words = "admin cluster failover resume",
        .aliases = "re",
        .summary = "Resumes a paused failover.",
        .examples = "  cadenza admin cluster failover resume\n",
        .flags = WHICH REMOTE,
        .rpc = SIGNAL(failover_complete_resume,
                      "Failover resumed on {workflow_execution.workflow_id}"),
    },
    {
        .words = "admin cluster failover query",
        .aliases = "q",
        .summary = "Shows the progress of a failover as JSON. --watch follows it until it has "
                   "ended; the exit code is\nthen 1 unless all domains moved.",
        .examples = "  cadenza admin cluster failover query\n"
                    "  cadenza admin cluster failover query --watch\n",
        .flags = WHICH "managed_watch " PRINTED REMOTE,
        .run = cli_failover_query,
    },
    {
        .words = "admin cluster failover abort",
        .aliases = "a",
        .summary = "Ends a failover; domains that have moved are not moved back.",
        .examples = "  cadenza admin cluster failover abort --reason 'a mistake'\n",
        .flags = WHICH "why " REMOTE,
        .rpc = RPC(.request = API_TYPE(terminate_workflow_execution_request), .fields = "",
                   .done = "Failover aborted", .complete = failover_complete_abort),
    },
    {
        .words = "admin cluster failover rollback",
        .aliases = "ro",
        .summary = "Ends a failover and moves the domains back, as another failover.",
        .examples = "  cadenza admin cluster failover rollback\n",
        .flags = "run_id " HOW "dry_run managed_watch " PRINTED REMOTE,
        .run = cli_failover_rollback,
    },
    {
        .words = "admin cluster failover list",
        .aliases = "l",
        .summary = "Lists past failovers.",
        .examples = "  cadenza admin cluster failover list\n"
                    "  cadenza admin cluster failover list --open\n",
        .flags = "open page_size more failover_drill v2 " PRINTED REMOTE,
        .run = cli_failover_list,
    },
    {
        .words = "admin cluster failover_fast",
        .aliases = "fof",
        .summary = "Moves all domains whose data have IsManagedByCadence=true to a cluster at "
                   "once, one by one,\nwithout a workflow. It asks before it begins.",
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
        .summary = "Lists past rebalances.",
        .examples = "  cadenza admin cluster rebalance list\n",
        .flags = "open page_size more v2 " PRINTED REMOTE,
        .run = cli_rebalance_list,
    },
    {.words = NULL},
};
