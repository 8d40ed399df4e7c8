/* runs.h - runs of one workflow id that several clusters began or kept open.
 *
 * At most one run of an id is open. Where events of another cluster bring a second one, every
 * cluster must give the id to the same run, whatever it heard first. So which one that is, is a
 * function of the set of runs, and not of the pair that meets:
 *
 *   1. Runs that belong to the same cluster attribute (or to none) are in one group. The newest of
 * a group is the one with the highest last version, then with the latest event (numbers of events
 *      are compared within a version only, so they are of one cluster).
 *   2. Versions of two groups say nothing about each other. The group that has the run that began
 *      last leads, whichever run that is; at the same time: the one with the larger run id.
 *   3. The newest run of the leading group has the id.
 *
 * Of two runs it is therefore the one with the higher version, or the one that began later. But
 * those two comparisons are no order of three: a run of one group may be newer than another of its
 * group and older than a run of a second group which is older than that other. Whoever compared the
 * run that comes with the current one alone came to a run that depended on what was heard first.
 *
 * Everything in it only grows (versions, numbers of events within one, starts), so a group is kept
 * as one record, its contender, and joining a run to it is the same in any order, and any number of
 * times. The current-run record keeps the contenders.
 *
 * A run that has not the id is ended by the cluster that wrote its last event, which tells the
 * rest; until they hear of it, it is a zombie there: kept, changed by events of other clusters
 * alone. Pure. */
#ifndef CADENZA_ENGINE_NDC_RUNS_H
#define CADENZA_ENGINE_NDC_RUNS_H

#include <stdbool.h>

#include "base/arena.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "wire/names.h"

/* One for each group. What they point to is the arena's, or that of what they were read from. */
struct contenders {
    STORED(Contender) **item;
    size_t count;
};

/* Those of a workflow id; NULL: none. */
struct contenders contenders_read(const STORED(CurrentRecord) *current, struct arena *arena);
/* Joins a run, with what it is now. Not one that has the copied events of another run and not yet
 * the reset that began it: its last event is that other run's as well, and says nothing. */
void contenders_add(struct contenders *contenders, const STORED(RunRecord) *run,
                    struct arena *arena);
/* The run is not there any more: nor is its group, if it was the newest of it. */
void contenders_drop(struct contenders *contenders, const char *run_id);
/* The run that has the id; NULL: there is none. */
const char *contenders_leader(const struct contenders *contenders);
/* When the last run of the leading group began: a run of another one that is to have the id begins
 * later. INT64_MIN: there is none. */
int64_t contenders_latest_start(const struct contenders *contenders);
/* The group of an attribute (NULL: of none); NULL: it has no run. */
const STORED(Contender) *contenders_find(const struct contenders *contenders,
                                         const API(ClusterAttribute) *attribute);
/* Puts them into the record of the run that has the id; they are not copied. */
void contenders_store(const struct contenders *contenders, STORED(CurrentRecord) *current);
/* Do two records say the same of them? What is said of the current run itself does not count: that
 * run's own record says it. */
bool contenders_equal(const STORED(CurrentRecord) *one, const STORED(CurrentRecord) *other);

#endif
