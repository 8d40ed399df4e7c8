/* limits.c - see limits.h.
 *
 * On: every call and task is counted and checked against a limit that nobody reaches. Off: neither
 * side is counted. The turns alternate, so that whatever else the machine does falls on both. */
#include "limits.h"

#include <stdio.h>

#include "base/check.h"
#include "net/client.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"
#define ROUNDS    6

static API(DataBlob) *
make_blob(const char *json, struct arena *arena)
{
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON);
    blob->data = (ProtobufCBinaryData){.len = strlen(json), .data = (uint8_t *)json};
    return blob;
}

/* `json` NULL: as it was. */
static void
set(struct grpc_client *client, const char *key, const char *json, struct arena *arena)
{
    ADMIN(UpdateDynamicConfigRequest) *request =
        message_new(arena, ADMIN_TYPE(update_dynamic_config_request));
    ADMIN(DynamicConfigValue) *value = message_new(arena, ADMIN_TYPE(dynamic_config_value));
    request->config_name = (char *)key;
    if (json != NULL) {
        value->value = make_blob(json, arena);
        request->n_config_values = 1;
        request->config_values = &value;
    }
    struct grpc_request call = {.path = ADMIN_API "UpdateDynamicConfig",
                                .message = message_encode(arena, &request->base)};
    struct slice response;
    struct error *err = grpc_client_call(client, &call, arena, &response);
    check_that(err == NULL, "%s: %s", key, err == NULL ? "" : err->message);
}

enum turn { LIMITS_ON, LIMITS_OFF, LIMITS_AS_BEFORE };

static void
set_limits(struct grpc_client *client, enum turn turn, struct arena *arena)
{
    static const struct {
        const char *key, *values[3];
    } keys[] = {
        {"history.workflowIDCacheExternalEnabled", {"true", "false", NULL}},
        {"history.workflowIDCacheInternalEnabled", {"true", "false", NULL}},
        {"history.workflowIDExternalRPS", {"1000000", "2147483647", NULL}},
        {"history.workflowIDInternalRPS", {"1000000", "2147483647", NULL}},
    };
    for (size_t i = 0; i < array_length(keys); i++)
        set(client, keys[i].key, keys[i].values[turn], arena);
}

void
limits_compare(const struct workflows_options *options, struct arena *arena)
{
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = options->address});
    double cost[2] = {1e9, 1e9}; /* CPU ms per workflow, of the best turn: a neighbour only adds */
    for (int turn = 0; turn < 2 * ROUNDS; turn++) {
        struct workflows_result result;
        bool is_on = (turn / 2 + turn) % 2 == 0; /* on off, off on, ... */
        set_limits(client, is_on ? LIMITS_ON : LIMITS_OFF, arena);
        workflows_run(options, arena, &result);
        check_that(result.done > 0, "%s", result.first_error);
        double its = (double)result.server_cpu / 1e6 / (double)result.done;
        cost[is_on] = its < cost[is_on] ? its : cost[is_on];
    }
    set_limits(client, LIMITS_AS_BEFORE, arena);
    grpc_client_free(client);
    printf(
        "\n## Limits of workflow ids: on and off\n\nServer CPU per workflow (its start and its "
        "three tasks are counted), %u in flight, the best of %d turns each:\n%.3f ms with limits "
        "that nobody reaches, %.3f ms without counting, ratio %.3f.\n",
        options->in_flight, ROUNDS, cost[1], cost[0], cost[1] / cost[0]);
    fflush(stdout);
}
