/* send.c - a call to another cluster: as it came, or one of this server's own. See send.h.
 *
 * Each loop has a client of its own per cluster, made at first use. Headers of a call go along, but
 * for those of the connection and those that this server sends in its own name; two are added, by
 * which the other cluster knows that the call was sent on, and in which isolation group its caller
 * is. */
#include "api/forward/send.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "net/client.h"
#include "wire/message.h"
#include "wire/services.h"

#define CONNECT_TIMEOUT NS_PER_S
#define KEEPALIVE       NS_PER_S /* how long a call waits for a peer that has vanished */

/* --- clients ---- */

static struct grpc_client *
new_client(const struct api *api, size_t index)
{
    const struct cluster *cluster = &api->options.group->clusters[index];
    struct tls *const *tls = api->options.forward.tls;
    const char *server_name = cluster->tls.server_name;
    bool has_name = server_name != NULL && server_name[0] != '\0';
    const struct call_header headers[] = {
        {slice_text("rpc-caller"), slice_text("cadence-xdc-client")},
        {slice_text("rpc-service"), slice_text("cadence-frontend")},
        {slice_text("rpc-encoding"), slice_text("proto")},
    };
    return grpc_client_new(&(struct grpc_client_options){
        .address = cluster->rpc_address,
        .tls = tls == NULL ? NULL : tls[index],
        .server_name = has_name ? server_name : NULL,
        .connect_timeout = CONNECT_TIMEOUT,
        .keepalive = KEEPALIVE,
        .headers = headers,
        .header_count = array_length(headers),
    });
}

static struct grpc_client *
find_client(struct api *api, const struct cluster *cluster)
{
    const struct cluster_group *group = api->options.group;
    struct api_loop *loop = api_here(api);
    size_t index = (size_t)(cluster - group->clusters);
    check(index < group->count);
    if (loop->peers == NULL)
        loop->peers = memory_zalloc(group->count, sizeof *loop->peers);
    if (loop->peers[index] == NULL)
        loop->peers[index] = new_client(api, index);
    return loop->peers[index];
}

const struct cluster *
forward_find_callable(const struct api *api, const char *name)
{
    const struct cluster *cluster = cluster_group_find(api->options.group, name);
    bool has_address =
        cluster != NULL && cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0';
    return has_address && cluster->is_enabled ? cluster : NULL;
}

void
forward_close_here(struct api *api)
{
    struct api_loop *loop = api_here(api);
    for (size_t i = 0; loop->peers != NULL && i < api->options.group->count; i++)
        if (loop->peers[i] != NULL)
            grpc_client_free(loop->peers[i]);
    memory_free(loop->peers);
    loop->peers = NULL;
}

/* --- calls ---- */

struct error *
api_call_cluster(struct api *api, const char *cluster_name, const char *path,
                 const ProtobufCMessage *request, struct arena *arena,
                 const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    const struct cluster *cluster = forward_find_callable(api, cluster_name);
    if (cluster == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "Cluster %s cannot be called from here.",
                         cluster_name);
    const struct grpc_live_header *const *tokens = api->options.forward.tokens;
    const struct grpc_live_header *token =
        tokens == NULL ? NULL : tokens[cluster - api->options.group->clusters];
    const char *shown = token == NULL ? NULL : token->value(token->context, arena);
    const struct call_header headers[] = {
        {slice_text(HEADER_FORWARDED_BY), slice_text(api->options.group->current->name)},
        {slice_text(shown == NULL ? "" : token->name), slice_text(shown)}};
    struct grpc_request asked = {.path = path,
                                 .message = message_encode(arena, request),
                                 .headers = headers,
                                 .header_count = shown == NULL ? 1 : 2};
    struct slice bytes;
    struct error *err = grpc_client_call(find_client(api, cluster), &asked, arena, &bytes);
    return err != NULL ? err : message_decode_at(arena, ERR_UNCATEGORISED, type, bytes, response);
}

