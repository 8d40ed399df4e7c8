/* source_history.h - histories that tests write by hand, as other clusters would send them.
 *
 * A feed is one history of a run at its source: it grows batch by batch; a copy of it is a fork.
 * Events are letters:
 *
 *   s started      d decision scheduled   b decision started   c decision completed
 *   f decision failed by a worker         F ... because of a failover
 *   t decision timed out                  g signaled           G signaled, with a request id
 *   a activity scheduled                  A ... started        x ... completed
 *   m timer started                       M ... fired          k cancel requested
 *   E completed    L failed               T terminated         O timed out
 *   V terminated since another run has the id
 *   N continued as new                    R the first event of a reset
 *   i child initiated                     I ... started
 */
#ifndef CADENZA_ENGINE_TEST_SOURCE_HISTORY_H
#define CADENZA_ENGINE_TEST_SOURCE_HISTORY_H

#include "engine/replicated.h"
#include "engine/test/shard_fixture.h"

#define SOURCE_VERSIONS 8

struct source_history {
    struct shard_fixture *fixture;
    struct run_key key;
    struct version_item items[SOURCE_VERSIONS];
    size_t item_count;
    int64_t next_event_id;
    int64_t scheduled_id, started_id, completed_id, activity_id, activity_started_id, timer_id;
    int64_t task_id, time;
    const char *region;          /* that the run belongs to; NULL: as the fixture says */
    const char *base_run_id;     /* of a reset */
    const char *original_run_id; /* whose first events these are; NULL: its own */
    int64_t fork_version;
    const char *begun_run_id; /* of a run that goes on */
    const struct source_history *child, *parent;
    int64_t child_id;  /* its initiated event, in the parent */
    bool is_sent_once; /* else each batch is sent twice, and the second is known */
};

/* The cluster is east of the sample group, the domain "moving" is active in west, as version 1. */
void source_open(struct shard_fixture *fixture);
/* The domain moves. */
void source_move(struct shard_fixture *fixture, int cluster);
/* A history of a run that has not begun; "": a new run id. */
struct source_history source_begin(struct shard_fixture *fixture, const char *workflow_id,
                                   const char *run_id);
/* The next batch, not sent. */
struct replicated_events source_make(struct source_history *source_history, int64_t event_version,
                                     const char *letters);
/* Sends it; each batch is applied. */
void source_send(struct source_history *source_history, int64_t event_version, const char *letters);
/* Sends it together with the first batch of the run that it goes on as. */
void source_send_with(struct source_history *source_history, int64_t event_version,
                      const char *letters, struct source_history *begun, const char *begun_letters);
/* What comes of sending a batch; an error is the test's to expect. */
must_use struct error *source_try(struct shard_fixture *fixture,
                                  const struct replicated_events *events,
                                  struct replicated_outcome *outcome);

/* What the shard says of a run. */
struct source_run_view {
    const char *branches; /* "(2,1)(4,3) | (3,1)", the current one first; "": no such run */
    bool is_open, is_zombie, is_current;
    int64_t next_event_id, decision_schedule_id, decision_started_id, signals, start_time;
    bool has_decision, has_wakeup;
    size_t activities, timers;
    const char *last_event; /* the name of the newest event, as it is stored */
    int64_t last_version;
};
struct source_run_view source_look_here(struct shard_fixture *fixture, const struct run_key *key);
/* The names of the events of the run's (current) history, or of the n-th, as letters. */
const char *source_read_here(struct shard_fixture *fixture, const struct run_key *key,
                             size_t branch);
/* The events themselves. */
API(HistoryEvent) **source_events(struct shard_fixture *fixture, const struct run_key *key,
                                  size_t branch, size_t *count);

#endif
