/* workflow_calls.c - calls and messages of the workflow load. See workflow_inside.h. */
#include "base/check.h"
#include "base/vector.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define HISTORY_PAGE 7 /* small: the way over pages is tested too */

bool
workflow_is_expected(const struct error *err)
{
    bool is_late = strstr(err->message, "Context timeout is too short.") != NULL;
    return is_late || verdict_is_expected(err) || err->kind == ERR_SHARD_OWNERSHIP_LOST ||
           err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_ALREADY_STARTED ||
           err->kind == ERR_CANCELLATION_ALREADY_REQUESTED || err->kind == ERR_DOMAIN_NOT_ACTIVE;
}

struct error *
workflow_call_at(struct workflow_load *load, struct load_call *call,
                 const ProtobufCMessage *request, ProtobufCMessage **response)
{
    struct error *err = load_send_at(call, request, response);
    load->calls++;
    load->acknowledged += err == NULL;
    load->failed += err != NULL;
    if (err != NULL && !workflow_is_expected(err))
        verdict_violate(&load->verdict, "%s failed with %s: %s", request->descriptor->short_name,
                        error_kind_name(err->kind), err->message);
    return err;
}

unsigned
workflow_any_host(const struct workflow_load *load)
{
    return (unsigned)entropy_below(load->sim->count);
}

API(TaskList) *
workflow_task_list(struct arena *arena)
{
    return API_NEW(arena, task_list, .name = WORKFLOW_LIST);
}

API(WorkflowExecution) *
workflow_execution(struct arena *arena, const char *workflow_id, const char *run_id)
{
    return API_NEW(arena, workflow_execution, .workflow_id = (char *)workflow_id,
                   .run_id = (char *)run_id);
}

API(Payload) *
workflow_payload(struct arena *arena, const char *text)
{
    return presence_make_payload(arena,
                                 (struct maybe_bytes){.is_set = true, .bytes = slice_text(text)});
}

const char *
workflow_payload_text(struct arena *arena, const API(Payload) *payload)
{
    return arena_text_of(arena, presence_read_payload(payload).bytes);
}

struct error *
workflow_read_history(struct workflow_load *load, struct load_call *call, const char *workflow_id,
                      const char *run_id, struct history_seen *seen)
{
    struct arena *arena = call->arena;
    API(GetWorkflowExecutionHistoryRequest) *request =
        API_NEW(arena, get_workflow_execution_history_request, .domain = WORKFLOW_DOMAIN,
                .workflow_execution = workflow_execution(arena, workflow_id, run_id),
                .page_size = HISTORY_PAGE);
    size_t room = 0;
    *seen = (struct history_seen){0};
    do {
        API(GetWorkflowExecutionHistoryResponse) *page = NULL;
        struct error *err = workflow_call(load, call, request, &page);
        if (err != NULL)
            return err;
        room = seen->count + page->history->n_events;
        API(HistoryEvent) **all = arena_zalloc(arena, room + 1, sizeof *all);
        if (seen->count > 0)
            memcpy(all, seen->events, seen->count * sizeof *all);
        if (page->history->n_events > 0)
            memcpy(all + seen->count, page->history->events, page->history->n_events * sizeof *all);
        *seen = (struct history_seen){.events = all, .count = room};
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
    return NULL;
}
