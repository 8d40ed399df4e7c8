/* forward.c - calls about workflows that are active in another cluster are answered there (G-042 to
 * G-052).
 *
 * A call goes on as it came: the same bytes, the same headers, what is left of its time; so does
 * the answer, and so do errors. Where it goes follows from the domain, or, where workflows of one
 * domain are active in several clusters, from what the workflow belongs to. A cluster that was
 * asked may know better (a failover has just come to it): what it says is followed once. A call
 * that another cluster sent on is answered here, with an error if need be: calls do not go in
 * circles.
 *
 * A cluster that cannot be reached is an error at once, which callers may retry (net/client.h backs
 * off). */
#include "api/call/subject.h"
#include "api/entity/entity.h"
#include "api/forward/hold.h"
#include "api/forward/home.h"
#include "api/forward/send.h"
#include "api/worker/worker.h"
#include "base/check.h"
#include "base/memory.h"
#include "domain/drain.h"
#include "engine/engine.h"
#include "fiber/probe.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/services.h"

#define STRONG API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG)

/* What else requests of a method say that decides where they go; NULL: they have no such field. */
struct forward_method {
    const ProtobufCFieldDescriptor *level, *policy;
    bool is_carried; /* they are of a request inside */
};

/* --- methods ---- */

bool
forward_policy_find(const char *name, enum forward_policy *policy)
{
    static const char *const names[] = {
        [FORWARD_NOOP] = "noop",
        [FORWARD_SELECTED_APIS] = "selected-apis-forwarding",
        [FORWARD_SELECTED_APIS_V2] = "selected-apis-forwarding-v2",
        [FORWARD_ALL_APIS] = "all-domain-apis-forwarding",
        [FORWARD_ALL_APIS_V2] = "all-domain-apis-forwarding-v2",
    };
    for (size_t i = 0; i < array_length(names); i++) {
        if (strcmp(names[i], name) == 0) {
            *policy = (enum forward_policy)i;
            return true;
        }
    }
    return false;
}

static const ProtobufCFieldDescriptor *
field_of(const ProtobufCMessageDescriptor *type, const char *name, ProtobufCType kind)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, name);
    return field == NULL || field->type != kind ? NULL : field;
}

static const void *
value_at(const void *message, const ProtobufCFieldDescriptor *field)
{
    return (const char *)message + field->offset;
}

static struct forward_method
describe_method(const struct wire_method *method, const struct rpc_method *row)
{
    struct subject_fields fields = subject_fields_of(method->request);
    check_that(row->reach == REACH_NEVER || fields.domain != NULL || fields.token != NULL,
               "%s goes on to another cluster, and nothing in it names a domain", row->path);
    return (struct forward_method){
        .level = field_of(fields.type, "query_consistency_level", PROTOBUF_C_TYPE_ENUM),
        .policy = field_of(fields.type, "active_cluster_selection_policy", PROTOBUF_C_TYPE_MESSAGE),
        .is_carried = fields.type != method->request};
}

void
forward_init(struct api *api)
{
    api->forward = memory_zalloc(wire_method_count(), sizeof *api->forward);
    for (const struct rpc_method *row = api_methods(); row->path != NULL; row++) {
        struct wire_method method;
        bool is_known = wire_method_find(slice_text(row->path), &method);
        check_that(is_known, "%s is in no proto", row->path);
        api->forward[method.index] = describe_method(&method, row);
    }
}

void
forward_free(struct api *api)
{
    memory_free(api->forward);
}

/* --- what a call is about ---- */

static const struct forward_method *
method_of(struct rpc_call *call)
{
    return &api_of(call)->forward[rpc_index(call)];
}

/* False: it could not be sent on; its handler says what is wrong. */
static bool
find_subject(struct rpc_call *call, struct call_subject *subject)
{
    check(rpc_method(call)->reach != REACH_NEVER); /* so something in it names a domain */
    return subject_find(call, subject) && subject->domain->record->domain->is_global_domain;
}

/* Does the policy let calls like this one go on? `active`: the cluster that would get it; NULL: not
 * known. */
