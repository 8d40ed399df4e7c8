/* graceful.c - what is checked before a graceful failover begins, and how it is shown. See
 * inside.h.
 *
 * It begins in the cluster that is to become active, and only if every enabled cluster of the
 * domain answers, knows the same failover versions, and has no failover under way: otherwise it
 * could only end by its timeout. Nothing is written before that. What in the domain itself forbids
 * it is checked by domain/. */
#include <string.h>

#include "api/inside.h"
#include "domain/attributes.h"
#include "domain/drain.h"
#include "failover/drains.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PATH        "/uber.cadence.api.v1.DomainAPI/DescribeDomain"
#define ASK_TIMEOUT (5 * NS_PER_S)

/* One cluster that is asked. */
struct graceful_inquiry {
    struct api *api;
    struct rpc_call
        *call; /* whose token is sent along; NULL: this server calls on its own behalf */
    struct arena *arena;
    const char *cluster_name, *domain_name;
    int64_t deadline;
    struct latch *open;
    API(DescribeDomainResponse) *answer;
    struct error *err;
};

static void
ask_one(void *argument)
{
    struct graceful_inquiry *graceful_inquiry = argument;
    struct arena *arena = graceful_inquiry->arena;
    fiber_set_deadline(graceful_inquiry->deadline);
    API(DescribeDomainRequest) *request = message_new(arena, API_TYPE(describe_domain_request));
    request->describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request->name = (char *)graceful_inquiry->domain_name;
    ProtobufCMessage **answer = (ProtobufCMessage **)&graceful_inquiry->answer;
    const ProtobufCMessageDescriptor *type = API_TYPE(describe_domain_response);
    if (graceful_inquiry->call != NULL)
        graceful_inquiry->err =
            api_call_cluster_as_caller(graceful_inquiry->call, graceful_inquiry->cluster_name, PATH,
                                       &request->base, type, answer);
    else
        graceful_inquiry->err =
            api_call_cluster(graceful_inquiry->api, graceful_inquiry->cluster_name, PATH,
                             &request->base, arena, type, answer);
    latch_done(graceful_inquiry->open);
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
static struct graceful_inquiry *
ask_all(const struct graceful_inquiry *pattern, const char **names, size_t count)
{
    struct latch open;
    latch_init(&open, (unsigned)count);
    int64_t deadline = clock_monotonic() + ASK_TIMEOUT;
    if (fiber_deadline() < deadline)
        deadline = fiber_deadline();
    struct graceful_inquiry *graceful_inquiries =
        arena_zalloc(pattern->arena, count + 1, sizeof *graceful_inquiries);
    for (size_t i = 0; i < count; i++) {
        graceful_inquiries[i] = *pattern;
        graceful_inquiries[i].cluster_name = names[i];
        graceful_inquiries[i].deadline = deadline;
        graceful_inquiries[i].open = &open;
        fiber_start("ask a cluster", ask_one, &graceful_inquiries[i]);
    }
    latch_wait(&open);
    return graceful_inquiries;
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
check_answer(const struct graceful_inquiry *graceful_inquiry, const struct domain *domain,
             struct arena *arena)
{
    if (graceful_inquiry->err != NULL || graceful_inquiry->answer->domain == NULL)
        return error_new(arena, ERR_INTERNAL,
                         "Failed to verify failover version from all clusters: cluster %s: %s",
                         graceful_inquiry->cluster_name,
                         graceful_inquiry->err == NULL ? "it shows nothing"
                                                       : graceful_inquiry->err->message);
    const API(Domain) *ours = domain->record->domain, *theirs = graceful_inquiry->answer->domain;
    if (!has_same_versions(ours, theirs, arena))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Concurrent failover is not allowed: cluster %s has failover version "
                         "%lld, this one %lld",
                         graceful_inquiry->cluster_name, (long long)theirs->failover_version,
                         (long long)ours->failover_version);
    if (graceful_inquiry->answer->is_recovering)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Cluster %s lost memory (its store was restored or copied) and is reading "
                         "from the others what it had: wait until that has ended ('cadenza admin "
                         "cluster peers' there shows how far it is), or fail over by force.",
                         graceful_inquiry->cluster_name);
    if (theirs->failover_info != NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Concurrent failover is not allowed: a graceful failover to cluster %s "
                         "is under way",
                         graceful_inquiry->cluster_name);
    return NULL;
}

static struct error *
check_clusters(const struct graceful_inquiry *pattern)
{
    const struct api_options *options = &pattern->api->options;
    const char *domain_name = pattern->domain_name;
    const struct domain *domain = domains_find_name(options->domains, domain_name);
    if (domain == NULL || !domain->record->domain->is_global_domain ||
        domain_drains_to_here(domain, options->group))
        return NULL; /* domain/ refuses it */
    const char **names = NULL;
    size_t count = list_clusters(domain, options->group, pattern->arena, &names);
    const struct graceful_inquiry *graceful_inquiries = ask_all(pattern, names, count);
    domain = domains_find_name(options->domains, domain_name);
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && domain != NULL && i < count; i++)
        err = check_answer(&graceful_inquiries[i], domain, pattern->arena);
    if (err != NULL)
        probe("graceful_failover_refused");
    return err;
}

