/* readers.c - a few threads answer queries, each with a connection of its own; a query that comes
 * when all are busy waits in a queue.
 *
 * They are threads of their own, not the pool's: a storm of slow queries must not delay what the
 * engine gives to the pool. And they have a low priority: where the CPU is short, queries wait and
 * not the engine. The queue belongs to the loop that opened it (its owner): queries of other loops
 * get there by loop_call, so it needs no lock and is fair to all.
 *
 * A query that takes longer than its caller waits is stopped: the caller raises a flag, which
 * the thread looks at every PROGRESS_STEPS instructions of SQLite's machine. The caller still waits
 * for the thread's answer, since the thread uses its memory. */
#include "base/check.h"
#include "fiber/clock.h"
#include "visibility/sqlite/inside.h"

#define PROGRESS_STEPS 2000 /* far less than a millisecond */
/* Longer than anybody should wait: a query holds a read transaction, and the log grows meanwhile.
 */
#define QUESTION_MAX (60 * NS_PER_S)

/* A question on a reader's thread. */
struct reader_request {
    struct loop_message message;
    int (*ask)(sqlite3 *database, void *argument);
    void *argument;
    struct loop *caller_loop;
    struct fiber *fiber;
    atomic_bool is_stopped;
    bool is_done;
    int code;
    char why[200];
};

struct database_reader {
    struct list node; /* among the free ones */
    struct worker *worker;
    sqlite3 *database;
    struct reader_request *reader_request; /* the thread's, while it works */
};

/* A fiber of the owner loop in the queue. */
struct reader_waiter {
    struct list node;
    struct fiber *fiber;
    struct database_reader *database_reader; /* its turn has come */
};

struct readers {
    struct loop *caller_loop;
    struct list idle;    /* struct reader */
    struct list waiters; /* struct waiter, first come first */
    size_t waiting;
    struct database_reader all[READERS];
    struct counter *questions, *stopped;
    struct gauge *in_line;
};

/* ---- a thread ---- */

static int
look_at_flag(void *context)
{
    struct database_reader *database_reader = context;
    return database_reader->reader_request != NULL &&
           atomic_load(&database_reader->reader_request->is_stopped);
}

static void
database_reader_deliver(void *context, struct list *messages)
{
    struct database_reader *database_reader = context;
    for (struct list *node; (node = list_pop_front(messages)) != NULL;) {
        struct reader_request *reader_request = container_of(
            list_entry(node, struct loop_message, node), struct reader_request, message);
        database_reader->reader_request = reader_request;
        reader_request->code =
            reader_request->ask(database_reader->database, reader_request->argument);
        database_reader->reader_request = NULL;
        if (reader_request->code != SQLITE_OK)
            sqlite3_snprintf(sizeof reader_request->why, reader_request->why, "%s",
                             sqlite3_errmsg(database_reader->database));
        loop_post_answer(reader_request->caller_loop, &reader_request->message);
    }
}

/* ---- the queue ---- */

/* No reader is idle while somebody waits for one. */
static void
readers_check(const struct readers *readers)
{
    check(readers->caller_loop == loop_self() && readers->waiting <= WAITERS_MAX);
    check(list_is_empty(&readers->idle) || list_is_empty(&readers->waiters));
    if (!CHECK_DEEPLY)
        return;
    size_t idle = 0, waiters = 0;
    list_each(node, &readers->idle)
        idle++;
    list_each(node, &readers->waiters)
        waiters++;
    check(idle <= READERS && waiters <= readers->waiting); /* some were handed a reader just now */
}

static void
give_back(struct readers *readers, struct database_reader *database_reader)
{
    struct list *first = list_pop_front(&readers->waiters);
    check(list_is_empty(&database_reader->node));
    if (first == NULL) {
        list_push_back(&readers->idle, &database_reader->node);
        return;
    }
    struct reader_waiter *reader_waiter = list_entry(first, struct reader_waiter, node);
    reader_waiter->database_reader = database_reader;
    fiber_wake(reader_waiter->fiber);
}

static struct error *
wait_in_queue(struct readers *readers, struct arena *arena,
              struct database_reader **database_reader)
{
    if (readers->waiting >= WAITERS_MAX)
        return error_new(arena, ERR_UNAVAILABLE, "visibility: %d questions wait already",
                         WAITERS_MAX);
    struct reader_waiter reader_waiter = {.fiber = fiber_self()};
    check(reader_waiter.fiber != NULL);
    list_push_back(&readers->waiters, &reader_waiter.node);
    gauge_set(readers->in_line, (int64_t)++readers->waiting);
    enum wake wake = WAKE_READY;
    while (reader_waiter.database_reader == NULL && wake == WAKE_READY)
        wake = fiber_wait(NEVER);
    gauge_set(readers->in_line, (int64_t)--readers->waiting);
    list_remove(&reader_waiter.node);
    *database_reader =
        reader_waiter
            .database_reader; /* even if the deadline came with it: the query will see that */
    return reader_waiter.database_reader != NULL
               ? NULL
               : wake_error(wake, arena, "waiting to ask visibility");
}

static struct error *
take_reader(struct readers *readers, struct arena *arena, struct database_reader **database_reader)
{
    readers_check(readers);
    struct list *idle = list_pop_front(&readers->idle);
    if (idle == NULL)
        return wait_in_queue(readers, arena, database_reader);
    *database_reader = list_entry(idle, struct database_reader, node);
    return NULL;
}