static bool
is_in_reach(struct rpc_call *call, const struct call_subject *subject, const char *active)
{
    const struct forward_options *options = &api_of(call)->options.forward;
    const struct forward_method *method = method_of(call);
    enum forward_reach reach = rpc_method(call)->reach;
    bool is_v2 =
        options->policy == FORWARD_SELECTED_APIS_V2 || options->policy == FORWARD_ALL_APIS_V2;
    bool is_all = options->policy == FORWARD_ALL_APIS || options->policy == FORWARD_ALL_APIS_V2;
    bool has_target = options->target != NULL && options->target[0] != '\0';
    if (reach == REACH_SELECTED || (reach == REACH_SELECTED_V2 && is_v2))
        return true;
    if (is_all && (!has_target || (active != NULL && strcmp(options->target, active) == 0)))
        return true;
    bool is_strong = method->level != NULL &&
                     *(const int *)value_at(subject->said.request, method->level) == (int)STRONG;
    return is_strong || api_caller_forwards(call);
}

static bool
is_enabled(const struct api *api, const struct domain *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain->name;
    return dynamic_flag(api->options.dynamic, DYNAMIC_AUTO_FORWARDING, &filter);
}

/* --- where it is active ---- */

static struct run_key
subject_run(const struct rpc_call *call, const struct call_subject *subject)
{
    struct run_key key = {.domain_id = subject->domain->id, .workflow_id = "", .run_id = ""};
    if (subject->token != NULL || rpc_method(call)->owner == OWNER_WORKFLOW) {
        key.workflow_id = subject->workflow_id;
        key.run_id = subject->run_id;
    }
    return key;
}

/* What the start of the call belongs to. */
static struct run_home
wanted_home(const struct forward_method *method, const struct call_subject *subject)
{
    const API(ActiveClusterSelectionPolicy) *policy =
        *(void *const *)value_at(subject->said.request, method->policy);
    struct cluster_attribute attribute = cluster_attribute_of(policy);
    return (struct run_home){attribute.scope, attribute.name, -1, false};
}

static bool
is_plain_start(const struct forward_method *method)
{
    return method->policy != NULL && !method->is_carried;
}

/* What the workflow of the call belongs to: what a start asks for, or what the run was started
 * with. A signal with start asks the open run first (G-050). False: it cannot be known. Yields. */
static bool
find_home(struct rpc_call *call, const struct call_subject *subject, struct run_home *home)
{
    const struct forward_method *method = method_of(call);
    bool may_start = method->policy != NULL;
    struct run_home wanted = {.last_version = -1};
    if (may_start)
        wanted = wanted_home(method, subject);
    *home = wanted;
    if (is_plain_start(method))
        return true;
    struct run_key key = subject_run(call, subject);
    if (key.workflow_id[0] == '\0')
        return false;
    key.domain_id = arena_text(call->arena, key.domain_id);
    struct error *err = engine_home(api_of(call)->options.engine, &key, call->arena, home);
    bool is_missing = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS;
    if (may_start && (is_missing || (err == NULL && !home->is_open))) {
        *home = wanted;
        return true;
    }
    return err == NULL;
}

static const char *
lookup_name(const struct forward_method *method)
{
    if (is_plain_start(method))
        return "GetActiveClusterInfoByClusterAttribute";
    return method->policy != NULL ? "GetActiveClusterSelectionPolicyForCurrentWorkflow"
                                  : "GetActiveClusterInfoByWorkflow";
}

/* Fills what the call is about. Yields if the workflows of its domain are active in several
 * clusters, and the subject's domain is gone then. */
