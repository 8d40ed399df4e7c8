/* cases_outbox.c - tasks are offered, started when durable, and their rows go exactly once. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

static void
start_one(void *argument)
{
    struct rig *rig = argument;
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
}

/* What is in it, and that its row goes with its start. */
static void
expect_task(struct rig *rig, const struct task *task)
{
    EXPECT_TEXT(task->workflow_id, "wf-2");
    EXPECT_TEXT(task->list, "list");
    EXPECT_TEXT(task->normal_list, "");
    EXPECT_TEXT(task->domain_id, rig->domain_id);
    EXPECT_EQ(task->type, TASK_DECISION);
    EXPECT_EQ(task->kind, LIST_NORMAL);
    EXPECT_EQ(task->schedule_id, 2);
    EXPECT_EQ(task->range_id, shard_range_id(rig->shard));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    EXPECT_OK(rig_start_decision(rig, task, "poll", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    EXPECT_OK(rig_start_decision(rig, task, "poll", rig->arena)); /* a repeat is the same start */
    EXPECT_KIND(rig_start_decision(rig, task, "other", rig->arena), ERR_EVENT_ALREADY_STARTED);
    EXPECT_EQ(map64_count(rig->shard->tenure->outbox.known), 0);
}

void
case_a_task_is_offered_at_once_and_started_when_its_step_is_durable(struct rig *rig)
{
    rig_take(rig);
    const struct writer *writer = rig->shard->tenure->writer;
    rig_wait(writer_newest(writer) > 0 && writer_durable(writer) == writer_newest(writer));
    case_slow(rig, 20 * NS_PER_MS);
    rig_spawn(rig, start_one, rig);
    rig_wait(rig->tasks.count == 1);
    EXPECT(!rig->was_durable_at_offer); /* the step's rows are still on their way */
    const struct task *task = rig->tasks.items[0];
    EXPECT_OK(rig_start_decision(rig, task, "first", rig->arena));
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4); /* and the step that records the start */
    rig_join(rig);
    EXPECT_OK(rig_start(rig, "wf-2", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 2);
    expect_task(rig, rig->tasks.items[1]);
}

void
case_a_refused_task_is_offered_again(struct rig *rig)
{
    rig->is_refusing = true;
    rig_take(rig);
    for (int i = 0; i < 100; i++)
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 100, rig->arena, NULL));
    rig_wait(rig->refused >= 200);
    EXPECT_EQ(rig->tasks.count, 0);
    rig->is_refusing = false;
    rig_wait(rig->tasks.count == 100);
    for (int i = 0; i < 100; i++) /* in their order, though some were refused more often */
        EXPECT_OK(rig_start_decision(rig, rig->tasks.items[i], "poll", rig->arena));
    EXPECT_EQ(rig->tasks.count, 100);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
}

void
case_a_lost_shard_offers_its_tasks_again(struct rig *rig)
{
    rig->options.is_alone = true;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    case_overtake(rig);
    EXPECT_KIND(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena),
                ERR_SHARD_OWNERSHIP_LOST);
    rig_wait(rig->tasks.count == 2);
    const struct task *old = rig->tasks.items[0], *task = rig->tasks.items[1];
    EXPECT_EQ(task->row, old->row);
    EXPECT(task->range_id > old->range_id);
    shard_task_done(rig->shard, old->range_id, old->row); /* a late word of the other range */
    EXPECT_EQ(map64_count(rig->shard->tenure->outbox.known), 1);
    EXPECT_KIND(rig_start_decision(rig, old, "poll", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT_OK(rig_start_decision(rig, task, "poll", rig->arena));
    shard_task_done(rig->shard, task->range_id, task->row); /* it is gone already */
    EXPECT_EQ(rig->shard->tenure->outbox.deletes.count, 0);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
}

void
case_rows_beyond_memory_are_read_later(struct rig *rig)
{
    enum { RUNS = 60 };
    rig->options.transfers_max = 8;
    rig_take(rig);
    for (int i = 0; i < RUNS; i++)
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 100, rig->arena, NULL));
    EXPECT_EQ(rig->tasks.count, 8);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), RUNS);
    for (size_t i = 0; i < RUNS; i++) {
        rig_wait(rig->tasks.count > i);
        EXPECT(map64_count(rig->shard->tenure->outbox.known) <= 12);
        EXPECT_OK(rig_start_decision(rig, rig->tasks.items[i], "poll", rig->arena));
    }
    EXPECT_EQ(rig->tasks.count, RUNS);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    for (size_t i = 1; i < RUNS; i++)
        EXPECT(rig->tasks.items[i]->row > rig->tasks.items[i - 1]->row);
    rig_wait(rig->shard->tenure->outbox.unread_from == 0); /* memory is enough again */
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    EXPECT_EQ(rig->tasks.count, RUNS + 1);
}

