/* schedule_load.c - see schedule_load.h; schedule_verify.c looks at the end. */
#include "sim/schedule_inside.h"

#include "base/memory.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (5 * NS_PER_S)
#define CALL_PAUSE   NS_PER_S
#define HOUR         3600
#define DAY          86400

#define OVERLAP(name)  API_VALUE(SCHEDULE_OVERLAP_POLICY__SCHEDULE_OVERLAP_POLICY_##name)
#define CATCH_UP(name) API_VALUE(SCHEDULE_CATCH_UP_POLICY__SCHEDULE_CATCH_UP_POLICY_##name)

/* Names of schedules, and what each shows. */
enum {
    STORY_BERLIN, /* a time that summer time skips once and shows twice; backfills */
    STORY_SKIPS,  /* SKIP_NEW, in another zone */
    STORY_QUEUES, /* BUFFER */
    STORY_ENDS,   /* TERMINATE_PREVIOUS */
    STORY_RESTS,  /* is paused */
    STORY_MOVES,  /* gets other plans */
};

static const struct model_plan plans[] = {
    [STORY_BERLIN] = {"CRON_TZ=Europe/Berlin 30 2 * * *", MODEL_BERLIN, {30}, 1, 0, 2},
    [STORY_SKIPS] = {"CRON_TZ=America/New_York 0,10 */8 * * *", MODEL_NEW_YORK, {0, 10}, 2, 8, 0},
    [STORY_QUEUES] = {"0,10 6 * * *", MODEL_UTC, {0, 10}, 2, 0, 6},
    [STORY_ENDS] = {"0,10 18 * * *", MODEL_UTC, {0, 10}, 2, 0, 18},
    [STORY_RESTS] = {"20 */6 * * *", MODEL_UTC, {20}, 1, 6, 0},
    [STORY_MOVES] = {"5 */12 * * *", MODEL_UTC, {5}, 1, 12, 0},
};
static const struct model_plan other_plans[] = {
    {"CRON_TZ=America/New_York 5 1 * * *", MODEL_NEW_YORK, {5}, 1, 0, 1},
    {"CRON_TZ=Europe/Berlin 15 */12 * * *", MODEL_BERLIN, {15}, 1, 12, 0},
    {"5 */12 * * *", MODEL_UTC, {5}, 1, 12, 0},
};
static const API(ScheduleOverlapPolicy) overlaps[] = {
    [STORY_BERLIN] = OVERLAP(CONCURRENT), [STORY_SKIPS] = OVERLAP(SKIP_NEW),
    [STORY_QUEUES] = OVERLAP(BUFFER),     [STORY_ENDS] = OVERLAP(TERMINATE_PREVIOUS),
    [STORY_RESTS] = OVERLAP(CONCURRENT),  [STORY_MOVES] = OVERLAP(CONCURRENT),
};
#define RUN_SECONDS (45 * 60) /* how long what is started takes */

char *
schedule_story_id(unsigned story, struct arena *arena)
{
    return arena_format(arena, "story-%u", story);
}

int64_t
schedule_load_next(const struct schedule_load *load, int64_t after)
{
    for (int64_t minute = (after / 60 + 1) * 60;; minute += 60)
        for (unsigned i = 0; i < SCHEDULE_STORIES; i++)
            if (load->models[i].plan != NULL && model_fires_at(load->models[i].plan, minute))
                return minute;
}

/* --- calls ---- */

void
schedule_tell(struct schedule_client *client, const char *path, const ProtobufCMessage *request,
              const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    struct schedule_load *load = client->load;
    struct load_call call = {
        .clients = client->clients, .arena = client->arena, .wants_committed = true};
    for (;;) {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        load->tries++;
        struct error *err = load_send(&call, path, request, type, response);
        fiber_set_deadline(NEVER);
        load->calls++;
        if (err == NULL)
            return;
        load->failed++;
        bool was_there = err->kind == ERR_BAD_REQUEST && strstr(err->message, "already exists");
        if (was_there || err->kind == ERR_DOMAIN_ALREADY_EXISTS)
            return; /* a try before landed unheard */
        if (!verdict_is_expected(err)) {
            verdict_violate(&load->verdict, "%s failed: %s", path, err->message);
            return;
        }
        (void)(fiber_sleep(CALL_PAUSE, client->arena) == NULL);
    }
}

