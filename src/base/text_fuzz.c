/* text_fuzz.c - any bytes through the readers of text.h and uuid.h.
 *
 * Nothing may read or write past its end, and what a reader accepted must survive being written and
 * read again. */
#include "base/check.h"
#include "base/text.h"
#include "base/uuid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_utf8(struct slice input)
{
    size_t bad = SIZE_MAX, at = 0;
    bool is_valid = text_is_utf8(input, &bad);
    for (size_t step = 1; at < input.length && step > 0; at += step)
        step = text_utf8_sequence(slice_skip(input, at));
    check(is_valid == (at == input.length));
    check(is_valid || bad <= at);
}

static void
try_percent(struct arena *arena, struct slice input)
{
    struct slice encoded = text_percent_encode(arena, input);
    check(slice_equal(text_percent_decode(arena, encoded), input));
    struct slice decoded = text_percent_decode(arena, input);
    check(decoded.length <= input.length);
}

static void
try_base64(struct arena *arena, struct slice input, enum text_base64 alphabet)
{
    struct slice bytes, text = text_base64_encode(arena, input, alphabet);
    check(text_base64_decode(arena, text, alphabet, &bytes) && slice_equal(bytes, input));
    if (!text_base64_decode(arena, input, alphabet, &bytes))
        return;
    text = text_base64_encode(arena, bytes, alphabet);
    struct slice shorter = text.length < input.length ? text : input;
    check(shorter.length == 0 || memcmp(text.data, input.data, shorter.length) == 0);
}

static void
try_uuid(struct slice input)
{
    struct uuid uuid, again;
    if (!uuid_parse(input, &uuid))
        return;
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    check(uuid_parse(slice_text(text), &again) && memcmp(&uuid, &again, sizeof uuid) == 0);
}

static void
try_numbers(struct arena *arena, struct slice input)
{
    int64_t number, again;
    uint64_t natural;
    if (text_parse_int64(input, -1000, 1000, &number))
        check(number >= -1000 && number <= 1000);
    if (text_parse_uint64(input, 0, UINT64_MAX, &natural))
        check(input.data[0] >= '0' && input.data[0] <= '9');
    if (text_parse_duration(input, &number)) {
        char *text = text_format_duration(arena, number);
        check(text_parse_duration(slice_text(text), &again) && again == number);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(size == 0 ? NULL : data, size);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    try_utf8(input);
    try_percent(arena, input);
    try_base64(arena, input, TEXT_BASE64_STANDARD);
    try_base64(arena, input, TEXT_BASE64_URL);
    try_uuid(input);
    try_numbers(arena, input);
    return 0;
}
