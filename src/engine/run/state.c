/* state.c - the life of a run, as a table.
 *
 *              decision scheduled            close event
 *   CREATED ------------------------> RUNNING -----------> COMPLETED
 *      |                                                       ^
 *      +---------- terminated, timed out, continued -----------+
 *
 * ZOMBIE is the state of a run that lost its workflow id to another run. */
#include "engine/run/inside.h"

/* Which move is legal, and with which close status (0: never). A CREATED run has had no decision
 * task, so nothing but force can close it: FORCED. */
#define OPEN   (1u << CLOSE_NONE)
#define FORCED (1u << CLOSE_TERMINATED | 1u << CLOSE_TIMED_OUT | 1u << CLOSE_CONTINUED_AS_NEW)
#define CLOSED (FORCED | 1u << CLOSE_COMPLETED | 1u << CLOSE_FAILED | 1u << CLOSE_CANCELED)

/* clang-format off */
static const uint8_t legal[RUN_STATE_END][RUN_STATE_END] = {
    /* from \ to */     /* none CREATED RUNNING COMPLETED ZOMBIE */
    [0]             = { 0,   OPEN,   0,      0,        OPEN },
    [RUN_CREATED]   = { 0,   OPEN,   OPEN,   FORCED,   OPEN },
    [RUN_RUNNING]   = { 0,   0,      OPEN,   CLOSED,   OPEN },
    [RUN_COMPLETED] = { 0,   0,      0,      CLOSED,   0    }, /* and only with the status it has */
    [RUN_ZOMBIE]    = { 0,   OPEN,   OPEN,   CLOSED,   0    },
};
/* clang-format on */

bool
run_move_is_legal(STORED(RunState) from, STORED(RunState) to, close_status_t status)
{
    if ((unsigned)from >= RUN_STATE_END || (unsigned)to >= RUN_STATE_END)
        return false;
    return (unsigned)status < CLOSE_STATUS_COUNT && (legal[from][to] & 1u << status) != 0;
}

void
run_move(STORED(RunRecord) *core, STORED(RunState) to, close_status_t status)
{
    check_that(run_move_is_legal(core->state, to, status), "run %s: from state %d to %d, status %d",
               core->run_id, (int)core->state, (int)to, (int)status);
    check(core->state != RUN_COMPLETED || core->close_status == status);
    core->state = to;
    core->close_status = status;
}
