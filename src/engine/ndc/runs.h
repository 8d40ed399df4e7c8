/* runs.h - runs of one workflow id that several clusters began or kept open.
 *
 * At most one run of an id is open. Where events of another cluster bring a second one, every
 * cluster must give the id to the same run, whatever it heard first: the newer one. The other is
 * ended by the cluster that wrote its last event, which tells the rest; until they hear of it, it
 * is a zombie there: kept, changed by events of other clusters alone. Pure. */
#ifndef CADENZA_ENGINE_NDC_RUNS_H
#define CADENZA_ENGINE_NDC_RUNS_H

#include <stdbool.h>

#include "cadenza/storage/v1/run.pb-c.h"
#include "wire/names.h"

/* Is `one` the newer of two runs? Where they belong to the same cluster attribute, or to none: the
 * one with the higher last version, then the one with the later event (numbers of events are
 * compared within a version only, so they are of one cluster). Else versions say nothing: the one
 * that began later, then the larger run id. */
bool run_is_newer(const STORED(RunRecord) *one, const STORED(RunRecord) *other);

/* What becomes of the current run. */
enum run_fate {
    RUN_STAYS,          /* as it is: closed, or it keeps the id */
    RUN_IS_TERMINATED,  /* it was written here last: it ends, with its last version */
    RUN_BECOMES_ZOMBIE, /* somebody else ends it */
};
struct run_contest {
    bool is_current;    /* the run that came has the id now; else it is a zombie while it is open */
    enum run_fate fate; /* of the one that had it */
};
/* Events came for the run `target`. `current` has the id, NULL: no run has, and may be the same;
 * is_ours: its last version is one of this cluster. */
struct run_contest run_decide_current(const STORED(RunRecord) *target,
                                      const STORED(RunRecord) *current, bool is_ours);

#endif
