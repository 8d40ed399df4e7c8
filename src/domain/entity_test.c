/* entity_test.c - rows of the entity table, decided; where their workflows are active, in the
 * numbers of the active-active design; and the one promise: versions rise, whatever is heard first.
 *
 * The design's text gives cluster3 two regions: its configuration says eu-west, its examples
 * us-east. Here it lies in us-east, as in the examples. Its events have versions of regions; here
 * they have versions of clusters, since a region's says nothing about who may write: where the
 * numbers differ, the rule holds. */
#include "domain/entity.h"

#include "base/random.h"
#include "base/test.h"
#include "domain/test/samples.h"
#include "wire/message.h"

static const struct cluster seed_clusters[] = {
    {.name = "cluster0", .initial_failover_version = 0, .region = "us-west", .is_enabled = true},
    {.name = "cluster1", .initial_failover_version = 2, .region = "us-west", .is_enabled = true},
    {.name = "cluster2", .initial_failover_version = 4, .region = "us-east", .is_enabled = true},
    {.name = "cluster3", .initial_failover_version = 6, .region = "us-east", .is_enabled = true},
};
static const struct region seed_regions[] = {
    {"us-west", 1}, {"us-east", 3}, {"eu-west", 5}, {"eu-central", 7}};

static struct cluster_group
seed_group(unsigned current)
{
    return (struct cluster_group){.failover_version_increment = 100,
                                  .current = &seed_clusters[current],
                                  .primary = &seed_clusters[0],
                                  .clusters = seed_clusters,
                                  .count = array_length(seed_clusters),
                                  .regions = seed_regions,
                                  .region_count = array_length(seed_regions)};
}

struct table {
    struct arena *arena;
    struct cluster_group group;
    struct entity_rules rules;
    int64_t now;
    struct entity *seattle; /* the one row that tests change */
};

static struct table *
table_new(unsigned current)
{
    struct arena *arena = arena_new(0);
    struct table *table = arena_make(arena, struct table);
    table->arena = arena;
    table->group = seed_group(current);
    table->rules =
        (struct entity_rules){.group = &table->group, .name_length_max = 100, .count_max = 10};
    return table;
}

static void
table_drop(struct table **table)
{
    entity_drop((*table)->seattle);
    arena_free((*table)->arena);
}

static struct error *
change_for(struct table *table, enum entity_verb verb, const char *region)
{
    struct entity_change change = {verb, "user-location", "seattle", region, "operator"};
    STORED(EntityRecord) *next = NULL;
    struct error *err =
        entity_decide(table->seattle, &change, &table->rules, ++table->now, table->arena, &next);
    if (err != NULL || next == NULL)
        return err;
    entity_drop(table->seattle);
    table->seattle = entity_from_record(next);
    return NULL;
}

static struct domain *
domain_with(const char *attributes, struct arena *arena)
{
    STORED(DomainRecord) *record =
        STORED_NEW(arena, domain_record, .format = DOMAIN_RECORD_FORMAT,
                   .domain = API_NEW(arena, domain, .id = "id", .name = "orders",
                                     .is_global_domain = true, .active_cluster_name = "cluster0",
                                     .active_clusters = sample_attributes(attributes, arena)));
    return domain_from_record(record);
}

#define SEED_DOMAIN "region.us-west:cluster0=0,region.us-east:cluster3=6"

static int64_t
first_version(struct table *table, const char *key, const char *region)
{
    struct entity_change change = {ENTITY_SET, "user-location", key, region, "operator"};
    STORED(EntityRecord) *next = NULL;
    EXPECT_OK(entity_decide(NULL, &change, &table->rules, 1, table->arena, &next));
    EXPECT_TEXT(next->region, region);
    return next->failover_version;
}

TEST(entity, the_table_of_the_design_has_the_initial_versions_of_its_regions, "G-061")
{
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_EQ(first_version(table, "seattle", "us-west"), 1);
    EXPECT_EQ(first_version(table, "boston", "us-east"), 3);
    EXPECT_EQ(first_version(table, "london", "eu-west"), 5);
    EXPECT_EQ(first_version(table, "frankfurt", "eu-central"), 7);
}

