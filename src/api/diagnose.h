/* diagnose.h - what is wrong with a run, told from its history: timeouts, failures, and retries
 * that can never happen.
 *
 * The report has the form of Cadence's diagnostics. It is the result of a run of its own
 * (diagnostics-starter-workflow in domain cadence-system), which the server works on itself: a call
 * starts it, and a fiber of the same host polls its list like any worker until nothing is left
 * there. A decision that a crash interrupted times out and waits for the next such fiber. */
#ifndef CADENZA_API_DIAGNOSE_H
#define CADENZA_API_DIAGNOSE_H

#include "api/inside.h"
#include "engine/engine.h"

#define SYSTEM_DOMAIN      "cadence-system"
#define DIAGNOSTICS_TYPE   "diagnostics-starter-workflow"
#define DIAGNOSTICS_LIST   "diagnostics-wf-tasklist"
#define DIAGNOSTICS_REPORT "query-diagnostics-report"

/* --- the report (diagnose_report.c): no yield but in the port ---- */

/* Who is there to do the work of a list, when the report is written. May yield. */
struct pollers_port {
    /* Does anybody poll it; how many tasks wait there? */
    bool (*look)(void *context, bool is_decision, const char *list, int64_t *backlog);
    void *context;
};

struct diagnosis;
struct diagnosis *diagnosis_begin(struct arena *arena);
/* The next event of the run. It is copied where it is needed. */
void diagnosis_add(struct diagnosis *diagnosis, const API(HistoryEvent) *event);
/* The report, as JSON. */
struct slice diagnosis_end(struct diagnosis *diagnosis, const struct pollers_port *port);
/* What it holds beside its arena. */
void diagnosis_free(struct diagnosis *diagnosis);
/* Of a run that has none yet. */
struct slice diagnosis_pending(struct arena *arena);

/* --- the worker (diagnose_worker.c) ---- */

/* What the diagnostics run is asked for. */
struct diagnose_wish {
    const char *domain, *workflow_id, *run_id, *identity;
};
struct slice diagnose_input(const struct diagnose_wish *wish, struct arena *arena);
/* From now on somebody works on what is started; ends by itself. Does not yield. */
void diagnose_work(struct api *api);

/* The report of a diagnostics run, where the call asks for one. False: it asks for something else.
 * Yields. */
bool diagnose_answers_query(struct rpc_call *call, struct error **err);

#endif
