/* commands_find.c - the commands that find workflows, task lists, and what a cluster knows. */
#include "cli/admin/cluster.h"
#include "cli/base/commands.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define COLUMNS "print_raw_time print_memo print_search_attr print_cron full " PRINTED
#define FILTERS                                                                                    \
    "domain open earliest_time latest_time workflow_id workflow_type status query exclude_query "  \
    "page_size "

const struct cli_command cli_find_commands[] = {
    {
        .words = "workflow list",
        .aliases = "l",
        .summary = "Lists workflows, the newest first: closed ones, or open ones with --open, or "
                   "what a\nquery finds.",
        .examples =
            "  cadenza workflow list --domain orders --open\n"
            "  cadenza workflow list --domain orders --status completed --earliest_time 3day\n"
            "  cadenza workflow list --domain orders --query 'WorkflowType = \"greet\" and "
            "CloseTime = missing' --format json\n",
        .flags = FILTERS "more " COLUMNS REMOTE,
        .run = cli_workflow_list,
    },
    {
        .words = "workflow listall",
        .aliases = "la",
        .summary = "Lists workflows as workflow list does, all pages of them.",
        .examples = "  cadenza workflow listall --domain orders --open --print_memo\n",
        .flags = FILTERS COLUMNS REMOTE,
        .run = cli_workflow_list_all,
    },
    {
        .words = "workflow scan",
        .aliases = "sc scanall",
        .summary =
            "Lists all workflows that a query finds, in no particular order: faster than listall.",
        .examples = "  cadenza workflow scan --domain orders --query 'WorkflowType = \"greet\"'\n",
        .flags = "domain query scan_page_size " COLUMNS REMOTE,
        .run = cli_workflow_scan,
    },
    {
        .words = "workflow listarchived",
        .summary = "Lists archived workflows, where the server has an archive.",
        .examples = "  cadenza workflow listarchived --domain orders --query 'CloseTime > 0'\n",
        .flags = "domain query scan_page_size more " COLUMNS REMOTE,
        .run = cli_workflow_list_archived,
    },
    {
        .words = "workflow count",
        .aliases = "cnt",
        .summary = "Counts the workflows that a query finds; without a query, all.",
        .examples = "  cadenza workflow count --domain orders\n"
                    "  cadenza workflow count --domain orders --query 'CloseTime = missing'\n",
        .flags = "domain query " PRINTED REMOTE,
        .run = cli_workflow_count,
    },
    {
        .words = "tasklist describe",
        .aliases = "desc",
        .summary = "Shows the pollers and the backlog of a task list.",
        .examples = "  cadenza tasklist describe --domain orders --tasklist mail\n"
                    "  cadenza tasklist describe --domain orders --tl mail --tasklisttype "
                    "activity\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(describe_task_list_request),
                   .fields = "domain=domain! task_list.name=tasklist! task_list_type=tasklisttype",
                   .complete = task_list_complete, .show = task_list_show),
    },
    {
        .words = "tasklist list",
        .aliases = "l",
        .summary = "Lists the task lists of a domain that were used recently.",
        .examples = "  cadenza tasklist list --domain orders\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(get_task_lists_by_domain_request),
                   .fields = "domain=domain!", .show = task_list_show_all),
    },
    {
        .words = "tasklist list-partition",
        .aliases = "lp",
        .summary = "Lists the partitions of a task list and the hosts that own them.",
        .examples = "  cadenza tasklist list-partition --domain orders --tasklist mail\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(list_task_list_partitions_request),
                   .fields = "domain=domain! task_list.name=tasklist!",
                   .show = task_list_show_partitions),
    },
    {
        .words = "cluster health",
        .summary = "Checks whether the server is healthy and which clients it supports; exit code "
                   "0 if it is healthy.",
        .examples = "  cadenza cluster health\n  cadenza cluster health --format json\n",
        .flags = PRINTED REMOTE,
        .run = cli_cluster_health,
    },
    {
        .words = "cluster describe",
        .summary = "Shows the cluster's hosts and stores.",
        .examples = "  cadenza cluster describe\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(describe_cluster_request), .fields = ""),
    },
    {
        .words = "cluster get-search-attr",
        .summary = "Lists the search attributes that queries may use, with their types.",
        .examples = "  cadenza cluster get-search-attr\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(get_search_attributes_request), .fields = "",
                   .show = cluster_show_search_attributes),
    },
    {.words = NULL},
};
