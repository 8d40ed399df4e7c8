/* drains_sim_test.c - a graceful failover as its target sees it: shards of the source become ready,
 * one after the other, or do not.
 *
 * What is at stake: the domain is active exactly when all shards of the source are ready, or at the
 * end of its time, whatever restarts or comes twice. Method: "orders" drains from east to west; the
 * test is the source, and south, and says which of their shards are ready. Time is virtual. */
#include "base/test.h"
#include "domain/active.h"
#include "domain/drain.h"
#include "failover/test/drain_pair.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "route/test_answers.h"
#include "store/key.h"
#include "wire/message.h"
#include "wire/presence.h"

#define SHARDS    4
#define TIMEOUT_S 60

static void
sleep_for(struct cluster_pair *cluster_pair, int64_t time)
{
    EXPECT_OK(fiber_sleep(time, cluster_pair->arena));
}

static const struct domain *
orders_in(struct domains *domains)
{
    const struct domain *domain = domains_find_name(domains, "orders");
    EXPECT(domain != NULL);
    return domain;
}

static enum active_status
status(struct cluster_pair *cluster_pair)
{
    return domain_active(orders_in(cluster_pair_domains(cluster_pair, WEST)), NULL,
                         &cluster_pair->side[WEST].group)
        .status;
}

static int64_t
version(struct cluster_pair *cluster_pair)
{
    return orders_in(cluster_pair_domains(cluster_pair, WEST))->record->domain->failover_version;
}

static void
begin(struct cluster_pair *cluster_pair)
{
    API(FailoverDomainRequest) *request =
        API_NEW(cluster_pair->arena, failover_domain_request, .domain_name = "orders",
                .domain_active_cluster_name = "west",
                .failover_timeout = presence_make_duration(cluster_pair->arena, TIMEOUT_S));
    EXPECT_MADE(domains_failover(cluster_pair_domains(cluster_pair, WEST), request,
                                 cluster_pair->arena, NULL));
    EXPECT_EQ(status(cluster_pair), ACTIVE_PENDING);
}

/* "orders" is registered in east, and drains to west. */
static void
begin_first(struct cluster_pair *cluster_pair)
{
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    begin(cluster_pair);
}

static struct drain_ready
ready_of(struct cluster_pair *cluster_pair, uint32_t shard, int64_t failover_version)
{
    return (struct drain_ready){.domain_id =
                                    orders_in(cluster_pair_domains(cluster_pair, WEST))->id,
                                .scope = "",
                                .name = "",
                                .failover_version = failover_version,
                                .source_cluster = "east",
                                .source_shard = shard,
                                .shard_count = SHARDS,
                                .marker_time = clock_wall()};
}

static void
note(struct cluster_pair *cluster_pair, uint32_t shard)
{
    struct drain_ready ready = ready_of(cluster_pair, shard, version(cluster_pair));
    EXPECT_ANSWER(
        drains_note_ready(drain_pair_drains(cluster_pair, WEST), &ready, cluster_pair->arena));
    ready.source_cluster = "south";
    EXPECT_ANSWER(
        drains_note_ready(drain_pair_drains(cluster_pair, WEST), &ready, cluster_pair->arena));
    sleep_for(cluster_pair, NS_PER_MS);
}

static struct drain_progress
progress_of(struct cluster_pair *cluster_pair)
{
    struct drain_progress progress;
    EXPECT_ANSWER(drains_read(drain_pair_drains(cluster_pair, WEST),
                              orders_in(cluster_pair_domains(cluster_pair, WEST))->id, "", "",
                              cluster_pair->arena, &progress));
    return progress;
}

/* How the newest failover ended; NULL: it has not. */
static const STORED(DrainOutcome) *
outcome_in(struct cluster_pair *cluster_pair, int side)
{
    struct domain_failovers found;
    EXPECT_OK(domains_list_failovers(cluster_pair_domains(cluster_pair, side),
                                     orders_in(cluster_pair_domains(cluster_pair, side))->id,
                                     (struct slice){0}, 10, cluster_pair->arena, &found));
    EXPECT(found.count > 0);
    EXPECT(found.failover[0]->n_outcomes <= 1);
    return found.failover[0]->n_outcomes == 0 ? NULL : found.failover[0]->outcomes[0];
}

