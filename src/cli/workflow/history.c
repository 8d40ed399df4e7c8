/* history.c - workflow show, and reading histories. See history.h. */
#include "cli/workflow/history.h"

#include "base/buffer.h"
#include "cli/output/render.h"
#include "cli/output/timeline.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "wire/message.h"

#define PAGE_SIZE    1000
#define TIMEOUT      (10 * NS_PER_S)
#define WAIT_TIMEOUT (90 * NS_PER_S) /* servers answer a wait earlier, with nothing */

struct error *
history_open(struct cli_call *call, struct cli_history_reader *reader)
{
    const char *run_id = cli_text(call, "run_id");
    *reader = (struct cli_history_reader){.call = call, .run_id = run_id != NULL ? run_id : ""};
    struct error *err = cli_need_domain(call, &reader->domain);
    if (err == NULL)
        err = cli_need(call, "workflow_id", &reader->workflow_id);
    return err;
}

struct error *
history_next(struct cli_history_reader *reader, API(History) **page)
{
    API(WorkflowExecution) execution = API_VALUE(WORKFLOW_EXECUTION__INIT);
    API(GetWorkflowExecutionHistoryRequest)
    request = API_VALUE(GET_WORKFLOW_EXECUTION_HISTORY_REQUEST__INIT);
    execution.workflow_id = (char *)reader->workflow_id;
    execution.run_id = (char *)reader->run_id;
    request.domain = (char *)reader->domain;
    request.workflow_execution = &execution;
    request.page_size = PAGE_SIZE;
    request.next_page_token = reader->token;
    request.wait_for_new_event = reader->waits;
    if (reader->waits)
        reader->call->timeout = NULL; /* it bounds answers, not waits */
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(reader->call, "/uber.cadence.api.v1.WorkflowAPI/GetWorkflowExecutionHistory",
                &request.base, reader->waits ? WAIT_TIMEOUT : TIMEOUT,
                API_TYPE(get_workflow_execution_history_response), &answer);
    if (err != NULL)
        return cli_advise(reader->call, err);
    const API(GetWorkflowExecutionHistoryResponse) *response =
        (const API(GetWorkflowExecutionHistoryResponse) *)answer;
    *page = response->history != NULL ? response->history
                                      : message_new(reader->call->arena, API_TYPE(history));
    reader->token = response->next_page_token;
    reader->is_over = response->next_page_token.len == 0;
    return NULL;
}

/* ---- show ---- */

struct show {
    struct cli_call *call;
    struct timeline timeline;
    struct timeline_style style;
    int64_t event_id; /* only this one; 0: all */
    json_t *events;   /* gathered for a file or as JSON; NULL: printed as they come */
};

static struct error *
open_show(struct cli_call *call, struct show *show)
{
    int64_t length_max;
    *show = (struct show){.call = call};
    struct error *err = cli_number(call, "max_field_length", 0, INT32_MAX, 0, &length_max);
    if (err == NULL)
        err = cli_number(call, "event_id", 1, INT64_MAX, 0, &show->event_id);
    if (err != NULL)
        return err;
    show->style = (struct timeline_style){
        .times = cli_is_on(call, "print_raw_time")   ? TIMELINE_RAW
                 : cli_is_on(call, "print_datetime") ? TIMELINE_DATES
                                                     : TIMELINE_SINCE_START,
        .has_version = cli_is_on(call, "print_event_version"),
        .has_detail = true,
        .is_full = cli_is_on(call, "full"),
        .has_colours = call->is_terminal,
        .field_length_max = (size_t)length_max,
    };
    if (call->as_json || cli_text(call, "output_filename") != NULL)
        show->events = json_array();
    return NULL;
}

static void
show_event(struct show *show, const API(HistoryEvent) *event)
{
    struct arena *arena = show->call->arena;
    timeline_note(&show->timeline, event, arena);
    if (show->event_id != 0 && show->event_id != event->event_id)
        return;
    if (cli_is_on(show->call, "reset_points_only") && !timeline_is_reset_point(event))
        return;
    if (show->events != NULL)
        json_array_append_new(show->events, render_message(&event->base, RENDER_CADENCE, arena));
    else if (show->event_id != 0)
        cli_print_json(render_message(&event->base, RENDER_READABLE, arena));
    else
        cli_print("%s", timeline_line(&show->timeline, &show->style, event, arena));
}

/* Into the file that was asked for, or to the reader. Lets go of them. */
static struct error *
finish_json(struct show *show)
{
    struct arena *arena = show->call->arena;
    const char *file = cli_text(show->call, "output_filename");
    const char *text = render_text(show->events, arena);
    size_t count = json_array_size(show->events);
    json_decref(show->events);
    if (file == NULL) {
        cli_print("%s", text);
        return NULL;
    }
    struct error *err = file_save(file, slice_text(text), arena);
    if (err == NULL)
        cli_print("%zu events were written to %s.\n", count, file);
    return err;
}

struct error *
cli_workflow_show(struct cli_call *call)
{
    struct cli_history_reader reader;
    struct show show;
    struct error *err = history_open(call, &reader);
    if (err == NULL)
        err = open_show(call, &show);
    if (err != NULL)
        return err;
    while (err == NULL && !reader.is_over) {
        API(History) *page = NULL;
        err = history_next(&reader, &page);
        for (size_t i = 0; err == NULL && i < page->n_events; i++)
            show_event(&show, page->events[i]);
    }
    if (show.events != NULL && err == NULL)
        return finish_json(&show);
    if (show.events != NULL)
        json_decref(show.events);
    if (err == NULL && show.event_id == 0)
        cli_print("%s\n", timeline_summary(&show.timeline, clock_wall(), call->arena));
    return err;
}
