/* start_attempt.c - see start_attempt.h.
 *
 * The start is recorded under a request id of its own. Where it is in doubt whether it was, it is
 * tried again with the same id: if it had been recorded, the answer is the same. What cannot be
 * started although it is there goes back to its list; what is void is dropped. */
#include "api/worker/start_attempt.h"

#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "matching/matching.h"

#define ATTEMPTS_MAX 4
#define FIRST_PAUSE  (5 * NS_PER_MS) /* doubled each time */

static struct error *
record_with_engine(struct start_attempt *start_attempt)
{
    if (start_attempt->task->type == TASK_DECISION)
        return engine_start_decision(start_attempt->engine, start_attempt->task,
                                     start_attempt->request_id, start_attempt->identity,
                                     start_attempt->arena, &start_attempt->decision);
    return engine_start_activity(start_attempt->engine, start_attempt->task,
                                 start_attempt->request_id, start_attempt->identity,
                                 start_attempt->arena, &start_attempt->activity);
}

/* What a refused start means for the task. */
enum start_verdict {
    TASK_IS_VOID,     /* it can never be started */
    TASK_COMES_AGAIN, /* its row stays; the next owner of the shard offers it */
    TASK_MUST_WAIT,   /* its run is not active here: its shard keeps it until it is */
    TASK_IS_IN_DOUBT, /* it may have been started by us */
};

static enum start_verdict
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
record_until_clear(struct start_attempt *start_attempt)
{
    struct error *err = record_with_engine(start_attempt);
    for (int i = 1; i < ATTEMPTS_MAX && err != NULL && judge(err) == TASK_IS_IN_DOUBT; i++) {
        probe("poll_start_asked_again");
        if (fiber_sleep(FIRST_PAUSE << i, start_attempt->arena) != NULL)
            break;
        err = record_with_engine(start_attempt);
    }
    return err;
}

static enum start_outcome
give_up(struct start_attempt *start_attempt, const struct error *err)
{
    switch (judge(err)) {
    case TASK_IS_VOID:
        probe("poll_start_void");
        engine_task_done(start_attempt->engine, start_attempt->task);
        matching_finish(start_attempt->matching, start_attempt->task);
        return START_VOID;
    case TASK_COMES_AGAIN:
        if (start_attempt->task->row != 0) {
            matching_finish(start_attempt->matching, start_attempt->task);
            return START_VOID;
        }
        probe("stored_task_returned"); /* it has no row in a shard: the list must keep it */
        matching_return(start_attempt->matching, start_attempt->task);
        return START_VOID;
    case TASK_MUST_WAIT:
        probe("task_waits_for_its_domain");
        matching_finish(start_attempt->matching, start_attempt->task);
        return START_VOID;
    case TASK_IS_IN_DOUBT:
        break;
    }
    matching_return(start_attempt->matching, start_attempt->task);
    return START_IN_DOUBT;
}

enum start_outcome
start_attempt_record(struct start_attempt *start_attempt)
{
    check(!task_is_query(start_attempt->task));
    struct uuid request_id = uuid_new_v4();
    uuid_format(&request_id, start_attempt->request_id);
#ifdef CADENZA_FAULT_repeated_offer_starts_twice
    (void)snprintf(start_attempt->request_id, sizeof start_attempt->request_id, "%u-%llu",
                   (unsigned)start_attempt->task->shard,
                   (unsigned long long)start_attempt->task->schedule_id);
#endif
    if (start_attempt->same_as != NULL)
        (void)snprintf(start_attempt->request_id, sizeof start_attempt->request_id, "%s",
                       start_attempt->same_as);
    struct error *err = record_until_clear(start_attempt);
    if (err != NULL)
        return give_up(start_attempt, err);
    matching_finish(start_attempt->matching, start_attempt->task);
    return STARTED;
}
