/* entity_script_test.c - workflows that follow what they belong to: users that live in a region,
 * and move. The domain has region0 in cluster0, region1 in cluster1; cluster0 is the primary. */
#include <string.h>

#include "sim/entity/entity_script.h"

#define SOON NS_PER_S /* what an entity's move may take, with all that follows */

/* --- starting ---- */

SCRIPT_TEST(entity_script, a_start_belongs_to_the_entity_that_its_header_names,
            active_play_regions(2, body), "G-061")
{
    entity_place(script, 0, "user", "ann", "region1");
    entity_start(script, 0, "w-ann", "ann"); /* goes on to cluster1, where region1 is */
    active_end(script, 1, "w-ann");
    EXPECT_TEXT(entity_of(script, 1, "w-ann")->scope, "user");
    EXPECT_TEXT(entity_of(script, 1, "w-ann")->name, "ann");
    active_expect_written(script_history(script, 1, "w-ann", ""), 0, 1);

    const char *run_id;
    entity_start(script, 0, "w-json", "\"ann\""); /* as data converters write a text */
    active_end(script, 1, "w-json");
    struct error *err =
        script_try_start(script, 0, entity_request(script, "w", "custom.unknown", "ann"), &run_id);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "custom.unknown") != NULL);
    err = script_try_start(script, 0, entity_request(script, "w", "city", "paris"), &run_id);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "paris") != NULL);
    EXPECT(script_history(script, 0, "w", "") == NULL);
    EXPECT(script_history(script, 1, "w", "") == NULL);
}

/* A start that is accepted now and done later, with the same header. */
SCRIPT_TEST(entity_script, a_start_that_is_done_later_belongs_to_its_entity,
            active_play_regions(2, body), "G-061")
{
    ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *enabling = ADMIN_NEW(
        script->arena, update_domain_async_workflow_configuraton_request, .domain = SCRIPT_DOMAIN,
        .configuration = API_NEW(script->arena, async_workflow_configuration, .enabled = true,
                                 .predefined_queue_name = "queue"));
    EXPECT_OK(script_call(script, 0, enabling, NULL));
    script_sleep(script, 2 * NS_PER_S);
    entity_place(script, 0, "city", "boston", "region1");
    API(StartWorkflowExecutionAsyncRequest) *request =
        API_NEW(script->arena, start_workflow_execution_async_request,
                .request = entity_request(script, "w", "city", "boston"));
    EXPECT_OK(script_call(script, 0, request, NULL));
    active_end(script, 1, "w");
    EXPECT_TEXT(entity_of(script, 1, "w")->name, "boston");
    request->request = entity_request(script, "v", "city", "paris");
    EXPECT_KIND(script_call(script, 0, request, NULL), ERR_BAD_REQUEST);
    entity_delete(script, 0, "city", "boston");
    request->request = entity_request(script, "v", "city", "boston");
    EXPECT_KIND(script_call(script, 0, request, NULL), ERR_BAD_REQUEST);
}

/* One field alone does not count: the run belongs to the region of the cluster that took it. */
SCRIPT_TEST(entity_script, only_one_field_of_the_two_counts_as_none, active_play_regions(2, body),
            "G-061")
{
    const char *run_id;
    EXPECT_OK(script_try_start(script, 1, entity_request(script, "a", SOURCE, NULL), &run_id));
    active_end(script, 1, "a");
    EXPECT_TEXT(entity_of(script, 1, "a")->scope, "region");
    EXPECT_TEXT(entity_of(script, 1, "a")->name, "region1");
    EXPECT_OK(script_try_start(script, 1, entity_request(script, "b", NULL, "ann"), &run_id));
    active_end(script, 1, "b");
    EXPECT_TEXT(entity_of(script, 1, "b")->name, "region1");
    EXPECT(entity_get(script, 0, "user", "ann") == NULL);
}

SCRIPT_TEST(entity_script, an_unknown_user_is_made_in_the_region_of_the_cluster_that_was_asked,
            active_play_regions(2, body), "G-061")
{
    entity_start(script, 1, "w", "zoe"); /* nobody knows her: she is where she came from */
    active_end(script, 1, "w");
    STORE_API(GetEntityResponse) *zoe = entity_get(script, 0, "user", "zoe");
    EXPECT_TEXT(zoe->entity->region, "region1");
    EXPECT_TEXT(zoe->entity->writer, "start");
    entity_start(script, 0, "v", "zoe"); /* known now, and not in region0 */
    active_end(script, 1, "v");
    EXPECT_EQ(entity_get(script, 0, "user", "zoe")->entity->failover_version,
              zoe->entity->failover_version);
}

/* Three clusters: the one that was asked, the one that carries it out, the primary that wrote the
 * row a moment ago. */