#define TELL(client, method, request, type)                                                        \
    do {                                                                                           \
        ProtobufCMessage *answer_ = NULL;                                                          \
        schedule_tell((client), SCHEDULE_API method, &(request)->base, API_TYPE(type), &answer_);  \
    } while (0)

static void
register_domain(struct schedule_client *client)
{
    API(RegisterDomainRequest) *request =
        message_new(client->arena, API_TYPE(register_domain_request));
    ProtobufCMessage *response = NULL;
    request->name = SCHEDULE_DOMAIN;
    request->workflow_execution_retention_period =
        presence_make_duration(client->arena, (int64_t)400 * DAY);
    schedule_tell(client, "/uber.cadence.api.v1.DomainAPI/RegisterDomain", &request->base,
                  API_TYPE(register_domain_response), &response);
}

static API(ScheduleAction) *
make_action(struct arena *arena)
{
    API(ScheduleAction) *action = message_new(arena, API_TYPE(schedule_action));
    API(ScheduleAction__StartWorkflowAction) *start =
        message_new(arena, API_TYPE(schedule_action__start_workflow_action));
    action->start_workflow = start;
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = "report";
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = "nobody";
    start->execution_start_to_close_timeout = presence_make_duration(arena, RUN_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, 10);
    return action;
}

static void
create(struct schedule_client *client, unsigned story)
{
    struct arena *arena = client->arena;
    struct model *model = &client->load->models[story];
    API(CreateScheduleRequest) *request = message_new(arena, API_TYPE(create_schedule_request));
    request->domain = SCHEDULE_DOMAIN;
    request->schedule_id = schedule_story_id(story, arena);
    request->spec = message_new(arena, API_TYPE(schedule_spec));
    request->spec->cron_expression = (char *)plans[story].cron;
    if (story == STORY_QUEUES)
        request->spec->jitter = presence_make_duration(arena, 100);
    request->action = make_action(arena);
    request->policies = message_new(arena, API_TYPE(schedule_policies));
    request->policies->overlap_policy = overlaps[story];
    request->policies->catch_up_policy =
        story == STORY_QUEUES || story == STORY_ENDS ? CATCH_UP(ALL) : CATCH_UP(INVALID);
    TELL(client, "CreateSchedule", request, create_schedule_response);
    *model = (struct model){.plan = &plans[story],
                            .arena = client->load->arena,
                            .skips_second = story == STORY_SKIPS,
                            .from = clock_wall() / NS_PER_S};
}

/* --- what it does now and then ---- */

/* Sleeps until no time that counts is near: twenty minutes behind a full hour's half. */
static void
find_quiet(struct schedule_client *client, int64_t seconds)
{
    int64_t now = clock_wall() / NS_PER_S + seconds;
    int64_t quiet = now / HOUR * HOUR + HOUR + 40 * 60;
    (void)(fiber_sleep(quiet * NS_PER_S - clock_wall(), client->arena) == NULL);
}

/* The next morning, when all that was buffered has been started. */
static void
find_end(struct schedule_client *client)
{
    int64_t now = clock_wall() / NS_PER_S;
    int64_t end = now / DAY * DAY + DAY + 10 * HOUR + 40 * 60;
    (void)(fiber_sleep(end * NS_PER_S - clock_wall(), client->arena) == NULL);
}

