/* active_default_script_test.c - the default of an active-active domain moves while another
 * cluster, which does not hear of it, moves a region. */
#include <string.h>

#include "sim/active/active_script.h"

/* NULL: no answer. */
static API(Domain) *
describe_domain(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    struct error *err = load_describe(&call, SCRIPT_DOMAIN, &domain);
    fiber_set_deadline(NEVER);
    return err == NULL ? domain : NULL;
}

static void
await_default(struct script *script, unsigned cluster, const char *name, int64_t version)
{
    int64_t limit = clock_monotonic() + WITHIN;
    for (;;) {
        const API(Domain) *domain = describe_domain(script, cluster);
        if (domain != NULL && strcmp(domain->active_cluster_name, name) == 0 &&
            domain->failover_version == version)
            return;
        if (clock_monotonic() > limit)
            TEST_FAIL("cluster%u has %s, version %lld", cluster,
                      domain == NULL ? "no answer" : domain->active_cluster_name,
                      domain == NULL ? -1LL : (long long)domain->failover_version);
        script_sleep(script, 10 * NS_PER_MS);
    }
}

/* Cluster 1 takes the default over while cluster 0, which cannot hear of it, takes a region: that
 * raises the version of the domain above the other's, and undoes nothing. A workflow of the default
 * goes on in cluster 1, with the version that the two have agreed on. */
SCRIPT_TEST(active_default, a_region_that_moves_elsewhere_does_not_undo_a_failover_of_the_default,
            active_play(2, body), "G-030")
{
    active_start(script, 0, "w", NULL);
    script_await(script, 1, "w", 2);
    script_part(script);
    struct load_call call = {.clients = script->clients, .host = 1, .arena = script->arena};
    struct load_failover failover = {.name = SCRIPT_DOMAIN, .cluster = "cluster1"};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    EXPECT_OK(load_failover(&call, &failover, &domain));
    fiber_set_deadline(NEVER);
    int64_t moved = domain->failover_version;
    active_move(script, "region1", 0);
    int64_t raised = describe_domain(script, 0)->failover_version;
    EXPECT(raised > moved && sim_group_of_version(raised) == 0);
    script_heal(script);
    int64_t agreed = raised; /* the next one of cluster 1 */
    while (sim_group_of_version(agreed) != 1)
        agreed++;
    for (unsigned i = 0; i < 2; i++) {
        await_default(script, i, "cluster1", agreed);
        active_await_move(script, i, "region1", 0);
    }
    EXPECT_OK(script_signal(script, 1, "w", "go"));
    EXPECT_EQ(script_await(script, 1, "w", 3)->events[2]->version, agreed);
    active_end(script, 1, "w");
    script_expect_same(script, "w");
    active_expect_written(script_history(script, 0, "w", ""), 2, 1);
    script_crash(script, 0); /* it was stored */
    script_restart(script, 0);
    await_default(script, 0, "cluster1", agreed);
}
