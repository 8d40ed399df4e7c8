/* remote.c - commands that ask a running server: health, backup. */
#include <unistd.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "net/client.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define HEALTH_TIMEOUT (5 * NS_PER_S)
#define BACKUP_TIMEOUT                                                                             \
    (24 * 3600 * NS_PER_S) /* copying may take long where files cannot be linked */

static const struct grpc_header headers[] = {
    {SLICE_LITERAL("rpc-caller"), SLICE_LITERAL("cadenza-cli")},
    {SLICE_LITERAL("rpc-service"), SLICE_LITERAL("cadence-frontend")},
    {SLICE_LITERAL("rpc-encoding"), SLICE_LITERAL("proto")},
    {SLICE_LITERAL("cadence-caller-type"), SLICE_LITERAL("cli")},
};

/* One call on a connection of its own. */
static struct error *
ask(struct cli_call *call, const char *path, const ProtobufCMessage *request, int64_t timeout,
    struct slice *response)
{
    struct grpc_client *client = grpc_client_new(&(struct grpc_client_options){
        .address = call->address,
        .headers = headers,
        .header_count = array_length(headers),
    });
    fiber_set_deadline(clock_monotonic() + timeout);
    struct grpc_request rpc = {.path = path, .message = message_encode(call->arena, request)};
    struct error *err = grpc_client_call(client, &rpc, call->arena, response);
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    return err == NULL ? NULL : error_wrap(err, "%s", call->address);
}

struct error *
cli_health(struct cli_call *call)
{
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    struct slice bytes;
    struct error *err =
        ask(call, "/uber.cadence.api.v1.MetaAPI/Health", &request.base, HEALTH_TIMEOUT, &bytes);
    API(HealthResponse) *response = NULL;
    if (err == NULL)
        err = message_decode(call->arena, API_TYPE(health_response), bytes, &response);
    if (err != NULL)
        return err;
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
    struct slice bytes;
    err = ask(call, "/cadenza.admin.v1.StoreAPI/Backup", &request.base, BACKUP_TIMEOUT, &bytes);
    if (err == NULL)
        cli_print("The backup is in %s\n", folder);
    return err;
}
