/* settings.c - the dynamic settings by call (H-022): what is in force, what is stored, and changing
 * it. */
#include "settings/settings.h"

#include <stddef.h>

#include "api/inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

/* The operational calls have messages of their own with the same fields: there is one store of
 * settings, and the same handlers serve both. */
#define SAME_FIELD(one, other, field)                                                              \
    _Static_assert(offsetof(ADMIN(one), field) == offsetof(ADMIN(other), field) &&                 \
                       sizeof(ADMIN(one)) == sizeof(ADMIN(other)),                                 \
                   #one)
SAME_FIELD(GetDynamicConfigRequest, GetOperationalDynamicConfigRequest, config_name);
SAME_FIELD(GetDynamicConfigRequest, GetOperationalDynamicConfigRequest, filters);
SAME_FIELD(GetDynamicConfigResponse, GetOperationalDynamicConfigResponse, value);
SAME_FIELD(UpdateDynamicConfigRequest, UpdateOperationalDynamicConfigRequest, config_name);
SAME_FIELD(UpdateDynamicConfigRequest, UpdateOperationalDynamicConfigRequest, config_values);
SAME_FIELD(RestoreDynamicConfigRequest, RestoreOperationalDynamicConfigRequest, config_name);
SAME_FIELD(RestoreDynamicConfigRequest, RestoreOperationalDynamicConfigRequest, filters);
SAME_FIELD(ListDynamicConfigRequest, ListOperationalDynamicConfigRequest, config_name);
SAME_FIELD(ListDynamicConfigResponse, ListOperationalDynamicConfigResponse, entries);

static struct error *
read_blob(const API(DataBlob) *blob, const char *what, struct arena *arena, const char **json)
{
    if (blob == NULL || blob->encoding_type != API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON))
        return error_new(arena, ERR_BAD_REQUEST, "%s: its value is not given as JSON.", what);
    *json = arena_text_of(arena, slice_of(blob->data.data, blob->data.len));
    return NULL;
}

static API(DataBlob) *
make_blob(const char *json, struct arena *arena)
{
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON);
    blob->data = (ProtobufCBinaryData){.len = strlen(json), .data = (uint8_t *)json};
    return blob;
}

/* Never NULL: no filters are an empty array. */
static struct error *
read_filters(ADMIN(DynamicConfigFilter) **filters, size_t count, struct arena *arena,
             struct setting_constraint **constraints)
{
    *constraints = arena_zalloc(arena, count + 1, sizeof **constraints);
    for (size_t i = 0; i < count; i++) {
        struct setting_constraint *constraint = &(*constraints)[i];
        constraint->name = filters[i]->name;
        struct error *err =
            read_blob(filters[i]->value, filters[i]->name, arena, &constraint->json);
        if (err != NULL)
            return err;
    }
    return NULL;
}

static struct error *
settings_of(struct rpc_call *call, struct settings **settings)
{
    *settings = api_of(call)->options.settings;
    return *settings != NULL ? NULL
                             : error_new(call->arena, ERR_BAD_REQUEST,
                                         "This server keeps no settings of its own.");
}

struct error *
api_get_dynamic_config(struct rpc_call *call)
{
    const ADMIN(GetDynamicConfigRequest) *request =
        (const ADMIN(GetDynamicConfigRequest) *)call->request;
    ADMIN(GetDynamicConfigResponse) *response = (ADMIN(GetDynamicConfigResponse) *)call->response;
    struct settings *settings;
    struct setting_constraint *constraints = NULL;
    const char *json = NULL;
    struct error *err = settings_of(call, &settings);
    if (err == NULL)
        err = read_filters(request->filters, request->n_filters, call->arena, &constraints);
    if (err == NULL)
        err = settings_get(settings, request->config_name, constraints, request->n_filters,
                           call->arena, &json);
    if (err == NULL)
        response->value = make_blob(json, call->arena);
    return err;
}

