/* isolation.c - which isolation groups of a domain are drained. See decide.h. */
#include "domain/decide/common.h"

struct error *
domain_decide_isolation(const struct domain *current,
                        const ADMIN(UpdateDomainIsolationGroupsRequest) *request,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision)
{
    struct error *err = decide_check_name(request->domain, rules, arena);
    if (err == NULL && request->isolation_groups == NULL)
        err = error_new(arena, ERR_BAD_REQUEST,
                        "invalid request, isolationGroup configuration must be set");
    STORED(DomainRecord) *record = NULL;
    if (err == NULL)
        err = decide_copy_settings(current, request->domain, rules, moment, arena, &record);
    if (err != NULL)
        return err;
    record->domain->isolation_groups = request->isolation_groups;
    *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    decide_check(current, decision);
    return NULL;
}
