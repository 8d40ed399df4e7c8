/* dev.c - `cadenza dev`: a temporary server with a domain.
 *
 * Life: a new folder → a server process in it → its log says where it listens → the domain is
 * registered → a page for the reader → a signal, or the server exits → it is stopped and
 * the folder removed. A child gets a signal when this process dies, so no server is left running;
 * then the folder stays. */
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/inside.h"
#include "cli/base/request.h"
#include "cli/output/table.h"
#include "cli/servers/children.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/platform.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define POLL_PAUSE      (20 * NS_PER_MS)
#define READY_TIMEOUT   (60 * NS_PER_S)
#define STOP_TIMEOUT    (20 * NS_PER_S) /* then by force */
#define ASK_TIMEOUT     (5 * NS_PER_S)
#define LOG_MAX         (16u * 1024 * 1024)
#define LOG_TAIL        2000  /* bytes of the log to show when the server exited */
#define RETENTION_DAYS  36500 /* time may be skipped: what is closed stays */
#define DESCRIPTORS_MAX 16

struct dev {
    struct cli_call *call;
    const char *folder, *log;
    const char *grpc, *http; /* where it listens; NULL: not known yet */
    struct child server;
    bool is_stopping;
    struct fiber *waiting;
};

static void
on_stop(void *context)
{
    struct dev *dev = context;
    dev->is_stopping = true;
    if (dev->waiting != NULL)
        fiber_wake(dev->waiting);
}

static void
wait_a_little(struct dev *dev)
{
    dev->waiting = fiber_self();
    (void)!fiber_wait(clock_monotonic() + POLL_PAUSE);
    dev->waiting = NULL;
}

/* ---- starting ---- */

static struct error *
make_folder(struct dev *dev)
{
    const char *place = getenv("TMPDIR");
    struct arena *arena = dev->call->arena;
    char *folder = arena_format(arena, "%s/cadenza-dev-XXXXXX", place != NULL ? place : "/tmp");
    if (mkdtemp(folder) == NULL)
        return error_new(arena, ERR_IO,
                         "%s: the folder cannot be created; set TMPDIR to a writable folder",
                         folder);
    dev->folder = folder;
    dev->log = arena_format(arena, "%s/server.log", folder);
    return NULL;
}

/* A clock that jumps by years would outlive the longest retention that servers allow. */
static const char settings[] = "system.maxRetentionDays:\n- value: 36500\n";

static struct error *
start_server(struct dev *dev)
{
    struct cli_call *call = dev->call;
    const char *file = arena_format(call->arena, "%s/dynamic.yaml", dev->folder);
    struct error *err = file_save(file, slice_text(settings), call->arena);
    if (err != NULL)
        return err;
    const char *arguments[] = {
        "server",
        "--dynamic-config",
        file,
        "--data",
        arena_format(call->arena, "%s/data", dev->folder),
        "--grpc",
        cli_text(call, "dev_grpc"),
        "--http",
        cli_text(call, "dev_http"),
        cli_is_on(call, "skip-time") ? "--skip-time" : NULL,
        NULL,
    };
    return child_start(arguments, dev->log, call->arena, &dev->server);
}

/* The line of the log that says that it is ready, and where. */
static void
read_addresses(struct dev *dev)
{
    struct arena *arena = dev->call->arena;
    struct slice bytes;
    size_t count = 0;
    if (file_load(dev->log, LOG_MAX, arena, &bytes) != NULL)
        return;
    const char **lines = words_cut(arena_text_of(arena, bytes), '\n', arena, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *line = json_loads(lines[i], 0, NULL);
        const char *grpc = json_string_value(json_object_get(line, "grpc"));
        const char *http = json_string_value(json_object_get(line, "http"));
        if (grpc != NULL && http != NULL) {
            dev->grpc = arena_text(arena, grpc);
            dev->http = arena_text(arena, http);
        }
        json_decref(line);
    }
}

