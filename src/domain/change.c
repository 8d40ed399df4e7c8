/* change.c - register, update, deprecate: decided on loop 0, in one step without a yield. See
 * domains.h.
 *
 * The three differ only in the pure function that decides, so there is one way for all: a wish. A
 * refusal was decided on state that may not be durable yet ("already exists", of a domain whose
 * commit may still fail), so it waits as well. */
#include "base/check.h"
#include "domain/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "route/route.h"
#include "store/key.h"

#define ATTEMPTS_MAX 10 /* at a change that other hosts keep fencing */

struct wish {
    struct domains *domains;
    const char *name; /* of the domain */
    const void *request;
    struct error *(*decide)(const struct domain *current, const void *request,
                            const struct domain_rules *rules, const struct domain_moment *moment,
                            struct arena *arena, STORED(DomainRecord) **next);
    struct arena *arena;
    struct domain *changed; /* the answer, one reference */
    struct error *err;
};

static struct domain_rules
rules_now(const struct domains *domains, const char *name, struct arena *arena)
{
    const struct dynamic *dynamic = domains->options.dynamic;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = name;
    return (struct domain_rules){
        .group = domains->options.group,
        .retention_days_min = dynamic_integer(dynamic, DYNAMIC_MIN_RETENTION_DAYS, &filter),
        .retention_days_max = dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, &filter),
        .name_length_max = dynamic_integer(dynamic, DYNAMIC_DOMAIN_NAME_LENGTH, &filter),
        .bad_binaries_max = dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, &filter),
        .required_data_keys =
            dynamic_list(dynamic, DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, &filter, arena),
        .is_catching_up = domains->options.is_catching_up,
        .is_admin_protected = dynamic_flag(dynamic, DYNAMIC_ADMIN_PROTECTION, &filter),
        .admin_token = dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, &filter),
    };
}

static struct batch *
batch_of(const struct domain *domain, struct arena *arena)
{
    struct batch *batch =
        batch_new(arena, PARTITION_OF_DOMAINS, (uint64_t)domain->record->notification_version);
    struct key_writer by_id, by_name;
    key_begin(&by_id, arena);
    key_text(&by_id, slice_text(domain->id));
    key_begin(&by_name, arena);
    key_text(&by_name, slice_text(domain->name));
    batch_put(batch, ROW_DOMAIN, key_end(&by_id), domain->bytes);
    batch_put(batch, ROW_DOMAIN_NAME, key_end(&by_name), slice_text(domain->id));
    return batch;
}

/* Decides, adopts and submits. No yield. *change is NULL after a refusal. */
static struct error *
decide_and_submit(struct wish *wish, struct change **change)
{
    struct domains *domains = wish->domains;
    struct domain_rules rules = rules_now(domains, wish->name, wish->arena);
    struct domain_moment moment = {.now = clock_wall(), .fresh = uuid_new_v7()};
    STORED(DomainRecord) *next = NULL;
    *change = NULL;
    struct error *refusal = wish->decide(book_find_name(&domains->newest, wish->name),
                                         wish->request, &rules, &moment, wish->arena, &next);
    if (refusal != NULL)
        return refusal;
    next->notification_version = (int64_t)(writer_guard(domains->writer) + 1);
    struct domain *domain = domain_from_record(next);
    book_enter(&domains->newest, domain); /* memory first: the next wish sees it */
    *change = change_new(domains, domain);
    domain_drop(domain);
    (*change)->references++; /* ours, beside the one of the way to the loops */
    (*change)->ticket = writer_submit(domains->writer, batch_of(domain, wish->arena));
    list_push_back(&domains->undurable, &(*change)->node);
    return NULL;
}

/* Waits for a ticket of the writer, which stays while we do. */
static struct error *
wait_durable(struct domains *domains, ticket_t ticket, struct arena *arena)
{
    latch_add(&domains->writer_users, 1);
    struct error *err = writer_wait(domains->writer, ticket, arena);
    latch_done(&domains->writer_users);
    return err;
}

