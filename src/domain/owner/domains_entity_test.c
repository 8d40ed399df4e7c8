/* domains_entity_test.c - the entity table on a store: durable, known to every loop, followed by
 * another cluster, also when the log was trimmed. */
#include "base/test.h"
#include "domain/attributes.h"
#include "domain/homes.h"
#include "domain/test/cluster_pair.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "route/owner.h"
#include "wire/message.h"

static const struct region regions[] = {{"here", 5}, {"there", 6}};

static void
add_regions(struct cluster_pair *cluster_pair)
{
    for (int i = 0; i < 2; i++) {
        cluster_pair->side[i].group.regions = regions;
        cluster_pair->side[i].group.region_count = array_length(regions);
    }
}

static struct error *
set(struct cluster_pair *cluster_pair, int side, const char *key, const char *region)
{
    struct entity_change change = {ENTITY_SET, "user", key, region, "operator"};
    return domains_set_entities(cluster_pair_domains(cluster_pair, side), &change, 1,
                                cluster_pair->arena);
}

static const struct entity *
find(struct cluster_pair *cluster_pair, int side, const char *key)
{
    return domains_find_entity(cluster_pair_domains(cluster_pair, side), "user", key);
}

/* --- one cluster ------------------------------------------------------------------------------ */

struct elsewhere {
    struct domains *domains;
    bool is_there;
    uint64_t version;
};

static void
look_elsewhere(void *argument)
{
    struct elsewhere *look = argument;
    const struct entity *entity = domains_find_entity(look->domains, "user", "ann");
    look->is_there = entity != NULL && strcmp(entity->region, "there") == 0;
    look->version = domains_notification_version(look->domains);
}

PAIR_TEST(domains_entity, a_row_is_durable_and_every_loop_has_it_when_it_is_answered,
          cluster_pair_run(2, body))
{
    add_regions(cluster_pair);
    EXPECT_OK(set(cluster_pair, EAST, "ann", "here"));
    EXPECT_EQ(find(cluster_pair, EAST, "ann")->failover_version, 5);
    EXPECT_OK(set(cluster_pair, EAST, "ann", "there"));
    uint64_t version = domains_notification_version(cluster_pair_domains(cluster_pair, EAST));
    EXPECT_OK(set(cluster_pair, EAST, "ann", "there")); /* nothing new */
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)), version);
    struct elsewhere look = {.domains = cluster_pair_domains(cluster_pair, EAST)};
    EXPECT_OK(loop_call(loop_at(1), look_elsewhere, &look, cluster_pair->arena));
    EXPECT(look.is_there); /* an answer leaves when every loop knows */
    EXPECT_EQ(look.version, version);

    cluster_pair_reopen(cluster_pair, EAST);
    EXPECT_EQ(find(cluster_pair, EAST, "ann")->failover_version, 6);
    EXPECT_TEXT(find(cluster_pair, EAST, "ann")->writer, "operator");
    EXPECT_EQ(domains_entity_count(cluster_pair_domains(cluster_pair, EAST)), 1);
}

struct hearing {
    struct domain_listener listener;
    size_t entities, failovers;
};

static void
on_change(struct domain_listener *listener, const struct domain_notification *notification)
{
    struct hearing *hearing = container_of(listener, struct hearing, listener);
    hearing->entities += notification->entity_count;
    hearing->failovers += notification->is_failover;
}

static void
see_nothing(void *context, const struct domain *domain)
{
    (void)context;
    (void)domain;
}

PAIR_TEST(domains_entity, a_change_of_rows_is_one_failover_for_those_who_follow,
          cluster_pair_run(1, body))
{
    add_regions(cluster_pair);
    struct hearing hearing = {.listener.on_change = on_change};
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    uint64_t before = domains_notification_version(cluster_pair_domains(cluster_pair, EAST));
    domains_listen(cluster_pair_domains(cluster_pair, EAST), &hearing.listener);
    const struct entity_change row_changes[] = {
        {ENTITY_SET, "user", "ann", "here", "watcher"},
        {ENTITY_SET, "user", "bob", "there", "watcher"},
    };
    EXPECT_OK(domains_set_entities(cluster_pair_domains(cluster_pair, EAST), row_changes, 2,
                                   cluster_pair->arena));
    domains_unlisten(&hearing.listener);
    EXPECT_EQ(hearing.entities, 2);
    EXPECT_EQ(hearing.failovers, 1); /* one commit, one step of each shard */
    uint64_t reached = 0, failovers = 0;
    struct missed_domain_visitor visitor = {.on_domain = see_nothing};
    EXPECT_OK(domains_read_missed(cluster_pair_domains(cluster_pair, EAST), before, &visitor,
                                  cluster_pair->arena, &reached, &failovers));
    EXPECT_EQ(failovers, 1); /* a listener that was away counts the same */
}

