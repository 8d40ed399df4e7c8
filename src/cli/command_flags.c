/* command_flags.c - every flag of every command but `server`, once. Names and short names are those
 * of the cadence command line where it has such a flag. */
#include <string.h>

#include "base/check.h"
#include "cli/inside.h"

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

const struct cli_flag cli_flags[] = {
    TEXT("data", "data", NULL, "DIR", data, "The data folder. Default ./data."),
    DOMAIN("domain", "do", "NAME", name, "The domain; else $CADENCE_CLI_DOMAIN."),
    DOMAIN("domain_id", NULL, "UUID", id, "The domain by its id, instead of its name."),
    DOMAIN("description", "desc", "TEXT", description, "What it is for."),
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
           "force: at once. grace: when what is under way has been replicated. Default force."),
    DOMAIN("failover_timeout_seconds", "failover_timeout fts", "SECONDS", failover_timeout,
           "How long a graceful failover may take before it is forced. Default 60."),
    DOMAIN("pagesize", "ps page_size", "N", page_size, "How many to ask the server for at a time."),
    DOMAIN("prefix", NULL, "TEXT", prefix, "Only names that begin so."),
    SWITCH("all", "a", domain.wants_all, "Deprecated and deleted domains too."),
    TEXT("all_failovers", "all", "a", NULL, domain.wants_all, "All; else the newest 10."),
    SWITCH("deprecated", "dep", domain.wants_deprecated, "Only deprecated domains."),
    SWITCH("print_full", "pf", domain.wants_full, "More columns."),
    SWITCH("force", NULL, domain.is_forced,
           "Taken for the sake of scripts; a domain is deprecated at once in any case."),
    SWITCH("yes", "y", domain.is_confirmed, "Do not ask."),

    TEXT("group_clusters", "clusters", "cl", "N", group_clusters,
         "How many clusters, 1 to 9. Default 3."),
    TEXT("group_data", "data", NULL, "DIR", data,
         "Where the clusters keep their data and logs. Default ./data-group."),
    TEXT("base_port", "base-port", NULL, "PORT", base_port,
         "gRPC port of cluster0; its HTTP port is 255 higher, the next cluster's ports 1000. "
         "Default 7833."),

    TEXT("dlq_type", "dlq_type", "dt", "TYPE", dlq.type,
         "history (what happened to workflows) or domain. Default history."),
    TEXT("source_cluster", "source_cluster", NULL, "CLUSTER", dlq.source,
         "The cluster that sent the messages."),
    TEXT("shard_id", "shard_id", "sid", "N", dlq.shard, "The shard that keeps them."),
    TEXT("last_message_id", "last_message_id", "lm", "N", dlq.last,
         "The last message that is meant. Default: all."),
    TEXT("count", "count", NULL, "N", count, "At most so many. Default 20."),
    TEXT("address", "address", "ad", "HOST:PORT", address,
         "The server; else $CADENCE_CLI_ADDRESS. Default 127.0.0.1:7833."),
    TEXT("context_timeout", "context_timeout", "ct", "SECONDS", timeout,
         "How long to wait for the server; else $CADENCE_CONTEXT_TIMEOUT. Default 5."),
    TEXT("tls_cert_path", "tls_cert_path", "tcp", "FILE", tls_authority,
         "Speak TLS to a server that this certificate vouches for; else "
         "$CADENCE_CLI_TLS_CERT_PATH."),
    TEXT("transport", "transport", "t", "NAME", transport, "grpc is what is spoken here."),
    TEXT("format", "format", NULL, "FORMAT", format, "table or json. Default table."),
    SWITCH("print_json", "pjson", prints_json, "The same as --format json."),
    {0},
};

/* Is `key` one of the words of `keys`? */
static bool
is_named(const char *keys, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = keys; *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && strncmp(at, key, length) == 0)
            return true;
        at += word;
    }
    return false;
}

static struct flag
make_flag(const struct cli_flag *from, struct cli_call *call)
{
    void *place = (char *)call + from->offset;
    bool is_switch = from->argument == NULL;
    check(from->offset < sizeof *call && !(is_switch && from->is_list));
    return (struct flag){
        .name = from->name,
        .aliases = from->aliases,
        .argument = from->argument,
        .help = from->help,
        .text = is_switch || from->is_list ? NULL : place,
        .is_set = is_switch ? place : NULL,
        .list = from->is_list ? place : NULL,
    };
}

const struct flag *
cli_flags_table(const char *keys, struct cli_call *call, struct arena *arena)
{
    struct flag *flags = arena_zalloc(arena, array_length(cli_flags), sizeof *flags);
    size_t count = 0;
    for (const struct cli_flag *flag = cli_flags; flag->key != NULL; flag++) {
        if (keys == NULL || is_named(keys, flag->key))
            flags[count++] = make_flag(flag, call);
    }
    return flags;
}