/* Scenario 3 of the design: seattle moves, the map of the domain and boston do not. */
TEST(entity, a_failover_of_an_entity_moves_its_workflows_and_no_others, "G-041")
{
    scoped(table_drop) struct table *table = table_new(0);
    scoped(table_drop) struct table *other = table_new(0);
    struct domain *domain = domain_with(SEED_DOMAIN, table->arena);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    EXPECT_OK(change_for(other, ENTITY_SET, "us-east")); /* stands for boston */
    struct active_cluster before = entity_active(table->seattle, domain, &table->group);
    struct active_cluster boston = entity_active(other->seattle, domain, &table->group);
    EXPECT_EQ(table->seattle->failover_version, 1);
    EXPECT_TEXT(before.cluster_name, "cluster0");

    EXPECT_OK(change_for(table, ENTITY_SET, "us-east"));
    struct active_cluster after = entity_active(table->seattle, domain, &table->group);
    struct active_cluster boston_after = entity_active(other->seattle, domain, &table->group);
    EXPECT_EQ(table->seattle->failover_version, 3);
    EXPECT_TEXT(after.cluster_name, "cluster3");
    EXPECT(after.failover_version > before.failover_version);
    EXPECT_EQ(after.failover_version % 100, 6); /* cluster3's, not the region's */
    EXPECT_EQ(boston_after.failover_version, boston.failover_version);
    EXPECT_TEXT(boston_after.cluster_name, "cluster3");

    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    EXPECT_EQ(table->seattle->failover_version, 101); /* the region's, one increment on */
    domain_drop(domain);
}

TEST(entity, workflows_are_placed_as_in_the_design, "G-062")
{
    scoped(table_drop) struct table *table = table_new(0);
    struct domain *domain = domain_with(SEED_DOMAIN ",region.eu-west:cluster3=6", table->arena);
    const struct cluster_attribute origin = {SCOPE_REGION, "us-west"};
    struct active_cluster wf1 = domain_active(domain, &origin, &table->group);
    EXPECT_TEXT(wf1.cluster_name, "cluster0");
    EXPECT_EQ(wf1.failover_version, 0);
    EXPECT_OK(change_for(table, ENTITY_SET, "eu-west")); /* london */
    struct active_cluster wf2 = entity_active(table->seattle, domain, &table->group);
    EXPECT_EQ(table->seattle->failover_version, 5);
    EXPECT_TEXT(wf2.cluster_name, "cluster3");
    EXPECT_EQ(wf2.failover_version % 100, 6);
    const struct cluster_attribute none = {NULL, NULL};
    struct active_cluster wf3 = domain_active(domain, &none, &table->group);
    EXPECT_TEXT(wf3.cluster_name, "cluster0");
    domain_drop(domain);
}

/* Regional failover and failover within a region (scenarios 1 and 2), seen by an entity that stays
 * in its region. */
TEST(entity, the_workflows_of_an_entity_follow_its_region_in_the_domain)
{
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    static const struct {
        const char *attributes, *cluster;
    } steps[] = {{SEED_DOMAIN, "cluster0"},
                 {"region.us-west:cluster1=2,region.us-east:cluster3=6", "cluster1"},
                 {"region.us-west:cluster3=6,region.us-east:cluster3=6", "cluster3"},
                 {"region.us-west:cluster0=100,region.us-east:cluster3=6", "cluster0"}};
    int64_t last = -1;
    for (size_t i = 0; i < array_length(steps); i++) {
        struct domain *domain = domain_with(steps[i].attributes, table->arena);
        struct active_cluster active = entity_active(table->seattle, domain, &table->group);
        EXPECT_TEXT(active.cluster_name, steps[i].cluster);
        EXPECT(active.failover_version > last);
        last = active.failover_version;
        domain_drop(domain);
    }
}

