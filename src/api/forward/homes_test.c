/* homes_test.c - an active-active domain as clients see it: where its workflows are active, what
 * lists find by that, its failovers, and what cannot be taken from it while workflows need it.
 *
 * One server, cluster "east" of the samples' group; cities a, b and c are attributes. */
#include "api/test/listing.h"
#include "domain/test/samples.h"

static void
open_cities(struct fixture *fixture)
{
    fixture_set(fixture,
                "frontend.enableActiveClusterSelectionPolicyInStartWorkflow: [{value: true}]\n");
    listing_wait(fixture);
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:east,city.b:east,city.c:west,region.eu:east", fixture->arena);
    request->name = "cities";
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

/* Of a city; NULL: of none. */
static API(StartWorkflowExecutionRequest) *
start_of(struct fixture *fixture, const char *workflow_id, const char *city)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, workflow_id);
    start->domain = "cities";
    if (city != NULL) {
        start->active_cluster_selection_policy =
            API_NEW(fixture->arena, active_cluster_selection_policy,
                    .cluster_attribute = API_NEW(fixture->arena, cluster_attribute, .scope = "city",
                                                 .name = (char *)city));
    }
    return start;
}

static void
start_in(struct fixture *fixture, const char *workflow_id, const char *city)
{
    run_start_by(fixture, start_of(fixture, workflow_id, city));
}

static void
move(struct fixture *fixture, const char *cluster, const char *attributes)
{
    API(FailoverDomainRequest) *request = sample_failover(cluster, attributes, fixture->arena);
    request->domain_name = "cities";
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static const char *
ids_of(struct fixture *fixture, const char *query)
{
    API(ListWorkflowExecutionsRequest) *request =
        listing_by_query(fixture, arena_format(fixture->arena, "%s ORDER BY WorkflowID", query));
    const char *ids = "";
    request->domain = "cities";
    API(ListWorkflowExecutionsResponse) *response = fixture_ok(fixture, request);
    for (size_t i = 0; i < response->n_executions; i++)
        ids = arena_format(fixture->arena, "%s%s%s", ids, i > 0 ? "," : "",
                           response->executions[i]->workflow_execution->workflow_id);
    return ids;
}

static API(Domain) *
describe_cities(struct fixture *fixture)
{
    API(DescribeDomainResponse) *described = API_OK(
        fixture, describe_domain,
        .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME), .name = "cities");
    return described->domain;
}

/* --- where workflows are ---- */

SERVER_TEST_IN(homes, lists_find_workflows_by_the_cluster_that_they_are_active_in,
               fixture_run_in(sample_group(EAST), body))
{
    open_cities(fixture);
    start_in(fixture, "wf-a", "a");
    start_in(fixture, "wf-b", "b");
    start_in(fixture, "wf-none", NULL);
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "wf-a,wf-b,wf-none");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'west'"), "");
    move(fixture, NULL, "city.a:west");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "wf-b,wf-none");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'west'"), "wf-a");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster != 'west'"), "wf-b,wf-none");
    move(fixture, "north", NULL);
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster IN ('west', 'north')"), "wf-a,wf-none");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'moon' OR WorkflowID = 'wf-b'"), "wf-b");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = missing"), "");
    EXPECT_TEXT(ids_of(fixture, "ClusterAttributeScope = 'city' AND ClusterAttributeName = 'b'"),
                "wf-b");
    EXPECT_TEXT(ids_of(fixture, "ClusterAttributeName = missing"), "wf-none");

    static const char *const bad[] = {"ActiveCluster > 'east'", "ActiveCluster LIKE 'ea%'",
                                      "WorkflowID = 'x' ORDER BY ActiveCluster"};
    for (size_t i = 0; i < array_length(bad); i++) {
        API(ListWorkflowExecutionsRequest) *request = listing_by_query(fixture, bad[i]);
        request->domain = "cities";
        EXPECT_KIND(fixture_call(fixture, request, NULL), ERR_BAD_REQUEST);
    }
}

SERVER_TEST_IN(homes, of_a_domain_without_attributes_all_workflows_are_in_one_cluster,
               fixture_run_in(sample_group(EAST), body))
{
    listing_wait(fixture);
    run_start(fixture, "wf"); /* of a domain in this cluster alone */
    const char *here = fixture->group->current->name;
    EXPECT_TEXT(list_ids(fixture, arena_format(fixture->arena, "ActiveCluster = '%s'", here)),
                "wf");
    EXPECT_TEXT(list_ids(fixture, "ActiveCluster = 'west'"), "");
    EXPECT_TEXT(list_ids(fixture, "ActiveCluster != 'west'"), "wf");
}

static API(DescribeWorkflowExecutionResponse) *
describe_run(struct fixture *fixture, const char *workflow_id)
{
    API(DescribeWorkflowExecutionRequest) *request = fixture_describe(fixture, workflow_id, "");
    request->domain = "cities";
    return fixture_ok(fixture, request);
}

