/* slow_sim_test.c - visibility that takes its time has lost nothing: a shard that hears of progress
 * begins nothing again.
 *
 * Method: a port that takes all and counts how often it is asked what visibility has; that happens
 * when a shard is taken, and when it believes that something got lost. */
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/test/shard_simulation.h"

#define STEP (4 * NS_PER_S) /* less than the delay after which a shard asks, two are more */

struct slow_visibility {
    uint64_t rows[8];
    unsigned given, beginnings, asked;
    uint64_t level; /* what it says it has */
};

static struct error *
slow_level(void *context, uint32_t shard, struct arena *arena, struct visible_level *level)
{
    struct slow_visibility *visibility = context;
    visibility->asked++;
    *level = (struct visible_level){.newest = visibility->level, .fed = visibility->level};
    return NULL;
}

static bool
slow_give(void *context, struct visibility_update *update)
{
    struct slow_visibility *visibility = context;
    visibility->beginnings += update->change.is_beginning;
    EXPECT(visibility->given < array_length(visibility->rows));
    visibility->rows[visibility->given++] = update->change.row;
    memory_free(update);
    return true;
}

static struct visibility_feed *
open_slow(struct shard_fixture *fixture, struct slow_visibility *visibility)
{
    *visibility = (struct slow_visibility){0};
    fixture->options.visibility =
        (struct visible_port){.level = slow_level, .give = slow_give, .context = visibility};
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    struct visibility_feed *feed = &fixture->shard->tenure->visibility_feed;
    shard_fixture_wait(feed->unread_from == 0);
    EXPECT_EQ(visibility->asked, 1);
    return feed;
}

static void
start(struct shard_fixture *fixture, const char *workflow_id)
{
    EXPECT_OK(shard_fixture_start(fixture, workflow_id, workflow_id, 1000, fixture->arena, NULL));
}

SHARD_TEST(visibility_feed, a_round_that_is_longer_than_the_patience_of_shards_is_no_loss, NULL, 0)
{
    struct slow_visibility visibility;
    open_slow(fixture, &visibility);
    static const char *const ids[] = {"one", "two", "three", "four"};
    for (size_t i = 0; i < array_length(ids); i++)
        start(fixture, ids[i]);
    for (size_t i = 0; i < array_length(ids); i++) {
        shard_fixture_sleep(STEP);
        shard_visibility_stored(fixture->shard, visibility.rows[i], 0);
    }
    shard_fixture_sleep(10 * STEP);
    EXPECT(visibility.asked == 1 && visibility.given == array_length(ids));
}

SHARD_TEST(visibility_feed, what_is_handed_over_after_a_pause_waits_from_then_on, NULL, 0)
{
    struct slow_visibility visibility;
    open_slow(fixture, &visibility);
    start(fixture, "one");
    shard_fixture_sleep(NS_PER_S);
    shard_visibility_stored(fixture->shard, visibility.rows[0], 0);
    shard_fixture_sleep(STEP - NS_PER_S / 2); /* soon it looks whether all is there */
    start(fixture, "two");
    shard_fixture_sleep(STEP);
    EXPECT(visibility.asked == 1 && visibility.given == 2);
    shard_visibility_stored(fixture->shard, visibility.rows[1], 0);
    shard_fixture_sleep(10 * STEP);
    EXPECT(visibility.asked == 1 && visibility.given == 2);
}

SHARD_TEST(visibility_feed, one_that_goes_on_is_not_stalled_any_more, "visibility_begun_again", 0)
{
    struct slow_visibility visibility;
    struct visibility_feed *feed = open_slow(fixture, &visibility);
    start(fixture, "one");
    start(fixture, "two");
    timer_stop(&feed->stall);
    feed->is_stalled = true; /* its timer was over, but the fiber has not seen it yet */
    shard_visibility_stored(fixture->shard, visibility.rows[0], 0);
    shard_fixture_sleep(STEP);
    EXPECT(visibility.asked == 1 && visibility.given == 2);
    visibility.level = visibility.rows[0];
    shard_fixture_sleep(STEP); /* but the rest does not come */
    EXPECT(visibility.asked == 2 && visibility.given == 3);
    EXPECT(visibility.rows[2] == visibility.rows[1] && visibility.beginnings == 0);
    shard_visibility_stored(fixture->shard, visibility.rows[1], 0);
}

/* Its rows are gone, so all would be handed over again. */
SHARD_TEST(visibility_feed, what_this_owner_handed_over_is_not_missed_before_it_can_have_come,
           "visible_rows_trimmed", 0)
{
    struct slow_visibility visibility;
    struct visibility_feed *feed = open_slow(fixture, &visibility);
    start(fixture, "one");
    shard_visibility_stored(fixture->shard, visibility.rows[0], visibility.rows[0]);
    start(fixture, "two");
    EXPECT_EQ(feed->trimmed, visibility.rows[0]);
    shard_fixture_sleep(2 * STEP); /* it asks, and visibility says that it has nothing */
    EXPECT(visibility.asked == 2 && visibility.given == 2);
    visibility.level = visibility.rows[1]; /* it has all of it */
    shard_fixture_wait(feed->unread_from == 0);
    EXPECT(visibility.beginnings == 0 && visibility.given == 2);
    EXPECT_EQ(feed->fed, visibility.rows[1]);
}
