/* attribute_rules_test.c - what attributes a domain may have, how they move, and the way back to
 * none. Pure: requests in, records out.
 *
 * Regions are tested with the clusters of a group of their own:
 *
 *   cluster    initial version   region      increment 100
 *   cluster0   0                 us-west     the primary
 *   cluster1   2                 us-west
 *   cluster2   4                 us-east
 *   cluster3   6                 us-east
 *   cluster4   8                 (none) */
#include "domain/active.h"
#include "domain/attributes.h"
#include "domain/test/failover_fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- regions --------------------------------------------------------------------------------- */

#define CLUSTER(name_, version, region_)                                                           \
    {                                                                                              \
        .name = name_, .is_enabled = true, .initial_failover_version = version,                    \
        .new_initial_failover_version = -1, .region = region_,                                     \
    }
static const struct cluster clusters[] = {
    CLUSTER("cluster0", 0, "us-west"), CLUSTER("cluster1", 2, "us-west"),
    CLUSTER("cluster2", 4, "us-east"), CLUSTER("cluster3", 6, "us-east"),
    CLUSTER("cluster4", 8, NULL)};
static const struct region regions[] = {{"us-west", 1}, {"us-east", 3}};
static const struct cluster_group regional_group = {
    .failover_version_increment = 100,
    .current = &clusters[0],
    .primary = &clusters[0],
    .clusters = clusters,
    .count = array_length(clusters),
    .regions = regions,
    .region_count = array_length(regions),
};

static API(RegisterDomainRequest) *
regional_request(const char *attributes, struct arena *arena)
{
    API(RegisterDomainRequest) *request = sample_register(EAST, attributes, arena);
    request->active_cluster_name = "cluster0";
    request->n_clusters = array_length(clusters);
    request->clusters = arena_zalloc(arena, array_length(clusters), sizeof *request->clusters);
    for (size_t i = 0; i < array_length(clusters); i++) {
        request->clusters[i] = API_NEW(arena, cluster_replication_configuration,
                                       .cluster_name = (char *)clusters[i].name);
    }
    return request;
}

static struct error *
register_in(struct failover_fixture *failover_fixture, const API(RegisterDomainRequest) *request)
{
    *failover_fixture = (struct failover_fixture){
        .arena = arena_new(0), .rules = sample_rules(EAST), .moment = 100};
    failover_fixture->rules.group = &regional_group;
    struct domain_moment moment = next_moment(failover_fixture);
    struct error *err =
        domain_decide_register(NULL, request, &failover_fixture->rules, &moment,
                               failover_fixture->arena, &failover_fixture->decision);
    if (err == NULL)
        adopt(failover_fixture);
    return err;
}

