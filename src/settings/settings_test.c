/* settings_test.c - settings that are stored: over the file, durable, checked. */
#include "settings/settings.h"

#include "base/test.h"
#include "fiber/contract/contract.h"
#include "route/test_answers.h"
#include "store/memory/memory.h"

#define KEY "frontend.maxBadBinaries"

struct settings_fixture {
    struct arena *arena;
    struct memory_base *base;
    struct store *store;
    struct dynamic *dynamic;
    struct settings *settings;
};

static void
settings_fixture_open(struct settings_fixture *settings_fixture, struct memory_base *base)
{
    settings_fixture->arena = arena_new(0);
    settings_fixture->base = base;
    settings_fixture->store = memory_open(base);
    settings_fixture->dynamic = dynamic_new(NULL);
    EXPECT_OK(dynamic_load(settings_fixture->dynamic,
                           slice_text(KEY ":\n- value: 7\n- value: 8\n"
                                          "  constraints: {domainName: orders}\n"),
                           "d.yaml", settings_fixture->arena));
    EXPECT_OK(settings_open(settings_fixture->store, settings_fixture->dynamic,
                            settings_fixture->arena, &settings_fixture->settings));
}

static void
settings_fixture_close(struct settings_fixture *settings_fixture)
{
    settings_close(settings_fixture->settings);
    store_close(settings_fixture->store);
    dynamic_free(settings_fixture->dynamic);
    arena_free(settings_fixture->arena);
}

static int64_t
ask(struct settings_fixture *settings_fixture, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    return dynamic_integer(settings_fixture->dynamic, DYNAMIC_MAX_BAD_BINARIES, &filter);
}

static struct error *
update(struct settings_fixture *settings_fixture, const char *name, const char *json,
       const char *domain)
{
    struct setting_constraint constraint = {"domainName", domain};
    struct setting_entry entry = {
        .json = json, .constraints = &constraint, .constraint_count = domain == NULL ? 0 : 1};
    struct setting setting = {.name = name, .entries = &entry, .count = 1};
    struct error *err = NULL;
    do
        err = settings_update(settings_fixture->settings, &setting, settings_fixture->arena);
    while (test_is_answer_lost(err));
    return err;
}

static void
run_body(void *argument)
{
    void (**body)(void *base) = argument;
    struct memory_base *base = memory_base_new(1);
    (*body)(base);
    memory_base_free(base);
}

static void
in_a_loop(void (*body)(void *base))
{
    contract_run(1, run_body, &body);
}

TEST_IN(settings, what_is_stored_stands_over_the_file_and_stays_after_a_restart, void *base,
        in_a_loop(body), "H-022")
{
    struct settings_fixture settings_fixture;
    settings_fixture_open(&settings_fixture, base);
    EXPECT_EQ(ask(&settings_fixture, "orders"), 8);
    EXPECT_OK(update(&settings_fixture, KEY, "9", "\"orders\""));
    EXPECT_EQ(ask(&settings_fixture, "orders"), 9);
    EXPECT_EQ(ask(&settings_fixture, "other"), 7); /* no stored entry fits: the file is asked */
    EXPECT_OK(update(&settings_fixture, KEY, "11", NULL));
    EXPECT_EQ(ask(&settings_fixture, "orders"), 11); /* the entries of a key are replaced */
    EXPECT_EQ(ask(&settings_fixture, "other"), 11);
    settings_fixture_close(&settings_fixture);

    settings_fixture_open(&settings_fixture, base); /* a restart */
    EXPECT_EQ(ask(&settings_fixture, "orders"), 11);
    struct setting *found;
    size_t count;
    EXPECT_ANSWER(
        settings_list(settings_fixture.settings, "", settings_fixture.arena, &found, &count));
    EXPECT_EQ(count, 1);
    EXPECT_TEXT(found[0].name, KEY);
    EXPECT_TEXT(found[0].entries[0].json, "11");
    EXPECT_ANSWER(
        settings_restore(settings_fixture.settings, KEY, NULL, 0, settings_fixture.arena));
    EXPECT_EQ(ask(&settings_fixture, "orders"), 8);
    EXPECT_ANSWER(
        settings_list(settings_fixture.settings, KEY, settings_fixture.arena, &found, &count));
    EXPECT_EQ(count, 0);
    settings_fixture_close(&settings_fixture);
}

