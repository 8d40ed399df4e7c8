/* decide_test.c - what becomes of a domain: every rule of register, update and deprecate, without a
 * server. */
#include "domain/decide/decide.h"

#include "base/test.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DAY (24 * 3600)

static const struct cluster clusters[] = {
    {.name = "east",
     .is_enabled = true,
     .initial_failover_version = 1,
     .new_initial_failover_version = -1},
    {.name = "west",
     .is_enabled = true,
     .initial_failover_version = 2,
     .new_initial_failover_version = -1},
    {.name = "gone",
     .is_enabled = false,
     .initial_failover_version = 3,
     .new_initial_failover_version = -1},
};
static const struct cluster_group primary_group = {.failover_version_increment = 10,
                                                   .current = &clusters[0],
                                                   .primary = &clusters[0],
                                                   .clusters = clusters,
                                                   .count = 3};
static const struct cluster_group other_group = {.failover_version_increment = 10,
                                                 .current = &clusters[1],
                                                 .primary = &clusters[0],
                                                 .clusters = clusters,
                                                 .count = 3};
static const char *const no_keys[] = {NULL};

static const struct domain_rules rules = {
    .group = &primary_group,
    .retention_days_min = 1,
    .retention_days_max = 30,
    .name_length_max = 20,
    .bad_binaries_max = 2,
    .required_data_keys = no_keys,
    .admin_token = "secret",
};
static const struct domain_moment moment = {.now = 1234567890123456789, .fresh = {{1, 2, 3}}};

static API(RegisterDomainRequest) *
registration(struct arena *arena)
{
    return API_NEW(arena, register_domain_request, .name = "orders",
                   .workflow_execution_retention_period = presence_make_duration(arena, 3 * DAY));
}

static API(UpdateDomainRequest) *
update(struct arena *arena, char *path)
{
    API(UpdateDomainRequest) *request =
        API_NEW(arena, update_domain_request, .name = "orders",
                .update_mask = GOOGLE_NEW(arena, field_mask, .n_paths = 1,
                                          .paths = arena_zalloc(arena, 1, sizeof(char *))));
    request->update_mask->paths[0] = path;
    return request;
}

static struct domain *
orders(struct arena *arena)
{
    struct domain_decision decision = {0};
    EXPECT_OK(domain_decide_register(NULL, registration(arena), &rules, &moment, arena, &decision));
    decision.next->notification_version = 7;
    return domain_from_record(decision.next);
}

/* The domain that the record makes of `current`, whose parts the record still points to. */
static struct domain *
replace(struct domain *current, const STORED(DomainRecord) *record)
{
    struct domain *next = domain_from_record(record);
    domain_drop(current);
    return next;
}

#define EXPECT_REFUSED(err, text)                                                                  \
    do {                                                                                           \
        struct error *refusal = (err);                                                             \
        EXPECT_KIND(refusal, ERR_BAD_REQUEST);                                                     \
        EXPECT_TEXT(refusal->message, text);                                                       \
    } while (0)

static struct error *
try_register(API(RegisterDomainRequest) *request, const struct domain_rules *with,
             struct arena *arena)
{
    struct domain_decision decision = {0};
    return domain_decide_register(NULL, request, with, &moment, arena, &decision);
}

ARENA_TEST(decide, a_new_local_domain_has_the_defaults_that_users_know, "D-005", "D-007", "D-008")
{
    struct domain_decision decision = {0};
    EXPECT_OK(domain_decide_register(NULL, registration(arena), &rules, &moment, arena, &decision));
    const API(Domain) *domain = decision.next->domain;
    EXPECT_TEXT(domain->id, "01020300-0000-0000-0000-000000000000");
    EXPECT_TEXT(domain->active_cluster_name, "east");
    EXPECT_EQ(domain->n_clusters, 1);
    EXPECT_TEXT(domain->clusters[0]->cluster_name, "east");
    EXPECT_EQ(domain->failover_version, -24);
    EXPECT_EQ(domain->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED));
    EXPECT_EQ(domain->history_archival_status,
              API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED));
    EXPECT_EQ(domain->workflow_execution_retention_period->seconds, 3 * DAY);
    EXPECT_EQ(decision.next->config_version, 0);
    EXPECT_EQ(decision.next->failover_notification_version, 0);
    EXPECT_EQ(decision.next->previous_failover_version, -1);
    EXPECT_EQ(decision.next->last_updated_time, moment.now);
}

ARENA_TEST(decide, a_new_global_domain_has_the_first_version_of_its_active_cluster, "D-005",
           "D-007")
{
    API(RegisterDomainRequest) *request = registration(arena);
    request->is_global_domain = true;
    request->active_cluster_name = "west";
    struct domain_decision decision = {0};
    EXPECT_OK(domain_decide_register(NULL, request, &rules, &moment, arena, &decision));
    EXPECT_EQ(decision.next->domain->failover_version, 2);
    EXPECT_TEXT(decision.next->domain->clusters[0]->cluster_name, "west");
}

