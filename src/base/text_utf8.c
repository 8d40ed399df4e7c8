/* text_utf8.c - strict UTF-8.
 *
 * The lead byte gives the length and the range in which the second byte must lie; that range is
 * what keeps overlong forms, surrogates and what lies past U+10FFFF out. */
#include "base/text.h"

struct lead {
    uint8_t first, last; /* lead bytes of this row */
    uint8_t length;
    uint8_t low, high; /* of the second byte */
};

static const struct lead leads[] = {
    {0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct lead *
lead_of(uint8_t byte)
{
    for (size_t i = 0; i < array_length(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    return NULL;
}

size_t
text_utf8_sequence(struct slice bytes)
{
    if (bytes.length == 0)
        return 0;
    const struct lead *lead = lead_of(bytes.data[0]);
    if (lead == NULL || lead->length > bytes.length)
        return 0;
    if (lead->length > 1 && (bytes.data[1] < lead->low || bytes.data[1] > lead->high))
        return 0;
    for (size_t i = 2; i < lead->length; i++)
        if ((bytes.data[i] & 0xc0) != 0x80)
            return 0;
    return lead->length;
}

/* Most text is ASCII: eight bytes at a time as long as no top bit is set. */
static size_t
ascii_length(struct slice bytes)
{
    size_t length = 0;
    for (uint64_t word; length + sizeof word <= bytes.length; length += sizeof word) {
        memcpy(&word, bytes.data + length, sizeof word);
        if ((word & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    while (length < bytes.length && bytes.data[length] < 0x80)
        length++;
    return length;
}

bool
text_is_utf8(struct slice bytes, size_t *bad_offset)
{
    struct slice rest = bytes;
    while (rest.length > 0) {
        size_t good = ascii_length(rest);
        if (good == 0)
            good = text_utf8_sequence(rest);
        if (good == 0) {
            if (bad_offset != NULL)
                *bad_offset = bytes.length - rest.length;
            return false;
        }
        rest = slice_skip(rest, good);
    }
    return true;
}
