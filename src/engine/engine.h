/* engine.h - all shards of this process, by workflow id, from any loop.
 *
 * Each call finds the shard of the workflow id, goes to its loop, and runs a command or a look
 * there. It takes the shard first if it is not owned. What is put in must stay until the call
 * returns; what comes out lives in the caller's arena. All yield unless they say otherwise. Errors:
 * the command's (command.h) and the shard's (shard.h). */
#ifndef CADENZA_ENGINE_ENGINE_H
#define CADENZA_ENGINE_ENGINE_H

#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/shard/shard.h"

/* Events of a run, for the cluster where it is active. */
struct reapply_message {
    const char *cluster, *domain_name, *workflow_id, *run_id;
    API(HistoryEvent) *const *events;
    size_t count;
};
/* Sends them; filled by server/ or a test. Any loop; yields. An error: it is tried again later. */
struct reapply_port {
    struct error *(*send)(void *context, const struct reapply_message *message,
                          struct arena *arena);
    void *context;
};

/* Sends a cross-workflow task to the cluster where its target is active; as above. Errors: those of
 * the target too. */
struct remote_port {
    struct error *(*send)(void *context, const char *cluster,
                          const STORE_API(RunErrandRequest) *request, struct arena *arena,
                          STORE_API(RunErrandResponse) **response);
    /* Asks for an accepted start by the calls that every Cadence has, for a cluster that does not
     * know the other one (ERR_UNIMPLEMENTED). */
    struct error *(*start)(void *context, const char *cluster, const STORED(TransferRow) *row,
                           struct arena *arena);
    void *context;
};

struct engine_options {
    struct store *store;
    uint32_t shard_count;
    struct domains *domains;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics;
    struct task_port tasks;
    struct reservation_port reservations; /* may be empty */
    struct visible_port visibility;       /* may be empty */
    struct search_port search;            /* may be empty */
    struct archive_port archive;          /* may be empty */
    struct reapply_port reapply;          /* may be empty: such events wait */
    struct remote_port
        remote; /* may be empty: cross-workflow tasks wait for targets that are elsewhere */
    const char *host;
    bool is_alone;
    size_t runs_max;      /* cached, in all; 0: a default */
    size_t transfers_max; /* rows of the outbox in memory, of each shard; 0: a default */
    size_t wakeups_max;   /* wake-up timers in memory, the same */
};

struct engine;

/* Takes all shards; waits while the owner of the domains does not answer. On loop 0. Errors: the
 * store's, ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *engine_open(const struct engine_options *options, struct arena *arena,
                                   struct engine **engine);
/* Stops all shards; nobody calls any more. Ignores cancellation. */
void engine_close(struct engine *engine);
uint32_t engine_shard_of(const struct engine *engine, const char *workflow_id);

/* Has the domain any run, open or closed? Errors: the store's. */
must_use struct error *engine_has_runs(struct engine *engine, const char *domain_id,
                                       struct arena *arena, bool *has_runs);

/* --- skipping time ---- */

/* What all runs wait for. On the only loop there is. */
void engine_look_idle(struct engine *engine, struct shard_idle *idle, struct arena *arena);
/* The wall clock has jumped. */
void engine_clock_jumped(struct engine *engine);

/* --- visibility
 * -------------------------------------------------------------------------------- */

/* Waits until visibility has all that was committed before the call. */
must_use struct error *engine_visibility_wait(struct engine *engine, struct arena *arena);
/* The same for the shards whose number, modulo 64, is a bit of `shards`. */
must_use struct error *engine_visibility_wait_some(struct engine *engine, uint64_t shards,
                                                   struct arena *arena);
/* shard_visibility_stored. Where the shard lives; no yield. */
void engine_visibility_stored(struct engine *engine, uint32_t shard, uint64_t fed, uint64_t safe);
/* Rebuilds visibility from all runs, shard by shard. *runs: how many there are. */
must_use struct error *engine_visibility_rebuild(struct engine *engine, struct arena *arena,
                                                 uint64_t *runs);

