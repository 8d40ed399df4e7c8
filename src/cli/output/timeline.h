/* timeline.h - a history as lines for people, and what a run waits for. Pure. Inside cli/ only. */
#ifndef CADENZA_CLI_OUTPUT_TIMELINE_H
#define CADENZA_CLI_OUTPUT_TIMELINE_H

#include "base/arena.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

/* What the events that were noted add up to. */
struct timeline {
    int64_t start;      /* wall ns of the first event; 0: none yet */
    int64_t last;       /* of the last one */
    size_t event_count; /* so far */
    bool has_decision, is_decision_started;
    int64_t activities, timers, children; /* pending */
    const char *status;                   /* once closed: "COMPLETED", ...; NULL: open */
    const char *next_run_id;              /* it was continued as this run; NULL: it was not */
    const char *outcome;                  /* result or failure on one line; NULL: none */
    const char *task_list;                /* of the run */
};

/* How a line is made. */
struct timeline_style {
    enum { TIMELINE_SINCE_START, TIMELINE_DATES, TIMELINE_RAW } times;
    bool has_version, has_detail, is_full, has_colours;
    size_t field_length_max; /* of an attribute; 0: never cut */
    int type_width;          /* room for the event's type; 0: enough for every type in use often */
};

/* Adds the event to the sums. Texts that it keeps live in the arena. */
void timeline_note(struct timeline *timeline, const API(HistoryEvent) *event, struct arena *arena);
/* "  3  DecisionTaskStarted            1.2s  identity: worker-1\n", for an event that was noted. */
const char *timeline_line(const struct timeline *timeline, const struct timeline_style *style,
                          const API(HistoryEvent) *event, struct arena *arena);
/* What it waits for: "a decision waits for a worker", "2 activities, 1 timer"; "nothing" at times.
 */
const char *timeline_pending(const struct timeline *timeline, struct arena *arena);
/* "COMPLETED after 3.2s, 11 events" or "open for ..., waits for ...". */
const char *timeline_summary(const struct timeline *timeline, int64_t now, struct arena *arena);
/* Is it an event that a reset may name: the end of a decision? */
bool timeline_is_reset_point(const API(HistoryEvent) *event);

#endif
