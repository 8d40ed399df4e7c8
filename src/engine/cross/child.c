/* child.c - children: started, told that their parent knows them, ended with it.
 *
 * The row of a start lives until the child has its first decision. If the parent closes meanwhile,
 * the row is what looks after the child: one that was started and not recorded is ended as its
 * policy says, or, abandoned, gets its first decision all the same; one that was not started never
 * is. So no child is left waiting for a parent that is gone. */
#include <stdlib.h>

#include "base/check.h"
#include "domain/active.h"
#include "engine/inside.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define SELF         "history-service"
#define POLICY(name) API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

/* What a walk has seen of the parent. */
struct parent_view {
    struct cross_task_work *work;
    bool is_open;
    STORED(PendingChild) *child; /* NULL: it is gone */
    const char *domain_name;
    const char **partition_keys, **partition_values;
    size_t partition_count;
    API(ActiveClusterSelectionPolicy) *policy;
    int64_t event_version; /* that its next events have */
};

static void
copy_partitions(struct parent_view *view, const STORED(RunRecord) *core)
{
    struct arena *arena = view->work->arena;
    size_t count = core->n_partition_config;
    view->partition_keys = arena_zalloc(arena, count, sizeof view->partition_keys[0]);
    view->partition_values = arena_zalloc(arena, count, sizeof view->partition_values[0]);
    view->partition_count = count;
    for (size_t i = 0; i < count; i++) {
        view->partition_keys[i] = arena_text(arena, core->partition_config[i]->key);
        view->partition_values[i] = arena_text(arena, core->partition_config[i]->value);
    }
}

static struct error *
look_parent(void *context, struct step *step)
{
    struct parent_view *view = context;
    struct arena *arena = view->work->arena;
    const struct run *run = mutation_run(step->mutation);
    const STORED(PendingChild) *child =
        run_find_child(run, view->work->cross_task->transfer->schedule_id);
    view->is_open = run_is_open(run);
    if (child != NULL && child->started_id == EVENT_NONE &&
        !cross_task_fits(view->work, child->event_version))
        child = NULL;
    view->child = child == NULL ? NULL : message_copy(arena, &child->base);
    view->domain_name = arena_text(arena, step->context->domain->name);
    view->event_version = step->context->event_version;
    const API(ActiveClusterSelectionPolicy) *policy = run->core->active_cluster_selection_policy;
    view->policy = policy == NULL ? NULL : message_copy(arena, &policy->base);
    copy_partitions(view, run->core);
    return NULL;
}

/* --- the end of a child with its parent ---- */

struct error *
cross_task_decide_end_child(void *context, struct step *step)
{
    const struct end_child_request *wanted = context;
    const STORED(PendingChild) *child = wanted->child;
    if (child->parent_close_policy == POLICY(ABANDON))
        return command_parent_knows(step, &wanted->origin);
    /* The chain of the first run, whichever run is the current one. */
    if (child->parent_close_policy == POLICY(REQUEST_CANCEL)) {
        API(RequestCancelWorkflowExecutionRequest) *request =
            message_new(step->arena, API_TYPE(request_cancel_workflow_execution_request));
        request->identity = (char *)SELF;
        request->first_execution_run_id = child->started_run_id;
        return command_request_cancel_from(step, request, &wanted->origin);
    }
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(step->arena, API_TYPE(terminate_workflow_execution_request));
    request->reason = (char *)"by parent close policy";
    request->identity = (char *)SELF;
    request->first_execution_run_id = child->started_run_id;
    return command_terminate_from(step, request, &wanted->origin);
}

static struct origin
origin_of(const struct cross_task_work *work, const STORED(PendingChild) *child)
{
    return (struct origin){.workflow_id = work->source.workflow_id,
                           .run_id = work->source.run_id,
                           .is_child_only = true,
                           .child_id = child->initiated_id};
}

/* What the child is started with: as its parent, unless it says otherwise. */
static const API(ActiveClusterSelectionPolicy) *
child_policy(const STORED(PendingChild) *child, const API(ActiveClusterSelectionPolicy) *of_parent)
{
    const API(ActiveClusterSelectionPolicy) *own =
        child->start == NULL ? NULL : child->start->active_cluster_selection_policy;
    return cluster_attribute_of(own).scope != NULL ? own : of_parent;
}

