/* commands_schedule.c - the commands about schedules. */
#include "cli/base/commands.h"
#include "cli/schedule/schedule.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"

#define ONE "domain=domain! schedule_id=schedule_id! "
#define POLICIES                                                                                   \
    "policies.overlap_policy=overlap_policy policies.catch_up_policy=catch_up_policy "             \
    "policies.catch_up_window=catch_up_window policies.concurrency_limit=concurrency_limit "       \
    "policies.buffer_limit=buffer_limit policies.pause_on_failure=pause_on_failure "
#define SPEC "spec.start_time=spec_start spec.end_time=spec_end spec.jitter=jitter "
#define ACTION                                                                                     \
    "action.start_workflow.workflow_type.name=workflow_type! "                                     \
    "action.start_workflow.task_list.name=tasklist! "                                              \
    "action.start_workflow.execution_start_to_close_timeout=execution_timeout "                    \
    "action.start_workflow.task_start_to_close_timeout=decision_timeout "                          \
    "action.start_workflow.workflow_id_prefix=workflow_id_prefix "                                 \
    "action.start_workflow.input=input "

const struct cli_command cli_schedule_commands[] = {
    {
        .words = "schedule create",
        .aliases = "c",
        .summary = "Creates a schedule, which starts a workflow again and again.",
        .examples = "  cadenza schedule create --domain orders --schedule_id nightly "
                    "--cron_expression '0 3 * * *' --workflow_type greet --tasklist mail --input "
                    "'\"Ann\"' --overlap_policy SkipNew\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(create_schedule_request),
                   .fields = ONE "spec.cron_expression=cron_expression! " SPEC ACTION POLICIES,
                   .done = "Schedule {schedule_id} created."),
    },
    {
        .words = "schedule describe",
        .aliases = "desc",
        .summary = "Shows a schedule: when, what, and its recent runs.",
        .examples = "  cadenza schedule describe --domain orders --schedule_id nightly\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(describe_schedule_request), .fields = ONE),
    },
    {
        .words = "schedule list",
        .aliases = "l",
        .summary = "Lists the schedules of a domain.",
        .examples = "  cadenza schedule list --domain orders\n",
        .flags = "domain scan_page_size " PRINTED REMOTE,
        .run = cli_schedule_list,
    },
    {
        .words = "schedule update",
        .aliases = "u",
        .summary = "Changes what the flags name and keeps the rest.",
        .examples = "  cadenza schedule update --domain orders --schedule_id nightly "
                    "--cron_expression '0 4 * * *'\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(update_schedule_request),
                   .fields = ONE "spec.cron_expression=cron_expression " SPEC POLICIES,
                   .done = "Schedule {schedule_id} updated.", .complete = schedule_complete_update),
    },
    {
        .words = "schedule pause",
        .aliases = "p",
        .summary = "Pauses a schedule: it starts nothing until it is unpaused.",
        .examples = "  cadenza schedule pause --domain orders --schedule_id nightly --reason "
                    "holidays\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(pause_schedule_request), .fields = ONE "reason=why",
                   .done = "Schedule {schedule_id} paused."),
    },
    {
        .words = "schedule unpause",
        .aliases = "up",
        .summary = "Resumes a paused schedule.",
        .examples = "  cadenza schedule unpause --domain orders --schedule_id nightly\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(unpause_schedule_request),
                   .fields = ONE "reason=why catch_up_policy=catch_up_policy",
                   .done = "Schedule {schedule_id} unpaused."),
    },
    {
        .words = "schedule backfill",
        .aliases = "bf",
        .summary = "Starts the runs that a schedule would have started in a past period.",
        .examples =
            "  cadenza schedule backfill --domain orders --schedule_id nightly --start_time "
            "2026-11-01T00:00:00Z --end_time 2026-11-02T00:00:00Z\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(backfill_schedule_request),
                   .fields = ONE "start_time=spec_start! end_time=spec_end! "
                                 "overlap_policy=overlap_policy backfill_id=backfill_id",
                   .done = "Backfill of schedule {schedule_id} started."),
    },
    {
        .words = "schedule delete",
        .aliases = "del",
        .summary = "Deletes a schedule; workflows that it started continue.",
        .examples = "  cadenza schedule delete --domain orders --schedule_id nightly\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = API_TYPE(delete_schedule_request), .fields = ONE,
                   .done = "Schedule {schedule_id} deleted."),
    },
    {.words = NULL},
};
