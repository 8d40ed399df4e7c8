/* ask.c - asks the target of a cross-workflow task: the shard that has it here, or the cluster
 * where it is active; and does so for other clusters.
 *
 * Workflows of one domain may be active in different clusters, and one that signals another, or has
 * a child there, need not know. The cross-workflow task asks here first, since who is asked knows
 * best where its run is; a refusal that names another cluster is followed there, as one call.
 *
 * A child that is started for a parent elsewhere needs its parent's history here: its end is told
 * to where the parent is active then, and that is found by the run. So it is not started before
 * that has come. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/inside.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A request that is made here says what its kind needs, and no more. (Those of other clusters are
 * judged by read_request.) */
static void
request_check(const struct cross_task_request *wanted)
{
    bool is_external = wanted->kind == CROSS_TASK_SIGNAL || wanted->kind == CROSS_TASK_CANCEL;
    bool is_start = wanted->kind == CROSS_TASK_START_CHILD || wanted->kind == CROSS_TASK_REQUEST;
    bool is_of_parent =
        wanted->kind == CROSS_TASK_END_CHILD || wanted->kind == CROSS_TASK_PARENT_KNOWS;
    check(is_external || is_start || is_of_parent || wanted->kind == CROSS_TASK_CHILD_CLOSED);
    check((wanted->body == NULL) == (wanted->kind == CROSS_TASK_PARENT_KNOWS));
    check((wanted->origin.workflow_id != NULL) == (is_external || is_of_parent));
    check(wanted->origin.is_child_only || !is_of_parent);
    check(wanted->asked_time == 0 || is_external);
    check(wanted->has_policy == is_of_parent && (wanted->policy == NULL || wanted->has_policy));
    check(wanted->target.run_id[0] == '\0' || !is_start); /* it makes one */
    check(!wanted->is_remote);
}

/* --- elsewhere ---- */

/* Another cluster that the refusal names, or, where the target has not been heard of, the one that
 * it must have been started in. NULL: there is none. */
static const char *
find_remote(const struct cross_task_work *work, const struct cross_task_request *wanted,
            const struct error *err)
{
    const struct engine_options *options = &work->engine->options;
    API(DomainNotActiveError) *detail = NULL;
    const char *cluster = "";
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE && errors_read(work->arena, err, &detail) == NULL)
        cluster = detail->active_cluster;
    const struct domain *domain = domains_find_id(options->domains, wanted->target.domain_id);
    if (err->kind == ERR_ENTITY_NOT_EXISTS && wanted->has_policy && domain != NULL) {
        struct cluster_attribute attribute = cluster_attribute_of(wanted->policy);
        cluster = domains_active_run(options->domains, domain, &attribute, -1).cluster_name;
    }
    bool is_elsewhere = cluster[0] != '\0' && strcmp(cluster, options->group->current->name) != 0;
    return is_elsewhere ? arena_text(work->arena, cluster) : NULL;
}

static STORE_API(RunErrandRequest) *
make_request(const struct cross_task_request *wanted, struct arena *arena)
{
    STORE_API(RunErrandRequest) *request =
        message_new(arena, &cadenza__admin__v1__run_errand_request__descriptor);
    request->kind = (uint32_t)wanted->kind;
    request->domain_id = (char *)wanted->target.domain_id;
    request->workflow_id = (char *)wanted->target.workflow_id;
    request->run_id = (char *)wanted->target.run_id;
    request->origin_workflow_id = presence_make_text(wanted->origin.workflow_id);
    request->origin_run_id = presence_make_text(wanted->origin.run_id);
    request->initiated_id = wanted->origin.initiated_id;
    request->is_child_only = wanted->origin.is_child_only;
    request->child_id = wanted->origin.child_id;
    request->asked_time = wanted->asked_time;
    if (wanted->body != NULL)
        request->body = presence_make_bytes(message_encode(arena, wanted->body));
    return request;
}

struct error *
cross_task_follow(struct cross_task_work *work, struct cross_task_request *wanted,
                  struct error *refusal)
{
    const struct remote_port *port = &work->engine->options.remote;
    check(refusal != NULL);
    request_check(wanted);
    const char *cluster = port->send == NULL ? NULL : find_remote(work, wanted, refusal);
    if (cluster == NULL)
        return refusal;
    probe("cross_task_remote");
    STORE_API(RunErrandResponse) *response = NULL;
    struct error *err = port->send(port->context, cluster, make_request(wanted, work->arena),
                                   work->arena, &response);
    if (err != NULL && err->kind == ERR_UNIMPLEMENTED && wanted->kind == CROSS_TASK_REQUEST) {
        probe("accepted_sent_to_cadence");
        return port->start(port->context, cluster, (const STORED(TransferRow) *)wanted->body,
                           work->arena);
    }
    bool is_unnamed =
        err == NULL && wanted->kind == CROSS_TASK_START_CHILD && response->run_id[0] == '\0';
    if (is_unnamed) /* what is recorded of a child that has started is its run */
        return error_new(work->arena, ERR_UNAVAILABLE,
                         "Cluster %s does not say which run it has started.", cluster);
    wanted->is_remote = err == NULL || cross_task_is_void(err);
    if (err == NULL)
        wanted->answer = (struct start_answer){response->run_id, response->is_new};
    return err;
}

