/* managed_test.c - managed failovers in a server of a group of two, as Cadence's tools start them.
 */
#include "system/managed.h"

#include "api/workflow/diagnose.h"
#include "engine/run/mutation.h"
#include "fiber/fiber.h"
#include "system/test_fixture.h"
#include "system/test_managed_sample.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"

#define DOMAINS 5

/* --- the domains ---- */

static const char *
name(struct fixture *fixture, int number)
{
    return arena_format(fixture->arena, "managed-%d", number);
}

static void
set_cluster(struct fixture *fixture, API(RegisterDomainRequest) *request)
{
    request->active_cluster_name = "cluster0";
    request->n_clusters = 2;
    request->clusters = arena_zalloc(fixture->arena, 2, sizeof request->clusters[0]);
    for (int i = 0; i < 2; i++) {
        request->clusters[i] =
            API_NEW(fixture->arena, cluster_replication_configuration,
                    .cluster_name = arena_format(fixture->arena, "cluster%d", i));
    }
}

static void
set_datum(struct fixture *fixture, API(RegisterDomainRequest) *request, const char *key,
          const char *value)
{
    if (request->data == NULL)
        request->data = arena_zalloc(fixture->arena, 4, sizeof request->data[0]);
    API(RegisterDomainRequest__DataEntry) *entry =
        message_new(fixture->arena, API_TYPE(register_domain_request__data_entry));
    entry->key = (char *)key;
    entry->value = (char *)value;
    request->data[request->n_data++] = entry;
}

/* Registers a managed domain that is active here. */
static void
register_request(struct fixture *fixture, API(RegisterDomainRequest) *request)
{
    request->is_global_domain = true;
    set_cluster(fixture, request);
    set_datum(fixture, request, "IsManagedByCadence", "true");
    request->workflow_execution_retention_period = presence_make_duration(fixture->arena, 86400);
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

/* `preferred` NULL: it says nothing. */
static void
register_managed(struct fixture *fixture, const char *domain, const char *preferred)
{
    API(RegisterDomainRequest) *request =
        API_NEW(fixture->arena, register_domain_request, .name = (char *)domain);
    if (preferred != NULL)
        set_datum(fixture, request, "PreferredCluster", preferred);
    register_request(fixture, request);
}

/* Attribute region:one is here and region:two in cluster1; its data prefer the latter here, too. */
static void
register_active_active(struct fixture *fixture, const char *domain)
{
    API(RegisterDomainRequest) *request =
        API_NEW(fixture->arena, register_domain_request, .name = (char *)domain,
                .active_clusters = sample_attributes(fixture->arena, "cluster0", "cluster1"));
    set_datum(fixture, request, "ClusterAttributePreferences",
              "[{\"scope\":\"region\",\"name\":\"one\",\"preferredCluster\":\"cluster0\"},"
              "{\"scope\":\"region\",\"name\":\"two\",\"preferredCluster\":\"cluster0\"}]");
    register_request(fixture, request);
}

/* Where both attributes are. */
static const char *
attributes_of(struct fixture *fixture, const char *domain)
{
    return sample_clusters(
        domains_find_name(fixture->domains, domain)->record->domain->active_clusters,
        fixture->arena);
}

static const char *
active(struct fixture *fixture, const char *domain)
{
    return arena_text(
        fixture->arena,
        domains_find_name(fixture->domains, domain)->record->domain->active_cluster_name);
}

static int
count_moved(struct fixture *fixture)
{
    int moved = 0;
    for (int i = 0; i < DOMAINS; i++)
        moved += strcmp(active(fixture, name(fixture, i)), "cluster1") == 0;
    return moved;
}

/* --- the run ---- */

static void
start(struct fixture *fixture, const char *id, const char *type, const char *input)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, id);
    request->domain = SYSTEM_DOMAIN;
    request->workflow_type->name = (char *)type;
    request->task_list = fixture_list(fixture, MANAGED_LIST);
    request->input = fixture_payload(fixture, input);
    request->memo = API_NEW(fixture->arena, memo, .n_fields = 1);
    request->memo->fields = arena_zalloc(fixture->arena, 1, sizeof request->memo->fields[0]);
    request->memo->fields[0] = message_new(fixture->arena, API_TYPE(memo__fields_entry));
    request->memo->fields[0]->key = "operator";
    request->memo->fields[0]->value = fixture_payload(fixture, "\"ann\"");
    request->execution_start_to_close_timeout = presence_make_duration(fixture->arena, 1200);
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static void
signal_run(struct fixture *fixture, const char *id, const char *signal)
{
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, signal_workflow_execution_request, .domain = SYSTEM_DOMAIN,
        .workflow_execution = fixture_execution(fixture, id), .signal_name = (char *)signal);
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static const char *
ask(struct fixture *fixture, const char *id)
{
    API(QueryWorkflowResponse) *response =
        API_OK(fixture, query_workflow, .domain = SYSTEM_DOMAIN,
               .workflow_execution = fixture_execution(fixture, id),
               .query = API_NEW(fixture->arena, workflow_query, .query_type = MANAGED_QUERY));
    return arena_text_of(fixture->arena, presence_read_payload(response->query_result).bytes);
}

