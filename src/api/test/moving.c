/* moving.c - see moving.h. */
#include "api/test/moving.h"

#include "route/test_answers.h"
#include "wire/presence.h"

void
moving_register(struct fixture *fixture)
{
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
    request->name = "moving";
    EXPECT_MADE(fixture_call(fixture, request, NULL));
}

struct error *
moving_try(struct fixture *fixture, const char *cluster, int64_t seconds)
{
    API(FailoverDomainRequest) *request = sample_failover(cluster, NULL, fixture->arena);
    request->domain_name = "moving";
    if (seconds > 0)
        request->failover_timeout = presence_make_duration(fixture->arena, seconds);
    return fixture_call(fixture, request, NULL);
}

void
moving_go(struct fixture *fixture, const char *cluster)
{
    EXPECT_MADE(moving_try(fixture, cluster, 0));
}

API(PollForDecisionTaskRequest) *
moving_begin(struct fixture *fixture)
{
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    API(PollForDecisionTaskRequest) *poll = fixture_poll(fixture, "work");
    start->domain = poll->domain = "moving";
    moving_register(fixture);
    run_start_by(fixture, start);
    return poll;
}