PAIR_TEST(domains_entity, rows_are_listed_in_order_page_by_page, cluster_pair_run(1, body))
{
    add_regions(cluster_pair);
    static const char *const keys[] = {"c", "a", "b", "d", "e"};
    for (size_t i = 0; i < array_length(keys); i++)
        EXPECT_OK(set(cluster_pair, EAST, keys[i], "here"));
    struct entity_change other = {ENTITY_SET, "zebra", "x", "here", "operator"};
    EXPECT_OK(domains_set_entities(cluster_pair_domains(cluster_pair, EAST), &other, 1,
                                   cluster_pair->arena));
    struct slice token = {0}, next;
    struct entity_records page;
    const char *all = "";
    do {
        EXPECT_OK(domains_list_entities(cluster_pair_domains(cluster_pair, EAST), "user", token, 2,
                                        cluster_pair->arena, &page, &next));
        for (size_t i = 0; i < page.count; i++)
            all = arena_format(cluster_pair->arena, "%s%s", all, page.records[i]->key);
        token = next;
    } while (token.length > 0);
    EXPECT_TEXT(all, "abcde");
    EXPECT_OK(domains_list_entities(cluster_pair_domains(cluster_pair, EAST), "", slice_text(""),
                                    100, cluster_pair->arena, &page, &next));
    EXPECT_EQ(page.count, 6);
    EXPECT_KIND(domains_list_entities(cluster_pair_domains(cluster_pair, EAST), "",
                                      slice_text("no token"), 100, cluster_pair->arena, &page,
                                      &next),
                ERR_BAD_REQUEST);
}

/* --- two clusters ----------------------------------------------------------------------------- */

PAIR_TEST(domains_entity, another_cluster_has_the_same_rows_however_often_they_come,
          cluster_pair_run(1, body), "G-061")
{
    add_regions(cluster_pair);
    EXPECT_KIND(set(cluster_pair, WEST, "ann", "here"), ERR_BAD_REQUEST); /* not the primary */
    EXPECT_OK(set(cluster_pair, EAST, "ann", "here"));
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(find(cluster_pair, WEST, "ann")->failover_version, 5);
    EXPECT_OK(set(cluster_pair, EAST, "ann", "there"));
    struct entity_change gone = {ENTITY_DELETE, "user", "ann", "", "operator"};
    EXPECT_OK(domains_set_entities(cluster_pair_domains(cluster_pair, EAST), &gone, 1,
                                   cluster_pair->arena));
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(find(cluster_pair, WEST, "ann")->is_deleted);
    EXPECT_EQ(find(cluster_pair, WEST, "ann")->failover_version, 16);
    cluster_pair->side[EAST].replicated = 0; /* once more from the start: nothing falls back */
    uint64_t version = domains_notification_version(cluster_pair_domains(cluster_pair, WEST));
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT(find(cluster_pair, WEST, "ann")->is_deleted);
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, WEST)), version);
}

#define MANY 1200 /* more than one commit, and more changes than the log keeps */

PAIR_TEST(domains_entity, who_comes_late_gets_all_rows_though_the_log_was_trimmed,
          cluster_pair_run(1, body))
{
    add_regions(cluster_pair);
    struct entity_change *row_changes =
        arena_zalloc(cluster_pair->arena, MANY, sizeof *row_changes);
    for (int i = 0; i < MANY; i++)
        row_changes[i] = (struct entity_change){ENTITY_SET, "user",
                                                arena_format(cluster_pair->arena, "user-%04d", i),
                                                "here", "watcher"};
    EXPECT_OK(domains_set_entities(cluster_pair_domains(cluster_pair, EAST), row_changes, MANY,
                                   cluster_pair->arena));
    EXPECT_EQ(domains_notification_version(cluster_pair_domains(cluster_pair, EAST)),
              3); /* 500, 500, 200 */
    for (int i = 0; i < 300; i++) {
        EXPECT_OK(set(cluster_pair, EAST, "user-0007", i % 2 == 0 ? "there" : "here"));
        if (i % 100 == 99)
            cluster_pair_acknowledge(cluster_pair, EAST);
    }
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    struct domain_changes changes = cluster_pair_read_log(cluster_pair, EAST, 0, 1000);
    EXPECT(changes.is_cut);
    EXPECT_EQ(changes.count, 5); /* what is left of three commits, the last move, the domain */
    cluster_pair_replicate(cluster_pair, EAST);
    EXPECT_EQ(domains_entity_count(cluster_pair_domains(cluster_pair, WEST)), MANY);
    EXPECT_EQ(find(cluster_pair, WEST, "user-0007")->failover_version,
              find(cluster_pair, EAST, "user-0007")->failover_version);
    cluster_pair_reopen(cluster_pair, WEST);
    EXPECT_EQ(domains_entity_count(cluster_pair_domains(cluster_pair, WEST)), MANY);
    cluster_pair_reopen(cluster_pair, EAST); /* reads everything, as its log is short */
    EXPECT_EQ(domains_entity_count(cluster_pair_domains(cluster_pair, EAST)), MANY);
}

