/* entity_script.h - what scenarios of entities share: users and cities that live in a region, and
 * move; starts that belong to them. Only tests include it.
 *
 * The domain has region0 in cluster0, region1 in cluster1; cluster0 is the primary. Types are
 * "user", whose unknown keys are created, and "city", whose unknown keys are refused. */
#ifndef CADENZA_SIM_ENTITY_ENTITY_SCRIPT_H
#define CADENZA_SIM_ENTITY_ENTITY_SCRIPT_H

#include "sim/active/active_script.h"
#include "sim/entity/entity_calls.h"

#define SOURCE "custom.user-location-provider" /* of users */

/* Says where one is; must go well. */
void entity_place(struct script *script, unsigned cluster, const char *type, const char *key,
                  const char *region);
void entity_delete(struct script *script, unsigned cluster, const char *type, const char *key);
/* NULL: there is none, or the cluster cannot say. */
/* Waits until a cluster has heard that the entity was deleted, or that it is back. */
void entity_await(struct script *script, unsigned cluster, const char *type, const char *key,
                  bool is_deleted);
STORE_API(GetEntityResponse) *entity_get(struct script *script, unsigned cluster, const char *type,
                                         const char *key);

/* Both fields; NULL: that one is not there. */
API(Header) *entity_header(struct script *script, const char *source, const char *key);
API(StartWorkflowExecutionRequest) *entity_request(struct script *script, const char *id,
                                                   const char *source, const char *key);
/* Of a user; must go well. */
void entity_start(struct script *script, unsigned cluster, const char *id, const char *key);
/* What the newest run was started with; NULL: nothing. */
const API(ClusterAttribute) *entity_of(struct script *script, unsigned cluster, const char *id);

#endif