/* --- for those who run it ------------------------------------------------------------------------
 */

/* A run from inside, as JSON: as it is in memory, and as the store has it (NULL: not yet). */
struct run_inspection {
    uint32_t shard;
    const char *in_memory, *in_store;
};
must_use struct error *engine_inspect_run(struct engine *engine, const struct run_key *key,
                                          struct arena *arena, struct run_inspection *inspection);
/* Error also: ERR_BAD_REQUEST, there is no such shard. */
must_use struct error *engine_shard_state(struct engine *engine, uint32_t number,
                                          struct arena *arena, struct shard_state *state);
/* Gives the shard up: what is known of it in memory is forgotten, and the next owner, this
 * process at once if nobody else may, reads it again. Error as above. */
must_use struct error *engine_close_shard(struct engine *engine, uint32_t number,
                                          struct arena *arena);
uint32_t engine_shard_count(const struct engine *engine);
/* The name of this process in the records of its shards. */
const char *engine_host(const struct engine *engine);

/* --- clients ------------------------------------------------------------------------------------
 */

/* A start, or a signal with a start. */
must_use struct error *engine_start(struct engine *engine, const char *domain_id,
                                    const struct start_command *command, struct arena *arena,
                                    struct start_answer *answer);
/* The same, later: durable when it returns, then done by the owner of the shard, in order for
 * each workflow id, once the domain is active here. A refusal because of a run that is there is
 * not reported. Errors: those of shard_accept. */
must_use struct error *engine_accept(struct engine *engine, const char *domain_id,
                                     const struct start_command *command, struct arena *arena);
must_use struct error *engine_signal(struct engine *engine, const char *domain_id,
                                     const API(SignalWorkflowExecutionRequest) *request,
                                     struct arena *arena);
must_use struct error *
engine_request_cancel(struct engine *engine, const char *domain_id,
                      const API(RequestCancelWorkflowExecutionRequest) *request,
                      struct arena *arena);
must_use struct error *engine_terminate(struct engine *engine, const char *domain_id,
                                        const API(TerminateWorkflowExecutionRequest) *request,
                                        struct arena *arena);
/* The workflow begins again from a decision of one of its runs (A-199 … A-207): *run_id is the run
 * that does, or did when the request was sent first. */
must_use struct error *engine_reset(struct engine *engine, const char *domain_id,
                                    const API(ResetWorkflowExecutionRequest) *request,
                                    struct arena *arena, const char **run_id);
/* The tasks of the run are sent again. */
must_use struct error *engine_refresh(struct engine *engine, const struct run_key *key,
                                      struct arena *arena);
/* Deletes the run: its history, its rows, and what visibility knows of it. One that is open is
 * terminated first, its parent and children are notified as usual. When it returns NULL nobody
 * finds it any more. Errors: ERR_ENTITY_NOT_EXISTS; ERR_DEADLINE (it may be gone later). */
must_use struct error *engine_remove(struct engine *engine, const struct run_key *key,
                                     const char *identity, struct arena *arena);
/* Deletes a run, or what there is of it, if what is stored of it cannot be right, and tells whether
 * it did. Any other run is left alone; it is not an error if there is none. */
must_use struct error *engine_repair(struct engine *engine, const struct run_key *key,
                                     struct arena *arena, struct shard_repaired *repaired);
/* Counts a client's call on a workflow id that is not a step. Starts, signals, cancel requests,
 * reset and describe count themselves; terminate is never counted. Error: ERR_SERVICE_BUSY, the id
 * had too many (H-006). */
must_use struct error *engine_admit(struct engine *engine, const struct run_key *key,
                                    struct arena *arena);
/* The workflow ids of all shards that are called most, or get most tasks, just now; the hottest
 * first, at most `count_max`. domain_id NULL: of all domains. */
must_use struct error *engine_hottest(struct engine *engine, const char *domain_id,
                                      size_t count_max, struct arena *arena,
                                      struct limits_rate **rates, size_t *count);
