/* claims.c - a task that finds a poll is started by the step that makes it.
 *
 * Before a step is decided, polls are claimed for the tasks that it will probably leave
 * (route/claim.h). If it leaves such a task, its start is recorded in the same step: one batch, one
 * commit, no row of the outbox. The poll takes the task home when the step is durable. If the shard
 * is lost before, nobody knows whether the step happened: the poll goes home with the task all the
 * same, and its door asks whoever owns the shard then, under the id that the start would have. A
 * poll that is not needed waits on.
 *
 * Where nobody waits at a list, asking costs a way to its loop and back: after a refusal the next
 * few steps do not ask for that list, more of them the more often it was in vain. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define SKIPS_MAX 3

/* A task on its way to its poll. In the arena that goes with it. */
struct handover {
    struct list node;
    ticket_t ticket;
    struct claim *claim;
    struct task_start start;
    struct task *task;
    char request_id[UUID_TEXT_LENGTH + 1];
};

void
claims_init(struct tenure *tenure)
{
    list_init(&tenure->claims.handovers);
}

/* --- before: asking ---- */

struct asking {
    struct fiber *fiber;
    size_t open;
};

static void
answered(struct claim *claim)
{
    struct asking *asking = claim->context;
    asking->open--;
    fiber_wake(asking->fiber);
}

static struct claims_luck *
luck_of(struct tenure *tenure, const struct foreseen *task)
{
    uint64_t hash = map_hash(slice_text(task->list)) + (uint64_t)task->type;
    return &tenure->claims.luck[hash % CLAIMS_LUCK];
}

static bool
is_worth_asking(struct claims_luck *luck)
{
    if (luck->skips == 0)
        return true;
    luck->skips--;
    return false;
}

static void
note_luck(struct claims_luck *luck, bool is_granted)
{
    luck->misses = is_granted ? 0 : (uint8_t)(luck->misses * 2 + 1);
    if (luck->misses > SKIPS_MAX)
        luck->misses = SKIPS_MAX;
    luck->skips = luck->misses;
}

static void
ask_one(struct tenure *tenure, const char *domain_id, struct claimed *one, struct asking *asking)
{
    const struct claim_port *port = &tenure->shard->options.claims;
    if (!is_worth_asking(luck_of(tenure, &one->task)))
        return;
    struct claim *claim = memory_zalloc(1, sizeof *claim);
    claim->type = one->task.type;
    claim->kind = one->task.kind;
    claim->domain_id = domain_id;
    claim->list = one->task.list;
    claim->answered = answered;
    claim->context = asking;
    one->claim = claim;
    asking->open += port->ask(port->context, claim) == CLAIM_ASKED;
}

/* What was granted stays. */
static void
take_answer(struct tenure *tenure, struct claimed *one)
{
    if (one->claim == NULL)
        return;
    bool is_granted = one->claim->identity != NULL;
    note_luck(luck_of(tenure, &one->task), is_granted);
    if (is_granted)
        return;
    memory_free(one->claim);
    one->claim = NULL;
}

void
claims_ask(struct tenure *tenure, const struct shard_step *wanted, const struct run *run,
           const struct workflow *workflow, struct claims *claims)
{
    struct foreseen tasks[FORESEEN_MAX];
    *claims = (struct claims){0};
    if (wanted->foresee == NULL || tenure->shard->options.claims.ask == NULL)
        return;
    size_t count = wanted->foresee(wanted->context, run, workflow->current, tasks);
    check(count <= FORESEEN_MAX);
    struct asking asking = {.fiber = fiber_self()};
    claims->had_decision = run != NULL && run->core->decision != NULL;
    claims->count = count;
    for (size_t i = 0; i < count; i++) {
        claims->all[i].task = tasks[i];
        ask_one(tenure, workflow->domain_id, &claims->all[i], &asking);
    }
    while (asking.open > 0)
        fiber_wait_uncancellable(); /* what is asked for has our address */
    for (size_t i = 0; i < count; i++)
        take_answer(tenure, &claims->all[i]);
}

/* --- with the step: starting; no yields ---- */

static struct handover *
handover_new(struct claim *claim)
{
    struct arena *arena = arena_new(1024);
    struct handover *handover = arena_make(arena, struct handover);
    struct uuid request_id = uuid_new_v4();
    uuid_format(&request_id, handover->request_id);
    handover->claim = claim;
    claim->arena = arena;
    list_init(&handover->node);
    return handover;
}

/* Row 0: no row stands behind it. */
static void
name_task(struct handover *handover, const struct step *step, const struct run *run,
          const struct task_name *name)
{
    const struct claim *claim = handover->claim;
    struct task task = {
        .type = claim->type,
        .kind = claim->kind,
        .domain_id = step->domain_id,
        .list = claim->list,
        .normal_list = "",
        .run_domain_id = step->domain_id,
        .workflow_id = step->workflow_id,
        .run_id = run->core->run_id,
        .schedule_id = name->schedule_id,
        .attempt = name->attempt,
        .created_time = step->facts->now,
        .isolation_group = "",
    };
    handover->task = task_copy(&task, claim->arena);
}