TEST_IN(settings, what_would_not_be_taken_from_a_file_is_refused_and_changes_nothing, void *base,
        in_a_loop(body), "H-022")
{
    struct settings_fixture settings_fixture;
    settings_fixture_open(&settings_fixture, base);
    struct error *err = update(&settings_fixture, KEY, "\"many\"", NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, KEY ": expected an integer") != NULL);
    EXPECT_KIND(update(&settings_fixture, KEY, "[", NULL), ERR_BAD_REQUEST);
    EXPECT_KIND(update(&settings_fixture, KEY, "1", "{"), ERR_BAD_REQUEST);
    err = update(&settings_fixture, "no.such.key", "1", NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "no.such.key is not a dynamic setting") != NULL);
    EXPECT_EQ(ask(&settings_fixture, "orders"), 8);
    struct setting *found;
    size_t count;
    EXPECT_ANSWER(
        settings_list(settings_fixture.settings, "", settings_fixture.arena, &found, &count));
    EXPECT_EQ(count, 0);
    settings_fixture_close(&settings_fixture);
}

TEST_IN(settings, a_section_of_names_is_stored_and_read_as_one, void *base, in_a_loop(body))
{
    struct settings_fixture settings_fixture;
    settings_fixture_open(&settings_fixture, base);
    const char *name = "frontend.validSearchAttributes", *json;
    EXPECT_OK(
        settings_get(settings_fixture.settings, name, NULL, 0, settings_fixture.arena, &json));
    EXPECT_TEXT(json, "{}");
    EXPECT_KIND(update(&settings_fixture, name, "{\"Colour\": {}}", NULL), ERR_BAD_REQUEST);
    EXPECT_OK(update(&settings_fixture, name, "{\"Colour\": 1, \"Size\": \"INT\"}", NULL));
    EXPECT_OK(
        settings_get(settings_fixture.settings, name, NULL, 0, settings_fixture.arena, &json));
    EXPECT_TEXT(json, "{\"Colour\":1,\"Size\":\"INT\"}");
    settings_fixture_close(&settings_fixture);
}

TEST_IN(settings, entries_are_restored_by_their_constraints, void *base, in_a_loop(body), "H-022")
{
    struct settings_fixture settings_fixture;
    settings_fixture_open(&settings_fixture, base);
    struct setting_constraint of_orders = {"domainName", "\"orders\""};
    struct setting_entry entries[] = {
        {.json = "20", .constraints = &of_orders, .constraint_count = 1}, {.json = "21"}};
    struct setting setting = {.name = KEY, .entries = entries, .count = 2};
    EXPECT_ANSWER(settings_update(settings_fixture.settings, &setting, settings_fixture.arena));
    const char *json;
    EXPECT_OK(
        settings_get(settings_fixture.settings, KEY, &of_orders, 1, settings_fixture.arena, &json));
    EXPECT_TEXT(json, "20");
    EXPECT_OK(settings_get(settings_fixture.settings, KEY, NULL, 0, settings_fixture.arena, &json));
    EXPECT_TEXT(json, "21");
    EXPECT_OK(settings_get(settings_fixture.settings, "frontend.failoverCoolDown", NULL, 0,
                           settings_fixture.arena, &json));
    EXPECT_TEXT(json, "\"0s\"");
    EXPECT_ANSWER(
        settings_restore(settings_fixture.settings, KEY, &of_orders, 1, settings_fixture.arena));
    EXPECT_EQ(ask(&settings_fixture, "orders"), 21);
    settings_fixture_close(&settings_fixture);
}
