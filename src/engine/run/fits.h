/* fits.h - can an event of a history be applied to the run?
 *
 * apply.c takes it for granted that an event fits: the command that decided it looked at the run.
 * Events from outside, of another cluster or from an operator, were decided on a run that should be
 * the same, but nobody here has looked. So they are asked about before they are applied: a bad one
 * is refused while nothing has happened yet, instead of failing a check. */
#ifndef CADENZA_ENGINE_RUN_FITS_H
#define CADENZA_ENGINE_RUN_FITS_H

#include "engine/run/run.h"
#include "uber/cadence/api/v1/history.pb-c.h"

/* Why the event, whose kind and attributes are there, cannot be the next one of the run; NULL: it
 * can. Nothing may be buffered. A close event may come while a decision is started; then the caller
 * takes the decision away. */
const char *run_find_misfit(const struct run *run, const API(HistoryEvent) *event);
/* The part of it that is the same for all kinds: the id, the version, the time, the run is open. */
const char *run_find_misplaced(const struct run *run, const API(HistoryEvent) *event);

#endif
