/* claim_test.c - polls that are kept for tasks that are about to be (route/claim.h). In simulation,
 * with the list on this loop and on another one. */
#include "base/memory.h"
#include "base/test.h"
#include "matching/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
answered(struct claim *claim)
{
    fiber_wake(claim->context);
}

/* NULL: refused. */
static struct claim *
claim_poll(struct bench *bench, struct spot spot)
{
    struct claim *claim = memory_zalloc(1, sizeof *claim);
    claim->type = spot.type;
    claim->kind = spot.kind;
    claim->domain_id = "domain";
    claim->list = spot.list;
    claim->answered = answered;
    claim->context = fiber_self();
    if (matching_claim(bench->matching, claim) == CLAIM_ASKED)
        fiber_wait_uncancellable();
    if (claim->identity != NULL)
        return claim;
    memory_free(claim);
    return NULL;
}

static void
end_with_task(struct bench *bench, struct claim *claim, struct spot spot, uint64_t row)
{
    struct task task = bench_task(spot, row);
    claim->arena = arena_new(0);
    claim->task = task_copy(&task, claim->arena);
    claim->request_id = arena_text(claim->arena, "start-1");
    claim->start = arena_text(claim->arena, "told");
    matching_end_claim(bench->matching, claim);
}

static void
takes_home(struct bench *bench)
{
    struct probe probe;
    EXPECT(claim_poll(bench, DECISIONS) == NULL);
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    bench_sleep(bench, SHORT);
    struct claim *claim = claim_poll(bench, DECISIONS);
    EXPECT(claim != NULL && claim_poll(bench, DECISIONS) == NULL);
    bench_sleep(bench, 3 * NS_PER_S); /* its time is over, but it is promised */
    EXPECT(!probe.is_back);
    end_with_task(bench, claim, DECISIONS, 7);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(probe.poll.task->schedule_id, 7);
    EXPECT_TEXT(probe.poll.request_id, "start-1");
    EXPECT_TEXT(probe.poll.start, "told");
    probe_finish(bench, &probe);
}

TEST(claim, a_poll_that_is_claimed_waits_for_its_task_and_takes_it_home)
{
    bench_run(takes_home, NULL, 1);
    bench_run(takes_home, NULL, 3);
}

static void
waits_on(struct bench *bench)
{
    struct probe probe;
    probe_start(bench, DECISIONS, &probe, 10 * NS_PER_S);
    bench_sleep(bench, SHORT);
    struct claim *claim = claim_poll(bench, DECISIONS);
    EXPECT(claim != NULL);
    bench_add(bench, DECISIONS, 1, 1);
    bench_sleep(bench, SHORT);
    EXPECT(!probe.is_back);
    matching_end_claim(bench->matching, claim);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    EXPECT_EQ(probe.poll.task->schedule_id, 1);
    EXPECT(probe.poll.start == NULL && probe.poll.request_id == NULL);
    probe_finish(bench, &probe);

    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    bench_sleep(bench, SHORT);
    claim = claim_poll(bench, DECISIONS);
    EXPECT(claim != NULL);
    matching_end_claim(bench->matching, claim);
    EXPECT_EQ(probe_wait(&probe), POLL_EMPTY); /* at its time */
}

TEST(claim, a_poll_that_is_not_needed_gets_what_came_meanwhile_or_waits_on)
{
    bench_run(waits_on, NULL, 1);
    bench_run(waits_on, NULL, 3);
}

static void
others_first(struct bench *bench)
{
    struct probe probe;
    bench_add(bench, DECISIONS, 1, 1);
    EXPECT(claim_poll(bench, DECISIONS) == NULL);
    bench_expect(bench, DECISIONS, 1, 1);
    bench->rate = 1;
    probe_start(bench, ACTIVITIES, &probe, 10 * NS_PER_S);
    bench_sleep(bench, SHORT);
    struct claim *claim = claim_poll(bench, ACTIVITIES);
    EXPECT(claim != NULL);
    matching_end_claim(bench->matching, claim); /* the token comes back */
    claim = claim_poll(bench, ACTIVITIES);
    EXPECT(claim != NULL);
    end_with_task(bench, claim, ACTIVITIES, 2);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    probe_finish(bench, &probe);
    probe_start(bench, ACTIVITIES, &probe, SHORT);
    bench_sleep(bench, SHORT / 2);
    EXPECT(claim_poll(bench, ACTIVITIES) == NULL); /* one per second */
    EXPECT_EQ(probe_wait(&probe), POLL_EMPTY);
}

TEST(claim, is_refused_where_a_new_task_would_have_to_wait)
{
    bench_run(others_first, NULL, 1);
    bench_run(others_first, NULL, 3);
}

static void
withdrawn(struct bench *bench)
{
    struct probe probe;
    for (int is_given = 0; is_given < 2; is_given++) {
        probe_start(bench, DECISIONS, &probe, 10 * NS_PER_S);
        bench_sleep(bench, SHORT);
        struct claim *claim = claim_poll(bench, DECISIONS);
        EXPECT(claim != NULL);
        matching_withdraw(bench->matching, &probe.poll);
        bench_sleep(bench, SHORT);
        EXPECT(!probe.is_back);
        if (is_given)
            end_with_task(bench, claim, DECISIONS, 3);
        else
            matching_end_claim(bench->matching, claim);
        EXPECT_EQ(probe_wait(&probe), is_given ? POLL_MATCHED : POLL_WITHDRAWN);
        if (is_given)
            probe_finish(bench, &probe);
    }
}

TEST(claim, a_poll_that_is_withdrawn_meanwhile_comes_back_when_the_claim_ends)
{
    bench_run(withdrawn, NULL, 1);
    bench_run(withdrawn, NULL, 3);
}
