/* managed_fold_test.c - what a managed failover decides, from its events alone. */
#include "base/test.h"
#include "engine/run/mutation.h"
#include "system/managed.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

struct scene {
    struct arena *arena;
    void *state;
};

static API(Payload) *
payload(struct scene *scene, const char *text)
{
    return presence_make_payload(scene->arena,
                                 (struct maybe_bytes){.is_set = true, .bytes = slice_text(text)});
}

static void
fold(struct scene *scene, const API(HistoryEvent) *event)
{
    managed_failover.fold(scene->state, event, scene->arena);
}

static API(HistoryEvent) *
make_event(struct scene *scene, int kind)
{
    return API_NEW(scene->arena, history_event, .attributes_case = kind);
}

static void
started(struct scene *scene, const char *input)
{
    API(HistoryEvent) *event = make_event(scene, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
    event->workflow_execution_started_event_attributes =
        API_NEW(scene->arena, workflow_execution_started_event_attributes,
                .workflow_type = API_NEW(scene->arena, workflow_type, .name = MANAGED_FAILOVER),
                .input = payload(scene, input));
    scene->state = arena_zalloc(scene->arena, 1, managed_failover.state_size);
    fold(scene, event);
}

static void
signaled(struct scene *scene, const char *signal)
{
    API(HistoryEvent) *event = make_event(scene, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED));
    event->workflow_execution_signaled_event_attributes = API_NEW(
        scene->arena, workflow_execution_signaled_event_attributes, .signal_name = (char *)signal);
    fold(scene, event);
}

static void
scheduled(struct scene *scene, const API(Decision) *decision)
{
    API(HistoryEvent) *event = make_event(scene, EVENT_KIND(ACTIVITY_TASK_SCHEDULED));
    event->activity_task_scheduled_event_attributes =
        API_NEW(scene->arena, activity_task_scheduled_event_attributes,
                .input = decision->schedule_activity_task_decision_attributes->input);
    fold(scene, event);
}

