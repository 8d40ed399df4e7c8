/* replication_test.c - clusters in one process that follow each other over real connections. */
#include "replication/replication.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/test_loops.h"
#include "replication/in/domains_in.h"
#include "rpc/client.h"
#include "rpc/over_grpc.h"
#include "store/memory/memory.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"
#define SITES_MAX 3

/* One cluster: its owner of the domains, its door, its followers of the others. */
struct site {
    struct memory_base *base;
    struct store *store;
    struct cluster clusters[SITES_MAX];
    struct cluster_group group;
    struct metrics *metrics;
    struct domains *domains;
    struct replication *replication;
    struct rpc_service *service;
    struct grpc_server *server;
    const char *address;
    struct domains_in *in;
};

struct group {
    struct arena *arena;
    struct dynamic *dynamic;
    int count;
    struct site sites[SITES_MAX];
};

static const char *const names[SITES_MAX] = {"east", "west", "south"};

static void
site_open_door(struct group *group, struct site *site)
{
    struct rpc_table table = replication_table(site->replication);
    site->service = rpc_service_new(&table, 1, NULL, site->metrics);
    struct grpc_server_options door = {.address =
                                           site->address == NULL ? "127.0.0.1:0" : site->address,
                                       .metrics = site->metrics,
                                       .service = rpc_over_grpc(site->service)};
    EXPECT_OK(grpc_server_open(&door, group->arena, &site->server));
    site->address = arena_text(group->arena, grpc_server_address(site->server));
}

static void
site_close_door(struct site *site)
{
    grpc_server_close(site->server, clock_monotonic());
    rpc_service_free(site->service);
}

static void
site_open(struct group *group, int index)
{
    struct site *site = &group->sites[index];
    for (int i = 0; i < group->count; i++)
        site->clusters[i] = (struct cluster){.name = names[i],
                                             .is_enabled = true,
                                             .initial_failover_version = i,
                                             .new_initial_failover_version = -1};
    site->group = (struct cluster_group){.failover_version_increment = 10,
                                         .current = &site->clusters[index],
                                         .primary = &site->clusters[0],
                                         .clusters = site->clusters,
                                         .count = (size_t)group->count};
    site->base = memory_base_new(1);
    site->store = memory_open(site->base);
    site->metrics = metrics_new();
    struct domains_options options = {
        .store = site->store, .group = &site->group, .dynamic = group->dynamic};
    EXPECT_OK(domains_open(&options, group->arena, &site->domains));
    site->replication = replication_new(
        &(struct replication_options){.domains = site->domains, .group = &site->group});
    site_open_door(group, site);
}

static void
site_start(struct site *site)
{
    site->in = domains_in_start(&(struct domains_in_options){
        .domains = site->domains, .group = &site->group, .metrics = site->metrics});
}

static void
site_close(struct site *site)
{
    replication_shutdown(site->replication);
    grpc_server_close(site->server, clock_monotonic() + 10 * NS_PER_S);
    rpc_service_free(site->service);
    replication_free(site->replication);
    domains_close(site->domains);
    store_close(site->store);
    metrics_free(site->metrics);
    memory_base_free(site->base);
}

/* Whether site `from` knows the address of site `to`. */
static void
group_connect(struct group *group, int from, int to)
{
    group->sites[from].clusters[to].rpc_address = group->sites[to].address;
}

static void
group_open(struct group *group, int count, bool is_meshed)
{
    *group = (struct group){.arena = arena_new(0), .dynamic = dynamic_new(NULL), .count = count};
    fiber_set_deadline(clock_monotonic() + 120 * NS_PER_S);
    for (int i = 0; i < count; i++)
        site_open(group, i);
    for (int from = 0; from < count; from++) {
        for (int to = 0; to < count; to++) {
            bool is_next = from == to + 1 || to == from + 1;
            if (from != to && (is_meshed || is_next))
                group_connect(group, from, to);
        }
    }
    for (int i = 0; i < count; i++)
        site_start(&group->sites[i]);
}

static void
group_close(struct group *group)
{
    for (int i = 0; i < group->count; i++)
        domains_in_stop(group->sites[i].in);
    for (int i = 0; i < group->count; i++)
        site_close(&group->sites[i]);
    dynamic_free(group->dynamic);
    arena_free(group->arena);
}

/* --- what clients ask --------------------------------------------------------------------------
 */

static struct error *
register_domain(struct group *group, int site, const char *name, bool is_global)
{
    struct arena *arena = group->arena;
    API(RegisterDomainRequest) *request =
        API_NEW(arena, register_domain_request, .name = (char *)name,
                .workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600),
                .is_global_domain = is_global);
    size_t clusters = is_global ? (size_t)group->count : 0;
    request->clusters = arena_zalloc(arena, clusters, sizeof *request->clusters);
    for (; request->n_clusters < clusters; request->n_clusters++) {
        request->clusters[request->n_clusters] =
            API_NEW(arena, cluster_replication_configuration,
                    .cluster_name = (char *)names[request->n_clusters]);
    }
    return domains_register(group->sites[site].domains, request, arena, NULL);
}

