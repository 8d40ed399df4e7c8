/* domain_drain.c - see domain_drain.h.
 *
 * The server is asked again and again; what it says of shards is all there is. On a terminal one
 * line is drawn anew, elsewhere a line is printed when there is news, not more often than once in a
 * while: a cluster may have thousands of shards. A server that does not answer for a moment is
 * asked again: the failover goes on without whoever looks at it. */
#include "cli/domain_drain.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LOOK_PAUSE   (50 * NS_PER_MS)
#define LINE_PAUSE   (200 * NS_PER_MS)
#define CALL_TIMEOUT (5 * NS_PER_S)
#define FAILURES_MAX 100 /* in a row */
#define NAMED_MAX    20  /* shards that are called by their number */
#define HISTORY_PAGE 10
#define WIPE         "\r\033[K"

/* ---- words ---- */

static size_t
shards_done(const struct drain_sight *sight)
{
    bool is_known = sight->info != NULL && sight->info->completed_shard_count > 0;
    return is_known ? (size_t)sight->info->completed_shard_count : 0;
}

/* 0: nobody knows yet. */
static size_t
shards_all(const struct drain_sight *sight)
{
    if (sight->outcome != NULL && sight->outcome->shard_count > 0)
        return (size_t)sight->outcome->shard_count;
    return sight->info == NULL ? 0 : shards_done(sight) + sight->info->n_pending_shards;
}

static bool
has_ended(const struct drain_sight *sight, const char *result)
{
    return sight->outcome != NULL && strcmp(sight->outcome->result, result) == 0;
}

static const char *
seconds(int64_t passed, struct arena *arena)
{
    return arena_format(arena, "%.2f s", (double)passed / NS_PER_S);
}

const char *
drain_line(const struct drain_sight *sight, struct arena *arena)
{
    if (shards_all(sight) == 0)
        return arena_format(arena, "%s moves to %s: no shard has handed over yet, %s",
                            show_text(sight->domain, arena), show_text(sight->target, arena),
                            seconds(sight->passed, arena));
    return arena_format(arena, "%s moves to %s: %zu of %zu shards, %s",
                        show_text(sight->domain, arena), show_text(sight->target, arena),
                        shards_done(sight), shards_all(sight), seconds(sight->passed, arena));
}

static void
append_more(struct buffer *text, size_t count)
{
    if (count > NAMED_MAX)
        buffer_append_format(text, " and %zu more", count - NAMED_MAX);
}

/* What had not handed over: as the server says it, or by the numbers that were seen last. NULL:
 * nobody knows. */
static const char *
missing_shards(const struct drain_sight *sight, struct arena *arena)
{
    struct buffer text = {0};
    const API(FailoverInfo) *info = sight->info;
    const API(FailoverOutcome) *outcome = sight->outcome;
    for (size_t i = 0; outcome != NULL && i < outcome->n_missing && i < NAMED_MAX; i++)
        buffer_append_format(&text, "%s%s", i == 0 ? "" : ", ",
                             show_text(outcome->missing[i], arena));
    if (outcome != NULL)
        append_more(&text, outcome->n_missing);
    bool is_seen = outcome == NULL && info != NULL;
    for (size_t i = 0; is_seen && i < info->n_pending_shards && i < NAMED_MAX; i++)
        buffer_append_format(&text, "%s%" PRId32, i == 0 ? "shard " : ", ",
                             info->pending_shards[i]);
    if (is_seen)
        append_more(&text, info->n_pending_shards);
    const char *kept = arena_text_of(arena, buffer_slice(&text));
    buffer_free(&text);
    return kept[0] == '\0' ? NULL : kept;
}

/* It became active, though not everything was there. */
static const char *
report_early(const struct drain_sight *sight, const char *why, struct arena *arena)
{
    const char *missing = missing_shards(sight, arena);
    const char *what = missing == NULL ? "any shard had handed over"
                                       : arena_format(arena, "all had handed over (%s)", missing);
    return arena_format(arena,
                        "Domain %s is active in %s after %s: %s before %s.\nWhat was not "
                        "replicated by then is merged when it comes.",
                        show_text(sight->domain, arena), show_text(sight->target, arena),
                        seconds(sight->passed, arena), why, what);
}

const char *
drain_report(const struct drain_sight *sight, struct arena *arena)
{
    const char *domain = show_text(sight->domain, arena), *took = seconds(sight->passed, arena);
    if (strcmp(sight->active, sight->target) != 0 || has_ended(sight, "superseded"))
        return arena_format(arena,
                            "Another failover took its place after %s: domain %s is active in %s.",
                            took, domain, show_text(sight->active, arena));
    if (has_ended(sight, "forced"))
        return report_early(sight, "it was forced", arena);
    if (has_ended(sight, "timed out") || (sight->outcome == NULL && sight->is_timed_out))
        return report_early(sight, "the time was over", arena);
    const char *shards = shards_all(sight) == 0
                             ? "all shards"
                             : arena_format(arena, "all %zu shards", shards_all(sight));
    return arena_format(arena,
                        "Domain %s successfully failed over to %s in %s: %s handed over, none "
                        "timed out, nothing was lost.",
                        domain, show_text(sight->target, arena), took, shards);
}

/* ---- looking ---- */

/* ns; 0: not given. */
static int64_t
time_of(const GOOGLE(Timestamp) *time)
{
    return time == NULL ? 0 : time->seconds * NS_PER_S + time->nanos;
}

