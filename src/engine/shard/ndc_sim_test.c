/* ndc_sim_test.c - events of other clusters, written by hand, come into a shard: histories that
 * grow, fork and win (E-001 … E-023). Every batch is sent twice. */
#include "engine/shard/stage.h"
#include "wire/message.h"

/* ---- one history ---- */

SCENE(a_run_of_another_cluster_is_here_with_its_times_and_its_rows, "E-001", "E-013", "E-023")
{
    struct feed feed = feed_begin(rig, "wf", "");
    int64_t began = feed.time + NS_PER_MS;
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "cam");
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(6,1)");
    EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_alarm);
    EXPECT_EQ(view.start_time, began);
    EXPECT_EQ(view.activities, 1);
    EXPECT_EQ(view.timers, 1);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcam");
    EXPECT_EQ(rig->tasks.count, 0); /* it is not active here */
    feed_send(&feed, 1, "AxM");
    feed_send(&feed, 11, "dbcE");
    view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(9,1)(13,11)");
    EXPECT(!view.is_open && view.activities == 0);
    rig_restart(rig);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(9,1)(13,11)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcamAxMdbcE");
}

/* The twelve runs come with versions that rise and fall. */
SCENE(runs_of_one_id_are_readable_whatever_the_order_of_their_versions, "E-012")
{
    static const int64_t versions[] = {101, 1, 201, 301, 401, 601, 501, 801, 1001, 901, 701, 1101};
    struct feed feeds[12];
    for (size_t i = 0; i < 12; i++) {
        feeds[i] = feed_begin(rig, "wf", "");
        feed_send(&feeds[i], versions[i], "sd");
        feed_send(&feeds[i], versions[i], "b");
        feed_send(&feeds[i], versions[i], "cag");
        feed_send(&feeds[i], versions[i], "d");
        feed_send(&feeds[i], versions[i], "bcE");
    }
    for (size_t i = 0; i < 12; i++) {
        struct feed_view view = feed_look(rig, &feeds[i].key);
        EXPECT_TEXT(feed_read(rig, &feeds[i].key, 0), "sdbcagdbcE");
        EXPECT(!view.is_open);
        EXPECT_EQ(view.is_current, i == 11);
    }
}