static void
completed(struct scene *scene, const char *result)
{
    API(HistoryEvent) *event = make_event(scene, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    event->activity_task_completed_event_attributes = API_NEW(
        scene->arena, activity_task_completed_event_attributes, .result = payload(scene, result));
    fold(scene, event);
}

static void
timed_out(struct scene *scene)
{
    API(HistoryEvent) *event = make_event(scene, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
    event->activity_task_timed_out_event_attributes =
        API_NEW(scene->arena, activity_task_timed_out_event_attributes);
    fold(scene, event);
}

/* The one decision; NULL: none. */
static const API(Decision) *
decide(struct scene *scene)
{
    struct system_decider decider = {.arena = scene->arena};
    managed_failover.decide(scene->state, &decider);
    EXPECT(decider.count <= 1);
    return decider.count == 0 ? NULL : decider.decisions[0];
}

static const API(Decision) *
expect_activity(struct scene *scene, const char *type)
{
    const API(Decision) *decision = decide(scene);
    EXPECT(decision != NULL);
    EXPECT_EQ(decision->attributes_case,
              API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES));
    EXPECT_TEXT(decision->schedule_activity_task_decision_attributes->activity_type->name, type);
    return decision;
}

static void
expect_timer(struct scene *scene, int64_t seconds)
{
    const API(Decision) *decision = decide(scene);
    EXPECT(decision != NULL);
    EXPECT_EQ(decision->attributes_case,
              API_VALUE(DECISION__ATTRIBUTES_START_TIMER_DECISION_ATTRIBUTES));
    EXPECT_EQ(decision->start_timer_decision_attributes->start_to_fire_timeout->seconds, seconds);
    fold(scene, make_event(scene, EVENT_KIND(TIMER_STARTED)));
    EXPECT(decide(scene) == NULL);
    fold(scene, make_event(scene, EVENT_KIND(TIMER_FIRED)));
}

static const char *
ask(struct scene *scene)
{
    struct slice answer;
    EXPECT_OK(managed_failover.query(scene->state, MANAGED_QUERY, (struct slice){0}, scene->arena,
                                     &answer));
    return arena_text_of(scene->arena, answer);
}

/* A failover of domains a, b and c in batches of two that has picked them. */
static void
begin(struct scene *scene, const char *more)
{
    started(scene, arena_format(scene->arena,
                                "{\"TargetCluster\":\"west\",\"SourceCluster\":\"east\","
                                "\"BatchFailoverSize\":2%s}",
                                more));
    EXPECT(strstr(ask(scene), "\"State\":\"initialized\"") != NULL);
    scheduled(scene, expect_activity(scene, MANAGED_PICK));
    EXPECT(decide(scene) == NULL);
    completed(scene,
              "{\"DomainPreferences\":["
              "{\"DomainName\":\"a\",\"TargetCluster\":\"west\",\"PreviousCluster\":\"east\"},"
              "{\"DomainName\":\"b\",\"TargetCluster\":\"west\",\"PreviousCluster\":\"east\"},"
              "{\"DomainName\":\"c\",\"TargetCluster\":\"west\","
              "\"PreviousCluster\":\"east\"}]}");
}

/* Targets of the domains of a batch, in order. */
static const char *
targets(struct scene *scene, const API(Decision) *decision)
{
    struct managed_moves moves;
    const char *text = "";
    EXPECT(managed_read_moves(
        presence_read_payload(decision->schedule_activity_task_decision_attributes->input).bytes,
        scene->arena, &moves));
    for (size_t i = 0; i < moves.count; i++)
        text =
            arena_format(scene->arena, "%s%s>%s ", text, moves.all[i].domain, moves.all[i].target);
    return text;
}

ARENA_TEST(managed_fold, batches_follow_each_other_after_a_wait_and_there_and_back_in_a_drill)
{
    struct scene scene = {.arena = arena};
    begin(&scene, ",\"DrillWaitTime\":7000000000");
    for (int leg = 0; leg < 2; leg++) {
        const API(Decision) *decision = expect_activity(&scene, MANAGED_MOVE);
        EXPECT_TEXT(targets(&scene, decision), leg == 0 ? "a>west b>west " : "a>east b>east ");
        scheduled(&scene, decision);
        completed(&scene, "{\"SuccessDomains\":[{\"DomainName\":\"a\"},{\"DomainName\":\"b\"}],"
                          "\"FailedDomains\":[]}");
        expect_timer(&scene, 30);
        decision = expect_activity(&scene, MANAGED_MOVE);
        EXPECT_TEXT(targets(&scene, decision), leg == 0 ? "c>west " : "c>east ");
        scheduled(&scene, decision);
        completed(&scene, "{\"SuccessDomains\":[],\"FailedDomains\":[{\"DomainName\":\"c\","
                          "\"Error\":\"no\"}]}");
        if (leg == 0)
            expect_timer(&scene, 7);
    }
    const API(Decision) *last = decide(&scene);
    EXPECT_EQ(last->attributes_case,
              API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
    EXPECT_TEXT(ask(&scene),
                "{\"TotalDomains\":3,\"Success\":2,\"Failed\":1,\"State\":\"complete\","
                "\"TargetCluster\":\"west\",\"SourceCluster\":\"east\",\"SuccessDomains\":[\"a\","
                "\"b\"],\"FailedDomains\":[\"c\"],\"SuccessResetDomains\":[\"a\",\"b\"],"
                "\"FailedResetDomains\":[\"c\"],\"Operator\":\"unknown\"}");
}

ARENA_TEST(managed_fold, a_pause_takes_hold_before_the_next_batch_and_not_in_one)
{
    struct scene scene = {.arena = arena};
    begin(&scene, "");
    scheduled(&scene, expect_activity(&scene, MANAGED_MOVE));
    signaled(&scene, MANAGED_PAUSE);
    EXPECT(strstr(ask(&scene), "\"State\":\"running\"") != NULL);
    timed_out(&scene); /* all of a batch that came to nothing counts as failed */
    EXPECT(strstr(ask(&scene), "\"Failed\":2,\"State\":\"paused\"") != NULL);
    expect_timer(&scene, 30);
    EXPECT(decide(&scene) == NULL);
    signaled(&scene, MANAGED_RESUME);
    EXPECT(strstr(ask(&scene), "\"State\":\"running\"") != NULL);
    EXPECT_TEXT(targets(&scene, expect_activity(&scene, MANAGED_MOVE)), "c>west ");
}

ARENA_TEST(managed_fold, a_pick_that_fails_fails_the_run)
{
    struct scene scene = {.arena = arena};
    started(&scene, "{\"TargetCluster\":\"west\",\"SourceCluster\":\"east\"}");
    scheduled(&scene, expect_activity(&scene, MANAGED_PICK));
    timed_out(&scene);
    EXPECT_EQ(decide(&scene)->attributes_case,
              API_VALUE(DECISION__ATTRIBUTES_FAIL_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES));
}
