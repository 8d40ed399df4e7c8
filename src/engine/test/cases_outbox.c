/* cases_outbox.c - tasks are offered, started when durable, and their rows go exactly once. */
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

static void
start_one(void *argument)
{
    struct shard_fixture *fixture = argument;
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
}

/* What is in it, and that its row goes with its start. */
static void
expect_task(struct shard_fixture *fixture, const struct task *task)
{
    EXPECT_TEXT(task->workflow_id, "wf-2");
    EXPECT_TEXT(task->list, "list");
    EXPECT_TEXT(task->normal_list, "");
    EXPECT_TEXT(task->domain_id, fixture->domain_id);
    EXPECT_EQ(task->type, TASK_DECISION);
    EXPECT_EQ(task->kind, LIST_NORMAL);
    EXPECT_EQ(task->schedule_id, 2);
    EXPECT_EQ(task->range_id, shard_range_id(fixture->shard));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "poll", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "poll",
                                           fixture->arena)); /* a repeat is the same start */
    EXPECT_KIND(shard_fixture_start_decision(fixture, task, "other", fixture->arena),
                ERR_EVENT_ALREADY_STARTED);
    EXPECT_EQ(map64_count(fixture->shard->tenure->outbox.known), 0);
}

void
case_a_task_is_offered_at_once_and_started_when_its_step_is_durable(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    const struct writer *writer = fixture->shard->tenure->writer;
    shard_fixture_wait(writer_newest(writer) > 0 &&
                       writer_durable(writer) == writer_newest(writer));
    case_slow(fixture, 20 * NS_PER_MS);
    shard_fixture_spawn(fixture, start_one, fixture);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT(!fixture->was_durable_at_offer); /* the step's rows are still on their way */
    const struct task *task = fixture->tasks.items[0];
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "first", fixture->arena));
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"),
              4); /* and the step that records the start */
    shard_fixture_join(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf-2", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 2);
    expect_task(fixture, fixture->tasks.items[1]);
}

void
case_a_refused_task_is_offered_again(struct shard_fixture *fixture)
{
    fixture->is_refusing = true;
    shard_fixture_take(fixture);
    for (int i = 0; i < 100; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 100,
                                      fixture->arena, NULL));
    shard_fixture_wait(fixture->refused >= 200);
    EXPECT_EQ(fixture->tasks.count, 0);
    fixture->is_refusing = false;
    shard_fixture_wait(fixture->tasks.count == 100);
    for (int i = 0; i < 100; i++) /* in their order, though some were refused more often */
        EXPECT_OK(
            shard_fixture_start_decision(fixture, fixture->tasks.items[i], "poll", fixture->arena));
    EXPECT_EQ(fixture->tasks.count, 100);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
}

void
case_a_lost_shard_offers_its_tasks_again(struct shard_fixture *fixture)
{
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    case_overtake(fixture);
    EXPECT_KIND(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena),
        ERR_SHARD_OWNERSHIP_LOST);
    shard_fixture_wait(fixture->tasks.count == 2);
    const struct task *old = fixture->tasks.items[0], *task = fixture->tasks.items[1];
    EXPECT_EQ(task->row, old->row);
    EXPECT(task->range_id > old->range_id);
    shard_task_done(fixture->shard, old->range_id, old->row); /* a late word of the other range */
    EXPECT_EQ(map64_count(fixture->shard->tenure->outbox.known), 1);
    EXPECT_KIND(shard_fixture_start_decision(fixture, old, "poll", fixture->arena),
                ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "poll", fixture->arena));
    shard_task_done(fixture->shard, task->range_id, task->row); /* it is gone already */
    EXPECT_EQ(fixture->shard->tenure->outbox.deletes.count, 0);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
}

void
case_rows_beyond_memory_are_read_later(struct shard_fixture *fixture)
{
    enum { RUNS = 60 };
    fixture->options.transfers_max = 8;
    shard_fixture_take(fixture);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 100,
                                      fixture->arena, NULL));
    EXPECT_EQ(fixture->tasks.count, 8);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), RUNS);
    for (size_t i = 0; i < RUNS; i++) {
        shard_fixture_wait(fixture->tasks.count > i);
        EXPECT(map64_count(fixture->shard->tenure->outbox.known) <= 12);
        EXPECT_OK(
            shard_fixture_start_decision(fixture, fixture->tasks.items[i], "poll", fixture->arena));
    }
    EXPECT_EQ(fixture->tasks.count, RUNS);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    for (size_t i = 1; i < RUNS; i++)
        EXPECT(fixture->tasks.items[i]->row > fixture->tasks.items[i - 1]->row);
    shard_fixture_wait(fixture->shard->tenure->outbox.unread_from ==
                       0); /* memory is enough again */
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    EXPECT_EQ(fixture->tasks.count, RUNS + 1);
}

struct producer {
    struct shard_fixture *fixture;
    int number;
};

