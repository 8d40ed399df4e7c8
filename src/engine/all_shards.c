/* all_shards.c - what is asked of all shards: about visibility, about runs that stand still.
 * See engine.h. */
#include <stdlib.h>

#include "base/vector.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "engine/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ALL_SHARDS UINT64_MAX

/* --- visibility ---- */

static struct error *
serve_wait(void *engine, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    return shard_visibility_wait(engine_served_shard(engine, owner), arena);
}

/* Lost: the list call fails, and comes again. Twice: it changes nothing. */
static const struct route_question wait_question = {
    .name = "shard.visibility_wait",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_wait,
    .may_come_twice = true,
};

static struct error *
serve_rebuild(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    INTERNAL(VisibilityRebuilt) *rebuilt = answer;
    return shard_visibility_rebuild(engine_served_shard(engine, owner), arena, &rebuilt->runs);
}

/* Lost: the operator asks again, for all shards. Twice: it would be harmless, but all runs are
 * read. */
static const struct route_question rebuild_question = {
    .name = "shard.visibility_rebuild",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(visibility_rebuilt),
    .serve = serve_rebuild,
};

struct error *
engine_visibility_wait(struct engine *engine, struct arena *arena)
{
    return engine_visibility_wait_some(engine, ALL_SHARDS, arena);
}

/* One shard after the other; while one is waited for the others go on. */
struct error *
engine_visibility_wait_some(struct engine *engine, uint64_t shards, struct arena *arena)
{
    INTERNAL(Empty) nothing = INTERNAL_VALUE(EMPTY__INIT);
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++) {
        if ((shards >> i % 64 & 1) != 0)
            err = engine_ask_shard(engine, i, &wait_question, &nothing, arena, &nothing);
    }
    return err;
}

void
engine_visibility_stored(struct engine *engine, uint32_t shard, uint64_t fed, uint64_t safe)
{
    shard_visibility_stored(engine_served_shard(engine, owner_of_shard(shard)), fed, safe);
}

struct error *
engine_visibility_rebuild(struct engine *engine, struct arena *arena, uint64_t *runs)
{
    INTERNAL(Empty) request = INTERNAL_VALUE(EMPTY__INIT);
    struct error *err = NULL;
    *runs = 0;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++) {
        INTERNAL(VisibilityRebuilt) answer = INTERNAL_VALUE(VISIBILITY_REBUILT__INIT);
        err = engine_ask_shard(engine, i, &rebuild_question, &request, arena, &answer);
        *runs += answer.runs;
    }
    return err;
}

/* --- runs that stand still ---- */

static struct error *
serve_failing(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    INTERNAL(FailingDecisions) *shown = answer;
    struct failing_decision *decisions;
    size_t count = shard_list_failing(engine_served_shard(engine, owner), arena, &decisions);
    shown->decisions = arena_zalloc(arena, count, sizeof shown->decisions[0]);
    shown->n_decisions = count;
    for (size_t i = 0; i < count; i++) {
        INTERNAL(FailingDecision) *one = message_new(arena, INTERNAL_TYPE(failing_decision));
        one->domain_name = presence_make_text(decisions[i].domain_name);
        one->workflow_id = presence_make_text(decisions[i].workflow_id);
        one->run_id = presence_make_text(decisions[i].run_id);
        one->workflow_type = presence_make_text(decisions[i].workflow_type);
        one->task_list = presence_make_text(decisions[i].task_list);
        one->reason = presence_make_text(decisions[i].reason);
        one->attempt = decisions[i].attempt;
        shown->decisions[i] = one;
    }
    return NULL;
}

/* Lost: the operator asks again. Twice: it only reads. */
static const struct route_question failing_question = {
    .name = "shard.failing",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(failing_decisions),
    .serve = serve_failing,
    .may_come_twice = true,
};

static struct failing_decision
failing_from_message(const INTERNAL(FailingDecision) * shown)
{
    return (struct failing_decision){
        .domain_name = shown->domain_name,
        .workflow_id = shown->workflow_id,
        .run_id = shown->run_id,
        .workflow_type = shown->workflow_type,
        .task_list = shown->task_list,
        .reason = shown->reason,
        .attempt = shown->attempt,
    };
}

static int
compare_attempts(const void *one, const void *other)
{
    const struct failing_decision *first = one, *second = other;
    return (first->attempt < second->attempt) - (first->attempt > second->attempt);
}

struct error *
engine_list_failing(struct engine *engine, size_t count_max, struct arena *arena,
                    struct failing_decision **decisions, size_t *count, size_t *total)
{
    vector_of(struct failing_decision) all = {0};
    INTERNAL(Empty) request = INTERNAL_VALUE(EMPTY__INIT);
    for (uint32_t i = 0; i < engine->options.shard_count; i++) {
        INTERNAL(FailingDecisions) answer = INTERNAL_VALUE(FAILING_DECISIONS__INIT);
        struct error *err =
            engine_ask_shard(engine, i, &failing_question, &request, arena, &answer);
        if (err != NULL)
            return err;
        for (size_t each = 0; each < answer.n_decisions; each++)
            vector_push_in(&all, arena, failing_from_message(answer.decisions[each]));
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, compare_attempts);
    *decisions = all.items;
    *total = all.count;
    *count = all.count < count_max ? all.count : count_max;
    return NULL;
}
