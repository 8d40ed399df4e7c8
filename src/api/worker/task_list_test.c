/* task_list_test.c - task lists as clients and operators see them: described, listed, divided; and
 * lists that live only as long as they are used. */
#include "api/test/child_tree.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/maps.h"

#define FIXTURE_LIST      "work" /* that runs of the fixture are started on */
#define PARTITION(number) "/__cadence_sys/" FIXTURE_LIST "/" number
#define KIND(name)        API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_##name)
#define TYPE(name)        API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_##name)
#define THREE                                                                                      \
    "matching.numTasklistReadPartitions:\n- value: 3\n"                                            \
    "matching.numTasklistWritePartitions:\n- value: 3\n"

static API(DescribeTaskListResponse) *
describe(struct fixture *fixture, const char *list, API(TaskListType) type)
{
    return API_OK(fixture, describe_task_list, .domain = "orders",
                  .task_list = fixture_list(fixture, list), .task_list_type = type,
                  .include_task_list_status = true);
}

static void
expect_status(struct fixture *fixture, int64_t backlog, int64_t read, int64_t ack)
{
    const API(TaskListStatus) *status = describe(fixture, "work", TYPE(DECISION))->task_list_status;
    EXPECT_EQ(status->backlog_count_hint, backlog);
    EXPECT_EQ(status->read_level, read);
    EXPECT_EQ(status->ack_level, ack);
    EXPECT_EQ(status->empty, backlog == 0);
    EXPECT_EQ((int64_t)status->rate_per_second, 100000);
    EXPECT_EQ(status->task_id_block->start_id, 1);
    EXPECT_EQ(status->task_id_block->end_id, 100000);
}

static void
status(struct fixture *fixture)
{
    expect_status(fixture, 0, 0, 0);
    run_start(fixture, "wf");
    child_tree_sleep(fixture, NS_PER_S);
    expect_status(fixture, 1, 1, 0);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    expect_status(fixture, 0, 1, 1);
}

TEST(task_list, a_pending_task_is_shown_and_gone_when_it_was_done, "C-012")
{
    fixture_run(status);
}

static void
pollers(struct fixture *fixture)
{
    EXPECT_EQ(describe(fixture, "work", TYPE(DECISION))->n_pollers, 0);
    run_start(fixture, "wf");
    int64_t began = clock_wall();
    poll_decision(fixture, "work");
    API(DescribeTaskListResponse) *description = describe(fixture, "work", TYPE(DECISION));
    EXPECT_EQ(description->n_pollers, 1);
    EXPECT_TEXT(description->pollers[0]->identity, "worker");
    EXPECT(description->pollers[0]->last_access_time->seconds >= began / NS_PER_S);
    EXPECT((int64_t)description->pollers[0]->rate_per_second == 100000);
    EXPECT_TEXT(description->task_list->name, "work");
    EXPECT_EQ(description->task_list->kind, KIND(NORMAL));
    EXPECT_EQ(describe(fixture, "work", TYPE(ACTIVITY))->n_pollers, 0);
}

TEST(task_list, pollers_are_shown_for_each_type_from_the_first_poll_on, "C-011")
{
    fixture_run(pollers);
}

SERVER_TEST(task_list, a_poller_of_any_partition_is_a_poller_of_the_list, "C-011", "C-015")
{
    fixture_set(fixture, THREE);
    fixture->timeout = 2500 * NS_PER_MS;
    for (int i = 0; i < 5; i++)
        poll_decision(fixture, "work");
    API(DescribeTaskListResponse) *description = describe(fixture, "work", TYPE(DECISION));
    EXPECT_EQ(description->n_pollers, 1); /* one worker, wherever it polled */
    EXPECT_EQ(description->partition_config->n_read_partitions, 3);
    description = describe(fixture, PARTITION("1"), TYPE(DECISION));
    EXPECT_EQ(description->n_pollers, 1);
    EXPECT_TEXT(description->task_list->name, PARTITION("1"));
}