static void
expect_state(struct fixture *fixture, const char *id, const char *part)
{
    const char *state = ask(fixture, id);
    if (strstr(state, part) == NULL)
        EXPECT_TEXT(state, part); /* shows both */
}

static const API(HistoryEvent) *
wait_closed(struct fixture *fixture, const char *id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = fixture_history(fixture, id);
    request->domain = SYSTEM_DOMAIN;
    request->wait_for_new_event = true;
    request->history_event_filter_type =
        API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    for (;;) {
        API(GetWorkflowExecutionHistoryResponse) *read = read_history(fixture, request);
        if (read->history->n_events > 0)
            return read->history->events[0];
        request->next_page_token = read->next_page_token;
    }
}

static const char *
wait_result(struct fixture *fixture, const char *id)
{
    const API(HistoryEvent) *last = wait_closed(fixture, id);
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    return arena_text_of(
        fixture->arena,
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes);
}

static void
open_scene(struct fixture *fixture)
{
    fixture->timeout = 60 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    for (int i = 0; i < DOMAINS; i++)
        register_managed(fixture, name(fixture, i), NULL);
}

/* --- stories ---- */

SERVER_TEST_IN(managed, domains_are_failed_over_in_batches_and_a_pause_holds_them,
               fixture_run_in_group(body), "A-265")
{
    open_scene(fixture);
    start(fixture, "cadence-failover-manager", MANAGED_FAILOVER,
          "{\"TargetCluster\":\"cluster1\",\"SourceCluster\":\"cluster0\",\"BatchFailoverSize\":2,"
          "\"BatchFailoverWaitTimeInSeconds\":10,\"Domains\":null,\"DrillWaitTime\":0,"
          "\"GracefulFailoverTimeoutInSeconds\":null}");
    EXPECT_OK(fiber_sleep(5 * NS_PER_S, fixture->arena));
    EXPECT_EQ(count_moved(fixture), 2);
    expect_state(fixture, "cadence-failover-manager",
                 "{\"TotalDomains\":5,\"Success\":2,\"Failed\":0,\"State\":\"running\","
                 "\"TargetCluster\":\"cluster1\",\"SourceCluster\":\"cluster0\","
                 "\"SuccessDomains\":[\"managed-0\",\"managed-1\"],\"FailedDomains\":null,"
                 "\"SuccessResetDomains\":null,\"FailedResetDomains\":null,\"Operator\":\"ann\"}");
    signal_run(fixture, "cadence-failover-manager", MANAGED_PAUSE);
    EXPECT_OK(fiber_sleep(100 * NS_PER_S, fixture->arena));
    EXPECT_EQ(count_moved(fixture), 2);
    expect_state(fixture, "cadence-failover-manager", "\"State\":\"paused\"");
    signal_run(fixture, "cadence-failover-manager", MANAGED_RESUME);
    EXPECT_OK(fiber_sleep(5 * NS_PER_S, fixture->arena));
    EXPECT_EQ(count_moved(fixture), 4);
    EXPECT_TEXT(wait_result(fixture, "cadence-failover-manager"),
                "{\"SuccessDomains\":[\"managed-0\",\"managed-1\",\"managed-2\",\"managed-3\","
                "\"managed-4\"],\"FailedDomains\":null,\"SuccessResetDomains\":null,"
                "\"FailedResetDomains\":null}");
    EXPECT_EQ(count_moved(fixture), DOMAINS);
    EXPECT_TEXT(active(fixture, "orders"), "cluster0"); /* not managed */
    expect_state(fixture, "cadence-failover-manager", "\"State\":\"complete\"");
}

