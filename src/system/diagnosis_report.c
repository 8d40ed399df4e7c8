/* diagnosis_report.c - the report of a diagnosis: see diagnosis.h. diagnosis_issues.c decides what
 * is an issue.
 *
 * Events come one by one. Of those that a later one may be about (what scheduled it, what started
 * it) the attributes are kept without their payloads; of each issue its JSON. Texts, names and
 * format are those of Cadence's reports, so that their readers can read these. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "system/diagnosis_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ISSUES_MAX 10 /* of each kind */
#define RUNBOOK    "https://cadenceworkflow.io/docs/workflow-troubleshooting/"

/* --- JSON ---- */

static void
values_add(struct diagnosis *diagnosis, struct values *values, const char *json)
{
    vector_push_in(&values->list, diagnosis->arena, json);
}

static const char *
values_join(const struct diagnosis *diagnosis, const struct values *values)
{
    size_t length = 3;
    for (size_t i = 0; i < values->list.count; i++)
        length += strlen(values->list.items[i]) + 1;
    char *text = arena_alloc(diagnosis->arena, length), *end = text;
    *end++ = '[';
    for (size_t i = 0; i < values->list.count; i++) {
        if (i > 0)
            *end++ = ',';
        end = stpcpy(end, values->list.items[i]);
    }
    *end++ = ']';
    *end = '\0';
    check((size_t)(end - text) < length);
    return text;
}

/* A text as JSON has it, in quotes. */
const char *
report_quote(const struct diagnosis *diagnosis, const char *text)
{
    struct json_writer writer = object_write_begin(diagnosis->arena, 1, strlen(text));
    object_write_text(&writer, "", text);
    struct slice object = object_write_end(&writer); /* {"":"…"} */
    check(object.length > 5);
    return arena_text_of(diagnosis->arena, slice_of(object.data + 4, object.length - 5));
}

const char *
report_list(const struct diagnosis *diagnosis, const API(TaskList) *list)
{
    if (list == NULL)
        return "null";
    bool is_sticky = list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    return arena_format(diagnosis->arena, "{\"name\":%s,\"kind\":\"%s\"}",
                        report_quote(diagnosis, list->name), is_sticky ? "STICKY" : "NORMAL");
}

int64_t
report_seconds(const GOOGLE(Duration) *duration)
{
    return duration == NULL ? 0 : duration->seconds;
}

const char *
report_policy(const struct diagnosis *diagnosis, const API(RetryPolicy) *policy)
{
    if (policy == NULL)
        return "null";
    return arena_format(
        diagnosis->arena,
        "{\"initialIntervalInSeconds\":%lld,\"backoffCoefficient\":%g,"
        "\"maximumIntervalInSeconds\":%lld,\"maximumAttempts\":%d,"
        "\"expirationIntervalInSeconds\":%lld}",
        (long long)report_seconds(policy->initial_interval), policy->backoff_coefficient,
        (long long)report_seconds(policy->maximum_interval), policy->maximum_attempts,
        (long long)report_seconds(policy->expiration_interval));
}

/* Adds an issue, if there are not too many; true: it is number *id of its kind. */
bool
report_add_issue(struct diagnosis *diagnosis, struct values *issues, const char *kind,
                 const char *reason, const char *metadata, size_t *id)
{
    *id = issues->list.count;
    check(*id <= ISSUES_MAX);
    if (*id == ISSUES_MAX)
        return false;
    values_add(diagnosis, issues,
               arena_format(diagnosis->arena,
                            "{\"IssueID\":%zu,\"InvariantType\":%s,\"Reason\":%s,\"Metadata\":%s}",
                            *id, report_quote(diagnosis, kind), report_quote(diagnosis, reason),
                            metadata));
    return true;
}

void
report_add_cause(struct diagnosis *diagnosis, struct values *causes, size_t issue, const char *kind,
                 const char *metadata)
{
    check(issue < ISSUES_MAX);
    values_add(diagnosis, causes,
               arena_format(diagnosis->arena,
                            "{\"IssueID\":%zu,\"RootCauseType\":%s,\"Metadata\":%s}", issue,
                            report_quote(diagnosis, kind), metadata));
}

/* --- what later events name ---- */

static void
know(struct diagnosis *diagnosis, const API(HistoryEvent) *event,
     const ProtobufCMessage *attributes)
{
    struct known_event *known = arena_make(diagnosis->arena, struct known_event);
    known->time = presence_time(event->event_time);
    known->attributes = message_copy(diagnosis->arena, attributes);
    map64_put(diagnosis->known, (uint64_t)event->event_id, known);
}

