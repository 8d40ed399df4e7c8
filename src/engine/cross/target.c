/* target.c - what a cross-workflow task asks of its target: carried out where the target's shard
 * is, for a workflow of this cluster or of another one. ask.c asks.
 *
 * What comes of it is the same in both cases, an error of the target too, and so is a repeat: the
 * request has its id. */
#include <stdio.h>

#include "base/check.h"
#include "domain/active.h"
#include "engine/branches/versions.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CLOCKS_DIFFER (60 * (int64_t)1000000000) /* of hosts: not more than this */
#define SELF          "history-service"          /* who asks, for the histories of others */

/* --- steps of the target ---- */

static struct error *
decide_signal(const struct cross_task_request *wanted, struct step *step)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wanted->body;
    API(SignalWorkflowExecutionRequest) *request =
        message_new(step->arena, API_TYPE(signal_workflow_execution_request));
    request->signal_name = external->signal_name;
    request->signal_input = external->input;
    request->request_id = external->request_id;
    request->identity = (char *)SELF;
    return command_signal_from(step, request, &wanted->origin);
}

static struct error *
decide_cancel(const struct cross_task_request *wanted, struct step *step)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wanted->body;
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(step->arena, API_TYPE(request_cancel_workflow_execution_request));
    request->request_id = external->request_id;
    request->identity = (char *)SELF;
    return command_request_cancel_from(step, request, &wanted->origin);
}

static struct error *
decide_child_closed(const struct cross_task_request *wanted, struct step *step)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wanted->body;
    struct child_close close = {.workflow_id = row->workflow_id,
                                .run_id = row->run_id,
                                .first_run_id = row->first_run_id,
                                .event = row->close_event};
    return command_child_closed(step, row->schedule_id, &close);
}

static struct error *
decide_wanted(void *context, struct step *step)
{
    const struct cross_task_request *wanted = context;
    struct end_child_request end = {(const STORED(PendingChild) *)wanted->body, wanted->origin};
    check(step->mutation != NULL); /* there is a target */
    switch (wanted->kind) {
    case CROSS_TASK_SIGNAL:
        return decide_signal(wanted, step);
    case CROSS_TASK_CANCEL:
        return decide_cancel(wanted, step);
    case CROSS_TASK_END_CHILD:
        return cross_task_decide_end_child(&end, step);
    case CROSS_TASK_PARENT_KNOWS:
        return command_parent_knows(step, &wanted->origin);
    case CROSS_TASK_CHILD_CLOSED:
        return decide_child_closed(wanted, step);
    default:
        unreachable("cross-workflow task of kind %d", (int)wanted->kind);
    }
}

/* --- signals that may be there already ---- */

/* One run of the target's chain, looked at from the newest back. */
struct chain_view {
    const char *request_id;
    bool has_it;                           /* the signal is there */
    int64_t start_time;                    /* of this run */
    char run_before[UUID_TEXT_LENGTH + 1]; /* "": none */
};

static void
look_chain(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct chain_view *view = context;
    view->has_it = map_get(run->signal_requests, slice_text(view->request_id)) != NULL;
    view->start_time = run->core->start_time;
    snprintf(view->run_before, sizeof view->run_before, "%s",
             run->core->continued_execution_run_id);
}

/* A signal for the current run, sent again: it may be in a run that has gone on as another one
 * since. Those that ended before the signal was asked for cannot have it. An owner that was
 * overtaken may not know it yet. */
static struct error *
was_delivered(struct shard *shard, const struct cross_task_request *wanted, struct arena *arena,
              bool *was)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wanted->body;
    check(wanted->kind == CROSS_TASK_SIGNAL && wanted->target.run_id[0] == '\0');
    int64_t asked = wanted->asked_time - CLOCKS_DIFFER;
    struct chain_view chain = {.request_id = external->request_id};
    struct run_key key = wanted->target;
    unsigned runs = 0;
    *was = false;
    do {
        struct error *err = shard_look_surely(shard, &key, look_chain, &chain, arena);
        if (err != NULL)
            return cross_task_is_void(err) ? NULL : err;
        *was = chain.has_it;
        runs++;
        key.run_id = arena_text(arena, chain.run_before);
    } while (!*was && chain.start_time > asked && key.run_id[0] != '\0');
    if (*was && runs > 1)
        probe("signal_found_in_old_run");
    return NULL;
}

