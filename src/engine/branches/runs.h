/* runs.h - runs of one workflow id that several clusters began or kept open.
 *
 * At most one run of an id is open. Where events of another cluster bring a second one, every
 * cluster must give the id to the same run, whatever it learnt first. So the answer is a function
 * of the set of all runs, and not of the two that meet:
 *
 *   1. Runs that belong to the same cluster attribute (or to none) are in one group. The newest of
 *      a group is the one with the highest last version, then with the latest event (numbers of
 *      events are compared within a version only, so they are of one cluster).
 *   2. Versions of two groups say nothing about each other. The group that has the run that began
 *      last leads, whichever run that is; at the same time: the one with the larger run id.
 *   3. The newest run of the leading group has the id.
 *
 * Of two runs it is therefore the one with the higher version, or the one that began later. But
 * those two comparisons do not order three runs: a run may be newer than another of its group, and
 * older than a run of a second group that is itself older than that other. To compare the incoming
 * run with the current one alone would give a result that depends on what was learnt first.
 *
 * All that counts only grows (versions, numbers of events within one, starts). So a group is kept
 * as one record, its candidate, and joining a run to it gives the same in any order, and any number
 * of times. The current-run record keeps the candidates.
 *
 * A run that does not have the id is ended by the cluster that wrote its last event, and that end
 * is replicated. Until it arrives the run is a zombie in the other clusters: kept, and changed by
 * replicated events alone. Pure. */
#ifndef CADENZA_ENGINE_BRANCHES_RUNS_H
#define CADENZA_ENGINE_BRANCHES_RUNS_H

#include <stdbool.h>

#include "base/arena.h"
#include "cadenza/storage/v1/run.pb-c.h"
#include "wire/names.h"

/* One for each group. What they point to is the arena's, or that of what they were read from. */
struct candidates {
    STORED(Contender) **item;
    size_t count;
};

/* Asserts that there is one for each group, which names its newest run and the one that began last.
 */
void candidates_check(const struct candidates *candidates);

/* Those of a workflow id; NULL: none. */
struct candidates candidates_read(const STORED(CurrentRecord) *current, struct arena *arena);
/* Joins a run as it is now. Leaves out one that so far only has the events of its base run and not
 * yet the reset that began it: its last event is the base run's as well, and says nothing. */
void candidates_add(struct candidates *candidates, const STORED(RunRecord) *run,
                    struct arena *arena);
/* The run is gone, and with it the candidate that it was, if any. */
void candidates_drop(struct candidates *candidates, const char *run_id);
/* The run that has the id; NULL: there is none. */
const char *candidates_leader(const struct candidates *candidates);
/* When the last run of the leading group began: a run of another one that is to have the id begins
 * later. INT64_MIN: there is none. */
int64_t candidates_latest_start(const struct candidates *candidates);
/* The group of an attribute (NULL: of none); NULL: it has no run. */
const STORED(Contender) *candidates_find(const struct candidates *candidates,
                                         const API(ClusterAttribute) *attribute);
/* Puts them into the record of the run that has the id; they are not copied. */
void candidates_store(const struct candidates *candidates, STORED(CurrentRecord) *current);
/* Do two records have the same candidates? The version and last event of the current run itself do
 * not count: they are in that run's own record. */
bool candidates_equal(const STORED(CurrentRecord) *one, const STORED(CurrentRecord) *other);

#endif