static void
failover(struct group *group, int site, const char *name, int to)
{
    API(FailoverDomainRequest) *request =
        API_NEW(group->arena, failover_domain_request, .domain_name = (char *)name,
                .domain_active_cluster_name = (char *)names[to]);
    EXPECT_OK(domains_failover(group->sites[site].domains, request, group->arena, NULL));
}

static void
delete_domain(struct group *group, int site, const char *name)
{
    API(DeprecateDomainRequest) *deprecate =
        API_NEW(group->arena, deprecate_domain_request, .name = (char *)name);
    EXPECT_OK(domains_deprecate(group->sites[site].domains, deprecate, group->arena, NULL));
    API(DeleteDomainRequest) *request =
        API_NEW(group->arena, delete_domain_request, .name = (char *)name);
    EXPECT_OK(domains_delete(group->sites[site].domains, request, group->arena, NULL));
}

/* Waits until a site shows the domain active in `active`, NULL: until it does not show it. */
static void
wait_active(struct group *group, int site, const char *name, const char *active)
{
    for (;;) {
        const struct domain *domain = domains_find_name(group->sites[site].domains, name);
        const char *now = domain == NULL ? NULL : domain->record->domain->active_cluster_name;
        if (now == NULL ? active == NULL : active != NULL && strcmp(now, active) == 0)
            return;
        EXPECT_OK(fiber_sleep(NS_PER_MS, group->arena));
    }
}

static void
wait_dead(struct group *group, int site, uint64_t count)
{
    for (uint64_t seen = count + 1; seen != count;) {
        EXPECT_OK(domains_count_dead_letters(group->sites[site].domains, group->arena, &seen));
        EXPECT_OK(fiber_sleep(NS_PER_MS, group->arena));
    }
}

/* --- two clusters -------------------------------------------------------------------------------
 */

LOOP_TEST(replication, a_failover_asked_in_one_cluster_is_visible_in_the_other, 2)
{
    struct group group;
    group_open(&group, 2, true);
    EXPECT_OK(register_domain(&group, 0, "orders", true));
    wait_active(&group, 1, "orders", "east");
    failover(&group, 1, "orders", 1);
    wait_active(&group, 0, "orders", "west");
    const struct domain *here = domains_find_name(group.sites[0].domains, "orders");
    const struct domain *there = domains_find_name(group.sites[1].domains, "orders");
    EXPECT_TEXT(here->id, there->id);
    EXPECT_EQ(here->record->domain->failover_version, 1);
    EXPECT_EQ(there->record->domain->failover_version, 1);
    failover(&group, 0, "orders", 0);
    wait_active(&group, 1, "orders", "east");
    EXPECT_EQ(domains_notification_version(group.sites[0].domains), 3);
    EXPECT_EQ(domains_notification_version(group.sites[1].domains), 3);
    delete_domain(&group, 0, "orders");
    wait_active(&group, 1, "orders", NULL);
    group_close(&group);
}

LOOP_TEST(replication, a_peer_that_went_away_and_came_back_is_followed_from_where_it_was, 1)
{
    struct group group;
    group_open(&group, 2, true);
    EXPECT_OK(register_domain(&group, 0, "orders", true));
    wait_active(&group, 1, "orders", "east");
    site_close_door(&group.sites[1]); /* east cannot ask west any more */
    failover(&group, 1, "orders", 1);
    EXPECT_OK(register_domain(&group, 0, "bills", true));
    wait_active(&group, 1, "bills", "east"); /* west still asks east */
    EXPECT_TEXT(
        domains_find_name(group.sites[0].domains, "orders")->record->domain->active_cluster_name,
        "east");
    site_open_door(&group, &group.sites[1]);
    wait_active(&group, 0, "orders", "west");
    group_close(&group);
}

/* --- a chain: south hears of east only through west ---------------------------------------------
 */

LOOP_TEST(replication, a_change_is_passed_on_to_a_cluster_that_cannot_ask_its_origin, 1)
{
    struct group group;
    group_open(&group, 3, false);
    EXPECT_OK(register_domain(&group, 0, "orders", true));
    wait_active(&group, 2, "orders", "east");
    failover(&group, 2, "orders", 2);
    wait_active(&group, 0, "orders", "south");
    delete_domain(&group, 0, "orders");
    wait_active(&group, 2, "orders", NULL);
    for (int i = 0; i < group.count; i++) /* what came back to its origin changed nothing there */
        EXPECT_EQ(domains_notification_version(group.sites[i].domains), 4);
    group_close(&group);
}