/* --- where the target's shard is ---- */

static struct error *
start_here(struct shard *shard, struct cross_task_request *wanted, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wanted->body;
    check(wanted->kind == CROSS_TASK_START_CHILD || wanted->kind == CROSS_TASK_REQUEST);
    size_t count = row->n_partition_config;
    const char **keys = arena_zalloc(arena, count, sizeof *keys);
    const char **values = arena_zalloc(arena, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        keys[i] = row->partition_config[i]->key;
        values[i] = row->partition_config[i]->value;
    }
    const API(SignalWithStartWorkflowExecutionRequest) *signal = row->signal_with_start;
    struct start_command command = {.request = signal == NULL ? row->start : signal->start_request,
                                    .signal = signal,
                                    .partition_keys = keys,
                                    .partition_values = values,
                                    .partition_count = count,
                                    .parent = row->parent};
    struct start_request_step start = {
        .command = &command,
        .answer = &wanted->answer,
        .parent_version = wanted->kind == CROSS_TASK_START_CHILD ? row->event_version : 0};
    struct error *err = engine_step_start(shard, wanted->target.domain_id, &start, arena);
    check(err != NULL || wanted->answer.run_id != NULL); /* without one it would count as refused */
    return err;
}

/* How far the parent is that is told of a child. */
struct parent_progress {
    bool is_open;
    int64_t next_event_id;
};

static void
look_progress(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct parent_progress *progress = context;
    progress->is_open = run_is_open(run);
    progress->next_event_id = run->core->next_event_id;
}

/* A parent that knows nothing of its child: has it forgotten, or not heard yet? After a failover by
 * force its history may come later than its child's. `refusal`: what it said; what is given back is
 * to be tried again, if it may hear of it. */
static struct error *
check_behind(struct shard *shard, const struct cross_task_request *wanted, struct arena *arena,
             struct error *refusal)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wanted->body;
    check(wanted->kind == CROSS_TASK_CHILD_CLOSED && refusal != NULL);
    struct parent_progress progress = {0};
    if (row->event_version == VERSION_NONE) /* a domain of one cluster: all there is, is here */
        return refusal;
    struct error *err = shard_look(shard, &wanted->target, look_progress, &progress, arena);
    if (err != NULL && !cross_task_is_void(err))
        return err;
    bool is_behind = err == NULL ? progress.is_open && progress.next_event_id <= row->schedule_id
                                 : clock_wall() - row->created_time < CROSS_TASK_PARENT_UNKNOWN_MAX;
    if (!is_behind)
        return refusal;
    probe("parent_behind_its_child");
    return errors_service_busy(arena, "", "Workflow %s does not know of its child yet.",
                               wanted->target.workflow_id);
}

static struct error *
step_target(struct shard *shard, struct cross_task_request *wanted, struct arena *arena)
{
    if (wanted->kind == CROSS_TASK_START_CHILD || wanted->kind == CROSS_TASK_REQUEST)
        return start_here(shard, wanted, arena);
    bool may_be_there = wanted->kind == CROSS_TASK_SIGNAL && wanted->asked_time != 0;
    bool was_there = false;
    struct error *err = NULL;
#ifdef CADENZA_FAULT_signal_sent_again
    may_be_there = false;
#endif
    if (may_be_there && wanted->target.run_id[0] == '\0')
        err = was_delivered(shard, wanted, arena, &was_there);
    if (err != NULL || was_there)
        return err;
    struct shard_step step = {
        .key = wanted->target, .needs_run = true, .decide = decide_wanted, .context = wanted};
    err = shard_step(shard, &step, arena);
    if (wanted->kind == CROSS_TASK_CHILD_CLOSED && cross_task_is_void(err))
        return check_behind(shard, wanted, arena, err);
    return err;
}

/* --- the way there and back ---- */

