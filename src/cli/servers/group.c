/* group.c - `cadenza group`: a server process for each cluster, started, watched, stopped together.
 *
 * Life: plan → ports are free → folders and settings → children → all answer → addresses are
 * printed → a signal, or a child exits → all children are stopped and waited for. */
#include "cli/servers/group.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/base/inside.h"
#include "cli/servers/children.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/platform.h"
#include "fiber/socket.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "wire/names.h"

#define POLL_PAUSE    (20 * NS_PER_MS) /* how often to look after the children */
#define READY_TIMEOUT (60 * NS_PER_S)
#define ASK_TIMEOUT   (1 * NS_PER_S)
#define STOP_TIMEOUT  (20 * NS_PER_S) /* then by force */
#define LOG_TAIL      2000            /* bytes of a log to show when its server ended */

struct server_group {
    struct group_plan plan;
    struct child children[GROUP_CLUSTERS_MAX];
    bool is_stopping;
    struct fiber *waiting; /* to be woken by a signal */
    struct arena *arena;
};

/* --- preparing -----------------------------------------------------------------------------------
 */

static const char *
address_of(int port, struct arena *arena)
{
    return arena_format(arena, "127.0.0.1:%d", port);
}

static struct error *
check_port(struct server_group *server_group, unsigned cluster, const char *flavour, int port)
{
    struct listener *listener = NULL;
    struct error *err =
        listener_open(address_of(port, server_group->arena), server_group->arena, &listener);
    if (err != NULL)
        return error_new(server_group->arena, ERR_BUSY,
                         "the %s port of cluster%u, %d, cannot be used: %s; stop what listens "
                         "there or give --base-port PORT",
                         flavour, cluster, port, err->message);
    listener_close(listener);
    listener_free(listener);
    return NULL;
}

static struct error *
check_ports(struct server_group *server_group)
{
    struct error *err = NULL;
    for (unsigned i = 0; i < server_group->plan.count && err == NULL; i++) {
        err = check_port(server_group, i, "gRPC", group_grpc_port(&server_group->plan, i));
        if (err == NULL)
            err = check_port(server_group, i, "HTTP", group_http_port(&server_group->plan, i));
    }
    return err;
}

/* Domains of a larger group may live in clusters that a smaller one does not have. */
static struct error *
check_size(struct server_group *server_group)
{
    const char *next =
                   group_folder(&server_group->plan, server_group->plan.count, server_group->arena),
               **names;
    struct error *missing = folder_list(next, server_group->arena, &names);
    if (missing != NULL)
        return NULL;
    return error_new(server_group->arena, ERR_BAD_REQUEST,
                     "%s is there: this was a larger group; give --clusters %u or more, or another "
                     "--data DIR",
                     next, server_group->plan.count + 1);
}

static struct error *
start_cluster(struct server_group *server_group, unsigned cluster)
{
    struct arena *arena = server_group->arena;
    const char *folder = group_folder(&server_group->plan, cluster, arena);
    const char *settings = arena_format(arena, "%s/config.yaml", folder);
    struct error *err = folder_create(folder, arena);
    if (err == NULL)
        err = file_save(settings, slice_text(group_settings(&server_group->plan, cluster, arena)),
                        arena);
    if (err != NULL)
        return err;
    const char *arguments[] = {
        "server", "--config", settings, "--data", arena_format(arena, "%s/data", folder), NULL};
    return child_start(arguments, arena_format(arena, "%s/server.log", folder), arena,
                       &server_group->children[cluster]);
}

/* --- watching ------------------------------------------------------------------------------------
 */

static void
on_stop(void *context)
{
    struct server_group *server_group = context;
    server_group->is_stopping = true;
    if (server_group->waiting != NULL)
        fiber_wake(server_group->waiting);
}

/* A short wait that a signal ends. */
static void
wait_a_little(struct server_group *server_group)
{
    server_group->waiting = fiber_self();
    (void)!fiber_wait(clock_monotonic() + POLL_PAUSE);
    server_group->waiting = NULL;
}

/* The last lines of a log, for who has to find out why. */
static const char *
log_tail(struct server_group *server_group, unsigned cluster)
{
    const char *path =
        arena_format(server_group->arena, "%s/server.log",
                     group_folder(&server_group->plan, cluster, server_group->arena));
    struct slice text;
    struct error *err = file_load(path, (size_t)64 * 1024 * 1024, server_group->arena, &text);
    if (err != NULL)
        return "";
    if (text.length > LOG_TAIL)
        text = slice_skip(text, text.length - LOG_TAIL);
    return arena_format(server_group->arena, "; the end of %s:\n%.*s", path, SLICE_ARG(text));
}

/* Has a child exited? */
static struct error *
check_children(struct server_group *server_group)
{
    for (unsigned i = 0; i < server_group->plan.count; i++) {
        if (child_has_ended(&server_group->children[i]) && !server_group->is_stopping)
            return error_new(server_group->arena, ERR_UNAVAILABLE,
                             "cluster%u has ended (%s), so the others are stopped too%s", i,
                             child_end(&server_group->children[i], server_group->arena),
                             log_tail(server_group, i));
    }
    return NULL;
}

