/* ndc_settle_sim_test.c - runs change hands: what one cluster had begun is settled by the next,
 * what it took is written down before others go on (E-002, E-009 … E-011). Every batch is sent
 * twice. */
#include "engine/shard/stage.h"
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
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 31, "sd"); /* this cluster has not heard of that failover */
    feed_move(rig, EAST);       /* version 10 */
    struct error *err = rig_signal(rig, "wf", rig->arena);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT(strstr(err->message, "west") != NULL);
    EXPECT_KIND(rig_terminate(rig, "wf", rig->arena), ERR_DOMAIN_NOT_ACTIVE);
    feed_send(&feed, 31, "bcE");
    EXPECT_KIND(rig_start(rig, "wf", "two", 1000, rig->arena, NULL), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_OK(rig_start(rig, "another", "two", 1000, rig->arena, NULL));
}

static API(ActiveClusterSelectionPolicy) *
city(struct rig *rig, const char *name)
{
    API(ActiveClusterSelectionPolicy) *policy =
        message_new(rig->arena, API_TYPE(active_cluster_selection_policy));
    policy->cluster_attribute = message_new(rig->arena, API_TYPE(cluster_attribute));
    policy->cluster_attribute->scope = "city";
    policy->cluster_attribute->name = (char *)name;
    return policy;
}

static void
open_cities(struct rig *rig)
{
    API(RegisterDomainRequest) *request =
        sample_register(EAST, "city.a:east,city.b:east", rig->arena);
    request->name = (char *)"cities";
    EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "cities")->id);
}

/* This cluster has not heard that the city moved to west, with version 31. */
SCENE(a_start_behind_a_later_version_of_its_attribute_is_sent_there, "G-026")
{
    open_cities(rig);
    rig->policy = city(rig, "a");
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 31, "sd");
    struct error *err = rig_start(rig, "wf", "two", 1000, rig->arena, NULL);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE); /* and not that it runs */
    EXPECT(strstr(err->message, "Operation active cluster: west") != NULL);
    rig->policy = city(rig, "b"); /* versions of another city say nothing */
    EXPECT_KIND(rig_start(rig, "wf", "two", 1000, rig->arena, NULL), ERR_ALREADY_STARTED);
    rig->policy = city(rig, "a");
    feed_send(&feed, 31, "bcE");
    EXPECT_KIND(rig_start(rig, "wf", "two", 1000, rig->arena, NULL), ERR_DOMAIN_NOT_ACTIVE);
}

/* The run of the other city was started by a clock that is ahead. Which run is the newer one, all
 * clusters find out by when they started: the one that follows is not earlier. */
SCENE(a_run_that_follows_one_of_another_attribute_never_starts_before_it)
{
    open_cities(rig);
    rig->policy = city(rig, "a");
    struct feed feed = feed_begin(rig, "wf", "");
    feed.time += 3600 * NS_PER_S;
    feed_send(&feed, 31, "sd");
    feed_send(&feed, 31, "bcL");
    rig->policy = city(rig, "b");
    const char *run_id;
    EXPECT_OK(rig_start(rig, "wf", "two", 1000, rig->arena, &run_id));
    struct run_key key = {rig->domain_id, "wf", run_id};
    EXPECT(feed_look(rig, &key).start_time > feed_look(rig, &feed.key).start_time);
    EXPECT(feed_look(rig, &key).is_current);
    EXPECT_EQ(feed_look(rig, &key).last_version, 0); /* lower than 31, and yet */
}

SCENE(a_decision_in_flight_is_failed_and_scheduled_anew_when_the_run_goes_on_here, "E-010")
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_move(rig, EAST);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(3,1)(6,10)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfdg"); /* the signal is not buffered */
    size_t count;
    API(HistoryEvent) **events = feed_events(rig, &feed.key, 0, &count);
    EXPECT_EQ(cause_of(events[3]), FAILOVER_CLOSE);
    EXPECT_EQ(events[4]->decision_task_scheduled_event_attributes->attempt, 0);
    rig_wait(rig->tasks.count == 1);
    EXPECT_EQ(rig->tasks.items[0]->schedule_id, 5);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, rig->tasks.items[0], 0, rig->arena));
}

