/* home_test.c - where runs are active, by the examples of the two design documents: a domain of
 * regions and entities, and a domain of cities, with the numbers written there.
 *
 * Regions and entities are cluster attributes here, of the scopes "region" and the entity's type.
 * Where a number contradicts the rules the rule holds, and the test says so. Two rules do most of
 * that. Events carry only versions of clusters, so no two clusters ever write the same one: the
 * examples' versions 1, 3 and 5 are of regions. And each version belongs to the cluster that it is
 * written for: the examples let us-east, whose only cluster in the config is cluster2, be active in
 * cluster3. */
#include "base/test.h"
#include "domain/active.h"
#include "domain/decide/decide.h"
#include "domain/test/samples.h"
#include "wire/message.h"
#include "wire/presence.h"

static const char regions_group[] =
    "clusterGroupMetadata:\n"
    "  primaryClusterName: cluster0\n"
    "  currentClusterName: cluster0\n"
    "  failoverVersionIncrement: 100\n"
    "  regions:\n"
    "    us-west: {initialFailoverVersion: 1}\n"
    "    us-east: {initialFailoverVersion: 3}\n"
    "    eu-west: {initialFailoverVersion: 5}\n"
    "  clusterGroup:\n"
    "    cluster0: {initialFailoverVersion: 0, region: us-west, rpcAddress: 'a:1'}\n"
    "    cluster1: {initialFailoverVersion: 2, region: us-west, rpcAddress: 'b:1'}\n"
    "    cluster2: {initialFailoverVersion: 4, region: us-east, rpcAddress: 'c:1'}\n"
    "    cluster3: {initialFailoverVersion: 6, region: eu-west, rpcAddress: 'd:1'}\n";

static const char cities_group[] = "clusterGroupMetadata:\n"
                                   "  primaryClusterName: cluster0\n"
                                   "  currentClusterName: cluster0\n"
                                   "  failoverVersionIncrement: 10\n"
                                   "  clusterGroup:\n"
                                   "    cluster0: {initialFailoverVersion: 0, rpcAddress: 'a:1'}\n"
                                   "    cluster1: {initialFailoverVersion: 1, rpcAddress: 'b:1'}\n"
                                   "    cluster2: {initialFailoverVersion: 2, rpcAddress: 'c:1'}\n";

/* A domain in all clusters of a group. */
struct home {
    struct arena *arena;
    struct config *config;
    const struct cluster_group *group;
    struct domain_rules rules;
    struct domain *domain;
    uint64_t moment;
};

static void
home_drop(struct home *home)
{
    domain_drop(home->domain);
    config_free(home->config);
    arena_free(home->arena);
}

static void
home_adopt(struct home *home, const struct domain_decision *decision)
{
    decision->next->notification_version = (int64_t)home->moment + 1;
    struct domain *next = domain_from_record(decision->next);
    domain_drop(home->domain);
    home->domain = next;
}

static struct home
home_of(const char *group, const char *active, const char *attributes)
{
    static const struct config_environment no_environment;
    struct home home = {.arena = arena_new(0), .rules = sample_rules(EAST), .moment = 1};
    EXPECT_OK(
        config_parse(slice_text(group), "group.yaml", &no_environment, home.arena, &home.config));
    EXPECT_OK(cluster_group_load(home.config, home.arena, &home.group));
    home.rules.group = home.group;
    API(RegisterDomainRequest) *request = sample_register(EAST, attributes, home.arena);
    request->active_cluster_name = (char *)active;
    request->n_clusters = home.group->count;
    request->clusters = arena_zalloc(home.arena, request->n_clusters, sizeof(void *));
    for (size_t i = 0; i < request->n_clusters; i++) {
        request->clusters[i] = API_NEW(home.arena, cluster_replication_configuration,
                                       .cluster_name = (char *)home.group->clusters[i].name);
    }
    struct domain_moment moment = sample_moment(home.moment);
    struct domain_decision decision;
    EXPECT_OK(domain_decide_register(NULL, request, &home.rules, &moment, home.arena, &decision));
    home_adopt(&home, &decision);
    return home;
}

