/* route_sim_test.c - questions and values between owners in each way to send them: whole, as bytes,
 * and so that some are lost or come twice. */
#include <string.h>

#include "base/memory.h"
#include "base/test.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "route/ask.h"
#include "route/tell.h"
#include "wire/message.h"
#include "wire/names.h"

#define ROUNDS 2000

struct counts {
    struct route_service service;
    unsigned served, taken, refused, lost, doubled;
    const char *seen; /* where the last request lay */
};

/* --- a question: the text back, or a refusal with it ---- */

static struct error *
serve_echo(void *context, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    struct counts *counts = context;
    const INTERNAL(Error) *request = argument;
    INTERNAL(Error) *answer = result;
    EXPECT(route_is_here(owner));
    counts->served++;
    counts->seen = request->kind;
    if (strcmp(request->kind, "no") == 0) {
        struct error *err = error_new(arena, ERR_ALREADY_STARTED, "it is there: %s", request->kind);
        err->detail = slice_text("detail");
        return err;
    }
    answer->kind = (char *)arena_text(arena, request->kind);
    return NULL;
}

static const struct route_question echo = {
    .name = "test.echo",
    .request = INTERNAL_TYPE(error),
    .answer = INTERNAL_TYPE(error),
    .serve = serve_echo,
};
static const struct route_question echo_again = {
    .name = "test.echo_again",
    .request = INTERNAL_TYPE(error),
    .answer = INTERNAL_TYPE(error),
    .serve = serve_echo,
    .may_come_twice = true,
};

static struct error *
ask(struct counts *counts, const struct route_question *question, const char *text,
    struct arena *arena, const char **said)
{
    INTERNAL(Error) request = INTERNAL_VALUE(ERROR__INIT);
    INTERNAL(Error) answer = INTERNAL_VALUE(ERROR__INIT);
    request.kind = (char *)text;
    struct error *err =
        route_ask(owner_of_shard(1), &counts->service, question, &request, arena, &answer);
    *said = answer.kind;
    return err;
}

/* --- a value: a number ---- */

struct number_value {
    struct route_value value;
    int64_t number;
};

static struct slice
number_encode(const struct route_value *value, struct arena *arena)
{
    const struct number_value *number = container_of(value, struct number_value, value);
    return arena_slice(arena, slice_of(&number->number, sizeof number->number));
}

static struct route_value *
number_decode(struct slice bytes)
{
    struct number_value *number = memory_zalloc(1, sizeof *number);
    memcpy(&number->number, bytes.data, sizeof number->number);
    return &number->value;
}

static void
number_free(struct route_value *value)
{
    memory_free(container_of(value, struct number_value, value));
}

static void
number_take(void *context, struct route_value *value)
{
    struct counts *counts = context;
    counts->taken += (unsigned)container_of(value, struct number_value, value)->number;
    number_free(value);
}

static const struct route_notice number_notice = {
    .name = "test.number",
    .encode = number_encode,
    .decode = number_decode,
    .free = number_free,
    .take = number_take,
    .may_be_lost = true,
    .may_come_twice = true,
};

/* --- in a host of two loops ---- */

static void
talk(void *argument)
{
    struct counts *counts = argument;
    struct arena *arena = arena_new(0);
    counts->service.context = counts;
    for (int i = 0; i < ROUNDS; i++) {
        const char *said;
        unsigned served = counts->served;
        struct error *err = ask(counts, i % 2 == 0 ? &echo : &echo_again, "yes", arena, &said);
        EXPECT(err == NULL || err->kind == ERR_UNAVAILABLE);
        if (err == NULL)
            EXPECT_TEXT(said, "yes");
        counts->lost += err != NULL;
        counts->doubled += counts->served - served - 1;
        EXPECT(i % 2 != 0 || counts->served == served + 1);
        arena_reset(arena);
        struct number_value *number = memory_zalloc(1, sizeof *number);
        number->number = 1;
        EXPECT(route_tell(owner_of_shard((uint32_t)i), &counts->service, &number_notice,
                          &number->value));
    }
    const char *said;
    for (struct error *err = NULL; err == NULL || err->kind != ERR_ALREADY_STARTED;) {
        err = ask(counts, &echo, "no", arena, &said);
        EXPECT(err != NULL);
        if (err->kind == ERR_ALREADY_STARTED) {
            EXPECT_TEXT(err->message, "it is there: no");
            EXPECT(slice_equal(err->detail, slice_text("detail")));
        }
    }
    while (atomic_load(&counts->service.on_the_way) > 0)
        fiber_yield();
    arena_free(arena);
}

static struct counts
run(enum world_messages messages, uint64_t seed)
{
    struct counts counts = {0};
    struct world *world = world_new(.seed = seed, .messages = messages);
    struct host *host = world_add_host(world, "host", 2);
    host_start(host, talk, &counts);
    EXPECT(world_run_until(world, host_has_ended, host, 60 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    return counts;
}

TEST(route, within_a_process_everything_comes_once)
{
    struct counts counts = run(MESSAGES_WHOLE, test_seed(0));
    EXPECT_EQ(counts.lost, 0);
    EXPECT_EQ(counts.doubled, 0);
    EXPECT_EQ(counts.taken, ROUNDS);
}

TEST(route, what_goes_as_bytes_comes_once_and_is_the_same)
{
    struct counts counts = run(MESSAGES_BYTES, test_seed(0));
    EXPECT_EQ(counts.lost, 0);
    EXPECT_EQ(counts.doubled, 0);
    EXPECT_EQ(counts.taken, ROUNDS);
}

TEST(route, what_may_be_lost_or_come_twice_is_and_does)
{
    struct counts counts = run(MESSAGES_FAIL, test_seed(0));
    EXPECT(counts.lost > 0 && counts.lost < ROUNDS / 10);
    EXPECT(counts.doubled > 0 && counts.doubled < ROUNDS / 10);
    EXPECT(counts.taken != ROUNDS);
}
