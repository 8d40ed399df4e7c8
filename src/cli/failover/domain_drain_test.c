/* domain_drain_test.c - what people read of failovers: only what was compared. */
#include "base/test.h"
#include "cli/domain/domain_drain.h"
#include "cli/domain/domain_show.h"
#include "domain/test/samples.h"
#include "wire/message.h"

#define NS_PER_TENTH INT64_C(100000000)

/* "east 12/16, north 0/0". */
static API(ClusterShards) **
shards_of(struct arena *arena, int east_ready, int east, int north_ready, int north)
{
    API(ClusterShards) **all = arena_zalloc(arena, 2, sizeof *all);
    const int counts[2][2] = {{east_ready, east}, {north_ready, north}};
    for (int i = 0; i < 2; i++) {
        all[i] = API_NEW(arena, cluster_shards, .cluster = i == 0 ? "east" : "north",
                         .ready_count = counts[i][0], .shard_count = counts[i][1]);
    }
    return all;
}

static API(FailoverProgress) *
progress_of(struct arena *arena, API(ClusterShards) **clusters)
{
    return API_NEW(arena, failover_progress, .clusters = clusters, .n_clusters = 2);
}

static API(FailoverOutcome) *
outcome_of(struct arena *arena, const char *result, API(ClusterShards) **clusters)
{
    return API_NEW(arena, failover_outcome, .result = (char *)result, .clusters = clusters,
                   .n_clusters = 2,
                   .shard_count = clusters[0]->shard_count + clusters[1]->shard_count);
}

static API(FailoverInfo) *
info_of(struct arena *arena, int done, size_t pending)
{
    return API_NEW(arena, failover_info, .completed_shard_count = done,
                   .n_pending_shards = pending);
}

ARENA_TEST(domain_drain, a_line_says_how_many_shards_of_which_cluster_are_done)
{
    struct drain_state state = {.domain = "orders", .target = "west", .passed = 2 * NS_PER_TENTH};
    EXPECT_TEXT(drain_line(&state, arena),
                "orders moves to west: no shard has handed over yet, 0.20 s");
    state.progress = progress_of(arena, shards_of(arena, 12, 16, 4, 4));
    EXPECT_TEXT(drain_line(&state, arena),
                "orders moves to west: 12 of 16 shards of east, 4 of 4 shards of north, 0.20 s");
    /* From north nothing came: how many it has is not known. */
    state.progress = progress_of(arena, shards_of(arena, 16, 16, 0, 0));
    EXPECT_TEXT(drain_line(&state, arena),
                "orders moves to west: 16 of 16 shards of east, nothing from north, 0.20 s");
    state.progress = NULL;
    state.info = info_of(arena, 12, 4); /* of a server that has no more */
    EXPECT_TEXT(drain_line(&state, arena), "orders moves to west: 12 of 16 shards, 0.20 s");
}

ARENA_TEST(domain_drain, of_an_attribute_names_it_and_where_it_goes)
{
    struct drain_state state = {.domain = "orders",
                                .target = "XYZ",
                                .active = "XYZ",
                                .scope = "region",
                                .name = "lis",
                                .passed = 2 * NS_PER_TENTH};
    EXPECT_TEXT(drain_line(&state, arena),
                "region.lis of orders moves to XYZ: no shard has handed over yet, 0.20 s");
    state.outcome = outcome_of(arena, "complete", shards_of(arena, 16, 16, 4, 4));
    EXPECT_TEXT(drain_report(&state, arena),
                "region.lis of domain orders successfully failed over to XYZ in 0.20 s: 16 of 16 "
                "shards of east, 4 of 4 shards of north handed over.");
}

ARENA_TEST(domain_drain, the_end_says_how_long_it_took_and_what_was_compared)
{
    struct drain_state state = {.domain = "orders",
                                .target = "west",
                                .active = "west",
                                .passed = 3 * NS_PER_TENTH,
                                .progress = progress_of(arena, shards_of(arena, 12, 16, 0, 0))};
    state.outcome = outcome_of(arena, "complete", shards_of(arena, 16, 16, 16, 16));
    EXPECT_TEXT(drain_report(&state, arena),
                "Domain orders successfully failed over to west in 0.30 s: 16 of 16 shards of "
                "east, 16 of 16 shards of north handed over.");
    /* What ended it, and how, is entered a moment later: until then nobody knows. */
    state.outcome = NULL;
    EXPECT_TEXT(drain_report(&state, arena),
                "Domain orders is active in west after 0.30 s. Whether all shards had handed over "
                "by then is not known: the server does not say (last seen: 12 of 16 shards of "
                "east, nothing from north).");
    state.progress = NULL;
    EXPECT(strstr(drain_report(&state, arena), "(last seen: nothing)") != NULL);
}

