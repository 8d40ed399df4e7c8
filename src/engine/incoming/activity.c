/* activity.c - the state of an activity that has no events yet, as another cluster has it.
 * See replicated.h.
 *
 * It counts if it is newer: by version, then by attempt, then by heartbeat (E-059). What it means
 * for the task of the activity is the same as if it had happened here: once it is started, or waits
 * for another attempt, the row of the last one goes, and the wake-up timer of the run knows the
 * rest. */
#include "base/check.h"
#include "engine/incoming/messages.h"
#include "engine/inside.h"
#include "engine/ndc/decide.h"
#include "engine/replicated.h"
#include "engine/run/replicated.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

/* What was told, its times read. */
struct replicated_activity {
    const ADMIN(SyncActivityTaskAttributes) *activity;
    int64_t scheduled_time, started_time, heartbeat_time; /* 0: none */
    struct replicated_outcome *outcome;
    struct arena *arena;
};

static struct error *
read_times(struct replicated_activity *replicated_activity, struct arena *arena)
{
    struct {
        const char *name;
        const GOOGLE(Timestamp) *sent;
        int64_t *time;
    } times[] = {
        {"scheduled_time", replicated_activity->activity->scheduled_time,
         &replicated_activity->scheduled_time},
        {"started_time", replicated_activity->activity->started_time,
         &replicated_activity->started_time},
        {"last_heartbeat_time", replicated_activity->activity->last_heartbeat_time,
         &replicated_activity->heartbeat_time},
    };
    for (size_t i = 0; i < array_length(times); i++) {
        struct maybe_int64 read;
        struct error *err = presence_read_timestamp(arena, times[i].name, times[i].sent, &read);
        if (err != NULL)
            return err;
        *times[i].time = read.value > 0 ? read.value : 0;
    }
    return NULL;
}

static bool
is_newer(const struct replicated_activity *replicated_activity,
         const STORED(PendingActivity) *known)
{
    const ADMIN(SyncActivityTaskAttributes) *activity = replicated_activity->activity;
    if (activity->version != known->event_version)
        return activity->version > known->event_version;
    if (activity->attempt != known->attempt)
        return activity->attempt > known->attempt;
    bool is_started = activity->started_id != EVENT_NONE;
    bool was_started = known->started_id != EVENT_NONE;
    if (replicated_activity->heartbeat_time != known->heartbeat_time)
        return replicated_activity->heartbeat_time > known->heartbeat_time;
    return is_started && !was_started;
}

static void
write_activity(struct mutation *mutation, const struct replicated_activity *replicated_activity)
{
    const ADMIN(SyncActivityTaskAttributes) *sent = replicated_activity->activity;
    struct run *run = mutation_run(mutation);
    STORED(PendingActivity) *activity = mutation_change_activity(mutation, sent->scheduled_id);
    bool is_started = sent->started_id != EVENT_NONE;
    bool is_other = sent->attempt != activity->attempt;
    check(activity->started_id != EVENT_BUFFERED); /* the worker that has it would lose its start */
    if (is_started || is_other) {
        mutation_drop_transfer(mutation, activity->row);
        activity->row = 0;
    }
    activity->event_version = sent->version;
    activity->attempt = sent->attempt;
    if (replicated_activity->scheduled_time != 0)
        activity->scheduled_time = replicated_activity->scheduled_time;
    if (activity->started_id <= 0) /* else its event says so */
        activity->started_id = is_started ? EVENT_TRANSIENT : EVENT_NONE;
    activity->started_time = replicated_activity->started_time;
    activity->heartbeat_time = replicated_activity->heartbeat_time;
    activity->heartbeat_details = run_keep(run, sent->details);
    activity->last_failure = run_keep(run, sent->last_failure);
    activity->last_worker_identity = run_keep_text(run, sent->last_worker_identity);
    if (is_started)
        activity->identity = activity->last_worker_identity;
    activity->request_id = run_keep_text(run, "");
}

