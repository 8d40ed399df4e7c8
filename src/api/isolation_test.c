/* isolation_test.c - isolation groups: nothing new from one that was drained. */
#include "api/fixture.h"
#include "wire/names.h"

#define HEADER(name_, value_)                                                                      \
    {                                                                                              \
        SLICE_LITERAL(name_), SLICE_LITERAL(value_)                                                \
    }

/* A domain with a drained group, as it comes from another cluster. */
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
start_from(struct fixture *fixture, const char *domain, const struct grpc_header *header)
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

static const struct grpc_header zone_1 = HEADER("cadence-client-isolation-group", "zone-1");
static const struct grpc_header zone_2 = HEADER("cadence-client-isolation-group", "zone-2");

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
    const struct grpc_header headers[] = {
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

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"

static void
groups_are_set(struct fixture *fixture)
{
    struct arena *arena = fixture->arena;
    ADMIN(UpdateDomainIsolationGroupsRequest) *update =
        message_new(arena, ADMIN_TYPE(update_domain_isolation_groups_request));
    ADMIN(UpdateDomainIsolationGroupsResponse) *updated;
    update->domain = "orders";
    EXPECT_KIND(fixture_call(fixture, ADMIN_API "UpdateDomainIsolationGroups", &update->base,
                             ADMIN_TYPE(update_domain_isolation_groups_response), &updated),
                ERR_BAD_REQUEST);
    API(IsolationGroupPartition) *zone = message_new(arena, API_TYPE(isolation_group_partition));
    zone->name = "zone-1";
    zone->state = API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED);
    update->isolation_groups = message_new(arena, API_TYPE(isolation_group_configuration));
    update->isolation_groups->n_isolation_groups = 1;
    update->isolation_groups->isolation_groups = &zone;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "UpdateDomainIsolationGroups", &update->base,
                           ADMIN_TYPE(update_domain_isolation_groups_response), &updated));
    ADMIN(GetDomainIsolationGroupsRequest) *get =
        message_new(arena, ADMIN_TYPE(get_domain_isolation_groups_request));
    ADMIN(GetDomainIsolationGroupsResponse) *got;
    get->domain = "orders";
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDomainIsolationGroups", &get->base,
                           ADMIN_TYPE(get_domain_isolation_groups_response), &got));
    EXPECT_EQ(got->isolation_groups->n_isolation_groups, 1);
    EXPECT_TEXT(got->isolation_groups->isolation_groups[0]->name, "zone-1");
    get->domain = "nobody";
    EXPECT_KIND(fixture_call(fixture, ADMIN_API "GetDomainIsolationGroups", &get->base,
                             ADMIN_TYPE(get_domain_isolation_groups_response), &got),
                ERR_ENTITY_NOT_EXISTS);
}

TEST(isolation, operators_set_the_groups_of_a_domain, "D-032")
{
    fixture_run(groups_are_set);
}
