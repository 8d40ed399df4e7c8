/* entity_stay_test.c - workflows of an entity that is in a region which their domain does not have:
 * they stay with the cluster that wrote their last event.
 *
 * What is at stake: a source can name any region of the group, and a domain may gain or lose one,
 * while clusters hear of both and of each other's events in any order. Whatever they heard, no two
 * clusters may write the same version, versions may only rise, and in the end there is one home. */
#include "base/random.h"
#include "base/test.h"
#include "domain/entity.h"
#include "domain/test/samples.h"
#include "wire/message.h"

enum { CLUSTERS = 4, REGIONS = 4, ROUNDS = 2000, WRITTEN_MAX = ROUNDS };

static const struct cluster clusters[CLUSTERS] = {
    {.name = "cluster0", .initial_failover_version = 0, .region = "r0", .is_enabled = true},
    {.name = "cluster1", .initial_failover_version = 2, .region = "r1", .is_enabled = true},
    {.name = "cluster2", .initial_failover_version = 4, .region = "r2", .is_enabled = true},
    {.name = "cluster3", .initial_failover_version = 6, .region = "r0", .is_enabled = true},
};
/* The domain always has the first, never the last, and gains and loses the others. */
static const struct region regions[REGIONS] = {{"r0", 1}, {"r1", 3}, {"r2", 5}, {"r3", 7}};

static struct cluster_group
group_of(unsigned current)
{
    return (struct cluster_group){.failover_version_increment = 100,
                                  .current = &clusters[current],
                                  .primary = &clusters[0],
                                  .clusters = clusters,
                                  .count = CLUSTERS,
                                  .regions = regions,
                                  .region_count = REGIONS};
}

/* What the domain says of a region; both parts are heard together. */
struct place {
    int64_t
        version; /* of who is active; kept when it is taken away, and above it when it is back */
    bool is_there;
};

/* What one cluster has heard of. */
struct view {
    struct entity *row;
    struct place places[REGIONS];
    int64_t last; /* the version of the last event of its copy of the run */
};

struct entity_stay_fixture {
    struct arena *arena;
    struct random random;
    struct entity *row; /* as the primary has it */
    struct place places[REGIONS];
    struct view views[CLUSTERS];
    int64_t written[WRITTEN_MAX]; /* versions of events, and by whom */
    unsigned writer[WRITTEN_MAX];
    size_t written_count;
    int64_t highest;
    unsigned stayed, resolved;
};

static struct domain *
domain_of(const struct place *places, struct arena *arena)
{
    struct cluster_group group = group_of(0);
    STORED(DomainRecord) *record = STORED_NEW(arena, domain_record);
    const char *text = "";
    for (int i = 0; i < REGIONS; i++)
        if (places[i].is_there)
            text = arena_format(arena, "%s%sregion.%s:%s=%lld", text, text[0] == '\0' ? "" : ",",
                                regions[i].name,
                                cluster_group_of_version(&group, places[i].version)->name,
                                (long long)places[i].version);
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = API_NEW(arena, domain, .id = "id", .name = "orders", .is_global_domain = true,
                             .active_cluster_name = "cluster0",
                             .active_clusters = sample_attributes(text, arena));
    return domain_from_record(record);
}

static struct active_cluster
active_in(struct entity_stay_fixture *entity_stay_fixture, unsigned cluster)
{
    const struct view *view = &entity_stay_fixture->views[cluster];
    struct cluster_group group = group_of(cluster);
    struct domain *domain = domain_of(view->places, entity_stay_fixture->arena);
    struct active_cluster active = entity_active_run(view->row, domain, view->last, &group);
    active.cluster_name = arena_text(entity_stay_fixture->arena, active.cluster_name);
    domain_drop(domain);
    return active;
}

static void
move_row(struct entity_stay_fixture *entity_stay_fixture)
{
    struct cluster_group group = group_of(0);
    struct entity_rules rules = {.group = &group, .name_length_max = 100, .count_max = 10};
    struct entity_change change = {
        ENTITY_SET, "user", "u", regions[random_below(&entity_stay_fixture->random, REGIONS)].name,
        "operator"};
    STORED(EntityRecord) *next = NULL;
    EXPECT_OK(entity_decide(entity_stay_fixture->row, &change, &rules, 1,
                            entity_stay_fixture->arena, &next));
    if (next == NULL)
        return;
    entity_drop(entity_stay_fixture->row);
    entity_stay_fixture->row = entity_from_record(next);
}

