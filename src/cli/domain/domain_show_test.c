/* domain_show_test.c - domains and failovers as text. */
#include "cli/domain/domain_show.h"

#include <jansson.h>

#include "base/test.h"
#include "cli/domain/domain_attributes.h"
#include "cli/output/table.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)      \
    }

static API(Domain) *
make_domain(const char *name, struct arena *arena)
{
    API(Domain) *domain = API_NEW(
        arena, domain, .id = "177b38ef-ed54-4c0e-b84b-1b52e3c3598e", .name = (char *)name,
        .status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED),
        .workflow_execution_retention_period = presence_make_duration(arena, 3 * 86400),
        .active_cluster_name = "cluster2", .failover_version = 52, .is_global_domain = true);
    const struct flag_list clusters = LIST("cluster0,cluster1,cluster2");
    EXPECT_OK(domain_read_clusters(&clusters, arena, &domain->clusters, &domain->n_clusters));
    return domain;
}

static void
add_cities(API(Domain) *domain, struct arena *arena)
{
    struct domain_flags flags = {.active_clusters =
                                     LIST("location.cityA:cluster0,location.cityB:cluster2")};
    EXPECT_OK(domain_read_active_clusters(&flags, arena, &domain->active_clusters));
    API(ClusterAttributeScope) *scope =
        domain->active_clusters->active_clusters_by_cluster_attribute[0]->value;
    scope->cluster_attributes[0]->value->failover_version = 10;
    scope->cluster_attributes[1]->value->failover_version = 12;
}

ARENA_TEST(domain_show, the_active_active_example_has_the_json_that_users_know)
{
    API(Domain) *domain = make_domain("active-active-domain", arena);
    add_cities(domain, arena);
    EXPECT_TEXT(domain_json(domain, arena),
                "{\n"
                "  \"domainInfo\": {\n"
                "    \"name\": \"active-active-domain\",\n"
                "    \"status\": \"REGISTERED\",\n"
                "    \"uuid\": \"177b38ef-ed54-4c0e-b84b-1b52e3c3598e\"\n"
                "  },\n"
                "  \"configuration\": {\n"
                "    \"workflowExecutionRetentionPeriodInDays\": 3,\n"
                "    \"historyArchivalStatus\": \"DISABLED\",\n"
                "    \"visibilityArchivalStatus\": \"DISABLED\"\n"
                "  },\n"
                "  \"replicationConfiguration\": {\n"
                "    \"activeClusterName\": \"cluster2\",\n"
                "    \"clusters\": [\n"
                "      {\n"
                "        \"clusterName\": \"cluster0\"\n"
                "      },\n"
                "      {\n"
                "        \"clusterName\": \"cluster1\"\n"
                "      },\n"
                "      {\n"
                "        \"clusterName\": \"cluster2\"\n"
                "      }\n"
                "    ],\n"
                "    \"activeClusters\": {\n"
                "      \"attributeScopes\": {\n"
                "        \"location\": {\n"
                "          \"clusterAttributes\": {\n"
                "            \"cityA\": {\n"
                "              \"activeClusterName\": \"cluster0\",\n"
                "              \"failoverVersion\": 10\n"
                "            },\n"
                "            \"cityB\": {\n"
                "              \"activeClusterName\": \"cluster2\",\n"
                "              \"failoverVersion\": 12\n"
                "            }\n"
                "          }\n"
                "        }\n"
                "      }\n"
                "    }\n"
                "  },\n"
                "  \"failoverVersion\": 52,\n"
                "  \"isGlobalDomain\": true\n"
                "}\n");
}

ARENA_TEST(domain_show, notification_versions_are_shown_if_the_server_tells_them)
{
    API(DescribeDomainResponse) described = API_VALUE(DESCRIBE_DOMAIN_RESPONSE__INIT);
    described.domain = make_domain("d", arena);
    EXPECT(strstr(domain_show_described(&described, arena), "Notification") == NULL);
    EXPECT(strstr(domain_json_described(&described, arena), "otification") == NULL);
    described.notification_version = 35;
    described.failover_notification_version = 34;
    described.cluster_notification_version = 43;
    EXPECT(strstr(domain_show_described(&described, arena),
                  "\nNotificationVersion: 35\nFailoverNotificationVersion: 34\n"
                  "ClusterNotificationVersion: 43\n") != NULL);
    EXPECT(strstr(domain_json_described(&described, arena),
                  "  \"notificationVersion\": 35,\n  \"failoverNotificationVersion\": 34,\n"
                  "  \"clusterNotificationVersion\": 43\n") != NULL);
}

