/* schedule_load.c - see schedule_load.h; schedule_verify.c looks at the end. */
#include "sim/schedule/schedule_inside.h"

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
    CASE_BERLIN, /* a time that summer time skips once and shows twice; backfills */
    CASE_SKIPS,  /* SKIP_NEW, in another zone */
    CASE_QUEUES, /* BUFFER */
    CASE_ENDS,   /* TERMINATE_PREVIOUS */
    CASE_RESTS,  /* is paused */
    CASE_MOVES,  /* gets other plans */
};

static const struct model_cron_spec cron_specs[] = {
    [CASE_BERLIN] = {"CRON_TZ=Europe/Berlin 30 2 * * *", MODEL_BERLIN, {30}, 1, 0, 2},
    [CASE_SKIPS] = {"CRON_TZ=America/New_York 0,10 */8 * * *", MODEL_NEW_YORK, {0, 10}, 2, 8, 0},
    [CASE_QUEUES] = {"0,10 6 * * *", MODEL_UTC, {0, 10}, 2, 0, 6},
    [CASE_ENDS] = {"0,10 18 * * *", MODEL_UTC, {0, 10}, 2, 0, 18},
    [CASE_RESTS] = {"20 */6 * * *", MODEL_UTC, {20}, 1, 6, 0},
    [CASE_MOVES] = {"5 */12 * * *", MODEL_UTC, {5}, 1, 12, 0},
};
static const struct model_cron_spec other_cron_specs[] = {
    {"CRON_TZ=America/New_York 5 1 * * *", MODEL_NEW_YORK, {5}, 1, 0, 1},
    {"CRON_TZ=Europe/Berlin 15 */12 * * *", MODEL_BERLIN, {15}, 1, 12, 0},
    {"5 */12 * * *", MODEL_UTC, {5}, 1, 12, 0},
};
static const API(ScheduleOverlapPolicy) overlaps[] = {
    [CASE_BERLIN] = OVERLAP(CONCURRENT), [CASE_SKIPS] = OVERLAP(SKIP_NEW),
    [CASE_QUEUES] = OVERLAP(BUFFER),     [CASE_ENDS] = OVERLAP(TERMINATE_PREVIOUS),
    [CASE_RESTS] = OVERLAP(CONCURRENT),  [CASE_MOVES] = OVERLAP(CONCURRENT),
};
#define RUN_SECONDS (45 * 60) /* how long what is started takes */

char *
schedule_case_id(unsigned case_number, struct arena *arena)
{
    return arena_format(arena, "story-%u", case_number);
}

int64_t
schedule_load_next(const struct schedule_load *load, int64_t after)
{
    for (int64_t minute = (after / 60 + 1) * 60;; minute += 60)
        for (unsigned i = 0; i < SCHEDULE_CASES; i++)
            if (load->models[i].cron_spec != NULL &&
                model_fires_at(load->models[i].cron_spec, minute))
                return minute;
}

/* --- calls ---- */

void
schedule_send_at(struct schedule_client *client, const ProtobufCMessage *request,
                 ProtobufCMessage **response)
{
    struct schedule_load *load = client->load;
    struct load_call call = {
        .clients = client->clients, .arena = client->arena, .wants_committed = true};
    for (;;) {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        load->tries++;
        struct error *err = load_send_at(&call, request, response);
        fiber_set_deadline(NEVER);
        load->calls++;
        if (err == NULL)
            return;
        load->failed++;
        bool was_there = err->kind == ERR_BAD_REQUEST && strstr(err->message, "already exists");
        if (was_there || err->kind == ERR_DOMAIN_ALREADY_EXISTS)
            return; /* a try before landed unheard */
        if (!verdict_is_expected(err)) {
            verdict_violate(&load->verdict, "%s failed: %s", request->descriptor->short_name,
                            err->message);
            return;
        }
        (void)(fiber_sleep(CALL_PAUSE, client->arena) == NULL);
    }
}

static void
register_domain(struct schedule_client *client)
{
    API(RegisterDomainRequest) *request =
        API_NEW(client->arena, register_domain_request, .name = SCHEDULE_DOMAIN,
                .workflow_execution_retention_period =
                    presence_make_duration(client->arena, (int64_t)400 * DAY));
    schedule_send(client, request, NULL);
}

