/* migration.c - domain migration: would workflows find in a domain of another server what they have
 * here? Compares both domains and shows the differences; changes nothing. */
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/vector.h"
#include "cli/base/inside.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TIMEOUT (5 * NS_PER_S)
#define LONG_RUNS                                                                                  \
    (14 * 24 * 3600 * NS_PER_S) /* open for this long: will not end before the migration */
#define DATA_MAX 80             /* characters of a value in the table */

/* One of the two domains. */
struct side {
    const char *address, *domain;
    json_t *described;
};

struct mismatch {
    const char *check, *what, *here, *there;
};

struct comparison {
    struct cli_call *call;
    struct side here, there;
    vector_of(struct mismatch) found;
};

static struct error *
ask(struct comparison *comparison, const struct side *side, const char *path,
    const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type, void *response)
{
    struct cli_call *call = comparison->call;
    const char *own = call->address;
    call->address = side->address;
    struct error *err = cli_ask(call, path, request, TIMEOUT, type, response);
    call->address = own;
    return err == NULL ? NULL : error_wrap(err, "%s", side->address);
}

static void
differ(struct comparison *comparison, const char *check, const char *what, const char *here,
       const char *there)
{
    struct mismatch mismatch = {check, what, here, there};
    vector_push_in(&comparison->found, comparison->call->arena, mismatch);
}

/* ---- what was registered ---- */

/* Members of a domain that workflows, or those who own them, rely on. */
static const char *const members[] = {
    "ownerEmail",
    "data",
    "workflowExecutionRetentionPeriod",
    "badBinaries",
    "historyArchivalStatus",
    "historyArchivalUri",
    "visibilityArchivalStatus",
    "visibilityArchivalUri",
    "isolationGroups",
    "asyncWorkflowConfig",
};

static struct error *
describe(struct comparison *comparison, struct side *side)
{
    API(DescribeDomainRequest) request = API_VALUE(DESCRIBE_DOMAIN_REQUEST__INIT);
    API(DescribeDomainResponse) *response = NULL;
    request.describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME);
    request.name = (char *)side->domain;
    struct error *err = ask(comparison, side, "/uber.cadence.api.v1.DomainAPI/DescribeDomain",
                            &request.base, API_TYPE(describe_domain_response), &response);
    if (err == NULL && response->domain == NULL)
        err = error_new(comparison->call->arena, ERR_UNCATEGORISED, "%s answered without a domain",
                        side->address);
    if (err == NULL)
        side->described =
            render_message(&response->domain->base, RENDER_READABLE, comparison->call->arena);
    return err;
}

static const char *
show_member(const struct side *side, const char *name, struct arena *arena)
{
    const json_t *member = json_object_get(side->described, name);
    return member == NULL ? "-" : render_compact(member, arena);
}

static struct error *
compare_domains(struct comparison *comparison)
{
    struct arena *arena = comparison->call->arena;
    struct error *err = describe(comparison, &comparison->here);
    if (err == NULL)
        err = describe(comparison, &comparison->there);
    for (size_t i = 0; err == NULL && i < array_length(members); i++) {
        const char *here = show_member(&comparison->here, members[i], arena);
        const char *there = show_member(&comparison->there, members[i], arena);
        if (strcmp(here, there) != 0)
            differ(comparison, "domain", members[i], here, there);
    }
    return err;
}

/* ---- workflows ---- */

static struct error *
count_long_runs(struct comparison *comparison)
{
    struct arena *arena = comparison->call->arena;
    API(CountWorkflowExecutionsRequest) request =
        API_VALUE(COUNT_WORKFLOW_EXECUTIONS_REQUEST__INIT);
    API(CountWorkflowExecutionsResponse) *response = NULL;
    request.domain = (char *)comparison->here.domain;
    request.query = arena_format(arena, "CloseTime = missing and StartTime < %lld",
                                 (long long)(clock_wall() - LONG_RUNS));
    struct error *err = ask(comparison, &comparison->here,
                            "/uber.cadence.api.v1.VisibilityAPI/CountWorkflowExecutions",
                            &request.base, API_TYPE(count_workflow_executions_response), &response);
    if (err == NULL && response->count > 0)
        differ(comparison, "workflows", "open for more than 14 days",
               arena_format(arena, "%lld", (long long)response->count), "-");
    return err;
}

/* ---- search attributes ---- */

