/* managed_pick_test.c - which domains a managed failover moves, and where to. */
#include "base/test.h"
#include "system/managed.h"
#include "system/test_managed_sample.h"
#include "wire/maps.h"
#include "wire/message.h"

struct datum {
    const char *key, *value;
};

static void
set_data(API(Domain) *domain, struct arena *arena, const struct datum *data, size_t count)
{
    domain->data = arena_zalloc(arena, count, sizeof domain->data[0]);
    domain->n_data = count;
    for (size_t i = 0; i < count; i++) {
        domain->data[i] = message_new(arena, API_TYPE(domain__data_entry));
        domain->data[i]->key = (char *)data[i].key;
        domain->data[i]->value = (char *)data[i].value;
    }
    wire_map_sort(arena, domain->data, &domain->n_data);
}
#define SET_DATA(domain, arena, ...)                                                               \
    set_data((domain), (arena), (const struct datum[]){__VA_ARGS__},                               \
             sizeof((const struct datum[]){__VA_ARGS__}) / sizeof(struct datum))

/* A global domain in east and west, active in east, managed. */
static API(Domain) *
make_domain(struct arena *arena)
{
    static const char *const clusters[] = {"east", "west"};
    API(Domain) *domain = API_NEW(arena, domain, .name = "orders",
                                  .status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED),
                                  .is_global_domain = true, .active_cluster_name = "east",
                                  .n_clusters = array_length(clusters));
    domain->clusters = arena_zalloc(arena, domain->n_clusters, sizeof domain->clusters[0]);
    for (size_t i = 0; i < domain->n_clusters; i++) {
        domain->clusters[i] =
            API_NEW(arena, cluster_replication_configuration, .cluster_name = (char *)clusters[i]);
    }
    SET_DATA(domain, arena, {"IsManagedByCadence", " True "});
    return domain;
}

static struct managed_params
read(const char *input, enum managed_kind kind, struct arena *arena)
{
    struct managed_params params;
    EXPECT_OK(managed_read_params(slice_text(input), kind, arena, &params));
    return params;
}

#define OUT "{\"TargetCluster\":\"west\",\"SourceCluster\":\"east\"}"
#define OUT_V2                                                                                     \
    "{\"TargetCluster\":\"west\",\"SourceClusters\":[\"east\"],\"ClusterAttributes\":["            \
    "{\"scope\":\"region\",\"name\":\"one\"},{\"scope\":\"region\",\"name\":\"two\"}]}"

