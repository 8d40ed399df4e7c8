/* bulk_activity.c - the activity of a batch job: finds the runs, chunk by chunk. See bulk.h. */
#include "api/visibility/locations.h"
#include "base/check.h"
#include "base/limit.h"
#include "cluster/group.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "system/bulk.h"
#include "system/types.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"
#include "wire/message.h"

#define VISIBILITY_PAUSE (200 * NS_PER_MS)

struct error *
bulk_heartbeat(struct bulk_job *job)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    return system_heartbeat(
        job->task, bulk_write_progress(&job->progress, job->params->page_size, false, arena));
}

/* --- finding ---- */

static struct error *
read_target(struct slice info, struct arena *arena, struct bulk_target *target)
{
    API(WorkflowExecutionInfo) *read = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, API_TYPE(workflow_execution_info), info, &read);
    if (err == NULL && read->workflow_execution == NULL)
        err = error_new(arena, ERR_CORRUPT, "a run without a name");
    if (err == NULL)
        *target = (struct bulk_target){read->workflow_execution->workflow_id,
                                       read->workflow_execution->run_id};
    return err;
}

/* The next chunk, in an arena of its own; empty: there are no more runs. */
static struct error *
find_chunk(struct bulk_job *job, const struct query *query)
{
    struct arena *before = job->chunk_arena, *arena = arena_new(0);
    struct bulk_progress *progress = &job->progress;
    int64_t size = job->params->page_size < BULK_CHUNK ? job->params->page_size : BULK_CHUNK;
    struct visibility_question question = {.domain_id = job->domain_id,
                                           .query = query,
                                           .page_size = (size_t)size,
                                           .token = progress->token,
                                           .is_unordered = true};
    struct visibility_page page = {0};
    struct error *err = visibility_list(job->task->parts->visibility, &question, arena, &page);
    job->chunk_arena = arena;
    progress->token = arena_slice(arena, err == NULL ? page.token : progress->token);
    arena_free(before);
    if (err != NULL)
        return error_copy(job->task->arena, err);
    check(page.count <= question.page_size);
    progress->target_count = page.count;
    progress->targets = arena_zalloc(arena, page.count + 1, sizeof progress->targets[0]);
    for (size_t i = 0; i < page.count && err == NULL; i++)
        err = read_target(page.info[i], arena, &progress->targets[i]);
    return error_copy(job->task->arena, err);
}

/* --- from chunk to chunk ---- */

static struct error *
begin(struct bulk_job *job, const struct query *query)
{
    struct error *err = visibility_count(job->task->parts->visibility, job->domain_id, query,
                                         job->task->arena, &job->progress.total);
    return err != NULL ? err : bulk_heartbeat(job);
}

static struct error *
work_on_all(struct bulk_job *job, const struct query *query)
{
    for (;;) {
        struct error *err = NULL;
        bool is_begun = job->progress.target_count > 0;
        job->is_again = is_begun;
        if (!is_begun)
            err = find_chunk(job, query);
        if (err != NULL || job->progress.target_count == 0)
            return err;
        if (!is_begun)
            err = bulk_heartbeat(job); /* no run is touched before it is recorded */
        if (err == NULL)
            err = bulk_work_on_chunk(job);
        if (err != NULL)
            return err;
        job->progress.target_count = 0;
        probe("bulk_chunk_done");
        if (job->progress.token.length == 0)
            return NULL;
    }
}

/* Waits until visibility has all runs from before the batch job. Shards may move just now. */
static struct error *
wait_for_visibility(struct bulk_job *job, bool is_fresh)
{
    for (;;) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct error *err = engine_visibility_wait(job->task->parts->engine, arena);
        if (err == NULL || !system_passes(err))
            return error_copy(job->task->arena, err);
        probe("bulk_waits_for_visibility");
        err = fiber_sleep(VISIBILITY_PAUSE, arena);
        if (err == NULL && !is_fresh)
            err = bulk_heartbeat(job);
        if (err == NULL && is_fresh)
            err = system_heartbeat(job->task, (struct slice){0});
        if (err != NULL)
            return error_copy(job->task->arena, err);
    }
}

static struct error *
work(struct bulk_job *job, const struct query *query, bool is_fresh)
{
    struct error *err = wait_for_visibility(job, is_fresh);
    if (err == NULL && is_fresh)
        err = begin(job, query);
    if (!is_fresh)
        probe("bulk_resumed");
    return err != NULL ? err : work_on_all(job, query);
}

