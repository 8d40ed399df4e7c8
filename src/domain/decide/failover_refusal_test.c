/* failover_refusal_test.c - failovers that are refused, and what is said then. Nothing is written
 * after a refusal: there is no decision to write. */
#include "domain/test/failover_fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

/* D-022, D-029. */
TEST(failover, of_a_local_domain_is_refused_in_every_form, "D-022", "D-029")
{
    scoped(failover_fixture_drop) struct failover_fixture orders = local_orders();
    EXPECT(DOMAIN_OF(orders)->active_clusters == NULL);
    EXPECT_REFUSED(failover(&orders, "west", NULL), LOCAL_REFUSAL);
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:west"), LOCAL_REFUSAL);
    API(UpdateDomainRequest) *request = sample_update("active_cluster_name", orders.arena);
    request->active_cluster_name = "east";
    EXPECT_REFUSED(update(&orders, request), LOCAL_REFUSAL);
    request = sample_update("active_clusters", orders.arena);
    request->active_clusters = sample_attributes("city.a:west", orders.arena);
    EXPECT_REFUSED(update(&orders, request), LOCAL_REFUSAL);
    request = sample_update("clusters", orders.arena);
    request->n_clusters = 2;
    request->clusters = sample_clusters(orders.arena, 2);
    EXPECT_REFUSED(update(&orders, request), LOCAL_REFUSAL);
    request = sample_update("failover_timeout", orders.arena);
    request->failover_timeout = presence_make_duration(orders.arena, 10);
    EXPECT_REFUSED(update(&orders, request), LOCAL_REFUSAL);
}

/* D-005, J-006. */
TEST(failover, to_a_cluster_that_cannot_have_the_domain_is_refused)
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    EXPECT_REFUSED(failover(&orders, "moon", NULL), "Invalid cluster name: moon");
    EXPECT_REFUSED(failover(&orders, "gone", NULL), "Invalid cluster name: gone");
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:moon"), "Invalid active cluster name: moon");
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:gone"), "Invalid active cluster name: gone");
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:west=-1"), "invalid failover version: -1");
    EXPECT_REFUSED(failover(&orders, NULL, ".a:west"),
                   "A cluster attribute needs a scope and a name; neither may be empty.");
    EXPECT_REFUSED(failover(&orders, NULL, "city.:west"),
                   "A cluster attribute needs a scope and a name; neither may be empty.");
    orders.rules.name_length_max = 6;
    EXPECT_REFUSED(failover(&orders, NULL, "village.a:west"),
                   "The scope or name of a cluster attribute exceeds 6 bytes.");

    STORED(DomainRecord) *record = orders.decision.next;
    record->domain->n_clusters = 2;
    adopt(&orders);
    EXPECT_REFUSED(failover(&orders, "north", NULL), NOT_THERE);
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:north"), NOT_THERE);
    API(UpdateDomainRequest) *request = sample_update("active_cluster_name", orders.arena);
    EXPECT_REFUSED(update(&orders, request),
                   "ActiveClusterName is required for all global domains.");
    EXPECT_EQ(VERSION_OF(orders), 0);
}

/* D-028, D-029, D-031. */
TEST(failover, that_says_nothing_to_do_is_refused, "D-028", "D-029", "D-031")
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    EXPECT_REFUSED(
        failover(&orders, NULL, NULL),
        "DomainActiveClusterName or ActiveClusters must be provided to failover the domain");
    EXPECT_REFUSED(failover(&orders, NULL, "city.a:east"), NO_CHANGE);
    API(FailoverDomainRequest) *request = sample_failover(NULL, "city.a:east", orders.arena);
    request->active_clusters->n_active_clusters_by_cluster_attribute = 0;
    EXPECT_REFUSED(failover_request(&orders, request), NO_CHANGE);
    request->domain_name = "";
    EXPECT_REFUSED(failover_request(&orders, request), "Domain not set on request.");
    struct error *err =
        domain_decide_failover(NULL, sample_failover("west", NULL, orders.arena), &orders.rules,
                               &(struct domain_moment){0}, orders.arena, &orders.decision);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);

    FAILOVER_FIXTURE(passive, EAST, NULL);
    EXPECT_REFUSED(failover(&passive, NULL, "city.a:west"),
                   "FailoverDomain cannot be used to promote a domain to active-active; use "
                   "UpdateDomain to set cluster attributes");
}