ARENA_TEST(managed, only_managed_global_domains_of_the_source_are_picked)
{
    struct managed_params params = read(OUT, KIND_FAILOVER, arena);
    struct managed_move move;
    API(Domain) *domain = make_domain(arena);
    EXPECT(managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
    EXPECT_TEXT(move.domain, "orders");
    EXPECT_TEXT(move.target, "west");
    EXPECT_TEXT(move.previous, "east");
    domain->active_cluster_name = "west";
    EXPECT(!managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
    domain->active_cluster_name = "east";
    domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    EXPECT(!managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
    domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED);
    domain->is_global_domain = false;
    EXPECT(!managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
    domain->is_global_domain = true;
    SET_DATA(domain, arena, {"IsManagedByCadence", "yes"});
    EXPECT(!managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
    domain->n_data = 0;
    EXPECT(!managed_pick(KIND_FAILOVER, &params, domain, arena, &move));
}

ARENA_TEST(managed, a_list_of_domains_restricts_a_failover)
{
    struct managed_move move;
    struct managed_params params =
        read("{\"TargetCluster\":\"west\",\"SourceCluster\":\"east\",\"Domains\":[\"bills\"]}",
             KIND_FAILOVER, arena);
    EXPECT(!managed_pick(KIND_FAILOVER, &params, make_domain(arena), arena, &move));
    params.domains[0] = "orders";
    EXPECT(managed_pick(KIND_FAILOVER, &params, make_domain(arena), arena, &move));
}

ARENA_TEST(managed, the_newer_failover_moves_only_attributes_that_are_in_a_source)
{
    struct managed_params params = read(OUT_V2, KIND_FAILOVER_V2, arena);
    struct managed_move move;
    API(Domain) *domain = make_domain(arena);
    domain->active_clusters = sample_attributes(arena, "east", "west");
    domain->active_cluster_name = "west";
    EXPECT(managed_pick(KIND_FAILOVER_V2, &params, domain, arena, &move));
    EXPECT_TEXT(move.target, "");
    EXPECT_EQ(move.attribute_count, 1);
    EXPECT_TEXT(move.attributes[0].name, "one");
    EXPECT_TEXT(move.attributes[0].target, "west");
    EXPECT_TEXT(move.attributes[0].previous, "east");
    params.attribute_count = 0;
    EXPECT(!managed_pick(KIND_FAILOVER_V2, &params, domain, arena, &move));
}

ARENA_TEST(managed, a_rebalance_moves_a_domain_to_a_cluster_that_it_prefers_and_has, "F-044")
{
    struct managed_params params = read("{}", KIND_REBALANCE, arena);
    struct managed_move move;
    API(Domain) *domain = make_domain(arena);
    EXPECT(!managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
    SET_DATA(domain, arena, {"IsManagedByCadence", "true"}, {"PreferredCluster", "west"});
    EXPECT(managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
    EXPECT_TEXT(move.target, "west");
    SET_DATA(domain, arena, {"IsManagedByCadence", "true"}, {"PreferredCluster", "east"});
    EXPECT(!managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
    SET_DATA(domain, arena, {"IsManagedByCadence", "true"}, {"PreferredCluster", "north"});
    EXPECT(!managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
    SET_DATA(domain, arena, {"PreferredCluster", "west"});
    EXPECT(!managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
}

ARENA_TEST(managed, the_newer_rebalance_moves_attributes_to_where_the_data_prefer_them, "F-044")
{
    struct managed_params params = read("{}", KIND_REBALANCE_V2, arena);
    struct managed_move move;
    API(Domain) *domain = make_domain(arena);
    domain->active_clusters = sample_attributes(arena, "east", "west");
    SET_DATA(domain, arena, {"IsManagedByCadence", "true"},
             {"ClusterAttributePreferences",
              "[{\"scope\":\"region\",\"name\":\"one\",\"preferredCluster\":\"east\"},"
              "{\"scope\":\"region\",\"name\":\"two\",\"preferredCluster\":\"east\"},"
              "{\"scope\":\"region\",\"name\":\"three\",\"preferredCluster\":\"east\"}]"},
             {"FailoverTimeoutInSeconds", "9"});
    EXPECT(managed_pick(KIND_REBALANCE_V2, &params, domain, arena, &move));
    EXPECT_TEXT(move.target, "");
    EXPECT_EQ(move.attribute_count, 1);
    EXPECT_TEXT(move.attributes[0].name, "two");
    EXPECT_EQ(move.timeout, 9);
    EXPECT(!managed_pick(KIND_REBALANCE, &params, domain, arena, &move));
    SET_DATA(domain, arena, {"IsManagedByCadence", "true"},
             {"ClusterAttributePreferences", "[{\"scope\":"});
    EXPECT(!managed_pick(KIND_REBALANCE_V2, &params, domain, arena, &move));
}

ARENA_TEST(managed, moves_are_read_as_they_were_written_and_turned_around)
{
    struct managed_attribute attribute = {"region", "one", "west", "east"};
    struct managed_move move = {.domain = "a\"b",
                                .target = "west",
                                .previous = "east",
                                .attributes = &attribute,
                                .attribute_count = 1,
                                .timeout = 5};
    struct managed_moves moves = {.all = &move, .count = 1}, again;
    EXPECT(managed_read_moves(managed_write_moves(&moves, arena), arena, &again));
    EXPECT_EQ(again.count, 1);
    struct managed_move back = managed_reverse(&again.all[0], arena);
    EXPECT_TEXT(back.domain, "a\"b");
    EXPECT_TEXT(back.target, "east");
    EXPECT_TEXT(back.previous, "west");
    EXPECT_EQ(back.attribute_count, 1);
    EXPECT_TEXT(back.attributes[0].target, "east");
    EXPECT_TEXT(back.attributes[0].previous, "west");
    EXPECT_EQ(back.timeout, 5);
    EXPECT(!managed_read_moves(slice_text("{\"DomainPreferences\":[{]}"), arena, &again));
}

TEST(managed, what_cannot_be_done_is_said_before_anything_is)
{
    static const struct {
        const char *input;
        enum managed_kind kind;
        const char *text;
    } cases[] = {
        {"", KIND_FAILOVER, "params is nil"},
        {"{", KIND_FAILOVER, "params cannot be read"},
        {"{\"SourceCluster\":\"a\"}", KIND_FAILOVER, "targetCluster is empty"},
        {"{\"TargetCluster\":\"a\"}", KIND_FAILOVER, "sourceCluster is empty"},
        {"{\"TargetCluster\":\"a\",\"SourceCluster\":\"a\"}", KIND_FAILOVER,
         "targetCluster is same as sourceCluster"},
        {"{\"TargetCluster\":\"a\"}", KIND_FAILOVER_V2, "sourceClusters is empty"},
        {"{\"TargetCluster\":\"a\",\"SourceClusters\":[\"b\",\"a\"]}", KIND_FAILOVER_V2,
         "targetCluster is also listed as a sourceCluster"},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(cases); i++) {
        struct managed_params params;
        struct error *err =
            managed_read_params(slice_text(cases[i].input), cases[i].kind, arena, &params);
        EXPECT(err != NULL);
        EXPECT_TEXT(err->message, cases[i].text);
    }
    struct managed_params usual = read(OUT, KIND_FAILOVER, arena);
    EXPECT_EQ(usual.batch_size, 20);
    EXPECT_EQ(usual.wait, 30);
    EXPECT_EQ(usual.drill_wait, 0);
}
