/* tokens.c - see tokens.h. */
#include "api/call/tokens.h"

#include "base/check.h"
#include "base/json.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define POSITION_BYTES 8
/* The events of a transient decision, which are not stored. */
#define SCHEDULED API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_SCHEDULED_EVENT_ATTRIBUTES)
#define STARTED   API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_STARTED_EVENT_ATTRIBUTES)

/* --- tasks ---------------------------------------------------------------------------------------
 */

struct slice
task_token_write(const struct task_token *token, struct arena *arena)
{
    check(token->domain_id[0] != '\0'); /* what task_token_read demands */
    size_t payload = strlen(token->domain_id) + strlen(token->workflow_id) +
                     strlen(token->workflow_type) + strlen(token->run_id) +
                     strlen(token->activity_id) + strlen(token->activity_type);
    struct json_writer writer = object_write_begin(arena, 8, payload);
    object_write_text(&writer, "domainId", token->domain_id);
    object_write_text(&writer, "workflowId", token->workflow_id);
    object_write_text(&writer, "workflowType", token->workflow_type);
    object_write_text(&writer, "runId", token->run_id);
    object_write_integer(&writer, "scheduleId", token->schedule_id);
    object_write_integer(&writer, "scheduleAttempt", token->schedule_attempt);
    object_write_text(&writer, "activityId", token->activity_id);
    object_write_text(&writer, "activityType", token->activity_type);
    return object_write_end(&writer);
}

/* Members of the object, in the order in which task_token_write has them. */
static const struct {
    const char *name;
    bool is_text; /* else a number */
    size_t offset;
} task_members[] = {
    {"domainId", true, offsetof(struct task_token, domain_id)},
    {"workflowId", true, offsetof(struct task_token, workflow_id)},
    {"workflowType", true, offsetof(struct task_token, workflow_type)},
    {"runId", true, offsetof(struct task_token, run_id)},
    {"scheduleId", false, offsetof(struct task_token, schedule_id)},
    {"scheduleAttempt", false, offsetof(struct task_token, schedule_attempt)},
    {"activityId", true, offsetof(struct task_token, activity_id)},
    {"activityType", true, offsetof(struct task_token, activity_type)},
};

/* Reads the value of a member. `expected`: which one it most likely is, the one behind the last. */
static void
read_task_member(struct json_reader *reader, const char *name, struct task_token *token,
                 size_t *expected)
{
    for (size_t i = 0; i < array_length(task_members); i++) {
        size_t at = (*expected + i) % array_length(task_members);
        if (task_members[at].name != name && strcmp(task_members[at].name, name) != 0)
            continue;
        void *value = (char *)token + task_members[at].offset;
        if (task_members[at].is_text)
            object_text(reader, value);
        else
            object_integer(reader, value);
        *expected = (at + 1) % array_length(task_members);
        return;
    }
    object_skip(reader);
}

struct error *
task_token_read(struct slice bytes, struct arena *arena, struct task_token *token)
{
    if (bytes.length == 0)
        return error_new(arena, ERR_BAD_REQUEST, "Task token not set on request.");
    *token = (struct task_token){.domain_id = "",
                                 .workflow_id = "",
                                 .workflow_type = "",
                                 .run_id = "",
                                 .activity_id = "",
                                 .activity_type = ""};
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    size_t expected = 0;
    while (object_next_likely(&reader, task_members[expected].name, &name))
        read_task_member(&reader, name, token, &expected);
    bool is_attempt = token->schedule_attempt >= INT32_MIN && token->schedule_attempt <= INT32_MAX;
    if (!object_end(&reader) || !is_attempt)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid TaskToken.");
    if (token->domain_id[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Domain not set on request.");
    return NULL;
}

/* --- queries -------------------------------------------------------------------------------------
 */

struct slice
query_token_write(const struct query_token *token, struct arena *arena)
{
    check(token->domain_id[0] != '\0' && token->list[0] != '\0' && token->query_id[0] != '\0');
    size_t payload = strlen(token->domain_id) + strlen(token->workflow_id) + strlen(token->run_id) +
                     strlen(token->list) + strlen(token->query_id);
    struct json_writer writer = object_write_begin(arena, 5, payload);
    object_write_text(&writer, "domainId", token->domain_id);
    object_write_text(&writer, "workflowId", token->workflow_id);
    object_write_text(&writer, "runId", token->run_id);
    object_write_text(&writer, "taskList", token->list);
    object_write_text(&writer, "taskId", token->query_id);
    return object_write_end(&writer);
}

static void
read_query_member(struct json_reader *reader, const char *name, struct query_token *token)
{
    if (strcmp(name, "domainId") == 0)
        object_text(reader, &token->domain_id);
    else if (strcmp(name, "workflowId") == 0)
        object_text(reader, &token->workflow_id);
    else if (strcmp(name, "runId") == 0)
        object_text(reader, &token->run_id);
    else if (strcmp(name, "taskList") == 0)
        object_text(reader, &token->list);
    else if (strcmp(name, "taskId") == 0)
        object_text(reader, &token->query_id);
    else
        object_skip(reader);
}

struct error *
query_token_read(struct slice bytes, struct arena *arena, struct query_token *token)
{
    if (bytes.length == 0)
        return error_new(arena, ERR_BAD_REQUEST, "Task token not set on request.");
    *token = (struct query_token){
        .domain_id = "", .workflow_id = "", .run_id = "", .list = "", .query_id = ""};
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    while (object_next(&reader, &name))
        read_query_member(&reader, name, token);
    bool is_whole =
        token->domain_id[0] != '\0' && token->list[0] != '\0' && token->query_id[0] != '\0';
    if (!object_end(&reader) || !is_whole)
        return error_new(arena, ERR_BAD_REQUEST, "Invalid TaskToken.");
    return NULL;
}

/* --- pages of history ----------------------------------------------------------------------------
 */

static struct slice
write_position(int64_t position, struct arena *arena)
{
    if (position == 0)
        return (struct slice){0};
    uint8_t *bytes = arena_alloc(arena, POSITION_BYTES);
    for (size_t i = 0; i < POSITION_BYTES; i++)
        bytes[i] = (uint8_t)((uint64_t)position >> (8 * (POSITION_BYTES - 1 - i)));
    return slice_of(bytes, POSITION_BYTES);
}

/* False: not written by write_position. */
static bool
read_position(struct slice bytes, int64_t *position)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes.length && i < POSITION_BYTES; i++)
        number = number << 8 | bytes.data[i];
    *position = (int64_t)number;
    return bytes.length == 0 || (bytes.length == POSITION_BYTES && *position > 0);
}

