/* moved_test.c - a domain's own active cluster is moved in one cluster while another one moves an
 * attribute, and neither has heard of the other: both hold. "orders" is known in east, west and
 * north. That this is so in any order and for any number of clusters is shown by merge_test.c. */
#include <string.h>

#include "domain/drain.h"
#include "domain/test/failover_fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define MOVED_OF(failover_fixture) domain_record_moved_version((failover_fixture).domain->record)
#define ATTRIBUTES                 "city.a:east,city.b:north"

/* "orders" with attributes, active in east, in that cluster. */
static struct failover_fixture
orders_in(int cluster, const char *attributes)
{
    struct failover_fixture failover_fixture = orders_active_in(EAST, attributes);
    failover_fixture.rules = sample_rules(cluster);
    failover_fixture.moment += 100 * (uint64_t)cluster; /* each has its own ids */
    return failover_fixture;
}

#define ORDERS(name, cluster, attributes)                                                          \
    scoped(failover_fixture_drop) struct failover_fixture name = orders_in(cluster, attributes)

static struct error *
try_receive(struct failover_fixture *failover_fixture, const ADMIN(DomainTaskAttributes) *message)
{
    struct domain_moment moment = next_moment(failover_fixture);
    struct error *err = domain_decide_replicated(
        failover_fixture->domain, failover_fixture->domain, message, "north",
        &failover_fixture->rules, &moment, failover_fixture->arena, &failover_fixture->decision);
    if (err == NULL && failover_fixture->decision.what != DOMAIN_UNCHANGED)
        adopt(failover_fixture);
    return err;
}

static void
receive(struct failover_fixture *failover_fixture, const ADMIN(DomainTaskAttributes) *message)
{
    EXPECT_OK(try_receive(failover_fixture, message));
}

static void
expect_place(const struct failover_fixture *failover_fixture, const char *cluster_name,
             int64_t failover_version, int64_t moved_version)
{
    EXPECT_TEXT(DOMAIN_OF(*failover_fixture)->active_cluster_name, cluster_name);
    EXPECT_EQ(VERSION_OF(*failover_fixture), failover_version);
    EXPECT_EQ(MOVED_OF(*failover_fixture), moved_version);
}

TEST(moved, an_attribute_that_moves_elsewhere_does_not_undo_a_move_of_the_domain, "G-030")
{
    ORDERS(east, EAST, ATTRIBUTES);
    ORDERS(west, WEST, ATTRIBUTES);
    ORDERS(north, NORTH, ATTRIBUTES);
    EXPECT_OK(failover(&north, "north", NULL));
    expect_place(&north, "north", 2, 2);
    EXPECT_OK(failover(&west, NULL, "city.a:west"));
    expect_place(&west, "east", 10, 0);
    ADMIN(DomainTaskAttributes) *domain = message_of(&north), *attribute = message_of(&west);

    receive(&west, domain);
    expect_place(&west, "north", 12, 2); /* the first one of north that is not below 10 */
    EXPECT(!west.decision.failover->is_superseded);
    EXPECT_EQ(NOTICED_OF(west), west.moment);
    receive(&north, attribute);
    expect_place(&north, "north", 12, 2);
    EXPECT(!north.decision.failover->is_superseded);
    receive(&east, attribute);
    expect_place(&east, "east", 10, 0);
    receive(&east, domain);
    expect_place(&east, "north", 12, 2);
    EXPECT(!east.decision.failover->is_superseded);

    receive(&east, message_of(&west)); /* who tells what is known changes nothing */
    EXPECT_EQ(east.decision.what, DOMAIN_UNCHANGED);
    EXPECT_TEXT(PRINT_OF(east), "city.a:west=1,city.b:north=2");
    EXPECT_TEXT(PRINT_OF(west), PRINT_OF(north));
}

