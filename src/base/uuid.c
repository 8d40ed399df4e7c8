/* uuid.c - making, reading and writing uuids. */
#include "base/uuid.h"

#include "base/check.h"
#include "base/text.h"

static void
set_version(struct uuid *uuid, uint8_t version)
{
    uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0f) | version << 4);
    uuid->bytes[8] = (uuid->bytes[8] & 0x3f) | 0x80; /* the variant of the RFC */
}

struct uuid
uuid_v4(const uint8_t random[16])
{
    struct uuid uuid;
    memcpy(uuid.bytes, random, sizeof uuid.bytes);
    set_version(&uuid, 4);
    return uuid;
}

struct uuid
uuid_v7(int64_t wall_ms, const uint8_t random[10])
{
    check(wall_ms >= 0 && wall_ms < INT64_C(1) << 48);
    struct uuid uuid;
    for (int i = 0; i < 6; i++)
        uuid.bytes[i] = (uint8_t)(wall_ms >> 8 * (5 - i));
    memcpy(uuid.bytes + 6, random, 10);
    set_version(&uuid, 7);
    return uuid;
}

static bool
has_dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

bool
uuid_parse(struct slice text, struct uuid *uuid)
{
    struct uuid result;
    if (text.length != UUID_TEXT_LENGTH)
        return false;
    const uint8_t *at = text.data;
    for (size_t i = 0; i < sizeof result.bytes; i++) {
        if (has_dash_before(i) && *at++ != '-')
            return false;
        int high = text_hex_value(*at++);
        int low = text_hex_value(*at++);
        if (high < 0 || low < 0)
            return false;
        result.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *uuid = result;
    return true;
}

void
uuid_format(const struct uuid *uuid, char text[UUID_TEXT_LENGTH + 1])
{
    static const char digits[] = "0123456789abcdef";
    char *at = text;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        if (has_dash_before(i))
            *at++ = '-';
        *at++ = digits[uuid->bytes[i] >> 4];
        *at++ = digits[uuid->bytes[i] & 15];
    }
    *at = '\0';
    check(at == text + UUID_TEXT_LENGTH);
}
