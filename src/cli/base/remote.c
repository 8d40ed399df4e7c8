/* remote.c - asking a running server; the commands that do little else: health, backup. */
#include <unistd.h>

#include "base/text.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/tls.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/names.h"

#define FEATURE_VERSION     "1.7.0" /* of the API; servers compare it with what they know */
#define HEALTH_TIMEOUT      (5 * NS_PER_S)
#define TIMEOUT_SECONDS_MAX (24 * 3600)
#define BACKUP_TIMEOUT                                                                             \
    (24 * 3600 * NS_PER_S) /* copying may take long where files cannot be linked */

static struct error *
read_timeout(struct cli_call *call, int64_t *timeout)
{
    uint64_t seconds;
    if (call->timeout == NULL)
        return NULL;
    if (!text_parse_uint64(slice_text(call->timeout), 1, TIMEOUT_SECONDS_MAX, &seconds))
        return cli_wrong(call,
                         error_new(call->arena, ERR_BAD_REQUEST,
                                   "--context_timeout: '%s' is not a number of seconds from 1 "
                                   "to %d",
                                   call->timeout, TIMEOUT_SECONDS_MAX));
    *timeout = (int64_t)seconds * NS_PER_S;
    return NULL;
}

/* What to do about a call that the server never answered. */
static struct error *
advise(struct cli_call *call, struct error *err)
{
    if (err->kind == ERR_UNAVAILABLE)
        return error_new(
            call->arena, err->kind,
            "%s; cadenza server starts a server, --address HOST:PORT names another one",
            err->message);
    if (err->kind == ERR_DEADLINE)
        return error_new(call->arena, err->kind,
                         "%s did not answer in time and may still do it (%s); --context_timeout "
                         "SECONDS waits longer",
                         call->address, err->message);
    return err;
}

static struct error *
open_tls(struct cli_call *call, struct tls **tls)
{
    const char *const authorities[] = {call->tls_authority, NULL};
    if (call->tls_authority == NULL)
        return NULL;
    const struct tls_options options = {.authority_files = authorities, .verify_host = true};
    struct error *err = tls_new(&options, call->arena, tls);
    return err == NULL ? NULL : cli_wrong(call, error_wrap(err, "--tls_cert_path"));
}

static struct error *
check_address(struct cli_call *call)
{
    const char *fault = text_address_fault(call->address, call->arena);
    return fault == NULL
               ? NULL
               : cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST, "--address: %s", fault));
}

struct error *
cli_ask(struct cli_call *call, const char *path, const ProtobufCMessage *request, int64_t timeout,
        const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    struct tls *tls = NULL;
    struct error *err = check_address(call);
    if (err == NULL)
        err = read_timeout(call, &timeout);
    if (err == NULL)
        err = cli_make_token(call);
    if (err == NULL)
        err = open_tls(call, &tls);
    if (err != NULL)
        return err;
    struct rpc_caller caller = {.caller = "cadenza-cli",
                                .caller_type = "cli",
                                .client_name = "cli",
                                .feature_version = FEATURE_VERSION,
                                .token = call->token};
    struct grpc_client *client = rpc_client_new(call->address, tls, &caller);
    fiber_set_deadline(clock_monotonic() + timeout);
    err = rpc_client_call_at(client, path, request, call->arena, type, response);
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    if (tls != NULL)
        tls_free(tls);
    return err == NULL ? NULL : advise(call, err);
}

struct error *
cli_health(struct cli_call *call)
{
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, "/uber.cadence.api.v1.MetaAPI/Health", &request.base,
                                HEALTH_TIMEOUT, API_TYPE(health_response), &answer);
    if (err != NULL)
        return err;
    const API(HealthResponse) *response = (const API(HealthResponse) *)answer;
    cli_print("%s\n", response->message);
    call->exit_code = response->ok ? 0 : 1;
    return NULL;
}

/* The server has another working directory: it gets the absolute path. */
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
    err = cli_ask(call, "/cadenza.admin.v1.StoreAPI/Backup", &request.base, BACKUP_TIMEOUT,
                  &cadenza__admin__v1__backup_response__descriptor, &answer);
    if (err == NULL)
        cli_print("The backup is in %s\n", folder);
    return err;
}

struct error *
cli_rebuild_visibility(struct cli_call *call)
{
    STORE_API(RebuildRequest) request = CADENZA__ADMIN__V1__REBUILD_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    struct error *err =
        cli_ask(call, "/cadenza.admin.v1.VisibilityAPI/Rebuild", &request.base, BACKUP_TIMEOUT,
                &cadenza__admin__v1__rebuild_response__descriptor, &answer);
    if (err == NULL)
        cli_print("%llu runs are listed\n",
                  (unsigned long long)((const STORE_API(RebuildResponse) *)answer)->runs);
    return err;
}
