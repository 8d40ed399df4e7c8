/* owners_sim_test.c - two hosts that both want the shard, crashes at any moment, random calls.
 *
 * At stake: what was acknowledged is there, once; every open run has its wake-up timer, every
 * decision that waits has its row, and nothing else is left. Method: each host takes the shard
 * whenever it is asked something, so they fence each other all the time; hosts crash with writes in
 * flight; at the end one owner reads everything and compares it with what callers were told. The
 * store itself checks that no row is put or deleted twice. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "fiber/sim/world.h"
#include "wire/message.h"

#define HOSTS   2
#define IDS     20
#define CALLERS 8

/* Out here, where no crash reaches. */
struct contest {
    struct memory_base *base;
    struct player {
        struct contest *contest;
        struct host *host;
        uint64_t handle;               /* of its store */
        struct shard_fixture *fixture; /* while it runs */
    } players[HOSTS];
    bool is_registered;
    bool is_over;
    uint64_t signals_tried, signals_acked; /* of all ids */
    uint64_t starts_acked;
    uint64_t completed;
};

/* --- what callers do ---- */

/* Takes a task that was offered, if there is one, to its end; the run goes on, or closes. */
static void
work_one(struct player *player, struct arena *arena)
{
    struct shard_fixture *fixture = player->fixture;
    if (fixture->tasks.count == 0)
        return;
    struct task *task = task_copy(vector_pop(&fixture->tasks), arena);
    struct error *err = shard_fixture_start_decision(fixture, task, "poll", arena);
    if (err != NULL) {
        bool is_void = err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED ||
                       err->kind == ERR_EVENT_ALREADY_STARTED;
        if (is_void)
            shard_task_done(fixture->shard, task->range_id, task->row);
        return;
    }
    int64_t seconds = entropy_below(3) == 0 ? 0 : 1 + (int64_t)entropy_below(5);
    if (entropy_below(8) > 0 && shard_fixture_complete(fixture, task, seconds, arena) == NULL)
        player->contest->completed++;
}

static void
call_one(struct player *player, struct arena *arena)
{
    struct contest *contest = player->contest;
    struct shard_fixture *fixture = player->fixture;
    const char *id = arena_format(arena, "wf-%u", (unsigned)entropy_below(IDS));
    struct uuid uuid = uuid_new_v4();
    char request_id[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, request_id);
    switch (entropy_below(9)) {
    case 0:
    case 8:
        contest->starts_acked +=
            shard_fixture_start(fixture, id, request_id, 20, arena, NULL) == NULL;
        break;
    case 1:
    case 2:
    case 3:
        contest->signals_tried++;
        contest->signals_acked += shard_fixture_signal(fixture, id, arena) == NULL;
        break;
    case 4:
        if (entropy_below(10) == 0)
            (void)!shard_fixture_terminate(fixture, id, arena);
        break;
    default:
        work_one(player, arena);
    }
}

static void
caller_run(void *argument)
{
    struct player *player = argument;
    while (!player->contest->is_over) {
        struct arena *arena = arena_new(0);
        call_one(player, arena);
        arena_free(arena);
        shard_fixture_sleep((int64_t)entropy_below(200 * NS_PER_MS));
    }
}

static void
player_run(void *argument)
{
    struct player *player = argument;
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, player->contest->base);
    player->handle = memory_handle(fixture.store);
    player->contest->is_registered = true;
    player->fixture = &fixture;
    fixture.options.runs_max = 5;
    fixture.options.transfers_max = 4;
    fixture.options.wakeups_max = 4;
    fixture.shard = shard_new(&fixture.options);
    for (int i = 0; i < CALLERS; i++)
        shard_fixture_spawn(&fixture, caller_run, player);
    shard_fixture_join(&fixture);
    shard_fixture_close(&fixture);
}

static void
player_crashed(void *context)
{
    struct player *player = context;
    memory_crash(player->contest->base, player->handle);
}

/* --- what is there at the end ---- */

struct count {
    size_t runs, open, waiting_decisions;
    uint64_t signals;
};

/* Reads the whole history of a run, from the first event to the last. */
static void
count_events(struct shard_fixture *fixture, const struct run *run, struct count *count,
             struct arena *arena)
{
    struct history_lineage lineage = run_lineage(run, arena);
    struct history_page page;
    EXPECT_OK(store_read_lineage_on(fixture->store, PARTITION_OF_SHARD(1), &lineage, 1,
                                    run->core->next_event_id, 0, arena, &page));
    EXPECT_EQ(page.next_event_id, run->core->next_event_id);
    int64_t expected = 1;
    for (size_t i = 0; i < page.count; i++) {
        API(History) *history = NULL;
        EXPECT_OK(message_decode(arena, API_TYPE(history), page.node[i].events, &history));
        for (size_t j = 0; j < history->n_events; j++) {
            EXPECT_EQ(history->events[j]->event_id, expected++);
            count->signals +=
                history->events[j]->attributes_case ==
                API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES);
        }
    }
}

static bool
has_row(struct shard_fixture *fixture, enum row_kind kind, struct slice key, struct arena *arena)
{
    bool found;
    struct slice value;
    EXPECT_OK(store_get(fixture->store, PARTITION_OF_SHARD(1), kind, key, arena, &found, &value));
    return found;
}

