/* ndc_load.h - workflows of a global domain in a group of clusters, while the domain is failed over
 * by force and the clusters cannot always hear each other.
 *
 * Clients start, signal, cancel and terminate at any cluster; each cluster has workers of its own,
 * which follow the plans of workflow_load.h. Somebody moves the domain, at whichever cluster
 * answers, also to two clusters at once that do not hear of each other: then both take calls, and
 * histories diverge. The ledger, outside of every host, holds what was acknowledged.
 *
 * Some reset workflows to a decision of the history that they read, slowly, page by page; operators
 * have events fetched again and runs rebuilt from their histories, at any cluster.
 *
 * Checkers (ndc_verify.c, ndc_check.c), once all is healed and nobody moves the domain any more:
 *   1. every workflow and every child ends, and every cluster shows the same current run of each
 *      id, closed, and the same history of each run, to the byte;
 *   2. versions in a history never fall, and ids have no gap, also over the pages of one read;
 *   3. every acknowledged start has its run in every cluster; every acknowledged signal is in the
 *      history of a run of its workflow id: what was on one that lost was applied again, once, or
 *      is in the report where no run could take it; so is every cancel request and termination;
 *   4. a decision is handed out by the cluster whose version its start has: never by a passive one;
 * an activity with the input that it was scheduled with;
 *   5. no timer fires early;
 *   6. every run is, in every cluster, what its history says (run_checksum), and the same;
 *   7. no cluster lists an open run in the end, and no message is left in a dead letter queue;
 *   8. a decision that is scheduled is started soon, once nothing moves and all clusters hear each
 *      other: workers poll the workflow's own list in every cluster, but a sticky list in one.
 *
 * Of graceful failovers (ndc_grace.c), if none of them ran out of time and none was by force:
 *   9. every one of them is complete, as the history of failovers says; no branch ever forked, no
 *      run gave way to another: no old version was ever written behind a marker; in the end no
 *      cluster reports that anything was lost;
 *  10. a cluster that took a signal has the signal that its sender knew to be taken before.
 * If some did: their reports name the shards that were missing.
 *
 * With homes (ndc_homes.c) the domain is active in every cluster, and attributes of it move:
 *  11. what a cluster shows of an attribute is active where its version says, and the version never
 *      falls; in the end all clusters show the same, rows and homes of users included, and nothing
 *      moved that nobody asked to move; of moves of the domain itself the one that made the
 * greatest version stands;
 *  12. a run belongs to what its start named, or to the region of the cluster that was asked, never
 *      to that of another one; so do the runs after it; a child that named a user belongs to it;
 *  13. every event of a run has a version that its own attribute had: no other one's move moves it,
 *      and with 4, no version is written by two clusters. */
#ifndef CADENZA_SIM_CLUSTERS_NDC_LOAD_H
#define CADENZA_SIM_CLUSTERS_NDC_LOAD_H

#include "sim/workflow/workflow_load.h"
#include "sim/world/calls.h"
#include "sim/world/nemesis.h"
#include "sim/world/sim.h"
#include "sim/world/verdict.h"
#include "uber/cadence/api/v1/decision.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"

struct ndc_options {
    unsigned clients, workers; /* workers of each kind, at each cluster */
    unsigned workflows_max;
    int64_t think_max;
    int64_t move_pause_max; /* between two failovers; 0: the domain stays */
    /* Failovers are graceful, with this timeout; 0: by force. */
    int64_t grace_seconds_max;
    bool has_force;               /* one in four is by force after all, and timeouts are shorter */
    bool has_no_competing_starts; /* nobody else starts the same workflow */
    unsigned witnesses;           /* of causes and effects */
    bool has_homes;               /* the domain has attributes, and these move */
    bool moves_default;           /* with homes: the domain itself is moved alone, too */
    bool has_entities;            /* with homes: runs may belong to users, and these move, too */
    bool has_strangers; /* with entities: children may belong to other users than their parents */
    bool has_sticky;    /* deciders have lists of their own */
    bool may_lose; /* clusters are set back to backups before all was replicated: 3 is not asked */
};

#define NDC_ATTRIBUTES 6 /* three regions, three cities */
#define NDC_ENTITIES   3 /* users; their numbers come behind NDC_ATTRIBUTES, which is none */
#define NDC_MOVES_MAX  2048

/* What was asked of the starts of one workflow id. */
struct ndc_home {
    int said, competitor; /* attributes that they name; below 0: none */
    bool is_competing_sent;
    unsigned asked; /* bit per cluster: it was asked to start without a name */
};
/* Something that moved: an attribute, or behind them the domain itself. */
struct ndc_move {
    unsigned which;
    int64_t failover_version;
    bool is_rise; /* of the version only: whose cluster lost memory */
};

