/* domain.c - DomainAPI: what clients do with domains. domain/ decides; here is how answers look. */
#include "access/access.h"
#include "api/domain/removal_check.h"
#include "api/entity/entity.h"
#include "api/inside.h"
#include "api/visibility/archived.h"
#include "base/check.h"
#include "domain/active.h"
#include "domain/attributes.h"
#include "domain/entries.h"
#include "engine/engine.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define FAILOVERS_DEFAULT 50
#define FAILOVERS_MAX     1000
#define PAGE_SIZE_DEFAULT 100
#define PAGE_SIZE_MAX     5000
#define PAGE_BYTES_MAX    (3u * 1024 * 1024) /* stock gRPC clients take answers of up to 4 MiB */

/* The attributes of a domain, and its regions in the older form too: region → cluster. */
static API(ActiveClusters) *
show_attributes(const API(ActiveClusters) *kept, struct arena *arena)
{
    struct attributes all = attributes_read(kept, arena);
    API(ActiveClusters) *shown = arena_make(arena, API(ActiveClusters));
    *shown = *kept;
    shown->region_to_cluster = arena_zalloc(arena, all.count, sizeof *shown->region_to_cluster);
    for (size_t i = 0; i < all.count; i++) {
        if (strcmp(all.all[i].scope, REGION_SCOPE) != 0)
            continue;
        API(ActiveClusters__RegionToClusterEntry) *region =
            message_new(arena, API_TYPE(active_clusters__region_to_cluster_entry));
        region->key = all.all[i].name;
        region->value = message_new(arena, API_TYPE(active_cluster_info));
        region->value->active_cluster_name = all.all[i].cluster_name;
        region->value->failover_version = all.all[i].failover_version;
        shown->region_to_cluster[shown->n_region_to_cluster++] = region;
    }
    return shown;
}

/* A domain as clients expect it: messages that are empty are present. Shares everything else with
 * the record. */
static API(Domain) *
show_domain(const struct domain *domain, struct arena *arena)
{
    API(Domain) *shown = arena_make(arena, API(Domain));
    *shown = *domain->record->domain;
    shown->data = domain_shown_data(domain->record, arena, &shown->n_data);
    if (shown->active_clusters != NULL)
        shown->active_clusters = show_attributes(shown->active_clusters, arena);
    if (shown->bad_binaries == NULL)
        shown->bad_binaries = message_new(arena, API_TYPE(bad_binaries));
    if (shown->isolation_groups == NULL)
        shown->isolation_groups = message_new(arena, API_TYPE(isolation_group_configuration));
    if (shown->async_workflow_config == NULL)
        shown->async_workflow_config = message_new(arena, API_TYPE(async_workflow_configuration));
    return shown;
}

/* What everybody may see where names are shown: that it exists, and where. */
static API(Domain) *
show_name(const struct domain *domain, struct arena *arena)
{
    const API(Domain) *record = domain->record->domain;
    API(Domain) *shown = message_new(arena, API_TYPE(domain));
    shown->id = record->id;
    shown->name = record->name;
    shown->status = record->status;
    shown->is_global_domain = record->is_global_domain;
    shown->active_cluster_name = record->active_cluster_name;
    shown->n_clusters = record->n_clusters;
    shown->clusters = record->clusters;
    if (record->active_clusters != NULL)
        shown->active_clusters = show_attributes(record->active_clusters, arena);
    return shown;
}

/* As the caller may see it; NULL: not at all. */
static API(Domain) *
show_to_caller(struct rpc_call *call, const struct domain *domain)
{
    struct access *access = api_of(call)->options.access;
    if (access_may_read(access, call, domain))
        return show_domain(domain, call->arena);
    return access_shows_names(access) ? show_name(domain, call->arena) : NULL;
}

static void
release_domain(void *kept)
{
    domain_drop(kept);
}

/* The answer points into the domain, which is therefore kept until the answer is encoded. */
static void
keep_domain(struct rpc_call *call, struct domain *domain)
{
    check(call->kept == NULL && call->release == NULL);
    call->kept = domain;
    call->release = release_domain;
}

struct error *
api_register_domain(struct rpc_call *call)
{
    const API(RegisterDomainRequest) *request = (const API(RegisterDomainRequest) *)call->request;
    struct error *err =
        archived_check_uris(call, request->history_archival_uri, request->visibility_archival_uri);
    if (err != NULL)
        return err;
    return domains_register(api_of(call)->options.domains, request, call->arena, NULL);
}

