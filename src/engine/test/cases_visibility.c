/* cases_visibility.c - what visibility is fed: in order, once durable, again until they are safe.
 */
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "wire/message.h"

/* Lists that a case looks into. */
struct fake_visibility {
    struct shard_fixture *fixture;
    uint64_t level; /* what they say they have */
    bool is_full;
    unsigned refused, given, beginnings;
    uint64_t last_row;
    unsigned opened, closed; /* runs that were handed over as such */
};

static struct error *
feed_level(void *context, uint32_t shard, struct arena *arena, struct visible_level *level)
{
    const struct fake_visibility *visibility = context;
    EXPECT_EQ(shard, 1);
    *level = (struct visible_level){.newest = visibility->level, .fed = visibility->level};
    return NULL;
}

static void
feed_take(struct fake_visibility *visibility, const struct visible_change *change)
{
    visibility->beginnings += change->is_beginning;
    EXPECT(change->is_beginning || change->row > visibility->last_row);
    visibility->last_row = change->row;
    if (change->is_beginning)
        return;
    visibility->given++;
    API(WorkflowExecutionInfo) *info = NULL;
    EXPECT_OK(message_decode_as(visibility->fixture->arena, ERR_INTERNAL,
                                API_TYPE(workflow_execution_info), change->info, &info));
    EXPECT_TEXT(info->workflow_execution->workflow_id, change->workflow_id);
    EXPECT_EQ(change->num_clusters, 1);
    visibility->closed += info->close_status != 0;
    visibility->opened += info->close_status == 0;
}

static bool
feed_give(void *context, struct visibility_update *update)
{
    struct fake_visibility *visibility = context;
    visibility->refused += visibility->is_full;
    if (visibility->is_full)
        return false;
    feed_take(visibility, &update->change);
    memory_free(update);
    return true;
}

static void
feed_open_port(struct fake_visibility *visibility, struct shard_fixture *fixture)
{
    *visibility = (struct fake_visibility){.fixture = fixture};
    fixture->options.visibility =
        (struct visible_port){.level = feed_level, .give = feed_give, .context = visibility};
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
}

void
case_lists_are_told_what_a_durable_step_shows(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    EXPECT(visibility.given == 1 && visibility.opened == 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 1);
    EXPECT_OK(
        shard_fixture_signal(fixture, "wf", fixture->arena)); /* nothing that visibility shows */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 1);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT(visibility.given == 2 && visibility.closed == 1);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 2);
}

void
case_what_lists_have_no_room_for_is_read_later(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    visibility.is_full = true;
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_terminate(fixture, "one", fixture->arena));
    EXPECT(visibility.given == 0 && visibility.refused > 0);
    visibility.is_full = false;
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    EXPECT_EQ(visibility.given, 3); /* the first row shows the run as it is now: closed */
    EXPECT(visibility.closed == 2 && visibility.opened == 1);
    EXPECT_OK(shard_fixture_terminate(fixture, "two", fixture->arena));
    EXPECT_EQ(visibility.given, 4);
}

void
case_what_got_lost_on_its_way_to_lists_is_read_again(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    struct visibility_feed *feed = &fixture->shard->tenure->visibility_feed;
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    uint64_t first = visibility.last_row;
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_start(fixture, "three", "three", 100, fixture->arena, NULL));
    EXPECT(timer_is_pending(&feed->stall));
    shard_visibility_stored(fixture->shard, first, 0);
    visibility.level = visibility.last_row = first; /* it has nothing of what came behind */
    visibility.given = 0;
    feed->is_stalled = true; /* so much time went by */
    fiber_cond_broadcast(&feed->changed);
    shard_fixture_wait(!feed->is_stalled && feed->unread_from == 0);
    EXPECT(visibility.given == 2 && visibility.beginnings == 0);
    shard_visibility_stored(fixture->shard, visibility.last_row, 0);
    EXPECT_OK(shard_visibility_wait(fixture->shard, fixture->arena));
    feed->is_stalled = true; /* all is there: nothing is told again */
    fiber_cond_broadcast(&feed->changed);
    shard_fixture_wait(!feed->is_stalled && feed->unread_from == 0);
    EXPECT_EQ(visibility.given, 2);
}