/* Runs of all shards whose workers fail every decision, those with most attempts first, at most
 * `count_max`; *total: how many are known. */
must_use struct error *engine_list_failing(struct engine *engine, size_t count_max,
                                           struct arena *arena, struct failing_decision **decisions,
                                           size_t *count, size_t *total);
/* Fills everything that the record knows. */
must_use struct error *engine_describe(struct engine *engine, const struct run_key *key,
                                       struct arena *arena,
                                       API(DescribeWorkflowExecutionResponse) *response);

/* What a workflow that is active in another cluster asks of one that is active here, as one step.
 * Errors: ERR_BAD_REQUEST (the request is invalid), ERR_SERVICE_BUSY (a child whose parent is not
 * known here yet), the command's. */
must_use struct error *engine_run_remote_cross_task(struct engine *engine,
                                                    const STORE_API(RunErrandRequest) *request,
                                                    struct arena *arena,
                                                    STORE_API(RunErrandResponse) *response);

/* What a run belongs to: the cluster attribute that it was started with; NULL: none, so its domain
 * decides. Texts live in the arena. */
struct run_home {
    const char *scope, *name;
    int64_t last_version; /* of its last event: for runs of old, see domain_active_run */
    bool is_open;
};
must_use struct error *engine_home(struct engine *engine, const struct run_key *key,
                                   struct arena *arena, struct run_home *home);

/* --- history ------------------------------------------------------------------------------------
 */

/* Where a run's history stands, all of it durable. Texts live in the arena. */
struct history_state {
    const char *run_id;
    struct history_lineage lineage;
    int64_t next_event_id;
    int64_t close_batch_event_id; /* of a closed run: first id of the batch with the close event */
    int64_t last_first_event_id;
    bool is_open;
    int64_t history_bytes;
    int64_t jitter_start; /* seconds; as the run was started with */
    const API(WorkflowType) *workflow_type;
};
must_use struct error *engine_history_state(struct engine *engine, const struct run_key *key,
                                            struct arena *arena, struct history_state *state);
/* All histories of a run, durable; in the arena. */
struct run_branches;
must_use struct error *engine_find_branches(struct engine *engine, const struct run_key *key,
                                            struct arena *arena, struct run_branches *branches);
/* Stored batches of [from, to) as they are, about bytes_max bytes, at most nodes_max batches (0: no
 * limit). `is_first`: `from` is where no earlier page ended, so the batch that holds it is looked
 * for. */
struct history_range {
    uint32_t shard;
    struct history_lineage lineage;
    int64_t from_event_id, to_event_id;
    bool is_first;
    size_t bytes_max, nodes_max;
};
must_use struct error *engine_read_history(struct engine *engine, const struct history_range *range,
                                           struct arena *arena, struct history_page *page);
/* A history as a fold: its events before next_event_id, one by one. */
struct history_fold {
    const char *workflow_id;
    const struct history_lineage *lineage;
    int64_t next_event_id;
    /* The event is gone after the call; what is kept of it goes to the arena. No yield. */
    void (*add)(void *state, const API(HistoryEvent) *event, struct arena *arena);
    void *state;
};
/* Reads it page by page. Yields. Errors: ERR_CORRUPT, those of the store. */
must_use struct error *engine_fold_history(struct engine *engine, const struct history_fold *fold,
                                           struct arena *arena);
/* Leaves at most that many batches in the page; 0: all. */
void history_page_cut(struct history_page *page, size_t nodes_max);

/* --- several clusters, for operators ------------------------------------------------------------
 */

/* Events that lost: of a history of a run, from one on. */
struct divergence {
    struct run_key key;
    struct uuid branch;
    bool is_of_run; /* another run has the workflow id; else another history of the run won */
    int64_t from_event_id, next_event_id; /* the second one not included */
    int64_t last_version;
    int64_t time; /* when it was noticed here, wall clock */
    API(HistoryEvent) **events;
    size_t event_count;
};
struct divergence_query {
    const char *domain_id, *workflow_id; /* NULL: all; the second one needs the first */
    size_t count_max;
    bool has_events; /* with the events, as many of each as one page holds */
};
must_use struct error *engine_list_divergences(struct engine *engine,
                                               const struct divergence_query *query,
                                               struct arena *arena, struct divergence **divergences,
                                               size_t *count);
