/* process.c - `cadenza server`. See process.h.
 *
 * Life: flags → config → log → data folder → dynamic settings → HTTP port (health says 503) →
 * server → ready (health says 200) → a signal, or the store fails → drain → stop. A store that
 * failed cannot be trusted to write: the process says why in one line and ends, and a restart reads
 * what is true. */
#include "server/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/flags.h"
#include "config/config.h"
#include "fiber/clock.h"
#include "fiber/file.h"
#include "fiber/linux/linux.h"
#include "fiber/platform.h"
#include "fiber/sync.h"
#include "net/http.h"
#include "server/server.h"
#include "store/open/open.h"
#include "visibility/open/open.h"

#define CONFIG_BYTES_MAX (4u * 1024 * 1024)
#define LEVEL_KEY_MAX    64
#define STOP_GRACE       (10 * NS_PER_S)
/* How often to check whether the store still works. */
#define STORE_CHECK_INTERVAL (500 * NS_PER_MS)
#define EMBEDDED             "persistence.datastores.embedded."

struct process {
    /* From the command line; NULL: not given. */
    const char *config_file, *dynamic_file, *data, *grpc, *http, *cluster, *log_level, *loops,
        *accept_loss;
    bool skips_time;
    struct arena *arena;
    struct config *config;
    struct log log;
    int log_descriptor;
    const char *log_file; /* NULL: it goes to standard output or standard error */
    bool has_terminal;
    struct metrics *metrics;
    struct dynamic *dynamic;
    struct store *store;
    struct visibility *visibility;
    struct http_server *http_server;
    struct server *server;
    _Atomic(enum server_phase) phase;
    struct fiber *starting; /* starts the server */
    struct fiber *first;    /* waits for a reason to stop */
    bool is_stopping;
    int exit_code;
};

/* --- settings ---- */

static struct error *
set_if_given(struct process *process, const char *path, const char *value)
{
    return value == NULL ? NULL : config_set(process->config, path, value, process->arena);
}

static struct error *
load_config(struct process *process)
{
    struct error *err = NULL;
    if (process->config_file == NULL) {
        process->config = config_default();
    } else {
        struct slice yaml;
        err = file_load(process->config_file, CONFIG_BYTES_MAX, process->arena, &yaml);
        if (err == NULL)
            err = config_parse(yaml, process->config_file, &config_environment_of_process,
                               process->arena, &process->config);
    }
    if (err == NULL)
        err = set_if_given(process, "clusterGroupMetadata.currentClusterName", process->cluster);
    if (err == NULL)
        err = set_if_given(process, EMBEDDED "path", process->data);
    if (err == NULL)
        err = set_if_given(process, "services.frontend.http.listenAddress", process->http);
    if (err == NULL)
        err = set_if_given(process, "dynamicconfig.filebased.filepath", process->dynamic_file);
    if (err == NULL)
        err = set_if_given(process, "log.level", process->log_level);
    return err;
}

static int64_t
log_now(void *context)
{
    return clock_wall();
}

static void
log_sink(void *context, const char *line, size_t length)
{
    struct process *process = context;
    log_sink_fd(&process->log_descriptor, line, length);
}

/* Where lines go: into the file, unless standard output was asked for. */
static struct error *
open_log_output(struct process *process)
{
    const struct config *config = process->config;
    const char *file = config_text(config, "log.outputFile");
    bool is_stdout = config_flag(config, "log.stdout");
    process->log_descriptor = is_stdout ? STDOUT_FILENO : STDERR_FILENO;
    if (file[0] == '\0' || (is_stdout && config_is_given(config, "log.stdout")))
        return NULL;
    process->log_descriptor = log_open_file(file);
    if (process->log_descriptor >= 0) {
        process->log_file = file;
        return NULL;
    }
    return error_new(process->arena, ERR_IO, "log.outputFile: %s: %s", file, strerror(errno));
}