#define REGIONAL(name, attributes)                                                                 \
    scoped(arena_drop) struct arena *name##_arena = arena_new(0);                                  \
    scoped(failover_fixture_drop) struct failover_fixture name;                                    \
    EXPECT_OK(register_in(&name, regional_request(attributes, name##_arena)))

#define TWO_OF_ONE(one, one_cluster, other, other_cluster, region)                                 \
    "A domain can be active in one cluster of each region: region." one " names " one_cluster      \
    " and region." other " names " other_cluster ", which both lie in region " region "."

/* The seed's first scenario: any subset of the clusters, at most one of each region. */
TEST(attributes, regions_name_at_most_one_cluster_of_each_region, "G-009", "G-060")
{
    static const struct {
        const char *attributes;
        const char *refusal; /* NULL: accepted */
    } cases[] = {
        {"region.us-west:cluster0,region.us-east:cluster3", NULL},
        {"region.us-west:cluster3,region.us-east:cluster3", NULL}, /* us-west is disabled */
        {"region.us-east:cluster1,region.us-west:cluster0",
         TWO_OF_ONE("us-east", "cluster1", "us-west", "cluster0", "us-west")},
        {"region.us-east:cluster2,region.us-west:cluster3",
         TWO_OF_ONE("us-east", "cluster2", "us-west", "cluster3", "us-east")},
        {"city.a:cluster0,city.b:cluster1,region.us-west:cluster0", NULL}, /* cities are free */
        {"region.eu:cluster4,region.us-west:cluster1,region.us-east:cluster2", NULL},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        scoped(failover_fixture_drop) struct failover_fixture orders;
        struct error *err = register_in(&orders, regional_request(cases[i].attributes, arena));
        if (cases[i].refusal == NULL)
            EXPECT_OK(err);
        else
            EXPECT_REFUSED(err, cases[i].refusal);
    }
}

/* The seed's tables show versions of regions (1, 3) for regions; events carry versions of clusters,
 * so here the numbers are those of the clusters, by the seed's own rule for them. */
TEST(attributes, a_region_moves_to_another_one_and_the_others_stay, "G-039", "G-040")
{
    REGIONAL(orders, "region.us-west:cluster0,region.us-east:cluster3");
    EXPECT_TEXT(PRINT_OF(orders), "region.us-east:cluster3=6,region.us-west:cluster0=0");
    EXPECT_REFUSED(failover(&orders, NULL, "region.us-east:cluster1"),
                   TWO_OF_ONE("us-east", "cluster1", "us-west", "cluster0", "us-west"));
    /* scenario 2: within the region */
    EXPECT_OK(failover(&orders, NULL, "region.us-west:cluster1"));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-east:cluster3=6,region.us-west:cluster1=2");
    EXPECT_EQ(VERSION_OF(orders), 100);
    /* scenario 1: the region is disabled */
    EXPECT_OK(failover(&orders, NULL, "region.us-west:cluster3"));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-east:cluster3=6,region.us-west:cluster3=6");
    EXPECT_EQ(VERSION_OF(orders), 200);
    /* both at once, in one change */
    EXPECT_OK(failover(&orders, "cluster4", "region.us-west:cluster0,region.us-east:cluster2"));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-east:cluster2=104,region.us-west:cluster0=100");
    EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, "cluster4");
    EXPECT_EQ(VERSION_OF(orders), 208);
    EXPECT_EQ(orders.decision.failover->n_cluster_failovers, 3);
}

/* Two clusters that were asked at the same time can break the rule together; what has nothing to do
 * with regions still moves. */
TEST(attributes, a_broken_rule_of_regions_stops_only_moves_of_regions)
{
    REGIONAL(orders, "region.us-west:cluster0,region.us-east:cluster3,city.a:cluster0");
    STORED(DomainRecord) *record = orders.decision.next;
    record->domain->active_clusters = sample_attributes(
        "region.us-west:cluster0=0,region.us-east:cluster1=102,city.a:cluster0=0", orders.arena);
    adopt(&orders);
    EXPECT_OK(failover(&orders, "cluster1", NULL));
    EXPECT_OK(failover(&orders, NULL, "city.a:cluster2"));
    EXPECT_KIND(failover(&orders, NULL, "region.us-west:cluster4,region.eu:cluster0"),
                ERR_BAD_REQUEST);
    EXPECT_OK(failover(&orders, NULL, "region.us-west:cluster1"));
    EXPECT_TEXT(PRINT_OF(orders),
                "city.a:cluster2=4,region.us-east:cluster1=102,region.us-west:cluster1=2");
}

/* region → cluster, as the first design had it, in all three requests. */
ARENA_TEST(attributes, the_older_form_of_regions_means_the_same, "G-060", "D-006")
{
    API(RegisterDomainRequest) *request = regional_request(NULL, arena);
    API(RegisterDomainRequest__ActiveClustersByRegionEntry) *entry =
        message_new(arena, API_TYPE(register_domain_request__active_clusters_by_region_entry));
    entry->key = "us-west";
    entry->value = "cluster0";
    request->active_clusters_by_region = &entry;
    request->n_active_clusters_by_region = 1;
    scoped(failover_fixture_drop) struct failover_fixture orders;
    EXPECT_OK(register_in(&orders, request));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-west:cluster0=0");

    API(ActiveClusters__RegionToClusterEntry) *region =
        message_new(arena, API_TYPE(active_clusters__region_to_cluster_entry));
    region->key = "us-west";
    region->value = API_NEW(arena, active_cluster_info, .active_cluster_name = "cluster1");
    API(ActiveClusters) *asked =
        API_NEW(arena, active_clusters, .region_to_cluster = &region, .n_region_to_cluster = 1);
    API(FailoverDomainRequest) *move = sample_failover(NULL, NULL, arena);
    move->active_clusters = asked;
    EXPECT_OK(failover_request(&orders, move));
    adopt(&orders);
    EXPECT_TEXT(PRINT_OF(orders), "region.us-west:cluster1=2");
    EXPECT_EQ(DOMAIN_OF(orders)->active_clusters->n_region_to_cluster, 0); /* one form is kept */

    region->value->active_cluster_name = "cluster2";
    API(UpdateDomainRequest) *change = sample_update("active_clusters", arena);
    change->active_clusters = asked;
    EXPECT_OK(update(&orders, change));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-west:cluster2=4");
    /* both forms: the newer one counts */
    change->active_clusters = sample_attributes("region.us-west:cluster3", arena);
    change->active_clusters->region_to_cluster = &region;
    change->active_clusters->n_region_to_cluster = 1;
    EXPECT_OK(update(&orders, change));
    EXPECT_TEXT(PRINT_OF(orders), "region.us-west:cluster3=6");
}

/* --- which attributes, which versions ----------------------------------------------------------
 */

/* The example of the seed: two cities in scope location, the domain itself elsewhere. */
TEST(attributes, a_domain_has_scopes_names_clusters_and_versions, "G-001", "G-002", "G-003",
     "G-007")
{
    FAILOVER_FIXTURE(orders, NORTH, "location.cityA:east,location.cityB:north");
    EXPECT(domain_is_active_active(orders.domain));
    EXPECT_TEXT(PRINT_OF(orders), "location.cityA:east=0,location.cityB:north=2");
    EXPECT_EQ(VERSION_OF(orders), 2);
    EXPECT_OK(failover(&orders, NULL, "location.cityA:west,location.cityB:east"));
    EXPECT_OK(failover(&orders, NULL, "location.cityA:east,location.cityB:north"));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(failover(&orders, "east", NULL));
        EXPECT_OK(failover(&orders, "north", NULL));
    }
    EXPECT_TEXT(PRINT_OF(orders), "location.cityA:east=10,location.cityB:north=12");
    EXPECT_EQ(VERSION_OF(orders), 52);
    FAILOVER_FIXTURE(passive, EAST, NULL);
    EXPECT(!domain_is_active_active(passive.domain));
}

TEST(attributes, a_name_without_a_scope_too_long_or_one_too_many_is_refused, "G-004", "G-005",
     "G-006")
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    EXPECT_REFUSED(failover(&orders, NULL, ".a:west"),
                   "A cluster attribute needs a scope and a name; neither may be empty.");
    orders.rules.name_length_max = 6;
    EXPECT_REFUSED(failover(&orders, NULL, "city.village:west"),
                   "The scope or name of a cluster attribute exceeds 6 bytes.");
    orders.rules.attributes_max = 2;
    EXPECT_OK(failover(&orders, NULL, "city.b:west"));
    EXPECT_OK(failover(&orders, NULL, "city.a:west,city.b:north"));
    EXPECT_REFUSED(failover(&orders, NULL, "city.c:west"),
                   "The domain would have 3 cluster attributes (0 of them taken away before), "
                   "more than the 2 that are allowed.");
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:moon"), "Invalid active cluster name: moon");
    struct domain_moment moment = next_moment(&orders);
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:east,city.b:east,city.c:east", orders.arena);
    struct domain_decision decision;
    EXPECT_KIND(
        domain_decide_register(NULL, request, &orders.rules, &moment, orders.arena, &decision),
        ERR_BAD_REQUEST);
    request = sample_register(EAST, "city.a:moon", orders.arena);
    EXPECT_REFUSED(
        domain_decide_register(NULL, request, &orders.rules, &moment, orders.arena, &decision),
        "Cluster moon not found. Domain cannot be registered in this cluster for scope "
        "\"city\" and attribute \"a\"");
    request->active_cluster_name = "";
    request->active_clusters = NULL;
    EXPECT_OK(domain_decide_register(NULL, request, &orders.rules, &moment, orders.arena,
                                     &decision)); /* not given: this cluster */
    API(UpdateDomainRequest) *nowhere = sample_update("active_cluster_name", orders.arena);
    EXPECT_REFUSED(update(&orders, nowhere),
                   "ActiveClusterName is required for all global domains.");
    scoped(failover_fixture_drop) struct failover_fixture local = local_orders();
    EXPECT(DOMAIN_OF(local)->active_clusters == NULL);
}

