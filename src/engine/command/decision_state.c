/* decision_state.c - which move of a decision task is legal in which state, as a table.
 *
 * Invariants, asserted by decision_check:
 *   1. What is started has an id of its start behind that of its schedule, a time and a request id.
 *   2. A transient one is not in the history: its ids are those that come next, unless something
 * was written since it was scheduled, which only happens before it is started.
 *   3. An ordinary one is in the history.
 *   4. While one is pending, attempts are counted in it and not in the core.
 *   5. A transient one is not on a sticky list: the failure before it ended stickiness. It waits
 * for a poller as long as it takes. */
#include "engine/command/decision_task.h"

#include "base/check.h"

#define BIT(state) (1u << (state))

static const uint8_t targets[DECISION_STATE_COUNT][DECISION_MOVE_COUNT] = {
    [DECISION_NONE] =
        {
            [DECISION_SCHEDULE] = BIT(DECISION_SCHEDULED) | BIT(DECISION_TRANSIENT_SCHEDULED),
        },
    [DECISION_SCHEDULED] =
        {
            [DECISION_START] = BIT(DECISION_STARTED),
            [DECISION_TIME_OUT_UNSTARTED] = BIT(DECISION_NONE),
        },
    [DECISION_STARTED] =
        {
            [DECISION_COMPLETE] = BIT(DECISION_NONE),
            [DECISION_FAIL] = BIT(DECISION_NONE),
            [DECISION_TIME_OUT] = BIT(DECISION_NONE),
        },
    [DECISION_TRANSIENT_SCHEDULED] =
        {
            /* An ordinary one if the history grew meanwhile. */
            [DECISION_START] = BIT(DECISION_STARTED) | BIT(DECISION_TRANSIENT_STARTED),
        },
    [DECISION_TRANSIENT_STARTED] =
        {
            [DECISION_COMPLETE] = BIT(DECISION_NONE),
            [DECISION_FAIL] = BIT(DECISION_NONE),
            [DECISION_TIME_OUT] = BIT(DECISION_NONE),
        },
};

const char *
decision_state_name(enum decision_state state)
{
    static const char *const names[] = {
#define X(state, name) name,
        DECISION_STATES(X)
#undef X
    };
    check(state < DECISION_STATE_COUNT);
    return names[state];
}

const char *
decision_move_name(enum decision_move move)
{
    static const char *const names[] = {
#define X(move, name) name,
        DECISION_MOVES(X)
#undef X
    };
    check(move < DECISION_MOVE_COUNT);
    return names[move];
}

enum decision_state
decision_state_of(const struct run *run)
{
    const STORED(PendingDecision) *decision = run->core->decision;
    if (decision == NULL)
        return DECISION_NONE;
    if (decision->attempt == 0)
        return decision->started_id == EVENT_NONE ? DECISION_SCHEDULED : DECISION_STARTED;
    return decision->started_id == EVENT_NONE ? DECISION_TRANSIENT_SCHEDULED
                                              : DECISION_TRANSIENT_STARTED;
}

unsigned
decision_targets(enum decision_state state, enum decision_move move)
{
    check(state < DECISION_STATE_COUNT && move < DECISION_MOVE_COUNT);
    return targets[state][move];
}

void
decision_check(const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    const STORED(PendingDecision) *decision = core->decision;
    if (decision == NULL)
        return;
    check(decision->attempt >= 0);
    check(decision->schedule_id > 0 && decision->task_list != NULL);
    check_that(core->decision_attempt == 0, "rule 4: %d attempts beside a pending decision",
               core->decision_attempt);
    if (decision->started_id != EVENT_NONE) {
        check_that(decision->started_id > decision->schedule_id,
                   "rule 1: started before scheduled");
        check_that(decision->started_time != 0 && decision->request_id[0] != '\0', "rule 1");
    }
    if (decision->attempt > 0) {
        check_that(core->sticky_task_list == NULL, "rule 5: stickiness survived a failure");
        check_that(decision->schedule_timeout_time == 0, "rule 5");
    }
    if (decision->attempt == 0) {
        check_that(decision->schedule_id < core->next_event_id, "rule 3: not in the history");
        check_that(decision->started_id < core->next_event_id, "rule 3: not in the history");
    } else if (decision->started_id == EVENT_NONE) {
        check_that(decision->schedule_id <= core->next_event_id, "rule 2: an id from the future");
    } else {
        check_that(decision->schedule_id == core->next_event_id, "rule 2: the history grew");
    }
}