struct error *
api_check_graceful(struct api *api, const char *domain_name, struct arena *arena)
{
    return check_clusters(
        &(struct graceful_inquiry){.api = api, .arena = arena, .domain_name = domain_name});
}

/* --- is this the right cluster to ask? ---- */

/* The cluster that has to be asked for a move to `target`; NULL: this one, or there is no such
 * cluster. */
static const struct cluster *
other_target(const struct cluster_group *group, const char *target)
{
    const struct cluster *cluster = cluster_group_find(group, target);
    return cluster == group->current ? NULL : cluster;
}

/* The command, for that cluster, that moves to it what the request moves to it: the domain, or
 * attributes. */
static const char *
command_for(const struct graceful_request *request, const struct attributes *wanted,
            const struct cluster *target, struct arena *arena)
{
    bool has_address = target->rpc_address != NULL && target->rpc_address[0] != '\0';
    const char *flags = "";
    if (strcmp(request->active_cluster_name, target->name) == 0)
        flags = arena_format(arena, " --active_cluster %s", target->name);
    for (size_t i = 0, count = 0; i < wanted->count; i++) {
        const struct attribute *one = &wanted->all[i];
        if (strcmp(one->cluster_name, target->name) == 0)
            flags = arena_format(arena, "%s%s%s.%s:%s", flags,
                                 count++ == 0 ? " --active_clusters " : ",", one->scope, one->name,
                                 target->name);
    }
    return arena_format(
        arena, "cadenza --address %s --domain %s domain update --failover_type grace%s",
        has_address ? target->rpc_address : "<its address>", request->domain_name, flags);
}

static struct error *
check_targets(struct rpc_call *call, const struct graceful_request *request)
{
    const struct cluster_group *group = api_of(call)->options.group;
    struct attributes wanted = attributes_read(request->attributes, call->arena);
    const struct cluster *target = NULL;
    if (request->active_cluster_name[0] != '\0')
        target = other_target(group, request->active_cluster_name);
    for (size_t i = 0; target == NULL && i < wanted.count; i++)
        target = other_target(group, wanted.all[i].cluster_name);
    if (target == NULL)
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "Cannot start the graceful failover from a to-be-passive cluster. Ask cluster "
                     "%s: %s",
                     target->name, command_for(request, &wanted, target, call->arena));
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
    err = check_clusters(&(struct graceful_inquiry){.api = api_of(call),
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

static API(FailoverProgress) *
show_progress(const struct drain_progress *progress, struct arena *arena)
{
    API(FailoverProgress) *shown = message_new(arena, API_TYPE(failover_progress));
    if (progress->scope[0] != '\0') {
        shown->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
        shown->cluster_attribute->scope = (char *)progress->scope;
        shown->cluster_attribute->name = (char *)progress->name;
    }
    shown->failover_version = progress->failover_version;
    shown->n_clusters = progress->cluster_count;
    shown->clusters = arena_zalloc(arena, progress->cluster_count + 1, sizeof *shown->clusters);
    for (size_t i = 0; i < progress->cluster_count; i++) {
        const struct drain_cluster *cluster = &progress->clusters[i];
        shown->clusters[i] = message_new(arena, API_TYPE(cluster_shards));
        shown->clusters[i]->cluster = (char *)cluster->name;
        shown->clusters[i]->shard_count = (int32_t)cluster->shard_count;
        shown->clusters[i]->ready_count = (int32_t)cluster->ready_count;
    }
    return shown;
}

/* The fields that Cadence has: of the domain's own drain, or of the first one of its attributes. */
static API(FailoverInfo) *
show_first(const struct drain_progress *progress, struct arena *arena)
{
    API(FailoverInfo) *info = message_new(arena, API_TYPE(failover_info));
    info->failover_version = progress->failover_version;
    info->failover_start_timestamp = presence_make_timestamp(arena, progress->start_time);
    info->failover_expire_timestamp = presence_make_timestamp(arena, progress->end_time);
    info->completed_shard_count = (int32_t)progress->ready_count;
    info->n_pending_shards = progress->pending_count;
    info->pending_shards = arena_zalloc(arena, progress->pending_count + 1, sizeof(int32_t));
    for (size_t i = 0; i < progress->pending_count; i++)
        info->pending_shards[i] = (int32_t)progress->pending[i];
    return info;
}

struct error *
graceful_show(struct rpc_call *call, const struct domain *domain, API(Domain) *shown)
{
    const struct api_options *options = &api_of(call)->options;
    struct drain_progress *all = NULL;
    size_t count = 0;
    if (options->drains == NULL || !domain_drains_to_here(domain, options->group))
        return NULL;
    struct error *err = drains_list(options->drains, domain->id, call->arena, &all, &count);
    if (err != NULL || count == 0)
        return err;
    API(FailoverInfo) *info = show_first(&all[0], call->arena);
    info->moves = arena_zalloc(call->arena, count, sizeof *info->moves);
    info->n_moves = count;
    for (size_t i = 0; i < count; i++)
        info->moves[i] = show_progress(&all[i], call->arena);
    shown->failover_info = info;
    return NULL;
}
