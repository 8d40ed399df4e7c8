/* domain_request_test.c - from flags to requests: what is sent, what is refused before. */
#include "cli/domain/domain_request.h"

#include "base/test.h"
#include "cli/domain/domain_attributes.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)      \
    }

static const char *
refusal(struct error *err)
{
    return err == NULL ? "(none)" : err->message;
}

ARENA_TEST(domain_request, a_new_domain_is_global_and_kept_for_three_days)
{
    API(RegisterDomainRequest) *request;
    EXPECT_OK(domain_make_register(&(struct domain_flags){.name = "d"}, arena, &request));
    EXPECT_TEXT(request->name, "d");
    EXPECT(request->is_global_domain);
    EXPECT_EQ(request->workflow_execution_retention_period->seconds, 3 * 86400);
    EXPECT_EQ(request->n_clusters, 0);
    EXPECT(request->active_clusters == NULL);
    EXPECT_EQ(request->history_archival_status, 0);
}

ARENA_TEST(domain_request, register_carries_everything_that_was_given)
{
    struct domain_flags flags = {
        .name = "d",
        .description = "about",
        .owner_email = "a@b",
        .retention = "7",
        .is_global = "false",
        .security_token = "secret",
        .active_cluster = "east",
        .history_status = "enabled",
        .history_uri = "file:///h",
        .visibility_status = "disabled",
        .clusters = LIST("east,west", "north south"),
        .data = LIST("k2=v2,k1=v=1"),
        .data_entries = LIST("k3={\"a\":1,\"b\":2}"),
    };
    API(RegisterDomainRequest) *request;
    EXPECT_OK(domain_make_register(&flags, arena, &request));
    EXPECT(!request->is_global_domain);
    EXPECT_EQ(request->workflow_execution_retention_period->seconds, 7 * 86400);
    EXPECT_EQ(request->n_clusters, 4);
    EXPECT_TEXT(request->clusters[3]->cluster_name, "south");
    EXPECT_EQ(request->n_data, 3);
    EXPECT_TEXT(request->data[0]->key, "k1");
    EXPECT_TEXT(request->data[0]->value, "v=1");
    EXPECT_TEXT(request->data[2]->value, "{\"a\":1,\"b\":2}");
    EXPECT_EQ(request->history_archival_status,
              API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED));
    EXPECT_EQ(request->visibility_archival_status,
              API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED));
    EXPECT_TEXT(request->history_archival_uri, "file:///h");
    EXPECT_TEXT(request->security_token, "secret");
    EXPECT_TEXT(request->active_cluster_name, "east");
}

ARENA_TEST(domain_request, an_update_names_what_was_given_and_nothing_else)
{
    API(UpdateDomainRequest) *request;
    struct domain_flags flags = {.name = "d", .retention = "9", .description = ""};
    EXPECT_OK(domain_make_update(&flags, "me", arena, &request));
    EXPECT_EQ(request->update_mask->n_paths, 2);
    EXPECT(presence_mask_has(request->update_mask, "workflow_execution_retention_period"));
    EXPECT(presence_mask_has(request->update_mask, "description"));
    EXPECT_TEXT(request->description, "");

    flags = (struct domain_flags){.name = "d", .active_cluster = "west", .failover_type = "grace"};
    EXPECT_OK(domain_make_update(&flags, "me", arena, &request));
    EXPECT_EQ(request->update_mask->n_paths, 2);
    EXPECT(presence_mask_has(request->update_mask, "active_cluster_name"));
    EXPECT(presence_mask_has(request->update_mask, "failover_timeout"));
    EXPECT_EQ(request->failover_timeout->seconds, 60);
}

ARENA_TEST(domain_request, an_update_can_name_every_field_at_once)
{
    struct domain_flags flags = {
        .name = "d",
        .description = "about",
        .owner_email = "a@b",
        .retention = "7",
        .active_cluster = "east",
        .failover_timeout = "5",
        .history_status = "enabled",
        .history_uri = "file:///h",
        .visibility_status = "disabled",
        .visibility_uri = "file:///v",
        .add_bad_binary = "bad",
        .remove_bad_binary = "good",
        .reason = "why",
        .clusters = LIST("east"),
        .active_clusters = LIST("a.b:east"),
        .data = LIST("k=v"),
    };
    API(UpdateDomainRequest) *request;
    EXPECT_OK(domain_make_update(&flags, "me", arena, &request));
    EXPECT_EQ(request->update_mask->n_paths, 14);
    EXPECT_TEXT(request->bad_binaries->binaries[0]->key, "bad");
    EXPECT_TEXT(request->bad_binaries->binaries[0]->value->operator_, "me");
    EXPECT_TEXT(request->bad_binaries->binaries[0]->value->reason, "why");
    EXPECT_TEXT(request->delete_bad_binary, "good");
}

