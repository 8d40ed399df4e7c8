/* domain_drain.c - looking at a graceful failover. See domain_drain.h.
 *
 * The server is asked again and again; what it says of shards is all there is. Each thing that
 * moves, the domain or some of its attributes, is followed separately. On a terminal one line is
 * redrawn, elsewhere a line is printed when something changed, not more often than once
 * in a while: a cluster may have thousands of shards. A server that does not answer for a moment is
 * asked again: the failover continues without us.
 *
 * A failover that something else ended is over before its history says how: the coordinator
 * enters that a moment later. So the outcome is waited for. */
#include "cli/domain/domain_drain.h"

#include "cli/output/table.h"
#include "domain/attributes.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "wire/message.h"
#include "wire/presence.h"

#define POLL_PAUSE       (50 * NS_PER_MS)
#define LINE_PAUSE       (200 * NS_PER_MS)
#define CALL_TIMEOUT     (5 * NS_PER_S)
#define OUTCOME_WAIT_MAX (10 * NS_PER_S)
#define FAILURES_MAX     100 /* in a row */
#define REPORTS_MAX      20  /* things that are reported by their name */
#define HISTORY_PAGE     10
#define WIPE             "\r\033[K"

struct drain_watch {
    struct cli_call *call;
    const char *domain, *domain_id;
    struct drain_state *states; /* each thing that moves */
    size_t count;
    bool is_plain;    /* the server counts shards by their number, and says no more */
    int64_t began;    /* monotonic */
    int64_t drawn;    /* the newest line; 0: none */
    const char *line; /* without the time, in `call->arena` */
    unsigned failures;
    struct arena *scratch; /* of one line */
};

static struct error *
ask_domain(struct drain_watch *watch, API(Domain) **domain)
{
    API(DescribeDomainRequest) request = API_VALUE(DESCRIBE_DOMAIN_REQUEST__INIT);
    request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request.name = presence_make_text(watch->domain);
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(watch->call, "/uber.cadence.api.v1.DomainAPI/DescribeDomain", &request.base,
                CALL_TIMEOUT, API_TYPE(describe_domain_response), &answer);
    if (err != NULL)
        return err;
    *domain = ((API(DescribeDomainResponse) *)answer)->domain;
    return *domain != NULL ? NULL
                           : error_new(watch->call->arena, ERR_UNCATEGORISED,
                                       "%s answered without a domain", watch->call->address);
}

/* The same, with patience. */
static struct error *
ask_domain_again(struct drain_watch *watch, API(Domain) **domain)
{
    for (;;) {
        struct error *err = ask_domain(watch, domain);
        bool may_pass = err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE);
        if (!may_pass || ++watch->failures > FAILURES_MAX) {
            watch->failures = 0;
            return err;
        }
        err = fiber_sleep(POLL_PAUSE, watch->call->arena);
        if (err != NULL)
            return err;
    }
}

/* --- what moves ---- */

static const char *
scope_of(const API(ClusterAttribute) *attribute)
{
    return attribute == NULL ? NULL : attribute->scope;
}

static bool
is_about(const struct drain_state *state, const API(ClusterAttribute) *attribute)
{
    if (state->scope == NULL || scope_of(attribute) == NULL)
        return state->scope == NULL && scope_of(attribute) == NULL;
    return strcmp(state->scope, attribute->scope) == 0 && strcmp(state->name, attribute->name) == 0;
}

/* Where it is active, as the domain says; its version. */
static const char *
active_of(const struct drain_state *state, const API(Domain) *domain,
          const struct attributes *attributes, int64_t *version)
{
    const struct attribute *found =
        state->scope == NULL ? NULL : attributes_find(attributes, state->scope, state->name);
    *version = found != NULL ? found->failover_version : domain->failover_version;
    return found != NULL ? found->cluster_name : domain->active_cluster_name;
}

static void
add_state(struct drain_watch *watch, const char *scope, const char *name, const API(Domain) *domain,
          const struct attributes *attributes)
{
    struct drain_state *state = &watch->states[watch->count++];
    *state = (struct drain_state){.domain = watch->domain, .scope = scope, .name = name};
    state->target = active_of(state, domain, attributes, &state->version);
}