static void
produce(void *argument)
{
    struct producer *producer = argument;
    struct shard_fixture *fixture = producer->fixture;
    for (int i = 0; i < 25; i++) {
        shard_fixture_sleep((int64_t)entropy_below(6 * NS_PER_MS));
        const char *id = arena_format(fixture->arena, "wf-%d-%d", producer->number, i);
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 100, fixture->arena, NULL));
    }
}

/* Starts go on while the store is scanned; commits are slower than scans. */
void
case_rows_that_come_while_others_are_read_are_not_lost(struct shard_fixture *fixture)
{
    enum { PRODUCERS = 4, TASKS = PRODUCERS * 25 };
    fixture->options.transfers_max = 4;
    shard_fixture_take(fixture);
    memory_base_set_delays(fixture->base, 4 * NS_PER_MS, 4 * NS_PER_MS, 2 * NS_PER_MS);
    struct producer producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){fixture, i};
        shard_fixture_spawn(fixture, produce, &producers[i]);
    }
    for (size_t i = 0; i < TASKS; i++) {
        shard_fixture_wait(fixture->tasks.count > i);
        struct task *task = fixture->tasks.items[i];
        shard_task_done(fixture->shard, task->range_id, task->row);
        EXPECT(i == 0 || task->row > fixture->tasks.items[i - 1]->row);
    }
    shard_fixture_join(fixture);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) == 0);
    EXPECT_EQ(fixture->tasks.count, TASKS);
}

void
case_a_row_that_is_done_goes_by_itself(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 100,
                                      fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 10);
    for (int i = 0; i < 5; i++)
        shard_task_done(fixture->shard, fixture->tasks.items[i]->range_id,
                        fixture->tasks.items[i]->row);
    shard_task_done(fixture->shard, fixture->tasks.items[0]->range_id,
                    fixture->tasks.items[0]->row);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 10);
    shard_fixture_wait(shard_fixture_rows(fixture, ROW_TRANSFER) ==
                       5); /* in a batch of their own */
    for (int i = 5; i < 9; i++)
        shard_task_done(fixture->shard, fixture->tasks.items[i]->range_id,
                        fixture->tasks.items[i]->row);
    EXPECT_OK(shard_fixture_signal(fixture, "wf-1", fixture->arena)); /* they go with it */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    shard_task_done(fixture->shard, fixture->tasks.items[9]->range_id,
                    fixture->tasks.items[9]->row);
    shard_fixture_restart(fixture); /* closing takes the last one along */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    EXPECT_EQ(fixture->tasks.count, 0);
}

void
case_the_task_of_a_closed_run_goes_with_it(struct shard_fixture *fixture)
{
    fixture->is_refusing = true;
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 1);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 1); /* of its deletion */
    EXPECT_EQ(map64_count(fixture->shard->tenure->outbox.known), 0);
    fixture->is_refusing = false;
    shard_fixture_sleep(150 * NS_PER_MS);
    EXPECT_EQ(fixture->tasks.count, 0);
}

/* The record says below which number there are no rows; the batch that it goes with has one. */
void
case_a_row_written_with_the_shard_record_is_found_again(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    shard_fixture_sleep(5 * NS_PER_MS);
    fixture->shard->tenure->is_record_due = true; /* as it is after a minute */
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    shard_fixture_restart(fixture);
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TRANSFER), 0);
}

static const struct task *
offer_row(struct shard_fixture *fixture, STORED(TransferRow) *transfer)
{
    struct tenure *tenure = fixture->shard->tenure;
    struct transfer_effect added = {.row = tenure->ids.next++, .transfer = transfer};
    struct effects effects = {.added = &added, .added_count = 1};
    size_t before = fixture->tasks.count;
    outbox_enter(tenure, &effects, 0);
    outbox_release(tenure, 0);
    EXPECT_EQ(fixture->tasks.count, before + 1);
    return fixture->tasks.items[before];
}

void
case_a_task_goes_to_the_list_of_its_domain_and_is_sticky_only_with_another_list(
    struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    shard_fixture_sleep(5 * NS_PER_MS);
    STORED(TransferRow) *row =
        STORED_NEW(fixture->arena, transfer_row,
                   .type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY);
    row->domain_id = "one", row->workflow_id = "wf", row->run_id = "run";
    row->task_list = API_NEW(fixture->arena, task_list, .name = "list");
    EXPECT_TEXT(offer_row(fixture, row)->domain_id, "one");
    row->list_domain_id = "two";
    row->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    const struct task *task = offer_row(fixture, row);
    EXPECT_TEXT(task->domain_id, "two");
    EXPECT_TEXT(task->run_domain_id, "one");
    EXPECT_EQ(task->kind, LIST_NORMAL);
    row->normal_list = "normal";
    EXPECT_EQ(offer_row(fixture, row)->kind, LIST_STICKY);
}
