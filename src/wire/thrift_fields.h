/* thrift_fields.h - the table: every field of a history batch, as thrift numbers it and as protobuf
 * names it.
 *
 * Not a header to include for its names: thrift_table.c gives the words below a meaning and
 * includes it once. Columns are the id of the field in thrift, how its value travels (enum
 * thrift_kind) and the name of the field in the protobuf message. Rows stand in the order of the
 * ids, which is the order in which fields are written.
 *
 *   BEGIN(name, Name)                 a thrift struct that is the message Name
 *   ATTRIBUTES(name, Name)            the same, for the attributes of an event
 *   FIELD(id, kind, field)            a value
 *   STRUCT(id, struct, field)         a struct of this table
 *   LIST(id, struct, field)           a list of them
 *   TEXTS(id, field)                  a list of strings
 *   MAP(id, kind, field, entry)       a map; `entry` is the message that protobuf makes of a pair
 *
 * Some messages do not exist in thrift: their fields stand beside the others there. They are
 *
 *   FAILURE_REASON, _DETAILS, _OPTIONS(id, field)   of the Failure in `field`
 *   PARENT, PARENT_STRUCT, EXTERNAL, EXTERNAL_STRUCT   of the info about the parent or the external
 *                                     run
 *
 * A name that does not exist does not compile; that kinds go with types, and which fields of the
 * messages have no row, is proven by thrift_table_test.c. */
#ifndef CADENZA_WIRE_THRIFT_FIELDS_H
#define CADENZA_WIRE_THRIFT_FIELDS_H

/* clang-format off */

/* ---- Values that events are made of ---- */

BEGIN(workflow_type, WorkflowType)
    FIELD(10, TEXT, name)
END

BEGIN(workflow_execution, WorkflowExecution)
    FIELD(10, TEXT, workflow_id)
    FIELD(20, TEXT, run_id)
END

BEGIN(task_list, TaskList)
    FIELD(10, TEXT, name)
    FIELD(20, ENUM, kind)
    FIELD(30, TEXT, base_name)
END

BEGIN(retry_policy, RetryPolicy)
    FIELD(10, SECONDS, initial_interval)
    FIELD(20, DOUBLE, backoff_coefficient)
    FIELD(30, SECONDS, maximum_interval)
    FIELD(40, I32, maximum_attempts)
    TEXTS(50, non_retryable_error_reasons)
    FIELD(60, SECONDS, expiration_interval)
END

BEGIN(memo, Memo)
    MAP(10, PAYLOAD_MAP, fields, memo__fields_entry)
END

BEGIN(search_attributes, SearchAttributes)
    MAP(10, PAYLOAD_MAP, indexed_fields, search_attributes__indexed_fields_entry)
END

BEGIN(reset_point_info, ResetPointInfo)
    FIELD(10, TEXT, binary_checksum)
    FIELD(20, TEXT, run_id)
    FIELD(30, I64, first_decision_completed_id)
    FIELD(40, TIME, created_time)
    FIELD(50, TIME, expiring_time)
    FIELD(60, BOOL, resettable)
END

BEGIN(reset_points, ResetPoints)
    LIST(10, reset_point_info, points)
END

BEGIN(header, Header)
    MAP(10, PAYLOAD_MAP, fields, header__fields_entry)
END

BEGIN(cluster_attribute, ClusterAttribute)
    FIELD(1, TEXT, scope)
    FIELD(2, TEXT, name)
END

BEGIN(active_cluster_selection_policy, ActiveClusterSelectionPolicy)
    STRUCT(1, cluster_attribute, cluster_attribute)
END

BEGIN(activity_type, ActivityType)
    FIELD(10, TEXT, name)
END

BEGIN(failure_options, FailureOptions)
    FIELD(10, ENUM, failure_category)
    FIELD(20, SECONDS, next_retry_interval)
END

/* ---- An event; its attributes are in thrift_table.c ---- */

BEGIN(history_event, HistoryEvent)
    FIELD(10, I64, event_id)
    FIELD(20, TIME, event_time)
    FIELD(30, EVENT_TYPE, attributes_case)
    FIELD(35, I64, version)
    FIELD(36, I64, task_id)
END

/* ---- Attributes of events ---- */