/* One cluster makes a number more than the others: it tells, and all have it. */
TEST(moved, a_version_that_a_cluster_made_is_taken_by_those_who_made_another_one)
{
    ORDERS(east, EAST, ATTRIBUTES);
    ORDERS(west, WEST, ATTRIBUTES);
    ORDERS(north, NORTH, ATTRIBUTES);
    EXPECT_OK(failover(&west, "west", NULL)); /* 1 */
    EXPECT_OK(failover(&east, NULL, "city.b:east"));
    EXPECT_OK(failover(&north, "north", NULL)); /* 2 */
    ADMIN(DomainTaskAttributes) *to_west = message_of(&west), *to_north = message_of(&north);
    ADMIN(DomainTaskAttributes) *attribute = message_of(&east);
    receive(&east, to_west);
    expect_place(&east, "west", 11, 1);
    receive(&east, to_north);
    expect_place(&east, "north", 12, 2);
    receive(&west, attribute);
    EXPECT_OK(failover(&west, NULL, "city.a:west")); /* before it hears of north */
    receive(&west, to_north);
    expect_place(&west, "north", 22, 2);
    receive(&north, attribute);
    expect_place(&north, "north", 12, 2);
    receive(&north, message_of(&west));
    receive(&east, message_of(&west));
    expect_place(&north, "north", 22, 2);
    expect_place(&east, "north", 22, 2);
    receive(&west, message_of(&east));
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
}

TEST(moved, of_two_moves_of_the_domain_the_newer_one_holds_whatever_was_raised_meanwhile)
{
    ORDERS(west, WEST, ATTRIBUTES);
    ORDERS(north, NORTH, ATTRIBUTES);
    EXPECT_OK(failover(&north, "north", NULL)); /* 2 */
    EXPECT_OK(failover(&west, NULL, "city.a:west"));
    EXPECT_OK(failover(&west, "west", NULL));
    expect_place(&west, "west", 11, 11);
    EXPECT_OK(failover(&north, NULL, "city.b:west"));
    EXPECT_OK(failover(&north, NULL, "city.b:east"));
    expect_place(&north, "north", 22, 2);
    receive(&north, message_of(&west));
    expect_place(&north, "west", 31, 11);
    receive(&west, message_of(&north));
    expect_place(&west, "west", 31, 11);
    EXPECT_OK(failover(&west, "north", NULL)); /* who knows all moves is newer than all */
    expect_place(&west, "north", 32, 32);
}

static API(UpdateDomainRequest) *
removal(struct failover_fixture *failover_fixture)
{
    API(UpdateDomainRequest) *request = sample_update("", failover_fixture->arena);
    request->removes_all_attributes = true;
    return request;
}

TEST(moved, what_does_not_move_the_domain_counts_as_no_move_of_it)
{
    ORDERS(orders, EAST, NULL);
    API(UpdateDomainRequest) *request = sample_update("active_clusters", orders.arena);
    request->active_clusters = sample_attributes("city.a:west", orders.arena);
    EXPECT_OK(update(&orders, request)); /* it has attributes from now on */
    expect_place(&orders, "east", 10, 0);
    EXPECT_OK(failover(&orders, "east", NULL)); /* told to stay: nothing at all */
    expect_place(&orders, "east", 10, 0);
    EXPECT_OK(failover(&orders, "east", "city.a:north"));
    expect_place(&orders, "east", 20, 0);
    request = sample_update("description", orders.arena);
    EXPECT_OK(update(&orders, request));
    expect_place(&orders, "east", 20, 0);
    EXPECT_OK(update(&orders, removal(&orders)));
    expect_place(&orders, "east", 30, 0);
    EXPECT_OK(failover(&orders, "east", NULL)); /* it is active-passive: nothing at all */
    expect_place(&orders, "east", 30, 0);
    EXPECT_OK(failover(&orders, "west", NULL));
    expect_place(&orders, "west", 31, 31);
}

/* The way back does not undo a failover either, and workflows of what was taken away go on above
 * what they wrote. */
TEST(moved, taking_all_attributes_away_does_not_undo_a_move_of_the_domain)
{
    ORDERS(east, EAST, "city.a:east");
    ORDERS(north, NORTH, "city.a:east");
    EXPECT_OK(failover(&east, NULL, "city.a:west")); /* 10; the attribute has 1 */
    EXPECT_OK(update(&east, removal(&east)));
    expect_place(&east, "east", 20, 0);
    EXPECT_OK(failover(&north, "north", NULL));
    ADMIN(DomainTaskAttributes) *back = message_of(&east);
    receive(&east, message_of(&north));
    expect_place(&east, "north", 22, 2);
    EXPECT(!domain_is_active_active(east.domain));
    receive(&north, back);
    expect_place(&north, "north", 22, 2);
    EXPECT(!north.decision.failover->is_superseded);
    EXPECT(!domain_is_active_active(north.domain));
    EXPECT_EQ(north.domain->record->n_recent_failovers, 0);
}

