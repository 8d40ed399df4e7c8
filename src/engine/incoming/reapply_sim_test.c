/* reapply_sim_test.c - what clients did to histories and runs that lost happens again in the
 * current run, once (E-019, E-020, E-048 … E-053). The shard is that of an engine, which does the
 * cross-workflow tasks. Every batch is sent twice. */
#include "engine/inside.h"
#include "engine/run/apply.h"
#include "engine/test/incoming_simulation.h"
#include "route/test_answers.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A refusal changes nothing: it is asked for until it comes. */
#define EXPECT_REFUSAL(call, kind)                                                                 \
    do {                                                                                           \
        struct error *refusal = (call);                                                            \
        while (test_is_answer_lost(refusal))                                                       \
            refusal = (call);                                                                      \
        EXPECT_KIND(refusal, kind);                                                                \
    } while (0)

/* ---- an engine of one shard ---- */

struct sent {
    struct shard_fixture *fixture;
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
    sent->cluster = arena_text(sent->fixture->arena, message->cluster);
    sent->run_id = arena_text(sent->fixture->arena, message->run_id);
    EXPECT_TEXT(message->domain_name, "moving");
    return NULL;
}

static struct engine *
open_engine(struct shard_fixture *fixture, struct sent *sent)
{
    struct engine *engine;
    *sent = (struct sent){.fixture = fixture};
    shard_close(fixture->shard);
    struct engine_options options = {.store = fixture->store,
                                     .shard_count = 1,
                                     .domains = fixture->domains,
                                     .group = fixture->options.group,
                                     .dynamic = fixture->dynamic,
                                     .tasks = fixture->options.tasks,
                                     .reapply = {send, sent},
                                     .host = "alone"};
    EXPECT_OK(engine_open(&options, fixture->arena, &engine));
    fixture->shard = engine_served_shard(engine, owner_of_shard(0));
    fixture->options.number = 0;
    return engine;
}

static void
close_engine(struct shard_fixture *fixture, struct engine *engine)
{
    engine_close(engine);
    fixture->shard = NULL;
}

static struct run_key
current_of(const struct source_history *source_history)
{
    return (struct run_key){source_history->key.domain_id, source_history->key.workflow_id, ""};
}

/* How many signals the current run's history has. */
static size_t
count_signals(struct shard_fixture *fixture, const struct run_key *key)
{
    size_t count = 0;
    for (const char *letter = source_read_here(fixture, key, 0); *letter != '\0'; letter++)
        count += *letter == 'g';
    return count;
}

/* ---- in the passive cluster ---- */

SCENE(signals_of_a_zombie_are_handed_to_the_active_cluster, "E-019", "E-051")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history newer = source_begin(fixture, "wf", ""),
                          older = source_begin(fixture, "wf", "");
    source_send(&newer, 101, "sd");
    source_send(&older, 1, "sdg");
    shard_fixture_wait(sent.calls == 1);
    source_send(&older, 1, "b"); /* nothing that a client caused */
    source_send(&older, 1, "cg");
    shard_fixture_wait(sent.calls == 2);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(sent.calls, 2);
    EXPECT_EQ(sent.events, 2);
    EXPECT_TEXT(sent.cluster, "west");
    EXPECT_TEXT(sent.run_id, older.key.run_id);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE), 1);
    close_engine(fixture, engine);
}

SCENE(a_stale_signal_on_a_history_that_lost_is_handed_on_once, "E-020")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&won, 2, "b");
    sent.is_failing = true; /* at first */
    source_send(&source_history, 1, "g");
    shard_fixture_wait(sent.calls > 2);
    EXPECT_EQ(sent.events, 0);
    sent.is_failing = false;
    shard_fixture_wait(sent.events == 1);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(sent.events, 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE), 1);
    close_engine(fixture, engine);
}

/* The reset of a run comes before the end of that run: it has the signals that it should have. */
SCENE(signals_of_a_run_that_was_reset_do_not_come_again)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history base = source_begin(fixture, "wf", ""),
                          names = source_begin(fixture, "wf", ""), reset;
    source_send(&base, 1, "sdg");
    source_send(&base, 1, "b");
    reset = base;
    reset.key.run_id = names.key.run_id;
    reset.base_run_id = base.key.run_id;
    reset.fork_version = 1;
    source_send(&reset, 11, "R");
    EXPECT(source_look_here(fixture, &reset.key).is_current);
    EXPECT(source_look_here(fixture, &base.key).is_zombie);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(sent.calls, 0);
    close_engine(fixture, engine);
}

