/* domain_calls.c - see domain_calls.h. */
#include "sim/domain_calls.h"

#include "base/memory.h"
#include "base/text.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define DOMAIN_API "/uber.cadence.api.v1.DomainAPI/"
#define PAGE_SIZE  500

struct load_clients {
    unsigned count;
    struct grpc_client *client[SIM_HOSTS_MAX];
};

struct load_clients *
load_clients_new(struct sim_cluster *cluster)
{
    struct load_clients *clients = memory_zalloc(1, sizeof *clients);
    clients->count = cluster->count;
    for (unsigned i = 0; i < cluster->count; i++) {
        char address[64];
        struct rpc_caller caller = {.caller = "sim", .caller_type = "sdk"};
        clients->client[i] = rpc_client_new(
            sim_host_address(&cluster->hosts[i], address, sizeof address), NULL, &caller);
    }
    return clients;
}

void
load_clients_free(struct load_clients *clients)
{
    for (unsigned i = 0; i < clients->count; i++)
        grpc_client_free(clients->client[i]);
    memory_free(clients);
}

#define SEND(call, name, request, type, response)                                                  \
    rpc_client_call((call)->clients->client[(call)->host], DOMAIN_API name, (request),             \
                    (call)->arena, API_TYPE(type), (response))

const char *
load_domain_name(struct arena *arena, unsigned worker, unsigned index)
{
    return arena_format(arena, "w%u-%u", worker, index);
}

struct error *
load_register(struct load_call *call, const char *name)
{
    API(RegisterDomainRequest) *request =
        message_new(call->arena, API_TYPE(register_domain_request));
    request->name = (char *)name;
    request->workflow_execution_retention_period = presence_make_duration(call->arena, 24 * 3600);
    API(RegisterDomainResponse) *response = NULL;
    return SEND(call, "RegisterDomain", &request->base, register_domain_response, &response);
}

struct error *
load_describe_as(struct load_call *call, const char *name, uint32_t sequence)
{
    char *path = "description";
    API(UpdateDomainRequest) *request = message_new(call->arena, API_TYPE(update_domain_request));
    request->name = (char *)name;
    request->description = arena_format(call->arena, "%u", sequence);
    request->update_mask = message_new(call->arena, GOOGLE_TYPE(field_mask));
    request->update_mask->n_paths = 1;
    request->update_mask->paths = &path;
    API(UpdateDomainResponse) *response = NULL;
    return SEND(call, "UpdateDomain", &request->base, update_domain_response, &response);
}

static uint32_t
sequence_of(const API(Domain) *domain)
{
    uint64_t sequence = 0;
    bool is_number = text_parse_uint64(slice_text(domain->description), 0, UINT32_MAX, &sequence);
    return is_number ? (uint32_t)sequence : 0;
}

struct error *
load_read(struct load_call *call, const char *name, uint32_t *sequence)
{
    API(DescribeDomainRequest) *request =
        message_new(call->arena, API_TYPE(describe_domain_request));
    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request->name = (char *)name;
    API(DescribeDomainResponse) *response = NULL;
    struct error *err =
        SEND(call, "DescribeDomain", &request->base, describe_domain_response, &response);
    if (err == NULL)
        *sequence = sequence_of(response->domain);
    return err;
}

struct error *
load_list(struct load_call *call, void (*visit)(void *context, const char *name, uint32_t sequence),
          void *context)
{
    API(ListDomainsRequest) *request = message_new(call->arena, API_TYPE(list_domains_request));
    request->page_size = PAGE_SIZE;
    do {
        API(ListDomainsResponse) *response = NULL;
        struct error *err =
            SEND(call, "ListDomains", &request->base, list_domains_response, &response);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < response->n_domains; i++)
            visit(context, response->domains[i]->name, sequence_of(response->domains[i]));
        request->next_page_token = response->next_page_token;
    } while (request->next_page_token.len > 0);
    return NULL;
}

/* What may happen to a call while hosts crash and lines are cut. */
static bool
is_expected(enum error_kind kind)
{
    return kind == ERR_UNAVAILABLE || kind == ERR_DEADLINE || kind == ERR_CANCELLED ||
           kind == ERR_FENCED || kind == ERR_OUTCOME_UNKNOWN || kind == ERR_SERVICE_BUSY ||
           kind == ERR_ENTITY_NOT_EXISTS;
}

void
load_count(struct domain_load *load, const struct error *err)
{
    load->calls++;
    load->acknowledged += err == NULL;
    load->failed += err != NULL;
    if (err != NULL && !is_expected(err->kind))
        domain_load_violate(load, "a call failed with %s: %s", error_kind_name(err->kind),
                            err->message);
}
