/* crc_test.c - CRC-32C against published values and against itself. */
#include "base/crc.h"

#include "base/random.h"
#include "base/test.h"

/* Of RFC 3720, appendix B.4, and the usual check value. */
static void
expect_published(uint32_t (*crc)(uint32_t, struct slice))
{
    uint8_t bytes[32];
    memset(bytes, 0, sizeof bytes);
    EXPECT_EQ(crc(0, slice_of(bytes, 32)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    EXPECT_EQ(crc(0, slice_of(bytes, 32)), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    EXPECT_EQ(crc(0, slice_of(bytes, 32)), 0x46dd794e);
    EXPECT_EQ(crc(0, slice_text("123456789")), 0xe3069283);
    EXPECT_EQ(crc(0, slice_text("")), 0);
}

TEST(crc, published_values_come_out_by_table_and_by_instruction)
{
    expect_published(crc32c_portable);
    expect_published(crc32c);
}

TEST(crc, pieces_give_the_same_as_the_whole_at_any_alignment)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        uint8_t bytes[8000]; /* several times what is done side by side */
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)random_next(&random);
        for (int i = 0; i < 300; i++) {
            size_t start = random_below(&random, sizeof bytes);
            size_t length = random_below(&random, sizeof bytes - start + 1);
            size_t cut = random_below(&random, length + 1);
            uint32_t whole = crc32c_portable(0, slice_of(bytes + start, length));
            uint32_t part = crc32c(0, slice_of(bytes + start, cut));
            EXPECT_EQ(crc32c(part, slice_of(bytes + start + cut, length - cut)), whole);
        }
    }
}
