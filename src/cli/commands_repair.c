/* commands_repair.c - the commands that repair runs and shards, and those of the cadence command
 * line that reach into stores which this server does not have: they say so. */
#include "cli/admin.h"
#include "cli/commands.h"
#include "cli/repair.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

#define RESEND                                                                                     \
    RPC(.path = ADMIN_API("ResendReplicationTasks"),                                               \
        .request = ADMIN_TYPE(resend_replication_tasks_request),                                   \
        .response = ADMIN_TYPE(resend_replication_tasks_response),                                 \
        .fields = "domain_id=domain_id workflow_execution.workflow_id=workflow_id! "               \
                  "workflow_execution.run_id=run_id! remote_cluster=source_cluster! "              \
                  "end_event.event_id=max_event_id end_event.version=end_event_version",           \
        .done = "The history of {workflow_execution.workflow_id} is as {remote_cluster} has it.",  \
        .timeout = 180 * NS_PER_S, .complete = repair_complete_resend)
#define A_RUN                                                                                      \
    "--domain orders -w order-7 -r 2b0d6d5a-1f3c-4e8e-9a57-0c6f6a4b7d11 --source_cluster "         \
    "cluster1\n"

#define NO_QUEUES "there are no message queues here: clusters ask each other over gRPC. "
#define NO_INDEX  "there is no ElasticSearch here: the server keeps the lists of runs itself. "
#define OWN_STORE "the server looks after its own store, and nobody else may write to it. "