SCRIPT_TEST(entity_script, a_start_does_not_wait_for_its_row_to_be_replicated,
            active_play_regions(3, body))
{
    for (int i = 0; i < 10; i++) {
        const char *key = arena_format(script->arena, "user-%d", i);
        const char *id = arena_format(script->arena, "w-%d", i);
        entity_place(script, 0, "user", key, "region1");
        entity_start(script, 2, id, key);
        active_end(script, 1, id);
    }
}

SCRIPT_TEST(entity_script, known_users_are_served_while_the_primary_is_away,
            active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region1");
    EXPECT(entity_get(script, 0, "user", "ann") != NULL);
    for (int i = 0; entity_get(script, 1, "user", "ann") == NULL; i++) {
        EXPECT(i < 100);
        script_sleep(script, 10 * NS_PER_MS);
    }
    script_part(script);
    entity_start(script, 1, "known", "ann");
    active_end(script, 1, "known");
    const char *run_id;
    struct error *err =
        script_try_start(script, 1, entity_request(script, "unknown", SOURCE, "bob"), &run_id);
    EXPECT(err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE));
    script_heal(script);
    script_sleep(script, 5 * NS_PER_S);
    entity_start(script, 1, "unknown", "bob");
    active_end(script, 1, "unknown");
}

/* --- moving ---- */

/* Scenario 3 of the design: seattle goes from us-west (region0) to us-east (region1); boston and
 * the map of the domain stay. */
SCRIPT_TEST(entity_script, workflows_of_an_entity_move_with_it_at_once_and_no_others,
            active_play_regions(2, body), "G-041")
{
    entity_place(script, 0, "city", "seattle", "region0");
    entity_place(script, 0, "city", "portland", "region0");
    entity_place(script, 0, "city", "boston", "region1");
    int64_t row = entity_get(script, 0, "city", "seattle")->entity->failover_version;
    const char *run_id;
    static const char *const cities[] = {"seattle", "portland", "boston"};
    for (size_t i = 0; i < array_length(cities); i++)
        EXPECT_OK(script_try_start(script, 0, entity_request(script, cities[i], "city", cities[i]),
                                   &run_id));
    for (size_t i = 0; i < 2; i++)
        script_await(script, 1, cities[i], 2);
    active_end(script, 1, "boston");

    entity_place(script, 1, "city", "seattle",
                 "region1"); /* asked of one that has to ask the primary */
    int64_t began = clock_monotonic();
    active_end(script, 1, "seattle");
    EXPECT(clock_monotonic() - began < SOON);
    EXPECT(script_poll(script, 1, NS_PER_S) == NULL); /* portland stays */
    active_end(script, 0, "portland");
    STORE_API(GetEntityResponse) *moved = entity_get(script, 0, "city", "seattle");
    EXPECT(moved->entity->failover_version > row);
    EXPECT_EQ(moved->n_homes, 1);
    EXPECT_TEXT(moved->homes[0]->cluster, "cluster1");
    for (size_t i = 0; i < array_length(cities); i++) {
        active_expect_closed(script, 0, cities[i], NULL, CLOSE(COMPLETED));
        script_expect_same(script, cities[i]);
    }
    API(History) *history = script_history(script, 0, "seattle", "");
    active_expect_written(history, 2, 1);
    EXPECT_EQ(sim_group_of_version(history->events[1]->version), 0);
    EXPECT(history->events[2]->version > history->events[1]->version);
    EXPECT_EQ(history->events[2]->version, moved->homes[0]->failover_version);
    active_expect_written(script_history(script, 1, "portland", ""), 0, 0);
}

/* There and back, with the region moving in between: each time the versions rise. */
SCRIPT_TEST(entity_script, rows_and_regions_that_move_by_turns_give_rising_versions,
            active_play_regions(2, body))
{
    entity_place(script, 0, "city", "seattle", "region0");
    const char *run_id;
    EXPECT_OK(script_try_start(script, 0, entity_request(script, "w", "city", "seattle"), &run_id));
    script_decide(script, 0, NULL, 0);
    script_await(script, 1, "w", 4);
    active_move(script, "region0", 1); /* the region goes: seattle's workflows go along */
    EXPECT_OK(script_signal(script, 1, "w", "one"));
    script_decide(script, 1, NULL, 0);
    entity_place(script, 1, "city", "seattle", "region1"); /* the same cluster */
    EXPECT_OK(script_signal(script, 1, "w", "two"));
    script_decide(script, 1, NULL, 0);
    active_await_move(script, 0, "region0", 1);
    active_move(script, "region1", 0); /* her region goes the other way */
    EXPECT_OK(script_signal(script, 0, "w", "three"));
    active_end(script, 0, "w");
    active_expect_closed(script, 1, "w", NULL, CLOSE(COMPLETED));
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 1, "w", "");
    int changes = 0;
    for (size_t i = 1; i < history->n_events; i++) {
        int64_t before = history->events[i - 1]->version, after = history->events[i]->version;
        EXPECT(after >= before);
        changes += sim_group_of_version(after) != sim_group_of_version(before);
    }
    EXPECT_EQ(changes, 2);
}

