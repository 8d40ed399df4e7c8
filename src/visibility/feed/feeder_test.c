/* feeder_test.c - what shards hand over comes into the lists: in order, once, also when writing
 * fails for a while; and no more of it is in memory than there may be.
 *
 * Method: an engine that fails when it is told to, and a port that notes what a shard is told. */
#include "visibility/feed/feeder.h"

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/test_loops.h"
#include "store/memory/memory.h"
#include "visibility/engine.h"
#include "visibility/feed/inside.h"

#define MS 1000000LL

struct feeder_fixture {
    struct visibility visibility; /* an engine of its own */
    struct memory_base *base;
    struct store *store;
    struct registry *registry;
    struct feeder *feeder;
    bool is_failing;
    unsigned transactions, transactions_max; /* begun; one more has to wait. 0: none has */
    unsigned failures, beginnings;
    uint64_t rows, last_row; /* fed */
    uint64_t reported_fed, reported_safe;
};

static struct feeder_fixture *
feeder_fixture_of(struct visibility *visibility)
{
    return container_of(visibility, struct feeder_fixture, visibility);
}

static struct error *
fail(struct feeder_fixture *feeder_fixture, struct arena *arena)
{
    feeder_fixture->failures++;
    return error_new(arena, ERR_IO, "the disk is full");
}

static void
pause_ms(int64_t count)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(count * MS, arena));
}

static struct error *
feeder_fixture_feed(struct visibility *visibility, const struct visibility_change *changes,
                    size_t count, const struct attribute_set *attributes, struct arena *arena)
{
    struct feeder_fixture *feeder_fixture = feeder_fixture_of(visibility);
    if (feeder_fixture->is_failing)
        return fail(feeder_fixture, arena);
    feeder_fixture->transactions++;
    while (feeder_fixture->transactions > feeder_fixture->transactions_max &&
           feeder_fixture->transactions_max > 0)
        pause_ms(1);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(changes[i].row, feeder_fixture->last_row + 1);
        EXPECT_TEXT(changes[i].run_id, "run");
        feeder_fixture->last_row = changes[i].row;
    }
    feeder_fixture->rows += count;
    return NULL;
}

static struct error *
feeder_fixture_sync(struct visibility *visibility, struct arena *arena)
{
    return NULL;
}

static struct error *
feeder_fixture_forget(struct visibility *visibility, uint32_t shard, uint64_t level,
                      struct arena *arena)
{
    struct feeder_fixture *feeder_fixture = feeder_fixture_of(visibility);
    EXPECT_EQ(level, feeder_fixture->last_row); /* what came before was fed before */
    feeder_fixture->beginnings++;
    return NULL;
}

static struct error *
feeder_fixture_level(struct visibility *visibility, uint32_t shard, struct arena *arena,
                     uint64_t *row)
{
    *row = feeder_fixture_of(visibility)->last_row;
    return NULL;
}

static const struct visibility_engine engine = {.name = "bench",
                                                .feed = feeder_fixture_feed,
                                                .level = feeder_fixture_level,
                                                .sync = feeder_fixture_sync,
                                                .forget = feeder_fixture_forget};

static void
on_fed(void *context, uint32_t shard, uint64_t fed, uint64_t safe)
{
    struct feeder_fixture *feeder_fixture = context;
    EXPECT(fed >= feeder_fixture->reported_fed && safe >= feeder_fixture->reported_safe &&
           safe <= fed);
    feeder_fixture->reported_fed = fed;
    feeder_fixture->reported_safe = safe;
}

static void
feeder_fixture_open(struct feeder_fixture *feeder_fixture, struct arena *arena)
{
    *feeder_fixture =
        (struct feeder_fixture){.visibility.engine = &engine, .base = memory_base_new(0)};
    feeder_fixture->store = memory_open(feeder_fixture->base);
    EXPECT_OK(registry_open(feeder_fixture->store, arena, &feeder_fixture->registry));
    feeder_fixture->feeder =
        feeder_new(&(struct feeder_options){.on_fed = on_fed,
                                            .context = feeder_fixture,
                                            .visibility = &feeder_fixture->visibility,
                                            .registry = feeder_fixture->registry,
                                            .shard_count = 1});
    feeder_start(feeder_fixture->feeder);
}

static void
feeder_fixture_close(struct feeder_fixture *feeder_fixture)
{
    feeder_stop(feeder_fixture->feeder);
    feeder_free(feeder_fixture->feeder);
    registry_close(feeder_fixture->registry);
    store_close(feeder_fixture->store);
    memory_base_free(feeder_fixture->base);
}

static bool
give_after(struct feeder_fixture *feeder_fixture, uint64_t row, uint64_t after, bool is_beginning)
{
    struct visible_port port = feeder_port(feeder_fixture->feeder);
    struct visible_change change = {.row = row,
                                    .is_beginning = is_beginning,
                                    .domain_id = "domain",
                                    .workflow_id = "workflow",
                                    .run_id = "run"};
    struct visibility_update *update = visibility_update_new(&change);
    update->after = after;
    bool is_taken = port.give(port.context, update);
    if (!is_taken)
        memory_free(update);
    return is_taken;
}

