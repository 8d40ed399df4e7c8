/* dlq.c - dead letters, for operators: count, read, purge, merge. Those about runs: runs_dlq.c.
 *
 * A message is shown with the id that it has in the queue here, not at its source: that is the
 * number to give to purge and merge. A page token is the last id of the page before. */
#include "base/check.h"
#include "base/text.h"
#include "replication/inside.h"
#include "route/route.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_SIZE_MAX 1000

/* One call; runs where the domains are. */
struct dlq_call {
    struct domains *domains;
    uint64_t after, to; /* ids */
    size_t count_max;
    struct arena *arena;
    struct domain_dead_letters letters;
    uint64_t count;
    struct domain_merged merged;
    struct error *err;
};

static void
run_count(void *argument)
{
    struct dlq_call *dlq = argument;
    dlq->err = domains_count_dead_letters(dlq->domains, dlq->arena, &dlq->count);
}

static void
run_read(void *argument)
{
    struct dlq_call *dlq = argument;
    dlq->err = domains_read_dead_letters(dlq->domains, dlq->after, dlq->to, dlq->count_max,
                                         dlq->arena, &dlq->letters);
}

static void
run_purge(void *argument)
{
    struct dlq_call *dlq = argument;
    dlq->err = domains_purge_dead_letters(dlq->domains, dlq->to, dlq->arena);
}

static void
run_merge(void *argument)
{
    struct dlq_call *dlq = argument;
    dlq->err = domains_merge_dead_letters(dlq->domains, dlq->to, dlq->arena, &dlq->merged);
}

static struct error *
dlq_run(struct dlq_call *dlq, void (*run)(void *argument))
{
    struct error *err = route_to_domains(run, dlq, dlq->arena);
    return err != NULL ? err : dlq->err;
}

static struct dlq_call
dlq_begin(const struct rpc_call *call, const GOOGLE(Int64Value) *inclusive_end)
{
    struct maybe_int64 end = presence_read_int64(inclusive_end);
    return (struct dlq_call){
        .domains = replication_of(call)->options.domains,
        .to = !end.is_set     ? INT64_MAX
              : end.value < 0 ? 0
                              : (uint64_t)end.value,
        .arena = call->arena,
    };
}

static struct error *
check_type(int type, struct arena *arena)
{
    if (type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN))
        return NULL;
    if (type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_INVALID))
        return error_new(arena, ERR_BAD_REQUEST, "Queue type is not set.");
    return error_new(arena, ERR_BAD_REQUEST, "The DLQ type is not supported.");
}

struct error *
replication_count_dlq(struct rpc_call *call)
{
    ADMIN(CountDLQMessagesResponse) *response = (ADMIN(CountDLQMessagesResponse) *)call->response;
    struct dlq_call dlq = dlq_begin(call, NULL);
    struct error *err = dlq_run(&dlq, run_count);
    response->domain = (int64_t)dlq.count;
    return err != NULL ? err : runs_dlq_count(call);
}

/* The message with the id that it has here. */
static ADMIN(ReplicationTask) *
show_letter(const STORED(DomainDeadLetter) *letter, uint64_t id, struct arena *arena)
{
    ADMIN(ReplicationTask) *task = arena_make(arena, ADMIN(ReplicationTask));
    *task = *letter->task;
    task->source_task_id = (int64_t)id;
    return task;
}

struct error *
replication_read_dlq(struct rpc_call *call)
{
    const ADMIN(ReadDLQMessagesRequest) *request =
        (const ADMIN(ReadDLQMessagesRequest) *)call->request;
    ADMIN(ReadDLQMessagesResponse) *response = (ADMIN(ReadDLQMessagesResponse) *)call->response;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_read(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    struct dlq_call dlq = dlq_begin(call, request->inclusive_end_message_id);
    struct slice token = presence_read_bytes(request->next_page_token);
    if (token.length > 0 && !text_parse_uint64(token, 1, INT64_MAX, &dlq.after))
        return error_new(call->arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    bool is_given = request->page_size > 0 && request->page_size < PAGE_SIZE_MAX;
    dlq.count_max = is_given ? (size_t)request->page_size : PAGE_SIZE_MAX;
    err = dlq_run(&dlq, run_read);
    if (err != NULL)
        return err;
    check(dlq.letters.count <= dlq.count_max);
    response->type = request->type;
    response->n_replication_tasks = dlq.letters.count;
    response->replication_tasks =
        arena_zalloc(call->arena, dlq.letters.count, sizeof *response->replication_tasks);
    for (size_t i = 0; i < dlq.letters.count; i++) {
        check(dlq.letters.id[i] > (i == 0 ? dlq.after : dlq.letters.id[i - 1]));
        response->replication_tasks[i] =
            show_letter(dlq.letters.letter[i], dlq.letters.id[i], call->arena);
    }
    if (dlq.letters.has_more) {
        check(dlq.letters.count > 0);
        uint64_t last = dlq.letters.id[dlq.letters.count - 1];
        response->next_page_token = presence_make_bytes(
            slice_text(arena_format(call->arena, "%llu", (unsigned long long)last)));
    }
    return NULL;
}

struct error *
replication_purge_dlq(struct rpc_call *call)
{
    const ADMIN(PurgeDLQMessagesRequest) *request =
        (const ADMIN(PurgeDLQMessagesRequest) *)call->request;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_purge(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    struct dlq_call dlq = dlq_begin(call, request->inclusive_end_message_id);
    return dlq_run(&dlq, run_purge);
}

/* If some could not be applied, the call fails, and says how many and why. */
static struct error *
report_merged(const struct domain_merged *merged, ADMIN(MergeDLQMessagesResponse) *response,
              struct arena *arena)
{
    response->applied =
        presence_make_int64(arena, (struct maybe_int64){true, (int64_t)merged->applied});
    if (merged->left == 0)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "%llu messages were applied; %llu still cannot be applied and stay in the "
                     "queue: %s",
                     (unsigned long long)merged->applied, (unsigned long long)merged->left,
                     merged->reasons);
}

struct error *
replication_merge_dlq(struct rpc_call *call)
{
    const ADMIN(MergeDLQMessagesRequest) *request =
        (const ADMIN(MergeDLQMessagesRequest) *)call->request;
    if (request->type == ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION))
        return runs_dlq_merge(call);
    struct error *err = check_type(request->type, call->arena);
    if (err != NULL)
        return err;
    struct dlq_call dlq = dlq_begin(call, request->inclusive_end_message_id);
    err = dlq_run(&dlq, run_merge);
    if (err != NULL)
        return err;
    return report_merged(&dlq.merged, (ADMIN(MergeDLQMessagesResponse) *)call->response,
                         call->arena);
}
