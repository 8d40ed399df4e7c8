/* hold_script.c - see hold_script.h. */
#include "sim/failover/hold_script.h"

#include "fiber/fiber.h"

void
callers_init(struct callers *callers)
{
    callers->count = 0;
    latch_init(&callers->latch, 0);
}

int64_t
callers_begin(struct callers *callers, struct script *script)
{
    callers_init(callers);
    script_start(script, 0, "w");
    return begin_drain(script);
}

static void
call_in_fiber(void *argument)
{
    struct caller *caller = argument;
    struct load_call call = {.clients = caller->script->clients,
                             .host = caller->cluster,
                             .arena = caller->script->arena,
                             .is_worker = true};
    fiber_set_deadline(clock_monotonic() + caller->timeout);
    caller->err = load_send_at(&call, caller->request, &caller->response);
    fiber_set_deadline(NEVER);
    caller->answered = clock_monotonic();
    latch_done(caller->latch);
}

struct caller *
call_later_at(struct callers *callers, struct script *script, unsigned cluster,
              ProtobufCMessage *request)
{
    EXPECT(callers->count < CALLS_MAX);
    struct caller *caller = &callers->items[callers->count++];
    *caller = (struct caller){.script = script,
                              .cluster = cluster,
                              .request = request,
                              .timeout = LONG,
                              .latch = &callers->latch};
    latch_add(&callers->latch, 1);
    fiber_start("caller", call_in_fiber, caller);
    script_sleep(script, 50 * NS_PER_MS);
    return caller;
}

void
callers_expect_ok(struct callers *callers, int64_t not_before)
{
    latch_wait(&callers->latch);
    for (size_t i = 0; i < callers->count; i++) {
        struct caller *caller = &callers->items[i];
        if (caller->err != NULL)
            TEST_FAIL("call %zu, %s at cluster%u: %s", i, caller->request->descriptor->short_name,
                      caller->cluster, caller->err->message);
        EXPECT(caller->answered >= not_before);
    }
}

void
callers_expect_held(struct callers *callers, int64_t end)
{
    EXPECT(clock_monotonic() < end - NS_PER_S);
    callers_expect_ok(callers, end - 100 * NS_PER_MS);
}

/* --- requests ---- */

API(WorkflowExecution) *
execution_of(struct script *script, const char *id)
{
    return script_execution(script, arena_text(script->arena, id), "");
}

void
signal_later(struct callers *callers, struct script *script, unsigned cluster, const char *id,
             const char *name)
{
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(script->arena, signal_workflow_execution_request, .domain = SCRIPT_DOMAIN,
                .workflow_execution = execution_of(script, id),
                .signal_name = arena_text(script->arena, name));
    call_later(callers, script, cluster, request);
}

void
signals_later(struct callers *callers, struct script *script, const char *id, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        signal_later(callers, script, i % 2, id, arena_format(script->arena, "s%u", i));
}

void
start_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    call_later(callers, script, cluster, script_start_request(script, id));
}

void
signal_with_start_later(struct callers *callers, struct script *script, unsigned cluster,
                        const char *id)
{
    API(SignalWithStartWorkflowExecutionRequest) *request =
        API_NEW(script->arena, signal_with_start_workflow_execution_request,
                .start_request = script_start_request(script, id), .signal_name = "with start");
    call_later(callers, script, cluster, request);
}

void
cancel_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        API_NEW(script->arena, request_cancel_workflow_execution_request, .domain = SCRIPT_DOMAIN,
                .workflow_execution = execution_of(script, id),
                .request_id = script_start_request(script, id)->request_id);
    call_later(callers, script, cluster, request);
}

void
terminate_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(TerminateWorkflowExecutionRequest) *request =
        API_NEW(script->arena, terminate_workflow_execution_request, .domain = SCRIPT_DOMAIN,
                .workflow_execution = execution_of(script, id));
    call_later(callers, script, cluster, request);
}

void
ask_for_drain(struct script *script, unsigned to, int64_t seconds)
{
    EXPECT_OK(
        SCRIPT_CALL(script, to, NULL, failover_domain, .domain_name = SCRIPT_DOMAIN,
                    .domain_active_cluster_name = arena_format(script->arena, "cluster%u", to),
                    .failover_timeout = presence_make_duration(script->arena, seconds)));
}

int64_t
begin_drain(struct script *script)
{
    int64_t end = clock_monotonic() + DRAIN;
    ask_for_drain(script, 1, DRAIN / NS_PER_S);
    script_sleep(script, NS_PER_S); /* cluster 0 has heard of it */
    return end;
}

void
expect_first_signal(struct script *script)
{
    script_sleep(script, DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "first"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "first");
}

const char *
signals_of(struct script *script, unsigned cluster, const char *id)
{
    API(History) *history = script_history(script, cluster, id, "");
    const char *names = "";
    EXPECT(history != NULL);
    for (size_t i = 0; i < history->n_events; i++) {
        const API(WorkflowExecutionSignaledEventAttributes) *signal =
            history->events[i]->workflow_execution_signaled_event_attributes;
        if (signal != NULL &&
            history->events[i]->attributes_case ==
                API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES))
            names = arena_format(script->arena, "%s%s%s", names, names[0] == '\0' ? "" : " ",
                                 signal->signal_name);
    }
    return names;
}

int
last_event(struct script *script, unsigned cluster, const char *id)
{
    API(History) *history = script_history(script, cluster, id, "");
    EXPECT(history != NULL && history->n_events > 0);
    return (int)history->events[history->n_events - 1]->attributes_case;
}
