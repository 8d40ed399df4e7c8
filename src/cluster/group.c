/* group.c - loading the cluster group. See group.h.
 *
 * Loading collects all faults in one text instead of stopping at the first one, so that the author
 * of a config file sees them together. */
#include "cluster/group.h"

#include "base/check.h"
#include "base/text.h"

#define SECTION "clusterGroupMetadata"

struct group_faults {
    struct arena *arena;
    const char *text; /* NULL: none yet */
};

static void group_faults_add(struct group_faults *group_faults, const char *format, ...)
    printf_like(2, 3);

static void
group_faults_add(struct group_faults *group_faults, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *line = arena_vformat(group_faults->arena, format, arguments);
    va_end(arguments);
    group_faults->text = group_faults->text == NULL ? line
                                                    : arena_format(group_faults->arena, "%s\n%s",
                                                                   group_faults->text, line);
}

static const char *
key_of(const char *name, const char *leaf, struct arena *arena)
{
    return arena_format(arena, SECTION ".clusterGroup.%s.%s", name, leaf);
}

static const char *
region_key(const char *name, struct arena *arena)
{
    return arena_format(arena, SECTION ".regions.%s.initialFailoverVersion", name);
}

/* caFile and caFiles together. */
static const char *const *
read_authorities(const struct config *config, const char *name, struct arena *arena)
{
    const char *const *several = config_list(config, key_of(name, "tls.caFiles", arena), arena);
    const char *one = config_text(config, key_of(name, "tls.caFile", arena));
    size_t count = 0;
    while (several[count] != NULL)
        count++;
    const char **all = arena_zalloc(arena, count + 2, sizeof *all);
    memcpy(all, several, count * sizeof *all);
    if (one[0] != '\0')
        all[count] = one;
    return all;
}

static struct cluster_tls
read_tls(const struct config *config, const char *name, struct arena *arena)
{
    return (struct cluster_tls){
        .is_enabled = config_flag(config, key_of(name, "tls.enabled", arena)),
        .certificate_file = config_text(config, key_of(name, "tls.certFile", arena)),
        .key_file = config_text(config, key_of(name, "tls.keyFile", arena)),
        .authority_files = read_authorities(config, name, arena),
        .server_name = config_text(config, key_of(name, "tls.serverName", arena)),
        .verifies_host = config_flag(config, key_of(name, "tls.enableHostVerification", arena)),
    };
}

static const char *
read_signing_key(const struct config *config, const char *name, struct arena *arena)
{
    bool is_enabled = config_flag(config, key_of(name, "authorizationProvider.enable", arena));
    return is_enabled ? config_text(config, key_of(name, "authorizationProvider.privateKey", arena))
                      : "";
}

static void
read_cluster(const struct config *config, const char *name, struct group_faults *group_faults,
             struct cluster *cluster)
{
    struct arena *arena = group_faults->arena;
    *cluster = (struct cluster){
        .name = arena_text(arena, name),
        .is_enabled = config_flag(config, key_of(name, "enabled", arena)),
        .initial_failover_version =
            config_integer(config, key_of(name, "initialFailoverVersion", arena)),
        .new_initial_failover_version =
            config_integer(config, key_of(name, "newInitialFailoverVersion", arena)),
        .rpc_name = config_text(config, key_of(name, "rpcName", arena)),
        .rpc_address = config_text(config, key_of(name, "rpcAddress", arena)),
        .tls = read_tls(config, name, arena),
        .signing_key_file = read_signing_key(config, name, arena),
    };
    const char *fault =
        cluster->rpc_address[0] == '\0' ? NULL : text_address_fault(cluster->rpc_address, arena);
    if (fault != NULL)
        group_faults_add(group_faults, "%s: %s", key_of(name, "rpcAddress", arena), fault);
    const char *region = config_text(config, key_of(name, "region", arena));
    cluster->region = region[0] == '\0' ? NULL : region;
    if (cluster->signing_key_file[0] == '\0' &&
        config_flag(config, key_of(name, "authorizationProvider.enable", arena)))
        group_faults_add(group_faults, "%s is not set; tokens cannot be signed without it",
                         key_of(name, "authorizationProvider.privateKey", arena));
    const char *transport = config_text(config, key_of(name, "rpcTransport", arena));
    if (strcmp(transport, "grpc") != 0 && strcmp(transport, "tchannel") != 0)
        group_faults_add(group_faults, "%s is '%s'; it must be grpc or tchannel",
                         key_of(name, "rpcTransport", arena), transport);
}

/* --- versions: unique over clusters and regions together ---------------------------------------
 */

/* The owner of a remainder: a cluster (it may have two) or a region. */
struct holder {
    const char *owner; /* its name */
    const char *kind;  /* "cluster" or "region" */
    const char *key;   /* that gave it */
    int64_t remainder;
};

static size_t
list_holders(const struct cluster_group *group, struct arena *arena, struct holder *holders)
{
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        holders[count++] = (struct holder){cluster->name, "cluster",
                                           key_of(cluster->name, "initialFailoverVersion", arena),
                                           cluster->initial_failover_version};
        if (cluster->new_initial_failover_version != -1) /* -1: it has no second one */
            holders[count++] = (struct holder){
                cluster->name, "cluster", key_of(cluster->name, "newInitialFailoverVersion", arena),
                cluster->new_initial_failover_version};
    }
    for (size_t i = 0; i < group->region_count; i++)
        holders[count++] = (struct holder){group->regions[i].name, "region",
                                           region_key(group->regions[i].name, arena),
                                           group->regions[i].initial_failover_version};
    return count;
}

static bool
is_same_owner(const struct holder *one, const struct holder *other)
{
    return strcmp(one->owner, other->owner) == 0 && strcmp(one->kind, other->kind) == 0;
}