/* Two runs that have nothing to do with each other: the one that loses hands its signals on. */
SCENE(signals_of_a_run_that_gives_way_are_handed_on)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history one = source_begin(fixture, "wf", ""),
                          other = source_begin(fixture, "wf", "");
    source_send(&one, 1, "sdgg");
    source_send(&other, 11, "sd");
    EXPECT(source_look_here(fixture, &one.key).is_zombie);
    shard_fixture_wait(sent.events == 2);
    EXPECT_TEXT(sent.run_id, one.key.run_id);
    close_engine(fixture, engine);
}

/* ---- in the active one ---- */

SCENE(a_signal_of_a_history_that_lost_is_a_signal_of_the_one_that_won_once, "E-048", "E-049")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&source_history, 1, "bcagAx"); /* an activity and a signal */
    source_move(fixture, EAST);
    source_move(fixture, WEST);
    source_move(fixture, EAST); /* version 20 */
    source_send(&won, 2, "b");
    shard_fixture_wait(source_look_here(fixture, &source_history.key).signals == 1);
    struct source_run_view view = source_look_here(fixture, &source_history.key);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0),
                "sdbfdg"); /* and the activity is not there */
    EXPECT_TEXT(view.branches, "(2,1)(3,2)(6,20) | (8,1)");
    /* The same events come again, by whatever way. */
    size_t count;
    API(HistoryEvent) **events = source_events(fixture, &source_history.key, 1, &count);
    EXPECT_ANSWER(engine_reapply(engine, &source_history.key, events, count, fixture->arena));
    EXPECT_EQ(source_look_here(fixture, &source_history.key).signals, 1);
    API(HistoryEvent) *again = source_events(fixture, &source_history.key, 0, &count)[5];
    const API(WorkflowExecutionSignaledEventAttributes) *signal =
        again->workflow_execution_signaled_event_attributes;
    EXPECT_TEXT(signal->signal_name, "signal-6");
    EXPECT_TEXT(signal->request_id,
                arena_format(fixture->arena, "reapplied:%s:6:1", source_history.key.run_id));
    /* It loses once more, and is still the same signal: applied to the next winner, once. */
    won.scheduled_id = 2;
    source_move(fixture, NORTH);
    source_move(fixture, EAST); /* version 30 */
    source_send(&won, 22, "F");
    shard_fixture_wait(count_signals(fixture, &source_history.key) == 1);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(count_signals(fixture, &source_history.key), 1);
    EXPECT_EQ(sent.events, 0);
    EXPECT_TEXT(source_look_here(fixture, &source_history.key).branches,
                "(2,1)(3,2)(4,22)(6,30) | (8,1) | (2,1)(3,2)(6,20)");
    close_engine(fixture, engine);
}

SCENE(a_closed_run_is_reset_to_take_the_signals_of_what_lost, "E-050")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&won, 2, "b");
    source_send(&won, 2, "cE");
    source_move(fixture, EAST);
    source_send(&source_history, 1, "bg");
    struct run_key current = current_of(&source_history);
    shard_fixture_wait(count_signals(fixture, &current) == 1);
    EXPECT(!source_look_here(fixture, &source_history.key).is_open);
    struct source_run_view view = source_look_here(fixture, &current);
    EXPECT(view.is_open && view.is_current);
    EXPECT_TEXT(source_read_here(fixture, &current, 0), "sdbfdg");
    size_t count;
    API(HistoryEvent) *failed = source_events(fixture, &current, 0, &count)[3];
    EXPECT_TEXT(failed->decision_task_failed_event_attributes->failure->reason,
                "events-reapplication");
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(count_signals(fixture, &current), 1);
    close_engine(fixture, engine);
}

/* Children that go on without it keep a closed run from being reset: the signal stays in the
 * report, and nobody tries for ever. */