struct error *
api_describe_domain(struct rpc_call *call)
{
    const API(DescribeDomainRequest) *request = (const API(DescribeDomainRequest) *)call->request;
    API(DescribeDomainResponse) *response = (API(DescribeDomainResponse) *)call->response;
    const struct domains *domains = api_of(call)->options.domains;
    bool by_id = request->describe_by_case == API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_ID);
    bool by_name =
        request->describe_by_case == API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    const char *asked = by_id ? request->id : by_name ? request->name : "";
    if (asked[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Domain not set on request.");
    struct domain *domain =
        by_id ? domains_find_id(domains, asked) : domains_find_name(domains, asked);
    if (domain == NULL)
        return domain_error_unknown(asked, call->arena);
    response->domain = show_domain(domain, call->arena);
    response->cluster_notification_version = (int64_t)domains_notification_version(domains);
    response->notification_version = domain->record->notification_version;
    response->failover_notification_version = domain->record->failover_notification_version;
    response->is_recovering = domain->is_recovering && domains_are_recovering(domains);
    if (domain->record->n_drains == 0)
        return NULL;
    keep_domain(call, domain_take(domain)); /* what follows yields */
    return graceful_show(call, domain, response->domain);
}

/* A page token is the name of the last domain before it. */
static struct error *
read_token(ProtobufCBinaryData token, struct arena *arena, const char **after)
{
    if (token.len > 0 && memchr(token.data, '\0', token.len) != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
    *after = arena_text_of(arena, slice_of(token.data, token.len));
    return NULL;
}

struct error *
api_list_domains(struct rpc_call *call)
{
    const API(ListDomainsRequest) *request = (const API(ListDomainsRequest) *)call->request;
    API(ListDomainsResponse) *response = (API(ListDomainsResponse) *)call->response;
    if (request->page_size < 0)
        return error_new(call->arena, ERR_BAD_REQUEST, "page_size: %d is negative.",
                         request->page_size);
    size_t size = request->page_size == 0 ? PAGE_SIZE_DEFAULT : (size_t)request->page_size;
    size = size > PAGE_SIZE_MAX ? PAGE_SIZE_MAX : size;
    const char *after = "";
    struct error *err = read_token(request->next_page_token, call->arena, &after);
    if (err != NULL)
        return err;

    struct domain **found = arena_zalloc(call->arena, size + 1, sizeof *found);
    size_t count = domains_list(api_of(call)->options.domains, after, found, size + 1);
    response->domains = arena_zalloc(call->arena, count, sizeof *response->domains);
    size_t bytes = 0, seen = 0;
    for (; seen < count && seen < size && bytes < PAGE_BYTES_MAX; seen++) {
        API(Domain) *shown = show_to_caller(call, found[seen]);
        if (shown == NULL)
            continue; /* a page may be short, and others follow */
        response->domains[response->n_domains++] = shown;
        bytes += found[seen]->bytes.length;
    }
    if (seen < count) {
        const char *last = found[seen - 1]->name;
        response->next_page_token =
            (ProtobufCBinaryData){.data = (uint8_t *)last, .len = strlen(last)};
    }
    return NULL;
}

static struct graceful_request
graceful_of_update(const API(UpdateDomainRequest) *request)
{
    const GOOGLE(FieldMask) *mask = request->update_mask;
    struct graceful_request graceful = {.domain_name = request->name, .active_cluster_name = ""};
    if (presence_mask_has(mask, "active_cluster_name"))
        graceful.active_cluster_name = request->active_cluster_name;
    if (presence_mask_has(mask, "active_clusters"))
        graceful.attributes = request->active_clusters;
    if (presence_mask_has(mask, "failover_timeout"))
        graceful.timeout = request->failover_timeout;
    return graceful;
}

struct error *
api_update_domain(struct rpc_call *call)
{
    const API(UpdateDomainRequest) *request = (const API(UpdateDomainRequest) *)call->request;
    API(UpdateDomainResponse) *response = (API(UpdateDomainResponse) *)call->response;
    struct domain *changed = NULL;
    struct error *err =
        archived_check_uris(call, request->history_archival_uri, request->visibility_archival_uri);
    struct graceful_request graceful = graceful_of_update(request);
    if (err == NULL)
        err = removal_check_update(call, request);
    if (err == NULL)
        err = entity_check_scopes(call, request->name, request->active_clusters);
    if (err == NULL)
        err = graceful_check(call, &graceful);
    if (err != NULL)
        return err;
    err = domains_update(api_of(call)->options.domains, request, call->arena, &changed);
    graceful_count(call, &graceful, err == NULL ? NULL : "handler");
    if (err != NULL)
        return err;
    keep_domain(call, changed);
    response->domain = show_domain(changed, call->arena);
    return NULL;
}

struct error *
api_get_async_configuration(struct rpc_call *call)
{
    const ADMIN(GetDomainAsyncWorkflowConfiguratonRequest) *request =
        (const ADMIN(GetDomainAsyncWorkflowConfiguratonRequest) *)call->request;
    ADMIN(GetDomainAsyncWorkflowConfiguratonResponse) *response =
        (ADMIN(GetDomainAsyncWorkflowConfiguratonResponse) *)call->response;
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, request->domain);
    if (domain == NULL)
        return domain_error_unknown(request->domain, call->arena);
    response->configuration = show_domain(domain, call->arena)->async_workflow_config;
    if (domain->record->domain->async_workflow_config == NULL)
        response->configuration->enabled = true; /* no queue has to be set up for it */
    return NULL;
}

struct error *
api_update_async_configuration(struct rpc_call *call)
{
    const ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request =
        (const ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *)call->request;
    return domains_async(api_of(call)->options.domains, request, call->arena, NULL);
}

struct error *
api_deprecate_domain(struct rpc_call *call)
{
    const API(DeprecateDomainRequest) *request = (const API(DeprecateDomainRequest) *)call->request;
    return domains_deprecate(api_of(call)->options.domains, request, call->arena, NULL);
}

struct error *
api_failover_domain(struct rpc_call *call)
{
    const API(FailoverDomainRequest) *request = (const API(FailoverDomainRequest) *)call->request;
    API(FailoverDomainResponse) *response = (API(FailoverDomainResponse) *)call->response;
    struct domain *changed = NULL;
    struct graceful_request graceful = {.domain_name = request->domain_name,
                                        .active_cluster_name = request->domain_active_cluster_name,
                                        .attributes = request->active_clusters,
                                        .timeout = request->failover_timeout};
    struct error *err = graceful_check(call, &graceful);
    if (err != NULL)
        return err;
    err = domains_failover(api_of(call)->options.domains, request, call->arena, &changed);
    graceful_count(call, &graceful, err == NULL ? NULL : "handler");
    if (err != NULL)
        return err;
    keep_domain(call, changed);
    response->domain = show_domain(changed, call->arena);
    return NULL;
}

/* Nothing new starts in a deprecated domain, so what is found is all there is. */
static struct error *
check_no_runs(struct rpc_call *call, const char *name)
{
    const struct api_options *options = &api_of(call)->options;
    const struct domain *domain = domains_find_name(options->domains, name);
    bool is_deprecated = domain != NULL && domain->record->domain->status ==
                                               API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    if (!is_deprecated || options->engine == NULL) /* the owner says why not */
        return NULL;
    bool has_runs = false;
    const char *id = arena_text(call->arena, domain->id);
    struct error *err = engine_has_runs(options->engine, id, call->arena, &has_runs);
    if (err == NULL && has_runs)
        err = error_new(call->arena, ERR_BAD_REQUEST,
                        "Domain still have workflow execution history.");
    return err;
}

struct error *
api_delete_domain(struct rpc_call *call)
{
    const API(DeleteDomainRequest) *request = (const API(DeleteDomainRequest) *)call->request;
    struct error *err = check_no_runs(call, request->name);
    if (err != NULL)
        return err;
    return domains_delete(api_of(call)->options.domains, request, call->arena, NULL);
}

static API(FailoverOutcome) *
show_outcome(const STORED(DrainOutcome) *record, struct arena *arena)
{
    static const char *const results[] = {
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_INVALID] = "",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_COMPLETE] = "complete",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_TIMED_OUT] = "timed out",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_FORCED] = "forced",
        [CADENZA__STORAGE__V1__DRAIN_END__DRAIN_END_SUPERSEDED] = "superseded",
    };
    API(FailoverOutcome) *outcome = message_new(arena, API_TYPE(failover_outcome));
    if (record->scope[0] != '\0') {
        outcome->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
        outcome->cluster_attribute->scope = record->scope;
        outcome->cluster_attribute->name = record->name;
    }
    bool is_known = record->end >= 0 && record->end < (int)array_length(results);
    outcome->result = (char *)results[is_known ? record->end : 0];
    outcome->end_time = presence_make_timestamp(arena, record->end_time);
    outcome->shard_count = (int32_t)record->shard_count;
    outcome->n_missing_shards = record->n_missing_shards;
    outcome->missing_shards = (int32_t *)record->missing_shards;
    outcome->n_missing = record->n_missing;
    outcome->missing = record->missing;
    outcome->n_clusters = record->n_clusters;
    outcome->clusters = arena_zalloc(arena, record->n_clusters + 1, sizeof *outcome->clusters);
    for (size_t i = 0; i < record->n_clusters; i++) {
        outcome->clusters[i] = message_new(arena, API_TYPE(cluster_shards));
        outcome->clusters[i]->cluster = record->clusters[i]->name;
        outcome->clusters[i]->shard_count = (int32_t)record->clusters[i]->shard_count;
        outcome->clusters[i]->ready_count = (int32_t)record->clusters[i]->ready_count;
    }
    return outcome;
}

