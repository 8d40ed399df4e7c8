/* ndc_runs_sim_test.c - runs of one workflow id that several clusters began or kept open: which one
 * has the id, what becomes of the others (E-016 … E-018, E-042 … E-046). Every batch is sent twice.
 */
#include "engine/shard/stage.h"
#include "wire/message.h"

/* ---- resets ---- */

/* Events 1 to 9 of the base run; the next one starts its second decision. */
static void
send_base(struct feed *feed)
{
    feed_send(feed, 21, "sd");
    feed_send(feed, 21, "b");
    feed_send(feed, 21, "ca");
    feed_send(feed, 21, "Axgd");
}

static struct feed
reset_of(const struct feed *base)
{
    struct feed reset = *base;
    struct feed names = feed_begin(base->rig, base->key.workflow_id, "");
    reset.key.run_id = names.key.run_id;
    reset.base_run_id = base->key.run_id;
    reset.fork_version = 21;
    return reset;
}

SCENE(a_reset_run_begins_with_the_events_of_its_base_run, "E-016")
{
    struct feed base = feed_begin(rig, "wf", ""), failed;
    send_base(&base);
    feed_send(&base, 21, "b");
    EXPECT_EQ(base.next_event_id, 11);
    failed = base;
    feed_send(&base, 21, "cg");
    feed_send(&failed, 30, "F");
    feed_send(&failed, 30, "dbcL");
    EXPECT(!feed_look(rig, &base.key).is_open);
    struct feed reset = reset_of(&base);
    reset.next_event_id = 11;
    reset.items[0] = (struct version_item){10, 21};
    reset.item_count = 1;
    feed_send(&reset, 22, "R");
    feed_send(&reset, 22, "d");
    struct feed_view view = feed_look(rig, &reset.key);
    EXPECT_TEXT(view.branches, "(10,21)(12,22)");
    EXPECT_TEXT(feed_read(rig, &reset.key, 0), "sdbcaAxgdbfd");
    EXPECT(view.is_open);
    EXPECT(view.is_zombie && !view.is_current); /* the base run was written by a later version */
    EXPECT_EQ(view.start_time / NS_PER_MS, (reset.time - NS_PER_MS) / NS_PER_MS);
    /* It stands on its own: nothing of the base run is shared. */
    EXPECT_TEXT(feed_read(rig, &base.key, 0), "sdbcaAxgdbfdbcL");
}

SCENE(a_reset_of_the_newest_run_has_the_workflow_id)
{
    struct feed base = feed_begin(rig, "wf", "");
    send_base(&base);
    feed_send(&base, 21, "b");
    struct feed reset = reset_of(&base);
    feed_send(&base, 21, "cgT");
    feed_send(&reset, 22, "R");
    struct feed_view view = feed_look(rig, &reset.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie);
    EXPECT_TEXT(feed_read(rig, &reset.key, 0), "sdbcaAxgdbf");
}

SCENE(a_reset_run_is_a_zombie_while_its_base_run_is_newer, "E-017")
{
    struct feed base = feed_begin(rig, "wf", "");
    send_base(&base);
    feed_send(&base, 21, "b");
    struct feed reset = reset_of(&base);
    feed_send(&base, 30, "F");
    feed_send(&base, 30, "d");
    feed_send(&reset, 22, "R");
    feed_send(&reset, 22, "dg");
    struct feed_view view = feed_look(rig, &reset.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_alarm);
    EXPECT(feed_look(rig, &base.key).is_current);
}

