/* dlq.c - messages of other clusters that could not be applied: admin dlq count, read, purge,
 * merge. */
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/base/inside.h"
#include "cli/base/request.h"
#include "cli/output/table.h"
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

#define SHARDS_MAX 100000 /* that a command line may name */

/* Which queues are meant: of each of the shards, one. */
struct dlq_target {
    ADMIN(DLQType) type;
    struct {
        int32_t *items;
        size_t count, capacity;
    } shards;
    const char *source;
    GOOGLE(Int64Value) *end;
    int64_t applied;   /* by merging */
    bool has_no_count; /* a server that does not say how many it applied */
};

static struct error *
wrong(struct cli_call *call, const char *flag, const char *wanted)
{
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST, "%s: %s", flag, wanted));
}

/* "5", or "5-7". */
static bool
read_range(struct cli_call *call, const char *text, struct dlq_target *dlq_target)
{
    size_t length = strcspn(text, "-");
    uint64_t first, last;
    if (!text_parse_uint64(slice_of(text, length), 0, INT32_MAX, &first))
        return false;
    last = first;
    if (text[length] == '-' &&
        !text_parse_uint64(slice_text(text + length + 1), first, INT32_MAX, &last))
        return false;
    if (last - first >= SHARDS_MAX || dlq_target->shards.count >= SHARDS_MAX)
        return false;
    for (uint64_t shard = first; shard <= last; shard++)
        vector_push_in(&dlq_target->shards, call->arena, (int32_t)shard);
    return true;
}

/* --shards 0-3,7, or --shard_id 3. */
static struct error *
read_shards(struct cli_call *call, struct dlq_target *dlq_target)
{
    const char *one = cli_text(call, "shard_id"), *several = cli_text(call, "dlq_shards");
    size_t count = 0;
    if (one == NULL && several == NULL)
        return wrong(call, "--shard_id", "the number of the shard is needed, or --shards 0-3,7");
    if (one != NULL && (strchr(one, '-') != NULL || !read_range(call, one, dlq_target)))
        return wrong(call, "--shard_id", "the number of the shard is needed");
    const char **ranges = several == NULL ? NULL : words_cut(several, ',', call->arena, &count);
    for (size_t i = 0; i < count; i++) {
        if (!read_range(call, ranges[i], dlq_target))
            return wrong(call, "--shards", "numbers are needed, or ranges of them: 0-3,7");
    }
    return NULL;
}

static struct error *
read_dlq_target(struct cli_call *call, struct dlq_target *dlq_target)
{
    const char *type = cli_text(call, "dlq_type"), *source = cli_text(call, "source_cluster");
    const char *last = cli_text(call, "last_message_id");
    bool is_domain = type != NULL && strcmp(type, "domain") == 0;
    *dlq_target =
        (struct dlq_target){.type = is_domain ? ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN)
                                              : ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION),
                            .source = source == NULL ? "" : source};
    if (type != NULL && !is_domain && strcmp(type, "history") != 0)
        return wrong(call, "--dlq_type", "domain or history");
    if (!is_domain && source == NULL)
        return wrong(call, "--source_cluster", "the cluster that sent the messages is needed");
    struct error *err = NULL;
    if (is_domain)
        vector_push_in(&dlq_target->shards, call->arena, 0);
    else
        err = read_shards(call, dlq_target);
    int64_t number = 0;
    if (last != NULL && !text_parse_int64(slice_text(last), 0, INT64_MAX, &number))
        return wrong(call, "--last_message_id", "a number is needed");
    dlq_target->end = presence_make_int64(call->arena, (struct maybe_int64){last != NULL, number});
    return err;
}

/* --- count ---- */