/* --- the RPCs -----------------------------------------------------------------------------------
 */

static struct grpc_client *
client_of(struct group *group, int site)
{
    return rpc_client_new(group->sites[site].address, NULL, &(struct rpc_caller){"test", "cli"});
}

LOOP_TEST(replication, a_name_that_is_taken_parks_the_message_until_the_obstacle_is_gone, 2,
          "D-049", "D-050")
{
    struct group group;
    group_open(&group, 2, true);
    EXPECT_OK(register_domain(&group, 1, "orders", false));
    EXPECT_OK(register_domain(&group, 0, "orders", true));
    EXPECT_OK(register_domain(&group, 0, "bills", true));
    wait_active(&group, 1, "bills", "east"); /* what comes behind goes on */
    struct grpc_client *client = client_of(&group, 1);

    ADMIN(CountDLQMessagesRequest) *count = ADMIN_NEW(group.arena, count_dlqmessages_request);
    ADMIN(CountDLQMessagesResponse) *counted = NULL;
    EXPECT_OK(rpc_client_call(client, ADMIN_API "CountDLQMessages", &count->base, group.arena,
                              ADMIN_TYPE(count_dlqmessages_response), &counted));
    EXPECT_EQ(counted->domain, 1);

    ADMIN(ReadDLQMessagesRequest) *read = ADMIN_NEW(group.arena, read_dlqmessages_request,
                                                    .type = ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN));
    ADMIN(ReadDLQMessagesResponse) *letters = NULL;
    EXPECT_OK(rpc_client_call(client, ADMIN_API "ReadDLQMessages", &read->base, group.arena,
                              ADMIN_TYPE(read_dlqmessages_response), &letters));
    EXPECT_EQ(letters->n_replication_tasks, 1);
    EXPECT_EQ(letters->replication_tasks[0]->source_task_id, 1);
    EXPECT_TEXT(letters->replication_tasks[0]->domain_task_attributes->domain->name, "orders");
    EXPECT_EQ(letters->next_page_token.len, 0);

    ADMIN(MergeDLQMessagesRequest) *merge = ADMIN_NEW(
        group.arena, merge_dlqmessages_request, .type = ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN));
    ADMIN(MergeDLQMessagesResponse) *merged = NULL;
    struct error *err =
        rpc_client_call(client, ADMIN_API "MergeDLQMessages", &merge->base, group.arena,
                        ADMIN_TYPE(merge_dlqmessages_response), &merged);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "0 messages were applied; 1 still cannot be applied") != NULL);
    EXPECT(strstr(err->message, "The name orders belongs to domain") != NULL);
    wait_dead(&group, 1, 1); /* the obstacle is still there */
    delete_domain(&group, 1, "orders");
    EXPECT_OK(rpc_client_call(client, ADMIN_API "MergeDLQMessages", &merge->base, group.arena,
                              ADMIN_TYPE(merge_dlqmessages_response), &merged));
    EXPECT_EQ(merged->applied->value, 1);
    wait_dead(&group, 1, 0);
    EXPECT_TEXT(domains_find_name(group.sites[1].domains, "orders")->id,
                domains_find_name(group.sites[0].domains, "orders")->id);
    grpc_client_free(client);
    group_close(&group);
}

static void
purge(struct group *group, struct grpc_client *client, int64_t to)
{
    ADMIN(PurgeDLQMessagesRequest) *request = ADMIN_NEW(
        group->arena, purge_dlqmessages_request, .type = ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN),
        .inclusive_end_message_id = GOOGLE_NEW(group->arena, int64_value, .value = to));
    ADMIN(PurgeDLQMessagesResponse) *response = NULL;
    EXPECT_OK(rpc_client_call(client, ADMIN_API "PurgeDLQMessages", &request->base, group->arena,
                              ADMIN_TYPE(purge_dlqmessages_response), &response));
}

LOOP_TEST(replication, parked_messages_are_purged_up_to_the_one_that_is_named, 2, "D-050")
{
    struct group group;
    group_open(&group, 2, true);
    static const char *const dead_lettered[] = {"orders", "bills"};
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(register_domain(&group, 1, dead_lettered[i], false));
        EXPECT_OK(register_domain(&group, 0, dead_lettered[i], true));
    }
    wait_dead(&group, 1, 2);
    struct grpc_client *client = client_of(&group, 1);
    purge(&group, client, 1); /* up to and with the first */
    wait_dead(&group, 1, 1);
    purge(&group, client, INT64_MAX);
    wait_dead(&group, 1, 0);
    EXPECT(!domains_find_name(group.sites[1].domains, "orders")->record->domain->is_global_domain);
    grpc_client_free(client);
    group_close(&group);
}

