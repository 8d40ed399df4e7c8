/* feed.h - histories that tests write by hand, as other clusters would send them.
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
 *   N continued as new                    R the first event of a reset
 *   i child initiated                     I ... started
 */
#ifndef CADENZA_ENGINE_SHARD_FEED_H
#define CADENZA_ENGINE_SHARD_FEED_H

#include "engine/foreign.h"
#include "engine/shard/rig.h"

#define FEED_VERSIONS 8

struct feed {
    struct rig *rig;
    struct run_key key;
    struct version_item items[FEED_VERSIONS];
    size_t item_count;
    int64_t next_event_id;
    int64_t scheduled_id, started_id, completed_id, activity_id, activity_started_id, timer_id;
    int64_t task_id, time;
    const char *region;          /* that the run belongs to; NULL: as the rig says */
    const char *base_run_id;     /* of a reset */
    const char *original_run_id; /* whose first events these are; NULL: its own */
    int64_t fork_version;
    const char *begun_run_id; /* of a run that goes on */
    const struct feed *child, *parent;
    int64_t child_id;  /* its initiated event, in the parent */
    bool is_sent_once; /* else each batch is sent twice, and the second is known */
};

/* The cluster is east of the sample group, the domain "moving" is active in west, as version 1. */
void feed_open(struct rig *rig);
/* The domain moves. */
void feed_move(struct rig *rig, int cluster);
/* A history of a run that has not begun; "": a new run id. */
struct feed feed_begin(struct rig *rig, const char *workflow_id, const char *run_id);
/* The next batch, not sent. */
struct foreign_events feed_make(struct feed *feed, int64_t event_version, const char *letters);
/* Sends it; each batch is applied. */
void feed_send(struct feed *feed, int64_t event_version, const char *letters);
/* Sends it together with the first batch of the run that it goes on as. */
void feed_send_with(struct feed *feed, int64_t event_version, const char *letters,
                    struct feed *begun, const char *begun_letters);
/* What comes of sending a batch; an error is the test's to expect. */
must_use struct error *feed_try(struct rig *rig, const struct foreign_events *events,
                                struct foreign_outcome *outcome);

/* What the shard says of a run. */
struct feed_view {
    const char *branches; /* "(2,1)(4,3) | (3,1)", the current one first; "": no such run */
    bool is_open, is_zombie, is_current;
    int64_t next_event_id, decision_schedule_id, decision_started_id, signals, start_time;
    bool has_decision, has_alarm;
    size_t activities, timers;
    const char *last_event; /* the name of the newest event, as it is stored */
    int64_t last_version;
};
struct feed_view feed_look(struct rig *rig, const struct run_key *key);
/* The names of the events of the run's (current) history, or of the n-th, as letters. */
const char *feed_read(struct rig *rig, const struct run_key *key, size_t branch);
/* The events themselves. */
API(HistoryEvent) **feed_events(struct rig *rig, const struct run_key *key, size_t branch,
                                size_t *count);

#endif
