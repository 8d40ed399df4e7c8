/* domain_request.c - see domain_request.h. */
#include "cli/domain/domain_request.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/domain/domain_attributes.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RETENTION_DAYS_DEFAULT "3"
#define GRACE_SECONDS_DEFAULT  "60"
#define SECONDS_PER_DAY        (24 * 3600)
#define PATHS_MAX              14 /* fields that an update may name */

struct error *
domain_need_name(const struct domain_flags *flags, struct arena *arena)
{
    if (flags->name != NULL && flags->name[0] != '\0')
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "no domain is named; give --domain NAME or set CADENCE_CLI_DOMAIN");
}

/* --- single values -------------------------------------------------------------------------------
 */

static struct error *
read_number(const char *flag, const char *text, int64_t low, struct arena *arena, int32_t *number)
{
    int64_t value;
    if (!text_parse_int64(slice_text(text), low, INT32_MAX, &value))
        return error_new(arena, ERR_BAD_REQUEST, "--%s: '%s' is not a whole number from %lld up",
                         flag, text, (long long)low);
    *number = (int32_t)value;
    return NULL;
}

/* 0 goes through: that it is too short is the server's answer. */
static struct error *
read_retention(const char *days, struct arena *arena, GOOGLE(Duration) **retention)
{
    int32_t number = 0;
    struct error *err = read_number("retention", days, 0, arena, &number);
    if (err == NULL)
        *retention = presence_make_duration(arena, (int64_t)number * SECONDS_PER_DAY);
    return err;
}

static struct error *
read_archival(const char *flag, const char *text, struct arena *arena, API(ArchivalStatus) *status)
{
    if (text == NULL)
        return NULL;
    if (strcmp(text, "enabled") == 0)
        *status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED);
    else if (strcmp(text, "disabled") == 0)
        *status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED);
    else
        return error_new(arena, ERR_BAD_REQUEST, "--%s: '%s' is neither enabled nor disabled", flag,
                         text);
    return NULL;
}

/* Seconds, as a number or with their unit: "120", "120s", "2m". */
static struct error *
read_seconds(const char *flag, const char *text, struct arena *arena, int32_t *number)
{
    size_t length = strlen(text);
    char unit = length == 0 ? 's' : text[length - 1];
    bool has_unit = unit == 's' || unit == 'm';
    int64_t value, factor = has_unit && unit == 'm' ? 60 : 1;
    struct slice digits = slice_of(text, has_unit && length > 0 ? length - 1 : length);
    if (!text_parse_int64(digits, 1, INT32_MAX / factor, &value))
        return error_new(arena, ERR_BAD_REQUEST,
                         "--%s: '%s' is not a number of seconds from 1 up, like 120, 120s or 2m",
                         flag, text);
    *number = (int32_t)(value * factor);
    return NULL;
}

/* The time that a graceful failover may take; NULL: a forced one. */
static struct error *
read_failover_timeout(const struct domain_flags *flags, struct arena *arena,
                      GOOGLE(Duration) **timeout)
{
    const char *type = flags->failover_type, *seconds = flags->failover_timeout;
    bool is_forced = type != NULL && strcmp(type, "force") == 0;
    bool is_graceful =
        type != NULL && (strcmp(type, "grace") == 0 || strcmp(type, "graceful") == 0);
    *timeout = NULL;
    if (type != NULL && !is_forced && !is_graceful)
        return error_new(arena, ERR_BAD_REQUEST, "--failover_type: '%s' is neither force nor grace",
                         type);
    if (is_forced && seconds != NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "--failover_timeout is for --failover_type grace; a forced failover does "
                         "not wait");
    if (!is_graceful && seconds == NULL)
        return NULL;
    int32_t number = 0;
    struct error *err =
        read_seconds("failover_timeout_seconds", seconds != NULL ? seconds : GRACE_SECONDS_DEFAULT,
                     arena, &number);
    if (err == NULL)
        *timeout = presence_make_duration(arena, number);
    return err;
}

struct error *
domain_read_page_size(const struct domain_flags *flags, int32_t otherwise, struct arena *arena,
                      int32_t *size)
{
    *size = otherwise;
    if (flags->page_size == NULL)
        return NULL;
    return read_number("pagesize", flags->page_size, 1, arena, size);
}

/* --- register ------------------------------------------------------------------------------------
 */

static struct error *
register_data(const struct domain_flags *flags, struct arena *arena,
              API(RegisterDomainRequest) *request)
{
    struct domain_datum *data;
    size_t count = 0;
    struct error *err = domain_read_data(flags, arena, &data, &count);
    if (err != NULL)
        return err;
    request->data = arena_zalloc(arena, count, sizeof *request->data);
    for (size_t i = 0; i < count; i++) {
        request->data[i] = message_new(arena, API_TYPE(register_domain_request__data_entry));
        request->data[i]->key = (char *)data[i].key;
        request->data[i]->value = (char *)data[i].value;
    }
    request->n_data = count;
    wire_map_sort(arena, request->data, &request->n_data);
    return NULL;
}