static void
described(struct fixture *fixture)
{
    open_cities(fixture);
    start_in(fixture, "wf-a", "a");
    start_in(fixture, "wf-none", NULL);
    move(fixture, NULL, "city.a:west");
    const API(DescribeWorkflowExecutionResponse) *run = describe_run(fixture, "wf-a");
    const API(ActiveClusterSelectionPolicy) *policy =
        run->workflow_execution_info->active_cluster_selection_policy;
    EXPECT_TEXT(policy->cluster_attribute->scope, "city");
    EXPECT_TEXT(policy->cluster_attribute->name, "a");
    EXPECT_TEXT(run->active_cluster->active_cluster_name, "west");
    EXPECT_EQ(run->active_cluster->failover_version, 1);
    run = describe_run(fixture, "wf-none");
    EXPECT_TEXT(run->active_cluster->active_cluster_name, "east");
    EXPECT_EQ(run->active_cluster->failover_version, 10);

    const API(Domain) *domain = describe_cities(fixture);
    EXPECT_TEXT(sample_print(domain->active_clusters, fixture->arena),
                "city.a:west=1,city.b:east=0,city.c:west=1,region.eu:east=0");
    EXPECT_TEXT(domain->active_cluster_name, "east");
    EXPECT_EQ(domain->failover_version, 10);
    EXPECT_EQ(domain->active_clusters->n_region_to_cluster, 1); /* the older form as well */
    EXPECT_TEXT(domain->active_clusters->region_to_cluster[0]->key, "eu");
    EXPECT_TEXT(domain->active_clusters->region_to_cluster[0]->value->active_cluster_name, "east");
}

TEST(homes, descriptions_say_where_a_domain_and_a_workflow_are_active, "G-008")
{
    fixture_run_in(sample_group(EAST), described);
}

SERVER_TEST_IN(homes, the_history_of_failovers_is_listed_by_attribute,
               fixture_run_in(sample_group(EAST), body))
{
    open_cities(fixture);
    move(fixture, NULL, "city.a:west");
    move(fixture, "west", NULL);
    move(fixture, NULL, "city.b:north,region.eu:west");
    move(fixture, NULL, "city.a:north");
    static const struct {
        const char *scope, *name;
        size_t count;
    } cases[] = {
        {NULL, NULL, 4}, {"city", "a", 2}, {"city", "", 3}, {"region", "eu", 1}, {"city", "c", 0}};
    for (size_t i = 0; i < array_length(cases); i++) {
        API(ListFailoverHistoryRequest) *request =
            API_NEW(fixture->arena, list_failover_history_request,
                    .filters = API_NEW(fixture->arena, list_failover_history_request_filters,
                                       .domain_id = describe_cities(fixture)->id));
        if (cases[i].scope != NULL) {
            request->filters->cluster_attribute =
                API_NEW(fixture->arena, cluster_attribute, .scope = (char *)cases[i].scope,
                        .name = (char *)cases[i].name);
        }
        API(ListFailoverHistoryResponse) *response = fixture_ok(fixture, request);
        EXPECT_EQ(response->n_failover_events, cases[i].count);
    }
}

/* --- what workflows need ---- */

static struct error *
change(struct fixture *fixture, API(UpdateDomainRequest) *request)
{
    request->name = "cities";
    return fixture_call(fixture, request, NULL);
}

SERVER_TEST_IN(homes, an_attribute_that_open_workflows_need_goes_only_by_force,
               fixture_run_in(sample_group(EAST), body))
{
    open_cities(fixture);
    start_in(fixture, "wf-1", "a");
    start_in(fixture, "wf-2", "a");
    start_in(fixture, "wf-3", "b");
    EXPECT_BAD_REQUEST(change(fixture, sample_removal("city", "a", fixture->arena)),
                       "2 open workflows of domain cities belong to the cluster attributes");
    EXPECT_BAD_REQUEST(change(fixture, sample_removal("city", "", fixture->arena)),
                       "3 open workflows of domain cities belong");
    EXPECT_OK(change(fixture, sample_removal("city", "c", fixture->arena))); /* nobody needs it */
    API(UpdateDomainRequest) *forced = sample_removal("city", "b", fixture->arena);
    forced->is_forced = true;
    EXPECT_OK(change(fixture, forced));
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = missing"), "wf-3");
    EXPECT(describe_run(fixture, "wf-3")->active_cluster == NULL); /* active nowhere */
    /* without any attribute the domain itself decides: nothing is lost */
    API(UpdateDomainRequest) *all = sample_update("", fixture->arena);
    all->removes_all_attributes = true;
    EXPECT_OK(change(fixture, all));
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "wf-1,wf-2,wf-3");
    EXPECT_TEXT(describe_run(fixture, "wf-1")->active_cluster->active_cluster_name, "east");
    start_in(fixture, "wf-4", "a"); /* by a client that has not heard of it */
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "wf-1,wf-2,wf-3,wf-4");
    EXPECT_BAD_REQUEST(fixture_call(fixture, start_of(fixture, "wf-5", "never"), NULL),
                       "a cluster attribute that is not found");
}

/* Its cluster leaves the domain in the same request that moves it away. */
SERVER_TEST_IN(homes, a_cluster_that_open_workflows_need_leaves_only_by_force,
               fixture_run_in(sample_group(EAST), body), "G-059")
{
    open_cities(fixture);
    start_in(fixture, "wf-a", "a");
    start_in(fixture, "wf-none", NULL);
    API(UpdateDomainRequest) *request =
        sample_update("clusters,active_clusters,active_cluster_name", fixture->arena);
    request->clusters = sample_clusters(fixture->arena, 3) + 1; /* without east */
    request->n_clusters = 2;
    request->active_cluster_name = "west";
    request->active_clusters =
        sample_attributes("city.a:west,city.b:west,region.eu:north", fixture->arena);
    EXPECT_BAD_REQUEST(change(fixture, request),
                       "2 open workflows of domain cities are active in cluster east");
    request->is_forced = true;
    EXPECT_OK(change(fixture, request));
    EXPECT_EQ(describe_cities(fixture)->n_clusters, 2);
    /* and now nobody can count here */
    EXPECT_BAD_REQUEST(change(fixture, sample_removal("city", "a", fixture->arena)),
                       "cannot count");
}
