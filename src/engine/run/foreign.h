/* foreign.h - events that another cluster decided become part of the run.
 *
 * They are facts: their ids, versions, times and numbers are as they were given there, so that
 * every cluster has the same history, to the byte, and the same records. They are applied like any
 * other; the rows of the outbox that they mean are written too, for the day on which this cluster
 * has to go on with the run. A worker of this cluster that remembers the run is forgotten: it does
 * not know what comes now. */
#ifndef CADENZA_ENGINE_RUN_FOREIGN_H
#define CADENZA_ENGINE_RUN_FOREIGN_H

#include "engine/run/mutation.h"

/* Adds a batch, the run's next events, to a step that has no events yet; the step gets no others.
 * Nothing may be buffered. The events must live until the step is submitted. Returns why one does
 * not fit (fits.h): then the step must be cancelled. NULL: all were added. */
must_use const char *mutation_add_foreign(struct mutation *mutation,
                                          API(HistoryEvent) *const *events, size_t count);

/* The step writes down what another cluster told of something that has no events yet: nobody else
 * is told. */
void mutation_note_foreign(struct mutation *mutation);

#endif
