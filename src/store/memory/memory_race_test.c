/* memory_race_test.c - several hosts on one base want the same partition, and die at any time.
 *
 * What is at stake: a host that was fenced and does not know it. Method: every host takes the
 * partition again and again (reads the guard, raises it, writes a few rows behind without waiting)
 * while hosts crash and come back. Every acknowledgement is noted outside. At the end the store
 * must show one owner per guard, each with a prefix of its rows, and everything acknowledged. */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "store/key.h"
#include "store/memory/memory.h"

#define HOSTS     3
#define STEPS_MAX 6
#define SHARD     PARTITION_OF_SHARD(7)

struct ack {
    uint64_t guard;
    uint64_t step;
    unsigned host;
};

struct candidate {
    struct race *race;
    struct host *host;
    unsigned number;
    uint64_t handle;
};

struct race {
    struct memory_base *base;
    struct candidate candidates[HOSTS];
    bool is_over;
    struct ack *acks;
    size_t ack_count;
    size_t fenced;
    uint64_t guard_acked_max;
};

/* One ownership, from taking to losing it. */
struct reign {
    struct candidate *candidate;
    uint64_t guard, steps;
    uint64_t guard_acked_max[STEPS_MAX + 1]; /* by step: what all had been told when it went off */
};

static struct slice
row_key(uint64_t guard, uint64_t step, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, guard);
    key_u64(&key, step);
    return key_end(&key);
}

static struct slice
host_text(unsigned number, struct arena *arena)
{
    return slice_text(arena_format(arena, "host %u", number));
}

static void
note_ack(void *context, ticket_t durable, const struct error *failure)
{
    struct reign *reign = context;
    struct race *race = reign->candidate->race;
    race->fenced += failure != NULL;
    if (failure != NULL)
        return;
    uint64_t step = durable - 1;
    if (durable > reign->steps) /* a confirmation */
        return;
    /* It was sent after a newer owner had been acknowledged: it must not have landed. */
    EXPECT(reign->guard >= reign->guard_acked_max[step]);
    struct heap *host = heap_select(NULL); /* the notes outlive the host */
    race->acks = memory_realloc(race->acks, (race->ack_count + 1) * sizeof *race->acks);
    heap_select(host);
    race->acks[race->ack_count++] =
        (struct ack){.guard = reign->guard, .step = step, .host = reign->candidate->number};
    if (reign->guard > race->guard_acked_max)
        race->guard_acked_max = reign->guard;
}

static void
nap(struct arena *arena)
{
    EXPECT_OK(fiber_sleep((int64_t)entropy_below(4 * NS_PER_MS), arena));
}

static void
reign_once(struct candidate *candidate, struct store *store, struct arena *arena)
{
    uint64_t guard;
    EXPECT_OK(store_guard(store, SHARD, arena, &guard));
    nap(arena); /* others may take it now */
    struct reign reign = {.candidate = candidate, .guard = guard + 1};
    struct writer *writer = writer_open(store, SHARD, guard, STEPS_MAX);
    writer_on_durable(writer, note_ack, &reign);
    uint64_t steps = reign.steps = 1 + entropy_below(STEPS_MAX);
    for (uint64_t step = 0; step < steps; step++) {
        struct batch *batch = batch_new(arena, SHARD, reign.guard);
        batch_put(batch, ROW_DEAD_LETTER, row_key(reign.guard, step, arena),
                  host_text(candidate->number, arena));
        reign.guard_acked_max[step] = candidate->race->guard_acked_max;
        writer_submit(writer, batch);
        if (entropy_below(3) == 0)
            nap(arena);
    }
    uint64_t acked = candidate->race->guard_acked_max;
    struct error *err = writer_wait(writer, writer_confirm(writer), arena);
    EXPECT(err == NULL || err->kind == ERR_FENCED);
    EXPECT(err != NULL || reign.guard >= acked); /* nobody had overtaken it before it asked */
    writer_close(writer);
}

static void
contend(void *argument)
{
    struct candidate *candidate = argument;
    struct store *store = memory_open(candidate->race->base);
    candidate->handle = memory_handle(store);
    struct arena *arena = arena_new(0);
    while (!candidate->race->is_over) {
        reign_once(candidate, store, arena);
        arena_reset(arena);
    }
    arena_free(arena);
    store_close(store);
}

static void
note_crash(void *context)
{
    struct candidate *candidate = context;
    memory_crash(candidate->race->base, candidate->handle);
}

