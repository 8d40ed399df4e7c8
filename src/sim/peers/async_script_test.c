/* async_script_test.c - starts that are accepted in one cluster and done in another, step by step.
 *
 * The domain has no configuration of asynchronous starts, and is active in one cluster. */
#include <string.h>

#include "sim/peers/fake_peer.h"

static struct error *
start_later(struct script *script, unsigned cluster, API(StartWorkflowExecutionRequest) *start)
{
    return SCRIPT_CALL(script, cluster, NULL, start_workflow_execution_async, .request = start);
}

static struct error *
signal_later(struct script *script, unsigned cluster, API(StartWorkflowExecutionRequest) *start)
{
    return SCRIPT_CALL(script, cluster, NULL, signal_with_start_workflow_execution_async,
                       .request =
                           API_NEW(script->arena, signal_with_start_workflow_execution_request,
                                   .start_request = start, .signal_name = "go"));
}

/* The run that the request asked for is in both clusters, written by cluster `writer`. */
static API(History) *
expect_started(struct script *script, const API(StartWorkflowExecutionRequest) *start,
               unsigned writer, size_t events)
{
    script_await(script, 0, start->workflow_id, events);
    API(History) *history = script_await(script, 1, start->workflow_id, events);
    EXPECT_TEXT(history->events[0]->workflow_execution_started_event_attributes->request_id,
                start->request_id);
    EXPECT_EQ(sim_group_of_version(history->events[0]->version), (int)writer);
    return history;
}

SCRIPT_TEST(async_script, what_the_passive_cluster_accepts_is_done_where_the_domain_is_active,
            script_play(2, 0, body), "A-052")
{
    API(StartWorkflowExecutionRequest) *plain = script_start_request(script, "plain");
    EXPECT_OK(start_later(script, 1, plain));
    expect_started(script, plain, 0, 2);
    API(StartWorkflowExecutionRequest) *signaled = script_start_request(script, "signaled");
    EXPECT_OK(signal_later(script, 1, signaled));
    API(History) *history = expect_started(script, signaled, 0, 3);
    EXPECT_EQ(script_count_events(history, EVENT(WORKFLOW_EXECUTION_SIGNALED)), 1);
    EXPECT_OK(start_later(script, 1, plain)); /* repeats, in either cluster */
    EXPECT_OK(start_later(script, 0, plain));
    EXPECT_OK(signal_later(script, 1, signaled));
    script_sleep(script, WITHIN);
    EXPECT_EQ(script_history(script, 0, "plain", "")->n_events, 2);
    EXPECT_EQ(script_history(script, 0, "signaled", "")->n_events, 3);
}

/* It is accepted while the active cluster cannot be reached, and survives a crash. */
SCRIPT_TEST(async_script, a_request_waits_for_an_active_cluster_that_is_away,
            script_play(2, 0, body))
{
    API(StartWorkflowExecutionRequest) *first = script_start_request(script, "w");
    API(StartWorkflowExecutionRequest) *second = script_start_request(script, "w");
    script_part(script);
    EXPECT_OK(start_later(script, 1, first));
    EXPECT_OK(signal_later(script, 1, second)); /* of the same id: behind it */
    script_sleep(script, WITHIN);
    EXPECT(script_history(script, 0, "w", "") == NULL &&
           script_history(script, 1, "w", "") == NULL);
    script_crash(script, 1);
    script_restart(script, 1);
    script_heal(script);
    API(History) *history = expect_started(script, first, 0, 3);
    EXPECT_EQ(script_count_events(history, EVENT(WORKFLOW_EXECUTION_SIGNALED)), 1);
}

/* It waits where the domain was passive; then the domain comes to that very cluster, and goes away
 * again. It is done once, in the cluster that is active when it can be done. */
SCRIPT_TEST(async_script, a_request_is_done_once_wherever_the_domain_goes, script_play(2, 0, body))
{
    API(StartWorkflowExecutionRequest) *here = script_start_request(script, "here");
    script_part(script);
    EXPECT_OK(start_later(script, 1, here));
    script_sleep(script, 2 * NS_PER_S);
    script_failover(script, 1);
    script_await(script, 1, "here", 2);
    API(StartWorkflowExecutionRequest) *left = script_start_request(script, "left");
    EXPECT_OK(start_later(script, 0, left)); /* which has not heard of it: done there at once */
    script_heal(script);
    expect_started(script, here, 1, 2);
    expect_started(script, left, 0, 2);
    script_sleep(script, WITHIN);
    API(StartWorkflowExecutionRequest) *late = script_start_request(script, "late");
    EXPECT_OK(start_later(script, 0, late));
    expect_started(script, late, 1, 2);
}

/* A Cadence cluster is the active one: it is asked by calls that it knows. */
SCRIPT_TEST(async_script, an_active_cluster_that_is_a_cadence_is_asked_by_its_own_calls,
            script_play(2, 0, body))
{
    struct fake_peer fake_peer = {.is_cadence = true};
    API(StartWorkflowExecutionRequest) *start = script_start_request(script, "w");
    fake_peer_begin(script, &fake_peer);
    EXPECT_OK(start_later(script, 1, start));
    script_sleep(script, WITHIN);
    EXPECT_EQ(fake_peer.starts, 1);
    EXPECT_TEXT(fake_peer.request_id, start->request_id);
    API(StartWorkflowExecutionRequest) *other = script_start_request(script, "w");
    EXPECT_OK(signal_later(script, 1, other));
    script_sleep(script, WITHIN);
    EXPECT_EQ(fake_peer.starts, 2);
    EXPECT_EQ(fake_peer.signals, 1);
    EXPECT_TEXT(fake_peer.request_id, other->request_id);
}
