/* reservations.c - a task that finds a poll is started by the step that makes it.
 *
 * Otherwise a task costs two commits of its shard: the step that makes it puts a row of the outbox,
 * the list offers it to a poll, and a second step records the start and deletes the row. With a
 * poll reserved beforehand one commit does for both, and no row is written. It goes so:
 *
 *   asked      Under the lock of the id, before the step is decided, polls are reserved for the
 *              tasks that it will probably leave (route/reservation.h). This yields.
 *   started    The step was decided and leaves such a task: its start is recorded by the same
 *              mutation. Nothing yields from here until the batch is submitted.
 *   resolved   The step was submitted: the delivery has its ticket. Or it came to nothing, or left
 *              no such task: the poll goes back and waits on.
 *   delivered  The step is durable: the poll takes the task home. Or the shard was lost before, and
 *              nobody knows whether the step happened: the poll takes the task home all the same,
 *              without what is to be known of the start. Its caller asks the owner that the shard
 *              has then, under the request id that the start would have, so it is started once.
 *
 * Where nobody waits at a list, asking costs a way to its loop and back: after a refusal the next
 * few steps do not ask for that list, more of them the more often it was in vain. */
#include "engine/shard/reservations.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define SKIPS_MAX 3

/* A task on its way to its poll. In the arena that goes with it. */
struct poll_delivery {
    struct list node;
    ticket_t ticket;
    struct reservation *reservation;
    struct task_start start;
    struct task *task;
    const char
        *identity; /* of who polls: the start may name it longer than the reservation lives */
    char request_id[UUID_TEXT_LENGTH + 1];
};

/* Those of one step: each has a poll that waits, and perhaps a task for it. */
void
reservations_check(const struct reservations *reservations)
{
    check(reservations->count <= FORESEEN_MAX);
    for (size_t i = 0; i < reservations->count; i++) {
        const struct reserved *one = &reservations->all[i];
        check(one->reservation == NULL || one->reservation->identity != NULL);
        check(one->poll_delivery == NULL || one->poll_delivery->reservation == one->reservation);
        check(one->poll_delivery == NULL || one->reservation != NULL);
    }
}

/* Those of the tenure: polls that wait for their step to be durable. */
void
tenure_reservations_check(const struct tenure_reservations *tenure_reservations)
{
    ticket_t ticket = 0;
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &tenure_reservations->poll_deliveries) {
        const struct poll_delivery *poll_delivery = list_entry(node, struct poll_delivery, node);
        check(poll_delivery->ticket >= ticket && poll_delivery->ticket > 0);
        check(poll_delivery->task != NULL && poll_delivery->reservation->task == NULL);
        ticket = poll_delivery->ticket;
    }
    for (size_t i = 0; i < POLL_ODDS_MAX; i++)
        check(tenure_reservations->odds[i].skips <= tenure_reservations->odds[i].misses);
}

void
reservations_init(struct tenure *tenure)
{
    list_init(&tenure->reservations.poll_deliveries);
}

/* --- before: asking ---- */

struct reservation_wait {
    struct fiber *fiber;
    size_t open;
};

static void
answered(struct reservation *reservation)
{
    struct reservation_wait *reservation_wait = reservation->context;
    check(reservation_wait->open > 0);
    reservation_wait->open--;
    fiber_wake(reservation_wait->fiber);
}

static struct poll_odds *
odds_of(struct tenure *tenure, const struct foreseen *task)
{
    uint64_t hash = map_hash(slice_text(task->list)) + (uint64_t)task->type;
    return &tenure->reservations.odds[hash % POLL_ODDS_MAX];
}

static bool
is_worth_asking(struct poll_odds *odds)
{
    if (odds->skips == 0)
        return true;
    odds->skips--;
    return false;
}

static void
note_odds(struct poll_odds *odds, bool is_granted)
{
    odds->misses = is_granted ? 0 : (uint8_t)(odds->misses * 2 + 1);
#ifdef CADENZA_FAULT_skips_unbounded
    odds->skips = odds->misses; /* fault: before its bound */
#endif
    if (odds->misses > SKIPS_MAX)
        odds->misses = SKIPS_MAX;
#ifndef CADENZA_FAULT_skips_unbounded
    odds->skips = odds->misses;
#endif
    check(odds->misses <= SKIPS_MAX);
}

static void
ask_one(struct tenure *tenure, const char *domain_id, struct reserved *one,
        struct reservation_wait *reservation_wait)
{
    const struct reservation_port *port = &tenure->shard->options.reservations;
    check(one->reservation == NULL && one->task.list != NULL);
    check(one->task.type == TASK_DECISION || one->task.activity_id != NULL);
    if (!is_worth_asking(odds_of(tenure, &one->task)))
        return;
    struct reservation *reservation = memory_zalloc(1, sizeof *reservation);
    reservation->type = one->task.type;
    reservation->kind = one->task.kind;
    reservation->domain_id = domain_id;
    reservation->list = one->task.list;
    reservation->answered = answered;
    reservation->context = reservation_wait;
    one->reservation = reservation;
    reservation_wait->open += port->ask(port->context, reservation) == RESERVATION_REQUESTED;
}

