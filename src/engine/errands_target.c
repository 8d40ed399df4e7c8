/* errands_target.c - what an errand asks of its target: carried out here, or in the cluster where
 * the target is active.
 *
 * Workflows of one domain may be active in different clusters, and one that signals another, or has
 * a child there, need not know. The errand asks here first, since who is asked knows best where its
 * run is; a refusal that names another cluster is followed there, as one call. What comes of it is
 * the same in both cases, an error of the target too, and so is a repeat: the request has its id.
 *
 * A child that is started for a parent elsewhere needs its parent's history here: its end is told
 * to where the parent is active then, and that is found by the run. So it is not started before
 * that has come. */
#include <stdio.h>

#include "base/check.h"
#include "domain/active.h"
#include "engine/inside.h"
#include "engine/ndc/versions.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CLOCKS_DIFFER (60 * (int64_t)1000000000) /* of hosts: not more than this */
#define SELF          "history-service"          /* who asks, for the histories of others */

/* --- steps of the target ---- */

static struct error *
decide_signal(const struct errand_wish *wish, struct step *step)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wish->body;
    API(SignalWorkflowExecutionRequest) *request =
        message_new(step->arena, API_TYPE(signal_workflow_execution_request));
    request->signal_name = external->signal_name;
    request->signal_input = external->input;
    request->request_id = external->request_id;
    request->identity = (char *)SELF;
    return command_signal_from(step, request, &wish->origin);
}

static struct error *
decide_cancel(const struct errand_wish *wish, struct step *step)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wish->body;
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(step->arena, API_TYPE(request_cancel_workflow_execution_request));
    request->request_id = external->request_id;
    request->identity = (char *)SELF;
    return command_request_cancel_from(step, request, &wish->origin);
}

static struct error *
decide_child_closed(const struct errand_wish *wish, struct step *step)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wish->body;
    struct child_close close = {.workflow_id = row->workflow_id,
                                .run_id = row->run_id,
                                .first_run_id = row->first_run_id,
                                .event = row->close_event};
    return command_child_closed(step, row->schedule_id, &close);
}

