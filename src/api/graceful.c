/* graceful.c - what is asked before a graceful failover begins, and how it is shown. See inside.h.
 *
 * It begins in the cluster that is to become active, and only if every enabled cluster of the
 * domain answers, knows the same failover versions, and has no failover under way: otherwise it
 * could not end but by its timeout. Nothing is written before. What the domain itself has to say
 * against it is domain/'s. */
#include <string.h>

#include "api/inside.h"
#include "domain/attributes.h"
#include "domain/drain.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH        "/uber.cadence.api.v1.DomainAPI/DescribeDomain"
#define ASK_TIMEOUT (5 * NS_PER_S)

/* One cluster that is asked. */
struct inquiry {
    struct api *api;
    struct rpc_call *call; /* whose token goes along; NULL: this server asks for itself */
    struct arena *arena;
    const char *cluster_name, *domain_name;
    int64_t deadline;
    struct latch *open;
    API(DescribeDomainResponse) *answer;
    struct error *err;
};

static void
ask(void *argument)
{
    struct inquiry *inquiry = argument;
    struct arena *arena = inquiry->arena;
    fiber_set_deadline(inquiry->deadline);
    API(DescribeDomainRequest) *request = message_new(arena, API_TYPE(describe_domain_request));
    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request->name = (char *)inquiry->domain_name;
    ProtobufCMessage **answer = (ProtobufCMessage **)&inquiry->answer;
    const ProtobufCMessageDescriptor *type = API_TYPE(describe_domain_response);
    if (inquiry->call != NULL)
        inquiry->err = api_ask_as_caller(inquiry->call, inquiry->cluster_name, PATH, &request->base,
                                         type, answer);
    else
        inquiry->err = api_ask_cluster(inquiry->api, inquiry->cluster_name, PATH, &request->base,
                                       arena, type, answer);
    latch_done(inquiry->open);
}

/* The clusters of the domain that take part, but this one. */
static size_t
list_clusters(const struct domain *domain, const struct cluster_group *group, struct arena *arena,
              const char ***names)
{
    const API(Domain) *shown = domain->record->domain;
    size_t count = 0;
    *names = arena_zalloc(arena, shown->n_clusters + 1, sizeof **names);
    for (size_t i = 0; i < shown->n_clusters; i++) {
        const struct cluster *cluster = cluster_group_find(group, shown->clusters[i]->cluster_name);
        if (cluster != NULL && cluster->is_enabled && cluster != group->current)
            (*names)[count++] = arena_text(arena, cluster->name);
    }
    return count;
}

/* All of them at the same time. Yields. */
static struct inquiry *
ask_all(const struct inquiry *pattern, const char **names, size_t count)
{
    struct latch open;
    latch_init(&open, (unsigned)count);
    int64_t deadline = clock_monotonic() + ASK_TIMEOUT;
    if (fiber_deadline() < deadline)
        deadline = fiber_deadline();
    struct inquiry *inquiries = arena_zalloc(pattern->arena, count + 1, sizeof *inquiries);
    for (size_t i = 0; i < count; i++) {
        inquiries[i] = *pattern;
        inquiries[i].cluster_name = names[i];
        inquiries[i].deadline = deadline;
        inquiries[i].open = &open;
        fiber_start("ask a cluster", ask, &inquiries[i]);
    }
    latch_wait(&open);
    return inquiries;
}

/* --- do they agree? ---- */

static bool
has_same_versions(const API(Domain) *ours, const API(Domain) *theirs, struct arena *arena)
{
    struct attributes own = attributes_read(ours->active_clusters, arena);
    struct attributes other = attributes_read(theirs->active_clusters, arena);
    if (ours->failover_version != theirs->failover_version || own.count != other.count)
        return false;
    for (size_t i = 0; i < own.count; i++) {
        if (attribute_compare(&own.all[i], &other.all[i]) != 0 ||
            own.all[i].failover_version != other.all[i].failover_version)
            return false;
    }
    return true;
}

static struct error *
check_answer(const struct inquiry *inquiry, const struct domain *domain, struct arena *arena)
{
    if (inquiry->err != NULL || inquiry->answer->domain == NULL)
        return error_new(arena, ERR_INTERNAL,
                         "Failed to verify failover version from all clusters: cluster %s: %s",
                         inquiry->cluster_name,
                         inquiry->err == NULL ? "it shows nothing" : inquiry->err->message);
    const API(Domain) *ours = domain->record->domain, *theirs = inquiry->answer->domain;
    if (!has_same_versions(ours, theirs, arena))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Concurrent failover is not allowed: cluster %s has failover version "
                         "%lld, this one %lld",
                         inquiry->cluster_name, (long long)theirs->failover_version,
                         (long long)ours->failover_version);
    if (theirs->failover_info != NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Concurrent failover is not allowed: a graceful failover to cluster %s "
                         "is under way",
                         inquiry->cluster_name);
    return NULL;
}

static bool
drains_to_here(const struct domain *domain, const struct cluster_group *group)
{
    for (size_t i = 0; i < domain->record->n_drains; i++) {
        if (drain_is_to_here(domain->record->drains[i], group))
            return true;
    }
    return false;
}

