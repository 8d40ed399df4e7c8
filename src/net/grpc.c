/* grpc.c - timeouts and message frames: the small texts and numbers of gRPC, without any state.
 *
 * Everything here reads bytes from outside, so each reader says whether all of them were well
 * formed. */
#include "net/grpc.h"

#include "base/check.h"

static const struct {
    char letter;
    int64_t nanoseconds;
} units[] = {
    {'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000},
    {'m', 1000000},       {'u', 1000},        {'n', 1},
};

#define TIMEOUT_DIGITS_MAX 8
#define TIMEOUT_NUMBER_MAX 99999999

/* Length of one unit in ns; 0: no such letter. */
static int64_t
unit_of(uint8_t letter)
{
    for (size_t i = 0; i < array_length(units); i++)
        if (units[i].letter == (char)letter)
            return units[i].nanoseconds;
    return 0;
}

bool
grpc_timeout_parse(struct slice text, int64_t *nanoseconds)
{
    if (text.length < 2 || text.length > TIMEOUT_DIGITS_MAX + 1)
        return false;
    int64_t number = 0;
    for (size_t i = 0; i < text.length - 1; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (text.data[i] - '0');
    }
    int64_t unit = unit_of(text.data[text.length - 1]);
    if (unit == 0)
        return false;
    if (__builtin_mul_overflow(number, unit, nanoseconds))
        *nanoseconds = INT64_MAX;
    return true;
}

const char *
grpc_timeout_format(int64_t nanoseconds, struct arena *arena)
{
    if (nanoseconds <= 0)
        return "0n";
    for (size_t i = 0; i < array_length(units); i++) {
        int64_t number = nanoseconds / units[i].nanoseconds;
        if (nanoseconds % units[i].nanoseconds == 0 && number <= TIMEOUT_NUMBER_MAX)
            return arena_format(arena, "%d%c", (int)number, units[i].letter);
    }
    for (size_t i = array_length(units); i-- > 0;) {
        int64_t unit = units[i].nanoseconds;
        int64_t number = nanoseconds / unit + (nanoseconds % unit != 0);
        if (number <= TIMEOUT_NUMBER_MAX)
            return arena_format(arena, "%d%c", (int)number, units[i].letter);
    }
    unreachable("99999999 hours are more than 2^63 ns");
}

enum grpc_frame
grpc_prefix_parse(const uint8_t prefix[GRPC_PREFIX_SIZE], size_t message_max, size_t *length)
{
    *length = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
              (size_t)prefix[4];
    if (prefix[0] > 1)
        return GRPC_FRAME_BAD_FLAG;
    if (prefix[0] == 1)
        return GRPC_FRAME_COMPRESSED;
    return *length > message_max ? GRPC_FRAME_TOO_LARGE : GRPC_FRAME_OK;
}

void
grpc_prefix_write(uint8_t prefix[GRPC_PREFIX_SIZE], size_t length)
{
    check(length <= UINT32_MAX);
    prefix[0] = 0;
    prefix[1] = (uint8_t)(length >> 24);
    prefix[2] = (uint8_t)(length >> 16);
    prefix[3] = (uint8_t)(length >> 8);
    prefix[4] = (uint8_t)length;
}
