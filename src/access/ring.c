/* ring.c - keys are replaced while the server runs: who signs tokens adds a key, waits until all
 * know it, signs with it, and takes the old one away.
 *
 * Each loop has a pointer to the keys that it goes by, which nobody else touches. New ones are read
 * on loop 0 and handed to every loop; when all have them the old ones go, and with them every token
 * that was remembered as good. */
#include "access/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/mark.h"

#define LOOK_INTERVAL (2 * NS_PER_S)

struct error *
access_ring_load(const struct access *access, struct arena *arena, struct key_ring **ring)
{
    struct key_ring *loaded = memory_zalloc(1, sizeof *loaded);
    loaded->arena = arena_new(0);
    struct error *err =
        access_keys_load(access->key_file, access->set_file, loaded->arena, &loaded->keys);
    *ring = loaded;
    if (err == NULL)
        return NULL;
    err = error_copy(arena, err);
    access_ring_free(loaded);
    *ring = NULL;
    return err;
}

void
access_ring_free(struct key_ring *ring)
{
    if (ring == NULL)
        return;
    access_keys_free(&ring->keys);
    arena_free(ring->arena);
    memory_free(ring);
}

static bool
is_same(const struct access_keys *one, const struct access_keys *other)
{
    return slice_equal(one->own, other->own) && slice_equal(one->set, other->set);
}

/* --- handing over ---- */

struct hand_over {
    struct access *access;
    struct key_ring *ring;
};

static void
take(void *argument)
{
    struct hand_over *hand_over = argument;
    access_use_ring(hand_over->access, hand_over->ring);
}

static void
replace(struct access *access, struct key_ring *ring, struct arena *arena)
{
    struct hand_over hand_over = {access, ring};
    for (unsigned i = 0; i < access->loop_count; i++) {
        while (loop_call(loop_at(i), take, &hand_over, arena) != NULL)
            fiber_yield(); /* its mailbox is full, for the moment */
    }
    access_ring_free(access->ring);
    access->ring = ring;
    mark("token_keys_renewed");
}

/* --- looking ---- */

static void
note(struct access *access, const struct error *err)
{
    if (err != NULL && !access->is_stale)
        log_warn(access->options.log, "New keys of tokens cannot be used; the old ones stay.",
                 log_error(err));
    access->is_stale = err != NULL;
}

static void
look(struct access *access, struct arena *arena)
{
    struct key_ring *ring = NULL;
    struct error *err = access_ring_load(access, arena, &ring);
    if (access->is_closing) {
        access_ring_free(ring);
        return;
    }
    note(access, err);
    if (err != NULL)
        return;
    if (is_same(&ring->keys, &access->ring->keys)) {
        access_ring_free(ring);
        return;
    }
    replace(access, ring, arena);
    log_info(access->options.log, "The keys of tokens were read again.");
}

static void
watch(void *argument)
{
    struct access *access = argument;
    while (!access->is_closing) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep(LOOK_INTERVAL, arena) != NULL)
            break;
        look(access, arena);
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
