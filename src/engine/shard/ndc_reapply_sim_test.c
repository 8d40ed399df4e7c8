/* ndc_reapply_sim_test.c - what clients did to histories and runs that lost happens again in the
 * current run, once (E-019, E-020, E-048 … E-053). The shard is that of an engine, which does the
 * errands. Every batch is sent twice. */
#include "engine/run/apply.h"
#include "engine/shard/stage.h"
#include "wire/message.h"
#include "wire/presence.h"

/* ---- an engine of one shard ---- */

struct sent {
    struct rig *rig;
    unsigned calls; /* of the port */
    size_t events;
    const char *cluster, *run_id;
    bool is_failing;
};

static struct error *
send(void *context, const struct reapply_message *message, struct arena *arena)
{
    struct sent *sent = context;
    sent->calls++;
    if (sent->is_failing)
        return error_new(arena, ERR_UNAVAILABLE, "nobody is there");
    sent->events += message->count;
    sent->cluster = arena_text(sent->rig->arena, message->cluster);
    sent->run_id = arena_text(sent->rig->arena, message->run_id);
    EXPECT_TEXT(message->domain_name, "moving");
    return NULL;
}

static struct engine *
open_engine(struct rig *rig, struct sent *sent)
{
    struct engine *engine;
    *sent = (struct sent){.rig = rig};
    shard_close(rig->shard);
    struct engine_options options = {.store = rig->store,
                                     .shard_count = 1,
                                     .domains = rig->domains,
                                     .group = rig->options.group,
                                     .dynamic = rig->dynamic,
                                     .tasks = rig->options.tasks,
                                     .reapply = {send, sent},
                                     .host = "rig"};
    EXPECT_OK(engine_open(&options, rig->arena, &engine));
    rig->shard = engine_shard(engine, 0);
    rig->options.number = 0;
    return engine;
}

static void
close_engine(struct rig *rig, struct engine *engine)
{
    engine_close(engine);
    rig->shard = NULL;
}

static struct run_key
current_of(const struct feed *feed)
{
    return (struct run_key){feed->key.domain_id, feed->key.workflow_id, ""};
}

/* How many signals the current run's history has. */
static size_t
count_signals(struct rig *rig, const struct run_key *key)
{
    size_t count = 0;
    for (const char *letter = feed_read(rig, key, 0); *letter != '\0'; letter++)
        count += *letter == 'g';
    return count;
}

/* ---- in the passive cluster ---- */

SCENE(signals_of_a_zombie_are_handed_to_the_active_cluster, "E-019", "E-051")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed newer = feed_begin(rig, "wf", ""), older = feed_begin(rig, "wf", "");
    feed_send(&newer, 101, "sd");
    feed_send(&older, 1, "sdg");
    rig_wait(sent.calls == 1);
    feed_send(&older, 1, "b"); /* nothing that a client caused */
    feed_send(&older, 1, "cg");
    rig_wait(sent.calls == 2);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(sent.calls, 2);
    EXPECT_EQ(sent.events, 2);
    EXPECT_TEXT(sent.cluster, "west");
    EXPECT_TEXT(sent.run_id, older.key.run_id);
    EXPECT_EQ(rig_rows(rig, ROW_DIVERGENCE), 1);
    close_engine(rig, engine);
}

SCENE(a_stale_signal_on_a_history_that_lost_is_handed_on_once, "E-020")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&won, 2, "b");
    sent.is_failing = true; /* at first */
    feed_send(&feed, 1, "g");
    rig_wait(sent.calls > 2);
    EXPECT_EQ(sent.events, 0);
    sent.is_failing = false;
    rig_wait(sent.events == 1);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(sent.events, 1);
    EXPECT_EQ(rig_rows(rig, ROW_DIVERGENCE), 1);
    close_engine(rig, engine);
}