/* --- homes ------------------------------------------------------------------------------------ */

static const char *
home_of(const struct homes *homes, const char *scope, const char *name)
{
    return homes_find(homes, slice_text(scope), slice_text(name));
}

/* Regions here, in the first cluster, and there, in the second. */
static void
add_attributes(struct cluster_pair *cluster_pair, const char *name)
{
    static char *paths[] = {"active_clusters"};
    struct domains *domains = cluster_pair_domains(cluster_pair, EAST);
    const struct cluster_group *group = &cluster_pair->side[EAST].group;
    struct attributes attributes = {0};
    for (size_t i = 0; i < array_length(regions); i++) {
        struct attribute one = {.scope = "region",
                                .name = (char *)regions[i].name,
                                .cluster_name = (char *)group->clusters[i].name};
        attributes_add(&attributes, &one, cluster_pair->arena);
    }
    API(UpdateDomainRequest) *update = API_NEW(
        cluster_pair->arena, update_domain_request, .name = (char *)name,
        .update_mask = GOOGLE_NEW(cluster_pair->arena, field_mask, .paths = paths, .n_paths = 1),
        .active_clusters = attributes_write(&attributes, cluster_pair->arena));
    EXPECT_OK(domains_update(domains, update, cluster_pair->arena, NULL));
}

/* Far more rows than a table begins with; what was asked before a move keeps its moment. */
PAIR_TEST(domains_entity, homes_say_of_one_moment_where_runs_are_active, cluster_pair_run(2, body))
{
    enum { USERS = 3000 };
    add_regions(cluster_pair);
    cluster_pair_register(cluster_pair, EAST, "orders", true);
    struct domains *domains = cluster_pair_domains(cluster_pair, EAST);
    struct entity_change *row_changes =
        arena_zalloc(cluster_pair->arena, USERS, sizeof *row_changes);
    for (int i = 0; i < USERS; i++)
        row_changes[i] = (struct entity_change){ENTITY_SET, "user",
                                                arena_format(cluster_pair->arena, "user-%d", i),
                                                i % 3 == 0 ? "there" : "here", "watcher"};
    EXPECT_OK(domains_set_entities(domains, row_changes, USERS, cluster_pair->arena));
    add_attributes(cluster_pair, "orders");
    struct homes *before = homes_new(domains, domains_find_name(domains, "orders"));
    for (int i = 0; i < USERS; i++) {
        const char *key = row_changes[i].key;
        EXPECT_TEXT(home_of(before, "user", key), i % 3 == 0 ? "west" : "east");
        EXPECT_TEXT(homes_find_region(before, slice_text("user"), slice_text(key)),
                    row_changes[i].region);
    }
    EXPECT_TEXT(home_of(before, "region", "there"), "west");
    EXPECT_TEXT(home_of(before, "region", "nowhere"), "");
    EXPECT(!homes_is_unknown(before, slice_text("region"), slice_text("nowhere")));
    EXPECT(homes_is_unknown(before, slice_text("user"), slice_text("nobody")));
    EXPECT(!homes_is_unknown(before, slice_text("user"), slice_text("user-1")));
    EXPECT(homes_find_region(before, slice_text("region"), slice_text("there")) == NULL);

    EXPECT_OK(set(cluster_pair, EAST, "user-1", "there"));
    struct homes *after = homes_new(domains, domains_find_name(domains, "orders"));
    EXPECT_TEXT(home_of(after, "user", "user-1"), "west");
    EXPECT_TEXT(home_of(before, "user", "user-1"), "east");
    homes_drop(before);
    homes_drop(after);
}
