/* worker.c - a thread of its own for one purpose, which is given all that waits at once.
 *
 * A loop wakes the workers that it has posted to at the end of its turn: one that was woken by the
 * first message would begin with it alone, and a store would sync for one commit where ten are
 * about to come. A worker that is awake takes what is there when it is done. */
#include <sys/resource.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"
#include "fiber/pool.h"

#define PATIENT_NICE 10 /* about a tenth of the weight of a thread with 0 */

struct worker {
    void (*process)(void *context, struct list *messages);
    void *context;
    struct platform *platform;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t has_messages;
    struct list messages;
    size_t count;        /* of them */
    size_t wanted;       /* it waits until there are so many; 0: it is awake */
    atomic_uint holders; /* loops that are going to wake it, and its owner; the last one frees it */
    bool is_patient;
    bool is_ending;
    struct loop_message end; /* the thread's last message, to the fiber that frees it */
    struct loop *end_to;
    struct fiber *end_waiter;
    bool has_ended;
};

/* Moves all that waits to `messages`; blocks until there is some. False: the end. */
static bool
worker_take(struct worker *worker, struct list *messages)
{
    pthread_mutex_lock(&worker->lock);
    worker->wanted = 1;
    while (worker->count == 0 && !worker->is_ending)
        pthread_cond_wait(&worker->has_messages, &worker->lock);
    worker->wanted = 0;
    worker->count = 0;
    list_splice_back(messages, &worker->messages);
    pthread_mutex_unlock(&worker->lock);
    return !list_is_empty(messages);
}

size_t
worker_await(struct worker *worker, size_t count, int64_t time)
{
    struct timespec limit;
    /* tidy: allow clock_gettime - for a wait of a thread without a loop */
    clock_gettime(CLOCK_MONOTONIC, &limit);
    int64_t nanoseconds = limit.tv_nsec + time;
    limit.tv_sec += nanoseconds / NS_PER_S;
    limit.tv_nsec = nanoseconds % NS_PER_S;
    pthread_mutex_lock(&worker->lock);
    worker->wanted = count;
    while (worker->count < count && !worker->is_ending &&
           pthread_cond_timedwait(&worker->has_messages, &worker->lock, &limit) == 0)
        continue;
    worker->wanted = 0;
    size_t queued = worker->count;
    pthread_mutex_unlock(&worker->lock);
    return queued;
}

static void *
worker_thread(void *argument)
{
    struct worker *worker = argument;
    struct list messages;
    list_init(&messages);
    id_t self = (id_t)gettid(); /* on Linux the priority is the thread's */
    if (worker->is_patient && getpriority(PRIO_PROCESS, self) < PATIENT_NICE)
        setpriority(PRIO_PROCESS, self, PATIENT_NICE);
    while (worker_take(worker, &messages)) {
        worker->process(worker->context, &messages);
        check_that(list_is_empty(&messages), "a worker left messages undrained");
    }
    loop_post_answer(worker->end_to, &worker->end);
    return NULL;
}

static struct worker *
worker_start(const char *name, void (*process)(void *context, struct list *messages), void *context,
             bool is_patient)
{
    struct worker *worker = memory_zalloc(1, sizeof *worker);
    worker->process = process;
    worker->context = context;
    worker->is_patient = is_patient;
    atomic_init(&worker->holders, 1);
    worker->platform = linux_loop_self()->platform;
    atomic_fetch_add(&worker->platform->worker_count, 1);
    list_init(&worker->messages);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->has_messages, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int failed = pthread_create(&worker->thread, NULL, worker_thread, worker);
    check_that(failed == 0, "no thread for %s", name);
    char short_name[16] = ""; /* the kernel's limit */
    for (size_t i = 0; i < sizeof short_name - 1 && name[i] != '\0'; i++)
        short_name[i] = name[i];
    pthread_setname_np(worker->thread, short_name);
    return worker;
}

struct worker *
worker_new(const char *name, void (*process)(void *context, struct list *messages), void *context)
{
    return worker_start(name, process, context, false);
}

struct worker *
worker_new_patient(const char *name, void (*process)(void *context, struct list *messages),
                   void *context)
{
    return worker_start(name, process, context, true);
}

static void
worker_drop(struct worker *worker)
{
    if (atomic_fetch_sub(&worker->holders, 1) > 1)
        return;
    pthread_cond_destroy(&worker->has_messages);
    pthread_mutex_destroy(&worker->lock);
    memory_free(worker);
}

static void
wake_later(struct linux_loop *loop, struct worker *worker)
{
    vector_each(known, &loop->to_wake)
        if (*known == worker)
            return;
    atomic_fetch_add(&worker->holders, 1);
    vector_push(&loop->to_wake, worker);
}

void
worker_wake_all(struct linux_loop *sender)
{
    vector_each(worker, &sender->to_wake) {
        pthread_cond_signal(&(*worker)->has_messages);
        worker_drop(*worker);
    }
    sender->to_wake.count = 0;
}

void
worker_post(struct worker *worker, struct loop_message *message)
{
    pthread_mutex_lock(&worker->lock);
    check_that(!worker->is_ending, "a message for a worker that ends");
    list_push_back(&worker->messages, &message->node);
    worker->count++;
    bool is_wanted = worker->wanted > 0 && worker->count >= worker->wanted;
    pthread_mutex_unlock(&worker->lock);
    if (is_wanted)
        wake_later(linux_loop_self(), worker);
}

static void
worker_ended(struct loop_message *message)
{
    struct worker *worker = container_of(message, struct worker, end);
    worker->has_ended = true;
    fiber_wake(worker->end_waiter);
}

void
worker_free(struct worker *worker)
{
    worker->end.deliver = worker_ended;
    worker->end_to = loop_self();
    worker->end_waiter = fiber_self();
    check(worker->end_waiter != NULL);
    pthread_mutex_lock(&worker->lock);
    worker->is_ending = true;
    pthread_cond_signal(&worker->has_messages);
    pthread_mutex_unlock(&worker->lock);
    while (!worker->has_ended)
        fiber_wait_uncancellable();
    pthread_join(worker->thread, NULL); /* it has nothing left to do but return */
    atomic_fetch_sub(&worker->platform->worker_count, 1);
    worker_drop(worker);
}
