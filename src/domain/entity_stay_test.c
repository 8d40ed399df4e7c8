/* entity_stay_test.c - workflows of an entity that is in a region which their domain does not have:
 * they stay with the cluster that wrote their last event.
 *
 * What is at stake: a source can name any region of the group, and a domain may gain or lose one,
 * while clusters hear of both and of each other's events in any order. Whatever they heard, no two
 * clusters may write the same version, versions may only rise, and in the end there is one home. */
#include "base/random.h"
#include "base/test.h"
#include "domain/entity.h"
#include "domain/samples.h"
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

struct world {
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
    STORED(DomainRecord) *record = message_new(arena, STORED_TYPE(domain_record));
    const char *text = "";
    for (int i = 0; i < REGIONS; i++)
        if (places[i].is_there)
            text = arena_format(arena, "%s%sregion.%s:%s=%lld", text, text[0] == '\0' ? "" : ",",
                                regions[i].name,
                                cluster_group_of_version(&group, places[i].version)->name,
                                (long long)places[i].version);
    record->format = DOMAIN_RECORD_FORMAT;
    record->domain = message_new(arena, API_TYPE(domain));
    record->domain->id = "id";
    record->domain->name = "orders";
    record->domain->is_global_domain = true;
    record->domain->active_cluster_name = "cluster0";
    record->domain->active_clusters = sample_attributes(text, arena);
    return domain_from_record(record);
}

static struct active_cluster
active_in(struct world *world, unsigned cluster)
{
    const struct view *view = &world->views[cluster];
    struct cluster_group group = group_of(cluster);
    struct domain *domain = domain_of(view->places, world->arena);
    struct active_cluster active = entity_active_run(view->row, domain, view->last, &group);
    active.cluster_name = arena_text(world->arena, active.cluster_name);
    domain_drop(domain);
    return active;
}

static void
move_row(struct world *world)
{
    struct cluster_group group = group_of(0);
    struct entity_rules rules = {.group = &group, .name_length_max = 100, .count_max = 10};
    struct entity_wish wish = {ENTITY_SET, "user", "u",
                               regions[random_below(&world->random, REGIONS)].name, "operator"};
    STORED(EntityRecord) *next = NULL;
    EXPECT_OK(entity_decide(world->row, &wish, &rules, 1, world->arena, &next));
    if (next == NULL)
        return;
    entity_drop(world->row);
    world->row = entity_from_record(next);
}

/* A region moves, comes or goes. */
static void
move_region(struct world *world)
{
    struct cluster_group group = group_of(0);
    unsigned region = (unsigned)random_below(&world->random, REGIONS - 1);
    struct place *place = &world->places[region];
    const struct cluster *to = &clusters[random_below(&world->random, CLUSTERS)];
    bool may_go = region > 0 && place->is_there;
    if (may_go && random_below(&world->random, 3) == 0) {
        place->is_there = false;
        return;
    }
    EXPECT(cluster_group_next_version(&group, to, place->version + 1, &place->version));
    place->is_there = true;
}

static void
hear(struct world *world, unsigned cluster, unsigned parts)
{
    struct view *view = &world->views[cluster];
    if (parts & 1) {
        entity_drop(view->row);
        view->row = entity_take(world->row);
    }
    for (unsigned i = 0; i < REGIONS; i++)
        if (parts & (2u << i))
            view->places[i] = world->places[i];
    const struct view *other = &world->views[random_below(&world->random, CLUSTERS)];
    if ((parts & 64) && other->last > view->last) /* of two histories the higher one wins */
        view->last = other->last;
}

/* An event, if the cluster believes that it may. */
static void
write_event(struct world *world, unsigned cluster)
{
    struct view *view = &world->views[cluster];
    struct active_cluster active = active_in(world, cluster);
    EXPECT(active.status != ACTIVE_UNKNOWN_ATTRIBUTE); /* whatever the source says */
    if (active.is_unresolved)
        EXPECT_EQ(active.failover_version, view->last);
    world->stayed += active.is_unresolved;
    world->resolved += !active.is_unresolved;
    if (active.status != ACTIVE_HERE || active.failover_version < view->last)
        return; /* tenure_check_newest */
    int64_t version = active.failover_version;
    EXPECT_EQ(version % 100, clusters[cluster].initial_failover_version);
    for (size_t i = 0; i < world->written_count; i++)
        EXPECT(world->written[i] != version || world->writer[i] == cluster);
    world->written[world->written_count] = version;
    world->writer[world->written_count++] = cluster;
    view->last = version;
    if (version > world->highest)
        world->highest = version;
}

/* Who knows the newest row and domain, and finds the region there, is above all that was written;
 * strictly, if another cluster wrote it. */
static void
expect_above(struct world *world, unsigned cluster)
{
    struct cluster_group group = group_of(0);
    struct active_cluster active = active_in(world, cluster);
    const struct cluster *writer = cluster_group_of_version(&group, world->highest);
    if (active.is_unresolved)
        return;
    EXPECT(active.failover_version >= world->highest);
    EXPECT(active.failover_version > world->highest ||
           strcmp(writer->name, active.cluster_name) == 0);
}

static void
expect_one_home(struct world *world)
{
    unsigned here = 0;
    const char *home = NULL;
    for (unsigned i = 0; i < CLUSTERS; i++) {
        hear(world, i, 1 | 2 | 4 | 8 | 16);
        world->views[i].last = world->highest;
        struct active_cluster active = active_in(world, i);
        here += active.status == ACTIVE_HERE;
        if (home != NULL)
            EXPECT_TEXT(active.cluster_name, home);
        home = active.cluster_name;
    }
    EXPECT_EQ(here, 1);
}

TEST(entity_stay, a_run_whose_region_the_domain_does_not_have_has_one_home_and_rising_versions)
{
    struct world world = {.arena = arena_new(0)};
    random_seed(&world.random, test_seed(0));
    for (unsigned i = 0; i < REGIONS; i++)
        world.places[i] = (struct place){(int64_t)(i < 3 ? 2 * i : 0), i < 2};
    while (world.row == NULL || strcmp(world.row->region, "r0") != 0)
        move_row(&world);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        hear(&world, i, 1 | 2 | 4 | 8 | 16);
        world.views[i].last = -1;
    }
    world.views[0].last = active_in(&world, 0).failover_version; /* its start */
    world.highest = world.views[0].last;
    for (unsigned i = 1; i < CLUSTERS; i++)
        world.views[i].last = world.highest;
    for (int round = 0; round < ROUNDS; round++) {
        if (random_below(&world.random, 3) == 0)
            move_row(&world);
        else if (random_below(&world.random, 3) == 0)
            move_region(&world);
        unsigned cluster = (unsigned)random_below(&world.random, CLUSTERS);
        hear(&world, cluster, (unsigned)random_below(&world.random, 128));
        write_event(&world, cluster);
        if (random_below(&world.random, 20) == 0) {
            hear(&world, cluster, 1 | 2 | 4 | 8 | 16);
            expect_above(&world, cluster);
        }
        if (random_below(&world.random, 200) == 0)
            expect_one_home(&world);
    }
    expect_one_home(&world);
    EXPECT(world.stayed > ROUNDS / 10 && world.resolved > ROUNDS / 10);
    for (unsigned i = 0; i < CLUSTERS; i++)
        entity_drop(world.views[i].row);
    entity_drop(world.row);
    arena_free(world.arena);
}

/* A start has no event before it: it is refused, and nobody may write. */
TEST(entity_stay, a_new_run_has_no_home_in_a_region_that_the_domain_does_not_have)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
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
