/* subject.c - see subject.h. */
#include "api/call/subject.h"

#include "api/call/tokens.h"
#include "engine/engine.h"
#include "schedule/schedule.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/presence.h"

struct error *
subject_token(struct rpc_call *call, ProtobufCBinaryData bytes, const struct task_token **token)
{
    if (call->noted == NULL) {
        struct task_token *fresh = arena_make(call->arena, struct task_token);
        struct error *err = task_token_read(presence_read_bytes(bytes), call->arena, fresh);
        if (err != NULL)
            return err;
        call->noted = fresh;
    }
    *token = call->noted;
    return NULL;
}

static const struct domain *
find_domain(const struct domains *domains, const struct call_subject *subject)
{
    if (subject->token != NULL)
        return domains_find_id(domains, subject->token->domain_id);
    if (subject->said.domain[0] != '\0')
        return domains_find_name(domains, subject->said.domain);
    return domains_find_id(domains, subject->said.domain_id);
}

bool
subject_find(struct rpc_call *call, struct call_subject *subject)
{
    const struct rpc_subject *said = &subject->said;
    rpc_subject(call, &subject->said);
    subject->token = NULL;
    subject->workflow_id = said->workflow_id;
    subject->run_id = said->run_id;
    if (said->has_token) {
        ProtobufCBinaryData bytes = presence_make_bytes(said->token);
        if (subject_token(call, bytes, &subject->token) != NULL)
            return false;
        subject->workflow_id = subject->token->workflow_id;
        subject->run_id = subject->token->run_id;
    }
    subject->domain = find_domain(api_of(call)->options.domains, subject);
    return subject->domain != NULL;
}

API(StartWorkflowExecutionRequest) *
subject_start(const struct rpc_call *call)
{
    const struct subject_fields *fields = rpc_subject_fields(call);
    if (fields->type != API_TYPE(start_workflow_execution_request))
        return NULL;
    return (API(StartWorkflowExecutionRequest) *)subject_request(fields, call->request);
}

/* --- the owner ---- */

static bool
owner_of_workflow(const struct rpc_call *call, const struct call_subject *subject,
                  struct owner *owner)
{
    const char *workflow_id = subject->workflow_id;
    if (subject->said.schedule_id[0] != '\0') /* a schedule is a workflow */
        workflow_id = arena_format(call->arena, SCHEDULE_PREFIX "%s", subject->said.schedule_id);
    *owner = owner_of_shard(engine_shard_of(api_of(call)->options.engine, workflow_id));
    return workflow_id[0] != '\0';
}

bool
subject_owner(const struct rpc_call *call, const struct call_subject *subject, struct owner *owner)
{
    const struct rpc_subject *said = &subject->said;
    switch (rpc_method(call)->owner) {
    case OWNER_UNDECIDED:
    case OWNER_NONE:
        return false;
    case OWNER_DOMAIN:
        *owner = owner_of_domains();
        return true;
    case OWNER_WORKFLOW:
        return owner_of_workflow(call, subject, owner);
    case OWNER_TASK_LIST: /* its first partition: which one a poll goes to is found there */
        if (said->task_list == NULL || subject->domain == NULL)
            return false;
        *owner = owner_of_list(route_list_hash(slice_text(subject->domain->id),
                                               slice_text(said->task_list->name), 0, 0));
        return true;
    case OWNER_SHARD:
        *owner = owner_of_shard((uint32_t)said->shard);
        return said->shard >= 0 &&
               (uint32_t)said->shard < engine_shard_count(api_of(call)->options.engine);
    }
    return false;
}
