/* outbox.c - rows that say what has to happen elsewhere once the step is durable. */
#include "engine/run/inside.h"

/* The types differ, the texts are shared. */
void
transfer_fill_partitions(STORED(TransferRow) *transfer, const STORED(RunRecord) *core,
                         struct arena *arena)
{
    size_t count = core->n_partition_config;
    transfer->n_partition_config = count;
    transfer->partition_config = arena_zalloc(arena, count, sizeof(transfer->partition_config[0]));
    for (size_t i = 0; i < count; i++) {
        STORED(TransferRow__PartitionConfigEntry) *entry =
            message_new(arena, STORED_TYPE(transfer_row__partition_config_entry));
        entry->key = core->partition_config[i]->key;
        entry->value = core->partition_config[i]->value;
        transfer->partition_config[i] = entry;
    }
}

bool
transfer_is_task(STORED(TransferType) type)
{
    return type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION ||
           type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY;
}

uint64_t
mutation_add_transfer(struct mutation *mutation, STORED(TransferRow) *transfer)
{
    const STORED(RunRecord) *core = mutation_core(mutation);
    const struct run_context *context = mutation->context;
    check(context->ids->next < context->ids->end && transfer->created_time == 0);
    check(transfer->type != CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_INVALID);
    check((transfer->task_list != NULL) == transfer_is_task(transfer->type));
    if (run_is_zombie(mutation->run) &&
        transfer->type != CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REAPPLY)
        return 0;
    transfer->format = RUN_RECORD_FORMAT;
    transfer->domain_id = core->domain_id;
    transfer->workflow_id = core->workflow_id;
    transfer->run_id = core->run_id;
    transfer->event_version = context->event_version;
    transfer->created_time = context->now;
    if (core->active_cluster_selection_policy != NULL)
        transfer->cluster_attribute = core->active_cluster_selection_policy->cluster_attribute;
    if (transfer_is_task(transfer->type))
        transfer_fill_partitions(transfer, core, mutation->arena);
    uint64_t row = context->ids->next++;
    vector_push_in(&mutation->rows, mutation->arena,
                   (struct outbox_change){.row = row, .transfer = transfer});
    return row;
}

void
mutation_drop_transfer(struct mutation *mutation, uint64_t row)
{
    check(!mutation->is_over);
    if (row == 0)
        return;
    check(row < mutation->context->ids->next);
    vector_push_in(&mutation->rows, mutation->arena, (struct outbox_change){.row = row});
}