#define HOME(name, group, active, attributes)                                                      \
    scoped(home_drop) struct home name = home_of(group, active, attributes)

static void
home_move(struct home *home, const char *cluster_name, const char *attributes)
{
    struct domain_decision decision;
    struct domain_moment moment = sample_moment(++home->moment);
    EXPECT_OK(domain_decide_failover(home->domain,
                                     sample_failover(cluster_name, attributes, home->arena),
                                     &home->rules, &moment, home->arena, &decision));
    home_adopt(home, &decision);
}

/* What an earlier form of such domains has: regions, and no cluster of the domain itself. */
static void
home_lose_default(struct home *home)
{
    STORED(DomainRecord) *record = message_copy(home->arena, &home->domain->record->base);
    record->domain->active_cluster_name = "";
    record->domain->failover_version = -1;
    struct domain *next = domain_from_record(record);
    domain_drop(home->domain);
    home->domain = next;
}

/* The answer is the same in all clusters, and exactly one says that it is the one. */
static void
expect_home(const struct home *home, struct cluster_attribute attribute, int64_t last_version,
            const char *cluster, int64_t version)
{
    for (size_t i = 0; i < home->group->count; i++) {
        struct cluster_group here = *home->group;
        here.current = &home->group->clusters[i];
        struct active_cluster active =
            domain_active_run(home->domain, &attribute, last_version, &here);
        EXPECT_TEXT(active.cluster_name, cluster);
        EXPECT_EQ(active.failover_version, version);
        bool is_here = strcmp(here.current->name, cluster) == 0;
        EXPECT_EQ(active.status, cluster[0] == '\0' ? ACTIVE_UNKNOWN_ATTRIBUTE
                                 : is_here          ? ACTIVE_HERE
                                                    : ACTIVE_ELSEWHERE);
        const struct cluster *writer = cluster_group_of_version(home->group, version);
        EXPECT(cluster[0] == '\0' || strcmp(writer->name, cluster) == 0);
    }
}

#define WEST_REGION ((struct cluster_attribute){REGION_SCOPE, "us-west"})
#define EAST_REGION ((struct cluster_attribute){REGION_SCOPE, "us-east"})
#define CITY(name_) ((struct cluster_attribute){"user-location", name_})
#define NOTHING     ((struct cluster_attribute){0})
#define REGIONS     "region.us-west:cluster0,region.us-east:cluster3"
#define PRINT(home) sample_print((home).domain->record->domain->active_clusters, (home).arena)

/* --- placement ---- */

/* wf1 came from us-west and wf2 belongs to London; wf3 began before the domain had attributes.
 * The table gives London version 5, once as one of eu-west, once as one of us-east: it is no
 * cluster's, so London has the version of the cluster that the text says works on it, 6. */
TEST(home, three_workflows_are_where_their_activeness_says, "G-062", "G-018")
{
    HOME(home, regions_group, "cluster0", REGIONS ",user-location.london:cluster3");
    EXPECT_TEXT(PRINT(home), "region.us-east:cluster3=6,region.us-west:cluster0=0,"
                             "user-location.london:cluster3=6");
    expect_home(&home, WEST_REGION, 0, "cluster0", 0); /* wf1 */
    expect_home(&home, CITY("london"), 0, "cluster3", 6);
    expect_home(&home, NOTHING, 0, "cluster0", 0); /* wf3 */
}

/* The last event's version is of another cluster: it says nothing. */
TEST(home, who_wrote_the_last_event_does_not_matter)
{
    HOME(home, regions_group, "cluster0", REGIONS);
    for (int64_t version = -1; version < 200; version++) {
        expect_home(&home, WEST_REGION, version, "cluster0", 0);
        expect_home(&home, EAST_REGION, version, "cluster3", 6);
        expect_home(&home, NOTHING, version, "cluster0", 0);
    }
}