struct producer {
    struct rig *rig;
    int number;
};

static void
produce(void *argument)
{
    struct producer *producer = argument;
    struct rig *rig = producer->rig;
    for (int i = 0; i < 25; i++) {
        rig_sleep((int64_t)entropy_below(6 * NS_PER_MS));
        const char *id = arena_format(rig->arena, "wf-%d-%d", producer->number, i);
        EXPECT_OK(rig_start(rig, id, "one", 100, rig->arena, NULL));
    }
}

/* Starts go on while the store is scanned; commits are slower than scans. */
void
case_rows_that_come_while_others_are_read_are_not_lost(struct rig *rig)
{
    enum { PRODUCERS = 4, TASKS = PRODUCERS * 25 };
    rig->options.transfers_max = 4;
    rig_take(rig);
    memory_base_set_delays(rig->base, 4 * NS_PER_MS, 4 * NS_PER_MS, 2 * NS_PER_MS);
    struct producer producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){rig, i};
        rig_spawn(rig, produce, &producers[i]);
    }
    for (size_t i = 0; i < TASKS; i++) {
        rig_wait(rig->tasks.count > i);
        struct task *task = rig->tasks.items[i];
        shard_task_done(rig->shard, task->range_id, task->row);
        EXPECT(i == 0 || task->row > rig->tasks.items[i - 1]->row);
    }
    rig_join(rig);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 0);
    EXPECT_EQ(rig->tasks.count, TASKS);
}

void
case_a_row_that_is_done_goes_by_itself(struct rig *rig)
{
    rig_take(rig);
    for (int i = 0; i < 10; i++)
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 10);
    for (int i = 0; i < 5; i++)
        shard_task_done(rig->shard, rig->tasks.items[i]->range_id, rig->tasks.items[i]->row);
    shard_task_done(rig->shard, rig->tasks.items[0]->range_id, rig->tasks.items[0]->row);
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 10);
    rig_wait(rig_rows(rig, ROW_TRANSFER) == 5); /* in a batch of their own */
    for (int i = 5; i < 9; i++)
        shard_task_done(rig->shard, rig->tasks.items[i]->range_id, rig->tasks.items[i]->row);
    EXPECT_OK(rig_signal(rig, "wf-1", rig->arena)); /* they go with it */
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    shard_task_done(rig->shard, rig->tasks.items[9]->range_id, rig->tasks.items[9]->row);
    rig_restart(rig); /* closing takes the last one along */
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    EXPECT_EQ(rig->tasks.count, 0);
}

void
case_the_task_of_a_closed_run_goes_with_it(struct rig *rig)
{
    rig->is_refusing = true;
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 1);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 1);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 1); /* of its deletion */
    EXPECT_EQ(map64_count(rig->shard->tenure->outbox.known), 0);
    rig->is_refusing = false;
    rig_sleep(150 * NS_PER_MS);
    EXPECT_EQ(rig->tasks.count, 0);
}

/* The record says below which number there are no rows; the batch that it goes with has one. */
void
case_a_row_written_with_the_shard_record_is_found_again(struct rig *rig)
{
    rig_take(rig);
    rig_sleep(5 * NS_PER_MS);
    rig->shard->tenure->is_record_due = true; /* as it is after a minute */
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    rig_restart(rig);
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_TRANSFER), 0);
}

static const struct task *
offer_row(struct rig *rig, STORED(TransferRow) *transfer)
{
    struct tenure *tenure = rig->shard->tenure;
    struct transfer_effect added = {.row = tenure->ids.next++, .transfer = transfer};
    struct effects effects = {.added = &added, .added_count = 1};
    size_t before = rig->tasks.count;
    outbox_enter(tenure, &effects, 0);
    outbox_release(tenure, 0);
    EXPECT_EQ(rig->tasks.count, before + 1);
    return rig->tasks.items[before];
}

void
case_a_task_goes_to_the_list_of_its_domain_and_is_sticky_only_with_another_list(struct rig *rig)
{
    rig_take(rig);
    rig_sleep(5 * NS_PER_MS);
    STORED(TransferRow) *row = message_new(rig->arena, STORED_TYPE(transfer_row));
    row->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY;
    row->domain_id = "one", row->workflow_id = "wf", row->run_id = "run";
    row->task_list = message_new(rig->arena, API_TYPE(task_list));
    row->task_list->name = "list";
    EXPECT_TEXT(offer_row(rig, row)->domain_id, "one");
    row->list_domain_id = "two";
    row->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    const struct task *task = offer_row(rig, row);
    EXPECT_TEXT(task->domain_id, "two");
    EXPECT_TEXT(task->run_domain_id, "one");
    EXPECT_EQ(task->kind, LIST_NORMAL);
    row->normal_list = "normal";
    EXPECT_EQ(offer_row(rig, row)->kind, LIST_STICKY);
}
