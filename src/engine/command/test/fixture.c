/* fixture.c - the world of fixture.h: its runs, its clock, its outbox. */
#include "engine/command/test/fixture.h"

#include "base/check.h"
#include "engine/run/apply.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DOMAIN_ID "11111111-2222-3333-4444-555555555555"

static const struct domain *
find_domain(const void *context, const char *name)
{
    const struct fixture *fixture = context;
    return strcmp(fixture->domain->name, name) == 0 ? fixture->domain : NULL;
}

STORED(DomainRecord) *
fixture_domain_record(struct fixture *fixture)
{
    return STORED_NEW(fixture->arena, domain_record, .format = DOMAIN_RECORD_FORMAT,
                      .domain =
                          API_NEW(fixture->arena, domain, .id = (char *)DOMAIN_ID, .name = "orders",
                                  .status = API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED),
                                  .workflow_execution_retention_period =
                                      fixture_duration(fixture, (int64_t)3 * 86400)));
}

void
fixture_set_domain(struct fixture *fixture, const STORED(DomainRecord) *record)
{
    domain_drop(fixture->domain);
    fixture->domain = domain_from_record(record);
    fixture->context.domain = fixture->domain;
}

struct fixture *
fixture_new(void)
{
    struct arena *arena = arena_new(0);
    struct fixture *fixture = arena_make(arena, struct fixture);
    fixture->arena = arena;
    fixture->dynamic = dynamic_new(NULL);
    random_seed(&fixture->random, test_seed(0));
    fixture->ids = (struct row_ids){.next = (uint64_t)1 << 24, .end = (uint64_t)2 << 24};
    fixture->context = (struct run_context){
        .now = (int64_t)1700000000 * FIXTURE_SECOND,
        .event_version = 1,
        .dynamic = fixture->dynamic,
        .random = &fixture->random,
        .range_id = 1,
        .ids = &fixture->ids,
        .find_domain = find_domain,
        .find_domain_context = fixture,
    };
    fixture_set_domain(fixture, fixture_domain_record(fixture));
    return fixture;
}

struct fixture *
fixture_new_deciding(void)
{
    struct fixture *fixture = fixture_new();
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    return fixture;
}

void
fixture_drop(struct fixture **slot)
{
    struct fixture *fixture = *slot;
    for (size_t i = 0; i < fixture->run_count; i++)
        run_free(fixture->runs[i].run);
    dynamic_free(fixture->dynamic);
    domain_drop(fixture->domain);
    arena_free(fixture->arena);
}

void
fixture_play(struct fixture *fixture, void (*body)(struct fixture *fixture))
{
    body(fixture);
    fixture_drop(&fixture);
}

void
fixture_configure(struct fixture *fixture, const char *yaml)
{
    EXPECT_OK(dynamic_load(fixture->dynamic, slice_text(yaml), "test.yaml", fixture->arena));
}

/* ---- runs ---- */

struct run *
fixture_run_at(const struct fixture *fixture, size_t index)
{
    EXPECT(index < fixture->run_count);
    return fixture->runs[index].run;
}

struct run *
fixture_run(const struct fixture *fixture)
{
    EXPECT(fixture->run_count > 0);
    return fixture_run_at(fixture, fixture->run_count - 1);
}

API(HistoryEvent) *
fixture_event_of(const struct fixture *fixture, size_t index, int64_t event_id)
{
    EXPECT(index < fixture->run_count);
    EXPECT(event_id > 0 && (size_t)event_id <= fixture->runs[index].events.count);
    return fixture->runs[index].events.items[event_id - 1];
}

API(HistoryEvent) *
fixture_event(const struct fixture *fixture, int64_t event_id)
{
    return fixture_event_of(fixture, fixture->run_count - 1, event_id);
}

int64_t
fixture_event_time(const API(HistoryEvent) *event)
{
    return event->event_time->seconds * FIXTURE_SECOND + event->event_time->nanos;
}

const char *
fixture_history(const struct fixture *fixture, size_t index)
{
    EXPECT(index < fixture->run_count);
    const struct fixture_run *run = &fixture->runs[index];
    const char *text = "";
    for (size_t i = 0; i < run->events.count; i++)
        text = arena_format(fixture->arena, "%s%s%s", text, i == 0 ? "" : " ",
                            event_name(run->events.items[i]->attributes_case));
    return text;
}

/* ---- what is always true ---- */

