/* validate.h - what is wrong with a request, in the words that Cadence's users know.
 *
 * Errors are ERR_BAD_REQUEST unless a comment says otherwise; NULL: it is fine. Nothing yields but
 * validate_domain and validate_run. */
#ifndef CADENZA_API_CALL_VALIDATE_H
#define CADENZA_API_CALL_VALIDATE_H

#include "base/log.h"
#include "config/dynamic.h"
#include "domain/domain.h"
#include "rpc/service.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

struct run_key;

/* Whose limits count, and where errors live. */
struct limits {
    const struct dynamic *dynamic;
    const char *domain; /* its name */
    struct arena *arena;
    const struct log *log;   /* where what comes near a limit is logged; NULL: nowhere */
    const char *workflow_id; /* of the run that it is about, for the log; NULL: of none */
};

/* A domain that a call is about. */
struct call_domain {
    const char *id, *name;       /* in the call's arena */
    const struct domain *domain; /* until the next yield */
};

/* The domain of a request by its name: set, not too long, existing, and within its quota. A poll
 * may wait for its turn (quota_check): yields. Errors also: ERR_ENTITY_NOT_EXISTS,
 * ERR_SERVICE_BUSY. */
must_use struct error *validate_domain(struct rpc_call *call, const char *name,
                                       struct call_domain *found);
/* The domain by the id in a token; no quota is checked. Error also: ERR_ENTITY_NOT_EXISTS. */
must_use struct error *validate_domain_id(struct rpc_call *call, const char *id,
                                          struct call_domain *found);
/* Is its name set and not too long? */
must_use struct error *validate_domain_name(const struct limits *limits);
/* A deprecated domain takes no new runs and no signals. */
must_use struct error *validate_not_deprecated(const struct call_domain *domain,
                                               struct arena *arena);
/* Nothing new is taken from an isolation group that was drained, where such groups are enabled. */
must_use struct error *validate_isolation(struct rpc_call *call, const struct call_domain *domain);
/* Is the checksum one that operators marked as bad? */
must_use struct error *validate_binary(const struct call_domain *domain, const char *checksum,
                                       struct arena *arena);

/* `what` begins the sentence: "WorkflowID length exceeds limit." */
must_use struct error *validate_length(const struct limits *limits, enum dynamic_key key,
                                       const char *text, const char *what);
/* Is the workflow id set, and the run id a UUID or empty? */
must_use struct error *validate_execution(const API(WorkflowExecution) *execution,
                                          struct arena *arena);
/* What every call about a run is checked for: the name of its domain, then the execution, then
 * whether there is such a domain, whose quota counts the call. The key lives in the request and in
 * the call's arena. `domain` may be NULL. Yields. */
must_use struct error *validate_run(struct rpc_call *call, const char *domain_name,
                                    const API(WorkflowExecution) *execution, struct run_key *key,
                                    struct call_domain *domain);
/* Is it set, and its name not too long? */
must_use struct error *validate_task_list(const struct limits *limits, const API(TaskList) *list);
/* NULL is fine: no retries. */
must_use struct error *validate_retry_policy(const API(RetryPolicy) *policy, struct arena *arena);
/* The most bytes that a payload may have. */
size_t validate_blob_max(const struct limits *limits);
/* Is a payload of this size allowed? One that is large but allowed is logged. */
must_use struct error *validate_blob(const struct limits *limits, size_t size);
/* Its bytes; of NULL 0. */
size_t validate_payload_size(const API(Payload) *payload);

/* All of a start request, but whether its domain exists; `needs_uuid`: its request id must be one.
 */
must_use struct error *validate_start(const struct limits *limits,
                                      const API(StartWorkflowExecutionRequest) *request,
                                      bool needs_uuid);
/* Are its input and memo small enough together? */
must_use struct error *validate_start_blobs(const struct limits *limits,
                                            const API(StartWorkflowExecutionRequest) *request);
/* Is it set and not too long? */
must_use struct error *validate_signal_name(const struct limits *limits, const char *name);
/* Does the caller of a poll allow the time that it needs? */
must_use struct error *validate_poll_deadline(struct rpc_call *call);

#endif
