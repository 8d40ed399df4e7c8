/* key_set.c - keys are replaced while the server runs: the signer of tokens adds a key, waits until
 * all servers know it, signs with it, and removes the old one.
 *
 * Each loop has its own pointer to the keys in use. New keys are read on loop 0 and handed to every
 * loop; when all have them the old ones are freed, and every token that was remembered as good is
 * forgotten. */
#include "access/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/probe.h"

#define CHECK_INTERVAL (2 * NS_PER_S)

struct error *
access_key_set_load(const struct access *access, struct arena *arena, struct key_set **key_set)
{
    struct key_set *loaded = memory_zalloc(1, sizeof *loaded);
    loaded->arena = arena_new(0);
    struct error *err =
        access_keys_load(access->key_file, access->set_file, loaded->arena, &loaded->keys);
    *key_set = loaded;
    if (err == NULL)
        return NULL;
    err = error_copy(arena, err);
    access_key_set_free(loaded);
    *key_set = NULL;
    return err;
}

void
access_key_set_free(struct key_set *key_set)
{
    if (key_set == NULL)
        return;
    access_keys_free(&key_set->keys);
    arena_free(key_set->arena);
    memory_free(key_set);
}

static bool
is_same(const struct access_keys *one, const struct access_keys *other)
{
    return slice_equal(one->own, other->own) && slice_equal(one->set, other->set);
}

/* --- handing over ---- */

struct key_set_update {
    struct access *access;
    struct key_set *key_set;
};

static void
take(void *argument)
{
    struct key_set_update *key_set_update = argument;
    access_use_key_set(key_set_update->access, key_set_update->key_set);
}

static void
replace(struct access *access, struct key_set *key_set)
{
    struct key_set_update key_set_update = {access, key_set};
    check(loop_index(loop_self()) == 0 && key_set != access->key_set);
    loop_call_every(take, &key_set_update);
    access_key_set_free(access->key_set);
    access->key_set = key_set;
    probe("token_keys_renewed");
}

/* --- looking ---- */

static void
log_failure(struct access *access, const struct error *err)
{
    if (err != NULL && !access->is_stale)
        log_warn(access->options.log, "New keys of tokens cannot be used; the old ones stay.",
                 log_error(err));
    access->is_stale = err != NULL;
}

static void
check_files(struct access *access, struct arena *arena)
{
    struct key_set *key_set = NULL;
    struct error *err = access_key_set_load(access, arena, &key_set);
    if (access->is_closing) {
        access_key_set_free(key_set);
        return;
    }
    log_failure(access, err);
    if (err != NULL)
        return;
    if (is_same(&key_set->keys, &access->key_set->keys)) {
        access_key_set_free(key_set);
        return;
    }
    replace(access, key_set);
    log_info(access->options.log, "The keys of tokens were read again.");
}

static void
watch(void *argument)
{
    struct access *access = argument;
    while (!access->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(CHECK_INTERVAL, arena) != NULL)
            break;
        check_files(access, arena);
    }
    latch_done(&access->watching);
}

void
access_start_watching(struct access *access)
{
    check(loop_index(loop_self()) == 0 && access->watcher == NULL);
    latch_init(&access->watching, 1);
    access->watcher = fiber_start("token-keys", watch, access);
}

void
access_stop_watching(struct access *access)
{
    if (access->watcher == NULL)
        return;
    access->is_closing = true;
    fiber_cancel(access->watcher);
    latch_wait(&access->watching);
}