SCRIPT_TEST(entity_script, workflows_of_a_deleted_entity_go_on_and_no_new_ones_begin,
            active_play_regions(2, body))
{
    const char *run_id;
    entity_place(script, 0, "city", "seattle", "region1");
    EXPECT_OK(script_try_start(script, 0, entity_request(script, "w", "city", "seattle"), &run_id));
    entity_delete(script, 1, "city", "seattle");
    EXPECT(entity_get(script, 1, "city", "seattle")->entity->is_deleted);
    entity_await(script, 0, "city", "seattle", true);
    active_end(script, 1, "w"); /* its workflows stay where they are */
    static const char gone[] = "'seattle' of type 'city': it was deleted";
    struct error *err =
        script_try_start(script, 1, entity_request(script, "v", "city", "seattle"), &run_id);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, gone) != NULL);
    API(StartWorkflowExecutionRequest) *named = script_start_request(script, "v");
    named->active_cluster_selection_policy = active_policy(script, "city", "seattle");
    EXPECT_KIND(script_try_start(script, 0, named, &run_id), ERR_BAD_REQUEST);
    EXPECT_KIND(active_signal_with_start(script, 0, entity_request(script, "v", "city", "seattle"),
                                         "go", &run_id),
                ERR_BAD_REQUEST);
    EXPECT(script_history(script, 1, "v", "") == NULL);
    entity_place(script, 0, "city", "seattle",
                 "region0"); /* it comes back, with a higher version */
    entity_await(script, 1, "city", "seattle", false);
    EXPECT_OK(script_try_start(script, 1, entity_request(script, "v", "city", "seattle"), &run_id));
    active_end(script, 0, "v");
}

/* Workflows of a deleted entity can be signalled in every way, and may have children. */
SCRIPT_TEST(entity_script, workflows_of_a_deleted_entity_are_signalled_and_have_children,
            active_play_regions(2, body))
{
    const char *run_id, *signalled;
    entity_place(script, 0, "city", "seattle", "region1");
    EXPECT_OK(active_signal_with_start(script, 0, entity_request(script, "w", "city", "seattle"),
                                       "first", &run_id));
    script_decide(script, 1, NULL, 0);
    entity_delete(script, 0, "city", "seattle");
    EXPECT_OK(active_signal_with_start(script, 0, entity_request(script, "w", "city", "seattle"),
                                       "second", &signalled));
    EXPECT_TEXT(signalled, run_id);
    API(Decision) *child = active_start_child(script, "child", NULL);
    script_decide(script, 1, &child, 1);
    script_await(script, 1, "child", 2);
    EXPECT_TEXT(entity_of(script, 1, "child")->name, "seattle");
}

/* Children belong to what their parent does. */
SCRIPT_TEST(entity_script, a_child_follows_the_entity_of_its_parent, active_play_regions(2, body))
{
    entity_place(script, 0, "city", "seattle", "region0");
    const char *run_id;
    EXPECT_OK(
        script_try_start(script, 0, entity_request(script, "parent", "city", "seattle"), &run_id));
    API(Decision) *decision = API_DECISION(script->arena, start_child_workflow_execution);
    API(StartChildWorkflowExecutionDecisionAttributes) *child_attributes =
        API_NEW(script->arena, start_child_workflow_execution_decision_attributes);
    const API(StartWorkflowExecutionRequest) *like = script_start_request(script, "child");
    child_attributes->workflow_id = "child";
    child_attributes->parent_close_policy =
        API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_ABANDON);
    child_attributes->workflow_type = like->workflow_type;
    child_attributes->task_list = like->task_list;
    child_attributes->execution_start_to_close_timeout = like->execution_start_to_close_timeout;
    child_attributes->task_start_to_close_timeout = like->task_start_to_close_timeout;
    decision->start_child_workflow_execution_decision_attributes = child_attributes;
    script_decide(script, 0, &decision, 1);
    script_await(script, 0, "child", 2);
    EXPECT_TEXT(entity_of(script, 0, "child")->name, "seattle");
    entity_place(script, 0, "city", "seattle", "region1");
    for (int i = 0; i < 2; i++) { /* both are there, in whatever order */
        API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
        EXPECT(task != NULL);
        API(Decision) *end = script_complete_workflow(script);
        EXPECT_OK(script_complete(script, 1, task, &end, 1));
    }
}
