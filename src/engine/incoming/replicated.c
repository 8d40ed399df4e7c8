/* replicated.c - what other clusters decided goes to the shard of their workflow id. See
 * replicated.h. */
#include "engine/replicated.h"

#include "base/check.h"
#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/incoming/messages.h"
#include "engine/inside.h"
#include "wire/presence.h"

/* --- events ---- */

static struct error *
serve_events(void *engine, struct owner owner, const void *request, struct arena *arena,
             void *answer)
{
    struct replicated_priors priors;
    struct replicated_events events;
    struct replicated_outcome outcome = {0};
    replicated_events_from_message(request, arena, &priors, &events);
    struct error *err =
        shard_apply_replicated(engine_served_shard(engine, owner), &events, arena, &outcome);
    if (err == NULL)
        replicated_outcome_to_message(&outcome, arena, answer);
    return err;
}

/* Lost: the batch is applied again, or is a dead letter when that fails for too long. Twice: the
 * second time it is known, and that is as good. */
static const struct route_question events_question = {
    .name = "shard.apply_replicated",
    .request = INTERNAL_TYPE(replicated_events),
    .answer = INTERNAL_TYPE(replicated_outcome),
    .serve = serve_events,
    .may_come_twice = true,
};

struct error *
engine_apply_replicated(struct engine *engine, const struct replicated_events *events,
                        struct arena *arena, struct replicated_outcome *outcome)
{
    INTERNAL(ReplicatedEvents) request = INTERNAL_VALUE(REPLICATED_EVENTS__INIT);
    INTERNAL(ReplicatedOutcome) answer = INTERNAL_VALUE(REPLICATED_OUTCOME__INIT);
    replicated_events_to_message(events, arena, &request);
    struct error *err =
        engine_ask(engine, events->key.workflow_id, &events_question, &request, arena, &answer);
    if (err == NULL)
        replicated_outcome_from_message(&answer, outcome);
    return err;
}

/* --- runs ---- */

static struct error *
serve_runs(void *context, struct owner owner, const void *request, struct arena *arena,
           void *answer)
{
    const INTERNAL(RunsWanted) *wanted = request;
    const struct engine *engine = context;
    struct listed_runs listed = {0};
    const struct cluster *cluster = cluster_group_find(engine->options.group, wanted->cluster);
    if (cluster == NULL) /* of a host with another configuration */
        return error_new(arena, ERR_BAD_REQUEST, "There is no cluster %s.", wanted->cluster);
    struct error *err =
        shard_list_runs(engine_served_shard(context, owner), cluster,
                        presence_read_bytes(wanted->from), wanted->count_max, arena, &listed);
    if (err == NULL)
        listed_runs_to_message(&listed, arena, answer);
    return err;
}

/* Lost: the other cluster asks for the page again. Twice: markers are put again, which is harmless,
 * but nobody asked for it. */
static const struct route_question runs_question = {
    .name = "shard.list_runs",
    .request = INTERNAL_TYPE(runs_wanted),
    .answer = &cadenza__admin__v1__list_runs_response__descriptor,
    .serve = serve_runs,
};

struct error *
engine_list_runs(struct engine *engine, uint32_t shard, const struct cluster *cluster,
                 struct slice from, size_t count_max, struct arena *arena,
                 STORE_API(ListRunsResponse) *response)
{
    INTERNAL(RunsWanted) request = INTERNAL_VALUE(RUNS_WANTED__INIT);
    request.cluster = presence_make_text(cluster->name);
    request.from = presence_make_bytes(from);
    request.count_max = count_max;
    return engine_ask_shard(engine, shard, &runs_question, &request, arena, response);
}

static struct error *
serve_show_again(void *engine, struct owner owner, const void *request, struct arena *arena,
                 void *answer)
{
    struct error *err = shard_end_zombies(engine_served_shard(engine, owner), arena);
    return err != NULL ? err : shard_show_runs_again(engine_served_shard(engine, owner), arena);
}

/* Lost: recovery goes on with all shards once more. Twice: the others read all runs once more. */
static const struct route_question show_again_question = {
    .name = "shard.show_runs_again",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_show_again,
    .may_come_twice = true,
};

struct error *
engine_show_runs_again(struct engine *engine, struct arena *arena)
{
    INTERNAL(Empty) nothing = INTERNAL_VALUE(EMPTY__INIT);
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++)
        err = engine_ask_shard(engine, i, &show_again_question, &nothing, arena, &nothing);
    return err;
}

/* --- one row ---- */

static struct error *
serve_row(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    const INTERNAL(RowWanted) *wanted = request;
    INTERNAL(RowMade) *made = answer;
    struct slice task = {0};
    check(wanted->row != NULL);
    struct error *err = shard_hydrate(engine_served_shard(engine, owner), wanted->row,
                                      wanted->number, arena, &task);
    made->task = presence_make_bytes(task);
    return err;
}

/* Lost: the other cluster asks again. Twice: it only reads. */
static const struct route_question row_question = {
    .name = "shard.hydrate",
    .request = INTERNAL_TYPE(row_wanted),
    .answer = INTERNAL_TYPE(row_made),
    .serve = serve_row,
    .may_come_twice = true,
};

struct error *
engine_hydrate(struct engine *engine, const STORED(ReplicationRow) *row, uint64_t number,
               struct arena *arena, struct slice *task)
{
    INTERNAL(RowWanted) request = INTERNAL_VALUE(ROW_WANTED__INIT);
    INTERNAL(RowMade) answer = INTERNAL_VALUE(ROW_MADE__INIT);
    request.row = (STORED(ReplicationRow) *)(uintptr_t)row;
    request.number = number;
    struct error *err =
        engine_ask(engine, row->workflow_id, &row_question, &request, arena, &answer);
    *task = presence_read_bytes(answer.task);
    return err;
}
