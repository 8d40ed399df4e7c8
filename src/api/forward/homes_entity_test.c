/* homes_entity_test.c - workflows that follow entities in lists by the cluster they are active in,
 * and in what cannot be taken from a domain while workflows need it.
 *
 * One server, cluster "east", the primary; regions eu (in east), us (in west) and asia (in west);
 * users are the entities. */
#include "api/test/listing.h"
#include "domain/homes.h"
#include "domain/test/samples.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"

static const struct region regions[] = {{"eu", 5}, {"us", 6}, {"asia", 7}};

static void
run_with_regions(void (*body)(struct fixture *fixture))
{
    struct cluster_group group = *sample_group(EAST);
    group.regions = regions;
    group.region_count = array_length(regions);
    fixture_run_in(&group, body);
}

static void
open_world(struct fixture *fixture)
{
    fixture_set(fixture,
                "frontend.enableActiveClusterSelectionPolicyInStartWorkflow: [{value: true}]\n");
    listing_wait(fixture);
    API(RegisterDomainRequest) *request = sample_register(
        EAST, "region.eu:east,region.us:west,region.asia:west,city.a:east", fixture->arena);
    request->name = "users";
    EXPECT_OK(fixture_call(fixture, request, NULL));
}

static void
place(struct fixture *fixture, const char *user, const char *region)
{
    struct entity_change change = {ENTITY_SET, "user", user, region, "operator"};
    EXPECT_OK(domains_set_entities(fixture->domains, &change, 1, fixture->arena));
}

static API(ActiveClusterSelectionPolicy) *
policy_of(struct fixture *fixture, const char *scope, const char *name)
{
    return API_NEW(fixture->arena, active_cluster_selection_policy,
                   .cluster_attribute = API_NEW(fixture->arena, cluster_attribute,
                                                .scope = (char *)scope, .name = (char *)name));
}

static void
start(struct fixture *fixture, const char *workflow_id, const char *scope, const char *name)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, workflow_id);
    request->domain = "users";
    request->active_cluster_selection_policy = policy_of(fixture, scope, name);
    run_start_by(fixture, request);
}

/* By pages of two, and as many as are counted. */
static const char *
ids_of(struct fixture *fixture, const char *query)
{
    API(ListWorkflowExecutionsRequest) *request =
        listing_by_query(fixture, arena_format(fixture->arena, "%s ORDER BY WorkflowID", query));
    API(ListWorkflowExecutionsResponse) *page;
    const char *ids = "";
    int64_t count = 0;
    request->domain = "users";
    request->page_size = 2;
    do {
        page = fixture_ok(fixture, request);
        for (size_t i = 0; i < page->n_executions; i++)
            ids = arena_format(fixture->arena, "%s%s%s", ids, count++ > 0 ? "," : "",
                               page->executions[i]->workflow_execution->workflow_id);
        request->next_page_token = page->next_page_token;
    } while (page->next_page_token.len > 0);
    API(CountWorkflowExecutionsResponse) *counted =
        API_OK(fixture, count_workflow_executions, .domain = "users", .query = (char *)query);
    EXPECT_EQ(counted->count, count);
    return ids;
}

SERVER_TEST_IN(homes_entity,
               lists_find_workflows_of_entities_by_the_cluster_that_they_are_active_in,
               run_with_regions(body))
{
    open_world(fixture);
    for (int i = 0; i < 5; i++) {
        const char *user = arena_format(fixture->arena, "user-%d", i);
        place(fixture, user, "eu");
        start(fixture, arena_format(fixture->arena, "wf-%d", i), "user", user);
    }
    start(fixture, "wf-city", "city", "a");
    start(fixture, "wf-eu", "region", "eu");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"),
                "wf-0,wf-1,wf-2,wf-3,wf-4,wf-city,wf-eu");
    place(fixture, "user-1", "us"); /* it moves, and all that asks sees it */
    place(fixture, "user-3", "asia");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'west'"), "wf-1,wf-3");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "wf-0,wf-2,wf-4,wf-city,wf-eu");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster != 'east' AND WorkflowID != 'wf-1'"), "wf-3");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster IN ('west', 'north')"), "wf-1,wf-3");
    EXPECT_TEXT(ids_of(fixture, "NOT (ActiveCluster = 'east' OR WorkflowID = 'wf-3')"), "wf-1");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = missing"), "");

    API(FailoverDomainRequest) *failover =
        sample_failover(NULL, "region.asia:north", fixture->arena);
    failover->domain_name = "users";
    EXPECT_OK(fixture_call(fixture, failover, NULL));
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'north'"), "wf-3");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'west'"), "wf-1");
}

