/* error_test.c - errors keep their kind, detail and story. */
#include "base/error.h"

#include "base/test.h"

ARENA_TEST(error, a_wrapped_error_keeps_kind_and_detail_and_says_what_was_done)
{
    struct error *cause = error_new(arena, ERR_FENCED, "guard is %d", 7);
    cause->detail = slice_text("detail");
    struct error *err = error_wrap(cause, "commit shard %d", 3);
    EXPECT_KIND(err, ERR_FENCED);
    EXPECT_TEXT(err->message, "commit shard 3: guard is 7");
    EXPECT(slice_equal(err->detail, slice_text("detail")));
    EXPECT(err->cause == cause);
    EXPECT(err->line > cause->line);
    EXPECT_OK(NULL);
}

ARENA_TEST(error, a_copy_outlives_the_arena_of_the_original)
{
    struct arena *short_lived = arena_new(0);
    struct error *err = error_new(short_lived, ERR_BUSY, "queue is full");
    err->detail = arena_slice(short_lived, slice_text("detail"));
    err = error_wrap(err, "signal");
    struct error *copy = error_copy(arena, err);
    arena_free(short_lived);
    EXPECT_KIND(copy, ERR_BUSY);
    EXPECT_TEXT(copy->message, "signal: queue is full");
    EXPECT_TEXT(copy->cause->message, "queue is full");
    EXPECT(slice_equal(copy->detail, slice_text("detail")));
    EXPECT(copy->arena == arena && copy->cause->arena == arena && copy->cause->cause == NULL);
    EXPECT(error_copy(arena, NULL) == NULL);
}

TEST(error, every_kind_has_a_status_of_grpc_and_a_name_of_its_own)
{
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        EXPECT(error_kind_status(kind) >= 1 && error_kind_status(kind) <= 16);
        const char *detail = error_kind_detail(kind);
        EXPECT(detail == NULL || strncmp(detail, "uber.cadence.", 13) == 0);
        for (int other = 0; other < kind; other++)
            EXPECT(strcmp(error_kind_name(kind), error_kind_name(other)) != 0);
    }
    EXPECT_EQ(error_kind_status(ERR_DOMAIN_NOT_ACTIVE), 9);
    EXPECT_TEXT(error_kind_detail(ERR_DOMAIN_NOT_ACTIVE),
                "uber.cadence.api.v1.DomainNotActiveError");
}
