/* failover_test.c - where domains and their attributes move and with which versions; settings of
 * global domains; the end of one. Without a server. */
#include "domain/test/failover_fixture.h"
#include "wire/message.h"

/* --- versions ------------------------------------------------------------------------------- */

/* D-035, D-036: away and back, with an increment of 10. D-019: asked in a cluster that is not the
 * primary. D-018: the settings' version stays. */
TEST(failover, a_domain_takes_the_next_version_of_where_it_goes, "D-018", "D-019", "D-035", "D-040")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.rules = sample_rules(NORTH);
    static const struct {
        const char *to;
        int64_t version;
    } walk[] = {{"west", 1}, {"east", 10}, {"north", 12}, {"west", 21}, {"east", 30}, {"west", 31}};
    EXPECT_EQ(VERSION_OF(orders), 0);
    for (size_t i = 0; i < array_length(walk); i++) {
        EXPECT_OK(failover(&orders, walk[i].to, NULL));
        EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, walk[i].to);
        EXPECT_EQ(VERSION_OF(orders), walk[i].version);
        EXPECT_EQ(NOTICED_OF(orders), orders.moment);                    /* D-040 */
        EXPECT_EQ(orders.domain->record->previous_failover_version, -1); /* D-044 */
    }
    EXPECT_EQ(CONFIG_OF(orders), 0);
}

TEST(failover, an_update_of_the_active_cluster_is_a_failover)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    orders.rules = sample_rules(WEST);
    API(UpdateDomainRequest) *request = sample_update("active_cluster_name", orders.arena);
    request->active_cluster_name = "west";
    EXPECT_OK(update(&orders, request));
    EXPECT_EQ(VERSION_OF(orders), 1);
    EXPECT_EQ(CONFIG_OF(orders), 0);
    EXPECT(orders.decision.failover != NULL);
}

/* D-031, D-039: accepted, the version stays, so nobody has to be told; also right after a change.
 */
TEST(failover, to_where_a_domain_is_changes_nothing_but_is_accepted, "D-031", "D-039")
{
    FAILOVER_FIXTURE(orders, WEST, NULL);
    FAILOVER_FIXTURE(cities, WEST, "city.a:east");
    struct failover_fixture *fixtures[] = {&orders, &cities};
    for (size_t i = 0; i < array_length(fixtures); i++) {
        fixtures[i]->rules.cool_down = 3600 * INT64_C(1000000000);
        EXPECT_OK(failover(fixtures[i], "west", NULL));
        EXPECT_EQ(fixtures[i]->decision.what, DOMAIN_UNCHANGED);
        EXPECT(fixtures[i]->decision.failover == NULL);
        EXPECT_EQ(fixtures[i]->domain->record->domain->failover_version, 1);
        EXPECT_EQ(fixtures[i]->domain->record->n_recent_failovers, 0);
    }
    EXPECT_OK(failover(&cities, "west", "city.a:east"));
    EXPECT_EQ(cities.decision.what, DOMAIN_UNCHANGED);
}

