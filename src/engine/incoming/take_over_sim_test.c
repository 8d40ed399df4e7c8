/* take_over_sim_test.c - runs change hands: what one cluster had begun is taken over by the next,
 * what it took is written down before others go on (E-002, E-009 … E-011). Every batch is sent
 * twice. */
#include "engine/test/incoming_simulation.h"
#include "route/test_answers.h"
#include "wire/message.h"

static API(DecisionTaskFailedCause)
cause_of(const API(HistoryEvent) *event)
{
    EXPECT_EQ(event->attributes_case, EVENT_KIND(DECISION_TASK_FAILED));
    return event->decision_task_failed_event_attributes->cause;
}
#define FAILOVER_CLOSE                                                                             \
    API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_FAILOVER_CLOSE_DECISION)

SCENE(what_a_later_version_wrote_is_not_changed, "E-002")
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 31, "sd"); /* this cluster has not heard of that failover */
    source_move(fixture, EAST);             /* version 10 */
    struct error *err = shard_fixture_signal(fixture, "wf", fixture->arena);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT(strstr(err->message, "west") != NULL);
    EXPECT_KIND(shard_fixture_terminate(fixture, "wf", fixture->arena), ERR_DOMAIN_NOT_ACTIVE);
    source_send(&source_history, 31, "bcE");
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena, NULL),
                ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_OK(shard_fixture_start(fixture, "another", "two", 1000, fixture->arena, NULL));
}

static API(ActiveClusterSelectionPolicy) *
city(struct shard_fixture *fixture, const char *name)
{
    return API_NEW(fixture->arena, active_cluster_selection_policy,
                   .cluster_attribute = API_NEW(fixture->arena, cluster_attribute, .scope = "city",
                                                .name = (char *)name));
}

static void
open_cities(struct shard_fixture *fixture)
{
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:east,city.b:east", fixture->arena);
    request->name = "cities";
    EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "cities")->id);
}

/* This cluster has not heard that the city moved to west, with version 31. */
SCENE(a_start_behind_a_later_version_of_its_attribute_is_sent_there, "G-026")
{
    open_cities(fixture);
    fixture->policy = city(fixture, "a");
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 31, "sd");
    struct error *err = shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena, NULL);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE); /* and not that it runs */
    EXPECT(strstr(err->message, "Operation active cluster: west") != NULL);
    fixture->policy = city(fixture, "b"); /* versions of another city say nothing */
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena, NULL),
                ERR_ALREADY_STARTED);
    fixture->policy = city(fixture, "a");
    source_send(&source_history, 31, "bcE");
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena, NULL),
                ERR_DOMAIN_NOT_ACTIVE);
}

/* The run of the other city was started by a clock that is ahead. Which run is the newer one, all
 * clusters find out by when they started: the one that follows is not earlier. */
SCENE(a_run_that_follows_one_of_another_attribute_never_starts_before_it)
{
    open_cities(fixture);
    fixture->policy = city(fixture, "a");
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_history.time += 3600 * NS_PER_S;
    source_send(&source_history, 31, "sd");
    source_send(&source_history, 31, "bcL");
    fixture->policy = city(fixture, "b");
    const char *run_id;
    EXPECT_OK(shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena, &run_id));
    struct run_key key = {fixture->domain_id, "wf", run_id};
    EXPECT(source_look_here(fixture, &key).start_time >
           source_look_here(fixture, &source_history.key).start_time);
    EXPECT(source_look_here(fixture, &key).is_current);
    EXPECT_EQ(source_look_here(fixture, &key).last_version, 0); /* lower than 31, and yet */
}

SCENE(a_decision_in_flight_is_failed_and_scheduled_again_when_the_run_goes_on_here, "E-010")
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_move(fixture, EAST);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(3,1)(6,10)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0),
                "sdbfdg"); /* the signal is not buffered */
    size_t count;
    API(HistoryEvent) **events = source_events(fixture, &source_history.key, 0, &count);
    EXPECT_EQ(cause_of(events[3]), FAILOVER_CLOSE);
    EXPECT_EQ(events[4]->decision_task_scheduled_event_attributes->attempt, 0);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_EQ(fixture->tasks.items[0]->schedule_id, 5);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[0], 0, fixture->arena));
}

