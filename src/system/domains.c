/* domains.c - the domains of system workflows: local ones with ids that everybody knows.
 *
 * They are registered like any other, when the server starts and does not have them yet; the owner
 * of domains knows which ids their names have. */
#include "domain/domains.h"

#include "base/check.h"
#include "config/dynamic.h"
#include "system/system.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RETENTION_DAYS 7

static struct error *
register_one(struct domains *domains, const struct dynamic *dynamic, const char *name,
             struct arena *arena)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    if (domains_find_name(domains, name) != NULL)
        return NULL;
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = (char *)name;
    request->description = "Cadence internal system domain";
    request->workflow_execution_retention_period =
        presence_make_duration(arena, (int64_t)RETENTION_DAYS * 24 * 3600);
    request->security_token = (char *)dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, &filter);
    struct error *err = domains_register(domains, request, arena, NULL);
    if (err != NULL && err->kind == ERR_DOMAIN_ALREADY_EXISTS)
        return NULL;
    /* If no answer came, it may have been done all the same. */
    return domains_find_name(domains, name) != NULL ? NULL : err;
}

struct error *
system_register_domains(struct domains *domains, const struct dynamic *dynamic, struct arena *arena)
{
    static const char *const names[] = {"cadence-system", "cadence-batcher", "cadence-shadower"};
    for (size_t i = 0; i < array_length(names); i++) {
        struct error *err = register_one(domains, dynamic, names[i], arena);
        if (err != NULL)
            return error_wrap(err, "domain %s", names[i]);
    }
    return NULL;
}
