/* schedule.h - the cron schedule of a run: is it one, and when is the next run due? Pure. */
#ifndef CADENZA_ENGINE_COMMAND_SCHEDULE_H
#define CADENZA_ENGINE_COMMAND_SCHEDULE_H

#include "base/arena.h"
#include "uber/cadence/api/v1/workflow.pb-c.h"
#include "wire/names.h"

/* What is wrong with a schedule, in the words that clients know; NULL: nothing, or "", which is
 * none. It must fire at least once within five years from `now` (ns). In the arena. */
const char *schedule_fault(const char *schedule, int64_t now, struct arena *arena);

#define SCHEDULE_NEVER (-1)
/* Seconds that a run waits which follows one that ran from `start` to `end` (ns; its first decision
 * counts as its start). Of fires that were missed meanwhile none counts, or, with BUFFER_ONE, the
 * run follows at once. SCHEDULE_NEVER: it does not fire any more. */
int64_t schedule_backoff(const char *schedule, API(CronOverlapPolicy) policy, int64_t start,
                         int64_t end);
/* Seconds between the year 1 and the first fire: what a jitter is compared with. */
int64_t schedule_period(const char *schedule);

#endif
