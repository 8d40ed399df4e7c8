/* linux.h - starts a real process platform: loops on threads, each a libuv loop. For main() and
 * tests. */
#ifndef CADENZA_FIBER_LINUX_H
#define CADENZA_FIBER_LINUX_H

#include "fiber/fiber.h"

struct linux_options {
    unsigned loops;        /* 0: one per core, but one core is left to other threads */
    unsigned pool_threads; /* 0: 4 */
    bool catch_signals;    /* SIGTERM, SIGINT → platform_on_stop; SIGPIPE ignored in any case */
};

/* Starts the loops, runs function(argument) as the first fiber of loop 0, and returns when that
 * fiber has returned and every loop has stopped. Fibers that still live on any loop at that time
 * are cancelled and waited for; what is still there after that is a check that names them. */
void linux_run(const struct linux_options *options, void (*function)(void *argument),
               void *argument);

/* Asks for a call on loop 0, from there, for each SIGHUP. The callback must not yield. One at a
 * time; NULL removes it: then SIGHUP ends the process, as it does before. */
void linux_on_hangup(void (*hangup)(void *context), void *context);

#endif
