/* domains_test.c - the owner of the domains on a real store in memory: durable, known to all loops,
 * fenced. */
#include "domain/domains.h"

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/test_loops.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/memory/memory.h"
#include "wire/message.h"
#include "wire/presence.h"

struct domains_fixture {
    struct arena *arena;
    struct memory_base *base;
    struct config *config;
    const struct cluster_group *group;
    struct dynamic *dynamic;
};

struct host {
    struct store *store;
    struct domains *domains;
};

static void
domains_fixture_open(struct domains_fixture *domains_fixture)
{
    domains_fixture->arena = arena_new(0);
    domains_fixture->base = memory_base_new(1);
    domains_fixture->config = config_default();
    EXPECT_OK(cluster_group_load(domains_fixture->config, domains_fixture->arena,
                                 &domains_fixture->group));
    domains_fixture->dynamic = dynamic_new(NULL);
}

static void
domains_fixture_close(struct domains_fixture *domains_fixture)
{
    dynamic_free(domains_fixture->dynamic);
    config_free(domains_fixture->config);
    memory_base_free(domains_fixture->base);
    arena_free(domains_fixture->arena);
}

static struct host
host_open(struct domains_fixture *domains_fixture, int64_t refresh_interval)
{
    struct host host = {.store = memory_open(domains_fixture->base)};
    struct domains_options options = {.store = host.store,
                                      .group = domains_fixture->group,
                                      .dynamic = domains_fixture->dynamic,
                                      .refresh_interval = refresh_interval};
    EXPECT_OK(domains_open(&options, domains_fixture->arena, &host.domains));
    return host;
}

static void
host_close(struct host *host)
{
    domains_close(host->domains);
    store_close(host->store);
}

static struct error *
register_name(struct domains *domains, const char *name, struct arena *arena)
{
    API(RegisterDomainRequest) *request =
        API_NEW(arena, register_domain_request, .name = (char *)name,
                .workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600));
    return domains_register(domains, request, arena, NULL);
}

static struct error *
describe_as(struct domains *domains, const char *name, const char *description, struct arena *arena)
{
    API(UpdateDomainRequest) *request = API_NEW(arena, update_domain_request, .name = (char *)name,
                                                .description = (char *)description);
    return domains_update(domains, request, arena, NULL);
}

/* --- one host ----------------------------------------------------------------------------------
 */

static void
look_on_loop(void *argument)
{
    struct domains *domains = argument;
    EXPECT(domains_find_name(domains, "orders") != NULL);
    EXPECT_EQ(domains_find_name(domains, "orders")->id[14], '7'); /* the version of the UUID */
    EXPECT_EQ(domains_notification_version(domains), 1);
}

LOOP_TEST(domains, when_a_registration_is_answered_every_loop_knows_it, 3, "D-007", "D-016")
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host host = host_open(&domains_fixture, 0);
    EXPECT_OK(register_name(host.domains, "orders", domains_fixture.arena));
    for (unsigned i = 0; i < loop_count(); i++)
        EXPECT_OK(loop_call(loop_at(i), look_on_loop, host.domains, domains_fixture.arena));
    EXPECT_KIND(register_name(host.domains, "orders", domains_fixture.arena),
                ERR_DOMAIN_ALREADY_EXISTS);
    host_close(&host);
    domains_fixture_close(&domains_fixture);
}

LOOP_TEST(domains, everything_is_there_after_reopening, 2)
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host host = host_open(&domains_fixture, 0);
    for (int i = 0; i < 1500; i++) /* more than one page of rows */
        EXPECT_OK(register_name(host.domains, arena_format(domains_fixture.arena, "domain-%04d", i),
                                domains_fixture.arena));
    EXPECT_OK(describe_as(host.domains, "domain-0007", "seven", domains_fixture.arena));
    host_close(&host);

    host = host_open(&domains_fixture, 0);
    EXPECT_EQ(domains_count(host.domains), 1500);
    EXPECT_EQ(domains_notification_version(host.domains), 1501);
    struct domain *seven = domains_find_name(host.domains, "domain-0007");
    EXPECT_TEXT(seven->record->domain->description, "seven");
    EXPECT(domains_find_id(host.domains, seven->id) == seven);
    struct domain *page[10];
    EXPECT_EQ(domains_list(host.domains, "domain-1495", page, 10), 4);
    EXPECT_TEXT(page[0]->name, "domain-1496");
    EXPECT_EQ(domains_list(host.domains, "", page, 10), 10);
    EXPECT_TEXT(page[0]->name, "domain-0000");
    host_close(&host);
    domains_fixture_close(&domains_fixture);
}

/* --- two hosts on one store ---------------------------------------------------------------------
 */

LOOP_TEST(domains, a_change_that_another_host_fenced_is_decided_again_on_what_is_true, 1)
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host one = host_open(&domains_fixture, 0), two = host_open(&domains_fixture, 0);
    EXPECT_OK(register_name(one.domains, "a", domains_fixture.arena));
    EXPECT_OK(register_name(two.domains, "b",
                            domains_fixture.arena)); /* fenced at first: it has not heard of a */
    EXPECT(domains_find_name(two.domains, "a") != NULL);
    EXPECT_KIND(register_name(one.domains, "b", domains_fixture.arena), ERR_DOMAIN_ALREADY_EXISTS);
    EXPECT_OK(describe_as(one.domains, "b", "by one", domains_fixture.arena));
    EXPECT_OK(describe_as(two.domains, "a", "by two", domains_fixture.arena));
    EXPECT_TEXT(domains_find_name(two.domains, "b")->record->domain->description, "by one");
    EXPECT_EQ(domains_notification_version(two.domains), 4);
    host_close(&one);
    host_close(&two);
    domains_fixture_close(&domains_fixture);
}

