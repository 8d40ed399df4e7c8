/* starting.h - a task that came from matching is started: recorded with the engine, and matching is
 * told. For whoever holds polls: the door, and the server's own workers. */
#ifndef CADENZA_API_STARTING_H
#define CADENZA_API_STARTING_H

#include "engine/engine.h"
#include "fiber/clock.h"

struct matching;

/* A start as it is asked for. */
struct starting {
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

enum starting_end {
    STARTED,
    START_VOID,     /* nobody will start this task here: on to the next one */
    START_IN_DOUBT, /* it went back to its list: better wait a moment */
};
/* Yields, until the fiber's deadline. */
enum starting_end starting_record(struct starting *starting);

#endif