/* What was asked to move, as it was answered. */
static void
watch_requested(struct drain_watch *watch, const struct drain_request *requested)
{
    struct arena *arena = watch->call->arena;
    struct attributes asked = attributes_read(requested->attributes, arena);
    struct attributes now = attributes_read(requested->domain->active_clusters, arena);
    watch->states = arena_zalloc(arena, asked.count + 1, sizeof *watch->states);
    watch->began = requested->began;
    if (requested->moves_domain)
        add_state(watch, NULL, NULL, requested->domain, &now);
    for (size_t i = 0; i < asked.count; i++)
        add_state(watch, asked.all[i].scope, asked.all[i].name, requested->domain, &now);
}

/* What somebody else has moved, and when that began by the server's clock. */
static void
watch_others(struct drain_watch *watch, const API(Domain) *domain)
{
    struct arena *arena = watch->call->arena;
    const API(FailoverInfo) *info = domain->failover_info;
    struct attributes now = attributes_read(domain->active_clusters, arena);
    int64_t start = presence_time(info->failover_start_timestamp);
    int64_t ago = start == 0 ? 0 : clock_wall() - start;
    watch->began = clock_monotonic() - (ago > 0 ? ago : 0);
    watch->states = arena_zalloc(arena, info->n_moves + 1, sizeof *watch->states);
    for (size_t i = 0; i < info->n_moves; i++) {
        const API(ClusterAttribute) *attribute = info->moves[i]->cluster_attribute;
        add_state(watch, scope_of(attribute), attribute == NULL ? NULL : attribute->name, domain,
                  &now);
    }
    if (info->n_moves == 0)
        add_state(watch, NULL, NULL, domain, &now);
}

/* --- news ---- */

/* Is it under way, by what the server says? */
static bool
note_progress(struct drain_watch *watch, struct drain_state *state, const API(FailoverInfo) *info)
{
    if (info == NULL)
        return false;
    watch->is_plain = info->n_moves == 0;
    if (watch->is_plain) {
        bool is_same = state->scope == NULL && info->failover_version == state->version;
        state->info = is_same ? info : state->info;
        return is_same;
    }
    for (size_t i = 0; i < info->n_moves; i++) {
        if (!is_about(state, info->moves[i]->cluster_attribute) ||
            info->moves[i]->failover_version != state->version)
            continue;
        state->progress = info->moves[i];
        return true;
    }
    return false;
}

static void
note(struct drain_watch *watch, const API(Domain) *domain)
{
    struct attributes now = attributes_read(domain->active_clusters, watch->call->arena);
    int64_t passed = clock_monotonic() - watch->began, version;
    watch->domain_id = domain->id;
    for (size_t i = 0; i < watch->count; i++) {
        struct drain_state *state = &watch->states[i];
        if (state->active != NULL)
            continue;
        state->passed = passed;
        if (!note_progress(watch, state, domain->failover_info))
            state->active = active_of(state, domain, &now, &version);
    }
}

/* The first that is under way; NULL: all are over. */
static struct drain_state *
first_open(const struct drain_watch *watch, size_t *count)
{
    struct drain_state *first = NULL;
    *count = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->states[i].active != NULL)
            continue;
        first = first == NULL ? &watch->states[i] : first;
        ++*count;
    }
    return first;
}

/* Without the time: that alone is not a change. */
static const char *
state_text(const struct drain_state *state, size_t count, struct arena *arena)
{
    struct drain_state timeless = *state;
    timeless.passed = 0;
    return arena_format(arena, "%s %zu", drain_line(&timeless, arena), count);
}

static void
show(struct drain_watch *watch)
{
    int64_t now = clock_monotonic();
    size_t count;
    const struct drain_state *state = first_open(watch, &count);
    if (state == NULL)
        return;
    arena_reset(watch->scratch);
    const char *seen = state_text(state, count, watch->scratch);
    bool has_changed = watch->line == NULL || strcmp(seen, watch->line) != 0;
    if (!watch->call->is_terminal &&
        (!has_changed || (watch->drawn != 0 && now - watch->drawn < LINE_PAUSE)))
        return;
    const char *line = drain_line(state, watch->scratch);
    if (count > 1)
        line = arena_format(watch->scratch, "%s; %zu more move", line, count - 1);
    cli_print(watch->call->is_terminal ? WIPE "%s" : "%s\n", line);
    watch->drawn = now;
    if (has_changed)
        watch->line = arena_text(watch->call->arena, seen);
}

