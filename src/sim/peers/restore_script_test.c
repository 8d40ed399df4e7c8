/* restore_script_test.c - a cluster of a group is restored from a backup.
 *
 * What is at stake: the others have what it wrote after the backup. If it went on as if nothing
 * were, its next events would have ids and versions that the others have with other content, and
 * workflow ids that run would be started again. So it asks them first, and decides nothing until it
 * knows what they know (design/031). */
#include <stdio.h>
#include <string.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "sim/peers/restore_script.h"
#include "sim/world/histories.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"

static const char patient[] = "frontend.holdCallsDuringDrainTime: [{value: 5s}]\n";

static void
watch(struct script *script)
{
    sim_histories_watch(script->sim);
}

static void
play_group(unsigned clusters, void (*run)(struct script *script))
{
    script_play_on(&(struct script_fixture){
        .clusters = clusters, .dynamic = patient, .run = run, .begin = watch});
}

#define RESTORE_TEST(title, clusters, ...)                                                         \
    SCRIPT_TEST(restore, title, play_group(clusters, body), ##__VA_ARGS__)

static void
tell_the_story(struct script *script)
{
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_restore(script, 0);
    lost_expect_recovered(script, 0, &lost);
    EXPECT(lost_domain_version(script, 0) > lost.version);
}

RESTORE_TEST(what_one_of_two_lost_it_reads_from_the_other_before_it_goes_on, 2)
{
    tell_the_story(script);
}

RESTORE_TEST(what_one_of_three_lost_it_reads_from_the_others_before_it_goes_on, 3)
{
    tell_the_story(script);
}

/* The same backup, while it had recovered and gone on. */
RESTORE_TEST(it_can_be_restored_again, 2)
{
    struct lost_time lost = {0}, more = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_restore(script, 0);
    script_await_whole(script, 0);
    EXPECT_OK(script_signal(script, 0, "new.timed", "in between"));
    script_expect_same(script, "new.timed");
    more = lost;
    more.version = lost_domain_version(script, 1);
    script_restore(script, 0);
    lost_expect_recovered(script, 0, &more);
    EXPECT_EQ(script_count_signals(script_history(script, 0, "new.timed", ""), "in between"), 1);
}

/* Nothing happened after the backup. */
RESTORE_TEST(one_that_lost_nothing_goes_on_too, 2)
{
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_keep(script, 0);
    script_restore(script, 0);
    lost_expect_recovered(script, 0, &lost);
}

/* --- while it cannot ask ---- */

static void
register_local(struct script *script)
{
    struct load_call call = {.clients = script->clients, .arena = script->arena};
    fiber_set_deadline(clock_monotonic() + WITHIN);
    EXPECT_OK(load_register(&call, &(struct load_registration){.name = "local"}));
    fiber_set_deadline(NEVER);
    script_sleep(script, NS_PER_S);
}

static struct error *
start_local(struct script *script, const char *id)
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, id);
    request->domain = "local";
    return script_try_start(script, 0, request, &run_id);
}

/* It waits, and is then refused with a sentence that says for what. */
static void
expect_refused(struct script *script)
{
    const char *run_id;
    int64_t begin = clock_monotonic();
    struct error *err =
        script_try_start(script, 0, script_start_request(script, "too.early"), &run_id);
    EXPECT(err != NULL);
    EXPECT(clock_monotonic() >= begin + 4 * NS_PER_S);
    if (strstr(err->message, "cluster0 lost memory") == NULL)
        TEST_FAIL("the refusal does not say what it waits for: %s", err->message);
    EXPECT(script_signal(script, 0, "idle", "too early") != NULL);
    EXPECT(script_poll(script, 0, NS_PER_S) == NULL);
    EXPECT(script_history(script, 0, "too.early", "") == NULL);
}

/* What operators are told: health by a sentence, DescribePeers for whom it waits, metrics. */
static void
expect_told(struct script *script, unsigned away)
{
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(script_call(script, 0, API_NEW(script->arena, health_request), &answer));
    const API(HealthResponse) *health = (const API(HealthResponse) *)answer;
    EXPECT(health->ok);
    EXPECT(strstr(health->message, "recovering: this cluster lost memory") == health->message);
    EXPECT_OK(
        script_call(script, 0, STORE_API_NEW(script->arena, describe_peers_request), &answer));
    const STORE_API(DescribePeersResponse) *peers =
        (const STORE_API(DescribePeersResponse) *)answer;
    for (size_t i = 0; i < peers->n_peers; i++) {
        bool is_away =
            strcmp(peers->peers[i]->name, arena_format(script->arena, "cluster%u", away)) == 0;
        EXPECT(peers->peers[i]->is_past_wanted);
        EXPECT_EQ(peers->peers[i]->past_read, 0); /* domains of all come first */
        EXPECT_EQ(peers->peers[i]->past_shards == 0, is_away);
    }
    struct slice text = sim_host_metrics(&script->sim->hosts[0], script->arena);
    EXPECT(strstr(arena_text_of(script->arena, text), "\ncadenza_recovering 1\n") != NULL);
}