static API(FailoverEvent) *
show_failover(const STORED(FailoverRecord) *record, struct arena *arena)
{
    API(FailoverEvent) *event = message_new(arena, API_TYPE(failover_event));
    event->id = record->id;
    event->created_time = presence_make_timestamp(arena, record->created_time);
    event->failover_type = record->type;
    event->n_cluster_failovers = record->n_cluster_failovers;
    event->cluster_failovers = record->cluster_failovers;
    event->n_outcomes = record->n_outcomes;
    event->outcomes = arena_zalloc(arena, record->n_outcomes + 1, sizeof *event->outcomes);
    for (size_t i = 0; i < record->n_outcomes; i++)
        event->outcomes[i] = show_outcome(record->outcomes[i], arena);
    return event;
}

/* Did it move the attribute? NULL: any will do. */
static bool
has_moved(const STORED(FailoverRecord) *record, const API(ClusterAttribute) *attribute)
{
    for (size_t i = 0; attribute != NULL && i < record->n_cluster_failovers; i++) {
        const API(ClusterAttribute) *moved = record->cluster_failovers[i]->cluster_attribute;
        if (moved != NULL && strcmp(moved->scope, attribute->scope) == 0 &&
            (attribute->name[0] == '\0' || strcmp(moved->name, attribute->name) == 0))
            return true;
    }
    return attribute == NULL;
}