static void
find_active(struct rpc_call *call, const struct call_subject *subject, struct hold_subject *found)
{
    const struct api *api = api_of(call);
    *found = (struct hold_subject){.domain_id = arena_text(call->arena, subject->domain->id),
                                   .domain_name = arena_text(call->arena, subject->domain->name),
                                   .workflow_id = subject_run(call, subject).workflow_id,
                                   .status = ACTIVE_UNKNOWN_ATTRIBUTE,
                                   .cluster_name = ""};
    struct home_lookup lookup =
        home_lookup_begin(call, subject->domain, lookup_name(method_of(call)));
    struct run_home home = {.last_version = -1};
    found->is_unknown = lookup.is_active_active && !find_home(call, subject, &home);
    found->attribute = (struct cluster_attribute){home.scope, home.name};
    found->last_version = home.last_version;
    const struct domain *domain = domains_find_id(api->options.domains, found->domain_id);
    struct active_cluster active = {.status = ACTIVE_UNKNOWN_ATTRIBUTE, .cluster_name = ""};
    if (!found->is_unknown && domain != NULL)
        active = domains_active_run(api->options.domains, domain, &found->attribute,
                                    found->last_version);
    home_lookup_end(call, &lookup, active.status != ACTIVE_UNKNOWN_ATTRIBUTE);
    found->status = active.status;
    found->cluster_name = arena_text(call->arena, active.cluster_name);
    if (found->is_unknown && domain != NULL &&
        (domain->is_recovering || domain_drains_to_here(domain, api->options.group)))
        found->status = ACTIVE_PENDING; /* what is not here may come yet */
    found->is_outside =
        found->is_unknown && domain != NULL &&
        !domain_has_cluster(domain->record->domain, api->options.group->current->name);
}

bool
forward_find_subject(struct rpc_call *call, struct hold_subject *found)
{
    struct call_subject subject;
    if (!find_subject(call, &subject))
        return false;
    find_active(call, &subject, found);
    return true;
}

bool
forward_is_allowed(const struct rpc_call *call, const struct domain *domain)
{
    const struct api *api = api_of(call);
    return !api_is_forwarded(call) && api->options.forward.policy != FORWARD_NOOP &&
           is_enabled(api, domain);
}

const char *
forward_find_redirect(struct rpc_call *call, const struct error *err, const char *asked)
{
    API(DomainNotActiveError) *detail = NULL;
    if (err == NULL || err->kind != ERR_DOMAIN_NOT_ACTIVE ||
        errors_read(call->arena, err, &detail) != NULL)
        return NULL;
    bool is_redirect =
        detail->active_cluster[0] != '\0' && strcmp(detail->active_cluster, asked) != 0;
    return is_redirect ? detail->active_cluster : NULL;
}

/* --- for a domain that this cluster is not a member of ---- */

/* Clusters that have the runs of the domain and can be called, the default one first. */
static size_t
list_members(const struct api *api, const char *domain_id, struct arena *arena,
             const char ***members)
{
    const struct domain *domain = domains_find_id(api->options.domains, domain_id);
    if (domain == NULL)
        return 0;
    const API(Domain) *listed = domain->record->domain;
    const char **names = arena_zalloc(arena, listed->n_clusters, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < listed->n_clusters; i++) {
        const struct cluster *cluster =
            forward_find_callable(api, listed->clusters[i]->cluster_name);
        if (cluster == NULL)
            continue;
        names[count++] = cluster->name; /* of the group: it stays */
        if (strcmp(cluster->name, listed->active_cluster_name) == 0) {
            names[count - 1] = names[0];
            names[0] = cluster->name;
        }
    }
    *members = names;
    return count;
}

/* Runs of the domain are not replicated to this cluster, so only the members of the domain know
 * where this one is active: they are asked one after the other, until one knows the workflow.
 * Yields. */
static struct error *
serve_outside(struct rpc_call *call, const struct call_handling *call_handling,
              const struct hold_subject *found)
{
    const char **members = NULL;
    size_t count = list_members(api_of(call), found->domain_id, call->arena, &members);
    struct error *err = NULL;
    for (size_t i = 0; i < count; i++) {
        err = forward_send(call, call_handling->message, found->domain_name, members[i]);
        const char *other = forward_find_redirect(call, err, members[i]);
        if (other != NULL)
            err = forward_send(call, call_handling->message, found->domain_name, other);
        if (err == NULL || err->kind != ERR_ENTITY_NOT_EXISTS)
            break;
    }
    probe("call_of_outsider");
    return count == 0 ? call_handling->handle(call) : err;
}