/* Headers of the connection, and those that this server sends in its own name. */
static bool
is_own_header(struct slice name)
{
    static const char *const names[] = {"content-type", "te", "user-agent", "host", "connection"};
    static const char *const prefixes[] = {"grpc-", "rpc-"};
    for (size_t i = 0; i < array_length(names); i++)
        if (slice_equal(name, slice_text(names[i])))
            return true;
    for (size_t i = 0; i < array_length(prefixes); i++) {
        struct slice prefix = slice_text(prefixes[i]);
        if (name.length >= prefix.length && memcmp(name.data, prefix.data, prefix.length) == 0)
            return true;
    }
    return slice_equal(name, slice_text(HEADER_PARTITION)) ||
           slice_equal(name, slice_text(HEADER_FORWARDED_BY));
}

static void
fill_headers(struct rpc_call *call, struct grpc_request *request)
{
    size_t count;
    const struct call_header *given =
        call->arrival.port->headers(call->arrival.carrier, call->arena, &count);
    struct call_header *headers = arena_zalloc(call->arena, count + 2, sizeof *headers);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_own_header(given[i].name))
            headers[kept++] = given[i];
    headers[kept++] = (struct call_header){slice_text(HEADER_FORWARDED_BY),
                                           slice_text(api_of(call)->options.group->current->name)};
    struct slice partition = api_forwarded_partition(call);
    if (partition.length > 0)
        headers[kept++] = (struct call_header){slice_text(HEADER_PARTITION), partition};
    request->headers = headers;
    request->header_count = kept;
}

struct error *
api_call_cluster_as_caller(struct rpc_call *call, const char *cluster_name, const char *path,
                           const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                           ProtobufCMessage **response)
{
    struct api *api = api_of(call);
    const struct cluster *cluster = forward_find_callable(api, cluster_name);
    if (cluster == NULL)
        return error_new(call->arena, ERR_UNAVAILABLE, "Cluster %s cannot be called from here.",
                         cluster_name);
    struct grpc_request asked = {.path = path, .message = message_encode(call->arena, request)};
    fill_headers(call, &asked);
    struct slice bytes;
    struct error *err = grpc_client_call(find_client(api, cluster), &asked, call->arena, &bytes);
    return err != NULL ? err
                       : message_decode_at(call->arena, ERR_UNCATEGORISED, type, bytes, response);
}

static void
count_forwarded(const struct rpc_call *call, const char *domain, const char *cluster)
{
    const struct api_options *options = &api_of(call)->options;
    if (options->metrics == NULL)
        return;
    struct wire_method method = wire_method_at(rpc_index(call));
    const char *labels[] = {"operation",      method.name,      "domain",
                            domain,           "source_cluster", options->group->current->name,
                            "target_cluster", cluster,          NULL};
    counter_add(metrics_counter(options->metrics, "cadence_cluster_forwarding_policy_requests",
                                "Calls that went on to the cluster that is active for them.",
                                labels),
                1);
}

struct error *
forward_send(struct rpc_call *call, struct slice message, const char *domain,
             const char *cluster_name)
{
    struct api *api = api_of(call);
    const struct cluster *cluster = forward_find_callable(api, cluster_name);
    if (cluster == NULL)
        return error_new(call->arena, ERR_UNAVAILABLE,
                         "Domain %s is active in cluster %s, which cannot be called from here.",
                         domain, cluster_name);
    probe("call_forwarded");
    rpc_note_domain(call, domain);
    count_forwarded(call, domain, cluster_name);
    struct grpc_request request = {.path = rpc_method(call)->path, .message = message};
    fill_headers(call, &request);
    struct slice *answer = arena_zalloc(call->arena, 1, sizeof *answer);
    struct error *err = grpc_client_call(find_client(api, cluster), &request, call->arena, answer);
    if (err != NULL && err->kind == ERR_UNAVAILABLE)
        return error_wrap(err, "asking cluster %s, where domain %s is active", cluster_name,
                          domain);
    if (err == NULL) {
        call->pieces = answer;
        call->piece_count = 1;
    }
    return err;
}

struct error *
forward_to(struct rpc_call *call, const char *domain_name, const char *cluster_name)
{
    return forward_send(call, call->arrival.bytes, domain_name, cluster_name);
}
