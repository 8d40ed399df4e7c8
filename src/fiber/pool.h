/* pool.h - threads for what blocks: cold reads, SQLite, key files, fsync.
 *
 * The fiber waits, the loop goes on. In simulation the work runs inline at a seeded later time. */
#ifndef CADENZA_FIBER_POOL_H
#define CADENZA_FIBER_POOL_H

#include "base/error.h"
#include "fiber/loop.h"

/* Runs work(argument) on a thread of the pool and waits until it is done. Yields; cannot be
 * cancelled, so `argument` may point to this stack. Errors: ERR_BUSY (POOL_QUEUE_MAX pieces wait
 * already, nothing ran). */
#define POOL_QUEUE_MAX 4096
must_use struct error *pool_run(void (*work)(void *argument), void *argument, struct arena *arena);

/* A thread of its own for one purpose, with a queue: it is called with everything that waits at
 * once, e.g. a committer that makes one group of it. In simulation: a seeded later time, on no
 * thread. `drain` takes messages from the front of `messages` until the list is empty and answers
 * each with loop_post_answer to the loop it came from (kept in what the message is a member of). It
 * may block. */
struct worker;
struct worker *worker_new(const char *name, void (*process)(void *context, struct list *messages),
                          void *context);
/* The same, for work that is long and must not hold up what is short: the thread gets the CPU that
 * others leave, and a tenth of their share when they leave none. In simulation: no difference. */
struct worker *worker_new_patient(const char *name,
                                  void (*process)(void *context, struct list *messages),
                                  void *context);
/* Queues a message from any loop. Never refused: bound it where it is made. */
void worker_post(struct worker *worker, struct loop_message *message);
/* For `drain` alone: waits until this many messages are queued behind those that it was given, or
 * the time is over, and returns how many there are. Blocks; in simulation it returns at once. */
size_t worker_await(struct worker *worker, size_t count, int64_t time);
/* Waits until the queue is empty and the thread has ended. Yields. */
void worker_free(struct worker *worker);

#endif
