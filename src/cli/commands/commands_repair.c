/* commands_repair.c - the commands that repair runs and shards, and those of the cadence command
 * line that reach into stores which this server does not have: they say so. */
#include "cli/admin/admin.h"
#include "cli/admin/repair.h"
#include "cli/base/commands.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

#define RESEND                                                                                     \
    RPC(.request = ADMIN_TYPE(resend_replication_tasks_request),                                   \
        .fields = "domain_id=domain_id workflow_execution.workflow_id=workflow_id! "               \
                  "workflow_execution.run_id=run_id! remote_cluster=source_cluster! "              \
                  "end_event.event_id=max_event_id end_event.version=end_event_version",           \
        .done = "The history of {workflow_execution.workflow_id} is as {remote_cluster} has it.",  \
        .timeout = 180 * NS_PER_S, .complete = repair_complete_resend)
#define A_RUN                                                                                      \
    "--domain orders -w order-7 -r 2b0d6d5a-1f3c-4e8e-9a57-0c6f6a4b7d11 --source_cluster "         \
    "cluster1\n"

#define NO_QUEUES "this server has no message queues: clusters call each other over gRPC. "
#define NO_INDEX  "this server does not use ElasticSearch: it keeps visibility itself. "
#define OWN_STORE "the server maintains its own store, and nothing else may write to it. "

const struct cli_command cli_repair_commands[] = {
    {
        .words = "admin workflow delete",
        .aliases = "del",
        .summary = "Deletes a run permanently, with its history; an open one is terminated first.",
        .examples = "  cadenza admin workflow delete --domain orders -w order-7\n",
        .flags = "skip_errors remote " PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(delete_workflow_request), .fields = ONE_RUN,
                   .timeout = 30 * NS_PER_S, .show = repair_show_deleted),
    },
    {
        .words = "admin workflow fix_corruption",
        .aliases = "fc",
        .summary = "Deletes a run if its records are corrupt: no first event, or records that "
                   "contradict each\nother. Any other run is kept.",
        .examples = "  cadenza admin workflow fix_corruption --domain orders -w order-7\n",
        .flags = "skip_errors " PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(maintain_corrupt_workflow_request), .fields = ONE_RUN,
                   .timeout = 30 * NS_PER_S, .show = repair_show_repaired),
    },
    {
        .words = "admin workflow resend",
        .summary = "Makes the server fetch the history of a run from another cluster again.",
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
        .summary = "Shows a shard: its owner, its range id, its backlog.",
        .examples = "  cadenza admin shard describe --shard_id 3\n",
        .flags = "shard_id " PRINTED REMOTE,
        .run = cli_shard_describe,
    },
    {
        .words = "admin shard timers",
        .summary = "Shows how many timers of a shard are pending, and up to when all have fired.",
        .examples = "  cadenza admin shard timers --shard_id 3\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_queue_request), .fields = "shard_id=shard_id!",
                   .complete = repair_complete_timers, .show = admin_show_queue),
    },
    {
        .words = "admin shard removeTask",
        .aliases = "rmtk",
        .summary = "Deletes one task of a shard. Cadenza refuses and says why it is not needed: "
                   "admin workflow\nrefresh-tasks regenerates the tasks of a run.",
        .examples = "  cadenza admin shard removeTask --shard_id 3 --task_type timer --task_id 7\n",
        .flags = "task_type " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(remove_task_request),
                   .fields = "shard_id=shard_id! task_id=task_id! visibility_time=task_timestamp "
                             "cluster_name=queue_cluster",
                   .done = "The task was removed.", .complete = repair_complete_task),
    },
    {
        .words = "admin shard setRangeID",
        .aliases = "srid",
        .summary = "Not supported: the range id of a shard is not set by hand.",
        .examples = "  cadenza admin shard setRangeID --shard_id 3 --range_id 7\n",
        .flags = "",
        .why_not =
            "a range id rises whenever a process acquires the shard, and a lower one would let two "
            "own it; cadenza admin shard closeShard makes the server acquire it again",
    },
    {
        .words = "admin queue reset",
        .summary = "Makes a server process a queue again. Cadenza refuses and says why it is not "
                   "needed: admin\nshard closeShard makes it read all of a shard again.",
        .examples = "  cadenza admin queue reset --shard_id 3 --queue_type timer\n",
        .flags = "queue_type " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(reset_queue_request),
                   .fields = "shard_id=shard_id! cluster_name=queue_cluster",
                   .done = "The queue was reset.", .complete = admin_complete_queue),
    },
    {
        .words = "admin kafka parse",
        .aliases = "par",
        .summary = "Not supported: this server has no message queues.",
        .examples = "  cadenza admin kafka parse\n",
        .flags = "",
        .why_not = NO_QUEUES "cadenza admin dlq read shows messages that could not be applied",
    },
    {
        .words = "admin elasticsearch catIndex",
        .aliases = "cind",
        .summary = "Not supported: this server does not use ElasticSearch.",
        .examples = "  cadenza admin elasticsearch catIndex\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza workflow count counts runs",
    },
    {
        .words = "admin elasticsearch index",
        .aliases = "ind",
        .summary = "Not supported: this server does not use ElasticSearch.",
        .examples = "  cadenza admin elasticsearch index\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza admin visibility rebuild rebuilds it",
    },
    {
        .words = "admin elasticsearch delete",
        .aliases = "del",
        .summary = "Not supported: this server does not use ElasticSearch.",
        .examples = "  cadenza admin elasticsearch delete\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza admin visibility rebuild rebuilds it",
    },
    {
        .words = "admin elasticsearch report",
        .aliases = "rep",
        .summary = "Not supported: this server does not use ElasticSearch.",
        .examples = "  cadenza admin elasticsearch report\n",
        .flags = "",
        .why_not = NO_INDEX "cadenza workflow count and list take queries",
    },
    {
        .words = "admin database scan",
        .summary = "Not supported: the server maintains its own store.",
        .examples = "  cadenza admin database scan\n",
        .flags = "",
        .why_not = OWN_STORE "cadenza admin store check reads all of a data folder",
    },
    {
        .words = "admin database clean",
        .summary = "Not supported: the server maintains its own store.",
        .examples = "  cadenza admin database clean\n",
        .flags = "",
        .why_not = OWN_STORE "cadenza admin workflow fix_corruption deletes a run that is corrupt",
    },
    {
        .words = "admin database decode_thrift",
        .summary = "Not supported: this server stores nothing as Thrift.",
        .examples = "  cadenza admin database decode_thrift\n",
        .flags = "",
        .why_not = "this server stores nothing as Thrift; cadenza admin workflow describe shows "
                   "what is stored of a run",
    },
    {
        .words = "admin database unsupported-workflow",
        .summary = "Not supported: this server has no runs of versions before 0.16.",
        .examples = "  cadenza admin database unsupported-workflow\n",
        .flags = "",
        .why_not = "this server has no runs of versions before 0.16, so every run is supported; "
                   "cadenza admin store check reads all of a data folder",
    },
    {.words = NULL},
};