SERVER_TEST_IN(managed, a_drill_brings_the_domains_back_after_its_wait, fixture_run_in_group(body))
{
    open_scene(fixture);
    start(fixture, "cadence-failover-manager-drill", MANAGED_FAILOVER,
          "{\"TargetCluster\":\"cluster1\",\"SourceCluster\":\"cluster0\","
          "\"Domains\":[\"managed-1\",\"managed-3\",\"orders\"],\"DrillWaitTime\":60000000000}");
    EXPECT_OK(fiber_sleep(10 * NS_PER_S, fixture->arena));
    EXPECT_EQ(count_moved(fixture), 2);
    EXPECT_TEXT(wait_result(fixture, "cadence-failover-manager-drill"),
                "{\"SuccessDomains\":[\"managed-1\",\"managed-3\"],\"FailedDomains\":null,"
                "\"SuccessResetDomains\":[\"managed-1\",\"managed-3\"],"
                "\"FailedResetDomains\":null}");
    EXPECT_EQ(count_moved(fixture), 0);
}

SERVER_TEST_IN(managed, what_cannot_be_done_changes_nothing_and_says_why,
               fixture_run_in_group(body))
{
    open_scene(fixture);
    start(fixture, "graceful", MANAGED_FAILOVER,
          "{\"TargetCluster\":\"cluster1\",\"SourceCluster\":\"cluster0\","
          "\"GracefulFailoverTimeoutInSeconds\":30}");
    /* It begins where the domains go to, and that cluster does not answer. */
    const char *result = wait_result(fixture, "graceful");
    EXPECT(strstr(result, "\"SuccessDomains\":[],\"FailedDomains\":[{\"DomainName\":\"") != NULL ||
           strstr(result, "\"SuccessDomains\":null") != NULL);
    EXPECT_EQ(count_moved(fixture), 0);
    start(fixture, "nowhere", MANAGED_FAILOVER_V2,
          "{\"TargetCluster\":\"north\",\"SourceClusters\":[\"cluster0\"],"
          "\"Domains\":[\"managed-2\"]}");
    result = wait_result(fixture, "nowhere");
    EXPECT(strstr(result, "\"SuccessDomains\":[],\"FailedDomains\":[{\"DomainName\":\"managed-2\","
                          "\"Error\":\"") != NULL);
    EXPECT_EQ(count_moved(fixture), 0);
}

/* A worker of the domain asks for decisions, once. */
static void
poll_once(struct fixture *fixture, const char *domain)
{
    EXPECT_OK(API_CALL(fixture, NULL, poll_for_decision_task, .domain = (char *)domain,
                       .task_list = fixture_list(fixture, "work"), .identity = "worker"));
}

SERVER_TEST_IN(managed, a_domain_with_workers_stays_when_the_target_cannot_say_that_they_are_there,
               fixture_run_in_group(body))
{
    open_scene(fixture);
    poll_once(fixture, "managed-0");
    start(fixture, "cadence-failover-manager", MANAGED_FAILOVER,
          "{\"TargetCluster\":\"cluster1\",\"SourceCluster\":\"cluster0\","
          "\"Domains\":[\"managed-0\",\"managed-1\"]}");
    EXPECT_TEXT(wait_result(fixture, "cadence-failover-manager"),
                "{\"SuccessDomains\":[\"managed-1\"],\"FailedDomains\":[\"managed-0\"],"
                "\"SuccessResetDomains\":null,\"FailedResetDomains\":null}");
    EXPECT_TEXT(active(fixture, "managed-0"), "cluster0");
}

