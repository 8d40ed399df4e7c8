/* change.c - requests of clients: register, update, failover, deprecate, delete, and those of
 * operators. See domains.h.
 *
 * They differ only in the pure function that decides (decide.h), so all of them go one way
 * (write.c): a question to the owner, which is the client's request, and an answer with the record
 * that it left. */
#include "domain/owner/inside.h"
#include "wire/presence.h"

struct error *
domains_ask(struct domains *domains, const struct route_question *question, const void *request,
            struct arena *arena, void *answer)
{
    return route_ask(owner_of_domains(), &domains->service, question, request, arena, answer);
}

struct error *
domains_ask_for_change(struct domains *domains, const struct route_question *question,
                       const void *request, struct arena *arena, struct domain **changed)
{
    INTERNAL(ChangedDomain) answer = INTERNAL_VALUE(CHANGED_DOMAIN__INIT);
    struct error *err = domains_ask(domains, question, request, arena, &answer);
    if (err != NULL || changed == NULL)
        return err;
    *changed = NULL;
    return answer.record.len == 0
               ? NULL
               : domain_decode(presence_read_bytes(answer.record), arena, changed);
}

struct error *
change_request_serve(struct change_request *change_request, INTERNAL(ChangedDomain) * answer)
{
    change_request_run(change_request);
    struct domain *changed = change_request->changed;
    if (change_request->err == NULL && changed != NULL)
        answer->record = presence_make_bytes(arena_slice(change_request->arena, changed->bytes));
    domain_drop(changed);
    change_request->changed = NULL;
    return change_request->err;
}

/* Defines the call of the pure function (decide_…, which decide_and_submit in write.c makes), what
 * serves the question, its row, and the function that callers see: domains_register,
 * domains_update, domains_failover, domains_deprecate, domains_delete …
 *
 * Lost: a client asks again, as after a crash: it hears that the domain is there already, finds
 * that nothing changes, or makes one more change that leaves the same settings. Never twice: it
 * would be one more change, perhaps over one that came between. */
#define CHANGER(verb, Request, type, name_field)                                                   \
    static struct error *decide_##verb(                                                            \
        const struct change_request *change_request, const struct domain_rules *rules,             \
        const struct domain_moment *moment, struct domain_decision *decision)                      \
    {                                                                                              \
        const struct domain *current =                                                             \
            domain_cache_find_name(&change_request->domains->newest, change_request->name);        \
        return domain_decide_##verb(current, (const Request *)change_request->request, rules,      \
                                    moment, change_request->arena, decision);                      \
    }                                                                                              \
    static struct error *serve_##verb(void *domains, struct owner owner, const void *argument,     \
                                      struct arena *arena, void *answer)                           \
    {                                                                                              \
        const Request *request = argument;                                                         \
        struct change_request change_request = {.domains = domains,                                \
                                                .name = request->name_field,                       \
                                                .request = request,                                \
                                                .decide = decide_##verb,                           \
                                                .arena = arena};                                   \
        return change_request_serve(&change_request, answer);                                      \
    }                                                                                              \
    static const struct route_question verb##_question = {                                         \
        .name = "domains." #verb,                                                                  \
        .request = (type),                                                                         \
        .answer = INTERNAL_TYPE(changed_domain),                                                   \
        .serve = serve_##verb,                                                                     \
    };                                                                                             \
    struct error *domains_##verb(struct domains *domains, const Request *request,                  \
                                 struct arena *arena, struct domain **changed)                     \
    {                                                                                              \
        return domains_ask_for_change(domains, &verb##_question, request, arena, changed);         \
    }
CHANGER(register, API(RegisterDomainRequest), API_TYPE(register_domain_request), name)
CHANGER(update, API(UpdateDomainRequest), API_TYPE(update_domain_request), name)
CHANGER(failover, API(FailoverDomainRequest), API_TYPE(failover_domain_request), domain_name)
CHANGER(deprecate, API(DeprecateDomainRequest), API_TYPE(deprecate_domain_request), name)
CHANGER(delete, API(DeleteDomainRequest), API_TYPE(delete_domain_request), name)
CHANGER(async, ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest),
        ADMIN_TYPE(update_domain_async_workflow_configuraton_request), domain)
