/* raw_history.c - GetWorkflowExecutionRawHistoryV2: a cluster that lacks events of a run reads them
 * where they are.
 *
 * Both ends are excluded and may be on different branches of the run: then the answer is the branch
 * of the end, from the newest event that both have. The last batch is whole, even if the end is
 * within it. A page is a number of whole batches; its token says where the next page begins and
 * with which event the range ends, because another branch may become the current one between two
 * pages. */
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "engine/branches/branches.h"
#include "replication/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define BYTES_MAX ((size_t)2 * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */

/* What is left to read; `last` is included. */
struct rest {
    int64_t from_event_id;
    struct version_item last;
};

static struct error *
check_request(const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request, struct arena *arena)
{
    const API(WorkflowExecution) *execution = request->workflow_execution;
    struct uuid run_id;
    if (execution == NULL || execution->workflow_id[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Invalid WorkflowID.");
    if (!uuid_parse(slice_text(execution->run_id), &run_id))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid RunID.");
    if (request->page_size <= 0)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid PageSize.");
    return NULL;
}

static struct slice
write_token(const struct rest *rest, struct arena *arena)
{
    return slice_text(arena_format(arena, "%lld/%lld/%lld", (long long)rest->from_event_id,
                                   (long long)rest->last.event_id,
                                   (long long)rest->last.event_version));
}

static struct error *
read_token(ProtobufCBinaryData token, struct arena *arena, struct rest *rest)
{
    const char *text = arena_text_of(arena, presence_read_bytes(token));
    long long from, id, event_version;
    int end = 0;
    bool is_one = sscanf(text, "%lld/%lld/%lld%n", &from, &id, &event_version, &end) == 3 &&
                  text[end] == '\0' && from > 0 && id >= from;
    if (!is_one)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    *rest = (struct rest){from, {id, event_version}};
    return NULL;
}

static const struct version_item *
read_end(const ADMIN(VersionHistoryItem) *sent, struct version_item *item)
{
    if (sent == NULL)
        return NULL;
    *item = (struct version_item){sent->event_id, sent->version};
    return item;
}

/* *is_empty: there are no such events. */
static struct error *
find_rest(const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request,
          const struct run_branches *branches, struct arena *arena, struct rest *rest,
          bool *is_empty)
{
    *is_empty = false;
    if (request->next_page_token.len > 0)
        return read_token(request->next_page_token, arena, rest);
    struct version_item after, before;
    struct branch_range range;
    if (!branches_find_range(branches, read_end(request->start_event, &after),
                             read_end(request->end_event, &before), &range))
        return error_new(arena, ERR_BAD_REQUEST,
                         "The run has no such event: the start or the end is of no history of it.");
    *is_empty = range.from_event_id >= range.to_event_id;
    if (*is_empty)
        return NULL;
    struct versions versions = branches->branch[range.branch].versions;
    rest->from_event_id = range.from_event_id;
    rest->last = (struct version_item){range.to_event_id - 1,
                                       versions_of_event(versions, range.to_event_id - 1)};
    return NULL;
}

/* The events of a node from the start of the range on, as a blob. No batch is cut at the end: as
 * in Cadence, one that begins before it is sent whole. */
static struct error *
add_blob(ADMIN(GetWorkflowExecutionRawHistoryV2Response) *response, const struct history_node *node,
         const struct rest *rest, struct arena *arena)
{
    API(History) *history = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, API_TYPE(history), node->events, &history);
    if (err != NULL)
        return err;
    size_t first = 0, end = history->n_events;
    while (first < end && history->events[first]->event_id < rest->from_event_id)
        first++;
    if (first == end)
        return NULL;
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    blob->data =
        presence_make_bytes(thrift_encode_kept(arena, history->events + first, end - first));
    response->history_batches[response->n_history_batches++] = blob;
    return NULL;
}

static struct error *
read_page(struct engine *engine, const struct run_key *key, const struct run_branch *branch,
          const struct rest *rest, const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request,
          struct arena *arena, ADMIN(GetWorkflowExecutionRawHistoryV2Response) *response)
{
    check(rest->from_event_id <= rest->last.event_id); /* an empty range was answered before */
    check(request->page_size > 0);                     /* see check_request */
    struct history_range range = {
        .shard = engine_shard_of(engine, key->workflow_id),
        .lineage = branch->lineage,
        .from_event_id = rest->from_event_id,
        .to_event_id = rest->last.event_id + 1,
        .is_first = request->next_page_token.len == 0,
        .bytes_max = BYTES_MAX,
        .nodes_max = (size_t)request->page_size,
    };
    struct history_page page;
    struct error *err = engine_read_history(engine, &range, arena, &page);
    if (err != NULL)
        return err;
    response->history_batches =
        arena_zalloc(arena, page.count, sizeof response->history_batches[0]);
    for (size_t i = 0; err == NULL && i < page.count; i++)
        err = add_blob(response, &page.node[i], rest, arena);
    check(response->n_history_batches <= page.count);
    if (err == NULL && page.next_event_id < range.to_event_id) {
        struct rest next = {page.next_event_id, rest->last};
        response->next_page_token = presence_make_bytes(write_token(&next, arena));
    }
    return err;
}

static ADMIN(VersionHistory) *
send_history(const struct run_branch *branch, struct arena *arena)
{
    ADMIN(VersionHistory) *history = message_new(arena, ADMIN_TYPE(version_history));
    struct history_branch own = history_lineage_own(&branch->lineage);
    history->branch_token = presence_make_bytes(
        arena_slice(arena, slice_of(own.branch.bytes, sizeof own.branch.bytes)));
    history->items = versions_send(branch->versions, arena);
    history->n_items = branch->versions.count;
    return history;
}

static struct error *
answer(struct rpc_call *call)
{
    const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request =
        (const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *)call->request;
    ADMIN(GetWorkflowExecutionRawHistoryV2Response) *response =
        (ADMIN(GetWorkflowExecutionRawHistoryV2Response) *)call->response;
    struct replication_options *options = &replication_of(call)->options;
    struct arena *arena = call->arena;
    struct error *err = check_request(request, arena);
    if (err != NULL)
        return err;
    const struct domain *domain = domains_find_name(options->domains, request->domain);
    if (domain == NULL)
        return errors_entity_not_exists(arena, NULL, "Domain %s does not exist.", request->domain);
    struct run_key key = {arena_text(arena, domain->id), request->workflow_execution->workflow_id,
                          request->workflow_execution->run_id};
    struct run_branches branches;
    struct rest rest = {0};
    bool is_empty;
    err = engine_find_branches(options->engine, &key, arena, &branches);
    if (err == NULL)
        err = find_rest(request, &branches, arena, &rest, &is_empty);
    if (err != NULL || is_empty)
        return err;
    size_t index = branches_find_event(&branches, rest.last);
    if (index == branches.count)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid version histories.");
    response->version_history = send_history(&branches.branch[index], arena);
    return read_page(options->engine, &key, &branches.branch[index], &rest, request, arena,
                     response);
}

/* What is not here may be among what this cluster lost: who asks must not conclude that nobody has
 * it. */
struct error *
replication_get_raw_history(struct rpc_call *call)
{
    const struct domains *domains = replication_of(call)->options.domains;
    struct error *err = answer(call);
    const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request =
        (const ADMIN(GetWorkflowExecutionRawHistoryV2Request) *)call->request;
    bool is_missing =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_BAD_REQUEST);
    if (!is_missing || request->is_recovering || !domains_are_recovering(domains))
        return err;
    return error_new(call->arena, ERR_UNAVAILABLE,
                     "This cluster lost memory and is reading from the others what it had: %s",
                     err->message);
}
