/* diagnose.h - DiagnoseWorkflowExecution: a run of its own that examines another one.
 *
 * The report, in the form of Cadence's diagnostics, is the result of that run
 * (diagnostics-starter-workflow in domain cadence-system), and the answer to its query. The server
 * works on it itself (system/). */
#ifndef CADENZA_API_WORKFLOW_DIAGNOSE_H
#define CADENZA_API_WORKFLOW_DIAGNOSE_H

#include "base/arena.h"
#include "base/slice.h"

#define SYSTEM_DOMAIN      "cadence-system"
#define DIAGNOSTICS_TYPE   "diagnostics-starter-workflow"
#define DIAGNOSTICS_LIST   "diagnostics-wf-tasklist"
#define DIAGNOSTICS_REPORT "query-diagnostics-report"

/* The input of the diagnostics run, as JSON: which run to examine, and for whom. */
struct diagnosis_spec {
    const char *domain, *workflow_id, *run_id, *identity;
};

#endif
