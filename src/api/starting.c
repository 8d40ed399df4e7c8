/* starting.c - see starting.h.
 *
 * The start is recorded under a request id of its own. Where it is in doubt whether it was, the
 * same is asked again: if it had been recorded, the answer is the same. What cannot be started
 * although it is there goes back to its list; what is void is dropped. */
#include "api/starting.h"

#include <stdio.h>

#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/mark.h"
#include "matching/matching.h"

#define ATTEMPTS_MAX 4
#define FIRST_PAUSE  (5 * NS_PER_MS) /* doubled each time */

static struct error *
ask_engine(struct starting *starting)
{
    if (starting->task->type == TASK_DECISION)
        return engine_start_decision(starting->engine, starting->task, starting->request_id,
                                     starting->identity, starting->arena, &starting->decision);
    return engine_start_activity(starting->engine, starting->task, starting->request_id,
                                 starting->identity, starting->arena, &starting->activity);
}

/* What a refused start means for the task. */
enum verdict {
    TASK_IS_VOID,     /* nobody will ever start it */
    TASK_COMES_AGAIN, /* its row stands; whoever has the shard offers it */
    TASK_MUST_WAIT,   /* its run is not active here: its shard keeps it until it is */
    TASK_IS_IN_DOUBT, /* it may have been started by us */
};

static enum verdict
judge(const struct error *err)
{
    switch (err->kind) {
    case ERR_ENTITY_NOT_EXISTS:
    case ERR_ALREADY_COMPLETED:
    case ERR_EVENT_ALREADY_STARTED:
        return TASK_IS_VOID;
    case ERR_SHARD_OWNERSHIP_LOST:
        return TASK_COMES_AGAIN;
    case ERR_DOMAIN_NOT_ACTIVE:
    case ERR_BAD_REQUEST: /* the domain has no such cluster attribute */
        return TASK_MUST_WAIT;
    default:
        return TASK_IS_IN_DOUBT;
    }
}

static struct error *
ask_until_clear(struct starting *starting)
{
    struct error *err = ask_engine(starting);
    for (int i = 1; i < ATTEMPTS_MAX && err != NULL && judge(err) == TASK_IS_IN_DOUBT; i++) {
        mark("poll_start_asked_again");
        if (fiber_sleep(FIRST_PAUSE << i, starting->arena) != NULL)
            break;
        err = ask_engine(starting);
    }
    return err;
}

static enum starting_end
give_up(struct starting *starting, const struct error *err)
{
    switch (judge(err)) {
    case TASK_IS_VOID:
        mark("poll_start_void");
        engine_task_done(starting->engine, starting->task);
        matching_finish(starting->matching, starting->task);
        return START_VOID;
    case TASK_COMES_AGAIN:
        if (starting->task->row != 0) {
            matching_finish(starting->matching, starting->task);
            return START_VOID;
        }
        mark("stored_task_returned"); /* no row stands behind it: the list must keep it */
        matching_return(starting->matching, starting->task);
        return START_VOID;
    case TASK_MUST_WAIT:
        mark("task_waits_for_its_domain");
        matching_finish(starting->matching, starting->task);
        return START_VOID;
    case TASK_IS_IN_DOUBT:
        break;
    }
    matching_return(starting->matching, starting->task);
    return START_IN_DOUBT;
}

enum starting_end
starting_record(struct starting *starting)
{
    struct uuid request_id = uuid_new_v4();
    uuid_format(&request_id, starting->request_id);
    if (starting->same_as != NULL)
        (void)snprintf(starting->request_id, sizeof starting->request_id, "%s", starting->same_as);
    struct error *err = ask_until_clear(starting);
    if (err != NULL)
        return give_up(starting, err);
    matching_finish(starting->matching, starting->task);
    return STARTED;
}