SCENE(signals_for_a_closed_run_that_cannot_be_reset_stay_in_the_report)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won,
                          child = source_begin(fixture, "child", "");
    source_send(&source_history, 1, "sd");
    won = source_history;
    won.child = &child;
    source_send(&won, 2, "b");
    source_send(&won, 2, "ci");
    source_send(&won, 2, "dI");
    source_send(&won, 2, "b");
    source_send(&won, 2, "cE");
    source_move(fixture, EAST);
    source_send(&source_history, 1, "bg");
    shard_fixture_sleep(600 * NS_PER_S);
    struct run_key current = current_of(&source_history);
    EXPECT(!source_look_here(fixture, &current).is_open);
    EXPECT_EQ(count_signals(fixture, &current), 0);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DIVERGENCE), 1);
    close_engine(fixture, engine);
}

/* While a graceful failover is on its way to this cluster nothing comes again, here or elsewhere;
 * when it has ended, it does. */
SCENE(nothing_comes_again_while_the_domain_is_pending_active, "E-052")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&won, 2, "b");
    source_move(fixture, EAST);
    /* As the record is until all has come that the other cluster still wrote. */
    STORED(DomainRecord) *record =
        (STORED(DomainRecord) *)domains_find_name(fixture->domains, "moving")->record;
    STORED(Drain) drain = CADENZA__STORAGE__V1__DRAIN__INIT;
    STORED(Drain) *drains[] = {&drain};
    drain.failover_version = record->domain->failover_version;
    drain.end_time = INT64_MAX;
    record->drains = drains;
    record->n_drains = 1;
    source_send(&source_history, 1, "g");
    shard_fixture_sleep(60 * NS_PER_S);
    EXPECT_EQ(count_signals(fixture, &source_history.key), 0);
    EXPECT_EQ(sent.calls, 0);
    EXPECT(shard_fixture_rows(fixture, ROW_TRANSFER) > 0); /* not forgotten */
    record->drains = NULL;
    record->n_drains = 0;
    shard_fixture_wait(count_signals(fixture, &source_history.key) == 1);
    EXPECT_EQ(sent.calls, 0);
    close_engine(fixture, engine);
}

SCENE(signals_for_a_closed_run_that_had_no_decision_are_dropped, "E-050")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&won, 2, "T");
    source_move(fixture, EAST);
    source_send(&source_history, 1, "g");
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    struct run_key current = current_of(&source_history);
    EXPECT_TEXT(source_look_here(fixture, &current).last_event, "WorkflowExecutionTerminated");
    close_engine(fixture, engine);
}

SCENE(events_of_the_version_that_wrote_the_current_run_last_are_not_applied_again, "E-051")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""),
                          other = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sdg");
    source_move(fixture, EAST);
    struct replicated_events same = source_make(&other, 1, "sdg");
    EXPECT_ANSWER(engine_reapply(engine, &other.key, same.events, same.count, fixture->arena));
    EXPECT_EQ(source_look_here(fixture, &source_history.key).signals, 1);
    other = source_begin(fixture, "wf", other.key.run_id);
    struct replicated_events earlier = source_make(&other, 0, "sdg");
    EXPECT_ANSWER(
        engine_reapply(engine, &other.key, earlier.events, earlier.count, fixture->arena));
    EXPECT_EQ(source_look_here(fixture, &source_history.key).signals, 2);
    close_engine(fixture, engine);
}

SCENE(a_signal_that_comes_again_waits_with_the_first_cron_fire, "E-053")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history plain = source_begin(fixture, "plain", ""),
                          cron = source_begin(fixture, "cron", "");
    struct source_history other = source_begin(fixture, "other", "");
    struct replicated_events waiting = source_make(&cron, 1, "s");
    waiting.events[0]->workflow_execution_started_event_attributes->cron_schedule =
        (char *)"@every 1h";
    waiting.events[0]->workflow_execution_started_event_attributes->first_decision_task_backoff =
        presence_make_duration(fixture->arena, 3600);
    struct replicated_outcome outcome;
    EXPECT_OK(source_try(fixture, &waiting, &outcome));
    source_send(&plain, 1, "sd");
    source_send(&plain, 1, "bcm");
    source_move(fixture, EAST);
    struct replicated_events lost = source_make(&other, 0, "sdg");
    EXPECT_ANSWER(engine_reapply(engine, &plain.key, lost.events, lost.count, fixture->arena));
    EXPECT_ANSWER(engine_reapply(engine, &cron.key, lost.events, lost.count, fixture->arena));
    EXPECT_TEXT(source_read_here(fixture, &plain.key, 0), "sdbcmgd");
    EXPECT_TEXT(source_read_here(fixture, &cron.key, 0), "sg");
    close_engine(fixture, engine);
}

