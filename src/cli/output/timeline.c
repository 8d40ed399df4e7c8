/* timeline.c - see timeline.h.
 *
 * What an event does to the sums is a table: a run waits for everything that has begun and not
 * ended. */
#include "cli/output/timeline.h"

#include <string.h>

#include "base/check.h"
#include "cli/output/render.h"
#include "wire/presence.h"

#define TYPE_WIDTH 31 /* of the longest type that many histories have */
#define ARM(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)

enum colour { PLAIN, DIM, GREEN, RED, YELLOW, BLUE };

/* Per type: what it adds to the pending ones, how the run is closed by it, its colour. */
static const struct {
    int arm;
    int activity, timer, child;
    const char *status;
    enum colour colour;
} effects[] = {
    {ARM(WORKFLOW_EXECUTION_STARTED), 0, 0, 0, NULL, BLUE},
    {ARM(WORKFLOW_EXECUTION_SIGNALED), 0, 0, 0, NULL, BLUE},
    {ARM(WORKFLOW_EXECUTION_COMPLETED), 0, 0, 0, "COMPLETED", GREEN},
    {ARM(WORKFLOW_EXECUTION_FAILED), 0, 0, 0, "FAILED", RED},
    {ARM(WORKFLOW_EXECUTION_TIMED_OUT), 0, 0, 0, "TIMED_OUT", RED},
    {ARM(WORKFLOW_EXECUTION_CANCELED), 0, 0, 0, "CANCELED", YELLOW},
    {ARM(WORKFLOW_EXECUTION_TERMINATED), 0, 0, 0, "TERMINATED", RED},
    {ARM(WORKFLOW_EXECUTION_CONTINUED_AS_NEW), 0, 0, 0, "CONTINUED_AS_NEW", GREEN},
    {ARM(DECISION_TASK_SCHEDULED), 0, 0, 0, NULL, DIM},
    {ARM(DECISION_TASK_STARTED), 0, 0, 0, NULL, DIM},
    {ARM(DECISION_TASK_COMPLETED), 0, 0, 0, NULL, DIM},
    {ARM(DECISION_TASK_FAILED), 0, 0, 0, NULL, RED},
    {ARM(DECISION_TASK_TIMED_OUT), 0, 0, 0, NULL, RED},
    {ARM(ACTIVITY_TASK_SCHEDULED), 1, 0, 0, NULL, PLAIN},
    {ARM(ACTIVITY_TASK_COMPLETED), -1, 0, 0, NULL, GREEN},
    {ARM(ACTIVITY_TASK_FAILED), -1, 0, 0, NULL, RED},
    {ARM(ACTIVITY_TASK_TIMED_OUT), -1, 0, 0, NULL, RED},
    {ARM(ACTIVITY_TASK_CANCELED), -1, 0, 0, NULL, YELLOW},
    {ARM(TIMER_STARTED), 0, 1, 0, NULL, PLAIN},
    {ARM(TIMER_FIRED), 0, -1, 0, NULL, PLAIN},
    {ARM(TIMER_CANCELED), 0, -1, 0, NULL, YELLOW},
    {ARM(START_CHILD_WORKFLOW_EXECUTION_INITIATED), 0, 0, 1, NULL, PLAIN},
    {ARM(START_CHILD_WORKFLOW_EXECUTION_FAILED), 0, 0, -1, NULL, RED},
    {ARM(CHILD_WORKFLOW_EXECUTION_COMPLETED), 0, 0, -1, NULL, GREEN},
    {ARM(CHILD_WORKFLOW_EXECUTION_FAILED), 0, 0, -1, NULL, RED},
    {ARM(CHILD_WORKFLOW_EXECUTION_CANCELED), 0, 0, -1, NULL, YELLOW},
    {ARM(CHILD_WORKFLOW_EXECUTION_TIMED_OUT), 0, 0, -1, NULL, RED},
    {ARM(CHILD_WORKFLOW_EXECUTION_TERMINATED), 0, 0, -1, NULL, RED},
};

/* Of little use to most readers; --print_full shows them. */
static const char *const hidden[] = {
    "originalExecutionRunId", "firstExecutionRunId", "requestId", "decisionTaskCompletedEventId",
    "scheduledEventId",       "startedEventId",      "control",   "binaryChecksum",
    "executionContext",       "prevAutoResetPoints",
};

/* ---- sums ---- */

static void
note_decision(struct timeline *timeline, int arm)
{
    if (arm == (int)ARM(DECISION_TASK_SCHEDULED))
        timeline->has_decision = true;
    if (arm == (int)ARM(DECISION_TASK_STARTED))
        timeline->is_decision_started = true;
    if (arm == (int)ARM(DECISION_TASK_COMPLETED) || arm == (int)ARM(DECISION_TASK_FAILED) ||
        arm == (int)ARM(DECISION_TASK_TIMED_OUT))
        timeline->has_decision = timeline->is_decision_started = false;
}

