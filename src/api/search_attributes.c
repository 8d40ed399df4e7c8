/* search_attributes.c - which keys a run may be found by, and what kind of value each has (B-031).
 *
 * Clients need it to show what they got: the cadence CLI asks before it prints a run. */
#include "api/inside.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define KIND(name) API_VALUE(INDEXED_VALUE_TYPE__INDEXED_VALUE_TYPE_##name)

static const struct search_key {
    char *name;
    API(IndexedValueType) kind;
} search_keys[] = {
    /* Set by clients and workers. */
    {"CustomStringField", KIND(STRING)},
    {"CustomKeywordField", KIND(KEYWORD)},
    {"CustomIntField", KIND(INT)},
    {"CustomBoolField", KIND(BOOL)},
    {"CustomDoubleField", KIND(DOUBLE)},
    {"CustomDatetimeField", KIND(DATETIME)},
    {"CadenceChangeVersion", KIND(KEYWORD)},
    {"BinaryChecksums", KIND(KEYWORD)},
    {"CustomDomain", KIND(STRING)},
    {"Operator", KIND(STRING)},
    /* Of schedules and what they start. */
    {"CadenceScheduleID", KIND(KEYWORD)},
    {"CadenceScheduleTime", KIND(DATETIME)},
    {"CadenceScheduleIsBackfill", KIND(BOOL)},
    {"CadenceScheduleBackfillID", KIND(KEYWORD)},
    {"CadenceScheduleState", KIND(KEYWORD)},
    {"CadenceScheduleCron", KIND(KEYWORD)},
    {"CadenceScheduleWorkflowType", KIND(KEYWORD)},
    /* Of every run; nobody sets them. */
    {"DomainID", KIND(KEYWORD)},
    {"WorkflowID", KIND(KEYWORD)},
    {"RunID", KIND(KEYWORD)},
    {"WorkflowType", KIND(KEYWORD)},
    {"StartTime", KIND(INT)},
    {"ExecutionTime", KIND(INT)},
    {"CloseTime", KIND(INT)},
    {"CloseStatus", KIND(INT)},
    {"HistoryLength", KIND(INT)},
    {"TaskList", KIND(KEYWORD)},
    {"IsCron", KIND(BOOL)},
    {"NumClusters", KIND(INT)},
    {"UpdateTime", KIND(INT)},
    {"CronSchedule", KIND(KEYWORD)},
    {"ExecutionStatus", KIND(INT)},
    {"ScheduledExecutionTime", KIND(INT)},
    {"ClusterAttributeScope", KIND(KEYWORD)},
    {"ClusterAttributeName", KIND(KEYWORD)},
};

struct error *
api_get_search_attributes(struct rpc_call *call)
{
    API(GetSearchAttributesResponse) *response = (API(GetSearchAttributesResponse) *)call->response;
    size_t count = sizeof search_keys / sizeof search_keys[0];
    response->keys = arena_zalloc(call->arena, count, sizeof response->keys[0]);
    for (size_t i = 0; i < count; i++) {
        API(GetSearchAttributesResponse__KeysEntry) *entry =
            message_new(call->arena, API_TYPE(get_search_attributes_response__keys_entry));
        entry->key = search_keys[i].name;
        entry->value = search_keys[i].kind;
        response->keys[response->n_keys++] = entry;
    }
    return NULL;
}
