/* current_run_sim_test.c - runs of one workflow id that several clusters began or kept open: which
 * one has the id, what becomes of the others (E-016 … E-018, E-042 … E-046). Every batch is sent
 * twice.
 */
#include "engine/test/incoming_simulation.h"
#include "wire/message.h"

/* ---- resets ---- */

/* Events 1 to 9 of the base run; the next one starts its second decision. */
static void
send_base(struct source_history *source_history)
{
    source_send(source_history, 21, "sd");
    source_send(source_history, 21, "b");
    source_send(source_history, 21, "ca");
    source_send(source_history, 21, "Axgd");
}

static struct source_history
reset_of(const struct source_history *base)
{
    struct source_history reset = *base;
    struct source_history names = source_begin(base->fixture, base->key.workflow_id, "");
    reset.key.run_id = names.key.run_id;
    reset.base_run_id = base->key.run_id;
    reset.fork_version = 21;
    return reset;
}

SCENE(a_reset_run_begins_with_the_events_of_its_base_run, "E-016")
{
    struct source_history base = source_begin(fixture, "wf", ""), failed;
    send_base(&base);
    source_send(&base, 21, "b");
    EXPECT_EQ(base.next_event_id, 11);
    failed = base;
    source_send(&base, 21, "cg");
    source_send(&failed, 30, "F");
    source_send(&failed, 30, "dbcL");
    EXPECT(!source_look_here(fixture, &base.key).is_open);
    struct source_history reset = reset_of(&base);
    reset.next_event_id = 11;
    reset.items[0] = (struct version_item){10, 21};
    reset.item_count = 1;
    source_send(&reset, 22, "R");
    source_send(&reset, 22, "d");
    struct source_run_view view = source_look_here(fixture, &reset.key);
    EXPECT_TEXT(view.branches, "(10,21)(12,22)");
    EXPECT_TEXT(source_read_here(fixture, &reset.key, 0), "sdbcaAxgdbfd");
    EXPECT(view.is_open);
    EXPECT(view.is_zombie && !view.is_current); /* the base run was written by a later version */
    EXPECT_EQ(view.start_time / NS_PER_MS, (reset.time - NS_PER_MS) / NS_PER_MS);
    /* It stands on its own: nothing of the base run is shared. */
    EXPECT_TEXT(source_read_here(fixture, &base.key, 0), "sdbcaAxgdbfdbcL");
}

SCENE(a_reset_of_the_newest_run_has_the_workflow_id)
{
    struct source_history base = source_begin(fixture, "wf", "");
    send_base(&base);
    source_send(&base, 21, "b");
    struct source_history reset = reset_of(&base);
    source_send(&base, 21, "cgT");
    source_send(&reset, 22, "R");
    struct source_run_view view = source_look_here(fixture, &reset.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie);
    EXPECT_TEXT(source_read_here(fixture, &reset.key, 0), "sdbcaAxgdbf");
}

SCENE(a_reset_run_is_a_zombie_while_its_base_run_is_newer, "E-017")
{
    struct source_history base = source_begin(fixture, "wf", "");
    send_base(&base);
    source_send(&base, 21, "b");
    struct source_history reset = reset_of(&base);
    source_send(&base, 30, "F");
    source_send(&base, 30, "d");
    source_send(&reset, 22, "R");
    source_send(&reset, 22, "dg");
    struct source_run_view view = source_look_here(fixture, &reset.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_wakeup);
    EXPECT(source_look_here(fixture, &base.key).is_current);
}