static size_t
count_rows(struct cluster_pair *cluster_pair)
{
    struct scan scan = {.partition = PARTITION_OF_DOMAINS, .kind = ROW_DOMAIN_DRAIN};
    struct rows rows;
    EXPECT_OK(store_scan(cluster_pair->side[WEST].store, &scan, cluster_pair->arena, &rows));
    return rows.count;
}

static uint64_t
counted(struct cluster_pair *cluster_pair, const char *name)
{
    return counter_value(metrics_counter(cluster_pair->metrics, name, "", NULL));
}

static void
expect_end(struct cluster_pair *cluster_pair, STORED(DrainEnd) end)
{
    EXPECT(outcome_in(cluster_pair, WEST) != NULL);
    EXPECT_EQ(outcome_in(cluster_pair, WEST)->end, end);
    EXPECT_EQ(count_rows(cluster_pair), 0);
}

/* --- all are ready ---- */

static void
play_complete(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    uint64_t before = domains_notification_version(cluster_pair_domains(cluster_pair, WEST));
    EXPECT_EQ(progress_of(cluster_pair).shard_count, 0);
    note(cluster_pair, 2);
    note(cluster_pair, 0);
    note(cluster_pair, 2);
    note(cluster_pair, 3);
    note(cluster_pair, 3);
    EXPECT_EQ(status(cluster_pair), ACTIVE_PENDING);
    struct drain_progress progress = progress_of(cluster_pair);
    EXPECT_EQ(progress.ready_count, 3);
    EXPECT_EQ(progress.shard_count, SHARDS);
    EXPECT_EQ(progress.cluster_count, 2);
    for (size_t i = 0; i < 2; i++) {
        EXPECT_TEXT(progress.clusters[i].name, i == 0 ? "east" : "south");
        EXPECT_EQ(progress.clusters[i].ready_count, 3);
        EXPECT_EQ(progress.clusters[i].shard_count, SHARDS);
    }
    EXPECT_EQ(progress.pending_count, 1);
    EXPECT_EQ(progress.pending[0], 1);
    struct gauge *gauge =
        metrics_gauge(cluster_pair->metrics, "cadence_failover_marker_count", "", NULL);
    EXPECT_EQ(gauge_value(gauge), 6);
    EXPECT_EQ(progress.end_time - progress.start_time, TIMEOUT_S * NS_PER_S);
    note(cluster_pair, 1);
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    EXPECT_EQ(version(cluster_pair), 1);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), before + 1);
    EXPECT(!progress_of(cluster_pair).is_found);
    EXPECT_EQ(gauge_value(gauge), 0);
    EXPECT_EQ(counted(cluster_pair, "cadence_graceful_failover_completed"), 1);
    EXPECT_EQ(counted(cluster_pair, "cadence_failover_marker_received"), 2 * SHARDS);
    EXPECT_EQ(histogram_count(metrics_histogram(cluster_pair->metrics,
                                                "cadence_graceful_failover_latency", "", NULL)),
              1);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE);
    EXPECT_EQ(outcome_in(cluster_pair, WEST)->n_missing_shards, 0);
    /* The source hears that it is over, and how it ended. */
    cluster_pair_replicate(cluster_pair, WEST);
    EXPECT(domain_find_drain(orders_in(cluster_pair_domains(cluster_pair, EAST)), NULL) == NULL);
    EXPECT_EQ(outcome_in(cluster_pair, EAST)->end,
              CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE);
    note(cluster_pair, 1); /* nobody waits for it any more */
    EXPECT_EQ(count_rows(cluster_pair), 0);
}

TEST(drains, end_when_every_shard_of_the_source_is_ready_each_counted_once, "F-016", "F-025",
     "F-026", "F-029", "F-032", "F-034")
{
    drain_pair_simulate(play_complete);
}

/* --- one cluster is silent ---- */

