/* cases_recent.c - histories from memory: what the store has, once it has it, within bounds. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"

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
find_place(struct rig *rig, const char *workflow_id)
{
    struct place place = {0};
    struct run_key key = {rig->domain_id, workflow_id, ""};
    EXPECT_OK(shard_look(rig->shard, &key, look_place, &place, rig->arena));
    return place;
}

static bool
recall(struct rig *rig, const struct place *place, int64_t from, int64_t to,
       struct history_page *page)
{
    struct history_range_wanted wanted = {.line = history_line_root(&place->branch, rig->arena),
                                          .from_event_id = from,
                                          .to_event_id = to};
    return shard_recall_history(rig->shard, &wanted, rig->arena, page);
}

static void
expect_as_stored(struct rig *rig, const struct place *place, int64_t from)
{
    struct history_page page, stored;
    EXPECT(recall(rig, place, from, place->next_event_id, &page));
    EXPECT_OK(store_read_history(rig->store, PARTITION_OF_SHARD(rig->options.number),
                                 &place->branch, from, place->next_event_id, 0, rig->arena,
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
case_a_history_that_was_just_written_is_recalled_as_it_is_stored(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    for (int i = 0; i < 5; i++)
        EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    struct place place = find_place(rig, "wf");
    EXPECT_EQ(place.next_event_id, 8);
    for (int64_t from = 1; from < place.next_event_id; from++) /* 2 is inside a batch */
        expect_as_stored(rig, &place, from);
    struct history_page page;
    EXPECT(recall(rig, &place, 1, 4, &page));
    EXPECT_EQ(page.count, 2);
    EXPECT(!recall(rig, &place, 1, place.next_event_id + 1, &page));
    rig_restart(rig);
    EXPECT(!recall(rig, &place, 1, place.next_event_id, &page)); /* nothing of another tenure */
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    place = find_place(rig, "wf");
    EXPECT(!recall(rig, &place, 1, place.next_event_id, &page));
    expect_as_stored(rig, &place, place.next_event_id - 1);
}

static void
signal_one(void *argument)
{
    struct rig *rig = argument;
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
}

void
case_what_is_not_durable_is_not_recalled(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct place place = find_place(rig, "wf");
    struct history_page page;
    case_slow(rig, 50 * NS_PER_MS);
    rig_spawn(rig, signal_one, rig);
    rig_wait(writer_newest(rig->shard->tenure->writer) >
             writer_durable(rig->shard->tenure->writer));
    EXPECT(!recall(rig, &place, 1, place.next_event_id + 1, &page));
    EXPECT(recall(rig, &place, 1, place.next_event_id, &page));
    rig_join(rig);
    EXPECT(recall(rig, &place, 1, place.next_event_id + 1, &page));
}

void
case_histories_in_memory_are_bounded(struct rig *rig)
{
    rig_take(rig);
    struct recent *recent = &rig->shard->tenure->recent;
    recent->bytes_max = 16384;
    struct history_page page;
    for (int i = 0; i < 50; i++) {
        const char *id = arena_format(rig->arena, "wf-%d", i);
        EXPECT_OK(rig_start(rig, id, "one", 100, rig->arena, NULL));
        EXPECT(recent->bytes <= recent->bytes_max);
        struct place place = find_place(rig, id);
        expect_as_stored(rig, &place, 1);
    }
    struct place oldest = find_place(rig, "wf-0");
    EXPECT(!recall(rig, &oldest, 1, oldest.next_event_id, &page));
    for (int i = 0; i < 50; i++) /* one that grows keeps its end */
        EXPECT_OK(rig_signal(rig, "wf-49", rig->arena));
    struct place long_one = find_place(rig, "wf-49");
    EXPECT(!recall(rig, &long_one, 1, long_one.next_event_id, &page));
    expect_as_stored(rig, &long_one, long_one.next_event_id - 3);
    struct place other = find_place(rig, "wf-48");
    expect_as_stored(rig, &other, 1); /* and leaves room for others */
}

void
case_the_history_of_a_run_that_closed_is_not_kept_in_memory(struct rig *rig)
{
    rig_take(rig);
    const struct recent *recent = &rig->shard->tenure->recent;
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    EXPECT(recent->bytes > 0);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT_EQ(recent->bytes, 0);
}
