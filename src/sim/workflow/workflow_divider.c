/* workflow_divider.c - an operator of the workflow load, who divides its task lists into more and
 * fewer partitions while all goes on. See workflow_load.h. */
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

#define CALL_TIMEOUT (3 * NS_PER_S)
#define PARTS_MAX    4
#define PAUSE_MAX    (4 * NS_PER_S)

static API(TaskListPartitionConfig) *
any_division(struct arena *arena)
{
    API(TaskListPartitionConfig) *config = API_NEW(arena, task_list_partition_config);
    size_t reads = 1 + (size_t)entropy_below(PARTS_MAX);
    size_t writes = 1 + (size_t)entropy_below(reads);
    config->read_partitions = arena_zalloc(arena, reads, sizeof(void *));
    config->write_partitions = arena_zalloc(arena, writes, sizeof(void *));
    for (size_t i = 0; i < reads; i++) {
        API(TaskListPartitionConfig__ReadPartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__read_partitions_entry));
        entry->key = (int32_t)i;
        entry->value = API_NEW(arena, task_list_partition);
        config->read_partitions[config->n_read_partitions++] = entry;
    }
    for (size_t i = 0; i < writes; i++) {
        API(TaskListPartitionConfig__WritePartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__write_partitions_entry));
        entry->key = (int32_t)i;
        entry->value = API_NEW(arena, task_list_partition);
        config->write_partitions[config->n_write_partitions++] = entry;
    }
    return config;
}

static void
divide(struct workflow_load *load, struct load_clients *clients, struct arena *arena)
{
    struct load_call call = {.clients = clients, .host = workflow_any_host(load), .arena = arena};
    ADMIN(UpdateTaskListPartitionConfigRequest) *request =
        ADMIN_NEW(arena, update_task_list_partition_config_request, .domain = WORKFLOW_DOMAIN,
                  .task_list = workflow_task_list(arena));
    request->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    request->task_list_type = entropy_below(2) == 0
                                  ? API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_DECISION)
                                  : API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_ACTIVITY);
    request->partition_config = any_division(arena);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = load_send(&call, request, NULL);
    fiber_set_deadline(NEVER);
    if (err != NULL && !workflow_is_expected(err))
        verdict_violate(&load->verdict, "dividing a list failed with %s: %s",
                        error_kind_name(err->kind), err->message);
    world_probe(load->sim->world, err == NULL ? "divided_by_hand" : "not_divided");
}

void
workflow_divider_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (load->clients_running > 0) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        divide(load, clients, arena);
        if (fiber_sleep((int64_t)entropy_below(PAUSE_MAX), arena) != NULL)
            break;
    }
    load_clients_free(clients);
    load->observers_running--;
}
