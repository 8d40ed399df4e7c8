/* schedule.h - what the handlers of ScheduleAPI share. Only files of api/ include it. */
#ifndef CADENZA_API_SCHEDULE_SCHEDULE_H
#define CADENZA_API_SCHEDULE_SCHEDULE_H

#include "api/call/validate.h"
#include "api/inside.h"
#include "schedule/schedule.h"

/* Which schedule a call is about. */
struct schedule_call {
    struct call_domain domain;
    const char *schedule_id;
    const char *workflow_id; /* of its runs */
};

/* Are the names set, and does the domain exist? Fills `found`, in the call's arena. Errors: as
 * validate_domain. */
must_use struct error *schedule_admit(struct rpc_call *call, const char *domain,
                                      const char *schedule_id, struct schedule_call *found);
/* ERR_ENTITY_NOT_EXISTS, in Cadence's words. */
struct error *schedule_not_found(struct rpc_call *call, const struct schedule_call *wanted);

/* --- what is refused (schedule_check.c): ERR_BAD_REQUEST, in Cadence's words ---- */

/* Must be set, with a valid cron expression, and times in order. */
must_use struct error *schedule_check_spec(struct rpc_call *call, const API(ScheduleSpec) *spec);
/* Must start a workflow; its retry policy must be valid. */
must_use struct error *schedule_check_action(struct rpc_call *call,
                                             const API(ScheduleAction) *action);
/* NULL is fine: the defaults. Some combinations make no sense. */
must_use struct error *schedule_check_policies(struct rpc_call *call,
                                               const API(SchedulePolicies) *policies);
/* Users' own attributes may not have names that are reserved for schedules. */
must_use struct error *schedule_check_attributes(struct rpc_call *call,
                                                 const API(SearchAttributes) *attributes);

/* --- reading (schedule_read.c) ---- */

/* The schedule as it is now: all that was acknowledged is in it. Errors: ERR_ENTITY_NOT_EXISTS
 * (there is none, or it was deleted), ERR_INTERNAL (its run was ended by somebody else). Yields. */
must_use struct error *schedule_load(struct rpc_call *call, const struct schedule_call *wanted,
                                     struct schedule *schedule);
/* Is there none, or one that was deleted and has not ended yet? Yields. */
bool schedule_is_leaving(struct rpc_call *call, const struct schedule_call *wanted);

#endif
