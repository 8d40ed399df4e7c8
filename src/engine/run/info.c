/* info.c - a run as describe and visibility show it: made in one place, so that they agree. */
#include "engine/run/inside.h"

/* NULL: there is no such time. */
static GOOGLE(Timestamp) *
time_of(int64_t nanoseconds, struct arena *arena)
{
    struct maybe_int64 time = {.is_set = nanoseconds != 0, .value = nanoseconds};
    return presence_make_maybe_timestamp(arena, time);
}

#define STATUS(name) API_VALUE(WORKFLOW_EXECUTION_STATUS__WORKFLOW_EXECUTION_STATUS_##name)

static API(WorkflowExecutionStatus)
status_of(const STORED(RunRecord) *core)
{
    int end = (int)core->close_status;
    if (end != 0) /* the ends follow in the same order */
        return (API(WorkflowExecutionStatus))((int)STATUS(STARTED) + end);
    return core->first_decision_time != 0 ? STATUS(PENDING) : STATUS(STARTED);
}

/* A client may start a run without saying the kind. */
API(TaskList) *
run_info_list(const STORED(RunRecord) *core, struct arena *arena)
{
    API(TaskList) *list = message_new(arena, API_TYPE(task_list));
    list->name = core->task_list->name;
    list->kind = core->task_list->kind;
    if (list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID))
        list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    return list;
}

/* The entries have the same fields; texts are shared. */
static void
fill_partitions(API(WorkflowExecutionInfo) *info, const STORED(RunRecord) *core,
                struct arena *arena)
{
    info->n_partition_config = core->n_partition_config;
    info->partition_config =
        arena_zalloc(arena, core->n_partition_config, sizeof info->partition_config[0]);
    for (size_t i = 0; i < core->n_partition_config; i++) {
        API(WorkflowExecutionInfo__PartitionConfigEntry) *entry =
            message_new(arena, API_TYPE(workflow_execution_info__partition_config_entry));
        entry->key = core->partition_config[i]->key;
        entry->value = core->partition_config[i]->value;
        info->partition_config[i] = entry;
    }
}

static void
fill_times(API(WorkflowExecutionInfo) *info, const STORED(RunRecord) *core, struct arena *arena)
{
    info->start_time = time_of(core->start_time, arena);
    info->execution_time = time_of(core->execution_time, arena);
    info->scheduled_execution_time = time_of(core->execution_time, arena);
    info->update_time = time_of(core->last_updated_time, arena);
    if (core->close_status != 0)
        info->close_time = time_of(core->close_time, arena);
}

API(WorkflowExecutionInfo) *
run_info(const STORED(RunRecord) *core, struct arena *arena)
{
    API(WorkflowExecutionInfo) *info = message_new(arena, API_TYPE(workflow_execution_info));
    info->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    info->workflow_execution->workflow_id = core->workflow_id;
    info->workflow_execution->run_id = core->run_id;
    info->type = core->workflow_type;
    info->close_status = core->close_status;
    info->execution_status = status_of(core);
    info->history_length = core->next_event_id - 1; /* */
    info->parent_execution_info = core->parent;
    info->memo = core->memo != NULL ? core->memo : message_new(arena, API_TYPE(memo));
    info->search_attributes = core->search_attributes != NULL
                                  ? core->search_attributes
                                  : message_new(arena, API_TYPE(search_attributes));
    info->auto_reset_points = core->auto_reset_points;
    info->is_cron = core->cron_schedule[0] != '\0';
    info->cron_schedule = core->cron_schedule;
    info->cron_overlap_policy = core->cron_overlap_policy;
    if (info->cron_overlap_policy == API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_INVALID))
        info->cron_overlap_policy = API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED);
    info->active_cluster_selection_policy = core->active_cluster_selection_policy;
    info->task_list_info = run_info_list(core, arena);
    info->task_list = core->task_list->name;
    fill_times(info, core, arena);
    fill_partitions(info, core, arena);
    return info;
}