/* A queued task of version 0, of cluster0 in us-west, in a domain that has regions alone. */
TEST(home, a_run_without_activeness_falls_back_from_version_to_cluster_to_region, "G-063", "G-054")
{
    HOME(direct, regions_group, "cluster0", REGIONS);
    home_lose_default(&direct);
    expect_home(&direct, NOTHING, 0, "cluster0", 0);
    HOME(region, regions_group, "cluster0", "region.us-west:cluster1,region.us-east:cluster3");
    home_lose_default(&region);
    expect_home(&region, NOTHING, 0, "cluster1", 2);
    HOME(neither, regions_group, "cluster0", "region.us-east:cluster3");
    home_lose_default(&neither);
    expect_home(&neither, NOTHING, 0, "", -1);
}

TEST(home, the_fallback_knows_versions_of_regions_and_of_nobody, "G-063")
{
    HOME(home, regions_group, "cluster0", REGIONS);
    home_lose_default(&home);
    expect_home(&home, NOTHING, 1, "cluster0", 0);   /* us-west's own */
    expect_home(&home, NOTHING, 103, "cluster3", 6); /* us-east's own */
    expect_home(&home, NOTHING, 6, "cluster3", 6);   /* direct: some region is active there */
    expect_home(&home, NOTHING, 4, "cluster3", 6);   /* cluster2 lies in us-east */
    expect_home(&home, NOTHING, 9, "", -1);          /* nobody's */
    expect_home(&home, NOTHING, -1, "", -1);         /* no event at all */
    EXPECT_EQ(domain_active(home.domain, NULL, home.group).status, ACTIVE_UNKNOWN_ATTRIBUTE);
}

/* A region that was elsewhere and came back has a version above those that others wrote. */
TEST(home, the_fallback_never_goes_back_behind_what_another_cluster_wrote)
{
    HOME(home, regions_group, "cluster0", REGIONS);
    home_move(&home, NULL, "region.us-west:cluster1");
    home_lose_default(&home);
    expect_home(&home, NOTHING, 0, "cluster1", 2);
    HOME(back, regions_group, "cluster0", REGIONS);
    home_move(&back, NULL, "region.us-west:cluster1");
    home_move(&back, NULL, "region.us-west:cluster0");
    home_lose_default(&back);
    expect_home(&back, NOTHING, 2, "cluster0", 100);
    expect_home(&back, NOTHING, 0, "cluster0", 100);
}

/* --- failovers ---- */

/* The example's tables say 1 → 3 and 3: of regions. Here 0 → 6 and 6, of cluster0 and cluster3. */
TEST(home, a_region_that_is_disabled_goes_to_the_cluster_of_another, "G-039")
{
    HOME(home, regions_group, "cluster0", REGIONS);
    EXPECT_TEXT(PRINT(home), "region.us-east:cluster3=6,region.us-west:cluster0=0");
    home_move(&home, NULL, "region.us-west:cluster3");
    EXPECT_TEXT(PRINT(home), "region.us-east:cluster3=6,region.us-west:cluster3=6");
    expect_home(&home, WEST_REGION, 0, "cluster3", 6);
    expect_home(&home, EAST_REGION, 6, "cluster3", 6);
}

/* The example's table says 1 → 2; before it is 0 here, afterwards 2 as written. */
TEST(home, a_region_goes_to_another_of_its_clusters, "G-040")
{
    HOME(home, regions_group, "cluster0", REGIONS);
    home_move(&home, NULL, "region.us-west:cluster1");
    EXPECT_TEXT(PRINT(home), "region.us-east:cluster3=6,region.us-west:cluster1=2");
    expect_home(&home, WEST_REGION, 0, "cluster1", 2);
    expect_home(&home, EAST_REGION, 6, "cluster3", 6);
}

/* Seattle goes from us-west to us-east: the example says 1 → 3, here 0 → 6. Its regions and the
 * other cities stay. */
