/* domains_log_test.c - the log of the domains and who follows it: readers, other hosts. */
#include "base/test.h"
#include "domain/test/cluster_pair.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

/* --- the log ------------------------------------------------------------------------------------
 */

PAIR_TEST(domain_log, changes_are_read_in_the_order_of_the_notification_version,
          cluster_pair_run(1, body))
{
    cluster_pair_register(cluster_pair, EAST, "a", true);
    cluster_pair_register(cluster_pair, EAST, "b", false);
    cluster_pair_failover(cluster_pair, EAST, "a", WEST);
    cluster_pair_delete(cluster_pair, EAST, "b");
    struct domain_changes all = cluster_pair_read_log(cluster_pair, EAST, 0, 100);
    EXPECT_EQ(all.count, 5);
    EXPECT_EQ(all.newest, 5);
    EXPECT(!all.is_cut);
    static const int operations[] = {1, 1, 2, 2, 3};
    for (size_t i = 0; i < all.count; i++) {
        EXPECT_EQ(all.version[i], i + 1);
        EXPECT_EQ(all.change[i]->record->notification_version, i + 1);
        EXPECT_EQ(all.change[i]->operation, operations[i]);
        EXPECT(!all.change[i]->is_replicated);
    }
    struct domain_changes page = cluster_pair_read_log(cluster_pair, EAST, 2, 2);
    EXPECT_EQ(page.count, 2);
    EXPECT_EQ(page.version[0], 3);
    EXPECT_EQ(page.newest, 5);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 5, 10).count, 0);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(cluster_pair_read_log(cluster_pair, WEST, 0, 10).change[0]->is_replicated);
}

struct waiter {
    struct cluster_pair *cluster_pair;
    struct latch latch;
    struct domain_changes changes;
    int64_t deadline;
};

static void
wait_for_change(void *argument)
{
    struct waiter *waiter = argument;
    EXPECT_OK(domains_read_log(cluster_pair_domains(waiter->cluster_pair, EAST), 0, 10,
                               waiter->deadline, waiter->cluster_pair->arena, &waiter->changes));
    latch_done(&waiter->latch);
}

PAIR_TEST(domain_log, a_reader_waits_for_what_is_durable_and_for_nothing_else,
          cluster_pair_run(1, body))
{
    struct waiter waiter = {.cluster_pair = cluster_pair, .deadline = NEVER};
    latch_init(&waiter.latch, 1);
    fiber_start("waiter", wait_for_change, &waiter);
    fiber_yield();
    EXPECT_EQ(waiter.latch.open, 1);
    cluster_pair_register(cluster_pair, EAST, "a", false);
    latch_wait(&waiter.latch);
    EXPECT_EQ(waiter.changes.count, 1);

    memory_base_break(cluster_pair->side[EAST].base); /* what is not durable is not shown */
    fiber_set_deadline(clock_monotonic() + 50 * NS_PER_MS);
    EXPECT(cluster_pair_try_register(cluster_pair_domains(cluster_pair, EAST), "lost", false,
                                     cluster_pair->arena) != NULL);
    fiber_set_deadline(NEVER);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 1, 10).count, 0);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 1, 10).newest, 1);
    memory_base_repair(cluster_pair->side[EAST].base);

    domains_end_waits(cluster_pair_domains(cluster_pair, EAST));
    EXPECT_OK(domains_read_log(cluster_pair_domains(cluster_pair, EAST), 1, 10, NEVER,
                               cluster_pair->arena, &waiter.changes));
    EXPECT_EQ(waiter.changes.count, 0);
}

/* 300 changes of a few domains, one of which is deleted; a follower at 250 lets the first 200 go.
 */
PAIR_TEST(domain_log,
          it_is_trimmed_up_to_the_lowest_follower_and_who_missed_it_gets_the_newest_records,
          cluster_pair_run(1, body))
{
    struct domains *domains = cluster_pair_domains(cluster_pair, EAST);
    cluster_pair_register(cluster_pair, EAST, "gone", false);
    cluster_pair_register(cluster_pair, EAST, "kept", false);
    cluster_pair_register(cluster_pair, EAST, "idle", false);
    cluster_pair_delete(cluster_pair, EAST, "gone"); /* 4, 5 */
    EXPECT_OK(domains_set_follower_position(domains, "shard:1", 5, cluster_pair->arena));
    EXPECT_OK(domains_set_follower_position(domains, "cluster:mars", 1,
                                            cluster_pair->arena)); /* in no group */
    for (int i = 6; i <= 300; i++)
        cluster_pair_describe(cluster_pair, EAST, "kept",
                              arena_format(cluster_pair->arena, "%d", i));
    EXPECT(!cluster_pair_read_log(cluster_pair, EAST, 5, 10).is_cut); /* the follower is at 5 */
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 5, 1000).count, 295);
    cluster_pair_acknowledge(cluster_pair, EAST);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 5, 1000).count, 295); /* still */

    EXPECT_OK(domains_set_follower_position(domains, "shard:1", 250, cluster_pair->arena));
    EXPECT_EQ(domains_follower_position(domains, "shard:1"), 250);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 200, 1000).count,
              100); /* the newest stay */
    struct domain_changes cut = cluster_pair_read_log(cluster_pair, EAST, 0, 10);
    EXPECT(cut.is_cut);
    EXPECT_EQ(cut.count, 3); /* idle, gone, kept: by version */
    EXPECT_TEXT(cut.change[0]->record->domain->name, "idle");
    EXPECT_TEXT(cut.change[1]->record->domain->name, "gone");
    EXPECT_EQ(cut.change[1]->operation, ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE));
    EXPECT_EQ(cut.version[1], 5);
    EXPECT_EQ(cut.version[2], 300);
    EXPECT_EQ(cluster_pair_read_log(cluster_pair, EAST, 5, 10).count,
              1); /* kept alone changed since */

    cluster_pair_reopen(cluster_pair, EAST);
    EXPECT_EQ(domains_follower_position(cluster_pair_domains(cluster_pair, EAST), "shard:1"), 250);
    EXPECT_EQ(domains_follower_position(cluster_pair_domains(cluster_pair, EAST), "shard:2"), -1);
    EXPECT(cluster_pair_read_log(cluster_pair, EAST, 199, 10).is_cut);
    EXPECT(!cluster_pair_read_log(cluster_pair, EAST, 200, 10).is_cut);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), 300);
}