static struct error *
open_log(struct process *process)
{
    const struct config *config = process->config;
    const char *level_key = config_text(config, "log.levelKey");
    if (strlen(level_key) > LEVEL_KEY_MAX)
        return error_new(process->arena, ERR_BAD_REQUEST, "log.levelKey: more than %d bytes",
                         LEVEL_KEY_MAX);
    struct error *err = open_log_output(process);
    if (err != NULL)
        return err;
    process->log = (struct log){
        .level = LOG_INFO,
        .service = "cadenza",
        .is_console = strcmp(config_text(config, "log.encoding"), "console") == 0,
        .level_key = level_key,
        .now = log_now,
        .sink = log_sink,
        .context = process,
    };
    if (!log_level_parse(config_text(config, "log.level"), &process->log.level))
        log_warn(&process->log, "log.level is not known; info is used.",
                 log_text("value", config_text(config, "log.level")));
    config_log_ignored(config, &process->log);
    return NULL;
}

/* After logrotate has moved the file away, lines go into a new one. The number of the descriptor
 * stays: loops may be writing to it. */
static void
reopen_log(struct process *process)
{
    check(process->log_file != NULL && process->log_descriptor >= 0);
    int fresh = log_open_file(process->log_file);
    if (fresh < 0 || dup3(fresh, process->log_descriptor, O_CLOEXEC) < 0)
        log_warn(&process->log, "The log file cannot be opened again; the old one is used.",
                 log_text("file", process->log_file), log_text("error", strerror(errno)));
    else
        log_info(&process->log, "The log file was opened again.",
                 log_text("file", process->log_file));
    if (fresh >= 0)
        close(fresh);
}

static void
close_log(struct process *process)
{
    if (process->log_descriptor > STDERR_FILENO)
        close(process->log_descriptor);
}

/* --- parts of a real process ---- */

static struct error *
open_store(struct process *process)
{
    const struct store_settings settings = {process->config, &process->log, process->metrics};
    return store_open(&store_drivers, STORE_EMBEDDED, &settings, process->arena, &process->store);
}

static struct error *
open_visibility(struct process *process)
{
    const struct visibility_settings settings = {process->config, &process->log, process->metrics};
    return visibility_open(VISIBILITY_EMBEDDED, &settings, process->arena, &process->visibility);
}

static struct error *
open_dynamic(struct process *process)
{
    process->dynamic = dynamic_new(&process->log);
    const char *file = config_text(process->config, "dynamicconfig.filebased.filepath");
    if (file[0] == '\0')
        return NULL;
    return dynamic_follow(process->dynamic, file, dynamic_interval(process->config),
                          process->arena);
}

/* A damaged store goes on serving what can be read, one that lost memory goes on serving what is
 * not global, and a restart would repair neither: the status is for those who restart it, the text
 * is for people. The loop of this port is the one that starts and stops the server. */
static void
answer_health(struct process *process, struct arena *arena, struct http_answer *answer)
{
    bool is_ready = atomic_load(&process->phase) == SERVER_READY;
    const char *damage = is_ready ? store_damage(process->store, arena) : NULL;
    const char *recovery = is_ready ? server_recovery_text(process->server) : NULL;
    answer->status = is_ready ? 200 : 503;
    answer->body = is_ready ? slice_text("ok\n") : slice_text("not ready\n");
    const char *text = damage == NULL ? "" : arena_format(arena, "damaged: %s\n", damage);
    if (recovery != NULL)
        text = arena_format(arena, "%s%s\n", text, recovery);
    if (text[0] != '\0')
        answer->body = slice_text(text);
}

static void
answer_http(void *context, const char *method, const char *path, struct slice body,
            struct arena *arena, struct http_answer *answer)
{
    struct process *process = context;
    *answer = (struct http_answer){
        .status = 404, .content_type = "text/plain", .body = slice_text("not found\n")};
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        answer->status = 405;
        answer->body = slice_text("only GET and HEAD here\n");
    } else if (strcmp(path, "/healthz") == 0) {
        answer_health(process, arena, answer);
    } else if (strcmp(path, "/metrics") == 0) {
        answer->status = 200;
        answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
        answer->body = metrics_render(process->metrics, arena);
    }
}

static struct error *
open_http(struct process *process)
{
    const char *address = config_text(process->config, "services.frontend.http.listenAddress");
    struct http_routes routes = {.answer = answer_http, .context = process};
    return http_server_open(address, &routes, process->arena, &process->http_server);
}

