/* drain_text.c - what people read of a graceful failover. See domain_drain.h.
 *
 * A server of another make counts shards by their number and does not say how a failover ended:
 * then the text says what was seen last, and that the rest is unknown. */
#include <inttypes.h>

#include "base/buffer.h"
#include "cli/domain/domain_drain.h"
#include "cli/output/table.h"
#include "fiber/clock.h"

#define NAMED_MAX 20 /* shards, clusters: that are called by their name */

static const char *
take_text(struct buffer *text, struct arena *arena)
{
    const char *kept = arena_text_of(arena, buffer_slice(text));
    buffer_free(text);
    return kept[0] == '\0' ? NULL : kept;
}

static void
append_more(struct buffer *text, size_t count)
{
    if (count > NAMED_MAX)
        buffer_append_format(text, " and %zu more", count - NAMED_MAX);
}

const char *
drain_what(const struct drain_state *state, struct arena *arena)
{
    const char *domain = show_text(state->domain, arena);
    if (state->scope == NULL)
        return domain;
    return arena_format(arena, "%s.%s of %s", show_text(state->scope, arena),
                        show_text(state->name, arena), domain);
}

const char *
drain_shards(API(ClusterShards) *const *clusters, size_t count, struct arena *arena)
{
    struct buffer text = {0};
    for (size_t i = 0; i < count && i < NAMED_MAX; i++) {
        const char *name = show_text(clusters[i]->cluster, arena);
        buffer_append_text(&text, i == 0 ? "" : ", ");
        if (clusters[i]->shard_count == 0)
            buffer_append_format(&text, "nothing from %s", name);
        else
            buffer_append_format(&text, "%" PRId32 " of %" PRId32 " shards of %s",
                                 clusters[i]->ready_count, clusters[i]->shard_count, name);
    }
    append_more(&text, count);
    return take_text(&text, arena);
}

const char *
drain_seen(const struct drain_state *state, struct arena *arena)
{
    const API(FailoverInfo) *info = state->info;
    if (state->progress != NULL)
        return drain_shards(state->progress->clusters, state->progress->n_clusters, arena);
    if (info == NULL || (info->completed_shard_count <= 0 && info->n_pending_shards == 0))
        return NULL;
    size_t done = info->completed_shard_count > 0 ? (size_t)info->completed_shard_count : 0;
    return arena_format(arena, "%zu of %zu shards", done, done + info->n_pending_shards);
}

static const char *
seconds(int64_t passed, struct arena *arena)
{
    return arena_format(arena, "%.2f s", (double)passed / NS_PER_S);
}

const char *
drain_line(const struct drain_state *state, struct arena *arena)
{
    const char *shards = drain_seen(state, arena);
    return arena_format(
        arena, "%s moves to %s: %s, %s", drain_what(state, arena), show_text(state->target, arena),
        shards == NULL ? "no shard has handed over yet" : shards, seconds(state->passed, arena));
}

/* ---- the end ---- */

static const char *
subject(const struct drain_state *state, struct arena *arena)
{
    const char *domain = arena_format(arena, "domain %s", show_text(state->domain, arena));
    struct drain_state named = *state;
    named.domain = domain;
    return state->scope != NULL ? drain_what(&named, arena)
                                : arena_format(arena, "Domain %s", show_text(state->domain, arena));
}

/* What had not handed over, as the server says it; NULL: nothing that is known. */
static const char *
missing_shards(const API(FailoverOutcome) *outcome, struct arena *arena)
{
    struct buffer text = {0};
    for (size_t i = 0; i < outcome->n_missing && i < NAMED_MAX; i++)
        buffer_append_format(&text, "%s%s", i == 0 ? "" : ", ",
                             show_text(outcome->missing[i], arena));
    append_more(&text, outcome->n_missing);
    return take_text(&text, arena);
}

/* It became active, though not everything was there. */
static const char *
report_early(const struct drain_state *state, const char *why, struct arena *arena)
{
    const API(FailoverOutcome) *outcome = state->outcome;
    const char *shards = drain_shards(outcome->clusters, outcome->n_clusters, arena);
    const char *missing = missing_shards(outcome, arena);
    return arena_format(
        arena,
        "%s is active in %s after %s: %s before all shards had handed over%s%s%s%s.\n"
        "What was not replicated by then is merged when it arrives.",
        subject(state, arena), show_text(state->target, arena), seconds(state->passed, arena), why,
        shards == NULL ? "" : "; handed over: ", shards == NULL ? "" : shards,
        missing == NULL ? "" : "; missing: ", missing == NULL ? "" : missing);
}

/* The server says that all were ready. */
static const char *
report_complete(const struct drain_state *state, struct arena *arena)
{
    const API(FailoverOutcome) *outcome = state->outcome;
    const char *shards = drain_shards(outcome->clusters, outcome->n_clusters, arena);
    if (shards == NULL && outcome->shard_count > 0) /* of a server that does not say whose */
        shards =
            arena_format(arena, "all %" PRId32 " shards that it waited for", outcome->shard_count);
    return arena_format(arena, "%s successfully failed over to %s in %s: %s handed over.",
                        subject(state, arena), show_text(state->target, arena),
                        seconds(state->passed, arena),
                        shards == NULL ? "all shards that it waited for" : shards);
}

static const char *
report_unknown(const struct drain_state *state, struct arena *arena)
{
    const char *seen = drain_seen(state, arena);
    return arena_format(
        arena,
        "%s is active in %s after %s. Whether all shards had handed over by then is not known: the "
        "server does not say (last seen: %s).",
        subject(state, arena), show_text(state->target, arena), seconds(state->passed, arena),
        seen == NULL ? "nothing" : seen);
}

static bool
has_ended(const struct drain_state *state, const char *result)
{
    return state->outcome != NULL && strcmp(state->outcome->result, result) == 0;
}

const char *
drain_report(const struct drain_state *state, struct arena *arena)
{
    if (strcmp(state->active, state->target) != 0 || has_ended(state, "superseded"))
        return arena_format(arena, "Another failover replaced it after %s: %s is active in %s.",
                            seconds(state->passed, arena), drain_what(state, arena),
                            show_text(state->active, arena));
    if (has_ended(state, "forced"))
        return report_early(state, "it was forced", arena);
    if (has_ended(state, "timed out"))
        return report_early(state, "the time was over", arena);
    return has_ended(state, "complete") ? report_complete(state, arena)
                                        : report_unknown(state, arena);
}