/* The parent has closed: what its policy means for this child. */
static struct error *
end_child(struct cross_task_work *work, const STORED(PendingChild) *child,
          const API(ActiveClusterSelectionPolicy) *of_parent)
{
    check(child->started_run_id[0] != '\0' || child->start != NULL); /* it runs, or may run yet */
    struct cross_task_request wanted = {.kind = CROSS_TASK_END_CHILD,
                                        .target = {child->domain_id, child->workflow_id, ""},
                                        .origin = origin_of(work, child),
                                        .body = &child->base,
                                        .policy = child_policy(child, of_parent),
                                        .has_policy = true};
    struct error *err = cross_task_ask(work, &wanted);
    if (err == NULL)
        probe(child->parent_close_policy == POLICY(ABANDON) ? "child_abandoned"
              : child->parent_close_policy == POLICY(REQUEST_CANCEL)
                  ? "child_canceled_by_parent"
                  : "child_terminated_by_parent");
    bool is_done = err != NULL && err->kind == ERR_CANCELLATION_ALREADY_REQUESTED;
    return is_done || cross_task_is_void(err) ? NULL : err;
}

/* --- the start ---- */

/* As a row says it. */
static STORED(TransferRow) *
make_start(const struct parent_view *view, API(StartWorkflowExecutionRequest) *request,
           API(ParentExecutionInfo) *parent)
{
    struct arena *arena = view->work->arena;
    STORED(TransferRow) *row = message_new(arena, STORED_TYPE(transfer_row));
    row->start = request;
    row->parent = parent;
    struct cluster_attribute own = cluster_attribute_of(request->active_cluster_selection_policy);
    struct cluster_attribute of_parent = cluster_attribute_of(view->policy);
    if (own.scope != NULL && cluster_attribute_equals(&own, &of_parent))
        row->event_version = view->event_version; /* its home is its parent's */
    row->n_partition_config = view->partition_count;
    row->partition_config =
        arena_zalloc(arena, view->partition_count, sizeof(row->partition_config[0]));
    for (size_t i = 0; i < view->partition_count; i++) {
        row->partition_config[i] =
            message_new(arena, STORED_TYPE(transfer_row__partition_config_entry));
        row->partition_config[i]->key = (char *)view->partition_keys[i];
        row->partition_config[i]->value = (char *)view->partition_values[i];
    }
    return row;
}

