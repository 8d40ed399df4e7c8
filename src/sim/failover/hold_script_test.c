/* hold_script_test.c - calls that come while a domain drains from one cluster to the other.
 *
 * The clusters write no markers, so a graceful failover takes as long as it may; meanwhile calls
 * come to both of them, each in a fiber of its own. What they did is read from the histories. */
#include "fiber/fiber.h"
#include "sim/active/active_script.h"
#include "sim/failover/hold_script.h"
#include "wire/errors.h"

/* --- clients ---- */

static void
calls_of_clients(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    script_start(script, 0, "cancelled");
    script_start(script, 0, "terminated");
    int64_t end = begin_drain(script);
    signals_later(&callers, script, "w", 10);
    for (unsigned i = 0; i < 2; i++) {
        start_later(&callers, script, i, arena_format(script->arena, "new%u", i));
        signal_with_start_later(&callers, script, i, arena_format(script->arena, "both%u", i));
    }
    signal_later(&callers, script, 0, "new1", "behind its start");
    cancel_later(&callers, script, 0, "cancelled");
    terminate_later(&callers, script, 1, "terminated");
    callers_expect_held(&callers, end);
    EXPECT(world_probe_count(script->sim->world, "call_held") == callers.count);
    EXPECT(world_probe_count(script->sim->world, "call_held_behind") == 10);

    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 s4 s5 s6 s7 s8 s9");
    EXPECT_TEXT(signals_of(script, 1, "new1"), "behind its start");
    EXPECT_TEXT(signals_of(script, 1, "both0"), "with start");
    EXPECT_EQ(
        last_event(script, 1, "cancelled"),
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES));
    EXPECT_EQ(last_event(script, 1, "terminated"),
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES));
    static const char *const all[] = {"w",    "cancelled", "terminated", "new0",
                                      "new1", "both0",     "both1"};
    for (size_t i = 0; i < array_length(all); i++)
        script_expect_same(script, all[i]);
}

TEST(hold, calls_to_either_cluster_are_carried_out_in_order_when_the_target_is_active, "F-042")
{
    script_play_set(NO_MARKERS, true, calls_of_clients);
}