SERVER_TEST_IN(managed, the_newer_failover_remembers_where_the_domains_were,
               fixture_run_in_group(body))
{
    open_scene(fixture);
    start(fixture, "cadence-failover-v2", MANAGED_FAILOVER_V2,
          "{\"SourceClusters\":[\"cluster0\"],\"TargetCluster\":\"cluster1\",\"BatchSize\":20,"
          "\"WaitBetweenBatchSeconds\":30,\"Domains\":[\"managed-4\"],\"ClusterAttributes\":null}");
    EXPECT_TEXT(wait_result(fixture, "cadence-failover-v2"),
                "{\"SuccessDomains\":[{\"DomainName\":\"managed-4\"}],\"FailedDomains\":[],"
                "\"Snapshots\":[{\"DomainName\":\"managed-4\",\"PreviousActiveCluster\":"
                "\"cluster0\",\"PreviousClusterAttributes\":[]}]}");
    EXPECT_EQ(count_moved(fixture), 1);
    EXPECT_TEXT(active(fixture, "managed-4"), "cluster1");
}

SERVER_TEST_IN(managed, a_rebalance_brings_each_domain_to_the_cluster_that_it_prefers,
               fixture_run_in_group(body), "F-044", "A-265")
{
    open_scene(fixture);
    register_managed(fixture, "west-1", "cluster1");
    register_managed(fixture, "west-2", "cluster1");
    register_managed(fixture, "east-1", "cluster0");
    start(fixture, "cadence-rebalance-workflow", MANAGED_REBALANCE,
          "{\"BatchFailoverSize\":100,\"BatchFailoverWaitTimeInSeconds\":10}");
    EXPECT_TEXT(wait_result(fixture, "cadence-rebalance-workflow"),
                "{\"SuccessDomains\":[\"west-1\",\"west-2\"],\"FailedDomains\":null}");
    EXPECT_TEXT(active(fixture, "west-1"), "cluster1");
    EXPECT_TEXT(active(fixture, "west-2"), "cluster1");
    EXPECT_TEXT(active(fixture, "east-1"), "cluster0");
    EXPECT_EQ(count_moved(fixture), 0);
    register_managed(fixture, "west-3", "cluster1");
    start(fixture, "cadence-rebalance-v2", MANAGED_REBALANCE_V2,
          "{\"BatchSize\":100,\"WaitBetweenBatchSeconds\":10}");
    EXPECT_TEXT(wait_result(fixture, "cadence-rebalance-v2"),
                "{\"SuccessDomains\":[{\"DomainName\":\"west-3\"}],\"FailedDomains\":[]}");
    EXPECT_TEXT(active(fixture, "west-3"), "cluster1");
}

SERVER_TEST_IN(managed, attributes_go_with_a_failover_and_come_to_where_the_data_prefer_them,
               fixture_run_in_group(body), "F-044")
{
    fixture->timeout = 60 * NS_PER_S;
    fixture_open_system(fixture, &system_types);
    register_active_active(fixture, "trips");
    EXPECT_TEXT(attributes_of(fixture, "trips"), "cluster0 cluster1");
    start(fixture, "cadence-failover-v2", MANAGED_FAILOVER_V2,
          "{\"SourceClusters\":[\"cluster0\"],\"TargetCluster\":\"cluster1\","
          "\"ClusterAttributes\":[{\"scope\":\"region\",\"name\":\"one\"}]}");
    EXPECT_TEXT(wait_result(fixture, "cadence-failover-v2"),
                "{\"SuccessDomains\":[{\"DomainName\":\"trips\"}],\"FailedDomains\":[],"
                "\"Snapshots\":[{\"DomainName\":\"trips\",\"PreviousActiveCluster\":"
                "\"cluster0\",\"PreviousClusterAttributes\":[{\"scope\":\"region\",\"name\":"
                "\"one\",\"preferredCluster\":\"cluster0\"}]}]}");
    EXPECT_TEXT(active(fixture, "trips"), "cluster1");
    EXPECT_TEXT(attributes_of(fixture, "trips"), "cluster1 cluster1");
    start(fixture, "cadence-rebalance-v2", MANAGED_REBALANCE_V2, "{}");
    EXPECT_TEXT(wait_result(fixture, "cadence-rebalance-v2"),
                "{\"SuccessDomains\":[{\"DomainName\":\"trips\"}],\"FailedDomains\":[]}");
    EXPECT_TEXT(attributes_of(fixture, "trips"), "cluster0 cluster0");
    EXPECT_TEXT(active(fixture, "trips"), "cluster1"); /* it prefers none */
}
