/* questions_sim_test.c - what is asked of a shard goes as bytes: a field that was forgotten in a
 * question or in its answer is missed. The storms ask some of them seldom or never. */
#include "cadenza/internal/v1/replication.pb-c.h"
#include "engine/inside.h"
#include "engine/test/history_sample.h"
#include "engine/test/incoming_simulation.h"
#include "wire/message.h"
#include "wire/presence.h"

static struct engine *
open_engine(struct shard_fixture *fixture)
{
    struct engine *engine;
    shard_close(fixture->shard);
    struct engine_options options = {.store = fixture->store,
                                     .shard_count = 1,
                                     .domains = fixture->domains,
                                     .group = fixture->options.group,
                                     .dynamic = fixture->dynamic,
                                     .tasks = fixture->options.tasks,
                                     .host = "fixture"};
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

static const struct cluster *
west(const struct shard_fixture *fixture)
{
    return cluster_group_find(fixture->options.group, "west");
}

/* ---- a run ---- */

static struct source_history
begin_with_conflict(struct shard_fixture *fixture)
{
    struct source_history lost = source_begin(fixture, "wf", "");
    lost.region = "city";
    source_send(&lost, 1, "sd");
    struct source_history won = lost;
    source_send(&lost, 1, "bcam");
    source_send(&won, 11, "b");
    return won;
}

SCENE_BY(MESSAGES_BYTES, how_far_a_run_is_comes_whole)
{
    struct engine *engine = open_engine(fixture);
    struct source_history run = begin_with_conflict(fixture);
    struct run_key current = {run.key.domain_id, "wf", ""};
    struct run_branches branches;
    EXPECT_OK(engine_find_branches(engine, &current, fixture->arena, &branches));
    EXPECT_TEXT(sample_branches(&branches, fixture->arena), "(2,1)(3,11) | (6,1)");
    struct history_state state;
    EXPECT_OK(engine_history_state(engine, &current, fixture->arena, &state));
    EXPECT_TEXT(state.run_id, run.key.run_id);
    EXPECT_EQ(state.next_event_id, 4);
    EXPECT_EQ(state.last_first_event_id, 3);
    EXPECT(state.is_open && state.history_bytes > 0 && state.workflow_type->name[0] != '\0');
    EXPECT_EQ(state.lineage.count, 2);
    EXPECT_EQ(state.lineage.spans[0].next_event_id, 3);
    struct run_key nobody = {run.key.domain_id, "another", ""};
    EXPECT_KIND(engine_history_state(engine, &nobody, fixture->arena, &state),
                ERR_ENTITY_NOT_EXISTS);
    close_engine(fixture, engine);
}

SCENE_BY(MESSAGES_BYTES, what_a_query_knows_of_its_run_comes_whole)
{
    struct engine *engine = open_engine(fixture);
    struct source_history run = begin_with_conflict(fixture);
    for (int is_strong = 0; is_strong < 2; is_strong++) {
        struct query_view view;
        EXPECT_OK(engine_query_view(engine, &run.key, is_strong != 0, fixture->arena, &view));
        EXPECT_TEXT(view.run_id, run.key.run_id);
        EXPECT_EQ(view.next_event_id, 4);
        EXPECT_EQ(view.lineage.count, 2);
        EXPECT(view.is_open && view.has_decision && view.history_bytes > 0);
        EXPECT(view.workflow_type->name[0] != '\0' && view.list[0] != '\0');
        EXPECT_TEXT(view.sticky_list, "");
        EXPECT_TEXT(view.client_name, "");
    }
    struct run_home home;
    EXPECT_OK(engine_home(engine, &run.key, fixture->arena, &home));
    EXPECT_TEXT(home.scope, "region");
    EXPECT_TEXT(home.name, "city");
    EXPECT(home.is_open && home.last_version == 11);
    struct source_history plain = source_begin(fixture, "plain", "");
    source_send(&plain, 1, "sd");
    EXPECT_OK(engine_home(engine, &plain.key, fixture->arena, &home));
    EXPECT(home.scope == NULL && home.name == NULL);
    close_engine(fixture, engine);
}

SCENE_BY(MESSAGES_BYTES, what_operators_see_of_a_run_comes_whole)
{
    struct engine *engine = open_engine(fixture);
    struct source_history run = begin_with_conflict(fixture);
    struct run_inspection inspection;
    EXPECT_OK(engine_inspect_run(engine, &run.key, fixture->arena, &inspection));
    EXPECT_TEXT(inspection.in_memory, inspection.in_store);
    EXPECT(strstr(inspection.in_memory, run.key.run_id) != NULL);
    API(DescribeWorkflowExecutionResponse) response;
    EXPECT_OK(engine_describe(engine, &run.key, fixture->arena, &response));
    EXPECT_TEXT(response.workflow_execution_info->workflow_execution->run_id, run.key.run_id);
    EXPECT(response.pending_decision != NULL);
    struct run_verification verification;
    EXPECT_OK(engine_verify(engine, &run.key, fixture->arena, &verification));
    EXPECT(verification.is_comparable && verification.stored == verification.rebuilt);
    struct run_rebuilt rebuilt;
    EXPECT_OK(engine_rebuild(engine, &run.key, fixture->arena, &rebuilt));
    EXPECT_TEXT(rebuilt.run_id, run.key.run_id);
    EXPECT(rebuilt.before == verification.stored && rebuilt.after == verification.stored);
    close_engine(fixture, engine);
}

/* ---- a shard ---- */

SCENE_BY(MESSAGES_BYTES, what_operators_see_of_a_shard_comes_whole)
{
    struct engine *engine = open_engine(fixture);
    begin_with_conflict(fixture);
    struct shard_state here = shard_state(fixture->shard), state;
    EXPECT_OK(engine_shard_state(engine, 0, fixture->arena, &state));
    EXPECT(state.is_owned && state.runs > 0);
    EXPECT_EQ(state.range_id, here.range_id);
    EXPECT_EQ(state.runs, here.runs);
    EXPECT_EQ(state.transfers, here.transfers);
    EXPECT_EQ(state.transfers_held, here.transfers_held);
    EXPECT_EQ(state.has_unread_transfers, here.has_unread_transfers);
    EXPECT_EQ(state.wakeups, here.wakeups);
    EXPECT_EQ(state.wakeups_held, here.wakeups_held);
    EXPECT_EQ(state.wakeup_level, here.wakeup_level);
    EXPECT_KIND(engine_shard_state(engine, 1, fixture->arena, &state), ERR_BAD_REQUEST);
    EXPECT_OK(engine_close_shard(engine, 0, fixture->arena));
    EXPECT_EQ(shard_range_id(fixture->shard), 0);
    struct failing_decision *decisions;
    size_t count, total;
    EXPECT_OK(engine_list_failing(engine, 9, fixture->arena, &decisions, &count, &total));
    EXPECT(count == 0 && total == 0);
    close_engine(fixture, engine);
}

/* ---- for other clusters ---- */

SCENE_BY(MESSAGES_BYTES, batches_come_whole_and_so_does_what_they_lack)
{
    struct engine *engine = open_engine(fixture);
    struct source_history run = source_begin(fixture, "wf", "");
    struct replicated_events first = source_make(&run, 1, "sd");
    struct replicated_events second = source_make(&run, 1, "b");
    struct replicated_outcome outcome;
    EXPECT_OK(engine_apply_replicated(engine, &first, fixture->arena, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_APPLIED);
    struct replicated_events third = source_make(&run, 1, "c");
    EXPECT_OK(engine_apply_replicated(engine, &third, fixture->arena, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_LACKS);
    EXPECT_TEXT(outcome.gap.key.run_id, run.key.run_id);
    EXPECT(version_item_equal(outcome.gap.base, ITEM(2, 1)));
    EXPECT(version_item_equal(outcome.gap.end, ITEM(4, 1)));
    EXPECT_OK(engine_apply_replicated(engine, &second, fixture->arena, &outcome));
    EXPECT_OK(engine_apply_replicated(engine, &second, fixture->arena, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_KNOWN);
    STORE_API(ListRunsResponse) listed = CADENZA__ADMIN__V1__LIST_RUNS_RESPONSE__INIT;
    EXPECT_OK(
        engine_list_runs(engine, 0, west(fixture), (struct slice){0}, 10, fixture->arena, &listed));
    EXPECT_EQ(listed.n_runs, 1);
    EXPECT_TEXT(listed.runs[0]->run_id, run.key.run_id);
    EXPECT_EQ(listed.runs[0]->n_histories, 1);
    EXPECT_EQ(listed.runs[0]->histories[0]->items[0]->event_id, 3);
    EXPECT_EQ(listed.next_page_token.len, 0);
    close_engine(fixture, engine);
}

SCENE_BY(MESSAGES_BYTES, a_dead_letter_comes_whole_and_once)
{
    struct engine *engine = open_engine(fixture);
    struct dead_letters letters;
    STORED(DeadLetterRow) *letter =
        STORED_NEW(fixture->arena, dead_letter_row, .cause = "no such thing", .source_shard = 4);
    letter->task = presence_make_bytes(slice_text("\xff not a text"));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(engine_put_dead_letter(engine, 0, "west", 7, letter, fixture->arena));
    EXPECT_OK(engine_read_dead_letters(engine, 0, NULL, 0, 0, 0, fixture->arena, &letters));
    EXPECT_EQ(letters.count, 1);
    EXPECT_EQ(letters.letters[0].row, 7);
    EXPECT_TEXT(letters.letters[0].source, "west");
    EXPECT_TEXT(letters.letters[0].letter->cause, "no such thing");
    EXPECT_EQ(letters.letters[0].letter->source_shard, 4);
    EXPECT(slice_equal(presence_read_bytes(letters.letters[0].letter->task),
                       slice_text("\xff not a text")));
    EXPECT_OK(engine_forget_dead_letters(engine, 0, "west", 8, 9, fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DEAD_LETTER), 1);
    EXPECT_OK(engine_forget_dead_letters(engine, 0, "west", 0, 7, fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_DEAD_LETTER), 0);
    close_engine(fixture, engine);
}

SCENE_BY(MESSAGES_BYTES, what_a_cluster_has_not_read_comes_whole)
{
    struct engine *engine = open_engine(fixture);
    struct source_history run = source_begin(fixture, "wf", "");
    source_send(&run, 1, "sd");
    source_move(fixture, EAST);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    INTERNAL(ReplicationFrom) from = INTERNAL_VALUE(REPLICATION_FROM__INIT);
    INTERNAL(ReplicationFrom) * all[] = {&from};
    INTERNAL(ReplicationPoll) poll = INTERNAL_VALUE(REPLICATION_POLL__INIT);
    INTERNAL(ReplicationPages) pages = INTERNAL_VALUE(REPLICATION_PAGES__INIT);
    from.acknowledged = -1;
    poll.cluster = "west";
    poll.rows_max = 10;
    poll.bytes_max = 1 << 20;
    poll.shards = all;
    poll.n_shards = 1;
    EXPECT_OK(engine_poll_replication(engine, 0, &poll, fixture->arena, &pages));
    EXPECT_EQ(pages.n_pages, 1);
    const INTERNAL(ReplicationPage) *page = pages.pages[0];
    EXPECT(page->shard == 0 && page->n_tasks > 0 && page->last > 0 && page->resync_to == 0);
    ADMIN(ReplicationTask) *task = NULL;
    struct slice bytes = presence_read_bytes(page->tasks[0]);
    EXPECT_OK(message_decode(fixture->arena, ADMIN_TYPE(replication_task), bytes, &task));
    EXPECT(task->source_task_id > 0);
    from.after = (int64_t)page->last;
    int64_t begun = clock_monotonic();
    poll.wait = NS_PER_S;
    EXPECT_OK(engine_poll_replication(engine, 0, &poll, fixture->arena, &pages));
    EXPECT(pages.n_pages == 1 && pages.pages[0]->n_tasks == 0);
    EXPECT(clock_monotonic() - begun >= NS_PER_S);
    poll.cluster = "nobody";
    EXPECT_KIND(engine_poll_replication(engine, 0, &poll, fixture->arena, &pages), ERR_BAD_REQUEST);
    close_engine(fixture, engine);
}