static struct error *
register_replication(const struct domain_flags *flags, struct arena *arena,
                     API(RegisterDomainRequest) *request)
{
    bool is_global = true;
    if (flags->is_global != NULL && !flag_parse_bool(flags->is_global, &is_global))
        return error_new(arena, ERR_BAD_REQUEST, "--global_domain: '%s' is neither true nor false",
                         flags->is_global);
    request->is_global_domain = is_global;
    request->active_cluster_name = presence_make_text(flags->active_cluster);
    struct error *err = NULL;
    if (flags->clusters.count > 0)
        err =
            domain_read_clusters(&flags->clusters, arena, &request->clusters, &request->n_clusters);
    if (err == NULL)
        err = domain_read_active_clusters(flags, arena, &request->active_clusters);
    return err;
}

struct error *
domain_make_register(const struct domain_flags *flags, struct arena *arena,
                     API(RegisterDomainRequest) **made)
{
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = presence_make_text(flags->name);
    request->description = presence_make_text(flags->description);
    request->owner_email = presence_make_text(flags->owner_email);
    request->security_token = presence_make_text(flags->security_token);
    request->history_archival_uri = presence_make_text(flags->history_uri);
    request->visibility_archival_uri = presence_make_text(flags->visibility_uri);
    struct error *err = domain_need_name(flags, arena);
    if (err == NULL)
        err = read_retention(flags->retention != NULL ? flags->retention : RETENTION_DAYS_DEFAULT,
                             arena, &request->workflow_execution_retention_period);
    if (err == NULL)
        err = read_archival("history_archival_status", flags->history_status, arena,
                            &request->history_archival_status);
    if (err == NULL)
        err = read_archival("visibility_archival_status", flags->visibility_status, arena,
                            &request->visibility_archival_status);
    if (err == NULL)
        err = register_data(flags, arena, request);
    if (err == NULL)
        err = register_replication(flags, arena, request);
    *made = request;
    return err;
}

/* --- update --------------------------------------------------------------------------------------
 */

static void
name_path(API(UpdateDomainRequest) *request, const char *path)
{
    check(request->update_mask->n_paths < PATHS_MAX);
    request->update_mask->paths[request->update_mask->n_paths++] = (char *)path;
}

static void
set_text(API(UpdateDomainRequest) *request, const char *path, char **field, const char *text)
{
    if (text == NULL)
        return;
    *field = presence_make_text(text);
    name_path(request, path);
}

static struct error *
update_data(const struct domain_flags *flags, struct arena *arena,
            API(UpdateDomainRequest) *request)
{
    struct domain_datum *data;
    size_t count = 0;
    struct error *err = domain_read_data(flags, arena, &data, &count);
    if (err != NULL || count == 0)
        return err;
    request->data = arena_zalloc(arena, count, sizeof *request->data);
    for (size_t i = 0; i < count; i++) {
        request->data[i] = message_new(arena, API_TYPE(update_domain_request__data_entry));
        request->data[i]->key = (char *)data[i].key;
        request->data[i]->value = (char *)data[i].value;
    }
    request->n_data = count;
    wire_map_sort(arena, request->data, &request->n_data);
    name_path(request, "data");
    return NULL;
}

static struct error *
update_settings(const struct domain_flags *flags, struct arena *arena,
                API(UpdateDomainRequest) *request)
{
    struct error *err = NULL;
    if (flags->retention != NULL) {
        err =
            read_retention(flags->retention, arena, &request->workflow_execution_retention_period);
        name_path(request, "workflow_execution_retention_period");
    }
    if (err == NULL && flags->history_status != NULL) {
        err = read_archival("history_archival_status", flags->history_status, arena,
                            &request->history_archival_status);
        name_path(request, "history_archival_status");
    }
    if (err == NULL && flags->visibility_status != NULL) {
        err = read_archival("visibility_archival_status", flags->visibility_status, arena,
                            &request->visibility_archival_status);
        name_path(request, "visibility_archival_status");
    }
    return err == NULL ? update_data(flags, arena, request) : err;
}

