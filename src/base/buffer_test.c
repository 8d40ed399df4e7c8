/* buffer_test.c - bytes go in at the end, unchanged. */
#include "base/buffer.h"

#include "base/random.h"
#include "base/test.h"

TEST(buffer, numbers_are_big_endian_and_texts_have_no_nul)
{
    struct buffer buffer = {0};
    buffer_append_u8(&buffer, 1);
    buffer_append_u16be(&buffer, 0x0203);
    buffer_append_u32be(&buffer, 0x04050607);
    buffer_append_u64be(&buffer, UINT64_C(0x08090a0b0c0d0e0f));
    buffer_append_text(&buffer, "ab");
    buffer_append_format(&buffer, "%s-%d", "c", 7);
    buffer_append(&buffer, (struct slice){0});
    EXPECT(slice_equal(buffer_slice(&buffer),
                       slice_text("\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                                  "abc-7")));
    buffer_free(&buffer);
    EXPECT_EQ(buffer_slice(&buffer).length, 0);
}

TEST(buffer, an_empty_buffer_can_be_reserved_and_cleared)
{
    struct buffer buffer = {0};
    buffer_clear(&buffer);
    EXPECT(buffer_reserve(&buffer, 0) != NULL);
    buffer_commit(&buffer, 0);
    EXPECT_EQ(buffer.length, 0);
    buffer_free(&buffer);
}

/* Method: a stream of numbered bytes is written in pieces of random sizes. */
TEST(buffer, a_stream_in_random_pieces_is_whole)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        struct buffer buffer = {0};
        for (int step = 0; step < 200; step++) {
            size_t size = random_below(&random, 300), length = buffer.length;
            uint8_t *room = buffer_reserve(&buffer, size);
            for (size_t i = 0; i < size; i++)
                room[i] = (uint8_t)((length + i) * 31 >> 2);
            buffer_commit(&buffer, size);
        }
        struct slice bytes = buffer_slice(&buffer);
        for (size_t i = 0; i < bytes.length; i++)
            EXPECT_EQ(bytes.data[i], (uint8_t)(i * 31 >> 2));
        EXPECT(buffer.capacity < 2 * 200 * 300);
        buffer_free(&buffer);
    }
}