static bool
give(struct feeder_fixture *feeder_fixture, uint64_t row, bool is_beginning)
{
    return give_after(feeder_fixture, row, row - 1, is_beginning);
}

#define WAIT(condition)                                                                            \
    for (int tries_ = 0; !(condition) && tries_ < 5000; tries_++)                                  \
    pause_ms(1)

LOOP_TEST(feeder, what_could_not_be_written_is_written_later_in_order_and_memory_has_a_bound, 2)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct feeder_fixture feeder_fixture;
    feeder_fixture_open(&feeder_fixture, arena);
    feeder_fixture.is_failing = true;
    uint64_t row = 0;
    for (int i = 0; i < 10; i++)
        EXPECT(give(&feeder_fixture, ++row, false));
    WAIT(feeder_fixture.failures > 0);
    EXPECT_EQ(feeder_fixture.reported_fed, 0);
    unsigned refused = 0;
    for (int i = 0; i < 100000 && refused == 0; i++)
        refused += !give(&feeder_fixture, row + 1, false) || row++ > 90000;
    EXPECT(refused == 1 && row < 90000); /* no more room: the shard keeps it */
    feeder_fixture.is_failing = false;
    WAIT(feeder_fixture.reported_fed == row);
    EXPECT(feeder_fixture.rows == row && feeder_fixture.reported_fed == row);
    EXPECT(give(&feeder_fixture, row, true)); /* the shard begins again, in its turn */
    EXPECT(give(&feeder_fixture, row + 1, false));
    WAIT(feeder_fixture.reported_safe == row + 1);
    EXPECT(feeder_fixture.beginnings == 1 && feeder_fixture.reported_safe == row + 1);
    feeder_fixture_close(&feeder_fixture);
}

/* Shards hear of each transaction: at the end of a long round they would have taken it for lost. */
LOOP_TEST(feeder, a_long_round_tells_how_far_it_is, 2)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct feeder_fixture feeder_fixture;
    uint64_t row = 0;
    feeder_fixture_open(&feeder_fixture, arena);
    feeder_fixture.transactions_max = 1;
    EXPECT(give(&feeder_fixture, ++row, false));
    WAIT(feeder_fixture.reported_fed == row);
    while (row < 3500) /* of the next round, in four transactions */
        EXPECT(give(&feeder_fixture, ++row, false));
    for (uint64_t told = 1; feeder_fixture.transactions < 4; told = feeder_fixture.reported_fed) {
        feeder_fixture.transactions_max++;
        WAIT(feeder_fixture.transactions > feeder_fixture.transactions_max);
        WAIT(feeder_fixture.reported_fed > told);
        EXPECT(feeder_fixture.reported_fed > told && feeder_fixture.reported_fed < row);
        EXPECT_EQ(feeder_fixture.reported_fed, feeder_fixture.rows);
    }
    feeder_fixture.transactions_max = 0;
    WAIT(feeder_fixture.reported_fed == row);
    EXPECT_EQ(feeder_fixture.reported_fed, row);
    feeder_fixture_close(&feeder_fixture);
}

LOOP_TEST(feeder, a_feeder_that_stops_feeds_what_it_took_and_takes_nothing_more, 2)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct feeder_fixture feeder_fixture;
    feeder_fixture_open(&feeder_fixture, arena);
    EXPECT(give(&feeder_fixture, 1, false));
    feeder_stop(feeder_fixture.feeder);
    EXPECT_EQ(feeder_fixture.rows, 1); /* what was taken is fed */
    EXPECT(!give(&feeder_fixture, 2, false));
    feeder_fixture_close(&feeder_fixture);
}

static struct visible_level
ask_level(struct feeder_fixture *feeder_fixture, struct arena *arena)
{
    struct visible_level level;
    struct visible_port port = feeder_port(feeder_fixture->feeder);
    EXPECT_OK(port.level(port.context, 0, arena, &level));
    return level;
}

