/* bulk_target.c - the operation of a batch job on one run, and on its children. See bulk.h.
 *
 * The request id is made of the batch job and the run: however often it is tried, a signal arrives
 * once and a cancellation is the same. A run that is closed or gone needs nothing more; only when a
 * chunk is repeated it may have been this batch job that closed it, and its children are still to
 * do. */
#include "base/limit.h"
#include "base/map.h"
#include "base/uuid.h"
#include "base/vector.h"
#include "domain/domains.h"
#include "engine/branches/branches.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "replication/replication.h"
#include "system/bulk.h"
#include "wire/message.h"
#include "wire/presence.h"

#define IDENTITY_OF(job) ((char *)(job)->task->workflow_type)

/* One run to be changed. */
struct victim {
    const char *domain_id;
    API(WorkflowExecution) *execution;
};

static struct error *
wait_turn(const struct bulk_job *job, struct arena *arena)
{
    int64_t wait;
    while ((wait = limit_take(job->limit, clock_monotonic())) > 0) {
        struct error *err = fiber_sleep(wait, arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}

/* --- verbs ---- */

/* The same two runs give the same id, in the form of any other request id. */
static char *
request_id(const struct bulk_job *job, const struct victim *victim, struct arena *arena)
{
    struct uuid uuid;
    uint64_t halves[2];
    for (size_t i = 0; i < array_length(halves); i++)
        halves[i] = map_hash(slice_text(
            arena_format(arena, "%zu/%s/%s", i, job->task->key.run_id, victim->execution->run_id)));
    memcpy(uuid.bytes, halves, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x80); /* version 8: made of a hash */
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    char *text = arena_alloc(arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, text);
    return text;
}

static struct error *
terminate(const struct bulk_job *job, const struct victim *victim, struct arena *arena)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(terminate_workflow_execution_request));
    request->domain = (char *)job->params->domain;
    request->workflow_execution = victim->execution;
    request->reason = (char *)job->params->reason;
    request->identity = IDENTITY_OF(job);
    return engine_terminate(job->task->parts->engine, victim->domain_id, request, arena);
}

static struct error *
cancel(const struct bulk_job *job, const struct victim *victim, struct arena *arena)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(request_cancel_workflow_execution_request));
    request->domain = (char *)job->params->domain;
    request->workflow_execution = victim->execution;
    request->identity = IDENTITY_OF(job);
    request->request_id = request_id(job, victim, arena);
    struct error *err =
        engine_request_cancel(job->task->parts->engine, victim->domain_id, request, arena);
    return err != NULL && err->kind == ERR_CANCELLATION_ALREADY_REQUESTED ? NULL : err;
}

static struct error *
signal_run(const struct bulk_job *job, const struct victim *victim, struct arena *arena)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(signal_workflow_execution_request));
    request->domain = (char *)job->params->domain;
    request->workflow_execution = victim->execution;
    request->identity = IDENTITY_OF(job);
    request->request_id = request_id(job, victim, arena);
    request->signal_name = (char *)job->params->signal_name;
    request->signal_input = presence_make_payload(
        arena,
        (struct maybe_bytes){.is_set = true, .bytes = slice_text(job->params->signal_input)});
    return engine_signal(job->task->parts->engine, victim->domain_id, request, arena);
}

/* The other cluster says the same of a domain that has not arrived there yet, and of a run that is
 * gone here. Only the latter needs nothing more. */
static struct error *
replicate(const struct bulk_job *job, const struct run_key *key, struct arena *arena)
{
    const struct system_parts *parts = job->task->parts;
    struct error *err =
        replication_push(parts->replication, job->params->target_cluster, key, arena);
    if (err == NULL || err->kind != ERR_ENTITY_NOT_EXISTS)
        return err;
    struct run_branches branches;
    struct error *here = engine_find_branches(parts->engine, key, arena, &branches);
    if (here != NULL)
        return here->kind == ERR_ENTITY_NOT_EXISTS ? err : here;
    probe("bulk_replicate_too_early");
    return error_new(arena, ERR_UNAVAILABLE, "%s", err->message);
}

static struct error *
do_once(const struct bulk_job *job, const struct victim *victim, struct arena *arena)
{
    struct run_key key = {victim->domain_id, victim->execution->workflow_id,
                          victim->execution->run_id};
    switch (job->params->verb) {
    case BULK_TERMINATE:
        return terminate(job, victim, arena);
    case BULK_CANCEL:
        return cancel(job, victim, arena);
    case BULK_SIGNAL:
        return signal_run(job, victim, arena);
    case BULK_REFRESH:
        return engine_refresh(job->task->parts->engine, &key, arena);
    case BULK_REPLICATE:
        return replicate(job, &key, arena);
    }
    return error_new(arena, ERR_BAD_REQUEST, "not supported batch type: %s",
                     job->params->verb_name);
}

/* --- children ---- */

static const char *
find_domain(const struct bulk_job *job, const char *name, const struct victim *parent,
            struct arena *arena)
{
    const struct domain *domain =
        name[0] == '\0' ? NULL : domains_find_name(job->task->parts->domains, name);
    return domain == NULL ? parent->domain_id : arena_text(arena, domain->id);
}

struct victims {
    vector_of(struct victim) list;
};

/* Adds the children of a run. A run that was closed before keeps its children as they are. */
static struct error *
add_children(const struct bulk_job *job, struct victim parent, bool was_closed, struct arena *arena,
             struct victims *victims)
{
    struct run_key key = {parent.domain_id, parent.execution->workflow_id,
                          parent.execution->run_id};
    API(DescribeWorkflowExecutionResponse) *response =
        message_new(arena, API_TYPE(describe_workflow_execution_response));
    struct error *err = engine_describe(job->task->parts->engine, &key, arena, response);
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    const API(WorkflowExecutionInfo) *info = response->workflow_execution_info;
    API(WorkflowExecutionCloseStatus) by_us =
        API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TERMINATED);
    if (was_closed && (!job->is_again || info == NULL || info->close_status != by_us))
        return NULL;
    for (size_t i = 0; i < response->n_pending_children; i++) {
        const API(PendingChildExecutionInfo) *child = response->pending_children[i];
        struct victim next = {find_domain(job, child->domain, &parent, arena),
                              child->workflow_execution};
        if (child->workflow_execution->run_id[0] != '\0') /* it has started */
            vector_push_in(&victims->list, arena, next);
    }
    return NULL;
}

struct error *
bulk_do(const struct bulk_job *job, const struct bulk_target *target, struct arena *arena)
{
    struct victims victims = {0};
    struct victim first = {job->domain_id, message_new(arena, API_TYPE(workflow_execution))};
    first.execution->workflow_id = (char *)target->workflow_id;
    first.execution->run_id = (char *)target->run_id;
    vector_push_in(&victims.list, arena, first);
    for (size_t i = 0; i < victims.list.count; i++) {
        struct victim victim = victims.list.items[i];
        struct error *err = wait_turn(job, arena);
        if (err == NULL)
            err = do_once(job, &victim, arena);
        bool was_closed = err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS ||
                                          err->kind == ERR_ALREADY_COMPLETED);
        if (was_closed) {
            probe("bulk_target_was_closed");
            err = NULL;
        }
        if (err == NULL && job->params->has_children)
            err = add_children(job, victim, was_closed, arena, &victims);
        if (err != NULL)
            return err;
    }
    return NULL;
}
