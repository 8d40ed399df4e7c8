/* settings_doc.c - prints docs/settings.md: the tables of keys.h for people. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config/value.h"

/* Cells must not hold a bar. */
static void
print_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
}

static void
print_default(const struct key_rule *rule, const char *value)
{
    if (value[0] != '\0')
        printf("`%s`", value);
    else
        fputs(rule->type == KEY_LIST || rule->type == KEY_MAP ? "none" : "", stdout);
}

static void
print_static(struct arena *arena)
{
    puts("| key | value | default | what it does |\n|---|---|---|---|");
    for (size_t i = 0; i < static_key_count; i++) {
        const struct static_key *key = &static_keys[i];
        if (key->rule.type == KEY_IGNORED)
            continue;
        printf("| `%s` | ", key->path);
        print_cell(value_wanted(&key->rule, arena));
        fputs(" | ", stdout);
        print_default(&key->rule, key->default_value);
        fputs(" | ", stdout);
        print_cell(key->sentence);
        puts(" |");
    }
}

static void
print_ignored(void)
{
    puts("| key | why |\n|---|---|");
    for (size_t i = 0; i < static_key_count; i++) {
        const struct static_key *key = &static_keys[i];
        if (key->rule.type != KEY_IGNORED)
            continue;
        printf("| `%s` | ", key->path);
        print_cell(key->sentence);
        puts(" |");
    }
}

static void
print_aliases(void)
{
    puts("| old name | read as |\n|---|---|");
    for (size_t i = 0; i < static_alias_count; i++)
        printf("| `%s` | `%s` |\n", static_aliases[i].from, static_aliases[i].to);
}

static void
print_dynamic(struct arena *arena)
{
    puts("| key | value | default | constraints | what it does |\n|---|---|---|---|---|");
    for (size_t i = 0; i < DYNAMIC_KEY_COUNT; i++) {
        const struct dynamic_row *row = &dynamic_rows[i];
        printf("| `%s` | %s | ", row->name, value_wanted(&row->rule, arena));
        print_default(&row->rule, row->default_value);
        printf(" | %s | ", row->filters);
        print_cell(row->sentence);
        puts(" |");
    }
}

int
main(void)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    puts("# Settings\n\n"
         "Made by `settings_doc` from the tables in `src/config/`; do not edit it by hand.\n\n"
         "## The file of --config\n\n"
         "YAML in Cadence's sections; a dot stands for a section below another, `*` for a name of\n"
         "your choice. `${NAME:default}` in a value is replaced from the environment. A key that "
         "is\n"
         "not listed here is refused, with its line.\n");
    print_static(arena);
    puts("\n### Accepted and ignored\n\n"
         "So that a server starts with a file made for Cadence; each use is logged. `**` is "
         "everything below.\n");
    print_ignored();
    puts("\n### Old names\n\nWhere both are given the new one wins.\n");
    print_aliases();
    puts(
        "\n## The file of --dynamic-config\n\n"
        "Cadence's format, read again when it changes. The first entry whose constraints all hold\n"
        "wins, else the last one without constraints, else the default. A key that is not listed "
        "is\n"
        "logged and has no effect.\n\n"
        "```yaml\n"
        "system.maxRetentionDays:\n"
        "- value: 30\n"
        "frontend.maxBadBinaries:\n"
        "- value: 10\n"
        "- value: 50\n"
        "  constraints: {domainName: orders}\n"
        "```\n");
    print_dynamic(arena);
    return 0;
}