const struct cli_command cli_repair_commands[] = {
    {
        .words = "admin workflow delete",
        .aliases = "del",
        .summary = "Deletes a run for good, with its history; one that is open is terminated "
                   "first.",
        .examples = "  cadenza admin workflow delete --domain orders -w order-7\n",
        .flags = "skip_errors remote " PRINTED REMOTE,
        .rpc =
            RPC(.path = ADMIN_API("DeleteWorkflow"), .request = ADMIN_TYPE(delete_workflow_request),
                .response = ADMIN_TYPE(delete_workflow_response), .fields = ONE_RUN,
                .timeout = 30 * NS_PER_S, .show = repair_show_deleted),
    },
    {
        .words = "admin workflow fix_corruption",
        .aliases = "fc",
        .summary = "Deletes a run if what is stored of it cannot be right: no first event, records "
                   "that\ncontradict each other. Any other run is left alone.",
        .examples = "  cadenza admin workflow fix_corruption --domain orders -w order-7\n",
        .flags = "skip_errors " PRINTED REMOTE,
        .rpc = RPC(.path = ADMIN_API("MaintainCorruptWorkflow"),
                   .request = ADMIN_TYPE(maintain_corrupt_workflow_request),
                   .response = ADMIN_TYPE(maintain_corrupt_workflow_response), .fields = ONE_RUN,
                   .timeout = 30 * NS_PER_S, .show = repair_show_mended),
    },
    {
        .words = "admin workflow resend",
        .summary = "Lets the server fetch the history of a run from another cluster again.",
        .examples = "  cadenza admin workflow resend " A_RUN,
        .flags = "domain " REMOTE,
        .rpc = RESEND,
    },
    {
        .words = "admin kafka rereplicate",
        .aliases = "rrp",
        .summary = "The same as admin workflow resend.",
        .examples = "  cadenza admin kafka rereplicate " A_RUN,
        .flags = "domain " REMOTE,
        .rpc = RESEND,
    },
    {
        .words = "admin shard describe",
        .aliases = "d",
        .summary = "Shows a shard: who has it, its range id, what waits in it.",
        .examples = "  cadenza admin shard describe --shard_id 3\n",
        .flags = "shard_id " PRINTED REMOTE,
        .run = cli_shard_describe,
    },
    {
        .words = "admin shard timers",
        .summary = "Shows how many timers of a shard are to ring, and up to when all have rung.",
        .examples = "  cadenza admin shard timers --shard_id 3\n",
        .flags = PRINTED REMOTE,
        .rpc =
            RPC(.path = ADMIN_API("DescribeQueue"), .request = ADMIN_TYPE(describe_queue_request),
                .response = ADMIN_TYPE(describe_queue_response), .fields = "shard_id=shard_id!",
                .complete = repair_complete_timers, .show = admin_show_queue),
    },
    {
        .words = "admin shard removeTask",
        .aliases = "rmtk",
        .summary = "Lets a server forget one task. Cadenza says why it need not: admin workflow\n"
                   "refresh-tasks makes the tasks of a run anew.",
        .examples = "  cadenza admin shard removeTask --shard_id 3 --task_type timer --task_id 7\n",
        .flags = "task_type " REMOTE,
        .rpc = RPC(.path = ADMIN_API("RemoveTask"), .request = ADMIN_TYPE(remove_task_request),
                   .response = ADMIN_TYPE(remove_task_response),
                   .fields = "shard_id=shard_id! task_id=task_id! visibility_time=task_timestamp "
                             "cluster_name=queue_cluster",
                   .done = "The task is gone.", .complete = repair_complete_task),
    },
    {
        .words = "admin shard setRangeID",
        .aliases = "srid",
        .summary = "Known by name: the range id of a shard is not set by hand.",
        .examples = "  cadenza admin shard setRangeID --shard_id 3 --range_id 7\n",
        .flags = "",
        .why_not = "a range id rises whenever a process takes the shard, and a lower one would let "
                   "two have it; cadenza admin shard closeShard has it taken anew",
    },
    {
        .words = "admin queue reset",
        .summary = "Lets a server go through a queue again. Cadenza says why it need not: admin\n"
                   "shard closeShard has all of a shard read again.",
        .examples = "  cadenza admin queue reset --shard_id 3 --queue_type timer\n",
        .flags = "queue_type " REMOTE,
        .rpc = RPC(.path = ADMIN_API("ResetQueue"), .request = ADMIN_TYPE(reset_queue_request),
                   .response = ADMIN_TYPE(reset_queue_response),
                   .fields = "shard_id=shard_id! cluster_name=queue_cluster",
                   .done = "The queue begins again.", .complete = admin_complete_queue),
    },
    {
        .words = "admin kafka parse",
        .aliases = "par",
        .summary = "Known by name: there are no message queues here.",
        .examples = "  cadenza admin kafka parse\n",
        .flags = "",
        .why_not = NO_QUEUES "What could not be applied is shown by cadenza admin dlq read",
    },
    {
        .words = "admin elasticsearch catIndex",
        .aliases = "cind",
        .summary = "Known by name: there is no ElasticSearch here.",
        .examples = "  cadenza admin elasticsearch catIndex\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza workflow count tells how many they have",
    },
    {
        .words = "admin elasticsearch index",
        .aliases = "ind",
        .summary = "Known by name: there is no ElasticSearch here.",
        .examples = "  cadenza admin elasticsearch index\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza admin visibility rebuild makes them anew",
    },
    {
        .words = "admin elasticsearch delete",
        .aliases = "del",
        .summary = "Known by name: there is no ElasticSearch here.",
        .examples = "  cadenza admin elasticsearch delete\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza admin visibility rebuild makes them anew",
    },
    {
        .words = "admin elasticsearch report",
        .aliases = "rep",
        .summary = "Known by name: there is no ElasticSearch here.",
        .examples = "  cadenza admin elasticsearch report\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza workflow count and list take queries",
    },
    {
        .words = "admin database scan",
        .summary = "Known by name: the server looks after its own store.",
        .examples = "  cadenza admin database scan\n",
        .flags = "",
        .why_not = OWN_STORE "cadenza admin store check reads all of a data folder",
    },
    {
        .words = "admin database clean",
        .summary = "Known by name: the server looks after its own store.",
        .examples = "  cadenza admin database clean\n",
        .flags = "",
        .why_not = OWN_STORE "cadenza admin workflow fix_corruption deletes a run that is corrupt",
    },
    {
        .words = "admin database decode_thrift",
        .summary = "Known by name: nothing is stored as Thrift here.",
        .examples = "  cadenza admin database decode_thrift\n",
        .flags = "",
        .why_not = "nothing is stored as Thrift here; cadenza admin workflow describe shows what "
                   "is stored of a run",
    },
    {
        .words = "admin database unsupported-workflow",
        .summary = "Known by name: there are no runs of versions before 0.16 here.",
        .examples = "  cadenza admin database unsupported-workflow\n",
        .flags = "",
        .why_not = "there are no runs of versions before 0.16 here, so none is unsupported; "
                   "cadenza admin store check reads all of a data folder",
    },
    {.words = NULL},
};