SCENE(a_reset_whose_base_run_is_not_here_lacks_all_its_events)
{
    struct source_history base = source_begin(fixture, "wf", "");
    struct replicated_outcome outcome;
    struct replicated_events first = source_make(&base, 21, "sd");
    struct replicated_events second = source_make(&base, 21, "b");
    struct source_history reset = reset_of(&base);
    struct replicated_events begins = source_make(&reset, 22, "R");
    EXPECT_OK(source_try(fixture, &begins, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_LACKS);
    EXPECT_EQ(outcome.gap.base.event_id, 0);
    EXPECT_EQ(outcome.gap.end.event_id, 4);
    /* Filled from its source, whose history of it begins with event 1. */
    first.key = second.key = reset.key;
    EXPECT_OK(source_try(fixture, &first, &outcome));
    EXPECT_OK(source_try(fixture, &second, &outcome));
    struct source_run_view view =
        source_look_here(fixture, &reset.key); /* what it has is not its own yet */
    EXPECT(view.is_zombie && !view.is_current);
    shard_fixture_restart(fixture);
    EXPECT_OK(source_try(fixture, &begins, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_APPLIED);
    EXPECT_TEXT(source_read_here(fixture, &reset.key, 0), "sdbf");
    view = source_look_here(fixture, &reset.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_wakeup);
}

/* The same, and of the base run there is less here than of its copy. */
SCENE(the_copied_events_of_a_reset_do_not_take_the_id_from_its_base_run)
{
    struct source_history base = source_begin(fixture, "wf", ""), behind;
    struct replicated_outcome outcome;
    source_send(&base, 21, "sd");
    behind = base;
    struct replicated_events copied = source_make(&behind, 21, "b");
    struct source_history reset = reset_of(&behind),
                          copy = source_begin(fixture, "wf", reset.key.run_id);
    copy.original_run_id = base.key.run_id;
    source_send(&copy, 21, "sd");
    copied.key = reset.key;
    EXPECT_OK(source_try(fixture, &copied, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_APPLIED);
    EXPECT(source_look_here(fixture, &base.key).is_current);
    EXPECT(source_look_here(fixture, &reset.key).is_zombie);
    source_send(&reset, 22, "R");
    EXPECT(source_look_here(fixture, &reset.key).is_current);
    EXPECT(source_look_here(fixture, &base.key).is_zombie);
}

/* ---- runs that go on ---- */

SCENE(a_run_that_goes_on_brings_its_successor)
{
    struct source_history source_history = source_begin(fixture, "wf", ""),
                          next = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send_with(&source_history, 1, "cN", &next, "sd");
    EXPECT(!source_look_here(fixture, &source_history.key).is_open);
    struct source_run_view view = source_look_here(fixture, &next.key);
    EXPECT(view.is_open && view.is_current && view.has_wakeup);
    source_send(&next, 1, "bcE");
    EXPECT_TEXT(source_read_here(fixture, &next.key, 0), "sdbcE");
}

SCENE(a_run_continued_on_a_history_that_lost_is_a_zombie, "E-018")
{
    struct source_history source_history = source_begin(fixture, "wf", ""), won,
                          next = source_begin(fixture, "wf", "");
    source_send(&source_history, 21, "sd");
    source_send(&source_history, 21, "b");
    won = source_history;
    source_send(&won, 32, "F");
    source_send(&won, 32, "d");
    source_send_with(&source_history, 21, "cN", &next, "sd");
    struct source_run_view view = source_look_here(fixture, &next.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_wakeup);
    view = source_look_here(fixture, &source_history.key);
    EXPECT(view.is_open && view.is_current);
    EXPECT_TEXT(view.branches, "(3,21)(5,32) | (5,21)");
}

/* ---- zombies ---- */

SCENE(a_run_that_comes_behind_a_newer_one_is_a_zombie_until_it_closes, "E-042", "E-043")
{
    struct source_history newer = source_begin(fixture, "wf", ""),
                          older = source_begin(fixture, "wf", "");
    source_send(&newer, 11, "sd");
    size_t rows = shard_fixture_rows(fixture, ROW_TRANSFER);
    source_send(&older, 1, "sd");
    source_send(&older, 1, "b");
    source_send(&older, 1, "ca");
    struct source_run_view view = source_look_here(fixture, &older.key);
    EXPECT(view.is_open && view.is_zombie && !view.is_current && !view.has_wakeup);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), rows); /* nothing of it is sent */
    EXPECT(source_look_here(fixture, &newer.key).is_current);
    /* Nobody else can change it, also where the domain is active. */
    source_move(fixture, EAST);
    source_move(fixture, WEST);
    source_move(fixture, EAST); /* version 20 */
    struct task task = {.run_domain_id = older.key.domain_id,
                        .workflow_id = "wf",
                        .run_id = older.key.run_id,
                        .schedule_id = 5};
    EXPECT_KIND(shard_fixture_start_decision(fixture, &task, "poll", fixture->arena),
                ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena)); /* the current one */
    EXPECT(source_look_here(fixture, &older.key).is_zombie);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "two", 1000, fixture->arena,
                                  NULL)); /* it blocks no start */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE), 1);
    source_send(&older, 1, "AxdbcE");
    view = source_look_here(fixture, &older.key);
    EXPECT(!view.is_open && !view.is_zombie && !view.is_current);
    EXPECT(view.has_wakeup); /* for its deletion */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE),
              0); /* it ended by itself: nothing was lost */
}

/* Its writer ended it since another run has the id: that stays in the report. */
SCENE(a_zombie_that_gave_way_elsewhere_stays_reported)
{
    struct source_history newer = source_begin(fixture, "wf", ""),
                          older = source_begin(fixture, "wf", "");
    source_send(&newer, 11, "sd");
    source_send(&older, 1, "sdb");
    source_send(&older, 1, "V");
    EXPECT(!source_look_here(fixture, &older.key).is_open);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE), 1);
}