static void
keep_event(struct fixture *fixture, struct fixture_run *run, const API(HistoryEvent) *event)
{
    size_t count = run->events.count;
    API(HistoryEvent) *last = count == 0 ? NULL : run->events.items[count - 1];
    EXPECT_EQ(event->event_id, (int64_t)count + 1);
    EXPECT(event->task_id > fixture->last_task_id);
    EXPECT(event->version == fixture->context.event_version);
    if (last != NULL) {
        EXPECT(fixture_event_time(event) >= fixture_event_time(last));
        EXPECT(!event_closes_run(last->attributes_case));
    }
    fixture->last_task_id = event->task_id;
    struct slice bytes = message_encode(fixture->arena, &event->base);
    API(HistoryEvent) *copy = NULL;
    EXPECT_OK(message_decode(fixture->arena, API_TYPE(history_event), bytes, &copy));
    vector_push_in(&run->events, fixture->arena, copy);
}

static void
drop_task(struct fixture *fixture, uint64_t row)
{
    for (size_t i = 0; i < fixture->tasks.count; i++)
        if (fixture->tasks.items[i].row == row) {
            vector_remove(&fixture->tasks, i);
            return;
        }
}

static void
keep_effects(struct fixture *fixture, struct fixture_run *run, const struct effects *effects)
{
    for (size_t i = 0; i < effects->dropped_count; i++)
        drop_task(fixture, effects->dropped[i]);
    for (size_t i = 0; i < effects->added_count; i++)
        vector_push_in(&fixture->tasks, fixture->arena,
                       (struct fixture_task){
                           .row = effects->added[i].row,
                           .transfer = (STORED(TransferRow) *)effects->added[i].transfer,
                       });
    bool is_open = run_is_open(run->run);
    EXPECT(run->run->core->alarm_row != 0); /* of a closed one: for its deletion */
    EXPECT(run->run->core->alarm_time <= run_next_deadline(run->run));
    vector_each(task, &fixture->tasks)
        EXPECT(is_open || !transfer_is_task(task->transfer->type) ||
               strcmp(task->transfer->run_id, run->run->core->run_id) != 0);
}

static void
finish(struct fixture *fixture, struct fixture_run *run, struct mutation *mutation)
{
    struct partition partition = {0};
    struct batch *batch = batch_new(fixture->arena, partition, 1);
    struct effects effects;
    mutation_finish(mutation, batch, &effects);
    size_t count;
    API(HistoryEvent) *const *events = mutation_events(mutation, &count);
    EXPECT(effects.has_new_events == (count > 0));
    for (size_t i = 0; i < count; i++)
        keep_event(fixture, run, events[i]);
    if (count > 0)
        vector_push_in(&run->batches, fixture->arena, count);
    EXPECT_EQ(run->run->core->next_event_id, (int64_t)run->events.count + 1);
    run_check(run->run);
    keep_effects(fixture, run, &effects);
}

/* The current-run record, as the shard keeps it. */
static void
keep_current(struct fixture *fixture)
{
    const STORED(RunRecord) *core = fixture_run(fixture)->core;
    STORED(CurrentRecord) *current = STORED_NEW(
        fixture->arena, current_record, .run_id = arena_text(fixture->arena, core->run_id),
        .create_request_id = arena_text(fixture->arena, core->create_request_id));
    if (core->chain_request_id[0] != '\0') {
        current->chain_request_id = arena_text(fixture->arena, core->chain_request_id);
        current->chain_run_id = arena_text(fixture->arena, core->first_execution_run_id);
    }
    current->state = core->state;
    current->close_status = core->close_status;
    current->start_time = core->start_time;
    fixture->current = current;
}

/* ---- steps ---- */

static void
take_back(struct step *step)
{
    if (step->mutation != NULL)
        mutation_cancel(step->mutation);
    if (step->begun == NULL)
        return;
    struct run *run = mutation_run(step->begun);
    mutation_cancel(step->begun);
    run_free(run);
}

/* A run that a reset begins has its history from another one. */
static void
inherit(struct fixture *fixture, struct fixture_run *begun)
{
    const struct fixture_run *base = begun - 1;
    for (size_t i = 0; i < fixture->inherited; i++)
        vector_push_in(&begun->events, fixture->arena, base->events.items[i]);
    size_t left = fixture->inherited;
    for (size_t i = 0; left > 0; i++) {
        size_t count = base->batches.items[i] < left ? base->batches.items[i] : left;
        vector_push_in(&begun->batches, fixture->arena, count);
        left -= count;
    }
    fixture->inherited = 0;
}

