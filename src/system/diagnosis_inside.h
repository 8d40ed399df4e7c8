/* diagnosis_inside.h - a diagnosis while it is made: shared by diagnosis_report.c and
 * diagnosis_issues.c. */
#ifndef CADENZA_SYSTEM_DIAGNOSIS_INSIDE_H
#define CADENZA_SYSTEM_DIAGNOSIS_INSIDE_H

#include "base/map.h"
#include "base/vector.h"
#include "engine/run/mutation.h"
#include "system/diagnosis.h"

#define SECOND ((int64_t)1000000000)

/* A list of JSON values, joined in the end. */
struct values {
    vector_of(const char *) list;
};

/* An event that later ones may name. */
struct known_event {
    int64_t time;
    const void *attributes; /* NULL: only its time matters */
};

/* A timeout whose task list is to be described. */
struct suspect {
    size_t issue;
    bool is_decision;
    const char *list;
};

struct diagnosis {
    struct arena *arena;
    struct map64 *known; /* event id → struct known_event */
    const API(WorkflowExecutionStartedEventAttributes) *started;
    struct values timeouts, failures, retries; /* issues */
    struct values timeout_causes, failure_causes;
    vector_of(struct suspect) suspects;
    struct {
        int64_t id, time, version, task_id;
        API(HistoryEvent__AttributesCase) kind;
    } last; /* the newest event */
};

/* What the event means for the report. It may refer to earlier events. */
void report_examine(struct diagnosis *diagnosis, const API(HistoryEvent) *event);

/* Values as JSON, in the diagnosis' arena; of NULL: null. */
const char *report_quote(const struct diagnosis *diagnosis, const char *text);
const char *report_list(const struct diagnosis *diagnosis, const API(TaskList) *list);
const char *report_policy(const struct diagnosis *diagnosis, const API(RetryPolicy) *policy);
/* Whole seconds; of NULL: 0. */
int64_t report_seconds(const GOOGLE(Duration) *duration);

/* Adds an issue, if there are not too many; true: it is number *id of its kind. */
bool report_add_issue(struct diagnosis *diagnosis, struct values *issues, const char *kind,
                      const char *reason, const char *metadata, size_t *id);
/* Adds what is behind an issue. */
void report_add_cause(struct diagnosis *diagnosis, struct values *causes, size_t issue,
                      const char *kind, const char *metadata);

/* The attributes of an earlier event, of this type; NULL: there is none. */
const void *report_find(const struct diagnosis *diagnosis, int64_t event_id,
                        const ProtobufCMessageDescriptor *type);
/* The time from an event to this one, ns; 0: it is not known. */
int64_t report_elapsed(const struct diagnosis *diagnosis, int64_t from_id,
                       const API(HistoryEvent) *event);

#endif
