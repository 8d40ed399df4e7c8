/* tokens_fuzz.c - any bytes as tokens: nothing is read past its end, and what was accepted is the
 * same after it was written and read again. */
#include "api/call/tokens.h"
#include "base/check.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_task_token(struct slice input, struct arena *arena)
{
    struct task_token one, other;
    if (task_token_read(input, arena, &one) != NULL)
        return;
    struct error *err = task_token_read(task_token_write(&one, arena), arena, &other);
    check(err == NULL);
    check(strcmp(one.domain_id, other.domain_id) == 0);
    check(strcmp(one.workflow_id, other.workflow_id) == 0);
    check(strcmp(one.workflow_type, other.workflow_type) == 0);
    check(strcmp(one.run_id, other.run_id) == 0);
    check(strcmp(one.activity_id, other.activity_id) == 0);
    check(strcmp(one.activity_type, other.activity_type) == 0);
    check(one.schedule_id == other.schedule_id);
    check(one.schedule_attempt == other.schedule_attempt);
}

static void
try_query_token(struct slice input, struct arena *arena)
{
    struct query_token one, other;
    if (query_token_read(input, arena, &one) != NULL)
        return;
    struct error *err = query_token_read(query_token_write(&one, arena), arena, &other);
    check(err == NULL);
    check(strcmp(one.domain_id, other.domain_id) == 0);
    check(strcmp(one.workflow_id, other.workflow_id) == 0);
    check(strcmp(one.run_id, other.run_id) == 0);
    check(strcmp(one.list, other.list) == 0);
    check(strcmp(one.query_id, other.query_id) == 0);
}

static void
try_history_token(struct slice input, struct arena *arena)
{
    struct history_token one, other;
    if (history_token_read(input, arena, &one) != NULL)
        return;
    struct error *err = history_token_read(history_token_write(&one, arena), arena, &other);
    check(err == NULL);
    check(strcmp(one.run_id, other.run_id) == 0);
    check(one.first_event_id == other.first_event_id && one.next_event_id == other.next_event_id);
    check(one.is_running == other.is_running && one.position == other.position);
    check(slice_equal(one.transient, other.transient) && slice_equal(one.branch, other.branch));
}

static void
try_skip(struct slice input, struct arena *arena)
{
    struct json_reader reader = object_begin(input, arena);
    const char *name;
    while (object_next(&reader, &name))
        object_skip(&reader);
    check(object_end(&reader) || reader.left.length <= input.length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice input = slice_of(data, size);
    try_task_token(input, arena);
    try_query_token(input, arena);
    try_history_token(input, arena);
    try_skip(input, arena);
    return 0;
}