/* The clusters pass nothing on: before, and when it is over, each answers for itself. */
static void
calls_without_forwarding(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    EXPECT_KIND(script_signal(script, 1, "w", "early"), ERR_DOMAIN_NOT_ACTIVE);
    int64_t end = begin_drain(script);
    signals_later(&callers, script, "w", 4);
    callers_expect_held(&callers, end);
    script_sleep(script, NS_PER_S);
    EXPECT_KIND(script_signal(script, 0, "w", "late"), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_OK(script_signal(script, 1, "w", "here"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 here");
}

TEST(hold, the_cluster_that_was_active_sends_calls_to_where_they_wait_whatever_its_policy)
{
    script_play_set(NO_MARKERS, false, calls_without_forwarding);
}

/* --- workers ---- */

static API(PollForActivityTaskResponse) *
activity_of(struct script *script, const char *id)
{
    API(Decision) *decisions[] = {script_schedule_activity(script, false)};
    script_start(script, 0, id);
    script_decide(script, 0, decisions, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL);
    return task;
}

static void
beat_later(struct callers *callers, struct script *script, unsigned cluster,
           const API(PollForActivityTaskResponse) *task)
{
    API(RecordActivityTaskHeartbeatRequest) *request = API_NEW(
        script->arena, record_activity_task_heartbeat_request, .task_token = task->task_token);
    call_later(callers, script, cluster, request);
}

static void
complete_later(struct callers *callers, struct script *script, unsigned cluster,
               const API(PollForActivityTaskResponse) *task)
{
    API(RespondActivityTaskCompletedRequest) *request = API_NEW(
        script->arena, respond_activity_task_completed_request, .task_token = task->task_token);
    call_later(callers, script, cluster, request);
}

static void
fail_by_id_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(RespondActivityTaskFailedByIDRequest) *request =
        API_NEW(script->arena, respond_activity_task_failed_by_idrequest, .domain = SCRIPT_DOMAIN,
                .workflow_execution = execution_of(script, id), .activity_id = "a",
                .failure = API_NEW(script->arena, failure, .reason = "why not"));
    call_later(callers, script, cluster, request);
}

static void
calls_of_workers(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    API(PollForActivityTaskResponse) *one = activity_of(script, "one");
    API(PollForActivityTaskResponse) *two = activity_of(script, "two");
    activity_of(script, "three");
    script_start(script, 0, "decided");
    API(PollForDecisionTaskResponse) *decision = script_poll(script, 0, WITHIN);
    EXPECT(decision != NULL);
    int64_t end = begin_drain(script);
    beat_later(&callers, script, 0, one);
    complete_later(&callers, script, 0, one); /* behind its heartbeat */
    beat_later(&callers, script, 1, two);
    complete_later(&callers, script, 1, two);
    fail_by_id_later(&callers, script, 0, "three");
    for (unsigned i = 0; i < 2; i++) {
        int64_t began = clock_monotonic();
        EXPECT_KIND(script_complete(script, i, decision, NULL, 0), ERR_DOMAIN_NOT_ACTIVE);
        EXPECT(clock_monotonic() - began < NS_PER_S);
    }
    callers_expect_held(&callers, end);
    for (unsigned i = 0; i < 2; i++)
        EXPECT(script_poll(script, 1, WITHIN) != NULL); /* what the answers entail */
}

TEST(hold, answers_of_activities_wait_and_an_answer_of_a_decision_is_refused)
{
    script_play_set(NO_MARKERS, true, calls_of_workers);
}

/* --- attributes ---- */

/* One of two attributes moves; workflows of the other one are not touched. */
static void
calls_by_attribute(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    active_start(script, 0, "moving", "region0");
    active_start(script, 0, "staying", "region2");
    script_await(script, 1, "staying", 2);
    struct load_call call = {.clients = script->clients, .host = 1, .arena = script->arena};
    struct load_failover failover = {.name = SCRIPT_DOMAIN,
                                     .attribute =
                                         &(struct load_attribute){"region", "region0", "cluster1"},
                                     .timeout = DRAIN / NS_PER_S};
    API(Domain) *domain = NULL;
    int64_t end = clock_monotonic() + DRAIN;
    EXPECT_OK(load_failover(&call, &failover, &domain));
    script_sleep(script, NS_PER_S);
    signals_later(&callers, script, "moving", 4);
    for (unsigned i = 0; i < 2; i++)
        EXPECT_OK(script_signal(script, i, "staying", "at once"));
    callers_expect_held(&callers, end);
    EXPECT_TEXT(signals_of(script, 1, "moving"), "s0 s1 s2 s3");
    EXPECT_TEXT(signals_of(script, 0, "staying"), "at once at once");
}

TEST(hold, calls_wait_for_the_attribute_of_their_workflow_and_for_no_other)
{
    static const struct load_attribute all[] = {{"region", "region0", "cluster0"},
                                                {"region", "region2", "cluster0"}};
    static const struct script_attributes attributes = {
        .all = all, .count = array_length(all), .is_forwarded = true};
    script_play_on(&(struct script_fixture){.clusters = 2,
                                            .dynamic = NO_MARKERS,
                                            .attributes = &attributes,
                                            .run = calls_by_attribute});
}

/* --- bounds ---- */

static void
calls_off(struct script *script)
{
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    for (unsigned i = 0; i < 2; i++) {
        API(DomainNotActiveError) *detail;
        struct error *err = script_signal(script, i, "w", "s");
        EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
        EXPECT_OK(errors_read(script->arena, err, &detail));
        EXPECT_TEXT(detail->active_cluster, "cluster1");
    }
    EXPECT(script_describe(script, 1, "w") != NULL); /* reads work */
    EXPECT(clock_monotonic() < end - NS_PER_S);
    script_sleep(script, DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "s"));
}

TEST(hold, where_it_is_off_calls_are_refused_while_the_domain_drains, "F-014", "F-042")
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrain:\n"
                               "- value: false\n"
                               "  constraints: {domainName: " SCRIPT_DOMAIN "}\n",
                    true, calls_off);
}

static void
too_many_calls(struct script *script)
{
    struct callers callers;
    int64_t end = callers_begin(&callers, script);
    signals_later(&callers, script, "w", 2);
    for (unsigned i = 0; i < 2; i++)
        EXPECT_KIND(script_signal(script, i, "w", "too many"), ERR_SERVICE_BUSY);
    callers_expect_held(&callers, end);
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1");
}

TEST(hold, more_calls_than_may_wait_are_refused_at_once_and_may_be_tried_again)
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrainMax: [{value: 2}]\n", true,
                    too_many_calls);
}

static void
impatient_calls(struct script *script)
{
    struct callers callers;
    int64_t end = callers_begin(&callers, script);
    int64_t began = clock_monotonic();
    signals_later(&callers, script, "w", 2);
    struct caller *caller = &callers.items[0];
    latch_wait(&callers.latch);
    for (unsigned i = 0; i < 2; i++, caller++) {
        EXPECT_KIND(caller->err, ERR_SERVICE_BUSY);
        EXPECT(caller->answered - began >= NS_PER_S && caller->answered < end - NS_PER_S);
    }
    expect_first_signal(script); /* nothing was written before */
}

TEST(hold, a_call_waits_no_longer_than_it_may_and_leaves_nothing_behind)
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrainTime: [{value: 1s}]\n", true,
                    impatient_calls);
}

static void
near_deadline(struct script *script)
{
    script_start(script, 0, "w");
    begin_drain(script);
    for (unsigned i = 0; i < 2; i++) {
        struct load_call call = {
            .clients = script->clients, .host = i, .arena = script->arena, .is_worker = true};
        API(SignalWorkflowExecutionRequest) *request =
            API_NEW(script->arena, signal_workflow_execution_request, .domain = SCRIPT_DOMAIN,
                    .workflow_execution = execution_of(script, "w"), .signal_name = "hasty");
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        EXPECT_KIND(load_send(&call, request, NULL), ERR_SERVICE_BUSY);
        fiber_set_deadline(NEVER);
    }
    expect_first_signal(script);
}

