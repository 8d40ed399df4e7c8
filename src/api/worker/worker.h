/* worker.h - what a worker's answer is about: by its token, or by the names of an activity. Shared
 * by worker.c (decisions) and activity.c. */
#ifndef CADENZA_API_WORKER_WORKER_H
#define CADENZA_API_WORKER_WORKER_H

#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"

/* What an answer is about, and the limits that count for it. */
struct target {
    struct call_domain domain;
    struct limits limits;
    struct run_key key;
    struct task_name task;
    const char *identity;
};

/* What the token names. Errors: ERR_BAD_REQUEST, ERR_ENTITY_NOT_EXISTS (the domain). */
must_use struct error *target_by_token(struct rpc_call *call, ProtobufCBinaryData bytes,
                                       const char *identity, struct target *target);

/* How an activity is named without a token. */
struct activity_path {
    const char *domain;
    const API(WorkflowExecution) *execution;
    const char *activity_id;
    const char *identity;
};
/* What the names say. Errors as above. */
must_use struct error *target_by_id(struct rpc_call *call, const struct activity_path *path,
                                    struct target *target);

/* The path of a request; all ByID requests have the same members. */
#define PATH_OF(request)                                                                           \
    (&(struct activity_path){(request)->domain, (request)->workflow_execution,                     \
                             (request)->activity_id, (request)->identity})

#endif
