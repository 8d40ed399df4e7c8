/* decisions.c - a list of decisions, worked through by a table from its kinds to their handlers.
 *
 * The first that is refused ends the list, and so does the first that closes the run: of
 * two only the first counts. */
#include <stdarg.h>

#include "base/check.h"
#include "engine/command/inside.h"

#define DECISION_KIND(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)

typedef void decision_handler(struct decision_list *decision_list, const API(Decision) *decision);

/* Each handler is in the file of its name: decide_start_timer in start_timer.c. */
static const struct {
    API(Decision__AttributesCase) kind;
    decision_handler *handle;
} handlers[] = {
    {DECISION_KIND(SCHEDULE_ACTIVITY_TASK), decide_schedule_activity},
    {DECISION_KIND(REQUEST_CANCEL_ACTIVITY_TASK), decide_request_cancel_activity},
    {DECISION_KIND(START_TIMER), decide_start_timer},
    {DECISION_KIND(CANCEL_TIMER), decide_cancel_timer},
    {DECISION_KIND(COMPLETE_WORKFLOW_EXECUTION), decide_complete},
    {DECISION_KIND(FAIL_WORKFLOW_EXECUTION), decide_fail},
    {DECISION_KIND(CANCEL_WORKFLOW_EXECUTION), decide_cancel},
    {DECISION_KIND(CONTINUE_AS_NEW_WORKFLOW_EXECUTION), decide_continue_as_new},
    {DECISION_KIND(RECORD_MARKER), decide_record_marker},
    {DECISION_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES), decide_upsert_search_attributes},
    {DECISION_KIND(START_CHILD_WORKFLOW_EXECUTION), decide_start_child},
    {DECISION_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION), decide_signal_external},
    {DECISION_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION), decide_cancel_external},
};

static decision_handler *
find_handler(API(Decision__AttributesCase) kind)
{
    for (size_t i = 0; i < array_length(handlers); i++)
        if (handlers[i].kind == kind)
            return handlers[i].handle;
    return NULL;
}

void
decision_list_refuse(struct decision_list *decision_list, API(DecisionTaskFailedCause) cause,
                     const char *format, ...)
{
    check(!decision_list->is_bad && !decision_list->is_closed);
    check(decision_list->run_failure_reason == NULL);
    va_list arguments;
    va_start(arguments, format);
    decision_list->is_bad = true;
    decision_list->bad = (struct decision_failure){
        .cause = cause,
        .details = arena_vformat(decision_list->step->arena, format, arguments),
    };
    va_end(arguments);
}

bool
decision_list_may_close(struct decision_list *decision_list, const char *what)
{
    if (!decision_list->has_unhandled)
        return true;
    decision_list_refuse(decision_list, FAILED_CAUSE(UNHANDLED_DECISION),
                         "cannot %s, new pending decisions were scheduled while this decision was "
                         "processing",
                         what);
    return false;
}

bool
decision_list_may_hold(struct decision_list *decision_list, size_t size, const char *what)
{
    if ((int64_t)size <= run_context_integer(decision_list->step->context, DYNAMIC_BLOB_SIZE_ERROR))
        return true;
    check(!decision_list->is_bad && !decision_list->is_closed);
    decision_list->run_failure_reason = "DECISION_BLOB_SIZE_EXCEEDS_LIMIT";
    decision_list->run_failure_details =
        arena_format(decision_list->step->arena, "%s exceeds size limit.", what);
    return false;
}

struct error *
decisions_take(struct decision_list *decision_list, API(Decision) *const *decisions, size_t count)
{
    /* A list that holds something unknown changes nothing, wherever in the list it is. */
    for (size_t i = 0; i < count; i++)
        if (find_handler(decisions[i]->attributes_case) == NULL)
            return error_new(decision_list->step->arena, ERR_BAD_REQUEST,
                             "Unknown decision type: %d", (int)decisions[i]->attributes_case);
    for (size_t i = 0; i < count; i++) {
        const char *fault =
            decision_list->child_faults == NULL ? NULL : decision_list->child_faults[i];
        if (fault != NULL)
            decision_list_refuse(decision_list, FAILED_CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES),
                                 "%s", fault);
        else
            find_handler(decisions[i]->attributes_case)(decision_list, decisions[i]);
        /* A timer that is cancelled takes its buffered event along. */
        decision_list->has_unhandled = run_has_buffered(mutation_run(decision_list->mutation));
        check(decision_list->is_bad + decision_list->is_closed +
                  (decision_list->run_failure_reason != NULL) <=
              1);
        if (decision_list->is_bad || decision_list->is_closed ||
            decision_list->run_failure_reason != NULL)
            break;
    }
    check(decision_list->is_bad ||
          decision_list->is_closed == !run_is_open(mutation_run(decision_list->mutation)));
    return NULL;
}
