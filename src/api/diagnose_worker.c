/* diagnose_worker.c - the worker of diagnostics runs. See diagnose.h.
 *
 * One fiber per loop, from the first diagnosis that is asked for there until its list is empty. It
 * polls, records the start, reads the history of the run in question, and completes the decision
 * with the report. Whatever fails on the way is left to the decision's timeout. */
#include <stdio.h>

#include "api/diagnose.h"
#include "api/json.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/matching.h"
#include "wire/message.h"
#include "wire/presence.h"

#define IDENTITY   "cadence-system-worker"
#define POLL_TIME  (2 * NS_PER_S)
#define WORK_TIME  (60 * NS_PER_S)
#define RETRY_TIME (100 * NS_PER_MS)
#define PAGE_BYTES ((size_t)1024 * 1024)

struct worker {
    struct api *api;
    struct arena *arena; /* of one round */
    char domain_id[UUID_TEXT_LENGTH + 1];
    struct poll poll;
    struct latch polled;
    enum poll_end end;
};

/* --- the report ---- */

/* Whose lists are looked at. */
struct lists_view {
    struct worker *worker;
    const char *domain_id;
};

static bool
look_at_list(void *context, bool is_decision, const char *list, int64_t *backlog)
{
    const struct lists_view *view = context;
    struct arena *arena = view->worker->arena;
    API(DescribeTaskListResponse) *told = message_new(arena, API_TYPE(describe_task_list_response));
    struct list_spot spot = {.type = is_decision ? TASK_DECISION : TASK_ACTIVITY,
                             .domain_id = view->domain_id};
    if (!list_name_parse(list, arena, &spot.name))
        return false;
    struct error *err =
        matching_describe(view->worker->api->options.matching, &spot, true, arena, told);
    if (err == NULL && told->task_list_status != NULL)
        *backlog = told->task_list_status->backlog_count_hint;
    return err == NULL && told->n_pollers > 0;
}

static struct error *
add_page(const struct history_page *page, struct diagnosis *diagnosis)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < page->count; i++) {
        API(History) *history = NULL;
        struct error *err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(history),
                                              page->node[i].events, &history);
        if (err != NULL)
            return err;
        for (size_t e = 0; e < history->n_events; e++)
            diagnosis_add(diagnosis, history->events[e]);
        arena_reset(arena);
    }
    return NULL;
}

static struct error *
add_history(struct worker *worker, const struct run_key *key, struct diagnosis *diagnosis)
{
    struct engine *engine = worker->api->options.engine;
    struct history_state state = {0};
    struct error *err = engine_history_state(engine, key, worker->arena, &state);
    struct history_range range = {.shard = engine_shard_of(engine, key->workflow_id),
                                  .line = state.line,
                                  .from_event_id = 1,
                                  .to_event_id = state.next_event_id,
                                  .bytes_max = PAGE_BYTES};
    while (err == NULL && range.from_event_id < range.to_event_id) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct history_page page = {0};
        err = engine_read_history(engine, &range, arena, &page);
        if (err == NULL)
            err = add_page(&page, diagnosis);
        err = err == NULL ? NULL : error_copy(worker->arena, err);
        range.from_event_id = page.next_event_id;
    }
    return err;
}

static struct error *
make_report(struct worker *worker, const struct diagnose_wish *wish, struct slice *report)
{
    const struct domain *domain = domains_find_name(worker->api->options.domains, wish->domain);
    if (domain == NULL)
        return domain_error_unknown(wish->domain, worker->arena);
    struct run_key key = {.domain_id = arena_text(worker->arena, domain->id),
                          .workflow_id = wish->workflow_id,
                          .run_id = wish->run_id};
    struct lists_view view = {worker, key.domain_id};
    struct pollers_port port = {look_at_list, &view};
    struct diagnosis *diagnosis = diagnosis_begin(worker->arena);
    struct error *err = add_history(worker, &key, diagnosis);
    if (err == NULL)
        *report = diagnosis_end(diagnosis, &port);
    diagnosis_free(diagnosis);
    return err;
}

/* --- the decision ---- */

/* What the run was started for. */
static struct error *
read_wish(struct worker *worker, const struct task *task, const struct decision_start *start,
          struct diagnose_wish *wish)
{
    struct history_range range = {.shard = task->shard,
                                  .line = start->line,
                                  .from_event_id = 1,
                                  .to_event_id = start->next_event_id,
                                  .nodes_max = 1};
    struct history_page page = {0};
    API(History) *history = NULL;
    struct error *err =
        engine_read_history(worker->api->options.engine, &range, worker->arena, &page);
    if (err == NULL && page.count > 0)
        err = message_decode_as(worker->arena, ERR_CORRUPT, API_TYPE(history), page.node[0].events,
                                &history);
    if (err != NULL || history == NULL || history->n_events == 0)
        return err != NULL ? err : error_new(worker->arena, ERR_CORRUPT, "an empty history");
    struct slice input = presence_read_payload(
                             history->events[0]->workflow_execution_started_event_attributes->input)
                             .bytes;
    struct json_reader reader = object_begin(input, worker->arena);
    const char *name;
    *wish = (struct diagnose_wish){"", "", "", ""};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "Domain") == 0)
            object_text(&reader, &wish->domain);
        else if (strcmp(name, "WorkflowID") == 0)
            object_text(&reader, &wish->workflow_id);
        else if (strcmp(name, "RunID") == 0)
            object_text(&reader, &wish->run_id);
        else
            object_skip(&reader);
    }
    bool is_good = object_end(&reader) && wish->workflow_id[0] != '\0' && wish->run_id[0] != '\0';
    return is_good ? NULL : error_new(worker->arena, ERR_BAD_REQUEST, "unknown input");
}

