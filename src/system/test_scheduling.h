/* test_scheduling.h - asking a fixture's server for schedules. For tests of system/. */
#ifndef CADENZA_SYSTEM_TEST_SCHEDULING_H
#define CADENZA_SYSTEM_TEST_SCHEDULING_H

#include "api/test/listing.h"
#include "system/test_fixture.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"

#define OVERLAP(name)  API_VALUE(SCHEDULE_OVERLAP_POLICY__SCHEDULE_OVERLAP_POLICY_##name)
#define CATCH_UP(name) API_VALUE(SCHEDULE_CATCH_UP_POLICY__SCHEDULE_CATCH_UP_POLICY_##name)

/* Opens the workers; calls have half a minute, lists show all that was committed. */
void scheduling_open(struct fixture *fixture);
/* Lets virtual time pass. */
void scheduling_wait(struct fixture *fixture, int64_t seconds);

/* A schedule of domain "orders" that starts runs of type "order" on list "work", with policies, all
 * of them unset. */
API(CreateScheduleRequest) *scheduling_new(struct fixture *fixture, const char *id,
                                           const char *cron);
must_use struct error *scheduling_try(struct fixture *fixture,
                                      const API(CreateScheduleRequest) *request);

/* Each must succeed. */
void scheduling_create(struct fixture *fixture, const API(CreateScheduleRequest) *request);
const API(DescribeScheduleResponse) *scheduling_describe(struct fixture *fixture, const char *id);
void scheduling_pause(struct fixture *fixture, const char *id, const char *reason);
void scheduling_unpause(struct fixture *fixture, const char *id, API(ScheduleCatchUpPolicy) policy);
void scheduling_delete(struct fixture *fixture, const char *id);
API(UpdateScheduleRequest) *scheduling_update(struct fixture *fixture, const char *id);
void scheduling_send_update(struct fixture *fixture, const API(UpdateScheduleRequest) *request);
/* From so many seconds ago until so many seconds ago. */
API(BackfillScheduleRequest) *scheduling_backfill(struct fixture *fixture, const char *id,
                                                  int64_t from, int64_t to);
const API(ListSchedulesResponse) *scheduling_list(struct fixture *fixture, int32_t page_size,
                                                  ProtobufCBinaryData token);
/* How many runs there are that a schedule started; of a query. */
int64_t scheduling_count(struct fixture *fixture, const char *id);
int64_t scheduling_count_where(struct fixture *fixture, const char *query);
/* Ends the next run of "work" that has a decision; or fails it. */
void scheduling_end_one(struct fixture *fixture);
void scheduling_fail_one(struct fixture *fixture);

#endif
