/* ndc_inside.h - what the checkers of several clusters share. Only ndc_verify.c and ndc_check.c
 * include it. */
#ifndef CADENZA_SIM_CLUSTERS_NDC_INSIDE_H
#define CADENZA_SIM_CLUSTERS_NDC_INSIDE_H

#include "sim/clusters/ndc_load.h"
#include "sim/workflow/workflow_inside.h"
#include "sim/world/calls.h"

#define NDC_RUNS_MAX 96 /* of one workflow id */

struct ndc_audit {
    struct ndc_load *load;
    struct load_clients *clients;
    struct arena *arena;               /* of one look */
    char why[300];                     /* what has not settled */
    char run_id[UUID_TEXT_LENGTH + 1]; /* of which run; "": the current one */
};

/* What the runs of one workflow id have. */
struct ndc_found {
    unsigned signals[WORKFLOW_SIGNALS_FEW];
    unsigned cancels, terminates;
    char runs[NDC_RUNS_MAX][UUID_TEXT_LENGTH + 1];
    size_t run_count, next;
};

struct load_call ndc_call_to(struct ndc_audit *audit, unsigned cluster);
must_use struct error *ndc_read_history(struct ndc_audit *audit, unsigned cluster, const char *id,
                                        const char *run_id, API(History) *history);
void ndc_add_run(struct ndc_found *found, const char *run_id);

/* What one run has, and which others it names; what no history may have is a violation. Yields. */
void ndc_collect_run(struct ndc_audit *audit, const char *id, const char *run_id,
                     struct ndc_found *found);
/* Adds what only the reports of what lost have; or of that, where a current run is given, what
 * other runs lost and the version wrote that began the current one. Yields. */
struct ndc_current {
    const char *run_id;
    int64_t version;
};
void ndc_collect_lost(struct ndc_audit *audit, const char *id, const struct ndc_current *current,
                      struct ndc_found *found);
/* Does any cluster report that the signal, of this workflow id, is among what lost? */
bool ndc_is_reported_lost(struct ndc_audit *audit, const char *id, const char *signal_name);
/* Adds how many histories a cluster reports as lost. Yields. */
void ndc_count_lost(struct ndc_audit *audit, unsigned cluster);
/* Is a run, in every cluster, what its history says, and the same? Yields. */
void ndc_check_rebuild(struct ndc_audit *audit, const char *id, const char *run_id);

#endif
