/* cron_fuzz.c - any text as a cron schedule, asked at any moment.
 *
 * The first bytes are the moment. What is accepted fires later than asked, on a whole minute (but
 * for "@every"), and nothing fires between two fires that follow each other. */
#include <string.h>

#include "base/check.h"
#include "base/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOMENT_MAX ((int64_t)1 << 38)

static void
try_fires(const struct cron *cron, int64_t after)
{
    int64_t first = cron_next(cron, after);
    if (first == CRON_NEVER)
        return;
    check(first > after);
    check(cron->every != 0 || first % 60 == 0 || cron->zone.offset % 60 != 0);
    int64_t middle = after + (first - after) / 2;
    check(cron->every != 0 || cron_next(cron, middle) == first);
    int64_t second = cron_next(cron, first);
    check(second == CRON_NEVER || second > first);
    check(second == CRON_NEVER || cron_next_from(cron, after, first + 1) == second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t moment = 0;
    if (size < sizeof moment)
        return 0;
    memcpy(&moment, data, sizeof moment);
    struct arena *arena = arena_new(0);
    char *text = arena_alloc(arena, size - sizeof moment + 1);
    memcpy(text, data + sizeof moment, size - sizeof moment);
    text[size - sizeof moment] = '\0';
    struct cron cron;
    const char *fault = cron_parse(text, arena, &cron);
    check(fault == NULL || fault[0] != '\0');
    if (fault == NULL)
        try_fires(&cron, moment % MOMENT_MAX);
    arena_free(arena);
    return 0;
}