SCENE(an_attempt_that_only_the_other_cluster_knew_begins_anew_with_real_events, "E-011")
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "f"); /* attempt 1 is transient, there */
    EXPECT(!feed_look(rig, &feed.key).has_decision);
    feed_move(rig, EAST);
    rig_wait(rig->tasks.count == 1);
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(4,1)(5,10)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfd");
    size_t count;
    EXPECT_EQ(feed_events(rig, &feed.key, 0, &count)[4]
                  ->decision_task_scheduled_event_attributes->attempt,
              0);
    EXPECT_EQ(rig->tasks.items[0]->attempt, 0);
}

/* A signal was taken while a decision was started; then north goes on from where it had heard. */
SCENE(what_was_buffered_is_in_the_history_before_foreign_events_are_applied, "E-009")
{
    feed_move(rig, EAST);
    struct feed feed = feed_begin(rig, "wf", "");
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, &feed.key.run_id));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdb");
    feed.items[0] = (struct version_item){3, 10};
    feed.item_count = 1;
    feed.next_event_id = 4;
    feed.scheduled_id = 2;
    feed.started_id = 3;
    feed.time = clock_wall() + NS_PER_S;
    feed_send(&feed, 12, "F");
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(3,10)(4,12) | (5,10)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 1), "sdbfg");
    size_t count;
    EXPECT_EQ(cause_of(feed_events(rig, &feed.key, 1, &count)[3]), FAILOVER_CLOSE);
}

/* Late news of whoever had the run before. */
SCENE(news_that_come_late_get_a_decision_where_the_run_is_active)
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "ca");
    feed_move(rig, EAST);
    rig_wait(rig->tasks.count == 1); /* the activity */
    feed_send(&feed, 1, "Ax");
    rig_wait(rig->tasks.count == 2);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcaAxd");
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(7,1)(8,10)");
}

/* A signal waits behind a started decision when the domain moves away. */
SCENE(what_was_buffered_is_written_down_when_the_domain_moves_away)
{
    feed_move(rig, EAST);
    struct run_key key = {rig->domain_id, "wf", ""};
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, &key.run_id));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    feed_move(rig, WEST);
    rig_wait(feed_look(rig, &key).next_event_id == 6);
    EXPECT_TEXT(feed_read(rig, &key, 0), "sdbfg");
    EXPECT_TEXT(feed_look(rig, &key).branches, "(5,10)"); /* with the version that is given up */
    feed_move(rig, EAST);
    rig_wait(rig->tasks.count == 2); /* nobody waits for another signal */
    EXPECT_TEXT(feed_look(rig, &key).branches, "(5,10)(6,20)");
    EXPECT_TEXT(feed_read(rig, &key, 0), "sdbfgd");
}

/* West has closed the decision and was not heard of since: whoever goes on knows that one is due.
 */
SCENE(a_decision_that_another_cluster_closed_is_scheduled_by_the_next)
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "Fg");
    feed_move(rig, EAST);
    rig_wait(rig->tasks.count == 1);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfgd");
}

/* The first decision after a failover does not wait for anything. */
SCENE(open_runs_of_a_domain_that_moved_here_have_their_decisions_at_once)
{
    enum { RUNS = 50 };
    for (int i = 0; i < RUNS; i++) {
        struct feed feed = feed_begin(rig, arena_format(rig->arena, "wf-%d", i), "");
        feed_send(&feed, 1, "sd");
        if (i % 3 > 0)
            feed_send(&feed, 1, "b");
        if (i % 3 > 1)
            feed_send(&feed, 1, "f");
    }
    feed_move(rig, EAST);
    int64_t began = clock_monotonic();
    rig_wait(rig->tasks.count == RUNS);
    EXPECT(clock_monotonic() - began < 200 * NS_PER_MS);
}

/* The domain came here while nobody had the shard: no walk, but the run says that it is due. */
SCENE(a_decision_is_due_also_where_the_move_was_missed)
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "Fg");
    shard_close(rig->shard);
    feed_move(rig, EAST);
    rig_take(rig);
    rig_wait(rig->tasks.count == 1);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfgd");
}