ARENA_TEST(domain_request, a_failover_is_forced_unless_grace_or_a_time_is_asked_for)
{
    API(FailoverDomainRequest) *request;
    struct domain_flags flags = {.name = "d", .active_cluster = "west", .reason = "drill"};
    EXPECT_OK(domain_make_failover(&flags, arena, &request));
    EXPECT(request->failover_timeout == NULL && request->active_clusters == NULL);
    EXPECT_TEXT(request->domain_active_cluster_name, "west");
    EXPECT_TEXT(request->reason, "drill");
    flags.failover_type = "force";
    EXPECT_OK(domain_make_failover(&flags, arena, &request));
    EXPECT(request->failover_timeout == NULL);
    flags.failover_type = NULL;
    flags.failover_timeout = "30";
    EXPECT_OK(domain_make_failover(&flags, arena, &request));
    EXPECT_EQ(request->failover_timeout->seconds, 30);
    flags.failover_type = "graceful";
    flags.failover_timeout = "120s";
    EXPECT_OK(domain_make_failover(&flags, arena, &request));
    EXPECT_EQ(request->failover_timeout->seconds, 120);
    flags.failover_timeout = "2m";
    EXPECT_OK(domain_make_failover(&flags, arena, &request));
    EXPECT_EQ(request->failover_timeout->seconds, 120);
}

ARENA_TEST(domain_request, attributes_are_grouped_by_scope_and_sorted)
{
    struct domain_flags flags = {.active_clusters =
                                     LIST("region.oslo:c1,city.x.y:c2", "region.lisbon:c0")};
    API(ActiveClusters) *active;
    EXPECT_OK(domain_read_active_clusters(&flags, arena, &active));
    EXPECT_EQ(active->n_active_clusters_by_cluster_attribute, 2);
    EXPECT_TEXT(active->active_clusters_by_cluster_attribute[0]->key, "city");
    API(ClusterAttributeScope) *city = active->active_clusters_by_cluster_attribute[0]->value,
                               *region = active->active_clusters_by_cluster_attribute[1]->value;
    EXPECT_TEXT(city->cluster_attributes[0]->key, "x.y");
    EXPECT_EQ(region->n_cluster_attributes, 2);
    EXPECT_TEXT(region->cluster_attributes[0]->key, "lisbon");
    EXPECT_TEXT(region->cluster_attributes[0]->value->active_cluster_name, "c0");
    EXPECT_TEXT(region->cluster_attributes[1]->value->active_cluster_name, "c1");
}

ARENA_TEST(domain_request, regions_are_attributes_of_scope_region, "G-060")
{
    struct domain_flags flags = {.regions = LIST("oslo:c1,lisbon:c0"),
                                 .active_clusters = LIST("city.x:c2")};
    API(ActiveClusters) *active;
    EXPECT_OK(domain_read_active_clusters(&flags, arena, &active));
    EXPECT_EQ(active->n_active_clusters_by_cluster_attribute, 2);
    API(ClusterAttributeScope) *region = active->active_clusters_by_cluster_attribute[1]->value;
    EXPECT_TEXT(active->active_clusters_by_cluster_attribute[1]->key, "region");
    EXPECT_TEXT(region->cluster_attributes[0]->key, "lisbon");
    EXPECT_TEXT(region->cluster_attributes[0]->value->active_cluster_name, "c0");
    static const char *const bad[] = {"oslo", ":c1", "oslo:"};
    for (size_t i = 0; i < array_length(bad); i++) {
        struct domain_flags wrong = {.regions = LIST(bad[i])};
        EXPECT_KIND(domain_read_active_clusters(&wrong, arena, &active), ERR_BAD_REQUEST);
    }
}

