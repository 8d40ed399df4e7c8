/* readers.c - a few threads answer questions, each with a connection of its own; who comes when all
 * are busy waits in line.
 *
 * They are threads of their own, not the pool's: a storm of slow questions must not hold up what
 * the engine has the pool do. And they are patient ones: where the CPU is short, questions wait and
 * not the engine. The line is kept by the loop that opened it (home): questions of other loops are
 * asked there by loop_call, so it needs no lock and is fair to all.
 *
 * A question that takes longer than its caller waits is stopped: the caller raises a flag, which
 * the thread looks at every PROGRESS_STEPS instructions of SQLite's machine. The caller still waits
 * for the thread's answer, since the thread uses its memory. */
#include "base/check.h"
#include "fiber/clock.h"
#include "visibility/sqlite/inside.h"

#define PROGRESS_STEPS 2000 /* far less than a millisecond */
/* Longer than anybody should wait: a question holds its moment, and the log grows meanwhile. */
#define QUESTION_MAX (60 * NS_PER_S)

/* A question on a reader's thread. */
struct asking {
    struct letter letter;
    int (*ask)(sqlite3 *database, void *argument);
    void *argument;
    struct loop *home;
    struct fiber *fiber;
    atomic_bool is_stopped;
    bool is_done;
    int code;
    char why[200];
};

struct reader {
    struct list node; /* among the free ones */
    struct worker *worker;
    sqlite3 *database;
    struct asking *asking; /* the thread's, while it works */
};

/* A fiber of the home loop in line. */
struct waiter {
    struct list node;
    struct fiber *fiber;
    struct reader *reader; /* its turn has come */
};

struct readers {
    struct loop *home;
    struct list idle;    /* struct reader */
    struct list waiters; /* struct waiter, first come first */
    size_t waiting;
    struct reader all[READERS];
    struct counter *questions, *stopped;
    struct gauge *in_line;
};

/* ---- a thread ---- */

static int
look_at_flag(void *context)
{
    struct reader *reader = context;
    return reader->asking != NULL && atomic_load(&reader->asking->is_stopped);
}

static void
reader_drain(void *context, struct list *letters)
{
    struct reader *reader = context;
    for (struct list *node; (node = list_pop_front(letters)) != NULL;) {
        struct asking *asking =
            container_of(list_entry(node, struct letter, node), struct asking, letter);
        reader->asking = asking;
        asking->code = asking->ask(reader->database, asking->argument);
        reader->asking = NULL;
        if (asking->code != SQLITE_OK)
            sqlite3_snprintf(sizeof asking->why, asking->why, "%s",
                             sqlite3_errmsg(reader->database));
        loop_post_answer(asking->home, &asking->letter);
    }
}

/* ---- the line ---- */

static void
give_back(struct readers *readers, struct reader *reader)
{
    struct list *first = list_pop_front(&readers->waiters);
    if (first == NULL) {
        list_push_back(&readers->idle, &reader->node);
        return;
    }
    struct waiter *waiter = list_entry(first, struct waiter, node);
    waiter->reader = reader;
    fiber_wake(waiter->fiber);
}

static struct error *
wait_in_line(struct readers *readers, struct arena *arena, struct reader **reader)
{
    if (readers->waiting >= WAITERS_MAX)
        return error_new(arena, ERR_UNAVAILABLE, "visibility: %d questions wait already",
                         WAITERS_MAX);
    struct waiter waiter = {.fiber = fiber_self()};
    check(waiter.fiber != NULL);
    list_push_back(&readers->waiters, &waiter.node);
    gauge_set(readers->in_line, (int64_t)++readers->waiting);
    enum wake wake = WAKE_READY;
    while (waiter.reader == NULL && wake == WAKE_READY)
        wake = fiber_wait(NEVER);
    gauge_set(readers->in_line, (int64_t)--readers->waiting);
    list_remove(&waiter.node);
    *reader = waiter.reader; /* even if the deadline came with it: the question will see it */
    return waiter.reader != NULL ? NULL : wake_error(wake, arena, "waiting to ask visibility");
}

static struct error *
take_reader(struct readers *readers, struct arena *arena, struct reader **reader)
{
    struct list *idle = list_pop_front(&readers->idle);
    if (idle == NULL)
        return wait_in_line(readers, arena, reader);
    *reader = list_entry(idle, struct reader, node);
    return NULL;
}

