/* cases_visible.c - what lists are told: in order, once durable, again until they are safe. */
#include "base/memory.h"
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "wire/message.h"

/* Lists that a case looks into. */
struct lists {
    struct rig *rig;
    uint64_t level; /* what they say they have */
    bool is_full;
    unsigned refused, given, beginnings;
    uint64_t last_row;
    unsigned opened, closed; /* runs that were handed over as such */
};

static struct error *
lists_level(void *context, uint32_t shard, struct arena *arena, uint64_t *row)
{
    const struct lists *lists = context;
    EXPECT_EQ(shard, 1);
    *row = lists->level;
    return NULL;
}

static void
lists_take(struct lists *lists, const struct visible_change *change)
{
    lists->beginnings += change->is_beginning;
    EXPECT(change->is_beginning || change->row > lists->last_row);
    lists->last_row = change->row;
    if (change->is_beginning)
        return;
    lists->given++;
    API(WorkflowExecutionInfo) *info = NULL;
    EXPECT_OK(message_decode_as(lists->rig->arena, ERR_INTERNAL, API_TYPE(workflow_execution_info),
                                change->info, &info));
    EXPECT_TEXT(info->workflow_execution->workflow_id, change->workflow_id);
    EXPECT_EQ(change->num_clusters, 1);
    lists->closed += info->close_status != 0;
    lists->opened += info->close_status == 0;
}

static bool
lists_give(void *context, struct visible_parcel *parcel)
{
    struct lists *lists = context;
    lists->refused += lists->is_full;
    if (lists->is_full)
        return false;
    lists_take(lists, &parcel->change);
    memory_free(parcel);
    return true;
}

static void
lists_open(struct lists *lists, struct rig *rig)
{
    *lists = (struct lists){.rig = rig};
    rig->options.lists =
        (struct visible_port){.level = lists_level, .give = lists_give, .context = lists};
    rig->options.is_alone = true;
    rig_take(rig);
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
}

void
case_lists_are_told_what_a_durable_step_shows(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    EXPECT(lists.given == 1 && lists.opened == 1);
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 1);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena)); /* nothing that lists show */
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 1);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT(lists.given == 2 && lists.closed == 1);
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 2);
}

void
case_what_lists_have_no_room_for_is_read_later(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    lists.is_full = true;
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    EXPECT_OK(rig_terminate(rig, "one", rig->arena));
    EXPECT(lists.given == 0 && lists.refused > 0);
    lists.is_full = false;
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    EXPECT_EQ(lists.given, 3); /* the first row shows the run as it is now: closed */
    EXPECT(lists.closed == 2 && lists.opened == 1);
    EXPECT_OK(rig_terminate(rig, "two", rig->arena));
    EXPECT_EQ(lists.given, 4);
}

void
case_the_next_owner_hands_over_what_lists_do_not_have(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    lists.level = lists.last_row; /* the second one is lost on its way */
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    lists.given = 0;
    lists.last_row = lists.level;
    rig_restart(rig);
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    EXPECT(lists.given == 1 && lists.beginnings == 0);
}

/* Rows go only when the lists would keep what they say. */
void
case_rows_for_lists_go_when_they_are_safe(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    uint64_t first = lists.last_row;
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    shard_visible_told(rig->shard, lists.last_row, 0); /* fed, not safe */
    EXPECT_OK(rig_signal(rig, "one", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 2);
    shard_visible_told(rig->shard, lists.last_row, first);
    EXPECT_OK(rig_signal(rig, "one", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 1);
}

/* The lists were lost after rows had gone: all runs come anew, and what is done meanwhile too. */
void
case_lists_that_lack_rows_which_are_gone_are_made_anew(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    EXPECT_OK(rig_terminate(rig, "two", rig->arena));
    shard_visible_told(rig->shard, lists.last_row, lists.last_row);
    EXPECT_OK(rig_signal(rig, "one", rig->arena));
    EXPECT_EQ(rig_rows(rig, ROW_VISIBLE), 0);
    lists = (struct lists){.rig = rig};
    rig_restart(rig);
    EXPECT_OK(rig_start(rig, "three", "three", 100, rig->arena, NULL));
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    EXPECT_EQ(lists.beginnings, 1);
    EXPECT_EQ(lists.closed, 1);
    EXPECT(lists.opened == 2 || lists.opened == 3); /* "three" may be found in both ways */
    uint64_t given = lists.given;
    lists.level = lists.last_row; /* they have all of it: nothing is told twice */
    rig_restart(rig);
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    EXPECT_EQ(lists.given, given);
}

/* Until the last run was handed over the lists are not whole, whatever the owner knew. */
void
case_lists_that_were_made_anew_in_part_are_begun_again(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    lists = (struct lists){.rig = rig};
    rig->shard->tenure->visible.rebuilds_wanted++;
    fiber_cond_broadcast(&rig->shard->tenure->visible.changed);
    rig_wait(lists.given == 2);
    lists.level = lists.last_row - 1; /* the last one got lost with a crash */
    lists.given = lists.last_row = 0;
    rig_restart(rig);
    rig_wait(lists.given == 2);
    EXPECT_EQ(lists.beginnings, 2);
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    shard_visible_told(rig->shard, lists.last_row, lists.last_row);
    EXPECT_OK(shard_visible_wait(rig->shard, rig->arena));
    EXPECT_EQ(rig->shard->tenure->visible.rebuilt_runs, 2);
}

/* Somebody put an old copy of the store beside lists of a later time. */
void
case_lists_of_a_time_that_has_not_been_are_made_anew(struct rig *rig)
{
    struct lists lists;
    lists_open(&lists, rig);
    EXPECT_OK(rig_start(rig, "one", "one", 100, rig->arena, NULL));
    lists.level = UINT64_MAX / 2;
    rig_restart(rig);
    rig_wait(rig->shard->tenure->visible.unread_from == 0);
    EXPECT_EQ(lists.beginnings, 1);
    EXPECT_OK(rig_start(rig, "two", "two", 100, rig->arena, NULL));
    EXPECT_EQ(lists.opened, 3); /* "one" twice */
}