SCENE(a_reset_whose_base_run_is_not_here_lacks_all_its_events)
{
    struct feed base = feed_begin(rig, "wf", "");
    struct foreign_outcome outcome;
    struct foreign_events first = feed_make(&base, 21, "sd");
    struct foreign_events second = feed_make(&base, 21, "b");
    struct feed reset = reset_of(&base);
    struct foreign_events begins = feed_make(&reset, 22, "R");
    EXPECT_OK(feed_try(rig, &begins, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_LACKS);
    EXPECT_EQ(outcome.gap.base.event_id, 0);
    EXPECT_EQ(outcome.gap.end.event_id, 4);
    /* Filled from its source, whose history of it begins with event 1. */
    first.key = second.key = reset.key;
    EXPECT_OK(feed_try(rig, &first, &outcome));
    EXPECT_OK(feed_try(rig, &second, &outcome));
    struct feed_view view = feed_look(rig, &reset.key); /* what it has is not its own yet */
    EXPECT(view.is_zombie && !view.is_current);
    rig_restart(rig);
    EXPECT_OK(feed_try(rig, &begins, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_APPLIED);
    EXPECT_TEXT(feed_read(rig, &reset.key, 0), "sdbf");
    view = feed_look(rig, &reset.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_alarm);
}

/* The same, and of the base run there is less here than of its copy. */
SCENE(the_copied_events_of_a_reset_do_not_take_the_id_from_its_base_run)
{
    struct feed base = feed_begin(rig, "wf", ""), behind;
    struct foreign_outcome outcome;
    feed_send(&base, 21, "sd");
    behind = base;
    struct foreign_events copied = feed_make(&behind, 21, "b");
    struct feed reset = reset_of(&behind), copy = feed_begin(rig, "wf", reset.key.run_id);
    copy.original_run_id = base.key.run_id;
    feed_send(&copy, 21, "sd");
    copied.key = reset.key;
    EXPECT_OK(feed_try(rig, &copied, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_APPLIED);
    EXPECT(feed_look(rig, &base.key).is_current);
    EXPECT(feed_look(rig, &reset.key).is_zombie);
    feed_send(&reset, 22, "R");
    EXPECT(feed_look(rig, &reset.key).is_current);
    EXPECT(feed_look(rig, &base.key).is_zombie);
}

/* ---- runs that go on ---- */

SCENE(a_run_that_goes_on_brings_its_successor)
{
    struct feed feed = feed_begin(rig, "wf", ""), next = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send_with(&feed, 1, "cN", &next, "sd");
    EXPECT(!feed_look(rig, &feed.key).is_open);
    struct feed_view view = feed_look(rig, &next.key);
    EXPECT(view.is_open && view.is_current && view.has_alarm);
    feed_send(&next, 1, "bcE");
    EXPECT_TEXT(feed_read(rig, &next.key, 0), "sdbcE");
}

SCENE(a_run_continued_on_a_history_that_lost_is_a_zombie, "E-018")
{
    struct feed feed = feed_begin(rig, "wf", ""), won, next = feed_begin(rig, "wf", "");
    feed_send(&feed, 21, "sd");
    feed_send(&feed, 21, "b");
    won = feed;
    feed_send(&won, 32, "F");
    feed_send(&won, 32, "d");
    feed_send_with(&feed, 21, "cN", &next, "sd");
    struct feed_view view = feed_look(rig, &next.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_alarm);
    view = feed_look(rig, &feed.key);
    EXPECT(view.is_open && view.is_current);
    EXPECT_TEXT(view.branches, "(3,21)(5,32) | (5,21)");
}

/* ---- zombies ---- */

SCENE(a_run_that_comes_behind_a_newer_one_is_a_zombie_until_it_closes, "E-042", "E-043")
{
    struct feed newer = feed_begin(rig, "wf", ""), older = feed_begin(rig, "wf", "");
    feed_send(&newer, 11, "sd");
    size_t rows = rig_rows(rig, ROW_TRANSFER);
    feed_send(&older, 1, "sd");
    feed_send(&older, 1, "b");
    feed_send(&older, 1, "ca");
    struct feed_view view = feed_look(rig, &older.key);
    EXPECT(view.is_open && view.is_zombie && !view.is_current && !view.has_alarm);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), rows); /* nothing of it is sent */
    EXPECT(feed_look(rig, &newer.key).is_current);
    /* Nobody else can change it, also where the domain is active. */
    feed_move(rig, EAST);
    feed_move(rig, WEST);
    feed_move(rig, EAST); /* version 20 */
    struct task task = {.run_domain_id = older.key.domain_id,
                        .workflow_id = "wf",
                        .run_id = older.key.run_id,
                        .schedule_id = 5};
    EXPECT_KIND(rig_start_decision(rig, &task, "poll", rig->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena)); /* the current one */
    EXPECT(feed_look(rig, &older.key).is_zombie);
    EXPECT_OK(rig_start(rig, "wf", "two", 1000, rig->arena, NULL)); /* it blocks no start */
    feed_send(&older, 1, "AxdbcE");
    view = feed_look(rig, &older.key);
    EXPECT(!view.is_open && !view.is_zombie && !view.is_current);
    EXPECT(view.has_alarm); /* for its deletion */
}

SCENE(a_zombie_that_becomes_the_newest_is_revived, "E-044")
{
    struct feed newer = feed_begin(rig, "wf", ""), older = feed_begin(rig, "wf", "");
    feed_send(&newer, 11, "sd");
    feed_send(&older, 1, "sd");
    EXPECT(feed_look(rig, &older.key).is_zombie);
    feed_send(&older, 12, "b");
    struct feed_view view = feed_look(rig, &older.key);
    EXPECT(view.is_open && !view.is_zombie && view.is_current && view.has_alarm);
    view = feed_look(rig, &newer.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_alarm);
    rig_restart(rig);
    EXPECT(feed_look(rig, &newer.key).is_zombie);
    EXPECT(feed_look(rig, &older.key).is_current);
}

SCENE(of_two_open_runs_the_one_with_the_later_event_of_a_version_wins, "E-045")
{
    struct feed one = feed_begin(rig, "wf", ""), other = feed_begin(rig, "wf", "");
    other.task_id = 5000;
    feed_send(&one, 11, "sd");
    feed_send(&other, 11, "sd");
    EXPECT(feed_look(rig, &other.key).is_current);
    EXPECT(feed_look(rig, &one.key).is_zombie);
    one.task_id = 6000;
    feed_send(&one, 11, "b");
    EXPECT(feed_look(rig, &one.key).is_current);
    EXPECT(feed_look(rig, &other.key).is_zombie);
}

/* The run was started here, a moment before west had taken over and started another. */
SCENE(the_losing_run_is_terminated_where_it_was_written_last, "E-046")
{
    feed_move(rig, EAST);
    struct run_key key = {rig->domain_id, "wf", ""};
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, &key.run_id));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_signal(rig, "wf", rig->arena)); /* is buffered */
    feed_move(rig, WEST);
    struct feed won = feed_begin(rig, "wf", "");
    feed_send(&won, 11, "sd");
    EXPECT(feed_look(rig, &won.key).is_current);
    struct feed_view view = feed_look(rig, &key);
    EXPECT(!view.is_open && !view.is_current);
    EXPECT_EQ(view.last_version, 10); /* as its last event before */
    EXPECT_TEXT(feed_read(rig, &key, 0), "sdbfgT");
    size_t count;
    API(HistoryEvent) *last = feed_events(rig, &key, 0, &count)[5];
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->reason,
                "Terminate Workflow Due To Version Conflict.");
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->identity, "worker-service");
}

