/* failover.c - FailoverDomain, decided. See decide.h; the move itself is in move.c.
 */
#include "domain/decide/common.h"

static bool
has_attributes(const struct domain *domain, struct arena *arena)
{
    return attributes_read(domain->record->domain->active_clusters, arena).count > 0;
}

static struct error *
check_request(const API(FailoverDomainRequest) *request, const struct domain_rules *rules,
              struct arena *arena)
{
    struct error *err = decide_check_name(request->domain_name, rules, arena);
    if (err != NULL)
        return err;
    if (request->domain_active_cluster_name[0] == '\0' && request->active_clusters == NULL)
        return error_new(
            arena, ERR_BAD_REQUEST,
            "DomainActiveClusterName or ActiveClusters must be provided to failover the domain");
    return decide_check_lockdown(rules, arena);
}

struct error *
domain_decide_failover(const struct domain *current, const API(FailoverDomainRequest) *request,
                       const struct domain_rules *rules, const struct domain_moment *moment,
                       struct arena *arena, struct domain_decision *decision)
{
    struct error *err = check_request(request, rules, arena);
    if (err != NULL)
        return err;
    if (current == NULL)
        return domain_error_unknown(request->domain_name, arena);
    if (!current->record->domain->is_global_domain)
        return error_new(arena, ERR_BAD_REQUEST, REFUSE_LOCAL);
    if (request->active_clusters != NULL && !has_attributes(current, arena))
        return error_new(arena, ERR_BAD_REQUEST,
                         "FailoverDomain cannot be used to promote a domain to active-active; use "
                         "UpdateDomain to set cluster attributes");
    bool is_named = request->domain_active_cluster_name[0] != '\0';
    struct move move = {
        .active_cluster_name = is_named ? request->domain_active_cluster_name : NULL,
        .attributes = request->active_clusters,
        .failover_timeout = request->failover_timeout,
        .reason = request->reason,
    };
    return decide_move(current, &move, rules, moment, arena, decide_copy(current, moment, arena),
                       decision);
}