TEST(entity, nobody_is_active_in_a_region_that_the_domain_does_not_have)
{
    scoped(table_drop) struct table *table = table_new(0);
    struct domain *domain = domain_with(SEED_DOMAIN, table->arena);
    EXPECT_OK(change_for(table, ENTITY_SET, "eu-central"));
    struct active_cluster active = entity_active(table->seattle, domain, &table->group);
    EXPECT_EQ(active.status, ACTIVE_UNKNOWN_ATTRIBUTE);
    domain_drop(domain);
}

/* The domain goes back to one active cluster, at a version above those of its regions: runs of
 * entities go on there, with a higher version; and with a higher one again when regions return. */
TEST(entity, when_a_domain_gives_up_its_regions_its_entities_are_where_it_is)
{
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-east"));
    struct domain *regions = domain_with(SEED_DOMAIN, table->arena);
    STORED(DomainRecord) record = *regions->record;
    API(Domain) shown = *record.domain;
    record.domain = &shown;
    record.removed_attributes = shown.active_clusters;
    shown.active_clusters = NULL;
    shown.failover_version = 100;
    struct domain *plain = domain_from_record(&record);
    struct domain *again = domain_with("region.us-east:cluster2=104", table->arena);
    struct active_cluster first = entity_active(table->seattle, regions, &table->group);
    struct active_cluster second = entity_active(table->seattle, plain, &table->group);
    struct active_cluster third = entity_active(table->seattle, again, &table->group);
    EXPECT(domain_resolves_entities(plain, "user-location"));
    EXPECT(!domain_uses_entities(plain, "user-location"));
    EXPECT_TEXT(first.cluster_name, "cluster3");
    EXPECT_TEXT(second.cluster_name, "cluster0");
    EXPECT_TEXT(third.cluster_name, "cluster2");
    EXPECT(first.failover_version < second.failover_version);
    EXPECT(second.failover_version < third.failover_version);
    domain_drop(regions);
    domain_drop(plain);
    domain_drop(again);
}

TEST(entity, a_domain_with_a_scope_of_that_name_does_not_use_the_entities)
{
    scoped(table_drop) struct table *table = table_new(0);
    struct domain *plain = domain_with(SEED_DOMAIN, table->arena);
    struct domain *own = domain_with(SEED_DOMAIN ",user-location.x:cluster0", table->arena);
    struct domain *cities = domain_with("city.x:cluster0", table->arena);
    EXPECT(domain_uses_entities(plain, "user-location"));
    EXPECT(!domain_uses_entities(own, "user-location"));
    EXPECT(!domain_uses_entities(cities, "user-location")); /* it has no regions */
    domain_drop(plain);
    domain_drop(own);
    domain_drop(cities);
}

/* --- the promise ------------------------------------------------------------------------------ */

enum { VIEWS = 3, ROUNDS = 400, SEEN_MAX = VIEWS * ROUNDS };

/* What one cluster has heard of, each part in its own time. */
struct view {
    struct entity *row;
    int64_t regions[2]; /* versions of us-west and us-east in the domain */
    int64_t last;
    const char *home;
};

struct seen {
    int64_t version;
    const char *cluster;
};

static struct domain *
domain_of(const struct view *view, const struct cluster_group *group, struct arena *arena)
{
    const char *text = arena_format(
        arena, "region.us-west:%s=%lld,region.us-east:%s=%lld",
        cluster_group_of_version(group, view->regions[0])->name, (long long)view->regions[0],
        cluster_group_of_version(group, view->regions[1])->name, (long long)view->regions[1]);
    return domain_with(text, arena);
}

/* Everything moves at random; each view hears of some of it, in any order. Then: in each view the
 * version never falls and rises whenever the home changes, and no version is that of two clusters,
 * in whatever views. */
