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
 *   4. what somebody saw of a history is still there at the end, and a workflow that was said to be
 *      over was over then: nothing was visible that a crash took back;
 *   5. a task is handed out once, an activity with the input that it was scheduled with;
 *   6. when all is over the store holds nothing that waits: no rows of outbox, buffered events,
 *      tasks, no wake-up timers but those of deletion; every id's current run is its last
 *      (workflow_rows.c);
 *   7. a child is started once, knows its parent, hears each signal once, ends as its policy says,
 *      and its parent is told so, once, if it waits (workflow_children.c); nobody waits for ever;
 *   8. a strong query sees every signal that was acknowledged before it was asked, and no query
 *      sees a signal that nobody sent;
 *   9. after a reset the run that it made begins with what was before, and it has every signal that
 *      was acknowledged, once; the runs that were there before have ended too;
 *  10. a run that follows another one, by a retry policy or a cron schedule, begins at the moment
 *      that follows from the run before it, never early, and once (workflow_chain.c);
 *  11. if the domain moves: shards follow it (shard_log.h), and have handled everything at the end;
 *  12. a start that was accepted for later makes one run, by that request; one behind it, which the
 *      run does not allow, makes none (workflow_later.c);
 *  13. a list that asks for all that was committed has every run whose start was acknowledged
 *      before, and in the end lists show exactly the runs that there are (workflow_visibility.c).
 */
#ifndef CADENZA_SIM_WORKFLOW_WORKFLOW_LOAD_H
#define CADENZA_SIM_WORKFLOW_WORKFLOW_LOAD_H

#include "base/map.h"
#include "sim/workflow/shard_log.h"
#include "sim/world/sim.h"
#include "sim/world/verdict.h"

#define WORKFLOW_SIGNALS_MAX 128 /* of the busy id; others have fewer than ... */
#define WORKFLOW_SIGNALS_FEW 6
#define QUERIED_SIGNALS      32 /* queries answer with a bit for each of the first ones */

/* What a workflow does, in its input as text. */
struct workload {
    unsigned activities; /* one after the other */
    unsigned timers;     /* after them, one after the other; 1 … 3 s each */
    unsigned signals;    /* it waits for, in its first run */
    unsigned runs;       /* more runs, by continue-as-new */
    unsigned failures;   /* attempts that fail before one does not, by its retry policy */
    unsigned fires;      /* runs by its cron schedule, before it goes on without one */
    /* Children, all started before the rest, in the first run. */
    unsigned children;
    unsigned child_policy;   /* enum workflow_child_policy: what becomes of them */
    unsigned child_runs;     /* more runs of each child */
    unsigned child_failures; /* the same as above, of each child */
    unsigned child_fires;
    unsigned is_endless; /* the last run never ends by itself: a child that somebody ends */
    /* Where clusters disagree a child may be refused, or lose its parent: the plan goes on without
     * it, and a child ends by itself. */
    unsigned is_mild;
};

/* How a parent and its children part. */
enum workflow_child_policy {
    CHILD_POLICY_WAITS, /* each gets a signal from the parent, which waits for all of them to end */
    CHILD_POLICY_ABANDONS,   /* the parent ends, they go on */
    CHILD_POLICY_CANCELS,    /* it ends, they are asked to */
    CHILD_POLICY_TERMINATES, /* it ends, they are terminated */
    CHILD_POLICY_REQUESTS,   /* it asks each to end by a decision of its own, and waits for all */
    CHILD_POLICY_COUNT
};

/* How it is started. */
enum workflow_start {
    START_NOW,
    START_LATER,                 /* accepted first */
    START_LATER_SIGNALED,        /* with its first signal */
    START_LATER_WITH_COMPETITOR, /* another request behind it, which must be dropped */
};

enum workflow_fate { FATE_COMPLETE, FATE_CANCEL, FATE_TERMINATE };