/* --- all of it ---- */

/* May the call go on, as far as its policy is concerned? A call that would be held is sent on
 * whatever the policy says: `is_forced`. */
static bool
may_forward(const struct rpc_call *call, const struct call_subject *subject, bool *is_forced)
{
    const struct api *api = api_of(call);
    *is_forced = rpc_method(call)->holding == HELD && hold_is_enabled(api, subject->domain) &&
                 hold_is_draining(api, subject->domain);
    if (api_is_forwarded(call))
        return false;
    return *is_forced ||
           (api->options.forward.policy != FORWARD_NOOP && is_enabled(api, subject->domain));
}

static struct error *
call_remote(struct rpc_call *call, const struct call_handling *call_handling, const char *domain,
            const char *cluster)
{
    bool is_here = strcmp(cluster, api_of(call)->options.group->current->name) == 0;
    return is_here ? call_handling->handle(call)
                   : forward_send(call, call_handling->message, domain, cluster);
}

static struct error *
serve(struct rpc_call *call, const struct call_subject *subject, const struct hold_subject *known,
      const struct call_handling *call_handling, const char **redirect)
{
    const char *here = api_of(call)->options.group->current->name;
    struct hold_subject found;
    bool is_forced;
    *redirect = NULL;
    if (!may_forward(call, subject, &is_forced))
        return call_handling->handle(call);
    if (known == NULL)
        find_active(call, subject, &found);
    else
        found = *known;
    const char *asked = found.status == ACTIVE_ELSEWHERE ? found.cluster_name : here;
    if (!is_forced && !is_in_reach(call, subject, asked))
        return call_handling->handle(call);
    if (found.is_outside)
        return serve_outside(call, call_handling, &found);
    struct error *err = call_remote(call, call_handling, found.domain_name, asked);
    *redirect = forward_find_redirect(call, err, asked);
    return err;
}

struct error *
forward_serve(struct rpc_call *call, const struct hold_subject *known,
              const struct call_handling *call_handling, const char **redirect)
{
    struct call_subject subject;
    *redirect = NULL;
    return find_subject(call, &subject) ? serve(call, &subject, known, call_handling, redirect)
                                        : call_handling->handle(call);
}

struct error *
forward_follow(struct rpc_call *call, const struct call_handling *call_handling,
               const char *redirect)
{
    struct call_subject subject;
    probe("call_forwarded_again");
    if (!find_subject(call, &subject))
        return call_handling->handle(call);
    return call_remote(call, call_handling, arena_text(call->arena, subject.domain->name),
                       redirect);
}

static struct hold_hints
hints_of(const struct rpc_call *call, const struct call_subject *subject)
{
    struct run_key key = subject_run(call, subject);
    bool is_forced;
    return (struct hold_hints){.may_drain = hold_is_draining(api_of(call), subject->domain),
                               .may_forward = may_forward(call, subject, &is_forced),
                               .hash = map_hash(slice_text(key.workflow_id)) ^
                                       map_hash(slice_text(key.domain_id))};
}

struct error *
api_serve(struct rpc_call *call, struct error *(*handle)(struct rpc_call *call))
{
    const struct api *api = api_of(call);
    struct call_handling call_handling = {handle, call->arrival.bytes};
    bool has_entity = false;
    struct error *refusal = entity_policy(call, &has_entity);
    if (refusal != NULL)
        return refusal;
    if (home_choose(call) || has_entity)
        call_handling.message = message_encode(call->arena, call->request);
    struct call_subject subject;
    if (rpc_method(call)->reach == REACH_NEVER || !find_subject(call, &subject))
        return handle(call);
    if (rpc_method(call)->holding == HELD && hold_is_enabled(api, subject.domain)) {
        struct hold_hints hints = hints_of(call, &subject);
        return hold_serve(call, &hints, &call_handling);
    }
    const char *redirect;
    struct error *err = serve(call, &subject, NULL, &call_handling, &redirect);
    return redirect == NULL ? err : forward_follow(call, &call_handling, redirect);
}