static struct error *
decide_wish(void *context, struct step *step)
{
    const struct errand_wish *wish = context;
    struct end_wish end = {(const STORED(PendingChild) *)wish->body, wish->origin};
    switch (wish->kind) {
    case ERRAND_SIGNAL:
        return decide_signal(wish, step);
    case ERRAND_CANCEL:
        return decide_cancel(wish, step);
    case ERRAND_END_CHILD:
        return errand_decide_end_child(&end, step);
    case ERRAND_PARENT_KNOWS:
        return command_parent_knows(step, &wish->origin);
    case ERRAND_CHILD_CLOSED:
        return decide_child_closed(wish, step);
    default:
        unreachable("errand of kind %d", (int)wish->kind);
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
was_delivered(struct engine *engine, const struct errand_wish *wish, struct arena *arena, bool *was)
{
    const STORED(PendingExternal) *external = (const STORED(PendingExternal) *)wish->body;
    int64_t asked = wish->asked_time - CLOCKS_DIFFER;
    struct chain_view chain = {.request_id = external->request_id};
    struct run_key key = wish->target;
    unsigned runs = 0;
    *was = false;
    do {
        struct error *err = engine_look_surely(engine, &key, look_chain, &chain, arena);
        if (err != NULL)
            return errand_is_void(err) ? NULL : err;
        *was = chain.has_it;
        runs++;
        key.run_id = arena_text(arena, chain.run_before);
    } while (!*was && chain.start_time > asked && key.run_id[0] != '\0');
    if (*was && runs > 1)
        mark("signal_found_in_old_run");
    return NULL;
}

/* --- here ---- */

static struct error *
start_here(struct engine *engine, struct errand_wish *wish, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wish->body;
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
    struct start_wish start = {.command = &command,
                               .answer = &wish->answer,
                               .parent_version =
                                   wish->kind == ERRAND_START_CHILD ? row->event_version : 0};
    return engine_step_start(engine, wish->target.domain_id, &start, arena);
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
check_behind(struct engine *engine, const struct errand_wish *wish, struct arena *arena,
             struct error *refusal)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wish->body;
    struct parent_progress progress = {0};
    if (row->event_version == VERSION_NONE) /* a domain of one cluster: all there is, is here */
        return refusal;
    struct error *err = engine_look(engine, &wish->target, look_progress, &progress, arena);
    if (err != NULL && !errand_is_void(err))
        return err;
    bool is_behind = err == NULL ? progress.is_open && progress.next_event_id <= row->schedule_id
                                 : clock_wall() - row->created_time < ERRAND_PARENT_UNKNOWN_MAX;
    if (!is_behind)
        return refusal;
    mark("parent_behind_its_child");
    return errors_service_busy(arena, "", "Workflow %s has not heard of its child yet.",
                               wish->target.workflow_id);
}

static struct error *
ask_here(struct engine *engine, struct errand_wish *wish, struct arena *arena)
{
    if (wish->kind == ERRAND_START_CHILD || wish->kind == ERRAND_REQUEST)
        return start_here(engine, wish, arena);
    bool may_be_there = wish->kind == ERRAND_SIGNAL && wish->asked_time != 0;
    bool was_there = false;
    struct error *err = NULL;
#ifdef CADENZA_PLANT_signal_sent_again
    may_be_there = false;
#endif
    if (may_be_there && wish->target.run_id[0] == '\0')
        err = was_delivered(engine, wish, arena, &was_there);
    if (err != NULL || was_there)
        return err;
    struct shard_step step = {
        .key = wish->target, .needs_run = true, .decide = decide_wish, .context = wish};
    err = engine_step(engine, &step, arena);
    if (wish->kind == ERRAND_CHILD_CLOSED && errand_is_void(err))
        return check_behind(engine, wish, arena, err);
    return err;
}

/* --- elsewhere ---- */

/* Another cluster that the refusal names, or, where the target has not been heard of, the one that
 * it must have been started in. NULL: there is none. */
static const char *
find_abroad(const struct errand_walk *walk, const struct errand_wish *wish, const struct error *err)
{
    const struct engine_options *options = &walk->engine->options;
    API(DomainNotActiveError) *detail = NULL;
    const char *cluster = "";
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE && errors_read(walk->arena, err, &detail) == NULL)
        cluster = detail->active_cluster;
    const struct domain *domain = domains_find_id(options->domains, wish->target.domain_id);
    if (err->kind == ERR_ENTITY_NOT_EXISTS && wish->has_policy && domain != NULL) {
        struct cluster_attribute attribute = cluster_attribute_of(wish->policy);
        cluster = domains_active_run(options->domains, domain, &attribute, -1).cluster_name;
    }
    bool is_elsewhere = cluster[0] != '\0' && strcmp(cluster, options->group->current->name) != 0;
    return is_elsewhere ? arena_text(walk->arena, cluster) : NULL;
}

static STORE_API(RunErrandRequest) *
make_request(const struct errand_wish *wish, struct arena *arena)
{
    STORE_API(RunErrandRequest) *request =
        message_new(arena, &cadenza__admin__v1__run_errand_request__descriptor);
    request->kind = (uint32_t)wish->kind;
    request->domain_id = (char *)wish->target.domain_id;
    request->workflow_id = (char *)wish->target.workflow_id;
    request->run_id = (char *)wish->target.run_id;
    request->origin_workflow_id = presence_make_text(wish->origin.workflow_id);
    request->origin_run_id = presence_make_text(wish->origin.run_id);
    request->initiated_id = wish->origin.initiated_id;
    request->is_child_only = wish->origin.is_child_only;
    request->child_id = wish->origin.child_id;
    request->asked_time = wish->asked_time;
    if (wish->body != NULL)
        request->body = presence_make_bytes(message_encode(arena, wish->body));
    return request;
}

struct error *
errand_follow(struct errand_walk *walk, struct errand_wish *wish, struct error *refusal)
{
    const struct abroad_port *port = &walk->engine->options.abroad;
    const char *cluster = port->send == NULL ? NULL : find_abroad(walk, wish, refusal);
    if (cluster == NULL)
        return refusal;
    mark("errand_abroad");
    STORE_API(RunErrandResponse) *response = NULL;
    struct error *err =
        port->send(port->context, cluster, make_request(wish, walk->arena), walk->arena, &response);
    if (err != NULL && err->kind == ERR_UNIMPLEMENTED && wish->kind == ERRAND_REQUEST) {
        mark("accepted_sent_to_cadence");
        return port->start(port->context, cluster, (const STORED(TransferRow) *)wish->body,
                           walk->arena);
    }
    wish->is_abroad = err == NULL || errand_is_void(err);
    if (err == NULL)
        wish->answer = (struct start_answer){response->run_id, response->is_new};
    return err;
}

struct error *
errand_ask(struct errand_walk *walk, struct errand_wish *wish)
{
    struct error *err = ask_here(walk->engine, wish, walk->arena);
    return err == NULL ? NULL : errand_follow(walk, wish, err);
}

/* --- from elsewhere ---- */

static const ProtobufCMessageDescriptor *
body_type(enum errand_kind kind)
{
    switch (kind) {
    case ERRAND_SIGNAL:
    case ERRAND_CANCEL:
        return STORED_TYPE(pending_external);
    case ERRAND_END_CHILD:
        return STORED_TYPE(pending_child);
    case ERRAND_CHILD_CLOSED:
    case ERRAND_START_CHILD:
    case ERRAND_REQUEST:
        return STORED_TYPE(transfer_row);
    default:
        return NULL;
    }
}

static struct error *
check_body(const struct errand_wish *wish, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wish->body;
    bool is_whole = true;
    if (wish->kind == ERRAND_CHILD_CLOSED)
        is_whole = row->close_event != NULL;
    else if (wish->kind == ERRAND_START_CHILD)
        is_whole = row->start != NULL && row->parent != NULL &&
                   row->parent->workflow_execution != NULL &&
                   strcmp(row->start->workflow_id, wish->target.workflow_id) == 0;
    else if (wish->kind == ERRAND_REQUEST)
        is_whole = row->signal_with_start != NULL ? row->signal_with_start->start_request != NULL
                                                  : row->start != NULL;
    return is_whole ? NULL : error_new(arena, ERR_BAD_REQUEST, "The errand says not what to do.");
}

static struct error *
read_request(const STORE_API(RunErrandRequest) *request, struct arena *arena,
             struct errand_wish *wish)
{
    *wish = (struct errand_wish){
        .kind = (enum errand_kind)request->kind,
        .target = {request->domain_id, request->workflow_id, request->run_id},
        .origin = {.workflow_id = request->origin_workflow_id,
                   .run_id = request->origin_run_id,
                   .initiated_id = request->initiated_id,
                   .is_child_only = request->is_child_only,
                   .child_id = request->child_id},
        .asked_time = request->asked_time,
    };
    const ProtobufCMessageDescriptor *type = body_type(wish->kind);
    if (type == NULL && wish->kind != ERRAND_PARENT_KNOWS)
        return error_new(arena, ERR_BAD_REQUEST, "An errand of the unknown kind %u.",
                         request->kind);
    if (type == NULL)
        return NULL;
    ProtobufCMessage *body = NULL;
    struct error *err =
        message_decode_at(arena, ERR_BAD_REQUEST, type, presence_read_bytes(request->body), &body);
    wish->body = body;
    return err != NULL ? err : check_body(wish, arena);
}

static void
look_at_nothing(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
}

static struct error *
check_parent(struct engine *engine, const struct errand_wish *wish, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wish->body;
    struct run_key key = {row->parent->domain_id, row->parent->workflow_execution->workflow_id,
                          row->parent->workflow_execution->run_id};
    struct error *err = engine_look(engine, &key, look_at_nothing, NULL, arena);
    if (!errand_is_void(err))
        return err;
    mark("child_before_its_parent");
    return errors_service_busy(arena, "", "The parent of workflow %s is not known here yet.",
                               wish->target.workflow_id);
}

struct error *
engine_run_foreign_errand(struct engine *engine, const STORE_API(RunErrandRequest) *request,
                          struct arena *arena, STORE_API(RunErrandResponse) *response)
{
    struct errand_wish wish;
    struct error *err = read_request(request, arena, &wish);
    if (err == NULL && wish.kind == ERRAND_START_CHILD)
        err = check_parent(engine, &wish, arena);
    if (err == NULL)
        err = ask_here(engine, &wish, arena);
    if (err != NULL)
        return err;
    mark("errand_from_abroad");
    response->run_id = presence_make_text(wish.answer.run_id);
    response->is_new = wish.answer.is_new;
    return NULL;
}
