/* questions_test.c - what is asked of the owner of the domains, and read nowhere else by bytes. */
#include "base/test.h"
#include "domain/test/cluster_pair.h"
#include "fiber/loop.h"
#include "wire/message.h"
#include "wire/presence.h"

static const char *
print(const struct domain *domain, struct arena *arena)
{
    struct slice bytes = message_encode(arena, &domain->record->base);
    EXPECT(slice_equal(bytes, domain->bytes));
    return arena_format(arena, "%s at %lld: %s", domain->name,
                        (long long)domain->record->notification_version,
                        domain->record->domain->description);
}

PAIR_TEST(domain_questions, an_answer_has_the_record_that_the_change_left,
          cluster_pair_run(2, body))
{
    struct domains *domains = cluster_pair_domains(cluster_pair, EAST);
    struct arena *arena = cluster_pair->arena;
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    API(UpdateDomainRequest) *request =
        API_NEW(arena, update_domain_request, .name = "orders", .description = "of all shops");
    struct domain *changed = NULL;
    EXPECT_OK(domains_update(domains, request, arena, &changed));
    EXPECT_TEXT(print(changed, arena), "orders at 2: of all shops");
    EXPECT(slice_equal(changed->bytes, domains_find_name(domains, "orders")->bytes));
    domain_drop(changed);
    changed = NULL;
    request->name = "nobody";
    EXPECT_KIND(domains_update(domains, request, arena, &changed), ERR_ENTITY_NOT_EXISTS);
    EXPECT(changed == NULL);
}

struct look {
    struct domains *domains;
    const char *group;
    bool is_isolated;
};

static void
look_there(void *argument)
{
    struct look *look = argument;
    const struct domain *domain = domains_find_name(look->domains, "orders");
    look->is_isolated = domains_is_group_isolated(look->domains, domain->id, look->group);
}

PAIR_TEST(domain_questions, groups_of_the_cluster_are_set_and_unset_on_every_loop,
          cluster_pair_run(2, body))
{
    API(IsolationGroupPartition) group = UBER__CADENCE__API__V1__ISOLATION_GROUP_PARTITION__INIT;
    API(IsolationGroupPartition) *all[] = {&group};
    API(IsolationGroupConfiguration)
    groups = UBER__CADENCE__API__V1__ISOLATION_GROUP_CONFIGURATION__INIT;
    struct look look = {.domains = cluster_pair_domains(cluster_pair, EAST), .group = "zone-a"};
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    group.name = "zone-a";
    group.state = API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED);
    groups.isolation_groups = all;
    groups.n_isolation_groups = 1;
    EXPECT_OK(domains_set_cluster_isolation(look.domains, &groups, cluster_pair->arena));
    EXPECT_OK(loop_call(loop_at(1), look_there, &look, cluster_pair->arena));
    EXPECT(look.is_isolated);
    EXPECT_OK(domains_set_cluster_isolation(look.domains, NULL, cluster_pair->arena));
    EXPECT_OK(loop_call(loop_at(1), look_there, &look, cluster_pair->arena));
    EXPECT(!look.is_isolated);
}

PAIR_TEST(domain_questions, a_follower_is_noted_when_it_has_come_far_enough,
          cluster_pair_run(1, body))
{
    struct domains *domains = cluster_pair_domains(cluster_pair, EAST);
    struct arena *arena = cluster_pair->arena;
    static const struct {
        uint64_t handled;
        int64_t noted;
    } cases[] = {{1, 1}, {2, 1}, {3, 3}, {2, 3}, {5, 5}};
    for (int i = 0; i < 5; i++)
        cluster_pair_register(cluster_pair, EAST, arena_format(arena, "d%d", i), false);
    for (size_t i = 0; i < array_length(cases); i++) {
        EXPECT_OK(domains_note_follower(domains, "shard:7", cases[i].handled, 2, arena));
        EXPECT_EQ(domains_follower_position(domains, "shard:7"), cases[i].noted);
    }
}
