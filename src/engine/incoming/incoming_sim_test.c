/* incoming_sim_test.c - events of other clusters, written by hand, come into a shard: histories
 * that grow, fork and win (E-001 … E-023). Every batch is sent twice. */
#include "engine/test/incoming_simulation.h"
#include "wire/message.h"

/* ---- one history ---- */

SCENE(a_run_of_another_cluster_is_here_with_its_times_and_its_rows, "E-001", "E-013", "E-023")
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    int64_t began = source_history.time + NS_PER_MS;
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "cam");
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(6,1)");
    EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_wakeup);
    EXPECT_EQ(view.start_time, began);
    EXPECT_EQ(view.activities, 1);
    EXPECT_EQ(view.timers, 1);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcam");
    EXPECT_EQ(fixture->tasks.count, 0); /* it is not active here */
    source_send(&source_history, 1, "AxM");
    source_send(&source_history, 11, "dbcE");
    view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(9,1)(13,11)");
    EXPECT(!view.is_open && view.activities == 0);
    shard_fixture_restart(fixture);
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches, "(9,1)(13,11)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcamAxMdbcE");
}

/* The twelve runs come with versions that rise and fall. */
SCENE(runs_of_one_id_are_readable_whatever_the_order_of_their_versions, "E-012")
{
    static const int64_t versions[] = {101, 1, 201, 301, 401, 601, 501, 801, 1001, 901, 701, 1101};
    struct source_history histories[12];
    for (size_t i = 0; i < 12; i++) {
        histories[i] = source_begin(fixture, "wf", "");
        source_send(&histories[i], versions[i], "sd");
        source_send(&histories[i], versions[i], "b");
        source_send(&histories[i], versions[i], "cag");
        source_send(&histories[i], versions[i], "d");
        source_send(&histories[i], versions[i], "bcE");
    }
    for (size_t i = 0; i < 12; i++) {
        struct source_run_view view = source_look_here(fixture, &histories[i].key);
        EXPECT_TEXT(source_read_here(fixture, &histories[i].key, 0), "sdbcagdbcE");
        EXPECT(!view.is_open);
        EXPECT_EQ(view.is_current, i == 11);
    }
}

SCENE(a_batch_that_comes_too_early_names_what_is_missing)
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    struct replicated_events first = source_make(&source_history, 1, "sd");
    struct replicated_events second = source_make(&source_history, 1, "b");
    struct replicated_events third = source_make(&source_history, 11, "F");
    struct replicated_outcome outcome;
    EXPECT_OK(source_try(fixture, &third, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_LACKS); /* all of it */
    EXPECT_EQ(outcome.gap.base.event_id, 0);
    EXPECT_EQ(outcome.gap.end.event_id, 4);
    EXPECT_EQ(outcome.gap.end.event_version, 11);
    EXPECT_TEXT(outcome.gap.key.run_id, source_history.key.run_id);
    EXPECT_OK(source_try(fixture, &first, &outcome));
    EXPECT_OK(source_try(fixture, &third, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_LACKS); /* the second one */
    EXPECT_EQ(outcome.gap.base.event_id, 2);
    EXPECT_EQ(outcome.gap.base.event_version, 1);
    EXPECT_OK(source_try(fixture, &second, &outcome));
    EXPECT_OK(source_try(fixture, &third, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_APPLIED);
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches, "(3,1)(4,11)");
}

SCENE(a_batch_that_no_cluster_can_have_sent_changes_nothing)
{
    struct source_history source_history = source_begin(fixture, "wf", ""), other;
    struct replicated_outcome outcome;
    source_send(&source_history, 1, "sd");
    other = source_history;
    struct replicated_events misfit = source_make(&other, 1, "c"); /* it was not started */
    EXPECT_KIND(source_try(fixture, &misfit, &outcome), ERR_BAD_REQUEST);
    other = source_history;
    struct replicated_events mixed = source_make(&other, 1, "bc");
    mixed.events[1]->version = 11;
    EXPECT_KIND(source_try(fixture, &mixed, &outcome), ERR_BAD_REQUEST);
    other = source_begin(fixture, "wf", source_history.key.run_id);
    other.items[0] = (struct version_item){2, 2};
    other.item_count = 1;
    other.next_event_id = 3;
    struct replicated_events strange = source_make(&other, 2, "g"); /* nothing in common */
    EXPECT_KIND(source_try(fixture, &strange, &outcome), ERR_BAD_REQUEST);
    struct source_history closed = source_history;
    source_send(&closed, 1, "bcE");
    struct replicated_events late = source_make(&closed, 1, "g"); /* behind the close */
    EXPECT_KIND(source_try(fixture, &late, &outcome), ERR_BAD_REQUEST);
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches, "(5,1)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcE");
}

/* The row of a task is here as long as the task is due there. */
SCENE(a_task_that_the_active_cluster_gave_to_a_worker_is_done_here_too, "C-031")
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    source_send(&source_history, 1, "b");
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    source_send(&source_history, 1, "ca");
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    source_send(&source_history, 1, "Ax");
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    source_send(&source_history, 1, "d");
    shard_fixture_restart(fixture);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    source_send(&source_history, 1, "bcE");
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
}

/* ---- several histories ---- */

