/* poll.c - PollForDecisionTask, PollForActivityTask: workers that wait for a task.
 *
 * A poll is a record that is handed over (matching.h): it is ours, matching's while it waits, ours
 * again. When it comes back with a task, a fiber has the engine record the start, and answers
 * (poll_start.c). Until the start is recorded the task can be given to another poller; afterwards
 * the timeouts of the run cover a worker that has gone. */
#include "api/worker/poll.h"

#include "api/call/validate.h"
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define POLL_MARGIN   NS_PER_S /* before the caller's deadline */
#define HELD_INTERVAL NS_PER_S

/* --- handed over ---- */

static struct dynamic_filter
poll_filter(const struct poll *poll)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = poll->domain_name;
    filter.task_list_name = poll->list;
    filter.task_type = (int)poll->type;
    return filter;
}

API(AutoConfigHint) *
poll_hint(const struct parked_poll *waiting, struct arena *arena)
{
    struct dynamic_filter filter = poll_filter(&waiting->poll);
    API(AutoConfigHint) *hint = message_new(arena, API_TYPE(auto_config_hint));
    hint->enable_auto_config =
        dynamic_flag(waiting->parked.api->options.dynamic, DYNAMIC_CLIENT_AUTO_CONFIG, &filter);
    hint->poller_wait_time_in_ms = waiting->waited / NS_PER_MS;
    return hint;
}

static void
answer_empty(struct parked_poll *waiting)
{
    struct parked *parked = &waiting->parked;
    if (parked->call != NULL && waiting->poll.type == TASK_DECISION)
        ((API(PollForDecisionTaskResponse) *)parked->call->response)->auto_config_hint =
            poll_hint(waiting, parked->arena);
    else if (parked->call != NULL)
        ((API(PollForActivityTaskResponse) *)parked->call->response)->auto_config_hint =
            poll_hint(waiting, parked->arena);
    poll_end(waiting, NULL);
}

/* Frees the task that it came back with, if any. */
static void
poll_forget_task(struct parked_poll *waiting)
{
    if (waiting->poll.task_arena != NULL)
        arena_free(waiting->poll.task_arena);
    waiting->poll.task_arena = NULL;
    waiting->poll.task = NULL;
    waiting->poll.start = NULL;
    waiting->poll.request_id = NULL;
}

void
poll_end(struct parked_poll *waiting, struct error *err)
{
    check(!waiting->is_in_matching && !timer_is_pending(&waiting->held));
    parked_answer(&waiting->parked, err);
    poll_forget_task(waiting);
    parked_end(&waiting->parked);
}

void
poll_gone(struct parked_poll *waiting)
{
    check(waiting->poll.task != NULL && waiting->parked.call == NULL);
    if (waiting->poll.start != NULL) {
        probe("poller_gone_after_start"); /* the timeouts of the run cover that */
    } else {
        probe("poller_gone_before_start");
        matching_return(waiting->parked.api->options.matching, waiting->poll.task);
    }
    poll_end(waiting, NULL);
}

/* It is ours again. */
static void
came_back(struct poll *poll, enum poll_end end)
{
    struct parked_poll *waiting = container_of(poll, struct parked_poll, poll);
    struct parked *parked = &waiting->parked;
    check(waiting->is_in_matching && (end != POLL_MATCHED || poll->task != NULL));
    waiting->is_in_matching = false;
    waiting->waited = clock_monotonic() - waiting->began;
    if (end == POLL_FAILED) {
        poll_end(waiting, error_new(parked->arena, ERR_UNAVAILABLE, "the poll failed: %s",
                                    poll->failure == NULL ? "" : poll->failure));
    } else if (end != POLL_MATCHED) {
        answer_empty(waiting);
    } else if (parked->call == NULL) {
        poll_gone(waiting);
    } else {
        fiber_start("poll_start", poll_start, waiting);
    }
}

/* The caller has gone, or the server drains (then matching ends it anyway). While its start is
 * being recorded there is nothing to hurry: the fiber looks itself. */
static void
hurry(struct parked *parked)
{
    struct parked_poll *waiting = container_of(parked, struct parked_poll, parked);
    if (waiting->is_in_matching)
        matching_withdraw(parked->api->options.matching, &waiting->poll);
    else if (timer_is_pending(&waiting->held))
        timer_start(&waiting->held, clock_monotonic());
}

/* A poller of a drained isolation group gets nothing. */
static bool
is_held(const struct parked_poll *waiting)
{
    const struct poll *poll = &waiting->poll;
    const struct api *api = waiting->parked.api;
    return poll->isolation_group[0] != '\0' && api_isolates(api, poll->domain_name) &&
           domains_is_group_isolated(api->options.domains, poll->domain_id, poll->isolation_group);
}