struct error *
api_list_failover_history(struct rpc_call *call)
{
    const API(ListFailoverHistoryRequest) *request =
        (const API(ListFailoverHistoryRequest) *)call->request;
    API(ListFailoverHistoryResponse) *response = (API(ListFailoverHistoryResponse) *)call->response;
    if (request->filters == NULL || request->filters->domain_id[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "DomainID is required in filters");
    const API(PaginationOptions) *page = request->pagination;
    int32_t asked = page == NULL ? 0 : page->page_size;
    if (asked < 0)
        return error_new(call->arena, ERR_BAD_REQUEST, "page_size: %d is negative.", asked);
    size_t size = asked == 0              ? FAILOVERS_DEFAULT
                  : asked > FAILOVERS_MAX ? FAILOVERS_MAX
                                          : (size_t)asked;
    struct slice token =
        page == NULL ? (struct slice){0} : presence_read_bytes(page->next_page_token);
    struct domain_failovers found = {0};
    struct error *err =
        domains_list_failovers(api_of(call)->options.domains, request->filters->domain_id, token,
                               size, call->arena, &found);
    if (err != NULL)
        return err;
    response->failover_events =
        arena_zalloc(call->arena, found.count, sizeof *response->failover_events);
    for (size_t i = 0; i < found.count; i++) {
        if (has_moved(found.failover[i], request->filters->cluster_attribute)) /* a short page */
            response->failover_events[response->n_failover_events++] =
                show_failover(found.failover[i], call->arena);
    }
    response->next_page_token = presence_make_bytes(found.token);
    return NULL;
}
