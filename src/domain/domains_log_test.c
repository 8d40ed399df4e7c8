/* domains_log_test.c - the log of the domains and who follows it: readers, other hosts. */
#include "base/test.h"
#include "domain/sites.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

/* --- the log ------------------------------------------------------------------------------------
 */

static void
reads_in_order(struct sites *sites)
{
    sites_register(sites, EAST, "a", true);
    sites_register(sites, EAST, "b", false);
    sites_failover(sites, EAST, "a", WEST);
    sites_delete(sites, EAST, "b");
    struct domain_changes all = sites_read_log(sites, EAST, 0, 100);
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
    struct domain_changes page = sites_read_log(sites, EAST, 2, 2);
    EXPECT_EQ(page.count, 2);
    EXPECT_EQ(page.version[0], 3);
    EXPECT_EQ(page.newest, 5);
    EXPECT_EQ(sites_read_log(sites, EAST, 5, 10).count, 0);
    sites_feed(sites, EAST);
    EXPECT(sites_read_log(sites, WEST, 0, 10).change[0]->is_replicated);
}

TEST(domain_log, changes_are_read_in_the_order_of_the_notification_version)
{
    sites_run(1, reads_in_order);
}

struct waiter {
    struct sites *sites;
    struct latch latch;
    struct domain_changes changes;
    int64_t deadline;
};

static void
wait_for_change(void *argument)
{
    struct waiter *waiter = argument;
    EXPECT_OK(domains_read_log(sites_at(waiter->sites, EAST), 0, 10, waiter->deadline,
                               waiter->sites->arena, &waiter->changes));
    latch_done(&waiter->latch);
}

static void
long_poll(struct sites *sites)
{
    struct waiter waiter = {.sites = sites, .deadline = NEVER};
    latch_init(&waiter.latch, 1);
    fiber_start("waiter", wait_for_change, &waiter);
    fiber_yield();
    EXPECT_EQ(waiter.latch.open, 1);
    sites_register(sites, EAST, "a", false);
    latch_wait(&waiter.latch);
    EXPECT_EQ(waiter.changes.count, 1);

    memory_base_break(sites->site[EAST].base); /* what is not durable is not shown */
    fiber_set_deadline(clock_monotonic() + 50 * NS_PER_MS);
    EXPECT(sites_try_register(sites_at(sites, EAST), "lost", false, sites->arena) != NULL);
    fiber_set_deadline(NEVER);
    EXPECT_EQ(sites_read_log(sites, EAST, 1, 10).count, 0);
    EXPECT_EQ(sites_read_log(sites, EAST, 1, 10).newest, 1);
    memory_base_repair(sites->site[EAST].base);

    domains_end_waits(sites_at(sites, EAST));
    EXPECT_OK(domains_read_log(sites_at(sites, EAST), 1, 10, NEVER, sites->arena, &waiter.changes));
    EXPECT_EQ(waiter.changes.count, 0);
}

TEST(domain_log, a_reader_waits_for_what_is_durable_and_for_nothing_else)
{
    sites_run(1, long_poll);
}

/* 300 changes of a few domains, one of which is deleted; a follower at 250 lets the first 200 go.
 */
static void
trims(struct sites *sites)
{
    struct domains *domains = sites_at(sites, EAST);
    sites_register(sites, EAST, "gone", false);
    sites_register(sites, EAST, "kept", false);
    sites_register(sites, EAST, "idle", false);
    sites_delete(sites, EAST, "gone"); /* 4, 5 */
    EXPECT_OK(domains_note_follower(domains, "shard:1", 5, sites->arena));
    EXPECT_OK(domains_note_follower(domains, "cluster:mars", 1, sites->arena)); /* in no group */
    for (int i = 6; i <= 300; i++)
        sites_describe(sites, EAST, "kept", arena_format(sites->arena, "%d", i));
    EXPECT(!sites_read_log(sites, EAST, 5, 10).is_cut); /* the follower is at 5 */
    EXPECT_EQ(sites_read_log(sites, EAST, 5, 1000).count, 295);
    sites_acknowledge(sites, EAST);
    EXPECT_EQ(sites_read_log(sites, EAST, 5, 1000).count, 295); /* still */

    EXPECT_OK(domains_note_follower(domains, "shard:1", 250, sites->arena));
    EXPECT_EQ(domains_follower(domains, "shard:1"), 250);
    EXPECT_EQ(sites_read_log(sites, EAST, 200, 1000).count, 100); /* the newest stay */
    struct domain_changes cut = sites_read_log(sites, EAST, 0, 10);
    EXPECT(cut.is_cut);
    EXPECT_EQ(cut.count, 3); /* idle, gone, kept: by version */
    EXPECT_TEXT(cut.change[0]->record->domain->name, "idle");
    EXPECT_TEXT(cut.change[1]->record->domain->name, "gone");
    EXPECT_EQ(cut.change[1]->operation, ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE));
    EXPECT_EQ(cut.version[1], 5);
    EXPECT_EQ(cut.version[2], 300);
    EXPECT_EQ(sites_read_log(sites, EAST, 5, 10).count, 1); /* kept alone changed since */

    sites_reopen(sites, EAST);
    EXPECT_EQ(domains_follower(sites_at(sites, EAST), "shard:1"), 250);
    EXPECT_EQ(domains_follower(sites_at(sites, EAST), "shard:2"), -1);
    EXPECT(sites_read_log(sites, EAST, 199, 10).is_cut);
    EXPECT(!sites_read_log(sites, EAST, 200, 10).is_cut);
    EXPECT_EQ(domains_notification_version(sites_at(sites, EAST)), 300);
}

