/* cli.c - finds the command that the words name, reads its flags, runs it in a fiber. See cli.h.
 *
 * As in the cadence command line, flags may stand before the words too: `cadenza --domain d domain
 * describe`. They are read as if they stood behind. */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/inside.h"
#include "fiber/linux/linux.h"

#define ADDRESS_DEFAULT "127.0.0.1:7833"
#define WORDS_MAX       4

void
cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(STDOUT_FILENO, format, arguments);
    va_end(arguments);
}

void
cli_print_json(struct json_t *json)
{
    json_dumpfd(json, STDOUT_FILENO, JSON_INDENT(2));
    cli_print("\n");
    json_decref(json);
}

struct error *
cli_wrong(struct cli_call *call, struct error *err)
{
    if (err != NULL)
        call->exit_code = 2;
    return err;
}

static const char overview[] =
    "cadenza - a workflow engine that speaks Cadence's gRPC API, in one binary.\n"
    "\n"
    "Usage: cadenza COMMAND [flags]\n"
    "\n"
    "  server                        run a server with its store inside\n"
    "  group                         run a whole group of clusters here, for trying things out\n"
    "  health                        ask a running server whether it is well\n"
    "  domain register               make a new domain\n"
    "  domain update                 change the settings of a domain\n"
    "  domain describe               show a domain\n"
    "  domain list                   show the domains there are\n"
    "  domain failover               make another cluster active for a domain\n"
    "  domain list-failover-history  show who was active when\n"
    "  domain deprecate              let no new workflows start in a domain\n"
    "  domain delete                 delete a deprecated domain\n"
    "  admin store info              show what a data folder holds\n"
    "  admin store check             read all of a data folder and look for damage\n"
    "  admin backup DIR              copy the store of a running server\n"
    "  admin restore BACKUP          make a data folder from a backup\n"
    "  version                       show the version\n"
    "\n"
    "cadenza COMMAND --help tells more. The cadence CLI works too: --transport grpc --address "
    "127.0.0.1:7833.\n";

/* --- words ---------------------------------------------------------------------------------------
 */

/* Short words, those of the cadence command line. */
static const struct {
    const char *given, *meant;
} short_words[] = {
    {"d", "domain"},   {"adm", "admin"},     {"re", "register"}, {"up", "update"},
    {"u", "update"},   {"desc", "describe"}, {"fo", "failover"}, {"lfh", "list-failover-history"},
    {"del", "delete"}, {"dep", "deprecate"}, {"l", "list"},
};

static bool
is_word(const char *given, const char *word, size_t length)
{
    for (size_t i = 0; i < array_length(short_words); i++) {
        if (strcmp(short_words[i].given, given) == 0)
            given = short_words[i].meant;
    }
    return strlen(given) == length && strncmp(given, word, length) == 0;
}

/* How many of the arguments are the first words of this command; *is_whole: all of its words. */
static int
match(const struct cli_command *command, int count, char **arguments, bool *is_whole)
{
    const char *rest = command->words;
    int used = 0;
    for (*is_whole = false; *rest != '\0'; used++) {
        size_t length = strcspn(rest, " ");
        if (used == count || !is_word(arguments[used], rest, length))
            return used;
        rest += length + (rest[length] == ' ');
    }
    *is_whole = true;
    return used;
}

/* The commands that begin with the same word, one per line. */
static const char *
list_beginning(const char *first, struct arena *arena)
{
    const char *text = "";
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        bool is_whole;
        if (match(command, 1, (char *[]){(char *)first}, &is_whole) > 0)
            text = arena_format(arena, "%s  cadenza %-30s %.*s\n", text, command->words,
                                (int)strcspn(command->summary, ".\n"), command->summary);
    }
    return text;
}

/* The words name no command: says which there are. Asked for help on the first words of several,
 * that is an answer. */
static int
explain_words(int count, char **arguments, struct arena *arena)
{
    const char *commands = list_beginning(arguments[0], arena);
    bool wants_help =
        count == 2 && (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0 ||
                       strcmp(arguments[1], "help") == 0);
    if (*commands == '\0')
        dprintf(STDERR_FILENO, "cadenza: '%s' is not a command; cadenza --help lists them\n",
                arguments[0]);
    else if (wants_help)
        cli_print("%s\ncadenza COMMAND --help tells more.\n", commands);
    else
        dprintf(STDERR_FILENO, "cadenza %s: which one?\n%s", arguments[0], commands);
    return wants_help && *commands != '\0' ? 0 : 2;
}

