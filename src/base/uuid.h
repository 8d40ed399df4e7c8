/* uuid.h - universally unique ids (RFC 9562). Randomness and time are the caller's: nothing here
 * reads a clock. */
#ifndef CADENZA_BASE_UUID_H
#define CADENZA_BASE_UUID_H

#include "base/compiler.h"
#include "base/slice.h"

#define UUID_TEXT_LENGTH 36

struct uuid {
    uint8_t bytes[16];
};

/* Version 4: random but for the six bits that say so. */
struct uuid uuid_v4(const uint8_t random[16]);
/* Version 7: milliseconds since 1970 (48 bits), then random: younger ones sort behind older ones.
 */
struct uuid uuid_v7(int64_t wall_ms, const uint8_t random[10]);
/* 8-4-4-4-12 hex digits of either case, nothing before or behind; any version. */
must_use bool uuid_parse(struct slice text, struct uuid *uuid);
/* Lower case, NUL-terminated. */
void uuid_format(const struct uuid *uuid, char text[UUID_TEXT_LENGTH + 1]);

#endif