/* ---- runs of several attributes ---- */

static struct feed
begin_in(struct rig *rig, const char *workflow_id, const char *region, int64_t after)
{
    struct feed feed = feed_begin(rig, workflow_id, "");
    feed.time += after;
    feed.region = region;
    return feed;
}

/* One history of a run, to be sent in one go. */
struct told {
    struct feed feed;
    int64_t first, last; /* versions of "sd" and of "b" */
};

static void
tell(struct told *told)
{
    feed_send(&told->feed, told->first, "sd");
    feed_send(&told->feed, told->last, "b");
}

/* The first is newer than the third by its version; that one began later than the second, which
 * began later than the first. Region eu leads, since the third began last; the first is the newest
 * of eu. Compared one by one, each of the three would have had the id in some order. */
SCENE(of_three_runs_that_are_newer_in_a_circle_one_has_the_id_whatever_is_heard_first)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < array_length(orders); i++) {
        const char *id = arena_format(rig->arena, "wf%zu", i);
        struct told told[] = {{begin_in(rig, id, "eu", 1 * NS_PER_S), 1, 31},
                              {begin_in(rig, id, "us", 2 * NS_PER_S), 1, 1},
                              {begin_in(rig, id, "eu", 3 * NS_PER_S), 11, 11}};
        for (size_t j = 0; j < 3; j++) {
            tell(&told[orders[i][j]]);
            if (i % 2 == 0)
                rig_restart(rig);
        }
        struct feed_view view = feed_look(rig, &told[0].feed.key);
        EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_alarm);
        for (size_t j = 1; j < 3; j++) {
            view = feed_look(rig, &told[j].feed.key);
            EXPECT(view.is_open && view.is_zombie && !view.is_current && !view.has_alarm);
        }
    }
}

