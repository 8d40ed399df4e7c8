/* family.h - what the tests of children, signals and cancel requests between workflows share.
 * Parents work on list "work", children on list "kids", so that a test knows whom it polls. */
#ifndef CADENZA_API_FAMILY_H
#define CADENZA_API_FAMILY_H

#include "api/fixture.h"
#include "engine/run/apply.h"
#include "wire/names.h"

#define FAMILY_EVENT(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define FAMILY_POLICY(name) API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

/* A decision of this kind, its attributes there and all unset. */
API(Decision) *family_decision(struct fixture *fixture, API(Decision__AttributesCase) kind);
#define FAMILY_DECISION(fixture, name)                                                             \
    family_decision((fixture), API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES))
/* Starts child `workflow_id` of type "kid" on list "kids", with this policy. */
API(Decision) *family_start_child(struct fixture *fixture, const char *workflow_id,
                                  API(ParentClosePolicy) policy);
API(Decision) *family_signal(struct fixture *fixture, const char *workflow_id, const char *run_id);
API(Decision) *family_cancel(struct fixture *fixture, const char *workflow_id);
API(Decision) *family_end_canceled(struct fixture *fixture);
API(Decision) *family_fail(struct fixture *fixture);

/* Takes the next decision task of a list, which must be of this workflow, and decides so. */
void family_decide_list(struct fixture *fixture, const char *list, const char *workflow_id,
                        API(Decision) **decisions, size_t count);
#define family_decide(fixture, list, workflow_id, ...)                                             \
    family_decide_list((fixture), (list), (workflow_id),                                           \
                       (API(Decision) *[]){NULL, ##__VA_ARGS__} + 1,                               \
                       sizeof((API(Decision) *[]){NULL, ##__VA_ARGS__}) / sizeof(void *) - 1)
/* Starts workflow `workflow_id` and lets it decide so. Its run id. */
#define family_begin(fixture, workflow_id, ...)                                                    \
    ({                                                                                             \
        const char *begun_run_id = run_start((fixture), (workflow_id));                            \
        family_decide((fixture), "work", (workflow_id), __VA_ARGS__);                              \
        begun_run_id;                                                                              \
    })

/* The first event of this kind in a run's history (run_id "": the current one), waited for. */
API(HistoryEvent) *family_await(struct fixture *fixture, const char *workflow_id,
                                const char *run_id, API(HistoryEvent__AttributesCase) kind);
/* How many events of this kind there are now. */
size_t family_count(struct fixture *fixture, const char *workflow_id, const char *run_id,
                    API(HistoryEvent__AttributesCase) kind);
/* The world goes on for so long. */
void family_sleep(struct fixture *fixture, int64_t nanoseconds);

#endif
