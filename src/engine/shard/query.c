/* query.c - strong queries that wait for a decision of their run: records in lists, by run id. See
 * shard.h.
 *
 * A strong query must see all that was acknowledged before it came. While the run has a decision
 * that is not completed there may be events that no worker has seen. If the decision is not started
 * yet, it will bring all of them: the query rides on it. If it is started, it may lack the latest:
 * the query rides on the next one, or, when none follows, is free to be asked alone.
 *
 * What keeps a query is told by the run in memory, which may be ahead of the store; that can only
 * keep it longer. Who is set free looks at the run again, and what that shows is durable. */
#include "base/check.h"
#include "base/memory.h"
#include "config/dynamic.h"
#include "engine/shard/inside.h"
#include "engine/shard/watches.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"
#include "wire/message.h"

struct queried {
    struct list queries; /* struct run_query; never empty */
    size_t count;
    struct slice run_id; /* in the same block */
};

void
queries_init(struct tenure *tenure)
{
    tenure->queried = map_new();
}

void
queries_free(struct tenure *tenure)
{
    check(map_count(tenure->queried) == 0);
    map_free(tenure->queried);
}

static struct queried *
queried_of(struct tenure *tenure, const char *run_id)
{
    struct slice key = slice_text(run_id);
    struct queried *queried = map_get(tenure->queried, key);
    if (queried != NULL)
        return queried;
    queried = memory_zalloc(1, sizeof *queried + key.length);
    list_init(&queried->queries);
    memcpy(queried + 1, key.data, key.length);
    queried->run_id = slice_of(queried + 1, key.length);
    map_put(tenure->queried, key, queried);
    return queried;
}

static void
take_out(struct tenure *tenure, struct run_query *query)
{
    struct queried *queried = query->queried;
    check(queried->count > 0 && !list_is_empty(&query->node));
    list_remove(&query->node);
    query->queried = NULL;
    if (--queried->count > 0)
        return;
    check(list_is_empty(&queried->queries));
    struct queried *removed = map_remove(tenure->queried, queried->run_id);
    check(removed == queried);
    memory_free(queried);
}

/* Its open run in memory, if that has a decision; else NULL. */
static const struct run *
busy_run(struct tenure *tenure, const struct run_key *key)
{
    struct arena *arena = arena_new(512);
    struct workflow *workflow = workflow_find(tenure, key, arena);
    arena_free(arena);
    const struct loaded_run *loaded =
        workflow == NULL ? NULL : workflow_find_run(workflow, key->run_id);
    bool is_busy =
        loaded != NULL && run_is_open(loaded->run) && loaded->run->core->decision != NULL;
    return is_busy ? loaded->run : NULL;
}

static size_t
kept_max(const struct shard *shard)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    int64_t most = dynamic_integer(shard->options.dynamic, DYNAMIC_BUFFERED_QUERIES, &filter);
    return most < 0 ? 0 : (size_t)most;
}

void
shard_keep_query(struct shard *shard, const struct run_key *key, struct run_query *query)
{
    check(list_is_empty(&query->node) && key->run_id[0] != '\0');
    shard_check(shard);
    check(query->queried == NULL);
    struct tenure *tenure = shard->tenure;
    const struct run *run = tenure == NULL ? NULL : busy_run(tenure, key);
    if (run == NULL) {
        query->fire(query, QUERY_FREE, NULL);
        return;
    }
    const struct queried *before = map_get(tenure->queried, slice_text(key->run_id));
    if ((before == NULL ? 0 : before->count) >= kept_max(shard)) {
        probe("query_buffer_full");
        query->fire(query, QUERY_FULL, NULL);
        return;
    }
    const STORED(PendingDecision) *decision = run->core->decision;
    bool is_started = decision->started_id != EVENT_NONE;
    query->missed_schedule_id = is_started ? decision->schedule_id : 0;
    query->missed_attempt = is_started ? decision->attempt : 0;
    query->queried = queried_of(tenure, key->run_id);
    list_push_back(&query->queried->queries, &query->node);
    query->queried->count++;
}

void
shard_drop_query(struct shard *shard, struct run_query *query)
{
    shard_check(shard);
    check(query->queried == NULL || shard->tenure != NULL);
    if (query->queried != NULL)
        take_out(shard->tenure, query); /* those of other tenures have fired */
    else
        list_remove(&query->node); /* somebody has taken it, and will not fire it now */
}

/* --- riding on decisions ---- */

static API(PollForDecisionTaskResponse__QueriesEntry) *
show_query(const struct run_query *query, struct arena *arena)
{
    API(PollForDecisionTaskResponse__QueriesEntry) *entry =
        message_new(arena, API_TYPE(poll_for_decision_task_response__queries_entry));
    entry->key = arena_text(arena, query->id);
    struct error *err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(workflow_query),
                                          arena_slice(arena, query->bytes), &entry->value);
    check_that(err == NULL, "a question that we encoded cannot be read");
    return entry;
}

void
shard_ride_queries(struct shard *shard, const struct run *run, struct arena *arena,
                   struct decision_start *start)
{
    const STORED(PendingDecision) *decision = run->core->decision;
    struct queried *queried = map_get(shard->tenure->queried, slice_text(run->core->run_id));
    start->queries = NULL;
    start->query_count = 0;
    if (queried == NULL)
        return;
    check(decision != NULL && decision->started_id != EVENT_NONE);
    start->queries = arena_zalloc(arena, queried->count, sizeof *start->queries);
    list_each(node, &queried->queries) {
        const struct run_query *query = list_entry(node, struct run_query, node);
        bool is_missed = query->missed_schedule_id == decision->schedule_id &&
                         query->missed_attempt == decision->attempt;
        if (is_missed) /* a start that is asked for again */
            continue;
        probe("query_rides_on_decision");
        check(query->queried == queried && start->query_count < queried->count);
        start->queries[start->query_count++] = show_query(query, arena);
    }
}

struct run_query *
shard_take_query(struct shard *shard, const char *run_id, const char *id)
{
    shard_check(shard);
    struct queried *queried = map_get(shard->tenure->queried, slice_text(run_id));
    if (queried == NULL)
        return NULL;
    list_each(node, &queried->queries) {
        struct run_query *query = list_entry(node, struct run_query, node);
        if (id != NULL && strcmp(query->id, id) != 0)
            continue;
        take_out(shard->tenure, query);
        return query;
    }
    return NULL;
}

/* --- the end of waiting ---- */

static void
free_all(struct tenure *tenure, struct queried *queried)
{
    size_t count = queried->count;
    for (; count > 0; count--) {
        check(!list_is_empty(&queried->queries));
        struct run_query *query = list_entry(queried->queries.next, struct run_query, node);
        take_out(tenure, query);
        query->fire(query, QUERY_FREE, NULL);
    }
}

void
queries_release(struct tenure *tenure, const struct run *run)
{
    struct queried *queried = map_count(tenure->queried) == 0
                                  ? NULL
                                  : map_get(tenure->queried, slice_text(run->core->run_id));
    if (queried == NULL || (run_is_open(run) && run->core->decision != NULL))
        return;
    probe("query_set_free");
    free_all(tenure, queried);
}

void
queries_lose(struct tenure *tenure)
{
    check(tenure->is_over);
    size_t cursor = 0;
    void *value;
    while (map_next(tenure->queried, &cursor, NULL, &value))
        free_all(tenure, value);
}
