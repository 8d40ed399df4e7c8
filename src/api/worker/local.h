/* local.h - activities that a worker gets with the answer to its decisions, without a poll. */
#ifndef CADENZA_API_WORKER_LOCAL_H
#define CADENZA_API_WORKER_LOCAL_H

#include "api/inside.h"
#include "engine/engine.h"

/* Puts them into the answer, each with a token that is ready. `key` names the run by its id. */
void local_show(const struct run_key *key, const struct complete_answer *answer,
                struct arena *arena, API(RespondDecisionTaskCompletedResponse) *response);

#endif
