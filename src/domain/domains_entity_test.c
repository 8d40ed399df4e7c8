/* domains_entity_test.c - the entity table on a store: durable, told to every loop, followed by
 * another cluster, also when the log was trimmed. */
#include "base/test.h"
#include "domain/attributes.h"
#include "domain/homes.h"
#include "domain/sites.h"
#include "fiber/fiber.h"
#include "route/route.h"
#include "wire/message.h"

static const struct region regions[] = {{"here", 5}, {"there", 6}};

static void
add_regions(struct sites *sites)
{
    for (int i = 0; i < 2; i++) {
        sites->site[i].group.regions = regions;
        sites->site[i].group.region_count = array_length(regions);
    }
}

static struct error *
set(struct sites *sites, int site, const char *key, const char *region)
{
    struct entity_wish wish = {ENTITY_SET, "user", key, region, "operator"};
    return domains_set_entities(sites_at(sites, site), &wish, 1, sites->arena);
}

static const struct entity *
find(struct sites *sites, int site, const char *key)
{
    return domains_find_entity(sites_at(sites, site), "user", key);
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

static void
run_durable(struct sites *sites)
{
    add_regions(sites);
    EXPECT_OK(set(sites, EAST, "ann", "here"));
    EXPECT_EQ(find(sites, EAST, "ann")->failover_version, 5);
    EXPECT_OK(set(sites, EAST, "ann", "there"));
    uint64_t version = domains_notification_version(sites_at(sites, EAST));
    EXPECT_OK(set(sites, EAST, "ann", "there")); /* nothing new */
    EXPECT_EQ(domains_notification_version(sites_at(sites, EAST)), version);
    struct elsewhere look = {.domains = sites_at(sites, EAST)};
    EXPECT_OK(loop_call(loop_at(1), look_elsewhere, &look, sites->arena));
    EXPECT(look.is_there); /* an answer leaves when every loop knows */
    EXPECT_EQ(look.version, version);

    sites_reopen(sites, EAST);
    EXPECT_EQ(find(sites, EAST, "ann")->failover_version, 6);
    EXPECT_TEXT(find(sites, EAST, "ann")->writer, "operator");
    EXPECT_EQ(domains_entity_count(sites_at(sites, EAST)), 1);
}

TEST(domains_entity, a_row_is_durable_and_every_loop_has_it_when_it_is_answered)
{
    sites_run(2, run_durable);
}

struct hearing {
    struct domain_listener listener;
    size_t entities, failovers;
};

static void
hear(struct domain_listener *listener, const struct domain_news *news)
{
    struct hearing *hearing = container_of(listener, struct hearing, listener);
    hearing->entities += news->entity_count;
    hearing->failovers += news->is_failover;
}

static void
see_nothing(void *context, const struct domain *domain)
{
    (void)context;
    (void)domain;
}

static void
run_heard(struct sites *sites)
{
    add_regions(sites);
    struct hearing hearing = {.listener.hear = hear};
    sites_register(sites, EAST, "orders", true);
    uint64_t before = domains_notification_version(sites_at(sites, EAST));
    domains_listen(sites_at(sites, EAST), &hearing.listener);
    const struct entity_wish wishes[] = {
        {ENTITY_SET, "user", "ann", "here", "watcher"},
        {ENTITY_SET, "user", "bob", "there", "watcher"},
    };
    EXPECT_OK(domains_set_entities(sites_at(sites, EAST), wishes, 2, sites->arena));
    domains_unlisten(&hearing.listener);
    EXPECT_EQ(hearing.entities, 2);
    EXPECT_EQ(hearing.failovers, 1); /* one commit, one step of each shard */
    uint64_t reached = 0, failovers = 0;
    struct missed_visit visit = {.see = see_nothing};
    EXPECT_OK(domains_read_missed(sites_at(sites, EAST), before, &visit, sites->arena, &reached,
                                  &failovers));
    EXPECT_EQ(failovers, 1); /* whoever was away counts the same */
}

TEST(domains_entity, a_change_of_rows_is_one_failover_for_those_who_follow)
{
    sites_run(1, run_heard);
}

static void
run_listed(struct sites *sites)
{
    add_regions(sites);
    static const char *const keys[] = {"c", "a", "b", "d", "e"};
    for (size_t i = 0; i < array_length(keys); i++)
        EXPECT_OK(set(sites, EAST, keys[i], "here"));
    struct entity_wish other = {ENTITY_SET, "zebra", "x", "here", "operator"};
    EXPECT_OK(domains_set_entities(sites_at(sites, EAST), &other, 1, sites->arena));
    struct slice token = {0}, next;
    struct entity_records page;
    const char *all = "";
    do {
        EXPECT_OK(domains_list_entities(sites_at(sites, EAST), "user", token, 2, sites->arena,
                                        &page, &next));
        for (size_t i = 0; i < page.count; i++)
            all = arena_format(sites->arena, "%s%s", all, page.records[i]->key);
        token = next;
    } while (token.length > 0);
    EXPECT_TEXT(all, "abcde");
    EXPECT_OK(domains_list_entities(sites_at(sites, EAST), "", slice_text(""), 100, sites->arena,
                                    &page, &next));
    EXPECT_EQ(page.count, 6);
    EXPECT_KIND(domains_list_entities(sites_at(sites, EAST), "", slice_text("no token"), 100,
                                      sites->arena, &page, &next),
                ERR_BAD_REQUEST);
}

TEST(domains_entity, rows_are_listed_in_order_page_by_page)
{
    sites_run(1, run_listed);
}

/* --- two clusters ----------------------------------------------------------------------------- */

static void
run_followed(struct sites *sites)
{
    add_regions(sites);
    EXPECT_KIND(set(sites, WEST, "ann", "here"), ERR_BAD_REQUEST); /* not the primary */
    EXPECT_OK(set(sites, EAST, "ann", "here"));
    sites_feed(sites, EAST);
    EXPECT_EQ(find(sites, WEST, "ann")->failover_version, 5);
    EXPECT_OK(set(sites, EAST, "ann", "there"));
    struct entity_wish gone = {ENTITY_DELETE, "user", "ann", "", "operator"};
    EXPECT_OK(domains_set_entities(sites_at(sites, EAST), &gone, 1, sites->arena));
    sites_feed(sites, EAST);
    EXPECT(find(sites, WEST, "ann")->is_deleted);
    EXPECT_EQ(find(sites, WEST, "ann")->failover_version, 16);
    sites->site[EAST].fed = 0; /* once more from the start: nothing falls back */
    uint64_t version = domains_notification_version(sites_at(sites, WEST));
    sites_feed(sites, EAST);
    EXPECT(find(sites, WEST, "ann")->is_deleted);
    EXPECT_EQ(domains_notification_version(sites_at(sites, WEST)), version);
}

TEST(domains_entity, another_cluster_has_the_same_rows_however_often_they_come, "G-061")
{
    sites_run(1, run_followed);
}

#define MANY 1200 /* more than one commit, and more changes than the log keeps */

static void
run_trimmed(struct sites *sites)
{
    add_regions(sites);
    struct entity_wish *wishes = arena_zalloc(sites->arena, MANY, sizeof *wishes);
    for (int i = 0; i < MANY; i++)
        wishes[i] = (struct entity_wish){
            ENTITY_SET, "user", arena_format(sites->arena, "user-%04d", i), "here", "watcher"};
    EXPECT_OK(domains_set_entities(sites_at(sites, EAST), wishes, MANY, sites->arena));
    EXPECT_EQ(domains_notification_version(sites_at(sites, EAST)), 3); /* 500, 500, 200 */
    for (int i = 0; i < 300; i++) {
        EXPECT_OK(set(sites, EAST, "user-0007", i % 2 == 0 ? "there" : "here"));
        if (i % 100 == 99)
            sites_acknowledge(sites, EAST);
    }
    sites_register(sites, EAST, "orders", true);
    struct domain_changes changes = sites_read_log(sites, EAST, 0, 1000);
    EXPECT(changes.is_cut);
    EXPECT_EQ(changes.count, 5); /* what is left of three commits, the last move, the domain */
    sites_feed(sites, EAST);
    EXPECT_EQ(domains_entity_count(sites_at(sites, WEST)), MANY);
    EXPECT_EQ(find(sites, WEST, "user-0007")->failover_version,
              find(sites, EAST, "user-0007")->failover_version);
    sites_reopen(sites, WEST);
    EXPECT_EQ(domains_entity_count(sites_at(sites, WEST)), MANY);
    sites_reopen(sites, EAST); /* reads everything, as its log is short */
    EXPECT_EQ(domains_entity_count(sites_at(sites, EAST)), MANY);
}

TEST(domains_entity, who_comes_late_gets_all_rows_though_the_log_was_trimmed)
{
    sites_run(1, run_trimmed);
}

/* --- homes ------------------------------------------------------------------------------------ */

static const char *
home_of(const struct homes *homes, const char *scope, const char *name)
{
    return homes_find(homes, slice_text(scope), slice_text(name));
}

/* Regions here, in the first cluster, and there, in the second. */
static void
add_attributes(struct sites *sites, const char *name)
{
    static char *paths[] = {"active_clusters"};
    struct domains *domains = sites_at(sites, EAST);
    const struct cluster_group *group = &sites->site[EAST].group;
    struct attributes attributes = {0};
    for (size_t i = 0; i < array_length(regions); i++) {
        struct attribute one = {.scope = "region",
                                .name = (char *)regions[i].name,
                                .cluster_name = (char *)group->clusters[i].name};
        attributes_add(&attributes, &one, sites->arena);
    }
    API(UpdateDomainRequest) *update = message_new(sites->arena, API_TYPE(update_domain_request));
    update->name = (char *)name;
    update->update_mask = message_new(sites->arena, GOOGLE_TYPE(field_mask));
    update->update_mask->paths = paths;
    update->update_mask->n_paths = 1;
    update->active_clusters = attributes_write(&attributes, sites->arena);
    EXPECT_OK(domains_update(domains, update, sites->arena, NULL));
}

/* Far more rows than a table begins with; what was asked before a move keeps its moment. */
static void
run_homes(struct sites *sites)
{
    enum { USERS = 3000 };
    add_regions(sites);
    sites_register(sites, EAST, "orders", true);
    struct domains *domains = sites_at(sites, EAST);
    struct entity_wish *wishes = arena_zalloc(sites->arena, USERS, sizeof *wishes);
    for (int i = 0; i < USERS; i++)
        wishes[i] =
            (struct entity_wish){ENTITY_SET, "user", arena_format(sites->arena, "user-%d", i),
                                 i % 3 == 0 ? "there" : "here", "watcher"};
    EXPECT_OK(domains_set_entities(domains, wishes, USERS, sites->arena));
    add_attributes(sites, "orders");
    struct homes *before = homes_new(domains, domains_find_name(domains, "orders"));
    for (int i = 0; i < USERS; i++) {
        const char *key = wishes[i].key;
        EXPECT_TEXT(home_of(before, "user", key), i % 3 == 0 ? "west" : "east");
        EXPECT_TEXT(homes_find_region(before, slice_text("user"), slice_text(key)),
                    wishes[i].region);
    }
    EXPECT_TEXT(home_of(before, "region", "there"), "west");
    EXPECT_TEXT(home_of(before, "region", "nowhere"), "");
    EXPECT(!homes_is_unheard(before, slice_text("region"), slice_text("nowhere")));
    EXPECT(homes_is_unheard(before, slice_text("user"), slice_text("nobody")));
    EXPECT(!homes_is_unheard(before, slice_text("user"), slice_text("user-1")));
    EXPECT(homes_find_region(before, slice_text("region"), slice_text("there")) == NULL);

    EXPECT_OK(set(sites, EAST, "user-1", "there"));
    struct homes *after = homes_new(domains, domains_find_name(domains, "orders"));
    EXPECT_TEXT(home_of(after, "user", "user-1"), "west");
    EXPECT_TEXT(home_of(before, "user", "user-1"), "east");
    homes_drop(before);
    homes_drop(after);
}

TEST(domains_entity, homes_say_of_one_moment_where_runs_are_active)
{
    sites_run(2, run_homes);
}
