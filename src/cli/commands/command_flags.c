/* command_flags.c - every flag of every command but `server`, once. Names and short names are those
 * of the cadence command line where it has such a flag. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/inside.h"

#define TEXT(key_, name_, aliases_, argument_, field, help_)                                       \
    {                                                                                              \
        .key = (key_), .name = (name_), .aliases = (aliases_), .argument = (argument_),            \
        .help = (help_), .offset = offsetof(struct cli_call, field)                                \
    }
#define LIST(name_, aliases_, argument_, field, help_)                                             \
    {                                                                                              \
        .key = (name_), .name = (name_), .aliases = (aliases_), .argument = (argument_),           \
        .help = (help_), .offset = offsetof(struct cli_call, field), .is_list = true               \
    }
#define SWITCH(name_, aliases_, field, help_) TEXT(name_, name_, aliases_, NULL, field, help_)
#define DOMAIN(name_, aliases_, argument_, field, help_)                                           \
    TEXT(name_, name_, aliases_, argument_, domain.field, help_)

#define GLOBAL(name_, aliases_, argument_, field, help_, otherwise_, environment_)                 \
    {                                                                                              \
        .key = (name_), .name = (name_), .aliases = (aliases_), .argument = (argument_),           \
        .help = (help_), .offset = offsetof(struct cli_call, field), .otherwise = (otherwise_),    \
        .environment = (environment_)                                                              \
    }

const struct cli_flag cli_flags[] = {
    TEXT("data", "data", NULL, "DIR", data, "The data folder. Default ./data."),
    GLOBAL("domain", "do", "NAME", domain.name, "The domain.", NULL, "CADENCE_CLI_DOMAIN"),
    DOMAIN("domain_id", NULL, "UUID", id, "The domain by its id, instead of its name."),
    DOMAIN("description", "desc", "TEXT", description, "What the domain is for."),
    DOMAIN("owner_email", "oe", "EMAIL", owner_email, "Whom to ask about it."),
    DOMAIN("retention", "rd", "DAYS", retention,
           "How long closed workflows are kept. A new domain: 3 days."),
    DOMAIN("global_domain", "gd", "true|false", is_global,
           "false: it lives in this cluster only. Default true."),
    DOMAIN("active_cluster", "ac", "CLUSTER", active_cluster,
           "The cluster that is active for it (where no cluster attribute says otherwise)."),
    LIST("active_clusters", "acs", "SCOPE.NAME:CLUSTER,...", domain.active_clusters,
         "The active cluster of each cluster attribute: "
         "region.lisbon:cluster0,region.oslo:cluster1"),
    DOMAIN("active_clusters_json", "acs-json", "JSON", active_clusters_json,
           "The same as {\"attributeScopes\":{SCOPE:{\"clusterAttributes\":{NAME:"
           "{\"activeClusterName\":CLUSTER}}}}}."),
    LIST("active_clusters_by_region", "regions", "REGION:CLUSTER,...", domain.regions,
         "The same for attributes of scope region: lisbon:cluster0,oslo:cluster1"),
    LIST("remove_attributes", NULL, "SCOPE.NAME,...|all", domain.removed_attributes,
         "Cluster attributes to remove: city.oslo, city.* or all. When none is left, the domain is "
         "active in one cluster again, and its workflows continue there."),
    TEXT("force_removal", "force", NULL, NULL, domain.is_forced,
         "Remove attributes or clusters even if open workflows use them."),
    DOMAIN("leave_cluster", NULL, "CLUSTER", leave_cluster,
           "Moves everything that is active in this cluster, the domain itself and its cluster "
           "attributes; needs --to_cluster."),
    DOMAIN("to_cluster", NULL, "CLUSTER", to_cluster, "The cluster that becomes active instead."),
    DOMAIN("cluster_attribute", NULL, "SCOPE.NAME", attribute,
           "Only failovers of this cluster attribute; SCOPE.*: of any in the scope."),
    LIST("clusters", "cl", "CLUSTER,...", domain.clusters,
         "The clusters it is replicated to; may be given several times."),
    LIST("domain_data", "dmd", "KEY=VALUE,...", domain.data,
         "Data of your own, kept with the domain; an update changes the keys it names."),
    LIST("domain_data_entry", NULL, "KEY=VALUE", domain.data_entries,
         "One entry of it whose value may have commas; may be given several times."),
    DOMAIN("security_token", "st", "TOKEN", security_token,
           "For servers that let only administrators change domains."),
    DOMAIN("history_archival_status", "has", "enabled|disabled", history_status,
           "Whether histories are archived."),
    DOMAIN("history_uri", "huri", "URI", history_uri, "Where to; fixed once it is given."),
    DOMAIN("visibility_archival_status", "vas", "enabled|disabled", visibility_status,
           "Whether visibility records are archived."),
    DOMAIN("visibility_uri", "vuri", "URI", visibility_uri, "Where to; fixed once it is given."),
    DOMAIN("add_bad_binary", NULL, "CHECKSUM", add_bad_binary,
           "A worker binary whose workflows are to be reset; needs --reason."),
    DOMAIN("remove_bad_binary", NULL, "CHECKSUM", remove_bad_binary, "Not bad any more."),
    DOMAIN("reason", "r", "TEXT", reason, "Why it is done."),
    DOMAIN("failover_type", "ft", "force|grace", failover_type,
           "force: at once. grace: after everything that happened so far has been replicated. "
           "Default force."),
    DOMAIN("failover_timeout_seconds", "failover_timeout fts", "SECONDS", failover_timeout,
           "How long a graceful failover may take before it is forced: 90, 90s, 2m. Default 60."),
    DOMAIN("pagesize", "ps page_size", "N", page_size, "How many to ask the server for at a time."),
    DOMAIN("prefix", NULL, "TEXT", prefix, "Only names with this prefix."),
    SWITCH("all", "a", domain.wants_all, "Deprecated and deleted domains too."),
    TEXT("all_failovers", "all", "a", NULL, domain.wants_all, "All; else the newest 10."),
    SWITCH("deprecated", "dep", domain.wants_deprecated, "Only deprecated domains."),
    SWITCH("print_full", "pf", domain.wants_full, "More columns."),
    SWITCH("force", NULL, domain.is_forced,
           "Accepted for compatibility; a domain is always deprecated at once."),
    SWITCH("yes", "y", domain.is_confirmed, "Do not ask."),

    TEXT("group_clusters", "clusters", "cl", "N", group_clusters,
         "How many clusters, 1 to 9. Default 3."),
    TEXT("group_data", "data", NULL, "DIR", data,
         "Where the clusters keep their data and logs. Default ./data-group."),
    TEXT("base_port", "base-port", NULL, "PORT", base_port,
         "gRPC port of cluster0; its HTTP port is 255 higher, the next cluster's ports 1000. "
         "Default 7833."),

    TEXT("count", "count", NULL, "N", count, "How many to show at most. Default 20."),
    GLOBAL("address", "ad", "HOST:PORT", address, "The server.", "127.0.0.1:7833",
           "CADENCE_CLI_ADDRESS"),
    GLOBAL("context_timeout", "ct", "SECONDS", timeout, "How long to wait for the server.", NULL,
           "CADENCE_CONTEXT_TIMEOUT"),
    GLOBAL("tls_cert_path", "tcp", "FILE", tls_authority,
           "Use TLS, and trust the server certificates that this certificate signs.", NULL,
           "CADENCE_CLI_TLS_CERT_PATH"),
    GLOBAL("transport", "t", "NAME", transport, "Only grpc is supported.", "grpc",
           "CADENCE_CLI_TRANSPORT_PROTOCOL"),
    GLOBAL("jwt", NULL, "TOKEN", token, "The token that says who you are.", NULL,
           "CADENCE_CLI_JWT"),
    GLOBAL("jwt-private-key", "jwt-pk", "FILE", token_key,
           "A private key from which to make an administrator's token.", NULL,
           "CADENCE_CLI_JWT_PRIVATE_KEY"),
    GLOBAL("format", NULL, "FORMAT", format, "table or json.", "table", NULL),
    SWITCH("print_json", "pjson", prints_json, "The same as --format json."),
    {0},
};

/* ---- by key ---- */