ATTRIBUTES(workflow_execution_started, WorkflowExecutionStarted)
    STRUCT(10, workflow_type, workflow_type)
    PARENT(12, TEXT, domain_name)
    PARENT_STRUCT(14, workflow_execution, workflow_execution)
    PARENT(16, I64, initiated_id)
    STRUCT(20, task_list, task_list)
    FIELD(30, PAYLOAD, input)
    FIELD(40, SECONDS, execution_start_to_close_timeout)
    FIELD(50, SECONDS, task_start_to_close_timeout)
    FIELD(54, TEXT, continued_execution_run_id)
    FIELD(55, ENUM, initiator)
    FAILURE_REASON(56, continued_failure)
    FAILURE_DETAILS(57, continued_failure)
    FIELD(58, PAYLOAD, last_completion_result)
    FIELD(59, TEXT, original_execution_run_id)
    FIELD(60, TEXT, identity)
    FIELD(61, TEXT, first_execution_run_id)
    FIELD(62, TIME, first_scheduled_time)
    STRUCT(70, retry_policy, retry_policy)
    FIELD(80, I32, attempt)
    FIELD(90, TIME, expiration_time)
    FIELD(100, TEXT, cron_schedule)
    FIELD(110, SECONDS, first_decision_task_backoff)
    STRUCT(120, memo, memo)
    STRUCT(121, search_attributes, search_attributes)
    STRUCT(130, reset_points, prev_auto_reset_points)
    STRUCT(140, header, header)
    MAP(150, TEXT_MAP, partition_config,
        workflow_execution_started_event_attributes__partition_config_entry)
    FIELD(160, TEXT, request_id)
    FIELD(170, ENUM, cron_overlap_policy)
    STRUCT(180, active_cluster_selection_policy, active_cluster_selection_policy)
END

ATTRIBUTES(workflow_execution_completed, WorkflowExecutionCompleted)
    FIELD(10, PAYLOAD, result)
    FIELD(20, I64, decision_task_completed_event_id)
END

ATTRIBUTES(workflow_execution_failed, WorkflowExecutionFailed)
    FAILURE_REASON(10, failure)
    FAILURE_DETAILS(20, failure)
    FIELD(30, I64, decision_task_completed_event_id)
END

ATTRIBUTES(workflow_execution_timed_out, WorkflowExecutionTimedOut)
    FIELD(10, ENUM, timeout_type)
END

ATTRIBUTES(decision_task_scheduled, DecisionTaskScheduled)
    STRUCT(10, task_list, task_list)
    FIELD(20, SECONDS, start_to_close_timeout)
    FIELD(30, LONG_I32, attempt)
END

ATTRIBUTES(decision_task_started, DecisionTaskStarted)
    FIELD(10, I64, scheduled_event_id)
    FIELD(20, TEXT, identity)
    FIELD(30, TEXT, request_id)
END

ATTRIBUTES(decision_task_completed, DecisionTaskCompleted)
    FIELD(10, BYTES, execution_context)
    FIELD(20, I64, scheduled_event_id)
    FIELD(30, I64, started_event_id)
    FIELD(40, TEXT, identity)
    FIELD(50, TEXT, binary_checksum)
END

ATTRIBUTES(decision_task_timed_out, DecisionTaskTimedOut)
    FIELD(10, I64, scheduled_event_id)
    FIELD(20, I64, started_event_id)
    FIELD(30, ENUM, timeout_type)
    FIELD(40, TEXT, base_run_id)
    FIELD(50, TEXT, new_run_id)
    FIELD(60, I64, fork_event_version)
    FIELD(70, TEXT, reason)
    FIELD(80, ENUM, cause)
    FIELD(90, TEXT, request_id)
END

ATTRIBUTES(decision_task_failed, DecisionTaskFailed)
    FIELD(10, I64, scheduled_event_id)
    FIELD(20, I64, started_event_id)
    FIELD(30, ENUM, cause)
    FAILURE_DETAILS(35, failure)
    FIELD(40, TEXT, identity)
    FAILURE_REASON(50, failure)
    FIELD(60, TEXT, base_run_id)
    FIELD(70, TEXT, new_run_id)
    FIELD(80, I64, fork_event_version)
    FIELD(90, TEXT, binary_checksum)
    FIELD(100, TEXT, request_id)
