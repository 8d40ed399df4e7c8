/* inside.h - what the files of schedule/ share. */
#ifndef CADENZA_SCHEDULE_INSIDE_H
#define CADENZA_SCHEDULE_INSIDE_H

#include "base/check.h"
#include "schedule/schedule.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define NANOSECONDS    INT64_C(1000000000)
#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define OVERLAP(name)  API_VALUE(SCHEDULE_OVERLAP_POLICY__SCHEDULE_OVERLAP_POLICY_##name)
#define CATCH_UP(name) API_VALUE(SCHEDULE_CATCH_UP_POLICY__SCHEDULE_CATCH_UP_POLICY_##name)
#define ORIGIN(name)   CADENZA__STORAGE__V1__SCHEDULE_ORIGIN__SCHEDULE_ORIGIN_##name
#define END(name)      CADENZA__STORAGE__V1__SCHEDULE_END__SCHEDULE_END_##name

/* Arrays of messages: one more at the end; without the first `count` ones. They are never changed
 * in place, so that a copy of the struct that holds them stays what it was. */
#define array_push(arena, array, count, item)                                                      \
    ((array) = array_grown((arena), (array), (count)), (array)[(count)++] = (item))
#define array_drop_first(array, count, dropped)                                                    \
    (check((dropped) <= (count)), (array) += (dropped), (count) -= (dropped))
void *array_grown(struct arena *arena, const void *array, size_t count);

/* Floor and ceiling of a wall clock time in seconds. */
int64_t seconds_down(int64_t nanoseconds);
int64_t seconds_up(int64_t nanoseconds);
/* Times and durations of messages that were checked before; 0: unset. */
int64_t timestamp_of(const GOOGLE(Timestamp) *timestamp);
int64_t duration_of(const GOOGLE(Duration) *duration);

/* A moment that times can be looked for from: not before 1970, not in a far future. */
int64_t seconds_clamped(int64_t seconds);

/* --- times (times.c) ---- */

/* The most that a time is delayed by, ns. */
int64_t schedule_jitter(const struct schedule *schedule);

/* The last nominal time after one up to another; CRON_NEVER: none. */
int64_t schedule_last(const struct schedule *schedule, int64_t after, int64_t until);
/* A moment after which the times are the same, but for those before `not_before`. */
int64_t schedule_seek(const struct schedule *schedule, int64_t after, int64_t not_before);

/* --- what is due (advance.c) ---- */

/* Takes every time that is due at a moment (wall clock, ns) to where it waits for its start. */
void schedule_advance(struct schedule *schedule, int64_t now);
/* The times that came while it was paused are caught up with, or not. */
void schedule_catch_up(struct schedule *schedule, API(ScheduleCatchUpPolicy) policy, int64_t now);
/* The policy that holds: a fire's own, or the schedule's, or the usual one. */
API(ScheduleOverlapPolicy)
schedule_overlap(const API(SchedulePolicies) *policies, const STORED(ScheduleFire) *fire);
STORED(ScheduleFire) *schedule_new_fire(struct arena *arena, int64_t nominal);

/* --- what users want (signals.c) ---- */

void schedule_signal(struct schedule *schedule, const char *name, struct slice input,
                     int64_t event_id, int64_t now);
void schedule_pause(struct schedule *schedule, const char *reason, const char *by, int64_t now);
/* Reads the cron expression of the spec. */
void schedule_read_cron(struct schedule *schedule);

/* --- what came of fires (report.c) ---- */

void schedule_report(struct schedule *schedule, const STORED(ScheduleReport) *report, int64_t now);
/* The activity is gone; what it was to start still waits. */
void schedule_forget_firing(struct schedule *schedule);
/* Ranges that have no time left are gone. */
void schedule_drop_empty(struct schedule *schedule);
/* Fires that were not started wait in the buffer, as far as there is room. */
void schedule_buffer(struct schedule *schedule, STORED(ScheduleFire) *const *fires, size_t count);

/* --- search attributes (attributes.c) ---- */

/* A text as JSON. */
struct slice schedule_quote(const char *text, struct arena *arena);
/* One more; the map is to be sorted afterwards. */
void schedule_attribute(API(SearchAttributes) *attributes, const char *key, struct slice json,
                        struct arena *arena);

/* --- what comes next (plan.c) ---- */

char *schedule_timer_id(int64_t number, struct arena *arena);

#endif
