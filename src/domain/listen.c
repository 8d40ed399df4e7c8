/* listen.c - who follows the domains on a loop: shards, task lists. See domains.h.
 *
 * A listener is told each change in the same breath as the loop's book gets it, so it can say of
 * any moment which version it has handled. What it missed while it was not there (nobody owned the
 * shard) it reads from the log. A failover is known by its failover notification version: that is
 * the version before the change, taken when the failover version rose (decide_move.c,
 * decide_replicated.c); so each is told once, in order. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "route/route.h"

#define REACH_WAIT  NS_PER_S /* so long a version is waited for */
#define LOOK_PAUSE  (50 * NS_PER_MS)
#define MISSED_PAGE 500

struct audience *
audiences_new(unsigned count)
{
    struct audience *audiences = memory_zalloc(count, sizeof *audiences);
    for (unsigned i = 0; i < count; i++) {
        list_init(&audiences[i].listeners);
        fiber_cond_init(&audiences[i].grew);
    }
    return audiences;
}

static bool
is_failover(const STORED(DomainRecord) *record, uint64_t version)
{
    return (uint64_t)record->failover_notification_version + 1 == version;
}

void
audience_tell(struct domains *domains, unsigned index, const struct change *change)
{
    struct book *book = &domains->books[index];
    struct domain *domain = change->domain;
    bool is_known = domain != NULL && book_find_record(book, domain->id) != NULL;
    check(loop_index(loop_self()) == index);
    change_enter(change, book);
    struct domain_news news = {
        .version = change->version,
        .domain = domain,
        .is_failover =
            change->entity_count > 0 || (is_known && is_failover(domain->record, change->version)),
        .entities = change->entities,
        .entity_count = change->entity_count,
    };
    list_each_safe(node, &domains->audiences[index].listeners) {
        struct domain_listener *listener = list_entry(node, struct domain_listener, node);
        listener->hear(listener, &news);
    }
    fiber_cond_broadcast(&domains->audiences[index].grew);
}

void
domains_listen(struct domains *domains, struct domain_listener *listener)
{
    check(listener->hear != NULL);
    list_push_back(&domains->audiences[loop_index(loop_self())].listeners, &listener->node);
}

void
domains_unlisten(struct domain_listener *listener)
{
    list_remove(&listener->node);
}

/* --- reaching a version -------------------------------------------------------------------------
 */

/* On loop 0, for a fiber of another. */
struct inquiry {
    struct domains *domains;
    uint64_t version;
    struct arena *arena;
    struct domain_changes changes;
    struct error *err;
};

static void
look_there(void *argument)
{
    struct inquiry *inquiry = argument;
    struct domains *domains = inquiry->domains;
    uint64_t guard = 0;
    if (domains->durable >= inquiry->version)
        return;
    inquiry->err = domains_look_for_others(domains, inquiry->arena, &guard);
    if (inquiry->err == NULL && guard < inquiry->version)
        inquiry->err =
            error_new(inquiry->arena, ERR_CORRUPT,
                      "version %llu of the domains was handled, but the store has only %llu",
                      (unsigned long long)inquiry->version, (unsigned long long)guard);
}

struct error *
domains_reach(struct domains *domains, uint64_t version, struct arena *arena)
{
    struct audience *audience = &domains->audiences[loop_index(loop_self())];
    int64_t latest = clock_monotonic() + REACH_WAIT;
    while (domains_notification_version(domains) < version) {
        mark("domain_version_awaited");
        struct inquiry inquiry = {.domains = domains, .version = version, .arena = arena};
        struct error *err = route_to_domains(look_there, &inquiry, arena);
        err = err != NULL ? err : inquiry.err;
        if (err != NULL)
            return err;
        if (domains_notification_version(domains) >= version)
            break;
        if (clock_monotonic() >= latest)
            return error_new(arena, ERR_UNAVAILABLE,
                             "Version %llu of the domains is not known here yet, try again.",
                             (unsigned long long)version);
        enum wake wake = fiber_cond_wait(&audience->grew, clock_monotonic() + LOOK_PAUSE);
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
    struct inquiry *inquiry = argument;
    inquiry->err = domains_read_log(inquiry->domains, inquiry->version, MISSED_PAGE,
                                    clock_monotonic(), inquiry->arena, &inquiry->changes);
}

static void
show_missed(const struct missed_visit *visit, const STORED(DomainRecord) *record)
{
    struct domain *domain = domain_from_record(record);
    visit->see(visit->context, domain);
    domain_drop(domain);
}

/* Shows what a page has up to `known`, and counts failovers. What was made in one of these changes
 * had no runs. */
static uint64_t
show_page(const struct domain_changes *changes, uint64_t known, const struct missed_visit *visit)
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
            show_missed(visit, change->record);
    }
    return failovers;
}

struct error *
domains_read_missed(struct domains *domains, uint64_t after, const struct missed_visit *visit,
                    struct arena *arena, uint64_t *reached, uint64_t *failovers)
{
    *reached = after;
    *failovers = 0;
    while (*reached < domains_notification_version(domains)) {
        scoped(arena_drop) struct arena *page = arena_new(0);
        struct inquiry inquiry = {.domains = domains, .version = *reached, .arena = page};
        struct error *err = route_to_domains(read_there, &inquiry, page);
        err = err != NULL ? err : inquiry.err;
        if (err != NULL)
            return error_copy(arena, err);
        uint64_t known = domains_notification_version(domains);
        const struct domain_changes *changes = &inquiry.changes;
        *failovers += show_page(changes, known, visit);
        /* Loop 0 may know more than this loop, which is told the rest as it comes. */
        bool is_all = changes->count < MISSED_PAGE;
        uint64_t last = is_all ? changes->newest : changes->version[changes->count - 1];
        check(last > *reached);
        *reached = last < known ? last : known;
        mark("domain_changes_caught_up");
    }
    return NULL;
}