static struct error *
read_entry(const ADMIN(DynamicConfigValue) *value, const char *name, struct arena *arena,
           struct setting_entry *entry)
{
    struct error *err = read_blob(value->value, name, arena, &entry->json);
    if (err == NULL)
        err = read_filters(value->filters, value->n_filters, arena, &entry->constraints);
    entry->constraint_count = value->n_filters;
    return err;
}

struct error *
api_update_dynamic_config(struct rpc_call *call)
{
    const ADMIN(UpdateDynamicConfigRequest) *request =
        (const ADMIN(UpdateDynamicConfigRequest) *)call->request;
    struct settings *settings;
    struct setting setting = {.name = request->config_name, .count = request->n_config_values};
    setting.entries = arena_zalloc(call->arena, setting.count + 1, sizeof *setting.entries);
    struct error *err = settings_of(call, &settings);
    for (size_t i = 0; i < setting.count && err == NULL; i++)
        err = read_entry(request->config_values[i], setting.name, call->arena, &setting.entries[i]);
    return err != NULL ? err : settings_update(settings, &setting, call->arena);
}

struct error *
api_restore_dynamic_config(struct rpc_call *call)
{
    const ADMIN(RestoreDynamicConfigRequest) *request =
        (const ADMIN(RestoreDynamicConfigRequest) *)call->request;
    struct settings *settings;
    struct setting_constraint *constraints = NULL;
    struct error *err = settings_of(call, &settings);
    if (err == NULL)
        err = read_filters(request->filters, request->n_filters, call->arena, &constraints);
    if (err != NULL)
        return err;
    return settings_restore(settings, request->config_name,
                            request->n_filters == 0 ? NULL : constraints, request->n_filters,
                            call->arena);
}

static ADMIN(DynamicConfigValue) *
show_entry(const struct setting_entry *entry, struct arena *arena)
{
    ADMIN(DynamicConfigValue) *value = message_new(arena, ADMIN_TYPE(dynamic_config_value));
    value->value = make_blob(entry->json, arena);
    value->n_filters = entry->constraint_count;
    value->filters = arena_zalloc(arena, value->n_filters + 1, sizeof *value->filters);
    for (size_t i = 0; i < value->n_filters; i++) {
        value->filters[i] = message_new(arena, ADMIN_TYPE(dynamic_config_filter));
        value->filters[i]->name = (char *)entry->constraints[i].name;
        value->filters[i]->value = make_blob(entry->constraints[i].json, arena);
    }
    return value;
}

static ADMIN(DynamicConfigEntry) *
show_setting(const struct setting *setting, struct arena *arena)
{
    ADMIN(DynamicConfigEntry) *entry = message_new(arena, ADMIN_TYPE(dynamic_config_entry));
    entry->name = (char *)setting->name;
    entry->n_values = setting->count;
    entry->values = arena_zalloc(arena, setting->count + 1, sizeof *entry->values);
    for (size_t i = 0; i < setting->count; i++)
        entry->values[i] = show_entry(&setting->entries[i], arena);
    return entry;
}

struct error *
api_list_dynamic_config(struct rpc_call *call)
{
    const ADMIN(ListDynamicConfigRequest) *request =
        (const ADMIN(ListDynamicConfigRequest) *)call->request;
    ADMIN(ListDynamicConfigResponse) *response = (ADMIN(ListDynamicConfigResponse) *)call->response;
    struct settings *settings;
    struct setting *found = NULL;
    size_t count = 0;
    struct error *err = settings_of(call, &settings);
    if (err == NULL)
        err = settings_list(settings, request->config_name, call->arena, &found, &count);
    if (err != NULL)
        return err;
    response->n_entries = count;
    response->entries = arena_zalloc(call->arena, count + 1, sizeof *response->entries);
    for (size_t i = 0; i < count; i++)
        response->entries[i] = show_setting(&found[i], call->arena);
    return NULL;
}
