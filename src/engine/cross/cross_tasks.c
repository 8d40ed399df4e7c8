/* cross_tasks.c - what rows of the outbox ask for on other workflows: which one goes where, signals
 * and cancel requests, the news for a parent. Children are in child.c, the steps of the other
 * workflow in target.c.
 *
 * A cross-workflow task is a walk: look at the run whose row it is, ask the other workflow, write
 * down what came of it. Each is a step of its own, in its own shard, under its own lock. Whatever
 * happens between them, the walk starts again from the beginning: what was done already answers as
 * it did then, because the request has the same id. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/branches/versions.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define TRANSFER(name) CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_##name

struct error *
cross_task_step_source(struct cross_task_work *work, decide_function *decide, void *context)
{
    struct shard_step step = {.key = work->source,
                              .needs_run = true,
                              .range_id = work->cross_task->range_id,
                              .decide = decide,
                              .context = context};
    check(step.range_id != 0); /* else a later owner of the shard would make it, too */
    return shard_step(engine_own_shard(work->engine, work->source.workflow_id), &step, work->arena);
}

bool
cross_task_is_void(const struct error *err)
{
    return err != NULL &&
           (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
}

/* A row of a history that lost has a lower version than what stands in its place now (E-007). */
bool
cross_task_fits(const struct cross_task_work *work, int64_t event_version)
{
    bool fits = event_version <= work->cross_task->transfer->event_version;
    if (!fits)
        probe("cross_task_of_lost_history");
    return fits;
}

/* --- signals and cancel requests ---- */

struct external_view {
    struct cross_task_work *work;
    STORED(PendingExternal) *external; /* NULL: nothing is to be done any more */
};

static struct error *
look_external(void *context, struct step *step)
{
    struct external_view *view = context;
    const struct run *run = mutation_run(step->mutation);
    const STORED(PendingExternal) *external =
        run_find_external(run, view->work->cross_task->transfer->schedule_id);
    view->external =
        run_is_open(run) && external != NULL && cross_task_fits(view->work, external->event_version)
            ? message_copy(view->work->arena, &external->base)
            : NULL;
    return NULL;
}

/* Asks the other workflow. An error: try again. */
static struct error *
ask_target(struct external_view *view, enum external_end *end)
{
    const STORED(PendingExternal) *external = view->external;
    const struct run_key *source = &view->work->source;
    bool is_self = strcmp(external->domain_id, source->domain_id) == 0 &&
                   strcmp(external->workflow_id, source->workflow_id) == 0;
    *end = EXTERNAL_UNKNOWN;
    if (is_self) /* */
        return NULL;
    struct cross_task_request wanted = {
        .kind = external->is_cancel ? CROSS_TASK_CANCEL : CROSS_TASK_SIGNAL,
        .target = {external->domain_id, external->workflow_id, external->run_id},
        .origin = {.workflow_id = source->workflow_id,
                   .run_id = source->run_id,
                   .initiated_id = external->initiated_id,
                   .is_child_only = external->is_child_only},
        .body = &external->base,
        .asked_time =
            view->work->cross_task->is_repeat ? view->work->cross_task->transfer->created_time : 0};
    struct error *err = cross_task_ask(view->work, &wanted);
    if (err == NULL || err->kind == ERR_CANCELLATION_ALREADY_REQUESTED)
        *end = EXTERNAL_DELIVERED;
    else if (err->kind == ERR_ALREADY_COMPLETED)
        *end = EXTERNAL_COMPLETED;
    else if (err->kind != ERR_ENTITY_NOT_EXISTS && err->kind != ERR_LIMIT_EXCEEDED &&
             err->kind != ERR_BAD_REQUEST)
        return err;
    return NULL;
}

struct external_result {
    int64_t initiated_id;
    enum external_end end;
};

static struct error *
decide_end_external(void *context, struct step *step)
{
    const struct external_result *result = context;
    return command_end_external(step, result->initiated_id, result->end);
}

static struct error *
deliver_external(struct cross_task_work *work)
{
    struct external_view view = {.work = work};
    struct error *err = cross_task_step_source(work, look_external, &view);
    if (err != NULL || view.external == NULL)
        return cross_task_is_void(err) ? NULL : err;
    struct external_result result = {.initiated_id = view.external->initiated_id};
    err = ask_target(&view, &result.end);
    if (err != NULL)
        return err;
    probe(result.end != EXTERNAL_DELIVERED ? "external_failed"
          : view.external->is_cancel       ? "external_canceled"
                                           : "external_signaled");
    err = cross_task_step_source(work, decide_end_external, &result);
    return cross_task_is_void(err) ? NULL : err;
}

/* --- the news for a parent ---- */

/* Is the run closed by this very event? It may be open again: then another history won. */
static void
look_closed(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct cross_task_work *work = context;
    const STORED(TransferRow) *row = work->cross_task->transfer;
#ifdef CADENZA_FAULT_row_version_ignored
    return;
#endif
    work->is_void = run_is_open(run) || run_last_version(run) != row->event_version;
}

static struct error *
check_closed(struct cross_task_work *work)
{
    check(!work->is_void); /* it is asked first */
    if (work->cross_task->transfer->event_version == VERSION_NONE)
        return NULL; /* a domain of one cluster: there is one history */
    struct shard *shard = engine_own_shard(work->engine, work->source.workflow_id);
    struct error *err = shard_look(shard, &work->source, look_closed, work, work->arena);
    if (work->is_void)
        probe("cross_task_of_lost_history");
    return cross_task_is_void(err) ? NULL : err; /* it may be gone by its age */
}

struct notified_view {
    int64_t initiated_id;
    bool was_notified;
};

static void
look_notified(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct notified_view *view = context;
    view->was_notified = !run_is_open(run) || (run->core->next_event_id > view->initiated_id &&
                                               run_find_child(run, view->initiated_id) == NULL);
}

static struct error *
serve_notified(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    const INTERNAL(AskNotified) *asked = request;
    struct notified_view view = {.initiated_id = asked->initiated_id};
    struct run_key parent = run_key_from_message(asked->parent);
    struct error *err =
        shard_look(engine_served_shard(engine, owner), &parent, look_notified, &view, arena);
    ((INTERNAL(NotifiedAnswer) *)answer)->was_notified = view.was_notified;
    return err;
}

/* It only looks. No answer: the row of the child's end is worked off again. */
static const struct route_question notified_question = {
    .name = "shard.was_notified",
    .request = INTERNAL_TYPE(ask_notified),
    .answer = INTERNAL_TYPE(notified_answer),
    .serve = serve_notified,
    .may_come_twice = true,
};

/* The parent is told in another cluster, or has ended there. If it goes on elsewhere, with a
 * history that does not have that, it must be told again; so the row stays until the parent's
 * history says so here. */
static struct error *
check_notified(struct cross_task_work *work, const struct run_key *parent)
{
    INTERNAL(RunKey) key = run_key_to_message(parent);
    INTERNAL(AskNotified) request = INTERNAL_VALUE(ASK_NOTIFIED__INIT);
    INTERNAL(NotifiedAnswer) answer = INTERNAL_VALUE(NOTIFIED_ANSWER__INIT);
    request.parent = &key;
    request.initiated_id = work->cross_task->transfer->schedule_id;
    struct error *err = engine_ask(work->engine, parent->workflow_id, &notified_question, &request,
                                   work->arena, &answer);
    if (cross_task_is_void(err)) { /* it may come, or be gone by its age */
        answer.was_notified =
            clock_wall() - work->cross_task->transfer->created_time > CROSS_TASK_PARENT_UNKNOWN_MAX;
        err = NULL;
    }
    if (err != NULL || answer.was_notified)
        return err;
    probe("parent_not_known_yet");
    return errors_service_busy(work->arena, "", "The history of workflow %s is not here yet.",
                               parent->workflow_id);
}

/* The child is active in another cluster, which tells the parent, too: its history will say so. */
static bool
is_sent_by_other(const struct cross_task_work *work)
{
    const struct engine_options *options = &work->engine->options;
    const STORED(TransferRow) *row = work->cross_task->transfer;
    const struct domain *domain = domains_find_id(options->domains, row->domain_id);
    struct cluster_attribute attribute = {0};
    if (row->cluster_attribute != NULL)
        attribute =
            (struct cluster_attribute){row->cluster_attribute->scope, row->cluster_attribute->name};
    return domain != NULL && !work->cross_task->is_repeat &&
           domains_active_run(options->domains, domain, &attribute, row->event_version).status !=
               ACTIVE_HERE;
}

static struct error *
notify_parent(struct cross_task_work *work)
{
    const STORED(TransferRow) *row = work->cross_task->transfer;
    const API(ParentExecutionInfo) *parent = row->parent;
    if (parent == NULL || parent->workflow_execution == NULL || row->close_event == NULL)
        return error_new(work->arena, ERR_CORRUPT, "a row for a parent that names none");
    struct run_key key = {parent->domain_id, parent->workflow_execution->workflow_id,
                          parent->workflow_execution->run_id};
    struct error *err = check_closed(work);
    if (err != NULL || work->is_void)
        return err;
    if (is_sent_by_other(work))
        return check_notified(work, &key);
    struct cross_task_request wanted = {
        .kind = CROSS_TASK_CHILD_CLOSED, .target = key, .body = &row->base};
    err = cross_task_ask(work, &wanted);
    probe(err == NULL ? "parent_notified" : "parent_not_notified");
#ifdef CADENZA_FAULT_void_remote_ends_row
    wanted.is_remote = err == NULL && wanted.is_remote;
#endif
    if (wanted.is_remote)
        err = check_notified(work, &key);
#ifdef CADENZA_FAULT_parent_notified_or_not
    return NULL;
#endif
    return cross_task_is_void(err) ? NULL : err;
}

struct error *
engine_run_cross_task(void *context, struct cross_task *cross_task, struct arena *arena)
{
    const STORED(TransferRow) *row = cross_task->transfer;
    check(cross_task->range_id != 0 && cross_task->row != 0 && !cross_task->has_more);
    struct cross_task_work work = {.engine = context,
                                   .cross_task = cross_task,
                                   .source = {row->domain_id, row->workflow_id, row->run_id},
                                   .arena = arena};
    switch (row->type) {
    case TRANSFER(START_CHILD):
        return cross_task_start_child(&work);
    case TRANSFER(EXTERNAL):
        return deliver_external(&work);
    case TRANSFER(TELL_PARENT):
        return notify_parent(&work);
    case TRANSFER(END_CHILDREN):
        return cross_task_end_children(&work);
    case TRANSFER(ASK_PARENT):
        return cross_task_ask_parent(&work);
    case TRANSFER(REAPPLY):
        return cross_task_reapply(&work);
    case TRANSFER(REQUEST):
        return cross_task_do_request(&work);
    default:
        return error_new(arena, ERR_CORRUPT, "a row of the outbox of type %d", (int)row->type);
    }
}
