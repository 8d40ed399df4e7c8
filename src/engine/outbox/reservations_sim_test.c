/* reservations_sim_test.c - a commit that takes minutes, of a step that starts its task for a poll
 * that waits: the poll takes the task home when it is durable, or is in doubt.
 *
 * Method: a port that grants a poll whenever it is asked, and notes how its reservation ends. */
#include "base/memory.h"
#include "engine/inside.h"
#include "engine/shard/inside.h"
#include "engine/test/shard_simulation.h"
#include "wire/message.h"
#include "wire/presence.h"

#define MINUTE (60 * NS_PER_S)
#define STARTS 8

struct granting {
    unsigned asked, ended;
    bool is_started;  /* the last one: what is to be known of the start came, too */
    int64_t end_time; /* the same */
};

static enum reservation_end
grant(void *context, struct reservation *reservation)
{
    struct granting *granting = context;
    granting->asked++;
    reservation->identity = "worker";
    return RESERVATION_GRANTED;
}

static void
end(void *context, struct reservation *reservation)
{
    struct granting *granting = context;
    EXPECT(reservation->task != NULL && reservation->request_id != NULL);
    granting->ended++;
    granting->is_started = reservation->start != NULL;
    granting->end_time = clock_monotonic();
    arena_free(reservation->arena);
    memory_free(reservation);
}

static void
open_granting(struct shard_fixture *fixture, struct granting *granting)
{
    *granting = (struct granting){0};
    fixture->options.reservations =
        (struct reservation_port){.ask = grant, .end = end, .context = granting};
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    shard_fixture_wait(writer_durable(fixture->shard->tenure->writer) > 0);
}

static struct error *
start(struct shard_fixture *fixture, const char *workflow_id)
{
    struct arena *arena = fixture->arena;
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(arena, start_workflow_execution_request, .domain = "orders",
                .workflow_id = (char *)workflow_id, .request_id = (char *)workflow_id,
                .workflow_type = API_NEW(arena, workflow_type, .name = "type"),
                .task_list = API_NEW(arena, task_list, .name = "list"),
                .execution_start_to_close_timeout = presence_make_duration(arena, 1000000),
                .task_start_to_close_timeout = presence_make_duration(arena, 60));
    struct start_command command = {.request = request};
    struct start_answer answer = {0};
    struct start_request_step wanted = {.command = &command, .answer = &answer};
    return engine_step_start(fixture->shard, fixture->domain_id, &wanted, arena);
}

SHARD_TEST(reservations, a_poll_waits_for_a_commit_however_long_it_takes,
           "task_started_with_its_step", 0)
{
    struct granting granting;
    int64_t longest = 0;
    open_granting(fixture, &granting);
    memory_base_set_delays(fixture->base, 2 * MINUTE, 2 * MINUTE, NS_PER_MS);
    for (unsigned i = 0; i < STARTS; i++) {
        int64_t began = clock_monotonic();
        EXPECT_OK(start(fixture, arena_format(fixture->arena, "wf-%u", i)));
        int64_t took = clock_monotonic() - began;
        longest = took > longest ? took : longest;
        EXPECT(granting.asked == i + 1 && granting.ended == i + 1);
        EXPECT(granting.is_started && granting.end_time - began > took - NS_PER_S);
    }
    EXPECT(longest > MINUTE);
}

static void
start_slowly(void *argument)
{
    EXPECT_OK(start(argument, "wf")); /* the step is made once more when the shard is taken */
}

SHARD_TEST(reservations, a_poll_whose_commit_is_in_doubt_asks_for_itself, "delivery_in_doubt", 0)
{
    struct granting granting;
    open_granting(fixture, &granting);
    memory_base_set_delays(fixture->base, 600 * MINUTE, 600 * MINUTE, NS_PER_MS);
    shard_fixture_spawn(fixture, start_slowly, fixture);
    shard_fixture_sleep(MINUTE);
    EXPECT(granting.asked == 1 && granting.ended == 0);
    shard_give_up(fixture->shard);
    EXPECT(granting.ended == 1 && !granting.is_started);
    memory_base_set_delays(fixture->base, NS_PER_MS, NS_PER_MS, NS_PER_MS);
    shard_fixture_join(fixture);
}
