/* reset_find.c - see reset.h. A reset names an event after a started decision; the new run has
 * everything before it. */
#include <string.h>

#include "base/check.h"
#include "base/compiler.h"
#include "cli/workflow/reset.h"
#include "wire/presence.h"

#define ARM(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)

static const char *const names[RESET_TYPE_COUNT] = {
    [RESET_FIRST_DECISION_COMPLETED] = "FirstDecisionCompleted",
    [RESET_LAST_DECISION_COMPLETED] = "LastDecisionCompleted",
    [RESET_LAST_CONTINUED_AS_NEW] = "LastContinuedAsNew",
    [RESET_BAD_BINARY] = "BadBinary",
    [RESET_DECISION_COMPLETED_TIME] = "DecisionCompletedTime",
    [RESET_FIRST_DECISION_SCHEDULED] = "FirstDecisionScheduled",
    [RESET_LAST_DECISION_SCHEDULED] = "LastDecisionScheduled",
};

bool
reset_type_read(const char *name, enum reset_type *type)
{
    for (size_t i = 0; i < RESET_TYPE_COUNT; i++) {
        if (strcasecmp(names[i], name) == 0) {
            *type = (enum reset_type)i;
            return true;
        }
    }
    return false;
}

const char *
reset_type_names(void)
{
    return "FirstDecisionCompleted, LastDecisionCompleted, LastContinuedAsNew, BadBinary, "
           "DecisionCompletedTime, FirstDecisionScheduled, LastDecisionScheduled";
}

static bool
is_in_time(const struct reset_criteria *criteria, const API(HistoryEvent) *event)
{
    int64_t time = presence_time(event->event_time);
    return (criteria->earliest == 0 || time >= criteria->earliest) &&
           (criteria->latest == 0 || time <= criteria->latest);
}

/* The nth completed decision from the end: 0 is the last. */
static int64_t
find_from_end(API(HistoryEvent) *const *events, size_t count, int64_t skipped)
{
    for (size_t i = count; i > 0; i--) {
        if (events[i - 1]->attributes_case == ARM(DECISION_TASK_COMPLETED) && skipped-- == 0)
            return events[i - 1]->event_id;
    }
    return 0;
}

/* By time: with `earliest` the first that fits, with `latest` alone the last. */
static int64_t
find_in_time(const struct reset_criteria *criteria, API(HistoryEvent) *const *events, size_t count)
{
    int64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i]->attributes_case != ARM(DECISION_TASK_COMPLETED) ||
            !is_in_time(criteria, events[i]))
            continue;
        found = events[i]->event_id;
        if (criteria->earliest != 0)
            break;
    }
    return found;
}

/* A scheduled decision is undone by naming the event after it. */
static int64_t
find_scheduled(API(HistoryEvent) *const *events, size_t count, bool is_first)
{
    int64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i]->attributes_case != ARM(DECISION_TASK_SCHEDULED))
            continue;
        found = events[i]->event_id + 1;
        if (is_first)
            break;
    }
    return found;
}

int64_t
reset_find(const struct reset_criteria *criteria, API(HistoryEvent) *const *events, size_t count)
{
    check(criteria->type < RESET_TYPE_COUNT);
    switch (criteria->type) {
    case RESET_FIRST_DECISION_COMPLETED:
        return find_in_time(&(struct reset_criteria){.earliest = INT64_MIN}, events, count);
    case RESET_LAST_DECISION_COMPLETED:
    case RESET_LAST_CONTINUED_AS_NEW:
        check(criteria->offset <= 0);
        return find_from_end(events, count, -criteria->offset);
    case RESET_DECISION_COMPLETED_TIME:
        return find_in_time(criteria, events, count);
    case RESET_FIRST_DECISION_SCHEDULED:
    case RESET_LAST_DECISION_SCHEDULED:
        return find_scheduled(events, count, criteria->type == RESET_FIRST_DECISION_SCHEDULED);
    default:
        return 0;
    }
}
