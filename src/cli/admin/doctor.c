/* doctor.c - `admin doctor`: asks a server, and the other clusters of its group, and reports what
 * is wrong and what to do about it. It also reports what it could not find out. */
#include <jansson.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cli/admin/doctor.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define TIMEOUT      (5 * NS_PER_S)
#define PAGE_SIZE    1000
#define DISK_PERCENT 10 /* less than this is left: nearly full */

void
doctor_find(struct doctor *doctor, const char *what, const char *advice)
{
    json_array_append_new(doctor->findings, json_pack("{s:s, s:s}", "what", what, "do", advice));
    if (!doctor->call->as_json)
        cli_print("* %s\n  %s\n", what, advice);
}

void
doctor_find_unanswered(struct doctor *doctor, const char *about, const struct error *err)
{
    doctor_find(
        doctor,
        arena_format(doctor->call->arena, "The server did not say %s: %s", about, err->message),
        "Check its log; an administrator's token may be needed (--jwt-private-key).");
}

/* ---- this server ---- */

const API(HealthResponse) *
doctor_ask_health(struct doctor *doctor, struct error **err)
{
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    *err = cli_ask(doctor->call, "/uber.cadence.api.v1.MetaAPI/Health", &request.base, TIMEOUT,
                   API_TYPE(health_response), &answer);
    return *err == NULL ? (const API(HealthResponse) *)answer : NULL;
}

/* False: the server does not answer. */
static bool
check_health(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    struct error *err;
    const API(HealthResponse) *response = doctor_ask_health(doctor, &err);
    if (err != NULL) {
        doctor_find(
            doctor,
            arena_format(call->arena, "%s does not answer: %s", call->address, err->message),
            "Start the server, or check its log: the last line says why it exited.");
        return false;
    }
    if (!response->ok)
        doctor_find(doctor,
                    arena_format(call->arena, "The server is not well: %s", response->message),
                    "It is starting or stopping; ask again, then check its log.");
    else if (strstr(response->message, "damaged") != NULL) /* any other message is fine */
        doctor_find(doctor, arena_text(call->arena, response->message),
                    "Calls about these rows fail, all others work. Restore the last backup "
                    "(docs/operations.md); in a group, fail the domains over to the other clusters "
                    "first. Check the disk. cadenza admin backup refuses until then.");
    return true;
}

static struct error *
count_unowned(struct doctor *doctor, int *unowned, int *total)
{
    struct cli_call *call = doctor->call;
    ADMIN(DescribeShardDistributionRequest) *request =
        message_new(call->arena, ADMIN_TYPE(describe_shard_distribution_request));
    request->page_size = PAGE_SIZE;
    do {
        ProtobufCMessage *answer = NULL;
        struct error *err = cli_ask(
            call, "/uber.cadence.admin.v1.AdminAPI/DescribeShardDistribution", &request->base,
            TIMEOUT, ADMIN_TYPE(describe_shard_distribution_response), &answer);
        if (err != NULL)
            return err;
        const ADMIN(DescribeShardDistributionResponse) *response =
            (const ADMIN(DescribeShardDistributionResponse) *)answer;
        for (size_t i = 0; i < response->n_shards; i++)
            *unowned += strcmp(response->shards[i]->value, "unknown") == 0;
        *total = response->number_of_shards;
        request->page_id++;
    } while (request->page_id * PAGE_SIZE < *total);
    return NULL;
}

static void
check_shards(struct doctor *doctor)
{
    int unowned = 0, total = 0;
    struct error *err = count_unowned(doctor, &unowned, &total);
    if (err != NULL)
        doctor_find_unanswered(doctor, "which shards it has", err);
    else if (unowned > 0)
        doctor_find(
            doctor,
            arena_format(doctor->call->arena,
                         "%d of %d shards have no owner: their workflows stand still.", unowned,
                         total),
            "The log says why a shard was not acquired; a restart of the server acquires all.");
}

