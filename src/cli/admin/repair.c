/* repair.c - repairs of single runs and shards. See repair.h. */
#include "cli/admin/repair.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "base/compiler.h"
#include "cli/base/commands.h"
#include "cli/base/request.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TIMEOUT (5 * NS_PER_S)

/* ---- runs ---- */

struct error *
repair_show_deleted(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == ADMIN_TYPE(delete_workflow_response));
    if (call->as_json)
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
    else
        cli_print("The run was deleted: its history, its records and its visibility record.\n");
    return NULL;
}

struct error *
repair_show_repaired(struct cli_call *call, const ProtobufCMessage *message)
{
    const ADMIN(MaintainCorruptWorkflowResponse) *response =
        (const ADMIN(MaintainCorruptWorkflowResponse) *)message;
    check(message->descriptor == ADMIN_TYPE(maintain_corrupt_workflow_response));
    if (call->as_json)
        cli_print_json(json_pack("{s:b, s:b, s:b}", "historyDeleted",
                                 (int)response->history_deleted, "executionsDeleted",
                                 (int)response->executions_deleted, "visibilityDeleted",
                                 (int)response->visibility_deleted));
    else
        cli_print(response->executions_deleted ? "It was corrupt and was deleted.\n"
                                               : "It is not corrupt and was kept.\n");
    return NULL;
}

static struct error *
find_domain_id(struct cli_call *call, const char *name, const char **id)
{
    API(DescribeDomainRequest) request = API_VALUE(DESCRIBE_DOMAIN_REQUEST__INIT);
    API(DescribeDomainResponse) *response = NULL;
    request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request.name = (char *)name;
    struct error *err =
        cli_ask(call, "/uber.cadence.api.v1.DomainAPI/DescribeDomain", &request.base, TIMEOUT,
                API_TYPE(describe_domain_response), (ProtobufCMessage **)&response);
    if (err == NULL && response->domain == NULL)
        err = error_new(call->arena, ERR_UNCATEGORISED, "%s answered without a domain",
                        call->address);
    if (err == NULL)
        *id = response->domain->id;
    return err;
}

struct error *
repair_complete_resend(struct cli_call *call, ProtobufCMessage *message)
{
    ADMIN(ResendReplicationTasksRequest) *request = (ADMIN(ResendReplicationTasksRequest) *)message;
    const char *name = NULL, *id = NULL;
    struct error *err = NULL;
    check(message->descriptor == ADMIN_TYPE(resend_replication_tasks_request));
    if (request->end_event != NULL && request->end_event->event_id > 0)
        request->end_event->event_id++; /* the call excludes its end */
    if (request->domain_id[0] != '\0')
        return NULL;
    err = cli_need_domain(call, &name);
    if (err == NULL)
        err = find_domain_id(call, name, &id);
    if (err == NULL)
        request->domain_id = (char *)id;
    return err;
}

/* ---- shards ---- */

struct error *
repair_complete_task(struct cli_call *call, ProtobufCMessage *request)
{
    static const char *const numbers[] = {"2", "3", "4"};
    static const char *const names[] = {"transfer", "timer", "replication"};
    const struct request_context context = {.arena = call->arena};
    const char *type;
    struct error *err = cli_need(call, "task_type", &type);
    if (err != NULL)
        return err;
    for (size_t i = 0; i < array_length(numbers); i++)
        type = strcmp(type, numbers[i]) == 0 ? names[i] : type;
    return cli_wrong(call, request_set(&context, request, "task_type", "task_type", type));
}

struct error *
repair_complete_timers(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == ADMIN_TYPE(describe_queue_request));
    ((ADMIN(DescribeQueueRequest) *)request)->task_type = ADMIN_VALUE(TASK_TYPE__TASK_TYPE_TIMER);
    return NULL;
}

/* The first line about a queue; "-": there is none. */
static struct error *
ask_queue(struct cli_call *call, int32_t shard, ADMIN(TaskType) type, const char **line)
{
    ADMIN(DescribeQueueRequest) request = ADMIN_VALUE(DESCRIBE_QUEUE_REQUEST__INIT);
    ADMIN(DescribeQueueResponse) *response = NULL;
    request.shard_id = shard;
    request.task_type = type;
    struct error *err =
        cli_ask(call, ADMIN_API("DescribeQueue"), &request.base, TIMEOUT,
                ADMIN_TYPE(describe_queue_response), (ProtobufCMessage **)&response);
    if (err == NULL)
        *line = response->n_processing_queue_states == 0
                    ? "-"
                    : show_text(response->processing_queue_states[0], call->arena);
    return err;
}

static struct error *
ask_host(struct cli_call *call, int32_t shard, const char **host)
{
    ADMIN(DescribeShardDistributionRequest) request =
        ADMIN_VALUE(DESCRIBE_SHARD_DISTRIBUTION_REQUEST__INIT);
    ADMIN(DescribeShardDistributionResponse) *response = NULL;
    request.page_size = 1;
    request.page_id = shard;
    struct error *err =
        cli_ask(call, ADMIN_API("DescribeShardDistribution"), &request.base, TIMEOUT,
                ADMIN_TYPE(describe_shard_distribution_response), (ProtobufCMessage **)&response);
    if (err == NULL)
        *host = response->n_shards == 0 ? "-" : show_text(response->shards[0]->value, call->arena);
    return err;
}

struct error *
cli_shard_describe(struct cli_call *call)
{
    const char *given, *host = NULL, *transfers = NULL, *timers = NULL;
    int64_t shard = 0;
    struct error *err = cli_need(call, "shard_id", &given);
    if (err == NULL)
        err = cli_number(call, "shard_id", 0, INT32_MAX, 0, &shard);
    if (err == NULL)
        err =
            ask_queue(call, (int32_t)shard, ADMIN_VALUE(TASK_TYPE__TASK_TYPE_TRANSFER), &transfers);
    if (err == NULL)
        err = ask_queue(call, (int32_t)shard, ADMIN_VALUE(TASK_TYPE__TASK_TYPE_TIMER), &timers);
    if (err == NULL)
        err = ask_host(call, (int32_t)shard, &host);
    if (err != NULL)
        return err;
    if (call->as_json)
        cli_print_json(json_pack("{s:I, s:s, s:s, s:s}", "shardId", (json_int_t)shard, "host", host,
                                 "transfers", transfers, "timers", timers));
    else
        cli_print("Host       %s\nTransfers  %s\nTimers     %s\n", host, transfers, timers);
    return NULL;
}
