/* workflow_load.h - clients and workers that run workflows, and remember what they were told.
 *
 * A workflow follows a plan that stands in its input: so many activities and timers one after the
 * other, so many signals to wait for, so many runs. The worker decides by reading the history it is
 * given, like a real one. Clients start, signal, cancel and terminate; everybody repeats a call
 * with the same request id, at any host, until it is answered, and sometimes once more after that.
 *
 * The ledger, outside of every host, holds what was acknowledged and every event that anybody saw.
 * Checkers (workflow_verify.c):
 *   1. every acknowledged call has its effect in the history, exactly once; a call that was never
 *      answered at most once;
 *   2. every workflow ends, as its plan says;
 *   3. no timer fires early, no activity is retried before its time;
 *   4. what somebody saw of a history is still there at the end: nothing was visible that a crash
 *      took back;
 *   5. a run that follows another one, by a retry policy or a cron schedule, begins at the moment
 *      that follows from the run before it, never early, and once (workflow_chain.c). */
#ifndef CADENZA_SIM_WORKFLOW_LOAD_H
#define CADENZA_SIM_WORKFLOW_LOAD_H

#include "base/map.h"
#include "sim/sim.h"
#include "sim/verdict.h"

#define WORKFLOW_SIGNALS_MAX 6

/* What a workflow does, in its input as text. */
struct plan {
    unsigned activities; /* one after the other */
    unsigned timers;     /* after them, one after the other; 1 … 3 s each */
    unsigned signals;    /* it waits for, in its first run */
    unsigned runs;       /* more runs, by continue-as-new */
    unsigned failures;   /* attempts that fail before one does not, by its retry policy */
    unsigned fires;      /* runs by its cron schedule, before it goes on without one */
};

enum workflow_fate { FATE_COMPLETE, FATE_CANCEL, FATE_TERMINATE };

/* One workflow id, and what its client knows of it. */
struct workflow_entry {
    char id[32];
    struct plan plan;
    enum workflow_fate fate;
    const char *schedule; /* of a plan with fires */
    bool is_buffered;     /* a fire that was missed is made up for */
    unsigned jitter;      /* seconds */
    char start_request_id[40];
    char run_id[40]; /* of the acknowledged start; "": not yet */
    /* Signals: each has a request id of its own, told by its name "s<i>". */
    bool is_signal_acknowledged[WORKFLOW_SIGNALS_MAX];
    bool is_end_acknowledged; /* cancel or terminate */
};

/* Something that a worker was told, by a name that stands in the history: a marker, a result. */
struct told {
    bool is_acknowledged;
    /* A list of decisions that would close the run is answered well, and void, when the worker had
     * not seen everything (unhandled): then the history says so, by this name. "": cannot be. */
    char unhandled[64];
    bool is_transient; /* the failure of a decision that is not stored leaves no event either */
};

struct workflow_load {
    struct sim *sim;
    unsigned client_count, worker_count;
    unsigned entry_count, entries_max;
    struct workflow_entry *entries;
    struct map *told;   /* name → struct told */
    struct map *events; /* "run/event id" → hash of the event that somebody saw, as a pointer */
    int64_t think_max;
    bool is_over;    /* clients start no more; workers go on */
    bool is_audited; /* every workflow was looked at: workers end too */
    unsigned clients_running, workers_running;
    uint64_t calls, acknowledged, failed, repeats;
    uint64_t tasks_dropped, polls_abandoned, tasks_seen, activities_failed;
    struct verdict verdict;
};

/* Starts the client host with so many clients and workers. Free with workflow_load_free. */
struct workflow_load *workflow_load_start(struct sim *sim, unsigned clients, unsigned workers,
                                          unsigned workflows_max, int64_t think_max);
void workflow_load_free(struct workflow_load *load);
/* Lets the clients end, waits until every workflow has ended, and checks. Runs the world. The
 * violation, or NULL. */
const char *workflow_load_verify(struct workflow_load *load);

#endif
