/* more_flags.c - the flags of workflows, task lists, schedules and administration. Names and short
 * names are those of the cadence command line where it has such a flag; a flag that has another
 * short name or default in another command is here twice, under two keys. */
#include "cli/base/inside.h"

#define TEXT(key_, name_, aliases_, argument_, otherwise_, help_)                                  \
    {                                                                                              \
        .key = (key_), .name = (name_), .aliases = (aliases_), .argument = (argument_),            \
        .help = (help_), .otherwise = (otherwise_)                                                 \
    }
#define PLAIN(name_, aliases_, argument_, help_)                                                   \
    TEXT(name_, name_, aliases_, argument_, NULL, help_)
#define SWITCH(name_, aliases_, help_) TEXT(name_, name_, aliases_, NULL, NULL, help_)
#define LIST(key_, name_, aliases_, argument_, help_)                                              \
    {                                                                                              \
        .key = (key_), .name = (name_), .aliases = (aliases_), .argument = (argument_),            \
        .help = (help_), .is_list = true                                                           \
    }

#define A_TIME                                                                                     \
    "2026-11-15T09:00:00Z, nanoseconds since 1970, or how long ago: 15m, 2h, 3day, 1week."

const struct cli_flag cli_more_flags[] = {
    /* which one */
    PLAIN("workflow_id", "w wid", "ID", "The workflow."),
    PLAIN("run_id", "r rid", "UUID", "One run of it; else the current one."),
    PLAIN("tasklist", "tl", "NAME", "The task list that its workers poll."),
    PLAIN("workflow_type", "wt", "NAME", "The type: the name that workers know it by."),

    /* starting */
    TEXT("execution_timeout", "execution_timeout", "et", "SECONDS", "3600", "How long it may run."),
    TEXT("decision_timeout", "decision_timeout", "dt", "SECONDS", "10",
         "How long a worker may take for one decision."),
    PLAIN("cron", NULL, "SCHEDULE", "Run again by this schedule: '0 9 * * 1-5', '@every 1h'."),
    PLAIN("cron_overlap_policy", "cop", "POLICY",
          "If a run is still open at the next start time: Skipped (0) or BufferOne (1)."),
    PLAIN("workflowidreusepolicy", "wrp", "POLICY",
          "If the id was used before: AllowDuplicateFailedOnly (0), AllowDuplicate (1), "
          "RejectDuplicate (2), TerminateIfRunning (3)."),
    PLAIN("input", "i", "JSON", "The input: one JSON value, or several separated by blanks."),
    PLAIN("input_file", "if", "FILE", "The input from a file; --input takes precedence."),
    PLAIN("memo_key", NULL, "KEYS", "Keys of the memo, separated by blanks."),
    PLAIN("memo", NULL, "JSON", "Their values, in the same order: JSON separated by blanks."),
    PLAIN("memo_file", NULL, "FILE", "The values from a file."),
    PLAIN("header_key", NULL, "KEYS", "Keys of the header, separated by blanks."),
    PLAIN("header_value", NULL, "JSON", "Their values, in the same order."),
    PLAIN("header_file", NULL, "FILE", "The values from a file."),
    PLAIN("search_attr_key", NULL, "KEYS", "Search attributes, separated by |."),
    PLAIN("search_attr_value", NULL, "VALUES", "Their values, separated by |; lists as JSON."),
    PLAIN("retry_attempts", NULL, "N", "Maximum number of attempts."),
    PLAIN("retry_expiration", NULL, "SECONDS", "How long to go on retrying."),
    TEXT("retry_interval", "retry_interval", NULL, "SECONDS", NULL,
         "The wait before the second attempt. Default 10."),
    TEXT("retry_backoff", "retry_backoff", NULL, "FACTOR", NULL,
         "Factor by which the wait grows after each attempt. Default 1."),
    PLAIN("retry_max_interval", NULL, "SECONDS", "The longest wait between two attempts."),
    PLAIN("delay_start_seconds", NULL, "SECONDS", "Delay of the first decision."),
    PLAIN("jitter_start_seconds", NULL, "SECONDS", "Maximum random delay in addition."),
    PLAIN("first_run_at_time", NULL, "TIME", "When to begin: " A_TIME),
    PLAIN("cluster_attribute_scope", "cascope", "SCOPE",
          "Scope of the cluster attribute that decides where it is active."),
    PLAIN("cluster_attribute_name", "caname", "NAME", "Name of that cluster attribute."),

    /* signals, ends */
    PLAIN("name", "n signal_name", "NAME", "The signal."),
    PLAIN("signal_input", "si", "JSON", "The input of the signal."),
    PLAIN("signal_input_file", "sif", "FILE", "The same from a file."),
    TEXT("why", "reason", "re", "TEXT", NULL, "The reason, which the history records."),

    /* history */
    SWITCH("print_datetime", "pdt", "Show dates and times, not how long after the start."),
    SWITCH("print_raw_time", "prt", "Show times in nanoseconds since 1970."),
    SWITCH("print_event_version", "pev", "Show the failover version of each event."),
    TEXT("full", "print_full", "pf", NULL, NULL, "Show everything, uncut."),
    TEXT("event_id", "event_id", "eid", "N", NULL, "Only this event, and all of it."),
    TEXT("max_field_length", "max_field_length", "maxl", "N", "200",
         "Cut each attribute at this many characters; 0: never."),
    PLAIN("output_filename", "of", "FILE",
          "Write the history into a file, as JSON that the clients' replayers read."),
    SWITCH("reset_points_only", NULL, "Only those to which a reset can go back."),
    SWITCH("show_detail", "sd", "Show the attributes of the events, too."),
    PLAIN("query_consistency_level", "qcl", "LEVEL",
          "strong: the answer reflects everything that was acknowledged. eventual: the fastest "
          "answer."),
    SWITCH("print_raw", "praw", "Show times and payloads as they are stored."),

    /* queries */
    PLAIN("query_type", "qt", "NAME", "The query that the workflow's code answers."),
    PLAIN("query_reject_condition", "qrc", "CONDITION",
          "Do not ask a workflow that is not_open, or not_completed_cleanly."),

    /* lists */
    SWITCH("open", "op", "Only open ones; else closed ones."),
    PLAIN("earliest_time", "et", "TIME", "Started at or after: " A_TIME),
    PLAIN("latest_time", "lt", "TIME", "Started at or before: " A_TIME),
    PLAIN("status", "s", "STATUS",
          "Only workflows with this close status: completed, failed, canceled, terminated, "
          "continued_as_new, timed_out."),
    PLAIN("query", "q lq", "QUERY",
          "The query: 'WorkflowType = \"order\" and CloseTime = missing'. Other filters are "
          "ignored then."),
    PLAIN("exclude_query", NULL, "QUERY", "Leave out workflow ids that this query finds."),
    SWITCH("more", "m", "All pages, not the first only."),
    TEXT("page_size", "pagesize", "ps", "N", "10", "Page size."),
    TEXT("scan_page_size", "pagesize", "ps", "N", "1000", "How many to request at a time."),
    SWITCH("print_memo", "pme", "Show the memo, too."),
    SWITCH("print_search_attr", "psa", "Show the search attributes, too."),
    SWITCH("print_cron", "pcr", "Show the schedule and the time it was scheduled for, too."),

    /* resetting */
    TEXT("reset_event_id", "event_id", "eid", "N", NULL,
         "Continue as if this event had not happened: a completed, failed or timed out decision."),
    PLAIN("reset_type", NULL, "TYPE",
          "Reset point: FirstDecisionCompleted, LastDecisionCompleted, LastContinuedAsNew, "
          "BadBinary, DecisionCompletedTime, FirstDecisionScheduled, LastDecisionScheduled."),
    PLAIN("decision_offset", NULL, "N",
          "With LastDecisionCompleted: how many decisions earlier, as a negative number."),
    PLAIN("reset_bad_binary_checksum", NULL, "CHECKSUM", "With BadBinary: its checksum."),
    TEXT("decided_after", "earliest_time", "et", "TIME", NULL,
         "With DecisionCompletedTime: the first decision completed at or after, " A_TIME),
    TEXT("decided_before", "latest_time", "lt", "TIME", NULL,
         "With DecisionCompletedTime: the last decision completed at or before, " A_TIME),
    SWITCH("skip_signal_reapply", NULL, "Do not reapply the signals after the reset point."),
    TEXT("reset_file", "input_file", "if", "FILE", NULL,
         "Workflows to reset, one per line: id, separator, run id (may be empty)."),
    PLAIN("exclude_file", NULL, "FILE", "Workflow ids to skip, one per line."),
    TEXT("input_separator", "input_separator", NULL, "TEXT", "\t",
         "The separator between id and run id in the file."),
    PLAIN("input_parallelism", NULL, "N",
          "Accepted for compatibility: workflows are reset one after the other."),
    SWITCH("skip_current_open", NULL, "Skip workflows that have an open run."),
    SWITCH("skip_current_completed", NULL, "Skip workflows whose current run completed."),
    SWITCH("skip_base_is_not_current", NULL, "Skip runs that are not the current one."),
    SWITCH("only_non_deterministic", NULL,
           "Only workflows whose last decision failed because the code did not match the history."),
    SWITCH("dry_run", NULL, "Only show what would be done."),

    /* batches */
    PLAIN("batch_type", "bt", "TYPE", "What to do: terminate, cancel, signal, replicate, refresh."),
    TEXT("batch_signal", "signal_name", "sn", "NAME", NULL, "With signal: its name."),
    TEXT("batch_input", "input", "in", "JSON", NULL, "With signal: its input."),
    TEXT("rps", "rps", NULL, "N", "50", "Workflows per second."),
    TEXT("concurrency", "concurrency", NULL, "N", "5", "Workflows at a time."),
    TEXT("batch_page_size", "pagesize", "ps", "N", "1000", "Page size."),
    TEXT("batch_attempts", "retry_attempts", NULL, "N", "50",
         "Attempts per workflow when the server is busy."),
    TEXT("heart_beat_timeout_seconds", "heart_beat_timeout_seconds", "hbt", "SECONDS", "10",
         "Continue on another worker if this one is silent for this long."),
    TEXT("from_cluster", "source_cluster", "sc", "CLUSTER", NULL, "The cluster that has them."),
    PLAIN("target_cluster", "tc", "CLUSTER", "The cluster that gets them."),
    PLAIN("job_id", "jid", "ID", "The batch job."),

    /* activities */
    PLAIN("activity_id", "aid", "ID", "The activity."),
    PLAIN("result", NULL, "JSON", "Its result."),
    TEXT("failure", "reason", NULL, "TEXT", NULL, "Why it failed."),
    PLAIN("detail", NULL, "TEXT", "Details of the failure."),
    PLAIN("identity", NULL, "NAME", "On whose behalf. Default user@host."),

    /* task lists */
    TEXT("tasklisttype", "tasklisttype", "tlt", "TYPE", "decision", "decision or activity."),
    PLAIN("num_read_partitions", "nrp", "N", "Partitions that pollers read from."),
    PLAIN("num_write_partitions", "nwp", "N", "Partitions that new tasks go to."),

    /* schedules */
    PLAIN("schedule_id", "sid", "ID", "The schedule."),
    PLAIN("cron_expression", "ce", "SCHEDULE", "When: '*/5 * * * *', '@every 1h'."),
    PLAIN("overlap_policy", NULL, "POLICY",
          "If a run is still open at the next start time: SkipNew, Buffer, Concurrent, "
          "CancelPrevious, TerminatePrevious."),
    PLAIN("concurrency_limit", NULL, "N", "With Concurrent: maximum number of runs; 0: no limit."),
    PLAIN("buffer_limit", NULL, "N",
          "With Buffer: maximum number of starts that wait; 0: no limit."),
    PLAIN("catch_up_policy", NULL, "POLICY",
          "What to do about missed start times: Skip, One, All."),
    PLAIN("catch_up_window", NULL, "SECONDS", "Start times missed longer ago are dropped."),
    SWITCH("pause_on_failure", NULL, "Pause when a run fails."),
    PLAIN("jitter", NULL, "SECONDS", "Maximum random delay of each start."),
    TEXT("spec_start", "start_time", "st", "TIME", NULL, "Not before: " A_TIME),
    TEXT("spec_end", "end_time", "endt", "TIME", NULL, "Not after: " A_TIME),
    PLAIN("workflow_id_prefix", NULL, "TEXT", "Prefix of the workflow ids of its runs."),
    PLAIN("backfill_id", NULL, "ID", "An idempotency key: a backfill with the same id runs once."),

    /* administration */
    PLAIN("number_of_shards", NULL, "N", "How many shards the cluster has."),
    PLAIN("shard_id", "sid", "N", "The shard."),
    TEXT("shard_page_size", "pagesize", NULL, "N", "100", "Page size."),
    TEXT("page_id", "page_id", NULL, "N", "0", "Which page; 0 is the first."),
    PLAIN("history_address", "had", "HOST:PORT", "The address of the host."),
    TEXT("entity_type", "type", NULL, "TYPE", NULL, "Only entities of this type."),
    SWITCH("with_deleted", NULL, "Deleted entities, too."),
    PLAIN("queue_type", NULL, "TYPE", "transfer (2) or timer (3)."),
    TEXT("queue_cluster", "cluster", NULL, "CLUSTER", NULL, "The cluster whose tasks are meant."),
    TEXT("new_search_key", "search_attr_key", NULL, "KEY", NULL, "The search attribute."),
    TEXT("new_search_type", "search_attr_type", NULL, "TYPE", NULL,
         "String (0), Keyword (1), Int (2), Double (3), Bool (4), Datetime (5)."),
    TEXT("setting", "name", NULL, "KEY", NULL, "The key of the setting."),
    PLAIN("filter", NULL, "JSON", "Where it applies: {\"domainName\":\"orders\"}."),
    LIST("setting_values", "value", NULL, "JSON",
         "{\"Value\":20,\"Filters\":[...]}; may be given several times."),
    LIST("set-drains", "set-drains", NULL, "GROUP,...", "The complete list of drained groups."),
    SWITCH("remove-all-drains", NULL, "End the drain of all groups."),
    TEXT("groups_json", "json", NULL, "JSON", NULL,
         "The complete configuration: [{\"Name\":\"zone-1\",\"State\":2}]; 1 is healthy, 2 is "
         "drained."),
    TEXT("queue_json", "json", NULL, "JSON", NULL,
         "{\"Enabled\":true,\"PredefinedQueueName\":\"queue1\"}."),

    /* dev */
    TEXT("dev_grpc", "grpc", NULL, "HOST:PORT", "127.0.0.1:7833", "Address for gRPC."),
    TEXT("dev_http", "http", NULL, "HOST:PORT", "127.0.0.1:8088",
         "Address for /healthz, /metrics."),
    TEXT("dev_domain", "domain", "do", "NAME", "default", "The domain to create."),
    SWITCH("skip-time", NULL, "When only timers are pending, the clock jumps to the next one."),
    /* dead letters */
    PLAIN("dlq_type", "dt", "TYPE",
          "history (what happened to workflows) or domain. Default history."),
    PLAIN("source_cluster", NULL, "CLUSTER", "The cluster that sent the messages."),
    PLAIN("last_message_id", "lm", "N", "The last message to include. Default: all."),
    TEXT("dlq_shards", "shards", NULL, "N,N-N,...", NULL,
         "The shards: numbers and ranges, separated by commas."),
    PLAIN("max_message_count", "mmc", "N", "Maximum number of messages. Default: all."),
    TEXT("count_force", "force", NULL, NULL, NULL,
         "Accepted for compatibility; the messages are always counted again."),

    /* managed failover */
    TEXT("managed_timeout", "failover_timeout_seconds", "fts", "SECONDS", NULL,
         "Fail over gracefully, and force it after this time. Default: force at once."),
    TEXT("managed_run_timeout", "execution_timeout", "et", "SECONDS", "1200",
         "How long the whole failover may take."),
    TEXT("failover_wait_time_second", "failover_wait_time_second", "fwts", "SECONDS", "30",
         "Pause between two batches."),
    TEXT("failover_batch_size", "failover_batch_size", "fbs", "N", "20", "Domains per batch."),
    LIST("failover_domains", "domains", NULL, "NAME,...", "Only these domains."),
    PLAIN("failover_drill_wait_second", "fdws", "SECONDS",
          "Run a drill: the domains move back after this time."),
    SWITCH("failover_drill", "fd", "Address the drill instead of the failover."),
    PLAIN("cluster_attributes_json", NULL, "JSON",
          "Cluster attributes to move, too: [{\"scope\":\"region\",\"name\":\"oslo\"}]."),
    SWITCH("v2", NULL, "Use the newer workflow, which reads the data of each domain."),
    TEXT("managed_watch", "watch", NULL, NULL, NULL, "Show progress until it has ended."),

    /* repair */
    SWITCH("skip_errors", "serr",
           "Accepted for compatibility; a run is deleted completely or not at all."),
    SWITCH("remote", NULL, "Accepted for compatibility; the server always does the work."),
    PLAIN("task_id", NULL, "N", "The task."),
    PLAIN("task_type", NULL, "TYPE", "transfer (2), timer (3) or replication (4)."),
    PLAIN("task_timestamp", NULL, "TIME", "For a timer: when it is due; " A_TIME),
    PLAIN("max_event_id", NULL, "N", "The last event to fetch. Default: all."),
    PLAIN("end_event_version", NULL, "N", "Its failover version."),

    /* graceful failover */
    SWITCH("watch", NULL, "Follow a failover that is in progress until it ends."),
    SWITCH("detach", NULL, "Do not wait for a graceful failover to end."),

    /* migration */
    PLAIN("destination_address", NULL, "HOST:PORT", "The other server."),
    PLAIN("destination_domain", NULL, "NAME", "The domain there."),
    LIST("migrated_lists", "tasklist", "tl", "NAME",
         "A task list whose settings are compared; may be given several times."),
    LIST("migrated_attributes", "search_attr", NULL, "KEY:TYPE",
         "A search attribute that both must have; may be given several times."),
    {0},
};