TEST(entity, versions_rise_with_every_move_whatever_a_cluster_hears_first)
{
    struct random random;
    random_seed(&random, test_seed(0));
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    int64_t newest[2] = {0, 6};
    struct view views[VIEWS] = {0};
    struct seen *seen = arena_zalloc(table->arena, SEEN_MAX, sizeof *seen);
    size_t count = 0;
    for (int i = 0; i < VIEWS; i++)
        views[i] = (struct view){entity_take(table->seattle), {0, 6}, -1, ""};
    for (int round = 0; round < ROUNDS; round++) {
        int region = (int)random_below(&random, 2);
        const struct cluster *to = &seed_clusters[random_below(&random, 4)];
        if (random_below(&random, 2) == 0)
            EXPECT_OK(change_for(table, (enum entity_verb)random_below(&random, 3),
                                 region == 0 ? "us-west" : "us-east"));
        else
            EXPECT(
                cluster_group_next_version(&table->group, to, newest[region] + 1, &newest[region]));
        struct view *view = &views[random_below(&random, VIEWS)];
        unsigned parts = (unsigned)random_below(&random, 8);
        if (parts & 1) {
            entity_drop(view->row);
            view->row = entity_take(table->seattle);
        }
        if (parts & 2)
            view->regions[0] = newest[0];
        if (parts & 4)
            view->regions[1] = newest[1];
        struct domain *domain = domain_of(view, &table->group, table->arena);
        struct active_cluster active = entity_active(view->row, domain, &table->group);
        EXPECT(active.failover_version >= view->last);
        if (strcmp(active.cluster_name, view->home) != 0)
            EXPECT(active.failover_version > view->last);
        view->last = active.failover_version;
        view->home = arena_text(table->arena, active.cluster_name);
        seen[count++] = (struct seen){active.failover_version, view->home};
        domain_drop(domain);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (seen[i].version == seen[j].version)
                EXPECT_TEXT(seen[i].cluster, seen[j].cluster);
        }
    }
    for (int i = 0; i < VIEWS; i++)
        entity_drop(views[i].row);
}

/* --- refusals --------------------------------------------------------------------------------- */

TEST(entity, only_the_primary_cluster_writes_rows_and_says_where)
{
    scoped(table_drop) struct table *table = table_new(1);
    struct error *err = change_for(table, ENTITY_SET, "us-west");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "the primary cluster, cluster0") != NULL);
    scoped(table_drop) struct table *primary = table_new(0);
    primary->rules.is_catching_up = true;
    EXPECT_KIND(change_for(primary, ENTITY_SET, "us-west"), ERR_SERVICE_BUSY);
}

TEST(entity, a_row_needs_a_name_and_a_region_that_the_group_has)
{
    scoped(table_drop) struct table *table = table_new(0);
    struct error *err = change_for(table, ENTITY_SET, "mars");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "us-west, us-east, eu-west, eu-central") != NULL);
    static const struct entity_change bad[] = {
        {ENTITY_SET, "", "key", "us-west", "operator"},
        {ENTITY_SET, "type", "", "us-west", "operator"},
        {ENTITY_SET, "region", "key", "us-west", "operator"},
        {ENTITY_SET, "domain", "orders.us-west", "us-west", "operator"},
    };
    STORED(EntityRecord) *next = NULL;
    for (size_t i = 0; i < array_length(bad); i++)
        EXPECT_KIND(entity_decide(NULL, &bad[i], &table->rules, 1, table->arena, &next),
                    ERR_BAD_REQUEST);
    table->rules.name_length_max = 6;
    EXPECT_KIND(change_for(table, ENTITY_SET, "us-west"), ERR_BAD_REQUEST);
}

TEST(entity, there_are_no_more_rows_than_the_setting_allows, "G-061")
{
    scoped(table_drop) struct table *table = table_new(0);
    table->rules.count = table->rules.count_max = 10;
    struct error *err = change_for(table, ENTITY_SET, "us-west");
    EXPECT_KIND(err, ERR_LIMIT_EXCEEDED);
    EXPECT(strstr(err->message, "system.entitiesMax") != NULL);
    table->rules.count = 9;
    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    table->rules.count = 10;
    EXPECT_OK(change_for(table, ENTITY_SET, "us-east")); /* one that is there may move */
}

