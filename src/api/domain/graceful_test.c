/* graceful_test.c - a graceful failover as the clients of its target see it, and what is counted.
 *
 * The other clusters of the group are this server once more, under their names: they answer, and
 * know the same versions. None of them ever sends a failover marker: what drains to here stays
 * pending. */
#include "api/test/moving.h"
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

/* A workflow of a domain that was active here, and is active in another cluster. */
static API(PollForDecisionTaskRequest) *
begin(struct fixture *fixture)
{
    API(PollForDecisionTaskRequest) *poll = moving_begin(fixture);
    moving_go(fixture, "west");
    return poll;
}

static API(PollForDecisionTaskResponse) *
poll_once(struct fixture *fixture, const API(PollForDecisionTaskRequest) *poll)
{
    return fixture_ok(fixture, poll);
}

/* --- what waits ---- */

static void
tasks_wait(struct fixture *fixture)
{
    API(PollForDecisionTaskRequest) *poll = begin(fixture);
    EXPECT_EQ(poll_once(fixture, poll)->task_token.len, 0); /* its task comes back, and is held */
    EXPECT_OK(moving_try(fixture, "east", 300));
    EXPECT_EQ(poll_once(fixture, poll)->task_token.len, 0);
    EXPECT(counter_value(metrics_counter(fixture->metrics, "task_pending_active", "", NULL)) > 0);
    moving_go(fixture, "east"); /* somebody completes it */
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
    EXPECT_KIND(moving_try(fixture, "north", 60), ERR_BAD_REQUEST);
    EXPECT_EQ(refused(fixture, "validation"), 1);
    EXPECT_EQ(begun(fixture), 0);
    EXPECT_OK(moving_try(fixture, "east", 60));
    EXPECT_EQ(begun(fixture), 1);
    EXPECT_KIND(moving_try(fixture, "east", 60), ERR_BAD_REQUEST);
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
    EXPECT(moving_try(fixture, "east", 60) != NULL);
    EXPECT_EQ(refused(fixture, "ongoing_failover_check"), 1);
    EXPECT_EQ(begun(fixture), 0);
}

TEST(graceful, a_cluster_that_does_not_answer_is_counted, "F-006", "F-010")
{
    fixture_run_in(sample_group(EAST), nobody_answers);
}