/* The reset of a run comes before the end of that run: it has the signals that it should have. */
SCENE(signals_of_a_run_that_was_reset_do_not_come_again)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed base = feed_begin(rig, "wf", ""), names = feed_begin(rig, "wf", ""), reset;
    feed_send(&base, 1, "sdg");
    feed_send(&base, 1, "b");
    reset = base;
    reset.key.run_id = names.key.run_id;
    reset.base_run_id = base.key.run_id;
    reset.fork_version = 1;
    feed_send(&reset, 11, "R");
    EXPECT(feed_look(rig, &reset.key).is_current);
    EXPECT(feed_look(rig, &base.key).is_zombie);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(sent.calls, 0);
    close_engine(rig, engine);
}

/* Two runs that have nothing to do with each other: the one that loses hands its signals on. */
SCENE(signals_of_a_run_that_gives_way_are_handed_on)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed one = feed_begin(rig, "wf", ""), other = feed_begin(rig, "wf", "");
    feed_send(&one, 1, "sdgg");
    feed_send(&other, 11, "sd");
    EXPECT(feed_look(rig, &one.key).is_zombie);
    rig_wait(sent.events == 2);
    EXPECT_TEXT(sent.run_id, one.key.run_id);
    close_engine(rig, engine);
}

/* ---- in the active one ---- */

SCENE(a_signal_of_a_history_that_lost_is_a_signal_of_the_one_that_won_once, "E-048", "E-049")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&feed, 1, "bcagAx"); /* an activity and a signal */
    feed_move(rig, EAST);
    feed_move(rig, WEST);
    feed_move(rig, EAST); /* version 20 */
    feed_send(&won, 2, "b");
    rig_wait(feed_look(rig, &feed.key).signals == 1);
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfdg"); /* and the activity is not there */
    EXPECT_TEXT(view.branches, "(2,1)(3,2)(6,20) | (8,1)");
    /* The same events come again, by whatever way. */
    size_t count;
    API(HistoryEvent) **events = feed_events(rig, &feed.key, 1, &count);
    EXPECT_OK(engine_reapply(engine, &feed.key, events, count, rig->arena));
    EXPECT_EQ(feed_look(rig, &feed.key).signals, 1);
    API(HistoryEvent) *again = feed_events(rig, &feed.key, 0, &count)[5];
    const API(WorkflowExecutionSignaledEventAttributes) *signal =
        again->workflow_execution_signaled_event_attributes;
    EXPECT_TEXT(signal->signal_name, "signal-6");
    EXPECT_TEXT(signal->request_id, arena_format(rig->arena, "reapplied:%s:6:1", feed.key.run_id));
    /* It loses once more, and is still the same signal: applied to the next winner, once. */
    won.scheduled_id = 2;
    feed_move(rig, NORTH);
    feed_move(rig, EAST); /* version 30 */
    feed_send(&won, 22, "F");
    rig_wait(count_signals(rig, &feed.key) == 1);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(count_signals(rig, &feed.key), 1);
    EXPECT_EQ(sent.events, 0);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches,
                "(2,1)(3,2)(4,22)(6,30) | (8,1) | (2,1)(3,2)(6,20)");
    close_engine(rig, engine);
}

SCENE(a_closed_run_is_reset_to_take_the_signals_of_what_lost, "E-050")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&won, 2, "b");
    feed_send(&won, 2, "cE");
    feed_move(rig, EAST);
    feed_send(&feed, 1, "bg");
    struct run_key current = current_of(&feed);
    rig_wait(count_signals(rig, &current) == 1);
    EXPECT(!feed_look(rig, &feed.key).is_open);
    struct feed_view view = feed_look(rig, &current);
    EXPECT(view.is_open && view.is_current);
    EXPECT_TEXT(feed_read(rig, &current, 0), "sdbfdg");
    size_t count;
    API(HistoryEvent) *failed = feed_events(rig, &current, 0, &count)[3];
    EXPECT_TEXT(failed->decision_task_failed_event_attributes->failure->reason,
                "events-reapplication");
    rig_sleep(NS_PER_S);
    EXPECT_EQ(count_signals(rig, &current), 1);
    close_engine(rig, engine);
}

/* Children that go on without it keep a closed run from being reset: the signal stays in the
 * report, and nobody tries for ever. */
