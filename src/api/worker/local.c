/* local.c - activities that a worker gets with the answer to its decisions, without a poll. */
#include "api/worker/local.h"

#include "api/call/tokens.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ENTRY API(RespondDecisionTaskCompletedResponse__ActivitiesToDispatchLocallyEntry)
#define ENTRY_TYPE                                                                                 \
    API_TYPE(respond_decision_task_completed_response__activities_to_dispatch_locally_entry)

static struct slice
local_token(const struct run_key *key, const struct activity_start *start, struct arena *arena)
{
    struct task_token token = {
        .domain_id = key->domain_id,
        .workflow_id = key->workflow_id,
        .workflow_type = start->workflow_type->name,
        .run_id = start->run_id,
        .schedule_id = start->activity->schedule_id,
        .schedule_attempt = start->activity->attempt,
        .activity_id = start->activity->activity_id,
        .activity_type = start->activity->activity_type->name,
    };
    return task_token_write(&token, arena);
}

void
local_show(const struct run_key *key, const struct complete_answer *answer, struct arena *arena,
           API(RespondDecisionTaskCompletedResponse) *response)
{
    size_t count = answer->local_count;
    ENTRY **entries = arena_zalloc(arena, count, sizeof entries[0]);
    for (size_t i = 0; i < count; i++) {
        const STORED(PendingActivity) *activity = answer->local[i].activity;
        API(ActivityLocalDispatchInfo) *info =
            message_new(arena, API_TYPE(activity_local_dispatch_info));
        info->activity_id = activity->activity_id;
        info->scheduled_time = presence_make_timestamp(arena, activity->first_scheduled_time);
        info->scheduled_time_of_this_attempt =
            presence_make_timestamp(arena, activity->scheduled_time);
        info->started_time = presence_make_timestamp(arena, activity->started_time);
        info->task_token = presence_make_bytes(local_token(key, &answer->local[i], arena));
        entries[i] = message_new(arena, ENTRY_TYPE);
        entries[i]->key = info->activity_id;
        entries[i]->value = info;
    }
    response->activities_to_dispatch_locally = entries;
    response->n_activities_to_dispatch_locally = count;
}
