/* cron_test.c - schedules against answers that were worked out by robfig's cron, version 3. */
#include "base/cron.h"

#include "base/random.h"
#include "base/test.h"

/* Clocks there went by another rule then. */
#define NOT_ASKED 0

static const int64_t moments[] = {1545062400, 1615694400, 1636261199, 1709164799, 0, 1782822896};

static const struct {
    const char *text;
    int64_t next[array_length(moments)]; /* after each of the moments */
} known[] = {
    {"* * * * *", {1545062460, 1615694460, 1636261200, 1709164800, 60, 1782822900}},
    {"0 10 * * *", {1545127200, 1615716000, 1636279200, 1709200800, 36000, 1782900000}},
    {"0 * * * *", {1545066000, 1615698000, 1636261200, 1709164800, 3600, 1782824400}},
    {"*/10 * * * *", {1545063000, 1615695000, 1636261200, 1709164800, 600, 1782823200}},
    {"*/7 3-21/5 * * *", {1545069600, 1615708800, 1636272000, 1709175600, 10800, 1782824400}},
    {"15,45 0 1 */3 *", {1546301700, 1617236100, 1640996100, 1711930500, 900, 1782864900}},
    {"0 0 29 2 *", {1582934400, 1709164800, 1709164800, 1709164800, 68169600, 1835395200}},
    {"0 0 13 * 5", {1545350400, 1616112000, 1636675200, 1709251200, 86400, 1783036800}},
    {"0 0 13 * *", {1547337600, 1618272000, 1636761600, 1710288000, 1036800, 1783900800}},
    {"0 0 * * fri", {1545350400, 1616112000, 1636675200, 1709251200, 86400, 1783036800}},
    {"5/20 8,9 * JAN-mar mon-FRI",
     {1546329900, 1615795500, 1641197100, 1709193900, 29100, 1798790700}},
    {"59 23 31 12 ?", {1546300740, 1640995140, 1640995140, 1735689540, 31535940, 1798761540}},
    {"0 3 * * 0-6", {1545102000, 1615777200, 1636340400, 1709175600, 10800, 1782874800}},
    {"30 2 31 * *", {1546223400, 1617157800, 1640917800, 1711852200, 2601000, 1785465000}},
    {"0 0 */2 * 1", {1545177600, 1615766400, 1636329600, 1709164800, 172800, 1782864000}},
    {"@hourly", {1545066000, 1615698000, 1636261200, 1709164800, 3600, 1782824400}},
    {"@daily", {1545091200, 1615766400, 1636329600, 1709164800, 86400, 1782864000}},
    {"@weekly", {1545523200, 1616284800, 1636848000, 1709424000, 259200, 1783209600}},
    {"@monthly", {1546300800, 1617235200, 1638316800, 1709251200, 2678400, 1782864000}},
    {"@yearly", {1546300800, 1640995200, 1640995200, 1735689600, 31536000, 1798761600}},
    {"@midnight", {1545091200, 1615766400, 1636329600, 1709164800, 86400, 1782864000}},
    {"@annually", {1546300800, 1640995200, 1640995200, 1735689600, 31536000, 1798761600}},
    {"@every 5h", {1545080400, 1615712400, 1636279199, 1709182799, 18000, 1782840896}},
    {"@every 90m", {1545067800, 1615699800, 1636266599, 1709170199, 5400, 1782828296}},
    {"@every 1.5s", {1545062401, 1615694401, 1636261200, 1709164800, 1, 1782822897}},
    {"@every 1ms", {1545062401, 1615694401, 1636261200, 1709164800, 1, 1782822897}},
    {"@every -5s", {1545062401, 1615694401, 1636261200, 1709164800, 1, 1782822897}},
    {"0 0 30 2 *", {CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER}},
    {"TZ=Asia/Kolkata 30 9 * * *",
     {1545105600, 1615780800, 1636344000, 1709179200, 14400, 1782878400}},
    {"CRON_TZ=America/New_York 5 16 * * *",
     {1545080700, 1615752300, 1636319100, 1709240700, 75900, 1782849900}},
    {"CRON_TZ=America/New_York 30 2 * * *",
     {1545118200, 1615789800, 1636270200, 1709191800, 27000, 1782887400}},
    {"CRON_TZ=America/New_York 30 1 * * *",
     {1545114600, 1615703400, 1636263000, 1709188200, 23400, 1782883800}},
    {"CRON_TZ=Europe/Dublin 0 12 * * sun",
     {1545566400, 1615723200, 1636286400, 1709467200, NOT_ASKED, 1783249200}},
    {"CRON_TZ=Australia/Sydney 0 0 1 * *",
     {1546261200, 1617195600, 1638277200, 1709211600, NOT_ASKED, 1782828000}},
    {"CRON_TZ=Asia/Kathmandu 0 */6 * * *",
     {1545070500, 1615702500, 1636265700, 1709165700, NOT_ASKED, 1782843300}},
    {"TZ=UTC @daily", {1545091200, 1615766400, 1636329600, 1709164800, 86400, 1782864000}},
    {"CRON_TZ=America/Los_Angeles @every 1h",
     {1545066000, 1615698000, 1636264799, 1709168399, 3600, 1782826496}},
    {"CRON_TZ=Asia/Tokyo @monthly",
     {1546268400, 1617202800, 1638284400, 1709218800, 2646000, 1782831600}},
    {", * * * *", {CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER}},
    {"* * * , *", {CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER, CRON_NEVER}},
    {"+5 4 * * *", {1545105900, 1615694700, 1636344300, 1709179500, 14700, 1782878700}},
};