static void
play_silent(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct drain_ready ready = ready_of(cluster_pair, i, version(cluster_pair));
        EXPECT_ANSWER(
            drains_note_ready(drain_pair_drains(cluster_pair, WEST), &ready, cluster_pair->arena));
    }
    struct drain_progress progress = progress_of(cluster_pair), *all = NULL;
    size_t count = 0;
    EXPECT_EQ(progress.ready_count, 0); /* of no number all are ready */
    EXPECT_EQ(progress.pending_count, SHARDS);
    EXPECT_EQ(progress.clusters[0].ready_count, SHARDS);
    EXPECT_EQ(progress.clusters[1].shard_count, 0);
    EXPECT_ANSWER(drains_list(drain_pair_drains(cluster_pair, WEST),
                              orders_in(cluster_pair_domains(cluster_pair, WEST))->id,
                              cluster_pair->arena, &all, &count));
    EXPECT_EQ(count, 1);
    EXPECT_EQ(all[0].ready_count, 0);
    EXPECT_EQ(all[0].failover_version, version(cluster_pair));
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST);
    sleep_for(cluster_pair, NS_PER_MS);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED);
    const STORED(DrainOutcome) *outcome = outcome_in(cluster_pair, WEST);
    EXPECT_EQ(outcome->n_clusters, 2);
    EXPECT_TEXT(outcome->clusters[0]->name, "east");
    EXPECT_EQ(outcome->clusters[0]->ready_count, SHARDS);
    EXPECT_TEXT(outcome->clusters[1]->name, "south");
    EXPECT_EQ(outcome->clusters[1]->shard_count, 0);
    EXPECT_TEXT(outcome->missing[0], "south: nothing came");
}

TEST(drains, count_a_cluster_from_which_nothing_came_as_not_ready)
{
    drain_pair_simulate(play_silent);
}

/* --- in the middle everything stops ---- */

static void
play_restart(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    for (uint32_t i = 0; i < SHARDS; i++) {
        EXPECT_EQ(status(cluster_pair), ACTIVE_PENDING);
        note(cluster_pair, i);
        drain_pair_reopen(cluster_pair, WEST);
        sleep_for(cluster_pair, NS_PER_MS);
    }
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE);
}

TEST(drains, go_on_after_every_restart_where_they_were, "F-035", "F-036")
{
    drain_pair_simulate(play_restart);
}

/* --- the time is up ---- */

static void
play_timeout(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    note(cluster_pair, 0);
    note(cluster_pair, 3);
    struct drain_ready dead_lettered = ready_of(cluster_pair, 2, 1);
    EXPECT_ANSWER(drains_note_blocked(drain_pair_drains(cluster_pair, WEST), &dead_lettered,
                                      "a dead letter of w", cluster_pair->arena));
    EXPECT_EQ(progress_of(cluster_pair).missing_count, 4);
    EXPECT_TEXT(progress_of(cluster_pair).missing[1], "east shard 2: a dead letter of w");
    int64_t end = progress_of(cluster_pair).end_time;
    sleep_for(cluster_pair, end - clock_wall() - NS_PER_MS);
    EXPECT_EQ(status(cluster_pair), ACTIVE_PENDING);
    sleep_for(cluster_pair, 20 * NS_PER_MS);
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    EXPECT_EQ(version(cluster_pair), 1);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT);
    const STORED(DrainOutcome) *outcome = outcome_in(cluster_pair, WEST);
    EXPECT_EQ(counted(cluster_pair, "cadence_graceful_failover_failures"), 1);
    EXPECT_EQ(outcome->n_missing_shards, 2);
    EXPECT_EQ(outcome->missing_shards[0], 1);
    EXPECT_EQ(outcome->missing_shards[1], 2);
    EXPECT_EQ(outcome->n_missing, 4);
    EXPECT_TEXT(outcome->missing[0], "east shard 1: no marker came");
    EXPECT_TEXT(outcome->missing[1], "east shard 2: a dead letter of w");
    EXPECT_TEXT(outcome->missing[2], "south shard 1: no marker came");
    note(cluster_pair, 1); /* too late */
    EXPECT_EQ(count_rows(cluster_pair), 0);
}

TEST(drains, end_with_their_time_and_list_which_shards_were_missing, "F-027", "F-028", "F-041")
{
    drain_pair_simulate(play_timeout);
}

static void
play_late_restart(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    drain_pair_stop(cluster_pair, WEST); /* nobody is there when its time is up */
    sleep_for(cluster_pair, 2 * TIMEOUT_S * NS_PER_S);
    drain_pair_start(cluster_pair, WEST);
    sleep_for(cluster_pair, NS_PER_MS);
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT);
}

