/* thrift_table.c - gives the rows of thrift_fields.h their meaning.
 *
 * Each struct of the table becomes a function that returns a constant. A function, because a local
 * name for the message that the struct is lets a row say no more than the name of its field. */
#include "wire/thrift_table.h"

#include "base/check.h"
#include "base/compiler.h"

/* clang-format off */
#define BEGIN(name, Name)                                                                          \
    static const struct thrift_struct *struct_##name(void)                                         \
    {                                                                                              \
        typedef API(Name) message;                                                                 \
        static const struct thrift_struct structure = {.type = API_TYPE(name), .fields = {
#define ATTRIBUTES(name, Name) BEGIN(name##_event_attributes, Name##EventAttributes)
#define END                                                                                        \
        {0}}};                                                                                     \
        return &structure;                                                                         \
    }

#define ROW(id_, kind_, field_)                                                                    \
    .id = id_, .kind = THRIFT_##kind_, .offset = offsetof(message, field_)
#define COUNT(field) .count_offset = offsetof(message, n_##field)

#define FIELD(id, kind, field)       {ROW(id, kind, field)},
#define TEXTS(id, field)             {ROW(id, TEXT_LIST, field), COUNT(field)},
#define STRUCT(id, name, field)      {ROW(id, STRUCT, field), .structure = struct_##name},
#define LIST(id, name, field)        {ROW(id, STRUCT_LIST, field), COUNT(field),                   \
                                      .structure = struct_##name},
#define MAP(id, kind, field, pair)   {ROW(id, kind, field), COUNT(field), .entry = API_TYPE(pair)},

/* A value in a message that thrift does not have. */
#define PART(id_, kind_, in, name, Name, field)                                                    \
    .id = id_, .kind = THRIFT_##kind_, .offset = offsetof(API(Name), field),                       \
    .group = API_TYPE(name), .group_offset = offsetof(message, in)
#define FAILURE(id, kind, in, field) PART(id, kind, in, failure, Failure, field)
#define PARENT_PART(id, kind, field)                                                               \
    PART(id, kind, parent_execution_info, parent_execution_info, ParentExecutionInfo, field)
#define EXTERNAL_PART(id, kind, field)                                                             \
    PART(id, kind, external_execution_info, external_execution_info, ExternalExecutionInfo, field)

#define FAILURE_REASON(id, in)           {FAILURE(id, TEXT, in, reason)},
#define FAILURE_DETAILS(id, in)          {FAILURE(id, BYTES, in, details)},
#define FAILURE_OPTIONS(id, in)          {FAILURE(id, STRUCT, in, options),                        \
                                          .structure = struct_failure_options},
#define PARENT(id, kind, field)          {PARENT_PART(id, kind, field)},
#define PARENT_STRUCT(id, name, field)   {PARENT_PART(id, STRUCT, field),                          \
                                          .structure = struct_##name},
#define EXTERNAL(id, kind, field)        {EXTERNAL_PART(id, kind, field)},
#define EXTERNAL_STRUCT(id, name, field) {EXTERNAL_PART(id, STRUCT, field),                        \
                                          .structure = struct_##name},

#include "wire/thrift_fields.h"