static struct error *
open_server(struct process *process)
{
    struct server_options options = {
        .config = process->config,
        .config_file = process->config_file,
        .dynamic = process->dynamic,
        .store = process->store,
        .visibility = process->visibility,
        .grpc_address = process->grpc,
        .log = &process->log,
        .metrics = process->metrics,
        .phase = &process->phase,
        .has_system_domains = true,
        .skips_time = process->skips_time,
        .accept_loss = process->accept_loss,
    };
    process->starting = fiber_self();
    if (process->is_stopping)
        fiber_cancel(process->starting);
    struct error *err = server_start(&options, process->arena, &process->server);
    process->starting = NULL;
    return err;
}

static struct error *
open_all(struct process *process)
{
    process->metrics = metrics_new();
    struct error *err = open_store(process);
    if (err == NULL)
        err = open_visibility(process);
    if (err == NULL)
        err = open_dynamic(process);
    if (err == NULL)
        err = open_http(process);
    if (err == NULL)
        err = open_server(process);
    return err;
}

static void
close_all(struct process *process)
{
    if (process->server != NULL)
        server_stop(process->server, STOP_GRACE);
    if (process->http_server != NULL)
        http_server_close(process->http_server);
    if (process->dynamic != NULL)
        dynamic_free(process->dynamic);
    if (process->visibility != NULL)
        visibility_close(process->visibility);
    if (process->store != NULL)
        store_close(process->store);
    if (process->metrics != NULL)
        metrics_free(process->metrics);
}

/* --- life ---- */

static void
on_stop(void *context)
{
    struct process *process = context;
    process->is_stopping = true;
    if (process->starting != NULL) /* what it waits for may not come */
        fiber_cancel(process->starting);
    if (process->first != NULL)
        fiber_wake(process->first);
}

/* SIGHUP: from logrotate, or because the terminal was closed. */
static void
on_hangup(void *context)
{
    struct process *process = context;
    if (process->log_file != NULL)
        reopen_log(process);
    else if (process->has_terminal)
        on_stop(process);
    else
        log_info(&process->log, "SIGHUP: the log goes to standard output or standard error, so "
                                "there is no file to reopen.");
}

static void
announce(struct process *process)
{
    const char *grpc = server_grpc_address(process->server),
               *http = http_server_address(process->http_server);
    const char *data = config_text(process->config, EMBEDDED "path");
    log_info(&process->log, "cadenza is ready", log_text("version", CADENZA_VERSION),
             log_text("grpc", grpc), log_text("http", http), log_text("data", data),
             log_text("cluster",
                      config_text(process->config, "clusterGroupMetadata.currentClusterName")));
    if (isatty(STDERR_FILENO))
        dprintf(STDERR_FILENO,
                "\n  cadenza %s\n  gRPC   %s\n  HTTP   http://%s   (/healthz, /metrics)\n"
                "  data   %s\n  Ctrl-C stops it.\n\n",
                CADENZA_VERSION, grpc, http, data);
}

/* Until a signal comes or the store fails. */
static void
wait_for_end(struct process *process)
{
    check(process->server != NULL && process->first == NULL);
    process->first = fiber_self();
    while (!process->is_stopping) {
        const char *failure = store_failure(process->store);
        if (failure != NULL) {
            log_at(&process->log, LOG_FATAL, "The store has failed; the server stops.",
                   log_text("error", failure));
            process->exit_code = 1;
            break;
        }
        if (fiber_wait(clock_monotonic() + STORE_CHECK_INTERVAL) == WAKE_CANCELLED)
            break;
    }
    process->first = NULL;
}