ARENA_TEST(decide, a_name_must_be_set_short_and_plain, "D-002")
{
    API(RegisterDomainRequest) *request = registration(arena);
    request->name = "";
    EXPECT_REFUSED(try_register(request, &rules, arena), "Domain not set on request.");
    request->name = "a-name-of-21-characte";
    EXPECT_REFUSED(try_register(request, &rules, arena), "Domain length exceeds limit.");
    static char *const bad[] = {"a b", "a_b", "a.b", "\xc3\xa4", "a/b"};
    for (size_t i = 0; i < array_length(bad); i++) {
        request->name = bad[i];
        EXPECT_REFUSED(try_register(request, &rules, arena),
                       "Domain name can only include alphanumeric and dash characters.");
    }
}

ARENA_TEST(decide, retention_counts_whole_days_within_the_limits, "D-003")
{
    API(RegisterDomainRequest) *request = registration(arena);
    request->workflow_execution_retention_period = NULL;
    EXPECT_REFUSED(try_register(request, &rules, arena),
                   "A valid retention period is not set on request.");
    request->workflow_execution_retention_period = presence_make_duration(arena, DAY - 1);
    EXPECT_REFUSED(try_register(request, &rules, arena),
                   "A valid retention period is not set on request.");
    request->workflow_execution_retention_period = presence_make_duration(arena, 31 * DAY);
    EXPECT_REFUSED(try_register(request, &rules, arena), "RetentionDays is invalid.");
    request->workflow_execution_retention_period = presence_make_duration(arena, 31 * DAY - 1);
    EXPECT_OK(try_register(request, &rules, arena));
}

ARENA_TEST(decide, a_used_name_is_refused_with_its_own_kind_of_error, "D-001")
{
    struct domain *current = orders(arena);
    struct domain_decision decision = {0};
    struct error *err =
        domain_decide_register(current, registration(arena), &rules, &moment, arena, &decision);
    EXPECT_KIND(err, ERR_DOMAIN_ALREADY_EXISTS);
    EXPECT_TEXT(err->message, "Domain already exists.");
    domain_drop(current);
}

ARENA_TEST(decide, clusters_must_be_known_and_hold_the_active_one, "D-005", "D-006")
{
    API(RegisterDomainRequest) *request = registration(arena);
    request->active_cluster_name = "west";
    EXPECT_REFUSED(try_register(request, &rules, arena), "Invalid local domain active cluster");
    request->active_cluster_name = "gone";
    EXPECT_REFUSED(try_register(request, &rules, arena), "Invalid cluster name: gone");

    API(ClusterReplicationConfiguration) *one = API_NEW(arena, cluster_replication_configuration);
    API(ClusterReplicationConfiguration) *other = API_NEW(arena, cluster_replication_configuration);
    API(ClusterReplicationConfiguration) *both[] = {one, other};
    one->cluster_name = "east";
    other->cluster_name = "west";
    request->active_cluster_name = "east";
    request->n_clusters = 2;
    request->clusters = both;
    EXPECT_REFUSED(try_register(request, &rules, arena), "Invalid local domain clusters");
    request->is_global_domain = true;
    request->active_cluster_name = "west";
    request->n_clusters = 1;
    request->clusters = &one;
    EXPECT_REFUSED(try_register(request, &rules, arena),
                   "Active cluster is not contained in all clusters.");
    one->cluster_name = "moon";
    EXPECT_REFUSED(try_register(request, &rules, arena), "Invalid cluster name: moon");
}

ARENA_TEST(decide, only_the_primary_cluster_changes_global_domains, "D-004")
{
    struct domain_rules elsewhere = rules;
    elsewhere.group = &other_group;
    API(RegisterDomainRequest) *request = registration(arena);
    request->is_global_domain = true;
    EXPECT_REFUSED(
        try_register(request, &elsewhere, arena),
        "Cluster is not primary cluster, cannot do domain registration or domain update.");
}

