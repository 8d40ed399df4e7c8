/* entity_child_script_test.c - children and next runs of workflows that follow entities: a child
 * belongs to the same as its parent; it may say otherwise in its header, as a start may; a run
 * that continues as a new one keeps what it belongs to. */
#include <string.h>

#include "sim/entity/entity_script.h"

#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

static API(Decision) *
child_for(struct script *script, const char *id, const char *source, const char *key)
{
    API(Decision) *decision = active_start_child(script, id, NULL);
    API(StartChildWorkflowExecutionDecisionAttributes) *child_attributes =
        decision->start_child_workflow_execution_decision_attributes;
    child_attributes->header = entity_header(script, source, key);
    child_attributes->parent_close_policy =
        API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_ABANDON);
    return decision;
}

/* Completes all decisions of a cluster that come within a second; returns their workflows. */
static const char *
end_all(struct script *script, unsigned cluster)
{
    const char *ended = "";
    for (API(PollForDecisionTaskResponse) *task;
         (task = script_poll(script, cluster, NS_PER_S)) != NULL;) {
        API(Decision) *end = script_complete_workflow(script);
        const char *id = task->workflow_execution->workflow_id;
        EXPECT_OK(script_complete(script, cluster, task, &end, 1));
        if (strstr(ended, id) == NULL) /* a parent hears of its child by another one */
            ended = arena_format(script->arena, "%s%s ", ended, id);
    }
    return ended;
}

/* The parent is of ann, in region0; the child of bob, in region1: it runs there. */
SCRIPT_TEST(entity_child, a_child_belongs_to_the_entity_that_its_header_names,
            active_play_regions(2, body), "G-061")
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_place(script, 0, "user", "bob", "region1");
    entity_start(script, 0, "parent", "ann");
    API(Decision) *decisions[] = {
        child_for(script, "child-of-bob", SOURCE, "bob"),
        child_for(script, "child-of-ann", SOURCE, "\"ann\""), /* as data converters write it */
    };
    script_decide(script, 0, decisions, 2);
    active_end(script, 1, "child-of-bob");
    EXPECT_TEXT(entity_of(script, 1, "child-of-bob")->scope, "user");
    EXPECT_TEXT(entity_of(script, 1, "child-of-bob")->name, "bob");
    active_expect_written(script_history(script, 1, "child-of-bob", ""), 0, 1);
    end_all(script, 0);
    EXPECT_TEXT(entity_of(script, 0, "child-of-ann")->name, "ann");
    for (unsigned cluster = 0; cluster < 2; cluster++) {
        active_expect_closed(script, cluster, "parent", NULL, CLOSE(COMPLETED));
        active_expect_closed(script, cluster, "child-of-ann", NULL, CLOSE(COMPLETED));
        active_expect_closed(script, cluster, "child-of-bob", NULL, CLOSE(COMPLETED));
    }
    API(History) *history = script_history(script, 0, "parent", "");
    const API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated = NULL;
    for (size_t i = 0; initiated == NULL && i < history->n_events; i++)
        if (history->events[i]->attributes_case == EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED))
            initiated =
                history->events[i]->start_child_workflow_execution_initiated_event_attributes;
    EXPECT(initiated != NULL); /* the history says it, so every cluster knows */
    EXPECT_TEXT(initiated->active_cluster_selection_policy->cluster_attribute->name, "bob");
    script_expect_same(script, "parent");
}

/* With one of the two fields the child says nothing: it is of its parent's entity. */
SCRIPT_TEST(entity_child, a_child_with_one_field_of_the_two_is_of_its_parents_entity,
            active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_start(script, 0, "parent", "ann");
    API(Decision) *decisions[] = {child_for(script, "key-only", NULL, "bob"),
                                  child_for(script, "source-only", SOURCE, NULL)};
    script_decide(script, 0, decisions, 2);
    script_await(script, 0, "key-only", 2);
    script_await(script, 0, "source-only", 2);
    EXPECT_TEXT(entity_of(script, 0, "key-only")->name, "ann");
    EXPECT_TEXT(entity_of(script, 0, "source-only")->name, "ann");
    EXPECT(entity_get(script, 0, "user", "bob") == NULL);
    entity_place(script, 0, "user", "ann", "region1"); /* all three move with her */
    EXPECT_TEXT(end_all(script, 0), "");
    const char *ended = end_all(script, 1);
    EXPECT(strstr(ended, "key-only") != NULL && strstr(ended, "source-only") != NULL &&
           strstr(ended, "parent") != NULL);
}

