/* commands_test.c - the tables of commands and flags fit together, and what is made from them. */
#include "base/test.h"
#include "cli/base/inside.h"

static const struct cli_command *
find(const char *words)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        if (strcmp(cli_command_at(i)->words, words) == 0)
            return cli_command_at(i);
    }
    return NULL;
}

ARENA_TEST(commands, every_flag_that_a_command_names_is_there_once)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        const char *keys = cli_command_keys(cli_command_at(i), arena);
        for (const char *at = keys + strspn(keys, " "); *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " "), count = 0;
            for (size_t row = 0; cli_flag_at(row) != NULL; row++)
                count += cli_has_word(cli_flag_at(row)->key, at, length);
            if (count != 1)
                TEST_FAIL("%s: flag %.*s", cli_command_at(i)->words, (int)length, at);
            at += length;
        }
    }
}

ARENA_TEST(commands, every_flag_belongs_to_a_command)
{
    for (size_t row = 0; cli_flag_at(row) != NULL; row++) {
        const char *key = cli_flag_at(row)->key;
        bool is_used = false;
        for (size_t i = 0; cli_command_at(i) != NULL && !is_used; i++)
            is_used = cli_has_word(cli_command_keys(cli_command_at(i), arena), key, strlen(key));
        if (!is_used)
            TEST_FAIL("--%s (%s)", cli_flag_at(row)->name, key);
    }
}

ARENA_TEST(commands, no_name_or_alias_means_two_flags_of_one_command)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        struct cli_call call = {0};
        const struct flag *flags =
            cli_flags_table(cli_command_keys(cli_command_at(i), arena), &call, arena);
        for (const struct flag *flag = flags; flag->name != NULL; flag++) {
            if (flag_find(flags, slice_text(flag->name)) != flag)
                TEST_FAIL("%s: --%s", cli_command_at(i)->words, flag->name);
            for (const char *at = flag->aliases; at != NULL && *at != '\0'; at += strspn(at, " ")) {
                size_t length = strcspn(at, " ");
                if (flag_find(flags, slice_of(at, length)) != flag)
                    TEST_FAIL("%s: alias %.*s", cli_command_at(i)->words, (int)length, at);
                at += length;
            }
        }
    }
}

TEST(commands, each_has_a_summary_that_begins_with_a_sentence_and_an_example_of_itself)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        const struct cli_command *command = cli_command_at(i);
        if (strpbrk(command->summary, ".\n:") == NULL)
            TEST_FAIL("%s: %s", command->words, command->summary);
        bool has_example = strstr(command->examples, command->words) != NULL ||
                           strstr(command->examples, "cadenza domain lfh") != NULL;
        if (!has_example)
            TEST_FAIL("%s: %s", command->words, command->examples);
        if (command->run == NULL && command->rpc == NULL && command->why_not == NULL)
            TEST_FAIL("%s does nothing", command->words);
    }
}

ARENA_TEST(commands, words_that_several_begin_with_are_a_group_with_help)
{
    for (size_t i = 0; cli_command_at(i) != NULL; i++) {
        const char *words = cli_command_at(i)->words;
        for (size_t end = 0; (end += strcspn(words + end, " ")) < strlen(words); end++) {
            bool is_group = false;
            for (const struct cli_group_words *group = cli_group_words; group->words != NULL;
                 group++)
                is_group = is_group ||
                           (strlen(group->words) == end && strncmp(group->words, words, end) == 0);
            if (!is_group)
                TEST_FAIL("%.*s", (int)end, words);
        }
    }
    for (const struct cli_group_words *group = cli_group_words; group->words != NULL; group++) {
        const char *help = cli_help_group(group, arena);
        if (strstr(help, "Examples:\n  cadenza ") == NULL || strstr(help, "\n  ") == NULL)
            TEST_FAIL("%s: %s", group->words, help);
    }
}

ARENA_TEST(commands, a_flag_of_the_table_writes_into_the_call)
{
    struct cli_call call = {.arena = arena};
    const struct flag *flags = cli_flags_table("domain all clusters workflow_id", &call, arena);
    EXPECT(flag_find(flags, slice_text("do"))->text == &call.domain.name);
    EXPECT(flag_find(flags, slice_text("a"))->is_set == &call.domain.wants_all);
    EXPECT(flag_find(flags, slice_text("cl"))->list == &call.domain.clusters);
    EXPECT(flag_find(flags, slice_text("address")) == NULL);
    *flag_find(flags, slice_text("w"))->text = "order-7";
    EXPECT_TEXT(cli_text(&call, "workflow_id"), "order-7");
    EXPECT(cli_text(&call, "run_id") == NULL);
    EXPECT_TEXT(cli_text(&call, "page_size"), "10"); /* its default */
    cli_give(&call, "page_size", "x");
    int64_t number;
    struct error *err = cli_number(&call, "page_size", 1, 5, 0, &number);
    EXPECT_TEXT(err->message, "--pagesize: 'x' is not a number from 1 to 5");
    EXPECT_EQ(call.exit_code, 2);
}

ARENA_TEST(commands, a_command_that_is_one_call_takes_the_flags_of_its_fields)
{
    const char *keys = cli_command_keys(find("workflow signal"), arena);
    EXPECT(cli_has_word(keys, "name", 4) && cli_has_word(keys, "workflow_id", 11));
    EXPECT(cli_has_word(keys, "domain", 6) && !cli_has_word(keys, "tasklist", 8));
}