SCENE(signals_for_a_closed_run_that_cannot_be_reset_stay_in_the_report)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won, child = feed_begin(rig, "child", "");
    feed_send(&feed, 1, "sd");
    won = feed;
    won.child = &child;
    feed_send(&won, 2, "b");
    feed_send(&won, 2, "ci");
    feed_send(&won, 2, "dI");
    feed_send(&won, 2, "b");
    feed_send(&won, 2, "cE");
    feed_move(rig, EAST);
    feed_send(&feed, 1, "bg");
    rig_sleep(600 * NS_PER_S);
    struct run_key current = current_of(&feed);
    EXPECT(!feed_look(rig, &current).is_open);
    EXPECT_EQ(count_signals(rig, &current), 0);
    EXPECT_EQ(rig_rows(rig, ROW_DIVERGENCE), 1);
    close_engine(rig, engine);
}

/* While a graceful failover is on its way to this cluster nothing comes again, here or elsewhere;
 * when it has ended, it does. */
SCENE(nothing_comes_again_while_the_domain_is_pending_active, "E-052")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&won, 2, "b");
    feed_move(rig, EAST);
    /* As the record is until all has come that the other cluster still wrote. */
    STORED(DomainRecord) *record =
        (STORED(DomainRecord) *)domains_find_name(rig->domains, "moving")->record;
    STORED(Drain) drain = CADENZA__STORAGE__V1__DRAIN__INIT;
    STORED(Drain) *drains[] = {&drain};
    drain.failover_version = record->domain->failover_version;
    drain.end_time = INT64_MAX;
    record->drains = drains;
    record->n_drains = 1;
    feed_send(&feed, 1, "g");
    rig_sleep(60 * NS_PER_S);
    EXPECT_EQ(count_signals(rig, &feed.key), 0);
    EXPECT_EQ(sent.calls, 0);
    EXPECT(rig_rows(rig, ROW_TRANSFER) > 0); /* not forgotten */
    record->drains = NULL;
    record->n_drains = 0;
    rig_wait(count_signals(rig, &feed.key) == 1);
    EXPECT_EQ(sent.calls, 0);
    close_engine(rig, engine);
}

SCENE(signals_for_a_closed_run_that_had_no_decision_are_dropped, "E-050")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&won, 2, "T");
    feed_move(rig, EAST);
    feed_send(&feed, 1, "g");
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
    struct run_key current = current_of(&feed);
    EXPECT_TEXT(feed_look(rig, &current).last_event, "WorkflowExecutionTerminated");
    close_engine(rig, engine);
}

SCENE(events_of_the_version_that_wrote_the_current_run_last_are_not_applied_again, "E-051")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), other = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sdg");
    feed_move(rig, EAST);
    struct foreign_events same = feed_make(&other, 1, "sdg");
    EXPECT_OK(engine_reapply(engine, &other.key, same.events, same.count, rig->arena));
    EXPECT_EQ(feed_look(rig, &feed.key).signals, 1);
    other = feed_begin(rig, "wf", other.key.run_id);
    struct foreign_events earlier = feed_make(&other, 0, "sdg");
    EXPECT_OK(engine_reapply(engine, &other.key, earlier.events, earlier.count, rig->arena));
    EXPECT_EQ(feed_look(rig, &feed.key).signals, 2);
    close_engine(rig, engine);
}

SCENE(a_signal_that_comes_again_waits_with_the_first_cron_fire, "E-053")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed plain = feed_begin(rig, "plain", ""), cron = feed_begin(rig, "cron", "");
    struct feed other = feed_begin(rig, "other", "");
    struct foreign_events waiting = feed_make(&cron, 1, "s");
    waiting.events[0]->workflow_execution_started_event_attributes->cron_schedule =
        (char *)"@every 1h";
    waiting.events[0]->workflow_execution_started_event_attributes->first_decision_task_backoff =
        presence_make_duration(rig->arena, 3600);
    struct foreign_outcome outcome;
    EXPECT_OK(feed_try(rig, &waiting, &outcome));
    feed_send(&plain, 1, "sd");
    feed_send(&plain, 1, "bcm");
    feed_move(rig, EAST);
    struct foreign_events lost = feed_make(&other, 0, "sdg");
    EXPECT_OK(engine_reapply(engine, &plain.key, lost.events, lost.count, rig->arena));
    EXPECT_OK(engine_reapply(engine, &cron.key, lost.events, lost.count, rig->arena));
    EXPECT_TEXT(feed_read(rig, &plain.key, 0), "sdbcmgd");
    EXPECT_TEXT(feed_read(rig, &cron.key, 0), "sg");
    close_engine(rig, engine);
}

