/* change.c - what clients want of domains: register, update, failover, deprecate, delete, and what
 * operators do. See domains.h.
 *
 * They differ only in the pure function that decides (decide.h), so there is one way for all
 * (write.c): a wish. */
#include "domain/inside.h"
#include "route/route.h"

static void
wish_run_there(void *argument)
{
    wish_run(argument);
}

static struct error *
wish_grant(struct wish *wish, struct domain **changed)
{
    struct error *err = route_to_domains(wish_run_there, wish, wish->arena);
    if (err == NULL)
        err = wish->err;
    if (changed != NULL && err == NULL)
        *changed = wish->changed;
    else
        domain_drop(wish->changed);
    return err;
}

/* The pure function with its request as a plain pointer, so that one wish fits all; and the face.
 */
#define CHANGER(verb, Request, name_field)                                                         \
    static struct error *decide_##verb(const struct wish *wish, const struct domain_rules *rules,  \
                                       const struct domain_moment *moment,                         \
                                       struct domain_decision *decision)                           \
    {                                                                                              \
        const struct domain *current = book_find_name(&wish->domains->newest, wish->name);         \
        return domain_decide_##verb(current, (const Request *)wish->request, rules, moment,        \
                                    wish->arena, decision);                                        \
    }                                                                                              \
    struct error *domains_##verb(struct domains *domains, const Request *request,                  \
                                 struct arena *arena, struct domain **changed)                     \
    {                                                                                              \
        struct wish wish = {.domains = domains,                                                    \
                            .name = request->name_field,                                           \
                            .request = request,                                                    \
                            .decide = decide_##verb,                                               \
                            .arena = arena};                                                       \
        return wish_grant(&wish, changed);                                                         \
    }
CHANGER(register, API(RegisterDomainRequest), name)
CHANGER(update, API(UpdateDomainRequest), name)
CHANGER(failover, API(FailoverDomainRequest), domain_name)
CHANGER(deprecate, API(DeprecateDomainRequest), name)
CHANGER(delete, API(DeleteDomainRequest), name)
CHANGER(async, ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest), domain)
