/* flags_test.c - reading a command line. */
#include "cli/flags.h"

#include "base/test.h"

struct read {
    const char *data, *address;
    bool is_loud;
    const char *words[2];
    bool wants_help;
};

static struct error *
read_line(struct arena *arena, struct read *read, int count, char **arguments)
{
    const struct flag flags[] = {
        {"data", "DIR", "a folder", &read->data, NULL},
        {"address", "HOST:PORT", "a server", &read->address, NULL},
        {"loud", NULL, "say more", NULL, &read->is_loud},
        {0},
    };
    const struct command_line line = {
        .usage = "cadenza x", .summary = "Does x.", .flags = flags, .words_min = 0, .words_max = 2};
    return command_line_read(&line, count, arguments, read->words, &read->wants_help, arena);
}

#define READ(read, ...)                                                                            \
    read_line(arena, &(read), sizeof((char *[]){__VA_ARGS__}) / sizeof(char *),                    \
              (char *[]){__VA_ARGS__})

TEST(flags, a_value_may_follow_or_stand_behind_an_equals_sign)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct read read = {0};
    EXPECT_OK(READ(read, "--data", "a", "--address=b:1", "-loud", "one", "two"));
    EXPECT_TEXT(read.data, "a");
    EXPECT_TEXT(read.address, "b:1");
    EXPECT(read.is_loud && !read.wants_help);
    EXPECT_TEXT(read.words[0], "one");
    EXPECT_TEXT(read.words[1], "two");
}

TEST(flags, an_unknown_flag_suggests_the_near_one)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct read read = {0};
    struct error *err = READ(read, "--adress", "x");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "unknown flag --adress; did you mean --address?");
    err = READ(read, "--somethingelse");
    EXPECT_TEXT(err->message, "unknown flag --somethingelse; see cadenza x --help");
}

TEST(flags, a_missing_value_and_a_word_too_many_are_named)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct read read = {0};
    EXPECT_TEXT(READ(read, "--data")->message, "--data needs a value: DIR");
    EXPECT_TEXT(READ(read, "--loud=yes")->message, "--loud takes no value");
    EXPECT(strstr(READ(read, "1", "2", "3")->message, "'3' is one word too many") != NULL);
}

TEST(flags, help_lists_every_flag)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
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
