/* calls.c - see calls.h. */
#include "sim/world/calls.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "rpc/client.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/services.h"

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"
#define PAGE_SIZE 500
#define DAY       (24 * 3600)

#define HISTORY_PAGE 7 /* small: the way over pages is tested too */

struct load_clients {
    unsigned count;
    struct grpc_client *client[SIM_HOSTS_MAX];
};

struct load_clients *
load_clients_new(struct sim *sim)
{
    struct load_clients *clients = memory_zalloc(1, sizeof *clients);
    clients->count = sim->count;
    for (unsigned i = 0; i < sim->count; i++) {
        char address[64];
        struct rpc_caller caller = {.caller = "sim", .caller_type = "sdk"};
        clients->client[i] = rpc_client_new(
            sim_host_address(&sim->hosts[i], address, sizeof address), NULL, &caller);
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

struct error *
load_send_at(struct load_call *call, const ProtobufCMessage *request, ProtobufCMessage **response)
{
    static const struct call_header headers[] = {
        {SLICE_LITERAL("cadence-client-name"), SLICE_LITERAL("uber-go")},
        {SLICE_LITERAL("cadence-client-feature-version"), SLICE_LITERAL("1.7.0")},
    };
    struct wire_method method;
    char path[WIRE_PATH_SIZE];
    check(wire_method_find_request(request->descriptor, &method));
    wire_method_path(&method, path, sizeof path);
    struct grpc_request wanted = {.path = path,
                                  .message = message_encode(call->arena, request),
                                  .headers = call->headers,
                                  .header_count = call->header_count};
    if (call->is_worker) {
        wanted.headers = headers;
        wanted.header_count = array_length(headers);
    }
    static const struct call_header committed = {SLICE_LITERAL("cadenza-consistency"),
                                                 SLICE_LITERAL("committed")};
    if (call->wants_committed) {
        wanted.headers = &committed;
        wanted.header_count = 1;
    }
    struct slice bytes;
    ProtobufCMessage *unwanted;
    struct error *err =
        grpc_client_call(call->clients->client[call->host], &wanted, call->arena, &bytes);
    if (err == NULL)
        err = message_decode_at(call->arena, ERR_UNCATEGORISED, method.response, bytes,
                                response != NULL ? response : &unwanted);
    return err;
}

/* Attributes as a request has them: by scope, then by name. The array is in that order. */
API(ActiveClusters) *
load_make_attributes(struct arena *arena, const struct load_attribute *attributes, size_t count)
{
    API(ActiveClusters) *active =
        API_NEW(arena, active_clusters,
                .active_clusters_by_cluster_attribute = arena_zalloc(arena, count, sizeof(void *)));
    API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *scope = NULL;
    for (size_t i = 0; i < count; i++) {
        if (scope == NULL || strcmp(scope->key, attributes[i].scope) != 0) {
            scope = message_new(
                arena, API_TYPE(active_clusters__active_clusters_by_cluster_attribute_entry));
            scope->key = (char *)attributes[i].scope;
            scope->value =
                API_NEW(arena, cluster_attribute_scope,
                        .cluster_attributes = arena_zalloc(arena, count, sizeof(void *)));
            size_t at = active->n_active_clusters_by_cluster_attribute++;
            active->active_clusters_by_cluster_attribute[at] = scope;
        }
        API(ClusterAttributeScope__ClusterAttributesEntry) *entry =
            message_new(arena, API_TYPE(cluster_attribute_scope__cluster_attributes_entry));
        entry->key = (char *)attributes[i].name;
        entry->value = API_NEW(arena, active_cluster_info,
                               .active_cluster_name = (char *)attributes[i].cluster);
        scope->value->cluster_attributes[scope->value->n_cluster_attributes++] = entry;
    }
    return active;
}

static void
make_global(API(RegisterDomainRequest) *request, const struct load_registration *registration,
            struct arena *arena)
{
    request->is_global_domain = true;
    request->active_cluster_name = (char *)registration->active_cluster;
    request->n_clusters = registration->cluster_count;
    request->clusters = arena_zalloc(arena, registration->cluster_count, sizeof(void *));
    for (unsigned i = 0; i < registration->cluster_count; i++) {
        request->clusters[i] = API_NEW(arena, cluster_replication_configuration,
                                       .cluster_name = arena_format(arena, "cluster%u", i));
    }
    if (registration->attribute_count > 0)
        request->active_clusters =
            load_make_attributes(arena, registration->attributes, registration->attribute_count);
}

struct error *
load_register(struct load_call *call, const struct load_registration *registration)
{
    API(RegisterDomainRequest) *request =
        API_NEW(call->arena, register_domain_request, .name = (char *)registration->name,
                .workflow_execution_retention_period = presence_make_duration(call->arena, DAY));
    if (registration->is_global)
        make_global(request, registration, call->arena);
    return load_send(call, request, NULL);
}

/* An update that names its fields. */
static API(UpdateDomainRequest) *
make_update(struct arena *arena, const char *name, const char *path)
{
    API(UpdateDomainRequest) *request =
        API_NEW(arena, update_domain_request, .name = (char *)name,
                .update_mask =
                    GOOGLE_NEW(arena, field_mask, .paths = arena_zalloc(arena, 2, sizeof(char *))));
    request->update_mask->paths[request->update_mask->n_paths++] = (char *)path;
    return request;
}

struct error *
load_describe_as(struct load_call *call, const char *name, uint32_t sequence)
{
    API(UpdateDomainRequest) *request = make_update(call->arena, name, "description");
    request->description = arena_format(call->arena, "%u", sequence);
    return load_send(call, request, NULL);
}

uint32_t
load_sequence(const API(Domain) *domain)
{
    uint64_t sequence = 0;
    bool is_number = text_parse_uint64(slice_text(domain->description), 0, UINT32_MAX, &sequence);
    return is_number ? (uint32_t)sequence : 0;
}

struct error *
load_describe(struct load_call *call, const char *name, API(Domain) **domain)
{
    API(DescribeDomainResponse) *response = NULL;
    struct error *err =
        load_send(call,
                  API_NEW(call->arena, describe_domain_request,
                          .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME),
                          .name = (char *)name),
                  &response);
    if (err == NULL)
        *domain = response->domain;
    return err;
}

struct error *
load_list(struct load_call *call, void (*visit)(void *context, const char *name, uint32_t sequence),
          void *context)
{
    API(ListDomainsRequest) *request =
        API_NEW(call->arena, list_domains_request, .page_size = PAGE_SIZE);
    do {
        API(ListDomainsResponse) *response = NULL;
        struct error *err = load_send(call, request, &response);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < response->n_domains; i++)
            visit(context, response->domains[i]->name, load_sequence(response->domains[i]));
        request->next_page_token = response->next_page_token;
    } while (request->next_page_token.len > 0);
    return NULL;
}