static struct error *
explain_end(struct dev *dev)
{
    struct arena *arena = dev->call->arena;
    struct slice bytes = {0};
    (void)!file_load(dev->log, LOG_MAX, arena, &bytes);
    if (bytes.length > LOG_TAIL)
        bytes = slice_skip(bytes, bytes.length - LOG_TAIL);
    return error_new(arena, ERR_UNAVAILABLE,
                     "the server exited unexpectedly (%s); the end of its log:\n%.*s",
                     child_end(&dev->server, arena), SLICE_ARG(bytes));
}

static struct error *
wait_until_ready(struct dev *dev)
{
    int64_t end = clock_monotonic() + READY_TIMEOUT;
    while (dev->grpc == NULL && !dev->is_stopping) {
        if (child_has_ended(&dev->server))
            return explain_end(dev);
        if (clock_monotonic() > end)
            return error_new(dev->call->arena, ERR_DEADLINE, "the server does not become ready");
        wait_a_little(dev);
        read_addresses(dev);
    }
    return NULL;
}

static struct error *
register_domain(struct dev *dev)
{
    API(RegisterDomainRequest) *request =
        message_new(dev->call->arena, API_TYPE(register_domain_request));
    ProtobufCMessage *answer = NULL;
    if (dev->is_stopping)
        return NULL;
    request->name = (char *)cli_text(dev->call, "dev_domain");
    request->workflow_execution_retention_period =
        presence_make_duration(dev->call->arena, RETENTION_DAYS * 24LL * 3600);
    dev->call->address = dev->grpc;
    return cli_ask(dev->call, "/uber.cadence.api.v1.DomainAPI/RegisterDomain", &request->base,
                   ASK_TIMEOUT, API_TYPE(register_domain_response), &answer);
}

/* ---- running ---- */

static void
announce(const struct dev *dev)
{
    const char *domain = show_text(cli_text(dev->call, "dev_domain"), dev->call->arena);
    cli_print("A temporary server is ready.\n  gRPC    %s\n  HTTP    http://%s   (/healthz, "
              "/metrics)\n  domain  %s\n  time    %s\n  log     %s\nTry: cadenza workflow list "
              "--address %s --domain %s --open\nCtrl-C stops it and deletes its data.\n",
              dev->grpc, dev->http, domain,
              cli_is_on(dev->call, "skip-time") ? "skipped when only timers are pending"
                                                : "real; --skip-time skips waiting",
              dev->log, dev->grpc, domain);
}

static struct error *
wait_for_end(struct dev *dev)
{
    while (!dev->is_stopping) {
        if (child_has_ended(&dev->server))
            return explain_end(dev);
        wait_a_little(dev);
    }
    return NULL;
}

static void
stop_server(struct dev *dev)
{
    int64_t end = clock_monotonic() + STOP_TIMEOUT;
    child_stop(&dev->server, false);
    while (dev->server.pid != 0 && !child_has_ended(&dev->server)) {
        if (clock_monotonic() > end)
            child_stop(&dev->server, true);
        wait_a_little(dev);
    }
}

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

struct error *
cli_dev(struct cli_call *call)
{
    struct dev dev = {.call = call};
    platform_on_stop(on_stop, &dev);
    struct error *err = make_folder(&dev);
    if (err == NULL)
        err = start_server(&dev);
    if (err == NULL)
        err = wait_until_ready(&dev);
    if (err == NULL)
        err = register_domain(&dev);
    if (err == NULL && !dev.is_stopping) {
        announce(&dev);
        err = wait_for_end(&dev);
    }
    stop_server(&dev);
    platform_on_stop(NULL, NULL);
    if (dev.folder != NULL &&
        nftw(dev.folder, remove_one, DESCRIPTORS_MAX, FTW_DEPTH | FTW_PHYS) != 0)
        cli_note("%s could not be removed.", dev.folder);
    return err;
}
