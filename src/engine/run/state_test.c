/* state_test.c - the table of moves, walked as a whole against the rules in words. */
#include "base/test.h"
#include "engine/run/test_samples.h"

/* The rules of the table once more, in another form. */
static bool
is_forced(int status)
{
    return status == CLOSE_TERMINATED || status == CLOSE_TIMED_OUT ||
           status == CLOSE_CONTINUED_AS_NEW;
}

static bool
should_be_legal(int from, int to, int status)
{
    bool has_status = status != CLOSE_NONE;
    if (to == 0 || has_status != (to == RUN_COMPLETED))
        return false; /* nothing becomes nothing; closed is who has a status */
    if (from == 0)
        return to == RUN_CREATED || to == RUN_ZOMBIE;
    if (from == RUN_CREATED)
        return to != RUN_COMPLETED || is_forced(status);
    if (from == RUN_RUNNING)
        return to != RUN_CREATED;
    if (from == RUN_COMPLETED)
        return to == RUN_COMPLETED;
    return to != RUN_ZOMBIE;
}

/* All of them: every state, every state, every status, and one beyond each. */
TEST(state, every_move_is_legal_or_not_as_the_rules_say)
{
    int legal = 0;
    for (int from = 0; from <= RUN_STATE_END; from++)
        for (int to = 0; to <= RUN_STATE_END; to++)
            for (int status = 0; status <= CLOSE_STATUS_COUNT; status++) {
                bool is_known =
                    from < RUN_STATE_END && to < RUN_STATE_END && status < CLOSE_STATUS_COUNT;
                bool wanted = is_known && should_be_legal(from, to, status);
                if (run_move_is_legal(from, to, status) != wanted)
                    TEST_FAIL("from %d to %d, status %d", from, to, status);
                legal += wanted;
            }
    EXPECT_EQ(legal, 2 + (3 + 3) + (2 + 6) + 6 + (2 + 6));
}

TEST(state, a_move_sets_state_and_status_together)
{
    STORED(RunRecord) core;
    cadenza__storage__v1__run_record__init(&core);
    run_move(&core, RUN_CREATED, CLOSE_NONE);
    run_move(&core, RUN_RUNNING, CLOSE_NONE);
    EXPECT_EQ(core.state, RUN_RUNNING);
    run_move(&core, RUN_COMPLETED, CLOSE_FAILED);
    EXPECT_EQ(core.state, RUN_COMPLETED);
    EXPECT_EQ(core.close_status, CLOSE_FAILED);
    run_move(&core, RUN_COMPLETED, CLOSE_FAILED); /* again the same is nothing new */
}
