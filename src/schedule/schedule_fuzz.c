/* schedule_fuzz.c - any history of a run that says it is a schedule: inputs, signals, markers and
 * results may come from a domain's users, and must not hurt the server. */
#include "schedule/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(History) *history = NULL;
    struct schedule schedule = {0};
    struct schedule_plan plan = {0};
    struct schedule_now now = {.time = INT64_C(1770000000) * NANOSECONDS,
                               .limits = {INT64_MAX, INT64_MAX, INT64_MAX}};
    struct error *err = message_decode(arena, API_TYPE(history), slice_of(data, size), &history);
    if (err != NULL)
        return 0;
    for (size_t i = 0; i < history->n_events; i++)
        schedule_fold(&schedule, history->events[i], arena);
    if (schedule.definition == NULL)
        return 0;
    API(DescribeScheduleResponse) *response =
        message_new(arena, API_TYPE(describe_schedule_response));
    schedule_describe(&schedule, now.time, arena, response);
    (void)message_encode(arena, &response->base).length;
    schedule_plan(&schedule, &now, &plan);
    return 0;
}
