/* fire_test.c - what the activity does in a world of workflows, by overlap policy. */
#include <stdio.h>

#include "schedule/test/schedule_fixture.h"

/* Runs that are open, by their ids; what was done, in letters. */
struct scene {
    struct arena *arena;
    const char *open[8];
    size_t count;
    char done[64];
    bool ends_at_once; /* what is terminated */
    const char *refusal;
    bool fails; /* every call */
};

static void
note(struct scene *scene, char what, const char *run_id)
{
    size_t length = strlen(scene->done);
    snprintf(scene->done + length, sizeof scene->done - length, "%c%s ", what, run_id);
}

static struct error *
failed(struct scene *scene)
{
    return scene->fails ? error_new(scene->arena, ERR_UNAVAILABLE, "away") : NULL;
}

static struct error *
check_run(void *context, const STORED(ScheduleRun) *run, bool *is_open,
          API(WorkflowExecutionCloseStatus) *status)
{
    struct scene *scene = context;
    *is_open = false;
    *status = 1;
    for (size_t i = 0; i < scene->count; i++)
        *is_open |= strcmp(scene->open[i], run->run_id) == 0;
    return failed(scene);
}

static struct error *
cancel(void *context, const STORED(ScheduleRun) *run)
{
    note(context, 'c', run->run_id);
    return NULL;
}

static struct error *
terminate(void *context, const STORED(ScheduleRun) *run)
{
    struct scene *scene = context;
    note(scene, 't', run->run_id);
    for (size_t i = 0; i < scene->count; i++)
        if (strcmp(scene->open[i], run->run_id) == 0)
            scene->open[i] = "";
    return NULL;
}

static struct error *
start(void *context, const STORED(ScheduleTask) *task, const STORED(ScheduleFire) *fire,
      const char **run_id, const char **refusal)
{
    struct scene *scene = context;
    *refusal = scene->refusal;
    if (scene->refusal != NULL)
        return NULL;
    *run_id = arena_format(scene->arena, "%lld", (long long)fire->nominal);
    scene->open[scene->count++] = *run_id;
    note(scene, 's', *run_id);
    return NULL;
}

/* Three fires while run "a" is open and "b" is not. */
static const STORED(ScheduleReport) *
play(struct scene *scene, API(ScheduleOverlapPolicy) policy, int32_t limit)
{
    STORED(ScheduleTask) *task = STORED_NEW(scene->arena, schedule_task);
    struct schedule_port port = {check_run, cancel, terminate, start, scene};
    STORED(ScheduleReport) *report = NULL;
    task->action = schedule_fixture_request(scene->arena, "")->action;
    task->schedule_id = "plan";
    task->policies = API_NEW(scene->arena, schedule_policies, .overlap_policy = policy,
                             .concurrency_limit = limit);
    for (int64_t i = 1; i <= 3; i++)
        array_push(scene->arena, task->fires, task->n_fires, schedule_new_fire(scene->arena, i));
    for (int i = 0; i < 2; i++) {
        STORED(ScheduleRun) *run =
            STORED_NEW(scene->arena, schedule_run, .run_id = i == 0 ? "b" : "a");
        array_push(scene->arena, task->running, task->n_running, run);
    }
    scene->open[scene->count++] = "a";
    EXPECT_OK(schedule_fire(task, &port, scene->arena, &report));
    EXPECT(report->n_closed > 0);
    EXPECT_TEXT(report->closed[0]->run->run_id, "b");
    return report;
}

static const char *
ends_of(const STORED(ScheduleReport) *report, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < report->n_outcomes; i++)
        text = arena_format(arena, "%s%c", text, "?sxr"[report->outcomes[i]->end]);
    return text;
}

TEST(schedule_fire, each_overlap_policy_does_what_its_name_says, "A-274")
{
    static const struct {
        API(ScheduleOverlapPolicy) policy;
        int32_t limit;
        const char *done, *ends;
    } cases[] = {
        {OVERLAP(INVALID), 0, "", "xxx"},
        {OVERLAP(SKIP_NEW), 0, "", "xxx"},
        {OVERLAP(BUFFER), 0, "", ""},
        {OVERLAP(CONCURRENT), 0, "s1 s2 s3 ", "sss"},
        {OVERLAP(CONCURRENT), 3, "s1 s2 ", "ssx"},
        {OVERLAP(CONCURRENT), 1, "", "xxx"},
        {OVERLAP(TERMINATE_PREVIOUS), 0, "ta s1 t1 s2 t2 s3 ", "sss"},
        {OVERLAP(CANCEL_PREVIOUS), 0, "ca s1 ca c1 s2 ca c1 c2 s3 ", "sss"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct scene scene = {.arena = arena};
        const STORED(ScheduleReport) *report = play(&scene, cases[i].policy, cases[i].limit);
        EXPECT_TEXT(scene.done, cases[i].done);
        EXPECT_TEXT(ends_of(report, arena), cases[i].ends);
    }
}

ARENA_TEST(schedule_fire, what_can_never_be_started_is_told_and_not_tried_again)
{
    struct scene scene = {.arena = arena, .refusal = "no list"};
    const STORED(ScheduleReport) *report = play(&scene, OVERLAP(CONCURRENT), 0);
    EXPECT_TEXT(ends_of(report, arena), "rrr");
    EXPECT_TEXT(report->outcomes[0]->refusal, "no list");
}

ARENA_TEST(schedule_fire, what_may_help_the_next_time_is_an_error)
{
    struct scene scene = {.arena = arena, .fails = true};
    struct schedule_port port = {check_run, cancel, terminate, start, &scene};
    STORED(ScheduleTask) *task = STORED_NEW(arena, schedule_task);
    STORED(ScheduleRun) *run = STORED_NEW(arena, schedule_run);
    STORED(ScheduleReport) *report = NULL;
    array_push(arena, task->running, task->n_running, run);
    EXPECT_KIND(schedule_fire(task, &port, arena, &report), ERR_UNAVAILABLE);
}
