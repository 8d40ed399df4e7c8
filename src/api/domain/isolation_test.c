/* isolation_test.c - isolation groups: nothing new from one that was drained. */
#include "api/test/fixture.h"
#include "wire/names.h"

#define HEADER(name_, value_)                                                                      \
    {                                                                                              \
        SLICE_LITERAL(name_), SLICE_LITERAL(value_)                                                \
    }

/* A domain with a drained group: it comes from another cluster, since nobody can drain one here. */
static void
add_domain(struct fixture *fixture)
{
    struct arena *arena = fixture->arena;
    const char *cluster = fixture->group->current->name;
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    ADMIN(DomainTaskAttributes) *attributes =
        message_new(arena, ADMIN_TYPE(domain_task_attributes));
    task->task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_DOMAIN);
    task->source_task_id = 1;
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES);
    task->domain_task_attributes = attributes;
    attributes->domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    attributes->id = fixture_uuid(fixture);
    API(Domain) *domain = attributes->domain = message_new(arena, API_TYPE(domain));
    domain->id = attributes->id;
    domain->name = "drained";
    domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED);
    domain->is_global_domain = true;
    domain->active_cluster_name = (char *)cluster;
    domain->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    domain->n_clusters = 1;
    domain->clusters = arena_zalloc(arena, 1, sizeof(void *));
    domain->clusters[0] = message_new(arena, API_TYPE(cluster_replication_configuration));
    domain->clusters[0]->cluster_name = (char *)cluster;
    domain->isolation_groups = message_new(arena, API_TYPE(isolation_group_configuration));
    domain->isolation_groups->isolation_groups = arena_zalloc(arena, 2, sizeof(void *));
    for (size_t i = 0; i < 2; i++) {
        API(IsolationGroupPartition) *group =
            message_new(arena, API_TYPE(isolation_group_partition));
        group->name = i == 0 ? "zone-1" : "zone-2";
        group->state = i == 0 ? API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED)
                              : API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_HEALTHY);
        domain->isolation_groups->isolation_groups[domain->isolation_groups->n_isolation_groups++] =
            group;
    }
    EXPECT_OK(domains_apply(fixture->domains, "east", task, arena));
    EXPECT(domains_find_name(fixture->domains, "drained") != NULL);
}

static struct error *
start_from(struct fixture *fixture, const char *domain, const struct call_header *header)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, fixture_uuid(fixture));
    API(StartWorkflowExecutionResponse) *response;
    request->domain = (char *)domain;
    fixture->headers = header;
    fixture->header_count = header == NULL ? 0 : 1;
    struct error *err = fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &request->base,
                                     API_TYPE(start_workflow_execution_response), &response);
    fixture->header_count = 0;
    return err;
}

static const struct call_header zone_1 = HEADER("cadence-client-isolation-group", "zone-1");
static const struct call_header zone_2 = HEADER("cadence-client-isolation-group", "zone-2");

static void
drained(struct fixture *fixture)
{
    add_domain(fixture);
    EXPECT_OK(start_from(fixture, "drained", &zone_1)); /* groups do not count */
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    struct error *err = start_from(fixture, "drained", &zone_1);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");
    EXPECT_OK(start_from(fixture, "drained", &zone_2));
    EXPECT_OK(start_from(fixture, "drained", NULL));
    EXPECT_OK(start_from(fixture, "orders", &zone_1));
}

TEST(isolation, a_run_is_not_started_from_a_drained_group, "A-047")
{
    fixture_run(drained);
}

static void
others(struct fixture *fixture)
{
    add_domain(fixture);
    API(SignalWithStartWorkflowExecutionRequest) *both =
        message_new(fixture->arena, API_TYPE(signal_with_start_workflow_execution_request));
    API(SignalWithStartWorkflowExecutionResponse) *started;
    both->start_request = fixture_start(fixture, "wf");
    both->start_request->domain = "drained";
    both->signal_name = "go";
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    fixture->headers = &zone_1;
    fixture->header_count = 1;
    struct error *err =
        fixture_call(fixture, WORKFLOW_API "SignalWithStartWorkflowExecution", &both->base,
                     API_TYPE(signal_with_start_workflow_execution_response), &started);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");

    API(SignalWorkflowExecutionRequest) *signal =
        message_new(fixture->arena, API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionResponse) *signalled;
    signal->domain = "drained";
    signal->workflow_execution = fixture_execution(fixture, "wf");
    signal->signal_name = "go";
    err = fixture_call(fixture, WORKFLOW_API "SignalWorkflowExecution", &signal->base,
                       API_TYPE(signal_workflow_execution_response), &signalled);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");

    API(RestartWorkflowExecutionRequest) *again =
        message_new(fixture->arena, API_TYPE(restart_workflow_execution_request));
    API(RestartWorkflowExecutionResponse) *restarted;
    again->domain = "drained";
    again->workflow_execution = fixture_execution(fixture, "wf");
    err = fixture_call(fixture, WORKFLOW_API "RestartWorkflowExecution", &again->base,
                       API_TYPE(restart_workflow_execution_response), &restarted);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");
    fixture->header_count = 0;
}