/* D-039: the domain's version is what others watch, so it rises with every attribute that moves. */
TEST(failover, of_an_attribute_raises_the_version_of_the_domain_too, "D-039")
{
    FAILOVER_FIXTURE(orders, NORTH, "city.a:east,city.b:north");
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=0,city.b:north=2");
    EXPECT_EQ(VERSION_OF(orders), 2);
    orders.rules = sample_rules(WEST);
    EXPECT_OK(failover(&orders, NULL, "city.a:west=9999"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1,city.b:north=2");
    EXPECT_TEXT(DOMAIN_OF(orders)->active_cluster_name, "north");
    EXPECT_EQ(VERSION_OF(orders), 12);
    EXPECT_EQ(NOTICED_OF(orders), orders.moment);
    EXPECT_OK(failover(&orders, NULL, "city.a:east,city.b:north"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:east=10,city.b:north=2");
    EXPECT_EQ(VERSION_OF(orders), 22);
    EXPECT_OK(failover(&orders, "north", "city.a:west")); /* the default stays where it is */
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=11,city.b:north=2");
    EXPECT_EQ(VERSION_OF(orders), 32);
    EXPECT_OK(failover(&orders, "east", "city.b:west"));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=11,city.b:west=11");
    EXPECT_EQ(VERSION_OF(orders), 40);
    EXPECT_EQ(CONFIG_OF(orders), 0); /* settings have one writer, failovers many */
}

TEST(failover, an_update_gives_a_domain_its_first_attributes)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    API(UpdateDomainRequest) *request = sample_update("active_clusters", orders.arena);
    request->active_clusters = sample_attributes("city.b:west,city.a:north", orders.arena);
    EXPECT_OK(update(&orders, request));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:north=2,city.b:west=1");
    EXPECT_EQ(VERSION_OF(orders), 10);
    request->active_clusters = sample_attributes("land.x:east", orders.arena);
    EXPECT_OK(update(&orders, request));
    EXPECT_TEXT(PRINT_OF(orders), "city.a:north=2,city.b:west=1,land.x:east=0");
    EXPECT_EQ(VERSION_OF(orders), 20);
}

TEST(failover, at_the_end_of_the_numbers_is_refused)
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    STORED(DomainRecord) *record = orders.decision.next;
    record->domain->failover_version = INT64_MAX;
    adopt(&orders);
    EXPECT_KIND(failover(&orders, "west", NULL), ERR_BAD_REQUEST);
    EXPECT_KIND(failover(&orders, NULL, "city.a:west"), ERR_BAD_REQUEST);
    record->domain->failover_version = 0;
    record->domain->active_clusters =
        sample_attributes("city.a:east=9223372036854775800", orders.arena);
    adopt(&orders);
    struct error *err = failover(&orders, NULL, "city.a:west,city.b:north");
    EXPECT_OK(err);                                                       /* ...801 is west's */
    EXPECT_KIND(failover(&orders, NULL, "city.a:east"), ERR_BAD_REQUEST); /* ...810 is none */
    err = failover(&orders, NULL, "city.a:east");
    EXPECT(strstr(err->message, "no failover version left for cluster east") != NULL);
}

/* --- settings of global domains --------------------------------------------------------------- */

/* D-020: each field that is a setting, together with a failover. */
TEST(failover, and_settings_in_one_request_are_refused, "D-020")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    static const char *const settings[] = {"description", "owner_email", "history_archival_uri",
                                           "visibility_archival_uri", "delete_bad_binary"};
    for (size_t i = 0; i < array_length(settings); i++) {
        API(UpdateDomainRequest) *request = sample_update(
            arena_format(orders.arena, "active_cluster_name,%s", settings[i]), orders.arena);
        request->active_cluster_name = "west";
        EXPECT_REFUSED(update(&orders, request), MIXED_REFUSAL);
    }
    API(UpdateDomainRequest) *unmasked = sample_update("", orders.arena);
    unmasked->update_mask = NULL; /* every field is given */
    unmasked->active_cluster_name = "west";
    EXPECT_REFUSED(update(&orders, unmasked), MIXED_REFUSAL);
    API(UpdateDomainRequest) *clusters =
        sample_update("active_cluster_name,clusters", orders.arena);
    clusters->active_cluster_name = "west";
    clusters->n_clusters = 2;
    clusters->clusters = sample_clusters(orders.arena, 2);
    EXPECT_REFUSED(update(&orders, clusters), MIXED_REFUSAL);
}

/* D-019, D-024: the list of clusters is a setting. */
TEST(failover, clusters_are_added_and_removed_in_the_primary_only, "D-017", "D-019", "D-024")
{
    FAILOVER_FIXTURE(orders, WEST, "city.a:east");
    API(UpdateDomainRequest) *request = sample_update("clusters", orders.arena);
    request->n_clusters = 2;
    request->clusters = sample_clusters(orders.arena, 2);
    EXPECT_OK(update(&orders, request));
    EXPECT_EQ(DOMAIN_OF(orders)->n_clusters, 2);
    EXPECT_EQ(CONFIG_OF(orders), 1);
    EXPECT_EQ(VERSION_OF(orders), 1);
    EXPECT(orders.decision.failover == NULL);
    request->n_clusters = 1;
    EXPECT_REFUSED(update(&orders, request), NOT_THERE); /* the active one would go */
    request->n_clusters = 4;
    request->clusters = sample_clusters(orders.arena, 4);
    EXPECT_REFUSED(update(&orders, request), "Invalid cluster name: gone");
    orders.rules = sample_rules(WEST);
    request->n_clusters = 3;
    EXPECT_REFUSED(update(&orders, request), NOT_PRIMARY);
    EXPECT_REFUSED(update(&orders, sample_update("description", orders.arena)), NOT_PRIMARY);
}

TEST(failover, clusters_may_come_with_attributes_in_the_primary)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    STORED(DomainRecord) *record = orders.decision.next;
    record->domain->n_clusters = 1;
    adopt(&orders);
    API(UpdateDomainRequest) *request = sample_update("clusters,active_clusters", orders.arena);
    request->active_clusters = sample_attributes("city.a:west", orders.arena);
    request->n_clusters = 3;
    request->clusters = sample_clusters(orders.arena, 3);
    orders.rules = sample_rules(WEST);
    EXPECT_REFUSED(update(&orders, request), NOT_PRIMARY);
    orders.rules = sample_rules(EAST);
    orders.rules.is_admin_protected = true;
    EXPECT_REFUSED(update(&orders, request), "No permission to do this operation.");
    request->security_token = "secret";
    EXPECT_OK(update(&orders, request));
    EXPECT_EQ(CONFIG_OF(orders), 1);
    EXPECT_EQ(DOMAIN_OF(orders)->n_clusters, 3);
    EXPECT_TEXT(PRINT_OF(orders), "city.a:west=1");
}

