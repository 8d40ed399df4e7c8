/* diagnosis.h - what is wrong with a run, by its history: timeouts, failures, and retries that can
 * never happen. The report has the form of Cadence's diagnostics. */
#ifndef CADENZA_SYSTEM_DIAGNOSIS_H
#define CADENZA_SYSTEM_DIAGNOSIS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/slice.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

/* Who polls a task list when the report is written. May yield. */
struct pollers_port {
    /* Does anybody poll it; how many tasks wait there? */
    bool (*describe)(void *context, bool is_decision, const char *list, int64_t *backlog);
    void *context;
};

struct diagnosis;
struct diagnosis *diagnosis_begin(struct arena *arena);
/* The next event of the run. It is copied where it is needed. */
void diagnosis_add(struct diagnosis *diagnosis, const API(HistoryEvent) *event);
/* The report, as JSON. */
struct slice diagnosis_end(struct diagnosis *diagnosis, const struct pollers_port *port);
/* Frees what it has outside of its arena. */
void diagnosis_free(struct diagnosis *diagnosis);
/* The report of a diagnosis that has not ended. */
struct slice diagnosis_pending(struct arena *arena);

#endif
