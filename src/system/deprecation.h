/* deprecation.h - the workflow that deprecates a domain, as Cadence's tools start it: nobody may
 * still poll there (unless it is forced), then nothing is archived any more, the domain is
 * deprecated, and its open runs are terminated. */
#ifndef CADENZA_SYSTEM_DEPRECATION_H
#define CADENZA_SYSTEM_DEPRECATION_H

#define DEPRECATION_LIST "domain-deprecation-tasklist"
#define DEPRECATION_TYPE "domain-deprecation-workflow"

/* Reasons of failures that are not tried again. */
#define DEPRECATION_UNKNOWN "domain does not exist"
#define DEPRECATION_DENIED  "AccessDeniedError"
#define DEPRECATION_POLLED  "domain has active pollers"

/* Its activities, in order. */
#define DEPRECATION_CHECK    "checkActivePollers"
#define DEPRECATION_ARCHIVAL "disableArchival"
#define DEPRECATION_MARK     "deprecateDomain"
#define DEPRECATION_COUNT    "checkOpenWorkflows"

/* The input of the workflow and of its activities. */
struct deprecation_request {
    const char *domain, *token;
    bool is_forced;
};
/* False: the input is not that. */
must_use bool deprecation_read(struct slice input, struct arena *arena,
                               struct deprecation_request *deprecation);

#endif
