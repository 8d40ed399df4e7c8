/* cases_recent.c - histories from memory: what the store has, once it has it, within bounds. */
#include "engine/shard/inside.h"
#include "engine/shard/recent.h"
#include "engine/test/shard_cases.h"

struct place {
    struct history_branch branch;
    int64_t next_event_id;
};

static void
look_place(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    (void)current;
    struct place *place = context;
    *place = (struct place){run_branch(run), run->core->next_event_id};
}

static struct place
find_place(struct shard_fixture *fixture, const char *workflow_id)
{
    struct place place = {0};
    struct run_key key = {fixture->domain_id, workflow_id, ""};
    EXPECT_OK(shard_look(fixture->shard, &key, look_place, &place, fixture->arena));
    return place;
}

static bool
recall(struct shard_fixture *fixture, const struct place *place, int64_t from, int64_t to,
       struct history_page *page)
{
    struct history_range_wanted wanted = {.lineage =
                                              history_lineage_root(&place->branch, fixture->arena),
                                          .from_event_id = from,
                                          .to_event_id = to};
    return shard_recall_history(fixture->shard, &wanted, fixture->arena, page);
}

static void
expect_as_stored(struct shard_fixture *fixture, const struct place *place, int64_t from)
{
    struct history_page page, stored;
    EXPECT(recall(fixture, place, from, place->next_event_id, &page));
    EXPECT_OK(store_read_history(fixture->store, PARTITION_OF_SHARD(fixture->options.number),
                                 &place->branch, from, place->next_event_id, 0, fixture->arena,
                                 &stored));
    EXPECT_EQ(page.count, stored.count);
    EXPECT_EQ(page.next_event_id, stored.next_event_id);
    for (size_t i = 0; i < page.count; i++) {
        EXPECT_EQ(page.node[i].first_event_id, stored.node[i].first_event_id);
        EXPECT_EQ(page.node[i].next_event_id, stored.node[i].next_event_id);
        EXPECT_EQ(page.node[i].sequence, stored.node[i].sequence);
        EXPECT(slice_equal(page.node[i].events, stored.node[i].events));
    }
}

void
case_a_history_that_was_just_written_is_recalled_as_it_is_stored(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    for (int i = 0; i < 5; i++)
        EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    struct place place = find_place(fixture, "wf");
    EXPECT_EQ(place.next_event_id, 8);
    for (int64_t from = 1; from < place.next_event_id; from++) /* 2 is inside a batch */
        expect_as_stored(fixture, &place, from);
    struct history_page page;
    EXPECT(recall(fixture, &place, 1, 4, &page));
    EXPECT_EQ(page.count, 2);
    EXPECT(!recall(fixture, &place, 1, place.next_event_id + 1, &page));
    shard_fixture_restart(fixture);
    EXPECT(!recall(fixture, &place, 1, place.next_event_id, &page)); /* nothing of another tenure */
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    place = find_place(fixture, "wf");
    EXPECT(!recall(fixture, &place, 1, place.next_event_id, &page));
    expect_as_stored(fixture, &place, place.next_event_id - 1);
}

static void
signal_one(void *argument)
{
    struct shard_fixture *fixture = argument;
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
}

void
case_what_is_not_durable_is_not_recalled(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct place place = find_place(fixture, "wf");
    struct history_page page;
    case_slow(fixture, 50 * NS_PER_MS);
    shard_fixture_spawn(fixture, signal_one, fixture);
    shard_fixture_wait(writer_newest(fixture->shard->tenure->writer) >
                       writer_durable(fixture->shard->tenure->writer));
    EXPECT(!recall(fixture, &place, 1, place.next_event_id + 1, &page));
    EXPECT(recall(fixture, &place, 1, place.next_event_id, &page));
    shard_fixture_join(fixture);
    EXPECT(recall(fixture, &place, 1, place.next_event_id + 1, &page));
}

void
case_histories_in_memory_are_bounded(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    struct recent *recent = &fixture->shard->tenure->recent;
    recent->bytes_max = 16384;
    struct history_page page;
    for (int i = 0; i < 50; i++) {
        const char *id = arena_format(fixture->arena, "wf-%d", i);
        EXPECT_OK(shard_fixture_start(fixture, id, "one", 100, fixture->arena, NULL));
        EXPECT(recent->bytes <= recent->bytes_max);
        struct place place = find_place(fixture, id);
        expect_as_stored(fixture, &place, 1);
    }
    struct place oldest = find_place(fixture, "wf-0");
    EXPECT(!recall(fixture, &oldest, 1, oldest.next_event_id, &page));
    for (int i = 0; i < 50; i++) /* one that grows keeps its end */
        EXPECT_OK(shard_fixture_signal(fixture, "wf-49", fixture->arena));
    struct place long_one = find_place(fixture, "wf-49");
    EXPECT(!recall(fixture, &long_one, 1, long_one.next_event_id, &page));
    expect_as_stored(fixture, &long_one, long_one.next_event_id - 3);
    struct place other = find_place(fixture, "wf-48");
    expect_as_stored(fixture, &other, 1); /* and leaves room for others */
}

void
case_the_history_of_a_run_that_closed_is_not_kept_in_memory(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    const struct recent *recent = &fixture->shard->tenure->recent;
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    EXPECT(recent->bytes > 0);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT_EQ(recent->bytes, 0);
}