static void
partitions(struct fixture *fixture)
{
    API(ListTaskListPartitionsRequest) *request =
        API_NEW(fixture->arena, list_task_list_partitions_request, .domain = "orders",
                .task_list = fixture_list(fixture, "work"));
    API(ListTaskListPartitionsResponse) *response;
#define LIST fixture_call(fixture, request, &response)
    EXPECT_OK(LIST);
    EXPECT_EQ(response->n_decision_task_list_partitions, 1);
    EXPECT_EQ(response->n_activity_task_list_partitions, 1);
    EXPECT_TEXT(response->activity_task_list_partitions[0]->key, "work");
    EXPECT_TEXT(response->activity_task_list_partitions[0]->owner_host_name, "fixture");
    fixture_set(fixture, "matching.numTasklistReadPartitions:\n- value: 3\n"
                         "  constraints: {domainName: orders, taskListName: work, taskType: 0}\n"
                         "- value: 2\n");
    EXPECT_OK(LIST);
    EXPECT_EQ(response->n_decision_task_list_partitions, 3);
    EXPECT_EQ(response->n_activity_task_list_partitions, 2);
    EXPECT_TEXT(response->decision_task_list_partitions[0]->key, "work");
    EXPECT_TEXT(response->decision_task_list_partitions[2]->key, PARTITION("2"));
    request->task_list = NULL;
    EXPECT_KIND(LIST, ERR_BAD_REQUEST);
}

TEST(task_list, partitions_are_listed_for_both_types, "C-014", "C-015")
{
    fixture_run(partitions);
}

static API(GetTaskListsByDomainResponse) *
lists_of(struct fixture *fixture)
{
    return API_OK(fixture, get_task_lists_by_domain, .domain = "orders");
}