TEST(isolation, neither_by_a_signal_nor_by_a_restart, "A-047")
{
    fixture_run(others);
}

/* Everything that clients of Cadence send along is taken; what it is for may come later. */
static void
all_headers(struct fixture *fixture)
{
    const struct call_header headers[] = {
        HEADER("cadence-client-name", "uber-go"),
        HEADER("cadence-client-feature-version", "1.7.0"),
        HEADER("cadence-client-library-version", "1.2.3"),
        HEADER("cadence-client-feature-flags", "{}"),
        HEADER("cadence-authorization", "token"),
        HEADER("cadence-caller-type", "sdk"),
        HEADER("cadence-worker-isolation-group", "zone-3"),
        HEADER("cadence-client-isolation-group", "zone-1"),
    };
    fixture->headers = headers;
    fixture->header_count = array_length(headers);
    run_start(fixture, "wf");
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    const API(WorkflowExecutionStartedEventAttributes) *started =
        history->events[0]->workflow_execution_started_event_attributes;
    EXPECT_EQ(started->n_partition_config, 1);
    EXPECT_TEXT(started->partition_config[0]->key, "isolation-group");
    EXPECT_TEXT(started->partition_config[0]->value, "zone-1");
    fixture->header_count = 0;
}

TEST(isolation, the_group_that_a_client_is_in_is_kept_with_the_run_that_it_starts, "A-002")
{
    fixture_run(all_headers);
}

/* Another cluster sent the call on: its client's group is in the config that came along. */
static void
forwarded(struct fixture *fixture)
{
    const struct call_header headers[] = {
        HEADER("cadence-forwarding-cluster", "east"),
        HEADER("cadence-workflow-partition-config", "{\"isolation-group\":\"zone-7\",\"x\":\"y\"}"),
        HEADER("cadence-client-isolation-group", "zone-1"),
    };
    fixture->headers = headers;
    fixture->header_count = array_length(headers);
    run_start(fixture, "wf");
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    const API(WorkflowExecutionStartedEventAttributes) *started =
        history->events[0]->workflow_execution_started_event_attributes;
    EXPECT_EQ(started->n_partition_config, 1);
    EXPECT_TEXT(started->partition_config[0]->value, "zone-7");
    fixture->header_count = 0;
}

TEST(isolation, a_call_that_was_sent_on_has_the_group_of_its_client, "A-002")
{
    fixture_run(forwarded);
}

/* --- operators drain groups
 * ----------------------------------------------------------------------- */

#define ADMIN_API   "/uber.cadence.admin.v1.AdminAPI/"
#define STATE(name) API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_##name)

static API(IsolationGroupConfiguration) *
groups_of(struct fixture *fixture, const char *name, API(IsolationGroupState) state)
{
    struct arena *arena = fixture->arena;
    API(IsolationGroupConfiguration) *groups =
        message_new(arena, API_TYPE(isolation_group_configuration));
    groups->isolation_groups = arena_zalloc(arena, 1, sizeof(void *));
    groups->isolation_groups[0] = message_new(arena, API_TYPE(isolation_group_partition));
    groups->isolation_groups[0]->name = (char *)name;
    groups->isolation_groups[0]->state = state;
    groups->n_isolation_groups = 1;
    return groups;
}

static struct error *
set_global(struct fixture *fixture, API(IsolationGroupConfiguration) *groups)
{
    ADMIN(UpdateGlobalIsolationGroupsRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(update_global_isolation_groups_request));
    ADMIN(UpdateGlobalIsolationGroupsResponse) *response;
    request->isolation_groups = groups;
    return fixture_call(fixture, ADMIN_API "UpdateGlobalIsolationGroups", &request->base,
                        ADMIN_TYPE(update_global_isolation_groups_response), &response);
}

static struct error *
set_domain(struct fixture *fixture, const char *domain, API(IsolationGroupConfiguration) *groups)
{
    ADMIN(UpdateDomainIsolationGroupsRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(update_domain_isolation_groups_request));
    ADMIN(UpdateDomainIsolationGroupsResponse) *response;
    request->domain = (char *)domain;
    request->isolation_groups = groups;
    return fixture_call(fixture, ADMIN_API "UpdateDomainIsolationGroups", &request->base,
                        ADMIN_TYPE(update_domain_isolation_groups_response), &response);
}

