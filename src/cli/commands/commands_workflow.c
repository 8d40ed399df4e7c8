/* commands_workflow.c - the commands that start or inspect a workflow. */
#include "cli/base/commands.h"
#include "cli/workflow/workflow_describe.h"
#include "cli/workflow/workflow_start.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

/* The flags of a start, its fields' too: start and run make the request themselves. */
#define STARTED                                                                                    \
    "domain workflow_id workflow_type tasklist execution_timeout decision_timeout cron "           \
    "cron_overlap_policy workflowidreusepolicy delay_start_seconds jitter_start_seconds "          \
    "first_run_at_time " START_FLAGS
#define SHOWN                                                                                      \
    "print_datetime print_raw_time print_event_version full event_id max_field_length "            \
    "output_filename reset_points_only "

#define DESCRIBE                                                                                   \
    RPC(.request = API_TYPE(describe_workflow_execution_request),                                  \
        .fields = ONE_RUN "query_consistency_level=query_consistency_level",                       \
        .show = workflow_show_description)
#define QUERY(extra)                                                                               \
    RPC(.request = API_TYPE(query_workflow_request),                                               \
        .fields = ONE_RUN "query_reject_condition=query_reject_condition "                         \
                          "query_consistency_level=query_consistency_level" extra,                 \
        .timeout = 30 * NS_PER_S, .complete = workflow_complete_query,                             \
        .show = workflow_show_answer)

const struct cli_command cli_workflow_commands[] = {
    {
        .words = "workflow start",
        .summary = "Starts a workflow and prints its ids. Without --workflow_id it gets a new id.",
        .examples = "  cadenza workflow start --domain orders --tasklist mail --workflow_type "
                    "greet --input "
                    "'\"Ann\"'\n"
                    "  cadenza workflow start --domain orders --tl mail --wt greet -w greet-ann "
                    "--execution_timeout 60 --memo_key from --memo '\"Bob\"'\n"
                    "  cadenza workflow start --domain orders --tl mail --wt greet -w nightly "
                    "--cron '0 3 * "
                    "* *' --retry_attempts 3\n",
        .flags = STARTED PRINTED REMOTE,
        .run = cli_workflow_start,
    },
    {
        .words = "workflow run",
        .summary = "Starts a workflow and shows what happens, until it is closed. Exit code 1 "
                   "unless it\ncompletes.",
        .examples = "  cadenza workflow run --domain orders --tasklist mail --workflow_type greet "
                    "--input '\"Ann\"'\n",
        .flags = STARTED "show_detail max_field_length " PRINTED REMOTE,
        .run = cli_workflow_run,
    },
    {
        .words = "workflow show",
        .summary = "Shows the history of a workflow, one event per line: what happened, when, and "
                   "with what.",
        .examples =
            "  cadenza workflow show --domain orders -w order-7\n"
            "  cadenza workflow show --domain orders -w order-7 --event_id 1\n"
            "  cadenza workflow show --domain orders -w order-7 --output_filename history.json\n",
        .flags = "domain workflow_id run_id " SHOWN PRINTED REMOTE,
        .run = cli_workflow_show,
    },
    {
        .words = "workflow showid",
        .arguments = "WORKFLOW_ID [RUN_ID]",
        .positional = "workflow_id run_id",
        .word_count = 2,
        .word_min = 1,
        .summary = "Shows the history of a workflow, as workflow show does.",
        .examples = "  cadenza workflow showid --domain orders order-7\n",
        .flags = "domain " SHOWN PRINTED REMOTE,
        .run = cli_workflow_show,
    },
    {
        .words = "workflow observe",
        .aliases = "ob",
        .summary = "Follows a workflow live until it is closed. Exit code 1 unless it "
                   "completes.\nCtrl-C stops watching; the workflow continues.",
        .examples = "  cadenza workflow observe --domain orders -w done-7\n"
                    "  cadenza workflow observe --domain orders -w done-7 --show_detail\n",
        .flags = "domain workflow_id run_id show_detail max_field_length " PRINTED REMOTE,
        .run = cli_workflow_observe,
    },
    {
        .words = "workflow observeid",
        .aliases = "obid",
        .arguments = "WORKFLOW_ID [RUN_ID]",
        .positional = "workflow_id run_id",
        .word_count = 2,
        .word_min = 1,
        .summary = "Follows a workflow live, as workflow observe does.",
        .examples = "  cadenza workflow observeid --domain orders done-7\n",
        .flags = "domain show_detail max_field_length " PRINTED REMOTE,
        .run = cli_workflow_observe,
    },
    {
        .words = "workflow describe",
        .aliases = "desc",
        .summary = "Shows the state of a workflow as JSON: its settings, and what it waits for.",
        .examples = "  cadenza workflow describe --domain orders -w order-7\n"
                    "  cadenza workflow describe --domain orders -w order-7 --print_raw\n",
        .flags = "print_raw reset_points_only " PRINTED REMOTE,
        .rpc = DESCRIBE,
    },
    {
        .words = "workflow describeid",
        .aliases = "descid",
        .arguments = "WORKFLOW_ID [RUN_ID]",
        .positional = "workflow_id run_id",
        .word_count = 2,
        .word_min = 1,
        .summary = "Shows the state of a workflow, as workflow describe does.",
        .examples = "  cadenza workflow describeid --domain orders order-7\n",
        .flags = "print_raw reset_points_only " PRINTED REMOTE,
        .rpc = DESCRIBE,
    },
    {
        .words = "workflow query",
        .summary = "Queries the workflow's code; a worker answers.",
        .examples = "  cadenza workflow query --domain orders -w order-7 --query_type status\n"
                    "  cadenza workflow query --domain orders -w order-7 --qt status --input '1 "
                    "true' --query_consistency_level eventual\n",
        .flags = "input input_file " PRINTED REMOTE,
        .rpc = QUERY(" query.query_type=query_type!"),
    },
    {
        .words = "workflow query-types",
        .summary = "Asks the workflow's code which queries it answers.",
        .examples = "  cadenza workflow query-types --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .run = cli_workflow_query_types,
        .rpc = QUERY(" query.query_type=query_type"),
    },
    {
        .words = "workflow stack",
        .summary = "Asks a worker for the stack traces of the workflow's code.",
        .examples = "  cadenza workflow stack --domain orders -w order-7\n",
        .flags = "input input_file " PRINTED REMOTE,
        .rpc = QUERY(""),
    },
    {
        .words = "workflow diagnose",
        .aliases = "diag",
        .summary = "Finds out what is wrong with a workflow: timeouts, failures, retries that "
                   "cannot happen.",
        .examples = "  cadenza workflow diagnose --domain orders -w order-7\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(diagnose_workflow_execution_request), .fields = ONE_RUN,
                   .complete = workflow_complete_diagnosis, .show = workflow_show_diagnosis),
    },
    {.words = NULL},
};
