/* runs_dlq.c - dead letters about runs, and runs that lack events, for operators: count, read,
 * purge, merge; fetch from another cluster.
 *
 * A dead letter keeps the number that the message has at its source, and is in the shard of its
 * workflow id here. The page token is the last number of the page before. */
#include "base/check.h"
#include "base/text.h"
#include "engine/branches/branches.h"
#include "replication/in/runs_in.h"
#include "replication/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define PAGE_SIZE_MAX 1000
/* ReplicationTaskInfo.task_type */
#define INFO_HISTORY  0
#define INFO_ACTIVITY 1

/* --- counting ---- */

struct dlq_entries {
    vector_of(ADMIN(HistoryDLQCountEntry) *) list;
};

/* An entry for each source of dead letters; some may have left the group. */
static struct error *
count_shard(struct engine *engine, uint32_t shard, struct arena *arena, struct dlq_entries *entries)
{
    struct dead_letters letters;
    struct error *err = engine_read_dead_letters(engine, shard, NULL, 0, 0, 0, arena, &letters);
    ADMIN(HistoryDLQCountEntry) *entry = NULL;
    for (size_t i = 0; err == NULL && i < letters.count; i++) {
        const char *source = letters.letters[i].source;
        if (entry == NULL || strcmp(entry->source_cluster, source) != 0) {
            entry = message_new(arena, ADMIN_TYPE(history_dlqcount_entry));
            entry->shard_id = (int32_t)shard;
            entry->source_cluster = (char *)source;
            vector_push_in(&entries->list, arena, entry);
        }
        entry->count++;
    }
    return err;
}

struct error *
runs_dlq_count(struct rpc_call *call)
{
    const struct replication_options *options = &replication_of(call)->options;
    ADMIN(CountDLQMessagesResponse) *response = (ADMIN(CountDLQMessagesResponse) *)call->response;
    if (options->engine == NULL)
        return NULL;
    uint32_t shards = engine_shard_count(options->engine);
    struct dlq_entries entries = {0};
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < shards; i++)
        err = count_shard(options->engine, i, call->arena, &entries);
    response->history = entries.list.items;
    response->n_history = entries.list.count;
    return err;
}

/* --- one call on a shard and a source ---- */

struct letters_call {
    struct engine *engine;
    uint32_t shard;
    const char *source;
    uint64_t after, to;
    size_t count_max;
};

static struct error *
letters_begin(const struct rpc_call *call, int32_t shard, const char *source,
              const GOOGLE(Int64Value) *end, struct letters_call *letters)
{
    const struct replication_options *options = &replication_of(call)->options;
    struct engine *engine = options->engine;
    if (engine == NULL || shard < 0 || (uint32_t)shard >= engine_shard_count(engine))
        return error_new(call->arena, ERR_BAD_REQUEST, "There is no shard %d.", shard);
    if (cluster_group_find(options->group, source) == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "Source cluster '%s' is not in the cluster group.", source);
    struct maybe_int64 to = presence_read_int64(end);
    *letters =
        (struct letters_call){.engine = engine,
                              .shard = (uint32_t)shard,
                              .source = source,
                              .to = to.is_set && to.value >= 0 ? (uint64_t)to.value : INT64_MAX};
    return NULL;
}

static struct error *
letters_page(struct letters_call *letters, int32_t page_size, ProtobufCBinaryData token,
             struct arena *arena)
{
    letters->count_max =
        page_size <= 0 || page_size > PAGE_SIZE_MAX ? PAGE_SIZE_MAX : (size_t)page_size;
    if (token.len == 0)
        return NULL;
    if (!text_parse_uint64(presence_read_bytes(token), 1, INT64_MAX, &letters->after))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    return NULL;
}

static ProtobufCBinaryData
next_token(const struct dead_letters *page, struct arena *arena)
{
    if (!page->has_more)
        return (ProtobufCBinaryData){0};
    check(page->count > 0);
    uint64_t last = page->letters[page->count - 1].row;
    return presence_make_bytes(slice_text(arena_format(arena, "%llu", (unsigned long long)last)));
}

