/* dlq.c - messages of other clusters that could not be applied: admin dlq count, read, purge,
 * merge. */
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "cli/inside.h"
#include "cli/table.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define TIMEOUT   (30 * NS_PER_S)
#define PAGE_SIZE 100
#define PATH(rpc) "/uber.cadence.admin.v1.AdminAPI/" rpc
#define ASK(call, rpc, request, type, answer)                                                      \
    cli_ask((call), PATH(rpc), &(request)->base, TIMEOUT, ADMIN_TYPE(type),                        \
            (ProtobufCMessage **)(answer))

/* Which queue is meant. */
struct queue {
    ADMIN(DLQType) type;
    int32_t shard;
    const char *source;
    GOOGLE(Int64Value) *end;
};

static struct error *
wrong(struct cli_call *call, const char *flag, const char *wanted)
{
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST, "%s: %s", flag, wanted));
}

static struct error *
read_queue(struct cli_call *call, struct queue *queue)
{
    const struct dlq_flags *flags = &call->dlq;
    bool is_domain = flags->type != NULL && strcmp(flags->type, "domain") == 0;
    if (flags->type != NULL && !is_domain && strcmp(flags->type, "history") != 0)
        return wrong(call, "--dlq_type", "domain or history");
    uint64_t shard = 0;
    if (!is_domain && (flags->shard == NULL ||
                       !text_parse_uint64(slice_text(flags->shard), 0, INT32_MAX, &shard)))
        return wrong(call, "--shard_id", "the number of the shard is needed");
    if (!is_domain && flags->source == NULL)
        return wrong(call, "--source_cluster", "the cluster that sent the messages is needed");
    int64_t last = 0;
    if (flags->last != NULL && !text_parse_int64(slice_text(flags->last), 0, INT64_MAX, &last))
        return wrong(call, "--last_message_id", "a number is needed");
    *queue = (struct queue){
        .type = is_domain ? ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN)
                          : ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION),
        .shard = (int32_t)shard,
        .source = flags->source == NULL ? "" : flags->source,
        .end = presence_make_int64(call->arena, (struct maybe_int64){flags->last != NULL, last}),
    };
    return NULL;
}

/* --- count ---- */

struct error *
cli_dlq_count(struct cli_call *call)
{
    ADMIN(CountDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(count_dlqmessages_request));
    ADMIN(CountDLQMessagesResponse) *response = NULL;
    request->force_fetch = true;
    struct error *err =
        ASK(call, "CountDLQMessages", request, count_dlqmessages_response, &response);
    if (err != NULL)
        return err;
    json_t *all = json_array();
    struct table table = {.columns = 3, .arena = call->arena};
    table_add(&table, "SOURCE CLUSTER", "SHARD", "MESSAGES");
    for (size_t i = 0; i < response->n_history; i++) {
        const ADMIN(HistoryDLQCountEntry) *entry = response->history[i];
        table_add(&table, entry->source_cluster,
                  arena_format(call->arena, "%d", (int)entry->shard_id),
                  arena_format(call->arena, "%lld", (long long)entry->count));
        json_array_append_new(all, json_pack("{s:s, s:i, s:I}", "sourceCluster",
                                             entry->source_cluster, "shardId", (int)entry->shard_id,
                                             "count", (json_int_t)entry->count));
    }
    table_add(&table, "(domains)", "",
              arena_format(call->arena, "%lld", (long long)response->domain));
    if (call->as_json) {
        cli_print_json(
            json_pack("{s:o, s:I}", "history", all, "domain", (json_int_t)response->domain));
        return NULL;
    }
    json_decref(all);
    cli_print("%s", table_text(&table));
    return NULL;
}

/* --- read ---- */

static const char *
workflow_of(const ADMIN(ReplicationTask) *task)
{
    const API(WorkflowExecution) *execution = NULL;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES))
        execution = task->history_task_v2_attributes->workflow_execution;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES))
        execution = task->sync_activity_task_attributes->workflow_execution;
    if (task->attributes_case == ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES))
        return task->domain_task_attributes->id;
    return execution == NULL ? "" : execution->workflow_id;
}

static const char *
run_of(const ADMIN(ReplicationTask) *task)
{
    const API(WorkflowExecution) *execution = NULL;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES))
        execution = task->history_task_v2_attributes->workflow_execution;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES))
        execution = task->sync_activity_task_attributes->workflow_execution;
    return execution == NULL ? "" : execution->run_id;
}

static void
add_tasks(const ADMIN(ReadDLQMessagesResponse) *page, struct table *table, json_t *all)
{
    for (size_t i = 0; i < page->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = page->replication_tasks[i];
        const char *id = arena_format(table->arena, "%lld", (long long)task->source_task_id);
        table_add(table, id, workflow_of(task), run_of(task));
        json_array_append_new(all, json_pack("{s:I, s:s, s:s}", "messageId",
                                             (json_int_t)task->source_task_id, "id",
                                             workflow_of(task), "runId", run_of(task)));
    }
}

struct error *
cli_dlq_read(struct cli_call *call)
{
    struct queue queue;
    struct error *err = read_queue(call, &queue);
    if (err != NULL)
        return err;
    ADMIN(ReadDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(read_dlqmessages_request));
    request->type = queue.type;
    request->shard_id = queue.shard;
    request->source_cluster = (char *)queue.source;
    request->inclusive_end_message_id = queue.end;
    request->page_size = PAGE_SIZE;
    json_t *all = json_array();
    struct table table = {.columns = 3, .arena = call->arena};
    table_add(&table, "MESSAGE", "WORKFLOW ID", "RUN ID");
    do {
        ADMIN(ReadDLQMessagesResponse) *page = NULL;
        err = ASK(call, "ReadDLQMessages", request, read_dlqmessages_response, &page);
        if (err != NULL)
            break;
        add_tasks(page, &table, all);
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
    if (err != NULL || !call->as_json)
        json_decref(all);
    else
        cli_print_json(all);
    if (err == NULL && !call->as_json)
        cli_print("%s", table_text(&table));
    return err;
}

/* --- purge, merge ---- */

struct error *
cli_dlq_purge(struct cli_call *call)
{
    struct queue queue;
    struct error *err = read_queue(call, &queue);
    if (err != NULL)
        return err;
    ADMIN(PurgeDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(purge_dlqmessages_request));
    request->type = queue.type;
    request->shard_id = queue.shard;
    request->source_cluster = (char *)queue.source;
    request->inclusive_end_message_id = queue.end;
    ADMIN(PurgeDLQMessagesResponse) *response = NULL;
    err = ASK(call, "PurgeDLQMessages", request, purge_dlqmessages_response, &response);
    if (err == NULL)
        cli_print("The messages are gone.\n");
    return err;
}

struct error *
cli_dlq_merge(struct cli_call *call)
{
    struct queue queue;
    struct error *err = read_queue(call, &queue);
    if (err != NULL)
        return err;
    ADMIN(MergeDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(merge_dlqmessages_request));
    request->type = queue.type;
    request->shard_id = queue.shard;
    request->source_cluster = (char *)queue.source;
    request->inclusive_end_message_id = queue.end;
    request->page_size = PAGE_SIZE;
    do {
        ADMIN(MergeDLQMessagesResponse) *page = NULL;
        err = ASK(call, "MergeDLQMessages", request, merge_dlqmessages_response, &page);
        if (err == NULL)
            request->next_page_token = page->next_page_token;
    } while (err == NULL && request->next_page_token.len > 0);
    if (err == NULL)
        cli_print("The messages were applied.\n");
    return err;
}
