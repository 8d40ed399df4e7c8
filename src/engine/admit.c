/* admit.c - how often workflow ids are called: one more call, and which ids are called most. See
 * engine.h. */
#include <stdlib.h>

#include "base/vector.h"
#include "engine/inside.h"
#include "engine/run/run_key.h"
#include "wire/message.h"

static struct error *
serve_admit(void *engine, struct owner owner, const void *request, struct arena *arena,
            void *answer)
{
    struct run_key key = run_key_from_message(request);
    return shard_admit(engine_served_shard(engine, owner), &key, arena);
}

/* No answer: the call is counted, and fails; its client tries again. */
static const struct route_question admit_question = {
    .name = "shard.admit",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_admit,
};

struct error *
engine_admit(struct engine *engine, const struct run_key *key, struct arena *arena)
{
    INTERNAL(RunKey) request = run_key_to_message(key);
    return engine_ask_done(engine, key->workflow_id, &admit_question, &request, arena);
}

/* --- the hottest ---- */

static INTERNAL(HotId) * rate_to_message(const struct limits_rate *rate, struct arena *arena)
{
    INTERNAL(HotId) *message = message_new(arena, INTERNAL_TYPE(hot_id));
    message->domain_id = presence_make_text(rate->domain_id);
    message->domain_name = presence_make_text(rate->domain_name);
    message->workflow_id = presence_make_text(rate->workflow_id);
    message->external_rate = rate->rate[LIMITS_EXTERNAL];
    message->internal_rate = rate->rate[LIMITS_INTERNAL];
    message->is_external_limited = rate->is_limited[LIMITS_EXTERNAL];
    message->is_internal_limited = rate->is_limited[LIMITS_INTERNAL];
    return message;
}

static struct limits_rate
rate_from_message(const INTERNAL(HotId) * message)
{
    struct limits_rate rate = {.domain_id = message->domain_id,
                               .domain_name = message->domain_name,
                               .workflow_id = message->workflow_id};
    rate.rate[LIMITS_EXTERNAL] = message->external_rate;
    rate.rate[LIMITS_INTERNAL] = message->internal_rate;
    rate.is_limited[LIMITS_EXTERNAL] = message->is_external_limited;
    rate.is_limited[LIMITS_INTERNAL] = message->is_internal_limited;
    return rate;
}

static struct error *
serve_hottest(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    const INTERNAL(FindHotIds) *asked = request;
    INTERNAL(HotIds) *told = answer;
    struct limits_rate *rates = NULL;
    size_t count = shard_hottest(engine_served_shard(engine, owner),
                                 asked->is_of_domain ? asked->domain_id : NULL, asked->count_max,
                                 arena, &rates);
    told->ids = arena_zalloc(arena, count, sizeof told->ids[0]);
    told->n_ids = count;
    for (size_t i = 0; i < count; i++)
        told->ids[i] = rate_to_message(&rates[i], arena);
    return NULL;
}

/* It only looks. */
static const struct route_question hottest_question = {
    .name = "shard.hottest",
    .request = INTERNAL_TYPE(find_hot_ids),
    .answer = INTERNAL_TYPE(hot_ids),
    .serve = serve_hottest,
    .may_come_twice = true,
};

static int
compare_rates(const void *one, const void *other)
{
    uint32_t first = limits_hotter(one), second = limits_hotter(other);
    return (first < second) - (first > second);
}

struct error *
engine_hottest(struct engine *engine, const char *domain_id, size_t count_max, struct arena *arena,
               struct limits_rate **rates, size_t *count)
{
    vector_of(struct limits_rate) all = {0};
    INTERNAL(FindHotIds) request = INTERNAL_VALUE(FIND_HOT_IDS__INIT);
    request.is_of_domain = domain_id != NULL;
    request.domain_id = presence_make_text(domain_id);
    request.count_max = count_max;
    for (uint32_t number = 0; number < engine->options.shard_count; number++) {
        INTERNAL(HotIds) answer = INTERNAL_VALUE(HOT_IDS__INIT);
        struct error *err =
            engine_ask_shard(engine, number, &hottest_question, &request, arena, &answer);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < answer.n_ids; i++)
            vector_push_in(&all, arena, rate_from_message(answer.ids[i]));
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, compare_rates);
    *rates = all.items;
    *count = all.count < count_max ? all.count : count_max;
    return NULL;
}