TEST(drains, whose_time_was_up_while_nobody_ran_end_at_the_start)
{
    drain_pair_simulate(play_late_restart);
}

/* --- something else ends it ---- */

static void
play_force(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    note(cluster_pair, 0);
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST);
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    EXPECT_EQ(version(cluster_pair), 1);
    sleep_for(cluster_pair, NS_PER_MS);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED);
}

TEST(drains, are_completed_by_force_with_the_version_that_they_have, "F-038")
{
    drain_pair_simulate(play_force);
}

static void
play_superseded(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    note(cluster_pair, 0);
    note(cluster_pair, 1);
    cluster_pair_replicate(cluster_pair, WEST);
    cluster_pair_failover(cluster_pair, EAST, "orders", EAST);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(status(cluster_pair), ACTIVE_ELSEWHERE);
    sleep_for(cluster_pair, NS_PER_MS);
    EXPECT_EQ(count_rows(cluster_pair), 0);
    begin(cluster_pair);
    EXPECT_EQ(version(cluster_pair), 11);
    struct drain_ready old = ready_of(cluster_pair, 2, 1), new = ready_of(cluster_pair, 2, 21);
    EXPECT_ANSWER(
        drains_note_ready(drain_pair_drains(cluster_pair, WEST), &old, cluster_pair->arena));
    EXPECT_EQ(progress_of(cluster_pair).ready_count, 0);
    /* What is newer than all that is known here is another host's doing: try again. */
    EXPECT_KIND(drains_note_ready(drain_pair_drains(cluster_pair, WEST), &new, cluster_pair->arena),
                ERR_UNAVAILABLE);
    for (uint32_t i = 0; i < SHARDS; i++)
        note(cluster_pair, i);
    EXPECT_EQ(status(cluster_pair), ACTIVE_HERE);
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE);
}

TEST(drains, of_an_older_version_count_for_nothing, "F-030", "F-037")
{
    drain_pair_simulate(play_superseded);
}

/* The row that says how a drain ended. With it the coordinator begins to work, and the seed decides
 * how far it gets before the call that ended the drain is answered: so the host crashes right here.
 */
static bool
is_end_left(enum row_kind kind, struct slice value, struct arena *arena)
{
    STORED(DrainLeftRecord) *left = NULL;
    return kind == ROW_DOMAIN_DRAIN &&
           message_decode(arena, STORED_TYPE(drain_left_record), value, &left) == NULL &&
           left->drain != NULL;
}

/* The coordinator of the next life finds it, and tells the other cluster, too. */
static void
expect_end_found(struct cluster_pair *cluster_pair, STORED(DrainEnd) end)
{
    sleep_for(cluster_pair, NS_PER_MS);
    struct domain_failovers found;
    const struct domain *domain = orders_in(cluster_pair_domains(cluster_pair, WEST));
    const STORED(FailoverRecord) *entry = NULL;
    for (int side = WEST; side >= EAST; side--) {
        EXPECT_OK(domains_list_failovers(cluster_pair_domains(cluster_pair, side), domain->id,
                                         (struct slice){0}, 10, cluster_pair->arena, &found));
        for (size_t i = 0; i < found.count; i++)
            entry = found.failover[i]->failover_version == 1 ? found.failover[i] : entry;
        EXPECT(entry != NULL);
        EXPECT_EQ(entry->n_outcomes, 1);
        EXPECT_EQ(entry->outcomes[0]->end, end);
        EXPECT_EQ(entry->outcomes[0]->n_missing, 2 * (SHARDS - 1));
        cluster_pair_replicate(cluster_pair, WEST);
    }
    EXPECT_EQ(count_rows(cluster_pair), 0);
    EXPECT_EQ(counted(cluster_pair, "cadence_graceful_failover_failures"),
              1); /* not by the life before */
}

static void
play_until_forced(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    cluster_pair_replicate(cluster_pair, WEST);
    note(cluster_pair, 0);
    cluster_pair_failover(cluster_pair, WEST, "orders", WEST);
}

static void
play_forced_and_gone(struct cluster_pair *cluster_pair)
{
    expect_end_found(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED);
}