static struct error *
wait_ready(struct domains *domains, struct arena *arena)
{
    while (domains->writer == NULL || domains->is_reloading) {
        if (domains->is_closing)
            return error_new(arena, ERR_UNAVAILABLE, "The server is shutting down.");
        enum wake wake = fiber_cond_wait(&domains->ready, NEVER);
        if (wake != WAKE_READY)
            return wake_error(wake, arena, "waiting for the domains to be read");
    }
    return NULL;
}

/* Waits until all loops have it; then the caller may tell the world. */
static struct error *
wait_told(struct change *change, struct arena *arena)
{
    while (change->untold > 0) {
        enum wake wake = fiber_cond_wait(&change->told, NEVER);
        if (wake != WAKE_READY)
            return wake_error(wake, arena, "telling a change of a domain to all loops");
    }
    return NULL;
}

/* One try. ERR_FENCED: try again on newer state. */
static struct error *
wish_try(struct wish *wish)
{
    struct domains *domains = wish->domains;
    struct error *err = wait_ready(domains, wish->arena);
    if (err != NULL)
        return err;
    if (!writer_has_room(domains->writer))
        return error_new(wish->arena, ERR_SERVICE_BUSY,
                         "Too many domain changes are waiting, try again.");

    struct change *change = NULL;
    struct error *refusal = NULL;
    NO_YIELD
    {
        refusal = decide_and_submit(wish, &change);
    }
    ticket_t ticket = change != NULL ? change->ticket : writer_newest(domains->writer);
    err = wait_durable(domains, ticket, wish->arena);
    if (err == NULL && change != NULL)
        err = wait_told(change, wish->arena);
    if (err == NULL && change != NULL)
        wish->changed = domain_take(change->domain);
    if (change != NULL)
        change_drop(change);
    return err != NULL ? err : refusal;
}

static void
wish_run(void *argument)
{
    struct wish *wish = argument;
    for (int attempt = 1;; attempt++) {
        wish->err = wish_try(wish);
        bool is_fenced = wish->err != NULL && wish->err->kind == ERR_FENCED;
        if (!is_fenced || attempt == ATTEMPTS_MAX)
            return;
        mark("domain_change_fenced");
        domains_start_reload(wish->domains);
    }
}

static struct error *
wish_grant(struct wish *wish, struct domain **changed)
{
    struct error *err = route_to_domains(wish_run, wish, wish->arena);
    if (err == NULL)
        err = wish->err;
    if (changed != NULL)
        *changed = wish->changed;
    else
        domain_drop(wish->changed);
    return err;
}

/* The pure functions with their request as a plain pointer, so that one table row fits all. */
#define DECIDER(verb, Request)                                                                     \
    static struct error *decide_##verb(                                                            \
        const struct domain *current, const void *request, const struct domain_rules *rules,       \
        const struct domain_moment *moment, struct arena *arena, STORED(DomainRecord) **next)      \
    {                                                                                              \
        return domain_decide_##verb(current, (const API(Request) *)request, rules, moment, arena,  \
                                    next);                                                         \
    }
DECIDER(register, RegisterDomainRequest)
DECIDER(update, UpdateDomainRequest)
DECIDER(deprecate, DeprecateDomainRequest)

struct error *
domains_register(struct domains *domains, const API(RegisterDomainRequest) *request,
                 struct arena *arena, struct domain **changed)
{
    struct wish wish = {domains, request->name, request, decide_register, arena, NULL, NULL};
    return wish_grant(&wish, changed);
}

struct error *
domains_update(struct domains *domains, const API(UpdateDomainRequest) *request,
               struct arena *arena, struct domain **changed)
{
    struct wish wish = {domains, request->name, request, decide_update, arena, NULL, NULL};
    return wish_grant(&wish, changed);
}

struct error *
domains_deprecate(struct domains *domains, const API(DeprecateDomainRequest) *request,
                  struct arena *arena, struct domain **changed)
{
    struct wish wish = {domains, request->name, request, decide_deprecate, arena, NULL, NULL};
    return wish_grant(&wish, changed);
}