struct slice
history_token_write(const struct history_token *token, struct arena *arena)
{
    check(token->run_id[0] != '\0' && token->first_event_id >= 1);
    check(token->next_event_id >= token->first_event_id);
    check(token->position >= 0 && token->position <= token->next_event_id);
    size_t payload =
        strlen(token->run_id) + POSITION_BYTES + token->transient.length + token->branch.length;
    struct json_writer writer = object_write_begin(arena, 7, payload);
    object_write_text(&writer, "RunID", token->run_id);
    object_write_integer(&writer, "FirstEventID", token->first_event_id);
    object_write_integer(&writer, "NextEventID", token->next_event_id);
    object_write_flag(&writer, "IsWorkflowRunning", token->is_running);
    object_write_bytes(&writer, "PersistenceToken", write_position(token->position, arena), arena);
    object_write_bytes(&writer, "TransientDecision", token->transient, arena);
    object_write_bytes(&writer, "BranchToken", token->branch, arena);
    return object_write_end(&writer);
}

static void
read_history_member(struct json_reader *reader, const char *name, struct history_token *token,
                    struct slice *position)
{
    if (strcmp(name, "RunID") == 0)
        object_text(reader, &token->run_id);
    else if (strcmp(name, "FirstEventID") == 0)
        object_integer(reader, &token->first_event_id);
    else if (strcmp(name, "NextEventID") == 0)
        object_integer(reader, &token->next_event_id);
    else if (strcmp(name, "IsWorkflowRunning") == 0)
        object_flag(reader, &token->is_running);
    else if (strcmp(name, "PersistenceToken") == 0)
        object_bytes(reader, position);
    else if (strcmp(name, "TransientDecision") == 0)
        object_bytes(reader, &token->transient);
    else if (strcmp(name, "BranchToken") == 0)
        object_bytes(reader, &token->branch);
    else
        object_skip(reader);
}

/* Are they what we put there: the events of a transient decision? */
static bool
transient_is_ours(struct slice records, struct arena *arena)
{
    API(History) *history = NULL;
    if (message_decode(arena, API_TYPE(history), records, &history) != NULL)
        return false;
    for (size_t i = 0; i < history->n_events; i++) {
        API(HistoryEvent__AttributesCase) kind = history->events[i]->attributes_case;
        if (kind != SCHEDULED && kind != STARTED)
            return false;
    }
    return true;
}

struct error *
history_token_read(struct slice bytes, struct arena *arena, struct history_token *token)
{
    struct slice position = {0};
    *token = (struct history_token){.run_id = ""};
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    while (object_next(&reader, &name))
        read_history_member(&reader, name, token, &position);
    bool is_good = object_end(&reader) && read_position(position, &token->position) &&
                   token->run_id[0] != '\0' && token->first_event_id >= 1 &&
                   token->next_event_id >= token->first_event_id &&
                   token->position <= token->next_event_id &&
                   transient_is_ours(token->transient, arena);
    return is_good ? NULL : error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
}