struct ndc_load {
    struct sim *sim;
    struct ndc_options options;
    unsigned entry_count;
    struct workflow_entry *entries;
    unsigned clients_running, workers_running, movers_running;
    bool is_over, is_audited;
    bool is_paused; /* clients, workers and movers begin nothing; so many of them wait for that: */
    unsigned paused;
    uint64_t calls, acknowledged, failed, failovers, signals, decisions, resets;
    /* Of graceful failovers. */
    uint64_t completed, timed_out;
    uint64_t divergences; /* that clusters report in the end */
    unsigned moved_to[2]; /* where the domain was asked to go last, and before */
    unsigned witnesses_running, testimonies;
    uint64_t causes_seen, causes_nowhere; /* of testimonies: they hold; lost silently */
    char broken[200]; /* an effect whose cause was missing; "": none. Counts if none timed out */
    char domain_id[40];
    int64_t calm_time; /* wall clock: since then nothing moves and nobody calls; 0: not yet */
    int64_t wait_max;  /* of decisions for a worker, since then */
    struct verdict verdict;
    /* With homes. */
    struct ndc_home *homes;                                  /* one for each entry; NULL: without */
    uint64_t moves_asked[NDC_ATTRIBUTES + 1][SIM_GROUP_MAX]; /* and not found in the history yet */
    int64_t versions_seen[SIM_GROUP_MAX][NDC_ATTRIBUTES + 1]; /* by cluster that was asked */
    unsigned forgotten[SIM_GROUP_MAX];                        /* how often it was set back */
    bool has_moves;                                           /* the history was read */
    unsigned move_count;
    struct ndc_move moves[NDC_MOVES_MAX];
};

struct ndc_load *ndc_load_start(struct sim *sim, const struct ndc_options *options);
void ndc_load_free(struct ndc_load *load);
/* Harms the clusters for so long, then repairs them; again, if the harm kept everybody from
 * beginning: a storm without workflows shows nothing. False: a host does not come up. */
must_use bool ndc_load_harm(struct ndc_load *load, struct nemesis *nemesis, int64_t duration);
/* Lets the clients end, lets the group settle, checks. Runs the world. The violation, or NULL. */
const char *ndc_load_verify(struct ndc_load *load);

/* Clients, workers and movers finish what they do and begin nothing before ndc_load_go_on. False:
 * they do not come to an end. Run the world. */
must_use bool ndc_load_pause(struct ndc_load *load);
void ndc_load_go_on(struct ndc_load *load);
/* The cluster is set back: what it showed of the domain need not be what it will show. */
void ndc_load_forget(struct ndc_load *load, unsigned cluster);

/* --- for the files of the load ---- */

#define NDC_DOMAIN "flows"

/* One call; counts it. An error that no server should give is a violation. */
#define ndc_call(load, call, request, response)                                                    \
    ndc_call_at((load), (call), &(request)->base, (ProtobufCMessage **)(response))
must_use struct error *ndc_call_at(struct ndc_load *load, struct load_call *call,
                                   const ProtobufCMessage *request, ProtobufCMessage **response);
struct ndc_part {
    struct ndc_load *load;
    unsigned number, cluster;
};
/* Waits until the load goes on, if it is paused. Yields. */
void ndc_rest(struct ndc_load *load);
/* Sleeps for up to so long. */
void ndc_pass_time(int64_t at_most);
void ndc_random_id(char *room, size_t size);
/* Who a worker of a cluster says to be, and the cluster of such a name; -1: it is none. */
char *ndc_identity(unsigned cluster, struct arena *arena);
int ndc_cluster_of_identity(const char *identity);
/* Reads a history by pages and resets the workflow to one of its decisions; asks a cluster to fetch
 * events once more (ndc_operations.c). Yield. */
void ndc_reset(struct ndc_load *load, struct load_clients *clients,
               const struct workflow_entry *entry);
void ndc_resend(struct ndc_load *load, struct load_clients *clients,
                const struct workflow_entry *entry);
/* Replaces the run by what its history says. Yields. */
void ndc_rebuild(struct ndc_load *load, struct load_clients *clients,
                 const struct workflow_entry *entry);
void ndc_client_main(void *part);
void ndc_decider_main(void *part);
void ndc_sticky_main(void *part);
void ndc_activity_main(void *part);
void ndc_mover_main(void *part);
void ndc_grace_mover_main(void *part);
void ndc_witness_main(void *part);
/* --- with homes (ndc_homes.c) ---- */

extern const struct load_attribute ndc_attributes[NDC_ATTRIBUTES];
void ndc_home_mover_main(void *part);
void ndc_home_watcher_main(void *part);
/* What the starts of a new entry shall name. */
void ndc_home_choose(struct ndc_load *load, unsigned entry);
/* Names it in a start; notes whom it is sent to. */
void ndc_home_put(struct ndc_load *load, unsigned entry, bool is_competing, struct load_call *call,
                  API(StartWorkflowExecutionRequest) *request);
/* Names users for the children that are to be started. */
void ndc_home_put_children(const struct ndc_load *load, API(Decision) *const *decisions,
                           size_t count, struct arena *arena);
/* Of a run of a child. */
void ndc_home_check_child(struct ndc_load *load, const struct workflow_entry *child,
                          const API(History) *history);
/* When nobody moves anything any more. Yields. */
void ndc_homes_audit(struct ndc_load *load, struct load_clients *clients);
/* Of a run of the entry. */
void ndc_home_check_run(struct ndc_load *load, const struct workflow_entry *entry,
                        const API(History) *history);

/* Waits until the group has settled, then checks. Yields. */
void ndc_audit(struct ndc_load *load);

#endif
