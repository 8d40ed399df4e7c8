/* run_test.c - a run keeps what it has, and loses its garbage. */
#include "engine/run/run.h"

#include "base/test.h"
#include "engine/run/test_samples.h"

/* Compacting copies everything; a field or map that it forgets would be lost. Method: a random run
 * with much garbage, its image before and after. */
TEST(run, compacting_keeps_everything_and_frees_the_garbage)
{
    struct sample sample;
    sample_open(&sample, test_seed(0));
    size_t largest = 0;
    bool has_shrunk = false;
    for (int step = 0; step < 400; step++) {
        sample_begin(&sample);
        for (int i = 0; i < 5; i++)
            sample_random_event(&sample);
        sample_finish(&sample);
        size_t before = arena_footprint(sample.run->arena);
        struct slice image = sample_image(sample.run, sample.arena);
        run_compact(sample.run);
        EXPECT(slice_equal(sample_image(sample.run, sample.arena), image));
        run_check(sample.run);
        size_t after = arena_footprint(sample.run->arena);
        has_shrunk |= after < before;
        largest = after > largest ? after : largest;
    }
    EXPECT(has_shrunk);
    EXPECT(largest < 512 * 1024);
    sample_close(&sample);
}

TEST(run, a_small_run_is_left_alone)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    const STORED(RunRecord) *core = sample.run->core;
    run_compact(sample.run);
    EXPECT(sample.run->core == core);
    sample_close(&sample);
}

ARENA_TEST(run, keys_of_one_run_stand_together_and_no_others_between)
{
    struct run_key one = {"d", "w", "r"}, longer = {"d", "w", "rr"};
    struct slice prefix = run_row_key(&one, arena);
    struct slice keys[] = {pending_key_number(&one, PENDING_ACTIVITY, 5, arena),
                           pending_key_text(&one, PENDING_TIMER, "t", arena),
                           pending_key_number(&one, PENDING_BUFFERED, 0, arena),
                           pending_key_text(&one, PENDING_SIGNAL_REQUEST, "q", arena)};
    for (size_t i = 0; i < array_length(keys); i++) {
        EXPECT(slice_starts_with(keys[i], prefix));
        EXPECT(i == 0 || slice_compare(keys[i - 1], keys[i]) < 0);
    }
    EXPECT(!slice_starts_with(pending_key_text(&longer, PENDING_TIMER, "t", arena), prefix));
    EXPECT(!slice_equal(current_key("d", "w", arena), prefix));
    EXPECT(slice_compare(transfer_key(255, arena), transfer_key(256, arena)) < 0);
}

ARENA_TEST(run, a_deep_copy_shares_nothing)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    struct slice bytes = message_encode(arena, &sample.run->core->base);
    const STORED(RunRecord) *copy = message_copy(arena, &sample.run->core->base);
    EXPECT(message_copy(arena, NULL) == NULL);
    sample_close(&sample); /* what it shared would be gone now */
    EXPECT(slice_equal(message_encode(arena, &copy->base), bytes));
}