ARENA_TEST(failover, a_registration_with_attributes_checks_their_clusters)
{
    struct domain_rules rules = sample_rules(EAST);
    struct domain_moment moment = sample_moment(1);
    struct domain_decision decision;
    EXPECT_REFUSED(domain_decide_register(NULL, sample_register(EAST, "city.a:moon", arena), &rules,
                                          &moment, arena, &decision),
                   "Cluster moon not found. Domain cannot be registered in this cluster for scope "
                   "\"city\" and attribute \"a\"");
    EXPECT_REFUSED(domain_decide_register(NULL, sample_register(EAST, "city.a:gone", arena), &rules,
                                          &moment, arena, &decision),
                   "Invalid cluster name: gone");
    API(RegisterDomainRequest) *request = sample_register(EAST, "city.a:north", arena);
    request->n_clusters = 2;
    EXPECT_REFUSED(domain_decide_register(NULL, request, &rules, &moment, arena, &decision),
                   NOT_THERE);
}

/* D-027. */
TEST(failover, a_domain_is_deleted_once_it_is_deprecated_and_in_the_primary, "D-011", "D-027")
{
    FAILOVER_FIXTURE(orders, WEST, NULL);
    struct domain_moment moment = next_moment(&orders);
    API(DeleteDomainRequest) *request = API_NEW(orders.arena, delete_domain_request);
#define TRY_DELETE(domain)                                                                         \
    domain_decide_delete(domain, request, &orders.rules, &moment, orders.arena, &orders.decision)
    EXPECT_REFUSED(TRY_DELETE(orders.domain), "Domain not set on request.");
    request->name = "orders";
    EXPECT_KIND(TRY_DELETE(NULL), ERR_ENTITY_NOT_EXISTS);
    EXPECT_REFUSED(TRY_DELETE(orders.domain), "Domain is not in a deprecated state.");
    API(DeprecateDomainRequest) *deprecation =
        API_NEW(orders.arena, deprecate_domain_request, .name = "orders");
    EXPECT_OK(domain_decide_deprecate(orders.domain, deprecation, &orders.rules, &moment,
                                      orders.arena, &orders.decision));
    adopt(&orders);
    orders.rules = sample_rules(WEST);
    EXPECT_REFUSED(TRY_DELETE(orders.domain), NOT_PRIMARY);
    orders.rules = sample_rules(EAST);
    orders.rules.is_admin_protected = true;
    EXPECT_REFUSED(TRY_DELETE(orders.domain), "No permission to do this operation.");
    request->security_token = "secret";
    EXPECT_OK(TRY_DELETE(orders.domain));
    EXPECT_EQ(orders.decision.what, DOMAIN_DELETED);
    EXPECT_EQ(orders.decision.next->domain->status,
              API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED));
}
