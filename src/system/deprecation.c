/* deprecation.c - the workflow of a deprecation: one activity after the other; the last two are
 * repeated while runs are open. See deprecation.h. */
#include "system/worker.h"

#include "system/deprecation.h"

#include "api/workflow/diagnose.h"
#include "base/check.h"
#include "base/json.h"
#include "system/bulk.h"
#include "system/fold.h"
#include "system/types.h"

#define ROUNDS_MAX    3
#define STEP_TIME     300 /* seconds */
#define STEP_EXPIRY   86400
#define STEP_INTERVAL 10
#define BULK_SILENCE  10 /* seconds without a heartbeat */

bool
deprecation_read(struct slice input, struct arena *arena, struct deprecation_request *deprecation)
{
    struct json_reader reader = object_begin(input, arena);
    const char *name;
    *deprecation = (struct deprecation_request){"", "", false};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "domain_name") == 0)
            object_text(&reader, &deprecation->domain);
        else if (strcmp(name, "security_token") == 0)
            object_text(&reader, &deprecation->token);
        else if (strcmp(name, "force") == 0)
            object_flag(&reader, &deprecation->is_forced);
        else
            object_skip(&reader);
    }
    return object_end(&reader) && deprecation->domain[0] != '\0';
}

enum stage { STAGE_CHECK, STAGE_ARCHIVAL, STAGE_MARK, STAGE_TERMINATE, STAGE_COUNT, STAGE_DONE };

struct deprecation_state {
    struct slice input;
    enum stage stage; /* to be done, or in work */
    int64_t scheduled;
    int rounds; /* of terminating */
    bool is_working;
    struct fold_end end; /* of the newest activity */
};

/* An activity has ended well. */
static void
advance(struct deprecation_state *state)
{
    bool is_open = slice_starts_with(state->end.result, slice_text("true"));
    if (state->stage == STAGE_TERMINATE)
        state->rounds++;
    if (state->stage == STAGE_COUNT)
        state->stage = is_open ? STAGE_TERMINATE : STAGE_DONE;
    else if (state->stage < STAGE_DONE)
        state->stage++;
}

static void
fold(void *context, const API(HistoryEvent) *event, struct arena *arena)
{
    struct deprecation_state *state = context;
    struct deprecation_request deprecation;
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED):
        state->input =
            fold_payload(event->workflow_execution_started_event_attributes->input, arena);
        if (deprecation_read(state->input, arena, &deprecation) && deprecation.is_forced)
            state->stage = STAGE_ARCHIVAL;
        break;
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        state->scheduled++;
        state->is_working = true;
        break;
    default:
        if (!fold_activity_end(&state->end, event, arena))
            break;
        state->is_working = false;
        if (state->end.how == FOLD_COMPLETED)
            advance(state);
        break;
    }
}

static struct slice
bulk_input(const struct deprecation_request *deprecation, struct arena *arena)
{
    struct json_writer writer = object_write_begin(arena, 4, strlen(deprecation->domain) + 64);
    object_write_text(&writer, "DomainName", deprecation->domain);
    object_write_text(&writer, "Query", "CloseTime = missing");
    object_write_text(&writer, "Reason", "domain is deprecated");
    object_write_text(&writer, "BatchType", "terminate");
    struct bulk_order order = {.params = object_write_end(&writer)};
    return bulk_write_order(&order, arena);
}

static API(RetryPolicy) *
retry_policy(struct arena *arena)
{
    static const char *const reasons[] = {DEPRECATION_UNKNOWN, DEPRECATION_DENIED,
                                          DEPRECATION_POLLED, BULK_FINAL};
    API(RetryPolicy) *policy = system_retry(arena, STEP_INTERVAL, STEP_EXPIRY, NULL);
    policy->n_non_retryable_error_reasons = array_length(reasons);
    policy->non_retryable_error_reasons = (char **)reasons;
    return policy;
}

static void
schedule(const struct deprecation_state *state, const struct deprecation_request *deprecation,
         struct system_decider *decider)
{
    static const char *const types[] = {[STAGE_CHECK] = DEPRECATION_CHECK,
                                        [STAGE_ARCHIVAL] = DEPRECATION_ARCHIVAL,
                                        [STAGE_MARK] = DEPRECATION_MARK,
                                        [STAGE_TERMINATE] = BULK_ACTIVITY_V2,
                                        [STAGE_COUNT] = DEPRECATION_COUNT};
    bool is_bulk = state->stage == STAGE_TERMINATE;
    check(!state->is_working && state->stage < STAGE_DONE);
    system_schedule(decider,
                    &(struct system_activity_order){
                        .id = arena_format(decider->arena, "%lld", (long long)state->scheduled),
                        .type = types[state->stage],
                        .list = DEPRECATION_LIST,
                        .input = is_bulk ? bulk_input(deprecation, decider->arena) : state->input,
                        .start_to_close = is_bulk ? BULK_FOREVER : STEP_TIME,
                        .heartbeat_timeout = is_bulk ? BULK_SILENCE : 0,
                        .retry = retry_policy(decider->arena)});
}

static void
decide(void *context, struct system_decider *decider)
{
    const struct deprecation_state *state = context;
    struct deprecation_request deprecation;
    bool has_failed = state->end.how != FOLD_OPEN && state->end.how != FOLD_COMPLETED;
    if (state->is_working)
        return;
    if (!deprecation_read(state->input, decider->arena, &deprecation))
        system_fail(decider, DEPRECATION_UNKNOWN, slice_text("the input names no domain"));
    else if (has_failed)
        system_fail(decider, state->end.how == FOLD_FAILED ? state->end.reason : "timeout",
                    state->end.details);
    else if (state->stage == STAGE_DONE)
        system_complete(decider, (struct slice){0});
    else if (state->stage == STAGE_TERMINATE && state->rounds == ROUNDS_MAX)
        system_fail(decider, "cadenceInternal:Generic",
                    slice_text("failed to terminate all workflows after 3 attempts"));
    else
        schedule(state, &deprecation, decider);
}

const struct system_workflow deprecation_workflow = {.type = DEPRECATION_TYPE,
                                                     .list = DEPRECATION_LIST,
                                                     .domain = SYSTEM_DOMAIN,
                                                     .state_size = sizeof(struct deprecation_state),
                                                     .fold = fold,
                                                     .decide = decide};
