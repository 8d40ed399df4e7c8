/* errands.c - what rows of the outbox ask for on other workflows: which one goes where, signals and
 * cancel requests, the news for a parent. Children are in errands_child.c, the steps of the others
 * in errands_target.c.
 *
 * An errand is a walk: look at the run whose row it is, ask the other workflow, write down what
 * came of it. Each is a step of its own, in its own shard, under its own lock. Whatever happens
 * between them, the walk is made again from the start: what was done already answers as it did
 * then, because the request has the same id. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/inside.h"
#include "engine/ndc/versions.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"

#define TRANSFER(name) CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_##name

struct error *
errand_step_source(struct errand_walk *walk, decide_function *decide, void *context)
{
    struct shard_step step = {.key = walk->source,
                              .needs_run = true,
                              .range_id = walk->errand->range_id,
                              .decide = decide,
                              .context = context};
    return engine_step(walk->engine, &step, walk->arena);
}

bool
errand_is_void(const struct error *err)
{
    return err != NULL &&
           (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
}

/* A row of a history that lost has a lower version than what stands in its place now (E-007). */
bool
errand_fits(const struct errand_walk *walk, int64_t event_version)
{
    bool fits = event_version <= walk->errand->transfer->event_version;
    if (!fits)
        mark("errand_of_lost_history");
    return fits;
}

/* --- signals and cancel requests ---- */

struct external_view {
    struct errand_walk *walk;
    STORED(PendingExternal) *external; /* NULL: nothing is to be done any more */
};

static struct error *
look_external(void *context, struct step *step)
{
    struct external_view *view = context;
    const struct run *run = mutation_run(step->mutation);
    const STORED(PendingExternal) *external =
        run_find_external(run, view->walk->errand->transfer->schedule_id);
    view->external =
        run_is_open(run) && external != NULL && errand_fits(view->walk, external->event_version)
            ? message_copy(view->walk->arena, &external->base)
            : NULL;
    return NULL;
}