/* A copy that outlives the step. */
static void
keep_decision(struct decision_start *start, struct arena *arena)
{
    check(start->transient_scheduled == NULL);
    start->workflow_type = message_copy(arena, &start->workflow_type->base);
    start->task_list = message_copy(arena, &start->task_list->base);
    start->run_id = arena_text(arena, start->run_id);
    struct history_span *spans = arena_zalloc(arena, start->line.count, sizeof *spans);
    memcpy(spans, start->line.spans, start->line.count * sizeof *spans);
    start->line.spans = spans;
}

/* The decision that the step scheduled, if it is for the list of the claim. */
static const STORED(PendingDecision) *
find_decision(const struct claims *claims, const struct run *run, const struct claim *claim)
{
    const STORED(PendingDecision) *decision = run->core->decision;
    bool is_new = decision != NULL && decision->started_id == EVENT_NONE && !claims->had_decision;
    bool is_plain = is_new && decision->attempt == 0 && decision->task_list != NULL &&
                    strcmp(decision->task_list->name, claim->list) == 0;
    return is_plain ? decision : NULL;
}

static bool
start_decision(struct tenure *tenure, const struct step *step, const struct claims *claims,
               struct claimed *one)
{
    struct step own = *step;
    if (step->begun != NULL)
        own.mutation = step->begun;
    if (own.mutation == NULL || !run_is_open(mutation_run(own.mutation)))
        return false;
    const struct run *run = mutation_run(own.mutation);
    const STORED(PendingDecision) *decision = find_decision(claims, run, one->claim);
    if (decision == NULL || !facts_take_turn(step->facts, step->domain_id, step->workflow_id))
        return false;
    struct handover *handover = handover_new(one->claim);
    struct task_name name = {.schedule_id = decision->schedule_id, .activity_id = ""};
    name_task(handover, step, run, &name);
    struct error *err = command_start_decision(&own, &name, handover->request_id,
                                               one->claim->identity, &handover->start.decision);
    check(err == NULL);
    keep_decision(&handover->start.decision, one->claim->arena);
    shard_ride_queries(tenure->shard, run, one->claim->arena, &handover->start.decision);
    one->handover = handover;
    return true;
}

static bool
start_activity(const struct step *step, struct claimed *one)
{
    struct step own = *step;
    if (step->mutation == NULL || !run_is_open(mutation_run(step->mutation)))
        return false;
    const struct run *run = mutation_run(step->mutation);
    const STORED(PendingActivity) *activity = run_find_activity_id(run, one->task.activity_id);
    bool is_plain = activity != NULL && activity->started_id == EVENT_NONE && activity->row != 0 &&
                    activity->attempt == 0 && activity->task_list != NULL &&
                    strcmp(activity->task_list->name, one->claim->list) == 0;
    if (!is_plain || !facts_take_turn(step->facts, step->domain_id, step->workflow_id))
        return false;
    struct handover *handover = handover_new(one->claim);
    struct task_name name = {.schedule_id = activity->schedule_id, .activity_id = ""};
    name_task(handover, step, run, &name);
    own.arena = one->claim->arena; /* what is told of it outlives the step */
    struct error *err = command_start_activity(&own, &name, handover->request_id,
                                               one->claim->identity, &handover->start.activity);
    check(err == NULL);
    one->handover = handover;
    return true;
}

void
claims_start(struct tenure *tenure, const struct step *step, struct claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        struct claimed *one = &claims->all[i];
        if (one->claim == NULL)
            continue;
        bool is_started = one->task.type == TASK_DECISION
                              ? start_decision(tenure, step, claims, one)
                              : start_activity(step, one);
        if (is_started)
            mark("task_started_with_its_step");
    }
}

/* --- afterwards ---- */

static void
end_claim(struct tenure *tenure, struct claim *claim)
{
    const struct claim_port *port = &tenure->shard->options.claims;
    port->end(port->context, claim);
}

void
claims_settle(struct tenure *tenure, struct claims *claims, ticket_t ticket)
{
    for (size_t i = 0; i < claims->count; i++) {
        struct claimed *one = &claims->all[i];
        if (one->claim == NULL)
            continue;
        if (one->handover == NULL) {
            end_claim(tenure, one->claim);
            continue;
        }
        one->handover->ticket = ticket;
        figures_task(tenure->shard, one->handover->task, 1);
        list_push_back(&tenure->claims.handovers, &one->handover->node);
#ifdef CADENZA_PLANT_handover_before_durable
        claims_release(tenure, ticket);
#endif
    }
}

static void
hand_over(struct tenure *tenure, struct handover *handover, bool is_durable)
{
    struct claim *claim = handover->claim;
    if (is_durable && claim->type == TASK_DECISION)
        shard_recall_decision(tenure->shard, claim->arena, &handover->start.decision);
    claim->task = handover->task;
    claim->request_id = handover->request_id;
    claim->start = is_durable ? &handover->start : NULL;
    end_claim(tenure, claim);
}

void
claims_release(struct tenure *tenure, ticket_t durable)
{
    struct list *handovers = &tenure->claims.handovers;
    while (!list_is_empty(handovers)) {
        struct handover *handover = list_entry(handovers->next, struct handover, node);
        if (handover->ticket > durable)
            break;
        list_remove(&handover->node);
        hand_over(tenure, handover, true);
    }
}

void
claims_lose(struct tenure *tenure)
{
    for (struct list *node; (node = list_pop_front(&tenure->claims.handovers)) != NULL;) {
        mark("handover_in_doubt");
        hand_over(tenure, list_entry(node, struct handover, node), false);
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
