/* failover.h - managed failover and rebalance from the command line: runs of system workflows in
 * domain cadence-system. Inside cli/ only. */
#ifndef CADENZA_CLI_FAILOVER_FAILOVER_H
#define CADENZA_CLI_FAILOVER_FAILOVER_H

#include <jansson.h>

#include "cli/base/inside.h"
#include "system/managed.h"

#define FAILOVER_DOMAIN "cadence-system"
#define FAILOVER_ID     "cadence-failover-manager"

/* A run that shall be started, or that a dry run is about. */
struct failover_plan {
    enum managed_kind kind;
    const char *workflow_id, *type;
    const char *input; /* JSON, as the workflow reads it */
    const char *cron;  /* "": once */
    int64_t timeout;   /* seconds that the run may take */
    const char *title; /* "Failover" */
};

/* What the flags of `failover start` ask for. Errors: a flag is wrong or missing. Pure. */
must_use struct error *failover_plan_start(struct cli_call *call, struct failover_plan *plan);
/* What the flags of `rebalance start` ask for. Pure. */
void failover_plan_rebalance(struct cli_call *call, struct failover_plan *plan);
/* Shows which domains would move, and how (failover_preview.c). Yields. */
must_use struct error *failover_preview(struct cli_call *call, const struct failover_plan *plan);

/* How far a run is (failover_state.c). */
struct failover_state {
    json_t *json;      /* as `query` prints it; the caller's to let go of */
    const char *state; /* "running", "paused", "complete", "aborted", ... */
    const char *error; /* why it ended, if it was not complete; else NULL */
    long long total, success, failed;
    bool is_open;
};
/* Yields. Errors: the server's. */
must_use struct error *failover_ask_state(struct cli_call *call, const char *workflow_id,
                                          const char *run_id, struct failover_state *state);
/* Says how far it is until it has ended; exit code 1 unless every domain moved. Yields. */
must_use struct error *failover_watch(struct cli_call *call, const char *workflow_id,
                                      const char *run_id);
/* The workflow that --v2 and --failover_drill mean. */
const char *failover_workflow_id(const struct cli_call *call);

/* Rows of the table. */
struct error *cli_failover_start(struct cli_call *call);
struct error *cli_failover_query(struct cli_call *call);
struct error *cli_failover_rollback(struct cli_call *call);
struct error *cli_failover_list(struct cli_call *call);
struct error *cli_failover_fast(struct cli_call *call);
struct error *cli_rebalance_start(struct cli_call *call);
struct error *cli_rebalance_list(struct cli_call *call);
struct error *failover_complete_pause(struct cli_call *call, ProtobufCMessage *request);
struct error *failover_complete_resume(struct cli_call *call, ProtobufCMessage *request);
struct error *failover_complete_abort(struct cli_call *call, ProtobufCMessage *request);

#endif