/* Asks the other workflow. An error: try again. */
static struct error *
ask_target(struct external_view *view, enum external_end *end)
{
    const STORED(PendingExternal) *external = view->external;
    const struct run_key *source = &view->walk->source;
    bool is_self = strcmp(external->domain_id, source->domain_id) == 0 &&
                   strcmp(external->workflow_id, source->workflow_id) == 0;
    *end = EXTERNAL_UNKNOWN;
    if (is_self) /* */
        return NULL;
    struct errand_wish wish = {
        .kind = external->is_cancel ? ERRAND_CANCEL : ERRAND_SIGNAL,
        .target = {external->domain_id, external->workflow_id, external->run_id},
        .origin = {.workflow_id = source->workflow_id,
                   .run_id = source->run_id,
                   .initiated_id = external->initiated_id,
                   .is_child_only = external->is_child_only},
        .body = &external->base,
        .asked_time =
            view->walk->errand->is_repeat ? view->walk->errand->transfer->created_time : 0};
    struct error *err = errand_ask(view->walk, &wish);
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
deliver_external(struct errand_walk *walk)
{
    struct external_view view = {.walk = walk};
    struct error *err = errand_step_source(walk, look_external, &view);
    if (err != NULL || view.external == NULL)
        return errand_is_void(err) ? NULL : err;
    struct external_result result = {.initiated_id = view.external->initiated_id};
    err = ask_target(&view, &result.end);
    if (err != NULL)
        return err;
    mark(result.end != EXTERNAL_DELIVERED ? "external_failed"
         : view.external->is_cancel       ? "external_canceled"
                                          : "external_signaled");
    err = errand_step_source(walk, decide_end_external, &result);
    return errand_is_void(err) ? NULL : err;
}

/* --- the news for a parent ---- */

/* Is the run closed by this very event? It may be open again: then another history won. */
static void
look_closed(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct errand_walk *walk = context;
    const STORED(TransferRow) *row = walk->errand->transfer;
#ifdef CADENZA_PLANT_row_version_ignored
    return;
#endif
    if (run_is_open(run) || run_last_version(run) != row->event_version)
        walk->is_void = true;
}

static struct error *
check_closed(struct errand_walk *walk)
{
    if (walk->errand->transfer->event_version == VERSION_NONE)
        return NULL; /* a domain of one cluster: there is one history */
    struct error *err = engine_look(walk->engine, &walk->source, look_closed, walk, walk->arena);
    if (walk->is_void)
        mark("errand_of_lost_history");
    return errand_is_void(err) ? NULL : err; /* it may be gone by its age */
}

struct heard_view {
    int64_t initiated_id;
    bool has_heard;
};

static void
look_heard(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct heard_view *view = context;
    view->has_heard = !run_is_open(run) || (run->core->next_event_id > view->initiated_id &&
                                            run_find_child(run, view->initiated_id) == NULL);
}

/* The parent is told in another cluster, or has ended there. If it goes on elsewhere, with a
 * history that does not have that, it must be told again; so the row stays until the parent's
 * history says so here. */
static struct error *
check_heard(struct errand_walk *walk, const struct run_key *parent)
{
    struct heard_view view = {.initiated_id = walk->errand->transfer->schedule_id};
    struct error *err = engine_look(walk->engine, parent, look_heard, &view, walk->arena);
    if (errand_is_void(err)) { /* it may come, or be gone by its age */
        view.has_heard =
            clock_wall() - walk->errand->transfer->created_time > ERRAND_PARENT_UNKNOWN_MAX;
        err = NULL;
    }
    if (err != NULL || view.has_heard)
        return err;
    mark("parent_not_heard_yet");
    return errors_service_busy(walk->arena, "", "The history of workflow %s is not here yet.",
                               parent->workflow_id);
}

/* The child is active in another cluster, which tells the parent, too: its history will say so. */
static bool
is_told_by_other(const struct errand_walk *walk)
{
    const struct engine_options *options = &walk->engine->options;
    const STORED(TransferRow) *row = walk->errand->transfer;
    const struct domain *domain = domains_find_id(options->domains, row->domain_id);
    struct cluster_attribute attribute = {0};
    if (row->cluster_attribute != NULL)
        attribute =
            (struct cluster_attribute){row->cluster_attribute->scope, row->cluster_attribute->name};
    return domain != NULL && !walk->errand->is_repeat &&
           domains_active_run(options->domains, domain, &attribute, row->event_version).status !=
               ACTIVE_HERE;
}

static struct error *
tell_parent(struct errand_walk *walk)
{
    const STORED(TransferRow) *row = walk->errand->transfer;
    const API(ParentExecutionInfo) *parent = row->parent;
    if (parent == NULL || parent->workflow_execution == NULL || row->close_event == NULL)
        return error_new(walk->arena, ERR_CORRUPT, "a row for a parent that names none");
    struct run_key key = {parent->domain_id, parent->workflow_execution->workflow_id,
                          parent->workflow_execution->run_id};
    struct error *err = check_closed(walk);
    if (err != NULL || walk->is_void)
        return err;
    if (is_told_by_other(walk))
        return check_heard(walk, &key);
    struct errand_wish wish = {.kind = ERRAND_CHILD_CLOSED, .target = key, .body = &row->base};
    err = errand_ask(walk, &wish);
    mark(err == NULL ? "parent_told" : "parent_not_told");
#ifdef CADENZA_PLANT_void_abroad_ends_row
    wish.is_abroad = err == NULL && wish.is_abroad;
#endif
    if (wish.is_abroad)
        err = check_heard(walk, &key);
#ifdef CADENZA_PLANT_parent_told_or_not
    return NULL;
#endif
    return errand_is_void(err) ? NULL : err;
}

struct error *
engine_run_errand(void *context, struct errand *errand, struct arena *arena)
{
    const STORED(TransferRow) *row = errand->transfer;
    struct errand_walk walk = {.engine = context,
                               .errand = errand,
                               .source = {row->domain_id, row->workflow_id, row->run_id},
                               .arena = arena};
    switch (row->type) {
    case TRANSFER(START_CHILD):
        return errand_start_child(&walk);
    case TRANSFER(EXTERNAL):
        return deliver_external(&walk);
    case TRANSFER(TELL_PARENT):
        return tell_parent(&walk);
    case TRANSFER(END_CHILDREN):
        return errand_end_children(&walk);
    case TRANSFER(ASK_PARENT):
        return errand_ask_parent(&walk);
    case TRANSFER(REAPPLY):
        return errand_reapply(&walk);
    case TRANSFER(REQUEST):
        return errand_do_request(&walk);
    default:
        return error_new(arena, ERR_CORRUPT, "a row of the outbox of type %d", (int)row->type);
    }
}
