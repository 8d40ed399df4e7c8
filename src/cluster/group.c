/* group.c - loading the cluster group and the arithmetic of failover versions. See group.h.
 *
 * Loading collects faults in one text instead of stopping at the first: whoever edits a config
 * wants to see all of them. */
#include "cluster/group.h"

#include "base/check.h"

#define SECTION "clusterGroupMetadata"

struct faults {
    struct arena *arena;
    const char *text; /* NULL: none yet */
};

static void faults_add(struct faults *faults, const char *format, ...) printf_like(2, 3);

static void
faults_add(struct faults *faults, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *line = arena_vformat(faults->arena, format, arguments);
    va_end(arguments);
    faults->text =
        faults->text == NULL ? line : arena_format(faults->arena, "%s\n%s", faults->text, line);
}

static const char *
key_of(const char *name, const char *leaf, struct arena *arena)
{
    return arena_format(arena, SECTION ".clusterGroup.%s.%s", name, leaf);
}

static void
read_cluster(const struct config *config, const char *name, struct faults *faults,
             struct cluster *cluster)
{
    struct arena *arena = faults->arena;
    *cluster = (struct cluster){
        .name = arena_text(arena, name),
        .is_enabled = config_flag(config, key_of(name, "enabled", arena)),
        .initial_failover_version =
            config_integer(config, key_of(name, "initialFailoverVersion", arena)),
        .new_initial_failover_version =
            config_integer(config, key_of(name, "newInitialFailoverVersion", arena)),
        .rpc_name = config_text(config, key_of(name, "rpcName", arena)),
        .rpc_address = config_text(config, key_of(name, "rpcAddress", arena)),
    };
    const char *transport = config_text(config, key_of(name, "rpcTransport", arena));
    if (strcmp(transport, "grpc") != 0 && strcmp(transport, "tchannel") != 0)
        faults_add(faults, "%s is '%s'; it must be grpc or tchannel",
                   key_of(name, "rpcTransport", arena), transport);
}

static bool
has_remainder(const struct cluster *cluster, int64_t remainder)
{
    return cluster->initial_failover_version == remainder ||
           cluster->new_initial_failover_version == remainder;
}

static void
check_versions(const struct cluster_group *group, struct faults *faults)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        int64_t initial = cluster->initial_failover_version;
        if (initial < 0 || initial >= group->failover_version_increment)
            faults_add(
                faults,
                "%s is %lld; it must be at least 0 and less than failoverVersionIncrement (%lld)",
                key_of(cluster->name, "initialFailoverVersion", faults->arena), (long long)initial,
                (long long)group->failover_version_increment);
        int64_t second = cluster->new_initial_failover_version;
        if (second < -1 || second >= group->failover_version_increment)
            faults_add(faults, "%s is %lld; it must be less than failoverVersionIncrement (%lld)",
                       key_of(cluster->name, "newInitialFailoverVersion", faults->arena),
                       (long long)second, (long long)group->failover_version_increment);
        for (size_t j = 0; j < i; j++) {
            const struct cluster *other = &group->clusters[j];
            if (has_remainder(other, initial) || (second >= 0 && has_remainder(other, second)))
                faults_add(faults,
                           SECTION
                           ".clusterGroup: %s and %s have the same initial failover version",
                           other->name, cluster->name);
        }
    }
}

static void
check_group(const struct config *config, struct cluster_group *group, struct faults *faults)
{
    const char *current = config_text(config, SECTION ".currentClusterName");
    const char *primary = config_text(config, SECTION ".primaryClusterName");
    group->current = cluster_group_find(group, current);
    group->primary = cluster_group_find(group, primary);
    if (group->failover_version_increment <= 0)
        faults_add(faults, SECTION ".failoverVersionIncrement is %lld; it must be greater than 0",
                   (long long)group->failover_version_increment);
    if (group->current == NULL)
        faults_add(faults, SECTION ".currentClusterName is '%s', which is not in clusterGroup",
                   current);
    if (group->primary == NULL)
        faults_add(faults, SECTION ".primaryClusterName is '%s', which is not in clusterGroup",
                   primary);
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        bool is_peer = cluster->is_enabled && cluster != group->current;
        if (is_peer && cluster->rpc_address[0] == '\0')
            faults_add(faults, "%s is not set; an enabled cluster needs one",
                       key_of(cluster->name, "rpcAddress", faults->arena));
        if (is_peer && cluster->rpc_name[0] == '\0')
            faults_add(faults, "%s is not set; an enabled cluster needs one",
                       key_of(cluster->name, "rpcName", faults->arena));
    }
    check_versions(group, faults);
}

struct error *
cluster_group_load(const struct config *config, struct arena *arena,
                   const struct cluster_group **group)
{
    struct faults faults = {.arena = arena};
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
        read_cluster(config, names[i], &faults, &clusters[i]);

    struct cluster_group *loaded = arena_make(arena, struct cluster_group);
    loaded->failover_version_increment =
        config_integer(config, SECTION ".failoverVersionIncrement");
    loaded->clusters = clusters;
    loaded->count = count;
    check_group(config, loaded, &faults);
    if (is_alone && loaded->primary == NULL &&
        !config_is_given(config, SECTION ".primaryClusterName")) {
        loaded->primary = loaded->current; /* alone under another name: its own primary */
        faults.text = NULL;
    }
    if (faults.text != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s", faults.text);
    check(loaded->current != NULL && loaded->primary != NULL);
    *group = loaded;
    return NULL;
}

const struct cluster *
cluster_group_find(const struct cluster_group *group, const char *name)
{
    for (size_t i = 0; i < group->count; i++) {
        if (strcmp(group->clusters[i].name, name) == 0)
            return &group->clusters[i];
    }
    return NULL;
}

const struct cluster *
cluster_group_of_version(const struct cluster_group *group, int64_t failover_version)
{
    if (failover_version < 0)
        return NULL;
    int64_t remainder = failover_version % group->failover_version_increment;
    for (size_t i = 0; i < group->count; i++) {
        if (has_remainder(&group->clusters[i], remainder))
            return &group->clusters[i];
    }
    return NULL;
}

bool
cluster_group_next_version(const struct cluster_group *group, const struct cluster *cluster,
                           int64_t failover_version, int64_t *next)
{
    check(cluster >= group->clusters && cluster < group->clusters + group->count);
    int64_t increment = group->failover_version_increment;
    int64_t from = failover_version < 0 ? 0 : failover_version;
    int64_t candidate = from - from % increment + cluster->initial_failover_version;
    if (candidate < from && __builtin_add_overflow(candidate, increment, &candidate))
        return false;
    check(candidate % increment == cluster->initial_failover_version);
    *next = candidate;
    return true;
}

bool
cluster_group_is_primary(const struct cluster_group *group)
{
    return group->current == group->primary;
}

bool
cluster_group_has_peers(const struct cluster_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->clusters[i].is_enabled && &group->clusters[i] != group->current)
            return true;
    }
    return false;
}
