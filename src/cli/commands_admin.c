/* commands_admin.c - the commands for those who run a server. */
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

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
        .summary = "Lets a running server write a copy of its store, of one moment, into a new "
                   "folder DIR on its machine.",
        .examples = "  cadenza admin backup /backups/monday\n",
        .flags = REMOTE,
        .run = cli_backup,
    },
    {
        .words = "admin visibility rebuild",
        .summary = "Lets a running server make its lists of runs anew from the runs, and waits for "
                   "it.\n"
                   "A server does that by itself when it finds that its lists are lost or old.",
        .examples = "  cadenza admin visibility rebuild\n",
        .flags = REMOTE,
        .run = cli_rebuild_visibility,
    },
    {
        .words = "admin restore",
        .arguments = "BACKUP",
        .word_count = 1,
        .summary = "Makes a new data folder from a backup. Its shards get higher range ids, and as "
                   "a member of a group it\n"
                   "has to catch up with the others before it takes writes for global domains.",
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
        .words = "admin workflow refresh-tasks",
        .aliases = "rt",
        .summary = "Sends a workflow's tasks and timers again, where one seems lost.",
        .examples = "  cadenza admin workflow refresh-tasks --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.path = WORKFLOW_API("RefreshWorkflowTasks"),
                   .request = API_TYPE(refresh_workflow_tasks_request),
                   .response = API_TYPE(refresh_workflow_tasks_response), .fields = ONE_RUN,
                   .done = "Refresh workflow task succeeded."),
    },
    {
        .words = "admin history_host getshard",
        .aliases = "gsh",
        .summary = "Tells the shard of a workflow id; no server is asked.",
        .examples = "  cadenza admin history_host getshard --workflow_id order-7 "
                    "--number_of_shards 16\n",
        .flags = "workflow_id number_of_shards",
        .run = cli_admin_get_shard,
    },
    {
        .words = "admin tasklist describe",
        .aliases = "desc",
        .summary = "Shows who polls a task list and how much waits there.",
        .examples = "  cadenza admin tasklist describe --domain orders --tasklist mail\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.path = WORKFLOW_API("DescribeTaskList"),
                   .request = API_TYPE(describe_task_list_request),
                   .response = API_TYPE(describe_task_list_response),
                   .fields = "domain=domain! task_list.name=tasklist! task_list_type=tasklisttype",
                   .complete = task_list_complete, .show = task_list_show),
    },
    {
        .words = "admin tasklist list",
        .aliases = "l",
        .summary = "Lists the task lists of a domain that were in use lately.",
        .examples = "  cadenza admin tasklist list --domain orders\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.path = WORKFLOW_API("GetTaskListsByDomain"),
                   .request = API_TYPE(get_task_lists_by_domain_request),
                   .response = API_TYPE(get_task_lists_by_domain_response),
                   .fields = "domain=domain!", .show = task_list_show_all),
    },
    {
        .words = "admin tasklist update-partition",
        .aliases = "up",
        .summary = "Divides a task list: for more throughput than one partition has.",
        .examples = "  cadenza admin tasklist update-partition --domain orders --tasklist mail "
                    "--tasklisttype decision --num_read_partitions 2 --num_write_partitions 2\n",
        .flags = "num_read_partitions num_write_partitions " REMOTE,
        .rpc = RPC(.path = ADMIN_API("UpdateTaskListPartitionConfig"),
                   .request = ADMIN_TYPE(update_task_list_partition_config_request),
                   .response = ADMIN_TYPE(update_task_list_partition_config_response),
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
        .rpc = RPC(.path = ADMIN_API("DescribeCluster"),
                   .request = ADMIN_TYPE(describe_cluster_request),
                   .response = ADMIN_TYPE(describe_cluster_response), .fields = ""),
    },
    {
        .words = "admin cluster add-search-attr",
        .aliases = "asa",
        .summary = "Lets queries use another search attribute.",
        .examples = "  cadenza admin cluster add-search-attr --search_attr_key Customer "
                    "--search_attr_type Keyword\n",
        .flags = "new_search_key new_search_type " REMOTE,
        .rpc = RPC(.path = ADMIN_API("AddSearchAttribute"),
                   .request = ADMIN_TYPE(add_search_attribute_request),
                   .response = ADMIN_TYPE(add_search_attribute_response),
                   .fields = "security_token=security_token",
                   .done = "Success: the new search attribute can be used at once.",
                   .complete = search_complete),
    },
    {.words = NULL},
};
