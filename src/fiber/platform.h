/* platform.h - what a process stands on: its loops, clock, network, disk, threads, signals.
 *
 * Two platforms keep the promises of this folder: linux/ (real, libuv) and sim/ (virtual, seeded,
 * see sim/world.h). A program links one of them; the server's code cannot tell which. */
#ifndef CADENZA_FIBER_PLATFORM_H
#define CADENZA_FIBER_PLATFORM_H

#include "base/error.h"

/* Asks for a call on loop 0 when the process is told to stop (SIGTERM, SIGINT; in simulation:
 * world_stop_host). The callback must not yield; it may be called more than once. One watcher at a
 * time; NULL removes it. */
void platform_on_stop(void (*stop)(void *context), void *context);

/* How many file descriptors the process may have open; how many fibers it may have at a time (a
 * stack takes mappings, and the kernel has a limit for them). Both at least 1; UINT_MAX: no limit,
 * as in simulation. Listeners take a part of them and refuse more, since running out of either
 * hurts the whole process. */
unsigned platform_descriptors(void);
unsigned platform_fibers(void);

/* Asks for a call on this loop (the one that calls) whenever file descriptor `descriptor` is
 * readable: for libraries that bring their own epoll set. linux only; a check in simulation. */
struct watch;
struct watch *watch_new(int descriptor, void (*ready)(void *context), void *context);
void watch_free(struct watch *watch);

#endif
