/* isolation.c - which isolation groups a domain's work is kept away from: set by operators, a
 * setting like others. See domains.h. */
#include "domain/decide_common.h"
#include "domain/inside.h"
#include "route/route.h"

struct error *
domain_decide_isolation_groups(const struct domain *current,
                               const ADMIN(UpdateDomainIsolationGroupsRequest) *request,
                               const struct domain_rules *rules, const struct domain_moment *moment,
                               struct arena *arena, struct domain_decision *decision)
{
    if (request->domain[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Domain not set on request.");
    if (request->isolation_groups == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "invalid request, isolationGroup configuration must be set");
    if (current == NULL)
        return domain_error_unknown(request->domain, arena);
    struct error *err = decide_check_cool_down(current, rules, moment, arena);
    if (err == NULL)
        err = decide_check_may_change(current->record->domain->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    record->domain->isolation_groups = request->isolation_groups;
    record->config_version++;
    *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    return NULL;
}

static struct error *
decide_wish(const struct wish *wish, const struct domain_rules *rules,
            const struct domain_moment *moment, struct domain_decision *decision)
{
    const struct domain *current = book_find_name(&wish->domains->newest, wish->name);
    return domain_decide_isolation_groups(current, wish->request, rules, moment, wish->arena,
                                          decision);
}

static void
run_there(void *argument)
{
    wish_run(argument);
}

struct error *
domains_set_isolation_groups(struct domains *domains,
                             const ADMIN(UpdateDomainIsolationGroupsRequest) *request,
                             struct arena *arena)
{
    struct wish wish = {.domains = domains,
                        .name = request->domain,
                        .request = request,
                        .decide = decide_wish,
                        .arena = arena};
    struct error *err = route_to_domains(run_there, &wish, arena);
    domain_drop(wish.changed);
    return err != NULL ? err : wish.err;
}
