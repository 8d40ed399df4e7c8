/* print.h - events for people: one short line each, as tests and the command line show them. */
#ifndef CADENZA_ENGINE_RUN_PRINT_H
#define CADENZA_ENGINE_RUN_PRINT_H

#include "base/arena.h"
#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

/* "5 ActivityTaskScheduled id=a type=charge list=orders": the id, the name, then what tells it
 * apart from others of its kind. Lives in the arena. */
const char *event_print(const API(HistoryEvent) *event, struct arena *arena);
/* "BAD_BINARY": why a decision task failed. */
const char *failed_cause_print(API(DecisionTaskFailedCause) cause, struct arena *arena);
/* All of them, a line each. */
const char *history_print(API(HistoryEvent) *const *events, size_t count, struct arena *arena);

#endif
