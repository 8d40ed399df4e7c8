/* recovered_test.c - a cluster that lost memory goes on with versions that nobody has seen.
 * "orders" in east, whose versions are 0, 10, 20 … */
#include "domain/active.h"
#include "domain/entity.h"
#include "domain/test/failover_fixture.h"
#include "wire/presence.h"

#define ATTRIBUTES "city.a:east,city.b:north"

static struct error *
recover(struct failover_fixture *failover_fixture, struct heard_versions heard)
{
    struct domain_moment moment = next_moment(failover_fixture);
    failover_fixture->domain->is_recovering = true;
    struct error *err =
        domain_decide_recovered(failover_fixture->domain, &heard, &failover_fixture->rules, &moment,
                                failover_fixture->arena, &failover_fixture->decision);
    if (err == NULL)
        adopt(failover_fixture);
    return err;
}

static bool
is_lost(const struct failover_fixture *failover_fixture, int64_t version)
{
    return domain_has_lost(failover_fixture->domain, version, failover_fixture->rules.group);
}

static enum active_status
status_of(const struct failover_fixture *failover_fixture)
{
    return domain_active(failover_fixture->domain, NULL, failover_fixture->rules.group).status;
}

TEST(recovered, what_is_active_here_is_pending_until_then)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.domain->is_recovering = true;
    EXPECT_EQ(status_of(&orders), ACTIVE_PENDING);
    EXPECT(is_lost(&orders, 0) && !is_lost(&orders, 1));
    EXPECT_OK(recover(&orders, (struct heard_versions){-1, -1, 0}));
    EXPECT_EQ(status_of(&orders), ACTIVE_HERE);
}

TEST(recovered, the_version_is_above_all_that_was_had_and_heard)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    EXPECT_OK(recover(&orders, (struct heard_versions){-1, -1, 0}));
    EXPECT_EQ(VERSION_OF(orders), 10);
    EXPECT(is_lost(&orders, 0) && !is_lost(&orders, 10));
    EXPECT_OK(recover(&orders, (struct heard_versions){40, -1, 0}));
    EXPECT_EQ(VERSION_OF(orders), 50);
    EXPECT(is_lost(&orders, 40) && !is_lost(&orders, 50));
    EXPECT_OK(recover(&orders, (struct heard_versions){-1, -1, 1000}));
    EXPECT_EQ(VERSION_OF(orders), 50 + 10 * 1000 + 10);
    EXPECT_EQ(NOTICED_OF(orders), orders.moment); /* shards take over their runs */
    EXPECT(orders.decision.is_recovered && orders.decision.failover != NULL);
}

TEST(recovered, nothing_is_moved_by_it_so_a_move_made_elsewhere_wins)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    EXPECT_OK(recover(&orders, (struct heard_versions){40, -1, 0}));
    EXPECT_EQ(domain_record_moved_version(orders.domain->record), 0);
    FAILOVER_FIXTURE(west, EAST, NULL);
    west.rules = sample_rules(WEST);
    EXPECT_OK(failover(&west, "west", NULL));
    EXPECT_EQ(VERSION_OF(west), 1);
    struct domain_moment moment = next_moment(&west);
    EXPECT_OK(domain_decide_replicated(west.domain, west.domain, message_of(&orders), "east",
                                       &west.rules, &moment, west.arena, &west.decision));
    adopt(&west);
    EXPECT_TEXT(DOMAIN_OF(west)->active_cluster_name, "west");
    EXPECT_EQ(VERSION_OF(west), 51);
}

TEST(recovered, what_is_active_elsewhere_takes_no_version_and_the_lost_ones_are_kept)
{
    FAILOVER_FIXTURE(orders, WEST, NULL);
    int64_t before = orders.domain->record->failover_notification_version;
    EXPECT_OK(recover(&orders, (struct heard_versions){40, -1, 0}));
    EXPECT_EQ(VERSION_OF(orders), 1);
    EXPECT_EQ(orders.domain->record->failover_notification_version, before);
    EXPECT(orders.decision.failover == NULL);
    EXPECT(is_lost(&orders, 40) && !is_lost(&orders, 50) && !is_lost(&orders, 1));
}

TEST(recovered, attributes_that_are_here_take_the_same_version)
{
    FAILOVER_FIXTURE(orders, EAST, ATTRIBUTES);
    EXPECT_OK(recover(&orders, (struct heard_versions){20, -1, 0}));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=30,city.b:north=2");
    EXPECT_EQ(VERSION_OF(orders), 30);
}

/* The versions of entities are far above those of regions, which must stay below the factor. */
TEST(recovered, versions_of_entities_raise_no_other)
{
    FAILOVER_FIXTURE(orders, EAST, ATTRIBUTES);
    int64_t entity = 7 * (10LL << 24) + 20;
    EXPECT(entity_is_version(entity, orders.rules.group));
    EXPECT_EQ(entity_region_version(entity, orders.rules.group), 20);
    EXPECT_OK(recover(&orders, (struct heard_versions){20, entity, 0}));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=30,city.b:north=2");
    EXPECT(is_lost(&orders, entity) && is_lost(&orders, 3 * (10LL << 24)));
    EXPECT(!is_lost(&orders, entity + (10LL << 24)) && !is_lost(&orders, 30));
}

TEST(recovered, what_drained_to_here_is_over)
{
    FAILOVER_FIXTURE(orders, WEST, NULL);
    API(FailoverDomainRequest) *request = sample_failover("east", NULL, orders.arena);
    request->failover_timeout = presence_make_duration(orders.arena, 60);
    EXPECT_OK(failover_request(&orders, request));
    adopt(&orders);
    EXPECT_EQ(orders.domain->record->n_drains, 1);
    EXPECT_OK(recover(&orders, (struct heard_versions){-1, -1, 0}));
    EXPECT_EQ(orders.domain->record->n_drains, 0);
    EXPECT_EQ(VERSION_OF(orders), 20);
    EXPECT_EQ(status_of(&orders), ACTIVE_HERE);
}

TEST(recovered, where_no_version_is_left_it_is_refused)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    struct error *err = recover(&orders, (struct heard_versions){-1, -1, INT64_MAX});
    EXPECT_KIND(err, ERR_BAD_REQUEST);
}

/* As many times as things come and go. */
TEST(recovered, what_comes_to_here_later_takes_no_version_that_was_lost)
{
    FAILOVER_FIXTURE(orders, WEST, "city.a:west,city.b:north");
    EXPECT_OK(recover(&orders, (struct heard_versions){40, -1, 0}));
    EXPECT_OK(failover(&orders, NULL, "city.a:east"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=50,city.b:north=2");
    EXPECT_OK(failover(&orders, "east", NULL));
    EXPECT_EQ(VERSION_OF(orders), 50);
    API(UpdateDomainRequest) *add = sample_update("active_clusters", orders.arena);
    add->active_clusters = sample_attributes("city.new:east", orders.arena);
    EXPECT_OK(update(&orders, add));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=50,city.b:north=2,city.new:east=50");
    EXPECT(!is_lost(&orders, 50));
}