END

ATTRIBUTES(activity_task_scheduled, ActivityTaskScheduled)
    FIELD(10, TEXT, activity_id)
    STRUCT(20, activity_type, activity_type)
    FIELD(25, TEXT, domain)
    STRUCT(30, task_list, task_list)
    FIELD(40, PAYLOAD, input)
    FIELD(45, SECONDS, schedule_to_close_timeout)
    FIELD(50, SECONDS, schedule_to_start_timeout)
    FIELD(55, SECONDS, start_to_close_timeout)
    FIELD(60, SECONDS, heartbeat_timeout)
    FIELD(90, I64, decision_task_completed_event_id)
    STRUCT(110, retry_policy, retry_policy)
    STRUCT(120, header, header)
END

ATTRIBUTES(activity_task_started, ActivityTaskStarted)
    FIELD(10, I64, scheduled_event_id)
    FIELD(20, TEXT, identity)
    FIELD(30, TEXT, request_id)
    FIELD(40, I32, attempt)
    FAILURE_REASON(50, last_failure)
    FAILURE_DETAILS(60, last_failure)
    FAILURE_OPTIONS(70, last_failure)
END

ATTRIBUTES(activity_task_completed, ActivityTaskCompleted)
    FIELD(10, PAYLOAD, result)
    FIELD(20, I64, scheduled_event_id)
    FIELD(30, I64, started_event_id)
    FIELD(40, TEXT, identity)
END

ATTRIBUTES(activity_task_failed, ActivityTaskFailed)
    FAILURE_REASON(10, failure)
    FAILURE_DETAILS(20, failure)
    FAILURE_OPTIONS(25, failure)
    FIELD(30, I64, scheduled_event_id)
    FIELD(40, I64, started_event_id)
    FIELD(50, TEXT, identity)
END

ATTRIBUTES(activity_task_timed_out, ActivityTaskTimedOut)
    FIELD(5, PAYLOAD, details)
    FIELD(10, I64, scheduled_event_id)
    FIELD(20, I64, started_event_id)
    FIELD(30, ENUM, timeout_type)
    FAILURE_REASON(40, last_failure)
    FAILURE_DETAILS(50, last_failure)
    FAILURE_OPTIONS(60, last_failure)
END

ATTRIBUTES(timer_started, TimerStarted)
    FIELD(10, TEXT, timer_id)
    FIELD(20, LONG_SECONDS, start_to_fire_timeout)
    FIELD(30, I64, decision_task_completed_event_id)
END

ATTRIBUTES(timer_fired, TimerFired)
    FIELD(10, TEXT, timer_id)
    FIELD(20, I64, started_event_id)
END

ATTRIBUTES(activity_task_cancel_requested, ActivityTaskCancelRequested)
    FIELD(10, TEXT, activity_id)
    FIELD(20, I64, decision_task_completed_event_id)
END

ATTRIBUTES(request_cancel_activity_task_failed, RequestCancelActivityTaskFailed)
    FIELD(10, TEXT, activity_id)
    FIELD(20, TEXT, cause)
    FIELD(30, I64, decision_task_completed_event_id)
END

ATTRIBUTES(activity_task_canceled, ActivityTaskCanceled)
    FIELD(10, PAYLOAD, details)
    FIELD(20, I64, latest_cancel_requested_event_id)
    FIELD(30, I64, scheduled_event_id)
    FIELD(40, I64, started_event_id)
    FIELD(50, TEXT, identity)
END

ATTRIBUTES(timer_canceled, TimerCanceled)
    FIELD(10, TEXT, timer_id)
    FIELD(20, I64, started_event_id)
    FIELD(30, I64, decision_task_completed_event_id)
    FIELD(40, TEXT, identity)
END

ATTRIBUTES(cancel_timer_failed, CancelTimerFailed)
    FIELD(10, TEXT, timer_id)
    FIELD(20, TEXT, cause)
    FIELD(30, I64, decision_task_completed_event_id)
    FIELD(40, TEXT, identity)
END