/* What was granted stays. */
static void
take_answer(struct tenure *tenure, struct reserved *one)
{
    if (one->reservation == NULL)
        return;
    bool is_granted = one->reservation->identity != NULL;
    note_odds(odds_of(tenure, &one->task), is_granted);
    if (is_granted)
        return;
    memory_free(one->reservation);
    one->reservation = NULL;
}

void
reservations_ask(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
                 const struct workflow *workflow, struct reservations *reservations)
{
    struct foreseen tasks[FORESEEN_MAX];
    *reservations = (struct reservations){0};
    if (wanted->foresee == NULL || tenure->shard->options.reservations.ask == NULL)
        return;
    size_t count = wanted->foresee(wanted->context, run, workflow->current, tasks);
    check(count <= FORESEEN_MAX);
    struct reservation_wait reservation_wait = {.fiber = fiber_self()};
    reservations->had_decision = run != NULL && run->core->decision != NULL;
    reservations->count = count;
    for (size_t i = 0; i < count; i++) {
        reservations->all[i].task = tasks[i];
        ask_one(tenure, workflow->domain_id, &reservations->all[i], &reservation_wait);
    }
    while (reservation_wait.open > 0)
        fiber_wait_uncancellable(); /* what is asked for has our address */
    for (size_t i = 0; i < count; i++)
        take_answer(tenure, &reservations->all[i]);
    reservations_check(reservations);
}

/* --- with the step: starting; no yields ---- */

static struct poll_delivery *
poll_delivery_new(struct reservation *reservation)
{
    check(reservation->identity != NULL && reservation->arena == NULL);
    struct arena *arena = arena_new(1024);
    struct poll_delivery *poll_delivery = arena_make(arena, struct poll_delivery);
    struct uuid request_id = uuid_new_v4();
    uuid_format(&request_id, poll_delivery->request_id);
    poll_delivery->reservation = reservation;
    poll_delivery->identity = arena_text(arena, reservation->identity);
    reservation->arena = arena;
    list_init(&poll_delivery->node);
    return poll_delivery;
}

/* Row 0: no row stands behind it. */
static void
name_task(struct poll_delivery *poll_delivery, const struct step *step, const struct run *run,
          const struct task_name *name)
{
    const struct reservation *reservation = poll_delivery->reservation;
    struct task task = {
        .type = reservation->type,
        .kind = reservation->kind,
        .domain_id = step->domain_id,
        .list = reservation->list,
        .normal_list = "",
        .run_domain_id = step->domain_id,
        .workflow_id = step->workflow_id,
        .run_id = run->core->run_id,
        .schedule_id = name->schedule_id,
        .attempt = name->attempt,
        .created_time = step->context->now,
        .isolation_group = "",
    };
    poll_delivery->task = task_copy(&task, reservation->arena);
}

/* A copy that outlives the step. */
static void
keep_decision(struct decision_start *start, struct arena *arena)
{
    check(start->transient_scheduled == NULL && start->lineage.count > 0);
    start->workflow_type = message_copy(arena, &start->workflow_type->base);
    start->task_list = message_copy(arena, &start->task_list->base);
    start->run_id = arena_text(arena, start->run_id);
    struct history_span *spans = arena_zalloc(arena, start->lineage.count, sizeof *spans);
    memcpy(spans, start->lineage.spans, start->lineage.count * sizeof *spans);
    start->lineage.spans = spans;
}

/* The decision that the step scheduled, if it is for the list of the reservation. */
static const STORED(PendingDecision) *
find_decision(const struct reservations *reservations, const struct run *run,
              const struct reservation *reservation)
{
    const STORED(PendingDecision) *decision = run->core->decision;
    bool is_new =
        decision != NULL && decision->started_id == EVENT_NONE && !reservations->had_decision;
    bool is_plain = is_new && decision->attempt == 0 && decision->task_list != NULL &&
                    strcmp(decision->task_list->name, reservation->list) == 0;
    return is_plain ? decision : NULL;
}

static bool
start_decision(struct tenure *tenure, const struct step *step,
               const struct reservations *reservations, struct reserved *one)
{
    struct step own = *step;
    if (step->begun != NULL)
        own.mutation = step->begun;
    if (own.mutation == NULL || !run_is_open(mutation_run(own.mutation)))
        return false;
    const struct run *run = mutation_run(own.mutation);
    const STORED(PendingDecision) *decision = find_decision(reservations, run, one->reservation);
    if (decision == NULL ||
        !run_context_take_turn(step->context, step->domain_id, step->workflow_id))
        return false;
    struct poll_delivery *poll_delivery = poll_delivery_new(one->reservation);
    struct task_name name = {.schedule_id = decision->schedule_id, .activity_id = ""};
    name_task(poll_delivery, step, run, &name);
    struct error *err =
        command_start_decision(&own, &name, poll_delivery->request_id, poll_delivery->identity,
                               &poll_delivery->start.decision);
    check(err == NULL);
    keep_decision(&poll_delivery->start.decision, one->reservation->arena);
    shard_ride_queries(tenure->shard, run, one->reservation->arena, &poll_delivery->start.decision);
    one->poll_delivery = poll_delivery;
    return true;
}

