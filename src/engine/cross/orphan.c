/* orphan.c - a child that waits for its parent asks: am I known?
 *
 * An owner of the parent's shard that was overtaken may start a child late, when the new owner has
 * long seen that nobody wants it: the parent has closed, or was told that the start failed. Nobody
 * would come back to such a child. So a child that waits unusually long looks for itself: if its
 * parent is open and will come, it waits on; if the parent has closed, its policy counts; if it is
 * not known, it is terminated. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "fiber/probe.h"
#include "wire/message.h"

/* The child itself, and what its parent knows of it. */
struct orphan_view {
    struct cross_task_work *work;
    bool is_waiting;
    const char *request_id; /* of its start */
    bool is_parent_open;
    const STORED(PendingChild) *known; /* NULL: the parent does not know it */
    bool is_behind; /* its history here ends before it asked for a child: more of it will come */
};

static struct error *
look_self(void *context, struct step *step)
{
    struct orphan_view *view = context;
    const struct run *run = mutation_run(step->mutation);
    view->is_waiting = run_is_open(run) && run->core->waits_for_parent;
    view->request_id = arena_text(view->work->arena, run->core->create_request_id);
    return NULL;
}

/* --- the parent's side ---- */

struct parent_look {
    const INTERNAL(AskParent) * asked;
    INTERNAL(ParentAnswer) * told;
    struct arena *arena;
};

static void
look_parent(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct parent_look *look = context;
    const INTERNAL(AskParent) *asked = look->asked;
    INTERNAL(ParentAnswer) *told = look->told;
    const STORED(PendingChild) *child = run_find_child(run, asked->initiated_id);
    told->is_open = run_is_open(run);
    bool is_known =
        child != NULL && strcmp(child->request_id, asked->request_id) == 0 &&
        (child->started_run_id[0] == '\0' || strcmp(child->started_run_id, asked->run_id) == 0);
    told->known = is_known ? message_copy(look->arena, &child->base) : NULL;
    told->is_behind = told->is_open && run->core->next_event_id <= asked->initiated_id;
    check(child == NULL || !told->is_behind); /* what is pending is in the history */
}

static struct error *
serve_parent(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    const INTERNAL(AskParent) *asked = request;
    struct parent_look look = {asked, answer, arena};
    struct run_key parent = run_key_from_message(asked->parent);
    struct shard *shard = engine_served_shard(engine, owner);
    /* Surely: an owner that was overtaken may not have the decision that asked for the child. */
#ifdef CADENZA_FAULT_parent_asked_anywhere
    return shard_look(shard, &parent, look_parent, &look, arena);
#else
    return shard_look_surely(shard, &parent, look_parent, &look, arena);
#endif
}

/* It only looks. No answer: the child's row is worked off again. */
static const struct route_question parent_question = {
    .name = "shard.ask_parent",
    .request = INTERNAL_TYPE(ask_parent),
    .answer = INTERNAL_TYPE(parent_answer),
    .serve = serve_parent,
    .may_come_twice = true,
};

static struct error *
ask_parent(struct orphan_view *view, const struct run_key *parent)
{
    const struct cross_task_work *work = view->work;
    check(view->is_waiting && view->request_id != NULL); /* look_self */
    INTERNAL(RunKey) key = run_key_to_message(parent);
    INTERNAL(AskParent) request = INTERNAL_VALUE(ASK_PARENT__INIT);
    INTERNAL(ParentAnswer) answer = INTERNAL_VALUE(PARENT_ANSWER__INIT);
    request.parent = &key;
    request.initiated_id = work->cross_task->transfer->schedule_id;
    request.run_id = presence_make_text(work->source.run_id);
    request.request_id = presence_make_text(view->request_id);
    struct error *err = engine_ask(work->engine, parent->workflow_id, &parent_question, &request,
                                   work->arena, &answer);
    if (err != NULL)
        return err;
    view->is_parent_open = answer.is_open;
    view->known = answer.known;
    view->is_behind = answer.is_behind;
    return NULL;
}

/* --- the child's side ---- */

static struct error *
decide_parent_knows(void *context, struct step *step)
{
    return command_parent_knows(step, context);
}

/* Ends it, or lets it go on, as the policy says; one that nobody knows is terminated. */
static struct error *
is_closing_time(struct orphan_view *view, struct origin origin)
{
    STORED(PendingChild) unknown;
    cadenza__storage__v1__pending_child__init(&unknown);
    unknown.parent_close_policy = API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_TERMINATE);
    check(view->is_waiting);
    struct end_child_request wanted = {.child = view->known != NULL ? view->known : &unknown,
                                       .origin = origin};
    probe(view->known != NULL ? "orphan_ended" : "orphan_unknown");
    return cross_task_step_source(view->work, cross_task_decide_end_child, &wanted);
}

struct error *
cross_task_ask_parent(struct cross_task_work *work)
{
    const API(ParentExecutionInfo) *parent = work->cross_task->transfer->parent;
    if (parent == NULL || parent->workflow_execution == NULL)
        return error_new(work->arena, ERR_CORRUPT, "a row about a parent that names none");
    struct orphan_view view = {.work = work};
    struct error *err = cross_task_step_source(work, look_self, &view);
    if (err != NULL || !view.is_waiting)
        return cross_task_is_void(err) ? NULL : err;
    struct run_key key = {parent->domain_id, parent->workflow_execution->workflow_id,
                          parent->workflow_execution->run_id};
    struct origin origin = {
        .workflow_id = key.workflow_id, .run_id = key.run_id, .is_child_only = true};
    err = ask_parent(&view, &key);
    if (err != NULL && !cross_task_is_void(err))
        return err;
    probe("parent_asked");
    if (view.known == NULL && view.is_behind)
        return error_new(work->arena, ERR_DOMAIN_NOT_ACTIVE, "the parent may know it elsewhere");
    if (view.known != NULL && view.is_parent_open) {
        if (view.known->started_run_id[0] == '\0')
            return NULL; /* the parent's row will come */
        err = cross_task_step_source(work, decide_parent_knows, &origin);
    } else {
        err = is_closing_time(&view, origin);
    }
    bool is_done = err != NULL && err->kind == ERR_CANCELLATION_ALREADY_REQUESTED;
    return is_done || cross_task_is_void(err) ? NULL : err;
}
