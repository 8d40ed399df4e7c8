/* orphan_script_test.c - a child whose parent's owner crashed before it recorded the start.
 *
 * Two hosts of one cluster. Host 0 began the parent; host 1 took its shard, and with it the
 * decision that asks for the child, starts the child and crashes. Host 0 does not know that it was
 * overtaken: nobody asks it anything about the parent. All that tells it is the child, which waits,
 * and asks whether its parent knows it (engine/cross/orphan.c). So the crash is tried at every
 * point of the store from the decision on. */
#include "route/owner.h"
#include "sim/scripts/script.h"

#define POINTS 16
#define CALM   (15 * NS_PER_S) /* the wake-up timer of the decision has fired: nobody writes */
#define SOON   (90 * NS_PER_S) /* the child asks after 10 s, and again */

/* When host 1 crashes, in points of the store. */
struct crash_walk {
    uint64_t ahead; /* of the decision */
    uint64_t point; /* 0: not yet */
    bool has_crashed;
    unsigned *waiting; /* how often a child was there */
};

static bool
is_crash_due(const struct script *script)
{
    const struct crash_walk *walk = script->fixture->test;
    const struct memory_base *base = script->sim->hosts[1].base;
    return !walk->has_crashed && walk->point > 0 && memory_base_points(base) >= walk->point;
}

static void
crash_host(struct script *script)
{
    struct crash_walk *walk = script->fixture->test;
    walk->has_crashed = true;
    sim_host_crash(&script->sim->hosts[1]);
}

/* Host 1 has the decision that asks for the child. */
static void
decide_and_crash(struct script *script)
{
    struct crash_walk *walk = script->fixture->test;
    EXPECT_OK(script_signal(script, 1, "parent", "s"));
    API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
    EXPECT(task != NULL);
    API(Decision) *child = script_start_child(script, "child");
    walk->point = memory_base_points(script->sim->hosts[1].base) + walk->ahead;
    (void)!script_complete(script, 1, task, &child, 1);
    script_sleep(script, CALM);
    if (!walk->has_crashed)
        script_crash(script, 1);
}

static void
play_orphan(struct script *script)
{
    struct crash_walk *walk = script->fixture->test;
    EXPECT(route_shard_of(slice_text("parent"), SIM_SHARDS) !=
           route_shard_of(slice_text("child"), SIM_SHARDS));
    script_start(script, 0, "parent");
    script_decide(script, 0, NULL, 0);
    script_sleep(script, CALM);
    decide_and_crash(script);
    int64_t limit = clock_monotonic() + SOON;
    API(History) *child = script_history(script, 0, "child", "");
    if (child == NULL)
        return; /* it was not started yet */
    ++*walk->waiting;
    while (script_count_events(child, EVENT(DECISION_TASK_SCHEDULED)) == 0) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, NS_PER_S);
        child = script_history(script, 0, "child", "");
    }
}

TEST(orphan_script, a_child_that_waits_finds_its_parent_though_nobody_else_asks_for_it, "A-159")
{
    unsigned waiting = 0;
    for (uint64_t ahead = 1; ahead <= POINTS; ahead++)
        script_play_on(&(struct script_fixture){
            .clusters = 2,
            .is_one_cluster = true,
            .run = play_orphan,
            .is_due = is_crash_due,
            .act = crash_host,
            .test = &(struct crash_walk){.ahead = ahead, .waiting = &waiting}});
    EXPECT(waiting > 0 && waiting < POINTS);
}