static API(ScheduleAction) *
make_action(struct arena *arena)
{
    API(ScheduleAction) *action = API_NEW(arena, schedule_action);
    API(ScheduleAction__StartWorkflowAction) *start =
        message_new(arena, API_TYPE(schedule_action__start_workflow_action));
    action->start_workflow = start;
    start->workflow_type = API_NEW(arena, workflow_type, .name = "report");
    start->task_list = API_NEW(arena, task_list, .name = "nobody");
    start->execution_start_to_close_timeout = presence_make_duration(arena, RUN_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, 10);
    return action;
}

static void
create(struct schedule_client *client, unsigned case_number)
{
    struct arena *arena = client->arena;
    struct model *model = &client->load->models[case_number];
    API(CreateScheduleRequest) *request =
        API_NEW(arena, create_schedule_request, .domain = SCHEDULE_DOMAIN,
                .schedule_id = schedule_case_id(case_number, arena),
                .spec = API_NEW(arena, schedule_spec,
                                .cron_expression = (char *)cron_specs[case_number].cron));
    if (case_number == CASE_QUEUES)
        request->spec->jitter = presence_make_duration(arena, 100);
    request->action = make_action(arena);
    request->policies =
        API_NEW(arena, schedule_policies, .overlap_policy = overlaps[case_number],
                .catch_up_policy = case_number == CASE_QUEUES || case_number == CASE_ENDS
                                       ? CATCH_UP(ALL)
                                       : CATCH_UP(INVALID));
    schedule_send(client, request, NULL);
    *model = (struct model){.cron_spec = &cron_specs[case_number],
                            .arena = client->load->arena,
                            .skips_second = case_number == CASE_SKIPS,
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
    struct model *model = &client->load->models[CASE_RESTS];
    unsigned policy = (unsigned)entropy_below(3);
    API(PauseScheduleRequest) *pause =
        API_NEW(client->arena, pause_schedule_request, .domain = SCHEDULE_DOMAIN,
                .schedule_id = schedule_case_id(CASE_RESTS, client->arena), .reason = "rest");
    schedule_send(client, pause, NULL);
    model_pause(model, clock_wall() / NS_PER_S);
    find_quiet(client, (int64_t)entropy_below(4 * DAY));
    schedule_send(client,
                  API_NEW(client->arena, unpause_schedule_request, .domain = SCHEDULE_DOMAIN,
                          .schedule_id = pause->schedule_id, .catch_up_policy = policies[policy]),
                  NULL);
    model_unpause(model, clock_wall() / NS_PER_S, (enum model_catch_up)policy);
    client->load->pauses++;
}

static void
move(struct schedule_client *client)
{
    struct schedule_load *load = client->load;
    const struct model_cron_spec *cron_spec = &other_cron_specs[load->updates++ % 3];
    API(UpdateScheduleRequest) *request = API_NEW(
        client->arena, update_schedule_request, .domain = SCHEDULE_DOMAIN,
        .schedule_id = schedule_case_id(CASE_MOVES, client->arena),
        .spec = API_NEW(client->arena, schedule_spec, .cron_expression = (char *)cron_spec->cron));
    schedule_send(client, request, NULL);
    model_change_cron_spec(&load->models[CASE_MOVES], clock_wall() / NS_PER_S, cron_spec);
}

static void
backfill(struct schedule_client *client)
{
    struct schedule_load *load = client->load;
    int64_t to = clock_wall() / NS_PER_S - 2 * DAY;
    int64_t from = to - (int64_t)entropy_below(10 * DAY) - HOUR;
    const char *id = arena_format(load->arena, "again-%u", load->backfills++);
    API(BackfillScheduleRequest) *request =
        API_NEW(client->arena, backfill_schedule_request, .domain = SCHEDULE_DOMAIN,
                .schedule_id = schedule_case_id(CASE_BERLIN, client->arena),
                .start_time = presence_make_timestamp(client->arena, from * NS_PER_S),
                .end_time = presence_make_timestamp(client->arena, to * NS_PER_S),
                .backfill_id = (char *)id);
    for (unsigned i = 0; i < 2; i++) /* the second one changes nothing */
        schedule_send(client, request, NULL);
    model_backfill(&load->models[CASE_BERLIN], id, from, to);
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
    for (unsigned i = 0; i < SCHEDULE_CASES; i++)
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
