/* contract_feed.c - feeding: what stays, what is skipped, what goes. See contract.h. */
#include "base/test.h"
#include "visibility/test/contract.h"
#include "wire/message.h"

#define LIST(query) visibility_contract_list(contract, (query), 100)

static uint64_t
level_of(struct visibility_contract *contract, uint32_t shard)
{
    uint64_t row = UINT64_MAX;
    EXPECT_OK(visibility_level(contract->visibility, shard, contract->arena, &row));
    return row;
}

void
visibility_contract_a_new_one_knows_nothing(struct visibility_contract *contract)
{
    EXPECT_TEXT(LIST(""), "");
    EXPECT_EQ(visibility_contract_count(contract, ""), 0);
    EXPECT_EQ(level_of(contract, 0), 0);
    EXPECT_OK(visibility_sync(contract->visibility, contract->arena));
}

/* Everything in the info comes back, what nobody searches by, too. */
void
visibility_contract_what_was_fed_is_listed_as_it_was(struct visibility_contract *contract)
{
    struct visibility_change change = sample_change(
        contract->arena, &(struct sample_run){.run_id = "a",
                                              .row = 1,
                                              .start_ms = 5,
                                              .is_closed = true,
                                              .cluster_attribute = "europe",
                                              .fields = {{"CustomIntField", " [1,  2]"},
                                                         {"Other", "{\"any\": 1}"}}});
    EXPECT_OK(
        visibility_feed(contract->visibility, &change, 1, contract->attributes, contract->arena));
    struct query query = visibility_contract_parse(contract, "");
    struct visibility_page page = visibility_contract_page(
        contract,
        &(struct visibility_question){.domain_id = "domain", .query = &query, .page_size = 9});
    EXPECT_EQ(page.count, 1);
    EXPECT(slice_equal(page.info[0], change.info));
}

void
visibility_contract_a_later_change_replaces_the_run(struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 1, .fields = {{"CustomIntField", "1"}});
    CONTRACT_FEED(contract, .run_id = "a", .row = 2, .is_closed = true,
                  .fields = {{"CustomIntField", "[2, 3]"}, {"CustomKeywordField", "\"x\""}});
    EXPECT_TEXT(LIST(""), "a");
    EXPECT_TEXT(LIST("CloseTime = missing"), "");
    EXPECT_TEXT(LIST("CustomIntField = 1"), "");
    EXPECT_TEXT(LIST("CustomIntField = 3 AND CustomKeywordField = 'x'"), "a");
    CONTRACT_FEED(contract, .run_id = "a", .row = 9, .is_closed = true);
    EXPECT_TEXT(LIST("CustomIntField != missing"), "");
}

/* A feed that is repeated, and one of an owner that was overtaken. */
void
visibility_contract_a_change_that_is_not_above_the_level_is_skipped(
    struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 4, .type = "new");
    CONTRACT_FEED(contract, .run_id = "a", .row = 4, .type = "again");
    CONTRACT_FEED(contract, .run_id = "a", .row = 3, .type = "old");
    CONTRACT_FEED(contract, .run_id = "b", .row = 2);
    EXPECT_TEXT(LIST("WorkflowType = 'new'"), "a");
    EXPECT_TEXT(LIST(""), "a");
    EXPECT_EQ(level_of(contract, 0), 4);
    struct visibility_change both[] = {
        sample_change(contract->arena, &(struct sample_run){.run_id = "c", .row = 4}),
        sample_change(contract->arena, &(struct sample_run){.run_id = "d", .row = 5}),
    };
    EXPECT_OK(
        visibility_feed(contract->visibility, both, 2, contract->attributes, contract->arena));
    EXPECT_TEXT(LIST(""), "d a");
}

void
visibility_contract_a_run_that_is_gone_is_listed_no_more(struct visibility_contract *contract)
{
    struct sample_run run = {.run_id = "a", .row = 1, .fields = {{"CustomIntField", "1"}}};
    visibility_contract_feed(contract, &run);
    CONTRACT_FEED(contract, .run_id = "b", .row = 2);
    run.row = 3;
    visibility_contract_feed_gone(contract, &run);
    EXPECT_TEXT(LIST(""), "b");
    EXPECT_TEXT(LIST("CustomIntField = 1"), "");
    EXPECT_EQ(level_of(contract, 0), 3);
    run.row = 4; /* it may be that it never was here */
    visibility_contract_feed_gone(contract, &run);
    EXPECT_EQ(level_of(contract, 0), 4);
}