SCENE(of_two_histories_the_one_with_the_higher_version_is_the_runs, "E-004", "E-005", "E-006")
{
    struct source_history source_history = source_begin(fixture, "wf", ""), west, north;
    source_send(&source_history, 1, "sd");
    west = north = source_history;
    source_send(&west, 1, "b");
    source_send(&west, 1, "cam");
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_EQ(view.activities, 1);
    size_t tasks = shard_fixture_rows(fixture, ROW_TRANSFER);
    EXPECT(tasks > 0);
    /* Another history of the same run, with a higher version: its state is the run's. */
    source_send(&north, 2, "b");
    view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(2,1)(3,2) | (6,1)");
    EXPECT_EQ(view.activities, 0);
    EXPECT_EQ(view.timers, 0);
    EXPECT_EQ(view.decision_started_id, 3);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdb");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 1), "sdbcam");
    /* The other one may still grow, without a change of the state. */
    source_send(&west, 1, "AxM");
    view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(2,1)(3,2) | (9,1)");
    EXPECT_EQ(view.decision_started_id, 3);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 1), "sdbcamAxM");
    source_send(&north, 2, "cE");
    EXPECT(!source_look_here(fixture, &source_history.key).is_open);
    /* It wins after all: the run is open again. */
    source_send(&west, 11, "d");
    view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(9,1)(10,11) | (2,1)(5,2)");
    EXPECT(view.is_open && view.has_wakeup && view.is_current);
    EXPECT_EQ(view.decision_schedule_id, 10);
    shard_fixture_restart(fixture);
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches,
                "(9,1)(10,11) | (2,1)(5,2)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcamAxMd");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 1), "sdbcE");
}

/* Both histories have the timer; the batch with which one wins ends it. */
SCENE(what_the_batch_that_wins_ends_has_no_row_any_more)
{
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "cam");
    won = source_history;
    source_send(&source_history, 1, "A");
    source_send(&won, 2, "MAx");
    EXPECT_EQ(source_look_here(fixture, &source_history.key).timers, 0);
    shard_fixture_restart(fixture);
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_EQ(view.timers, 0);
    EXPECT_EQ(view.activities, 0);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_PENDING), 0);
}

/* The seed's: (2,1)(3,2), then 4 of version 2 here and 4 of version 3 there; in any order. */
SCENE(the_order_in_which_two_histories_come_does_not_matter, "E-003", "E-004")
{
    for (int order = 0; order < 2; order++) {
        struct source_history source_history =
                                  source_begin(fixture, order == 0 ? "one" : "two", ""),
                              one, other;
        source_send(&source_history, 1, "sd");
        source_send(&source_history, 2, "g");
        one = other = source_history;
        source_send(order == 0 ? &one : &other, order == 0 ? 2 : 3, "g");
        source_send(order == 0 ? &other : &one, order == 0 ? 3 : 2, "g");
        EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches,
                    "(2,1)(3,2)(4,3) | (2,1)(4,2)");
    }
}

SCENE(branches_of_one_version_and_the_next_apply_in_that_order, "E-014")
{
    static const int64_t versions[] = {101, 1, 201};
    for (size_t i = 0; i < 3; i++) {
        struct source_history base = source_begin(fixture, "wf", ""), one, two;
        source_send(&base, versions[i], "sd");
        source_send(&base, versions[i], "bca");
        one = two = base;
        source_send(&one, versions[i], "Ax");
        source_send(&one, versions[i], "d");
        source_send(&two, versions[i] + 1, "A");
        source_send(&two, versions[i] + 1, "xd");
        EXPECT_TEXT(source_read_here(fixture, &base.key, 0), "sdbcaAxd");
        EXPECT_EQ(source_look_here(fixture, &base.key).last_version, versions[i] + 1);
    }
}

SCENE(a_run_failed_on_one_history_has_timed_out_on_the_one_that_wins, "E-015")
{
    struct source_history source_history = source_begin(fixture, "wf", ""), failed, timed_out;
    source_send(&source_history, 21, "sd");
    source_send(&source_history, 21, "b");
    source_send(&source_history, 21, "cm");
    source_send(&source_history, 21, "Mdbcagg");
    source_send(&source_history, 21, "db");
    EXPECT_EQ(source_history.next_event_id, 15);
    failed = timed_out = source_history;
    source_send(&failed, 30, "F");
    source_send(&failed, 30, "db");
    source_send(&failed, 30, "cmL");
    source_send(&timed_out, 31, "O"); /* takes the started decision along */
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(view.branches, "(14,21)(15,31) | (14,21)(20,30)");
    EXPECT(!view.is_open);
    EXPECT_TEXT(view.last_event, "WorkflowExecutionTimedOut");
}

/* The rows of the first history are dropped; what it had sent finds nothing. */
SCENE(a_task_of_a_history_that_lost_starts_nothing, "E-007", "E-008")
{
    source_move(fixture, EAST);
    struct source_history source_history = source_begin(fixture, "wf", "");
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena,
                                  &source_history.key.run_id));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_schedule(fixture, fixture->tasks.items[0], 1, fixture->arena));
    shard_fixture_wait(fixture->tasks.count == 2); /* activity, event 5 */
    EXPECT_EQ(fixture->tasks.items[1]->schedule_id, 5);
    /* North had taken over behind event 2 and has other events. */
    source_move(fixture, NORTH);
    source_history.items[0] = (struct version_item){2, 10};
    source_history.item_count = 1;
    source_history.next_event_id = 3;
    source_history.scheduled_id = 2;
    source_history.time = clock_wall() + NS_PER_S;
    source_send(&source_history, 12, "b");
    source_send(&source_history, 12, "cm");
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches, "(2,10)(5,12) | (5,10)");
    source_move(fixture, EAST);
    struct task task = *fixture->tasks.items[1];
    EXPECT_KIND(shard_fixture_start_decision(fixture, &task, "poll", fixture->arena),
                ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(shard_fixture_signal(fixture, "wf",
                                   fixture->arena)); /* goes on behind the history that won */
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches,
                "(2,10)(5,12)(7,20) | (5,10)");
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbcmgd");
}