ARENA_TEST(domain_show, a_cluster_that_recovers_says_so_of_the_domain)
{
    API(DescribeDomainResponse) described = API_VALUE(DESCRIBE_DOMAIN_RESPONSE__INIT);
    described.domain = make_domain("d", arena);
    described.cluster_notification_version = 43;
    EXPECT(strstr(domain_show_described(&described, arena), "ecovering") == NULL);
    EXPECT(strstr(domain_json_described(&described, arena), "ecovering") == NULL);
    described.is_recovering = true;
    EXPECT(strstr(domain_show_described(&described, arena),
                  "\n\nRecovering: this cluster lost memory, and decides nothing for the domain") !=
           NULL);
    EXPECT(strstr(domain_show_described(&described, arena), "ClusterNotificationVersion: 43\n") !=
           NULL);
    EXPECT(strstr(domain_json_described(&described, arena), "  \"isRecovering\": true\n") != NULL);
}

ARENA_TEST(domain_show, a_described_domain_has_the_lines_that_users_know_and_its_attributes)
{
    API(Domain) *domain = make_domain("d", arena);
    add_cities(domain, arena);
    EXPECT_TEXT(domain_show(domain, arena), "Name: d\n"
                                            "UUID: 177b38ef-ed54-4c0e-b84b-1b52e3c3598e\n"
                                            "Description: \n"
                                            "OwnerEmail: \n"
                                            "DomainData: \n"
                                            "Status: REGISTERED\n"
                                            "RetentionInDays: 3\n"
                                            "IsGlobal(XDC)Domain: true\n"
                                            "ActiveClusterName: cluster2\n"
                                            "IsActiveActiveDomain: true\n"
                                            "Clusters: cluster0, cluster1, cluster2\n"
                                            "FailoverVersion: 52\n"
                                            "HistoryArchivalStatus: DISABLED\n"
                                            "VisibilityArchivalStatus: DISABLED\n"
                                            "\n"
                                            "Active clusters by cluster attribute:\n"
                                            "Cluster attribute  Active cluster  Failover version\n"
                                            "location.cityA     cluster0        10\n"
                                            "location.cityB     cluster2        12\n");
}

ARENA_TEST(domain_show, what_is_rare_is_shown_when_it_is_there)
{
    API(Domain) *domain = make_domain("d", arena);
    API(BadBinaries__BinariesEntry) *bad =
        message_new(arena, API_TYPE(bad_binaries__binaries_entry));
    bad->key = "5ad4";
    bad->value = API_NEW(arena, bad_binary_info, .operator_ = "ann", .reason = "loses mails",
                         .created_time = presence_make_timestamp(arena, 1794726224000000005));
    domain->bad_binaries = API_NEW(arena, bad_binaries, .binaries = &bad, .n_binaries = 1);
    domain->failover_info =
        API_NEW(arena, failover_info, .failover_version = 61, .completed_shard_count = 3);
    domain->async_workflow_config =
        API_NEW(arena, async_workflow_configuration, .predefined_queue_name = "kafka1");
    API(IsolationGroupPartition) *zone =
        API_NEW(arena, isolation_group_partition, .name = "zone-3",
                .state = API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED));
    domain->isolation_groups = API_NEW(arena, isolation_group_configuration,
                                       .isolation_groups = &zone, .n_isolation_groups = 1);
    domain->is_global_domain = false;
    domain->history_archival_uri = "file:///h";
    const char *text = domain_show(domain, arena), *json = domain_json(domain, arena);
    EXPECT(strstr(text, "5ad4             ann       2026-11-15T07:03:44Z  loses mails\n") != NULL);
    EXPECT(strstr(text, "Shards done: 3, pending: 0\n") != NULL);
    EXPECT(strstr(text, "Clusters: N/A, Not a global domain\n") != NULL);
    EXPECT(strstr(text, "HistoryArchivalURI: file:///h\n") != NULL);
    EXPECT(strstr(json, "\"createdTimeNano\": 1794726224000000005") != NULL);
    EXPECT(strstr(json, "\"completedShardCount\": 3") != NULL);
    EXPECT(strstr(json, "\"isGlobalDomain\": false") != NULL);
    EXPECT(strstr(text, "zone-3           DRAINED\n") != NULL);
    EXPECT(strstr(json, "\"state\": \"DRAINED\"") != NULL);
    EXPECT(strstr(json, "\"PredefinedQueueName\": \"kafka1\"") != NULL);
}

