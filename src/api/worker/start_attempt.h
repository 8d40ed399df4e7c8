/* start_attempt.h - a task that came from matching is started: recorded by the engine, and matching
 * learns how it ended. For all that hold polls: the door, and the server's own workers. */
#ifndef CADENZA_API_WORKER_START_ATTEMPT_H
#define CADENZA_API_WORKER_START_ATTEMPT_H

#include "engine/engine.h"
#include "fiber/clock.h"

struct matching;

/* A start as it is asked for. */
struct start_attempt {
    struct engine *engine;
    struct matching *matching;
    const struct task *task; /* not a query */
    const char *identity;
    const char *same_as; /* the id of a start that may have been recorded; NULL: a new one */
    struct arena *arena; /* of this start alone: a poll may meet very many tasks that are void */
    /* Filled. */
    char request_id[UUID_TEXT_LENGTH + 1];
    struct decision_start decision;
    struct activity_start activity;
};

enum start_outcome {
    STARTED,
    START_VOID,     /* this task cannot be started here: on to the next one */
    START_IN_DOUBT, /* it went back to its list: better wait a moment */
};
/* Yields, until the fiber's deadline. */
enum start_outcome start_attempt_record(struct start_attempt *start_attempt);

#endif