/* A run goes on as one of another region, on a history of it that loses: that one began last. */
static void
play_lost_end(struct rig *rig, const char *id, int64_t version, bool is_end_first)
{
    struct feed feed = begin_in(rig, id, "eu", 0), won, next = begin_in(rig, id, "us", NS_PER_S);
    feed_send(&feed, 21, "sd");
    feed_send(&feed, 21, "b");
    won = feed;
    if (is_end_first)
        feed_send_with(&feed, 21, "cN", &next, "sd");
    feed_send(&won, version, "Fg");
    if (!is_end_first)
        feed_send_with(&feed, 21, "cN", &next, "sd");
    struct feed_view view = feed_look(rig, &next.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie);
    view = feed_look(rig, &feed.key);
    EXPECT(!view.is_current);
    bool is_ours = version == 30;
    EXPECT_TEXT(feed_read(rig, &feed.key, 0),
                is_ours && !is_end_first ? "sdbfgT" : "sdbfg"); /* who wrote it ends it */
    EXPECT(is_ours && !is_end_first ? !view.is_open : view.is_zombie);
}

SCENE(a_run_of_another_region_begun_on_a_history_that_lost_has_the_id_if_its_region_leads)
{
    play_lost_end(rig, "wf1", 32, false);
    play_lost_end(rig, "wf2", 32, true);
    play_lost_end(rig, "wf3", 30, false);
}

/* West has written a run of the domain itself under a version that is not known here yet. It has
 * not the id, but a run that began here would have to be newer than it. */
SCENE(a_start_follows_no_run_of_a_later_version_of_its_own_attribute)
{
    struct feed hidden = begin_in(rig, "wf", NULL, 0), shown = begin_in(rig, "wf", "us", NS_PER_S);
    feed_send(&hidden, 31, "sdbcE");
    feed_send(&shown, 1, "sdbcE");
    EXPECT(feed_look(rig, &shown.key).is_current);
    feed_move(rig, EAST); /* version 10 */
    EXPECT_KIND(rig_start(rig, "wf", "one", 1000, rig->arena, NULL), ERR_DOMAIN_NOT_ACTIVE);
    for (int i = 0; i < 3; i++) {
        feed_move(rig, WEST);
        feed_move(rig, EAST);
    }
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, NULL)); /* version 40 */
    EXPECT(!feed_look(rig, &shown.key).is_current);
}

/* The clock of west is ahead, and the run that began last is not the current one. */
SCENE(a_start_begins_after_all_runs_of_the_attribute_that_leads)
{
    struct feed newest = begin_in(rig, "wf", "eu", 0);
    struct feed latest = begin_in(rig, "wf", "eu", 600 * NS_PER_S);
    feed_send(&newest, 31, "sdbcE");
    feed_send(&latest, 11, "sd");
    int64_t began = latest.time - NS_PER_MS;
    EXPECT(feed_look(rig, &newest.key).is_current);
    feed_move(rig, EAST);
    struct run_key key = {rig->domain_id, "wf", ""};
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, &key.run_id));
    struct feed_view view = feed_look(rig, &key);
    EXPECT(view.is_current);
    EXPECT_EQ(view.start_time, began + 1);
    feed_send(&latest, 11, "b");
    EXPECT(feed_look(rig, &key).is_current);
}

/* West has ended the run under a version that is not known here yet: a reset of it would not be the
 * newest run. */
SCENE(a_run_that_a_later_version_ended_is_not_reset)
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "cgd");
    feed_send(&feed, 31, "T");
    feed_move(rig, EAST); /* version 10 */
    API(ResetWorkflowExecutionRequest) *request =
        message_new(rig->arena, API_TYPE(reset_workflow_execution_request));
    request->workflow_execution = message_new(rig->arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)"wf";
    request->workflow_execution->run_id = (char *)feed.key.run_id;
    request->decision_finish_event_id = 4;
    request->request_id = (char *)"reset";
    struct shard_reset wanted = {.domain_id = rig->domain_id, .request = request};
    const char *run_id;
    EXPECT_KIND(shard_reset(rig->shard, &wanted, rig->arena, &run_id), ERR_DOMAIN_NOT_ACTIVE);
    for (int i = 0; i < 3; i++) {
        feed_move(rig, WEST);
        feed_move(rig, EAST);
    }
    EXPECT_OK(shard_reset(rig->shard, &wanted, rig->arena, &run_id)); /* version 40 */
    EXPECT(!feed_look(rig, &feed.key).is_current);
}