/* As any setting: the primary's alone, not too often, and counted, so that the others take it. */
ARENA_TEST(decide, the_queue_of_a_domain_is_a_setting_like_others, "D-032")
{
    API(RegisterDomainRequest) *request = registration(arena);
    request->is_global_domain = true;
    struct domain_decision decision;
    EXPECT_OK(domain_decide_register(NULL, request, &rules, &moment, arena, &decision));
    struct domain *current = domain_from_record(decision.next);
    int64_t config_version = current->record->config_version;
    ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *change =
        ADMIN_NEW(arena, update_domain_async_workflow_configuraton_request, .domain = "orders",
                  .configuration = API_NEW(arena, async_workflow_configuration, .enabled = true));
#define CHANGE(rules) domain_decide_async(current, change, rules, &moment, arena, &decision)
    struct domain_rules slow = rules, elsewhere = rules;
    slow.cool_down = 1;
    elsewhere.group = &other_group;
    EXPECT_KIND(CHANGE(&slow), ERR_SERVICE_BUSY);
    EXPECT_REFUSED(
        CHANGE(&elsewhere),
        "Cluster is not primary cluster, cannot do domain registration or domain update.");
    EXPECT_OK(CHANGE(&rules));
    EXPECT(decision.next->domain->async_workflow_config->enabled);
    EXPECT_EQ(decision.next->config_version, config_version + 1);
    change->configuration = NULL;
    EXPECT_OK(CHANGE(&rules));
    EXPECT(decision.next->domain->async_workflow_config == NULL);
    EXPECT_KIND(domain_decide_async(NULL, change, &rules, &moment, arena, &decision),
                ERR_ENTITY_NOT_EXISTS);
    domain_drop(current);
}

ARENA_TEST(decide, a_restored_member_of_a_group_changes_no_global_domain_before_it_caught_up)
{
    struct domain_rules behind = rules;
    behind.is_catching_up = true;
    API(RegisterDomainRequest) *request = registration(arena);
    EXPECT_OK(try_register(request, &behind, arena)); /* a local one is nobody else's */
    request->is_global_domain = true;
    EXPECT_KIND(try_register(request, &behind, arena), ERR_SERVICE_BUSY);
}

ARENA_TEST(decide, required_data_and_the_admin_token_are_asked_for, "D-010", "D-011")
{
    static const char *const needed[] = {"team", NULL};
    struct domain_rules strict = rules;
    strict.required_data_keys = needed;
    EXPECT_REFUSED(try_register(registration(arena), &strict, arena),
                   "domain data error, missing required key team");
    strict = rules;
    strict.is_admin_protected = true;
    API(RegisterDomainRequest) *request = registration(arena);
    EXPECT_REFUSED(try_register(request, &strict, arena), "No permission to do this operation.");
    request->security_token = "secret";
    EXPECT_OK(try_register(request, &strict, arena));
}

ARENA_TEST(decide, an_update_changes_what_the_mask_names_and_nothing_else, "D-017", "D-018")
{
    struct domain *current = orders(arena);
    API(UpdateDomainRequest) *request = update(arena, "description");
    request->description = "all orders";
    request->owner_email = "not named by the mask";
    struct domain_decision decision = {0};
    EXPECT_OK(domain_decide_update(current, request, &rules, &moment, arena, &decision));
    EXPECT_TEXT(decision.next->domain->description, "all orders");
    EXPECT_TEXT(decision.next->domain->owner_email, "");
    EXPECT_EQ(decision.next->config_version, 1);
    EXPECT_EQ(current->record->config_version, 0);
    domain_drop(current);
}

/* Without a mask every field counts as given: blank strings overwrite, but what would move the
 * domain and is blank, or names no binary, means nothing. */
ARENA_TEST(decide, an_update_without_a_mask_overwrites_with_blanks)
{
    struct domain *current = orders(arena);
    API(UpdateDomainRequest) *request =
        API_NEW(arena, update_domain_request, .name = "orders", .owner_email = "a@b");
    struct domain_decision decision = {0};
    EXPECT_OK(domain_decide_update(current, request, &rules, &moment, arena, &decision));
    EXPECT_TEXT(decision.next->domain->owner_email, "a@b");
    EXPECT_TEXT(decision.next->domain->description, "");
    EXPECT_EQ(decision.next->domain->workflow_execution_retention_period->seconds, 3 * DAY);
    domain_drop(current);
}

ARENA_TEST(decide, data_is_merged_by_key, "D-017")
{
    struct domain *current = orders(arena);
    for (int round = 0; round < 2; round++) {
        API(UpdateDomainRequest) *request = update(arena, "data");
        API(UpdateDomainRequest__DataEntry) *entry =
            message_new(arena, API_TYPE(update_domain_request__data_entry));
        entry->key = round == 0 ? "b" : "a";
        entry->value = round == 0 ? "1" : "2";
        request->n_data = 1;
        request->data = &entry;
        struct domain_decision decision = {0};
        EXPECT_OK(domain_decide_update(current, request, &rules, &moment, arena, &decision));
        current = replace(current, decision.next);
    }
    const API(Domain) *domain = current->record->domain;
    EXPECT_EQ(domain->n_data, 2);
    EXPECT_TEXT(domain->data[0]->key, "a");
    EXPECT_TEXT(domain->data[1]->key, "b");
    EXPECT_TEXT(wire_map_find(domain->data, domain->n_data, "b")->value, "1");
    domain_drop(current);
}

