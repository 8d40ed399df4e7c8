/* farm.c - the 32-bit fingerprint of FarmHash ("mk" flavour), by Geoff Pike, published under the
 * MIT licence. Written here from the algorithm: four cases by length, all built from one mixing
 * step.
 *
 * All words are read little-endian and may overlap; short inputs take words from both ends. */
#include "base/farm.h"

#include "base/check.h"

#define FACTOR_A UINT32_C(0xcc9e2d51)
#define FACTOR_B UINT32_C(0x1b873593)
#define ADDEND   UINT32_C(0xe6546b64)

static uint32_t
rotate(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static uint32_t
word_at(struct slice bytes, size_t offset)
{
    const uint8_t *at = bytes.data + offset;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t
scramble(uint32_t word)
{
    return rotate(word * FACTOR_A, 17) * FACTOR_B;
}

/* The step: one word goes into the state. */
static uint32_t
mix_scrambled(uint32_t state, uint32_t scrambled)
{
    return rotate(state ^ scrambled, 19) * 5 + ADDEND;
}

static uint32_t
mix(uint32_t word, uint32_t state)
{
    return mix_scrambled(state, scramble(word));
}

static uint32_t
finish(uint32_t state)
{
    state = (state ^ state >> 16) * UINT32_C(0x85ebca6b);
    state = (state ^ state >> 13) * UINT32_C(0xc2b2ae35);
    return state ^ state >> 16;
}

static uint32_t
hash_up_to_4(struct slice bytes)
{
    uint32_t sum = 0, state = 9;
    for (size_t i = 0; i < bytes.length; i++) {
        sum = sum * FACTOR_A + (uint32_t)(int8_t)bytes.data[i]; /* bytes are signed here */
        state ^= sum;
    }
    return finish(mix(sum, mix((uint32_t)bytes.length, state)));
}

static uint32_t
hash_up_to_12(struct slice bytes)
{
    uint32_t length = (uint32_t)bytes.length;
    uint32_t first = length + word_at(bytes, 0);
    uint32_t last = length * 5 + word_at(bytes, bytes.length - 4);
    uint32_t middle = 9 + word_at(bytes, bytes.length >> 1 & 4);
    return finish(mix(middle, mix(last, mix(first, length * 5))));
}

static uint32_t
hash_up_to_24(struct slice bytes)
{
    size_t half = bytes.length >> 1;
    uint32_t first = word_at(bytes, 0), second = word_at(bytes, 4);
    uint32_t middle = word_at(bytes, half);
    uint32_t before_last = word_at(bytes, bytes.length - 8),
             last = word_at(bytes, bytes.length - 4);
    uint32_t state = middle * FACTOR_A + (uint32_t)bytes.length;
    uint32_t added = rotate(word_at(bytes, half - 4), 12) + last;
    state = mix(before_last, state) + added;
    added = rotate(added, 3) + before_last;
    state = mix(first, state) + added;
    added = rotate(added + last, 12) + middle;
    return finish(mix(second, state) + added);
}

struct lanes {
    uint32_t h, g, f;
};

/* The last twenty bytes go in first. */
static struct lanes
lanes_begin(struct slice bytes)
{
    uint32_t length = (uint32_t)bytes.length;
    struct lanes lanes = {length, FACTOR_A * length, FACTOR_A * length};
    lanes.h = mix(word_at(bytes, bytes.length - 4), lanes.h);
    lanes.h = mix(word_at(bytes, bytes.length - 16), lanes.h);
    lanes.g = mix(word_at(bytes, bytes.length - 8), lanes.g);
    lanes.g = mix(word_at(bytes, bytes.length - 12), lanes.g);
    lanes.f = rotate(lanes.f + scramble(word_at(bytes, bytes.length - 20)), 19) + 113;
    return lanes;
}

static void
lanes_take(struct lanes *lanes, struct slice block)
{
    uint32_t a = word_at(block, 0), b = word_at(block, 4), c = word_at(block, 8);
    uint32_t d = word_at(block, 12), e = word_at(block, 16);
    lanes->h = mix(d, lanes->h + a) + e;
    lanes->g = mix(c, lanes->g + b) + a;
    lanes->f = mix(b + e * FACTOR_A, lanes->f + c) + d;
    lanes->f += lanes->g;
    lanes->g += lanes->f;
}

static uint32_t
lanes_join(uint32_t state, uint32_t lane)
{
    uint32_t stirred = rotate(rotate(lane, 11) * FACTOR_A, 17) * FACTOR_A;
    state = rotate(state + stirred, 19) * 5 + ADDEND;
    return rotate(state, 17) * FACTOR_A;
}

static uint32_t
hash_long(struct slice bytes)
{
    check(bytes.length > 24);
    struct lanes lanes = lanes_begin(bytes);
    size_t blocks = (bytes.length - 1) / 20;
    for (size_t i = 0; i < blocks; i++)
        lanes_take(&lanes, slice_skip(bytes, i * 20));
    return lanes_join(lanes_join(lanes.h, lanes.g), lanes.f);
}

uint32_t
farm_fingerprint32(struct slice bytes)
{
    if (bytes.length <= 4)
        return hash_up_to_4(bytes);
    if (bytes.length <= 12)
        return hash_up_to_12(bytes);
    return bytes.length <= 24 ? hash_up_to_24(bytes) : hash_long(bytes);
}
