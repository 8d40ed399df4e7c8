/* api_test.c - the door as a client sees it: our own client, a real connection, a store in memory.
 */
#include "api/api.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/test_loops.h"
#include "net/client.h"
#include "rpc/over_grpc.h"
#include "store/memory/memory.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

struct fixture {
    struct arena *arena;
    struct memory_base *base;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
    struct metrics *metrics;
    struct store *store;
    struct domains *domains;
    struct api *api;
    struct rpc_service *service;
    struct grpc_server *server;
    struct grpc_client *client;
    _Atomic(enum server_phase) phase;
};

static void
fixture_open(struct fixture *fixture)
{
    *fixture = (struct fixture){
        .arena = arena_new(0), .base = memory_base_new(1), .config = config_default()};
    fixture->phase = SERVER_READY;
    EXPECT_OK(cluster_group_load(fixture->config, fixture->arena, &fixture->group));
    fixture->dynamic = dynamic_new(NULL);
    fixture->metrics = metrics_new();
    fixture->store = memory_open(fixture->base);
    struct domains_options domains = {
        .store = fixture->store, .group = fixture->group, .dynamic = fixture->dynamic};
    EXPECT_OK(domains_open(&domains, fixture->arena, &fixture->domains));
    fixture->api = api_new(&(struct api_options){.domains = fixture->domains,
                                                 .group = fixture->group,
                                                 .dynamic = fixture->dynamic,
                                                 .phase = &fixture->phase});
    struct rpc_table table = api_table(fixture->api);
    fixture->service = rpc_service_new(&table, 1, NULL, fixture->metrics);
    struct grpc_server_options door = {.address = "127.0.0.1:0",
                                       .metrics = fixture->metrics,
                                       .service = rpc_over_grpc(fixture->service)};
    EXPECT_OK(grpc_server_open(&door, fixture->arena, &fixture->server));
    fixture->client = grpc_client_new(
        &(struct grpc_client_options){.address = grpc_server_address(fixture->server)});
    fiber_set_deadline(clock_monotonic() + 60 * NS_PER_S);
}

static void
fixture_close(struct fixture *fixture)
{
    grpc_client_free(fixture->client);
    grpc_server_close(fixture->server, clock_monotonic() + NS_PER_S);
    rpc_service_free(fixture->service);
    api_free(fixture->api);
    domains_close(fixture->domains);
    store_close(fixture->store);
    metrics_free(fixture->metrics);
    dynamic_free(fixture->dynamic);
    config_free(fixture->config);
    memory_base_free(fixture->base);
    arena_free(fixture->arena);
}

static struct error *
call_bytes(struct fixture *fixture, const char *path, struct slice bytes, struct slice *response)
{
    struct grpc_request request = {.path = path, .message = bytes};
    return grpc_client_call(fixture->client, &request, fixture->arena, response);
}

static struct error *
call(struct fixture *fixture, const char *path, const ProtobufCMessage *request,
     struct slice *response)
{
    return call_bytes(fixture, path, message_encode(fixture->arena, request), response);
}

static API(RegisterDomainRequest) *
registration(struct fixture *fixture, const char *name)
{
    return API_NEW(fixture->arena, register_domain_request, .name = (char *)name,
                   .workflow_execution_retention_period =
                       presence_make_duration(fixture->arena, 24 * 3600));
}

#define DOMAIN_API "/uber.cadence.api.v1.DomainAPI/"

LOOP_TEST(api, a_domain_is_registered_and_described_by_name_and_id, 2, "D-001", "D-013")
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct slice bytes;
    EXPECT_OK(call(&fixture, DOMAIN_API "RegisterDomain", &registration(&fixture, "orders")->base,
                   &bytes));
    EXPECT_EQ(bytes.length, 0);

    API(DescribeDomainRequest) *request = API_NEW(
        fixture.arena, describe_domain_request,
        .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME), .name = "orders");
    EXPECT_OK(call(&fixture, DOMAIN_API "DescribeDomain", &request->base, &bytes));
    API(DescribeDomainResponse) *response = NULL;
    EXPECT_OK(message_decode(fixture.arena, API_TYPE(describe_domain_response), bytes, &response));
    EXPECT_TEXT(response->domain->name, "orders");
    EXPECT(response->domain->bad_binaries != NULL && response->domain->isolation_groups != NULL);

    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_ID);
    request->id = response->domain->id;
    EXPECT_OK(call(&fixture, DOMAIN_API "DescribeDomain", &request->base, &bytes));
    request->id = "nobody";
    struct error *err = call(&fixture, DOMAIN_API "DescribeDomain", &request->base, &bytes);
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT(strstr(err->message, "Domain nobody does not exist.") != NULL);
    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY__NOT_SET);
    EXPECT_KIND(call(&fixture, DOMAIN_API "DescribeDomain", &request->base, &bytes),
                ERR_BAD_REQUEST);
    EXPECT_KIND(call(&fixture, DOMAIN_API "RegisterDomain", &registration(&fixture, "orders")->base,
                     &bytes),
                ERR_DOMAIN_ALREADY_EXISTS);
    fixture_close(&fixture);
}

