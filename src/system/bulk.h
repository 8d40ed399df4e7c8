/* bulk.h - batch jobs: one operation on all runs that a query finds.
 *
 * A batch job is a run of cadence-sys-batch-workflow(-v2) in domain cadence-batcher, as Cadence's
 * tools start it; one activity does the work. It reads the runs from visibility in chunks. What a
 * chunk consists of is recorded with a heartbeat before the first of its runs is touched, and what
 * is done to a run carries a request id made of the two run ids. So a chunk can be repeated after a
 * crash: each run is counted once and, for the run itself, it happens once. The heartbeat is also
 * the progress that users see, in Cadence's form. */
#ifndef CADENZA_SYSTEM_BULK_H
#define CADENZA_SYSTEM_BULK_H

#include "system/worker.h"

#define BULK_DOMAIN      "cadence-batcher"
#define BULK_LIST        "cadence-sys-batcher-tasklist"
#define BULK_TYPE        "cadence-sys-batch-workflow"
#define BULK_TYPE_V2     "cadence-sys-batch-workflow-v2"
#define BULK_ACTIVITY    "cadence-sys-batch-activity"
#define BULK_ACTIVITY_V2 "cadence-sys-batch-activity-v2"
#define BULK_TUNE        "cadence-sys-batch-tune-signal"
#define BULK_FINAL       "non-retriable-error" /* reason of failures that are not tried again */

#define BULK_CHUNK           100 /* runs between two durable positions, at most */
#define BULK_CONCURRENCY_MAX 100
#define BULK_FOREVER         ((int64_t)20 * 365 * 24 * 3600) /* seconds */

enum bulk_verb { BULK_TERMINATE, BULK_CANCEL, BULK_SIGNAL, BULK_REPLICATE, BULK_REFRESH };

/* The input of the workflow. */
struct bulk_params {
    const char *domain, *query, *reason, *verb_name;
    enum bulk_verb verb;
    bool has_children; /* the children of a run are included */
    const char *signal_name, *signal_input;
    const char *source_cluster, *target_cluster;
    int64_t rate, concurrency, page_size, attempts;
    int64_t heartbeat_timeout; /* seconds */
    int64_t retries_max;       /* of the activity; 0: no limit */
    const char **final_errors; /* messages after which a run is not tried again */
    size_t final_error_count;
};
/* Reads the input, fills in defaults and checks it. Error: ERR_BAD_REQUEST. */
must_use struct error *bulk_read_params(struct slice input, struct arena *arena,
                                        struct bulk_params *params);
/* Checks what bulk_read_params promises. */
void bulk_params_check(const struct bulk_params *params);

struct bulk_target {
    const char *workflow_id, *run_id;
};
/* How far a batch job got. */
struct bulk_progress {
    struct slice token; /* the page token behind the chunk */
    int64_t total;      /* runs that the query found at the start */
    int64_t success, error;
    int64_t rate, concurrency;
    /* Of the chunk in work: its part of the counts, and its runs. */
    int64_t chunk_success, chunk_error;
    struct bulk_target *targets;
    size_t target_count;
};
/* As JSON: HeartBeatDetails of Cadence, and the chunk unless it is the result. */
struct slice bulk_write_progress(const struct bulk_progress *progress, int64_t page_size,
                                 bool is_result, struct arena *arena);
/* False: the bytes are not that. */
must_use bool bulk_read_progress(struct slice bytes, struct arena *arena,
                                 struct bulk_progress *progress);

/* The input of the activity: that of the workflow, and the values of a tune signal since (0: not
 * tuned). */
struct bulk_order {
    struct slice params;
    int64_t rate, concurrency;
    struct slice progress; /* of an earlier activity; empty: none */
};
struct slice bulk_write_order(const struct bulk_order *order, struct arena *arena);
must_use bool bulk_read_order(struct slice bytes, struct arena *arena, struct bulk_order *order);

/* The values of a tune signal; 0: not given. */
void bulk_read_tuning(struct slice input, struct arena *arena, int64_t *rate, int64_t *concurrency);

/* The activity itself, for other workflows too: its input is an order. */
struct error *bulk_run(struct system_task *task, struct slice *result);

/* --- the work (bulk_work.c) ---- */

/* A batch job while its activity runs. */
struct bulk_job {
    struct system_task *task;
    const struct bulk_params *params;
    const char *domain_id;
    struct bulk_progress progress;
    struct arena *chunk_arena; /* of the token and the targets */
    struct limit *limit;
    bool is_again; /* the chunk was begun before, by an attempt that did not end it */
};
/* Handles all targets of the chunk, which has at least one; the progress is then the one behind it.
 * An error: stop. Yields. */
must_use struct error *bulk_work_on_chunk(struct bulk_job *job);
/* Records the progress. */
must_use struct error *bulk_heartbeat(struct bulk_job *job);

/* Handles one run, and its children where they are included (bulk_target.c). Takes from the limit
 * for each. Yields. */
must_use struct error *bulk_do(const struct bulk_job *job, const struct bulk_target *target,
                               struct arena *arena);

#endif
