/* registry.c - see registry.h.
 *
 * Changes are made where the domains live, one at a time. Each reads what is stored first: another
 * host of the cluster may have added something, and then the guard says so. */
#include "visibility/feed/registry.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "cadenza/internal/v1/visibility.pb-c.h"
#include "config/value.h"
#include "fiber/sync.h"
#include "route/ask.h"
#include "store/key.h"
#include "wire/message.h"
#include "wire/names.h"

#define ATTEMPTS_MAX 5 /* another host may change it at the same time */

struct registry {
    struct store *store;
    struct route_service service;
    struct arena *arena; /* of the sets */
    _Atomic(const struct attribute_set *) set;
    struct fiber_mutex changing; /* where the domains live, as the rest */

    struct { /* the setting */
        const struct dynamic *dynamic;
        const struct log *log;
        int64_t interval;
        struct arena *arena;          /* of `map` */
        const struct value_pair *map; /* as it was taken; NULL: not yet */
        struct fiber *fiber;          /* NULL: it is not followed */
        struct latch open;
    } setting;
};

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

/* A column may stand in the setting, as in Cadence, where it has to; it stays what it is. */
static void
take_pair(struct registry *registry, const struct value_pair *pair, struct attribute_set *set)
{
    enum attribute_type type;
    const struct search_attribute *known = attribute_find(set, pair->name);
    if (known != NULL && known->column != COLUMN_NONE)
        return;
    const char *why = "not a type";
    if (attribute_type_parse(slice_text(pair->text), &type)) {
        struct error *err = attribute_set_add(set, pair->name, type, registry->arena);
        why = err == NULL ? NULL : err->message;
    }
    if (why != NULL)
        log_warn(registry->setting.log, "a search attribute of the settings is ignored",
                 log_text("name", pair->name), log_text("type", pair->text),
                 log_text("reason", why));
}

/* All that is stored and set, as a new set, with the guard that it belongs to (NULL: not wanted).
 * Yields. */
static struct error *
read_set(struct registry *registry, struct arena *arena, struct attribute_set **set,
         uint64_t *guard)
{
    *set = attribute_set_new(registry->arena);
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_ATTRIBUTES,
                        .kind = ROW_SEARCH_ATTRIBUTE,
                        .wants_guard = guard != NULL};
    struct error *err = store_scan(registry->store, &scan, arena, &rows);
    if (err == NULL && guard != NULL)
        *guard = rows.guard;
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = take_row(&rows.row[i], *set, registry->arena, arena);
    const struct value_pair *pair = registry->setting.map;
    for (; err == NULL && pair != NULL && pair->name != NULL; pair++)
        take_pair(registry, pair, *set);
    return err;
}