TEST(cron, fires_when_the_schedule_says, "A-182")
{
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(known); i++) {
        struct cron cron;
        const char *fault = cron_parse(known[i].text, arena, &cron);
        EXPECT_TEXT(fault == NULL ? "" : fault, "");
        for (size_t j = 0; fault == NULL && j < array_length(moments); j++) {
            int64_t next = cron_next(&cron, moments[j]);
            if (known[i].next[j] != NOT_ASKED && next != known[i].next[j])
                TEST_FAIL("%s after %lld: %lld, not %lld", known[i].text, (long long)moments[j],
                          (long long)next, (long long)known[i].next[j]);
        }
    }
    arena_free(arena);
}

static const struct {
    const char *text, *fault;
} faulty[] = {
    {"", "empty spec string"},
    {"x", "expected exactly 5 fields, found 1: [x]"},
    {"* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
    {"* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"},
    {"60 * * * *", "end of range (60) above maximum (59): 60"},
    {"* 24 * * *", "end of range (24) above maximum (23): 24"},
    {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
    {"* * 32 * *", "end of range (32) above maximum (31): 32"},
    {"* * * 13 *", "end of range (13) above maximum (12): 13"},
    {"* * * 0 *", "beginning of range (0) below minimum (1): 0"},
    {"* * * * 7", "end of range (7) above maximum (6): 7"},
    {"5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"},
    {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
    {"1/2/3 * * * *", "too many slashes: 1/2/3"},
    {"*/0 * * * *", "step of range should be a positive number: */0"},
    {"a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"},
    {"1, x * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"},
    {"99999999999999999999 * * * *", "failed to parse int from 99999999999999999999: strconv.Atoi: "
                                     "parsing \"99999999999999999999\": value out of range"},
    {"* * * foo *", "failed to parse int from foo: strconv.Atoi: parsing \"foo\": invalid syntax"},
    {"@never", "unrecognized descriptor: @never"},
    {"@every", "unrecognized descriptor: @every"},
    {"@every x", "failed to parse duration @every x: time: invalid duration \"x\""},
    {"@every  5s", "failed to parse duration @every  5s: time: invalid duration \" 5s\""},
    {"CRON_TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"},
    {"-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"},
    {"*/ * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"},
    {"CRON_TZ=Europe/Paris ", "expected exactly 5 fields, found 0: []"},
    {" ", "expected exactly 5 fields, found 0: []"},
};

TEST(cron, a_bad_schedule_is_refused_with_the_words_that_clients_know, "A-182")
{
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(faulty); i++) {
        struct cron cron;
        const char *fault = cron_parse(faulty[i].text, arena, &cron);
        EXPECT_TEXT(fault == NULL ? "" : fault, faulty[i].fault);
    }
    arena_free(arena);
}

/* A caller that was busy for long asks for the first fire from now on. Method: compared with asking
 * fire by fire. */
TEST(cron, fires_that_were_missed_are_skipped)
{
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(known); i++) {
        struct cron cron;
        EXPECT(cron_parse(known[i].text, arena, &cron) == NULL);
        int64_t after = moments[2], not_before = after + 300 * 86400 / (cron.every < 60 ? 400 : 1);
        int64_t next = cron_next(&cron, after);
        while (next != CRON_NEVER && next < not_before)
            next = cron_next(&cron, next);
        EXPECT_EQ(cron_next_from(&cron, after, not_before), next);
    }
    arena_free(arena);
}

TEST(cron, clocks_that_jump_over_midnight_do_not_stop_it)
{
    struct arena *arena = arena_new(0);
    struct cron cron;
    EXPECT(cron_parse("CRON_TZ=America/Havana 0 0,5 * * *", arena, &cron) == NULL);
    /* 2027-03-14 begins at one o'clock there */
    int64_t moment = 1804910400, fires = 0;
    while (moment < 1804910400 + 5 * 86400) {
        int64_t next = cron_next(&cron, moment);
        EXPECT(next > moment && next - moment <= 19 * 3600 + 4 * 3600);
        moment = next;
        fires++;
    }
    EXPECT_EQ(fires, 10);
    arena_free(arena);
}

static const struct {
    const char *name, *rule;
} table[] = {
#include "base/zone_table.inc"
};

TEST(cron, every_zone_of_the_table_can_be_read)
{
    struct zone zone;
    for (size_t i = 0; i < array_length(table); i++) {
        EXPECT(zone_find(slice_text(table[i].name), &zone));
        EXPECT(zone.offset >= -12 * 3600 && zone.offset <= 14 * 3600);
        EXPECT(i == 0 || strcmp(table[i - 1].name, table[i].name) < 0);
    }
    EXPECT(!zone_find(slice_text("america/new_york"), &zone));
}

/* Counting goes by whole days where it can: it must come to what walking comes to. */
TEST(cron, as_many_are_counted_as_there_are)
{
    static const char *const texts[] = {
        "@every 7m",
        "*/7 * * * *",
        "5,10 */3 * * 1-5",
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "CRON_TZ=America/Havana 0 0,5 * * *",
        "CRON_TZ=America/New_York */20 1 * 3,11 *",
        "0 0 29 2 *",
        "0 0 30 2 *",
    };
    struct arena *arena = arena_new(0);
    struct random random;
    random_seed(&random, test_seed(0));
    for (size_t i = 0; i < 400; i++) {
        struct cron cron;
        EXPECT(cron_parse(texts[i % array_length(texts)], arena, &cron) == NULL);
        int64_t after = 1772000000 + (int64_t)random_below(&random, 400 * 86400);
        int64_t until = after + (int64_t)random_below(&random, 10 * 86400);
        int64_t count = 0, next = after;
        while ((next = cron_next(&cron, next)) != CRON_NEVER && next <= until)
            count++;
        EXPECT_EQ(cron_count(&cron, after, until, INT64_MAX), count);
        EXPECT_EQ(cron_count(&cron, after, until, 3), count < 3 ? count : 3);
    }
    arena_free(arena);
}