/* Is a run what its history says (run_checksum)? */
struct run_verification {
    const char *run_id;
    bool is_comparable; /* false: something is buffered and in no history yet */
    uint64_t stored, rebuilt;
};
must_use struct error *engine_verify(struct engine *engine, const struct run_key *key,
                                     struct arena *arena, struct run_verification *verification);

/* Replaces an open run by what its history says: shard_rebuild. */
must_use struct error *engine_rebuild(struct engine *engine, const struct run_key *key,
                                      struct arena *arena, struct run_rebuilt *outcome);

/* --- queries ------------------------------------------------------------------------------------
 */

/* What a query has to know of its run, all of it durable. Texts live in the arena. */
struct query_view {
    const char *run_id;
    struct history_lineage lineage;
    int64_t next_event_id, previous_started_id, history_bytes;
    bool is_open;
    bool is_active_here;
    const char *active_cluster; /* "": none is known */
    bool has_decision;          /* not completed: there may be events that no worker has seen */
    API(WorkflowExecutionCloseStatus) close_status; /* once closed */
    const API(WorkflowType) *workflow_type;
    const char *list;                                 /* the normal one */
    const char *sticky_list;                          /* "": none */
    int64_t sticky_timeout;                           /* seconds */
    const char *client_name, *client_feature_version; /* of its last worker, or "" */
};
/* `is_strong`: all that was acknowledged before the call is seen, even if another host took the
 * shard and nobody has noticed. */
must_use struct error *engine_query_view(struct engine *engine, const struct run_key *key,
                                         bool is_strong, struct arena *arena,
                                         struct query_view *view);

/* --- tasks and workers --------------------------------------------------------------------------
 */

/* Records that a poller got the task: in the shard that offered it (its range id), or whichever
 * owns it now (row 0). Errors: those of the command (the task is void), ERR_SHARD_OWNERSHIP_LOST
 * (it will be offered again by the present owner of the shard). */
must_use struct error *engine_start_decision(struct engine *engine, const struct task *task,
                                             const char *request_id, const char *identity,
                                             struct arena *arena, struct decision_start *start);
must_use struct error *engine_start_activity(struct engine *engine, const struct task *task,
                                             const char *request_id, const char *identity,
                                             struct arena *arena, struct activity_start *start);
/* Any loop; does not yield: a loop message to the shard. */
void engine_task_done(struct engine *engine, const struct task *task);

/* Answers the queries that rode on the decision, once the step is durable. */
must_use struct error *engine_complete_decision(struct engine *engine, const struct run_key *key,
                                                const struct complete_command *command,
                                                struct arena *arena,
                                                struct complete_answer *answer);
must_use struct error *engine_fail_decision(struct engine *engine, const struct run_key *key,
                                            const struct task_name *task,
                                            const API(RespondDecisionTaskFailedRequest) *request,
                                            struct arena *arena);
must_use struct error *engine_reset_sticky(struct engine *engine, const struct run_key *key,
                                           struct arena *arena);
must_use struct error *engine_complete_activity(struct engine *engine, const struct run_key *key,
                                                const struct activity_report *report,
                                                struct arena *arena);
must_use struct error *engine_fail_activity(struct engine *engine, const struct run_key *key,
                                            const struct activity_report *report,
                                            struct arena *arena);
must_use struct error *engine_cancel_activity(struct engine *engine, const struct run_key *key,
                                              const struct activity_report *report,
                                              struct arena *arena);
must_use struct error *engine_heartbeat_activity(struct engine *engine, const struct run_key *key,
                                                 const struct activity_report *report,
                                                 struct arena *arena, bool *is_cancel_requested);

#endif