struct error *
registry_open(struct store *store, struct arena *arena, struct registry **opened)
{
    struct registry *registry = memory_zalloc(1, sizeof *registry);
    registry->store = store;
    registry->service.context = registry;
    registry->arena = arena_new(0);
    fiber_mutex_init(&registry->changing);
    latch_init(&registry->setting.open, 0);
    struct attribute_set *set;
    struct error *err = read_set(registry, arena, &set, NULL);
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
    if (registry->setting.fiber != NULL) {
        fiber_cancel(registry->setting.fiber);
        latch_wait(&registry->setting.open);
    }
    arena_free(registry->setting.arena);
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

/* What is stored and the new keys become the set, if the guard is still the same. Yields. */
static struct error *
try_add(struct registry *registry, const INTERNAL(AddSearchAttributesQuestion) * request,
        struct arena *arena)
{
    uint64_t guard;
    check(registry->changing.owner == fiber_self());
    struct attribute_set *set;
    struct error *err = read_set(registry, arena, &set, &guard);
    if (err != NULL)
        return err;
    struct batch *batch = batch_new(arena, PARTITION_OF_ATTRIBUTES, guard + 1);
    for (size_t i = 0; err == NULL && i < request->n_keys; i++) {
        const INTERNAL(SearchAttributeKey) *key = request->keys[i];
        if (key->type >= ATTRIBUTE_TYPE_COUNT) /* of a later version */
            return error_new(arena, ERR_BAD_REQUEST, "%s is of no type that there is", key->name);
        uint8_t *type = arena_alloc(arena, 1);
        *type = (uint8_t)key->type;
        err = attribute_set_add(set, key->name, (enum attribute_type)key->type, registry->arena);
        err = err == NULL ? NULL : error_copy(arena, err);
        batch_put(batch, ROW_SEARCH_ATTRIBUTE, key_of_text(key->name, arena), slice_of(type, 1));
    }
    if (err == NULL)
        err = store_commit(registry->store, batch, guard, arena);
    if (err == NULL)
        atomic_store_explicit(&registry->set, set, memory_order_release);
    return err;
}

static struct error *
serve_add(void *context, struct owner owner, const void *request, struct arena *arena, void *answer)
{
    struct registry *registry = context;
    struct error *err = fiber_mutex_lock(&registry->changing, arena);
    if (err != NULL)
        return err;
    for (int attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        err = try_add(registry, request, arena);
        if (err == NULL || err->kind != ERR_FENCED)
            break;
    }
    fiber_mutex_unlock(&registry->changing);
    return err;
}

/* Adds keys. Once more: they are there already, with the same types, which changes nothing. No
 * answer: the operator asks again. */
static const struct route_question ask_add = {
    .name = "visibility.add_search_attributes",
    .request = INTERNAL_TYPE(add_search_attributes_question),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_add,
    .may_come_twice = true,
};

struct error *
registry_add(struct registry *registry, const struct registry_key *keys, size_t count,
             struct arena *arena)
{
    INTERNAL(AddSearchAttributesQuestion)
    request = INTERNAL_VALUE(ADD_SEARCH_ATTRIBUTES_QUESTION__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    request.keys = arena_zalloc(arena, count, sizeof *request.keys);
    for (; request.n_keys < count; request.n_keys++)
        request.keys[request.n_keys] =
            INTERNAL_NEW(arena, search_attribute_key, .name = (char *)keys[request.n_keys].name,
                         .type = (uint32_t)keys[request.n_keys].type);
    return route_ask(owner_of_domains(), &registry->service, &ask_add, &request, arena, &answer);
}

/* --- the setting ---- */

static bool
is_same_map(const struct value_pair *one, const struct value_pair *other)
{
    for (; one->name != NULL && other->name != NULL; one++, other++) {
        if (strcmp(one->name, other->name) != 0 || strcmp(one->text, other->text) != 0)
            return false;
    }
    return one->name == other->name;
}

/* Settings live until the next yield only. */
static const struct value_pair *
copy_map(const struct value_pair *map, struct arena *arena)
{
    size_t count = 0;
    while (map[count].name != NULL)
        count++;
    struct value_pair *copy = arena_zalloc(arena, count + 1, sizeof copy[0]);
    for (size_t i = 0; i < count; i++)
        copy[i] =
            (struct value_pair){arena_text(arena, map[i].name), arena_text(arena, map[i].text)};
    return copy;
}

/* Locked. What could not be read this time is read at the next look. */
static struct error *
take_map(struct registry *registry, struct arena *arena)
{
    check(registry->changing.owner == fiber_self());
    const struct value_pair *map =
        dynamic_value(registry->setting.dynamic, DYNAMIC_SEARCH_ATTRIBUTES, NULL)->map;
    if (registry->setting.map != NULL && is_same_map(registry->setting.map, map))
        return NULL;
    struct attribute_set *set;
    arena_reset(registry->setting.arena);
    registry->setting.map = copy_map(map, registry->setting.arena);
    struct error *err = read_set(registry, arena, &set, NULL);
    if (err == NULL)
        atomic_store_explicit(&registry->set, set, memory_order_release);
    else
        registry->setting.map = NULL;
    return err;
}

static struct error *
read_setting(struct registry *registry, struct arena *arena)
{
    struct error *err = fiber_mutex_lock(&registry->changing, arena);
    if (err != NULL)
        return err;
    err = take_map(registry, arena);
    fiber_mutex_unlock(&registry->changing);
    return err;
}

static void
follow(void *argument)
{
    struct registry *registry = argument;
    for (;;) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(registry->setting.interval, arena) != NULL)
            break; /* cancelled */
        struct error *err = read_setting(registry, arena);
        if (err != NULL && !fiber_is_cancelled())
            log_warn(registry->setting.log, "search attributes of the settings are not applied yet",
                     log_error(err));
    }
    latch_done(&registry->setting.open);
}

struct error *
registry_follow(struct registry *registry, const struct dynamic *dynamic, int64_t interval,
                const struct log *log, struct arena *arena)
{
    check(registry->setting.fiber == NULL && route_is_here(owner_of_domains()) && interval > 0);
    registry->setting.dynamic = dynamic;
    registry->setting.log = log;
    registry->setting.interval = interval;
    registry->setting.arena = arena_new(0);
    struct error *err = read_setting(registry, arena);
    if (err != NULL)
        return err;
    latch_add(&registry->setting.open, 1);
    registry->setting.fiber = fiber_start("search attributes", follow, registry);
    return NULL;
}
