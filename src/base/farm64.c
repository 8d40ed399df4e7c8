/* farm64.c - the 64-bit fingerprint of FarmHash ("na" flavour), by Geoff Pike, published under the
 * MIT licence. Written here from the algorithm: five cases by length.
 *
 * All words are read little-endian and may overlap; inputs of up to 64 bytes take words from both
 * ends, longer ones go through a state of seven words, 64 bytes at a time, the last 64 at the end.
 */
#include "base/check.h"
#include "base/farm.h"

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

static uint64_t
rotate(uint64_t value, int bits)
{
    return value >> bits | value << (64 - bits);
}

static uint64_t
shift_mix(uint64_t value)
{
    return value ^ value >> 47;
}

static uint64_t
number_at(struct slice bytes, size_t offset, int width)
{
    uint64_t number = 0;
    check(offset + (size_t)width <= bytes.length);
    for (int i = width - 1; i >= 0; i--)
        number = number << 8 | bytes.data[offset + (size_t)i];
    return number;
}

static uint64_t
word_at(struct slice bytes, size_t offset)
{
    return number_at(bytes, offset, 8);
}

static uint64_t
join(uint64_t one, uint64_t other, uint64_t factor)
{
    uint64_t first = shift_mix((one ^ other) * factor);
    return shift_mix((other ^ first) * factor) * factor;
}

static uint64_t
hash_up_to_16(struct slice bytes)
{
    size_t length = bytes.length;
    uint64_t factor = K2 + length * 2;
    if (length >= 8) {
        uint64_t first = word_at(bytes, 0) + K2, last = word_at(bytes, length - 8);
        return join(rotate(last, 37) * factor + first, (rotate(first, 25) + last) * factor, factor);
    }
    if (length >= 4)
        return join(length + (number_at(bytes, 0, 4) << 3), number_at(bytes, length - 4, 4),
                    factor);
    if (length == 0)
        return K2;
    uint32_t low = bytes.data[0] + ((uint32_t)bytes.data[length >> 1] << 8);
    uint32_t high = (uint32_t)length + ((uint32_t)bytes.data[length - 1] << 2);
    return shift_mix(low * K2 ^ high * K0) * K2;
}

static uint64_t
hash_up_to_32(struct slice bytes)
{
    size_t length = bytes.length;
    uint64_t factor = K2 + length * 2;
    uint64_t a = word_at(bytes, 0) * K1, b = word_at(bytes, 8);
    uint64_t c = word_at(bytes, length - 8) * factor, d = word_at(bytes, length - 16) * K2;
    return join(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, factor);
}

static uint64_t
hash_up_to_64(struct slice bytes)
{
    size_t length = bytes.length;
    uint64_t factor = K2 + length * 2;
    uint64_t a = word_at(bytes, 0) * K2, b = word_at(bytes, 8);
    uint64_t c = word_at(bytes, length - 8) * factor, d = word_at(bytes, length - 16) * K2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
    uint64_t z = join(y, a + rotate(b + K2, 18) + c, factor);
    uint64_t e = word_at(bytes, 16) * factor, f = word_at(bytes, 24);
    uint64_t g = (y + word_at(bytes, length - 32)) * factor;
    uint64_t h = (z + word_at(bytes, length - 24)) * factor;
    return join(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

struct pair {
    uint64_t first, second;
};

struct farm_state {
    uint64_t x, y, z;
    struct pair v, w;
};

/* 32 bytes and two seeds. */
static struct pair
hash_weakly(struct slice bytes, size_t offset, uint64_t a, uint64_t b)
{
    uint64_t last = word_at(bytes, offset + 24);
    a += word_at(bytes, offset);
    b = rotate(b + a + last, 21);
    uint64_t before = a;
    a += word_at(bytes, offset + 8) + word_at(bytes, offset + 16);
    b += rotate(a, 44);
    return (struct pair){a + last, b + before};
}

/* 64 bytes go into the state; the last ones with another factor and weight. */
static void
state_take(struct farm_state *state, struct slice bytes, size_t at, uint64_t factor,
           uint64_t weight)
{
    uint64_t x = rotate(state->x + state->y + state->v.first + word_at(bytes, at + 8), 37) * factor;
    uint64_t y = rotate(state->y + state->v.second + word_at(bytes, at + 48), 42) * factor;
    x ^= state->w.second * weight;
    y += state->v.first * weight + word_at(bytes, at + 40);
    uint64_t z = rotate(state->z + state->w.first, 33) * factor;
    state->v = hash_weakly(bytes, at, state->v.second * factor, x + state->w.first);
    state->w = hash_weakly(bytes, at + 32, z + state->w.second, y + word_at(bytes, at + 16));
    state->x = z;
    state->y = y;
    state->z = x;
}

static uint64_t
hash_long(struct slice bytes)
{
    check(bytes.length > 64);
    struct farm_state state = {.x = 81 * K2 + word_at(bytes, 0), .y = 81 * K1 + 113};
    state.z = shift_mix(state.y * K2 + 113) * K2;
    size_t rest = (bytes.length - 1) & 63;
    size_t end = bytes.length - 1 - rest;
    for (size_t at = 0; at < end; at += 64)
        state_take(&state, bytes, at, K1, 1);
    uint64_t factor = K1 + ((state.z & 0xff) << 1);
    state.w.first += rest;
    state.v.first += state.w.first;
    state.w.first += state.v.first;
    state_take(&state, bytes, bytes.length - 64, factor, 9);
    return join(join(state.v.first, state.w.first, factor) + shift_mix(state.y) * K0 + state.z,
                join(state.v.second, state.w.second, factor) + state.x, factor);
}

uint64_t
farm_fingerprint64(struct slice bytes)
{
    if (bytes.length <= 16)
        return hash_up_to_16(bytes);
    if (bytes.length <= 32)
        return hash_up_to_32(bytes);
    return bytes.length <= 64 ? hash_up_to_64(bytes) : hash_long(bytes);
}
