/* api.c - the table of the public door. See api.h. */
#include "api/api.h"

#include "api/inside.h"

#define API_PATH(service, name) "/uber.cadence.api.v1." service "/" name
#define ADMIN_PATH(name)        "/uber.cadence.admin.v1.AdminAPI/" name

static const struct rpc_method methods[] = {
    {API_PATH("MetaAPI", "Health"), api_health},
    {API_PATH("WorkflowAPI", "GetClusterInfo"), api_get_cluster_info},
    {API_PATH("WorkflowAPI", "StartWorkflowExecution"), api_start_workflow},
    {API_PATH("WorkflowAPI", "SignalWorkflowExecution"), api_signal_workflow},
    {API_PATH("WorkflowAPI", "SignalWithStartWorkflowExecution"), api_signal_with_start},
    {API_PATH("WorkflowAPI", "StartWorkflowExecutionAsync"), api_start_workflow_later},
    {API_PATH("WorkflowAPI", "SignalWithStartWorkflowExecutionAsync"), api_signal_with_start_later},
    {API_PATH("WorkflowAPI", "RequestCancelWorkflowExecution"), api_request_cancel_workflow},
    {API_PATH("WorkflowAPI", "TerminateWorkflowExecution"), api_terminate_workflow},
    {API_PATH("WorkflowAPI", "RestartWorkflowExecution"), api_restart_workflow},
    {API_PATH("WorkflowAPI", "ResetWorkflowExecution"), api_reset_workflow},
    {API_PATH("WorkflowAPI", "RefreshWorkflowTasks"), api_refresh_tasks},
    {API_PATH("WorkflowAPI", "DescribeWorkflowExecution"), api_describe_workflow},
    {API_PATH("WorkflowAPI", "GetWorkflowExecutionHistory"), api_get_history},
    {API_PATH("WorkflowAPI", "DescribeTaskList"), api_describe_task_list},
    {API_PATH("WorkflowAPI", "ListTaskListPartitions"), api_list_task_list_partitions},
    {API_PATH("WorkflowAPI", "GetTaskListsByDomain"), api_get_task_lists_by_domain},
    {API_PATH("WorkflowAPI", "QueryWorkflow"), api_query_workflow},
    {API_PATH("WorkflowAPI", "DiagnoseWorkflowExecution"), api_diagnose_workflow},
    {API_PATH("WorkerAPI", "PollForDecisionTask"), api_poll_decision},
    {API_PATH("WorkerAPI", "PollForActivityTask"), api_poll_activity},
    {API_PATH("WorkerAPI", "RespondDecisionTaskCompleted"), api_complete_decision},
    {API_PATH("WorkerAPI", "RespondDecisionTaskFailed"), api_fail_decision},
    {API_PATH("WorkerAPI", "ResetStickyTaskList"), api_reset_sticky},
    {API_PATH("WorkerAPI", "RespondQueryTaskCompleted"), api_complete_query},
    {API_PATH("WorkerAPI", "RespondActivityTaskCompleted"), api_complete_activity},
    {API_PATH("WorkerAPI", "RespondActivityTaskCompletedByID"), api_complete_activity_by_id},
    {API_PATH("WorkerAPI", "RespondActivityTaskFailed"), api_fail_activity},
    {API_PATH("WorkerAPI", "RespondActivityTaskFailedByID"), api_fail_activity_by_id},
    {API_PATH("WorkerAPI", "RespondActivityTaskCanceled"), api_cancel_activity},
    {API_PATH("WorkerAPI", "RespondActivityTaskCanceledByID"), api_cancel_activity_by_id},
    {API_PATH("WorkerAPI", "RecordActivityTaskHeartbeat"), api_heartbeat_activity},
    {API_PATH("WorkerAPI", "RecordActivityTaskHeartbeatByID"), api_heartbeat_activity_by_id},
    {API_PATH("DomainAPI", "RegisterDomain"), api_register_domain},
    {API_PATH("DomainAPI", "DescribeDomain"), api_describe_domain},
    {API_PATH("DomainAPI", "ListDomains"), api_list_domains},
    {API_PATH("DomainAPI", "UpdateDomain"), api_update_domain},
    {API_PATH("DomainAPI", "DeprecateDomain"), api_deprecate_domain},
    {API_PATH("DomainAPI", "DeleteDomain"), api_delete_domain},
    {API_PATH("DomainAPI", "FailoverDomain"), api_failover_domain},
    {API_PATH("DomainAPI", "ListFailoverHistory"), api_list_failover_history},
    {API_PATH("VisibilityAPI", "GetSearchAttributes"), api_get_search_attributes},
    {ADMIN_PATH("GetDomainAsyncWorkflowConfiguraton"), api_get_async_configuration},
    {ADMIN_PATH("UpdateDomainAsyncWorkflowConfiguraton"), api_update_async_configuration},
    {API_PATH("VisibilityAPI", "ListWorkflowExecutions"), api_list_workflows},
    {API_PATH("VisibilityAPI", "ScanWorkflowExecutions"), api_scan_workflows},
    {API_PATH("VisibilityAPI", "ListOpenWorkflowExecutions"), api_list_open_workflows},
    {API_PATH("VisibilityAPI", "ListClosedWorkflowExecutions"), api_list_closed_workflows},
    {API_PATH("VisibilityAPI", "ListArchivedWorkflowExecutions"), api_list_archived_workflows},
    {API_PATH("VisibilityAPI", "CountWorkflowExecutions"), api_count_workflows},
    {ADMIN_PATH("AddSearchAttribute"), api_add_search_attribute},
    {ADMIN_PATH("DescribeCluster"), api_describe_cluster},
    {ADMIN_PATH("DeleteWorkflow"), api_delete_workflow},
    {"/cadenza.admin.v1.VisibilityAPI/Rebuild", api_rebuild_visibility},
    {ADMIN_PATH("UpdateTaskListPartitionConfig"), api_update_task_list_partitions},
    {ADMIN_PATH("GetGlobalIsolationGroups"), api_get_global_groups},
    {ADMIN_PATH("UpdateGlobalIsolationGroups"), api_update_global_groups},
    {ADMIN_PATH("GetDomainIsolationGroups"), api_get_domain_groups},
    {ADMIN_PATH("UpdateDomainIsolationGroups"), api_update_domain_groups},
    {"/cadenza.admin.v1.StoreAPI/Backup", api_backup},
    {ADMIN_PATH("GetDynamicConfig"), api_get_dynamic_config},
    {ADMIN_PATH("UpdateDynamicConfig"), api_update_dynamic_config},
    {ADMIN_PATH("RestoreDynamicConfig"), api_restore_dynamic_config},
    {ADMIN_PATH("ListDynamicConfig"), api_list_dynamic_config},
    {ADMIN_PATH("GetOperationalDynamicConfig"), api_get_dynamic_config},
    {ADMIN_PATH("UpdateOperationalDynamicConfig"), api_update_dynamic_config},
    {ADMIN_PATH("RestoreOperationalDynamicConfig"), api_restore_dynamic_config},
    {ADMIN_PATH("ListOperationalDynamicConfig"), api_list_dynamic_config},
    {"/cadenza.admin.v1.LimitsAPI/HotWorkflows", api_hot_workflows},
    {"/grpc.health.v1.Health/Check", api_grpc_health_check},
    {NULL, NULL},
};

struct rpc_table
api_table(struct api *api)
{
    return (struct rpc_table){
        .methods = methods, .door = api, .admit = api_admit, .refine = api_refine};
}