struct racer {
    struct domains *domains;
    int number;
    struct latch *latch;
    unsigned done;
};

static void
race(void *argument)
{
    struct racer *racer = argument;
    struct arena *arena = arena_new(0);
    for (int i = 0; i < 20; i++) {
        struct error *err =
            register_name(racer->domains, arena_format(arena, "r%d-%d", racer->number, i), arena);
        racer->done += err == NULL;
        EXPECT(err == NULL || err->kind == ERR_FENCED);
    }
    arena_free(arena);
    latch_done(racer->latch);
}

LOOP_TEST(domains, hosts_that_race_lose_no_domain_and_repeat_no_notification_version, 1, "D-033")
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host one = host_open(&domains_fixture, 0), two = host_open(&domains_fixture, 0);
    struct latch latch;
    struct racer racers[8];
    latch_init(&latch, array_length(racers));
    for (int i = 0; i < (int)array_length(racers); i++) {
        racers[i] = (struct racer){
            .domains = i % 2 ? one.domains : two.domains, .number = i, .latch = &latch};
        fiber_start("race", race, &racers[i]);
    }
    latch_wait(&latch);
    unsigned done = 0;
    for (size_t i = 0; i < array_length(racers); i++)
        done += racers[i].done;
    host_close(&one);
    host_close(&two);

    struct host last = host_open(&domains_fixture, 0);
    EXPECT(done > 0);
    EXPECT_EQ(domains_count(last.domains), done);
    EXPECT_EQ(domains_notification_version(last.domains),
              done); /* one per write: no gap, no repeat */
    host_close(&last);
    domains_fixture_close(&domains_fixture);
}

static API(IsolationGroupConfiguration) *
drained(const char *name, struct arena *arena)
{
    API(IsolationGroupConfiguration) *groups =
        API_NEW(arena, isolation_group_configuration,
                .isolation_groups = arena_zalloc(arena, 1, sizeof(void *)));
    groups->isolation_groups[0] =
        API_NEW(arena, isolation_group_partition, .name = (char *)name,
                .state = API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED));
    groups->n_isolation_groups = 1;
    return groups;
}

struct look {
    struct domains *domains;
    const char *group;
    bool is_drained;
};

static void
look_at_group(void *argument)
{
    struct look *look = argument;
    look->is_drained &= domains_is_group_isolated(look->domains, "nobody", look->group);
}

static bool
is_drained_everywhere(struct domains *domains, const char *group, struct arena *arena)
{
    struct look look = {domains, group, true};
    for (unsigned i = 0; i < loop_count(); i++)
        EXPECT_OK(loop_call(loop_at(i), look_at_group, &look, arena));
    return look.is_drained;
}

LOOP_TEST(domains, groups_that_one_host_drains_are_drained_at_the_others, 2, "C-030")
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host one = host_open(&domains_fixture, NS_PER_MS),
                two = host_open(&domains_fixture, NS_PER_MS);
    static const char *const names[] = {"north", "south"};
    for (size_t i = 0; i < array_length(names); i++) {
        struct domains *setter = i == 0 ? one.domains : two.domains;
        struct domains *other = i == 0 ? two.domains : one.domains;
        EXPECT_OK(domains_set_cluster_isolation(setter, drained(names[i], domains_fixture.arena),
                                                domains_fixture.arena));
        EXPECT(is_drained_everywhere(setter, names[i],
                                     domains_fixture.arena)); /* when it is answered */
        int64_t limit = clock_monotonic() + 60 * NS_PER_S;
        while (!is_drained_everywhere(other, names[i], domains_fixture.arena) &&
               clock_monotonic() < limit)
            EXPECT_OK(fiber_sleep(NS_PER_MS, domains_fixture.arena));
        EXPECT(is_drained_everywhere(other, names[i], domains_fixture.arena));
    }
    EXPECT(!is_drained_everywhere(one.domains, "north",
                                  domains_fixture.arena)); /* what was set last counts */
    host_close(&one);
    host_close(&two);
    domains_fixture_close(&domains_fixture);
}

/* --- failure
 * -------------------------------------------------------------------------------------- */

LOOP_TEST(domains, a_store_that_fails_shows_nothing_undurable_and_loses_nothing_acknowledged, 2)
{
    struct domains_fixture domains_fixture;
    domains_fixture_open(&domains_fixture);
    struct host host = host_open(&domains_fixture, 0);
    EXPECT_OK(register_name(host.domains, "before", domains_fixture.arena));
    memory_base_break(domains_fixture.base);
    fiber_set_deadline(clock_monotonic() + 200 * NS_PER_MS);
    struct error *err = register_name(host.domains, "during", domains_fixture.arena);
    fiber_set_deadline(NEVER);
    EXPECT(err != NULL);
    EXPECT(domains_find_name(host.domains, "during") == NULL); /* nothing undurable leaves */
    host_close(&host);

    memory_base_repair(domains_fixture.base);
    host = host_open(&domains_fixture, 0);
    EXPECT(domains_find_name(host.domains, "before") != NULL);
    EXPECT_OK(register_name(host.domains, "after", domains_fixture.arena));
    host_close(&host);
    domains_fixture_close(&domains_fixture);
}