TEST(attributes, some_move_and_the_others_keep_cluster_and_version, "G-028", "G-029", "G-030",
     "G-036")
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east,city.b:north,city.c:west");
    EXPECT_OK(failover(&orders, NULL, "city.a:west=777,city.c:north=3"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1,city.b:north=2,city.c:north=2");
    EXPECT_EQ(VERSION_OF(orders), 10);
    EXPECT_EQ(NOTICED_OF(orders), orders.moment);
    EXPECT_OK(failover(&orders, NULL, "city.a:east,city.d:west"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=10,city.b:north=2,city.c:north=2,city.d:west=1");
    EXPECT_OK(failover(&orders, "west", NULL));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=10,city.b:north=2,city.c:north=2,city.d:west=1");
    EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, "west");
    EXPECT_EQ(VERSION_OF(orders), 21);
    EXPECT_OK(failover(&orders, NULL, "city.a:north"));
    EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, "west");
}

/* Only an update makes an active-passive domain active-active. */
TEST(attributes, an_update_converts_a_domain_and_a_failover_does_not, "G-058", "G-034")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:west"),
                   "FailoverDomain cannot be used to promote a domain to active-active; use "
                   "UpdateDomain to set cluster attributes");
    API(UpdateDomainRequest) *request = sample_update("active_clusters", orders.arena);
    request->active_clusters = sample_attributes("city.a:west,city.b:north", orders.arena);
    EXPECT_OK(update(&orders, request));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1,city.b:north=2");
    request->active_clusters = sample_attributes("city.b:west", orders.arena);
    EXPECT_OK(update(&orders, request)); /* who is left out stays */
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1,city.b:west=11");
    request->active_clusters = API_NEW(orders.arena, active_clusters);
    EXPECT_OK(update(&orders, request)); /* nothing is named: nothing goes */
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1,city.b:west=11");
}