static void
play_until_superseded(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    cluster_pair_replicate(cluster_pair, WEST);
    note(cluster_pair, 0);
    cluster_pair_failover(cluster_pair, EAST, "orders", EAST);
    cluster_pair_replicate(cluster_pair, EAST);
}

static void
play_superseded_and_gone(struct cluster_pair *cluster_pair)
{
    expect_end_found(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED);
}

TEST(drains, that_something_else_ended_say_how_after_a_crash_in_between)
{
    drain_pair_simulate_crash(play_until_forced, is_end_left, play_forced_and_gone);
    drain_pair_simulate_crash(play_until_superseded, is_end_left, play_superseded_and_gone);
}

/* --- what is left behind ---- */

static void
play_sweep(struct cluster_pair *cluster_pair)
{
    begin_first(cluster_pair);
    note(cluster_pair, 0);
    /* A row that was on its way when its drain ended: by a host that is gone now. */
    uint64_t guard = 0;
    struct store *store = cluster_pair->side[WEST].store;
    EXPECT_OK(store_guard(store, PARTITION_OF_DOMAINS, cluster_pair->arena, &guard));
    struct batch *batch = batch_new(cluster_pair->arena, PARTITION_OF_DOMAINS, guard);
    struct key_writer key;
    key_begin(&key, cluster_pair->arena);
    key_text(&key, slice_text("some domain"));
    key_text(&key, slice_text(""));
    key_text(&key, slice_text(""));
    key_i64(&key, 1);
    batch_put(batch, ROW_DOMAIN_DRAIN, key_end(&key), slice_text("old"));
    EXPECT_OK(store_commit(store, batch, guard, cluster_pair->arena));
    EXPECT_EQ(count_rows(cluster_pair), 3);
    drain_pair_reopen(cluster_pair, WEST);
    sleep_for(cluster_pair, NS_PER_MS);
    EXPECT_EQ(count_rows(cluster_pair), 2);
    EXPECT_EQ(status(cluster_pair), ACTIVE_PENDING);
}

/* Nothing is kept of a drain that is over (Cadence: for an hour). */
TEST(drains, that_are_over_leave_no_rows_behind, "F-031")
{
    drain_pair_simulate(play_sweep);
}

/* --- two hosts on one store ---- */

static void
play_twins(struct cluster_pair *cluster_pair)
{
    struct side *side = &cluster_pair->side[WEST];
    struct store *stores[2];
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    cluster_pair_replicate(cluster_pair, EAST);
    drain_pair_stop(cluster_pair, WEST);
    struct domains *twins[2];
    struct drains *drains[2];
    for (int i = 0; i < 2; i++) {
        twins[i] = cluster_pair_open_twin(cluster_pair, WEST, &stores[i]);
        drains[i] = drain_pair_open_twin(cluster_pair, WEST, twins[i], stores[i]);
    }
    side->domains = twins[0];
    begin(cluster_pair);
    uint64_t before = domains_notification_version(twins[0]);
    for (uint32_t i = 0; i < 2 * SHARDS; i++) {
        struct drain_ready ready = ready_of(cluster_pair, i / 2, 1);
        ready.source_cluster = i % 2 == 0 ? "east" : "south";
        struct error *err = drains_note_ready(drains[i % 2], &ready, cluster_pair->arena);
        while (err != NULL && err->kind == ERR_UNAVAILABLE) { /* it has not heard of it */
            sleep_for(cluster_pair, NS_PER_S);
            err = drains_note_ready(drains[i % 2], &ready, cluster_pair->arena);
        }
        EXPECT_OK(err);
    }
    sleep_for(cluster_pair, 3 * NS_PER_S);
    for (int i = 0; i < 2; i++) {
        const struct domain *domain = orders_in(twins[i]);
        EXPECT_EQ(domain_active(domain, NULL, &side->group).status, ACTIVE_HERE);
        EXPECT_EQ(domains_notification_version(twins[i]), before + 1);
    }
    expect_end(cluster_pair, CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE);
    for (int i = 1; i >= 0; i--) {
        drains_close(drains[i]);
        domains_close(twins[i]);
        store_close(stores[i]);
    }
    drain_pair_start(cluster_pair, WEST);
}

TEST(drains, are_ended_once_by_two_hosts_that_hear_of_different_shards)
{
    drain_pair_simulate(play_twins);
}
