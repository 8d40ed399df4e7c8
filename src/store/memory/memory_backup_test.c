/* memory_backup_test.c - a base that is set back to a copy: what it has then, and what it says of
 * itself. */
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/admin.h"
#include "store/memory/memory.h"
#include "store/test/contract.h"

#define SHARD PARTITION_OF_SHARD(3)
#define LEAP  (UINT64_C(1) << 20)

/* One base over the lives of its stores; a fiber of the linux platform. */
struct backup_fixture {
    struct memory_base *base;
    struct store *store;
    struct arena *arena;
    void (*test)(struct backup_fixture *fixture);
};

static void
backup_main(void *argument)
{
    struct backup_fixture *fixture = argument;
    fixture->base = memory_base_new(0);
    fixture->store = memory_open(fixture->base);
    fixture->arena = arena_new(0);
    fixture->test(fixture);
    store_close(fixture->store);
    arena_free(fixture->arena);
    memory_base_free(fixture->base);
}

static void
on_backups(void (*test)(struct backup_fixture *fixture))
{
    struct backup_fixture fixture = {.test = test};
    linux_run(&(struct linux_options){.loops = 1}, backup_main, &fixture);
}

#define BACKUP_TEST(title)                                                                         \
    TEST_IN(memory_backup, title, struct backup_fixture *fixture, on_backups(body))

static void
put(struct backup_fixture *fixture, struct partition partition, enum row_kind kind,
    const char *value, uint64_t guard)
{
    struct batch *batch = batch_new(fixture->arena, partition, guard + 1);
    batch_put(batch, kind, TEXT("key"), slice_text(value));
    EXPECT_OK(store_commit(fixture->store, batch, guard, fixture->arena));
}

/* "" if there is none. */
static struct slice
get(struct backup_fixture *fixture, struct partition partition, enum row_kind kind)
{
    bool found = false;
    struct slice value = TEXT("");
    EXPECT_OK(
        store_get(fixture->store, partition, kind, TEXT("key"), fixture->arena, &found, &value));
    return value;
}

static uint64_t
guard_of(struct backup_fixture *fixture, struct partition partition)
{
    uint64_t guard;
    EXPECT_OK(store_guard(fixture->store, partition, fixture->arena, &guard));
    return guard;
}

static void
restore(struct backup_fixture *fixture, const struct memory_base *copy)
{
    store_close(fixture->store);
    memory_base_restore(fixture->base, copy);
    fixture->store = memory_open(fixture->base);
}

BACKUP_TEST(a_base_that_is_set_back_has_the_rows_of_the_copy)
{
    put(fixture, SHARD, ROW_DEAD_LETTER, "old", 0);
    put(fixture, PARTITION_OF_DOMAINS, ROW_DOMAIN, "old", 0);
    struct memory_base *copy = memory_base_copy(fixture->base); /* while the store works on */
    put(fixture, SHARD, ROW_DEAD_LETTER, "new", 1);
    put(fixture, PARTITION_OF_DOMAINS, ROW_DOMAIN, "new", 1);
    put(fixture, PARTITION_OF_SETTINGS, ROW_SETTING, "new", 0);
    restore(fixture, copy);
    memory_base_free(copy);
    EXPECT(slice_equal(get(fixture, SHARD, ROW_DEAD_LETTER), TEXT("old")));
    EXPECT(slice_equal(get(fixture, PARTITION_OF_DOMAINS, ROW_DOMAIN), TEXT("old")));
    EXPECT_EQ(get(fixture, PARTITION_OF_SETTINGS, ROW_SETTING).length, 0);
    EXPECT_EQ(memory_base_count(fixture->base, ROW_DEAD_LETTER), 1);
    EXPECT_EQ(memory_base_count(fixture->base, ROW_SETTING), 0);
    EXPECT_EQ(guard_of(fixture, PARTITION_OF_DOMAINS), 1); /* it counts what was written */
    put(fixture, PARTITION_OF_DOMAINS, ROW_DOMAIN, "newer", 1);
}

BACKUP_TEST(guards_of_shards_rise_with_each_restore_of_one_copy)
{
    put(fixture, SHARD, ROW_DEAD_LETTER, "old", 0);
    struct memory_base *copy = memory_base_copy(fixture->base);
    put(fixture, SHARD, ROW_DEAD_LETTER, "new", 1);
    restore(fixture, copy);
    uint64_t first = guard_of(fixture, SHARD);
    EXPECT(first >= 2 + LEAP);
    put(fixture, SHARD, ROW_DEAD_LETTER, "newer", first);
    restore(fixture, copy);
    memory_base_free(copy);
    EXPECT(guard_of(fixture, SHARD) >= first + LEAP);
}

BACKUP_TEST(it_says_that_it_lost_memory_until_it_is_told_that_it_is_whole)
{
    EXPECT_EQ(store_memory(fixture->store), STORE_WHOLE);
    EXPECT(memory_base_is_whole(fixture->base));
    struct memory_base *copy = memory_base_copy(fixture->base);
    restore(fixture, copy);
    EXPECT_EQ(store_memory(fixture->store), STORE_RESTORED);
    struct memory_base *marked = memory_base_copy(fixture->base);
    store_close(fixture->store);
    fixture->store = memory_open(fixture->base);
    EXPECT_EQ(store_memory(fixture->store), STORE_RESTORED);
    EXPECT_OK(store_set_whole(fixture->store, fixture->arena));
    EXPECT_EQ(store_memory(fixture->store), STORE_WHOLE);
    store_close(fixture->store);
    fixture->store = memory_open(fixture->base);
    EXPECT_EQ(store_memory(fixture->store), STORE_WHOLE);
    restore(fixture, marked);
    EXPECT(!memory_base_is_whole(fixture->base));
    EXPECT_EQ(store_memory(fixture->store), STORE_RESTORED);
    memory_base_free(copy);
    memory_base_free(marked);
}

BACKUP_TEST(a_broken_disk_keeps_the_mark)
{
    struct memory_base *copy = memory_base_copy(fixture->base);
    restore(fixture, copy);
    memory_base_free(copy);
    memory_base_break(fixture->base);
    EXPECT_KIND(store_set_whole(fixture->store, fixture->arena), ERR_IO);
    EXPECT_EQ(store_memory(fixture->store), STORE_RESTORED);
    memory_base_repair(fixture->base);
    EXPECT_OK(store_set_whole(fixture->store, fixture->arena));
    EXPECT_EQ(store_memory(fixture->store), STORE_WHOLE);
}
