/* progress.c - how far drains to this cluster are, for people. See drains.h. */
#include "base/check.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "failover/inside.h"
#include "wire/message.h"

/* --- as messages --------------------------------------------------------------------------------
 */

static INTERNAL(DrainProgress) *
    progress_to_message(const struct drain_progress *progress, struct arena *arena)
{
    INTERNAL(DrainProgress) *message = message_new(arena, INTERNAL_TYPE(drain_progress));
    message->is_found = progress->is_found;
    message->scope = (char *)progress->scope;
    message->name = (char *)progress->name;
    message->failover_version = progress->failover_version;
    message->start_time = progress->start_time;
    message->end_time = progress->end_time;
    message->shard_count = progress->shard_count;
    message->ready_count = progress->ready_count;
    message->pending = progress->pending;
    message->n_pending = progress->pending_count;
    message->missing = (char **)progress->missing;
    message->n_missing = progress->missing_count;
    message->clusters = arena_zalloc(arena, progress->cluster_count, sizeof *message->clusters);
    for (; message->n_clusters < progress->cluster_count; message->n_clusters++) {
        const struct drain_cluster *cluster = &progress->clusters[message->n_clusters];
        INTERNAL(DrainClusterProgress) *shown =
            message_new(arena, INTERNAL_TYPE(drain_cluster_progress));
        shown->name = (char *)cluster->name;
        shown->shard_count = cluster->shard_count;
        shown->ready_count = cluster->ready_count;
        message->clusters[message->n_clusters] = shown;
    }
    return message;
}

static struct drain_progress
progress_from_message(const INTERNAL(DrainProgress) * message, struct arena *arena)
{
    struct drain_progress progress = {
        .is_found = message->is_found,
        .scope = message->scope,
        .name = message->name,
        .failover_version = message->failover_version,
        .start_time = message->start_time,
        .end_time = message->end_time,
        .clusters = arena_zalloc(arena, message->n_clusters, sizeof *progress.clusters),
        .cluster_count = message->n_clusters,
        .shard_count = message->shard_count,
        .ready_count = message->ready_count,
        .pending = message->pending,
        .pending_count = message->n_pending,
        .missing = (const char **)message->missing,
        .missing_count = message->n_missing,
    };
    for (size_t i = 0; i < message->n_clusters; i++) {
        const INTERNAL(DrainClusterProgress) *cluster = message->clusters[i];
        progress.clusters[i] =
            (struct drain_cluster){cluster->name, cluster->shard_count, cluster->ready_count};
    }
    return progress;
}

/* --- where the drains are -----------------------------------------------------------------------
 */

static struct drain_progress
progress_of(const STORED(Drain) *drain, struct arena *arena)
{
    check(drain->end_time != 0); /* it drains to here */
    return (struct drain_progress){.is_found = true,
                                   .scope = arena_text(arena, drain->scope),
                                   .name = arena_text(arena, drain->name),
                                   .failover_version = drain->failover_version,
                                   .start_time = drain->start_time,
                                   .end_time = drain->end_time};
}

/* Yields: what the rows say, if other hosts may have written some. */
static struct error *
measure(struct drains *drains, struct pending *pending, struct arena *arena,
        struct drain_progress *progress)
{
    struct error *err = NULL;
    if (!pending->is_read || !drains->options.is_alone)
        err = pending_read(drains, pending, arena);
    pending_measure(pending, arena, progress);
    return err;
}

static struct error *
serve_read(void *context, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    struct drains *drains = context;
    const INTERNAL(DrainQuery) *query = argument;
    const struct domain *domain = domains_find_id(drains->options.domains, query->domain_id);
    struct cluster_attribute attribute = drain_attribute(query->scope, query->name);
    const STORED(Drain) *drain = domain == NULL ? NULL : domain_find_drain(domain, &attribute);
    if (drain == NULL || !drain_is_to_here(drain, drains->options.group))
        return NULL;
    struct drain_progress progress = progress_of(drain, arena);
    struct pending *pending =
        drains_find(drains, domain->id, drain->scope, drain->name, drain->failover_version);
    struct error *err = NULL;
    if (pending != NULL) {
        pending_take(pending);
        err = measure(drains, pending, arena, &progress);
        progress.missing = pending_list_missing(pending, arena, &progress.missing_count);
        pending_drop(pending);
    }
    *(INTERNAL(DrainProgress) *)result = *progress_to_message(&progress, arena);
    return err;
}

