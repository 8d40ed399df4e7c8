/* cli.c - finds the command that the words name, reads its flags, runs it in a fiber. See cli.h.
 *
 * As in the cadence command line, flags may come before the words, too: `cadenza --domain d domain
 * describe`. They are read as if they came after. */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/inside.h"
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
cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(STDERR_FILENO, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "\n");
}

void
cli_print_json(struct json_t *json)
{
    json_dumpfd(json, STDOUT_FILENO, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
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

/* --- words ---------------------------------------------------------------------------------------
 */

/* Is `given` this word, or short for it? */
static bool
is_word(const char *given, const char *word, size_t length, const char *aliases)
{
    return (strlen(given) == length && strncmp(given, word, length) == 0) ||
           cli_has_word(aliases, given, strlen(given));
}

/* Short forms of the first `length` characters of `words`: those of the group that ends there. */
static const char *
group_aliases(const char *words, size_t length)
{
    for (const struct cli_group_words *group = cli_group_words; group->words != NULL; group++) {
        if (strlen(group->words) == length && strncmp(group->words, words, length) == 0)
            return group->aliases;
    }
    return NULL;
}

/* How many of the arguments are the first words of this command or group; *is_whole: all of its
 * words. */
static int
match(const char *words, const char *aliases, int count, char **arguments, bool *is_whole)
{
    const char *rest = words;
    int used = 0;
    for (*is_whole = false; *rest != '\0'; used++) {
        size_t length = strcspn(rest, " ");
        bool is_last = rest[length] == '\0';
        const char *shorter =
            is_last ? aliases : group_aliases(words, (size_t)(rest - words) + length);
        if (used == count || !is_word(arguments[used], rest, length, shorter))
            return used;
        rest += length + !is_last;
    }
    *is_whole = true;
    return used;
}

/* The group that the most of the arguments name; NULL: none. */
static const struct cli_group_words *
find_group(int count, char **arguments, int *used)
{
    const struct cli_group_words *best = NULL;
    *used = 0;
    for (const struct cli_group_words *group = cli_group_words; group->words != NULL; group++) {
        bool is_whole;
        int matched = match(group->words, group->aliases, count, arguments, &is_whole);
        if (is_whole && matched > *used) {
            *used = matched;
            best = group;
        }
    }
    return best;
}

/* The word nearest to `given` that may follow `before` (""; or "workflow"); NULL: none is
 * near. */
static const char *
suggest(const char *before, const char *given, struct arena *arena)
{
    size_t best = 4,
           skip = strlen(before) + (before[0] != '\0'); /* a greater distance would be a guess */
    const char *nearest = NULL;
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        const char *words = cli_command_at(i)->words;
        if (strncmp(words, before, strlen(before)) != 0 || strlen(words) < skip)
            continue;
        struct slice word = slice_of(words + skip, strcspn(words + skip, " "));
        size_t distance = text_distance(word, slice_text(given));
        if (distance >= best)
            continue;
        best = distance;
        nearest = arena_text_of(arena, word);
    }
    return nearest;
}

/* Is one of the flags, which may be anywhere, --help? */
static bool
asks_for_help(int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0 ||
            strcmp(arguments[i], "help") == 0)
            return true;
    }
    return false;
}

/* The words name no command: lists those that exist and suggests one. If --help was given on the
 * first words of several commands, that list is the answer. */
static int
explain_words(int count, char **arguments, struct arena *arena)
{
    int used = 0;
    const struct cli_group_words *group = find_group(count, arguments, &used);
    if (group != NULL && asks_for_help(count - used, arguments + used)) {
        cli_print("%s", cli_help_group(group, arena));
        return 0;
    }
    const char *before = group == NULL ? "" : group->words;
    bool has_word = used < count && arguments[used][0] != '-';
    const char *near = has_word ? suggest(before, arguments[used], arena) : NULL;
    const char *at = arena_format(arena, "cadenza%s%s", before[0] == '\0' ? "" : " ", before);
    if (near != NULL)
        dprintf(STDERR_FILENO, "cadenza: '%s' is not a command; did you mean %s %s?\n",
                arguments[used], at, near);
    else if (has_word)
        dprintf(STDERR_FILENO, "cadenza: '%s' is not a command; %s --help lists them\n",
                arguments[used], at);
    else
        dprintf(STDERR_FILENO, "%s: which one?\n\n%s", at,
                group == NULL ? cli_help_overview(arena) : cli_help_group(group, arena));
    return 2;
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
        return error_new(arena, ERR_BAD_REQUEST, "no command given; cadenza --help lists them");
    *leading = at;
    return NULL;
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
                         "--transport: '%s' is not supported; leave it out or give grpc",
                         call->transport);
    return NULL;
}