SCENE(a_batch_that_comes_too_early_names_what_is_missing)
{
    struct feed feed = feed_begin(rig, "wf", "");
    struct foreign_events first = feed_make(&feed, 1, "sd");
    struct foreign_events second = feed_make(&feed, 1, "b");
    struct foreign_events third = feed_make(&feed, 11, "F");
    struct foreign_outcome outcome;
    EXPECT_OK(feed_try(rig, &third, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_LACKS); /* all of it */
    EXPECT_EQ(outcome.gap.base.event_id, 0);
    EXPECT_EQ(outcome.gap.end.event_id, 4);
    EXPECT_EQ(outcome.gap.end.event_version, 11);
    EXPECT_TEXT(outcome.gap.key.run_id, feed.key.run_id);
    EXPECT_OK(feed_try(rig, &first, &outcome));
    EXPECT_OK(feed_try(rig, &third, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_LACKS); /* the second one */
    EXPECT_EQ(outcome.gap.base.event_id, 2);
    EXPECT_EQ(outcome.gap.base.event_version, 1);
    EXPECT_OK(feed_try(rig, &second, &outcome));
    EXPECT_OK(feed_try(rig, &third, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_APPLIED);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(3,1)(4,11)");
}

SCENE(a_batch_that_no_cluster_can_have_sent_changes_nothing)
{
    struct feed feed = feed_begin(rig, "wf", ""), other;
    struct foreign_outcome outcome;
    feed_send(&feed, 1, "sd");
    other = feed;
    struct foreign_events misfit = feed_make(&other, 1, "c"); /* it was not started */
    EXPECT_KIND(feed_try(rig, &misfit, &outcome), ERR_BAD_REQUEST);
    other = feed;
    struct foreign_events mixed = feed_make(&other, 1, "bc");
    mixed.events[1]->version = 11;
    EXPECT_KIND(feed_try(rig, &mixed, &outcome), ERR_BAD_REQUEST);
    other = feed_begin(rig, "wf", feed.key.run_id);
    other.items[0] = (struct version_item){2, 2};
    other.item_count = 1;
    other.next_event_id = 3;
    struct foreign_events strange = feed_make(&other, 2, "g"); /* nothing in common */
    EXPECT_KIND(feed_try(rig, &strange, &outcome), ERR_BAD_REQUEST);
    struct feed closed = feed;
    feed_send(&closed, 1, "bcE");
    struct foreign_events late = feed_make(&closed, 1, "g"); /* behind the close */
    EXPECT_KIND(feed_try(rig, &late, &outcome), ERR_BAD_REQUEST);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(5,1)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcE");
}

/* The row of a task is here as long as the task is due there. */
SCENE(a_task_that_the_active_cluster_gave_to_a_worker_is_done_here_too, "C-031")
{
    struct feed feed = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    feed_send(&feed, 1, "b");
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    feed_send(&feed, 1, "ca");
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    feed_send(&feed, 1, "Ax");
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    feed_send(&feed, 1, "d");
    rig_restart(rig);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    feed_send(&feed, 1, "bcE");
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
}

/* ---- several histories ---- */

SCENE(of_two_histories_the_one_with_the_higher_version_is_the_runs, "E-004", "E-005", "E-006")
{
    struct feed feed = feed_begin(rig, "wf", ""), west, north;
    feed_send(&feed, 1, "sd");
    west = north = feed;
    feed_send(&west, 1, "b");
    feed_send(&west, 1, "cam");
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_EQ(view.activities, 1);
    size_t tasks = rig_rows(rig, ROW_TRANSFER);
    EXPECT(tasks > 0);
    /* Another history of the same run, with a higher version: its state is the run's. */
    feed_send(&north, 2, "b");
    view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(2,1)(3,2) | (6,1)");
    EXPECT_EQ(view.activities, 0);
    EXPECT_EQ(view.timers, 0);
    EXPECT_EQ(view.decision_started_id, 3);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdb");
    EXPECT_TEXT(feed_read(rig, &feed.key, 1), "sdbcam");
    /* The other one may still grow, without a change of the state. */
    feed_send(&west, 1, "AxM");
    view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(2,1)(3,2) | (9,1)");
    EXPECT_EQ(view.decision_started_id, 3);
    EXPECT_TEXT(feed_read(rig, &feed.key, 1), "sdbcamAxM");
    feed_send(&north, 2, "cE");
    EXPECT(!feed_look(rig, &feed.key).is_open);
    /* It wins after all: the run is open again. */
    feed_send(&west, 11, "d");
    view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(9,1)(10,11) | (2,1)(5,2)");
    EXPECT(view.is_open && view.has_alarm && view.is_current);
    EXPECT_EQ(view.decision_schedule_id, 10);
    rig_restart(rig);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(9,1)(10,11) | (2,1)(5,2)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcamAxMd");
    EXPECT_TEXT(feed_read(rig, &feed.key, 1), "sdbcE");
}

/* Both histories have the timer; the batch with which one wins ends it. */
SCENE(what_the_batch_that_wins_ends_has_no_row_any_more)
{
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "cam");
    won = feed;
    feed_send(&feed, 1, "A");
    feed_send(&won, 2, "MAx");
    EXPECT_EQ(feed_look(rig, &feed.key).timers, 0);
    rig_restart(rig);
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_EQ(view.timers, 0);
    EXPECT_EQ(view.activities, 0);
    EXPECT_EQ(rig_rows(rig, ROW_PENDING), 0);
}

/* The seed's: (2,1)(3,2), then 4 of version 2 here and 4 of version 3 there; in any order. */
SCENE(the_order_in_which_two_histories_come_does_not_matter, "E-003", "E-004")
{
    for (int order = 0; order < 2; order++) {
        struct feed feed = feed_begin(rig, order == 0 ? "one" : "two", ""), one, other;
        feed_send(&feed, 1, "sd");
        feed_send(&feed, 2, "g");
        one = other = feed;
        feed_send(order == 0 ? &one : &other, order == 0 ? 2 : 3, "g");
        feed_send(order == 0 ? &other : &one, order == 0 ? 3 : 2, "g");
        EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(2,1)(3,2)(4,3) | (2,1)(4,2)");
    }
}

SCENE(branches_of_one_version_and_the_next_apply_in_that_order, "E-014")
{
    static const int64_t versions[] = {101, 1, 201};
    for (size_t i = 0; i < 3; i++) {
        struct feed base = feed_begin(rig, "wf", ""), one, two;
        feed_send(&base, versions[i], "sd");
        feed_send(&base, versions[i], "bca");
        one = two = base;
        feed_send(&one, versions[i], "Ax");
        feed_send(&one, versions[i], "d");
        feed_send(&two, versions[i] + 1, "A");
        feed_send(&two, versions[i] + 1, "xd");
        EXPECT_TEXT(feed_read(rig, &base.key, 0), "sdbcaAxd");
        EXPECT_EQ(feed_look(rig, &base.key).last_version, versions[i] + 1);
    }
}

SCENE(a_run_failed_on_one_history_has_timed_out_on_the_one_that_wins, "E-015")
{
    struct feed feed = feed_begin(rig, "wf", ""), failed, timed_out;
    feed_send(&feed, 21, "sd");
    feed_send(&feed, 21, "b");
    feed_send(&feed, 21, "cm");
    feed_send(&feed, 21, "Mdbcagg");
    feed_send(&feed, 21, "db");
    EXPECT_EQ(feed.next_event_id, 15);
    failed = timed_out = feed;
    feed_send(&failed, 30, "F");
    feed_send(&failed, 30, "db");
    feed_send(&failed, 30, "cmL");
    feed_send(&timed_out, 31, "O"); /* takes the started decision along */
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(14,21)(15,31) | (14,21)(20,30)");
    EXPECT(!view.is_open);
    EXPECT_TEXT(view.last_event, "WorkflowExecutionTimedOut");
}

/* The rows of the first history are dropped; what it had sent finds nothing. */
SCENE(a_task_of_a_history_that_lost_starts_nothing, "E-007", "E-008")
{
    feed_move(rig, EAST);
    struct feed feed = feed_begin(rig, "wf", "");
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, &feed.key.run_id));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_schedule(rig, rig->tasks.items[0], 1, rig->arena));
    rig_wait(rig->tasks.count == 2); /* activity, event 5 */
    EXPECT_EQ(rig->tasks.items[1]->schedule_id, 5);
    /* North had taken over behind event 2 and has other events. */
    feed_move(rig, NORTH);
    feed.items[0] = (struct version_item){2, 10};
    feed.item_count = 1;
    feed.next_event_id = 3;
    feed.scheduled_id = 2;
    feed.time = clock_wall() + NS_PER_S;
    feed_send(&feed, 12, "b");
    feed_send(&feed, 12, "cm");
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(2,10)(5,12) | (5,10)");
    feed_move(rig, EAST);
    struct task task = *rig->tasks.items[1];
    EXPECT_KIND(rig_start_decision(rig, &task, "poll", rig->arena), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena)); /* goes on behind the history that won */
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(2,10)(5,12)(7,20) | (5,10)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcmgd");
}