static API(IsolationGroupConfiguration) *
get_global(struct fixture *fixture)
{
    ADMIN(GetGlobalIsolationGroupsRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(get_global_isolation_groups_request));
    ADMIN(GetGlobalIsolationGroupsResponse) *response;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetGlobalIsolationGroups", &request->base,
                           ADMIN_TYPE(get_global_isolation_groups_response), &response));
    return response->isolation_groups;
}

static API(IsolationGroupConfiguration) *
get_domain(struct fixture *fixture)
{
    ADMIN(GetDomainIsolationGroupsRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(get_domain_isolation_groups_request));
    ADMIN(GetDomainIsolationGroupsResponse) *response;
    request->domain = "orders";
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDomainIsolationGroups", &request->base,
                           ADMIN_TYPE(get_domain_isolation_groups_response), &response));
    return response->isolation_groups;
}

static void
both_levels(struct fixture *fixture)
{
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    EXPECT_EQ(get_global(fixture)->n_isolation_groups, 0);
    EXPECT_EQ(get_domain(fixture)->n_isolation_groups, 0);
    EXPECT_KIND(set_global(fixture, NULL), ERR_BAD_REQUEST);
    EXPECT_KIND(set_global(fixture, groups_of(fixture, "zone-1", STATE(INVALID))), ERR_BAD_REQUEST);
    EXPECT_KIND(set_domain(fixture, "nobody", groups_of(fixture, "zone-1", STATE(DRAINED))),
                ERR_ENTITY_NOT_EXISTS);

    EXPECT_OK(set_global(fixture, groups_of(fixture, "zone-1", STATE(DRAINED))));
    EXPECT_TEXT(get_global(fixture)->isolation_groups[0]->name, "zone-1");
    EXPECT_EQ(get_global(fixture)->isolation_groups[0]->state, STATE(DRAINED));
    EXPECT_KIND(start_from(fixture, "orders", &zone_1), ERR_BAD_REQUEST);
    EXPECT_OK(start_from(fixture, "orders", &zone_2));

    EXPECT_OK(set_domain(fixture, "orders", groups_of(fixture, "zone-2", STATE(DRAINED))));
    EXPECT_TEXT(get_domain(fixture)->isolation_groups[0]->name, "zone-2");
    EXPECT_KIND(start_from(fixture, "orders", &zone_1), ERR_BAD_REQUEST); /* either counts */
    EXPECT_KIND(start_from(fixture, "orders", &zone_2), ERR_BAD_REQUEST);

    EXPECT_OK(set_global(fixture, groups_of(fixture, "zone-1", STATE(HEALTHY))));
    EXPECT_OK(start_from(fixture, "orders", &zone_1));
    EXPECT_KIND(start_from(fixture, "orders", &zone_2), ERR_BAD_REQUEST);
    EXPECT_OK(set_domain(fixture, "orders", groups_of(fixture, "zone-2", STATE(HEALTHY))));
    EXPECT_OK(start_from(fixture, "orders", &zone_2));
}

TEST(isolation, a_group_is_drained_for_a_domain_or_for_all, "C-030", "C-029")
{
    fixture_run(both_levels);
}

static void
held(struct fixture *fixture)
{
    const struct call_header worker = HEADER("cadence-worker-isolation-group", "zone-1");
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    EXPECT_OK(set_global(fixture, groups_of(fixture, "zone-1", STATE(DRAINED))));
    run_start(fixture, "wf");
    fixture->headers = &worker;
    fixture->header_count = 1;
    fixture->timeout = 5 * NS_PER_S;
    int64_t began = clock_monotonic();
    EXPECT_EQ(poll_decision(fixture, "work")->task_token.len, 0);
    EXPECT(clock_monotonic() - began >= 3900 * NS_PER_MS); /* it waited in vain */
    fixture->header_count = 0;
    EXPECT_OK(set_global(fixture, groups_of(fixture, "zone-1", STATE(HEALTHY))));
    fixture->header_count = 1;
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
    fixture->header_count = 0;
}

TEST(isolation, a_poller_of_a_drained_group_waits_and_gets_nothing, "C-029")
{
    fixture_run(held);
}

/* The group travels from the client that starts over the run to the poller. */
static void
ten_of_ten(struct fixture *fixture)
{
    const struct call_header worker = HEADER("cadence-worker-isolation-group", "zone-1");
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(start_from(fixture, "orders", &zone_2));
        EXPECT_OK(start_from(fixture, "orders", &zone_1));
        fixture->headers = &worker;
        fixture->header_count = 1;
        API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
        EXPECT(task->task_token.len > 0);
        fixture->header_count = 0;
    }
}

TEST(isolation, pollers_of_a_group_are_served_whatever_group_waits, "C-027")
{
    fixture_run(ten_of_ten);
}
