/* entity_table_script_test.c - the entity table as operators see it: rows of domains come and go
 * with them, and there are no more rows than the setting allows. */
#include <string.h>

#include "sim/entity/entity_script.h"

SCRIPT_TEST(entity_table, the_rows_of_domains_are_listed_with_the_others,
            active_play_regions(2, body), "G-061")
{
    entity_place(script, 0, "user", "ann", "region1");
    STORE_API(ListEntitiesRequest) *request = STORE_API_NEW(script->arena, list_entities_request);
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(script_call(script, 0, request, &answer));
    STORE_API(ListEntitiesResponse) *all = (STORE_API(ListEntitiesResponse) *)answer;
    EXPECT_EQ(all->n_entities, 3);
    EXPECT_TEXT(all->entities[0]->type, "domain");
    EXPECT_TEXT(all->entities[0]->key, "flows.region0");
    EXPECT_TEXT(all->entities[0]->region, "region0");
    EXPECT_TEXT(all->entities[1]->key, "flows.region1");
    EXPECT_TEXT(all->entities[2]->key, "ann");
    active_move(script, "region0", 1);
    active_await_move(script, 0, "region0", 1);
    request->type = "domain";
    EXPECT_OK(script_call(script, 0, request, &answer));
    all = (STORE_API(ListEntitiesResponse) *)answer;
    EXPECT_EQ(all->n_entities, 2);
    EXPECT_TEXT(all->entities[0]->region, "region1"); /* it is disabled: its workflows are there */
    request->type = "user";
    EXPECT_OK(script_call(script, 1, request, &answer));
}

/* The rows {domain}.{region} that a cluster lists. */
static const char *
rows_of(struct script *script, unsigned cluster, const char *domain)
{
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(script_call(script, cluster,
                          STORE_API_NEW(script->arena, list_entities_request, .type = "domain"),
                          &answer));
    const STORE_API(ListEntitiesResponse) *all = (STORE_API(ListEntitiesResponse) *)answer;
    const char *rows = "";
    for (size_t i = 0; i < all->n_entities; i++)
        if (strncmp(all->entities[i]->key, domain, strlen(domain)) == 0)
            rows = arena_format(script->arena, "%s%s:%s ", rows, all->entities[i]->key,
                                all->entities[i]->region);
    return rows;
}

static void
await_rows(struct script *script, const char *domain, const char *wanted)
{
    for (unsigned cluster = 0; cluster < 2; cluster++) {
        for (int i = 0; strcmp(rows_of(script, cluster, domain), wanted) != 0; i++) {
            if (i == 200)
                TEST_FAIL("cluster%u has %s", cluster, rows_of(script, cluster, domain));
            script_sleep(script, 50 * NS_PER_MS);
        }
    }
}

/* They come with a domain, change with it, and go with it, in every cluster. */
SCRIPT_TEST(entity_table, the_rows_of_a_domain_come_change_and_go_with_it,
            active_play_regions(2, body), "G-061")
{
    static const struct load_attribute all[] = {{"region", "region0", "cluster0"},
                                                {"region", "region1", "cluster1"}};
    static const struct load_attribute moved[] = {{"region", "region0", "cluster1"}};
    struct load_call call = {.clients = script->clients, .arena = script->arena};
    EXPECT_OK(load_register(&call, &(struct load_registration){.name = "short",
                                                               .is_global = true,
                                                               .cluster_count = 2,
                                                               .active_cluster = "cluster0",
                                                               .attributes = all,
                                                               .attribute_count = 2}));
    await_rows(script, "short", "short.region0:region0 short.region1:region1 ");
    EXPECT_OK(SCRIPT_CALL(script, 1, NULL, failover_domain, .domain_name = "short",
                          .active_clusters = load_make_attributes(script->arena, moved, 1)));
    await_rows(script, "short", "short.region0:region1 short.region1:region1 ");
    EXPECT_OK(load_deprecate(&call, "short"));
    EXPECT_OK(load_delete(&call, "short"));
    await_rows(script, "short", "");
    await_rows(script, "flows", "flows.region0:region0 flows.region1:region1 ");
}

/* A start that would make one row too many says why, and starts nothing. */
static void
play_limited(struct script *script)
{
    const char *run_id;
    entity_start(script, 1, "a", "ann");
    entity_start(script, 0, "b", "bob");
    struct error *err =
        script_try_start(script, 1, entity_request(script, "c", SOURCE, "cyd"), &run_id);
    EXPECT_KIND(err, ERR_LIMIT_EXCEEDED);
    EXPECT(strstr(err->message, "system.entitiesMax") != NULL);
    EXPECT(script_history(script, 1, "c", "") == NULL);
    entity_start(script, 0, "d", "ann"); /* for those that there are, others go on beginning */
}

TEST(entity_table, a_start_for_one_entity_too_many_is_refused_and_says_so, "G-061")
{
    static const struct load_attribute all[] = {{"region", "region0", "cluster0"},
                                                {"region", "region1", "cluster1"}};
    struct script_attributes attributes = {all, 2, .has_regions = true, .is_forwarded = true};
    script_play_on(&(struct script_fixture){.clusters = 2,
                                            .dynamic = "system.entitiesMax:\n- value: 2\n",
                                            .attributes = &attributes,
                                            .run = play_limited});
}

/* What needs the primary is refused while it is away, and the error names it. */
SCRIPT_TEST(entity_table, nobody_writes_rows_while_the_primary_is_away,
            active_play_regions(2, body))
{
    script_part(script);
    struct error *err =
        script_call(script, 1, entity_set_request(script->arena, "user", "ann", "region1"), NULL);
    EXPECT(err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE));
    script_heal(script);
}
