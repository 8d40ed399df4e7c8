/* registry.c - see registry.h.
 *
 * Changes are made on loop 0, one at a time. Each reads what is stored first: another host of the
 * cluster may have added something, and then the guard says so. */
#include "visibility/feed/registry.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"

#define ATTEMPTS_MAX 5 /* another host may change it at the same time */

struct registry {
    struct store *store;
    struct arena *arena; /* of the sets */
    _Atomic(const struct attribute_set *) set;
    struct fiber_mutex changing; /* of loop 0 */
};

static struct slice
name_key(const char *name, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text(name));
    return key_end(&key);
}

static struct error *
take_row(const struct row *row, struct attribute_set *set, struct arena *set_arena,
         struct arena *arena)
{
    struct slice key = row->key, name;
    bool is_read = key_take_text(&key, arena, &name) && row->value.length == 1 &&
                   row->value.data[0] <= ATTRIBUTE_DATETIME;
    if (!is_read)
        return error_new(arena, ERR_CORRUPT, "a stored search attribute cannot be read");
    struct error *err = attribute_set_add(set, arena_text_of(arena, name),
                                          (enum attribute_type)row->value.data[0], set_arena);
    /* A later version may have the key as one of its own: then it is what that says. */
    return err != NULL && err->kind != ERR_BAD_REQUEST ? err : NULL;
}

/* All that is stored, as a new set. Yields. */
static struct error *
read_set(struct registry *registry, struct arena *arena, struct attribute_set **set)
{
    *set = attribute_set_new(registry->arena);
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_ATTRIBUTES, .kind = ROW_SEARCH_ATTRIBUTE};
    struct error *err = store_scan(registry->store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = take_row(&rows.row[i], *set, registry->arena, arena);
    return err;
}

struct error *
registry_open(struct store *store, struct arena *arena, struct registry **opened)
{
    struct registry *registry = memory_zalloc(1, sizeof *registry);
    registry->store = store;
    registry->arena = arena_new(0);
    fiber_mutex_init(&registry->changing);
    struct attribute_set *set;
    struct error *err = read_set(registry, arena, &set);
    if (err != NULL) {
        registry_close(registry);
        return error_wrap(err, "read the search attributes");
    }
    atomic_store_explicit(&registry->set, set, memory_order_release);
    *opened = registry;
    return NULL;
}

void
registry_close(struct registry *registry)
{
    check(registry->changing.owner == NULL);
    arena_free(registry->arena);
    memory_free(registry);
}

const struct attribute_set *
registry_set(const struct registry *registry)
{
    return atomic_load_explicit(&registry->set, memory_order_acquire);
}

/* --- adding ---- */

struct addition {
    struct registry *registry;
    const struct registry_key *keys;
    size_t count;
    struct arena *arena;
    struct error *err;
};

/* What is stored and the new keys become the set, if the guard is still the same. Yields. */
static struct error *
try_add(const struct addition *addition)
{
    struct registry *registry = addition->registry;
    struct arena *arena = addition->arena;
    uint64_t guard;
    struct attribute_set *set;
    struct error *err = store_guard(registry->store, PARTITION_OF_ATTRIBUTES, arena, &guard);
    if (err == NULL)
        err = read_set(registry, arena, &set);
    if (err != NULL)
        return err;
    struct batch *batch = batch_new(arena, PARTITION_OF_ATTRIBUTES, guard + 1);
    for (size_t i = 0; err == NULL && i < addition->count; i++) {
        const struct registry_key *key = &addition->keys[i];
        uint8_t *type = arena_alloc(arena, 1);
        *type = (uint8_t)key->type;
        err = attribute_set_add(set, key->name, key->type, registry->arena);
        err = err == NULL ? NULL : error_copy(arena, err);
        batch_put(batch, ROW_SEARCH_ATTRIBUTE, name_key(key->name, arena), slice_of(type, 1));
    }
    if (err == NULL)
        err = store_commit(registry->store, batch, guard, arena);
    if (err == NULL)
        atomic_store_explicit(&registry->set, set, memory_order_release);
    return err;
}

static void
add_on_loop(void *argument)
{
    struct addition *addition = argument;
    struct fiber_mutex *changing = &addition->registry->changing;
    addition->err = fiber_mutex_lock(changing, addition->arena);
    if (addition->err != NULL)
        return;
    for (int attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        addition->err = try_add(addition);
        if (addition->err == NULL || addition->err->kind != ERR_FENCED)
            break;
    }
    fiber_mutex_unlock(changing);
}

struct error *
registry_add(struct registry *registry, const struct registry_key *keys, size_t count,
             struct arena *arena)
{
    struct addition addition = {.registry = registry, .keys = keys, .count = count, .arena = arena};
    struct error *err = loop_call(loop_at(0), add_on_loop, &addition, arena);
    return err != NULL ? err : addition.err;
}