SCENE(an_attempt_that_only_the_other_cluster_knew_begins_again_with_real_events, "E-011")
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "f"); /* attempt 1 is transient, there */
    EXPECT(!source_look_here(fixture, &source_history.key).has_decision);
    source_move(fixture, EAST);
    shard_fixture_wait(fixture->tasks.count == 1);
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(4,1)(5,10)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbfd");
    size_t count;
    EXPECT_EQ(source_events(fixture, &source_history.key, 0, &count)[4]
                  ->decision_task_scheduled_event_attributes->attempt,
              0);
    EXPECT_EQ(fixture->tasks.items[0]->attempt, 0);
}

/* A signal was taken while a decision was started; then north goes on from where it had heard. */
SCENE(what_was_buffered_is_in_the_history_before_replicated_events_are_applied, "E-009")
{
    source_move(fixture, EAST);
    struct source_history source_history = source_begin(fixture, "wf", "");
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena,
                                  &source_history.key.run_id));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdb");
    source_history.items[0] = (struct version_item){3, 10};
    source_history.item_count = 1;
    source_history.next_event_id = 4;
    source_history.scheduled_id = 2;
    source_history.started_id = 3;
    source_history.time = clock_wall() + NS_PER_S;
    source_send(&source_history, 12, "F");
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(3,10)(4,12) | (5,10)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 1), "sdbfg");
    size_t count;
    EXPECT_EQ(cause_of(source_events(fixture, &source_history.key, 1, &count)[3]), FAILOVER_CLOSE);
}

/* Late news from the cluster that had the run before. */
SCENE(news_that_come_late_get_a_decision_where_the_run_is_active)
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "ca");
    source_move(fixture, EAST);
    shard_fixture_wait(fixture->tasks.count == 1); /* the activity */
    source_send(&source_history, 1, "Ax");
    shard_fixture_wait(fixture->tasks.count == 2);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcaAxd");
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches, "(7,1)(8,10)");
}

/* A signal waits behind a started decision when the domain moves away. */
SCENE(what_was_buffered_is_written_down_when_the_domain_moves_away)
{
    source_move(fixture, EAST);
    struct run_key key = {fixture->domain_id, "wf", ""};
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, &key.run_id));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    source_move(fixture, WEST);
    shard_fixture_wait(source_look_here(fixture, &key).next_event_id == 6);
    EXPECT_TEXT(source_read_here(fixture, &key, 0), "sdbfg");
    EXPECT_TEXT(source_look_here(fixture, &key).branches,
                "(5,10)"); /* with the version that is given up */
    source_move(fixture, EAST);
    shard_fixture_wait(fixture->tasks.count == 2); /* nobody waits for another signal */
    EXPECT_TEXT(source_look_here(fixture, &key).branches, "(5,10)(6,20)");
    EXPECT_TEXT(source_read_here(fixture, &key, 0), "sdbfgd");
}

/* West has closed the decision and was not heard of since: the cluster that goes on knows that one
 * is due.
 */
SCENE(a_decision_that_another_cluster_closed_is_scheduled_by_the_next)
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "Fg");
    source_move(fixture, EAST);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbfgd");
}

/* The first decision after a failover does not wait for anything. */
SCENE(open_runs_of_a_domain_that_moved_here_have_their_decisions_at_once)
{
    enum { RUNS = 50 };
    for (int i = 0; i < RUNS; i++) {
        struct source_history source_history =
            source_begin(fixture, arena_format(fixture->arena, "wf-%d", i), "");
        source_send(&source_history, 1, "sd");
        if (i % 3 > 0)
            source_send(&source_history, 1, "b");
        if (i % 3 > 1)
            source_send(&source_history, 1, "f");
    }
    source_move(fixture, EAST);
    int64_t began = clock_monotonic();
    shard_fixture_wait(fixture->tasks.count == RUNS);
    EXPECT(clock_monotonic() - began < 200 * NS_PER_MS);
}

/* The domain came here while nobody had the shard: no walk, but the run says that it is due. */
SCENE(a_decision_is_due_also_where_the_move_was_missed)
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "Fg");
    shard_close(fixture->shard);
    source_move(fixture, EAST);
    shard_fixture_take(fixture);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbfgd");
}
