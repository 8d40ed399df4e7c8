/* life.c - matching begins, drains and ends. See matching.h. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "matching/inside.h"

static void
count_init(struct matching *matching)
{
    struct metrics *metrics = matching->options.metrics;
    if (metrics == NULL)
        return;
    matching->counters.success =
        metrics_counter(metrics, "poll_success", "Polls that got a task", NULL);
    matching->counters.success_sync = metrics_counter(
        metrics, "poll_success_sync", "Polls whose task came while they waited", NULL);
    matching->counters.timeouts =
        metrics_counter(metrics, "poll_timeouts", "Polls that got nothing", NULL);
    matching->counters.expired =
        metrics_counter(metrics, "expired_tasks", "Tasks that expired while they waited", NULL);
    matching->counters.stored =
        metrics_counter(metrics, "tasks_stored", "Tasks written to the store by their list", NULL);
    matching->counters.passed_on = metrics_counter(
        metrics, "sticky_tasks_passed_on", "Tasks a sticky list gave to the normal one", NULL);
}

struct matching *
matching_new(const struct matching_options *options)
{
    unsigned loops = route_place_count();
    struct matching *matching =
        memory_zalloc(1, sizeof *matching + loops * sizeof matching->per_loop[0]);
    matching->options = *options;
    matching->service.context = matching;
    matching->loops = loops;
    for (unsigned i = 0; i < loops; i++) {
        struct loop_lists *loop_lists = &matching->per_loop[i];
        loop_lists->matching = matching;
        loop_lists->place = i;
        loop_lists->lists = map_new();
        loop_lists->partition_groups = map_new();
        loop_lists->scratch = arena_new(1024);
        loop_lists->callers = memory_zalloc(loops, sizeof *loop_lists->callers);
        loop_lists->reservations = map64_new();
        list_init(&loop_lists->reserved);
        poll_table_init(&loop_lists->polls);
        work_init(loop_lists);
        loop_lists_serve_init(loop_lists);
        latch_init(&loop_lists->workers, 0);
    }
    count_init(matching);
    return matching;
}

static void
loop_lists_shut_down(struct loop_message *message)
{
    struct loop_lists *loop_lists = container_of(message, struct loop_lists, shutdown);
    loop_lists->is_drained = true;
    size_t cursor = 0;
    void *value;
    while (map_next(loop_lists->lists, &cursor, NULL, &value)) {
        struct task_list *list = value;
        while (!list_is_empty(&list->polls))
            waiting_poll_send_back(loop_lists->matching,
                                   list_entry(list->polls.next, struct waiting_poll, node),
                                   POLL_EMPTY);
    }
    poll_table_drain(&loop_lists->polls);
    atomic_fetch_sub(&loop_lists->matching->service.on_the_way, 1);
}

void
matching_shut_down(struct matching *matching)
{
    if (atomic_exchange(&matching->is_shutting_down, true))
        return;
    for (unsigned i = 0; i < matching->loops; i++) {
        struct loop_lists *loop_lists = &matching->per_loop[i];
        loop_lists->shutdown.deliver = loop_lists_shut_down;
        atomic_fetch_add(&matching->service.on_the_way, 1);
        loop_post_answer(loop_at(i), &loop_lists->shutdown);
    }
}

struct nap {
    struct timer timer;
    struct fiber *fiber;
    bool is_over;
};

static void
nap_over(struct timer *timer)
{
    struct nap *nap = container_of(timer, struct nap, timer);
    nap->is_over = true;
    fiber_wake(nap->fiber);
}

/* Cannot be cancelled. */
static void
nap_for(int64_t duration)
{
    struct nap nap = {.fiber = fiber_self()};
    timer_init(&nap.timer, nap_over);
    timer_start(&nap.timer, clock_monotonic() + duration);
    while (!nap.is_over)
        fiber_wait_uncancellable();
}

static void
loop_lists_free(struct loop_lists *loop_lists)
{
    check(loop_lists->is_closing && loop_lists->workers.open == 0);
    loop_lists_serve_stop(loop_lists); /* of what has come since */
    reservations_forget(loop_lists);
    size_t cursor = 0;
    void *value;
    while (map_next(loop_lists->lists, &cursor, NULL, &value))
        list_free(value);
    check(map_count(loop_lists->lists) == 0);
    map_free(loop_lists->lists);
    partition_groups_free(loop_lists);
    work_free(loop_lists);
    for (unsigned i = 0; i < loop_lists->matching->loops; i++)
        place_polls_free(&loop_lists->callers[i]);
    memory_free(loop_lists->callers);
    poll_table_free(&loop_lists->polls);
    check(map64_count(loop_lists->reservations) == 0);
    map64_free(loop_lists->reservations);
    arena_free(loop_lists->scratch);
}

struct closing {
    struct loop_message message;
    struct loop_lists *loop_lists;
    void (*step)(struct loop_lists *loop_lists);
    struct loop *caller_loop;
    struct latch *open;
};

static void
closing_done(struct loop_message *message)
{
    struct closing *closing = container_of(message, struct closing, message);
    latch_done(closing->open);
}

static void
closing_fiber(void *argument)
{
    struct closing *closing = argument;
    closing->step(closing->loop_lists);
    closing->message.deliver = closing_done;
    loop_post_answer(closing->caller_loop, &closing->message);
}

static void
closing_arrived(struct loop_message *message)
{
    fiber_start("matching close", closing_fiber, container_of(message, struct closing, message));
}

/* On all loops at once. Yields. */
static void
close_by(struct matching *matching, void (*step)(struct loop_lists *loop_lists))
{
    struct latch open;
    latch_init(&open, matching->loops);
    struct closing *closings = memory_zalloc(matching->loops, sizeof *closings);
    for (unsigned i = 0; i < matching->loops; i++) {
        closings[i] = (struct closing){.loop_lists = &matching->per_loop[i],
                                       .step = step,
                                       .caller_loop = loop_self(),
                                       .open = &open};
        closings[i].message.deliver = closing_arrived;
        loop_post_answer(loop_at(i), &closings[i].message);
    }
    latch_wait(&open);
    memory_free(closings);
}

static void
wait_for_values(struct matching *matching)
{
    while (atomic_load(&matching->service.on_the_way) > 0)
        nap_for(NS_PER_MS);
}

void
matching_free(struct matching *matching)
{
    check(route_is_here(owner_of_domains()));
    matching_shut_down(matching);
    wait_for_values(matching);
    close_by(matching, loop_lists_stop);
    wait_for_values(matching); /* that timers had sent until then; now nothing is sent any more */
    close_by(matching, loop_lists_free);
    check(atomic_load(&matching->held) == 0);
    check(atomic_load(&matching->service.on_the_way) == 0);
    memory_free(matching);
}