static struct error *
read_page(const struct letters_call *letters, struct arena *arena, struct dead_letters *page)
{
    check(letters->count_max > 0 && letters->count_max <= PAGE_SIZE_MAX);
    struct error *err =
        engine_read_dead_letters(letters->engine, letters->shard, letters->source, letters->after,
                                 letters->to, letters->count_max, arena, page);
    check(err != NULL || page->count <= letters->count_max);
    check(err != NULL || page->count == 0 || page->letters[0].row > letters->after);
    return err;
}

static struct error *
read_task(const struct dead_letter *letter, struct arena *arena, ADMIN(ReplicationTask) **task)
{
    return message_decode_as(arena, ERR_CORRUPT, ADMIN_TYPE(replication_task),
                             presence_read_bytes(letter->letter->task), task);
}

/* Which events the message has. If it has none, or they cannot be read: by the version history that
 * it names. */
static void
describe_events(const ADMIN(HistoryTaskV2Attributes) *history, struct arena *arena,
                ADMIN(ReplicationTaskInfo) *info)
{
    size_t items = history->n_version_history_items, count = 0;
    API(HistoryEvent) **events = NULL;
    if (items > 0) {
        info->version = history->version_history_items[items - 1]->version;
        info->next_event_id = history->version_history_items[items - 1]->event_id + 1;
    }
    if (history->events == NULL ||
        thrift_decode_history(arena, ERR_CORRUPT, presence_read_bytes(history->events->data),
                              &events, &count) != NULL ||
        count == 0)
        return;
    info->first_event_id = events[0]->event_id;
    info->next_event_id = events[count - 1]->event_id + 1;
    info->version = events[0]->version;
}

static ADMIN(ReplicationTaskInfo) *
make_info(const ADMIN(ReplicationTask) *task, struct arena *arena)
{
    ADMIN(ReplicationTaskInfo) *info = message_new(arena, ADMIN_TYPE(replication_task_info));
    info->task_id = task->source_task_id;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES)) {
        const ADMIN(HistoryTaskV2Attributes) *history = task->history_task_v2_attributes;
        info->task_type = INFO_HISTORY;
        info->domain_id = history->domain_id;
        info->workflow_execution = history->workflow_execution;
        describe_events(history, arena, info);
    } else if (task->attributes_case ==
               ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES)) {
        const ADMIN(SyncActivityTaskAttributes) *activity = task->sync_activity_task_attributes;
        info->task_type = INFO_ACTIVITY;
        info->domain_id = activity->domain_id;
        info->workflow_execution = activity->workflow_execution;
        info->version = activity->version;
        info->scheduled_id = activity->scheduled_id;
    }
    return info;
}

struct error *
runs_dlq_read(struct rpc_call *call)
{
    const ADMIN(ReadDLQMessagesRequest) *request =
        (const ADMIN(ReadDLQMessagesRequest) *)call->request;
    ADMIN(ReadDLQMessagesResponse) *response = (ADMIN(ReadDLQMessagesResponse) *)call->response;
    struct letters_call letters;
    struct dead_letters page;
    struct error *err = letters_begin(call, request->shard_id, request->source_cluster,
                                      request->inclusive_end_message_id, &letters);
    if (err == NULL)
        err = letters_page(&letters, request->page_size, request->next_page_token, call->arena);
    if (err == NULL)
        err = read_page(&letters, call->arena, &page);
    if (err != NULL)
        return err;
    response->type = request->type;
    response->replication_tasks =
        arena_zalloc(call->arena, page.count, sizeof response->replication_tasks[0]);
    response->replication_tasks_info =
        arena_zalloc(call->arena, page.count, sizeof response->replication_tasks_info[0]);
    for (size_t i = 0; err == NULL && i < page.count; i++) {
        err = read_task(&page.letters[i], call->arena, &response->replication_tasks[i]);
        if (err != NULL)
            return err;
        response->replication_tasks_info[i] =
            make_info(response->replication_tasks[i], call->arena);
        response->n_replication_tasks = response->n_replication_tasks_info = i + 1;
    }
    response->next_page_token = next_token(&page, call->arena);
    return err;
}