static void
check_versions(const struct cluster_group *group, struct group_faults *group_faults)
{
    struct holder *holders =
        arena_zalloc(group_faults->arena, 2 * group->count + group->region_count, sizeof *holders);
    size_t count = list_holders(group, group_faults->arena, holders);
    check(count >= group->count + group->region_count);
    for (size_t i = 0; i < count; i++) {
        const struct holder *holder = &holders[i];
        int64_t end = group->failover_version_increment;
        if (holder->remainder < 0 || (end > 0 && holder->remainder >= end))
            group_faults_add(
                group_faults,
                "%s is %lld; it must be at least 0 and less than failoverVersionIncrement (%lld)",
                holder->key, (long long)holder->remainder,
                (long long)group->failover_version_increment);
        for (size_t j = 0; j < i; j++) {
            if (holders[j].remainder == holder->remainder && !is_same_owner(&holders[j], holder))
                group_faults_add(group_faults,
                                 SECTION ": %s %s and %s %s have the same initial failover version "
                                         "(%lld); it must be unique",
                                 holders[j].kind, holders[j].owner, holder->kind, holder->owner,
                                 (long long)holder->remainder);
        }
    }
}

/* --- clusters ------------------------------------------------------------------------------------
 */

static void
check_names(const struct cluster_group *group, const char *current, const char *primary,
            struct group_faults *group_faults)
{
    if (group->current == NULL)
        group_faults_add(group_faults,
                         SECTION ".currentClusterName is '%s', which is not in clusterGroup",
                         current);
    if (group->primary == NULL)
        group_faults_add(group_faults,
                         SECTION ".primaryClusterName is '%s', which is not in clusterGroup",
                         primary);
}

/* What is missing or wrong in the entry of a cluster. */
static void
check_cluster(const struct cluster_group *group, const struct cluster *cluster,
              struct group_faults *group_faults)
{
    struct arena *arena = group_faults->arena;
    bool is_peer = group->current != NULL && cluster->is_enabled && cluster != group->current;
    if (is_peer && cluster->rpc_name[0] == '\0')
        group_faults_add(group_faults, "%s is not set; an enabled cluster needs one",
                         key_of(cluster->name, "rpcName", arena));
    if (is_peer && cluster->rpc_address[0] == '\0')
        group_faults_add(
            group_faults,
            "%s is not set; give host:port of its gRPC door, or set %s to false as long as "
            "it has none",
            key_of(cluster->name, "rpcAddress", arena), key_of(cluster->name, "enabled", arena));
    if (cluster == group->current && !cluster->is_enabled)
        group_faults_add(
            group_faults,
            "%s is false, and " SECTION ".currentClusterName says that this server is that "
            "cluster; a cluster is disabled in the files of the others, never in its own: "
            "set it to true",
            key_of(cluster->name, "enabled", arena));
    if (cluster->region != NULL && cluster_group_find_region(group, cluster->region) == NULL)
        group_faults_add(group_faults,
                         "%s is '%s', which is not under " SECTION ".regions; add it there with an "
                         "initialFailoverVersion of its own, or correct the name",
                         key_of(cluster->name, "region", arena), cluster->region);
}

static void
check_group(const struct config *config, struct cluster_group *group, bool is_alone,
            struct group_faults *group_faults)
{
    const char *current = config_text(config, SECTION ".currentClusterName");
    const char *primary = config_text(config, SECTION ".primaryClusterName");
    group->current = cluster_group_find(group, current);
    group->primary = cluster_group_find(group, primary);
    if (is_alone && !config_is_given(config, SECTION ".primaryClusterName"))
        group->primary = group->current; /* alone under another name: its own primary */
    check_names(group, current, primary, group_faults);
    if (group->failover_version_increment <= 0)
        group_faults_add(group_faults,
                         SECTION ".failoverVersionIncrement is %lld; it must be greater than 0",
                         (long long)group->failover_version_increment);
    for (size_t i = 0; i < group->count; i++)
        check_cluster(group, &group->clusters[i], group_faults);
    check_versions(group, group_faults);
}

static void
read_regions(const struct config *config, struct arena *arena, struct cluster_group *group)
{
    const char *const *names = config_names(config, SECTION ".regions", arena);
    while (names[group->region_count] != NULL)
        group->region_count++;
    struct region *regions = arena_zalloc(arena, group->region_count, sizeof *regions);
    for (size_t i = 0; i < group->region_count; i++)
        regions[i] = (struct region){.name = arena_text(arena, names[i]),
                                     .initial_failover_version =
                                         config_integer(config, region_key(names[i], arena))};
    group->regions = regions;
}

struct error *
cluster_group_load(const struct config *config, struct arena *arena,
                   const struct cluster_group **group)
{
    struct group_faults group_faults = {.arena = arena};
    const char *const *names = config_names(config, SECTION ".clusterGroup", arena);
    const char *alone[] = {config_text(config, SECTION ".currentClusterName"), NULL};
    bool is_alone = names[0] == NULL;
    if (is_alone)
        names = alone;

    size_t count = 0;
    while (names[count] != NULL)
        count++;
    struct cluster *clusters = arena_zalloc(arena, count, sizeof *clusters);
    for (size_t i = 0; i < count; i++)
        read_cluster(config, names[i], &group_faults, &clusters[i]);

    struct cluster_group *loaded = arena_make(arena, struct cluster_group);
    loaded->failover_version_increment =
        config_integer(config, SECTION ".failoverVersionIncrement");
    loaded->clusters = clusters;
    loaded->count = count;
    read_regions(config, arena, loaded);
    check_group(config, loaded, is_alone, &group_faults);
    if (group_faults.text != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", group_faults.text);
    check(loaded->current != NULL && loaded->primary != NULL);
    *group = loaded;
    return NULL;
}