static struct error *
judge_lack(const struct replicated_activity *replicated_activity, struct version_item base)
{
    const ADMIN(SyncActivityTaskAttributes) *activity = replicated_activity->activity;
    replicated_activity->outcome->place = REPLICATED_LACKS;
    replicated_activity->outcome->gap = (struct replicated_gap){
        .key = {activity->domain_id, activity->workflow_execution->workflow_id,
                activity->workflow_execution->run_id},
        .base = base,
    };
    return NULL;
}

static struct error *
decide_activity(void *context, struct step *step)
{
    struct replicated_activity *replicated_activity = context;
    const ADMIN(SyncActivityTaskAttributes) *activity = replicated_activity->activity;
    replicated_activity->outcome->place = REPLICATED_KNOWN;
    if (step->mutation == NULL || !run_is_open(mutation_run(step->mutation)))
        return NULL;
    const struct run *run = mutation_run(step->mutation);
    struct run_branches branches = branches_read(run->core, replicated_activity->arena);
    struct versions versions =
        versions_receive(activity->version_history->items, activity->version_history->n_items,
                         replicated_activity->arena);
    struct version_item base;
    switch (activity_decide(&branches, versions, activity->scheduled_id, &base)) {
    case ACTIVITY_IS_WRONG:
        return error_new(replicated_activity->arena, ERR_BAD_REQUEST,
                         "The state of the activity is of no history of the run.");
    case ACTIVITY_LACKS_EVENTS:
        return judge_lack(replicated_activity, base);
    case ACTIVITY_IS_OVERRULED:
        return NULL;
    case ACTIVITY_FITS:
        break;
    }
    const STORED(PendingActivity) *known = run_find_activity(run, activity->scheduled_id);
    if (known == NULL || known->started_id == EVENT_BUFFERED ||
        !is_newer(replicated_activity, known))
        return NULL;
    probe("replicated_activity_applied");
    mutation_note_replicated(step->mutation);
    write_activity(step->mutation, replicated_activity);
    replicated_activity->outcome->place = REPLICATED_APPLIED;
    return NULL;
}

static struct error *
serve_activity(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    const ADMIN(SyncActivityTaskAttributes) *activity = request;
    const API(WorkflowExecution) *execution = activity->workflow_execution;
    struct replicated_outcome outcome = {0};
    check(execution != NULL && activity->version_history != NULL); /* who asks has looked */
    struct replicated_activity replicated_activity = {
        .activity = activity, .outcome = &outcome, .arena = arena};
    struct error *err = read_times(&replicated_activity, arena);
    if (err != NULL)
        return err;
    struct shard_step step = {
        .key = {activity->domain_id, execution->workflow_id, execution->run_id},
        .needs_run = true,
        .may_be_missing = true,
        .ignores_activity = true,
        .decide = decide_activity,
        .context = &replicated_activity,
    };
    err = shard_step(engine_served_shard(engine, owner), &step, arena);
    if (err != NULL && err->kind == ERR_ALREADY_COMPLETED) {
        outcome = (struct replicated_outcome){
            .place = REPLICATED_KNOWN}; /* a zombie: nobody works on it */
        err = NULL;
    }
    if (err == NULL)
        replicated_outcome_to_message(&outcome, arena, answer);
    return err;
}

/* Lost: it is applied again. Twice: the second time it is not newer. */
static const struct route_question activity_question = {
    .name = "shard.apply_activity",
    .request = ADMIN_TYPE(sync_activity_task_attributes),
    .answer = INTERNAL_TYPE(replicated_outcome),
    .serve = serve_activity,
    .may_come_twice = true,
};

struct error *
engine_apply_replicated_activity(struct engine *engine,
                                 const ADMIN(SyncActivityTaskAttributes) *activity,
                                 struct arena *arena, struct replicated_outcome *outcome)
{
    const API(WorkflowExecution) *execution = activity->workflow_execution;
    INTERNAL(ReplicatedOutcome) answer = INTERNAL_VALUE(REPLICATED_OUTCOME__INIT);
    if (execution == NULL || execution->run_id[0] == '\0' || activity->version_history == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The state of an activity names no run.");
    struct error *err =
        engine_ask(engine, execution->workflow_id, &activity_question, activity, arena, &answer);
    if (err == NULL)
        replicated_outcome_from_message(&answer, outcome);
    return err;
}