static size_t
count_drains(const struct drains *drains, const char *domain_id)
{
    size_t count = 0;
    list_each(node, &drains->pending) {
        const struct pending *pending = list_entry(node, struct pending, node);
        count += !pending->is_over && strcmp(pending->domain_id, domain_id) == 0;
    }
    return count;
}

/* They are taken first: some may end while rows are read. */
static struct error *
serve_list(void *context, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    struct drains *drains = context;
    const INTERNAL(DrainQuery) *query = argument;
    INTERNAL(DrainList) *answer = result;
    size_t most = count_drains(drains, query->domain_id), count = 0;
    struct pending **found = arena_zalloc(arena, most + 1, sizeof(struct pending *));
    struct error *err = NULL;
    list_each(node, &drains->pending) {
        struct pending *pending = list_entry(node, struct pending, node);
        if (!pending->is_over && strcmp(pending->domain_id, query->domain_id) == 0)
            found[count++] = pending_take(pending);
    }
    check(count == most);
    answer->drains = arena_zalloc(arena, most, sizeof *answer->drains);
    for (size_t i = 0; i < most; i++) {
        struct drain_progress progress = progress_of(found[i]->drain, arena);
        if (err == NULL)
            err = measure(drains, found[i], arena, &progress);
        answer->drains[answer->n_drains++] = progress_to_message(&progress, arena);
        pending_drop(found[i]);
    }
    return err;
}

/* --- asking -------------------------------------------------------------------------------------
 */

/* Both read. Lost: who is shown it asks again. */
static const struct route_question read_question = {
    .name = "drains.read",
    .request = INTERNAL_TYPE(drain_query),
    .answer = INTERNAL_TYPE(drain_progress),
    .serve = serve_read,
    .may_come_twice = true,
};
static const struct route_question list_question = {
    .name = "drains.list",
    .request = INTERNAL_TYPE(drain_query),
    .answer = INTERNAL_TYPE(drain_list),
    .serve = serve_list,
    .may_come_twice = true,
};

struct error *
drains_read(struct drains *drains, const char *domain_id, const char *scope, const char *name,
            struct arena *arena, struct drain_progress *progress)
{
    INTERNAL(DrainQuery) query = INTERNAL_VALUE(DRAIN_QUERY__INIT);
    INTERNAL(DrainProgress) answer = INTERNAL_VALUE(DRAIN_PROGRESS__INIT);
    query.domain_id = (char *)domain_id;
    query.scope = (char *)scope;
    query.name = (char *)name;
    struct error *err =
        route_ask(owner_of_domains(), &drains->service, &read_question, &query, arena, &answer);
    *progress = progress_from_message(&answer, arena);
    return err;
}

struct error *
drains_list(struct drains *drains, const char *domain_id, struct arena *arena,
            struct drain_progress **all, size_t *count)
{
    INTERNAL(DrainQuery) query = INTERNAL_VALUE(DRAIN_QUERY__INIT);
    INTERNAL(DrainList) answer = INTERNAL_VALUE(DRAIN_LIST__INIT);
    query.domain_id = (char *)domain_id;
    struct error *err =
        route_ask(owner_of_domains(), &drains->service, &list_question, &query, arena, &answer);
    *count = answer.n_drains;
    *all = arena_zalloc(arena, answer.n_drains + 1, sizeof **all);
    for (size_t i = 0; i < answer.n_drains; i++)
        (*all)[i] = progress_from_message(answer.drains[i], arena);
    return err;
}
