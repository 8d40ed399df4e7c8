/* child_tree.h - what the tests of children, signals and cancel requests between workflows share.
 * Parents work on list "work", children on list "kids", so that a test knows whom it polls. */
#ifndef CADENZA_API_TEST_CHILD_TREE_H
#define CADENZA_API_TEST_CHILD_TREE_H

#include "api/test/fixture.h"
#include "engine/run/apply.h"
#include "wire/names.h"

#define CHILD_TREE_EVENT(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define CHILD_TREE_POLICY(name) API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

/* Starts child `workflow_id` of type "kid" on list "kids", with this policy. */
API(Decision) *child_tree_start_child(struct fixture *fixture, const char *workflow_id,
                                      API(ParentClosePolicy) policy);
API(Decision) *child_tree_signal(struct fixture *fixture, const char *workflow_id,
                                 const char *run_id);
API(Decision) *child_tree_cancel(struct fixture *fixture, const char *workflow_id);
API(Decision) *child_tree_end_canceled(struct fixture *fixture);
API(Decision) *child_tree_fail(struct fixture *fixture);

/* Takes the next decision task of a list, which must be of this workflow, and decides so. */
void child_tree_decide_list(struct fixture *fixture, const char *list, const char *workflow_id,
                            API(Decision) **decisions, size_t count);
#define child_tree_decide(fixture, list, workflow_id, ...)                                         \
    child_tree_decide_list((fixture), (list), (workflow_id),                                       \
                           (API(Decision) *[]){NULL, ##__VA_ARGS__} + 1,                           \
                           sizeof((API(Decision) *[]){NULL, ##__VA_ARGS__}) / sizeof(void *) - 1)
/* Starts workflow `workflow_id` and lets it decide so. Its run id. */
#define child_tree_begin(fixture, workflow_id, ...)                                                \
    ({                                                                                             \
        const char *begun_run_id = run_start((fixture), (workflow_id));                            \
        child_tree_decide((fixture), "work", (workflow_id), __VA_ARGS__);                          \
        begun_run_id;                                                                              \
    })

/* The first event of this kind in a run's history (run_id "": the current one), waited for. */
API(HistoryEvent) *child_tree_await(struct fixture *fixture, const char *workflow_id,
                                    const char *run_id, API(HistoryEvent__AttributesCase) kind);
/* How many events of this kind there are now. */
size_t child_tree_count(struct fixture *fixture, const char *workflow_id, const char *run_id,
                        API(HistoryEvent__AttributesCase) kind);
/* The world goes on for so long. */
void child_tree_sleep(struct fixture *fixture, int64_t nanoseconds);

#endif