struct error *
runs_dlq_purge(struct rpc_call *call)
{
    const ADMIN(PurgeDLQMessagesRequest) *request =
        (const ADMIN(PurgeDLQMessagesRequest) *)call->request;
    struct letters_call letters;
    struct error *err = letters_begin(call, request->shard_id, request->source_cluster,
                                      request->inclusive_end_message_id, &letters);
    return err != NULL ? err
                       : engine_forget_dead_letters(letters.engine, letters.shard, letters.source,
                                                    0, letters.to, call->arena);
}

/* Applies a page in order; stops at the first that still fails. */
static struct error *
merge_page(struct runs_in *runs, const struct letters_call *letters,
           const struct dead_letters *page, struct arena *arena, int64_t *applied)
{
    for (size_t i = 0; i < page->count; i++, ++*applied) {
        const struct dead_letter *letter = &page->letters[i];
        check(i == 0 || letter->row > page->letters[i - 1].row); /* in order */
        ADMIN(ReplicationTask) *task = NULL;
        struct error *err = read_task(letter, arena, &task);
        if (err == NULL)
            err = runs_in_apply(runs, letters->source, task, arena);
        if (err == NULL)
            err = engine_forget_dead_letters(letters->engine, letters->shard, letters->source,
                                             letter->row, letter->row, arena);
        if (err != NULL)
            return error_wrap(err,
                              "%lld messages were applied; message %llu was not, and stays in the "
                              "queue with those behind it",
                              (long long)*applied, (unsigned long long)letter->row);
    }
    return NULL;
}

/* Applies in order and stops at the first that still fails; that one stays, with all behind it. */
struct error *
runs_dlq_merge(struct rpc_call *call)
{
    const ADMIN(MergeDLQMessagesRequest) *request =
        (const ADMIN(MergeDLQMessagesRequest) *)call->request;
    ADMIN(MergeDLQMessagesResponse) *response = (ADMIN(MergeDLQMessagesResponse) *)call->response;
    struct runs_in *runs = atomic_load(&replication_of(call)->runs);
    struct letters_call letters;
    struct dead_letters page;
    struct error *err = letters_begin(call, request->shard_id, request->source_cluster,
                                      request->inclusive_end_message_id, &letters);
    if (err == NULL)
        err = letters_page(&letters, request->page_size, request->next_page_token, call->arena);
    if (err == NULL && runs == NULL)
        err = error_new(call->arena, ERR_BAD_REQUEST, "No other cluster is followed here.");
    if (err == NULL)
        err = read_page(&letters, call->arena, &page);
    if (err != NULL)
        return err;
    int64_t applied = 0;
    err = merge_page(runs, &letters, &page, call->arena, &applied);
    response->applied = presence_make_int64(call->arena, (struct maybe_int64){true, applied});
    if (err == NULL)
        response->next_page_token = next_token(&page, call->arena);
    return err;
}

/* --- for other clusters ---- */