/* When it is over. */
static void
expect_nothing_told(struct script *script)
{
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(script_call(script, 0, API_NEW(script->arena, health_request), &answer));
    EXPECT_TEXT(((const API(HealthResponse) *)answer)->message, "OK");
    EXPECT_OK(
        script_call(script, 0, STORE_API_NEW(script->arena, describe_peers_request), &answer));
    const STORE_API(DescribePeersResponse) *peers =
        (const STORE_API(DescribePeersResponse) *)answer;
    for (size_t i = 0; i < peers->n_peers; i++) {
        EXPECT(!peers->peers[i]->is_past_wanted);
        EXPECT(peers->peers[i]->past_shards > 0);
        EXPECT_EQ(peers->peers[i]->past_read, peers->peers[i]->past_shards);
    }
    struct slice text = sim_host_metrics(&script->sim->hosts[0], script->arena);
    EXPECT(strstr(arena_text_of(script->arena, text), "\ncadenza_recovering 0\n") != NULL);
}

static void
wait_for_peer(struct script *script, unsigned peer)
{
    struct lost_time lost = {0};
    register_local(script);
    lost_begin(script);
    lost_live(script, &lost);
    script_set_back(script, 0);
    script_cut(script, 0, peer);
    script_restart(script, 0);
    script_sleep(script, 5 * NS_PER_S);
    expect_refused(script);
    expect_told(script, peer);
    EXPECT_OK(start_local(script, "local.run"));
    EXPECT(script_is_recovering(script, 0));
    script_crash(script, 0);
    script_restart(script, 0);
    script_sleep(script, 3 * NS_PER_S);
    expect_refused(script);
    script_join(script, 0, peer);
    lost_expect_recovered(script, 0, &lost);
    expect_nothing_told(script);
    EXPECT_KIND(start_local(script, "local.run"), ERR_ALREADY_STARTED);
    EXPECT(script_history(script, 0, "too.early", "") == NULL);
    EXPECT_EQ(script_count_signals(script_history(script, 0, "idle", ""), "too early"), 0);
}

RESTORE_TEST(it_takes_no_calls_before_it_has_heard_the_other_one_but_for_local_domains, 2)
{
    wait_for_peer(script, 1);
}

RESTORE_TEST(it_takes_no_calls_before_it_has_heard_all_of_them, 3)
{
    wait_for_peer(script, 2);
}

/* --- both lost memory ---- */

RESTORE_TEST(two_that_lost_memory_give_each_other_what_they_have, 2)
{
    struct lost_time lost = {0};
    lost_begin(script);
    script_start(script, 0, "only.in.second");
    script_expect_same(script, "only.in.second");
    script_keep(script, 1);
    lost_live(script, &lost);
    script_set_back(script, 0);
    script_set_back(script, 1);
    script_restart(script, 0);
    script_restart(script, 1);
    script_await_whole(script, 0);
    script_await_whole(script, 1);
    script_expect_same(script, "only.in.second");
    script_start(script, 0, "new.idle"); /* nobody has it */
    EXPECT_OK(script_signal(script, 0, "only.in.second", "afterwards"));
    script_expect_same(script, "only.in.second");
    script_expect_same(script, "idle");
    script_expect_same(script, "new.idle");
    EXPECT(sim_histories_violation(script->sim->histories) == NULL);
    EXPECT_EQ(lost_domain_version(script, 1), lost_domain_version(script, 0));
}

/* --- the domain moves meanwhile ---- */

RESTORE_TEST(a_failover_by_force_while_it_recovers_wins, 2)
{
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_set_back(script, 0);
    script_cut(script, 0, 1);
    script_restart(script, 0);
    script_sleep(script, 2 * NS_PER_S);
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "new.timed", "over there"));
    script_join(script, 0, 1);
    lost_expect_recovered(script, 1, &lost);
    EXPECT_TEXT(script_describe_domain(script, 0)->active_cluster_name, "cluster1");
    EXPECT_EQ(script_count_signals(script_history(script, 0, "new.timed", ""), "over there"), 1);
    script_failover(script, 0);
    EXPECT_OK(script_signal(script, 0, "new.timed", "back again"));
    script_expect_same(script, "new.timed");
}