static struct error *
ask(struct group *group, struct grpc_client *client, const char *cluster, int64_t retrieved,
    int64_t processed, ADMIN(ReplicationMessages) **messages)
{
    ADMIN(GetDomainReplicationMessagesRequest) *request = ADMIN_NEW(
        group->arena, get_domain_replication_messages_request, .cluster_name = (char *)cluster,
        .last_retrieved_message_id =
            presence_make_int64(group->arena, (struct maybe_int64){true, retrieved}),
        .last_processed_message_id =
            presence_make_int64(group->arena, (struct maybe_int64){true, processed}));
    ADMIN(GetDomainReplicationMessagesResponse) *response = NULL;
    struct error *err = rpc_client_call(
        client, ADMIN_API "GetDomainReplicationMessages", &request->base, group->arena,
        ADMIN_TYPE(get_domain_replication_messages_response), &response);
    *messages = err == NULL ? response->messages : NULL;
    return err;
}

/* As a Cadence cluster asks: -1 after each of its restarts, an acknowledgement with each call. */
LOOP_TEST(replication, a_peer_reads_behind_its_position_and_an_empty_answer_comes_in_time, 1,
          "D-048")
{
    struct group group;
    group_open(&group, 2, true);
    domains_in_stop(group.sites[1].in); /* we are west */
    struct grpc_client *client = client_of(&group, 0);
    EXPECT_OK(register_domain(&group, 0, "one", true));
    EXPECT_OK(register_domain(&group, 0, "own", false));
    EXPECT_OK(register_domain(&group, 0, "two", true));
    ADMIN(ReplicationMessages) *messages = NULL;
    EXPECT_OK(ask(&group, client, "west", -1, -1, &messages));
    EXPECT_EQ(messages->n_replication_tasks, 2);
    EXPECT_EQ(messages->replication_tasks[1]->source_task_id, 3);
    EXPECT_EQ(messages->last_retrieved_message_id, 3);
    EXPECT_OK(ask(&group, client, "west", 1, 1, &messages));
    EXPECT_EQ(messages->n_replication_tasks, 1);
    EXPECT_OK(ask(&group, client, "west", -1, -1, &messages)); /* behind the acknowledgement */
    EXPECT_EQ(messages->n_replication_tasks, 1);
    EXPECT_EQ(messages->replication_tasks[0]->source_task_id, 3);
    EXPECT_OK(ask(&group, client, "west", -2, -1, &messages)); /* from the very beginning */
    EXPECT_EQ(messages->n_replication_tasks, 2);
    EXPECT_OK(ask(&group, client, "west", 900, -1, &messages)); /* our store was restored */
    EXPECT_EQ(messages->n_replication_tasks, 2);
    fiber_set_deadline(clock_monotonic() + 400 * NS_PER_MS);
    EXPECT_OK(ask(&group, client, "west", 3, 3, &messages)); /* nothing, and in time */
    fiber_set_deadline(NEVER);
    EXPECT_EQ(messages->n_replication_tasks, 0);
    EXPECT_EQ(messages->last_retrieved_message_id, 3);
    for (int i = 0; i < 101; i++)
        EXPECT_OK(register_domain(&group, 0, arena_format(group.arena, "more-%d", i), true));
    EXPECT_OK(ask(&group, client, "west", 3, 3, &messages)); /* a hundred a call */
    EXPECT_EQ(messages->n_replication_tasks, 100);
    EXPECT_EQ(messages->last_retrieved_message_id, 103);
    site_start(&group.sites[1]);
    grpc_client_free(client);
    group_close(&group);
}

LOOP_TEST(replication, who_is_not_in_the_group_and_what_is_no_token_is_refused, 1)
{
    struct group group;
    group_open(&group, 2, true);
    struct grpc_client *client = client_of(&group, 0);
    ADMIN(ReplicationMessages) *messages = NULL;
    EXPECT_KIND(ask(&group, client, "mars", -1, -1, &messages), ERR_BAD_REQUEST);
    EXPECT_KIND(ask(&group, client, "", -1, -1, &messages), ERR_BAD_REQUEST);
    EXPECT_KIND(ask(&group, client, "east", -1, -1, &messages), ERR_BAD_REQUEST);
    ADMIN(ReadDLQMessagesRequest) *read = ADMIN_NEW(group.arena, read_dlqmessages_request);
    ADMIN(ReadDLQMessagesResponse) *letters = NULL;
    for (int type = 0; type < 4; type++) {
        read->type = type;
        read->next_page_token = presence_make_bytes(slice_text("x"));
        EXPECT_KIND(rpc_client_call(client, ADMIN_API "ReadDLQMessages", &read->base, group.arena,
                                    ADMIN_TYPE(read_dlqmessages_response), &letters),
                    ERR_BAD_REQUEST);
    }
    grpc_client_free(client);
    group_close(&group);
}
