/* cli.c - finds the command that the words name, reads its flags, runs it in a fiber. See cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/inside.h"
#include "fiber/linux/linux.h"

#define ADDRESS_DEFAULT "127.0.0.1:7833"
#define DATA_DEFAULT    "./data"

void
cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(STDOUT_FILENO, format, arguments);
    va_end(arguments);
}

static const char overview[] =
    "cadenza - a workflow engine that speaks Cadence's gRPC API, in one binary.\n"
    "\n"
    "Usage: cadenza COMMAND [flags]\n"
    "\n"
    "  server                 run a server with its store inside\n"
    "  health                 ask a running server whether it is well\n"
    "  admin store info       show what a data folder holds\n"
    "  admin store check      read all of a data folder and look for damage\n"
    "  admin backup DIR       copy the store of a running server\n"
    "  admin restore BACKUP   make a data folder from a backup\n"
    "  version                show the version\n"
    "\n"
    "cadenza COMMAND --help tells more. The cadence CLI works too: --transport grpc --address "
    "127.0.0.1:7833.\n";

/* How many of the arguments are the words of this command; 0: it is not this one. */
static int
match(const struct cli_command *command, int count, char **arguments)
{
    const char *rest = command->words;
    int used = 0;
    while (*rest != '\0') {
        size_t length = strcspn(rest, " ");
        if (used == count || strlen(arguments[used]) != length ||
            strncmp(rest, arguments[used], length) != 0)
            return 0;
        used++;
        rest += length + (rest[length] == ' ');
    }
    return used;
}

struct run {
    const struct cli_command *command;
    struct cli_call *call;
};

static void
run_in_fiber(void *argument)
{
    struct run *run = argument;
    struct error *err = run->command->run(run->call);
    if (err == NULL)
        return;
    dprintf(STDERR_FILENO, "cadenza %s: %s\n", run->command->words, err->message);
    run->call->exit_code = 1;
}

/* The flags that the command takes, of those there are. */
static void
make_flags(const struct cli_command *command, struct cli_call *call, const char **format,
           struct flag flags[4])
{
    size_t count = 0;
    if (command->takes_data)
        flags[count++] = (struct flag){"data", "DIR", "The data folder. Default " DATA_DEFAULT ".",
                                       &call->data, NULL};
    if (command->takes_address)
        flags[count++] =
            (struct flag){"address", "HOST:PORT", "The server. Default " ADDRESS_DEFAULT ".",
                          &call->address, NULL};
    if (command->takes_format)
        flags[count++] =
            (struct flag){"format", "FORMAT", "table or json. Default table.", format, NULL};
    flags[count] = (struct flag){0};
}

static struct error *
read_format(const char *format, struct cli_call *call)
{
    call->as_json = strcmp(format, "json") == 0;
    if (!call->as_json && strcmp(format, "table") != 0)
        return error_new(call->arena, ERR_BAD_REQUEST, "--format: '%s' is neither table nor json",
                         format);
    return NULL;
}

static int
run_command(const struct cli_command *command, int count, char **arguments)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    const char *words[4] = {0}, *format = "table";
    struct cli_call call = {
        .words = words, .data = DATA_DEFAULT, .address = ADDRESS_DEFAULT, .arena = arena};
    struct flag flags[4];
    make_flags(command, &call, &format, flags);
    const struct command_line line = {
        .usage = arena_format(arena, "cadenza %s%s%s [flags]", command->words,
                              command->arguments != NULL ? " " : "",
                              command->arguments != NULL ? command->arguments : ""),
        .summary = command->summary,
        .examples = command->examples,
        .flags = flags,
        .words_min = command->word_count,
        .words_max = command->word_count,
    };
    check(command->word_count <= array_length(words));
    bool wants_help = false;
    struct error *err = command_line_read(&line, count, arguments, words, &wants_help, arena);
    if (err == NULL)
        err = read_format(format, &call);
    if (err != NULL) {
        dprintf(STDERR_FILENO, "cadenza %s: %s\n", command->words, err->message);
        return 2;
    }
    if (wants_help) {
        cli_print("%s", command_line_help(&line, arena));
        return 0;
    }
    struct run run = {command, &call};
    linux_run(&(struct linux_options){.loops = 1}, run_in_fiber, &run);
    return call.exit_code;
}

int
cli_run(int count, char **arguments)
{
    bool wants_overview = count == 0 || strcmp(arguments[0], "help") == 0 ||
                          strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0;
    if (wants_overview) {
        cli_print("%s", overview);
        return 0;
    }
    if (strcmp(arguments[0], "version") == 0 || strcmp(arguments[0], "--version") == 0) {
        cli_print("cadenza %s\n", CADENZA_VERSION);
        return 0;
    }
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        int used = match(command, count, arguments);
        if (used > 0)
            return run_command(command, count - used, arguments + used);
    }
    dprintf(STDERR_FILENO, "cadenza: '%s' is not a command; cadenza --help lists them\n",
            arguments[0]);
    return 2;
}