static void
know_event(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED): {
        API(WorkflowExecutionStartedEventAttributes) bare =
            *event->workflow_execution_started_event_attributes;
        bare.input = NULL;
        bare.memo = NULL;
        bare.last_completion_result = NULL;
        know(diagnosis, event, &bare.base);
        const struct known_event *known = map64_get(diagnosis->known, (uint64_t)event->event_id);
        diagnosis->started = known->attributes;
        return;
    }
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED): {
        API(ActivityTaskScheduledEventAttributes) bare =
            *event->activity_task_scheduled_event_attributes;
        bare.input = NULL;
        bare.header = NULL;
        know(diagnosis, event, &bare.base);
        return;
    }
    case EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED): {
        API(StartChildWorkflowExecutionInitiatedEventAttributes) bare =
            *event->start_child_workflow_execution_initiated_event_attributes;
        bare.input = NULL;
        bare.header = NULL;
        bare.memo = NULL;
        know(diagnosis, event, &bare.base);
        return;
    }
    case EVENT_KIND(DECISION_TASK_SCHEDULED):
        know(diagnosis, event, &event->decision_task_scheduled_event_attributes->base);
        return;
    case EVENT_KIND(DECISION_TASK_COMPLETED): {
        API(DecisionTaskCompletedEventAttributes) bare =
            *event->decision_task_completed_event_attributes;
        bare.execution_context = (ProtobufCBinaryData){0};
        know(diagnosis, event, &bare.base);
        return;
    }
    case EVENT_KIND(ACTIVITY_TASK_STARTED):
    case EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED):
        know(diagnosis, event, NULL);
        return;
    default:
        return;
    }
}

/* Its attributes if it is an event that was kept with them; NULL: it is not there. */
const void *
report_find(const struct diagnosis *diagnosis, int64_t event_id,
            const ProtobufCMessageDescriptor *type)
{
    const struct known_event *known = map64_get(diagnosis->known, (uint64_t)event_id);
    const ProtobufCMessage *attributes = known == NULL ? NULL : known->attributes;
    return attributes != NULL && attributes->descriptor == type ? attributes : NULL;
}

/* From an event to this one, ns. */
int64_t
report_elapsed(const struct diagnosis *diagnosis, int64_t from_id, const API(HistoryEvent) *event)
{
    const struct known_event *from = map64_get(diagnosis->known, (uint64_t)from_id);
    return from == NULL ? 0 : presence_time(event->event_time) - from->time;
}

/* --- all of it ---- */

struct diagnosis *
diagnosis_begin(struct arena *arena)
{
    struct diagnosis *diagnosis = arena_make(arena, struct diagnosis);
    *diagnosis = (struct diagnosis){.arena = arena, .known = map64_new()};
    return diagnosis;
}

void
diagnosis_add(struct diagnosis *diagnosis, const API(HistoryEvent) *event)
{
    report_examine(diagnosis, event);
    know_event(diagnosis, event);
    diagnosis->last.id = event->event_id;
    diagnosis->last.time = presence_time(event->event_time);
    diagnosis->last.version = event->version;
    diagnosis->last.task_id = event->task_id;
    diagnosis->last.kind = event->attributes_case;
}

/* Did anybody poll the lists of the timeouts? */
static void
describe_lists(struct diagnosis *diagnosis, const struct pollers_port *port)
{
    vector_each(suspect, &diagnosis->suspects) {
        int64_t backlog = 0;
        check(suspect->issue < diagnosis->timeouts.list.count);
        bool is_polled =
            port->describe(port->context, suspect->is_decision, suspect->list, &backlog);
        report_add_cause(
            diagnosis, &diagnosis->timeout_causes, suspect->issue,
            is_polled ? "There are pollers for the tasklist. Check backlog status"
                      : "There are no pollers for the tasklist",
            arena_format(diagnosis->arena,
                         "{\"PollersMetadata\":{\"TaskListName\":%s,\"TaskListBacklog\":%lld},"
                         "\"HeartBeatingMetadata\":null}",
                         report_quote(diagnosis, suspect->list), (long long)backlog));
    }
}

static const char *
section(const struct diagnosis *diagnosis, const struct values *issues, const struct values *causes,
        const char *runbook)
{
    if (issues->list.count == 0)
        return "null";
    const char *rest = causes == NULL ? ""
                                      : arena_format(diagnosis->arena, "\"RootCause\":%s,",
                                                     values_join(diagnosis, causes));
    return arena_format(diagnosis->arena, "{\"Issues\":%s,%s\"Runbook\":\"%s\"}",
                        values_join(diagnosis, issues), rest, runbook);
}

struct slice
diagnosis_end(struct diagnosis *diagnosis, const struct pollers_port *port)
{
    describe_lists(diagnosis, port);
    return slice_text(arena_format(
        diagnosis->arena,
        "{\"DiagnosticsResult\":{\"Timeouts\":%s,\"Failures\":%s,\"Retries\":%s},"
        "\"DiagnosticsCompleted\":true}\n",
        section(diagnosis, &diagnosis->timeouts, &diagnosis->timeout_causes, RUNBOOK "timeouts/"),
        section(diagnosis, &diagnosis->failures, &diagnosis->failure_causes,
                RUNBOOK "activity-failures/"),
        section(diagnosis, &diagnosis->retries, NULL, RUNBOOK "retries")));
}

void
diagnosis_free(struct diagnosis *diagnosis)
{
    map64_free(diagnosis->known);
}

struct slice
diagnosis_pending(struct arena *arena)
{
    return slice_text(arena_text(arena,
                                 "{\"DiagnosticsResult\":{\"Timeouts\":null,\"Failures\":null,"
                                 "\"Retries\":null},\"DiagnosticsCompleted\":false}\n"));
}