static API(UpdateDomainRequest) *
add_binary(struct arena *arena, char *checksum)
{
    API(UpdateDomainRequest) *request = update(arena, "bad_binaries");
    API(BadBinaries__BinariesEntry) *entry =
        message_new(arena, API_TYPE(bad_binaries__binaries_entry));
    entry->key = checksum;
    request->bad_binaries = API_NEW(arena, bad_binaries, .n_binaries = 1,
                                    .binaries = arena_zalloc(arena, 1, sizeof entry));
    request->bad_binaries->binaries[0] = entry;
    return request;
}

ARENA_TEST(decide, bad_binaries_are_added_up_to_a_limit_and_removed_by_name, "D-017", "D-023")
{
    struct domain *current = orders(arena);
    struct domain_decision decision = {0};
    static char *const checksums[] = {"one", "two"};
    for (size_t i = 0; i < 2; i++) {
        EXPECT_OK(domain_decide_update(current, add_binary(arena, checksums[i]), &rules, &moment,
                                       arena, &decision));
        current = replace(current, decision.next);
    }
    EXPECT_EQ(current->record->domain->bad_binaries->n_binaries, 2);
    EXPECT_EQ(current->record->domain->bad_binaries->binaries[0]->value->created_time->nanos,
              123456789);
    EXPECT_REFUSED(domain_decide_update(current, add_binary(arena, "three"), &rules, &moment, arena,
                                        &decision),
                   "Total resetBinaries cannot exceed the max limit: 2");

    API(UpdateDomainRequest) *removal = update(arena, "delete_bad_binary");
    removal->delete_bad_binary = "nine";
    EXPECT_REFUSED(domain_decide_update(current, removal, &rules, &moment, arena, &decision),
                   "Bad binary checksum nine doesn't exists.");
    removal->delete_bad_binary = "one";
    EXPECT_OK(domain_decide_update(current, removal, &rules, &moment, arena, &decision));
    EXPECT_EQ(decision.next->domain->bad_binaries->n_binaries, 1);
    EXPECT_TEXT(decision.next->domain->bad_binaries->binaries[0]->key, "two");
    domain_drop(current);
}

ARENA_TEST(decide, a_local_domain_cannot_be_moved, "D-022")
{
    struct domain *current = orders(arena);
    API(UpdateDomainRequest) *request = update(arena, "active_cluster_name");
    request->active_cluster_name = "west";
    struct domain_decision decision = {0};
    EXPECT_REFUSED(domain_decide_update(current, request, &rules, &moment, arena, &decision),
                   "Local domains cannot perform failovers or change replication configuration");
    domain_drop(current);
}

ARENA_TEST(decide, an_unknown_domain_does_not_exist)
{
    struct domain_decision decision = {0};
    struct error *err =
        domain_decide_update(NULL, update(arena, "data"), &rules, &moment, arena, &decision);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Domain orders does not exist.");
}

ARENA_TEST(decide, deprecating_changes_the_status_and_counts_as_a_change, "D-011", "D-025")
{
    struct domain *current = orders(arena);
    API(DeprecateDomainRequest) *request =
        API_NEW(arena, deprecate_domain_request, .name = "orders");
    struct domain_decision decision = {0};
    struct domain_rules strict = rules;
    strict.is_admin_protected = true;
    EXPECT_REFUSED(domain_decide_deprecate(current, request, &strict, &moment, arena, &decision),
                   "No permission to do this operation.");
    EXPECT_OK(domain_decide_deprecate(current, request, &rules, &moment, arena, &decision));
    EXPECT_EQ(decision.next->domain->status, API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED));
    EXPECT_EQ(decision.next->config_version, 1);
    domain_drop(current);
}

/* The whole table: 3 states × 3 requests × with and without a URI. */
ARENA_TEST(archival, every_state_and_request_follow_the_rules, "D-012")
{
    enum { OFF = 1, ON = 2 };
    static const struct archival states[] = {{OFF, ""}, {OFF, "file:///a"}, {ON, "file:///a"}};
    static const char *const uris[] = {"", "file:///a", "file:///b"};
    for (size_t s = 0; s < 3; s++) {
        for (int status = 0; status <= ON; status++) {
            for (size_t u = 0; u < 3; u++) {
                struct archival next = {-1, NULL};
                struct error *err =
                    archival_next(states[s], (struct archival){status, uris[u]}, arena, &next);
                bool changes_uri = states[s].uri[0] != '\0' && u == 2;
                bool has_uri = states[s].uri[0] != '\0' || u != 0;
                bool turns_on = status == ON || (status == 0 && states[s].status == ON);
                EXPECT((err != NULL) == (changes_uri || (turns_on && !has_uri)));
                if (err != NULL)
                    continue;
                EXPECT_EQ(next.status, turns_on ? ON : OFF);
                EXPECT_TEXT(next.uri, states[s].uri[0] != '\0' ? states[s].uri : uris[u]);
            }
        }
    }
}