/* --- running -------------------------------------------------------------------------------------
 */

struct cli_run {
    const struct cli_command *command;
    struct cli_call *call;
};

static void
run_in_fiber(void *argument)
{
    struct cli_run *run = argument;
    struct error *err =
        run->command->run != NULL ? run->command->run(run->call) : cli_run_rpc(run->call);
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
        .flags = cli_flags_table(cli_command_keys(command, call->arena), call, call->arena),
        .words_min = command->positional != NULL ? command->word_min : command->word_count,
        .words_max = command->word_count,
    };
}

/* Arguments are values of the flags in `positional`, in their order. */
static void
take_positional(struct cli_call *call, const char *const *words)
{
    const char *at = call->command->positional;
    for (size_t i = 0; at != NULL && words[i] != NULL; i++) {
        size_t length = strcspn(at, " ");
        cli_give(call, arena_text_of(call->arena, slice_of(at, length)), words[i]);
        at += length + (at[length] == ' ');
    }
}

/* Colours and lines that move are for people at a terminal, if they want them. */
static bool
is_for_people(void)
{
    const char *plain = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (plain == NULL || plain[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

static int
run_command(const struct cli_command *command, int count, char **arguments, struct arena *arena)
{
    const char *words[WORDS_MAX + 1] = {0};
    struct cli_call call = {
        .command = command,
        .words = words,
        .address = ADDRESS_DEFAULT,
        .format = "table",
        .transport = "grpc",
        .is_terminal = is_for_people(),
        .arena = arena,
    };
    if (command->why_not != NULL && !asks_for_help(count, arguments)) {
        dprintf(STDERR_FILENO, "cadenza %s: %s\n", command->words, command->why_not);
        return 2;
    }
    cli_flags_from_environment(&call);
    const struct command_line line = make_line(command, &call);
    check(command->word_count <= WORDS_MAX);
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
    take_positional(&call, words);
    struct cli_run run = {command, &call};
    linux_run(&(struct linux_options){.loops = 1, .catch_signals = command->catches_signals},
              run_in_fiber, &run);
    return call.exit_code;
}

/* Arguments are `leading` flags, words, and more: finds the command and gives it both sets. */
static int
run_words(int leading, int count, char **arguments, struct arena *arena)
{
    for (size_t at = 0; cli_command_at(at) != NULL; at++) {
        const struct cli_command *command = cli_command_at(at);
        bool is_whole;
        int used = match(command->words, command->aliases, count - leading, arguments + leading,
                         &is_whole);
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
    bool is_admin_domain = count - leading > 1 && is_word(arguments[leading], "admin", 5, "adm") &&
                           is_word(arguments[leading + 1], "domain", 6, "d");
    if (!is_admin_domain || (count - leading > 2 && arguments[leading + 2][0] == '-'))
        return explain_words(count - leading, arguments + leading, arena);
    /* the cadence command line has the domain commands there, too */
    char **rest = arena_zalloc(arena, (size_t)count, sizeof *rest);
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (i != leading)
            rest[left++] = arguments[i];
    }
    return run_words(leading, left, rest, arena);
}

int
cli_run(int count, char **arguments)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    bool wants_overview = count == 0 || strcmp(arguments[0], "help") == 0 ||
                          strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0;
    if (wants_overview) {
        cli_print("%s", cli_help_overview(arena));
        return 0;
    }
    if (strcmp(arguments[0], "version") == 0 || strcmp(arguments[0], "--version") == 0) {
        cli_print("cadenza %s\n", CADENZA_VERSION);
        return 0;
    }
    int leading = 0;
    struct error *err = count_leading(count, arguments, arena, &leading);
    if (err == NULL)
        return run_words(leading, count, arguments, arena);
    dprintf(STDERR_FILENO, "cadenza: %s\n", err->message);
    return 2;
}