/* --- the way back ------------------------------------------------------------------------------
 */

static struct active_cluster
active_of(const struct failover_fixture *failover_fixture, const char *name)
{
    struct cluster_attribute attribute = {"city", name};
    return domain_active(failover_fixture->domain, &attribute, failover_fixture->rules.group);
}

TEST(attributes, those_taken_away_come_back_with_a_newer_version)
{
    FAILOVER_FIXTURE(orders, NORTH, "city.a:east,city.b:north,land.x:west");
    EXPECT_OK(failover(&orders, NULL, "city.a:west"));
    EXPECT_OK(update(&orders, sample_removal("city", "a", orders.arena)));
    EXPECT_TEXT(PRINT_OF(orders), "city.b:north=2,land.x:west=1");
    EXPECT_EQ(VERSION_OF(orders), 22);
    EXPECT_EQ(NOTICED_OF(orders), orders.moment);
    const STORED(FailoverRecord) *entry = orders.decision.failover;
    EXPECT_EQ(entry->n_cluster_failovers, 1);
    EXPECT_TEXT(entry->cluster_failovers[0]->from_cluster->active_cluster_name, "west");
    EXPECT(entry->cluster_failovers[0]->to_cluster == NULL);
    EXPECT_EQ(active_of(&orders, "a").status, ACTIVE_UNKNOWN_ATTRIBUTE); /* others are left */

    EXPECT_OK(failover(&orders, NULL, "city.a:east"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=30,city.b:north=2,land.x:west=1"); /* above 22 */
    EXPECT_OK(update(&orders, sample_removal("city", "", orders.arena)));
    EXPECT_TEXT(PRINT_OF(orders), "land.x:west=1");
    EXPECT_REFUSED(update(&orders, sample_removal("city", "a", orders.arena)),
                   "The domain has no cluster attribute city.a.");
    EXPECT_REFUSED(update(&orders, sample_removal("city", "", orders.arena)),
                   "The domain has no cluster attribute city.*.");
}

/* Workflows that belong to attributes go on where the domain is active, and with versions above all
 * that they wrote before. */
TEST(attributes, without_any_left_the_domain_decides_for_their_workflows)
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    STORED(DomainRecord) *record = orders.decision.next;
    record->domain->failover_version = 10; /* it has risen less than the attribute */
    record->domain->active_clusters = sample_attributes("city.a:west=21", orders.arena);
    adopt(&orders);
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=21");
    EXPECT_OK(update(&orders, sample_removal(NULL, NULL, orders.arena)));
    EXPECT(!domain_is_active_active(orders.domain));
    EXPECT_EQ(VERSION_OF(orders), 40); /* the attribute's became 30 */
    struct active_cluster active = active_of(&orders, "a");
    EXPECT_EQ(active.status, ACTIVE_HERE);
    EXPECT_EQ(active.failover_version, 40);
    EXPECT(active.is_stand_in);
    EXPECT_EQ(active_of(&orders, "never").status, ACTIVE_UNKNOWN_ATTRIBUTE);
    EXPECT_EQ(orders.domain->record->n_recent_failovers, 0); /* it did not move */
    EXPECT_REFUSED(update(&orders, sample_removal(NULL, NULL, orders.arena)),
                   "The domain has no cluster attributes.");
    EXPECT_OK(failover(&orders, "north", NULL)); /* it is active-passive */
    API(UpdateDomainRequest) *again = sample_update("active_clusters", orders.arena);
    again->active_clusters = sample_attributes("city.a:west", orders.arena);
    EXPECT_OK(update(&orders, again));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=51"); /* above the domain's 42 */
}

/* Attributes do, one by one. */
TEST(attributes, the_default_of_a_domain_that_has_some_does_not_move_gracefully)
{
    FAILOVER_FIXTURE(orders, NORTH, "city.a:west");
    API(FailoverDomainRequest) *move = sample_failover("east", NULL, orders.arena);
    move->failover_timeout = presence_make_duration(orders.arena, 30);
    EXPECT_REFUSED(failover_request(&orders, move),
                   "Cannot start graceful failover without updating active cluster or in local "
                   "domain.");
    move->active_clusters = sample_attributes("city.a:east", orders.arena);
    EXPECT_KIND(failover_request(&orders, move), ERR_BAD_REQUEST); /* nor both at once */
    move->domain_active_cluster_name = "";
    EXPECT_OK(failover_request(&orders, move));
}

/* An attribute on its way to a cluster that goes meanwhile: nobody waits for the rest. */
TEST(attributes, taken_away_while_it_moves_gracefully_ends_that)
{
    FAILOVER_FIXTURE(orders, NORTH, "city.a:west,city.b:north");
    API(FailoverDomainRequest) *move = sample_failover(NULL, "city.a:east", orders.arena);
    move->failover_timeout = presence_make_duration(orders.arena, 30);
    EXPECT_OK(failover_request(&orders, move));
    adopt(&orders);
    EXPECT_EQ(orders.domain->record->n_drains, 1);
    EXPECT_EQ(active_of(&orders, "a").status, ACTIVE_PENDING);
    EXPECT_EQ(active_of(&orders, "b").status, ACTIVE_ELSEWHERE); /* it does not notice */
    EXPECT_OK(update(&orders, sample_removal("city", "a", orders.arena)));
    EXPECT_EQ(orders.domain->record->n_drains, 0);
    EXPECT_EQ(active_of(&orders, "a").status, ACTIVE_UNKNOWN_ATTRIBUTE);
}

TEST(attributes, are_taken_away_in_the_primary_with_its_token_only)
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    orders.rules = sample_rules(WEST);
    EXPECT_REFUSED(update(&orders, sample_removal(NULL, NULL, orders.arena)), NOT_PRIMARY);
    orders.rules = sample_rules(EAST);
    orders.rules.is_admin_protected = true;
    EXPECT_REFUSED(update(&orders, sample_removal(NULL, NULL, orders.arena)),
                   "No permission to do this operation.");
    scoped(failover_fixture_drop) struct failover_fixture local = local_orders();
    EXPECT_REFUSED(update(&local, sample_removal(NULL, NULL, local.arena)), LOCAL_REFUSAL);
}