bool
cli_has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t found = strcspn(at, " ");
        if (found == length && strncmp(at, word, length) == 0)
            return true;
        at += found;
    }
    return false;
}

const struct cli_flag *
cli_flag_at(size_t row)
{
    size_t first = array_length(cli_flags) - 1; /* without the row that ends it */
    const struct cli_flag *flag = row < first ? &cli_flags[row] : &cli_more_flags[row - first];
    check(row < CLI_FLAGS_MAX);
    return flag->key == NULL ? NULL : flag;
}

static size_t
find_row(const char *key)
{
    for (size_t row = 0;; row++) {
        const struct cli_flag *flag = cli_flag_at(row);
        check_that(flag != NULL, "no such flag: %s", key);
        if (strcmp(flag->key, key) == 0)
            return row;
    }
}

/* Where the value of a flag goes. */
static void *
place_of(size_t row, struct cli_call *call)
{
    const struct cli_flag *flag = cli_flag_at(row);
    check(flag->offset < sizeof *call);
    if (flag->offset != 0)
        return (char *)call + flag->offset;
    if (flag->is_list)
        return &call->lists[row];
    return flag->argument == NULL ? (void *)&call->is_on[row] : (void *)&call->given[row];
}

const char *
cli_text(const struct cli_call *call, const char *key)
{
    size_t row = find_row(key);
    const struct cli_flag *flag = cli_flag_at(row);
    const char *given = *(const char *const *)place_of(row, (struct cli_call *)call);
    check(flag->argument != NULL && !flag->is_list);
    return given != NULL ? given : flag->otherwise;
}

