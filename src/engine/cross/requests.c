/* requests.c - starts that are accepted now and done later: into the outbox, and out of it.
 *
 * The row is in the shard of its workflow id, so the step that begins the run drops it in the same
 * commit: an accepted request is done exactly once, whatever crashes. A request that was accepted
 * twice, because its caller heard nothing the first time, is known by its request id like any other
 * repeat.
 *
 * What the run that is there does not allow is dropped, since nobody waits for an answer. A request
 * whose workflow is active in another cluster is sent there, and again until that cluster has
 * answered; so it does not matter where it was accepted, or whether the domain has moved since. A
 * domain that is not known may only not have been heard of yet. */
#include "base/check.h"
#include "engine/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define TYPE_REQUEST       CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REQUEST
#define UNKNOWN_DOMAIN_MAX (3600 * NS_PER_S) /* a request of one is not kept longer */

/* --- in ---- */

static void
keep_partition(STORED(TransferRow) *row, const struct start_command *command, struct arena *arena)
{
    row->n_partition_config = command->partition_count;
    row->partition_config =
        arena_zalloc(arena, command->partition_count, sizeof(row->partition_config[0]));
    for (size_t i = 0; i < command->partition_count; i++) {
        STORED(TransferRow__PartitionConfigEntry) *entry =
            message_new(arena, STORED_TYPE(transfer_row__partition_config_entry));
        entry->key = (char *)command->partition_keys[i];
        entry->value = (char *)command->partition_values[i];
        row->partition_config[i] = entry;
    }
}

static struct error *
serve_accept(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    const INTERNAL(AcceptStart) *asked = request;
    check(asked->row != NULL && asked->row->type == TYPE_REQUEST); /* engine_accept */
    STORED(TransferRow) row = *asked->row;                         /* it is completed */
    return shard_accept(engine_served_shard(engine, owner), &row, arena);
}

/* No answer: the client sends it again with its request id, and the second one is dropped when it
 * is its turn. */
static const struct route_question accept_question = {
    .name = "shard.accept",
    .request = INTERNAL_TYPE(accept_start),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_accept,
};

struct error *
engine_accept(struct engine *engine, const char *domain_id, const struct start_command *command,
              struct arena *arena)
{
    STORED(TransferRow) *row = message_new(arena, STORED_TYPE(transfer_row));
    row->type = TYPE_REQUEST;
    row->domain_id = (char *)domain_id;
    row->workflow_id = command->request->workflow_id;
    check(command->signal == NULL || command->signal->start_request == command->request);
    if (command->signal != NULL)
        row->signal_with_start = (API(SignalWithStartWorkflowExecutionRequest) *)command->signal;
    else
        row->start = (API(StartWorkflowExecutionRequest) *)command->request;
    keep_partition(row, command, arena);
    INTERNAL(AcceptStart) request = INTERNAL_VALUE(ACCEPT_START__INIT);
    request.row = row;
    return engine_ask_done(engine, row->workflow_id, &accept_question, &request, arena);
}

/* --- out ---- */

/* False: the row is damaged. */
static bool
read_command(const STORED(TransferRow) *row, struct arena *arena, struct start_command *command)
{
    *command = (struct start_command){.request = row->start, .signal = row->signal_with_start};
    if (command->signal != NULL)
        command->request = command->signal->start_request;
    size_t count = row->n_partition_config;
    const char **keys = arena_zalloc(arena, count, sizeof *keys);
    const char **values = arena_zalloc(arena, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        keys[i] = row->partition_config[i]->key;
        values[i] = row->partition_config[i]->value;
    }
    command->partition_keys = keys;
    command->partition_values = values;
    command->partition_count = count;
    return command->request != NULL && strcmp(command->request->workflow_id, row->workflow_id) == 0;
}

/* Will it never be done, no matter who tries? */
static bool
is_refused(const struct error *err, const STORED(TransferRow) *row)
{
    switch (err->kind) {
    case ERR_ALREADY_STARTED:
    case ERR_BAD_REQUEST:
    case ERR_LIMIT_EXCEEDED:
        return true;
    case ERR_ENTITY_NOT_EXISTS:
        return clock_wall() - row->created_time > UNKNOWN_DOMAIN_MAX;
    default:
        return false;
    }
}

static void
log_refused(const struct cross_task_work *work, const struct start_command *command,
            const struct error *err)
{
    probe(err->kind == ERR_ALREADY_STARTED ? "accepted_dropped" : "accepted_refused");
    if (err->kind == ERR_ALREADY_STARTED) /* what was to be there is there */
        return;
    log_warn(work->engine->options.log, "an accepted request cannot be done",
             log_text("wf-domain-id", work->source.domain_id),
             log_text("wf-id", command->request->workflow_id),
             log_text("request-id", command->request->request_id), log_error(err));
}

/* The workflow is active in another cluster, which is asked; it knows a repeat by its request id.
 * The row stays until that cluster has answered, or the workflow is active here. */
static struct error *
follow_home(struct cross_task_work *work, struct error *refusal)
{
    const STORED(TransferRow) *row = work->cross_task->transfer;
    check(refusal->kind == ERR_DOMAIN_NOT_ACTIVE);
    struct cross_task_request wanted = {.kind = CROSS_TASK_REQUEST,
                                        .target = {row->domain_id, row->workflow_id, ""},
                                        .body = &row->base};
    probe("accepted_elsewhere");
    return cross_task_follow(work, &wanted, refusal);
}

/* Is this cluster reading what it lost of the domain? */
static bool
is_recovering(const struct cross_task_work *work)
{
    const struct domain *domain =
        domains_find_id(work->engine->options.domains, work->cross_task->transfer->domain_id);
    return domain != NULL && domain->is_recovering;
}

struct error *
cross_task_do_request(struct cross_task_work *work)
{
    const STORED(TransferRow) *row = work->cross_task->transfer;
    struct start_command command;
    struct start_answer answer = {0};
    if (!read_command(row, work->arena, &command))
        return error_new(work->arena, ERR_CORRUPT, "an accepted request that asks for nothing");
    struct start_request_step wanted = {.command = &command,
                                        .answer = &answer,
                                        .range_id = work->cross_task->range_id,
                                        .dropped = work->cross_task->row};
    struct shard *shard = engine_own_shard(work->engine, row->workflow_id);
    struct error *err = engine_step_start(shard, row->domain_id, &wanted, work->arena);
    if (err == NULL) {
        check(answer.run_id != NULL); /* its step has dropped the row */
        probe(answer.is_new            ? "accepted_started"
              : command.signal != NULL ? "accepted_signaled"
                                       : "accepted_repeated");
        return NULL;
    }
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE && is_recovering(work))
        return err; /* it may have been done, in a run that was lost here */
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE)
        err = follow_home(work, err);
    if (err == NULL || !is_refused(err, row))
        return err;
    log_refused(work, &command, err);
    return NULL;
}
