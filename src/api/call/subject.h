/* subject.h - what a call is about, with what its token says, and who owns that in this cluster.
 *
 * Which fields of a request say it is rpc/subject.h's; here the token is read, the domain is looked
 * up, and the column `owner` of the method's row becomes an owner. Which cluster answers is found
 * from the same subject by forward/. See docs/design/030. */
#ifndef CADENZA_API_CALL_SUBJECT_H
#define CADENZA_API_CALL_SUBJECT_H

#include "api/inside.h"
#include "route/owner.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

struct task_token;

/* In the memory of the call; what is not known is "". */
struct call_subject {
    struct rpc_subject said;
    const struct task_token *token;   /* NULL: the method has none */
    const struct domain *domain;      /* until the next yield */
    const char *workflow_id, *run_id; /* of the token, or as the request says it */
};

/* False: the domain is not there, or the token cannot be read; the handler says what is wrong. No
 * yield. */
must_use bool subject_find(struct rpc_call *call, struct call_subject *subject);
/* The token that the call's request carries, read once for each call. Error: ERR_BAD_REQUEST. */
must_use struct error *subject_token(struct rpc_call *call, ProtobufCBinaryData bytes,
                                     const struct task_token **token);
/* The start that a request is, or carries; NULL: none. It may be completed before it is handled. */
API(StartWorkflowExecutionRequest) *subject_start(const struct rpc_call *call);
/* Who within this cluster owns what the call is about, by its method's row. False: nobody in
 * particular, or the request does not say it. No yield. */
must_use bool subject_owner(const struct rpc_call *call, const struct call_subject *subject,
                            struct owner *owner);

#endif
