/* entity_keys_script_test.c - keys of entities as clients and operators write them: taken whole
 * or refused; and rows that are created, or must not be. */
#include <string.h>

#include "sim/entity/entity_script.h"

/* A start for a user whose key has these bytes. */
static struct error *
start_for(struct script *script, const char *id, const char *bytes, size_t length)
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = entity_request(script, id, SOURCE, "x");
    for (size_t i = 0; i < request->header->n_fields; i++) {
        API(Payload) *value = request->header->fields[i]->value;
        if (strcmp(request->header->fields[i]->key, "active-region.lookup-key") == 0)
            value->data = (ProtobufCBinaryData){length, (uint8_t *)bytes};
    }
    return script_try_start(script, 1, request, &run_id);
}
#define START_FOR(script, id, text) start_for((script), (id), (text), sizeof(text) - 1)

SCRIPT_TEST(entity_keys, a_key_is_taken_whole_or_refused, active_play_regions(2, body))
{
    static const struct {
        const char *sent, *taken;
    } keys[] = {{"\"abc", "\"abc"},     {"abc\"", "abc\""},     {"a\"b\"c", "a\"b\"c"},
                {"\"plain\"", "plain"}, {"\"a\\\"b\"", "a\"b"}, {"'quoted'", "'quoted'"},
                {"\"", "\""},           {"\"\\u0041\"", "A"},   {"\\0", "\\0"},
                {"a b:c#d", "a b:c#d"}};
    for (size_t i = 0; i < array_length(keys); i++) {
        const char *id = arena_format(script->arena, "w%zu", i);
        EXPECT_OK(start_for(script, id, keys[i].sent, strlen(keys[i].sent)));
        active_end(script, 1, id);
        EXPECT_TEXT(entity_of(script, 1, id)->scope, "user");
        EXPECT_TEXT(entity_of(script, 1, id)->name, keys[i].taken);
        EXPECT_TEXT(entity_get(script, 0, "user", keys[i].taken)->entity->region, "region1");
    }
    struct error *err = START_FOR(script, "cut", "abc\0def");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message,
                "Header active-region.lookup-key holds a NUL byte; it has to be UTF-8 "
                "without NUL, plain or as a JSON text.");
    EXPECT_KIND(START_FOR(script, "cut", "\0zero"), ERR_BAD_REQUEST);
    EXPECT_KIND(START_FOR(script, "cut", "abc\0"), ERR_BAD_REQUEST);
    EXPECT_KIND(START_FOR(script, "cut", "\"abc\\u0000def\""), ERR_BAD_REQUEST);
    EXPECT_KIND(START_FOR(script, "cut", "\"a\"b\""), ERR_BAD_REQUEST);
    EXPECT_KIND(START_FOR(script, "cut", "\xff"), ERR_BAD_REQUEST);
    EXPECT(script_history(script, 1, "cut", "") == NULL);
    EXPECT(entity_get(script, 0, "user", "abc") == NULL);
}

/* In a decision: it fails with the same words. */
SCRIPT_TEST(entity_keys, a_child_whose_key_cannot_be_one_fails_its_decision,
            active_play_regions(2, body))
{
    script_start(script, 0, "parent");
    API(Decision) *child = active_start_child(script, "child", NULL);
    API(Header) *header = entity_header(script, SOURCE, "x");
    for (size_t i = 0; i < header->n_fields; i++)
        if (strcmp(header->fields[i]->key, "active-region.lookup-key") == 0)
            header->fields[i]->value->data = (ProtobufCBinaryData){7, (uint8_t *)"abc\0def"};
    child->start_child_workflow_execution_decision_attributes->header = header;
    script_decide(script, 0, &child, 1);
    API(History) *history = script_await(script, 0, "parent", 4);
    EXPECT_EQ(script_count_events(history, EVENT(DECISION_TASK_FAILED)), 1);
    EXPECT(script_history(script, 0, "child", "") == NULL);
}

/* What unknownKeys says holds for a policy as for a header, at the primary and elsewhere. */
SCRIPT_TEST(entity_keys, an_unknown_key_of_a_policy_is_made_or_refused_as_that_of_a_header,
            active_play_regions(2, body), "G-061")
{
    const char *run_id;
    for (unsigned cluster = 0; cluster < 2; cluster++) {
        const char *key = arena_format(script->arena, "new-%u", cluster);
        API(StartWorkflowExecutionRequest) *start = script_start_request(script, key);
        start->active_cluster_selection_policy = active_policy(script, "user", key);
        EXPECT_OK(script_try_start(script, cluster, start, &run_id));
        active_end(script, cluster, key);
        EXPECT_TEXT(entity_get(script, 0, "user", key)->entity->writer, "start");
        API(StartWorkflowExecutionRequest) *city = script_start_request(script, "refused");
        city->active_cluster_selection_policy = active_policy(script, "city", key);
        struct error *err = script_try_start(script, cluster, city, &run_id);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strstr(err->message, "is not known to the source 'city'") != NULL);
    }
}

SCRIPT_TEST(entity_keys, an_entity_of_a_type_that_nobody_declared_is_refused,
            active_play_regions(2, body))
{
    for (unsigned cluster = 0; cluster < 2; cluster++) {
        struct error *err = script_call(
            script, cluster, entity_set_request(script->arena, "planet", "mars", "region0"), NULL);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT(strstr(err->message, "Type 'planet' is not one of entities.types") != NULL);
        EXPECT(entity_get(script, cluster, "planet", "mars") == NULL);
    }
}
