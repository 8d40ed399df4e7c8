/* memory_sim_test.c - the contract in simulation, with delays and seeds; and crashes at every point
 * at which a crash can make a difference. Racing hosts are in memory_race_test.c. */
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"
#include "store/key.h"
#include "store/memory/memory.h"
#include "store/memory/test_fixture.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

/* ---- the contract ---- */

static void
on_sim(void (*test)(struct contract *contract))
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct memory_fixture memory_fixture = {.seed = test_seed(i), .test = test};
        struct world *world = world_new(.seed = memory_fixture.seed);
        struct host *host = world_add_host(world, "alone", 2);
        host_start(host, memory_fixture_fiber, &memory_fixture);
        EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
        memory_base_free(memory_fixture.base);
    }
}

#define X(title)                                                                                   \
    TEST(memory_sim, title)                                                                        \
    {                                                                                              \
        on_sim(contract_##title);                                                                  \
    }
CONTRACT_TESTS(X)
#undef X

/* ---- crashes ---- */

/* The workload: two owners, one per loop, each a stream of items. Item i puts row i, moves a
 * put-once row on, and writes the counter "i@guard": so the store shows whether items landed whole
 * and as a prefix. What was acknowledged is noted out here, where no crash reaches. */
#define ITEMS  14
#define DEPTH  4
#define OWNERS 2

struct owner {
    struct life *life;
    uint32_t shard;
    uint64_t submitted; /* items that may be there */
    uint64_t acked;     /* items that must be there */
    uint64_t guard_tried;
    uint64_t guard_acked;
    uint64_t landed; /* found, though not acknowledged */
    uint64_t lost;   /* not found, though submitted */
};

struct life {
    struct memory_base *base;
    uint64_t handle;
    struct store *store; /* of the host that runs */
    struct latch latch;
    struct owner owners[OWNERS];
    uint64_t crash_point;
    uint64_t answered; /* items, by either owner */
    bool is_done;
};

static struct slice
number_key(uint64_t number, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    return key_end(&key);
}

static struct slice
counter_value(uint64_t item, uint64_t guard, struct arena *arena)
{
    return slice_text(
        arena_format(arena, "%llu@%llu", (unsigned long long)item, (unsigned long long)guard));
}

static struct batch *
item_batch(struct owner *owner, uint64_t item, uint64_t guard, struct arena *arena)
{
    struct batch *batch = batch_new(arena, SHARD(owner->shard), guard);
    batch_put(batch, ROW_DEAD_LETTER, number_key(item, arena), counter_value(item, guard, arena));
    batch_put(batch, ROW_TRANSFER, number_key(item, arena), slice_text("t"));
    if (item > 1)
        batch_delete(batch, ROW_TRANSFER, number_key(item - 1, arena));
    batch_put(batch, ROW_PENDING, slice_text("counter"), counter_value(item, guard, arena));
    return batch;
}

/* Exactly one put-once row is there, that of the last item. */
static void
expect_transfer(struct owner *owner, uint64_t item, struct arena *arena)
{
    struct scan scan = {.partition = SHARD(owner->shard), .kind = ROW_TRANSFER};
    struct rows rows;
    EXPECT_OK(store_scan(owner->life->store, &scan, arena, &rows));
    EXPECT_EQ(rows.count, item > 0);
    EXPECT(item == 0 || slice_equal(rows.row[0].key, number_key(item, arena)));
}

/* Looks at what is there after a crash: all that was acknowledged, nothing by halves, a prefix.
 * Gives the number of items and the guard. */
static void
expect_prefix(struct owner *owner, struct arena *arena, uint64_t *items, uint64_t *guard)
{
    struct scan scan = {.partition = SHARD(owner->shard), .kind = ROW_DEAD_LETTER};
    struct rows rows;
    EXPECT_OK(store_guard(owner->life->store, scan.partition, arena, guard));
    EXPECT_OK(store_scan(owner->life->store, &scan, arena, &rows));
    *items = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        EXPECT(slice_equal(rows.row[i].key, number_key(i + 1, arena)));
    if (*items < owner->acked || *items > owner->submitted)
        TEST_FAIL("shard %u: %llu items, %llu acknowledged, %llu submitted, crash at point %llu",
                  owner->shard, (unsigned long long)*items, (unsigned long long)owner->acked,
                  (unsigned long long)owner->submitted,
                  (unsigned long long)owner->life->crash_point);
    EXPECT(*guard >= owner->guard_acked && *guard <= owner->guard_tried);
    bool found;
    struct slice counter;
    EXPECT_OK(store_get(owner->life->store, scan.partition, ROW_PENDING, slice_text("counter"),
                        arena, &found, &counter));
    EXPECT_EQ(found, *items > 0);
    EXPECT(!found || slice_equal(counter, counter_value(*items, *guard, arena)));
    EXPECT(!found || slice_equal(counter, rows.row[*items - 1].value));
    expect_transfer(owner, *items, arena);
    owner->landed += *items - owner->acked;
    owner->lost += owner->submitted - *items;
}

struct stream {
    struct owner *owner;
    uint64_t first; /* item of ticket 1 */
};

static void
note_answer(void *context, ticket_t durable, const struct error *failure)
{
    struct stream *stream = context;
    EXPECT(failure == NULL); /* nobody else owns it */
    stream->owner->acked = stream->first + durable - 1;
    stream->owner->guard_acked = stream->owner->guard_tried;
    stream->owner->life->answered++;
}

static void
write_items(struct owner *owner, uint64_t items, uint64_t guard)
{
    struct arena *arena = arena_new(0);
    struct stream stream = {.owner = owner, .first = items + 1};
    struct writer *writer = writer_open(owner->life->store, SHARD(owner->shard), guard, DEPTH);
    writer_on_durable(writer, note_answer, &stream);
    owner->guard_tried = guard + 1;
    for (uint64_t item = items + 1; item <= ITEMS; item++) {
        while (!writer_has_room(writer) || (item > items + 1 && entropy_below(4) == 0))
            EXPECT_OK(writer_wait(writer, writer_newest(writer), arena));
        owner->submitted = item;
        writer_submit(writer, item_batch(owner, item, guard + 1, arena));
    }
    writer_close(writer);
    arena_free(arena);
}

static void
run_owner(void *argument)
{
    struct owner *owner = argument;
    struct arena *arena = arena_new(0);
    uint64_t items, guard;
    expect_prefix(owner, arena, &items, &guard);
    owner->submitted = owner->acked = items;
    owner->guard_tried = owner->guard_acked = guard;
    write_items(owner, items, guard);
    expect_prefix(owner, arena, &items, &guard);
    EXPECT_EQ(items, ITEMS);
    arena_free(arena);
}

static void
owner_fiber(void *argument)
{
    struct owner *owner = argument;
    struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(owner->shard % loop_count()), run_owner, owner, arena));
    arena_free(arena);
    latch_done(&owner->life->latch);
}

