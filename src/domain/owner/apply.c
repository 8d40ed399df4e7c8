/* apply.c - messages of other clusters. See domains.h.
 *
 * What another cluster decided cannot be refused. If a message can never be applied it becomes a
 * dead letter, so that those behind it go on. That is decided on durable state: a refusal waits
 * (write.c), so a message never becomes a dead letter because of a change that did not happen. */
#include "base/check.h"
#include "domain/attributes.h"
#include "domain/owner/inside.h"
#include "fiber/probe.h"
#include "route/owner.h"

static struct error *
decide_replicated(const struct change_request *change_request, const struct domain_rules *rules,
                  const struct domain_moment *moment, struct domain_decision *decision)
{
    const ADMIN(DomainTaskAttributes) *task = change_request->request;
    const struct domain_cache *newest = &change_request->domains->newest;
    const struct domain *known = domain_cache_find_record(newest, task->id);
    struct error *err = domain_decide_replicated(
        domain_cache_find_name(newest, change_request->name), known, task, change_request->source,
        rules, moment, change_request->arena, decision);
    if (err == NULL && decision->what == DOMAIN_UPDATED &&
        decision->next->domain->failover_version > known->record->domain->failover_version &&
        decision->next->domain->failover_version > task->failover_version)
        probe("domain_version_made_by_merging"); /* a number that no message had yet */
    return err;
}

struct error *
apply_try(struct domains *domains, const char *source, const ADMIN(ReplicationTask) *task,
          uint64_t dead_letter, struct arena *arena, const char **reason)
{
    const ADMIN(DomainTaskAttributes) *attributes = task->domain_task_attributes;
    if (task->attributes_case != ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES) ||
        attributes == NULL) {
        *reason = "The message is not about a domain.";
        return NULL;
    }
    struct change_request change_request = {
        .domains = domains,
        .name = attributes->domain == NULL ? "" : attributes->domain->name,
        .request = attributes,
        .decide = decide_replicated,
        .source = source,
        .dead_letter = dead_letter,
        .arena = arena};
    change_request_run(&change_request);
    domain_drop(change_request.changed);
    if (change_request.err == NULL || change_request.err->kind != ERR_BAD_REQUEST)
        return change_request.err;
    *reason = change_request.err->message;
    return NULL;
}

/* Nothing that such a cluster is active for runs anywhere, so operators should know. */
static void
warn_of_unknown(struct domains *domains, const char *source, const API(Domain) *domain,
                const char *cluster_name)
{
    if (cluster_group_find(domains->options.group, cluster_name) != NULL)
        return;
    probe("domain_active_in_unknown_cluster");
    log_warn(domains->options.log,
             "A domain is active in a cluster that is not in the cluster group of this cluster; "
             "fail it over, or add that cluster to clusterGroupMetadata.",
             log_text("wf-domain-name", domain->name), log_text("active-cluster", cluster_name),
             log_text("source-cluster", source));
}

static void
warn_of_unknowns(struct domains *domains, const char *source, const API(Domain) *domain,
                 struct arena *arena)
{
    warn_of_unknown(domains, source, domain, domain->active_cluster_name);
    struct attributes attributes = attributes_read(domain->active_clusters, arena);
    for (size_t i = 0; i < attributes.count; i++)
        warn_of_unknown(domains, source, domain, attributes.all[i].cluster_name);
}

struct error *
domains_apply(struct domains *domains, const char *source, const ADMIN(ReplicationTask) *task,
              struct arena *arena)
{
    check(route_is_here(owner_of_domains()));
    const char *reason = NULL;
    struct error *err = apply_try(domains, source, task, 0, arena, &reason);
    if (err == NULL && reason == NULL &&
        task->domain_task_attributes->domain_operation !=
            ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        warn_of_unknowns(domains, source, task->domain_task_attributes->domain, arena);
    if (err == NULL && reason == NULL)
        return domain_leave_lost(domains, task->domain_task_attributes->id, arena);
    if (err != NULL)
        return err;
    probe("domain_dead_letter_kept");
    return dead_letter_add(domains, source, task, reason, arena);
}
