/* engine.c - the engine's table: a host's side of a base.
 *
 * All work on the base is done on one loop, the owner, where the store was opened: other loops send
 * messages. So a base needs no lock, and on linux two loops of a process cannot meet in it.
 *
 *   IDLE --a commit arrives--> WRITING --written--> SYNCING --durable--> IDLE, or WRITING again
 *
 * Whatever arrives while the disk is busy waits and becomes the next group. The base decides over a
 * flight (does it land?), this file over the commit of the host that belongs to it: the two lists
 * have the same order. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "fiber/timer.h"
#include "store/memory/inside.h"

/* ---- invariants ---- */

/* Flights whose commits wait for an answer. */
static size_t
count_unanswered(const struct list *flights)
{
    size_t count = 0;
    list_each(node, flights)
        count += !list_entry(node, struct flight, node)->is_answered;
    return count;
}

/* Something is written exactly while the disk is busy, and every commit that waits has its flight.
 */
static void
memory_store_check(const struct memory_store *store)
{
    const struct memory_handle *handle = store->handle;
    bool is_idle = store->phase == PHASE_IDLE;
    check(store->owner_loop == loop_self());
    check(is_idle == list_is_empty(&handle->group));
    check(!is_idle || (list_is_empty(&handle->waiting) && list_is_empty(&store->commits)));
    if (!CHECK_DEEPLY)
        return;
    size_t commits = 0;
    list_each(node, &store->commits)
        commits++;
    check(commits == count_unanswered(&handle->group) + count_unanswered(&handle->waiting));
}

/* ---- writing; on the owner loop ---- */

/* Without a delay the phase ends with the tick: that gathers a group and wakes no timer. */
static void
phase_begin(struct memory_store *store, enum phase phase, int64_t delay_max)
{
    store->phase = phase;
    int64_t delay = memory_base_delay(store->base, delay_max);
    if (delay == 0)
        loop_defer(&store->tick_end);
    else
        timer_start(&store->timer, clock_monotonic() + delay);
}

static bool
is_to_be_written(const struct list *group)
{
    list_each(node, group)
        if (!list_entry(node, struct flight, node)->is_confirmation)
            return true;
    return false;
}

/* Confirmations alone need no disk; asking takes as long as a read. */
static void
group_begin(struct memory_store *store)
{
    struct list *group = &store->handle->group;
    check(store->phase == PHASE_IDLE && list_is_empty(group));
    list_splice_back(group, &store->handle->waiting);
    if (is_to_be_written(group))
        phase_begin(store, PHASE_WRITING, store->base->write_max);
    else
        phase_begin(store, PHASE_SYNCING, store->base->read_max);
}

static struct commit *
commit_pop(struct memory_store *store)
{
    struct list *node = list_pop_front(&store->commits);
    check(node != NULL);
    return container_of(container_of(node, struct loop_message, node), struct commit, message);
}

/* The disk is broken: what is in flight may have landed, and nothing more is written. */
static void
store_break(struct memory_store *store)
{
    probe("memory_store_broken");
    memory_handle_lose(store->base, store->handle);
    atomic_store(&store->failure_text, "the disk of the memory store is broken");
    store->phase = PHASE_IDLE;
    while (!list_is_empty(&store->commits)) {
        struct commit *commit = commit_pop(store);
        commit_fail(commit, ERR_OUTCOME_UNKNOWN, 0);
        commit_answer(commit);
    }
}

static void
commit_decide(struct commit *commit, bool has_landed, uint64_t guard_found)
{
    if (!has_landed && !commit_is_doomed(commit))
        commit_fail(commit, ERR_FENCED, guard_found);
    commit_answer(commit);
}

static void
group_written(struct memory_store *store)
{
#ifdef CADENZA_FAULT_skip_fsync
    list_each(node, &store->handle->group) {
        uint64_t guard_found;
        struct flight *flight = list_entry(node, struct flight, node);
        bool has_landed = memory_flight_show(store->base, store->handle, flight, &guard_found);
        commit_decide(commit_pop(store), has_landed, guard_found);
        flight->is_answered = true;
    }
#endif
    phase_begin(store, PHASE_SYNCING, store->base->sync_max);
}