static void
note_close(struct timeline *timeline, const API(HistoryEvent) *event, struct arena *arena)
{
    const ProtobufCMessage *attributes = render_event_attributes(event);
    if (event->attributes_case == ARM(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        timeline->next_run_id = arena_text(
            arena,
            event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
    json_t *shown = render_message(attributes, RENDER_READABLE, arena);
    json_object_del(shown, "decisionTaskCompletedEventId");
    const char *line = render_line(shown, 0, arena);
    timeline->outcome = line[0] == '\0' ? NULL : arena_text(arena, line);
    json_decref(shown);
}

void
timeline_note(struct timeline *timeline, const API(HistoryEvent) *event, struct arena *arena)
{
    timeline->last = presence_time(event->event_time);
    if (timeline->event_count++ == 0)
        timeline->start = timeline->last;
    note_decision(timeline, (int)event->attributes_case);
    for (size_t i = 0; i < array_length(effects); i++) {
        if (effects[i].arm != (int)event->attributes_case)
            continue;
        timeline->activities += effects[i].activity;
        timeline->timers += effects[i].timer;
        timeline->children += effects[i].child;
        if (effects[i].status != NULL) {
            timeline->status = effects[i].status;
            note_close(timeline, event, arena);
        }
    }
    const API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    if (event->attributes_case == ARM(WORKFLOW_EXECUTION_STARTED) && started->task_list != NULL)
        timeline->task_list = arena_text(arena, started->task_list->name);
}

/* ---- lines ---- */

static const char *
paint(enum colour colour, bool has_colours, const char *text, struct arena *arena)
{
    static const char *const codes[] = {"", "2", "32", "31", "33", "36"};
    if (!has_colours || colour == PLAIN)
        return text;
    return arena_format(arena, "\033[%sm%s\033[0m", codes[colour], text);
}

static enum colour
colour_of(const API(HistoryEvent) *event)
{
    for (size_t i = 0; i < array_length(effects); i++) {
        if (effects[i].arm == (int)event->attributes_case)
            return effects[i].colour;
    }
    return PLAIN;
}

static const char *
time_text(const struct timeline *timeline, const struct timeline_style *style,
          const API(HistoryEvent) *event, struct arena *arena)
{
    int64_t time = presence_time(event->event_time);
    if (style->times == TIMELINE_RAW)
        return arena_format(arena, "%lld", (long long)time);
    if (style->times == TIMELINE_DATES)
        return render_time(time / 1000000 * 1000000, arena);
    return render_span(time - timeline->start, arena);
}

static const char *
detail_text(const struct timeline_style *style, const API(HistoryEvent) *event, struct arena *arena)
{
    const ProtobufCMessage *attributes = render_event_attributes(event);
    if (!style->has_detail || attributes == NULL)
        return "";
    json_t *shown = render_message(attributes, RENDER_READABLE, arena);
    for (size_t i = 0; i < array_length(hidden) && !style->is_full; i++)
        json_object_del(shown, hidden[i]);
    const char *line = render_line(shown, style->is_full ? 0 : style->field_length_max, arena);
    json_decref(shown);
    return line;
}

const char *
timeline_line(const struct timeline *timeline, const struct timeline_style *style,
              const API(HistoryEvent) *event, struct arena *arena)
{
    const char *type = render_event_type(event, arena);
    const char *time = time_text(timeline, style, event, arena);
    const char *detail = detail_text(style, event, arena);
    int width = style->type_width != 0 ? style->type_width : TYPE_WIDTH;
    const char *padded = arena_format(arena, "%-*s", width, type);
    const char *version =
        style->has_version ? arena_format(arena, "  %6lld", (long long)event->version) : "";
    return arena_format(arena, "%4lld  %s  %7s%s%s%s\n", (long long)event->event_id,
                        paint(colour_of(event), style->has_colours, padded, arena), time, version,
                        detail[0] == '\0' ? "" : "  ", detail);
}

/* ---- sentences ---- */

static const char *
add(const char *text, int64_t count, const char *one, const char *many, struct arena *arena)
{
    if (count <= 0)
        return text;
    return arena_format(arena, "%s%s%lld %s", text, text[0] == '\0' ? "" : ", ", (long long)count,
                        count == 1 ? one : many);
}

const char *
timeline_pending(const struct timeline *timeline, struct arena *arena)
{
    const char *text = "";
    if (timeline->has_decision)
        text = timeline->is_decision_started ? "a worker decides" : "a decision waits for a worker";
    text = add(text, timeline->activities, "activity", "activities", arena);
    text = add(text, timeline->timers, "timer", "timers", arena);
    text = add(text, timeline->children, "child", "children", arena);
    return text[0] == '\0' ? "nothing is pending: a signal or its timeout" : text;
}

const char *
timeline_summary(const struct timeline *timeline, int64_t now, struct arena *arena)
{
    const char *events = timeline->event_count == 1 ? "event" : "events";
    if (timeline->status != NULL)
        return arena_format(arena, "%s after %s, %zu %s", timeline->status,
                            render_span(timeline->last - timeline->start, arena),
                            timeline->event_count, events);
    return arena_format(arena, "open for %s, %zu %s; %s",
                        render_span(now > timeline->start ? now - timeline->start : 0, arena),
                        timeline->event_count, events, timeline_pending(timeline, arena));
}

bool
timeline_is_reset_point(const API(HistoryEvent) *event)
{
    return event->attributes_case == ARM(DECISION_TASK_COMPLETED) ||
           event->attributes_case == ARM(DECISION_TASK_FAILED) ||
           event->attributes_case == ARM(DECISION_TASK_TIMED_OUT);
}