/* --- many ----------------------------------------------------------------------------------------
 */

#define MANY 10000

/* Thousands are fine: what they take is measured, and a look stays a search. */
TEST(attributes, ten_thousand_are_kept_and_found)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    struct attributes wanted = {0};
    for (int i = 0; i < MANY; i++) {
        struct attribute one = {
            .scope = "city",
            .name = arena_format(orders.arena, "%d", (i * 7919) % MANY), /* in no order */
            .cluster_name = (char *)sample_names[i % 3]};
        attributes_add(&wanted, &one, orders.arena);
    }
    API(UpdateDomainRequest) *request = sample_update("active_clusters", orders.arena);
    request->active_clusters = attributes_write(&wanted, orders.arena);
    EXPECT_OK(update(&orders, request));
    EXPECT_OK(failover(&orders, NULL, "city.77:west,city.78:north"));
    size_t bytes = orders.domain->bytes.length;
    EXPECT(bytes < MANY * 40); /* 40 bytes each, with names of four digits */
    for (int i = 0; i < MANY; i++) {
        struct active_cluster active = active_of(&orders, arena_format(orders.arena, "%d", i));
        EXPECT(active.status == ACTIVE_HERE || active.status == ACTIVE_ELSEWHERE);
    }
    EXPECT_TEXT(active_of(&orders, "77").cluster_name, "west");
    EXPECT_OK(update(&orders, sample_removal(NULL, NULL, orders.arena)));
    EXPECT_EQ(active_of(&orders, "77").status, ACTIVE_HERE);
}