/* It hears of that from one while it waits for another one. */
RESTORE_TEST(a_failover_by_force_reaches_one_that_recovers, 3)
{
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_set_back(script, 0);
    script_cut(script, 0, 2);
    script_restart(script, 0);
    script_sleep(script, 2 * NS_PER_S);
    script_failover(script, 1);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT_TEXT(script_describe_domain(script, 0)->active_cluster_name, "cluster1");
    EXPECT(script_is_recovering(script, 0));
    EXPECT_OK(script_signal(script, 1, "new.timed", "over there"));
    script_join(script, 0, 2);
    lost_expect_recovered(script, 1, &lost);
    EXPECT_TEXT(script_describe_domain(script, 0)->active_cluster_name, "cluster1");
}

/* Asked of the target, and of the one that recovers. */
static struct error *
ask_gracefully(struct script *script, unsigned asked, unsigned to)
{
    return SCRIPT_CALL(script, asked, NULL, failover_domain, .domain_name = SCRIPT_DOMAIN,
                       .domain_active_cluster_name =
                           presence_make_text(arena_format(script->arena, "cluster%u", to)),
                       .failover_timeout = presence_make_duration(script->arena, 10));
}

RESTORE_TEST(it_cannot_hand_over_gracefully_before_it_has_recovered, 3)
{
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_set_back(script, 0);
    script_cut(script, 0, 2);
    script_restart(script, 0);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT(ask_gracefully(script, 0, 1) != NULL);
    EXPECT(ask_gracefully(script, 1, 1) != NULL);
    EXPECT_TEXT(script_describe_domain(script, 1)->active_cluster_name, "cluster0");
    script_join(script, 0, 2);
    lost_expect_recovered(script, 0, &lost);
    EXPECT_OK(ask_gracefully(script, 1, 1));
    while (world_probe_count(script->sim->world, "drain_complete") == 0)
        script_sleep(script, 100 * NS_PER_MS);
    EXPECT_OK(script_signal(script, 1, "new.timed", "gracefully"));
    script_expect_same(script, "new.timed");
}

/* --- it crashes meanwhile ---- */

struct crash_fixture {
    unsigned victim;
    uint64_t at; /* crashes at this point of the victim's store; 0: at none */
    bool is_armed, has_struck;
    uint64_t armed_at, points;
};

static uint64_t
points_of(const struct script *script)
{
    const struct crash_fixture *test = script->fixture->test;
    return memory_base_points(script->sim->hosts[test->victim].base);
}

static bool
is_struck_now(const struct script *script)
{
    const struct crash_fixture *test = script->fixture->test;
    return test->is_armed && !test->has_struck && test->at > 0 &&
           points_of(script) >= test->armed_at + test->at;
}

static void
strike(struct script *script)
{
    struct crash_fixture *test = script->fixture->test;
    struct sim_host *host = &script->sim->hosts[test->victim];
    test->has_struck = true;
    sim_host_crash(host);
    sim_host_start(host);
}

static void
recover_once(struct script *script)
{
    struct crash_fixture *test = script->fixture->test;
    struct lost_time lost = {0};
    lost_begin(script);
    lost_live(script, &lost);
    script_set_back(script, 0);
    test->armed_at = points_of(script);
    test->is_armed = true;
    script_restart(script, 0);
    script_await_whole(script, 0);
    script_sleep(script, 2 * NS_PER_S);
    test->is_armed = false;
    test->points = points_of(script) - test->armed_at;
    lost_expect_recovered(script, 0, &lost);
}

static void
play_once(struct crash_fixture *test)
{
    script_play_on(&(struct script_fixture){.clusters = 2,
                                            .dynamic = patient,
                                            .run = recover_once,
                                            .begin = watch,
                                            .is_due = is_struck_now,
                                            .act = strike,
                                            .test = test});
}

static void
play_all_crashes(unsigned victim)
{
    struct crash_fixture calm = {.victim = victim};
    play_once(&calm);
    EXPECT(calm.points > 2);
    printf("    %llu points\n", (unsigned long long)calm.points);
    for (uint64_t at = 1; at <= calm.points; at++) {
        struct crash_fixture test = {.victim = victim, .at = at};
        play_once(&test);
        EXPECT(test.has_struck);
    }
}

TEST(restore, whenever_it_crashes_while_it_recovers_it_begins_again)
{
    play_all_crashes(0);
}

TEST(restore, whenever_the_other_one_crashes_while_it_is_asked_it_is_asked_again)
{
    play_all_crashes(1);
}