static void
check_dead_letters(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    ADMIN(CountDLQMessagesRequest) *request =
        message_new(call->arena, ADMIN_TYPE(count_dlqmessages_request));
    ProtobufCMessage *answer = NULL;
    request->force_fetch = true;
    struct error *err =
        cli_ask(call, "/uber.cadence.admin.v1.AdminAPI/CountDLQMessages", &request->base, TIMEOUT,
                ADMIN_TYPE(count_dlqmessages_response), &answer);
    if (err != NULL) {
        doctor_find_unanswered(doctor, "how many dead letters it has", err);
        return;
    }
    const ADMIN(CountDLQMessagesResponse) *response =
        (const ADMIN(CountDLQMessagesResponse) *)answer;
    for (size_t i = 0; i < response->n_history; i++) {
        const ADMIN(HistoryDLQCountEntry) *entry = response->history[i];
        if (entry->count > 0)
            doctor_find(doctor,
                        arena_format(
                            call->arena, "%lld messages of %s about shard %d could not be applied.",
                            (long long)entry->count, entry->source_cluster, (int)entry->shard_id),
                        arena_format(call->arena,
                                     "cadenza admin dlq read --source_cluster %s --shard_id %d "
                                     "lists them, merge applies them again.",
                                     entry->source_cluster, (int)entry->shard_id));
    }
    if (response->domain > 0)
        doctor_find(
            doctor,
            arena_format(call->arena, "%lld changes of domains could not be applied.",
                         (long long)response->domain),
            "cadenza admin dlq read --dlq_type domain lists them, merge applies them again.");
}

/* Workflows that are stalled because their workers fail every decision. */
static void
check_decisions(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    STORE_API(ListFailingDecisionsRequest) request =
        CADENZA__ADMIN__V1__LIST_FAILING_DECISIONS_REQUEST__INIT;
    request.count = 1;
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(call, "/cadenza.admin.v1.RunsAPI/ListFailingDecisions", &request.base, TIMEOUT,
                &cadenza__admin__v1__list_failing_decisions_response__descriptor, &answer);
    if (err != NULL) {
        doctor_find_unanswered(doctor, "which decisions keep failing", err);
        return;
    }
    const STORE_API(ListFailingDecisionsResponse) *response =
        (const STORE_API(ListFailingDecisionsResponse) *)answer;
    if (response->n_decisions == 0 || response->decisions[0]->workflow_execution == NULL)
        return;
    const STORE_API(FailingDecision) *first = response->decisions[0];
    doctor_find(doctor,
                arena_format(call->arena,
                             "Workers fail every decision of %lld workflows, for instance %s of "
                             "type %s in domain %s (attempt %d: %s).",
                             (long long)response->total, first->workflow_execution->workflow_id,
                             first->workflow_type, first->domain, (int)first->attempt,
                             first->reason),
                arena_format(call->arena,
                             "Fix the workers of task list %s, then signal the workflow or wait: "
                             "it is tried again at least every five minutes.",
                             first->task_list));
}

static void
check_disk(struct doctor *doctor)
{
    struct cli_call *call = doctor->call;
    struct statvfs disk;
    if (call->data == NULL)
        return;
    if (statvfs(call->data, &disk) != 0) {
        doctor_find(doctor,
                    arena_format(call->arena, "The folder %s cannot be looked at.", call->data),
                    "--data names the data folder of a server on this machine.");
        return;
    }
    unsigned long long left = disk.f_blocks == 0 ? 100 : disk.f_bavail * 100ull / disk.f_blocks;
    if (left < DISK_PERCENT)
        doctor_find(
            doctor,
            arena_format(call->arena, "%llu %% of the disk of %s is left.", left, call->data),
            "Free some space: a server whose disk is full exits. See retention (cadenza domain "
            "update --retention) and old backups.");
}

struct error *
cli_doctor(struct cli_call *call)
{
    struct doctor doctor = {.call = call, .findings = json_array()};
    if (check_health(&doctor)) {
        check_shards(&doctor);
        check_dead_letters(&doctor);
        check_decisions(&doctor);
        doctor_check_peers(&doctor);
        doctor_check_domains(&doctor);
        doctor_check_entities(&doctor);
    }
    check_disk(&doctor);
    bool is_well = json_array_size(doctor.findings) == 0;
    call->exit_code = is_well ? 0 : 1;
    if (call->as_json) {
        cli_print_json(doctor.findings);
        return NULL;
    }
    if (is_well)
        cli_print("Nothing is wrong with %s.\n", call->address);
    json_decref(doctor.findings);
    return NULL;
}