/* --- the end ---- */

static const API(FailoverOutcome) *
outcome_in(const API(FailoverEvent) *event, const struct drain_state *state)
{
    bool is_it = false;
    for (size_t i = 0; i < event->n_cluster_failovers; i++) {
        const API(ClusterFailover) *move = event->cluster_failovers[i];
        is_it = is_it || (is_about(state, move->cluster_attribute) && move->to_cluster != NULL &&
                          move->to_cluster->failover_version == state->version);
    }
    for (size_t i = 0; is_it && i < event->n_outcomes; i++) {
        if (is_about(state, event->outcomes[i]->cluster_attribute))
            return event->outcomes[i];
    }
    return NULL;
}

/* How many of them have no outcome yet. */
static size_t
enter_outcomes(struct drain_watch *watch, const API(ListFailoverHistoryResponse) *page)
{
    size_t missing = 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct drain_state *state = &watch->states[i];
        for (size_t n = 0; n < page->n_failover_events && state->outcome == NULL; n++)
            state->outcome = outcome_in(page->failover_events[n], state);
        missing += state->outcome == NULL;
    }
    return missing;
}

/* Reads the history once; what it does not have is not an error. */
static size_t
ask_outcomes(struct drain_watch *watch)
{
    struct cli_call *call = watch->call;
    API(ListFailoverHistoryRequest) request = API_VALUE(LIST_FAILOVER_HISTORY_REQUEST__INIT);
    request.filters = message_new(call->arena, API_TYPE(list_failover_history_request_filters));
    request.filters->domain_id = presence_make_text(watch->domain_id);
    request.pagination = message_new(call->arena, API_TYPE(pagination_options));
    request.pagination->page_size = HISTORY_PAGE;
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.DomainAPI/ListFailoverHistory", &request.base,
                CALL_TIMEOUT, API_TYPE(list_failover_history_response), &answer);
    return err != NULL ? watch->count
                       : enter_outcomes(watch, (const API(ListFailoverHistoryResponse) *)answer);
}

/* How they ended. A server that keeps no outcomes is not waited for, once that is known. */
static struct error *
find_outcomes(struct drain_watch *watch)
{
    int64_t limit = clock_monotonic() + OUTCOME_WAIT_MAX;
    while (ask_outcomes(watch) > 0 && !watch->is_plain && clock_monotonic() < limit) {
        struct error *err = fiber_sleep(POLL_PAUSE, watch->call->arena);
        if (err != NULL)
            return err;
    }
    return NULL;
}

static void
report(const struct drain_watch *watch)
{
    if (watch->call->is_terminal)
        cli_print(WIPE);
    for (size_t i = 0; i < watch->count && i < REPORTS_MAX; i++)
        cli_print("%s\n", drain_report(&watch->states[i], watch->call->arena));
    if (watch->count > REPORTS_MAX)
        cli_print(
            "%zu more have ended; cadenza domain list-failover-history --domain %s shows them.\n",
            watch->count - REPORTS_MAX, show_text(watch->domain, watch->call->arena));
}

static struct error *
follow(struct drain_watch *watch)
{
    size_t open;
    while (first_open(watch, &open) != NULL) {
        API(Domain) *domain = NULL;
        show(watch);
        struct error *err = fiber_sleep(POLL_PAUSE, watch->call->arena);
        if (err == NULL)
            err = ask_domain_again(watch, &domain);
        if (err != NULL)
            return err;
        note(watch, domain);
    }
    struct error *err = find_outcomes(watch);
    if (err == NULL)
        report(watch);
    return err;
}

struct error *
domain_follow_drain(struct cli_call *call, const char *name, const struct drain_request *requested)
{
    struct drain_watch watch = {.call = call, .domain = name};
    API(Domain) *domain = NULL;
    struct error *err = ask_domain_again(&watch, &domain);
    if (err != NULL)
        return err;
    if (requested == NULL && domain->failover_info == NULL)
        return error_new(call->arena, ERR_ENTITY_NOT_EXISTS,
                         "no graceful failover of domain %s is under way at %s", name,
                         call->address);
    if (requested != NULL)
        watch_requested(&watch, requested);
    else
        watch_others(&watch, domain);
    note(&watch, domain);
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    watch.scratch = scratch;
    return follow(&watch);
}
