/* reset.h - where a reset goes back to. Inside cli/ only. */
#ifndef CADENZA_CLI_WORKFLOW_RESET_H
#define CADENZA_CLI_WORKFLOW_RESET_H

#include <stdbool.h>

#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

enum reset_type {
    RESET_FIRST_DECISION_COMPLETED,
    RESET_LAST_DECISION_COMPLETED,
    RESET_LAST_CONTINUED_AS_NEW, /* the last decision of the run that it was continued from */
    RESET_BAD_BINARY,
    RESET_DECISION_COMPLETED_TIME,
    RESET_FIRST_DECISION_SCHEDULED,
    RESET_LAST_DECISION_SCHEDULED,
    RESET_TYPE_COUNT
};

struct reset_criteria {
    enum reset_type type;
    int64_t offset;              /* decisions before the last completed one: 0 or less */
    int64_t earliest, latest;    /* wall ns; 0: not given */
    const char *binary_checksum; /* of RESET_BAD_BINARY */
};

/* "FirstDecisionCompleted" → its type. */
bool reset_type_read(const char *name, enum reset_type *type);
/* Their names, with commas. */
const char *reset_type_names(void);

/* Of a history, the id that the reset request names: after the decision that is kept. 0: there is
 * no such place. RESET_LAST_CONTINUED_AS_NEW is looked up in the run before, as the last completed
 * one; RESET_BAD_BINARY in the run's reset points. Pure. */
int64_t reset_find(const struct reset_criteria *criteria, API(HistoryEvent) *const *events,
                   size_t count);

#endif