TEST(home, an_entity_goes_alone, "G-041")
{
    HOME(home, regions_group, "cluster0",
         REGIONS ",user-location.seattle:cluster0,user-location.boston:cluster3,"
                 "user-location.tacoma:cluster0");
    expect_home(&home, CITY("seattle"), 0, "cluster0", 0);
    home_move(&home, NULL, "user-location.seattle:cluster3");
    EXPECT_TEXT(PRINT(home),
                "region.us-east:cluster3=6,region.us-west:cluster0=0,user-location.boston:cluster3="
                "6,user-location.seattle:cluster3=6,user-location.tacoma:cluster0=0");
    expect_home(&home, CITY("seattle"), 0, "cluster3", 6);
    expect_home(&home, CITY("tacoma"), 0, "cluster0", 0);
    expect_home(&home, WEST_REGION, 0, "cluster0", 0);
    expect_home(&home, NOTHING, 0, "cluster0", 100); /* the domain's version rises with each */
}

/* The document says increment 100, its numbers (10, 12, 52) are those of 10. A move to where the
 * default is already changes nothing: it goes away and comes back. */
TEST(home, a_domain_of_cities_is_active_where_the_example_says, "G-001", "G-007", "G-036")
{
    HOME(home, cities_group, "cluster2", "location.cityA:cluster0,location.cityB:cluster2");
    home_move(&home, NULL, "location.cityA:cluster1");
    home_move(&home, NULL, "location.cityA:cluster0");
    home_move(&home, NULL, "location.cityB:cluster0");
    home_move(&home, NULL, "location.cityB:cluster2");
    home_move(&home, "cluster1", NULL);
    home_move(&home, "cluster2", NULL);
    EXPECT_TEXT(PRINT(home), "location.cityA:cluster0=10,location.cityB:cluster2=12");
    EXPECT_EQ(home.domain->record->domain->failover_version, 52);
    expect_home(&home, (struct cluster_attribute){"location", "cityA"}, 0, "cluster0", 10);
    expect_home(&home, (struct cluster_attribute){"location", "cityB"}, 0, "cluster2", 12);
    expect_home(&home, NOTHING, 0, "cluster2", 52);
    home_move(&home, "cluster1", NULL);
    EXPECT_TEXT(PRINT(home), "location.cityA:cluster0=10,location.cityB:cluster2=12");
    expect_home(&home, NOTHING, 0, "cluster1", 61);
}

/* --- what a start that says nothing belongs to ---- */

TEST(home, a_start_that_says_nothing_sticks_to_the_region_that_took_it, "G-064")
{
    HOME(home, regions_group, "cluster0", REGIONS);
    static const char *const regions[] = {"us-west", "us-west", "us-east", NULL};
    for (size_t i = 0; i < home.group->count; i++) {
        struct cluster_group here = *home.group;
        here.current = &home.group->clusters[i];
        struct cluster_attribute chosen = domain_choose_attribute(home.domain, &here);
        struct cluster_attribute wanted = {regions[i] == NULL ? NULL : REGION_SCOPE, regions[i]};
        EXPECT(cluster_attribute_equals(&chosen, &wanted));
    }
    struct cluster_group unlisted = *home.group;
    unlisted.region_count = 0;
    EXPECT(domain_choose_attribute(home.domain, &unlisted).scope == NULL);
    HOME(cities, cities_group, "cluster2", "location.cityA:cluster0");
    EXPECT(domain_choose_attribute(cities.domain, cities.group).scope == NULL);
    HOME(passive, regions_group, "cluster0", NULL);
    EXPECT(domain_choose_attribute(passive.domain, passive.group).scope == NULL);
}

/* --- where the domain is active at all ---- */

TEST(home, the_clusters_of_a_domain_are_named_once_each)
{
    HOME(home, regions_group, "cluster1", REGIONS ",user-location.london:cluster3");
    const char **names;
    EXPECT_EQ(domain_active_clusters(home.domain, home.arena, &names), 2);
    EXPECT_TEXT(names[0], "cluster0");
    EXPECT_TEXT(names[1], "cluster3");
    HOME(passive, regions_group, "cluster0", NULL);
    EXPECT_EQ(domain_active_clusters(passive.domain, passive.arena, &names), 0);
}
