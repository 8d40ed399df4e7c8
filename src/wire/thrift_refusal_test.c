/* thrift_refusal_test.c - blobs that are refused, and with which error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/test.h"
#include "wire/message.h"
#include "wire/thrift.h"
#include "wire/thrift_reader.h"

static struct error *
decode_hex(struct arena *arena, const char *hex)
{
    size_t length = strlen(hex) / 2, count = 99;
    uint8_t *bytes = arena_alloc(arena, length);
    API(HistoryEvent) **events = NULL;
    for (size_t i = 0; i < length; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    struct error *err =
        thrift_decode_history(arena, ERR_CORRUPT, slice_of(bytes, length), &events, &count);
    EXPECT(err == NULL || (events == NULL && count == 99));
    return err;
}

/* An event of type 0x1b, a signal, is 0c0104 .. 00 with fields in between. */
#define EVENT "590f000a0c0000000108001e0000001b0c0104"

TEST(thrift_refusal, bytes_that_are_no_batch_are_refused_with_the_place_and_the_reason)
{
    static const struct {
        const char *hex;
        const char *message; /* behind "history blob, " */
    } cases[] = {
        {"", "byte 0 of 0: cut off"},
        {"58", "byte 1 of 1: does not begin with 0x59"},
        {"59", "byte 1 of 1: cut off"},
        {"590000", "byte 2 of 3: bytes behind the end"},
        {"5901000a", "byte 2 of 4: a type that does not exist"},
        {"5910000a", "byte 2 of 4: a type that does not exist"},
        {"5908000a0000000000", "byte 4 of 9: a field of another type"},
        {"590f000a080000000000", "byte 5 of 10: a list of another type"},
        {"590f000a0cffffffff00", "byte 9 of 10: a negative count"},
        {"590f000a0c0000000200", "byte 9 of 10: more elements than bytes are left for"},
        {"590f000a0c000000010000", "byte 10 of 11: an event without a type"},
        {"590f000a0c0000000108001e0000001b0000",
         "byte 17 of 18: an event without the attributes of its type"},
        {"590f000a0c0000000108001e0000002a0000",
         "byte 16 of 18: an event of a type that does not exist"},
        {"590f000a0c0000000108001effffffff0000",
         "byte 16 of 18: an event of a type that does not exist"},
        {"590f000a0c0000000108001e0000001c0c0104000000",
         "byte 21 of 22: an event without the attributes of its type"},
        {EVENT "000c003200", "byte 23 of 24: an event with two kinds of attributes"},
        {"590f000a0c0000000108001e0000001b0a0104", "byte 19 of 19: a field of another type"},
        {EVENT "0a000a", "byte 22 of 22: a field of another type"},
        {EVENT "0b000affffffff", "byte 26 of 26: a negative length"},
        {EVENT "0b000a00000002", "byte 26 of 26: cut off"},
        {EVENT "0b000a00000001ff", "byte 27 of 27: a text that is not UTF-8"},
        {EVENT "0b000a0000000100", "byte 27 of 27: a text with a NUL byte"},
        {"590f000a0c0000000108001e000000030c004608000affffffff",
         "byte 26 of 26: a number that no enum has"},
        {"590f000a0c0000000108001e000000030c004608000a7fffffff",
         "byte 26 of 26: a number that no enum has"},
        {"590f000a0c0000000108001e000000040c00500a001e0000000080000000",
         "byte 30 of 30: a number of more than 32 bits"},
        {"590f000a0c0000000108001e000000110c00b40a00147fffffffffffffff",
         "byte 30 of 30: a duration of more than 10000 years"},
        {"590f000a0c0000000108001e000000170c012c02003202",
         "byte 23 of 23: a bool that is neither 0 nor 1"},
        {"590f000a0c0000000108001e000000290c01c20c00140d000a0b0800000000",
         "byte 27 of 31: a map of other types"},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(cases); i++) {
        struct error *err = decode_hex(arena, cases[i].hex);
        EXPECT_KIND(err, ERR_CORRUPT);
        EXPECT_TEXT(err->message, arena_format(arena, "history blob, %s", cases[i].message));
    }
}

ARENA_TEST(thrift_refusal, the_error_is_of_the_kind_asked_for)
{
    API(HistoryEvent) **events;
    size_t count;
    EXPECT_KIND(thrift_decode_history(arena, ERR_BAD_REQUEST, (struct slice){0}, &events, &count),
                ERR_BAD_REQUEST);
}

ARENA_TEST(thrift_refusal, an_empty_batch_is_a_batch)
{
    API(HistoryEvent) **events;
    size_t count = 99;
    EXPECT_OK(thrift_decode_history(arena, ERR_CORRUPT, slice_of("\x59\0", 2), &events, &count));
    EXPECT_EQ(count, 0);
}

/* A blob whose only field is unknown and holds `depth` lists in one another. */
static struct error *
decode_nested(struct arena *arena, unsigned depth)
{
    scoped(buffer_free) struct buffer blob = {0};
    API(HistoryEvent) **events;
    size_t count;
    buffer_append(&blob, slice_of("\x59\x0f\x00\x01", 4));
    for (unsigned i = 1; i < depth; i++)
        buffer_append(&blob, slice_of("\x0f\0\0\0\x01", 5));
    buffer_append(&blob, slice_of("\x0f\0\0\0\0\0", 6));
    return thrift_decode_history(arena, ERR_CORRUPT, buffer_slice(&blob), &events, &count);
}

/* The depth is the sender's choice, the stack is a fiber's. */
ARENA_TEST(thrift_refusal, what_is_skipped_may_not_nest_without_end)
{
    EXPECT_OK(decode_nested(arena, THRIFT_DEPTH_MAX));
    struct error *err = decode_nested(arena, THRIFT_DEPTH_MAX + 1);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "nested too deep") != NULL);
    EXPECT_KIND(decode_nested(arena, 1000000), ERR_CORRUPT);
}

/* A million empty reset points are a megabyte here and would be a hundred in memory. */
TEST(thrift_refusal, a_small_blob_cannot_take_much_memory)
{
    enum { COUNT = 1000000 };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    scoped(buffer_free) struct buffer blob = {0};
    API(HistoryEvent) **events;
    size_t count;
    buffer_append(&blob, slice_of("\x59\x0f\0\x0a\x0c\0\0\0\x01\x08\0\x1e\0\0\0\0", 16));
    buffer_append(&blob, slice_of("\x0c\0\x28\x0c\0\x82\x0f\0\x0a\x0c", 10));
    buffer_append_u32be(&blob, COUNT);
    memset(buffer_reserve(&blob, COUNT + 5), 0, COUNT + 5);
    buffer_commit(&blob, COUNT + 5);
    struct error *err =
        thrift_decode_history(arena, ERR_CORRUPT, buffer_slice(&blob), &events, &count);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "too much memory") != NULL);
    size_t most = MESSAGE_MEMORY_FREE + MESSAGE_MEMORY_FACTOR * blob.length;
    EXPECT(arena_footprint(arena) < 2 * most);
}