static struct error *
failover_by_update(struct load_call *call, const struct load_failover *failover,
                   API(Domain) **domain)
{
    const char *path = failover->cluster != NULL ? "active_cluster_name" : "active_clusters";
    API(UpdateDomainRequest) *request = make_update(call->arena, failover->name, path);
    request->active_cluster_name = presence_make_text(failover->cluster);
    if (failover->attribute != NULL)
        request->active_clusters = load_make_attributes(call->arena, failover->attribute, 1);
    if (failover->attribute != NULL && failover->cluster != NULL)
        request->update_mask->paths[request->update_mask->n_paths++] = "active_clusters";
    API(UpdateDomainResponse) *response = NULL;
    struct error *err = load_send(call, request, &response);
    if (err == NULL)
        *domain = response->domain;
    return err;
}

struct error *
load_failover(struct load_call *call, const struct load_failover *failover, API(Domain) **domain)
{
    check(failover->cluster != NULL || failover->attribute != NULL);
    if (failover->by_update)
        return failover_by_update(call, failover, domain);
    API(FailoverDomainRequest) *request =
        API_NEW(call->arena, failover_domain_request, .domain_name = (char *)failover->name,
                .domain_active_cluster_name = presence_make_text(failover->cluster));
    if (failover->attribute != NULL)
        request->active_clusters = load_make_attributes(call->arena, failover->attribute, 1);
    if (failover->timeout > 0)
        request->failover_timeout = presence_make_duration(call->arena, failover->timeout);
    API(FailoverDomainResponse) *response = NULL;
    struct error *err = load_send(call, request, &response);
    if (err == NULL)
        *domain = response->domain;
    return err;
}

struct error *
load_deprecate(struct load_call *call, const char *name)
{
    return load_send(call, API_NEW(call->arena, deprecate_domain_request, .name = (char *)name),
                     NULL);
}

struct error *
load_delete(struct load_call *call, const char *name)
{
    return load_send(call, API_NEW(call->arena, delete_domain_request, .name = (char *)name), NULL);
}

static void
visit_event(const API(FailoverEvent) *event,
            void (*visit)(void *context, const API(ClusterFailover) *failover), void *context)
{
    for (size_t i = 0; i < event->n_cluster_failovers; i++)
        visit(context, event->cluster_failovers[i]);
}

struct error *
load_list_failovers(struct load_call *call, const char *domain_id,
                    void (*visit)(void *context, const API(ClusterFailover) *failover),
                    void *context)
{
    API(ListFailoverHistoryRequest) *request =
        API_NEW(call->arena, list_failover_history_request,
                .filters = API_NEW(call->arena, list_failover_history_request_filters,
                                   .domain_id = (char *)domain_id),
                .pagination = API_NEW(call->arena, pagination_options, .page_size = HISTORY_PAGE));
    do {
        API(ListFailoverHistoryResponse) *response = NULL;
        struct error *err = load_send(call, request, &response);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < response->n_failover_events; i++)
            visit_event(response->failover_events[i], visit, context);
        request->pagination->next_page_token = response->next_page_token;
    } while (request->pagination->next_page_token.len > 0);
    return NULL;
}

struct error *
load_count_dead_letters(struct load_call *call, uint64_t *count)
{
    ADMIN(CountDLQMessagesResponse) *response = NULL;
    struct error *err =
        load_send(call, ADMIN_NEW(call->arena, count_dlqmessages_request), &response);
    if (err == NULL)
        *count = (uint64_t)response->domain;
    return err;
}

struct error *
load_merge_dead_letters(struct load_call *call)
{
    ADMIN(MergeDLQMessagesRequest) *request = ADMIN_NEW(
        call->arena, merge_dlqmessages_request, .type = ADMIN_VALUE(DLQTYPE__DLQ_TYPE_DOMAIN));
    ADMIN(MergeDLQMessagesResponse) *response = NULL;
    return rpc_client_call(call->clients->client[call->host], ADMIN_API "MergeDLQMessages",
                           &request->base, call->arena, ADMIN_TYPE(merge_dlqmessages_response),
                           &response);
}