SCENE(a_zombie_that_becomes_the_newest_is_revived, "E-044")
{
    struct source_history newer = source_begin(fixture, "wf", ""),
                          older = source_begin(fixture, "wf", "");
    source_send(&newer, 11, "sd");
    source_send(&older, 1, "sd");
    EXPECT(source_look_here(fixture, &older.key).is_zombie);
    source_send(&older, 12, "b");
    struct source_run_view view = source_look_here(fixture, &older.key);
    EXPECT(view.is_open && !view.is_zombie && view.is_current && view.has_wakeup);
    view = source_look_here(fixture, &newer.key);
    EXPECT(view.is_zombie && !view.is_current && !view.has_wakeup);
    shard_fixture_restart(fixture);
    EXPECT(source_look_here(fixture, &newer.key).is_zombie);
    EXPECT(source_look_here(fixture, &older.key).is_current);
}

SCENE(of_two_open_runs_the_one_with_the_later_event_of_a_version_wins, "E-045")
{
    struct source_history one = source_begin(fixture, "wf", ""),
                          other = source_begin(fixture, "wf", "");
    other.task_id = 5000;
    source_send(&one, 11, "sd");
    source_send(&other, 11, "sd");
    EXPECT(source_look_here(fixture, &other.key).is_current);
    EXPECT(source_look_here(fixture, &one.key).is_zombie);
    one.task_id = 6000;
    source_send(&one, 11, "b");
    EXPECT(source_look_here(fixture, &one.key).is_current);
    EXPECT(source_look_here(fixture, &other.key).is_zombie);
}

/* The run was started here, a moment before west had taken over and started another. */
SCENE(the_losing_run_is_terminated_where_it_was_written_last, "E-046")
{
    source_move(fixture, EAST);
    struct run_key key = {fixture->domain_id, "wf", ""};
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, &key.run_id));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena)); /* is buffered */
    source_move(fixture, WEST);
    struct source_history won = source_begin(fixture, "wf", "");
    source_send(&won, 11, "sd");
    EXPECT(source_look_here(fixture, &won.key).is_current);
    struct source_run_view view = source_look_here(fixture, &key);
    EXPECT(!view.is_open && !view.is_current);
    EXPECT_EQ(view.last_version, 10); /* as its last event before */
    EXPECT_TEXT(source_read_here(fixture, &key, 0), "sdbfgT");
    size_t count;
    API(HistoryEvent) *last = source_events(fixture, &key, 0, &count)[5];
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->reason,
                "Terminate Workflow Due To Version Conflict.");
    EXPECT_TEXT(last->workflow_execution_terminated_event_attributes->identity, "worker-service");
}

/* ---- runs of several attributes ---- */

static struct source_history
begin_in(struct shard_fixture *fixture, const char *workflow_id, const char *region, int64_t after)
{
    struct source_history source_history = source_begin(fixture, workflow_id, "");
    source_history.time += after;
    source_history.region = region;
    return source_history;
}

/* One history of a run, to be sent in one go. */
struct delivery {
    struct source_history source_history;
    int64_t first, last; /* versions of "sd" and of "b" */
};

static void
deliver(struct delivery *delivery)
{
    source_send(&delivery->source_history, delivery->first, "sd");
    source_send(&delivery->source_history, delivery->last, "b");
}

/* The first is newer than the third by its version; that one began later than the second, which
 * began later than the first. Region eu leads, since the third began last; the first is the newest
 * of eu. Compared one by one, each of the three would have had the id in some order. */
SCENE(of_three_runs_that_are_newer_in_a_circle_one_has_the_id_whatever_is_heard_first)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < array_length(orders); i++) {
        const char *id = arena_format(fixture->arena, "wf%zu", i);
        struct delivery delivery[] = {{begin_in(fixture, id, "eu", 1 * NS_PER_S), 1, 31},
                                      {begin_in(fixture, id, "us", 2 * NS_PER_S), 1, 1},
                                      {begin_in(fixture, id, "eu", 3 * NS_PER_S), 11, 11}};
        for (size_t j = 0; j < 3; j++) {
            deliver(&delivery[orders[i][j]]);
            if (i % 2 == 0)
                shard_fixture_restart(fixture);
        }
        struct source_run_view view = source_look_here(fixture, &delivery[0].source_history.key);
        EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_wakeup);
        for (size_t j = 1; j < 3; j++) {
            view = source_look_here(fixture, &delivery[j].source_history.key);
            EXPECT(view.is_open && view.is_zombie && !view.is_current && !view.has_wakeup);
        }
    }
}