static void
poll_kind(struct fixture *fixture, const char *list, API(TaskListKind) kind)
{
    API(PollForDecisionTaskRequest) *request = fixture_poll(fixture, list);
    request->task_list->kind = kind;
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

SERVER_TEST(task_list, the_normal_lists_of_a_domain_are_listed_by_name, "C-021")
{
    EXPECT_EQ(lists_of(fixture)->n_decision_task_list_map, 0);
    fixture->timeout = 2500 * NS_PER_MS;
    poll_decision(fixture, "work");
    poll_decision(fixture, "more");
    poll_activity(fixture, "work");
    poll_kind(fixture, "host:1", KIND(STICKY));
    poll_kind(fixture, "session", KIND(EPHEMERAL));
    API(GetTaskListsByDomainResponse) *lists = lists_of(fixture);
    EXPECT_EQ(lists->n_decision_task_list_map, 2);
    EXPECT_EQ(lists->n_activity_task_list_map, 1);
    EXPECT_TEXT(lists->decision_task_list_map[0]->key, "more");
    EXPECT_TEXT(lists->decision_task_list_map[1]->key, "work");
    const API(DescribeTaskListResponse) *work = lists->decision_task_list_map[1]->value;
    EXPECT_EQ(work->n_pollers, 1);
    EXPECT_TEXT(work->pollers[0]->identity, "worker");
    fixture_set(fixture, "matching.matchingReturnAllTaskListKinds:\n- value: true\n");
    EXPECT_EQ(lists_of(fixture)->n_decision_task_list_map, 4);
}

/* --- operators -----------------------------------------------------------------------------------
 */

static void
add_partition(struct fixture *fixture, API(TaskListPartitionConfig) *config, int32_t id,
              bool is_written)
{
    API(TaskListPartitionConfig__ReadPartitionsEntry) *read =
        message_new(fixture->arena, API_TYPE(task_list_partition_config__read_partitions_entry));
    API(TaskListPartitionConfig__WritePartitionsEntry) *write =
        message_new(fixture->arena, API_TYPE(task_list_partition_config__write_partitions_entry));
    read->value = write->value = API_NEW(fixture->arena, task_list_partition);
    read->key = write->key = id;
    if (config->read_partitions == NULL) {
        config->read_partitions = arena_zalloc(fixture->arena, 8, sizeof(void *));
        config->write_partitions = arena_zalloc(fixture->arena, 8, sizeof(void *));
    }
    config->read_partitions[config->n_read_partitions++] = read;
    if (is_written)
        config->write_partitions[config->n_write_partitions++] = write;
}

SERVER_TEST(task_list, operators_divide_the_root_of_a_normal_list, "C-018")
{
    ADMIN(UpdateTaskListPartitionConfigRequest) *request =
        ADMIN_NEW(fixture->arena, update_task_list_partition_config_request);
    struct error *err;
#define DIVIDE fixture_call(fixture, request, NULL)
#define EXPECT_REFUSED(text)                                                                       \
    do {                                                                                           \
        err = DIVIDE;                                                                              \
        EXPECT_KIND(err, ERR_BAD_REQUEST);                                                         \
        EXPECT_TEXT(err->message, text);                                                           \
    } while (0)
    request->domain = "orders";
    EXPECT_REFUSED("TaskList is not set on request.");
    request->task_list = fixture_list(fixture, "work");
    request->task_list->kind = KIND(INVALID);
    EXPECT_REFUSED("Task list kind not set.");
    request->task_list->kind = KIND(STICKY);
    EXPECT_REFUSED("Only normal tasklist's partition config can be updated.");
    request->task_list->kind = KIND(NORMAL);
    EXPECT_REFUSED("Task list type not set.");
    request->task_list_type = TYPE(DECISION);
    EXPECT_REFUSED("Task list partition config is not set in the request.");
    request->partition_config = API_NEW(fixture->arena, task_list_partition_config);
    EXPECT_REFUSED("The number of partitions must be larger than 0.");
    add_partition(fixture, request->partition_config, 0, true);
    add_partition(fixture, request->partition_config, 1, true);
    request->partition_config->n_read_partitions = 1;
    EXPECT_REFUSED(
        "The number of write partitions cannot be larger than the number of read partitions.");
    request->partition_config->n_read_partitions = 2;
    request->task_list->name = PARTITION("1");
    EXPECT_REFUSED("Only root partition's partition config can be updated.");
    request->task_list->name = "work";
    fixture_set(fixture, "matching.enableAdaptiveScaler:\n- value: true\n");
    EXPECT_REFUSED("Manual update is not allowed because adaptive scaler is enabled.");
    fixture_set(fixture, "matching.enableAdaptiveScaler:\n- value: false\n");
    EXPECT_OK(DIVIDE);
    const API(TaskListPartitionConfig) *config =
        describe(fixture, "work", TYPE(DECISION))->partition_config;
    EXPECT_EQ(config->version, 1);
    EXPECT_EQ(config->n_read_partitions, 2);
    EXPECT_EQ(config->n_write_partitions, 2);
    EXPECT(describe(fixture, "work", TYPE(ACTIVITY))->partition_config == NULL);
}

/* All that a run does works the same on a divided list. */
static void
work(struct fixture *fixture)
{
    fixture_set(fixture, THREE);
    fixture->timeout = 2500 * NS_PER_MS;
    poll_decision(fixture, "work"); /* the list is divided from now on */
    poll_activity(fixture, "work");
    fixture->timeout = 10 * NS_PER_S;
    for (int i = 0; i < 9; i++) {
        run_start(fixture, arena_format(fixture->arena, "wf-%d", i));
        API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
        EXPECT(task->task_token.len > 0);
        run_complete(fixture,
                     fixture_complete(fixture, task->task_token, decide_activity(fixture, "1")));
        EXPECT(poll_activity(fixture, "work")->task_token.len > 0);
    }
}

TEST(task_list, a_run_on_a_divided_list_goes_on_with_one_worker, "C-015", "C-016")
{
    fixture_run(work);
}

/* --- ephemeral lists -----------------------------------------------------------------------------
 */

static void
start_ephemeral(struct fixture *fixture, API(TaskListKind) kind)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->task_list->kind = kind;
    run_start_by(fixture, request);
}