ARENA_TEST(domain_request, attributes_are_taken_away_by_name_by_scope_or_all)
{
    struct domain_flags flags = {.name = "d", .removed_attributes = LIST("city.a.b,land.*")};
    API(UpdateDomainRequest) *request;
    EXPECT_OK(domain_make_update(&flags, "me", arena, &request));
    EXPECT_EQ(request->n_removed_attributes, 2);
    EXPECT_TEXT(request->removed_attributes[0]->scope, "city");
    EXPECT_TEXT(request->removed_attributes[0]->name, "a.b");
    EXPECT_TEXT(request->removed_attributes[1]->scope, "land");
    EXPECT_TEXT(request->removed_attributes[1]->name, "");
    EXPECT(!request->removes_all_attributes && !request->is_forced);
    flags =
        (struct domain_flags){.name = "d", .removed_attributes = LIST("all"), .is_forced = true};
    EXPECT_OK(domain_make_update(&flags, "me", arena, &request));
    EXPECT(request->removes_all_attributes && request->is_forced);
    flags.removed_attributes = (struct flag_list)LIST("city");
    EXPECT_KIND(domain_make_update(&flags, "me", arena, &request), ERR_BAD_REQUEST);
}

/* Everything that is active in one cluster, and nothing else. */
ARENA_TEST(domain_request, leaving_a_cluster_names_all_that_is_active_there)
{
    struct domain_flags flags = {.active_clusters = LIST("city.x:c0,city.y:c1,land.z:c0")};
    API(Domain) *domain = API_NEW(arena, domain, .active_cluster_name = "c1");
    API(FailoverDomainRequest) *request = API_NEW(arena, failover_domain_request);
    EXPECT_OK(domain_read_active_clusters(&flags, arena, &domain->active_clusters));
    EXPECT_OK(domain_leave(domain, "c0", "c2", arena, request));
    EXPECT_TEXT(request->domain_active_cluster_name, "");
    EXPECT_EQ(request->active_clusters->n_active_clusters_by_cluster_attribute, 2);
    const API(ClusterAttributeScope) *city =
        request->active_clusters->active_clusters_by_cluster_attribute[0]->value;
    EXPECT_EQ(city->n_cluster_attributes, 1);
    EXPECT_TEXT(city->cluster_attributes[0]->key, "x");
    EXPECT_TEXT(city->cluster_attributes[0]->value->active_cluster_name, "c2");
    EXPECT_OK(domain_leave(domain, "c1", "c2", arena, request));
    EXPECT_TEXT(request->domain_active_cluster_name, "c2");
    EXPECT_KIND(domain_leave(domain, "c3", "c2", arena, request), ERR_BAD_REQUEST);
}

ARENA_TEST(domain_request, attributes_may_be_given_as_json)
{
    struct domain_flags flags = {.active_clusters_json =
                                     "{\"attributeScopes\":{\"region\":{\"clusterAttributes\":"
                                     "{\"oslo\":{\"activeClusterName\":\"c1\"}}}}}"};
    API(ActiveClusters) *active;
    EXPECT_OK(domain_read_active_clusters(&flags, arena, &active));
    EXPECT_EQ(active->n_active_clusters_by_cluster_attribute, 1);
    API(ClusterAttributeScope) *region = active->active_clusters_by_cluster_attribute[0]->value;
    EXPECT_TEXT(region->cluster_attributes[0]->key, "oslo");
    EXPECT_TEXT(region->cluster_attributes[0]->value->active_cluster_name, "c1");
}

ARENA_TEST(domain_request, bad_attributes_are_refused)
{
    static const char *const bad[] = {"",           "oslo",  "region.oslo",  "region:c1",
                                      ".oslo:c1",   "a.:c1", "region.oslo:", ",",
                                      "a.b:c a.b:d"};
    API(ActiveClusters) *active;
    for (size_t i = 0; i < array_length(bad); i++) {
        struct domain_flags flags = {.active_clusters = LIST(bad[i])};
        EXPECT_KIND(domain_read_active_clusters(&flags, arena, &active), ERR_BAD_REQUEST);
    }
    static const char *const bad_json[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"attributeScopes\":1}",
        "{\"attributeScopes\":{\"a\":{}}}",
        "{\"attributeScopes\":{\"a\":{\"clusterAttributes\":{\"b\":{}}}}}",
        "{\"attributeScopes\":{}}"};
    for (size_t i = 0; i < array_length(bad_json); i++) {
        struct domain_flags flags = {.active_clusters_json = bad_json[i]};
        EXPECT_KIND(domain_read_active_clusters(&flags, arena, &active), ERR_BAD_REQUEST);
    }
    struct domain_flags both = {.active_clusters = LIST("a.b:c"), .active_clusters_json = "{}"};
    EXPECT_KIND(domain_read_active_clusters(&both, arena, &active), ERR_BAD_REQUEST);
}