/* More attributes than a query could name. */
SERVER_TEST_IN(homes_entity, a_domain_of_more_attributes_than_a_query_has_words_is_asked,
               run_with_regions(body))
{
    open_world(fixture);
    const char *all = "region.eu:east";
    for (int i = 0; i < 1500; i++)
        all = arena_format(fixture->arena, "%s,city.c%04d:%s", all, i, i % 2 ? "west" : "east");
    API(RegisterDomainRequest) *request = sample_register(EAST, all, fixture->arena);
    request->name = "many";
    EXPECT_OK(fixture_call(fixture, request, NULL));
    API(ListWorkflowExecutionsRequest) *list =
        listing_by_query(fixture, "ActiveCluster = 'west' AND CloseTime = missing");
    list->domain = "many";
    API(ListWorkflowExecutionsResponse) *page = fixture_ok(fixture, list);
    EXPECT_EQ(page->n_executions, 0);
}

/* --- what workflows need ---- */

static struct error *
change(struct fixture *fixture, API(UpdateDomainRequest) *request)
{
    request->name = "users";
    return fixture_call(fixture, request, NULL);
}

/* East leaves the domain in the request that moves all of it away. */
static API(UpdateDomainRequest) *
leaving(struct fixture *fixture)
{
    API(UpdateDomainRequest) *request =
        sample_update("clusters,active_clusters,active_cluster_name", fixture->arena);
    request->clusters = sample_clusters(fixture->arena, 3) + 1;
    request->n_clusters = 2;
    request->active_cluster_name = "west";
    request->active_clusters = sample_attributes("region.eu:north,city.a:west", fixture->arena);
    return request;
}

SERVER_TEST_IN(homes_entity, what_workflows_of_entities_need_goes_only_by_force,
               run_with_regions(body))
{
    open_world(fixture);
    place(fixture, "ann", "eu");
    place(fixture, "bob", "us");
    place(fixture, "cid", "eu");
    start(fixture, "wf-ann", "user", "ann");
    start(fixture, "wf-cid", "user", "cid");
    EXPECT_BAD_REQUEST(change(fixture, leaving(fixture)),
                       "2 open workflows of domain users are active in cluster east");
    EXPECT_BAD_REQUEST(
        change(fixture, sample_removal("region", "eu", fixture->arena)),
        "2 open workflows of domain users belong to the cluster attributes that would go");
    place(fixture, "cid", "us"); /* one has moved away */
    EXPECT_BAD_REQUEST(change(fixture, leaving(fixture)),
                       "1 open workflow of domain users is active in cluster east");
    EXPECT_BAD_REQUEST(change(fixture, sample_removal("region", "us", fixture->arena)),
                       "1 open workflow of domain users");
    EXPECT_OK(
        change(fixture, sample_removal("region", "asia", fixture->arena))); /* nobody is there */
    place(fixture, "ann", "us");
    EXPECT_OK(change(fixture, leaving(fixture)));
}

/* A run came by replication, the row of its entity has not: nobody here knows where it is. */
SERVER_TEST_IN(homes_entity, a_workflow_whose_entity_is_not_known_here_may_need_anything,
               run_with_regions(body))
{
    open_world(fixture);
    API(WorkflowExecutionInfo) *info =
        API_NEW(fixture->arena, workflow_execution_info,
                .workflow_execution = fixture_execution(fixture, "wf-ghost"),
                .type = API_NEW(fixture->arena, workflow_type),
                .start_time = message_new(fixture->arena, &google__protobuf__timestamp__descriptor),
                .active_cluster_selection_policy = policy_of(fixture, "user", "ghost"));
    struct visibility_change seen = {
        .shard = 1000,
        .row = 1,
        .domain_id = domains_find_name(fixture->domains, "users")->id,
        .workflow_id = "wf-ghost",
        .run_id = "6f1c0a8e-0000-4000-8000-000000000001",
        .info = message_encode(fixture->arena, &info->base),
        .num_clusters = 2,
    };
    EXPECT_OK(visibility_feed(fixture->visibility, &seen, 1, registry_set(fixture->registry),
                              fixture->arena));
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'east'"), "");
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = missing"), ""); /* it is somewhere */
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = '?'"), "wf-ghost");
    EXPECT_BAD_REQUEST(
        change(fixture, leaving(fixture)),
        "1 open workflow of domain users belongs to entities that cluster east has not "
        "learnt of yet");
    EXPECT_BAD_REQUEST(change(fixture, sample_removal("region", "eu", fixture->arena)),
                       "has not learnt of yet");
    place(fixture, "ghost", "us");
    EXPECT_OK(change(fixture, leaving(fixture)));
    EXPECT_TEXT(ids_of(fixture, "ActiveCluster = 'west'"), "wf-ghost");
}
