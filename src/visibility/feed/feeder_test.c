/* feeder_test.c - what shards hand over comes into the lists: in order, once, also when writing
 * fails for a while; and no more of it is in memory than there may be.
 *
 * Method: an engine that fails when it is told to, and a port that notes what a shard is told. */
#include "visibility/feed/feeder.h"

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "store/memory/memory.h"
#include "visibility/engine.h"

#define MS 1000000LL

struct bench {
    struct visibility visibility; /* an engine of its own */
    struct memory_base *base;
    struct store *store;
    struct registry *registry;
    struct feeder *feeder;
    bool is_failing;
    unsigned failures, beginnings;
    uint64_t rows, last_row; /* fed */
    uint64_t told_fed, told_safe;
};

static struct bench *
bench_of(struct visibility *visibility)
{
    return container_of(visibility, struct bench, visibility);
}

static struct error *
fail(struct bench *bench, struct arena *arena)
{
    bench->failures++;
    return error_new(arena, ERR_IO, "the disk is full");
}

static struct error *
bench_feed(struct visibility *visibility, const struct visibility_change *changes, size_t count,
           const struct attribute_set *attributes, struct arena *arena)
{
    struct bench *bench = bench_of(visibility);
    if (bench->is_failing)
        return fail(bench, arena);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(changes[i].row, bench->last_row + 1);
        EXPECT_TEXT(changes[i].run_id, "run");
        bench->last_row = changes[i].row;
    }
    bench->rows += count;
    return NULL;
}

static struct error *
bench_sync(struct visibility *visibility, struct arena *arena)
{
    return NULL;
}

static struct error *
bench_forget(struct visibility *visibility, uint32_t shard, uint64_t level, struct arena *arena)
{
    struct bench *bench = bench_of(visibility);
    EXPECT_EQ(level, bench->last_row); /* what came before was fed before */
    bench->beginnings++;
    return NULL;
}

static const struct visibility_engine engine = {
    .name = "bench", .feed = bench_feed, .sync = bench_sync, .forget = bench_forget};

static void
told(void *context, uint32_t shard, uint64_t fed, uint64_t safe)
{
    struct bench *bench = context;
    EXPECT(fed >= bench->told_fed && safe >= bench->told_safe && safe <= fed);
    bench->told_fed = fed;
    bench->told_safe = safe;
}

static void
bench_open(struct bench *bench, struct arena *arena)
{
    *bench = (struct bench){.visibility.engine = &engine, .base = memory_base_new(0)};
    bench->store = memory_open(bench->base);
    EXPECT_OK(registry_open(bench->store, arena, &bench->registry));
    bench->feeder = feeder_new(&(struct feeder_options){.told = told,
                                                        .context = bench,
                                                        .visibility = &bench->visibility,
                                                        .registry = bench->registry,
                                                        .shard_count = 1});
    feeder_start(bench->feeder);
}

static void
bench_close(struct bench *bench)
{
    feeder_stop(bench->feeder);
    feeder_free(bench->feeder);
    registry_close(bench->registry);
    store_close(bench->store);
    memory_base_free(bench->base);
}

static bool
give(struct bench *bench, uint64_t row, bool is_beginning)
{
    struct visible_port port = feeder_port(bench->feeder);
    struct visible_change change = {.row = row,
                                    .is_beginning = is_beginning,
                                    .domain_id = "domain",
                                    .workflow_id = "workflow",
                                    .run_id = "run"};
    struct visible_parcel *parcel = visible_pack(&change);
    bool is_taken = port.give(port.context, parcel);
    if (!is_taken)
        memory_free(parcel);
    return is_taken;
}

static void
pause_ms(int64_t count)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(count * MS, arena));
}

#define WAIT(condition)                                                                            \
    for (int tries_ = 0; !(condition) && tries_ < 5000; tries_++)                                  \
    pause_ms(1)

static void
run_failing(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct bench bench;
    bench_open(&bench, arena);
    bench.is_failing = true;
    uint64_t row = 0;
    for (int i = 0; i < 10; i++)
        EXPECT(give(&bench, ++row, false));
    WAIT(bench.failures > 0);
    EXPECT_EQ(bench.told_fed, 0);
    unsigned refused = 0;
    for (int i = 0; i < 100000 && refused == 0; i++)
        refused += !give(&bench, row + 1, false) || row++ > 90000;
    EXPECT(refused == 1 && row < 90000); /* no more room: the shard keeps it */
    bench.is_failing = false;
    WAIT(bench.told_fed == row);
    EXPECT(bench.rows == row && bench.told_fed == row);
    EXPECT(give(&bench, row, true)); /* the shard begins anew, in its turn */
    EXPECT(give(&bench, row + 1, false));
    WAIT(bench.told_safe == row + 1);
    EXPECT(bench.beginnings == 1 && bench.told_safe == row + 1);
    bench_close(&bench);
}

TEST(feeder, what_could_not_be_written_is_written_later_in_order_and_memory_has_a_bound)
{
    linux_run(&(struct linux_options){.loops = 2}, run_failing, NULL);
}

static void
run_stop(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct bench bench;
    bench_open(&bench, arena);
    EXPECT(give(&bench, 1, false));
    feeder_stop(bench.feeder);
    EXPECT_EQ(bench.rows, 1); /* what was taken is fed */
    EXPECT(!give(&bench, 2, false));
    bench_close(&bench);
}

TEST(feeder, a_feeder_that_stops_feeds_what_it_took_and_takes_nothing_more)
{
    linux_run(&(struct linux_options){.loops = 2}, run_stop, NULL);
}

/* --- the registry ---- */

static void
run_registry(void *argument)
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

TEST(registry, keys_are_added_all_or_none_whoever_else_adds_some)
{
    linux_run(&(struct linux_options){.loops = 2}, run_registry, NULL);
}
