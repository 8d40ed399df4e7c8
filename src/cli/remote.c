/* remote.c - commands that ask a running server: health, backup. */
#include <unistd.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/names.h"

#define HEALTH_TIMEOUT (5 * NS_PER_S)
#define BACKUP_TIMEOUT                                                                             \
    (24 * 3600 * NS_PER_S) /* copying may take long where files cannot be linked */

/* One call on a connection of its own. */
static struct error *
ask(struct cli_call *call, const char *path, const ProtobufCMessage *request, int64_t timeout,
    const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    struct rpc_caller caller = {.caller = "cadenza-cli", .caller_type = "cli"};
    struct grpc_client *client = rpc_client_new(call->address, NULL, &caller);
    fiber_set_deadline(clock_monotonic() + timeout);
    struct error *err = rpc_client_call_at(client, path, request, call->arena, type, response);
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    return err;
}

struct error *
cli_health(struct cli_call *call)
{
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    struct error *err = ask(call, "/uber.cadence.api.v1.MetaAPI/Health", &request.base,
                            HEALTH_TIMEOUT, API_TYPE(health_response), &answer);
    if (err != NULL)
        return err;
    const API(HealthResponse) *response = (const API(HealthResponse) *)answer;
    cli_print("%s\n", response->message);
    call->exit_code = response->ok ? 0 : 1;
    return NULL;
}

/* The server does not know where we stand: it gets the whole path. */
static struct error *
absolute_path(const char *path, struct arena *arena, const char **absolute)
{
    char here[4096];
    *absolute = path;
    if (path[0] == '/')
        return NULL;
    if (getcwd(here, sizeof here) == NULL)
        return error_new(arena, ERR_IO, "the current folder has no path; give an absolute one");
    *absolute = arena_format(arena, "%s/%s", here, path);
    return NULL;
}

struct error *
cli_backup(struct cli_call *call)
{
    STORE_API(BackupRequest) request = CADENZA__ADMIN__V1__BACKUP_REQUEST__INIT;
    const char *folder = NULL;
    struct error *err = absolute_path(call->words[0], call->arena, &folder);
    if (err != NULL)
        return err;
    request.folder = (char *)folder;
    ProtobufCMessage *answer = NULL;
    err = ask(call, "/cadenza.admin.v1.StoreAPI/Backup", &request.base, BACKUP_TIMEOUT,
              &cadenza__admin__v1__backup_response__descriptor, &answer);
    if (err == NULL)
        cli_print("The backup is in %s\n", folder);
    return err;
}