static bool
start_activity(const struct step *step, struct reserved *one)
{
    struct step own = *step;
    if (step->mutation == NULL || !run_is_open(mutation_run(step->mutation)))
        return false;
    const struct run *run = mutation_run(step->mutation);
    const STORED(PendingActivity) *activity = run_find_activity_id(run, one->task.activity_id);
    bool is_plain = activity != NULL && activity->started_id == EVENT_NONE && activity->row != 0 &&
                    activity->attempt == 0 && activity->task_list != NULL &&
                    strcmp(activity->task_list->name, one->reservation->list) == 0;
    if (!is_plain || !run_context_take_turn(step->context, step->domain_id, step->workflow_id))
        return false;
    struct poll_delivery *poll_delivery = poll_delivery_new(one->reservation);
    struct task_name name = {.schedule_id = activity->schedule_id, .activity_id = ""};
    name_task(poll_delivery, step, run, &name);
    own.arena = one->reservation->arena; /* what is told of it outlives the step */
    struct error *err =
        command_start_activity(&own, &name, poll_delivery->request_id, poll_delivery->identity,
                               &poll_delivery->start.activity);
    check(err == NULL);
    one->poll_delivery = poll_delivery;
    return true;
}

void
reservations_start(struct tenure *tenure, const struct step *step,
                   struct reservations *reservations)
{
    reservations_check(reservations);
    for (size_t i = 0; i < reservations->count; i++) {
        struct reserved *one = &reservations->all[i];
        if (one->reservation == NULL)
            continue;
        check(one->poll_delivery == NULL);
        bool is_started = one->task.type == TASK_DECISION
                              ? start_decision(tenure, step, reservations, one)
                              : start_activity(step, one);
        if (is_started)
            probe("task_started_with_its_step");
    }
}

/* --- afterwards ---- */

static void
end_reservation(struct tenure *tenure, struct reservation *reservation)
{
    const struct reservation_port *port = &tenure->shard->options.reservations;
    port->end(port->context, reservation);
}

void
reservations_resolve(struct tenure *tenure, struct reservations *reservations, ticket_t ticket)
{
    reservations_check(reservations);
    for (size_t i = 0; i < reservations->count; i++) {
        struct reserved *one = &reservations->all[i];
        if (one->reservation == NULL)
            continue;
        if (one->poll_delivery == NULL) {
            end_reservation(tenure, one->reservation);
            continue;
        }
        /* What started a task was submitted just now: so deliveries are in order of their tickets.
         */
        check(!tenure->is_over && ticket > 0 && ticket == writer_newest(tenure->writer));
        one->poll_delivery->ticket = ticket;
        metrics_task(tenure->shard, one->poll_delivery->task, 1);
        list_push_back(&tenure->reservations.poll_deliveries, &one->poll_delivery->node);
#ifdef CADENZA_FAULT_delivery_before_durable
        reservations_release(tenure, ticket);
#endif
    }
}

static void
deliver(struct tenure *tenure, struct poll_delivery *poll_delivery, bool is_durable)
{
    struct reservation *reservation = poll_delivery->reservation;
    check(list_is_empty(&poll_delivery->node) && reservation->task == NULL);
    if (is_durable && reservation->type == TASK_DECISION)
        shard_recall_decision(tenure->shard, reservation->arena, &poll_delivery->start.decision);
    reservation->task = poll_delivery->task;
    reservation->request_id = poll_delivery->request_id;
    reservation->start = is_durable ? &poll_delivery->start : NULL;
    end_reservation(tenure, reservation);
}

void
reservations_release(struct tenure *tenure, ticket_t durable)
{
    struct list *poll_deliveries = &tenure->reservations.poll_deliveries;
    check(durable <= writer_newest(tenure->writer));
    while (!list_is_empty(poll_deliveries)) {
        struct poll_delivery *poll_delivery =
            list_entry(poll_deliveries->next, struct poll_delivery, node);
        if (poll_delivery->ticket > durable)
            break;
        list_remove(&poll_delivery->node);
        deliver(tenure, poll_delivery, true);
    }
}

void
reservations_lose(struct tenure *tenure)
{
    check(tenure->is_over);
    for (struct list *node;
         (node = list_pop_front(&tenure->reservations.poll_deliveries)) != NULL;) {
        probe("delivery_in_doubt");
        deliver(tenure, list_entry(node, struct poll_delivery, node), false);
    }
}

/* --- guesses ---- */

size_t
shard_foresee_decision(const struct run *run, struct foreseen *tasks)
{
    if (run == NULL || !run_is_open(run) || run_is_zombie(run) || run->core->decision != NULL ||
        run->core->first_decision_time != 0 || run->core->waits_for_parent ||
        run->core->decision_attempt != 0)
        return 0;
    const API(TaskList) *sticky = run->core->sticky_task_list;
    tasks[0] = (struct foreseen){
        .type = TASK_DECISION,
        .kind = sticky != NULL ? LIST_STICKY : LIST_NORMAL,
        .list = sticky != NULL ? sticky->name : run->core->task_list->name,
    };
    return 1;
}
