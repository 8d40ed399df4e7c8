/* test_runs.c - see test_runs.h. */
#include "visibility/sqlite/test_runs.h"

#include <inttypes.h>

#include "base/random.h"
#include "base/uuid.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "wire/message.h"

struct test_run
test_run_of(uint64_t number)
{
    return (struct test_run){
        .number = number,
        .is_closed = true,
        .status =
            number % 100 == 7
                ? API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_FAILED)
                : API_VALUE(
                      WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED)};
}

const char *
test_run_id(uint64_t number, struct arena *arena)
{
    uint64_t halves[2] = {(number + 1) * UINT64_C(0x9e3779b97f4a7c15),
                          (number + 1) * UINT64_C(0xc2b2ae3d27d4eb4f)};
    halves[0] = (halves[0] ^ halves[0] >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    uint8_t bytes[16];
    memcpy(bytes, halves, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    char *text = arena_alloc(arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, text);
    return text;
}

static GOOGLE(Timestamp) *
timestamp(int64_t ns, struct arena *arena)
{
    return GOOGLE_NEW(arena, timestamp, .seconds = ns / NS_PER_S,
                      .nanos = (int32_t)(ns % NS_PER_S));
}

static void
add_attribute(API(SearchAttributes) *attributes, const char *name, const char *json,
              struct arena *arena)
{
    API(SearchAttributes__IndexedFieldsEntry) *entry =
        message_new(arena, API_TYPE(search_attributes__indexed_fields_entry));
    API(Payload) *payload = API_NEW(
        arena, payload,
        .data = (ProtobufCBinaryData){.len = strlen(json), .data = (uint8_t *)(uintptr_t)json});
    entry->key = arena_text(arena, name);
    entry->value = payload;
    attributes->indexed_fields[attributes->n_indexed_fields++] = entry;
}

static API(SearchAttributes) *
search_attributes(uint64_t number, struct arena *arena)
{
    API(SearchAttributes) *attributes =
        API_NEW(arena, search_attributes, .indexed_fields = arena_zalloc(arena, 2, sizeof(void *)));
    add_attribute(attributes, "CustomIntField", arena_format(arena, "%" PRIu64, number / 10 % 10),
                  arena);
    add_attribute(attributes, "CustomKeywordField",
                  arena_format(arena, "\"customer-%" PRIu64 "\"", number / 10 % 100), arena);
    return attributes;
}

static void
close_info(API(WorkflowExecutionInfo) *info, const struct test_run *run, struct arena *arena)
{
    info->close_time = timestamp(
        TEST_START + (int64_t)(run->number + 2500 + run->number % 700) * NS_PER_MS, arena);
    info->close_status = run->status;
    info->history_length = 11;
}

struct visibility_change
test_run_change(const struct test_run *run, struct arena *arena)
{
    API(WorkflowExecutionInfo) *info =
        API_NEW(arena, workflow_execution_info,
                .workflow_execution =
                    API_NEW(arena, workflow_execution,
                            .workflow_id = arena_format(arena, "order-%" PRIu64, run->number),
                            .run_id = arena_text(arena, test_run_id(run->number, arena))),
                .type = API_NEW(arena, workflow_type,
                                .name = arena_format(arena, "type-%" PRIu64, run->number / 3 % 10)),
                .start_time = timestamp(TEST_START + (int64_t)run->number * NS_PER_MS, arena));
    info->execution_time = info->start_time;
    info->update_time = info->start_time;
    info->task_list = arena_text(arena, "orders");
    if (run->number % 10 == 0)
        info->search_attributes = search_attributes(run->number, arena);
    if (run->is_closed)
        close_info(info, run, arena);
    return (struct visibility_change){.domain_id = TEST_DOMAIN,
                                      .workflow_id = info->workflow_execution->workflow_id,
                                      .run_id = info->workflow_execution->run_id,
                                      .info = message_encode(arena, &info->base),
                                      .num_clusters = 1};
}
