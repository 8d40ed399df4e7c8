/* lock.c - see lock.h. */
#include "base/lock.h"

#include "base/check.h"

void
lock_init(struct lock *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    int failed = pthread_mutex_init(&lock->mutex, &attributes);
    check(failed == 0);
    pthread_mutexattr_destroy(&attributes);
}

void
lock_free(struct lock *lock)
{
    int failed = pthread_mutex_destroy(&lock->mutex);
    check(failed == 0);
}
