/* commands_admin.c - the commands for those who run a server. */
#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/admin/admin.h"
#include "cli/admin/cluster.h"
#include "cli/admin/settings.h"
#include "cli/base/commands.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

/* Which queue of dead letters is meant. */
#define QUEUE "dlq_type source_cluster shard_id dlq_shards last_message_id "

const struct cli_command cli_admin_commands[] = {
    {
        .words = "admin store info",
        .summary = "Shows what a data folder holds: rows by kind, files by level, sizes. The "
                   "server must be stopped.",
        .examples = "  cadenza admin store info --data ./data\n  cadenza admin store info --data "
                    "./data --format json\n",
        .flags = "data format",
        .run = cli_store_info,
    },
    {
        .words = "admin store check",
        .summary = "Reads all of a data folder: every checksum, every key, every guard, every "
                   "domain record.\n"
                   "Exit code 1 when something is wrong. The server must be stopped.",
        .examples = "  cadenza admin store check --data ./data\n",
        .flags = "data format",
        .run = cli_store_check,
    },
    {
        .words = "admin backup",
        .arguments = "DIR",
        .word_count = 1,
        .summary = "Makes a running server write a consistent copy of its store into a new folder "
                   "DIR on its machine.",
        .examples = "  cadenza admin backup /backups/monday\n",
        .flags = REMOTE,
        .run = cli_backup,
    },
    {
        .words = "admin visibility rebuild",
        .summary =
            "Makes a running server rebuild visibility from its runs, and waits for it.\nA server "
            "does that by itself when it finds that visibility is lost or out of date.",
        .examples = "  cadenza admin visibility rebuild\n",
        .flags = REMOTE,
        .run = cli_rebuild_visibility,
    },
    {
        .words = "admin restore",
        .arguments = "BACKUP",
        .word_count = 1,
        .summary = "Makes a new data folder from a backup. Its shards get higher range ids, and as "
                   "a member of a group it\nreads from the others what it lacks before it decides "
                   "anything for global domains.",
        .examples = "  cadenza admin restore /backups/monday --data ./data-restored\n",
        .flags = "data",
        .run = cli_restore,
    },
    {
        .words = "admin hot-workflows",
        .summary = "Shows the workflow ids that are called most, or give most tasks to workers, "
                   "just now;\n* marks what was above the limit of its workflow id.",
        .examples = "  cadenza admin hot-workflows\n"
                    "  cadenza admin hot-workflows --domain orders --count 5 --format json\n",
        .flags = "domain count " PRINTED REMOTE,
        .run = cli_hot_workflows,
    },
    {
        .words = "admin doctor",
        .summary = "Reports what is wrong with a server and its group, and what to do about it: "
                   "shards without an owner,\ndead letters, workflows whose workers fail every "
                   "decision, clusters that are unreachable, domains that are active "
                   "there,\nclocks that differ, clusters that are behind, graceful failovers that "
                   "do not end. With --data, for a server on this machine, also whether its disk "
                   "is nearly full. Exit code 1 when something is wrong.",
        .examples = "  cadenza admin doctor\n"
                    "  cadenza admin doctor --address 10.0.0.7:7833 --format json\n",
        .flags = "data " PRINTED REMOTE,
        .run = cli_doctor,
    },
    {
        .words = "admin dlq count",
        .aliases = "c",
        .summary =
            "Counts dead letters: messages of other clusters that could not be applied here.",
        .examples = "  cadenza admin dlq count\n",
        .flags = "dlq_type count_force " PRINTED REMOTE,
        .run = cli_dlq_count,
    },
    {
        .words = "admin dlq read",
        .aliases = "r",
        .summary = "Lists dead letters.",
        .examples = "  cadenza admin dlq read --source_cluster cluster1 --shard_id 3\n"
                    "  cadenza admin dlq read --dlq_type history --source_cluster cluster1 "
                    "--shards 0-3,7 --max_message_count 10\n",
        .flags = QUEUE "max_message_count " PRINTED REMOTE,
        .run = cli_dlq_read,
    },
    {
        .words = "admin dlq merge",
        .aliases = "m",
        .summary = "Applies dead letters again, in order, and removes those that succeed.",
        .examples = "  cadenza admin dlq merge --source_cluster cluster1 --shards 3\n",
        .flags = QUEUE REMOTE,
        .run = cli_dlq_merge,
    },
    {
        .words = "admin dlq purge",
        .aliases = "p",
        .summary = "Deletes dead letters without applying them: their changes are lost here.",
        .examples = "  cadenza admin dlq purge --source_cluster cluster1 --shard_id 3 "
                    "--last_message_id 77\n",
        .flags = QUEUE REMOTE,
        .run = cli_dlq_purge,
    },
    {
        .words = "admin divergence",
        .summary = "Shows which events lost when clusters could not reach each other: those of a "
                   "branch that another\none beat, or of a run that lost its workflow id. Those "
                   "that clients caused were reapplied.",
        .examples = "  cadenza admin divergence\n"
                    "  cadenza admin divergence --domain orders --format json\n",
        .flags = "domain count " PRINTED REMOTE,
        .run = cli_divergence,
    },
    {
        .words = "admin entity list",
        .aliases = "l",
        .summary = "Lists entities by type and key. Those of type 'domain' belong to domains: "
                   "{domain}.{region}.",
        .examples = "  cadenza admin entity list\n"
                    "  cadenza admin entity list --type user-location --count 20 --format json\n",
        .flags = "entity_type with_deleted count " PRINTED REMOTE,
        .run = cli_entity_list,
    },
    {
        .words = "admin entity get",
        .arguments = "TYPE KEY",
        .word_count = 2,
        .summary = "Shows one entity, and where its workflows are active in each domain that has "
                   "regions.",
        .examples = "  cadenza admin entity get user-location seattle\n",
        .flags = PRINTED REMOTE,
        .run = cli_entity_get,
    },
    {
        .words = "admin entity set",
        .arguments = "TYPE KEY REGION",
        .word_count = 3,
        .summary = "Sets the region of an entity: its workflows, of all domains, continue there. A "
                   "watched source may\noverwrite it with its next change.",
        .examples = "  cadenza admin entity set user-location seattle us-east\n",
        .flags = PRINTED REMOTE,
        .run = cli_entity_set,
    },
    {
        .words = "admin entity delete",
        .arguments = "TYPE KEY",
        .word_count = 2,
        .summary = "Deletes an entity: no new workflow may belong to it. Existing ones stay in the "
                   "region they are in.",
        .examples = "  cadenza admin entity delete user-location seattle\n",
        .flags = PRINTED REMOTE,
        .run = cli_entity_delete,
    },
    {
        .words = "admin entity watchers",
        .summary = "Shows the types of entities, how starts name them, and the state of the "
                   "sources of their rows.",
        .examples = "  cadenza admin entity watchers\n"
                    "  cadenza admin entity watchers --format json\n",
        .flags = PRINTED REMOTE,
        .run = cli_entity_watchers,
    },
    {
        .words = "admin audit",
        .summary =
            "Shows what operators did: calls that changed a domain or the server, the newest "
            "first.",
        .examples = "  cadenza admin audit\n"
                    "  cadenza admin audit --domain orders --count 5 --format json\n",
        .flags = "domain count " PRINTED REMOTE,
        .run = cli_audit,
    },
    {
        .words = "admin workflow show",
        .summary = "Shows the history of a run, as workflow show does.",
        .examples = "  cadenza admin workflow show --domain orders -w order-7\n",
        .flags = "domain workflow_id run_id print_datetime print_raw_time print_event_version full "
                 "event_id max_field_length output_filename reset_points_only " PRINTED REMOTE,
        .run = cli_workflow_show,
    },
    {
        .words = "admin workflow rebuild",
        .summary = "Rebuilds the state of an open workflow from its history. Activities start "
                   "again with their first attempt.",
        .examples = "  cadenza admin workflow rebuild --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = &cadenza__admin__v1__rebuild_run_request__descriptor,
                   .fields = ONE_RUN, .done = "Rebuilt."),
    },
    {
        .words = "admin workflow refresh-tasks",
        .aliases = "rt",
        .summary = "Regenerates the tasks and timers of a workflow, in case one was lost.",
        .examples = "  cadenza admin workflow refresh-tasks --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(refresh_workflow_tasks_request), .fields = ONE_RUN,
                   .done = "Refresh workflow task succeeded."),
    },
    {
        .words = "admin workflow describe",
        .aliases = "desc",
        .summary = "Shows everything that the server stores of a run, and its shard.",
        .examples = "  cadenza admin workflow describe --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_workflow_execution_request), .fields = ONE_RUN,
                   .show = admin_show_run),
    },
    {
        .words = "admin shard list",
        .aliases = "l",
        .summary = "Shows which host owns which shard.",
        .examples = "  cadenza admin shard list\n",
        .flags = PRINTED REMOTE,
        .rpc =
            RPC(.request = ADMIN_TYPE(describe_shard_distribution_request),
                .fields = "page_size=shard_page_size page_id=page_id", .show = admin_show_shards),
    },
    {
        .words = "admin shard closeShard",
        .aliases = "clsh",
        .summary = "Releases a shard that seems stuck; it is acquired again with the next call.",
        .examples = "  cadenza admin shard closeShard --shard_id 3\n",
        .flags = REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(close_shard_request), .fields = "shard_id=shard_id!",
                   .done = "The shard was closed; the next call acquires it again."),
    },
    {
        .words = "admin history_host describe",
        .aliases = "desc",
        .summary = "Shows the host that owns a shard or a workflow id: its shards and caches.",
        .examples = "  cadenza admin history_host describe --workflow_id order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_history_host_request),
                   .fields = "host_address=history_address shard_id=shard_id "
                             "workflow_execution.workflow_id=workflow_id"),
    },
    {
        .words = "admin queue describe",
        .aliases = "desc",
        .summary = "Shows the tasks or timers that wait in a shard.",
        .examples = "  cadenza admin queue describe --shard_id 3 --queue_type 2\n"
                    "  cadenza admin queue describe --shard_id 3 --queue_type timer\n",
        .flags = "queue_type " PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_queue_request),
                   .fields = "shard_id=shard_id! cluster_name=queue_cluster",
                   .complete = admin_complete_queue, .show = admin_show_queue),
    },
    {
        .words = "admin history_host getshard",
        .aliases = "gsh",
        .summary = "Prints the shard of a workflow id; contacts no server.",
        .examples = "  cadenza admin history_host getshard --workflow_id order-7 "
                    "--number_of_shards 16\n",
        .flags = "workflow_id number_of_shards",
        .run = cli_admin_get_shard,
    },
    {
        .words = "admin tasklist describe",
        .aliases = "desc",
        .summary = "Shows the pollers and the backlog of a task list.",
        .examples = "  cadenza admin tasklist describe --domain orders --tasklist mail\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(describe_task_list_request),
                   .fields = "domain=domain! task_list.name=tasklist! task_list_type=tasklisttype",
                   .complete = task_list_complete, .show = task_list_show),
    },
    {
        .words = "admin tasklist list",
        .aliases = "l",
        .summary = "Lists the task lists of a domain that were used recently.",
        .examples = "  cadenza admin tasklist list --domain orders\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(get_task_lists_by_domain_request),
                   .fields = "domain=domain!", .show = task_list_show_all),
    },
    {
        .words = "admin tasklist update-partition",
        .aliases = "up",
        .summary = "Sets the partitions of a task list, for more throughput than one can have.",
        .examples = "  cadenza admin tasklist update-partition --domain orders --tasklist mail "
                    "--tasklisttype decision --num_read_partitions 2 --num_write_partitions 2\n",
        .flags = "num_read_partitions num_write_partitions " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_task_list_partition_config_request),
                   .fields = "domain=domain! task_list.name=tasklist! task_list_type=tasklisttype",
                   .done = "Successfully updated the partitions of {task_list.name}.",
                   .complete = partitions_complete),
    },
    {
        .words = "admin cluster describe",
        .aliases = "d",
        .summary = "Shows the cluster's hosts and stores.",
        .examples = "  cadenza admin cluster describe\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_cluster_request), .fields = ""),
    },
    {
        .words = "admin cluster peers",
        .summary = "Shows the state of the other clusters of the group, where their settings "
                   "conflict, and how far a cluster that lost memory has read from them what it "
                   "had.",
        .examples = "  cadenza admin cluster peers\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = &cadenza__admin__v1__describe_peers_request__descriptor, .fields = "",
                   .show = cluster_show_peers),
    },
    {
        .words = "admin cluster add-search-attr",
        .aliases = "asa",
        .summary = "Registers a search attribute for queries.",
        .examples = "  cadenza admin cluster add-search-attr --search_attr_key Customer "
                    "--search_attr_type Keyword\n",
        .flags = "new_search_key new_search_type " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(add_search_attribute_request),
                   .fields = "security_token=security_token",
                   .done = "Success: the new search attribute can be used at once.",
                   .complete = search_complete),
    },
    {.words = NULL},
};