static struct slice
wakeup_key(const STORED(RunRecord) *core, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_i64(&key, core->alarm_time);
    key_u64(&key, core->alarm_row);
    return key_end(&key);
}

static void
count_run(struct shard_fixture *fixture, const struct row *row, struct count *count,
          struct arena *arena)
{
    STORED(RunRecord) *core = NULL;
    EXPECT_OK(run_read_row(row->key, row->value, arena, &core));
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    struct run *run;
    EXPECT_OK(run_load(fixture->store, PARTITION_OF_SHARD(1), &key, arena, &run, NULL));
    count->runs++;
    count_events(fixture, run, count, arena);
    count->signals += map64_count(run->buffered);
    const STORED(PendingDecision) *decision = run->core->decision;
    EXPECT(has_row(fixture, ROW_TIMER, wakeup_key(run->core, arena), arena));
    if (run_is_open(run)) {
        count->open++;
        if (decision != NULL && decision->started_id == EVENT_NONE) {
            count->waiting_decisions++;
            EXPECT(has_row(fixture, ROW_TRANSFER, transfer_key(decision->row, arena), arena));
        }
    }
    run_free(run);
}

static void
check_all(void *argument)
{
    struct contest *contest = argument;
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, contest->base);
    struct rows rows;
    struct scan scan = {.partition = PARTITION_OF_SHARD(1), .kind = ROW_RUN};
    EXPECT_OK(store_scan(fixture.store, &scan, fixture.arena, &rows));
    struct count count = {0};
    for (size_t i = 0; i < rows.count; i++)
        count_run(&fixture, &rows.row[i], &count, fixture.arena);
    EXPECT(count.runs >= contest->starts_acked && count.runs > 0);
    EXPECT(count.signals >= contest->signals_acked && count.signals <= contest->signals_tried);
    EXPECT_EQ(shard_fixture_rows(&fixture, ROW_TIMER),
              count.runs); /* one wake-up timer per run, no other */
    EXPECT(shard_fixture_rows(&fixture, ROW_TRANSFER) >= count.waiting_decisions);
    EXPECT(contest->completed > 0);

    shard_fixture_take(&fixture); /* the last owner: in time every run that is left times out */
    shard_fixture_sleep(120 * NS_PER_S);
    EXPECT_EQ(shard_fixture_rows(&fixture, ROW_TIMER), count.runs); /* for their deletion */
    for (int i = 0; i < IDS; i++) {
        struct shard_fixture_run run;
        struct error *err = shard_fixture_look(&fixture, arena_format(fixture.arena, "wf-%d", i),
                                               fixture.arena, &run);
        if (err == NULL)
            EXPECT(!run.is_open && run.close_time > 0);
        else
            EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    }
    for (int i = 0; i < 24 * 32 && shard_fixture_rows(&fixture, ROW_RUN) > 0; i++)
        shard_fixture_sleep(
            3600 * NS_PER_S); /* and after their retention they go, no matter who wrote them */
    static const enum row_kind kinds[] = {ROW_RUN,     ROW_CURRENT,  ROW_PENDING,
                                          ROW_HISTORY, ROW_TRANSFER, ROW_TIMER};
    for (size_t i = 0; i < array_length(kinds); i++)
        EXPECT_EQ(shard_fixture_rows(&fixture, kinds[i]), 0);
    shard_fixture_close(&fixture);
}

/* --- the contest ---- */

static bool
is_registered(void *context)
{
    return ((struct contest *)context)->is_registered;
}

static void
play(struct world *world, struct contest *contest)
{
    for (int i = 0; i < HOSTS; i++) {
        struct player *player = &contest->players[i];
        player->contest = contest;
        player->host = world_add_host(world, i == 0 ? "one" : "two", 1);
        host_on_crash(player->host, player_crashed, player);
        host_start(player->host, player_run, player);
        EXPECT(world_run_until(world, is_registered, contest, 60 * NS_PER_S));
    }
    for (int crash = 0; crash < 10; crash++) {
        world_run_for(world, (int64_t)random_below(world_random(world), 6 * NS_PER_S));
        struct player *player = &contest->players[random_below(world_random(world), HOSTS)];
        host_crash(player->host);
        world_run_for(world, (int64_t)random_below(world_random(world), NS_PER_S));
        host_start(player->host, player_run, player);
    }
    contest->is_over = true;
    for (int i = 0; i < HOSTS; i++) {
        EXPECT(world_run_until(world, host_has_ended, contest->players[i].host, 600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(contest->players[i].host), 0);
    }
}

TEST(owners, two_hosts_that_crash_and_fence_each_other_lose_and_double_nothing)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct contest contest = {.base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i));
        play(world, &contest);
        struct host *checker = world_add_host(world, "checker", 1);
        host_start(checker, check_all, &contest);
        EXPECT(world_run_until(world, host_has_ended, checker, 40 * 86400 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(checker), 0);
        EXPECT(world_probe_count(world, "shard_lost") > 0);
        EXPECT(world_probe_count(world, "task_offered_again") > 0);
        EXPECT(world_probe_count(world, "outbox_beyond_memory") > 0 ||
               world_probe_count(world, "wakeups_beyond_memory") > 0);
        world_free(world);
        memory_base_free(contest.base);
    }
}
