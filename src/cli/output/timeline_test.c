/* timeline_test.c - histories as lines, and what a run waits for. */
#include "cli/output/timeline.h"

#include "base/test.h"
#include "wire/message.h"
#include "wire/presence.h"

#define NS    1000000000LL
#define START (1794000000LL * NS)

/* The arms of an event that the tests use. */
enum { STARTED = 5, COMPLETED = 6, SCHEDULED = 9, BEGUN = 10, DECIDED = 11, FAILED = 13 };
enum { ACTIVITY = 14, ACTIVITY_DONE = 16, TIMER = 19, FIRED = 20, CHILD = 35, CHILD_DONE = 38 };

static API(HistoryEvent) *
make_event(int arm, int64_t id, struct arena *arena)
{
    API(HistoryEvent) *event =
        API_NEW(arena, history_event, .event_id = id,
                .event_time = presence_make_timestamp(arena, START + (id - 1) * NS), .version = 3,
                .attributes_case = (API(HistoryEvent__AttributesCase))arm);
    for (unsigned i = 0; i < event->base.descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &event->base.descriptor->fields[i];
        if (field->id == (uint32_t)arm)
            *(void **)((char *)event + field->offset) = message_new(arena, field->descriptor);
    }
    return event;
}

/* The timeline of a history with these arms. */
static struct timeline
note_all(const int *arms, size_t count, struct arena *arena)
{
    struct timeline timeline = {0};
    for (size_t i = 0; i < count; i++)
        timeline_note(&timeline, make_event(arms[i], (int64_t)i + 1, arena), arena);
    return timeline;
}
#define NOTE(arena, ...)                                                                           \
    note_all((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int), (arena))

ARENA_TEST(timeline, what_was_begun_and_not_ended_is_pending)
{
    struct timeline timeline = NOTE(arena, STARTED, SCHEDULED);
    EXPECT_TEXT(timeline_pending(&timeline, arena), "a decision waits for a worker");
    timeline = NOTE(arena, STARTED, SCHEDULED, BEGUN);
    EXPECT_TEXT(timeline_pending(&timeline, arena), "a worker decides");
    timeline = NOTE(arena, STARTED, SCHEDULED, BEGUN, DECIDED, ACTIVITY, ACTIVITY, TIMER, CHILD);
    EXPECT_TEXT(timeline_pending(&timeline, arena), "2 activities, 1 timer, 1 child");
    timeline = NOTE(arena, STARTED, SCHEDULED, BEGUN, DECIDED, ACTIVITY, TIMER, CHILD,
                    ACTIVITY_DONE, FIRED, CHILD_DONE, SCHEDULED, BEGUN, FAILED);
    EXPECT_TEXT(timeline_pending(&timeline, arena), "nothing is pending: a signal or its timeout");
}

ARENA_TEST(timeline, a_summary_tells_how_it_stands_or_how_it_ended)
{
    struct timeline timeline = NOTE(arena, STARTED, SCHEDULED);
    EXPECT_TEXT(timeline_summary(&timeline, START + 61 * NS, arena),
                "open for 1m1s, 2 events; a decision waits for a worker");
    timeline = NOTE(arena, STARTED, SCHEDULED, BEGUN, DECIDED, COMPLETED);
    EXPECT_TEXT(timeline_summary(&timeline, START + 61 * NS, arena),
                "COMPLETED after 4.0s, 5 events");
    EXPECT(timeline.outcome == NULL && timeline.next_run_id == NULL);
}

ARENA_TEST(timeline, a_line_has_number_type_time_and_what_matters)
{
    API(HistoryEvent) *first = make_event(STARTED, 1, arena), *event;
    struct timeline timeline = {0};
    timeline_note(&timeline, first, arena);
    event = make_event(COMPLETED, 5, arena);
    event->workflow_execution_completed_event_attributes->decision_task_completed_event_id = 4;
    event->workflow_execution_completed_event_attributes->result =
        presence_make_payload(arena, (struct maybe_bytes){true, slice_text("\"all of it\"")});
    timeline_note(&timeline, event, arena);
    struct timeline_style style = {.has_detail = true, .type_width = 28};
    EXPECT_TEXT(timeline_line(&timeline, &style, event, arena),
                "   5  WorkflowExecutionCompleted       4.0s  result: all of it\n");
    style.field_length_max = 3;
    style.has_version = true;
    EXPECT_TEXT(timeline_line(&timeline, &style, event, arena),
                "   5  WorkflowExecutionCompleted       4.0s       3  result: all…\n");
    style.is_full = true;
    style.has_version = false;
    style.times = TIMELINE_DATES;
    EXPECT_TEXT(timeline_line(&timeline, &style, event, arena),
                "   5  WorkflowExecutionCompleted    2026-11-06T21:20:04Z  result: all of it, "
                "decisionTaskCompletedEventId: 4\n");
    style = (struct timeline_style){.has_colours = true, .times = TIMELINE_RAW, .type_width = 26};
    EXPECT_TEXT(timeline_line(&timeline, &style, event, arena),
                "   5  \033[32mWorkflowExecutionCompleted\033[0m  1794000004000000000\n");
    EXPECT_TEXT(timeline.outcome, "result: all of it");
}

ARENA_TEST(timeline, a_reset_goes_back_to_the_end_of_a_decision)
{
    EXPECT(timeline_is_reset_point(make_event(DECIDED, 4, arena)));
    EXPECT(timeline_is_reset_point(make_event(FAILED, 4, arena)));
    EXPECT(!timeline_is_reset_point(make_event(BEGUN, 4, arena)));
}