/* EVENT(id of the attributes, eventType, name) */
#define EVENT(id, type, NAME, name)                                                                \
    {id, type, API_VALUE(HISTORY_EVENT__ATTRIBUTES_##NAME##_EVENT_ATTRIBUTES),                     \
     struct_##name##_event_attributes},

static const struct thrift_event events[] = {
    EVENT(40, 0, WORKFLOW_EXECUTION_STARTED, workflow_execution_started)
    EVENT(50, 1, WORKFLOW_EXECUTION_COMPLETED, workflow_execution_completed)
    EVENT(60, 2, WORKFLOW_EXECUTION_FAILED, workflow_execution_failed)
    EVENT(70, 3, WORKFLOW_EXECUTION_TIMED_OUT, workflow_execution_timed_out)
    EVENT(80, 4, DECISION_TASK_SCHEDULED, decision_task_scheduled)
    EVENT(90, 5, DECISION_TASK_STARTED, decision_task_started)
    EVENT(100, 6, DECISION_TASK_COMPLETED, decision_task_completed)
    EVENT(110, 7, DECISION_TASK_TIMED_OUT, decision_task_timed_out)
    EVENT(120, 8, DECISION_TASK_FAILED, decision_task_failed)
    EVENT(130, 9, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled)
    EVENT(140, 10, ACTIVITY_TASK_STARTED, activity_task_started)
    EVENT(150, 11, ACTIVITY_TASK_COMPLETED, activity_task_completed)
    EVENT(160, 12, ACTIVITY_TASK_FAILED, activity_task_failed)
    EVENT(170, 13, ACTIVITY_TASK_TIMED_OUT, activity_task_timed_out)
    EVENT(180, 17, TIMER_STARTED, timer_started)
    EVENT(190, 18, TIMER_FIRED, timer_fired)
    EVENT(200, 14, ACTIVITY_TASK_CANCEL_REQUESTED, activity_task_cancel_requested)
    EVENT(210, 15, REQUEST_CANCEL_ACTIVITY_TASK_FAILED, request_cancel_activity_task_failed)
    EVENT(220, 16, ACTIVITY_TASK_CANCELED, activity_task_canceled)
    EVENT(230, 20, TIMER_CANCELED, timer_canceled)
    EVENT(240, 19, CANCEL_TIMER_FAILED, cancel_timer_failed)
    EVENT(250, 26, MARKER_RECORDED, marker_recorded)
    EVENT(260, 27, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled)
    EVENT(270, 28, WORKFLOW_EXECUTION_TERMINATED, workflow_execution_terminated)
    EVENT(280, 21, WORKFLOW_EXECUTION_CANCEL_REQUESTED, workflow_execution_cancel_requested)
    EVENT(290, 22, WORKFLOW_EXECUTION_CANCELED, workflow_execution_canceled)
    EVENT(300, 23, REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
          request_cancel_external_workflow_execution_initiated)
    EVENT(310, 24, REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
          request_cancel_external_workflow_execution_failed)
    EVENT(320, 25, EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
          external_workflow_execution_cancel_requested)
    EVENT(330, 29, WORKFLOW_EXECUTION_CONTINUED_AS_NEW, workflow_execution_continued_as_new)
    EVENT(340, 30, START_CHILD_WORKFLOW_EXECUTION_INITIATED,
          start_child_workflow_execution_initiated)
    EVENT(350, 31, START_CHILD_WORKFLOW_EXECUTION_FAILED, start_child_workflow_execution_failed)
    EVENT(360, 32, CHILD_WORKFLOW_EXECUTION_STARTED, child_workflow_execution_started)
    EVENT(370, 33, CHILD_WORKFLOW_EXECUTION_COMPLETED, child_workflow_execution_completed)
    EVENT(380, 34, CHILD_WORKFLOW_EXECUTION_FAILED, child_workflow_execution_failed)
    EVENT(390, 35, CHILD_WORKFLOW_EXECUTION_CANCELED, child_workflow_execution_canceled)
    EVENT(400, 36, CHILD_WORKFLOW_EXECUTION_TIMED_OUT, child_workflow_execution_timed_out)
    EVENT(410, 37, CHILD_WORKFLOW_EXECUTION_TERMINATED, child_workflow_execution_terminated)
    EVENT(420, 38, SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
          signal_external_workflow_execution_initiated)
    EVENT(430, 39, SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
          signal_external_workflow_execution_failed)
    EVENT(440, 40, EXTERNAL_WORKFLOW_EXECUTION_SIGNALED, external_workflow_execution_signaled)
    EVENT(450, 41, UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, upsert_workflow_search_attributes)
};
/* clang-format on */

_Static_assert(array_length(events) == THRIFT_EVENT_COUNT, "an event is missing");

const struct thrift_struct *
thrift_history_event(void)
{
    return struct_history_event();
}

const struct thrift_event *
thrift_events(void)
{
    return events;
}

/* Ids go up by tens, without gaps. */
const struct thrift_event *
thrift_event_of_id(int16_t id)
{
    size_t index = id < events[0].id ? THRIFT_EVENT_COUNT : (size_t)(id - events[0].id) / 10;
    return index < THRIFT_EVENT_COUNT && events[index].id == id ? &events[index] : NULL;
}

const struct thrift_event *
thrift_event_of_type(int32_t type)
{
    for (size_t i = 0; i < THRIFT_EVENT_COUNT; i++)
        if (events[i].type == type)
            return &events[i];
    return NULL;
}

/* Arms are numbered in the order of the ids. */
const struct thrift_event *
thrift_event_of_arm(API(HistoryEvent__AttributesCase) arm)
{
    size_t index = (size_t)arm - events[0].arm;
    if (index >= THRIFT_EVENT_COUNT)
        return NULL;
    check(events[index].arm == arm);
    return &events[index];
}

const struct thrift_field *
thrift_find_field(const struct thrift_struct *structure, int16_t id)
{
    const struct thrift_field *field = structure->fields;
    while (field->id != 0 && field->id < id)
        field++;
    return field->id == id && id != 0 ? field : NULL;
}

enum thrift_type
thrift_kind_type(enum thrift_kind kind)
{
    static const uint8_t types[] = {
#define X(name, type) [THRIFT_##name] = THRIFT_TYPE_##type,
        THRIFT_KINDS(X)
#undef X
    };
    check(kind < THRIFT_KIND_COUNT);
    return types[kind];
}
