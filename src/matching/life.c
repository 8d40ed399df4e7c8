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
        metrics_counter(metrics, "expired_tasks", "Tasks dropped since they waited too long", NULL);
    matching->counters.stored =
        metrics_counter(metrics, "tasks_stored", "Tasks written to the store by their list", NULL);
    matching->counters.passed_on = metrics_counter(
        metrics, "sticky_tasks_passed_on", "Tasks a sticky list gave to the normal one", NULL);
}

struct matching *
matching_new(const struct matching_options *options)
{
    unsigned loops = loop_count();
    struct matching *matching =
        memory_zalloc(1, sizeof *matching + loops * sizeof matching->places[0]);
    matching->options = *options;
    matching->loops = loops;
    for (unsigned i = 0; i < loops; i++) {
        struct place *place = &matching->places[i];
        place->matching = matching;
        place->lists = map_new();
        place->families = map_new();
        place->scratch = arena_new(1024);
        work_init(place);
        place_serve_init(place);
        latch_init(&place->workers, 0);
    }
    count_init(matching);
    return matching;
}

static void
place_drain(struct letter *letter)
{
    struct place *place = container_of(letter, struct place, drain);
    place->is_drained = true;
    size_t cursor = 0;
    void *value;
    while (map_next(place->lists, &cursor, NULL, &value)) {
        struct task_list *list = value;
        while (!list_is_empty(&list->polls))
            poll_go_home(list_entry(list->polls.next, struct poll, node), POLL_EMPTY);
    }
    letter_arrived(place->matching);
}

void
matching_drain(struct matching *matching)
{
    if (atomic_exchange(&matching->is_draining, true))
        return;
    for (unsigned i = 0; i < matching->loops; i++) {
        struct place *place = &matching->places[i];
        place->drain.deliver = place_drain;
        matching_send(matching, place_loop(place), &place->drain);
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

/* Deaf to cancel. */
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
place_close(void *argument)
{
    struct place *place = argument;
    place_stop(place);
    size_t cursor = 0;
    void *value;
    while (map_next(place->lists, &cursor, NULL, &value))
        list_free(value);
    check(map_count(place->lists) == 0);
    map_free(place->lists);
    families_free(place);
    work_free(place);
    arena_free(place->scratch);
}

struct closing {
    struct letter letter;
    struct place *place;
    struct loop *home;
    struct latch *open;
};

static void
closing_done(struct letter *letter)
{
    struct closing *closing = container_of(letter, struct closing, letter);
    latch_done(closing->open);
}

static void
closing_fiber(void *argument)
{
    struct closing *closing = argument;
    place_close(closing->place);
    closing->letter.deliver = closing_done;
    loop_post_answer(closing->home, &closing->letter);
}

static void
closing_arrived(struct letter *letter)
{
    fiber_start("matching close", closing_fiber, container_of(letter, struct closing, letter));
}

void
matching_free(struct matching *matching)
{
    check(loop_index(loop_self()) == 0);
    matching_drain(matching);
    while (atomic_load(&matching->travelling) > 0)
        nap_for(NS_PER_MS);
    struct latch open;
    latch_init(&open, matching->loops);
    struct closing *closings = memory_zalloc(matching->loops, sizeof *closings);
    for (unsigned i = 0; i < matching->loops; i++) {
        closings[i] =
            (struct closing){.place = &matching->places[i], .home = loop_self(), .open = &open};
        closings[i].letter.deliver = closing_arrived;
        loop_post_answer(loop_at(i), &closings[i].letter);
    }
    latch_wait(&open);
    check(atomic_load(&matching->held) == 0);
    memory_free(closings);
    memory_free(matching);
}
