/* apply.c - facts from other clusters. See domains.h.
 *
 * A fact may not be refused, only not be applicable: then it is parked, so that what comes behind
 * it goes on. Whether it can be applied is decided on durable state: a refusal waits (write.c), and
 * so a message is not parked because of a change that never happened. */
#include "base/check.h"
#include "domain/attributes.h"
#include "domain/inside.h"
#include "fiber/loop.h"
#include "fiber/mark.h"

static struct error *
decide_replicated(const struct wish *wish, const struct domain_rules *rules,
                  const struct domain_moment *moment, struct domain_decision *decision)
{
    const ADMIN(DomainTaskAttributes) *task = wish->request;
    const struct book *newest = &wish->domains->newest;
    const struct domain *known = book_find_record(newest, task->id);
    struct error *err =
        domain_decide_replicated(book_find_name(newest, wish->name), known, task, wish->source,
                                 rules, moment, wish->arena, decision);
    if (err == NULL && decision->what == DOMAIN_UPDATED &&
        decision->next->domain->failover_version > known->record->domain->failover_version &&
        decision->next->domain->failover_version > task->failover_version)
        mark("domain_version_made_by_merging"); /* a number that nobody has told yet */
    return err;
}

struct error *
apply_try(struct domains *domains, const char *source, const ADMIN(ReplicationTask) *task,
          uint64_t letter, struct arena *arena, const char **reason)
{
    const ADMIN(DomainTaskAttributes) *attributes = task->domain_task_attributes;
    if (task->attributes_case != ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_DOMAIN_TASK_ATTRIBUTES) ||
        attributes == NULL) {
        *reason = "The message is not about a domain.";
        return NULL;
    }
    struct wish wish = {.domains = domains,
                        .name = attributes->domain == NULL ? "" : attributes->domain->name,
                        .request = attributes,
                        .decide = decide_replicated,
                        .source = source,
                        .letter = letter,
                        .arena = arena};
    wish_run(&wish);
    domain_drop(wish.changed);
    if (wish.err == NULL || wish.err->kind != ERR_BAD_REQUEST)
        return wish.err;
    *reason = wish.err->message;
    return NULL;
}

/* Nobody is active here for what such a cluster has, so somebody should know. */
static void
warn_of_unknown(struct domains *domains, const char *source, const API(Domain) *domain,
                const char *cluster_name)
{
    if (cluster_group_find(domains->options.group, cluster_name) != NULL)
        return;
    mark("domain_active_in_unknown_cluster");
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
    check(loop_index(loop_self()) == 0);
    const char *reason = NULL;
    struct error *err = apply_try(domains, source, task, 0, arena, &reason);
    if (err == NULL && reason == NULL &&
        task->domain_task_attributes->domain_operation !=
            ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE))
        warn_of_unknowns(domains, source, task->domain_task_attributes->domain, arena);
    if (err != NULL || reason == NULL)
        return err;
    mark("domain_message_parked");
    return dead_park(domains, source, task, reason, arena);
}
