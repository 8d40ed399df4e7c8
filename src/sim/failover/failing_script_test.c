/* failing_script_test.c - a worker that fails every decision of a workflow, whatever happens to the
 * workflow meanwhile.
 *
 * What is at stake: one broken worker must not keep a cluster busy, and the pauses between the
 * attempts are neither lost by a crash nor carried to where the workflow goes on. Method: a
 * worker that fails every task at once; the clusters crash and the domain moves in a pause.
 */
#include "sim/scripts/script.h"

#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

static void
fail_decision(struct script *script, unsigned cluster, const API(PollForDecisionTaskResponse) *task)
{
    EXPECT_OK(SCRIPT_CALL(script, cluster, NULL, respond_decision_task_failed,
                          .task_token = task->task_token,
                          .cause = CAUSE(WORKFLOW_WORKER_UNHANDLED_FAILURE)));
}

/* The next attempt, however long that takes, and when. */
static API(PollForDecisionTaskResponse) *
next_attempt(struct script *script, unsigned cluster, int64_t *time)
{
    API(PollForDecisionTaskResponse) *task = NULL;
    while ((task = script_poll(script, cluster, WITHIN)) == NULL)
        script_sleep(script, NS_PER_S / 10); /* nothing yet, or nobody there */
    *time = clock_wall();
    return task;
}

/* Fails attempts from `first` on, `count` of them; when the last one was failed. */
static int64_t
fail_attempts(struct script *script, unsigned cluster, int first, int count)
{
    int64_t time = 0;
    for (int i = 0; i < count; i++) {
        API(PollForDecisionTaskResponse) *task = next_attempt(script, cluster, &time);
        EXPECT_EQ(task->attempt, first + i);
        fail_decision(script, cluster, task);
    }
    return time;
}

SCRIPT_TEST(failing_script, a_worker_that_fails_at_once_gets_a_dozen_attempts_in_ten_minutes,
            script_play(2, 0, body))
{
    script_start(script, 0, "w");
    int64_t begun = clock_wall(), time = begun;
    int count = 0;
    for (; time < begun + 600 * NS_PER_S && count < 1000; count++)
        fail_decision(script, 0, next_attempt(script, 0, &time));
    EXPECT(count >= 12 && count <= 16); /* 4 at once, then after 1, 2, 4, ... 256, 300 s */
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 0, "w");
    EXPECT(seen->pending_decision != NULL && seen->pending_decision->attempt == count);
    EXPECT_OK(script_signal(script, 0, "w", "news")); /* does not wait */
    time = clock_wall();
    API(PollForDecisionTaskResponse) *task = script_poll(script, 0, NS_PER_S);
    EXPECT(task != NULL && task->attempt == 0);
    EXPECT(clock_wall() - time <= NS_PER_S);
}

SCRIPT_TEST(failing_script, a_pause_outlives_a_crash, script_play(2, 0, body))
{
    script_start(script, 0, "w");
    int64_t failed = fail_attempts(script, 0, 0, 8), time;
    script_crash(script, 0);
    script_restart(script, 0);
    API(PollForDecisionTaskResponse) *task = next_attempt(script, 0, &time);
    EXPECT_EQ(task->attempt, 8);
    EXPECT(time - failed >= 16 * NS_PER_S && time - failed < 30 * NS_PER_S);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 0, task, &end, 1));
    script_expect_same(script, "w");
}

/* A pause of minutes, in which the domain moves there and back. */
SCRIPT_TEST(failing_script, where_the_workflow_goes_on_it_begins_again_at_once,
            script_play(2, 0, body))
{
    script_start(script, 0, "w");
    fail_attempts(script, 0, 0, 11); /* the next one in 128 s */
    for (unsigned i = 1; i <= 4; i++) {
        script_failover(script, i % 2);
        int64_t moved = clock_wall(), time;
        API(PollForDecisionTaskResponse) *task = next_attempt(script, i % 2, &time);
        EXPECT_EQ(task->attempt, 0); /* attempts are known where they were made */
        EXPECT(time - moved < 20 * NS_PER_S);
        fail_decision(script, i % 2, task);
        fail_attempts(script, i % 2, 1, 9); /* the next one in 64 s */
    }
    script_failover(script, 1);
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    script_expect_same(script, "w");
}