LOOP_TEST(api, a_list_is_paged_and_ends_without_a_token, 1, "D-015")
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct slice bytes;
    for (int i = 0; i < 105; i++) {
        const char *name = arena_format(fixture.arena, "d%03d", i);
        EXPECT_OK(call(&fixture, DOMAIN_API "RegisterDomain", &registration(&fixture, name)->base,
                       &bytes));
    }
    API(ListDomainsRequest) *request = API_NEW(fixture.arena, list_domains_request);
    API(DeprecateDomainRequest) *deprecation = API_NEW(
        fixture.arena, deprecate_domain_request, .name = "d007" /* it is listed all the same */);
    EXPECT_OK(call(&fixture, DOMAIN_API "DeprecateDomain", &deprecation->base, &bytes));
    size_t seen = 0, calls = 0; /* a hundred, unless somebody wants fewer */
    do {
        EXPECT_OK(call(&fixture, DOMAIN_API "ListDomains", &request->base, &bytes));
        API(ListDomainsResponse) *response = NULL;
        EXPECT_OK(message_decode(fixture.arena, API_TYPE(list_domains_response), bytes, &response));
        for (size_t i = 0; i < response->n_domains; i++)
            EXPECT_TEXT(response->domains[i]->name, arena_format(fixture.arena, "d%03zu", seen++));
        request->next_page_token = response->next_page_token;
        EXPECT_EQ(response->n_domains, calls == 0 ? 100 : calls < 3 ? 2 : 1);
        request->page_size = 2;
        calls++;
    } while (request->next_page_token.len > 0);
    EXPECT_EQ(seen, 105);
    EXPECT_EQ(calls, 4);
    request->page_size = -1;
    EXPECT_KIND(call(&fixture, DOMAIN_API "ListDomains", &request->base, &bytes), ERR_BAD_REQUEST);
    fixture_close(&fixture);
}

LOOP_TEST(api, what_is_unknown_or_malformed_is_refused_in_words_that_name_it, 1)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct slice bytes;
    struct error *err = call_bytes(
        &fixture, "/uber.cadence.admin.v1.AdminAPI/ResendReplicationTasks", slice_text(""), &bytes);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "is not served by this version") != NULL);
    err = call_bytes(&fixture, "/uber.cadence.api.v1.Nothing/Nothing", slice_text(""), &bytes);
    EXPECT(err != NULL && err->kind == ERR_UNIMPLEMENTED);
    /* field 2 (name), two bytes: "a", NUL */
    err = call_bytes(&fixture, DOMAIN_API "RegisterDomain",
                     slice_of("\x12\x02"
                              "a\0",
                              4),
                     &bytes);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "RegisterDomainRequest.name") != NULL);
    fixture_close(&fixture);
}

LOOP_TEST(api, health_follows_the_phase_of_the_server_and_is_counted, 1)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct slice bytes;
    API(HealthResponse) *response = NULL;
    EXPECT_OK(call_bytes(&fixture, "/uber.cadence.api.v1.MetaAPI/Health", slice_text(""), &bytes));
    EXPECT_OK(message_decode(fixture.arena, API_TYPE(health_response), bytes, &response));
    EXPECT(response->ok);
    EXPECT_TEXT(response->message, "OK");
    fixture.phase = SERVER_DRAINING;
    EXPECT_OK(call_bytes(&fixture, "/uber.cadence.api.v1.MetaAPI/Health", slice_text(""), &bytes));
    EXPECT_OK(message_decode(fixture.arena, API_TYPE(health_response), bytes, &response));
    EXPECT(!response->ok);
    EXPECT_TEXT(response->message, "ShuttingDown");

    const char *labels[] = {"cadence_service", "cadence_frontend", "operation", "Health",
                            "domain",          "_unknown_",        NULL};
    EXPECT_EQ(counter_value(metrics_counter(fixture.metrics, "cadence_requests",
                                            "Calls that arrived.", labels)),
              2);
    fixture_close(&fixture);
}
