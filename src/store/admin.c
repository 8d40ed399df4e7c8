/* admin.c - see admin.h. What an engine has no function for, it cannot do. */
#include "store/admin.h"

#include "base/check.h"
#include "store/engine.h"

static const struct store_admin *
admin_of(const struct store *store)
{
    static const struct store_admin nothing;
    return store->engine->admin == NULL ? &nothing : store->engine->admin;
}

const char *
store_name(const struct store *store)
{
    return store->engine->name;
}

bool
store_is_alone(const struct store *store)
{
    return store->engine->is_alone(store);
}

struct error *
store_backup(struct store *store, const char *folder, struct arena *arena)
{
    if (admin_of(store)->backup == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "The %s store makes no backups by itself.",
                         store_name(store));
    return admin_of(store)->backup(store, folder, arena);
}

const char *
store_damage(const struct store *store, struct arena *arena)
{
    return admin_of(store)->damage == NULL ? NULL : admin_of(store)->damage(store, arena);
}

enum store_memory
store_memory(const struct store *store)
{
    return admin_of(store)->memory == NULL ? STORE_WHOLE : admin_of(store)->memory(store);
}

const char *
store_memory_word(enum store_memory memory)
{
    static const char *const words[] = {"whole", "restored", "copied"};
    check(memory < array_length(words));
    return words[memory];
}

struct error *
store_set_whole(struct store *store, struct arena *arena)
{
    return admin_of(store)->set_whole == NULL ? NULL : admin_of(store)->set_whole(store, arena);
}