/* --- others ---- */

TEST(moved, a_cluster_of_another_make_moves_the_domain_with_every_version)
{
    ORDERS(west, WEST, ATTRIBUTES);
    EXPECT_OK(failover(&west, "west", NULL));
    ADMIN(DomainTaskAttributes) *message = message_of(&west);
    message->domain->active_cluster_name = "east";
    message->failover_version = 10;
    message->moved_version = NULL;
    message->tells_failovers = false;
    message->failover_record = (ProtobufCBinaryData){0};
    receive(&west, message);
    expect_place(&west, "east", 10, 10);
    EXPECT_EQ(west.decision.failover->failover_version, 10);
    EXPECT_OK(failover(&west, NULL, "city.a:west"));
    expect_place(&west, "east", 20, 10);
    receive(&west, message); /* it was known */
    EXPECT_EQ(west.decision.what, DOMAIN_UNCHANGED);
}

TEST(moved, a_record_that_does_not_say_was_moved_by_its_failover_version)
{
    ORDERS(west, WEST, ATTRIBUTES);
    EXPECT_OK(failover(&west, NULL, "city.a:west"));
    west.decision.next = message_copy(west.arena, &west.domain->record->base);
    west.decision.next->moved_version = NULL; /* as stored before it was kept */
    adopt(&west);
    expect_place(&west, "east", 10, 10);
    EXPECT_OK(failover(&west, NULL, "city.a:north"));
    expect_place(&west, "east", 20, 10);
}

TEST(moved, a_version_that_cannot_have_moved_the_domain_is_refused)
{
    ORDERS(west, WEST, ATTRIBUTES);
    ADMIN(DomainTaskAttributes) *message = message_of(&west);
    message->failover_version = 10;
    static const int64_t wrong[] = {20, 1, -10};
    for (size_t i = 0; i < array_length(wrong); i++) {
        message->moved_version->value = wrong[i];
        struct error *err = try_receive(&west, message);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strstr(err->message, "cannot have moved") != NULL);
    }
    expect_place(&west, "east", 0, 0);
    EXPECT_OK(failover(&west, "west", NULL));
    EXPECT_OK(failover(&west, "east", NULL)); /* and no number is left above theirs */
    message->domain->active_cluster_name = "north";
    message->moved_version->value = 2;
    message->failover_version = INT64_MAX / 10 * 10 + 2;
    struct error *err = try_receive(&west, message);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "has no failover version above") != NULL);
    expect_place(&west, "east", 10, 10);
}

/* A domain drains to west while somebody else gives it attributes: it goes on draining, with a
 * version that is higher. */
TEST(moved, a_domain_that_drains_goes_on_when_its_version_rises)
{
    ORDERS(east, EAST, NULL);
    ORDERS(west, WEST, NULL);
    API(FailoverDomainRequest) *grace = sample_failover("west", NULL, west.arena);
    grace->failover_timeout = presence_make_duration(west.arena, 60);
    EXPECT_OK(failover_request(&west, grace));
    adopt(&west);
    ADMIN(DomainTaskAttributes) *drain = message_of(&west);
    API(UpdateDomainRequest) *request = sample_update("active_clusters", east.arena);
    request->active_clusters = sample_attributes("city.a:east", east.arena);
    EXPECT_OK(update(&east, request));

    receive(&west, message_of(&east));
    expect_place(&west, "west", 11, 1);
    EXPECT_EQ(domain_active(west.domain, NULL, west.rules.group).status, ACTIVE_PENDING);
    EXPECT_EQ(domain_moved_version(west.domain, NULL), 1);
    receive(&east, drain); /* it wrote with a version that the target does not know: no markers */
    expect_place(&east, "west", 11, 1);
    EXPECT(domain_find_drain(east.domain, NULL) == NULL);

    struct drain_end end = {
        .domain_id = west.domain->id, .scope = "", .name = "", .failover_version = 1};
    struct domain_moment moment = next_moment(&west);
    EXPECT_OK(
        domain_decide_drained(west.domain, &end, &west.rules, &moment, west.arena, &west.decision));
    EXPECT_EQ(west.decision.what, DOMAIN_UPDATED);
    adopt(&west);
    EXPECT_EQ(domain_active(west.domain, NULL, west.rules.group).status, ACTIVE_HERE);
    expect_place(&west, "west", 11, 1);
}