ATTRIBUTES(marker_recorded, MarkerRecorded)
    FIELD(10, TEXT, marker_name)
    FIELD(20, PAYLOAD, details)
    FIELD(30, I64, decision_task_completed_event_id)
    STRUCT(40, header, header)
END

ATTRIBUTES(workflow_execution_signaled, WorkflowExecutionSignaled)
    FIELD(10, TEXT, signal_name)
    FIELD(20, PAYLOAD, input)
    FIELD(30, TEXT, identity)
    FIELD(40, TEXT, request_id)
END

ATTRIBUTES(workflow_execution_terminated, WorkflowExecutionTerminated)
    FIELD(10, TEXT, reason)
    FIELD(20, PAYLOAD, details)
    FIELD(30, TEXT, identity)
END

ATTRIBUTES(workflow_execution_cancel_requested, WorkflowExecutionCancelRequested)
    FIELD(10, TEXT, cause)
    EXTERNAL(20, I64, initiated_id)
    EXTERNAL_STRUCT(30, workflow_execution, workflow_execution)
    FIELD(40, TEXT, identity)
    FIELD(50, TEXT, request_id)
END

ATTRIBUTES(workflow_execution_canceled, WorkflowExecutionCanceled)
    FIELD(10, I64, decision_task_completed_event_id)
    FIELD(20, PAYLOAD, details)
END

ATTRIBUTES(request_cancel_external_workflow_execution_initiated,
           RequestCancelExternalWorkflowExecutionInitiated)
    FIELD(10, I64, decision_task_completed_event_id)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    FIELD(40, BYTES, control)
    FIELD(50, BOOL, child_workflow_only)
END

ATTRIBUTES(request_cancel_external_workflow_execution_failed,
           RequestCancelExternalWorkflowExecutionFailed)
    FIELD(10, ENUM, cause)
    FIELD(20, I64, decision_task_completed_event_id)
    FIELD(30, TEXT, domain)
    STRUCT(40, workflow_execution, workflow_execution)
    FIELD(50, I64, initiated_event_id)
    FIELD(60, BYTES, control)
END

ATTRIBUTES(external_workflow_execution_cancel_requested, ExternalWorkflowExecutionCancelRequested)
    FIELD(10, I64, initiated_event_id)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
END

ATTRIBUTES(workflow_execution_continued_as_new, WorkflowExecutionContinuedAsNew)
    FIELD(10, TEXT, new_execution_run_id)
    STRUCT(20, workflow_type, workflow_type)
    STRUCT(30, task_list, task_list)
    FIELD(40, PAYLOAD, input)
    FIELD(50, SECONDS, execution_start_to_close_timeout)
    FIELD(60, SECONDS, task_start_to_close_timeout)
    FIELD(70, I64, decision_task_completed_event_id)
    FIELD(80, SECONDS, backoff_start_interval)
    FIELD(90, ENUM, initiator)
    FAILURE_REASON(100, failure)
    FAILURE_DETAILS(110, failure)
    FIELD(120, PAYLOAD, last_completion_result)
    STRUCT(130, header, header)
    STRUCT(140, memo, memo)
    STRUCT(150, search_attributes, search_attributes)
    FIELD(160, ENUM, cron_overlap_policy)
    STRUCT(170, active_cluster_selection_policy, active_cluster_selection_policy)
END

ATTRIBUTES(start_child_workflow_execution_initiated, StartChildWorkflowExecutionInitiated)
    FIELD(10, TEXT, domain)
    FIELD(20, TEXT, workflow_id)
    STRUCT(30, workflow_type, workflow_type)
    STRUCT(40, task_list, task_list)
    FIELD(50, PAYLOAD, input)
    FIELD(60, SECONDS, execution_start_to_close_timeout)
    FIELD(70, SECONDS, task_start_to_close_timeout)
    FIELD(81, ENUM, parent_close_policy)
    FIELD(90, BYTES, control)
    FIELD(100, I64, decision_task_completed_event_id)
    FIELD(110, ENUM, workflow_id_reuse_policy)
    STRUCT(120, retry_policy, retry_policy)
    FIELD(130, TEXT, cron_schedule)
    STRUCT(140, header, header)
    STRUCT(150, memo, memo)
    STRUCT(160, search_attributes, search_attributes)
    FIELD(170, SECONDS, delay_start)
    FIELD(180, SECONDS, jitter_start)
    FIELD(190, TIME, first_run_at)
    FIELD(200, ENUM, cron_overlap_policy)
    STRUCT(210, active_cluster_selection_policy, active_cluster_selection_policy)
