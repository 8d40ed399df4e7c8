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
    ADMIN(ReplicationTask) *task = ADMIN_NEW(
        arena, replication_task,
        .task_type = ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_DOMAIN),
        .source_task_id = 1,
        .attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES));
    ADMIN(DomainTaskAttributes) *attributes = ADMIN_NEW(arena, domain_task_attributes);
    task->domain_task_attributes = attributes;
    attributes->domain_operation = ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
    attributes->id = fixture_uuid(fixture);
    API(Domain) *domain = attributes->domain = API_NEW(arena, domain);
    domain->id = attributes->id;
    domain->name = "drained";
    domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED);
    domain->is_global_domain = true;
    domain->active_cluster_name = (char *)cluster;
    domain->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    domain->n_clusters = 1;
    domain->clusters = arena_zalloc(arena, 1, sizeof(void *));
    domain->clusters[0] =
        API_NEW(arena, cluster_replication_configuration, .cluster_name = (char *)cluster);
    domain->isolation_groups = API_NEW(arena, isolation_group_configuration,
                                       .isolation_groups = arena_zalloc(arena, 2, sizeof(void *)));
    for (size_t i = 0; i < 2; i++) {
        API(IsolationGroupPartition) *group = API_NEW(
            arena, isolation_group_partition, .name = i == 0 ? "zone-1" : "zone-2",
            .state = i == 0 ? API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED)
                            : API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_HEALTHY));
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
    request->domain = (char *)domain;
    fixture->headers = header;
    fixture->header_count = header == NULL ? 0 : 1;
    struct error *err = fixture_call(fixture, request, NULL);
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

SERVER_TEST(isolation, neither_by_a_signal_nor_by_a_restart, "A-047")
{
    add_domain(fixture);
    API(SignalWithStartWorkflowExecutionRequest) *both =
        API_NEW(fixture->arena, signal_with_start_workflow_execution_request,
                .start_request = fixture_start(fixture, "wf"));
    both->start_request->domain = "drained";
    both->signal_name = "go";
    fixture_set(fixture, "system.enableTasklistIsolation:\n- value: true\n");
    fixture->headers = &zone_1;
    fixture->header_count = 1;
    struct error *err = fixture_call(fixture, both, NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");

    err = API_CALL(fixture, NULL, signal_workflow_execution, .domain = "drained",
                   .workflow_execution = fixture_execution(fixture, "wf"), .signal_name = "go");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");

    err = API_CALL(fixture, NULL, restart_workflow_execution, .domain = "drained",
                   .workflow_execution = fixture_execution(fixture, "wf"));
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Domain drained is drained from isolation group zone-1.");
    fixture->header_count = 0;
}

/* Everything that clients of Cadence send along is taken; what it is for may come later. */
SERVER_TEST(isolation, the_group_that_a_client_is_in_is_kept_with_the_run_that_it_starts, "A-002")
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

/* Another cluster sent the call on: its client's group is in the config that came along. */
SERVER_TEST(isolation, a_call_that_was_sent_on_has_the_group_of_its_client, "A-002")
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

/* --- operators drain groups
 * ----------------------------------------------------------------------- */

#define STATE(name) API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_##name)

static API(IsolationGroupConfiguration) *
groups_of(struct fixture *fixture, const char *name, API(IsolationGroupState) state)
{
    struct arena *arena = fixture->arena;
    API(IsolationGroupConfiguration) *groups =
        API_NEW(arena, isolation_group_configuration,
                .isolation_groups = arena_zalloc(arena, 1, sizeof(void *)));
    groups->isolation_groups[0] =
        API_NEW(arena, isolation_group_partition, .name = (char *)name, .state = state);
    groups->n_isolation_groups = 1;
    return groups;
}

static struct error *
set_global(struct fixture *fixture, API(IsolationGroupConfiguration) *groups)
{
    return ADMIN_CALL(fixture, NULL, update_global_isolation_groups, .isolation_groups = groups);
}

static struct error *
set_domain(struct fixture *fixture, const char *domain, API(IsolationGroupConfiguration) *groups)
{
    return ADMIN_CALL(fixture, NULL, update_domain_isolation_groups, .domain = (char *)domain,
                      .isolation_groups = groups);
}

static API(IsolationGroupConfiguration) *
get_global(struct fixture *fixture)
{
    ADMIN(GetGlobalIsolationGroupsResponse) *response =
        ADMIN_OK(fixture, get_global_isolation_groups);
    return response->isolation_groups;
}

static API(IsolationGroupConfiguration) *
get_domain(struct fixture *fixture)
{
    ADMIN(GetDomainIsolationGroupsResponse) *response =
        ADMIN_OK(fixture, get_domain_isolation_groups, .domain = "orders");
    return response->isolation_groups;
}

SERVER_TEST(isolation, a_group_is_drained_for_a_domain_or_for_all, "C-030", "C-029")
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

SERVER_TEST(isolation, a_poller_of_a_drained_group_waits_and_gets_nothing, "C-029")
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

/* The group travels from the client that starts over the run to the poller. */
SERVER_TEST(isolation, pollers_of_a_group_are_served_whatever_group_waits, "C-027")
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