void
visibility_contract_levels_belong_to_their_shards(struct visibility_contract *contract)
{
    struct visibility_change changes[] = {
        sample_change(contract->arena, &(struct sample_run){.run_id = "a", .shard = 7, .row = 9}),
        sample_change(contract->arena, &(struct sample_run){.run_id = "b", .shard = 8, .row = 2}),
    };
    EXPECT_OK(
        visibility_feed(contract->visibility, changes, 2, contract->attributes, contract->arena));
    EXPECT_TEXT(LIST(""), "b a");
    EXPECT_EQ(level_of(contract, 7), 9);
    EXPECT_EQ(level_of(contract, 8), 2);
    EXPECT_EQ(level_of(contract, 9), 0);
}

void
visibility_contract_to_forget_a_shard_leaves_the_others(struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .shard = 1, .row = 5,
                  .fields = {{"CustomIntField", "1"}});
    CONTRACT_FEED(contract, .run_id = "b", .shard = 2, .row = 5,
                  .fields = {{"CustomIntField", "1"}});
    EXPECT_OK(visibility_forget(contract->visibility, 1, 3, contract->arena));
    EXPECT_TEXT(LIST(""), "b");
    EXPECT_TEXT(LIST("CustomIntField = 1"), "b");
    EXPECT_EQ(level_of(contract, 1), 3);
    EXPECT_EQ(level_of(contract, 2), 5);
    CONTRACT_FEED(contract, .run_id = "a", .shard = 1, .row = 4);
    EXPECT_TEXT(LIST(""), "b a");
}

void
visibility_contract_domains_do_not_see_each_other(struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 1);
    CONTRACT_FEED(contract, .run_id = "b", .row = 2, .domain_id = "other");
    EXPECT_TEXT(LIST(""), "a");
    EXPECT_TEXT(LIST("DomainID = 'other' OR DomainID != 'other'"), "a");
    EXPECT_EQ(visibility_contract_count(contract, ""), 1);
}

void
visibility_contract_a_value_of_another_type_is_kept_and_not_found(
    struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 1,
                  .fields = {{"CustomIntField", "\"five\""},
                             {"CustomKeywordField", "5"},
                             {"NotRegistered", "5"}});
    EXPECT_TEXT(LIST("CustomIntField = missing AND CustomKeywordField = missing"), "a");
}

/* A key that is registered while runs have it already; sets come and go. */
void
visibility_contract_a_set_may_go_when_it_has_fed(struct visibility_contract *contract)
{
    struct arena *arena = arena_new(0);
    struct attribute_set *set = attribute_set_new(arena);
    EXPECT_OK(attribute_set_add(set, "Colour", ATTRIBUTE_KEYWORD, arena));
    struct visibility_change change = sample_change(
        contract->arena,
        &(struct sample_run){.run_id = "a", .row = 1, .fields = {{"Colour", "\"red\""}}});
    EXPECT_OK(visibility_feed(contract->visibility, &change, 1, set, contract->arena));
    arena_free(arena);
    CONTRACT_FEED(contract, .run_id = "b", .row = 2, .fields = {{"Colour", "\"red\""}});
    EXPECT_OK(
        attribute_set_add(contract->attributes, "Colour", ATTRIBUTE_KEYWORD, contract->arena));
    EXPECT_TEXT(LIST("Colour = 'red'"), "a");
    EXPECT_TEXT(LIST("Colour = missing"), "b");
    EXPECT_TEXT(LIST("ORDER BY Colour"), "a b");
}

void
visibility_contract_all_is_there_after_opening_again(struct visibility_contract *contract)
{
    if (contract->subject->reopen == NULL)
        return;
    CONTRACT_FEED(contract, .run_id = "a", .row = 1, .fields = {{"CustomIntField", "1"}});
    CONTRACT_FEED(contract, .run_id = "b", .row = 2, .is_closed = true);
    EXPECT_OK(visibility_sync(contract->visibility, contract->arena));
    contract->visibility =
        contract->subject->reopen(contract->subject->context, contract->visibility);
    EXPECT_EQ(level_of(contract, 0), 2);
    EXPECT_TEXT(LIST(""), "b a");
    EXPECT_TEXT(LIST("CustomIntField = 1"), "a");
    CONTRACT_FEED(contract, .run_id = "c", .row = 2);
    EXPECT_TEXT(LIST(""), "b a");
}