SCENE(a_cancel_request_and_an_end_by_a_client_come_again_in_the_same_run)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won, ended;
    feed_send(&feed, 1, "sd");
    won = ended = feed;
    feed_send(&feed, 1, "k");
    feed_move(rig, EAST);
    feed_move(rig, WEST);
    feed_move(rig, EAST);
    feed_send(&won, 11, "b");
    rig_wait(strcmp(feed_read(rig, &feed.key, 0), "sdbfdk") == 0);
    feed_send(&ended, 2, "T"); /* north had ended it */
    rig_wait(!feed_look(rig, &feed.key).is_open);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbfdkT");
    close_engine(rig, engine);
}

/* ---- rows of what lost ---- */

/* The child was completed by west, but north had taken it over before that and it goes on. */
SCENE(the_end_of_a_child_on_a_history_that_lost_is_told_to_nobody, "E-007")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed parent = feed_begin(rig, "parent", ""), child = feed_begin(rig, "child", ""), won;
    parent.child = &child;
    child.parent = &parent;
    feed_send(&parent, 1, "sd");
    feed_send(&parent, 1, "bci");
    feed_send(&child, 1, "sd");
    feed_send(&parent, 1, "I");
    won = child;
    feed_send(&child, 1, "bcE");
    feed_send(&won, 2, "b");
    EXPECT(feed_look(rig, &child.key).is_open);
    feed_move(rig, EAST);                                    /* what was held goes on */
    rig_wait(feed_look(rig, &child.key).last_version == 10); /* settled */
    rig_sleep(5 * NS_PER_S);
    EXPECT_TEXT(feed_read(rig, &parent.key, 0), "sdbciI");
    EXPECT(feed_look(rig, &child.key).is_open);
    /* Its true end is told. */
    struct task *task = NULL;
    for (size_t i = 0; i < rig->tasks.count; i++)
        if (strcmp(rig->tasks.items[i]->workflow_id, "child") == 0)
            task = rig->tasks.items[i];
    EXPECT(task != NULL);
    EXPECT_OK(rig_start_decision(rig, task, "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, task, 0, rig->arena));
    rig_wait(strcmp(feed_read(rig, &parent.key, 0), "sdbciIXd") == 0);
    close_engine(rig, engine);
}

/* ---- zombies and clients ---- */

SCENE(a_zombie_is_neither_signalled_nor_cancelled_nor_queried, "E-043")
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed newer = feed_begin(rig, "wf", ""), older = feed_begin(rig, "wf", "");
    feed_move(rig, EAST);
    feed_move(rig, WEST);
    feed_move(rig, EAST);
    feed_send(&newer, 11, "sd");
    feed_send(&older, 1, "sd");
    API(SignalWorkflowExecutionRequest) *signal =
        message_new(rig->arena, API_TYPE(signal_workflow_execution_request));
    signal->workflow_execution = message_new(rig->arena, API_TYPE(workflow_execution));
    signal->workflow_execution->workflow_id = (char *)"wf";
    signal->workflow_execution->run_id = (char *)older.key.run_id;
    signal->signal_name = (char *)"signal";
    EXPECT_KIND(engine_signal(engine, rig->domain_id, signal, rig->arena), ERR_ALREADY_COMPLETED);
    API(TerminateWorkflowExecutionRequest) *end =
        message_new(rig->arena, API_TYPE(terminate_workflow_execution_request));
    end->workflow_execution = signal->workflow_execution;
    EXPECT_KIND(engine_terminate(engine, rig->domain_id, end, rig->arena), ERR_ALREADY_COMPLETED);
    struct query_view view;
    EXPECT_KIND(engine_query_view(engine, &older.key, false, rig->arena, &view),
                ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(engine_query_view(engine, &newer.key, false, rig->arena, &view));
    signal->workflow_execution->run_id = (char *)"";
    EXPECT_OK(engine_signal(engine, rig->domain_id, signal, rig->arena));
    EXPECT_EQ(feed_look(rig, &newer.key).signals, 1);
    EXPECT(feed_look(rig, &older.key).is_zombie);
    close_engine(rig, engine);
}

/* ---- for operators ---- */

SCENE(what_lost_is_listed_with_its_events_until_the_run_goes)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won, older = feed_begin(rig, "wf", "");
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&feed, 1, "bcam");
    feed_send(&won, 12, "b"); /* beats 3 to 6 */
    feed_send(&older, 2, "sdb");
    struct divergence_wish wish = {
        .domain_id = rig->domain_id, .workflow_id = "wf", .count_max = 10, .has_events = true};
    struct divergence *all;
    size_t count;
    EXPECT_OK(engine_list_divergences(engine, &wish, rig->arena, &all, &count));
    EXPECT_EQ(count, 2);
    size_t branch = all[0].is_of_run ? 1 : 0;
    EXPECT_TEXT(all[branch].key.run_id, feed.key.run_id);
    EXPECT_EQ(all[branch].from_event_id, 3);
    EXPECT_EQ(all[branch].next_event_id, 7);
    EXPECT_EQ(all[branch].last_version, 1);
    EXPECT_EQ(all[branch].event_count, 4);
    EXPECT_EQ(all[branch].events[0]->attributes_case, EVENT_KIND(DECISION_TASK_STARTED));
    EXPECT(all[1 - branch].is_of_run);
    EXPECT_TEXT(all[1 - branch].key.run_id, older.key.run_id);
    /* The histories change places: so does what is told of them. */
    feed_send(&feed, 21, "AxM");
    EXPECT_OK(engine_list_divergences(engine, &wish, rig->arena, &all, &count));
    EXPECT_EQ(count, 2);
    branch = all[0].is_of_run ? 1 : 0;
    EXPECT_EQ(all[branch].from_event_id, 3);
    EXPECT_EQ(all[branch].next_event_id, 4);
    EXPECT_EQ(all[branch].last_version, 12);
    wish.workflow_id = "another";
    EXPECT_OK(engine_list_divergences(engine, &wish, rig->arena, &all, &count));
    EXPECT_EQ(count, 0);
    close_engine(rig, engine);
}

