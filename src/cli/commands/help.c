/* help.c - what --help says above one command, and docs/cli.md: from the tables of commands. */
#include <string.h>

#include "base/buffer.h"
#include "base/check.h"
#include "cli/base/inside.h"

#define COLUMN 32

/* Does the command begin with these words? */
static bool
begins(const char *words, const char *with)
{
    size_t length = strlen(with);
    return strncmp(words, with, length) == 0 && words[length] == ' ';
}

static size_t
first_sentence(const char *summary)
{
    size_t length = strcspn(summary, ".\n:");
    return length;
}

static const char *
finish(struct buffer *text, struct arena *arena)
{
    const char *kept = arena_text_of(arena, buffer_slice(text));
    buffer_free(text);
    return kept;
}

/* "  workflow start                 Starts a workflow and prints its ids" */
static void
add_line(struct buffer *text, const struct cli_command *command)
{
    buffer_append_format(text, "  %-*s %.*s\n", COLUMN, command->words,
                         (int)first_sentence(command->summary), command->summary);
}

const char *
cli_help_group(const struct cli_group_words *group, struct arena *arena)
{
    struct buffer text = {0};
    buffer_append_format(&text, "Usage: cadenza %s COMMAND [flags]\n\n%s\n\n", group->words,
                         group->summary);
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        if (begins(cli_command_at(i)->words, group->words))
            add_line(&text, cli_command_at(i));
    }
    buffer_append_format(&text, "\nExamples:\n%s\nRun cadenza %s COMMAND --help for details.\n",
                         group->examples, group->words);
    return finish(&text, arena);
}

const char *
cli_help_overview(struct arena *arena)
{
    struct buffer text = {0};
    buffer_append_text(
        &text, "cadenza - a workflow engine that speaks Cadence's gRPC API, in one binary.\n\n"
               "Usage: cadenza COMMAND [flags]\n\n");
    buffer_append_format(&text, "  %-*s %s\n", COLUMN, "server",
                         "Runs a server with its store inside");
    for (size_t i = 0; strchr(cli_command_at(i)->words, ' ') == NULL; i++)
        add_line(&text, cli_command_at(i));
    for (const struct cli_group_words *group = cli_group_words; group->words != NULL; group++) {
        if (strchr(group->words, ' ') == NULL)
            buffer_append_format(&text, "  %-*s %s\n", COLUMN,
                                 arena_format(arena, "%s ...", group->words), group->summary);
    }
    buffer_append_format(&text, "  %-*s %s\n", COLUMN, "version", "Shows the version");
    buffer_append_text(
        &text, "\nExamples:\n  cadenza dev\n  cadenza workflow start --domain orders --tasklist "
               "mail --workflow_type greet --input '\"Ann\"'\n  cadenza workflow list --domain "
               "orders --open\n\nRun cadenza COMMAND --help for details. The cadence CLI works "
               "too: --transport grpc --address 127.0.0.1:7833.\n");
    return finish(&text, arena);
}

/* ---- docs/cli.md ---- */

/* | would end a cell. */
static void
add_cell(struct buffer *text, const char *cell)
{
    for (; *cell != '\0'; cell++)
        buffer_append_format(text, *cell == '|' ? "\\%c" : *cell == '\t' ? "tab" : "%c", *cell);
}

static void
add_flag(struct buffer *text, const struct cli_flag *flag)
{
    buffer_append_format(text, "| `--%s`", flag->name);
    for (const char *at = flag->aliases; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");
        buffer_append_format(text, ", `%s%.*s`", length == 1 ? "-" : "--", (int)length, at);
        at += length + strspn(at + length, " ");
    }
    buffer_append_text(text, " | ");
    add_cell(text, flag->argument != NULL ? flag->argument : "");
    buffer_append_text(text, " | ");
    add_cell(text, flag->help);
    if (flag->environment != NULL)
        buffer_append_format(text, " Else `%s`.", flag->environment);
    if (flag->otherwise != NULL) {
        buffer_append_text(text, " Default ");
        add_cell(text, flag->otherwise);
        buffer_append_text(text, ".");
    }
    buffer_append_text(text, " |\n");
}

/* Flags that most commands have are listed once, at the top. */
static const char usual[] =
    "address context_timeout tls_cert_path transport jwt jwt-private-key format print_json";

static void
add_command(struct buffer *text, const struct cli_command *command, struct arena *arena)
{
    const char *keys = cli_command_keys(command, arena);
    bool has_flags = false, has_usual = false;
    buffer_append_format(text, "\n### cadenza %s%s%s\n\n", command->words,
                         command->arguments != NULL ? " " : "",
                         command->arguments != NULL ? command->arguments : "");
    buffer_append_format(text, "%s", command->summary);
    if (command->aliases != NULL)
        buffer_append_format(text, " Short: `%s`.", command->aliases);
    buffer_append_format(text, "\n\n```\n%s```\n", command->examples);
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const struct cli_flag *flag = cli_flag_at(row);
        if (!cli_has_word(keys, flag->key, strlen(flag->key)))
            continue;
        if (cli_has_word(usual, flag->key, strlen(flag->key))) {
            has_usual = true;
            continue;
        }
        if (!has_flags)
            buffer_append_text(text, "\n| flag | value | meaning |\n|---|---|---|\n");
        has_flags = true;
        add_flag(text, flag);
    }
    if (has_usual)
        buffer_append_text(text, "\nAnd the [usual flags](#flags-that-most-commands-have).\n");
}

const char *
cli_help_document(struct arena *arena)
{
    struct buffer text = {0};
    buffer_append_text(
        &text,
        "# The command line\n\n"
        "Made by `build/*/bin/cli_doc` from the tables of commands and flags in `src/cli/`; do not "
        "edit.\n"
        "[The tour](cli-tour.md) is the place to begin.\n\n"
        "Exit codes: 0 done, 1 failed, 2 wrong arguments; a line on standard error says why and, "
        "where it can,\nwhat to do next. `workflow run` and `workflow observe` end with 1 when the "
        "workflow does not complete.\n\n"
        "## Flags that most commands have\n\n"
        "Flags may also precede the command, with one dash or two; a value follows its flag or "
        "`=`.\n\n"
        "| flag | value | meaning |\n|---|---|---|\n");
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        if (cli_has_word(usual, cli_flag_at(row)->key, strlen(cli_flag_at(row)->key)))
            add_flag(&text, cli_flag_at(row));
    }
    buffer_append_text(&text, "\n## Commands\n");
    for (size_t i = 0; cli_command_at(i) != NULL; i++)
        add_command(&text, cli_command_at(i), arena);
    return finish(&text, arena);
}