/* The row as the shard had it; NULL: the run does not have such events (any more). */
static struct error *
remake_row(struct engine *engine, const ADMIN(ReplicationTaskInfo) *info, struct arena *arena,
           STORED(ReplicationRow) **made)
{
    const API(WorkflowExecution) *execution = info->workflow_execution;
    STORED(ReplicationRow) *row = message_new(arena, STORED_TYPE(replication_row));
    row->domain_id = info->domain_id;
    row->workflow_id = execution->workflow_id;
    row->run_id = execution->run_id;
    row->schedule_id = info->scheduled_id;
    row->first_event_id = info->first_event_id;
    row->next_event_id = info->next_event_id;
    row->type = CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_ACTIVITY;
    *made = row;
    if (info->task_type == INFO_ACTIVITY)
        return NULL;
    row->type = CADENZA__STORAGE__V1__REPLICATION_TYPE__REPLICATION_TYPE_EVENTS;
    struct run_key key = {row->domain_id, row->workflow_id, row->run_id};
    struct run_branches branches;
    struct error *err = engine_find_branches(engine, &key, arena, &branches);
    *made = NULL;
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    struct version_item last = {info->next_event_id - 1, info->version};
    size_t index = branches_find_event(&branches, last);
    if (index == branches.count)
        return NULL;
    const struct run_branch *branch = &branches.branch[index];
    check(branch->versions.count > 0);
    struct history_branch holder = history_lineage_holder(&branch->lineage, info->first_event_id);
    row->tree_id = presence_make_uuid(arena, holder.tree);
    row->branch_id = presence_make_uuid(arena, holder.branch);
    row->versions = versions_store(branch->versions, arena);
    row->n_versions = branch->versions.count;
    *made = row;
    return NULL;
}

static struct error *
hydrate(struct engine *engine, const ADMIN(ReplicationTaskInfo) *info, struct arena *arena,
        ADMIN(ReplicationTask) **task)
{
    STORED(ReplicationRow) *row;
    *task = NULL;
    if (info->workflow_execution == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "A task info names no run.");
    struct error *err = remake_row(engine, info, arena, &row);
    if (err != NULL || row == NULL)
        return err;
    struct slice made = {0};
    err = engine_hydrate(engine, row, (uint64_t)info->task_id, arena, &made);
    if (err != NULL || made.length == 0)
        return err;
    return message_decode_as(arena, ERR_CORRUPT, ADMIN_TYPE(replication_task), made, task);
}

struct error *
replication_get_dlq_messages(struct rpc_call *call)
{
    const ADMIN(GetDLQReplicationMessagesRequest) *request =
        (const ADMIN(GetDLQReplicationMessagesRequest) *)call->request;
    ADMIN(GetDLQReplicationMessagesResponse) *response =
        (ADMIN(GetDLQReplicationMessagesResponse) *)call->response;
    struct engine *engine = replication_of(call)->options.engine;
    struct error *err = NULL;
    if (request->n_task_infos == 0)
        return NULL;
    response->replication_tasks =
        arena_zalloc(call->arena, request->n_task_infos, sizeof response->replication_tasks[0]);
    for (size_t i = 0; err == NULL && i < request->n_task_infos; i++) {
        ADMIN(ReplicationTask) *task;
        err = hydrate(engine, request->task_infos[i], call->arena, &task);
        if (err == NULL && task != NULL)
            response->replication_tasks[response->n_replication_tasks++] = task;
    }
    return err;
}

static struct version_item
read_item(const ADMIN(VersionHistoryItem) *item)
{
    return item == NULL ? (struct version_item){0}
                        : (struct version_item){item->event_id, item->version};
}

struct error *
replication_resend(struct rpc_call *call)
{
    const ADMIN(ResendReplicationTasksRequest) *request =
        (const ADMIN(ResendReplicationTasksRequest) *)call->request;
    struct runs_in *runs = atomic_load(&replication_of(call)->runs);
    const API(WorkflowExecution) *execution = request->workflow_execution;
    if (execution == NULL || execution->workflow_id[0] == '\0' || execution->run_id[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Execution is not set on request.");
    if (runs == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST, "No other cluster is followed here.");
    struct replicated_gap range = {
        .key = {request->domain_id, execution->workflow_id, execution->run_id},
        .base = read_item(request->start_event),
        .end = read_item(request->end_event),
    };
    return runs_in_resend(runs, request->remote_cluster, &range, call->arena);
}

struct error *
replication_push(struct replication *replication, const char *target, const struct run_key *key,
                 struct arena *arena)
{
    struct runs_in *runs = atomic_load(&replication->runs);
    if (runs == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "No other cluster is followed here yet.");
    return runs_in_push(runs, target, key, arena);
}