static void
run_life(void *argument)
{
    struct life *life = argument;
    life->store = memory_open(life->base);
    life->handle = memory_handle(life->store);
    latch_init(&life->latch, OWNERS);
    for (int i = 0; i < OWNERS; i++)
        fiber_start("owner", owner_fiber, &life->owners[i]);
    latch_wait(&life->latch);
    store_close(life->store);
    life->is_done = true;
}

static void
note_crash(void *context)
{
    struct life *life = context;
    memory_crash(life->base, life->handle);
}

static bool
is_at_crash_point(void *context)
{
    struct life *life = context;
    return life->is_done || memory_base_points(life->base) >= life->crash_point;
}

/* One workload with a crash at the given point, a second one some points later, and then a life to
 * its end. False: it was over before that point. */
static bool
crash_at(uint64_t seed, uint64_t point, struct life *life)
{
    struct world *world = world_new(.seed = seed);
    struct host *host = world_add_host(world, "mortal", 2);
    *life = (struct life){.base = memory_base_new(seed), .crash_point = point};
    for (uint32_t i = 0; i < OWNERS; i++)
        life->owners[i] = (struct owner){.life = life, .shard = i};
    host_on_crash(host, note_crash, life);
    int crashes = 0;
    host_start(host, run_life, life);
    while (crashes < 2) {
        EXPECT(world_run_until(world, is_at_crash_point, life, 60 * NS_PER_S));
        if (life->is_done)
            break;
        host_crash(host);
        crashes++;
        life->crash_point += 1 + random_below(world_random(world), 12);
        host_start(host, run_life, life);
    }
    EXPECT(world_run_until(world, host_has_ended, host, 60 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    memory_base_free(life->base);
    return crashes > 0;
}

/* The promise that everything else stands on. Method: crash at the first point, the second, … until
 * the workload is over before it is reached; after each crash look at what is there. */
TEST(memory_sim, a_crash_at_any_point_loses_nothing_acknowledged_and_leaves_a_prefix)
{
    uint64_t landed = 0, lost = 0;
    for (int i = 0; i < test_seed_count(); i++) {
        struct life life;
        uint64_t point = 1;
        while (crash_at(test_seed(i), point, &life)) {
            for (int k = 0; k < OWNERS; k++) {
                landed += life.owners[k].landed;
                lost += life.owners[k].lost;
            }
            point++;
        }
        EXPECT(point > ITEMS * OWNERS); /* at least every item's arrival was a point */
    }
    EXPECT(!test_seeds_suffice(1) ||
           (landed > 0 && lost > 0)); /* both ways of not being told were seen */
}
