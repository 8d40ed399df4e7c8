/* text_encode.c - bytes as text: percent and base64. */
#include "base/check.h"
#include "base/text.h"

/* ---- percent ---- */

/* A space at either end of a header field is not allowed. */
static bool
is_plain(struct slice bytes, size_t at)
{
    uint8_t byte = bytes.data[at];
    if (byte == ' ')
        return at > 0 && at + 1 < bytes.length;
    return byte > 0x20 && byte <= 0x7e && byte != '%';
}

struct slice
text_percent_encode(struct arena *arena, struct slice bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    for (size_t i = 0; i < bytes.length; i++)
        length += is_plain(bytes, i) ? 1 : 3;
    uint8_t *text = arena_alloc(arena, length);
    uint8_t *at = text;
    for (size_t i = 0; i < bytes.length; i++) {
        if (is_plain(bytes, i)) {
            *at++ = bytes.data[i];
            continue;
        }
        *at++ = '%';
        *at++ = (uint8_t)digits[bytes.data[i] >> 4];
        *at++ = (uint8_t)digits[bytes.data[i] & 15];
    }
    check(at == text + length);
    return slice_of(text, length);
}

int
text_hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20; /* lower case */
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The byte that "%XX" at the start of `text` means; -1 if it is not that. */
static int
percent_value(struct slice text)
{
    if (text.length < 3 || text.data[0] != '%')
        return -1;
    int high = text_hex_value(text.data[1]);
    int low = text_hex_value(text.data[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

struct slice
text_percent_decode(struct arena *arena, struct slice text)
{
    uint8_t *bytes = arena_alloc(arena, text.length);
    size_t length = 0;
    for (size_t i = 0; i < text.length; length++) {
        int value = percent_value(slice_skip(text, i));
        bytes[length] = value < 0 ? text.data[i] : (uint8_t)value;
        i += value < 0 ? 1 : 3;
    }
    return slice_of(bytes, length);
}

/* ---- base64 ---- */

static const char standard_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Up to three bytes as up to four digits; returns how many digits. */
static size_t
encode_group(const uint8_t *bytes, size_t count, const char *digits, uint8_t *text)
{
    uint32_t word = 0;
    for (size_t i = 0; i < 3; i++)
        word = word << 8 | (i < count ? bytes[i] : 0);
    for (size_t i = 0; i < count + 1; i++)
        text[i] = (uint8_t)digits[word >> (18 - 6 * i) & 63];
    return count + 1;
}

struct slice
text_base64_encode(struct arena *arena, struct slice bytes, enum text_base64 alphabet)
{
    const char *digits = alphabet == TEXT_BASE64_URL ? url_digits : standard_digits;
    uint8_t *text = arena_alloc(arena, (bytes.length + 2) / 3 * 4);
    size_t length = 0;
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t left = bytes.length - i;
        length += encode_group(bytes.data + i, left < 3 ? left : 3, digits, text + length);
    }
    while (alphabet == TEXT_BASE64_STANDARD && length % 4 != 0)
        text[length++] = '=';
    return slice_of(text, length);
}

/* The value of a digit; 64 or more if it is none. */
static uint32_t
digit_value(uint8_t digit, enum text_base64 alphabet)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26u;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52u;
    if (digit == (alphabet == TEXT_BASE64_URL ? '-' : '+'))
        return 62;
    return digit == (alphabet == TEXT_BASE64_URL ? '_' : '/') ? 63 : 64;
}

/* Two to four digits as one to three bytes. */
static bool
decode_group(struct slice text, enum text_base64 alphabet, uint8_t *bytes)
{
    uint32_t word = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t value = i < text.length ? digit_value(text.data[i], alphabet) : 0;
        if (value >= 64)
            return false;
        word = word << 6 | value;
    }
    for (size_t i = 0; i < 3; i++) {
        uint8_t byte = (uint8_t)(word >> (16 - 8 * i));
        if (i + 1 < text.length)
            bytes[i] = byte;
        else if (byte != 0)
            return false; /* bits that encode nothing */
    }
    return true;
}

/* Takes whole padding off; what is left over is refused as digits. */
static struct slice
without_padding(struct slice text)
{
    if (text.length == 0 || text.length % 4 != 0)
        return text;
    for (int i = 0; i < 2 && text.data[text.length - 1] == '='; i++)
        text.length--;
    return text;
}

bool
text_base64_decode(struct arena *arena, struct slice text, enum text_base64 alphabet,
                   struct slice *bytes)
{
    text = without_padding(text);
    if (text.length % 4 == 1)
        return false;
    size_t length = text.length / 4 * 3 + (text.length % 4 == 0 ? 0 : text.length % 4 - 1);
    uint8_t *result = arena_alloc(arena, length);
    for (size_t group = 0; group * 4 < text.length; group++) {
        struct slice digits = slice_skip(text, group * 4);
        digits.length = digits.length < 4 ? digits.length : 4;
        if (!decode_group(digits, alphabet, result + group * 3))
            return false;
    }
    *bytes = slice_of(result, length);
    return true;
}