ARENA_TEST(domain_drain, the_end_names_what_was_missing)
{
    API(FailoverOutcome) *outcome = outcome_of(arena, "timed out", shards_of(arena, 14, 16, 0, 0));
    char *missing[30] = {"east shard 3: no marker came", "north: nothing came"};
    struct drain_state state = {.domain = "orders",
                                .target = "west",
                                .active = "west",
                                .passed = 100 * NS_PER_TENTH,
                                .outcome = outcome};
    outcome->missing = missing;
    outcome->n_missing = 2;
    EXPECT_TEXT(drain_report(&state, arena),
                "Domain orders is active in west after 10.00 s: the time was over before all "
                "shards had handed over; handed over: 14 of 16 shards of east, nothing from north; "
                "missing: east shard 3: no marker came, north: nothing came.\n"
                "What was not replicated by then is merged when it arrives.");
    for (int i = 0; i < 30; i++)
        missing[i] = "x";
    outcome->n_missing = 30;
    EXPECT(strstr(drain_report(&state, arena), "x and 10 more.") != NULL);
    outcome->result = "forced";
    EXPECT(strstr(drain_report(&state, arena), "it was forced before all") != NULL);
    outcome->result = "superseded";
    EXPECT(strstr(drain_report(&state, arena), "Another failover replaced it") != NULL);
}

ARENA_TEST(domain_drain, a_failover_that_was_overtaken_says_who_is_active)
{
    struct drain_state state = {
        .domain = "orders", .target = "west", .active = "east", .passed = NS_PER_TENTH};
    EXPECT_TEXT(drain_report(&state, arena),
                "Another failover replaced it after 0.10 s: orders is active in east.");
}

/* --- by force ---- */

static API(Domain) *
domain_at(struct arena *arena, const char *cluster, int64_t version, const char *attributes)
{
    API(Domain) *domain =
        API_NEW(arena, domain, .name = "orders", .active_cluster_name = (char *)cluster,
                .failover_version = version);
    if (attributes != NULL)
        domain->active_clusters = sample_attributes(attributes, arena);
    return domain;
}

ARENA_TEST(domain_moves, say_what_moved_and_what_was_there_already)
{
    struct domain_moves moves = {.before = domain_at(arena, "east", 0, NULL),
                                 .after = domain_at(arena, "west", 1, NULL),
                                 .moves_domain = true};
    EXPECT(domain_has_moved(&moves));
    EXPECT_TEXT(domain_show_moves(&moves, arena),
                "Domain orders successfully failed over to west.\n");
    moves.before = moves.after;
    EXPECT(!domain_has_moved(&moves));
    EXPECT_TEXT(domain_show_moves(&moves, arena),
                "Domain orders was active in west already; nothing was changed.\n");
    moves.before = NULL;
    EXPECT_TEXT(domain_show_moves(&moves, arena), "Domain orders is active in west.\n");

    moves = (struct domain_moves){.before = domain_at(arena, "east", 0, "region.lis:east=0"),
                                  .after = domain_at(arena, "east", 10, "region.lis:west=1"),
                                  .attributes = sample_attributes("region.lis:west", arena)};
    EXPECT_TEXT(domain_show_moves(&moves, arena),
                "region.lis of domain orders successfully failed over to west.\n");
}

ARENA_TEST(domain_moves, say_that_a_graceful_failover_was_ended)
{
    API(Domain) *before = domain_at(arena, "west", 1, NULL);
    before->failover_info = info_of(arena, 3, 1);
    struct domain_moves moves = {
        .before = before, .after = domain_at(arena, "west", 1, NULL), .moves_domain = true};
    EXPECT(domain_has_moved(&moves));
    EXPECT_TEXT(domain_show_moves(&moves, arena),
                "Domain orders is active in west; the graceful failover that was in "
                "progress has ended.\n");
}