struct error *
cli_dlq_count(struct cli_call *call)
{
    ADMIN(CountDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(count_dlqmessages_request));
    ADMIN(CountDLQMessagesResponse) *response = NULL;
    const char *type = cli_text(call, "dlq_type");
    request->force_fetch = true;
    if (type != NULL && strcmp(type, "domain") != 0 && strcmp(type, "history") != 0)
        return wrong(call, "--dlq_type", "domain or history");
    struct error *err =
        ASK(call, "CountDLQMessages", request, count_dlqmessages_response, &response);
    if (err != NULL)
        return err;
    if (type != NULL && strcmp(type, "domain") == 0 && !call->as_json) {
        cli_print("%lld\n", (long long)response->domain);
        return NULL;
    }
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

/* What was read so far. */
struct dlq_listing {
    struct table table;
    json_t *all;
    int64_t left; /* messages that may still be shown */
};

static void
add_tasks(const ADMIN(ReadDLQMessagesResponse) *page, int32_t shard,
          struct dlq_listing *dlq_listing)
{
    struct table *table = &dlq_listing->table;
    for (size_t i = 0; i < page->n_replication_tasks && dlq_listing->left > 0;
         i++, dlq_listing->left--) {
        const ADMIN(ReplicationTask) *task = page->replication_tasks[i];
        const char *id = arena_format(table->arena, "%lld", (long long)task->source_task_id);
        table_add(table, arena_format(table->arena, "%d", (int)shard), id, workflow_of(task),
                  run_of(task));
        json_array_append_new(dlq_listing->all,
                              json_pack("{s:i, s:I, s:s, s:s}", "shardId", (int)shard, "messageId",
                                        (json_int_t)task->source_task_id, "id", workflow_of(task),
                                        "runId", run_of(task)));
    }
}

static struct error *
read_shard(struct cli_call *call, const struct dlq_target *dlq_target, int32_t shard,
           struct dlq_listing *dlq_listing)
{
    struct error *err = NULL;
    ADMIN(ReadDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(read_dlqmessages_request));
    request->type = dlq_target->type;
    request->shard_id = shard;
    request->source_cluster = (char *)dlq_target->source;
    request->inclusive_end_message_id = dlq_target->end;
    request->page_size = PAGE_SIZE;
    do {
        ADMIN(ReadDLQMessagesResponse) *page = NULL;
        err = ASK(call, "ReadDLQMessages", request, read_dlqmessages_response, &page);
        if (err != NULL)
            break;
        add_tasks(page, shard, dlq_listing);
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0 && dlq_listing->left > 0);
    return err;
}

struct error *
cli_dlq_read(struct cli_call *call)
{
    struct dlq_target dlq_target;
    struct dlq_listing dlq_listing = {.table = {.columns = 4, .arena = call->arena}};
    struct error *err = read_dlq_target(call, &dlq_target);
    if (err == NULL)
        err = cli_number(call, "max_message_count", 1, INT64_MAX, INT64_MAX, &dlq_listing.left);
    if (err != NULL)
        return err;
    dlq_listing.all = json_array();
    table_add(&dlq_listing.table, "SHARD", "MESSAGE", "WORKFLOW ID", "RUN ID");
    for (size_t i = 0; err == NULL && i < dlq_target.shards.count && dlq_listing.left > 0; i++)
        err = read_shard(call, &dlq_target, dlq_target.shards.items[i], &dlq_listing);
    if (err != NULL || !call->as_json)
        json_decref(dlq_listing.all);
    else
        cli_print_json(dlq_listing.all);
    if (err == NULL && !call->as_json)
        cli_print("%s", table_text(&dlq_listing.table));
    return err;
}

/* --- purge, merge ---- */

static struct error *
purge_shard(struct cli_call *call, struct dlq_target *dlq_target, int32_t shard)
{
    ADMIN(PurgeDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(purge_dlqmessages_request));
    request->type = dlq_target->type;
    request->shard_id = shard;
    request->source_cluster = (char *)dlq_target->source;
    request->inclusive_end_message_id = dlq_target->end;
    ADMIN(PurgeDLQMessagesResponse) *response = NULL;
    return ASK(call, "PurgeDLQMessages", request, purge_dlqmessages_response, &response);
}

static struct error *
merge_shard(struct cli_call *call, struct dlq_target *dlq_target, int32_t shard)
{
    struct error *err = NULL;
    ADMIN(MergeDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(merge_dlqmessages_request));
    request->type = dlq_target->type;
    request->shard_id = shard;
    request->source_cluster = (char *)dlq_target->source;
    request->inclusive_end_message_id = dlq_target->end;
    request->page_size = PAGE_SIZE;
    do {
        ADMIN(MergeDLQMessagesResponse) *page = NULL;
        err = ASK(call, "MergeDLQMessages", request, merge_dlqmessages_response, &page);
        if (err != NULL)
            break;
        struct maybe_int64 applied = presence_read_int64(page->applied);
        dlq_target->applied += applied.is_set ? applied.value : 0;
        dlq_target->has_no_count |= !applied.is_set;
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
    return err;
}

static struct error *
each_shard(struct cli_call *call, struct dlq_target *dlq_target,
           struct error *(*one)(struct cli_call *call, struct dlq_target *dlq_target,
                                int32_t shard))
{
    struct error *err = read_dlq_target(call, dlq_target);
    for (size_t i = 0; err == NULL && i < dlq_target->shards.count; i++) {
        err = one(call, dlq_target, dlq_target->shards.items[i]);
        if (err != NULL && dlq_target->shards.count > 1)
            err = error_wrap(err, "shard %d", (int)dlq_target->shards.items[i]);
    }
    return err;
}

struct error *
cli_dlq_purge(struct cli_call *call)
{
    struct dlq_target dlq_target;
    struct error *err = each_shard(call, &dlq_target, purge_shard);
    if (err == NULL)
        cli_print("The messages were deleted.\n");
    return err;
}

struct error *
cli_dlq_merge(struct cli_call *call)
{
    struct dlq_target dlq_target;
    struct error *err = each_shard(call, &dlq_target, merge_shard);
    if (err != NULL)
        return err;
    if (dlq_target.has_no_count)
        cli_print("The server reports no failure; it does not say how many it applied.\n");
    else
        cli_print("Messages that were applied and left the queue: %lld.\n",
                  (long long)dlq_target.applied);
    return NULL;
}