PAIR_TEST(domain_log, a_cluster_that_missed_trimmed_changes_comes_to_the_same_end,
          cluster_pair_run(1, body))
{
    cluster_pair_register(cluster_pair, EAST, "gone", true);
    cluster_pair_register(cluster_pair, EAST, "kept", true);
    cluster_pair_replicate(cluster_pair, EAST);
    cluster_pair_delete(cluster_pair, EAST, "gone");
    for (int i = 0; i < 300; i++)
        cluster_pair_describe(cluster_pair, EAST, "kept",
                              arena_format(cluster_pair->arena, "%d", i));
    uint64_t replicated = cluster_pair->side[EAST].replicated;
    EXPECT(!cluster_pair_read_log(cluster_pair, EAST, replicated, 10)
                .is_cut);                         /* the others are waited for */
    cluster_pair_acknowledge(cluster_pair, EAST); /* but west was restored from a backup since */
    EXPECT(cluster_pair_read_log(cluster_pair, EAST, replicated, 10).is_cut);
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "gone") == NULL);
    EXPECT_TEXT(domains_find_name(cluster_pair_domains(cluster_pair, WEST), "kept")
                    ->record->domain->description,
                "299");
}

/* --- several hosts on one store -----------------------------------------------------------------
 */

PAIR_TEST(domain_log, another_host_on_the_store_hears_of_changes_and_deletes,
          cluster_pair_run(2, body))
{
    struct side *side = &cluster_pair->side[EAST];
    struct store *store = memory_open(side->base);
    struct domains_options options = {.store = store,
                                      .group = &side->group,
                                      .dynamic = cluster_pair->dynamic,
                                      .refresh_interval = NS_PER_MS};
    struct domains *other = NULL;
    EXPECT_OK(domains_open(&options, cluster_pair->arena, &other));
    cluster_pair_register(cluster_pair, EAST, "a", false);
    cluster_pair_register(cluster_pair, EAST, "b", false);
    cluster_pair_delete(cluster_pair, EAST, "a");
    while (domains_notification_version(other) < 4) /* by the log */
        EXPECT_OK(fiber_sleep(NS_PER_MS, cluster_pair->arena));
    EXPECT(domains_find_name(other, "a") == NULL && domains_find_name(other, "b") != NULL);

    EXPECT_OK(cluster_pair_try_register(other, "c", false, cluster_pair->arena));
    EXPECT_OK(cluster_pair_try_register(cluster_pair_domains(cluster_pair, EAST), "d", false,
                                        cluster_pair->arena)); /* fenced at first */
    EXPECT_EQ(domains_count(cluster_pair_domains(cluster_pair, EAST)), 3);
    EXPECT_KIND(cluster_pair_try_register(other, "d", false, cluster_pair->arena),
                ERR_DOMAIN_ALREADY_EXISTS);
    domains_close(other);
    store_close(store);
}

PAIR_TEST(domain_log, a_host_that_missed_trimmed_changes_reads_everything_deletes_too,
          cluster_pair_run(1, body))
{
    struct side *side = &cluster_pair->side[EAST];
    cluster_pair_register(cluster_pair, EAST, "a", false);
    cluster_pair_register(cluster_pair, EAST, "b", false);
    struct store *store = memory_open(side->base);
    struct domains_options options = {
        .store = store, .group = &side->group, .dynamic = cluster_pair->dynamic};
    struct domains *other = NULL;
    EXPECT_OK(domains_open(&options, cluster_pair->arena, &other));
    cluster_pair_delete(cluster_pair, EAST, "a");
    for (int i = 0; i < 300; i++)
        cluster_pair_describe(cluster_pair, EAST, "b", arena_format(cluster_pair->arena, "%d", i));
    cluster_pair_acknowledge(cluster_pair, EAST); /* the log is trimmed */
    EXPECT_OK(cluster_pair_try_register(other, "c", false,
                                        cluster_pair->arena)); /* fenced: reads everything */
    EXPECT(domains_find_name(other, "a") == NULL);
    EXPECT_EQ(domains_count(other), 2);
    EXPECT_EQ(domains_notification_version(other), 305);
    EXPECT_TEXT(domains_find_name(other, "b")->record->domain->description, "299");
    domains_close(other);
    store_close(store);
}
