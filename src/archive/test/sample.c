/* sample.c - see sample.h. */
#include "archive/test/sample.h"

#include "base/buffer.h"
#include "wire/message.h"
#include "wire/presence.h"

struct source {
    size_t batches, payload;
};

static struct slice
make_batch(int64_t first_event_id, size_t payload, struct arena *arena)
{
    API(History) *batch = API_NEW(arena, history, .n_events = 2);
    batch->events = arena_zalloc(arena, 2, sizeof batch->events[0]);
    for (int i = 0; i < 2; i++) {
        API(HistoryEvent) *event = API_NEW(arena, history_event);
        API(WorkflowExecutionSignaledEventAttributes) *attributes =
            API_NEW(arena, workflow_execution_signaled_event_attributes);
        uint8_t *bytes = arena_alloc(arena, payload + 1);
        memset(bytes, (int)(first_event_id % 251), payload + 1);
        attributes->signal_name = "go";
        attributes->input =
            API_NEW(arena, payload, .data = presence_make_bytes(slice_of(bytes, payload + 1)));
        event->event_id = first_event_id + i;
        event->version = 7;
        event->event_time = presence_make_timestamp(arena, 1 + event->event_id);
        event->attributes_case =
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES);
        event->workflow_execution_signaled_event_attributes = attributes;
        batch->events[i] = event;
    }
    return message_encode(arena, &batch->base);
}

/* Three batches at a time. */
static struct error *
read_source(void *context, int64_t from, struct arena *arena, struct history_page *page)
{
    const struct source *source = context;
    int64_t end = 1 + 2 * (int64_t)source->batches;
    *page = (struct history_page){.node = arena_zalloc(arena, 3, sizeof page->node[0])};
    for (; page->count < 3 && from < end; from += 2)
        page->node[page->count++] =
            (struct history_node){.first_event_id = from,
                                  .next_event_id = from + 2,
                                  .events = make_batch(from, source->payload, arena)};
    page->next_event_id = from;
    return NULL;
}

static API(WorkflowExecutionInfo) *
make_info(struct arena *arena)
{
    return API_NEW(
        arena, workflow_execution_info,
        .workflow_execution =
            API_NEW(arena, workflow_execution, .workflow_id = "wf", .run_id = (char *)SAMPLE_RUN),
        .type = API_NEW(arena, workflow_type, .name = "order"), .task_list = "work",
        .start_time = presence_make_timestamp(arena, SAMPLE_CLOSED - 5000),
        .close_time = presence_make_timestamp(arena, SAMPLE_CLOSED),
        .close_status = API_VALUE(
            WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW),
        .history_length = 8);
}

struct archive_run *
sample_run(struct arena *arena, size_t batches, size_t payload)
{
    struct archive_run *run = arena_make(arena, struct archive_run);
    struct source *source = arena_make(arena, struct source);
    *source = (struct source){batches, payload};
    *run = (struct archive_run){.domain_id = SAMPLE_DOMAIN,
                                .domain_name = "orders",
                                .workflow_id = "wf",
                                .run_id = SAMPLE_RUN,
                                .history_uri = "file:///archive/histories",
                                .visibility_uri = "file:///archive/lists",
                                .event_version = 7,
                                .next_event_id = 1 + 2 * (int64_t)batches,
                                .info = message_encode(arena, &make_info(arena)->base),
                                .shard = 3,
                                .range_id = 5,
                                .read = read_source,
                                .context = source};
    return run;
}

struct slice
sample_events(const struct archive_run *run, struct arena *arena)
{
    scoped(buffer_free) struct buffer all = {0};
    struct history_page page = {0};
    for (int64_t next = 1; next < run->next_event_id; next = page.next_event_id) {
        EXPECT_OK(run->read(run->context, next, arena, &page));
        for (size_t i = 0; i < page.count; i++)
            buffer_append(&all, page.node[i].events);
    }
    return arena_slice(arena, buffer_slice(&all));
}

struct archive *
sample_archive(const struct dynamic *dynamic, const char *owner)
{
    const struct archive_settings on = {.is_enabled = true,
                                        .is_readable = true,
                                        .has_files = true,
                                        .file_mode = 0640,
                                        .dir_mode = 0750};
    return archive_new(
        &(struct archive_options){.settings = {on, on}, .dynamic = dynamic, .owner = owner});
}

struct error *
sample_read(struct archive *archive, const struct archive_run *run, size_t events_max,
            struct arena *arena, struct slice *events)
{
    scoped(buffer_free) struct buffer all = {0};
    struct archive_history_question question = {.uri = run->history_uri,
                                                .domain_id = run->domain_id,
                                                .workflow_id = run->workflow_id,
                                                .run_id = run->run_id,
                                                .events_max = events_max};
    do {
        struct archive_history_page page = {0};
        struct error *err = archive_read_history(archive, &question, arena, &page);
        if (err != NULL)
            return err;
        buffer_append(&all, page.events);
        question.token = page.token;
    } while (question.token.length > 0);
    *events = arena_slice(arena, buffer_slice(&all));
    return NULL;
}