TEST(domain_log, it_is_trimmed_up_to_the_lowest_follower_and_who_missed_it_gets_the_newest_records)
{
    sites_run(1, trims);
}

static void
cut_reader_converges(struct sites *sites)
{
    sites_register(sites, EAST, "gone", true);
    sites_register(sites, EAST, "kept", true);
    sites_feed(sites, EAST);
    sites_delete(sites, EAST, "gone");
    for (int i = 0; i < 300; i++)
        sites_describe(sites, EAST, "kept", arena_format(sites->arena, "%d", i));
    uint64_t fed = sites->site[EAST].fed;
    EXPECT(!sites_read_log(sites, EAST, fed, 10).is_cut); /* the others are waited for */
    sites_acknowledge(sites, EAST); /* but west was restored from a backup since */
    EXPECT(sites_read_log(sites, EAST, fed, 10).is_cut);
    sites_feed(sites, EAST);
    EXPECT(domains_find_name(sites_at(sites, WEST), "gone") == NULL);
    EXPECT_TEXT(domains_find_name(sites_at(sites, WEST), "kept")->record->domain->description,
                "299");
}

TEST(domain_log, a_cluster_that_missed_trimmed_changes_comes_to_the_same_end)
{
    sites_run(1, cut_reader_converges);
}

/* --- several hosts on one store -----------------------------------------------------------------
 */

static void
other_host(struct sites *sites)
{
    struct site *site = &sites->site[EAST];
    struct store *store = memory_open(site->base);
    struct domains_options options = {.store = store,
                                      .group = &site->group,
                                      .dynamic = sites->dynamic,
                                      .refresh_interval = NS_PER_MS};
    struct domains *other = NULL;
    EXPECT_OK(domains_open(&options, sites->arena, &other));
    sites_register(sites, EAST, "a", false);
    sites_register(sites, EAST, "b", false);
    sites_delete(sites, EAST, "a");
    while (domains_notification_version(other) < 4) /* by the log */
        EXPECT_OK(fiber_sleep(NS_PER_MS, sites->arena));
    EXPECT(domains_find_name(other, "a") == NULL && domains_find_name(other, "b") != NULL);

    EXPECT_OK(sites_try_register(other, "c", false, sites->arena));
    EXPECT_OK(
        sites_try_register(sites_at(sites, EAST), "d", false, sites->arena)); /* fenced at first */
    EXPECT_EQ(domains_count(sites_at(sites, EAST)), 3);
    EXPECT_KIND(sites_try_register(other, "d", false, sites->arena), ERR_DOMAIN_ALREADY_EXISTS);
    domains_close(other);
    store_close(store);
}

TEST(domain_log, another_host_on_the_store_hears_of_changes_and_deletes)
{
    sites_run(2, other_host);
}

static void
far_behind(struct sites *sites)
{
    struct site *site = &sites->site[EAST];
    sites_register(sites, EAST, "a", false);
    sites_register(sites, EAST, "b", false);
    struct store *store = memory_open(site->base);
    struct domains_options options = {
        .store = store, .group = &site->group, .dynamic = sites->dynamic};
    struct domains *other = NULL;
    EXPECT_OK(domains_open(&options, sites->arena, &other));
    sites_delete(sites, EAST, "a");
    for (int i = 0; i < 300; i++)
        sites_describe(sites, EAST, "b", arena_format(sites->arena, "%d", i));
    sites_acknowledge(sites, EAST);                                 /* the log is trimmed */
    EXPECT_OK(sites_try_register(other, "c", false, sites->arena)); /* fenced: reads everything */
    EXPECT(domains_find_name(other, "a") == NULL);
    EXPECT_EQ(domains_count(other), 2);
    EXPECT_EQ(domains_notification_version(other), 305);
    EXPECT_TEXT(domains_find_name(other, "b")->record->domain->description, "299");
    domains_close(other);
    store_close(store);
}

TEST(domain_log, a_host_that_missed_trimmed_changes_reads_everything_deletes_too)
{
    sites_run(1, far_behind);
}