#define REFUSED_REGISTER(words, ...)                                                               \
    EXPECT(strstr(refusal(domain_make_register(&(struct domain_flags){__VA_ARGS__}, arena,         \
                                               &(API(RegisterDomainRequest) *){NULL})),            \
                  words) != NULL)
#define REFUSED_UPDATE(words, ...)                                                                 \
    EXPECT(strstr(refusal(domain_make_update(&(struct domain_flags){__VA_ARGS__}, "me", arena,     \
                                             &(API(UpdateDomainRequest) *){NULL})),                \
                  words) != NULL)
#define REFUSED_FAILOVER(words, ...)                                                               \
    EXPECT(strstr(refusal(domain_make_failover(&(struct domain_flags){__VA_ARGS__}, arena,         \
                                               &(API(FailoverDomainRequest) *){NULL})),            \
                  words) != NULL)

ARENA_TEST(domain_request, a_value_of_the_wrong_form_is_refused_by_its_flag)
{
    REFUSED_REGISTER("--domain NAME", .name = "");
    REFUSED_FAILOVER("--to_cluster", .name = "d", .leave_cluster = "c0");
    REFUSED_REGISTER("--retention: 'x'", .name = "d", .retention = "x");
    REFUSED_REGISTER("--retention: '-1'", .name = "d", .retention = "-1");
    REFUSED_REGISTER("--retention: '99999999999'", .name = "d", .retention = "99999999999");
    REFUSED_REGISTER("--global_domain: 'maybe'", .name = "d", .is_global = "maybe");
    REFUSED_REGISTER("--history_archival_status: 'on'", .name = "d", .history_status = "on");
    REFUSED_REGISTER("--clusters names no cluster", .name = "d", .clusters = LIST(" ,"));
    REFUSED_REGISTER("--clusters names a twice", .name = "d", .clusters = LIST("a,b", "a"));
    REFUSED_REGISTER("--domain_data: 'k' is not", .name = "d", .data = LIST("k"));
    REFUSED_REGISTER("--domain_data_entry: '=v' is not", .name = "d", .data_entries = LIST("=v"));
    REFUSED_REGISTER("key k is given twice", .name = "d", .data = LIST("k=1"),
                     .data_entries = LIST("k=2"));
}

ARENA_TEST(domain_request, a_change_that_makes_no_sense_is_refused)
{
    REFUSED_UPDATE("nothing to change", .name = "d");
    REFUSED_UPDATE("--domain NAME", .retention = "3");
    REFUSED_UPDATE("needs --reason", .name = "d", .add_bad_binary = "x");
    REFUSED_UPDATE("needs its target", .name = "d", .failover_type = "grace");
    REFUSED_UPDATE("neither force nor grace", .name = "d", .active_cluster = "a",
                   .failover_type = "soft");
    REFUSED_FAILOVER("no target", .name = "d");
    REFUSED_FAILOVER("does not wait", .name = "d", .active_cluster = "a", .failover_type = "force",
                     .failover_timeout = "3");
    REFUSED_FAILOVER("'0' is not a number of seconds from 1 up", .name = "d", .active_cluster = "a",
                     .failover_timeout = "0");
}

ARENA_TEST(domain_request, a_page_has_at_least_one_item)
{
    int32_t size = 0;
    EXPECT_OK(domain_read_page_size(&(struct domain_flags){0}, 7, arena, &size));
    EXPECT_EQ(size, 7);
    EXPECT_OK(domain_read_page_size(&(struct domain_flags){.page_size = "3"}, 7, arena, &size));
    EXPECT_EQ(size, 3);
    EXPECT_KIND(domain_read_page_size(&(struct domain_flags){.page_size = "0"}, 7, arena, &size),
                ERR_BAD_REQUEST);
}
