/* listen.c - listeners to the domains on a loop: shards, task lists. See domains.h.
 *
 * A listener is notified of each change without a yield after the loop's cache has it, so it knows
 * at any moment which version it has handled. What it missed while it was not there (its shard had
 * no owner) it reads from the log. A failover is recognized by its failover notification version,
 * which is the version before the change, taken when the failover version rose (decide/move.c,
 * decide/replicated.c); so each one is notified once, in order. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/owner/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "route/route.h"

#define REACH_WAIT  NS_PER_S /* how long to wait for a version */
#define POLL_PAUSE  (50 * NS_PER_MS)
#define MISSED_PAGE 500

struct loop_listeners *
loop_listeners_new(unsigned count)
{
    check(count > 0);
    struct loop_listeners *listeners_by_loop = memory_zalloc(count, sizeof *listeners_by_loop);
    for (unsigned i = 0; i < count; i++) {
        list_init(&listeners_by_loop[i].listeners);
        fiber_cond_init(&listeners_by_loop[i].grew);
    }
    return listeners_by_loop;
}

static bool
is_failover(const STORED(DomainRecord) *record, uint64_t version)
{
    return (uint64_t)record->failover_notification_version + 1 == version;
}

void
loop_listeners_notify(struct domains *domains, unsigned index, const struct change *change)
{
    struct domain_cache *domain_cache = &domains->domain_caches[index];
    struct domain *domain = change->domain;
    bool is_known = domain != NULL && domain_cache_find_record(domain_cache, domain->id) != NULL;
    check(loop_index(loop_self()) == index);
    check(domain == NULL || change->entity_count == 0);
    change_enter(change, domain_cache);
    check(domain_cache->notification_version >= change->version);
    struct domain_notification notification = {
        .version = change->version,
        .domain = domain,
        .is_failover =
            change->entity_count > 0 || (is_known && is_failover(domain->record, change->version)),
        .entities = change->entities,
        .entity_count = change->entity_count,
    };
    list_each_safe(node, &domains->listeners_by_loop[index].listeners) {
        struct domain_listener *listener = list_entry(node, struct domain_listener, node);
        listener->on_change(listener, &notification);
    }
    fiber_cond_broadcast(&domains->listeners_by_loop[index].grew);
}

void
domains_listen(struct domains *domains, struct domain_listener *listener)
{
    check(listener->on_change != NULL);
    list_push_back(&domains->listeners_by_loop[loop_index(loop_self())].listeners, &listener->node);
}

void
domains_unlisten(struct domain_listener *listener)
{
    list_remove(&listener->node);
}

/* --- reaching a version -------------------------------------------------------------------------
 */

/* On loop 0, for a fiber of another. */
struct log_query {
    struct domains *domains;
    uint64_t version;
    struct arena *arena;
    struct domain_changes changes;
    struct error *err;
};

static void
read_others_there(void *argument)
{
    struct log_query *log_query = argument;
    struct domains *domains = log_query->domains;
    uint64_t guard = 0;
    if (domains->durable >= log_query->version)
        return;
    log_query->err = domains_read_others(domains, log_query->arena, &guard);
    if (log_query->err == NULL && guard < log_query->version)
        log_query->err =
            error_new(log_query->arena, ERR_CORRUPT,
                      "version %llu of the domains was handled, but the store has only %llu",
                      (unsigned long long)log_query->version, (unsigned long long)guard);
}

struct error *
domains_reach(struct domains *domains, uint64_t version, struct arena *arena)
{
    struct loop_listeners *loop_listeners = &domains->listeners_by_loop[loop_index(loop_self())];
    int64_t latest = clock_monotonic() + REACH_WAIT;
    while (domains_notification_version(domains) < version) {
        probe("domain_version_awaited");
        struct log_query log_query = {.domains = domains, .version = version, .arena = arena};
        struct error *err = route_to_domains(read_others_there, &log_query, arena);
        err = err != NULL ? err : log_query.err;
        if (err != NULL)
            return err;
        if (domains_notification_version(domains) >= version)
            break;
        if (clock_monotonic() >= latest)
            return error_new(arena, ERR_UNAVAILABLE,
                             "Version %llu of the domains is not known here yet, try again.",
                             (unsigned long long)version);
        enum wake wake = fiber_cond_wait(&loop_listeners->grew, clock_monotonic() + POLL_PAUSE);
        if (wake == WAKE_CANCELLED)
            return wake_error(wake, arena, "waiting for a version of the domains");
    }
    return NULL;
}

/* --- what was missed ----------------------------------------------------------------------------
 */

static void
read_there(void *argument)
{
    struct log_query *log_query = argument;
    log_query->err = domains_read_log(log_query->domains, log_query->version, MISSED_PAGE,
                                      clock_monotonic(), log_query->arena, &log_query->changes);
}

static void
show_missed(const struct missed_domain_visitor *visitor, const STORED(DomainRecord) *record)
{
    check(record->n_drains > 0);
    struct domain *domain = domain_from_record(record);
    visitor->on_domain(visitor->context, domain);
    domain_drop(domain);
}

/* Shows what a page has up to `known`, and counts failovers. A domain that one of these changes
 * created had no runs. */
static uint64_t
show_page(const struct domain_changes *changes, uint64_t known,
          const struct missed_domain_visitor *visitor)
{
    uint64_t failovers = 0;
    for (size_t i = 0; i < changes->count && changes->version[i] <= known; i++) {
        const STORED(DomainChange) *change = changes->change[i];
        bool is_new = change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
        bool is_gone = change->record == NULL ||
                       change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
        if (change->record == NULL || (!is_new && is_failover(change->record, changes->version[i])))
            failovers++;
        if (!is_gone && change->record->n_drains > 0)
            show_missed(visitor, change->record);
    }
    return failovers;
}

struct error *
domains_read_missed(struct domains *domains, uint64_t after,
                    const struct missed_domain_visitor *visitor, struct arena *arena,
                    uint64_t *reached, uint64_t *failovers)
{
    *reached = after;
    *failovers = 0;
    while (*reached < domains_notification_version(domains)) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct log_query log_query = {.domains = domains, .version = *reached, .arena = page};
        struct error *err = route_to_domains(read_there, &log_query, page);
        err = err != NULL ? err : log_query.err;
        if (err != NULL)
            return error_copy(arena, err);
        uint64_t known = domains_notification_version(domains);
        const struct domain_changes *changes = &log_query.changes;
        *failovers += show_page(changes, known, visitor);
        /* Loop 0 may know more than this loop, which is notified of the rest as it comes. */
        bool is_all = changes->count < MISSED_PAGE;
        uint64_t last = is_all ? changes->newest : changes->version[changes->count - 1];
        check(last > *reached && last <= changes->newest);
        *reached = last < known ? last : known;
        probe("domain_changes_caught_up");
    }
    return NULL;
}
