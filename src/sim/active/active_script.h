/* active_script.h - what scenarios of active-active domains share: regions, starts that belong to
 * one, regions that move. Only tests include it.
 *
 * Unless a test says otherwise the domain "flows" has region0, active in cluster0, and region1,
 * active in cluster1; its default is cluster0. */
#ifndef CADENZA_SIM_ACTIVE_ACTIVE_SCRIPT_H
#define CADENZA_SIM_ACTIVE_ACTIVE_SCRIPT_H

#include "sim/scripts/script.h"

#define REUSE(name) API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_##name)
#define CLOSE(name)                                                                                \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)
#define AT_ONCE (500 * NS_PER_MS) /* nothing that waits for a timeout is that quick */

/* In a group of `clusters`. */
void active_play(unsigned clusters, void (*run)(struct script *script));
/* The same, with the n-th seed. */
void active_play_seed(unsigned clusters, int seed_index, void (*run)(struct script *script));
/* The same, where clusters pass no calls on. */
void active_play_unforwarded(unsigned clusters, void (*run)(struct script *script));
/* The same, where each cluster lies in the region of its number. */
void active_play_regions(unsigned clusters, void (*run)(struct script *script));

API(ActiveClusterSelectionPolicy) *active_policy(struct script *script, const char *scope,
                                                 const char *name);
/* region NULL: the start says nothing. */
API(StartWorkflowExecutionRequest) *active_start_request(struct script *script, const char *id,
                                                         const char *region);
const char *active_start(struct script *script, unsigned cluster, const char *id,
                         const char *region);
must_use struct error *active_signal_with_start(struct script *script, unsigned cluster,
                                                API(StartWorkflowExecutionRequest) *start,
                                                const char *signal, const char **run_id);
/* The region moves, asked in the cluster that it goes to. */
void active_move(struct script *script, const char *region, unsigned to);
/* The same, if it can be. */
must_use struct error *active_try_move(struct script *script, const char *region, unsigned to);
/* Waits until the cluster knows that. */
void active_await_move(struct script *script, unsigned cluster, const char *region, unsigned to);

/* Completes the next decision of the cluster's workers, which must be of that workflow, with the
 * end of it. */
void active_end(struct script *script, unsigned cluster, const char *id);
/* policy NULL: the child says nothing. */
API(Decision) *active_start_child(struct script *script, const char *id,
                                  API(ActiveClusterSelectionPolicy) *policy);
#define UNKNOWN                                                                                    \
    "Cannot start workflow with a cluster attribute that is not found in the domain's metadata."

/* All events from `first` on (counted from 0) were written in that cluster. */
void active_expect_written(const API(History) *history, size_t first, unsigned cluster);
/* The run's close status in that cluster, soon; NULL run: the current one. */
void active_expect_closed(struct script *script, unsigned cluster, const char *id,
                          const char *run_id, int status);
/* The region that the run was started with; "": none. */
const char *active_region(const API(History) *history);

#endif