static struct error *
start_child(const struct parent_view *view, struct start_answer *answer)
{
    struct arena *arena = view->work->arena;
    const API(StartChildWorkflowExecutionInitiatedEventAttributes) *wanted = view->child->start;
    API(StartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    request->workflow_id = wanted->workflow_id;
    request->workflow_type = wanted->workflow_type;
    request->task_list = wanted->task_list;
    request->input = wanted->input;
    request->execution_start_to_close_timeout = wanted->execution_start_to_close_timeout;
    request->task_start_to_close_timeout = wanted->task_start_to_close_timeout;
    request->request_id = view->child->request_id;
    request->workflow_id_reuse_policy = wanted->workflow_id_reuse_policy;
    request->retry_policy = wanted->retry_policy;
    request->cron_schedule = wanted->cron_schedule;
    request->cron_overlap_policy = wanted->cron_overlap_policy;
    request->memo = wanted->memo;
    request->search_attributes = wanted->search_attributes;
    request->header = wanted->header;
    request->active_cluster_selection_policy =
        (API(ActiveClusterSelectionPolicy) *)child_policy(view->child, view->policy);
    API(ParentExecutionInfo) *parent = message_new(arena, API_TYPE(parent_execution_info));
    parent->domain_id = (char *)view->work->source.domain_id;
    parent->domain_name = (char *)view->domain_name;
    parent->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    parent->workflow_execution->workflow_id = (char *)view->work->source.workflow_id;
    parent->workflow_execution->run_id = (char *)view->work->source.run_id;
    parent->initiated_id = view->child->initiated_id;
    struct cross_task_request start = {
        .kind = CROSS_TASK_START_CHILD,
        .target = {view->child->domain_id, request->workflow_id, ""},
        .body = &make_start(view, request, parent)->base,
    };
    struct error *err = cross_task_ask(view->work, &start);
    *answer = start.answer;
    return err;
}

struct start_result {
    int64_t initiated_id;
    const char *run_id; /* NULL: its id could not be used */
};

static struct error *
decide_child_result(void *context, struct step *step)
{
    const struct start_result *result = context;
    check(result->initiated_id > 0);
    if (result->run_id == NULL)
        return command_child_refused(step, result->initiated_id);
    return command_child_started(step, result->initiated_id, result->run_id);
}

static struct error *
give_first_decision(struct parent_view *view, const char *run_id)
{
    const STORED(PendingChild) *child = view->child;
    check(run_id[0] != '\0'); /* this run, whichever is the current one */
    struct cross_task_request wanted = {.kind = CROSS_TASK_PARENT_KNOWS,
                                        .target = {child->domain_id, child->workflow_id, run_id},
                                        .origin = origin_of(view->work, child),
                                        .policy = child_policy(child, view->policy),
                                        .has_policy = true};
    struct error *err = cross_task_ask(view->work, &wanted);
    return cross_task_is_void(err) ? cross_task_report_closed(view->work, child, run_id) : err;
}

/* The parent is open and does not know that the child runs. */
static struct error *
start_and_record(struct parent_view *view)
{
    struct start_answer answer = {0};
    struct start_result result = {.initiated_id = view->child->initiated_id};
    check(view->is_open && view->child->started_id == EVENT_NONE);
    check(view->child->start != NULL); /* kept until it has started */
    struct error *err = start_child(view, &answer);
    if (err != NULL && err->kind != ERR_ALREADY_STARTED)
        return err;
    result.run_id = err == NULL ? answer.run_id : NULL;
    if (err == NULL && !answer.is_new)
        probe("child_start_repeated");
    probe(err == NULL ? "child_started" : "child_refused");
    err = cross_task_step_source(view->work, decide_child_result, &result);
    if (err == NULL)
        return result.run_id == NULL ? NULL : give_first_decision(view, result.run_id);
    if (!cross_task_is_void(err))
        return err;
    probe("parent_closed_meanwhile");
    return end_child(view->work, view->child, view->policy);
}

struct error *
cross_task_start_child(struct cross_task_work *work)
{
    struct parent_view view = {.work = work};
    check(!work->cross_task->has_more); /* it is one portion */
    struct error *err = cross_task_step_source(work, look_parent, &view);
    if (err != NULL || view.child == NULL)
        return cross_task_is_void(err) ? NULL : err;
    if (!view.is_open)
        return end_child(work, view.child, view.policy);
    if (view.child->started_run_id[0] != '\0')
        return give_first_decision(&view, view.child->started_run_id);
    return start_and_record(&view);
}

/* --- all children of a closed run ---- */

struct children_view {
    struct cross_task_work *work;
    vector_of(STORED(PendingChild) *) children;      /* by initiated id, those of this portion */
    const API(ActiveClusterSelectionPolicy) *policy; /* of their parent */
    bool has_more;
};

static int
child_compare(const void *a, const void *b)
{
    int64_t one = (*(STORED(PendingChild) *const *)a)->initiated_id;
    int64_t other = (*(STORED(PendingChild) *const *)b)->initiated_id;
    return one < other ? -1 : one > other;
}

/* Those that were started; the others are looked after by the rows of their starts. */
static struct error *
look_children(void *context, struct step *step)
{
    struct children_view *view = context;
    struct arena *arena = view->work->arena;
    const struct run *run = mutation_run(step->mutation);
    vector_of(STORED(PendingChild) *) all = {0};
    size_t cursor = 0;
    void *value;
    check(view->children.count == 0 && !view->has_more); /* a walk looks once */
    if (run_is_open(run))
        return NULL; /* the history that closed it has lost */
    const API(ActiveClusterSelectionPolicy) *policy = run->core->active_cluster_selection_policy;
    view->policy = policy == NULL ? NULL : message_copy(arena, &policy->base);
    while (map64_next(run->children, &cursor, NULL, &value)) {
        STORED(PendingChild) *child = value;
        if (child->started_id != EVENT_NONE && child->parent_close_policy != POLICY(ABANDON) &&
            (uint64_t)child->initiated_id > view->work->cross_task->cursor)
            vector_push_in(&all, arena, child);
    }
    if (all.count > 1)
        qsort(all.items, all.count, sizeof all.items[0], child_compare);
    int64_t portion = run_context_integer(step->context, DYNAMIC_PARENT_CLOSE_BATCH);
    size_t count_max = portion < 1 ? 1 : (size_t)portion;
    view->has_more = all.count > count_max;
    for (size_t i = 0; i < all.count && i < count_max; i++)
        vector_push_in(&view->children, arena, message_copy(arena, &all.items[i]->base));
    return NULL;
}

struct error *
cross_task_end_children(struct cross_task_work *work)
{
    struct children_view view = {.work = work};
    struct error *err = cross_task_step_source(work, look_children, &view);
    if (err != NULL)
        return cross_task_is_void(err) ? NULL : err;
    check(!view.has_more || view.children.count > 0); /* each portion comes further */
    for (size_t i = 0; i < view.children.count; i++) {
        STORED(PendingChild) *child = view.children.items[i];
        check((uint64_t)child->initiated_id > work->cross_task->cursor); /* each once */
        err = end_child(work, child, view.policy);
        if (err != NULL)
            return err;
        work->cross_task->cursor = (uint64_t)child->initiated_id;
    }
    work->cross_task->has_more = view.has_more;
    return NULL;
}
