/* messages.h - what other clusters sent and ask for as messages between owners, and back. What is
 * made lives in the arena or is that of what it is made of. Only files of incoming/ include it. */
#ifndef CADENZA_ENGINE_INCOMING_MESSAGES_H
#define CADENZA_ENGINE_INCOMING_MESSAGES_H

#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/replicated.h"

void replicated_events_to_message(const struct replicated_events *events, struct arena *arena,
                                  INTERNAL(ReplicatedEvents) * message);
/* `priors` is filled if there are any. */
void replicated_events_from_message(const INTERNAL(ReplicatedEvents) * message, struct arena *arena,
                                    struct replicated_priors *priors,
                                    struct replicated_events *events);

void replicated_outcome_to_message(const struct replicated_outcome *outcome, struct arena *arena,
                                   INTERNAL(ReplicatedOutcome) * message);
void replicated_outcome_from_message(const INTERNAL(ReplicatedOutcome) * message,
                                     struct replicated_outcome *outcome);

void listed_runs_to_message(const struct listed_runs *listed, struct arena *arena,
                            STORE_API(ListRunsResponse) *message);

#endif
