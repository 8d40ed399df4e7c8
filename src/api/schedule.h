/* schedule.h - what the handlers of ScheduleAPI share. Only files of api/ include it. */
#ifndef CADENZA_API_SCHEDULE_H
#define CADENZA_API_SCHEDULE_H

#include "api/inside.h"
#include "api/validate.h"
#include "schedule/schedule.h"

/* Which schedule a call is about. */
struct schedule_call {
    struct call_domain domain;
    const char *schedule_id;
    const char *workflow_id; /* of its runs */
};

/* The names are set, and the domain is there. */
must_use struct error *schedule_admit(struct rpc_call *call, const char *domain,
                                      const char *schedule_id, struct schedule_call *found);
struct error *schedule_not_found(struct rpc_call *call, const struct schedule_call *wanted);

/* --- what is refused (schedule_check.c): ERR_BAD_REQUEST, in Cadence's words ---- */

must_use struct error *schedule_check_spec(struct rpc_call *call, const API(ScheduleSpec) *spec);
must_use struct error *schedule_check_action(struct rpc_call *call,
                                             const API(ScheduleAction) *action);
must_use struct error *schedule_check_policies(struct rpc_call *call,
                                               const API(SchedulePolicies) *policies);
/* Users' own attributes: of no name that is ours. */
must_use struct error *schedule_check_attributes(struct rpc_call *call,
                                                 const API(SearchAttributes) *attributes);

/* --- reading (schedule_read.c) ---- */

/* The schedule as it is now: all that was acknowledged is in it. Errors: ERR_ENTITY_NOT_EXISTS
 * (there is none, or it was deleted), ERR_INTERNAL (its run was ended by somebody else). Yields. */
must_use struct error *schedule_load(struct rpc_call *call, const struct schedule_call *wanted,
                                     struct schedule *schedule);
/* Is there one that is on its way out? Yields. */
bool schedule_is_leaving(struct rpc_call *call, const struct schedule_call *wanted);

#endif
