/* test_samples.h - a run to try things on: the steps of a small world, for tests of this folder. */
#ifndef CADENZA_ENGINE_RUN_TEST_SAMPLES_H
#define CADENZA_ENGINE_RUN_TEST_SAMPLES_H

#include "engine/run/inside.h"

#define SAMPLE_TIME   ((int64_t)1700000000 * SECOND) /* when it begins */
#define SAMPLE_DOMAIN "d0000000-0000-4000-8000-000000000000"
#define SAMPLE_RUN    "a0000000-0000-4000-8000-000000000001"

struct sample {
    struct arena *arena;
    struct dynamic *dynamic;
    struct random random;
    struct row_ids ids;
    struct run_context context; /* context.now is the clock */
    struct run *run;
    struct mutation *mutation; /* the step that is open, or NULL */
    struct batch *batch;       /* of the last step */
    struct effects effects;    /* of the last step */
    const char *input;         /* of activities; NULL: a small one */
};

/* A world with an empty run. */
void sample_open(struct sample *sample, uint64_t seed);
void sample_close(struct sample *sample);
/* Opens a step; ends it and checks the run. */
void sample_begin(struct sample *sample);
void sample_finish(struct sample *sample);
void sample_wait(struct sample *sample, int64_t seconds);

/* The run as it would be stored: equal runs have equal images. */
struct slice sample_image(const struct run *run, struct arena *arena);

/* --- events; each returns the id -----------------------------------------------------------------
 */

int64_t sample_started(struct sample *sample, int64_t backoff);
int64_t sample_decision_scheduled(struct sample *sample);
int64_t sample_decision_started(struct sample *sample);
int64_t sample_decision_completed(struct sample *sample);
int64_t sample_decision_failed(struct sample *sample);
int64_t sample_decision_timed_out(struct sample *sample, API(TimeoutType) type);
/* With `attempts` 0: no retry policy. */
int64_t sample_activity_scheduled(struct sample *sample, const char *id, int32_t attempts);
int64_t sample_activity_started(struct sample *sample, int64_t schedule_id);
/* One of the four kinds of end. */
int64_t sample_activity_ended(struct sample *sample, int64_t schedule_id,
                              API(HistoryEvent__AttributesCase) kind);
int64_t sample_activity_cancel_requested(struct sample *sample, const char *id);
int64_t sample_timer_started(struct sample *sample, const char *id, int64_t seconds);
int64_t sample_timer_fired(struct sample *sample, const char *id);
int64_t sample_timer_canceled(struct sample *sample, const char *id);
int64_t sample_signaled(struct sample *sample, const char *name, const char *request_id);
/* An event of this kind without attributes. */
int64_t sample_plain(struct sample *sample, API(HistoryEvent__AttributesCase) kind);

/* --- shortcuts
 * ------------------------------------------------------------------------------------ */

/* A run with its first decision scheduled, started: a step each. */
void sample_scheduled_run(struct sample *sample);
void sample_started_run(struct sample *sample);
/* Adds an event that fits the run, chosen by chance; never one that closes it. */
void sample_random_event(struct sample *sample);

#endif
