/* removal_check.h - may what an update removes from a domain be removed, or do open workflows need
 * it? */
#ifndef CADENZA_API_DOMAIN_REMOVAL_CHECK_H
#define CADENZA_API_DOMAIN_REMOVAL_CHECK_H

#include "rpc/service.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* Counts in the visibility of this cluster, which first catches up with what is committed. Yields.
 * Errors: ERR_BAD_REQUEST with the number of workflows, unless the request is forced; those of
 * visibility. */
must_use struct error *removal_check_update(struct rpc_call *call,
                                            const API(UpdateDomainRequest) *request);

#endif
