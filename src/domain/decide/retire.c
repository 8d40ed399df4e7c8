/* retire.c - the end of a domain: deprecated first, then deleted. See decide.h. */
#include "domain/decide/common.h"

static struct error *
check_request(const struct domain *current, const char *name, const char *token,
              const struct domain_rules *rules, struct arena *arena)
{
    struct error *err = decide_check_name(name, rules, arena);
    if (err == NULL)
        err = decide_check_permission(token, rules, arena);
    if (err != NULL)
        return err;
    return current == NULL ? domain_error_unknown(name, arena) : NULL;
}

struct error *
domain_decide_deprecate(const struct domain *current, const API(DeprecateDomainRequest) *request,
                        const struct domain_rules *rules, const struct domain_moment *moment,
                        struct arena *arena, struct domain_decision *decision)
{
    struct error *err =
        check_request(current, request->name, request->security_token, rules, arena);
    if (err == NULL)
        err = decide_check_may_change(current->record->domain->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *record = decide_copy(current, moment, arena);
    record->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED);
    record->config_version++;
    *decision = (struct domain_decision){.what = DOMAIN_UPDATED, .next = record};
    decide_check(current, decision);
    return NULL;
}

struct error *
domain_decide_delete(const struct domain *current, const API(DeleteDomainRequest) *request,
                     const struct domain_rules *rules, const struct domain_moment *moment,
                     struct arena *arena, struct domain_decision *decision)
{
    struct error *err =
        check_request(current, request->name, request->security_token, rules, arena);
    if (err != NULL)
        return err;
    const API(Domain) *domain = current->record->domain;
    if (domain->status != API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DEPRECATED))
        return error_new(arena, ERR_BAD_REQUEST, "Domain is not in a deprecated state.");
    err = decide_check_may_change(domain->is_global_domain, rules, arena);
    if (err != NULL)
        return err;
    STORED(DomainRecord) *last = decide_copy(current, moment, arena);
    last->domain->status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_DELETED);
    *decision = (struct domain_decision){.what = DOMAIN_DELETED, .next = last};
    decide_check(current, decision);
    return NULL;
}