static bool
is_ready(struct server_group *server_group, unsigned cluster)
{
    API(HealthRequest) request = API_VALUE(HEALTH_REQUEST__INIT);
    struct rpc_caller caller = {.caller = "cadenza-cli", .caller_type = "cli"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct grpc_client *client = rpc_client_new(
        address_of(group_grpc_port(&server_group->plan, cluster), arena), NULL, &caller);
    ProtobufCMessage *answer = NULL;
    fiber_set_deadline(clock_monotonic() + ASK_TIMEOUT);
    struct error *err =
        rpc_client_call_at(client, "/uber.cadence.api.v1.MetaAPI/Health", &request.base, arena,
                           API_TYPE(health_response), &answer);
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    return err == NULL && ((const API(HealthResponse) *)answer)->ok;
}

static struct error *
wait_until_ready(struct server_group *server_group)
{
    int64_t end = clock_monotonic() + READY_TIMEOUT;
    struct error *err = NULL;
    for (unsigned ready = 0;
         ready < server_group->plan.count && err == NULL && !server_group->is_stopping;) {
        if (is_ready(server_group, ready)) {
            ready++;
            continue;
        }
        wait_a_little(server_group);
        err = check_children(server_group);
        if (err == NULL && clock_monotonic() > end)
            err =
                error_new(server_group->arena, ERR_DEADLINE, "cluster%u is not ready after %d s%s",
                          ready, (int)(READY_TIMEOUT / NS_PER_S), log_tail(server_group, ready));
    }
    return err;
}

static void
announce(const struct server_group *server_group)
{
    const struct group_plan *plan = &server_group->plan;
    cli_print("A group of %u cluster%s is ready.\n\n", plan->count, plan->count == 1 ? "" : "s");
    for (unsigned i = 0; i < plan->count; i++)
        cli_print("  cluster%u   gRPC 127.0.0.1:%-5d   HTTP http://127.0.0.1:%-5d   %s%s\n", i,
                  group_grpc_port(plan, i), group_http_port(plan, i),
                  group_folder(plan, i, server_group->arena), i == 0 ? "   (primary)" : "");
    cli_print(
        "\nTry:\n  cadenza domain register --address 127.0.0.1:%d --domain orders --clusters ",
        plan->base_port);
    for (unsigned i = 0; i < plan->count; i++)
        cli_print("%scluster%u", i > 0 ? "," : "", i);
    cli_print(" --active_cluster cluster0\n");
    unsigned last = plan->count - 1;
    if (last > 0)
        cli_print("  cadenza domain failover --address 127.0.0.1:%d --domain orders "
                  "--active_cluster cluster%u\n",
                  group_grpc_port(plan, last), last);
    cli_print("\nCtrl-C stops all.\n");
}

/* --- the command ---------------------------------------------------------------------------------
 */

static bool
is_any_left(const struct server_group *server_group)
{
    for (unsigned i = 0; i < server_group->plan.count; i++) {
        if (server_group->children[i].pid != 0)
            return true;
    }
    return false;
}

/* Stops every child and waits until all have ended. */
static void
stop_all(struct server_group *server_group)
{
    server_group->is_stopping = true;
    for (unsigned i = 0; i < server_group->plan.count; i++)
        child_stop(&server_group->children[i], false);
    int64_t end = clock_monotonic() + STOP_TIMEOUT;
    for (bool is_forced = false; is_any_left(server_group);) {
        wait_a_little(server_group);
        struct error *none = check_children(server_group);
        check(none == NULL);
        if (clock_monotonic() < end || is_forced)
            continue;
        is_forced = true;
        for (unsigned i = 0; i < server_group->plan.count; i++)
            child_stop(&server_group->children[i], true);
    }
}

static struct error *
run_group(struct server_group *server_group)
{
    struct error *err = NULL;
    for (unsigned i = 0; i < server_group->plan.count && err == NULL; i++)
        err = start_cluster(server_group, i);
    if (err == NULL)
        err = wait_until_ready(server_group);
    if (err == NULL && !server_group->is_stopping)
        announce(server_group);
    while (err == NULL && !server_group->is_stopping) {
        wait_a_little(server_group);
        err = check_children(server_group);
    }
    stop_all(server_group);
    return err;
}

struct error *
cli_group(struct cli_call *call)
{
    struct server_group server_group = {.arena = call->arena};
    struct error *err = group_make_plan(call->group_clusters, call->base_port, call->data,
                                        call->arena, &server_group.plan);
    if (err == NULL)
        err = check_size(&server_group);
    if (err != NULL)
        return cli_wrong(call, err);
    platform_on_stop(on_stop, &server_group);
    err = check_ports(&server_group);
    if (err == NULL)
        err = run_group(&server_group);
    platform_on_stop(NULL, NULL);
    if (err == NULL)
        cli_print("All clusters have stopped.\n");
    return err;
}
