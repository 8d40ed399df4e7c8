/* replicated.h - events that another cluster decided become part of the run.
 *
 * Nothing about them is decided again: they keep the ids, versions, times and numbers that they got
 * there, so that every cluster has the same history, to the byte, and the same records. They are
 * applied like any other; their outbox rows are written too, for the day when this cluster takes
 * over the run. Stickiness ends: a worker of this cluster that remembers the run does not know
 * these events. */
#ifndef CADENZA_ENGINE_RUN_REPLICATED_H
#define CADENZA_ENGINE_RUN_REPLICATED_H

#include "engine/run/mutation.h"

/* Adds a batch, the run's next events, to a step that has no events yet; the step gets no others.
 * Nothing may be buffered. The events must live until the step is submitted. Returns why one does
 * not fit (fits.h): then the step must be cancelled. NULL: all were added. */
must_use const char *mutation_add_replicated(struct mutation *mutation,
                                             API(HistoryEvent) *const *events, size_t count);

/* The step only records what another cluster said of something that has no events yet: it is not
 * replicated further. */
void mutation_note_replicated(struct mutation *mutation);

#endif
