/* write.c - the one way to the store: decide, adopt and submit without a yield, then wait. See
 * domains.h.
 *
 * A request is decided by a pure function, and requests differ only in that function. A refusal was
 * decided on state that may not be durable yet ("already exists", of a domain whose commit may
 * still fail), so it waits as well. So does a request that changes nothing; its writer also
 * confirms that no other host has written meanwhile. Writes that change no domain (positions, dead
 * letters) go through the same writer and leave the guard as it is. */
#include "base/check.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"

#define ATTEMPTS_MAX 10 /* at a write that other hosts keep fencing */

static struct archival_rule
archival_now(struct archival_rule rule, const struct dynamic *dynamic, enum dynamic_key key)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    rule.is_enabled =
        rule.is_enabled && strcasecmp(dynamic_text(dynamic, key, &filter), "enabled") == 0;
    return rule;
}

static struct domain_rules
rules_now(const struct domains *domains, const char *name, struct arena *arena)
{
    const struct dynamic *dynamic = domains->options.dynamic;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = name;
    const struct cluster_group *group = domains->options.group;
    if (dynamic_flag(dynamic, DYNAMIC_NEW_INITIAL_VERSION, &filter))
        group = cluster_group_migrate(group, arena);
    return (struct domain_rules){
        .group = group,
        .retention_days_min = dynamic_integer(dynamic, DYNAMIC_MIN_RETENTION_DAYS, &filter),
        .retention_days_max = dynamic_integer(dynamic, DYNAMIC_MAX_RETENTION_DAYS, &filter),
        .name_length_max = dynamic_integer(dynamic, DYNAMIC_DOMAIN_NAME_LENGTH, &filter),
        .attributes_max = dynamic_integer(dynamic, DYNAMIC_ATTRIBUTES_MAX, &filter),
        .bad_binaries_max = dynamic_integer(dynamic, DYNAMIC_MAX_BAD_BINARIES, &filter),
        .required_data_keys =
            dynamic_list(dynamic, DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, &filter, arena),
        .cool_down = dynamic_duration(dynamic, DYNAMIC_FAILOVER_COOL_DOWN, &filter),
        .failover_timeout_max = dynamic_integer(dynamic, DYNAMIC_FAILOVER_TIMEOUT_MAX, &filter),
        .is_locked_down = dynamic_flag(dynamic, DYNAMIC_LOCKDOWN, &filter),
        .is_catching_up = domains_are_recovering(domains),
        .is_admin_protected = dynamic_flag(dynamic, DYNAMIC_ADMIN_PROTECTION, &filter),
        .admin_token = dynamic_text(dynamic, DYNAMIC_ADMIN_TOKEN, &filter),
        .history_archival = archival_now(domains->options.history_archival, dynamic,
                                         DYNAMIC_HISTORY_ARCHIVAL_STATUS),
        .visibility_archival = archival_now(domains->options.visibility_archival, dynamic,
                                            DYNAMIC_VISIBILITY_ARCHIVAL_STATUS),
    };
}

/* --- submitting: no yields ----------------------------------------------------------------------
 */

static void
change_submit(struct change *change, struct batch *batch)
{
    struct domains *domains = change->domains;
    const struct list *last = domains->undurable.prev;
    check(!domains->is_reloading && list_is_empty(&change->node));
    check(change->loops_left == domains->loops && batch->guard_next == change->version);
    change_enter(change, &domains->newest); /* memory first: the next request sees it */
    change->ticket = writer_submit(domains->writer, batch);
    check(change->version == writer_guard(domains->writer));
    check(last == &domains->undurable ||
          list_entry(last, struct change, node)->ticket < change->ticket);
    list_push_back(&domains->undurable, &change->node);
    domains_check(domains);
}

static struct change *
submit_entities(struct change_request *change_request, const struct domain_decision *decision)
{
    struct domains *domains = change_request->domains;
    uint64_t version = writer_guard(domains->writer) + 1;
    check(decision->entity_count <= ENTITIES_PER_CHANGE);
    check(decision->next == NULL && decision->failover == NULL);
    struct change *change =
        change_new_entities(domains, decision->entities, decision->entity_count, version);
    change->references++;
    struct batch *batch = batch_new(change_request->arena, PARTITION_OF_DOMAINS, version);
    batch_add_entities(batch, change, change_request->source != NULL);
    if (domains->options.refresh_interval == 0)
        follow_trim(domains, batch);
    change_submit(change, batch);
    return change;
}