TEST(hold, a_caller_whose_deadline_comes_first_is_told_before_that_it_may_try_again)
{
    script_play_set(NO_MARKERS, true, near_deadline);
}

/* --- other ends ---- */

static void
drain_is_overtaken(struct script *script)
{
    struct callers callers;
    int64_t end = callers_begin(&callers, script);
    signals_later(&callers, script, "w", 2);
    script_failover(script, 0); /* by force, back to where it was */
    callers_expect_ok(&callers, 0);
    EXPECT(clock_monotonic() < end - NS_PER_S);
    script_expect_same(script, "w");
    EXPECT(strcmp(signals_of(script, 0, "w"), "s0 s1") == 0 ||
           strcmp(signals_of(script, 0, "w"), "s1 s0") == 0); /* each took a way of its own */
}

TEST(hold, calls_go_where_the_domain_is_active_if_another_failover_ends_the_drain, "F-037")
{
    script_play_set(NO_MARKERS, true, drain_is_overtaken);
}

static void
drain_is_forced(struct script *script)
{
    struct callers callers;
    int64_t end = callers_begin(&callers, script);
    signals_later(&callers, script, "w", 6);
    script_failover(script, 1);
    callers_expect_ok(&callers, 0);
    EXPECT(clock_monotonic() < end - NS_PER_S);
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 s4 s5");
}

TEST(hold, calls_go_on_at_once_when_somebody_forces_the_failover_to_its_end, "F-038")
{
    script_play_set(NO_MARKERS, true, drain_is_forced);
}

static void
target_crashes(struct script *script)
{
    struct callers callers;
    callers_begin(&callers, script);
    signals_later(&callers, script, "w", 2);
    script_crash(script, 1);
    latch_wait(&callers.latch);
    for (unsigned i = 0; i < 2; i++)
        EXPECT_KIND(callers.items[i].err, ERR_UNAVAILABLE);
    script_restart(script, 1);
    script_sleep(script, DRAIN);
    expect_first_signal(script);
}

TEST(hold, nothing_of_a_call_that_waited_is_left_when_its_cluster_crashes)
{
    script_play_set(NO_MARKERS, true, target_crashes);
}

/* --- all of it, with markers ---- */

#define WRITERS    4
#define WRITTEN    60
#define DRAINS     6
#define STORM_WORD "%u-%u"

/* Signals one workflow all the time, at each cluster in turn. */
struct signal_writer {
    struct script *script;
    unsigned number;
    const char *id;
    struct latch *latch;
};

static void
write_signals(void *argument)
{
    struct signal_writer *signal_writer = argument;
    struct script *script = signal_writer->script;
    for (unsigned i = 0; i < WRITTEN; i++) {
        const char *name = arena_format(script->arena, STORM_WORD, signal_writer->number, i);
        struct error *err =
            script_signal(script, (i + signal_writer->number) % 2, signal_writer->id, name);
        if (err != NULL)
            TEST_FAIL("signal %s at cluster%u: %s", name, (i + signal_writer->number) % 2,
                      err->message);
        script_sleep(script, (int64_t)(1 + i % 7) * 10 * NS_PER_MS);
    }
    latch_done(signal_writer->latch);
}

static bool
is_drained_to(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + LONG);
    EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
    fiber_set_deadline(NEVER);
    return domain->failover_info == NULL &&
           strcmp(domain->active_cluster_name, cluster == 0 ? "cluster0" : "cluster1") == 0;
}

static void
calls_all_the_time(struct script *script)
{
    struct signal_writer signal_writers[WRITERS];
    struct latch latch;
    latch_init(&latch, WRITERS);
    for (unsigned i = 0; i < WRITERS; i++) {
        signal_writers[i] = (struct signal_writer){
            .script = script,
            .number = i,
            .id = arena_format(script->arena, "storm%u", i),
            .latch = &latch,
        };
        script_start(script, 0, signal_writers[i].id);
        fiber_start("writer", write_signals, &signal_writers[i]);
    }
    for (unsigned i = 0; i < DRAINS; i++) {
        unsigned to = 1 - i % 2;
        script_sleep(script, 300 * NS_PER_MS);
        ask_for_drain(script, to, 60);
        while (!is_drained_to(script, to))
            script_sleep(script, 20 * NS_PER_MS);
    }
    latch_wait(&latch);
    EXPECT(world_probe_count(script->sim->world, "call_held") > 0);
    EXPECT_EQ(world_probe_count(script->sim->world, "history_forked"), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        const char *expected = "";
        for (unsigned n = 0; n < WRITTEN; n++)
            expected =
                arena_format(script->arena, "%s%s" STORM_WORD, expected, n == 0 ? "" : " ", i, n);
        EXPECT_TEXT(signals_of(script, DRAINS % 2, signal_writers[i].id), expected);
        script_expect_same(script, signal_writers[i].id);
    }
}

TEST(hold, no_call_fails_is_lost_or_done_twice_while_a_domain_goes_there_and_back, "F-040")
{
    script_play(2, 0, calls_all_the_time);
}
