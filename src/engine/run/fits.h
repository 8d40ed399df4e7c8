/* fits.h - can an event of a history be applied to the run?
 *
 * apply.c takes it for granted that an event fits: who decided it looked at the run. Events that
 * come from outside, of another cluster or by the hands of an operator, were decided on a run that
 * should be the same. Before they are applied somebody has to make sure, or a bad one ends the
 * process. An event that does not fit is refused here, and nothing has happened yet. */
#ifndef CADENZA_ENGINE_RUN_FITS_H
#define CADENZA_ENGINE_RUN_FITS_H

#include "engine/run/run.h"
#include "uber/cadence/api/v1/history.pb-c.h"

/* Why the event, whose kind and attributes are there, cannot be the next one of the run; NULL: it
 * can. Nothing may be buffered. A close event may come while a decision is started (whoever applies
 * it takes the decision away). */
const char *run_find_misfit(const struct run *run, const API(HistoryEvent) *event);
/* The part of it that is the same for all kinds: the id, the version, the time, the run is open. */
const char *run_find_misplaced(const struct run *run, const API(HistoryEvent) *event);

#endif
