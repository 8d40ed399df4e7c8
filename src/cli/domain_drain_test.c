/* domain_drain_test.c - what people read of a graceful failover. */
#include "base/test.h"
#include "cli/domain_drain.h"
#include "wire/message.h"

#define NS_PER_TENTH INT64_C(100000000)

static API(FailoverInfo) *
info_of(struct arena *arena, int done, size_t pending)
{
    API(FailoverInfo) *info = message_new(arena, API_TYPE(failover_info));
    info->completed_shard_count = done;
    info->n_pending_shards = pending;
    info->pending_shards = arena_zalloc(arena, pending + 1, sizeof *info->pending_shards);
    for (size_t i = 0; i < pending; i++)
        info->pending_shards[i] = (int32_t)(3 + i);
    return info;
}

TEST(domain_drain, a_line_says_how_many_shards_of_all_are_done)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct drain_sight sight = {.domain = "orders", .target = "west", .passed = 2 * NS_PER_TENTH};
    EXPECT_TEXT(drain_line(&sight, arena),
                "orders moves to west: no shard has handed over yet, 0.20 s");
    sight.info = info_of(arena, 12, 4);
    EXPECT_TEXT(drain_line(&sight, arena), "orders moves to west: 12 of 16 shards, 0.20 s");
}

TEST(domain_drain, the_end_says_how_long_it_took_and_that_nothing_was_lost)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct drain_sight sight = {.domain = "orders",
                                .target = "west",
                                .active = "west",
                                .passed = 3 * NS_PER_TENTH,
                                .info = info_of(arena, 12, 4)};
    EXPECT_TEXT(drain_report(&sight, arena),
                "Domain orders successfully failed over to west in 0.30 s: all 16 shards handed "
                "over, none timed out, nothing was lost.");
    sight.info = NULL;
    EXPECT_TEXT(drain_report(&sight, arena),
                "Domain orders successfully failed over to west in 0.30 s: all shards handed over, "
                "none timed out, nothing was lost.");
}

TEST(domain_drain, the_end_names_the_shards_that_were_missing_when_the_time_was_over)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct drain_sight sight = {.domain = "orders",
                                .target = "west",
                                .active = "west",
                                .is_timed_out = true,
                                .passed = 100 * NS_PER_TENTH,
                                .info = info_of(arena, 14, 2)};
    EXPECT_TEXT(drain_report(&sight, arena),
                "Domain orders is active in west after 10.00 s: the time was over before all had "
                "handed over (shard 3, 4).\nWhat was not replicated by then is merged when it "
                "comes.");
    sight.info = info_of(arena, 0, 30);
    EXPECT(strstr(drain_report(&sight, arena), "21, 22 and 10 more)") != NULL);
    sight.info = NULL;
    EXPECT(strstr(drain_report(&sight, arena), "before any shard had handed over.") != NULL);
}

TEST(domain_drain, what_the_server_tells_of_the_end_counts_for_more_than_what_was_seen)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(FailoverOutcome) *outcome = message_new(arena, API_TYPE(failover_outcome));
    char *missing[] = {"shard 3 of east", "shard 7 of east"};
    struct drain_sight sight = {.domain = "orders",
                                .target = "west",
                                .active = "west",
                                .is_timed_out = true,
                                .info = info_of(arena, 14, 2),
                                .outcome = outcome};
    outcome->result = "complete";
    outcome->shard_count = 16;
    EXPECT(strstr(drain_report(&sight, arena), "all 16 shards handed over") != NULL);
    outcome->missing = missing;
    outcome->n_missing = 2;
    outcome->result = "timed out";
    EXPECT(strstr(drain_report(&sight, arena),
                  "the time was over before all had handed over (shard 3 of east, shard 7 of "
                  "east)") != NULL);
    outcome->result = "forced";
    EXPECT(strstr(drain_report(&sight, arena), "it was forced before all") != NULL);
    outcome->result = "superseded";
    EXPECT(strstr(drain_report(&sight, arena), "Another failover took its place") != NULL);
}

TEST(domain_drain, a_failover_that_was_overtaken_says_who_is_active)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct drain_sight sight = {
        .domain = "orders", .target = "west", .active = "east", .passed = NS_PER_TENTH};
    EXPECT_TEXT(drain_report(&sight, arena),
                "Another failover took its place after 0.10 s: domain orders is active in east.");
}
