/* groups.c - isolation groups that are drained: of one domain, which is a part of its record. See
 * domains.h. */
#include "domain/inside.h"
#include "route/route.h"

static struct error *
decide_groups(const struct wish *wish, const struct domain_rules *rules,
              const struct domain_moment *moment, struct domain_decision *decision)
{
    const struct domain *current = book_find_name(&wish->domains->newest, wish->name);
    return domain_decide_groups(current, wish->request, rules, moment, wish->arena, decision);
}

static void
run_wish(void *argument)
{
    wish_run(argument);
}

struct error *
domains_set_groups(struct domains *domains,
                   const ADMIN(UpdateDomainIsolationGroupsRequest) *request, struct arena *arena)
{
    struct wish wish = {.domains = domains,
                        .name = request->domain,
                        .request = request,
                        .decide = decide_groups,
                        .arena = arena};
    struct error *err = route_to_domains(run_wish, &wish, arena);
    domain_drop(wish.changed);
    return err != NULL ? err : wish.err;
}