/* ---- the judge ---- */

static void
judge_acks(struct race *race, struct store *store, struct arena *arena)
{
    for (size_t i = 0; i < race->ack_count; i++) {
        struct ack *ack = &race->acks[i];
        bool found;
        struct slice value;
        EXPECT_OK(store_get(store, SHARD, ROW_DEAD_LETTER, row_key(ack->guard, ack->step, arena),
                            arena, &found, &value));
        if (!found || !slice_equal(value, host_text(ack->host, arena)))
            TEST_FAIL("guard %llu step %llu was acknowledged to host %u, there is %.*s",
                      (unsigned long long)ack->guard, (unsigned long long)ack->step, ack->host,
                      SLICE_ARG(value));
    }
}

static void
judge_rows(struct store *store, struct arena *arena)
{
    struct scan scan = {.partition = SHARD, .kind = ROW_DEAD_LETTER};
    struct rows rows;
    EXPECT_OK(store_scan(store, &scan, arena, &rows));
    uint64_t guard = 0, step = 0, last;
    for (size_t i = 0; i < rows.count; i++) {
        struct slice key = rows.row[i].key;
        uint64_t row_guard, row_step;
        EXPECT(key_take_u64(&key, &row_guard) && key_take_u64(&key, &row_step));
        bool is_next_reign = row_guard == guard + 1 && row_step == 0;
        bool is_next_step = row_guard == guard && row_step == step + 1;
        EXPECT(is_next_reign ||
               (is_next_step && slice_equal(rows.row[i].value, rows.row[i - 1].value)));
        guard = row_guard;
        step = row_step;
    }
    EXPECT_OK(store_guard(store, SHARD, arena, &last));
    EXPECT_EQ(last, guard);
}

static void
judge(void *argument)
{
    struct race *race = argument;
    struct store *store = memory_open(race->base);
    struct arena *arena = arena_new(0);
    judge_acks(race, store, arena);
    judge_rows(store, arena);
    arena_free(arena);
    store_close(store);
}

/* ---- the race ---- */

static bool
have_all_ended(void *context)
{
    struct race *race = context;
    for (int i = 0; i < HOSTS; i++)
        if (host_is_running(race->candidates[i].host))
            return false;
    return true;
}

static void
crash_or_start(struct candidate *candidate)
{
    if (host_is_running(candidate->host))
        host_crash(candidate->host);
    else
        host_start(candidate->host, contend, candidate);
}

/* Gives the hash of the world's trace. */
static uint64_t
run_race(uint64_t seed, int faults)
{
    struct world *world = world_new(.seed = seed);
    struct race race = {.base = memory_base_new(seed)};
    static const char *const names[HOSTS] = {"a", "b", "c"};
    for (unsigned i = 0; i < HOSTS; i++) {
        struct host *host = world_add_host(world, names[i], 1);
        race.candidates[i] = (struct candidate){.race = &race, .host = host, .number = i};
        host_on_crash(host, note_crash, &race.candidates[i]);
        host_start(host, contend, &race.candidates[i]);
    }
    for (int i = 0; i < faults; i++) {
        world_run_for(world, (int64_t)random_below(world_random(world), 40 * NS_PER_MS));
        crash_or_start(&race.candidates[random_below(world_random(world), HOSTS)]);
    }
    race.is_over = true;
    EXPECT(world_run_until(world, have_all_ended, &race, 60 * NS_PER_S));
    host_start(race.candidates[0].host, judge, &race);
    EXPECT(world_run_until(world, have_all_ended, &race, 60 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(race.candidates[0].host), 0);
    EXPECT(race.ack_count > 50 && race.fenced > 5); /* it was a race */
    EXPECT(world_probe_count(world, "store_fenced") >= race.fenced);
    uint64_t hash = world_trace_hash(world);
    world_free(world);
    memory_base_free(race.base);
    memory_free(race.acks);
    return hash;
}

TEST(memory_race, of_hosts_on_one_store_only_one_owner_commits_at_a_time)
{
    for (int i = 0; i < test_seed_count(); i++)
        run_race(test_seed(i), 60);
}

TEST(memory_race, the_same_seed_gives_the_same_trace)
{
    for (int i = 0; i < test_seed_count(); i++)
        EXPECT(run_race(test_seed(i), 20) == run_race(test_seed(i), 20));
    EXPECT(run_race(1, 20) != run_race(2, 20));
}