static INTERNAL(Origin) * origin_to_message(const struct origin *origin, struct arena *arena)
{
    if (origin->workflow_id == NULL)
        return NULL;
    INTERNAL(Origin) *message = message_new(arena, INTERNAL_TYPE(origin));
    message->workflow_id = presence_make_text(origin->workflow_id);
    message->run_id = presence_make_text(origin->run_id);
    message->initiated_id = origin->initiated_id;
    message->is_child_only = origin->is_child_only;
    message->child_id = origin->child_id;
    return message;
}

static struct origin
origin_from_message(const INTERNAL(Origin) * message)
{
    if (message == NULL)
        return (struct origin){0};
    return (struct origin){.workflow_id = message->workflow_id,
                           .run_id = message->run_id,
                           .initiated_id = message->initiated_id,
                           .is_child_only = message->is_child_only,
                           .child_id = message->child_id};
}

/* Where the message has the body of a request of this kind. NULL: it has none. */
static ProtobufCMessage **
body_place(INTERNAL(CrossTask) * message, enum cross_task_kind kind)
{
    switch (kind) {
    case CROSS_TASK_SIGNAL:
    case CROSS_TASK_CANCEL:
        return (ProtobufCMessage **)&message->external;
    case CROSS_TASK_END_CHILD:
        return (ProtobufCMessage **)&message->child;
    case CROSS_TASK_CHILD_CLOSED:
    case CROSS_TASK_START_CHILD:
    case CROSS_TASK_REQUEST:
        return (ProtobufCMessage **)&message->row;
    default:
        return NULL;
    }
}

static struct error *
serve_cross_task(void *engine, struct owner owner, const void *request, struct arena *arena,
                 void *answer)
{
    INTERNAL(CrossTask) asked = *(const INTERNAL(CrossTask) *)request;
    INTERNAL(CrossTaskDone) *told = answer;
    struct cross_task_request wanted = {.kind = (enum cross_task_kind)asked.kind,
                                        .target = run_key_from_message(asked.target),
                                        .origin = origin_from_message(asked.origin),
                                        .asked_time = asked.asked_time};
    ProtobufCMessage **body = body_place(&asked, wanted.kind);
    wanted.body = body == NULL ? NULL : *body;
    if ((wanted.body == NULL) != (wanted.kind == CROSS_TASK_PARENT_KNOWS)) /* of a later version */
        return error_new(arena, ERR_BAD_REQUEST, "A cross-workflow task of the unknown kind %u.",
                         asked.kind);
    struct error *err = step_target(engine_served_shard(engine, owner), &wanted, arena);
    check(wanted.answer.run_id == NULL || wanted.kind == CROSS_TASK_START_CHILD ||
          wanted.kind == CROSS_TASK_REQUEST); /* only a start has an answer */
    told->run_id = presence_make_text(wanted.answer.run_id);
    told->is_new = wanted.answer.is_new;
    return err;
}

/* No answer: the row that asks is worked off again, and what it asks for has the same id; a signal
 * is looked for before it is given again. */
static const struct route_question cross_task_question = {
    .name = "shard.cross_task",
    .request = INTERNAL_TYPE(cross_task),
    .answer = INTERNAL_TYPE(cross_task_done),
    .serve = serve_cross_task,
};

struct error *
cross_task_ask_shard(struct engine *engine, struct cross_task_request *wanted, struct arena *arena)
{
    INTERNAL(CrossTask) request = INTERNAL_VALUE(CROSS_TASK__INIT);
    INTERNAL(CrossTaskDone) told = INTERNAL_VALUE(CROSS_TASK_DONE__INIT);
    INTERNAL(RunKey) target = run_key_to_message(&wanted->target);
    request.kind = (uint32_t)wanted->kind;
    request.target = &target;
    request.origin = origin_to_message(&wanted->origin, arena);
    request.asked_time = wanted->asked_time;
    ProtobufCMessage **body = body_place(&request, wanted->kind);
    check((body == NULL) == (wanted->body == NULL));
    if (body != NULL)
        *body = (ProtobufCMessage *)wanted->body;
    struct error *err = engine_ask(engine, wanted->target.workflow_id, &cross_task_question,
                                   &request, arena, &told);
    if (err == NULL && told.run_id[0] != '\0')
        wanted->answer = (struct start_answer){told.run_id, told.is_new};
    return err;
}