/* A run goes on as one of another region, on a history of it that loses: that one began last. */
static void
play_lost_end(struct shard_fixture *fixture, const char *id, int64_t version, bool is_end_first)
{
    struct source_history source_history = begin_in(fixture, id, "eu", 0), won,
                          next = begin_in(fixture, id, "us", NS_PER_S);
    source_send(&source_history, 21, "sd");
    source_send(&source_history, 21, "b");
    won = source_history;
    if (is_end_first)
        source_send_with(&source_history, 21, "cN", &next, "sd");
    source_send(&won, version, "Fg");
    if (!is_end_first)
        source_send_with(&source_history, 21, "cN", &next, "sd");
    struct source_run_view view = source_look_here(fixture, &next.key);
    EXPECT(view.is_open && view.is_current && !view.is_zombie);
    view = source_look_here(fixture, &source_history.key);
    EXPECT(!view.is_current);
    bool is_ours = version == 30;
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0),
                is_ours && !is_end_first ? "sdbfgT" : "sdbfg"); /* who wrote it ends it */
    EXPECT(is_ours && !is_end_first ? !view.is_open : view.is_zombie);
}

SCENE(a_run_of_another_region_begun_on_a_history_that_lost_has_the_id_if_its_region_leads)
{
    play_lost_end(fixture, "wf1", 32, false);
    play_lost_end(fixture, "wf2", 32, true);
    play_lost_end(fixture, "wf3", 30, false);
}

/* West has written a run of the domain itself under a version that is not known here yet. It has
 * not the id, but a run that began here would have to be newer than it. */
SCENE(a_start_follows_no_run_of_a_later_version_of_its_own_attribute)
{
    struct source_history hidden = begin_in(fixture, "wf", NULL, 0),
                          shown = begin_in(fixture, "wf", "us", NS_PER_S);
    source_send(&hidden, 31, "sdbcE");
    source_send(&shown, 1, "sdbcE");
    EXPECT(source_look_here(fixture, &shown.key).is_current);
    source_move(fixture, EAST); /* version 10 */
    EXPECT_KIND(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, NULL),
                ERR_DOMAIN_NOT_ACTIVE);
    for (int i = 0; i < 3; i++) {
        source_move(fixture, WEST);
        source_move(fixture, EAST);
    }
    EXPECT_OK(
        shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, NULL)); /* version 40 */
    EXPECT(!source_look_here(fixture, &shown.key).is_current);
}

/* The clock of west is ahead, and the run that began last is not the current one. */
SCENE(a_start_begins_after_all_runs_of_the_attribute_that_leads)
{
    struct source_history newest = begin_in(fixture, "wf", "eu", 0);
    struct source_history latest = begin_in(fixture, "wf", "eu", 600 * NS_PER_S);
    source_send(&newest, 31, "sdbcE");
    source_send(&latest, 11, "sd");
    int64_t began = latest.time - NS_PER_MS;
    EXPECT(source_look_here(fixture, &newest.key).is_current);
    source_move(fixture, EAST);
    struct run_key key = {fixture->domain_id, "wf", ""};
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, &key.run_id));
    struct source_run_view view = source_look_here(fixture, &key);
    EXPECT(view.is_current);
    EXPECT_EQ(view.start_time, began + 1);
    source_send(&latest, 11, "b");
    EXPECT(source_look_here(fixture, &key).is_current);
}

/* West has ended the run under a version that is not known here yet: a reset of it would not be the
 * newest run. */
SCENE(a_run_that_a_later_version_ended_is_not_reset)
{
    struct source_history source_history = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    source_send(&source_history, 1, "b");
    source_send(&source_history, 1, "cgd");
    source_send(&source_history, 31, "T");
    source_move(fixture, EAST); /* version 10 */
    API(ResetWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, reset_workflow_execution_request,
        .workflow_execution = API_NEW(fixture->arena, workflow_execution, .workflow_id = "wf",
                                      .run_id = (char *)source_history.key.run_id),
        .decision_finish_event_id = 4, .request_id = "reset");
    struct shard_reset wanted = {.domain_id = fixture->domain_id, .request = request};
    const char *run_id;
    EXPECT_KIND(shard_reset(fixture->shard, &wanted, fixture->arena, &run_id),
                ERR_DOMAIN_NOT_ACTIVE);
    for (int i = 0; i < 3; i++) {
        source_move(fixture, WEST);
        source_move(fixture, EAST);
    }
    EXPECT_OK(shard_reset(fixture->shard, &wanted, fixture->arena, &run_id)); /* version 40 */
    EXPECT(!source_look_here(fixture, &source_history.key).is_current);
}