static void
rest(struct schedule_client *client)
{
    static const API(ScheduleCatchUpPolicy) policies[] = {CATCH_UP(INVALID), CATCH_UP(ONE),
                                                          CATCH_UP(ALL)};
    struct model *model = &client->load->models[STORY_RESTS];
    unsigned policy = (unsigned)entropy_below(3);
    API(PauseScheduleRequest) *pause = message_new(client->arena, API_TYPE(pause_schedule_request));
    pause->domain = SCHEDULE_DOMAIN;
    pause->schedule_id = schedule_story_id(STORY_RESTS, client->arena);
    pause->reason = "rest";
    TELL(client, "PauseSchedule", pause, pause_schedule_response);
    model_pause(model, clock_wall() / NS_PER_S);
    find_quiet(client, (int64_t)entropy_below(4 * DAY));
    API(UnpauseScheduleRequest) *unpause =
        message_new(client->arena, API_TYPE(unpause_schedule_request));
    unpause->domain = SCHEDULE_DOMAIN;
    unpause->schedule_id = pause->schedule_id;
    unpause->catch_up_policy = policies[policy];
    TELL(client, "UnpauseSchedule", unpause, unpause_schedule_response);
    model_unpause(model, clock_wall() / NS_PER_S, (enum model_catch_up)policy);
    client->load->pauses++;
}

static void
move(struct schedule_client *client)
{
    struct schedule_load *load = client->load;
    const struct model_plan *plan = &other_plans[load->updates++ % 3];
    API(UpdateScheduleRequest) *request =
        message_new(client->arena, API_TYPE(update_schedule_request));
    request->domain = SCHEDULE_DOMAIN;
    request->schedule_id = schedule_story_id(STORY_MOVES, client->arena);
    request->spec = message_new(client->arena, API_TYPE(schedule_spec));
    request->spec->cron_expression = (char *)plan->cron;
    TELL(client, "UpdateSchedule", request, update_schedule_response);
    model_replan(&load->models[STORY_MOVES], clock_wall() / NS_PER_S, plan);
}

static void
backfill(struct schedule_client *client)
{
    struct schedule_load *load = client->load;
    int64_t to = clock_wall() / NS_PER_S - 2 * DAY;
    int64_t from = to - (int64_t)entropy_below(10 * DAY) - HOUR;
    const char *id = arena_format(load->arena, "again-%u", load->backfills++);
    API(BackfillScheduleRequest) *request =
        message_new(client->arena, API_TYPE(backfill_schedule_request));
    request->domain = SCHEDULE_DOMAIN;
    request->schedule_id = schedule_story_id(STORY_BERLIN, client->arena);
    request->start_time = presence_make_timestamp(client->arena, from * NS_PER_S);
    request->end_time = presence_make_timestamp(client->arena, to * NS_PER_S);
    request->backfill_id = (char *)id;
    for (unsigned i = 0; i < 2; i++) /* the second one changes nothing */
        TELL(client, "BackfillSchedule", request, backfill_schedule_response);
    model_backfill(&load->models[STORY_BERLIN], id, from, to);
}

static void
steer(struct schedule_client *client)
{
    find_quiet(client, (int64_t)entropy_below((uint64_t)client->load->pause_max));
    uint64_t what = entropy_below(4);
    if (what < 2)
        rest(client);
    else if (what == 2)
        move(client);
    else
        backfill(client);
    arena_reset(client->arena);
}

static void
client_main(void *argument)
{
    struct schedule_load *load = argument;
    struct schedule_client client = {
        .load = load, .arena = arena_new(0), .clients = load_clients_new(load->sim)};
    load->wall_offset = clock_wall() - clock_monotonic();
    register_domain(&client);
    for (unsigned i = 0; i < SCHEDULE_STORIES; i++)
        create(&client, i);
    while (clock_monotonic() < load->until)
        steer(&client);
    find_end(&client);
    load->is_steered = true;
    schedule_verify(&client);
    load_clients_free(client.clients);
    arena_free(client.arena);
    load->is_over = true;
}

struct schedule_load *
schedule_load_start(struct sim *sim, int64_t duration, int64_t pause_max)
{
    struct schedule_load *load = memory_zalloc(1, sizeof *load);
    load->sim = sim;
    load->arena = arena_new(0);
    load->until = world_now(sim->world) + duration;
    load->pause_max = pause_max;
    host_start(sim->client, client_main, load);
    return load;
}

void
schedule_load_free(struct schedule_load *load)
{
    arena_free(load->arena);
    memory_free(load);
}
