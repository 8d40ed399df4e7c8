/* visibility.h - what list, scan and count calls are answered from: fed by the shards, queried by
 * anybody.
 *
 * Promises, kept by every engine and proven on each by contract.c:
 *   1. A feed is one transaction: its changes and the levels of its shards, all or nothing.
 *   2. A change is known by (shard, row); rows of a shard come in rising order, and what is not
 *      above the shard's level is skipped. So a feed may be repeated, and an owner of a shard that
 *      was overtaken brings nothing back.
 *   3. What a feed has returned for is seen by every list call that begins later; a crash of the
 * process takes nothing back. A crash of the machine may: visibility_sync says up to where it may
 * not. The shard keeps its rows until then.
 *   4. A page is of one moment. The next one goes on behind the last run of the one before, by
 *      (order value, run id): what is inserted meanwhile moves nothing.
 *   5. Queries never wait for the writer, nor it for them, longer than a moment.
 *
 * All calls yield and may be made on every loop, unless they say otherwise. Errors:
 * ERR_UNAVAILABLE, ERR_IO, ERR_CORRUPT; ERR_DEADLINE when a question takes longer than its caller
 * waits. */
#ifndef CADENZA_VISIBILITY_VISIBILITY_H
#define CADENZA_VISIBILITY_VISIBILITY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "visibility/query.h"

struct visibility;

struct visibility_options {
    const char *path; /* of the database file */
    const struct log *log;
    struct metrics *metrics;
};
must_use struct error *visibility_open_sqlite(const struct visibility_options *options,
                                              struct arena *arena, struct visibility **visibility);
/* For simulation; several hosts may share one. Never yields. */
struct visibility *visibility_open_memory(void);
void visibility_close(struct visibility *visibility);

/* --- feeding -------------------------------------------------------------------------------- */

struct visibility_change {
    uint32_t shard;
    uint64_t row;
    const char *domain_id, *workflow_id, *run_id;
    struct slice info; /* an encoded WorkflowExecutionInfo; empty: the run is gone */
    int32_t num_clusters;
};
/* `attributes` gives the types of custom attributes; values that do not fit are kept in the info
 * but not searched by. */
must_use struct error *visibility_feed(struct visibility *visibility,
                                       const struct visibility_change *changes, size_t count,
                                       const struct attribute_set *attributes, struct arena *arena);
/* The shard's newest row that was fed; 0: none. */
must_use struct error *visibility_level(struct visibility *visibility, uint32_t shard,
                                        struct arena *arena, uint64_t *row);
/* Makes all that was fed safe from a crash of the machine. */
must_use struct error *visibility_sync(struct visibility *visibility, struct arena *arena);
/* Begins a shard again: its level is set, its runs go (for a rebuild). Not all at one moment: list
 * calls see them going, and after an error some are left: forget again. Nobody feeds the shard
 * meanwhile.
 */
must_use struct error *visibility_forget(struct visibility *visibility, uint32_t shard,
                                         uint64_t level, struct arena *arena);

/* --- asking --------------------------------------------------------------------------------- */

struct visibility_question {
    const char *domain_id;
    const struct query *query;
    size_t page_size;   /* 1 or more */
    struct slice token; /* empty: from the start; else what the page before gave */
    bool is_unordered;  /* a scan: any order that pages well */
};
struct visibility_page {
    struct slice *info; /* each an encoded WorkflowExecutionInfo */
    size_t count;
    struct slice token; /* empty: it was the last page */
};
/* Errors: ERR_BAD_REQUEST, too: a token that is not of such a question. */
must_use struct error *visibility_list(struct visibility *visibility,
                                       const struct visibility_question *question,
                                       struct arena *arena, struct visibility_page *page);
must_use struct error *visibility_count(struct visibility *visibility, const char *domain_id,
                                        const struct query *query, struct arena *arena,
                                        int64_t *count);

#endif