SCENE(a_cancel_request_and_an_end_by_a_client_come_again_in_the_same_run)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won, ended;
    source_send(&source_history, 1, "sd");
    won = ended = source_history;
    source_send(&source_history, 1, "k");
    source_move(fixture, EAST);
    source_move(fixture, WEST);
    source_move(fixture, EAST);
    source_send(&won, 11, "b");
    shard_fixture_wait(strcmp(source_read_here(fixture, &source_history.key, 0), "sdbfdk") == 0);
    source_send(&ended, 2, "T"); /* north had ended it */
    shard_fixture_wait(!source_look_here(fixture, &source_history.key).is_open);
    EXPECT_TEXT(source_read_here(fixture, &source_history.key, 0), "sdbfdkT");
    close_engine(fixture, engine);
}

/* ---- rows of what lost ---- */

/* The child was completed by west, but north had taken it over before that and it goes on. */
SCENE(the_end_of_a_child_on_a_history_that_lost_is_told_to_nobody, "E-007")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history parent = source_begin(fixture, "parent", ""),
                          child = source_begin(fixture, "child", ""), won;
    parent.child = &child;
    child.parent = &parent;
    source_send(&parent, 1, "sd");
    source_send(&parent, 1, "bci");
    source_send(&child, 1, "sd");
    source_send(&parent, 1, "I");
    won = child;
    source_send(&child, 1, "bcE");
    source_send(&won, 2, "b");
    EXPECT(source_look_here(fixture, &child.key).is_open);
    source_move(fixture, EAST); /* what was held goes on */
    shard_fixture_wait(source_look_here(fixture, &child.key).last_version == 10); /* taken over */
    shard_fixture_sleep(5 * NS_PER_S);
    EXPECT_TEXT(source_read_here(fixture, &parent.key, 0), "sdbciI");
    EXPECT(source_look_here(fixture, &child.key).is_open);
    /* Its true end is told. */
    struct task *task = NULL;
    for (size_t i = 0; i < fixture->tasks.count; i++)
        if (strcmp(fixture->tasks.items[i]->workflow_id, "child") == 0)
            task = fixture->tasks.items[i];
    EXPECT(task != NULL);
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, task, 0, fixture->arena));
    shard_fixture_wait(strcmp(source_read_here(fixture, &parent.key, 0), "sdbciIXd") == 0);
    close_engine(fixture, engine);
}

/* ---- zombies and clients ---- */

SCENE(a_zombie_is_neither_signalled_nor_cancelled_nor_queried, "E-043")
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history newer = source_begin(fixture, "wf", ""),
                          older = source_begin(fixture, "wf", "");
    source_move(fixture, EAST);
    source_move(fixture, WEST);
    source_move(fixture, EAST);
    source_send(&newer, 11, "sd");
    source_send(&older, 1, "sd");
    API(SignalWorkflowExecutionRequest) *signal = API_NEW(
        fixture->arena, signal_workflow_execution_request,
        .workflow_execution = API_NEW(fixture->arena, workflow_execution, .workflow_id = "wf",
                                      .run_id = (char *)older.key.run_id),
        .signal_name = "signal");
    EXPECT_REFUSAL(engine_signal(engine, fixture->domain_id, signal, fixture->arena),
                   ERR_ALREADY_COMPLETED);
    API(TerminateWorkflowExecutionRequest) *end =
        API_NEW(fixture->arena, terminate_workflow_execution_request,
                .workflow_execution = signal->workflow_execution);
    EXPECT_REFUSAL(engine_terminate(engine, fixture->domain_id, end, fixture->arena),
                   ERR_ALREADY_COMPLETED);
    struct query_view view;
    EXPECT_REFUSAL(engine_query_view(engine, &older.key, false, fixture->arena, &view),
                   ERR_ENTITY_NOT_EXISTS);
    EXPECT_ANSWER(engine_query_view(engine, &newer.key, false, fixture->arena, &view));
    signal->workflow_execution->run_id = "";
    EXPECT_MADE(engine_signal(engine, fixture->domain_id, signal, fixture->arena));
    EXPECT_EQ(source_look_here(fixture, &newer.key).signals, 1);
    EXPECT(source_look_here(fixture, &older.key).is_zombie);
    close_engine(fixture, engine);
}