/* --- flags ---------------------------------------------------------------------------------------
 */

/* How many arguments before the first word are flags and their values. */
static struct error *
count_leading(int count, char **arguments, struct arena *arena, int *leading)
{
    struct cli_call unused = {0};
    const struct flag *flags = cli_flags_table(NULL, &unused, arena);
    int at = 0;
    while (at < count && arguments[at][0] == '-') {
        const char *value;
        struct slice name = flag_name(arguments[at], &value);
        const struct flag *flag = flag_find(flags, name);
        if (flag == NULL)
            return flag_unknown(flags, name, "cadenza", arena);
        at += flag->argument != NULL && value == NULL ? 2 : 1;
    }
    if (at >= count)
        return error_new(arena, ERR_BAD_REQUEST, "no command is named; cadenza --help lists them");
    *leading = at;
    return NULL;
}

static const char *
environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static struct error *
check_general_flags(struct cli_call *call)
{
    call->as_json = call->prints_json || strcmp(call->format, "json") == 0;
    if (strcmp(call->format, "json") != 0 && strcmp(call->format, "table") != 0)
        return error_new(call->arena, ERR_BAD_REQUEST, "--format: '%s' is neither table nor json",
                         call->format);
    if (strcmp(call->transport, "grpc") != 0)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "--transport: '%s' is not spoken here; leave it out or say grpc",
                         call->transport);
    return NULL;
}

/* --- running -------------------------------------------------------------------------------------
 */

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
    if (run->call->exit_code == 0)
        run->call->exit_code = 1;
}

static struct command_line
make_line(const struct cli_command *command, struct cli_call *call)
{
    const char *arguments = command->arguments != NULL ? command->arguments : "";
    return (struct command_line){
        .usage = arena_format(call->arena, "cadenza %s%s%s [flags]", command->words,
                              arguments[0] != '\0' ? " " : "", arguments),
        .summary = command->summary,
        .examples = command->examples,
        .flags = cli_flags_table(command->flags, call, call->arena),
        .words_min = command->word_count,
        .words_max = command->word_count,
    };
}

static int
run_command(const struct cli_command *command, int count, char **arguments, struct arena *arena)
{
    const char *words[WORDS_MAX] = {0};
    struct cli_call call = {
        .words = words,
        .address = environment("CADENCE_CLI_ADDRESS", ADDRESS_DEFAULT),
        .timeout = environment("CADENCE_CONTEXT_TIMEOUT", NULL),
        .tls_authority = environment("CADENCE_CLI_TLS_CERT_PATH", NULL),
        .domain.name = environment("CADENCE_CLI_DOMAIN", NULL),
        .format = "table",
        .transport = "grpc",
        .arena = arena,
    };
    const struct command_line line = make_line(command, &call);
    check(command->word_count <= array_length(words));
    bool wants_help = false;
    struct error *err = command_line_read(&line, count, arguments, words, &wants_help, arena);
    if (err == NULL)
        err = check_general_flags(&call);
    if (err != NULL) {
        dprintf(STDERR_FILENO, "cadenza %s: %s\n", command->words, err->message);
        return 2;
    }
    if (wants_help) {
        cli_print("%s", command_line_help(&line, arena));
        return 0;
    }
    struct run run = {command, &call};
    linux_run(&(struct linux_options){.loops = 1, .catch_signals = command->catches_signals},
              run_in_fiber, &run);
    return call.exit_code;
}

/* Arguments are `leading` flags, words, and more: finds the command and gives it both sets. */
static int
run_words(int leading, int count, char **arguments, struct arena *arena)
{
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        bool is_whole;
        int used = match(command, count - leading, arguments + leading, &is_whole);
        if (!is_whole)
            continue;
        char **rest = arena_zalloc(arena, (size_t)count, sizeof *rest);
        int left = 0;
        for (int i = 0; i < count; i++) {
            if (i < leading || i >= leading + used)
                rest[left++] = arguments[i];
        }
        return run_command(command, left, rest, arena);
    }
    return explain_words(count - leading, arguments + leading, arena);
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
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int leading = 0;
    struct error *err = count_leading(count, arguments, arena, &leading);
    if (err == NULL)
        return run_words(leading, count, arguments, arena);
    dprintf(STDERR_FILENO, "cadenza: %s\n", err->message);
    return 2;
}