/* --- the activity ---- */

static struct error *
refuse(struct system_task *task, struct error *err)
{
    task->reason = BULK_FINAL;
    return err;
}

/* The order of the activity. Errors are final. */
static struct error *
read_order(struct system_task *task, struct bulk_params *params, struct bulk_order *order)
{
    if (!bulk_read_order(task->input, task->arena, order))
        return error_new(task->arena, ERR_BAD_REQUEST, "the input is not that of a batch");
    struct error *err = bulk_read_params(order->params, task->arena, params);
    if (err != NULL)
        return err;
    if (order->rate > 0)
        params->rate = order->rate;
    if (order->concurrency > 0)
        params->concurrency = order->concurrency;
    if (params->concurrency > BULK_CONCURRENCY_MAX)
        params->concurrency = BULK_CONCURRENCY_MAX;
    return NULL;
}

/* May runs of the domain be sent to the cluster that is named? Errors are final. */
static struct error *
check_clusters(const struct system_task *task, const struct bulk_params *params,
               const API(Domain) *domain)
{
    const struct cluster_group *group = task->parts->group;
    const char *source = params->source_cluster, *target = params->target_cluster;
    if (params->verb != BULK_REPLICATE)
        return NULL;
    if (strcmp(source, group->current->name) != 0)
        return error_new(task->arena, ERR_BAD_REQUEST,
                         "the activity must run in the source cluster, current cluster is %s",
                         group->current->name);
    const struct cluster *found = cluster_group_find(group, target);
    if (found == NULL || found == group->current || task->parts->replication == NULL)
        return error_new(task->arena, ERR_BAD_REQUEST,
                         "the target cluster must be another cluster of the group, %s is not one",
                         target);
    if (!domain->is_global_domain)
        return error_new(task->arena, ERR_BAD_REQUEST,
                         "domain %s is local: its runs live in this cluster only", params->domain);
    if (!domain_has_cluster(domain, target))
        return error_new(task->arena, ERR_BAD_REQUEST,
                         "domain %s is not in cluster %s; add it to the clusters of the domain",
                         params->domain, target);
    return NULL;
}

/* True: this is the first attempt to record anything. */
static bool
find_progress(struct bulk_job *job, const struct bulk_order *order)
{
    struct slice before = job->task->details.length > 0 ? job->task->details : order->progress;
    bool is_fresh =
        before.length == 0 || !bulk_read_progress(before, job->chunk_arena, &job->progress);
    if (is_fresh)
        job->progress = (struct bulk_progress){0};
    job->progress.rate = job->params->rate;
    job->progress.concurrency = job->params->concurrency;
    return is_fresh;
}

struct error *
bulk_run(struct system_task *task, struct slice *result)
{
    struct bulk_params params;
    struct bulk_order order;
    struct query query;
    struct error *err = read_order(task, &params, &order);
    if (err != NULL)
        return refuse(task, err);
    struct domain *domain = domains_find_name(task->parts->domains, params.domain);
    scoped(locations_drop) struct locations locations = {0};
    struct locations_spec request = {task->parts->domains, domain,
                                     registry_set(task->parts->registry), params.query};
    err = locations_parse(&locations, &request, task->arena, &query);
    if (err != NULL)
        return refuse(task, err);
    if (domain == NULL)
        return refuse(task, domain_error_unknown(params.domain, task->arena));
    err = check_clusters(task, &params, domain->record->domain);
    if (err != NULL)
        return refuse(task, err);
    bulk_params_check(&params);
    check(params.concurrency <= BULK_CONCURRENCY_MAX);
    struct limit limit;
    limit_init(&limit, (double)params.rate, clock_monotonic());
    struct bulk_job job = {.task = task,
                           .params = &params,
                           .domain_id = arena_text(task->arena, domain->id),
                           .limit = &limit,
                           .chunk_arena = arena_new(0)};
    bool is_fresh = find_progress(&job, &order);
    err = work(&job, &query, is_fresh);
    *result = bulk_write_progress(&job.progress, params.page_size, err == NULL, task->arena);
    arena_free(job.chunk_arena);
    return err;
}

const struct system_activity bulk_activity = {
    .type = BULK_ACTIVITY, .list = BULK_LIST, .domain = BULK_DOMAIN, .run = bulk_run};
const struct system_activity bulk_activity_v2 = {
    .type = BULK_ACTIVITY_V2, .list = BULK_LIST, .domain = BULK_DOMAIN, .run = bulk_run};
