/* sample.h - runs and queries for tests: chosen ones, and random ones that meet.
 *
 * Random values come from small sets, so that random queries find some of them, and have in them
 * what could break an engine: quotes, patterns, lists, missing values, numbers at the edges. */
#ifndef CADENZA_VISIBILITY_TEST_SAMPLE_H
#define CADENZA_VISIBILITY_TEST_SAMPLE_H

#include "base/random.h"
#include "visibility/visibility.h"

#define SAMPLE_FIELDS_MAX 8

struct sample_field {
    const char *key;
    const char *json;
};

/* A run as a test writes it down; what is not said is not set. */
struct sample_run {
    const char *domain_id;   /* "domain" */
    const char *workflow_id; /* "workflow" */
    const char *run_id;
    const char *type;                              /* "type" */
    int64_t start_ms;                              /* in ns it has 123456 more, as real ones do */
    int64_t delay_ms;                              /* of the first decision */
    bool is_closed;                                /* at start + 1 s */
    int close_status;                              /* 0 .. 5, as queries have it */
    const char *cron_schedule;                     /* NULL: none */
    const char *task_list;                         /* "list" */
    const char *cluster_attribute;                 /* NULL: none; its scope is "region" */
    struct sample_field fields[SAMPLE_FIELDS_MAX]; /* up to the first without a key */
    int32_t num_clusters;                          /* 1 if 0 */
    uint32_t shard;
    uint64_t row;
};

/* The change that brings the run; all of it lives in the arena. */
struct visibility_change sample_change(struct arena *arena, const struct sample_run *run);
/* A random run with this number in its ids. Row and shard are the caller's to set. */
struct sample_run sample_random_run(struct random *random, struct arena *arena, unsigned number);
/* A random text of a query that parses; for runs with numbers below `runs`. */
const char *sample_random_query(struct random *random, struct arena *arena, unsigned runs);

#endif