/* One commit with all that the decision means. */
static struct change *
submit_decision(struct change_request *change_request, const struct domain_decision *decision)
{
    struct domains *domains = change_request->domains;
    uint64_t version = writer_guard(domains->writer) + 1;
    check(decision->entity_count == 0);
    check(decision->next->notification_version < (int64_t)version);
    decision->next->notification_version = (int64_t)version;
    struct domain *domain = domain_from_record(decision->next);
    domain_mark(domains, domain, decision->is_recovered);
    check(decision->failover == NULL || strcmp(decision->failover->domain_id, domain->id) == 0);
    check(domain_cache_is_deleted(domain) == (decision->what == DOMAIN_DELETED));
    struct change *change = change_new(domains, domain, version);
    domain_drop(domain);
    change->references++; /* ours; the other one is for the way to the loops */

    struct batch *batch = batch_new(change_request->arena, PARTITION_OF_DOMAINS, version);
    batch_add_change(batch, change, decision, change_request->source != NULL);
    if (!change_request->reports_end)
        batch_add_left(batch, domain_cache_find_record(&domains->newest, change->domain->id),
                       change->domain, domains->options.group, clock_wall());
    if (change_request->dead_letter != 0)
        batch_delete(batch, ROW_DOMAIN_DEAD_LETTER,
                     key_of_number(change_request->dead_letter, change_request->arena));
    if (change_request->add != NULL)
        change_request->add(change_request, batch);
    if (domains->options.refresh_interval == 0)
        follow_trim(domains, batch);
    change_submit(change, batch);
    return change;
}

/* Decides, adopts and submits. *change is NULL after a refusal and when nothing changes. */
static struct error *
decide_and_submit(struct change_request *change_request, struct domain_decision *decision,
                  struct change **change)
{
    struct domains *domains = change_request->domains;
    struct domain_rules rules = rules_now(domains, change_request->name, change_request->arena);
    struct domain_moment moment = {.now = clock_wall(),
                                   .fresh = uuid_new_v7(),
                                   .notification_version = writer_guard(domains->writer)};
    struct error *refusal = change_request->decide(change_request, &rules, &moment, decision);
    if (refusal != NULL)
        return refusal;
    check((decision->next != NULL) ==
          (decision->what != DOMAIN_UNCHANGED && decision->what != ENTITIES_CHANGED));
    if (decision->what != DOMAIN_UNCHANGED) {
        *change = decision->what == ENTITIES_CHANGED ? submit_entities(change_request, decision)
                                                     : submit_decision(change_request, decision);
        return NULL;
    }
    struct domain *current = domain_cache_find_name(&domains->newest, change_request->name);
    change_request->changed = current == NULL ? NULL : domain_take(current);
    return NULL;
}

/* --- waiting ------------------------------------------------------------------------------------
 */

/* Waits for a ticket of the writer, which stays while we do. */
static struct error *
wait_durable(struct domains *domains, ticket_t ticket, struct arena *arena)
{
    check(ticket <= writer_newest(domains->writer));
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
    if (!writer_has_room(domains->writer))
        return error_new(arena, ERR_SERVICE_BUSY,
                         "Too many domain changes are waiting, try again.");
    return NULL;
}

/* Waits until all loops have it; only then may the caller answer. */
static struct error *
wait_known_everywhere(struct change *change, struct arena *arena)
{
    while (change->loops_left > 0) {
        enum wake wake = fiber_cond_wait(&change->known_everywhere, NEVER);
        if (wake != WAKE_READY)
            return wake_error(wake, arena, "telling a change of a domain to all loops");
    }
    return NULL;
}

struct error *
domains_wait_newest(struct domains *domains, struct arena *arena)
{
    struct error *err = wait_ready(domains, arena);
    return err != NULL ? err : wait_durable(domains, writer_newest(domains->writer), arena);
}

/* --- both together ------------------------------------------------------------------------------
 */

/* After a failed try: may it be tried once more, on newer state? */
static bool
may_try_again(struct domains *domains, const struct error *err, int attempt)
{
    if (err == NULL || err->kind != ERR_FENCED || attempt >= ATTEMPTS_MAX)
        return false;
    probe("domain_change_fenced");
    domains_start_reload(domains);
    return true;
}

/* What has to be durable before "nothing changes" is answered: what it was decided on, and where
 * other hosts write too, that it still holds. A host that is behind would answer that a domain is
 * active in a cluster that it has just left. Of a message of another cluster nobody is answered. */
