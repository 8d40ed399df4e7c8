/* schedule_check.c - what is wrong with a schedule. See schedule.h. */
#include "api/schedule/schedule.h"
#include "engine/command/schedule.h"
#include "fiber/clock.h"
#include "wire/presence.h"

static struct error *
bad(struct rpc_call *call, const char *sentence)
{
    return error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence);
}

struct error *
schedule_check_spec(struct rpc_call *call, const API(ScheduleSpec) *spec)
{
    struct maybe_int64 start, end, jitter;
    if (spec == NULL)
        return bad(call, "Spec is not set on request.");
    if (spec->cron_expression[0] == '\0')
        return bad(call, "CronExpression is not set on request.");
    const char *fault = schedule_fault(spec->cron_expression, clock_wall(), call->arena);
    if (fault != NULL)
        return bad(call, fault);
    struct error *err =
        presence_read_timestamp(call->arena, "spec.start_time", spec->start_time, &start);
    if (err == NULL)
        err = presence_read_timestamp(call->arena, "spec.end_time", spec->end_time, &end);
    if (err == NULL)
        err = presence_read_duration_nanoseconds(call->arena, "spec.jitter", spec->jitter, &jitter);
    if (err == NULL && jitter.value < 0)
        err = bad(call, "Spec.Jitter must not be negative.");
    if (err == NULL && start.is_set && end.is_set && end.value <= start.value)
        err = bad(call, "Spec.EndTime must be after Spec.StartTime.");
    return err;
}

struct error *
schedule_check_action(struct rpc_call *call, const API(ScheduleAction) *action)
{
    if (action == NULL || action->start_workflow == NULL)
        return bad(call, "Action.StartWorkflow is not set on request.");
    return validate_retry_policy(action->start_workflow->retry_policy, call->arena);
}

struct error *
schedule_check_policies(struct rpc_call *call, const API(SchedulePolicies) *policies)
{
    int overlap, catch_up;
    struct maybe_int64 window;
    if (policies == NULL)
        return NULL;
    struct error *err = presence_read_enum(call->arena, "policies.overlap_policy",
                                           API_TYPE(schedule_overlap_policy),
                                           (int)policies->overlap_policy, 0, &overlap);
    if (err == NULL)
        err = presence_read_enum(call->arena, "policies.catch_up_policy",
                                 API_TYPE(schedule_catch_up_policy), (int)policies->catch_up_policy,
                                 0, &catch_up);
    if (err == NULL)
        err = presence_read_duration_nanoseconds(call->arena, "policies.catch_up_window",
                                                 policies->catch_up_window, &window);
    if (err != NULL)
        return err;
    if (overlap != API_VALUE(SCHEDULE_OVERLAP_POLICY__SCHEDULE_OVERLAP_POLICY_SKIP_NEW) ||
        catch_up != API_VALUE(SCHEDULE_CATCH_UP_POLICY__SCHEDULE_CATCH_UP_POLICY_ALL))
        return NULL;
    return bad(call, "SKIP_NEW overlap policy with CATCH_UP_ALL catch-up policy is invalid: "
                     "caught-up fires would be immediately skipped due to overlap with the "
                     "previous run.");
}

struct error *
schedule_check_attributes(struct rpc_call *call, const API(SearchAttributes) *attributes)
{
    for (size_t i = 0; attributes != NULL && i < attributes->n_indexed_fields; i++) {
        const char *key = attributes->indexed_fields[i]->key;
        if (strncmp(key, SCHEDULE_ATTRIBUTE, strlen(SCHEDULE_ATTRIBUTE)) == 0)
            return error_new(call->arena, ERR_BAD_REQUEST,
                             "search attribute key \"%s\" is reserved for internal use", key);
    }
    return NULL;
}