void
case_the_next_owner_hands_over_what_lists_do_not_have(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    visibility.level = visibility.last_row; /* the second one is lost on its way */
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    visibility.given = 0;
    visibility.last_row = visibility.level;
    shard_fixture_restart(fixture);
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    EXPECT(visibility.given == 1 && visibility.beginnings == 0);
}

/* Rows go only when visibility would keep what they say. */
void
case_rows_for_lists_go_when_they_are_safe(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    uint64_t first = visibility.last_row;
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    shard_visibility_stored(fixture->shard, visibility.last_row, 0); /* fed, not safe */
    EXPECT_OK(shard_fixture_signal(fixture, "one", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 2);
    shard_visibility_stored(fixture->shard, visibility.last_row, first);
    EXPECT_OK(shard_fixture_signal(fixture, "one", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 1);
}

/* Visibility was lost after rows had gone: all runs come again, and what is done meanwhile too. */
void
case_visibility_that_lacks_rows_which_are_gone_is_rebuilt(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_terminate(fixture, "two", fixture->arena));
    shard_visibility_stored(fixture->shard, visibility.last_row, visibility.last_row);
    EXPECT_OK(shard_fixture_signal(fixture, "one", fixture->arena));
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_VISIBLE), 0);
    visibility = (struct fake_visibility){.fixture = fixture};
    shard_fixture_restart(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "three", "three", 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    EXPECT_EQ(visibility.beginnings, 1);
    EXPECT_EQ(visibility.closed, 1);
    EXPECT(visibility.opened == 2 ||
           visibility.opened == 3); /* "three" may be found in both ways */
    uint64_t given = visibility.given;
    visibility.level = visibility.last_row; /* they have all of it: nothing is told twice */
    shard_fixture_restart(fixture);
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    EXPECT_EQ(visibility.given, given);
}

/* Until the last run was handed over visibility is not whole, whatever the owner knew. */
void
case_visibility_that_was_rebuilt_in_part_is_begun_again(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    visibility = (struct fake_visibility){.fixture = fixture};
    fixture->shard->tenure->visibility_feed.rebuilds_wanted++;
    fiber_cond_broadcast(&fixture->shard->tenure->visibility_feed.changed);
    shard_fixture_wait(visibility.given == 2);
    visibility.level = visibility.last_row - 1; /* the last one got lost with a crash */
    visibility.given = visibility.last_row = 0;
    shard_fixture_restart(fixture);
    shard_fixture_wait(visibility.given == 2);
    EXPECT_EQ(visibility.beginnings, 2);
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    shard_visibility_stored(fixture->shard, visibility.last_row, visibility.last_row);
    EXPECT_OK(shard_visibility_wait(fixture->shard, fixture->arena));
    EXPECT_EQ(fixture->shard->tenure->visibility_feed.rebuilt_runs, 2);
}

/* Somebody put an old copy of the store beside visibility of a later time. */
void
case_visibility_of_a_time_that_has_not_been_is_rebuilt(struct shard_fixture *fixture)
{
    struct fake_visibility visibility;
    feed_open_port(&visibility, fixture);
    EXPECT_OK(shard_fixture_start(fixture, "one", "one", 100, fixture->arena, NULL));
    visibility.level = UINT64_MAX / 2;
    shard_fixture_restart(fixture);
    shard_fixture_wait(fixture->shard->tenure->visibility_feed.unread_from == 0);
    EXPECT_EQ(visibility.beginnings, 1);
    EXPECT_OK(shard_fixture_start(fixture, "two", "two", 100, fixture->arena, NULL));
    EXPECT_EQ(visibility.opened, 3); /* "one" twice */
}