static struct error *
read_attributes(struct comparison *comparison, const struct side *side,
                API(GetSearchAttributesResponse) **response)
{
    API(GetSearchAttributesRequest) request = API_VALUE(GET_SEARCH_ATTRIBUTES_REQUEST__INIT);
    return ask(comparison, side, "/uber.cadence.api.v1.VisibilityAPI/GetSearchAttributes",
               &request.base, API_TYPE(get_search_attributes_response), response);
}

static const char *
type_of(const API(GetSearchAttributesResponse) *attributes, const char *key, struct arena *arena)
{
    for (size_t i = 0; i < attributes->n_keys; i++) {
        if (strcmp(attributes->keys[i]->key, key) == 0)
            return show_enum(API_TYPE(indexed_value_type), "INDEXED_VALUE_TYPE_",
                             (int)attributes->keys[i]->value, arena);
    }
    return "-";
}

/* Those that --search_attr names, as KEY:TYPE. */
static struct error *
compare_attributes(struct comparison *comparison)
{
    struct cli_call *call = comparison->call;
    const struct flag_list *wanted = cli_list(call, "migrated_attributes");
    API(GetSearchAttributesResponse) *here = NULL, *there = NULL;
    struct error *err = NULL;
    if (wanted->count == 0)
        return NULL;
    err = read_attributes(comparison, &comparison->here, &here);
    if (err == NULL)
        err = read_attributes(comparison, &comparison->there, &there);
    for (size_t i = 0; err == NULL && i < wanted->count; i++) {
        const char *colon = strchr(wanted->items[i], ':');
        if (colon == NULL)
            return cli_wrong(call,
                             error_new(call->arena, ERR_BAD_REQUEST,
                                       "--search_attr: '%s' is not KEY:TYPE", wanted->items[i]));
        size_t length = (size_t)(colon - wanted->items[i]);
        const char *key = arena_text_of(call->arena, slice_of(wanted->items[i], length));
        const char *first = type_of(here, key, call->arena);
        const char *second = type_of(there, key, call->arena);
        if (strcasecmp(first, colon + 1) != 0 || strcasecmp(second, colon + 1) != 0)
            differ(comparison, "search attributes", wanted->items[i], first, second);
    }
    return err;
}

/* ---- settings ---- */

static ADMIN(DynamicConfigFilter) *
make_filter(const char *name, const char *value, struct arena *arena)
{
    ADMIN(DynamicConfigFilter) *filter = message_new(arena, ADMIN_TYPE(dynamic_config_filter));
    json_t *text = json_string(value);
    filter->name = (char *)name;
    filter->value = message_new(arena, API_TYPE(data_blob));
    filter->value->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON);
    filter->value->data = presence_make_bytes(slice_text(render_compact(text, arena)));
    json_decref(text);
    return filter;
}

/* The value of a setting for the domain, and for a task list of it unless that is NULL. */
static struct error *
read_setting(struct comparison *comparison, const struct side *side, const char *key,
             const char *list, const char **value)
{
    struct arena *arena = comparison->call->arena;
    ADMIN(GetDynamicConfigRequest) request = ADMIN_VALUE(GET_DYNAMIC_CONFIG_REQUEST__INIT);
    ADMIN(GetDynamicConfigResponse) *response = NULL;
    ADMIN(DynamicConfigFilter) *filters[2];
    filters[0] = make_filter("domainName", side->domain, arena);
    filters[1] = list == NULL ? NULL : make_filter("taskListName", list, arena);
    request.config_name = (char *)key;
    request.filters = filters;
    request.n_filters = list == NULL ? 1 : 2;
    struct error *err = ask(comparison, side, "/uber.cadence.admin.v1.AdminAPI/GetDynamicConfig",
                            &request.base, ADMIN_TYPE(get_dynamic_config_response), &response);
    *value = "-";
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        return NULL;
    if (err == NULL && response->value != NULL && response->value->data.len > 0)
        *value =
            arena_text_of(arena, slice_of(response->value->data.data, response->value->data.len));
    return err;
}

/* Does a task list differ as its domain does? Then nothing is to be said of it. */
static bool
is_reported(const struct comparison *comparison, const char *key, const char *here,
            const char *there)
{
    for (size_t i = 0; i < comparison->found.count; i++) {
        const struct mismatch *found = &comparison->found.items[i];
        if (strcmp(found->what, key) == 0 && strcmp(found->here, here) == 0 &&
            strcmp(found->there, there) == 0)
            return true;
    }
    return false;
}

