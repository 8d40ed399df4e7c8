/* change.c - requests of clients: register, update, failover, deprecate, delete, and those of
 * operators. See domains.h.
 *
 * They differ only in the pure function that decides (decide.h), so all of them go one way
 * (write.c). */
#include "domain/owner/inside.h"
#include "route/route.h"

struct error *
change_request_send(struct change_request *change_request, struct domain **changed)
{
    struct error *err = route_to_domains(change_request_run, change_request, change_request->arena);
    if (err == NULL)
        err = change_request->err;
    if (changed != NULL && err == NULL)
        *changed = change_request->changed;
    else
        domain_drop(change_request->changed);
    return err;
}

/* Defines the pure function with its request as a plain pointer, and the function that callers see:
 * domains_register, domains_update, domains_failover, domains_deprecate, domains_delete … */
#define CHANGER(verb, Request, name_field)                                                         \
    static struct error *decide_##verb(                                                            \
        const struct change_request *change_request, const struct domain_rules *rules,             \
        const struct domain_moment *moment, struct domain_decision *decision)                      \
    {                                                                                              \
        const struct domain *current =                                                             \
            domain_cache_find_name(&change_request->domains->newest, change_request->name);        \
        return domain_decide_##verb(current, (const Request *)change_request->request, rules,      \
                                    moment, change_request->arena, decision);                      \
    }                                                                                              \
    struct error *domains_##verb(struct domains *domains, const Request *request,                  \
                                 struct arena *arena, struct domain **changed)                     \
    {                                                                                              \
        struct change_request change_request = {.domains = domains,                                \
                                                .name = request->name_field,                       \
                                                .request = request,                                \
                                                .decide = decide_##verb,                           \
                                                .arena = arena};                                   \
        return change_request_send(&change_request, changed);                                      \
    }
CHANGER(register, API(RegisterDomainRequest), name)
CHANGER(update, API(UpdateDomainRequest), name)
CHANGER(failover, API(FailoverDomainRequest), domain_name)
CHANGER(deprecate, API(DeprecateDomainRequest), name)
CHANGER(delete, API(DeleteDomainRequest), name)
CHANGER(async, ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest), domain)
