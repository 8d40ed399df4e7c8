/* transfer.c - a row of the outbox as memory has it: one block, the struct and behind it its texts.
 *
 * Of a task everything is kept that its list asks for. Of a cross-workflow task, which is read once
 * more when its turn comes, only what says where its run is active and in which queue it stands. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/cross_task_fibers.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

/* A list is sticky only for a task that has another list to go to: what clients call sticky on
 * their own would wait in memory alone. */
static enum list_kind
list_kind_of(const STORED(TransferRow) *stored)
{
    const API(TaskList) *list = stored->task_list;
    if (list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY))
        return stored->normal_list[0] == '\0' ? LIST_NORMAL : LIST_STICKY;
    if (list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL))
        return LIST_EPHEMERAL;
    return LIST_NORMAL;
}

static const char *
place_text(char **place, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*place, text, size);
    *place += size;
    return copy;
}

/* What the run belongs to; the room that its texts need. */
static size_t
attribute_size(const STORED(TransferRow) *stored)
{
    const API(ClusterAttribute) *attribute = stored->cluster_attribute;
    return attribute == NULL ? 0 : strlen(attribute->scope) + strlen(attribute->name) + 2;
}

static void
place_attribute(struct transfer *transfer, char **place, const STORED(TransferRow) *stored)
{
    const API(ClusterAttribute) *attribute = stored->cluster_attribute;
    transfer->event_version = stored->event_version;
    if (attribute == NULL)
        return;
    transfer->attribute_scope = place_text(place, attribute->scope);
    transfer->attribute_name = place_text(place, attribute->name);
}

/* A request waits in the queue of its workflow id, whose name lies behind it. */
static struct transfer *
transfer_new_cross_task(struct outbox *outbox, uint64_t row, const STORED(TransferRow) *stored)
{
    bool is_request = stored->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST;
    size_t request_queue =
        is_request ? strlen(stored->domain_id) + 1 + strlen(stored->workflow_id) + 1 : 0;
    size_t size = strlen(stored->domain_id) + 1 + attribute_size(stored) + request_queue;
    check(row != 0);
    struct transfer *transfer = memory_zalloc(1, sizeof *transfer + size);
    char *place = (char *)(transfer + 1);
    transfer->is_cross_task = true;
    transfer->runs_anywhere =
        stored->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REAPPLY;
    transfer->notifies_parent =
        stored->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_TELL_PARENT;
    transfer->task.row = row;
    transfer->task.run_domain_id = place_text(&place, stored->domain_id);
    place_attribute(transfer, &place, stored);
    list_init(&transfer->node);
    if (!is_request)
        return transfer;
    transfer->request_queue = slice_of(place, request_queue);
    (void)place_text(&place, stored->domain_id);
    (void)place_text(&place, stored->workflow_id);
    request_queue_join(&outbox->cross_tasks, transfer);
    return transfer;
}

#define PARTITION_GROUP "isolation-group"

/* The isolation group that the run was started from; "": none. */
static const char *
group_of(const STORED(TransferRow) *stored)
{
    for (size_t i = 0; i < stored->n_partition_config; i++) {
        if (strcmp(stored->partition_config[i]->key, PARTITION_GROUP) == 0)
            return stored->partition_config[i]->value;
    }
    return "";
}

struct transfer *
transfer_new(struct tenure *tenure, uint64_t row, const STORED(TransferRow) *stored)
{
    if (!transfer_is_task(stored->type))
        return transfer_new_cross_task(&tenure->outbox, row, stored);
    check(row != 0 && stored->task_list != NULL);
    bool is_replicated = stored->list_domain_id[0] != '\0'; /* the list is another domain's */
    const char *list_domain = is_replicated ? stored->list_domain_id : stored->domain_id;
    size_t size = strlen(stored->domain_id) + strlen(list_domain) +
                  strlen(stored->task_list->name) + strlen(stored->normal_list) +
                  strlen(stored->workflow_id) + strlen(stored->run_id) + strlen(group_of(stored)) +
                  7 + attribute_size(stored);
    struct transfer *transfer = memory_zalloc(1, sizeof *transfer + size);
    char *place = (char *)(transfer + 1);
    bool is_activity = stored->type == CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY;
    transfer->task = (struct task){
        .type = is_activity ? TASK_ACTIVITY : TASK_DECISION,
        .kind = list_kind_of(stored),
        .domain_id = place_text(&place, list_domain),
        .run_domain_id = place_text(&place, stored->domain_id),
        .list = place_text(&place, stored->task_list->name),
        .normal_list = place_text(&place, stored->normal_list),
        .workflow_id = place_text(&place, stored->workflow_id),
        .run_id = place_text(&place, stored->run_id),
        .isolation_group = place_text(&place, group_of(stored)),
        .schedule_id = stored->schedule_id,
        .attempt = stored->attempt,
        .created_time = stored->created_time,
        .expiry_time = stored->expiry_time,
        .shard = tenure->shard->options.number,
        .range_id = tenure->range_id,
        .row = row,
    };
    place_attribute(transfer, &place, stored);
    list_init(&transfer->node);
    return transfer;
}

struct error *
transfer_read(struct tenure *tenure, uint64_t row, struct slice value, struct arena *arena,
              struct transfer **transfer)
{
    STORED(TransferRow) *stored = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(transfer_row), value, &stored);
    if (err != NULL)
        return err;
    if (transfer_is_task(stored->type) && stored->task_list == NULL)
        return error_new(arena, ERR_CORRUPT, "shard %u: a row of the outbox has no task list",
                         tenure->shard->options.number);
    *transfer = transfer_new(tenure, row, stored);
    (*transfer)->is_repeat = true;
    return NULL;
}