static void
expect_rebuilt(struct rig *rig, struct engine *engine, const struct run_key *key)
{
    struct run_verification verification;
    EXPECT_OK(engine_verify(engine, key, rig->arena, &verification));
    EXPECT(verification.is_comparable);
    EXPECT_EQ(verification.stored, verification.rebuilt);
}

SCENE(a_run_is_what_its_history_says_whatever_became_of_it)
{
    struct sent sent;
    struct engine *engine = open_engine(rig, &sent);
    struct feed feed = feed_begin(rig, "wf", ""), won;
    feed_send(&feed, 1, "sd");
    won = feed;
    feed_send(&feed, 1, "bcamGg");
    expect_rebuilt(rig, engine, &feed.key);
    feed_send(&won, 2, "b");
    expect_rebuilt(rig, engine, &feed.key);
    struct run_verification before, after;
    EXPECT_OK(engine_verify(engine, &feed.key, rig->arena, &before));
    feed_send(&feed, 11, "AxM");
    expect_rebuilt(rig, engine, &feed.key);
    EXPECT_OK(engine_verify(engine, &feed.key, rig->arena, &after));
    EXPECT(before.stored != after.stored); /* it tells them apart */
    feed_move(rig, EAST);
    feed_move(rig, WEST);
    feed_move(rig, EAST);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    expect_rebuilt(rig, engine, &feed.key);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    expect_rebuilt(rig, engine, &feed.key);
    close_engine(rig, engine);
}
