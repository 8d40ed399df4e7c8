/* uuid_test.c - making, reading and writing uuids. */
#include "base/uuid.h"

#include "base/random.h"
#include "base/test.h"

TEST(uuid, version_4_is_random_but_for_version_and_variant)
{
    uint8_t ones[16];
    memset(ones, 0xff, sizeof ones);
    char text[UUID_TEXT_LENGTH + 1];
    struct uuid uuid = uuid_v4(ones);
    uuid_format(&uuid, text);
    EXPECT_TEXT(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    uuid = uuid_v4((const uint8_t[16]){0});
    uuid_format(&uuid, text);
    EXPECT_TEXT(text, "00000000-0000-4000-8000-000000000000");
}

TEST(uuid, version_7_begins_with_the_time)
{
    /* The example of RFC 9562, appendix A.6. */
    const uint8_t random[10] = {0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f};
    struct uuid uuid = uuid_v7(INT64_C(0x017f22e279b0), random);
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    EXPECT_TEXT(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    struct uuid later = uuid_v7(INT64_C(0x017f22e279b1), (const uint8_t[10]){0});
    EXPECT(memcmp(uuid.bytes, later.bytes, 16) < 0);
}

TEST(uuid, what_was_written_is_read_back_in_either_case)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        struct uuid uuid, again;
        for (int i = 0; i < 16; i++)
            uuid.bytes[i] = (uint8_t)random_next(&random);
        char text[UUID_TEXT_LENGTH + 1];
        uuid_format(&uuid, text);
        EXPECT(uuid_parse(slice_text(text), &again) && memcmp(&uuid, &again, 16) == 0);
        for (char *at = text; *at != '\0'; at++)
            *at = *at >= 'a' ? (char)(*at - 32) : *at;
        EXPECT(uuid_parse(slice_text(text), &again) && memcmp(&uuid, &again, 16) == 0);
    }
}

TEST(uuid, what_is_nearly_a_uuid_is_refused)
{
    static const char *const wrong[] = {
        "",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "017f22e2079b0-7cc3-98c4-dc0c0c07398f",
        "017f22e-279b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398 ",
        "017f22e2-79b0-7cc3-98c4-dc0c0c0739@f",
        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
        "017f22e279b07cc398c4dc0c0c07398f",
    };
    for (size_t i = 0; i < array_length(wrong); i++) {
        struct uuid uuid = {{1}};
        EXPECT(!uuid_parse(slice_text(wrong[i]), &uuid));
        EXPECT_EQ(uuid.bytes[0], 1);
    }
}
