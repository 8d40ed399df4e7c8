/* decision_task.h - the states of a run's decision task: at most one is pending at a time.
 *
 *                     schedule               start                    complete, fail, time out
 *   none ──────────────────▶ scheduled ─────────────────▶ started ────────────────────▶ none
 *     │                          │  nobody took it from its sticky list ───────────────▶ none
 *     │                          ▲
 *     └── after an attempt that failed: transient, the same way. Its two events are not in the
 *         history: they are written when it completes, with the times that the worker saw. If the
 *         history grew before it is started, it becomes an ordinary one then.
 *
 * The table is in decision_state.c, the moves are in decision_task.c. */
#ifndef CADENZA_ENGINE_COMMAND_DECISION_TASK_H
#define CADENZA_ENGINE_COMMAND_DECISION_TASK_H

#include "engine/run/run.h"

/* X(state, name) */
#define DECISION_STATES(X)                                                                         \
    X(DECISION_NONE, "none")                                                                       \
    X(DECISION_SCHEDULED, "scheduled")                                                             \
    X(DECISION_STARTED, "started")                                                                 \
    X(DECISION_TRANSIENT_SCHEDULED, "transient scheduled")                                         \
    X(DECISION_TRANSIENT_STARTED, "transient started")

enum decision_state {
#define X(state, name) state,
    DECISION_STATES(X)
#undef X
        DECISION_STATE_COUNT
};

/* X(move, name) */
#define DECISION_MOVES(X)                                                                          \
    X(DECISION_SCHEDULE, "schedule")                                                               \
    X(DECISION_START, "start")                                                                     \
    X(DECISION_COMPLETE, "complete")                                                               \
    X(DECISION_FAIL, "fail")                                                                       \
    X(DECISION_TIME_OUT, "time out")                                                               \
    X(DECISION_TIME_OUT_UNSTARTED, "time out unstarted")

enum decision_move {
#define X(move, name) move,
    DECISION_MOVES(X)
#undef X
        DECISION_MOVE_COUNT
};

const char *decision_state_name(enum decision_state state);
const char *decision_move_name(enum decision_move move);
enum decision_state decision_state_of(const struct run *run);
/* The states that the move may lead to, one bit each; 0: it is not legal in this state. */
unsigned decision_targets(enum decision_state state, enum decision_move move);
/* Asserts what is true of a decision between two moves. */
void decision_check(const struct run *run);

#endif