struct error *
cross_task_ask(struct cross_task_work *work, struct cross_task_request *wanted)
{
    request_check(wanted);
    check(wanted->answer.run_id == NULL); /* it was not asked before */
    struct error *err = cross_task_ask_shard(work->engine, wanted, work->arena);
    return err == NULL ? NULL : cross_task_follow(work, wanted, err);
}

/* --- from elsewhere ---- */

static const ProtobufCMessageDescriptor *
body_type(enum cross_task_kind kind)
{
    switch (kind) {
    case CROSS_TASK_SIGNAL:
    case CROSS_TASK_CANCEL:
        return STORED_TYPE(pending_external);
    case CROSS_TASK_END_CHILD:
        return STORED_TYPE(pending_child);
    case CROSS_TASK_CHILD_CLOSED:
    case CROSS_TASK_START_CHILD:
    case CROSS_TASK_REQUEST:
        return STORED_TYPE(transfer_row);
    default:
        return NULL;
    }
}

static struct error *
check_body(const struct cross_task_request *wanted, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wanted->body;
    bool is_whole = true;
    if (wanted->kind == CROSS_TASK_CHILD_CLOSED)
        is_whole = row->close_event != NULL;
    else if (wanted->kind == CROSS_TASK_START_CHILD)
        is_whole = row->start != NULL && row->parent != NULL &&
                   row->parent->workflow_execution != NULL &&
                   strcmp(row->start->workflow_id, wanted->target.workflow_id) == 0;
    else if (wanted->kind == CROSS_TASK_REQUEST)
        is_whole = row->signal_with_start != NULL ? row->signal_with_start->start_request != NULL
                                                  : row->start != NULL;
    return is_whole ? NULL
                    : error_new(arena, ERR_BAD_REQUEST,
                                "The cross-workflow task does not say what to do.");
}

static struct error *
read_request(const STORE_API(RunErrandRequest) *request, struct arena *arena,
             struct cross_task_request *wanted)
{
    *wanted = (struct cross_task_request){
        .kind = (enum cross_task_kind)request->kind,
        .target = {request->domain_id, request->workflow_id, request->run_id},
        .origin = {.workflow_id = request->origin_workflow_id,
                   .run_id = request->origin_run_id,
                   .initiated_id = request->initiated_id,
                   .is_child_only = request->is_child_only,
                   .child_id = request->child_id},
        .asked_time = request->asked_time,
    };
    const ProtobufCMessageDescriptor *type = body_type(wanted->kind);
    if (type == NULL && wanted->kind != CROSS_TASK_PARENT_KNOWS)
        return error_new(arena, ERR_BAD_REQUEST, "A cross-workflow task of the unknown kind %u.",
                         request->kind);
    if (type == NULL)
        return NULL;
    ProtobufCMessage *body = NULL;
    struct error *err =
        message_decode_at(arena, ERR_BAD_REQUEST, type, presence_read_bytes(request->body), &body);
    wanted->body = body;
    return err != NULL ? err : check_body(wanted, arena);
}

static struct error *
check_parent(struct engine *engine, const struct cross_task_request *wanted, struct arena *arena)
{
    const STORED(TransferRow) *row = (const STORED(TransferRow) *)wanted->body;
    check(wanted->kind == CROSS_TASK_START_CHILD);
    struct run_key key = {row->parent->domain_id, row->parent->workflow_execution->workflow_id,
                          row->parent->workflow_execution->run_id};
    struct run_home home; /* only whether there is one */
    struct error *err = engine_home(engine, &key, arena, &home);
    if (!cross_task_is_void(err))
        return err;
    probe("child_before_its_parent");
    return errors_service_busy(arena, "", "The parent of workflow %s is not known here yet.",
                               wanted->target.workflow_id);
}

struct error *
engine_run_remote_cross_task(struct engine *engine, const STORE_API(RunErrandRequest) *request,
                             struct arena *arena, STORE_API(RunErrandResponse) *response)
{
    struct cross_task_request wanted;
    struct error *err = read_request(request, arena, &wanted);
    if (err == NULL && wanted.kind == CROSS_TASK_START_CHILD)
        err = check_parent(engine, &wanted, arena);
    if (err == NULL)
        err = cross_task_ask_shard(engine, &wanted, arena);
    if (err != NULL)
        return err;
    probe("cross_task_from_remote");
    response->run_id = presence_make_text(wanted.answer.run_id);
    response->is_new = wanted.answer.is_new;
    return NULL;
}