static ticket_t
confirm_unchanged(const struct change_request *change_request)
{
    struct domains *domains = change_request->domains;
    bool is_enough = change_request->source != NULL || domains->options.refresh_interval == 0;
#ifdef CADENZA_FAULT_unchanged_unconfirmed
    is_enough = true;
#endif
    return is_enough ? writer_newest(domains->writer) : writer_confirm(domains->writer);
}

/* One try. ERR_FENCED: try again on newer state. */
static struct error *
change_request_try(struct change_request *change_request, struct domain_decision *decision)
{
    struct domains *domains = change_request->domains;
    check(change_request->changed == NULL);
    struct error *err = wait_ready(domains, change_request->arena);
    if (err != NULL)
        return err;
    struct change *change = NULL;
    struct error *refusal = NULL;
    ticket_t ticket = 0;
    NO_YIELD
    {
        refusal = decide_and_submit(change_request, decision, &change);
        if (change == NULL)
            ticket = refusal != NULL ? writer_newest(domains->writer)
                                     : confirm_unchanged(change_request);
    }
    check(change == NULL || refusal == NULL);
    bool is_unchanged = change == NULL && refusal == NULL;
    ticket = change != NULL ? change->ticket : ticket;
    err = wait_durable(domains, ticket, change_request->arena);
    if (is_unchanged && err != NULL && err->kind == ERR_FENCED)
        probe("unchanged_domain_was_old");
    if (err == NULL && change != NULL)
        err = wait_known_everywhere(change, change_request->arena);
    if (err == NULL && change != NULL && change->domain != NULL)
        change_request->changed = domain_take(change->domain);
    if (change != NULL)
        change_drop(change);
    return err != NULL ? err : refusal;
}

static void
delete_dead_letter(void *context, struct batch *batch)
{
    const struct change_request *change_request = context;
    batch_delete(batch, ROW_DOMAIN_DEAD_LETTER,
                 key_of_number(change_request->dead_letter, batch->arena));
}

/* What else a request writes when it has not changed the domain. */
static struct error *
change_request_finish(struct change_request *change_request, const struct domain_decision *decision)
{
    struct error *err = NULL;
    bool is_unchanged = decision->what == DOMAIN_UNCHANGED;
    if (decision->failover != NULL && (is_unchanged || decision->failover->is_superseded))
        err = failovers_enter_late(change_request->domains, decision->failover,
                                   change_request->arena);
    if (err == NULL && is_unchanged && change_request->dead_letter != 0)
        err = domains_write(change_request->domains, delete_dead_letter, change_request,
                            change_request->arena);
    return err;
}

void
change_request_run(struct change_request *change_request)
{
    struct domain_decision decision;
    check(route_is_here(owner_of_domains()));
    /* Only messages of other clusters become dead letters. */
    check(change_request->dead_letter == 0 || change_request->source != NULL);
    for (int attempt = 1;; attempt++) {
        decision = (struct domain_decision){0};
        change_request->err = change_request_try(change_request, &decision);
        if (!may_try_again(change_request->domains, change_request->err, attempt))
            break;
        domain_drop(change_request->changed); /* of a decision that did not become durable */
        change_request->changed = NULL;
    }
    if (change_request->err == NULL)
        change_request->err = change_request_finish(change_request, &decision);
    if (change_request->err == NULL && change_request->source != NULL)
        probe(decision.what == DOMAIN_UNCHANGED ? "domain_message_changes_nothing"
                                                : "domain_message_applied");
}

/* A partition that was never written has guard 0 and cannot keep it: then, and only then, a write
 * that changes no domain counts as the first one. */
static ticket_t
submit_beside(struct domains *domains, void (*fill)(void *context, struct batch *batch),
              void *context, struct arena *arena)
{
    uint64_t guard = writer_guard(domains->writer);
    struct batch *batch = batch_new(arena, PARTITION_OF_DOMAINS, guard == 0 ? 1 : guard);
    fill(context, batch);
    if (guard > 0)
        return writer_submit(domains->writer, batch);
    struct change *change = change_new(domains, NULL, 1);
    change_submit(change, batch);
    return change->ticket;
}

struct error *
domains_write(struct domains *domains, void (*fill)(void *context, struct batch *batch),
              void *context, struct arena *arena)
{
    check(route_is_here(owner_of_domains()));
    struct error *err = NULL;
    for (int attempt = 1;; attempt++) {
        ticket_t ticket = 0;
        err = wait_ready(domains, arena);
        if (err != NULL)
            return err;
        NO_YIELD
        {
            ticket = submit_beside(domains, fill, context, arena);
        }
        err = wait_durable(domains, ticket, arena);
        if (!may_try_again(domains, err, attempt))
            return err;
    }
}
