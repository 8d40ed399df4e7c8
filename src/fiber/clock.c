/* clock.c - time, randomness and ids, asked from the platform of the current loop. */
#include "fiber/clock.h"

#include "base/check.h"
#include "fiber/core.h"

int64_t
clock_wall(void)
{
    return platform_clock_wall(core_loop_current());
}

void
clock_skip(int64_t nanoseconds)
{
    platform_clock_skip(loop_self(), nanoseconds);
}

int64_t
clock_monotonic(void)
{
    return loop_self()->now;
}

void
entropy_bytes(void *bytes, size_t count)
{
    platform_entropy(core_loop_current(), bytes, count);
}

uint64_t
entropy_u64(void)
{
    uint64_t number;
    entropy_bytes(&number, sizeof number);
    return number;
}

/* Draws again where the last, incomplete run of `bound` numbers would favour the small ones. */
uint64_t
entropy_below(uint64_t bound)
{
    check(bound > 0);
    uint64_t surplus = -bound % bound; /* 2^64 mod bound */
    for (;;) {
        uint64_t number = entropy_u64();
        if (number >= surplus)
            return number % bound;
    }
}

struct uuid
uuid_new_v4(void)
{
    uint8_t random[16];
    entropy_bytes(random, sizeof random);
    return uuid_v4(random);
}

struct uuid
uuid_new_v7(void)
{
    uint8_t random[10];
    entropy_bytes(random, sizeof random);
    return uuid_v7(clock_wall() / NS_PER_MS, random);
}

char *
uuid_new_text(struct arena *arena)
{
    struct uuid uuid = uuid_new_v4();
    char *text = arena_zalloc(arena, UUID_TEXT_LENGTH + 1, 1);
    uuid_format(&uuid, text);
    return text;
}
