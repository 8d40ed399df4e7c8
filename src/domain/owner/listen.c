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
#include "route/owner.h"

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
    check(route_place_here() == index);
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
    list_push_back(&domains->listeners_by_loop[route_place_here()].listeners, &listener->node);
}

void
domains_unlisten(struct domain_listener *listener)
{
    list_remove(&listener->node);
}

/* --- reaching a version -------------------------------------------------------------------------
 */

static struct error *
serve_reach(void *context, struct owner owner, const void *argument, struct arena *arena,
            void *answer)
{
    struct domains *domains = context;
    const INTERNAL(DomainsVersion) *wanted = argument;
    uint64_t guard = 0;
    if (domains->durable >= wanted->version)
        return NULL;
    struct error *err = domains_read_others(domains, arena, &guard);
    if (err != NULL || guard >= wanted->version)
        return err;
    return error_new(arena, ERR_CORRUPT,
                     "version %llu of the domains was handled, but the store has only %llu",
                     (unsigned long long)wanted->version, (unsigned long long)guard);
}

/* Lets the owner look at the store. Lost: it is asked again until there is no more time. Twice: it
 * looks once more. */
static const struct route_question reach_question = {
    .name = "domains.reach",
    .request = INTERNAL_TYPE(domains_version),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_reach,
    .may_come_twice = true,
};

static struct error *
ask_to_reach(struct domains *domains, uint64_t version, struct arena *arena)
{
    INTERNAL(DomainsVersion) wanted = INTERNAL_VALUE(DOMAINS_VERSION__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    wanted.version = version;
    return domains_ask(domains, &reach_question, &wanted, arena, &answer);
}

struct error *
domains_reach(struct domains *domains, uint64_t version, struct arena *arena)
{
    struct loop_listeners *loop_listeners = &domains->listeners_by_loop[route_place_here()];
    int64_t latest = clock_monotonic() + REACH_WAIT;
    while (domains_notification_version(domains) < version) {
        probe("domain_version_awaited");
        struct error *err = ask_to_reach(domains, version, arena);
        if (err != NULL && err->kind != ERR_UNAVAILABLE)
            return err;
        if (domains_notification_version(domains) >= version)
            break;
        if (clock_monotonic() >= latest)
            return err != NULL
                       ? err
                       : error_new(arena, ERR_UNAVAILABLE,
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

static struct error *
serve_read_log(void *domains, struct owner owner, const void *argument, struct arena *arena,
               void *result)
{
    const INTERNAL(DomainLogQuery) *query = argument;
    INTERNAL(DomainLogPage) *page = result;
    struct domain_changes changes;
    struct error *err = domains_read_log(domains, query->after, query->count_max, clock_monotonic(),
                                         arena, &changes);
    if (err != NULL)
        return err;
    page->n_versions = page->n_changes = changes.count;
    page->versions = changes.version;
    page->changes = (STORED(DomainChange) **)changes.change;
    page->newest = changes.newest;
    return NULL;
}

/* Reads. Lost: the shard is taken again, which reads again; at the start of a process, too. */
static const struct route_question read_log_question = {
    .name = "domains.read_log",
    .request = INTERNAL_TYPE(domain_log_query),
    .answer = INTERNAL_TYPE(domain_log_page),
    .serve = serve_read_log,
    .may_come_twice = true,
};

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
show_page(const INTERNAL(DomainLogPage) * page, uint64_t known,
          const struct missed_domain_visitor *visitor)
{
    uint64_t failovers = 0;
    for (size_t i = 0; i < page->n_changes && page->versions[i] <= known; i++) {
        const STORED(DomainChange) *change = page->changes[i];
        bool is_new = change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_CREATE);
        bool is_gone = change->record == NULL ||
                       change->operation == ADMIN_VALUE(DOMAIN_OPERATION__DOMAIN_OPERATION_DELETE);
        if (change->record == NULL || (!is_new && is_failover(change->record, page->versions[i])))
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
        scoped(arena_drop) struct arena *room = arena_new(0);
        INTERNAL(DomainLogQuery) query = INTERNAL_VALUE(DOMAIN_LOG_QUERY__INIT);
        INTERNAL(DomainLogPage) page = INTERNAL_VALUE(DOMAIN_LOG_PAGE__INIT);
        query.after = *reached;
        query.count_max = MISSED_PAGE;
        struct error *err = domains_ask(domains, &read_log_question, &query, room, &page);
        if (err != NULL)
            return error_copy(arena, err);
        uint64_t known = domains_notification_version(domains);
        check(page.n_versions == page.n_changes);
        *failovers += show_page(&page, known, visitor);
        /* The owner may know more than this loop, which is notified of the rest as it comes. */
        bool is_all = page.n_changes < MISSED_PAGE;
        uint64_t last = is_all ? page.newest : page.versions[page.n_changes - 1];
        check(last > *reached && last <= page.newest);
        *reached = last < known ? last : known;
        probe("domain_changes_caught_up");
    }
    return NULL;
}
