/* failover_history_test.c - what is remembered of failovers, and shown. */
#include "domain/entries.h"
#include "domain/test/failover_fixture.h"
#include "wire/maps.h"

static const char *
info_print(const API(ActiveClusterInfo) *info, struct arena *arena)
{
    return info == NULL ? "-"
                        : arena_format(arena, "%s=%lld", info->active_cluster_name,
                                       (long long)info->failover_version);
}

/* "domain east=0>west=1; city.a ->north=2" */
static const char *
history_print(const STORED(FailoverRecord) *record, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < record->n_cluster_failovers; i++) {
        const API(ClusterFailover) *one = record->cluster_failovers[i];
        const API(ClusterAttribute) *what = one->cluster_attribute;
        text = arena_format(arena, "%s%s%s%s%s %s>%s", text, i > 0 ? "; " : "",
                            what == NULL ? "domain" : what->scope, what == NULL ? "" : ".",
                            what == NULL ? "" : what->name, info_print(one->from_cluster, arena),
                            info_print(one->to_cluster, arena));
    }
    return text;
}

/* D-052, D-053. */
TEST(failover, the_history_says_what_moved_from_where_to_where, "D-052", "D-053")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    EXPECT(orders.decision.failover == NULL); /* of the registration */
    orders.rules = sample_rules(NORTH);
    EXPECT_OK(failover(&orders, "west", NULL));
    const STORED(FailoverRecord) *record = orders.decision.failover;
    EXPECT_TEXT(history_print(record, orders.arena), "domain east=0>west=1");
    EXPECT_EQ(record->type, API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE));
    EXPECT_EQ(record->failover_version, 1);
    EXPECT_EQ(record->created_time, 1000000000LL * (int64_t)orders.moment);
    EXPECT_TEXT(record->origin, "north");
    EXPECT_TEXT(record->domain_id, orders.domain->id);
    EXPECT(record->id[0] != '\0' && !record->is_superseded);

    API(UpdateDomainRequest) *request = sample_update("active_clusters", orders.arena);
    request->active_clusters =
        sample_attributes("land.x:east,city.b:west,city.a:north", orders.arena);
    EXPECT_OK(update(&orders, request));
    EXPECT_TEXT(history_print(orders.decision.failover, orders.arena),
                "city.a ->north=2; city.b ->west=1; land.x ->east=0");
    EXPECT_OK(failover(&orders, NULL, "land.x:west,city.b:east,city.a:north"));
    EXPECT_TEXT(history_print(orders.decision.failover, orders.arena),
                "city.b west=1>east=10; land.x east=0>west=1");
    EXPECT_EQ(orders.decision.failover->failover_version, 21);
    EXPECT_OK(failover(&orders, "east", "city.a:east"));
    EXPECT_TEXT(history_print(orders.decision.failover, orders.arena),
                "domain west=21>east=30; city.a north=2>east=10");
}

/* D-039: its version rises with an attribute that moves; that alone is no move of the default. */
TEST(failover, an_active_active_domain_that_is_told_to_stay_has_a_version_more_and_no_move, "D-039")
{
    FAILOVER_FIXTURE(orders, EAST, "city.a:east");
    EXPECT_OK(failover(&orders, "west", NULL));
    EXPECT_TEXT(history_print(orders.decision.failover, orders.arena), "domain east=0>west=1");
    EXPECT_OK(failover(&orders, "west", "city.a:north"));
    EXPECT_TEXT(history_print(orders.decision.failover, orders.arena), "city.a east=0>north=2");
    EXPECT_EQ(orders.decision.failover->failover_version, 11);
}

/* D-051: five of them, newest first, only while the domain is active-passive. */
TEST(failover, the_newest_failovers_are_shown_among_the_data, "D-051")
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    size_t count = 0;
    domain_shown_data(orders.domain->record, orders.arena, &count);
    EXPECT_EQ(count, 0);
    API(FailoverDomainRequest) *request = sample_failover("west", NULL, orders.arena);
    request->reason = "a \"drill\"\n";
    EXPECT_OK(failover_request(&orders, request));
    adopt(&orders);
    API(Domain__DataEntry) **data = domain_shown_data(orders.domain->record, orders.arena, &count);
    EXPECT_EQ(count, 1);
    EXPECT_TEXT(data[0]->key, "FailoverHistory");
    EXPECT_TEXT(data[0]->value,
                "[{\"eventTime\":\"1970-01-01T00:01:42Z\",\"fromCluster\":\"east\",\"toCluster\":"
                "\"west\",\"failoverType\":\"Force\",\"reason\":\"a \\\"drill\\\"\\u000a\"}]");
    for (int i = 0; i < 6; i++)
        EXPECT_OK(failover(&orders, sample_names[i % 3], NULL));
    EXPECT_EQ(orders.domain->record->n_recent_failovers, 5);
    EXPECT_TEXT(orders.domain->record->recent_failovers[0]->to_cluster, "north");
    EXPECT_TEXT(orders.domain->record->recent_failovers[4]->to_cluster, "west");
    EXPECT_EQ(DOMAIN_OF(orders)->n_data, 0); /* shown, not stored */

    FAILOVER_FIXTURE(many, EAST, "city.a:east");
    EXPECT_OK(failover(&many, "west", NULL));
    EXPECT_EQ(many.domain->record->n_recent_failovers, 0);
}

TEST(failover, shown_times_have_the_decimals_they_need_and_data_of_the_user_stays)
{
    FAILOVER_FIXTURE(orders, EAST, NULL);
    STORED(RecentFailover) recent = CADENZA__STORAGE__V1__RECENT_FAILOVER__INIT, *list = &recent;
    API(Domain__DataEntry) entry = API_VALUE(DOMAIN__DATA_ENTRY__INIT), *entries = &entry;
    STORED(DomainRecord) *record = orders.decision.next;
    record->n_recent_failovers = 1;
    record->recent_failovers = &list;
    record->domain->n_data = 1;
    record->domain->data = &entries;
    entry.key = "team";
    entry.value = "blue";
    static const struct {
        int64_t time;
        const char *text;
    } times[] = {{0, "\"1970-01-01T00:00:00Z\""},
                 {1, "\"1970-01-01T00:00:00.000000001Z\""},
                 {1500000000, "\"1970-01-01T00:00:01.5Z\""},
                 {-1, "\"1969-12-31T23:59:59.999999999Z\""},
                 {1234567890120000000, "\"2009-02-13T23:31:30.12Z\""}};
    for (size_t i = 0; i < array_length(times); i++) {
        recent.time = times[i].time;
        size_t count = 0;
        API(Domain__DataEntry) **data = domain_shown_data(record, orders.arena, &count);
        EXPECT_EQ(count, 2);
        EXPECT_TEXT(wire_map_find(data, count, "team")->value, "blue");
        EXPECT(strstr(wire_map_find(data, count, "FailoverHistory")->value, times[i].text) != NULL);
    }
}
