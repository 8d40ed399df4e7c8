/* group_plan.c - see group.h. */
#include "cli/servers/group.h"

#include "base/check.h"
#include "base/text.h"

#define CLUSTERS_DEFAULT  3
#define BASE_PORT_DEFAULT 7833
#define DATA_DEFAULT      "./data-group"
#define PORT_STEP         1000 /* from one cluster to the next */
#define HTTP_ABOVE_GRPC   255
#define PORT_MAX          65535
#define VERSION_INCREMENT 10 /* more than the clusters there can be */

_Static_assert(VERSION_INCREMENT > GROUP_CLUSTERS_MAX, "every cluster has a version of its own");

static struct error *
read_number(const char *flag, const char *text, int64_t low, int64_t high, struct arena *arena,
            int64_t *number)
{
    if (text == NULL || text_parse_int64(slice_text(text), low, high, number))
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "--%s: '%s' is not a number from %lld to %lld", flag,
                     text, (long long)low, (long long)high);
}

struct error *
group_make_plan(const char *clusters, const char *base_port, const char *data, struct arena *arena,
                struct group_plan *plan)
{
    int64_t count = CLUSTERS_DEFAULT, port = BASE_PORT_DEFAULT;
    struct error *err = read_number("clusters", clusters, 1, GROUP_CLUSTERS_MAX, arena, &count);
    if (err == NULL)
        err = read_number("base-port", base_port, 1,
                          PORT_MAX - HTTP_ABOVE_GRPC - (count - 1) * PORT_STEP, arena, &port);
    *plan = (struct group_plan){
        .count = (unsigned)count,
        .base_port = (int)port,
        .data = data != NULL ? data : DATA_DEFAULT,
    };
    return err;
}

int
group_grpc_port(const struct group_plan *plan, unsigned cluster)
{
    check(cluster < plan->count);
    return plan->base_port + (int)cluster * PORT_STEP;
}

int
group_http_port(const struct group_plan *plan, unsigned cluster)
{
    return group_grpc_port(plan, cluster) + HTTP_ABOVE_GRPC;
}

const char *
group_folder(const struct group_plan *plan, unsigned cluster, struct arena *arena)
{
    return arena_format(arena, "%s/cluster%u", plan->data, cluster);
}

const char *
group_settings(const struct group_plan *plan, unsigned cluster, struct arena *arena)
{
    check(cluster < plan->count);
    const char *text = arena_format(
        arena,
        "# Written by cadenza group at every start; changes here are lost.\n"
        "log:\n"
        "  stdout: true\n"
        "services:\n"
        "  frontend:\n"
        "    rpc:\n"
        "      grpcPort: %d\n"
        "      bindOnLocalHost: true\n"
        "    http:\n"
        "      listenAddress: 127.0.0.1:%d\n"
        "clusterGroupMetadata:\n"
        "  failoverVersionIncrement: %d\n"
        "  primaryClusterName: cluster0\n"
        "  currentClusterName: cluster%u\n"
        "  clusterGroup:\n",
        group_grpc_port(plan, cluster), group_http_port(plan, cluster), VERSION_INCREMENT, cluster);
    for (unsigned i = 0; i < plan->count; i++)
        text = arena_format(arena,
                            "%s    cluster%u:\n"
                            "      enabled: true\n"
                            "      initialFailoverVersion: %u\n"
                            "      rpcName: cadence-frontend\n"
                            "      rpcAddress: 127.0.0.1:%d\n"
                            "      rpcTransport: grpc\n",
                            text, i, i, group_grpc_port(plan, i));
    return text;
}