static struct error *
compare_setting(struct comparison *comparison, const char *key, const char *list)
{
    struct arena *arena = comparison->call->arena;
    const char *here, *there;
    struct error *err = read_setting(comparison, &comparison->here, key, list, &here);
    if (err == NULL)
        err = read_setting(comparison, &comparison->there, key, list, &there);
    if (err == NULL && strcmp(here, there) != 0 && !is_reported(comparison, key, here, there))
        differ(comparison, "settings",
               list == NULL ? key : arena_format(arena, "%s (task list %s)", key, list), here,
               there);
    return err;
}

static struct error *
list_settings(struct comparison *comparison, const struct side *side,
              ADMIN(ListDynamicConfigResponse) **response)
{
    ADMIN(ListDynamicConfigRequest) request = ADMIN_VALUE(LIST_DYNAMIC_CONFIG_REQUEST__INIT);
    request.config_name = "";
    return ask(comparison, side, "/uber.cadence.admin.v1.AdminAPI/ListDynamicConfig", &request.base,
               ADMIN_TYPE(list_dynamic_config_response), response);
}

static bool
has_setting(const ADMIN(ListDynamicConfigResponse) *all, const char *name)
{
    for (size_t i = 0; i < all->n_entries; i++) {
        if (strcmp(all->entries[i]->name, name) == 0)
            return true;
    }
    return false;
}

/* Settings that one of them has, but for those of `done`. */
static struct error *
compare_listed(struct comparison *comparison, const ADMIN(ListDynamicConfigResponse) *all,
               const ADMIN(ListDynamicConfigResponse) *done)
{
    const struct flag_list *lists = cli_list(comparison->call, "migrated_lists");
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < all->n_entries; i++) {
        const char *name = all->entries[i]->name;
        if (done != NULL && has_setting(done, name))
            continue;
        err = compare_setting(comparison, name, NULL);
        for (size_t j = 0; err == NULL && j < lists->count; j++)
            err = compare_setting(comparison, name, lists->items[j]);
    }
    return err;
}

static struct error *
compare_settings(struct comparison *comparison)
{
    ADMIN(ListDynamicConfigResponse) *here = NULL, *there = NULL;
    struct error *err = list_settings(comparison, &comparison->here, &here);
    if (err == NULL)
        err = list_settings(comparison, &comparison->there, &there);
    if (err == NULL)
        err = compare_listed(comparison, here, NULL);
    return err != NULL ? err : compare_listed(comparison, there, here);
}

/* ---- all of it ---- */

static void
print_json(const struct comparison *comparison)
{
    json_t *all = json_array();
    for (size_t i = 0; i < comparison->found.count; i++) {
        const struct mismatch *found = &comparison->found.items[i];
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:s}", "check", found->check, "what",
                                        found->what, "here", found->here, "there", found->there));
    }
    cli_print_json(all);
}

static const char *
cut(const char *text, struct arena *arena)
{
    const char *shown = show_text(text, arena);
    return strlen(shown) <= DATA_MAX ? shown : arena_format(arena, "%.*s...", DATA_MAX, shown);
}

static void
print_table(const struct comparison *comparison)
{
    struct arena *arena = comparison->call->arena;
    struct table table = {.columns = 4, .arena = arena};
    table_add(&table, "CHECK", "WHAT", "HERE", "THERE");
    for (size_t i = 0; i < comparison->found.count; i++) {
        const struct mismatch *found = &comparison->found.items[i];
        table_add(&table, found->check, cut(found->what, arena), cut(found->here, arena),
                  cut(found->there, arena));
    }
    if (comparison->found.count > 0)
        cli_print("%s", table_text(&table));
    else
        cli_print("No differences: workflows of %s find the same in %s of %s.\n",
                  show_text(comparison->here.domain, arena),
                  show_text(comparison->there.domain, arena), comparison->there.address);
}

struct error *
cli_domain_migration(struct cli_call *call)
{
    struct comparison comparison = {.call = call, .here.address = call->address};
    struct error *err = cli_need_domain(call, &comparison.here.domain);
    if (err == NULL)
        err = cli_need(call, "destination_address", &comparison.there.address);
    if (err == NULL)
        err = cli_need(call, "destination_domain", &comparison.there.domain);
    struct error *(*const checks[])(struct comparison *) = {compare_domains, count_long_runs,
                                                            compare_settings, compare_attributes};
    for (size_t i = 0; err == NULL && i < array_length(checks); i++)
        err = checks[i](&comparison);
    if (err == NULL && call->as_json)
        print_json(&comparison);
    else if (err == NULL)
        print_table(&comparison);
    json_decref(comparison.here.described);
    json_decref(comparison.there.described);
    return err;
}
