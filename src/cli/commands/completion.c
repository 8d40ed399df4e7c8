/* completion.c - what shells need to complete a command line, made from the tables of commands.
 *
 * bash and zsh get one list: words typed so far → what may follow. fish gets a line for each. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "cli/base/inside.h"

/* Calls `visit` for everything that may follow some words: once for each pair. */
struct completion_pairs {
    struct completion_pair {
        const char *before, *word; /* "workflow", "start" */
    } * items;
    size_t count, capacity;
    struct arena *arena;
};

static void
add_pair(struct completion_pairs *completion_pairs, const char *before, size_t before_length,
         const char *word, size_t length)
{
    for (size_t i = 0; i < completion_pairs->count; i++) {
        if (strlen(completion_pairs->items[i].before) == before_length &&
            strncmp(completion_pairs->items[i].before, before, before_length) == 0 &&
            strlen(completion_pairs->items[i].word) == length &&
            strncmp(completion_pairs->items[i].word, word, length) == 0)
            return;
    }
    vector_push_in(completion_pairs, completion_pairs->arena,
                   (struct completion_pair){
                       arena_text_of(completion_pairs->arena, slice_of(before, before_length)),
                       arena_text_of(completion_pairs->arena, slice_of(word, length))});
}

static void
gather_words(struct completion_pairs *completion_pairs)
{
    add_pair(completion_pairs, "", 0, "server", 6);
    add_pair(completion_pairs, "", 0, "version", 7);
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        const char *words = cli_command_at(i)->words;
        for (size_t at = 0;;) {
            size_t length = strcspn(words + at, " ");
            add_pair(completion_pairs, words, at == 0 ? 0 : at - 1, words + at, length);
            if (words[at + length] == '\0')
                break;
            at += length + 1;
        }
    }
}

/* All that may follow `before`, with blanks between: words, or the flags of the command. */
static const char *
words_after(const struct completion_pairs *completion_pairs, const char *before)
{
    const char *text = "";
    for (size_t i = 0; i < completion_pairs->count; i++) {
        if (strcmp(completion_pairs->items[i].before, before) == 0)
            text = arena_format(completion_pairs->arena, "%s%s%s", text, text[0] == '\0' ? "" : " ",
                                completion_pairs->items[i].word);
    }
    return text;
}

static const char *
flags_of(const struct cli_command *command, struct arena *arena)
{
    const char *text = "", *keys = cli_command_keys(command, arena);
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const struct cli_flag *flag = cli_flag_at(row);
        if (cli_has_word(keys, flag->key, strlen(flag->key)))
            text = arena_format(arena, "%s%s--%s", text, text[0] == '\0' ? "" : " ", flag->name);
    }
    return text;
}

/* case lines: "workflow") words='start run ...' ;; */
static void
print_cases(const struct completion_pairs *completion_pairs)
{
    struct arena *arena = completion_pairs->arena;
    for (size_t i = 0; i < completion_pairs->count; i++) {
        bool is_first = true;
        for (size_t n = 0; n < i && is_first; n++)
            is_first =
                strcmp(completion_pairs->items[n].before, completion_pairs->items[i].before) != 0;
        if (is_first)
            cli_print("        '%s') words='%s' ;;\n", completion_pairs->items[i].before,
                      words_after(completion_pairs, completion_pairs->items[i].before));
    }
    for (size_t i = 0; cli_command_at(i) != NULL; i++)
        cli_print("        '%s') words='%s' ;;\n", cli_command_at(i)->words,
                  flags_of(cli_command_at(i), arena));
}

static void
print_bash(const struct completion_pairs *completion_pairs)
{
    cli_print("# bash completion for cadenza: source <(cadenza completion bash)\n"
              "_cadenza() {\n"
              "    local words='' before='' at word\n"
              "    for ((at = 1; at < COMP_CWORD; at++)); do\n"
              "        word=${COMP_WORDS[at]}\n"
              "        [[ $word == -* ]] && break\n"
              "        before=\"${before:+$before }$word\"\n"
              "    done\n"
              "    case \"$before\" in\n");
    print_cases(completion_pairs);
    cli_print("    esac\n"
              "    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
              "}\n"
              "complete -o default -F _cadenza cadenza\n");
}

static void
print_zsh(const struct completion_pairs *completion_pairs)
{
    cli_print("#compdef cadenza\n"
              "# zsh completion for cadenza: source <(cadenza completion zsh)\n"
              "_cadenza() {\n"
              "    local words_typed=(\"${words[@]}\") before='' word at\n"
              "    for ((at = 2; at < CURRENT; at++)); do\n"
              "        word=${words_typed[at]}\n"
              "        [[ $word == -* ]] && break\n"
              "        before=\"${before:+$before }$word\"\n"
              "    done\n"
              "    local words=''\n"
              "    case \"$before\" in\n");
    print_cases(completion_pairs);
    cli_print("    esac\n"
              "    compadd -- ${=words}\n"
              "}\n"
              "compdef _cadenza cadenza\n");
}

/* A text within single quotes. */
static const char *
quoted(const char *text, struct arena *arena)
{
    struct buffer out = {0};
    for (; *text != '\0' && *text != '\n'; text++)
        buffer_append_format(&out, *text == '\'' ? "\\'" : "%c", *text);
    const char *kept = arena_text_of(arena, buffer_slice(&out));
    buffer_free(&out);
    return kept;
}

static void
print_fish_flags(const struct cli_command *command, struct arena *arena)
{
    const char *keys = cli_command_keys(command, arena);
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const struct cli_flag *flag = cli_flag_at(row);
        if (cli_has_word(keys, flag->key, strlen(flag->key)))
            cli_print("complete -c cadenza -n '__cadenza_before \"%s\"' -l %s%s -d '%s'\n",
                      command->words, flag->name, flag->argument != NULL ? " -r" : "",
                      quoted(flag->help, arena));
    }
}

static void
print_fish(const struct completion_pairs *completion_pairs)
{
    cli_print("# fish completion for cadenza: cadenza completion fish | source\n"
              "function __cadenza_before\n"
              "    set -l before\n"
              "    for word in (commandline -opc)[2..-1]\n"
              "        string match -q -- '-*' $word; and break\n"
              "        set before $before $word\n"
              "    end\n"
              "    test \"$before\" = \"$argv\"\n"
              "end\n"
              "complete -c cadenza -f\n");
    for (size_t i = 0; i < completion_pairs->count; i++)
        cli_print("complete -c cadenza -n '__cadenza_before \"%s\"' -a '%s'\n",
                  completion_pairs->items[i].before, completion_pairs->items[i].word);
    for (size_t i = 0; cli_command_at(i) != NULL; i++)
        print_fish_flags(cli_command_at(i), completion_pairs->arena);
}

struct error *
cli_completion(struct cli_call *call)
{
    static const struct {
        const char *shell;
        void (*print)(const struct completion_pairs *completion_pairs);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    struct completion_pairs completion_pairs = {.arena = call->arena};
    gather_words(&completion_pairs);
    for (size_t i = 0; i < array_length(shells); i++) {
        if (strcmp(shells[i].shell, call->words[0]) == 0) {
            shells[i].print(&completion_pairs);
            return NULL;
        }
    }
    return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                     "'%s' is not one of bash, zsh and fish", call->words[0]));
}