/* Unknown users are created in the region of the cluster that decides. */
SCRIPT_TEST(entity_child, an_unknown_user_is_made_where_its_parent_is, active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region1");
    entity_start(script, 0, "parent", "ann");
    API(Decision) *decision = child_for(script, "child", SOURCE, "zoe");
    script_decide(script, 1, &decision, 1);
    script_await(script, 1, "child", 2);
    EXPECT_TEXT(entity_of(script, 1, "child")->name, "zoe");
    EXPECT_TEXT(entity_get(script, 0, "user", "zoe")->entity->region, "region1");
    EXPECT_TEXT(entity_get(script, 0, "user", "zoe")->entity->writer, "start");
}

/* The decision fails and says why, and nothing is started; the next one may be right.
 */
static void
expect_refused(struct script *script, API(Decision) *bad, const char *word)
{
    script_decide(script, 0, &bad, 1);
    API(History) *history = script_await(script, 0, "w", 4);
    const API(DecisionTaskFailedEventAttributes) *failed = NULL;
    for (size_t i = 0; i < history->n_events; i++)
        if (history->events[i]->attributes_case == EVENT(DECISION_TASK_FAILED))
            failed = history->events[i]->decision_task_failed_event_attributes;
    EXPECT(failed != NULL);
    EXPECT_EQ(failed->cause, CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES));
    const ProtobufCBinaryData *details = &failed->failure->details;
    EXPECT(memmem(details->data, details->len, word, strlen(word)) != NULL);
    EXPECT(script_history(script, 0, "child", "") == NULL);
    API(Decision) *good = child_for(script, "child", SOURCE, "ann");
    script_decide(script, 0, &good, 1);
    script_await(script, 0, "child", 2);
}

static void
play_bad_source(struct script *script)
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_start(script, 0, "w", "ann");
    expect_refused(script, child_for(script, "child", "custom.unknown", "ann"), "custom.unknown");
}

static void
play_bad_key(struct script *script)
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_start(script, 0, "w", "ann");
    expect_refused(script, child_for(script, "child", "city", "paris"), "paris");
}

static void
play_deleted_key(struct script *script)
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_place(script, 0, "city", "paris", "region0");
    entity_delete(script, 0, "city", "paris");
    entity_start(script, 0, "w", "ann");
    expect_refused(script, child_for(script, "child", "city", "paris"), "deleted");
}

TEST(entity_child, a_source_or_key_that_is_not_known_fails_the_decision)
{
    active_play_regions(2, play_deleted_key);
    active_play_regions(2, play_bad_source);
    active_play_regions(2, play_bad_key);
}

/* Both a policy and a header: the policy counts, as at a start. */
SCRIPT_TEST(entity_child, a_policy_counts_more_than_a_header, active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_start(script, 0, "parent", "ann");
    API(Decision) *decision = child_for(script, "child", "custom.unknown", "bob");
    decision->start_child_workflow_execution_decision_attributes->active_cluster_selection_policy =
        active_policy(script, "region", "region1");
    script_decide(script, 0, &decision, 1);
    active_end(script, 1, "child");
    EXPECT_TEXT(entity_of(script, 1, "child")->scope, "region");
}

/* A run of ann goes on as a new one whose header names bob: it is of ann, and moves with her. */
SCRIPT_TEST(entity_child, a_run_that_goes_on_as_a_new_one_stays_with_its_entity,
            active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_place(script, 0, "user", "bob", "region1");
    entity_start(script, 0, "w", "ann");
    API(Decision) *decision = API_DECISION(script->arena, continue_as_new_workflow_execution,
                                           .header = entity_header(script, SOURCE, "bob"));
    script_decide(script, 0, &decision, 1);
    script_await(script, 0, "w", 2);
    EXPECT_TEXT(entity_of(script, 0, "w")->name, "ann");
    EXPECT(script_poll(script, 1, NS_PER_S) == NULL);
    entity_place(script, 0, "user", "ann", "region1");
    active_end(script, 1, "w");
    active_expect_closed(script, 0, "w", NULL, CLOSE(COMPLETED));
    EXPECT_TEXT(entity_of(script, 0, "w")->name, "ann");
}
