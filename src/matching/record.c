/* record.c - how task lists and tasks look in the store. See inside.h. */
#include "base/check.h"
#include "fiber/clock.h"
#include "matching/inside.h"
#include "store/key.h"
#include "wire/maps.h"
#include "wire/message.h"

#define FORMAT 1

struct partition
record_partition(const struct task_list *list)
{
    return (struct partition){.kind = PARTITION_TASK_LIST, .name = list->key};
}

struct slice
record_list_key(struct arena *arena)
{
    return key_of_number(0, arena);
}

struct slice
record_task_key(int64_t number, struct arena *arena)
{
    check(number >= 0);
    return key_of_number((uint64_t)number, arena);
}

struct slice
record_list(const struct task_list *list, struct arena *arena)
{
    STORED(TaskListRecord) *record = message_new(arena, STORED_TYPE(task_list_record));
    record->format = FORMAT;
    record->range_id = list->backlog.range;
    /* Not `acked`: the next owner begins here, and would never delete what is below. */
    record->ack_level = (uint64_t)list->backlog.deleted;
    record->backlog = list->backlog.rows;
    record->last_updated_time = clock_wall();
    if (list->root != NULL) {
        record->partition_config = list->root->config;
        record->partition_highest = list->root->highest;
    }
    return message_encode(arena, &record->base);
}

#define PARTITION_GROUP "isolation-group"

static void
record_group(STORED(TaskRow) *record, const char *group, struct arena *arena)
{
    STORED(TaskRow__PartitionConfigEntry) *entry =
        message_new(arena, STORED_TYPE(task_row__partition_config_entry));
    entry->key = PARTITION_GROUP;
    entry->value = (char *)group;
    record->partition_config = arena_zalloc(arena, 1, sizeof(void *));
    record->partition_config[0] = entry;
    record->n_partition_config = 1;
}

static const char *
read_group(const STORED(TaskRow) *record)
{
    const STORED(TaskRow__PartitionConfigEntry) *entry =
        wire_map_find(record->partition_config, record->n_partition_config, PARTITION_GROUP);
    return entry == NULL ? "" : entry->value;
}

struct slice
record_task(const struct task *task, struct arena *arena)
{
    STORED(TaskRow) *record = message_new(arena, STORED_TYPE(task_row));
    record->format = FORMAT;
    record->domain_id = (char *)task->run_domain_id;
    record->workflow_id = (char *)task->workflow_id;
    record->run_id = (char *)task->run_id;
    record->schedule_id = task->schedule_id;
    record->attempt = task->attempt;
    record->created_time = task->created_time;
    record->expiry_time = task->expiry_time;
    record->shard = task->shard;
    if (task->isolation_group != NULL && task->isolation_group[0] != '\0')
        record_group(record, task->isolation_group, arena);
    return message_encode(arena, &record->base);
}

static struct error *
check_format(uint32_t format, struct arena *arena)
{
    if (format == FORMAT)
        return NULL;
    return error_new(arena, ERR_CORRUPT, "format %u of a task list's row is unknown", format);
}

struct error *
record_read_list(struct slice bytes, struct arena *arena, STORED(TaskListRecord) **record)
{
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(task_list_record), bytes, record);
    return err != NULL ? err : check_format((*record)->format, arena);
}

struct error *
record_read_task(struct task_list *list, const struct row *row, struct arena *arena,
                 struct offer **offer)
{
    STORED(TaskRow) *record = NULL;
    struct slice key = row->key;
    uint64_t number;
    if (!key_take_u64(&key, &number))
        return error_new(arena, ERR_CORRUPT, "the key of a stored task is not a number");
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(task_row), row->value, &record);
    if (err == NULL)
        err = check_format(record->format, arena);
    if (err != NULL)
        return err;
    struct task task = {.type = list->type,
                        .kind = list->kind,
                        .domain_id = list->domain_id,
                        .list = list->name,
                        .normal_list = "",
                        .run_domain_id = record->domain_id,
                        .workflow_id = record->workflow_id,
                        .run_id = record->run_id,
                        .schedule_id = record->schedule_id,
                        .attempt = record->attempt,
                        .created_time = record->created_time,
                        .expiry_time = record->expiry_time,
                        .shard = record->shard,
                        .isolation_group = read_group(record),
                        .partition = list->partition,
                        .number = (int64_t)number};
    *offer = offer_new(list->loop_lists->matching, &task, OFFER_ADD);
    offer_hold(list->loop_lists->matching, *offer);
    return NULL;
}