/* A region moves, comes or goes. */
static void
move_region(struct entity_stay_fixture *entity_stay_fixture)
{
    struct cluster_group group = group_of(0);
    unsigned region = (unsigned)random_below(&entity_stay_fixture->random, REGIONS - 1);
    struct place *place = &entity_stay_fixture->places[region];
    const struct cluster *to = &clusters[random_below(&entity_stay_fixture->random, CLUSTERS)];
    bool may_go = region > 0 && place->is_there;
    if (may_go && random_below(&entity_stay_fixture->random, 3) == 0) {
        place->is_there = false;
        return;
    }
    EXPECT(cluster_group_next_version(&group, to, place->version + 1, &place->version));
    place->is_there = true;
}

static void
receive(struct entity_stay_fixture *entity_stay_fixture, unsigned cluster, unsigned parts)
{
    struct view *view = &entity_stay_fixture->views[cluster];
    if (parts & 1) {
        entity_drop(view->row);
        view->row = entity_take(entity_stay_fixture->row);
    }
    for (unsigned i = 0; i < REGIONS; i++)
        if (parts & (2u << i))
            view->places[i] = entity_stay_fixture->places[i];
    const struct view *other =
        &entity_stay_fixture->views[random_below(&entity_stay_fixture->random, CLUSTERS)];
    if ((parts & 64) && other->last > view->last) /* of two histories the higher one wins */
        view->last = other->last;
}

/* An event, if the cluster believes that it may. */
static void
write_event(struct entity_stay_fixture *entity_stay_fixture, unsigned cluster)
{
    struct view *view = &entity_stay_fixture->views[cluster];
    struct active_cluster active = active_in(entity_stay_fixture, cluster);
    EXPECT(active.status != ACTIVE_UNKNOWN_ATTRIBUTE); /* whatever the source says */
    if (active.is_unresolved)
        EXPECT_EQ(active.failover_version, view->last);
    entity_stay_fixture->stayed += active.is_unresolved;
    entity_stay_fixture->resolved += !active.is_unresolved;
    if (active.status != ACTIVE_HERE || active.failover_version < view->last)
        return; /* tenure_check_newest */
    int64_t version = active.failover_version;
    EXPECT_EQ(version % 100, clusters[cluster].initial_failover_version);
    for (size_t i = 0; i < entity_stay_fixture->written_count; i++)
        EXPECT(entity_stay_fixture->written[i] != version ||
               entity_stay_fixture->writer[i] == cluster);
    entity_stay_fixture->written[entity_stay_fixture->written_count] = version;
    entity_stay_fixture->writer[entity_stay_fixture->written_count++] = cluster;
    view->last = version;
    if (version > entity_stay_fixture->highest)
        entity_stay_fixture->highest = version;
}

/* Who knows the newest row and domain, and finds the region there, is above all that was written;
 * strictly, if another cluster wrote it. */
static void
expect_above(struct entity_stay_fixture *entity_stay_fixture, unsigned cluster)
{
    struct cluster_group group = group_of(0);
    struct active_cluster active = active_in(entity_stay_fixture, cluster);
    const struct cluster *writer = cluster_group_of_version(&group, entity_stay_fixture->highest);
    if (active.is_unresolved)
        return;
    EXPECT(active.failover_version >= entity_stay_fixture->highest);
    EXPECT(active.failover_version > entity_stay_fixture->highest ||
           strcmp(writer->name, active.cluster_name) == 0);
}