/* D-028, F-008; what else a graceful failover needs is in drain_test.c. */
TEST(failover, with_a_timeout_is_checked, "D-028", "F-008")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    API(FailoverDomainRequest) *request = sample_failover("west", NULL, orders.arena);
    static const int64_t none[] = {0, -5};
    for (size_t i = 0; i < array_length(none); i++) {
        request->failover_timeout = presence_make_duration(orders.arena, none[i]);
        EXPECT_REFUSED(failover_request(&orders, request),
                       "FailoverTimeoutInSeconds must be positive");
    }
    request->failover_timeout = presence_make_duration(orders.arena, 301);
    EXPECT_REFUSED(failover_request(&orders, request),
                   "FailoverTimeoutInSeconds 301 exceeds the maximum allowed 300");
    request->failover_timeout = presence_make_duration(orders.arena, 300);
    EXPECT_REFUSED(failover_request(&orders, request),
                   "Cannot start the graceful failover from a to-be-passive cluster.");
    API(UpdateDomainRequest) *alone = sample_update("failover_timeout", orders.arena);
    alone->failover_timeout = presence_make_duration(orders.arena, 10);
    EXPECT_REFUSED(update(&orders, alone),
                   "Cannot start graceful failover without updating active cluster or in local "
                   "domain.");
}

/* D-011, D-030: an emergency needs no token, but can be forbidden. */
TEST(failover, needs_no_token_and_stops_in_a_lockdown, "D-011", "D-030")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.rules.is_admin_protected = true;
    EXPECT_OK(failover(&orders, "west", NULL));
    API(UpdateDomainRequest) *request = sample_update("active_cluster_name", orders.arena);
    request->active_cluster_name = "east";
    EXPECT_OK(update(&orders, request));
    API(UpdateDomainRequest) *settings = sample_update("description", orders.arena);
    EXPECT_REFUSED(update(&orders, settings), "No permission to do this operation.");
    settings = sample_update("description,active_clusters", orders.arena);
    settings->active_clusters = API_NEW(orders.arena, active_clusters);
    EXPECT_REFUSED(update(&orders, settings),
                   "No permission to do this operation."); /* no way round */
    settings = sample_update("description", orders.arena);

    orders.rules.is_locked_down = true;
    const char *locked = "Domain is not accepting fail overs at this time due to lockdown.";
    EXPECT_REFUSED(failover(&orders, "west", NULL), locked);
    EXPECT_REFUSED(update(&orders, request), locked);
    settings->security_token = "secret";
    EXPECT_OK(update(&orders, settings)); /* settings go on */
}

/* D-021. Moments are a second apart. */
TEST(failover, within_the_cool_down_is_too_frequent, "D-021")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.rules.cool_down = 2000000000;
    struct error *err = failover(&orders, "west", NULL);
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_TEXT(err->message, "Domain update too frequent.");
    EXPECT_OK(failover(&orders, "west", NULL)); /* two seconds later */
    EXPECT_KIND(update(&orders, sample_update("description", orders.arena)), ERR_SERVICE_BUSY);
    EXPECT_OK(update(&orders, sample_update("description", orders.arena)));

    scoped(failover_fixture_drop) struct failover_fixture local = local_orders();
    local.rules.cool_down = 2000000000;
    EXPECT_OK(update(&local, sample_update("description", local.arena)));
}

TEST(failover, in_a_restored_cluster_waits_until_it_has_caught_up)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.rules.is_catching_up = true;
    EXPECT_KIND(failover(&orders, "west", NULL), ERR_SERVICE_BUSY);
}