TEST(entity, a_deleted_row_keeps_its_workflows_and_goes_on_counting)
{
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_OK(change_for(table, ENTITY_DELETE, ""));
    EXPECT(table->seattle == NULL);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-east"));
    EXPECT_OK(change_for(table, ENTITY_DELETE, ""));
    EXPECT(table->seattle->is_deleted);
    EXPECT_TEXT(table->seattle->region, "us-east");
    EXPECT_EQ(table->seattle->failover_version, 103);
    EXPECT_OK(change_for(table, ENTITY_ADD, "us-west"));
    EXPECT(!table->seattle->is_deleted);
    EXPECT_EQ(table->seattle->failover_version, 201);
    EXPECT_OK(change_for(table, ENTITY_ADD, "us-east")); /* it is there: it stays */
    EXPECT_TEXT(table->seattle->region, "us-west");
}

TEST(entity, a_row_whose_versions_are_used_up_is_refused_and_not_wrapped)
{
    scoped(table_drop) struct table *table = table_new(0);
    EXPECT_OK(change_for(table, ENTITY_SET, "us-west"));
    table->seattle->failover_version = INT64_MAX / (100LL << 24);
    EXPECT_KIND(change_for(table, ENTITY_SET, "us-east"), ERR_BAD_REQUEST);
}

TEST(entity, of_two_rows_the_one_with_the_greater_version_stays)
{
    scoped(table_drop) struct table *table = table_new(1);
    STORED(EntityRecord) *row = STORED_NEW(
        table->arena, entity_record, .format = ENTITY_RECORD_FORMAT, .type = "user-location",
        .key = "seattle", .region = "us-east", .failover_version = 103);
    bool is_newer = false;
    EXPECT_OK(entity_decide_replicated(NULL, row, &table->group, table->arena, &is_newer));
    EXPECT(is_newer);
    table->seattle = entity_from_record(row);
    EXPECT_OK(
        entity_decide_replicated(table->seattle, row, &table->group, table->arena, &is_newer));
    EXPECT(!is_newer);
    row->failover_version = 3;
    EXPECT_OK(
        entity_decide_replicated(table->seattle, row, &table->group, table->arena, &is_newer));
    EXPECT(!is_newer);
    row->failover_version = 201; /* us-west's */
    EXPECT_KIND(
        entity_decide_replicated(table->seattle, row, &table->group, table->arena, &is_newer),
        ERR_BAD_REQUEST);
}

/* --- {domain}.{region} ------------------------------------------------------------------------ */

TEST(entity, each_region_of_a_domain_is_a_row_with_the_numbers_of_the_design, "G-060", "G-061")
{
    scoped(table_drop) struct table *table = table_new(0);
    struct domain *domain = domain_with(SEED_DOMAIN, table->arena);
    STORED(EntityRecord) **rows = NULL;
    EXPECT_EQ(entity_rows_of_domain(domain, &table->group, table->arena, &rows), 2);
    EXPECT_TEXT(rows[0]->key, "orders.us-east");
    EXPECT_TEXT(rows[0]->region, "us-east");
    EXPECT_EQ(rows[0]->failover_version, 3);
    EXPECT_TEXT(rows[1]->key, "orders.us-west");
    EXPECT_EQ(rows[1]->failover_version, 1);
    domain_drop(domain);
    /* the region is disabled: it maps to where its workflows are */
    domain = domain_with("region.us-west:cluster3=6,region.us-east:cluster3=6", table->arena);
    EXPECT_EQ(entity_rows_of_domain(domain, &table->group, table->arena, &rows), 2);
    EXPECT_TEXT(rows[1]->key, "orders.us-west");
    EXPECT_TEXT(rows[1]->region, "us-east");
    EXPECT_EQ(rows[1]->failover_version, 3);
    domain_drop(domain);
}