/* A report, or that there can be none. */
static API(Decision) *
decide(struct worker *worker, const struct task *task, const struct decision_start *start)
{
    struct arena *arena = worker->arena;
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    struct diagnose_wish wish;
    struct slice report = {0};
    struct error *err = read_wish(worker, task, start, &wish);
    if (err == NULL)
        err = make_report(worker, &wish, &report);
    if (err == NULL) {
        decision->attributes_case =
            API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
        decision->complete_workflow_execution_decision_attributes =
            message_new(arena, API_TYPE(complete_workflow_execution_decision_attributes));
        decision->complete_workflow_execution_decision_attributes->result =
            presence_make_payload(arena, (struct maybe_bytes){.is_set = true, .bytes = report});
        return decision;
    }
    bool is_final = err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_BAD_REQUEST ||
                    err->kind == ERR_CORRUPT;
    if (!is_final)
        return NULL; /* the timeout of the decision is when it is tried again */
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_FAIL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
    decision->fail_workflow_execution_decision_attributes =
        message_new(arena, API_TYPE(fail_workflow_execution_decision_attributes));
    API(Failure) *failure = message_new(arena, API_TYPE(failure));
    failure->reason = "cadenceInternal:Generic";
    failure->details = presence_make_bytes(
        slice_text(arena_format(arena, "Workflow Diagnostics failed: %s", err->message)));
    decision->fail_workflow_execution_decision_attributes->failure = failure;
    return decision;
}

static void
complete(struct worker *worker, const struct task *task, const struct decision_start *start)
{
    API(Decision) *decision = decide(worker, task, start);
    if (decision == NULL)
        return;
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(worker->arena, API_TYPE(respond_decision_task_completed_request));
    request->identity = IDENTITY;
    request->decisions = &decision;
    request->n_decisions = 1;
    struct complete_command command = {
        .request = request,
        .task = {.schedule_id = start->schedule_id, .attempt = start->attempt, .activity_id = ""},
        .client_name = "",
        .client_feature_version = "",
        .client_library_version = "",
    };
    struct complete_answer answer;
    struct run_key key = {worker->domain_id, task->workflow_id, start->run_id};
    struct error *err = engine_complete_decision(worker->api->options.engine, &key, &command,
                                                 worker->arena, &answer);
    mark(err == NULL ? "diagnosis_done" : "diagnosis_failed");
}

/* --- polling ---- */

static void
poll_back(struct poll *poll, enum poll_end end)
{
    struct worker *worker = container_of(poll, struct worker, poll);
    worker->end = end;
    latch_done(&worker->polled);
}

static void
poll_list(struct worker *worker)
{
    worker->poll = (struct poll){.type = TASK_DECISION,
                                 .kind = LIST_NORMAL,
                                 .domain_id = worker->domain_id,
                                 .domain_name = SYSTEM_DOMAIN,
                                 .list = DIAGNOSTICS_LIST,
                                 .base_list = "",
                                 .identity = IDENTITY,
                                 .rate_per_second = -1,
                                 .expiry = clock_monotonic() + POLL_TIME,
                                 .back = poll_back};
    latch_init(&worker->polled, 1);
    matching_poll(worker->api->options.matching, &worker->poll);
    latch_wait(&worker->polled);
}

static void
work_on(struct worker *worker)
{
    const struct task *task = worker->poll.task;
    struct matching *matching = worker->api->options.matching;
    struct decision_start start = {0};
    struct uuid uuid = uuid_new_v4();
    char request_id[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, request_id);
    if (task_is_query(task)) { /* is answered at the door, but for questions that nobody knows */
        matching_finish(matching, task);
        return;
    }
    struct error *err = engine_start_decision(worker->api->options.engine, task, request_id,
                                              IDENTITY, worker->arena, &start);
    bool is_void = err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS ||
                   err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_EVENT_ALREADY_STARTED ||
                   err->kind == ERR_SHARD_OWNERSHIP_LOST;
    if (is_void)
        matching_finish(matching, task);
    else
        matching_return(matching, task);
    if (err == NULL)
        complete(worker, task, &start);
    else if (!is_void)
        (void)(fiber_sleep(RETRY_TIME, worker->arena) == NULL);
}

/* True: there was something to do, or may be. */
static bool
work_once(struct worker *worker)
{
    poll_list(worker);
    bool is_matched = worker->end == POLL_MATCHED;
    if (is_matched) {
        fiber_set_deadline(clock_monotonic() + WORK_TIME);
        work_on(worker);
        fiber_set_deadline(NEVER);
    }
    if (worker->poll.task_arena != NULL)
        arena_free(worker->poll.task_arena);
    arena_reset(worker->arena);
    return is_matched;
}

static void
worker_main(void *argument)
{
    struct worker *worker = argument;
    struct api_loop *loop = api_here(worker->api);
    unsigned seen;
    do {
        seen = loop->diagnoses;
    } while (work_once(worker) ||
             (seen != loop->diagnoses && !atomic_load(&worker->api->is_draining)));
    loop->is_diagnosing = false;
    arena_free(worker->arena);
    memory_free(worker);
    latch_done(&loop->open);
}

void
diagnose_work(struct api *api)
{
    struct api_loop *loop = api_here(api);
    const struct domain *domain = domains_find_name(api->options.domains, SYSTEM_DOMAIN);
    loop->diagnoses++;
    if (loop->is_diagnosing || domain == NULL || atomic_load(&api->is_draining))
        return;
    struct worker *worker = memory_zalloc(1, sizeof *worker);
    worker->api = api;
    worker->arena = arena_new(0);
    snprintf(worker->domain_id, sizeof worker->domain_id, "%s", domain->id);
    loop->is_diagnosing = true;
    latch_add(&loop->open, 1);
    fiber_start("diagnostics", worker_main, worker);
}
