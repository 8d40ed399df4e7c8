/* fits_test.c - an event that is said to fit can be applied, whatever it is.
 *
 * At stake: a check that fails ends the process, so one bad event of a peer could stop a cluster.
 * Method: random events of every kind, with fields missing and ids that are nearly right, are asked
 * about and, if they are said to fit, applied; nothing may break, and the run must stay whole. That
 * events of real histories fit is seen wherever one is rebuilt. */
#include "engine/run/fits.h"

#include "base/test.h"
#include "engine/run/inside.h"
#include "engine/run/rebuild.h"
#include "wire/test_thrift_sample.h"

#define ACTS  400
#define START ((int64_t)1700000000 * SECOND)

struct world {
    struct sample sample;
    struct run_context context;
    struct run *run;
    struct rebuild rebuild;
    int64_t time;
    int64_t version;
};

/* How often each kind was applied. */
struct tally {
    int applied[SAMPLE_ARM_LAST + 1];
    int refused;
};

static size_t
below(struct world *world, size_t bound)
{
    return (size_t)random_below(&world->sample.random, bound);
}

static void
open_world(struct world *world, uint64_t seed, struct dynamic *dynamic, struct arena *arena)
{
    *world = (struct world){.sample = {.arena = arena, .fill = 70}, .time = START, .version = 1};
    random_seed(&world->sample.random, seed);
    world->context = (struct run_context){.dynamic = dynamic, .random = &world->sample.random};
    world->run = run_new();
    STORED(RunRecord) *core = world->run->core;
    core->domain_id = run_keep_text(world->run, "d0000000-0000-4000-8000-000000000000");
    core->workflow_id = run_keep_text(world->run, "order-1");
    core->run_id = run_keep_text(world->run, "a0000000-0000-4000-8000-000000000001");
    struct slice id = run_keep_bytes(world->run, slice_of("0123456789abcdef", 16));
    core->tree_id = core->branch_id = presence_make_bytes(id);
    rebuild_begin(&world->rebuild, world->run, &world->context, arena);
}

/* The id of something that is pending, or one near the end. */
static int64_t
likely_id(struct world *world)
{
    const struct run *run = world->run;
    const struct map64 *maps[] = {run->activities, run->children, run->externals};
    const STORED(PendingDecision) *decision = run->core->decision;
    size_t which = below(world, 8), cursor = 0;
    uint64_t id;
    if (which < array_length(maps) && map64_next(maps[which], &cursor, &id, NULL))
        return (int64_t)id;
    void *timer;
    if (which == 3 && map_next(run->timers, &cursor, NULL, &timer))
        return ((const STORED(PendingTimer) *)timer)->started_id;
    if (which < 6 && decision != NULL)
        return below(world, 2) == 0 ? decision->schedule_id : decision->started_id;
    return run->core->next_event_id - 1 - (int64_t)below(world, 6);
}

/* Ids of other events become likely ones, and names those of a few. */
static void
make_likely(struct world *world, ProtobufCMessage *attributes)
{
    const ProtobufCMessageDescriptor *type = attributes->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        char *place = (char *)attributes + field->offset;
        int64_t id = likely_id(world);
        if (field->type == PROTOBUF_C_TYPE_INT64 && strstr(field->name, "event_id") != NULL)
            memcpy(place, &id, sizeof id);
        if (strcmp(field->name, "activity_id") == 0 || strcmp(field->name, "timer_id") == 0) {
            char *name = arena_format(world->sample.arena, "n%zu", below(world, 3));
            memcpy(place, &name, sizeof name);
        }
    }
}

static API(HistoryEvent) *
likely_event(struct world *world)
{
    static const unsigned often[] = {
        EVENT_KIND(DECISION_TASK_SCHEDULED), EVENT_KIND(DECISION_TASK_STARTED),
        EVENT_KIND(DECISION_TASK_COMPLETED), EVENT_KIND(DECISION_TASK_FAILED)};
    bool is_first = world->run->core->state == 0;
    unsigned arm =
        SAMPLE_ARM_FIRST + (unsigned)below(world, SAMPLE_ARM_LAST - SAMPLE_ARM_FIRST + 1);
    if (below(world, 3) == 0)
        arm = often[below(world, array_length(often))];
    if (is_first && below(world, 2) == 0)
        arm = EVENT_KIND(WORKFLOW_EXECUTION_STARTED);
    if (event_closes_run((API(HistoryEvent__AttributesCase))arm) && below(world, 30) != 0)
        arm = EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED);
    API(HistoryEvent) *event = sample_event(&world->sample, arm);
    event->event_id = world->run->core->next_event_id;
    event->version = world->version += below(world, 20) == 0;
    event->event_time = presence_make_timestamp(world->sample.arena, world->time += SECOND);
    make_likely(world, event_attributes(event));
    if (arm == EVENT_KIND(WORKFLOW_EXECUTION_STARTED)) /* those ask for a domain */
        event->workflow_execution_started_event_attributes->prev_auto_reset_points = NULL;
    return event;
}

/* Takes a part of what makes an event good. */
static void
spoil(struct world *world, API(HistoryEvent) *event)
{
    switch (below(world, 40)) {
    case 0:
        event->event_id += below(world, 2) == 0 ? 1 : -1;
        return;
    case 1:
        event->version = -1;
        return;
    case 2:
        event->event_time = NULL;
        return;
    case 3:
        event->event_time = presence_make_timestamp(world->sample.arena, INT64_MAX);
        return;
    default:
        return;
    }
}

static void
act(struct world *world, struct tally *tally)
{
    API(HistoryEvent) *event = likely_event(world);
    spoil(world, event);
    if (rebuild_find_misfit(&world->rebuild, event) != NULL) {
        tally->refused++;
        return;
    }
    EXPECT_EQ(event->event_id, world->run->core->next_event_id);
    rebuild_add(&world->rebuild, &event, 1, 1, world->sample.arena);
    tally->applied[event->attributes_case]++;
    run_next_deadline(world->run);
}

/* As the next owner would find it: the rows and the wake-up timer are set again by then. */
static void
close_world(struct world *world)
{
    STORED(RunRecord) *core = world->run->core;
    if (core->state != 0) {
        core->format = RUN_RECORD_FORMAT;
        core->alarm_time = run_next_deadline(world->run);
        core->alarm_row = core->alarm_time == 0 ? 0 : 1;
        run_check(world->run);
    }
    run_free(world->run);
}

TEST(fits, an_event_that_fits_can_be_applied)
{
    struct tally tally = {{0}, 0};
    struct dynamic *dynamic = dynamic_new(NULL);
    for (int i = 0; i < 200; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct world world;
        open_world(&world, test_seed(0) + (uint64_t)i, dynamic, arena);
        for (int j = 0; j < ACTS; j++)
            act(&world, &tally);
        close_world(&world);
    }
    dynamic_free(dynamic);
    EXPECT(tally.refused > 0);
    for (unsigned arm = SAMPLE_ARM_FIRST; arm <= SAMPLE_ARM_LAST; arm++)
        if (tally.applied[arm] == 0)
            TEST_FAIL("%s was never applied", event_name((API(HistoryEvent__AttributesCase))arm));
}
