/* graceful_test.c - a graceful failover as the clients of its target see it, and what is counted.
 *
 * The other clusters of the group are this server once more, under their names: they answer, and
 * know the same versions. None of them ever tells of a marker: what drains to here stays pending.
 */
#include "api/fixture.h"
#include "domain/samples.h"
#include "fiber/clock.h"
#include "wire/presence.h"

#define SERVER "server:7833"

static const struct cluster_group *
mirrored_group(void)
{
    static struct cluster clusters[SAMPLE_CLUSTERS];
    static struct cluster_group group;
    group = *sample_group(EAST);
    for (size_t i = 0; i < group.count; i++) {
        clusters[i] = group.clusters[i];
        clusters[i].rpc_address = SERVER;
    }
    group.current = &clusters[group.current - group.clusters];
    group.primary = &clusters[group.primary - group.clusters];
    group.clusters = clusters;
    return &group;
}

static struct error *
move_domain(struct fixture *fixture, const char *cluster, int64_t timeout)
{
    API(FailoverDomainRequest) *request = sample_failover(cluster, NULL, fixture->arena);
    API(FailoverDomainResponse) *response;
    request->domain_name = "moving";
    if (timeout > 0)
        request->failover_timeout = presence_make_duration(fixture->arena, timeout);
    return fixture_call(fixture, DOMAIN_API "FailoverDomain", &request->base,
                        API_TYPE(failover_domain_response), &response);
}

/* A workflow of a domain that was active here, and is active in another cluster. */
static API(PollForDecisionTaskRequest) *
begin(struct fixture *fixture)
{
    API(RegisterDomainResponse) *registered;
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    API(StartWorkflowExecutionResponse) *started;
    request->name = start->domain = "moving";
    EXPECT_OK(fixture_call(fixture, DOMAIN_API "RegisterDomain", &request->base,
                           API_TYPE(register_domain_response), &registered));
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &start->base,
                           API_TYPE(start_workflow_execution_response), &started));
    EXPECT_OK(move_domain(fixture, "west", 0));
    API(PollForDecisionTaskRequest) *poll =
        message_new(fixture->arena, API_TYPE(poll_for_decision_task_request));
    poll->domain = "moving";
    poll->task_list = fixture_list(fixture, "work");
    return poll;
}

static API(PollForDecisionTaskResponse) *
poll_once(struct fixture *fixture, const API(PollForDecisionTaskRequest) *poll)
{
    API(PollForDecisionTaskResponse) *task;
    EXPECT_OK(fixture_call(fixture, WORKER_API "PollForDecisionTask", &poll->base,
                           API_TYPE(poll_for_decision_task_response), &task));
    return task;
}

/* --- what waits ---- */

static void
tasks_wait(struct fixture *fixture)
{
    API(PollForDecisionTaskRequest) *poll = begin(fixture);
    EXPECT_EQ(poll_once(fixture, poll)->task_token.len, 0); /* its task comes back, and is held */
    EXPECT_OK(move_domain(fixture, "east", 300));
    EXPECT_EQ(poll_once(fixture, poll)->task_token.len, 0);
    EXPECT(counter_value(metrics_counter(fixture->metrics, "task_pending_active", "", NULL)) > 0);
    EXPECT_OK(move_domain(fixture, "east", 0)); /* somebody completes it */
    EXPECT(poll_once(fixture, poll)->task_token.len > 0);
}

TEST(graceful, tasks_wait_while_their_domain_is_pending_and_go_when_it_is_active, "F-013", "F-038")
{
    fixture_run_in(mirrored_group(), tasks_wait);
}

/* --- what is counted ---- */

static uint64_t
begun(struct fixture *fixture)
{
    const char *labels[] = {"domain", "moving", NULL};
    return counter_value(metrics_counter(
        fixture->metrics, "cadence_graceful_failover_initiation_success", "", labels));
}

static uint64_t
refused(struct fixture *fixture, const char *reason)
{
    const char *labels[] = {"domain", "moving", "reason", reason, NULL};
    return counter_value(metrics_counter(
        fixture->metrics, "cadence_graceful_failover_initiation_failures", "", labels));
}

static void
tries_are_counted(struct fixture *fixture)
{
    begin(fixture);
    EXPECT_KIND(move_domain(fixture, "north", 60), ERR_BAD_REQUEST);
    EXPECT_EQ(refused(fixture, "validation"), 1);
    EXPECT_EQ(begun(fixture), 0);
    EXPECT_OK(move_domain(fixture, "east", 60));
    EXPECT_EQ(begun(fixture), 1);
    EXPECT_KIND(move_domain(fixture, "east", 60), ERR_BAD_REQUEST);
    EXPECT_EQ(refused(fixture, "handler"), 1);
    EXPECT_EQ(refused(fixture, "ongoing_failover_check"), 0);
    EXPECT_EQ(begun(fixture), 1);
}

TEST(graceful, tries_to_begin_are_counted_with_why_they_failed, "F-010")
{
    fixture_run_in(mirrored_group(), tries_are_counted);
}

static void
nobody_answers(struct fixture *fixture)
{
    begin(fixture);
    EXPECT(move_domain(fixture, "east", 60) != NULL);
    EXPECT_EQ(refused(fixture, "ongoing_failover_check"), 1);
    EXPECT_EQ(begun(fixture), 0);
}

TEST(graceful, a_cluster_that_does_not_answer_is_counted, "F-006", "F-010")
{
    fixture_run_in(sample_group(EAST), nobody_answers);
}
