/* signer_test.c - tokens that are shown until half of their life is over. */
#include "access/signer.h"

#include "access/test_samples.h"
#include "base/test.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/file.h"
#include "fiber/sim/world.h"

struct signer_fixture {
    struct slice key, other;
    bool has_ended;
};

static const char *
show(const struct access_signer *signer, struct arena *arena)
{
    const struct grpc_live_header *header = access_signer_header(signer);
    EXPECT_TEXT(header->name, "cadence-authorization");
    return header->value(header->context, arena);
}

/* What it says, between its two dots. */
static const char *
claims_of(const char *token, struct arena *arena)
{
    struct slice bytes = {0};
    const char *from = strchr(token, '.') + 1;
    EXPECT(text_base64_decode(arena, slice_of(from, strcspn(from, ".")), TEXT_BASE64_URL, &bytes));
    return arena_text_of(arena, bytes);
}

static void
show_fiber(void *argument)
{
    struct signer_fixture *signer_fixture = argument;
    struct arena *arena = arena_new(0);
    struct access_signer *signer = NULL;
    EXPECT_OK(file_save("key.pem", signer_fixture->key, arena));
    EXPECT_OK(access_signer_open("key.pem", arena, &signer));
    const char *first = show(signer, arena);
    EXPECT(strstr(claims_of(first, arena), "\"Admin\":true,\"TTL\":600") != NULL);
    EXPECT_OK(fiber_sleep(299 * NS_PER_S, arena));
    EXPECT_TEXT(show(signer, arena), first);
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, arena));
    EXPECT(strcmp(show(signer, arena), first) != 0);
    const char *now = show(signer, arena);
    bool is_renewed = true;
    EXPECT_OK(access_signer_renew(signer, arena, &is_renewed));
    EXPECT(!is_renewed);
    EXPECT_OK(file_save("key.pem", slice_text("half of a key"), arena));
    EXPECT_KIND(access_signer_renew(signer, arena, &is_renewed), ERR_BAD_REQUEST);
    EXPECT_TEXT(show(signer, arena), now); /* that key stays */
    EXPECT_OK(file_save("key.pem", signer_fixture->other, arena));
    EXPECT_OK(access_signer_renew(signer, arena, &is_renewed));
    EXPECT(is_renewed);
    EXPECT(strcmp(show(signer, arena), now) != 0); /* the same moment, another signature */
    access_signer_free(signer);
    EXPECT_KIND(access_signer_open("nowhere.pem", arena, &signer), ERR_BAD_REQUEST);
    EXPECT_OK(file_save("key.pem", slice_text("no key"), arena));
    EXPECT_KIND(access_signer_open("key.pem", arena, &signer), ERR_BAD_REQUEST);
    arena_free(arena);
    signer_fixture->has_ended = true;
}

static bool
has_ended(void *context)
{
    return ((struct signer_fixture *)context)->has_ended;
}

TEST(signer, a_token_is_shown_until_half_of_its_life_is_over_or_the_key_is_another, "J-025")
{
    struct arena *arena = arena_new(0);
    struct signer_fixture signer_fixture = {.key = sample_pair_make(arena).secret,
                                            .other = sample_pair_make(arena).secret};
    struct world *world = world_new(.seed = test_seed(0));
    struct host *host = world_add_host(world, "host", 1);
    host_start(host, show_fiber, &signer_fixture);
    EXPECT(world_run_until(world, has_ended, &signer_fixture, 3600 * NS_PER_S));
    world_free(world);
    arena_free(arena);
}
