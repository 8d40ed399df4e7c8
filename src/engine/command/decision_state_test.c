/* The table of a decision task's states, walked as a whole. */
#include "engine/command/decision_task.h"

#include "base/test.h"

#define BIT(state) (1u << (state))

/* What each move needs, said another way than the table says it. */
static bool
move_is_legal(enum decision_state state, enum decision_move move)
{
    bool is_started = state == DECISION_STARTED || state == DECISION_TRANSIENT_STARTED;
    if (move == DECISION_SCHEDULE)
        return state == DECISION_NONE;
    if (move == DECISION_TIME_OUT_UNSTARTED) /* a transient one is never on a sticky list */
        return state == DECISION_SCHEDULED;
    if (move == DECISION_START)
        return state != DECISION_NONE && !is_started;
    return is_started;
}

TEST(decision_state, only_one_is_pending_and_only_what_is_started_can_end)
{
    for (int state = 0; state < DECISION_STATE_COUNT; state++)
        for (int move = 0; move < DECISION_MOVE_COUNT; move++)
            EXPECT_EQ(decision_targets(state, move) != 0, move_is_legal(state, move));
}

TEST(decision_state, every_end_leaves_none_and_an_ordinary_one_never_becomes_transient)
{
    for (int state = 0; state < DECISION_STATE_COUNT; state++) {
        for (int move = DECISION_COMPLETE; move < DECISION_MOVE_COUNT; move++)
            EXPECT((decision_targets(state, move) & ~BIT(DECISION_NONE)) == 0);
    }
    EXPECT_EQ(decision_targets(DECISION_SCHEDULED, DECISION_START), BIT(DECISION_STARTED));
    EXPECT(decision_targets(DECISION_TRANSIENT_SCHEDULED, DECISION_START) & BIT(DECISION_STARTED));
}

TEST(decision_state, from_none_every_state_is_reached)
{
    unsigned reached = BIT(DECISION_NONE), before = 0;
    while (reached != before) {
        before = reached;
        for (int state = 0; state < DECISION_STATE_COUNT; state++)
            for (int move = 0; (before & BIT(state)) != 0 && move < DECISION_MOVE_COUNT; move++)
                reached |= decision_targets(state, move);
    }
    EXPECT_EQ(reached, BIT(DECISION_STATE_COUNT) - 1);
}

TEST(decision_state, states_and_moves_have_names)
{
    EXPECT_TEXT(decision_state_name(DECISION_TRANSIENT_STARTED), "transient started");
    EXPECT_TEXT(decision_move_name(DECISION_TIME_OUT_UNSTARTED), "time out unstarted");
}
