/* lock.h - for the few things that threads share and that no message can carry.
 *
 * Hold it for a handful of lookups, never while something blocks or a fiber yields. A thread that
 * finds it taken spins for a moment before it sleeps: the holder is about to let go. */
#ifndef CADENZA_BASE_LOCK_H
#define CADENZA_BASE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

void lock_init(struct lock *lock);
void lock_free(struct lock *lock);

static inline void
lock_take(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

static inline void
lock_leave(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#endif