static void
serve(void *argument)
{
    struct process *process = argument;
    platform_on_stop(on_stop, process);
    process->has_terminal = isatty(STDERR_FILENO);
    process->arena = arena_new(0);
    struct error *err = load_config(process);
    if (err == NULL)
        err = open_log(process);
    if (err == NULL) {
        linux_on_hangup(on_hangup, process);
        err = open_all(process);
    }
    if (err == NULL) {
        announce(process);
        wait_for_end(process);
        log_info(&process->log, "cadenza is stopping");
    } else if (process->is_stopping && err->kind == ERR_CANCELLED) {
        log_info(&process->log, "cadenza was told to stop before it was ready", log_error(err));
    } else {
        process->exit_code = 1;
        dprintf(STDERR_FILENO, "cadenza: %s\n", err->message);
    }
    close_all(process);
    if (err == NULL)
        log_info(&process->log, "cadenza has stopped");
    linux_on_hangup(NULL, NULL);
    close_log(process);
    if (process->config != NULL)
        config_free(process->config);
    arena_free(process->arena);
    platform_on_stop(NULL, NULL);
}

static struct error *
read_loops(const char *text, struct arena *arena, unsigned *loops)
{
    uint64_t number = 0;
    if (text != NULL && !text_parse_uint64(slice_text(text), 1, 256, &number))
        return error_new(arena, ERR_BAD_REQUEST, "--loops: '%s' is not a number from 1 to 256",
                         text);
    *loops = (unsigned)number;
    return NULL;
}

static struct error *
check_address(const char *flag, const char *address, struct arena *arena)
{
    const char *fault = address == NULL ? NULL : text_address_fault(address, arena);
    return fault == NULL ? NULL : error_new(arena, ERR_BAD_REQUEST, "%s: %s", flag, fault);
}

int
process_serve(int count, char **arguments)
{
    struct process process = {0};
    const struct flag flags[] = {
        {"data", "DIR", "The data folder; created if it is missing. Default ./data.", &process.data,
         NULL},
        {"grpc", "HOST:PORT", "Address for gRPC. Default 127.0.0.1:7833.", &process.grpc, NULL},
        {"http", "HOST:PORT", "Address for /healthz and /metrics. Default 127.0.0.1:8088.",
         &process.http, NULL},
        {"config", "FILE", "YAML settings with Cadence's section names; see docs/settings.md.",
         &process.config_file, NULL},
        {"dynamic-config", "FILE", "Settings that may change while it runs.", &process.dynamic_file,
         NULL},
        {"cluster", "NAME", "Name of this cluster. Default cluster0.", &process.cluster, NULL},
        {"log-level", "LEVEL", "debug, info, warn or error. Default info.", &process.log_level,
         NULL},
        {"loops", "N",
         "Threads that serve calls and run workflows. Default one per core, less one for the "
         "store.",
         &process.loops, NULL},
        {"accept-loss", "CLUSTERS",
         "After memory was lost (a restored backup, an old folder): do not wait for these clusters "
         "of the group, with commas, or for 'all'; what only they know stays lost.",
         &process.accept_loss, NULL},
        {"skip-time", NULL,
         "When only timers are pending, the clock jumps to the next one: for tests. One loop.",
         NULL, &process.skips_time},
        {0},
    };
    const struct command_line line = {
        .usage = "cadenza server [flags]",
        .summary = "Runs a server with its store inside, in the foreground, until it gets SIGTERM "
                   "or Ctrl-C.\n"
                   "It logs JSON lines to standard output, or to the file of log.outputFile, which "
                   "SIGHUP opens again.",
        .examples =
            "  cadenza server\n"
            "  cadenza server --data /var/lib/cadenza --grpc 0.0.0.0:7833 --config cadenza.yaml\n",
        .flags = flags,
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bool wants_help = false;
    unsigned loops = 0;
    struct error *err = command_line_read(&line, count, arguments, NULL, &wants_help, arena);
    if (err == NULL)
        err = read_loops(process.loops, arena, &loops);
    if (err == NULL)
        err = check_address("--grpc", process.grpc, arena);
    if (err == NULL)
        err = check_address("--http", process.http, arena);
    if (err != NULL) {
        dprintf(STDERR_FILENO, "cadenza server: %s\n", err->message);
        return 2;
    }
    if (wants_help) {
        dprintf(STDOUT_FILENO, "%s", command_line_help(&line, arena));
        return 0;
    }
    loops = process.skips_time ? 1 : loops;
    linux_run(&(struct linux_options){.loops = loops, .catch_signals = true}, serve, &process);
    return process.exit_code;
}