static void
give_to_matching(struct parked_poll *waiting)
{
    check(!waiting->is_in_matching && waiting->poll.task == NULL);
    check(!timer_is_pending(&waiting->held));
    if (is_held(waiting)) {
        int64_t next = clock_monotonic() + HELD_INTERVAL;
        int64_t end = waiting->poll.expiry;
        probe("poller_held");
        timer_start(&waiting->held, next < end ? next : end);
        return;
    }
    waiting->is_in_matching = true;
    matching_poll(waiting->parked.api->options.matching, &waiting->poll);
}

void
poll_again(struct parked_poll *waiting)
{
    struct parked *parked = &waiting->parked;
    poll_forget_task(waiting);
    bool is_over =
        clock_monotonic() >= waiting->poll.expiry || atomic_load(&parked->api->is_draining);
    if (parked->call == NULL || is_over)
        answer_empty(waiting);
    else
        give_to_matching(waiting);
}

static void
held_enough(struct timer *timer)
{
    poll_again(container_of(timer, struct parked_poll, held));
}

/* --- the beginning -------------------------------------------------------------------------------
 */

static enum list_kind
kind_of(const API(TaskList) *list)
{
    switch (list->kind) {
    case API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY):
        return LIST_STICKY;
    case API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL):
        return LIST_EPHEMERAL;
    default:
        return LIST_NORMAL;
    }
}

/* What a poll asks for. */
struct poll_spec {
    enum task_type type;
    const char *domain;
    const API(TaskList) *list;
    const char *identity;
    double rate_per_second; /* negative: not given */
};

static int64_t
poll_expiry(struct rpc_call *call, const struct poll *poll)
{
    struct dynamic_filter filter = poll_filter(poll);
    int64_t most =
        dynamic_duration(api_of(call)->options.dynamic, DYNAMIC_LONG_POLL_EXPIRATION, &filter);
    int64_t end = clock_monotonic() + most;
    int64_t latest = call->arrival.deadline - POLL_MARGIN;
    return end < latest ? end : latest;
}

static void
begin(struct rpc_call *call, const struct call_domain *domain, const struct poll_spec *spec)
{
    struct arena *arena = arena_new(2048);
    struct parked_poll *waiting = arena_make(arena, struct parked_poll);
    struct list_name name;
    if (kind_of(spec->list) != LIST_NORMAL || !list_name_parse(spec->list->name, arena, &name))
        name = (struct list_name){spec->list->name, 0};
    waiting->parked = (struct parked){.api = api_of(call), .arena = arena, .hurry = hurry};
    waiting->poll = (struct poll){
        .type = spec->type,
        .kind = kind_of(spec->list),
        .domain_id = arena_text(arena, domain->id),
        .domain_name = arena_text(arena, domain->name),
        .list = arena_text(arena, name.list),
        .partition_wanted = name.partition,
        .base_list = arena_text(arena, spec->list->base_name),
        .identity = arena_text(arena, spec->identity),
        .isolation_group = arena_text(arena, api_worker_group(call)),
        .rate_per_second = spec->rate_per_second,
        .back = came_back,
    };
    waiting->poll.expiry = poll_expiry(call, &waiting->poll);
    waiting->began = clock_monotonic();
    timer_init(&waiting->held, held_enough);
    parked_begin(&waiting->parked, call);
    give_to_matching(waiting);
}

static struct error *
admit(struct rpc_call *call, const struct poll_spec *spec, const char *checksum)
{
    struct limits limits = {api_of(call)->options.dynamic, spec->domain, call->arena};
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_poll_deadline(call);
    if (err == NULL)
        err = validate_length(&limits, DYNAMIC_IDENTITY_LENGTH, spec->identity, "Identity");
    if (err == NULL)
        err = validate_task_list(&limits, spec->list);
    if (err == NULL)
        err = validate_domain(call, spec->domain, &domain);
    if (err == NULL)
        err = validate_binary(&domain, checksum, call->arena);
    if (err != NULL)
        return err;
    if (fiber_is_cancelled())
        return error_new(call->arena, ERR_CANCELLED, "the caller has gone");
    begin(call, &domain, spec);
    return NULL;
}

struct error *
api_poll_decision(struct rpc_call *call)
{
    const API(PollForDecisionTaskRequest) *request =
        (const API(PollForDecisionTaskRequest) *)call->request;
    struct poll_spec spec = {.type = TASK_DECISION,
                             .domain = request->domain,
                             .list = request->task_list,
                             .identity = request->identity,
                             .rate_per_second = -1};
    return admit(call, &spec, request->binary_checksum);
}

struct error *
api_poll_activity(struct rpc_call *call)
{
    const API(PollForActivityTaskRequest) *request =
        (const API(PollForActivityTaskRequest) *)call->request;
    struct maybe_double rate = {0};
    if (request->task_list_metadata != NULL)
        rate = presence_read_double(request->task_list_metadata->max_tasks_per_second);
    struct poll_spec spec = {.type = TASK_ACTIVITY,
                             .domain = request->domain,
                             .list = request->task_list,
                             .identity = request->identity,
                             .rate_per_second = rate.is_set && rate.value >= 0 ? rate.value : -1};
    return admit(call, &spec, "");
}