static struct error *
check_clusters(const struct inquiry *pattern)
{
    const struct api_options *options = &pattern->api->options;
    const char *domain_name = pattern->domain_name;
    const struct domain *domain = domains_find_name(options->domains, domain_name);
    if (domain == NULL || !domain->record->domain->is_global_domain ||
        drains_to_here(domain, options->group))
        return NULL; /* refused by whoever knows why */
    const char **names = NULL;
    size_t count = list_clusters(domain, options->group, pattern->arena, &names);
    const struct inquiry *inquiries = ask_all(pattern, names, count);
    domain = domains_find_name(options->domains, domain_name);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && domain != NULL && i < count; i++)
        err = check_answer(&inquiries[i], domain, pattern->arena);
    if (err != NULL)
        mark("graceful_failover_refused");
    return err;
}

struct error *
api_check_graceful(struct api *api, const char *domain_name, struct arena *arena)
{
    return check_clusters(
        &(struct inquiry){.api = api, .arena = arena, .domain_name = domain_name});
}

/* --- is this the right cluster to ask? ---- */

static struct error *
check_target(struct rpc_call *call, const char *domain_name, const char *target)
{
    const struct cluster_group *group = api_of(call)->options.group;
    const struct cluster *cluster = cluster_group_find(group, target);
    if (cluster == NULL || cluster == group->current)
        return NULL;
    bool has_address = cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0';
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "Cannot start the graceful failover from a to-be-passive cluster. Ask cluster "
                     "%s: cadenza --address %s --domain %s domain update --failover_type grace "
                     "--active_cluster %s",
                     target, has_address ? cluster->rpc_address : "<its address>", domain_name,
                     target);
}

static struct error *
check_targets(struct rpc_call *call, const struct graceful_request *request)
{
    struct attributes wanted = attributes_read(request->attributes, call->arena);
    struct error *err = NULL;
    if (request->active_cluster_name[0] != '\0')
        err = check_target(call, request->domain_name, request->active_cluster_name);
    for (size_t i = 0; err == NULL && i < wanted.count; i++)
        err = check_target(call, request->domain_name, wanted.all[i].cluster_name);
    return err;
}

struct error *
graceful_check(struct rpc_call *call, const struct graceful_request *request)
{
    if (request->timeout == NULL)
        return NULL;
    struct error *err = check_targets(call, request);
    if (err != NULL) {
        graceful_count(call, request, "validation");
        return err;
    }
    err = check_clusters(&(struct inquiry){.api = api_of(call),
                                           .call = call,
                                           .arena = call->arena,
                                           .domain_name = request->domain_name});
    if (err != NULL)
        graceful_count(call, request, "ongoing_failover_check");
    return err;
}

void
graceful_count(struct rpc_call *call, const struct graceful_request *request, const char *failure)
{
    struct metrics *metrics = api_of(call)->options.metrics;
    if (request->timeout == NULL || metrics == NULL)
        return;
    const char *labels[] = {"domain", request->domain_name, NULL, NULL, NULL};
    if (failure != NULL) {
        labels[2] = "reason";
        labels[3] = failure;
    }
    struct counter *counter =
        failure != NULL ? metrics_counter(metrics, "cadence_graceful_failover_initiation_failures",
                                          "Graceful failovers that did not begin.", labels)
                        : metrics_counter(metrics, "cadence_graceful_failover_initiation_success",
                                          "Graceful failovers that began.", labels);
    counter_add(counter, 1);
}

/* --- how it is shown ---- */

/* The drain that is shown: the domain's own, or the first one of its attributes; NULL: none. */
static const STORED(Drain) *
shown_drain(const struct domain *domain, const struct cluster_group *group)
{
    for (size_t i = 0; i < domain->record->n_drains; i++) {
        if (drain_is_to_here(domain->record->drains[i], group))
            return domain->record->drains[i];
    }
    return NULL;
}

struct error *
graceful_show(struct rpc_call *call, const struct domain *domain, API(Domain) *shown)
{
    const struct api_options *options = &api_of(call)->options;
    const STORED(Drain) *drain = shown_drain(domain, options->group);
    if (drain == NULL)
        return NULL;
    struct drain_progress progress;
    struct error *err = domains_read_drain(options->domains, domain->id, drain->scope, drain->name,
                                           call->arena, &progress);
    if (err != NULL || !progress.is_found)
        return err;
    API(FailoverInfo) *info = message_new(call->arena, API_TYPE(failover_info));
    info->failover_version = progress.failover_version;
    info->failover_start_timestamp = presence_make_timestamp(call->arena, progress.start_time);
    info->failover_expire_timestamp = presence_make_timestamp(call->arena, progress.end_time);
    info->completed_shard_count = (int32_t)progress.ready_count;
    info->n_pending_shards = progress.pending_count;
    info->pending_shards = arena_zalloc(call->arena, progress.pending_count + 1, sizeof(int32_t));
    for (size_t i = 0; i < progress.pending_count; i++)
        info->pending_shards[i] = (int32_t)progress.pending[i];
    shown->failover_info = info;
    return NULL;
}