/* One workflow id, and what its client knows of it. */
struct workflow_entry {
    char id[32];
    struct workload workload;
    enum workflow_fate fate;
    bool has_asked;       /* for its children, and a worker was told so */
    const char *schedule; /* of a plan with fires */
    bool is_buffered;     /* a fire that was missed is made up for */
    unsigned jitter;      /* seconds */
    enum workflow_start start;
    char start_request_id[40];
    unsigned searches; /* for the run of a start that was accepted, after the storm */
    char run_id[40];   /* of the acknowledged start; "": not yet */
    /* Signals: each has a request id of its own, told by its name "s<i>". */
    bool is_signal_acknowledged[WORKFLOW_SIGNALS_MAX];
    unsigned signals_sent;    /* bit per signal: perhaps without an answer */
    bool is_end_acknowledged; /* cancel or terminate */
    int64_t gone_time;        /* wall clock: its client was told that it is over; 0: never */
    /* A reset of the run above, after so many signals. */
    unsigned reset_after; /* UINT_MAX: none */
    int64_t fork;         /* the decision that it goes back to; 0: there was none yet */
    bool is_heavy;        /* its signals are large: more than a page is before the fork */
    char reset_request_id[40];
    char reset_run_id[40]; /* of the acknowledged reset; "": none */
};

/* Something that a worker was told, by a name that stands in the history: a marker, a result. */
struct reported {
    bool is_acknowledged;
    /* A list of decisions that would close the run is answered well, and void, when the worker had
     * not seen everything (unhandled): then the history says so, by this name. "": cannot be. */
    char unhandled[64];
    bool is_transient; /* the failure of a decision that is not stored leaves no event either */
};

struct workflow_load {
    struct sim *sim;
    unsigned client_count, worker_count, observer_count;
    bool is_divided;   /* one of the observers divides the task lists */
    bool is_hasty;     /* every workflow is a parent that is ended at once */
    bool is_signaling; /* every workflow signals children that go on as other runs */
    unsigned entry_count, entries_max;
    struct workflow_entry *entries;
    struct map *reported; /* name → struct told */
    struct map *events;   /* "run/event id" → hash of the event that somebody saw, as a pointer */
    struct map *handed;   /* names of tasks that a worker was given */
    int64_t think_max, patience_max;
    unsigned busy_signals;
    struct workflow_entry *ending; /* somebody ends it just now, at this host; NULL: nobody yet */
    unsigned ending_host;
    bool is_over;    /* clients start no more; workers go on */
    bool is_audited; /* every workflow was looked at: workers end too */
    unsigned clients_running, workers_running, observers_running, movers_running;
    struct shard_log *shard_log; /* of a domain that moves; NULL: it does not */
    uint64_t calls, acknowledged, failed, repeats;
    uint64_t tasks_dropped, polls_abandoned, tasks_seen, activities_failed;
    uint64_t queries, queries_answered;
    struct verdict verdict;
};

struct workflow_options {
    unsigned clients, workers;
    unsigned observers; /* who read histories at any host while all goes on */
    bool is_divided;    /* an operator divides the task lists, again and again */
    bool is_hasty;      /* every workflow is terminated when it has asked for its children */
    bool is_signaling;  /* every workflow signals its children, which go on as other runs then */
    unsigned workflows_max;
    unsigned busy_signals; /* to one more id, of all clients at once; 0: there is no such id */
    int64_t think_max;
    int64_t patience_max; /* of every third worker with its polls; 0: 3 s */
    bool is_moving;       /* the domain is moved to another cluster and back; nothing is reset */
};
/* Starts the client host. Free with workflow_load_free. */
struct workflow_load *workflow_load_start(struct sim *sim, const struct workflow_options *options);
void workflow_load_free(struct workflow_load *load);
/* Lets the clients end, waits until every workflow has ended, and checks. Runs the world. The
 * violation, or NULL. */
const char *workflow_load_verify(struct workflow_load *load);
/* Later, when the retention of all runs has passed: is there nothing of them? Runs the world. The
 * violation, or NULL. */
const char *workflow_load_verify_gone(struct workflow_load *load);

#endif
