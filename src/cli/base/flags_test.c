/* flags_test.c - reading a command line. */
#include "cli/base/flags.h"

#include "base/test.h"

struct read {
    const char *data, *address;
    bool is_loud;
    struct flag_list clusters;
    const char *words[2];
    bool wants_help;
};

static struct error *
read_line(struct arena *arena, struct read *read, int count, char **arguments)
{
    const struct flag flags[] = {
        {"data", "DIR", "a folder", &read->data, NULL},
        {"address", "HOST:PORT", "a server", &read->address, NULL, .aliases = "ad a"},
        {"loud", NULL, "say more", NULL, &read->is_loud},
        {"clusters", "NAME", "some", .aliases = "cl", .list = &read->clusters},
        {0},
    };
    const struct command_line line = {
        .usage = "cadenza x", .summary = "Does x.", .flags = flags, .words_min = 0, .words_max = 2};
    return command_line_read(&line, count, arguments, read->words, &read->wants_help, arena);
}

#define READ(read, ...)                                                                            \
    read_line(arena, &(read), sizeof((char *[]){__VA_ARGS__}) / sizeof(char *),                    \
              (char *[]){__VA_ARGS__})

ARENA_TEST(flags, a_value_may_follow_or_stand_behind_an_equals_sign)
{
    struct read read = {0};
    EXPECT_OK(READ(read, "--data", "a", "--address=b:1", "-loud", "one", "two"));
    EXPECT_TEXT(read.data, "a");
    EXPECT_TEXT(read.address, "b:1");
    EXPECT(read.is_loud && !read.wants_help);
    EXPECT_TEXT(read.words[0], "one");
    EXPECT_TEXT(read.words[1], "two");
}

ARENA_TEST(flags, an_unknown_flag_suggests_the_near_one)
{
    struct read read = {0};
    struct error *err = READ(read, "--adress", "x");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "unknown flag --adress; did you mean --address?");
    err = READ(read, "--somethingelse");
    EXPECT_TEXT(err->message, "unknown flag --somethingelse; see cadenza x --help");
}

ARENA_TEST(flags, a_missing_value_and_a_word_too_many_are_named)
{
    struct read read = {0};
    EXPECT_TEXT(READ(read, "--data")->message, "--data needs a value: DIR");
    EXPECT(strstr(READ(read, "1", "2", "3")->message, "'3' is one word too many") != NULL);
}

ARENA_TEST(flags, a_flag_is_known_by_its_aliases_but_not_by_a_part_of_them)
{
    struct read read = {0};
    EXPECT_OK(READ(read, "--ad", "one"));
    EXPECT_TEXT(read.address, "one");
    EXPECT_OK(READ(read, "-a=two"));
    EXPECT_TEXT(read.address, "two");
    EXPECT_KIND(READ(read, "--ad a", "x"), ERR_BAD_REQUEST);
    EXPECT_KIND(READ(read, "--", "x"), ERR_BAD_REQUEST);
}

ARENA_TEST(flags, of_a_value_given_twice_the_last_counts_and_a_list_keeps_all)
{
    struct read read = {0};
    EXPECT_OK(READ(read, "--data", "a", "--cl", "x,y", "--data=b", "--clusters=z"));
    EXPECT_TEXT(read.data, "b");
    EXPECT_EQ(read.clusters.count, 2);
    EXPECT_TEXT(read.clusters.items[0], "x,y");
    EXPECT_TEXT(read.clusters.items[1], "z");
}

ARENA_TEST(flags, a_switch_takes_true_and_false_behind_an_equals_sign_only)
{
    struct read read = {0};
    EXPECT_OK(READ(read, "--loud=true"));
    EXPECT(read.is_loud);
    EXPECT_OK(READ(read, "--loud", "--loud=F"));
    EXPECT(!read.is_loud);
    EXPECT_OK(READ(read, "--loud", "false"));
    EXPECT(read.is_loud);
    EXPECT_TEXT(read.words[0], "false");
    EXPECT_TEXT(READ(read, "--loud=yes")->message, "--loud: 'yes' is neither true nor false");
}

TEST(flags, booleans_are_spelt_as_in_go)
{
    const char *const good[] = {"1", "t", "T", "TRUE", "true", "True"}, *const bad[] = {
                                                                            "",      "yes", "tRUE",
                                                                            "true ", "01",  "t T"};
    for (size_t i = 0; i < array_length(good); i++) {
        bool value = false;
        EXPECT(flag_parse_bool(good[i], &value) && value);
        EXPECT(!flag_parse_bool(bad[i], &value));
    }
    bool value = true;
    EXPECT(flag_parse_bool("False", &value) && !value);
}

ARENA_TEST(flags, help_shows_aliases_and_breaks_the_line_before_what_does_not_fit)
{
    const struct flag flags[] = {
        {"domain", "NAME", "which", .aliases = "do d"},
        {"a_name_that_is_rather_long", "VALUE", "below"},
        {0},
    };
    const struct command_line line = {.usage = "u", .summary = "s", .flags = flags};
    EXPECT_TEXT(command_line_help(&line, arena), "Usage: u\n\ns\n\nFlags:\n"
                                                 "  --domain, --do, -d NAME    which\n"
                                                 "  --a_name_that_is_rather_long VALUE\n"
                                                 "                             below\n"
                                                 "  --help, -h                 Show this text.\n");
}

ARENA_TEST(flags, help_lists_every_flag)
{
    struct read read = {0};
    EXPECT_OK(READ(read, "--help"));
    EXPECT(read.wants_help);
    const struct flag flags[] = {{"data", "DIR", "a folder", NULL, NULL}, {0}};
    const struct command_line line = {
        .usage = "u", .summary = "s", .flags = flags, .examples = "  e\n"};
    const char *help = command_line_help(&line, arena);
    EXPECT(strstr(help, "--data DIR") != NULL && strstr(help, "a folder") != NULL &&
           strstr(help, "  e\n") != NULL);
}