END

ATTRIBUTES(start_child_workflow_execution_failed, StartChildWorkflowExecutionFailed)
    FIELD(10, TEXT, domain)
    FIELD(20, TEXT, workflow_id)
    STRUCT(30, workflow_type, workflow_type)
    FIELD(40, ENUM, cause)
    FIELD(50, BYTES, control)
    FIELD(60, I64, initiated_event_id)
    FIELD(70, I64, decision_task_completed_event_id)
END

ATTRIBUTES(child_workflow_execution_started, ChildWorkflowExecutionStarted)
    FIELD(10, TEXT, domain)
    FIELD(20, I64, initiated_event_id)
    STRUCT(30, workflow_execution, workflow_execution)
    STRUCT(40, workflow_type, workflow_type)
    STRUCT(50, header, header)
END

ATTRIBUTES(child_workflow_execution_completed, ChildWorkflowExecutionCompleted)
    FIELD(10, PAYLOAD, result)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    STRUCT(40, workflow_type, workflow_type)
    FIELD(50, I64, initiated_event_id)
    FIELD(60, I64, started_event_id)
END

ATTRIBUTES(child_workflow_execution_failed, ChildWorkflowExecutionFailed)
    FAILURE_REASON(10, failure)
    FAILURE_DETAILS(20, failure)
    FIELD(30, TEXT, domain)
    STRUCT(40, workflow_execution, workflow_execution)
    STRUCT(50, workflow_type, workflow_type)
    FIELD(60, I64, initiated_event_id)
    FIELD(70, I64, started_event_id)
END

ATTRIBUTES(child_workflow_execution_canceled, ChildWorkflowExecutionCanceled)
    FIELD(10, PAYLOAD, details)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    STRUCT(40, workflow_type, workflow_type)
    FIELD(50, I64, initiated_event_id)
    FIELD(60, I64, started_event_id)
END

ATTRIBUTES(child_workflow_execution_timed_out, ChildWorkflowExecutionTimedOut)
    FIELD(10, ENUM, timeout_type)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    STRUCT(40, workflow_type, workflow_type)
    FIELD(50, I64, initiated_event_id)
    FIELD(60, I64, started_event_id)
END

ATTRIBUTES(child_workflow_execution_terminated, ChildWorkflowExecutionTerminated)
    FIELD(10, TEXT, domain)
    STRUCT(20, workflow_execution, workflow_execution)
    STRUCT(30, workflow_type, workflow_type)
    FIELD(40, I64, initiated_event_id)
    FIELD(50, I64, started_event_id)
END

ATTRIBUTES(signal_external_workflow_execution_initiated, SignalExternalWorkflowExecutionInitiated)
    FIELD(10, I64, decision_task_completed_event_id)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    FIELD(40, TEXT, signal_name)
    FIELD(50, PAYLOAD, input)
    FIELD(60, BYTES, control)
    FIELD(70, BOOL, child_workflow_only)
END

ATTRIBUTES(signal_external_workflow_execution_failed, SignalExternalWorkflowExecutionFailed)
    FIELD(10, ENUM, cause)
    FIELD(20, I64, decision_task_completed_event_id)
    FIELD(30, TEXT, domain)
    STRUCT(40, workflow_execution, workflow_execution)
    FIELD(50, I64, initiated_event_id)
    FIELD(60, BYTES, control)
END

ATTRIBUTES(external_workflow_execution_signaled, ExternalWorkflowExecutionSignaled)
    FIELD(10, I64, initiated_event_id)
    FIELD(20, TEXT, domain)
    STRUCT(30, workflow_execution, workflow_execution)
    FIELD(40, BYTES, control)
END

ATTRIBUTES(upsert_workflow_search_attributes, UpsertWorkflowSearchAttributes)
    FIELD(10, I64, decision_task_completed_event_id)
    STRUCT(20, search_attributes, search_attributes)
END

/* clang-format on */

#endif