/* ---- for operators ---- */

SCENE(what_lost_is_listed_with_its_events_until_the_run_goes)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won,
                          older = source_begin(fixture, "wf", "");
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&source_history, 1, "bcam");
    source_send(&won, 12, "b"); /* beats 3 to 6 */
    source_send(&older, 2, "sdb");
    struct divergence_query query = {
        .domain_id = fixture->domain_id, .workflow_id = "wf", .count_max = 10, .has_events = true};
    struct divergence *all;
    size_t count;
    EXPECT_ANSWER(engine_list_divergences(engine, &query, fixture->arena, &all, &count));
    EXPECT_EQ(count, 2);
    size_t branch = all[0].is_of_run ? 1 : 0;
    EXPECT_TEXT(all[branch].key.run_id, source_history.key.run_id);
    EXPECT_EQ(all[branch].from_event_id, 3);
    EXPECT_EQ(all[branch].next_event_id, 7);
    EXPECT_EQ(all[branch].last_version, 1);
    EXPECT_EQ(all[branch].event_count, 4);
    EXPECT_EQ(all[branch].events[0]->attributes_case, EVENT_KIND(DECISION_TASK_STARTED));
    EXPECT(all[1 - branch].is_of_run);
    EXPECT_TEXT(all[1 - branch].key.run_id, older.key.run_id);
    /* The histories change places: so does what is told of them. */
    source_send(&source_history, 21, "AxM");
    EXPECT_ANSWER(engine_list_divergences(engine, &query, fixture->arena, &all, &count));
    EXPECT_EQ(count, 2);
    branch = all[0].is_of_run ? 1 : 0;
    EXPECT_EQ(all[branch].from_event_id, 3);
    EXPECT_EQ(all[branch].next_event_id, 4);
    EXPECT_EQ(all[branch].last_version, 12);
    query.workflow_id = "another";
    EXPECT_ANSWER(engine_list_divergences(engine, &query, fixture->arena, &all, &count));
    EXPECT_EQ(count, 0);
    close_engine(fixture, engine);
}

static void
expect_rebuilt(struct shard_fixture *fixture, struct engine *engine, const struct run_key *key)
{
    struct run_verification verification;
    EXPECT_ANSWER(engine_verify(engine, key, fixture->arena, &verification));
    EXPECT(verification.is_comparable);
    EXPECT_EQ(verification.stored, verification.rebuilt);
}

SCENE(a_run_is_what_its_history_says_whatever_became_of_it)
{
    struct sent sent;
    struct engine *engine = open_engine(fixture, &sent);
    struct source_history source_history = source_begin(fixture, "wf", ""), won;
    source_send(&source_history, 1, "sd");
    won = source_history;
    source_send(&source_history, 1, "bcamGg");
    expect_rebuilt(fixture, engine, &source_history.key);
    source_send(&won, 2, "b");
    expect_rebuilt(fixture, engine, &source_history.key);
    struct run_verification before, after;
    EXPECT_ANSWER(engine_verify(engine, &source_history.key, fixture->arena, &before));
    source_send(&source_history, 11, "AxM");
    expect_rebuilt(fixture, engine, &source_history.key);
    EXPECT_ANSWER(engine_verify(engine, &source_history.key, fixture->arena, &after));
    EXPECT(before.stored != after.stored); /* it tells them apart */
    source_move(fixture, EAST);
    source_move(fixture, WEST);
    source_move(fixture, EAST);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    expect_rebuilt(fixture, engine, &source_history.key);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    expect_rebuilt(fixture, engine, &source_history.key);
    close_engine(fixture, engine);
}