static struct error *
update_bad_binaries(const struct domain_flags *flags, const char *person, struct arena *arena,
                    API(UpdateDomainRequest) *request)
{
    set_text(request, "delete_bad_binary", &request->delete_bad_binary, flags->remove_bad_binary);
    if (flags->add_bad_binary == NULL)
        return NULL;
    if (flags->reason == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "--add_bad_binary needs --reason TEXT: say what is wrong with it");
    API(BadBinaries__BinariesEntry) *entry =
        message_new(arena, API_TYPE(bad_binaries__binaries_entry));
    entry->key = presence_make_text(flags->add_bad_binary);
    entry->value = message_new(arena, API_TYPE(bad_binary_info));
    entry->value->reason = presence_make_text(flags->reason);
    entry->value->operator_ = presence_make_text(person);
    request->bad_binaries = message_new(arena, API_TYPE(bad_binaries));
    request->bad_binaries->binaries = arena_zalloc(arena, 1, sizeof(void *));
    request->bad_binaries->binaries[0] = entry;
    request->bad_binaries->n_binaries = 1;
    name_path(request, "bad_binaries");
    return NULL;
}

static struct error *
update_replication(const struct domain_flags *flags, struct arena *arena,
                   API(UpdateDomainRequest) *request)
{
    struct error *err = NULL;
    if (flags->clusters.count > 0) {
        err =
            domain_read_clusters(&flags->clusters, arena, &request->clusters, &request->n_clusters);
        name_path(request, "clusters");
    }
    if (err == NULL)
        err = domain_read_active_clusters(flags, arena, &request->active_clusters);
    if (err == NULL)
        err = read_failover_timeout(flags, arena, &request->failover_timeout);
    if (err != NULL)
        return err;
    set_text(request, "active_cluster_name", &request->active_cluster_name, flags->active_cluster);
    if (request->active_clusters != NULL)
        name_path(request, "active_clusters");
    if (request->failover_timeout == NULL)
        return NULL;
    if (flags->active_cluster == NULL && request->active_clusters == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "a failover needs its target: --active_cluster or --active_clusters");
    name_path(request, "failover_timeout");
    return NULL;
}

struct error *
domain_make_update(const struct domain_flags *flags, const char *person, struct arena *arena,
                   API(UpdateDomainRequest) **made)
{
    API(UpdateDomainRequest) *request = message_new(arena, API_TYPE(update_domain_request));
    request->update_mask = message_new(arena, GOOGLE_TYPE(field_mask));
    request->update_mask->paths = arena_zalloc(arena, PATHS_MAX, sizeof(char *));
    request->name = presence_make_text(flags->name);
    request->security_token = presence_make_text(flags->security_token);
    set_text(request, "description", &request->description, flags->description);
    set_text(request, "owner_email", &request->owner_email, flags->owner_email);
    set_text(request, "history_archival_uri", &request->history_archival_uri, flags->history_uri);
    set_text(request, "visibility_archival_uri", &request->visibility_archival_uri,
             flags->visibility_uri);
    struct error *err = domain_need_name(flags, arena);
    if (err == NULL)
        err = update_settings(flags, arena, request);
    if (err == NULL)
        err = update_bad_binaries(flags, person, arena, request);
    if (err == NULL)
        err = update_replication(flags, arena, request);
    if (err == NULL)
        err = domain_read_removed(flags, arena, request);
    bool removes = request->n_removed_attributes > 0 || request->removes_all_attributes;
    if (err == NULL && request->update_mask->n_paths == 0 && !removes)
        err = error_new(arena, ERR_BAD_REQUEST,
                        "nothing to change; give a flag for what to change, for example "
                        "--retention 7 (see --help)");
    *made = request;
    return err;
}

/* --- failover ------------------------------------------------------------------------------------
 */

struct error *
domain_make_failover(const struct domain_flags *flags, struct arena *arena,
                     API(FailoverDomainRequest) **made)
{
    API(FailoverDomainRequest) *request = message_new(arena, API_TYPE(failover_domain_request));
    request->domain_name = presence_make_text(flags->name);
    request->domain_active_cluster_name = presence_make_text(flags->active_cluster);
    request->reason = presence_make_text(flags->reason);
    struct error *err = domain_need_name(flags, arena);
    if (err == NULL)
        err = domain_read_active_clusters(flags, arena, &request->active_clusters);
    if (err == NULL)
        err = read_failover_timeout(flags, arena, &request->failover_timeout);
    bool has_target =
        request->domain_active_cluster_name[0] != '\0' || request->active_clusters != NULL;
    bool is_leaving = flags->leave_cluster != NULL; /* what that means is found out later */
    if (err == NULL && is_leaving && (has_target || flags->to_cluster == NULL))
        err = error_new(arena, ERR_BAD_REQUEST,
                        "--leave_cluster CLUSTER needs --to_cluster CLUSTER and no other target");
    if (err == NULL && !has_target && !is_leaving)
        err = error_new(arena, ERR_BAD_REQUEST,
                        "no target: give --active_cluster CLUSTER for the domain, "
                        "--active_clusters SCOPE.NAME:CLUSTER for cluster attributes, or both");
    *made = request;
    return err;
}