static void
group_durable(struct memory_store *store)
{
    struct memory_handle *handle = store->handle;
    while (!list_is_empty(&handle->group)) {
        struct flight *flight = list_entry(handle->group.next, struct flight, node);
        bool is_answered = flight->is_answered;
        uint64_t guard_found;
        bool has_landed = memory_flight_land(store->base, handle, flight, &guard_found);
        if (!is_answered)
            commit_decide(commit_pop(store), has_landed, guard_found);
    }
    store->phase = PHASE_IDLE;
    if (!list_is_empty(&handle->waiting))
        group_begin(store);
}

static void
phase_end(struct memory_store *store)
{
    check(store->phase != PHASE_IDLE);
    store->base->points++;
    if (store->base->is_broken)
        store_break(store);
    else if (store->phase == PHASE_WRITING)
        group_written(store);
    else
        group_durable(store);
    memory_store_check(store);
}

static void
timer_fire(struct timer *timer)
{
    phase_end(container_of(timer, struct memory_store, timer));
}

static void
tick_end_run(struct deferred *deferred)
{
    phase_end(container_of(deferred, struct memory_store, tick_end));
}

static void
commit_arrive(struct memory_store *store, struct commit *commit)
{
    if (atomic_load(&store->failure_text) != NULL)
        commit_fail(commit, ERR_UNAVAILABLE, 0);
    if (commit->failed || commit_is_doomed(commit)) {
        commit_answer(commit);
        return;
    }
    store->base->points++;
    struct flight *flight = memory_flight_add(store->base, store->handle, commit);
#ifdef CADENZA_FAULT_answer_before_durable
    flight->is_answered = true;
#endif
    if (flight->is_answered)
        commit_answer(commit);
    else
        list_push_back(&store->commits, &commit->message.node);
    if (store->phase == PHASE_IDLE)
        group_begin(store);
    memory_store_check(store);
}

static void
deliver_commit(struct loop_message *message)
{
    struct commit *commit = container_of(message, struct commit, message);
    commit_arrive(memory_store_of(commit->store), commit);
}

static void
memory_submit(struct store *shared, struct commit *commit)
{
    struct memory_store *store = memory_store_of(shared);
    if (store->owner_loop == loop_self()) {
        commit_arrive(store, commit);
        return;
    }
    commit->message.deliver = deliver_commit;
    loop_post_answer(store->owner_loop, &commit->message); /* bounded by writers and callers */
}

/* ---- life ---- */

static const char *
memory_failure(const struct store *store)
{
    return atomic_load(&memory_store_of(store)->failure_text);
}

static void
memory_close(struct store *shared)
{
    struct memory_store *store = memory_store_of(shared);
    check_that(store->owner_loop == loop_self(), "close a memory store on the loop that opened it");
    check(list_is_empty(&store->commits));
    timer_stop(&store->timer);
    loop_undefer(&store->tick_end);
    memory_handle_free(store->handle);
    memory_free(store);
}

static bool
memory_is_alone(const struct store *opened)
{
    const struct memory_store *store = container_of(opened, struct memory_store, store);
    return !store->base->is_shared;
}

static const struct store_engine engine = {
    .name = "memory",
    .is_alone = memory_is_alone,
    .admin = &memory_admin,
    .submit = memory_submit,
    .guard = memory_guard,
    .get = memory_get,
    .scan = memory_scan,
    .walk = memory_walk,
    .failure = memory_failure,
    .close = memory_close,
};

struct store *
memory_open(struct memory_base *base)
{
    struct memory_store *store = memory_zalloc(1, sizeof *store);
    store_init(&store->store, &engine, 0);
    store->base = base;
    store->handle = memory_handle_new(base);
    store->owner_loop = loop_self();
    timer_init(&store->timer, timer_fire);
    list_init(&store->tick_end.node);
    store->tick_end.run = tick_end_run;
    list_init(&store->commits);
    return &store->store;
}

uint64_t
memory_handle(const struct store *store)
{
    check(store->engine == &engine);
    return memory_store_of(store)->handle->number;
}
