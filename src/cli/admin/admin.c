/* admin.c - see admin.h. */
#include "cli/admin/admin.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

/* The JSON that a text holds, or the text. */
static json_t *
parsed(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    return json != NULL ? json : json_string(text);
}

struct error *
admin_show_run(struct cli_call *call, const ProtobufCMessage *message)
{
    const ADMIN(DescribeWorkflowExecutionResponse) *response =
        (const ADMIN(DescribeWorkflowExecutionResponse) *)message;
    check(message->descriptor == ADMIN_TYPE(describe_workflow_execution_response));
    const char *state = response->mutable_state_in_database[0] != '\0'
                            ? response->mutable_state_in_database
                            : response->mutable_state_in_cache;
    json_t *out = json_object();
    json_object_set_new(out, "shardId", json_integer(response->shard_id));
    json_object_set_new(out, "historyAddr", json_string(response->history_addr));
    json_object_set_new(out, "mutableState", parsed(state));
    cli_print_json(out);
    return NULL;
}

struct error *
admin_show_shards(struct cli_call *call, const ProtobufCMessage *message)
{
    const ADMIN(DescribeShardDistributionResponse) *response =
        (const ADMIN(DescribeShardDistributionResponse) *)message;
    struct table table = {.columns = 2, .arena = call->arena};
    check(message->descriptor == ADMIN_TYPE(describe_shard_distribution_response));
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    table_add(&table, "SHARD", "HOST");
    for (size_t i = 0; i < response->n_shards; i++)
        table_add(&table, arena_format(call->arena, "%d", response->shards[i]->key),
                  response->shards[i]->value);
    cli_print("Total Number of Shards: %d\n%s", response->number_of_shards, table_text(&table));
    return NULL;
}

struct error *
admin_complete_queue(struct cli_call *call, ProtobufCMessage *request)
{
    const struct request_context context = {.arena = call->arena};
    const char *type;
    struct error *err = cli_need(call, "queue_type", &type);
    if (err != NULL)
        return err;
    if (strcmp(type, "2") == 0)
        type = "transfer";
    if (strcmp(type, "3") == 0)
        type = "timer";
    return cli_wrong(call, request_set(&context, request, "task_type", "queue_type", type));
}

struct error *
admin_show_queue(struct cli_call *call, const ProtobufCMessage *message)
{
    const ADMIN(DescribeQueueResponse) *response = (const ADMIN(DescribeQueueResponse) *)message;
    check(message->descriptor == ADMIN_TYPE(describe_queue_response));
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    for (size_t i = 0; i < response->n_processing_queue_states; i++)
        cli_print("%s\n", show_text(response->processing_queue_states[i], call->arena));
    return NULL;
}