static void
expect_one_home(struct entity_stay_fixture *entity_stay_fixture)
{
    unsigned here = 0;
    const char *home = NULL;
    for (unsigned i = 0; i < CLUSTERS; i++) {
        receive(entity_stay_fixture, i, 1 | 2 | 4 | 8 | 16);
        entity_stay_fixture->views[i].last = entity_stay_fixture->highest;
        struct active_cluster active = active_in(entity_stay_fixture, i);
        here += active.status == ACTIVE_HERE;
        if (home != NULL)
            EXPECT_TEXT(active.cluster_name, home);
        home = active.cluster_name;
    }
    EXPECT_EQ(here, 1);
}

TEST(entity_stay, a_run_whose_region_the_domain_does_not_have_has_one_home_and_rising_versions)
{
    struct entity_stay_fixture entity_stay_fixture = {.arena = arena_new(0)};
    random_seed(&entity_stay_fixture.random, test_seed(0));
    for (unsigned i = 0; i < REGIONS; i++)
        entity_stay_fixture.places[i] = (struct place){(int64_t)(i < 3 ? 2 * i : 0), i < 2};
    while (entity_stay_fixture.row == NULL || strcmp(entity_stay_fixture.row->region, "r0") != 0)
        move_row(&entity_stay_fixture);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        receive(&entity_stay_fixture, i, 1 | 2 | 4 | 8 | 16);
        entity_stay_fixture.views[i].last = -1;
    }
    entity_stay_fixture.views[0].last =
        active_in(&entity_stay_fixture, 0).failover_version; /* its start */
    entity_stay_fixture.highest = entity_stay_fixture.views[0].last;
    for (unsigned i = 1; i < CLUSTERS; i++)
        entity_stay_fixture.views[i].last = entity_stay_fixture.highest;
    for (int round = 0; round < ROUNDS; round++) {
        if (random_below(&entity_stay_fixture.random, 3) == 0)
            move_row(&entity_stay_fixture);
        else if (random_below(&entity_stay_fixture.random, 3) == 0)
            move_region(&entity_stay_fixture);
        unsigned cluster = (unsigned)random_below(&entity_stay_fixture.random, CLUSTERS);
        receive(&entity_stay_fixture, cluster,
                (unsigned)random_below(&entity_stay_fixture.random, 128));
        write_event(&entity_stay_fixture, cluster);
        if (random_below(&entity_stay_fixture.random, 20) == 0) {
            receive(&entity_stay_fixture, cluster, 1 | 2 | 4 | 8 | 16);
            expect_above(&entity_stay_fixture, cluster);
        }
        if (random_below(&entity_stay_fixture.random, 200) == 0)
            expect_one_home(&entity_stay_fixture);
    }
    expect_one_home(&entity_stay_fixture);
    EXPECT(entity_stay_fixture.stayed > ROUNDS / 10 && entity_stay_fixture.resolved > ROUNDS / 10);
    for (unsigned i = 0; i < CLUSTERS; i++)
        entity_drop(entity_stay_fixture.views[i].row);
    entity_drop(entity_stay_fixture.row);
    arena_free(entity_stay_fixture.arena);
}

/* A start has no event before it: it is refused, and nobody may write. */
ARENA_TEST(entity_stay, a_new_run_has_no_home_in_a_region_that_the_domain_does_not_have)
{
    struct cluster_group group = group_of(1);
    STORED(EntityRecord) record = {.type = "user", .key = "u", .region = "r3", .writer = "watcher"};
    record.failover_version = 107;
    struct entity *row = entity_from_record(&record);
    struct place places[REGIONS] = {{0, true}, {102, true}};
    struct domain *domain = domain_of(places, arena);
    struct active_cluster none = entity_active_run(row, domain, -1, &group);
    EXPECT_EQ(none.status, ACTIVE_UNKNOWN_ATTRIBUTE);
    EXPECT(none.is_unresolved);
    struct active_cluster here = entity_active_run(row, domain, 202, &group);
    EXPECT_EQ(here.status, ACTIVE_HERE);
    EXPECT_EQ(here.failover_version, 202);
    EXPECT(here.is_unresolved);
    struct active_cluster there = entity_active_run(row, domain, 200, &group);
    EXPECT_EQ(there.status, ACTIVE_ELSEWHERE);
    EXPECT_TEXT(there.cluster_name, "cluster0");
    domain_drop(domain);
    entity_drop(row);
}
