/* commands_test.c - the tables of commands and flags: every name means one thing. */
#include <string.h>

#include "base/test.h"
#include "cli/inside.h"

/* How many flags have this key. */
static size_t
count_key(const char *key, size_t length)
{
    size_t count = 0;
    for (const struct cli_flag *flag = cli_flags; flag->key != NULL; flag++)
        count += strlen(flag->key) == length && strncmp(flag->key, key, length) == 0;
    return count;
}

TEST(commands, every_flag_that_a_command_names_is_there_once)
{
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        for (const char *at = command->flags; *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            if (count_key(at, length) != 1)
                TEST_FAIL("%s: flag %.*s", command->words, (int)length, at);
            at += length;
        }
    }
}

TEST(commands, no_name_or_alias_means_two_flags_of_one_command)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        struct cli_call call = {0};
        const struct flag *flags = cli_flags_table(command->flags, &call, arena);
        for (const struct flag *flag = flags; flag->name != NULL; flag++) {
            if (flag_find(flags, slice_text(flag->name)) != flag)
                TEST_FAIL("%s: --%s", command->words, flag->name);
            for (const char *at = flag->aliases; at != NULL && *at != '\0'; at += strspn(at, " ")) {
                size_t length = strcspn(at, " ");
                if (flag_find(flags, slice_of(at, length)) != flag)
                    TEST_FAIL("%s: alias %.*s", command->words, (int)length, at);
                at += length;
            }
        }
    }
}

TEST(commands, each_has_a_summary_that_begins_with_a_sentence_and_an_example_of_itself)
{
    for (const struct cli_command *command = cli_commands; command->words != NULL; command++) {
        const char *end = strpbrk(command->summary, ".\n:");
        if (end == NULL)
            TEST_FAIL("%s: %s", command->words, command->summary);
        if (strstr(command->examples, command->words) == NULL)
            TEST_FAIL("%s: %s", command->words, command->examples);
    }
}

TEST(commands, a_flag_of_the_table_writes_into_the_call)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct cli_call call = {0};
    const struct flag *flags = cli_flags_table("domain all clusters", &call, arena);
    EXPECT(flag_find(flags, slice_text("do"))->text == &call.domain.name);
    EXPECT(flag_find(flags, slice_text("a"))->is_set == &call.domain.wants_all);
    EXPECT(flag_find(flags, slice_text("cl"))->list == &call.domain.clusters);
    EXPECT(flag_find(flags, slice_text("address")) == NULL);
}