/* ---- asking ---- */

static void
asking_done(struct loop_message *message)
{
    struct reader_request *reader_request = container_of(message, struct reader_request, message);
    reader_request->is_done = true;
    fiber_wake(reader_request->fiber);
}

/* Waits for the answer; what ends the wait early stops the question. */
static enum wake
wait_for_answer(struct reader_request *reader_request)
{
    enum wake wake = WAKE_READY;
    int64_t latest = clock_monotonic() + QUESTION_MAX;
    while (!reader_request->is_done && wake == WAKE_READY)
        wake = fiber_wait(latest);
    if (wake != WAKE_READY)
        atomic_store(&reader_request->is_stopped, true);
    while (!reader_request->is_done)
        fiber_wait_uncancellable();
    return wake;
}

struct reader_call {
    struct readers *readers;
    int (*ask)(sqlite3 *database, void *argument);
    void *argument;
    struct arena *arena;
    struct error *err;
};

static void
ask_on_caller_loop(void *argument)
{
    struct reader_call *reader_call = argument;
    struct readers *readers = reader_call->readers;
    struct database_reader *database_reader;
    reader_call->err = take_reader(readers, reader_call->arena, &database_reader);
    if (reader_call->err != NULL)
        return;
    struct reader_request reader_request = {.ask = reader_call->ask,
                                            .argument = reader_call->argument,
                                            .caller_loop = readers->caller_loop,
                                            .fiber = fiber_self(),
                                            .message = {.deliver = asking_done}};
    worker_post(database_reader->worker, &reader_request.message);
    enum wake wake = wait_for_answer(&reader_request);
    give_back(readers, database_reader);
    readers_check(readers);
    counter_add(readers->questions, 1);
    if (reader_request.code == SQLITE_INTERRUPT) {
        counter_add(readers->stopped, 1);
        reader_call->err = wake_error(wake, reader_call->arena, "visibility looked for runs");
        check(reader_call->err != NULL);
    } else {
        reader_call->err =
            database_error(NULL, reader_request.code, reader_request.why, reader_call->arena);
    }
}

struct error *
readers_ask(struct readers *readers, int (*ask)(sqlite3 *database, void *argument), void *argument,
            struct arena *arena)
{
    struct reader_call reader_call = {
        .readers = readers, .ask = ask, .argument = argument, .arena = arena};
    struct error *err = loop_call(readers->caller_loop, ask_on_caller_loop, &reader_call, arena);
    return err != NULL ? err : reader_call.err;
}

/* ---- opening and closing ---- */

struct readers_opening {
    const char *path;
    struct readers *readers;
    int code;
};

static void
open_on_pool(void *argument)
{
    struct readers_opening *readers_opening = argument;
    for (int i = 0; i < READERS && readers_opening->code == SQLITE_OK; i++) {
        struct database_reader *database_reader = &readers_opening->readers->all[i];
        readers_opening->code =
            database_open_reader(readers_opening->path, &database_reader->database);
        if (readers_opening->code == SQLITE_OK)
            sqlite3_progress_handler(database_reader->database, PROGRESS_STEPS, look_at_flag,
                                     database_reader);
    }
}

static void
readers_free(struct readers *readers)
{
    for (int i = 0; i < READERS; i++) {
        int code = sqlite3_close(readers->all[i].database);
        check_that(code == SQLITE_OK, "a statement of a reader was left behind");
    }
    memory_free(readers);
}

static void
count_into(struct readers *readers, struct metrics *metrics)
{
    readers->questions = metrics_counter(metrics, "cadenza_visibility_questions_total",
                                         "List and count queries to visibility.", NULL);
    readers->stopped =
        metrics_counter(metrics, "cadenza_visibility_stopped_total",
                        "Queries that were stopped because their callers gave up.", NULL);
    readers->in_line = metrics_gauge(metrics, "cadenza_visibility_waiting",
                                     "Queries that wait for a reader.", NULL);
}

struct error *
readers_open(const char *path, struct metrics *metrics, struct arena *arena,
             struct readers **readers)
{
    struct readers *opened = memory_zalloc(1, sizeof *opened);
    opened->caller_loop = loop_self();
    list_init(&opened->idle);
    list_init(&opened->waiters);
    count_into(opened, metrics);
    struct readers_opening readers_opening = {.path = path, .readers = opened};
    struct error *err = pool_run(open_on_pool, &readers_opening, arena);
    if (err == NULL)
        err = database_error(NULL, readers_opening.code, path, arena);
    if (err != NULL) {
        readers_free(opened);
        return err;
    }
    for (int i = 0; i < READERS; i++) {
        opened->all[i].worker =
            worker_new_patient("visibility-read", database_reader_deliver, &opened->all[i]);
        list_push_back(&opened->idle, &opened->all[i].node);
    }
    *readers = opened;
    return NULL;
}

void
readers_close(struct readers *readers)
{
    check_that(loop_self() == readers->caller_loop, "visibility is closed where it was opened");
    check_that(list_is_empty(&readers->waiters), "a question waits while visibility closes");
    for (int i = 0; i < READERS; i++) {
        list_remove(&readers->all[i].node);
        worker_free(readers->all[i].worker); /* waits until its question is answered */
    }
    readers_free(readers);
}