struct drain_watch {
    struct cli_call *call;
    struct drain_sight sight;
    const char *domain_id;
    int64_t version; /* that it made; 0: not known yet */
    int64_t began;   /* monotonic */
    int64_t drawn;   /* the newest line; 0: none */
    size_t shown;    /* shards that it said were done */
    unsigned failures;
    struct arena *scratch; /* of one line */
};

static struct error *
look(struct drain_watch *watch, API(Domain) **domain)
{
    API(DescribeDomainRequest) request = API_VALUE(DESCRIBE_DOMAIN_REQUEST__INIT);
    request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request.name = presence_make_text(watch->sight.domain);
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
look_again(struct drain_watch *watch, API(Domain) **domain)
{
    for (;;) {
        struct error *err = look(watch, domain);
        bool may_pass = err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE);
        if (!may_pass || ++watch->failures > FAILURES_MAX) {
            watch->failures = 0;
            return err;
        }
        err = fiber_sleep(LOOK_PAUSE, watch->call->arena);
        if (err != NULL)
            return err;
    }
}

static void
show(struct drain_watch *watch)
{
    int64_t now = clock_monotonic();
    size_t done = shards_done(&watch->sight);
    bool is_news = watch->drawn == 0 || done != watch->shown;
    if (!watch->call->is_terminal && (!is_news || now - watch->drawn < LINE_PAUSE))
        return;
    arena_reset(watch->scratch);
    const char *line = drain_line(&watch->sight, watch->scratch);
    cli_print(watch->call->is_terminal ? WIPE "%s" : "%s\n", line);
    watch->drawn = now;
    watch->shown = done;
}

static bool
is_under_way(const struct drain_watch *watch, const API(Domain) *domain)
{
    const API(FailoverInfo) *now = domain->failover_info, *known = watch->sight.info;
    return now != NULL && (known == NULL || now->failover_version == known->failover_version);
}

static void
note(struct drain_watch *watch, const API(Domain) *domain)
{
    watch->sight.passed = clock_monotonic() - watch->began;
    watch->domain_id = domain->id;
    if (is_under_way(watch, domain)) {
        watch->version = domain->failover_info->failover_version;
        watch->sight.info = domain->failover_info;
        watch->sight.target = domain->active_cluster_name;
        return;
    }
    const API(FailoverInfo) *info = watch->sight.info;
    int64_t expiry = info == NULL ? 0 : time_of(info->failover_expire_timestamp);
    watch->sight.active = domain->active_cluster_name;
    watch->sight.is_timed_out = expiry != 0 && expiry <= clock_wall();
}

static const API(FailoverOutcome) *
outcome_in(const API(ListFailoverHistoryResponse) *page, int64_t version)
{
    for (size_t i = 0; i < page->n_failover_events; i++) {
        const API(FailoverEvent) *event = page->failover_events[i];
        for (size_t n = 0; n < event->n_cluster_failovers && event->n_outcomes > 0; n++) {
            const API(ActiveClusterInfo) *to = event->cluster_failovers[n]->to_cluster;
            if (to != NULL && to->failover_version == version)
                return event->outcomes[0];
        }
    }
    return NULL;
}

/* How it ended, if the server keeps that. What it does not tell is no error: it is over. */
static void
find_outcome(struct drain_watch *watch)
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
    if (err == NULL)
        watch->sight.outcome =
            outcome_in((const API(ListFailoverHistoryResponse) *)answer, watch->version);
}

static struct error *
follow(struct drain_watch *watch)
{
    while (watch->sight.active == NULL) {
        API(Domain) *domain = NULL;
        show(watch);
        struct error *err = fiber_sleep(LOOK_PAUSE, watch->call->arena);
        if (err == NULL)
            err = look_again(watch, &domain);
        if (err != NULL)
            return err;
        note(watch, domain);
    }
    find_outcome(watch);
    if (watch->call->is_terminal)
        cli_print(WIPE);
    cli_print("%s\n", drain_report(&watch->sight, watch->call->arena));
    return NULL;
}

/* Of somebody else's: it began when the server says. */
static void
note_beginning(struct drain_watch *watch, const API(Domain) *domain)
{
    int64_t start = time_of(domain->failover_info->failover_start_timestamp);
    int64_t ago = start == 0 ? 0 : clock_wall() - start;
    watch->began = clock_monotonic() - (ago > 0 ? ago : 0);
}

struct error *
domain_follow_drain(struct cli_call *call, const char *name, const API(Domain) *begun,
                    int64_t began)
{
    struct drain_watch watch = {.call = call, .sight.domain = name, .began = began};
    API(Domain) *domain = NULL;
    struct error *err = look_again(&watch, &domain);
    if (err != NULL)
        return err;
    watch.sight.target = begun != NULL ? begun->active_cluster_name : domain->active_cluster_name;
    watch.sight.info = begun == NULL ? NULL : begun->failover_info;
    watch.version = begun == NULL ? 0 : begun->failover_version;
    if (begun == NULL && domain->failover_info == NULL)
        return error_new(call->arena, ERR_ENTITY_NOT_EXISTS,
                         "no graceful failover of domain %s is under way at %s", name,
                         call->address);
    if (begun == NULL)
        note_beginning(&watch, domain);
    note(&watch, domain);
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    watch.scratch = scratch;
    return follow(&watch);
}