ARENA_TEST(domain_show, a_list_lines_up_and_shows_more_when_asked)
{
    API(Domain) *items[] = {make_domain("a", arena), make_domain("långt", arena)};
    struct domain_list list = {.items = items, .count = 2};
    EXPECT_TEXT(domain_show_list(&list, false, arena),
                "Name   UUID                                  Status      Global  Active cluster\n"
                "a      177b38ef-ed54-4c0e-b84b-1b52e3c3598e  REGISTERED  true    cluster2\n"
                "långt  177b38ef-ed54-4c0e-b84b-1b52e3c3598e  REGISTERED  true    cluster2\n");
    EXPECT(strstr(domain_show_list(&list, true, arena), "cluster0, cluster1, cluster2  52 ") !=
           NULL);
    json_t *json = json_loads(domain_json_list(&list, arena), 0, NULL);
    EXPECT_EQ(json_array_size(json), 2);
    json_decref(json);
    EXPECT_TEXT(domain_json_list(&(struct domain_list){0}, arena), "[]\n");
}

static API(FailoverEvent) *
make_failover(const char *scope, struct arena *arena)
{
    API(FailoverEvent) *event =
        API_NEW(arena, failover_event, .id = "e1",
                .created_time = presence_make_timestamp(arena, 1794726224000000000),
                .failover_type = API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE),
                .cluster_failovers = arena_zalloc(arena, 1, sizeof(void *)));
    API(ClusterFailover) *move = API_NEW(arena, cluster_failover);
    event->cluster_failovers[0] = move;
    event->n_cluster_failovers = 1;
    move->from_cluster = API_NEW(arena, active_cluster_info, .active_cluster_name = "cluster0");
    move->to_cluster = API_NEW(arena, active_cluster_info, .active_cluster_name = "cluster1",
                               .failover_version = 1);
    if (scope != NULL) {
        move->cluster_attribute =
            API_NEW(arena, cluster_attribute, .scope = (char *)scope, .name = "oslo");
    }
    return event;
}

ARENA_TEST(domain_show, failovers_say_what_moved_when_from_where_to_where)
{
    API(FailoverEvent) *empty = API_NEW(arena, failover_event, .id = "e0");
    API(FailoverEvent) *items[] = {make_failover("region", arena), make_failover(NULL, arena),
                                   empty};
    struct failover_list list = {.items = items, .count = 3};
    EXPECT_TEXT(domain_show_failovers(&list, arena),
                "Time                  Type     What         From          To            Event ID\n"
                "2026-11-15T07:03:44Z  FORCE    region.oslo  cluster0 (0)  cluster1 (1)  e1\n"
                "2026-11-15T07:03:44Z  FORCE    (domain)     cluster0 (0)  cluster1 (1)  e1\n"
                "-                     INVALID  -            -             -             e0\n");
    const char *json = domain_json_failovers(&list, arena);
    EXPECT(strstr(json, "\"failoverEvents\": [") != NULL);
    EXPECT(strstr(json, "\"createdTime\": 1794726224000000000") != NULL);
    EXPECT(strstr(json, "\"scope\": \"region\"") != NULL);
}

ARENA_TEST(domain_show, a_graceful_failover_says_how_it_ended_and_how_long_it_took)
{
    API(FailoverEvent) *event = make_failover(NULL, arena);
    API(FailoverOutcome) *outcome = API_NEW(arena, failover_outcome);
    char *missing[] = {"shard 3"};
    event->failover_type = API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL);
    event->outcomes = &outcome;
    event->n_outcomes = 1;
    outcome->result = "timed out";
    outcome->end_time = presence_make_timestamp(arena, 1794726225250000000);
    outcome->missing = missing;
    outcome->n_missing = 1;
    struct failover_list list = {.items = &event, .count = 1};
    EXPECT(strstr(domain_show_failovers(&list, arena), "GRACEFUL, timed out in 1.25 s  (domain)") !=
           NULL);
    const char *json = domain_json_failovers(&list, arena);
    EXPECT(strstr(json, "\"result\": \"timed out\"") != NULL);
    EXPECT(strstr(json, "\"shard 3\"") != NULL);
}

ARENA_TEST(domain_show, what_others_wrote_cannot_steer_the_terminal)
{
    EXPECT_TEXT(show_text("a\033[2Jb\nc\x7f", arena), "a?[2Jb?c?");
    EXPECT_TEXT(show_text("\xc2\x9b"
                          "31m\xc3\xa9\xc2\xa0",
                          arena),
                "??31m\xc3\xa9\xc2\xa0");
    API(Domain) *domain = make_domain("d", arena);
    domain->description = "x\nStatus: DELETED";
    EXPECT(strstr(domain_show(domain, arena), "Description: x?Status: DELETED\n") != NULL);
}

ARENA_TEST(domain_show, an_enum_number_without_a_name_is_shown_as_it_is)
{
    API(Domain) *domain = make_domain("d", arena);
    domain->status = (API(DomainStatus))17;
    EXPECT_TEXT(domain_status_text(domain, arena), "17");
    EXPECT_TEXT(archival_status_text(API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED), arena),
                "ENABLED");
}
