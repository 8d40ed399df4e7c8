/* entity.h - entities at the door of clients: what a start says about the one that it belongs to.
 */
#ifndef CADENZA_API_ENTITY_ENTITY_H
#define CADENZA_API_ENTITY_ENTITY_H

#include "rpc/service.h"
#include "uber/cadence/api/v1/domain.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

#define HEADER_LOOKUP_SOURCE "active-region.lookup-source"
#define HEADER_LOOKUP_KEY    "active-region.lookup-key"

struct api;

/* The two fields in the header of a start name the entity that the run belongs to, as if its policy
 * had named it; one field alone means nothing. A key that has no row gets one in this cluster's
 * region, or is refused, as its type is configured. A policy in the request takes precedence.
 * *is_changed: the request differs from the bytes that came. Calls that do not start runs, and
 * domains without regions, are left alone. Yields. Errors: ERR_BAD_REQUEST (a source or a key that
 * is not known), ERR_LIMIT_EXCEEDED (too many entities), ERR_UNAVAILABLE (the primary cluster had
 * to be asked). */
must_use struct error *entity_policy(struct rpc_call *call, bool *is_changed);

/* The same for the children that decisions of a run of the domain start, where they name an entity
 * themselves; other children belong to what their parent belongs to. (A run that continues as new
 * keeps what it belongs to, whatever its header says.) What would make a start a BadRequest, and
 * too many entities, is a fault of the decision: *faults, by decision; NULL: there are none.
 * Yields. Errors: ERR_UNAVAILABLE (the primary cluster had to be asked). */
must_use struct error *entity_children(struct rpc_call *call, const char *domain_name,
                                       const API(RespondDecisionTaskCompletedRequest) *request,
                                       const char *const **faults);

/* Would the update give a domain that follows entities of a type attributes with the type as their
 * scope? Then runs of entities would have two homes. Error: ERR_BAD_REQUEST. No yield. */
must_use struct error *entity_check_scopes(struct rpc_call *call, const char *domain_name,
                                           const API(ActiveClusters) *asked);

/* Makes the row in the primary cluster, unless there is one, and takes it over. Yields. */
must_use struct error *entity_create(struct api *api, const char *type, const char *key,
                                     const char *region, struct arena *arena);
/* Asks the primary for a row that is not known here; fine if there is none. Yields. */
must_use struct error *entity_learn(struct api *api, const char *type, const char *key,
                                    struct arena *arena);

#endif