bool
cli_is_on(const struct cli_call *call, const char *key)
{
    size_t row = find_row(key);
    check(cli_flag_at(row)->argument == NULL);
    return *(const bool *)place_of(row, (struct cli_call *)call);
}

bool
cli_flag_is_switch(const char *key)
{
    return cli_flag_at(find_row(key))->argument == NULL;
}

const char *
cli_flag_name(const char *key)
{
    return cli_flag_at(find_row(key))->name;
}

const struct flag_list *
cli_list(const struct cli_call *call, const char *key)
{
    size_t row = find_row(key);
    check(cli_flag_at(row)->is_list);
    return place_of(row, (struct cli_call *)call);
}

struct error *
cli_number(struct cli_call *call, const char *key, int64_t low, int64_t high, int64_t otherwise,
           int64_t *number)
{
    const char *text = cli_text(call, key);
    *number = otherwise;
    if (text == NULL || text_parse_int64(slice_text(text), low, high, number))
        return NULL;
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                     "--%s: '%s' is not a number from %lld to %lld",
                                     cli_flag_at(find_row(key))->name, text, (long long)low,
                                     (long long)high));
}

struct error *
cli_need(struct cli_call *call, const char *key, const char **value)
{
    const struct cli_flag *flag = cli_flag_at(find_row(key));
    *value = cli_text(call, key);
    if (*value != NULL && (*value)[0] != '\0')
        return NULL;
    const char *variable =
        flag->environment == NULL ? "" : arena_format(call->arena, " or set %s", flag->environment);
    return cli_wrong(call,
                     error_new(call->arena, ERR_BAD_REQUEST, "--%s is missing: give --%s %s%s",
                               flag->name, flag->name, flag->argument, variable));
}

struct error *
cli_need_domain(struct cli_call *call, const char **domain)
{
    return cli_need(call, "domain", domain);
}

/* ---- for reading a command line ---- */

static const char *
add_field_keys(const char *keys, const char *fields, struct arena *arena)
{
    for (const char *at = fields; *at != '\0'; at += strspn(at, " ")) {
        const char *key = at + strcspn(at, "=") + 1;
        size_t length = strcspn(key, " !");
        if (!cli_has_word(keys, key, length))
            keys = arena_format(arena, "%s %.*s", keys, (int)length, key);
        at += strcspn(at, " ");
    }
    return keys;
}

const char *
cli_command_keys(const struct cli_command *command, struct arena *arena)
{
    const char *keys = command->positional != NULL ? command->positional : "";
    if (command->rpc != NULL)
        keys = add_field_keys(keys, command->rpc->fields, arena);
    return command->flags == NULL ? keys : arena_format(arena, "%s %s", keys, command->flags);
}

/* What --help says: the meaning, then what counts when the flag is not given. */
static const char *
describe(const struct cli_flag *flag, struct arena *arena)
{
    const char *text = flag->help;
    if (flag->environment != NULL)
        text = arena_format(arena, "%s Else $%s.", text, flag->environment);
    if (flag->otherwise != NULL)
        text = arena_format(arena, "%s Default %s.", text, flag->otherwise);
    return text;
}

static struct flag
make_flag(size_t row, struct cli_call *call, struct arena *arena)
{
    const struct cli_flag *from = cli_flag_at(row);
    void *place = place_of(row, call);
    bool is_switch = from->argument == NULL;
    check(!(is_switch && from->is_list));
    return (struct flag){
        .name = from->name,
        .aliases = from->aliases,
        .argument = from->argument,
        .help = describe(from, arena),
        .text = is_switch || from->is_list ? NULL : place,
        .is_set = is_switch ? place : NULL,
        .list = from->is_list ? place : NULL,
    };
}

const struct flag *
cli_flags_table(const char *keys, struct cli_call *call, struct arena *arena)
{
    struct flag *flags = arena_zalloc(arena, CLI_FLAGS_MAX + 1, sizeof *flags);
    size_t count = 0;
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const char *key = cli_flag_at(row)->key;
        if (keys == NULL || cli_has_word(keys, key, strlen(key)))
            flags[count++] = make_flag(row, call, arena);
    }
    check(count <= CLI_FLAGS_MAX);
    return flags;
}

void
cli_give(struct cli_call *call, const char *key, const char *value)
{
    check(!cli_flag_is_switch(key) && !cli_flag_at(find_row(key))->is_list);
    *(const char **)place_of(find_row(key), call) = value;
}

void
cli_flags_from_environment(struct cli_call *call)
{
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const struct cli_flag *flag = cli_flag_at(row);
        const char *value = flag->environment == NULL ? NULL : getenv(flag->environment);
        check(value == NULL || (flag->argument != NULL && !flag->is_list));
        if (value != NULL && value[0] != '\0')
            *(const char **)place_of(row, call) = value;
    }
}