static struct error *
decide_on(struct fixture *fixture, struct fixture_run *run,
          struct error *(*decide)(void *context, struct step *step), void *context)
{
    struct step step = {
        .arena = fixture->arena,
        .context = &fixture->context,
        .domain_id = fixture->domain->id,
        .workflow_id = "wf",
        .current = fixture->current,
    };
    if (run != NULL)
        step.mutation = mutation_begin(run->run, &fixture->context, fixture->arena);
    struct error *refusal = decide(context, &step);
    if (refusal != NULL) {
        take_back(&step);
        return refusal;
    }
    if (step.mutation != NULL)
        finish(fixture, run, step.mutation);
    if (step.begun != NULL) {
        EXPECT(fixture->run_count < FIXTURE_RUNS_MAX);
        struct fixture_run *begun = &fixture->runs[fixture->run_count++];
        *begun = (struct fixture_run){.run = mutation_run(step.begun)};
        inherit(fixture, begun);
        finish(fixture, begun, step.begun);
    }
    if (fixture->run_count > 0)
        keep_current(fixture);
    return NULL;
}

struct error *
fixture_step_on(struct fixture *fixture, size_t index,
                struct error *(*decide)(void *context, struct step *step), void *context)
{
    EXPECT(index < fixture->run_count);
    return decide_on(fixture, &fixture->runs[index], decide, context);
}

struct error *
fixture_step(struct fixture *fixture, struct error *(*decide)(void *context, struct step *step),
             void *context)
{
    if (fixture->run_count == 0)
        return decide_on(fixture, NULL, decide, context);
    return fixture_step_on(fixture, fixture->run_count - 1, decide, context);
}

void
fixture_forget_closed(struct fixture *fixture)
{
    size_t kept = 0;
    for (size_t i = 0; i < fixture->run_count; i++) {
        if (i + 1 == fixture->run_count || run_is_open(fixture->runs[i].run))
            fixture->runs[kept++] = fixture->runs[i];
        else
            run_free(fixture->runs[i].run);
    }
    fixture->run_count = kept;
}

/* ---- the clock ---- */

static struct error *
wake(void *context, struct step *step)
{
    bool *is_empty = context;
    command_wake(step);
    *is_empty = mutation_is_empty(step->mutation);
    return NULL;
}

/* The run whose wake-up timer fires first, not after `end`. */
static bool
next_wakeup(const struct fixture *fixture, int64_t end, size_t *index)
{
    bool has_one = false;
    for (size_t i = 0; i < fixture->run_count; i++) {
        const struct run *run = fixture->runs[i].run;
        int64_t time = run_is_open(run) ? run->core->alarm_time : 0; /* nothing deletes here */
        if (time != 0 && time <= end) {
            has_one = true;
            end = time;
            *index = i;
        }
    }
    return has_one;
}

/* A moment before the wake-up timer nothing is due: no timer is early. */
static void
expect_not_early(struct fixture *fixture, size_t index, int64_t wakeup)
{
    if (wakeup - 1 < fixture->context.now)
        return;
    struct fixture_run *run = &fixture->runs[index];
    struct step step = {.arena = fixture->arena, .context = &fixture->context, .workflow_id = "wf"};
    fixture->context.now = wakeup - 1;
    step.domain_id = fixture->domain->id;
    step.mutation = mutation_begin(run->run, &fixture->context, fixture->arena);
    command_wake(&step);
    EXPECT(mutation_is_empty(step.mutation));
    mutation_cancel(step.mutation);
}

void
fixture_advance(struct fixture *fixture, int64_t seconds)
{
    int64_t end = fixture->context.now + seconds * FIXTURE_SECOND;
    size_t index = 0;
    for (int wakeups = 0; next_wakeup(fixture, end, &index); wakeups++) {
        int64_t wakeup = fixture->runs[index].run->core->alarm_time;
        bool is_empty;
        EXPECT(wakeups < 10000); /* a wake-up timer that fires for ever */
        expect_not_early(fixture, index, wakeup);
        if (fixture->context.now < wakeup)
            fixture->context.now = wakeup;
        EXPECT_OK(fixture_step_on(fixture, index, wake, &is_empty));
        EXPECT(!is_empty || fixture->runs[index].run->core->alarm_time > wakeup);
    }
    fixture->context.now = end;
}