static void
ephemeral(struct fixture *fixture)
{
    start_ephemeral(fixture, KIND(EPHEMERAL));
    API(DescribeWorkflowExecutionResponse) *run = run_describe(fixture, "wf", "");
    EXPECT_EQ(run->execution_configuration->task_list->kind, KIND(EPHEMERAL));
    EXPECT_EQ(run->workflow_execution_info->task_list_info->kind, KIND(EPHEMERAL));
    API(Decision) *activity = decide_activity(fixture, "1");
    activity->schedule_activity_task_decision_attributes->task_list->kind = KIND(NORMAL);
    API(Decision) *child = child_tree_start_child(fixture, "kid", CHILD_TREE_POLICY(ABANDON));
    child->start_child_workflow_execution_decision_attributes->task_list->kind = KIND(NORMAL);
    child_tree_decide(fixture, "work", "wf", activity, child);
    EXPECT_EQ(describe(fixture, "work", TYPE(DECISION))->task_list->kind, KIND(EPHEMERAL));
    EXPECT_EQ(child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
                  ->workflow_execution_started_event_attributes->task_list->kind,
              KIND(EPHEMERAL));
    EXPECT_EQ(child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(ACTIVITY_TASK_SCHEDULED))
                  ->activity_task_scheduled_event_attributes->task_list->kind,
              KIND(EPHEMERAL));
    EXPECT_EQ(child_tree_await(fixture, "kid", "", CHILD_TREE_EVENT(WORKFLOW_EXECUTION_STARTED))
                  ->workflow_execution_started_event_attributes->task_list->kind,
              KIND(EPHEMERAL));
    EXPECT(poll_activity(fixture, "work")->task_token.len > 0);
    EXPECT(poll_decision(fixture, "kids")->task_token.len > 0);
}

TEST(task_list, a_run_on_an_ephemeral_list_has_ephemeral_activities_and_children, "C-022", "C-023")
{
    fixture_run(ephemeral);
}

SERVER_TEST(task_list, a_normal_run_can_have_an_activity_on_an_ephemeral_list, "C-024", "C-022")
{
    start_ephemeral(fixture, KIND(NORMAL));
    API(Decision) *activity = decide_activity(fixture, "1");
    activity->schedule_activity_task_decision_attributes->task_list->kind = KIND(EPHEMERAL);
    child_tree_decide(fixture, "work", "wf", activity);
    EXPECT_EQ(child_tree_await(fixture, "wf", "", CHILD_TREE_EVENT(ACTIVITY_TASK_SCHEDULED))
                  ->activity_task_scheduled_event_attributes->task_list->kind,
              KIND(EPHEMERAL));
    EXPECT(poll_activity(fixture, "work")->task_token.len > 0);
    EXPECT_EQ(describe(fixture, "work", TYPE(ACTIVITY))->task_list->kind, KIND(EPHEMERAL));
}

/* As sessions of the Go client do it: a worker has a list of its own, which the activities of the
 * session go to, and which nobody else polls. */
static void
session(struct fixture *fixture)
{
    start_ephemeral(fixture, KIND(NORMAL));
    API(Decision) *activity = decide_activity(fixture, "1");
    API(TaskList) *list = activity->schedule_activity_task_decision_attributes->task_list;
    list->name = "host-1:0192f1a0";
    list->kind = KIND(EPHEMERAL);
    list->base_name = "work";
    child_tree_decide(fixture, "work", "wf", activity);
    fixture->timeout = 2500 * NS_PER_MS;
    EXPECT_EQ(poll_activity(fixture, "work")->task_token.len, 0); /* not of the session */
    EXPECT(poll_activity(fixture, "host-1:0192f1a0")->task_token.len > 0);
    EXPECT_EQ(describe(fixture, "host-1:0192f1a0", TYPE(ACTIVITY))->task_list->kind,
              KIND(EPHEMERAL));
    EXPECT_EQ(lists_of(fixture)->n_activity_task_list_map, 1); /* it is not one of the domain's */
    child_tree_sleep(fixture, 400 * NS_PER_S);
    fixture_set(fixture, "matching.matchingReturnAllTaskListKinds:\n- value: true\n");
    EXPECT_EQ(lists_of(fixture)->n_activity_task_list_map, 0); /* nobody uses it any more */
}

TEST(task_list, a_worker_has_an_ephemeral_list_of_its_own_for_a_session, "C-025", "C-022")
{
    fixture_run(session);
}