/* ---- asking ---- */

static void
asking_done(struct letter *letter)
{
    struct asking *asking = container_of(letter, struct asking, letter);
    asking->is_done = true;
    fiber_wake(asking->fiber);
}

/* Waits for the answer; what ends the wait early stops the question. */
static enum wake
wait_for_answer(struct asking *asking)
{
    enum wake wake = WAKE_READY;
    int64_t latest = clock_monotonic() + QUESTION_MAX;
    while (!asking->is_done && wake == WAKE_READY)
        wake = fiber_wait(latest);
    if (wake != WAKE_READY)
        atomic_store(&asking->is_stopped, true);
    while (!asking->is_done)
        fiber_wait_uncancellable();
    return wake;
}

struct call {
    struct readers *readers;
    int (*ask)(sqlite3 *database, void *argument);
    void *argument;
    struct arena *arena;
    struct error *err;
};

static void
ask_at_home(void *argument)
{
    struct call *call = argument;
    struct readers *readers = call->readers;
    struct reader *reader;
    call->err = take_reader(readers, call->arena, &reader);
    if (call->err != NULL)
        return;
    struct asking asking = {.ask = call->ask,
                            .argument = call->argument,
                            .home = readers->home,
                            .fiber = fiber_self(),
                            .letter = {.deliver = asking_done}};
    worker_post(reader->worker, &asking.letter);
    enum wake wake = wait_for_answer(&asking);
    give_back(readers, reader);
    counter_add(readers->questions, 1);
    if (asking.code == SQLITE_INTERRUPT) {
        counter_add(readers->stopped, 1);
        call->err = wake_error(wake, call->arena, "visibility looked for runs");
        check(call->err != NULL);
    } else {
        call->err = database_error(NULL, asking.code, asking.why, call->arena);
    }
}

struct error *
readers_ask(struct readers *readers, int (*ask)(sqlite3 *database, void *argument), void *argument,
            struct arena *arena)
{
    struct call call = {.readers = readers, .ask = ask, .argument = argument, .arena = arena};
    struct error *err = loop_call(readers->home, ask_at_home, &call, arena);
    return err != NULL ? err : call.err;
}

/* ---- opening and closing ---- */

struct opening {
    const char *path;
    struct readers *readers;
    int code;
};

static void
open_on_pool(void *argument)
{
    struct opening *opening = argument;
    for (int i = 0; i < READERS && opening->code == SQLITE_OK; i++) {
        struct reader *reader = &opening->readers->all[i];
        opening->code = database_open_reader(opening->path, &reader->database);
        if (opening->code == SQLITE_OK)
            sqlite3_progress_handler(reader->database, PROGRESS_STEPS, look_at_flag, reader);
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
                                         "Lists and counts that visibility was asked for.", NULL);
    readers->stopped =
        metrics_counter(metrics, "cadenza_visibility_stopped_total",
                        "Questions that were stopped because nobody waited any more.", NULL);
    readers->in_line = metrics_gauge(metrics, "cadenza_visibility_waiting",
                                     "Questions that wait for a reader.", NULL);
}

struct error *
readers_open(const char *path, struct metrics *metrics, struct arena *arena,
             struct readers **readers)
{
    struct readers *opened = memory_zalloc(1, sizeof *opened);
    opened->home = loop_self();
    list_init(&opened->idle);
    list_init(&opened->waiters);
    count_into(opened, metrics);
    struct opening opening = {.path = path, .readers = opened};
    struct error *err = pool_run(open_on_pool, &opening, arena);
    if (err == NULL)
        err = database_error(NULL, opening.code, path, arena);
    if (err != NULL) {
        readers_free(opened);
        return err;
    }
    for (int i = 0; i < READERS; i++) {
        opened->all[i].worker =
            worker_new_patient("visibility-read", reader_drain, &opened->all[i]);
        list_push_back(&opened->idle, &opened->all[i].node);
    }
    *readers = opened;
    return NULL;
}

void
readers_close(struct readers *readers)
{
    check_that(loop_self() == readers->home, "visibility is closed where it was opened");
    check_that(list_is_empty(&readers->waiters), "a question waits while visibility closes");
    for (int i = 0; i < READERS; i++) {
        list_remove(&readers->all[i].node);
        worker_free(readers->all[i].worker); /* waits until its question is answered */
    }
    readers_free(readers);
}
