/* model_orders.c - random decisions, in the model's words and in those of the wire. */
#include <stdio.h>

#include "engine/command/test/model_world.h"
#include "wire/message.h"

static struct model_policy
random_policy(struct world *world)
{
    struct model_policy policy = {.is_set = world_one_in(world, 2)};
    if (!policy.is_set)
        return policy;
    policy.initial = 1 + (int64_t)world_below(world, 3);
    policy.coefficient = 1 + (int)world_below(world, 2);
    policy.maximum = world_one_in(world, 2) ? 4 : 0;
    policy.attempts = world_one_in(world, 3) ? 0 : 1 + (int32_t)world_below(world, 4);
    policy.expiration =
        policy.attempts == 0 || world_one_in(world, 2) ? 1 + (int64_t)world_below(world, 40) : 0;
    policy.boom_is_final = world_one_in(world, 3);
    policy.start_is_final = world_one_in(world, 3);
    return policy;
}

static int64_t
maybe_seconds(struct world *world, uint64_t most)
{
    return world_one_in(world, 3) ? 0 : 1 + (int64_t)world_below(world, most);
}

/* What is to be cancelled should often be there. */
static void
aim(struct world *world, struct model_order *order)
{
    const struct model *model = world->model;
    const struct model_activity *activity =
        &model->activities[world_below(world, MODEL_ACTIVITIES_MAX)];
    const struct model_timer *timer = &model->timers[world_below(world, MODEL_TIMERS_MAX)];
    for (size_t i = 0; i < MODEL_ACTIVITIES_MAX && !activity->is_pending; i++)
        activity = &model->activities[i];
    for (size_t i = 0; i < MODEL_TIMERS_MAX && !timer->is_pending; i++)
        timer = &model->timers[i];
    if (order->kind == ORDER_CANCEL_ACTIVITY && activity->is_pending)
        memcpy(order->id, activity->id, sizeof order->id);
    if (order->kind == ORDER_CANCEL_TIMER && timer->is_pending)
        memcpy(order->id, timer->id, sizeof order->id);
}

struct model_order
world_random_order(struct world *world)
{
    static const uint8_t weights[ORDER_KIND_COUNT] = {30, 10, 20, 10, 10, 2, 2, 2, 2};
    uint64_t chance = world_below(world, 88);
    struct model_order order = {.kind = ORDER_ACTIVITY};
    while (chance >= weights[order.kind])
        chance -= weights[order.kind++];
    bool is_full = world->fixture->run_count + 1 >= FIXTURE_RUNS_MAX;
    if (order.kind == ORDER_CONTINUE && is_full)
        order.kind = ORDER_MARKER;
    bool is_timer = order.kind == ORDER_TIMER || order.kind == ORDER_CANCEL_TIMER;
    snprintf(order.id, sizeof order.id, "%c%d", is_timer ? 't' : 'a', (int)world_below(world, 5));
    if (!world_one_in(world, 3))
        aim(world, &order);
    order.seconds = 1 + (int64_t)world_below(world, 20);
    order.is_local = world_one_in(world, 6);
    order.policy = random_policy(world);
    order.timeouts = (struct model_timeouts){
        .schedule_to_close = maybe_seconds(world, 60),
        .schedule_to_start = 1 + (int64_t)world_below(world, 30),
        .start_to_close = world_one_in(world, 20) ? 0 : 1 + (int64_t)world_below(world, 30),
        .heartbeat = maybe_seconds(world, 10),
    };
    return order;
}

static API(RetryPolicy) *
make_policy(struct fixture *fixture, const struct model_policy *model)
{
    if (!model->is_set)
        return NULL;
    API(RetryPolicy) *policy = API_NEW(
        fixture->arena, retry_policy, .initial_interval = fixture_duration(fixture, model->initial),
        .maximum_interval = fixture_duration(fixture, model->maximum),
        .expiration_interval = fixture_duration(fixture, model->expiration),
        .backoff_coefficient = model->coefficient, .maximum_attempts = model->attempts,
        .non_retryable_error_reasons = arena_zalloc(fixture->arena, 2, sizeof(char *)));
    size_t count = 0;
    if (model->boom_is_final)
        policy->non_retryable_error_reasons[count++] = "boom";
    if (model->start_is_final)
        policy->non_retryable_error_reasons[count++] =
            (char *)"cadenceInternal:Timeout SCHEDULE_TO_START";
    policy->n_non_retryable_error_reasons = count;
    return policy;
}

API(Decision) *
world_make_decision(struct fixture *fixture, const struct model_order *order)
{
    const struct model_timeouts *timeouts = &order->timeouts;
    switch (order->kind) {
    case ORDER_ACTIVITY: {
        API(Decision) *decision = activity_decision(
            fixture, order->id,
            (struct activity_timeouts){timeouts->schedule_to_close, timeouts->schedule_to_start,
                                       timeouts->start_to_close, timeouts->heartbeat});
        activity_attributes(decision)->retry_policy = make_policy(fixture, &order->policy);
        activity_attributes(decision)->request_local_dispatch = order->is_local;
        return decision;
    }
    case ORDER_CANCEL_ACTIVITY:
        return cancel_activity_decision(fixture, order->id);
    case ORDER_TIMER:
        return fixture_timer(fixture, arena_text(fixture->arena, order->id), order->seconds);
    case ORDER_CANCEL_TIMER:
        return cancel_timer_decision(fixture, order->id);
    case ORDER_MARKER:
        return fixture_marker(fixture, arena_text(fixture->arena, order->id));
    case ORDER_COMPLETE:
        return fixture_complete_run(fixture);
    case ORDER_FAIL:
        return fixture_fail_run(fixture, "why");
    case ORDER_CANCEL:
        return fixture_cancel_run(fixture);
    default:
        return fixture_continue_as_new(fixture);
    }
}
