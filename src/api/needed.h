/* needed.h - may what an update takes from a domain be taken, or do open workflows need it? */
#ifndef CADENZA_API_NEEDED_H
#define CADENZA_API_NEEDED_H

#include "rpc/service.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* Looks at the lists of this cluster, up to what is committed. Yields. Errors: ERR_BAD_REQUEST with
 * the number of workflows, unless the request is forced; those of the lists. */
must_use struct error *needed_check_update(struct rpc_call *call,
                                           const API(UpdateDomainRequest) *request);

#endif