LOOP_TEST(feeder, what_got_lost_takes_what_is_behind_it_along_and_nothing_is_fed_twice, 2)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct feeder_fixture feeder_fixture;
    feeder_fixture_open(&feeder_fixture, arena);
    feeder_fixture.last_row = 7;                      /* it has so much from an earlier life */
    EXPECT(give_after(&feeder_fixture, 8, 7, false)); /* nobody knows of that yet */
    EXPECT_EQ(ask_level(&feeder_fixture, arena).newest, 7);
    EXPECT(give_after(&feeder_fixture, 8, 7, false));
    EXPECT(give_after(&feeder_fixture, 8, 7, false));  /* twice */
    EXPECT(give_after(&feeder_fixture, 10, 9, false)); /* 9 got lost */
    EXPECT(give_after(&feeder_fixture, 11, 10, false));
    WAIT(feeder_fixture.reported_fed == 8);
    pause_ms(20);
    EXPECT_EQ(feeder_fixture.rows, 1);
    struct visible_level level = ask_level(&feeder_fixture, arena);
    EXPECT(level.newest == 8 && level.fed == 8 && level.safe <= 8);
    EXPECT(give_after(&feeder_fixture, 9, 8, false)); /* from the store */
    EXPECT(give_after(&feeder_fixture, 10, 9, false));
    WAIT(feeder_fixture.reported_fed == 10);
    EXPECT_EQ(feeder_fixture.rows, 3);
    EXPECT(give_after(&feeder_fixture, 10, 5, true)); /* a beginning needs nothing before it */
    EXPECT(give_after(&feeder_fixture, 11, 10, false));
    EXPECT(give_after(&feeder_fixture, 10, 5, true)); /* and comes once */
    WAIT(feeder_fixture.reported_fed == 11);
    EXPECT(feeder_fixture.rows == 4 && feeder_fixture.beginnings == 1);
    feeder_fixture_close(&feeder_fixture);
}

/* --- values ---- */

LOOP_TEST(feeder, values_survive_the_way_as_bytes, 1)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    static const struct visible_change changes[] = {
        {1, 2, false, "d", "w", "r", {(const uint8_t *)"in\0fo", 5}, 3},
        {.shard = 7, .row = UINT64_MAX, .is_beginning = true},
    };
    struct visibility_batch *batch = visibility_batch_new(4);
    batch->end = 5;
    for (size_t i = 0; i < array_length(changes); i++) {
        struct visibility_update *update = visibility_update_new(&changes[i]);
        update->after = i;
        update->time = clock_monotonic() - MS;
        list_push_back(&batch->updates, &update->node);
    }
    const struct route_notice *notice = &visibility_updates_notice;
    struct route_value *value = notice->decode(notice->encode(&batch->value, arena));
    struct visibility_batch *read = container_of(value, struct visibility_batch, value);
    EXPECT(read->place == 4 && read->end == 5);
    struct list *node = read->updates.next;
    for (size_t i = 0; i < array_length(changes); i++, node = node->next) {
        const struct visibility_update *update = list_entry(node, struct visibility_update, node);
        const struct visible_change *change = &update->change;
        EXPECT(change->shard == changes[i].shard && change->row == changes[i].row);
        EXPECT(change->is_beginning == changes[i].is_beginning && update->after == i);
        EXPECT(slice_equal(change->info, changes[i].info));
        EXPECT(change->num_clusters == changes[i].num_clusters);
        EXPECT((change->run_id == NULL) == change->is_beginning);
        if (change->run_id != NULL)
            EXPECT_TEXT(change->run_id, "r");
        EXPECT(clock_monotonic() - update->time >= MS);
    }
    EXPECT(node == &read->updates);
    notice->free(&batch->value);
    notice->free(value);
    struct visibility_levels *levels = visibility_levels_new(1);
    levels->done = 9;
    levels->level[0] = (struct visibility_level){1, 2, 3};
    notice = &visibility_levels_notice;
    value = notice->decode(notice->encode(&levels->value, arena));
    struct visibility_levels *told = container_of(value, struct visibility_levels, value);
    EXPECT(told->done == 9 && told->count == 1);
    const struct visibility_level *level = &told->level[0];
    EXPECT(level->shard == 1 && level->fed == 2 && level->safe == 3);
    notice->free(&levels->value);
    notice->free(value);
}

/* --- the registry ---- */

LOOP_TEST(registry, keys_are_added_all_or_none_even_if_another_host_adds_some, 2)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct memory_base *base = memory_base_new(0);
    struct store *store = memory_open(base);
    struct registry *registry, *other;
    EXPECT_OK(registry_open(store, arena, &registry));
    EXPECT_OK(registry_open(store, arena, &other)); /* as of another host */
    const struct attribute_set *before = registry_set(registry);
    const struct registry_key keys[] = {{"Colour", ATTRIBUTE_KEYWORD}, {"Size", ATTRIBUTE_INT}};
    EXPECT_OK(registry_add(registry, keys, 2, arena));
    EXPECT(attribute_find(before, "Colour") == NULL); /* a set never changes */
    EXPECT(attribute_find(registry_set(registry), "Size") != NULL);
    const struct registry_key bad[] = {{"Weight", ATTRIBUTE_INT}, {"RunID", ATTRIBUTE_INT}};
    EXPECT_KIND(registry_add(registry, bad, 2, arena), ERR_BAD_REQUEST);
    EXPECT(attribute_find(registry_set(registry), "Weight") == NULL); /* all or none */
    EXPECT_OK(registry_add(other, &(struct registry_key){"Weight", ATTRIBUTE_INT}, 1, arena));
    EXPECT(attribute_find(registry_set(other), "Colour") != NULL); /* it heard of them */
    registry_close(registry);
    registry_close(other);
    store_close(store);
    memory_base_free(base);
}
