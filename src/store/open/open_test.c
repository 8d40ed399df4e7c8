/* open_test.c - stores by name. An engine of this test's own is one more row: nothing of the tree
 * knows of it. */
#include "store/open/open.h"

#include "base/test.h"
#include "config/dynamic.h"
#include "fiber/linux/linux.h"
#include "store/memory/memory.h"

/* --- an engine of a few lines ---- */

static struct memory_base *
base_of(const struct store_settings *settings)
{
    static const char key[] = "clusterGroupMetadata.currentClusterName"; /* it reads the config */
    EXPECT(config_text(settings->config, key)[0] != '\0');
    return memory_base_new(0);
}

static struct memory_base *opened_base;

static struct error *
dummy_open(const struct store_settings *settings, struct arena *arena, struct store **store)
{
    opened_base = base_of(settings);
    *store = memory_open(opened_base);
    return NULL;
}

static const struct store_driver dummy = {.name = "dummy", .open = dummy_open};
static const struct store_driver *const list[] = {&dummy};
static const struct store_drivers with_dummy = {list, 1};

/* --- what is expected ---- */

static const struct partition somewhere = {.kind = PARTITION_SHARD, .number = 1};

static void
play_dummy(void *argument)
{
    struct arena *arena = arena_new(0);
    struct config *config = config_default();
    const struct store_settings settings = {.config = config};
    struct store *store = NULL;
    uint64_t guard = 1;
    EXPECT_OK(store_open(&with_dummy, "dummy", &settings, arena, &store));
    EXPECT_OK(store_guard(store, somewhere, arena, &guard));
    EXPECT(guard == 0);
    EXPECT(store_is_alone(store) && store_memory(store) == STORE_WHOLE &&
           store_damage(store, arena) == NULL);
    EXPECT_OK(store_set_whole(store, arena));
    EXPECT_KIND(store_backup(store, "/nowhere", arena), ERR_BAD_REQUEST);
    memory_base_share(opened_base);
    EXPECT(!store_is_alone(store));
    store_close(store);
    memory_base_free(opened_base);
    config_free(config);
    arena_free(arena);
}

TEST(store_open, an_engine_is_one_row_and_what_it_cannot_do_is_said)
{
    linux_run(&(struct linux_options){.loops = 1}, play_dummy, NULL);
}

TEST(store_open, a_name_that_nobody_has_is_refused_with_those_that_there_are)
{
    struct arena *arena = arena_new(0);
    const struct store_driver *driver = NULL;
    struct error *err = store_driver_find(&store_drivers, "floppy", arena, &driver);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "there is no store 'floppy'; this program has: embedded");
    EXPECT_OK(store_driver_find(&store_drivers, STORE_EMBEDDED, arena, &driver));
    EXPECT(driver->info != NULL && driver->verify != NULL && driver->restore != NULL);
    arena_free(arena);
}
