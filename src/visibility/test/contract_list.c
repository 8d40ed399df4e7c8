/* contract_list.c - lists: order, pages, what queries find. See contract.h. */
#include "base/test.h"
#include "visibility/test/contract.h"

#define LIST(query) visibility_contract_list(contract, (query), 2)

void
visibility_contract_without_order_the_newest_comes_first(struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 1, .start_ms = 20);
    CONTRACT_FEED(contract, .run_id = "c", .row = 2, .start_ms = 30);
    CONTRACT_FEED(contract, .run_id = "b", .row = 3, .start_ms = 30);
    CONTRACT_FEED(contract, .run_id = "d", .row = 4, .start_ms = 10);
    EXPECT_TEXT(LIST(""), "c b a d");
    EXPECT_TEXT(LIST("order by StartTime asc"), "d a b c");
    EXPECT_TEXT(LIST("ORDER BY WorkflowID DESC"), "d c b a"); /* the run id breaks ties */
    EXPECT_TEXT(LIST("ORDER BY WorkflowID"), "a b c d");
}

static void
feed_six(struct visibility_contract *contract)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    for (unsigned i = 0; i < 6; i++)
        CONTRACT_FEED(contract, .run_id = ids[i], .row = i + 1, .start_ms = i);
}

void
visibility_contract_pages_add_up_to_the_whole(struct visibility_contract *contract)
{
    feed_six(contract);
    struct query query = visibility_contract_parse(contract, "");
    struct visibility_question question = {.domain_id = "domain", .query = &query, .page_size = 4};
    struct visibility_page page = visibility_contract_page(contract, &question);
    EXPECT_EQ(page.count, 4);
    question.token = page.token;
    page = visibility_contract_page(contract, &question);
    EXPECT_EQ(page.count, 2);
    EXPECT_EQ(page.token.length, 0);
    for (size_t size = 1; size < 8; size++)
        EXPECT_TEXT(visibility_contract_list(contract, "", size), "f e d c b a");
}

void
visibility_contract_a_full_page_has_a_token_and_the_next_is_empty(
    struct visibility_contract *contract)
{
    feed_six(contract);
    struct query query = visibility_contract_parse(contract, "");
    struct visibility_question question = {.domain_id = "domain", .query = &query, .page_size = 6};
    struct visibility_page page = visibility_contract_page(contract, &question);
    EXPECT_EQ(page.count, 6);
    EXPECT(page.token.length > 0);
    question.token = page.token;
    page = visibility_contract_page(contract, &question);
    EXPECT_EQ(page.count, 0);
    EXPECT_EQ(page.token.length, 0);
}

/* Runs that begin while somebody pages are newer than the first page: none is shown, none is shown
 * twice, and one that goes makes no gap. */
void
visibility_contract_what_is_inserted_between_two_pages_moves_nothing(
    struct visibility_contract *contract)
{
    feed_six(contract);
    struct query query = visibility_contract_parse(contract, "");
    struct visibility_question question = {.domain_id = "domain", .query = &query, .page_size = 3};
    struct visibility_page page = visibility_contract_page(contract, &question);
    question.token = page.token;
    CONTRACT_FEED(contract, .run_id = "g", .row = 7, .start_ms = 9);
    visibility_contract_feed_gone(contract, &(struct sample_run){.run_id = "d", .row = 8});
    CONTRACT_FEED(contract, .run_id = "c2", .row = 9, .start_ms = 1);
    page = visibility_contract_page(contract, &question);
    EXPECT_EQ(page.count, 3);
    EXPECT(memmem(page.info[0].data, page.info[0].length,
                  "\x12\x01"
                  "c",
                  3) != NULL);
    EXPECT(memmem(page.info[1].data, page.info[1].length, "c2", 2) != NULL);
    question.token = page.token;
    EXPECT_EQ(visibility_contract_page(contract, &question).count, 1);
}

void
visibility_contract_a_scan_meets_every_run_once(struct visibility_contract *contract)
{
    feed_six(contract);
    struct query query = visibility_contract_parse(contract, "RunID != 'c' ORDER BY CloseTime");
    struct visibility_question question = {
        .domain_id = "domain", .query = &query, .page_size = 2, .is_unordered = true};
    unsigned met = 0;
    do {
        struct visibility_page page = visibility_contract_page(contract, &question);
        for (size_t i = 0; i < page.count; i++) {
            const uint8_t *id = memmem(page.info[i].data, page.info[i].length, "\x12\x01", 2);
            EXPECT(id != NULL && (met & 1u << (id[2] - 'a')) == 0);
            met |= 1u << (id[2] - 'a');
        }
        question.token = page.token;
    } while (question.token.length > 0);
    EXPECT_EQ(met, 0x3f & ~(1u << 2));
}

/* Each key: a has the small value, b the large one, c both in a list, d none. */
void
visibility_contract_every_type_sorts_both_ways(struct visibility_contract *contract)
{
    static const struct {
        const char *key, *small, *large, *both;
    } keys[] = {
        {"CustomKeywordField", "\"B\"", "\"a\"", "[\"B\", \"a\"]"},
        {"CustomIntField", "-5", "10", "[10, -5]"},
        {"CustomDoubleField", "-0.5", "10", "[10, -0.5]"},
        {"CustomBoolField", "false", "true", "[false, true]"},
        {"CustomDatetimeField", "\"1969-12-31T23:59:59Z\"", "\"1970-01-01T00:00:00Z\"",
         "[\"1970-01-01T00:00:00Z\", \"1969-12-31T23:59:59Z\"]"},
    };
    uint64_t row = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *key = keys[i].key;
        CONTRACT_FEED(contract, .run_id = "d", .row = ++row);
        CONTRACT_FEED(contract, .run_id = "c", .row = ++row, .fields = {{key, keys[i].both}});
        CONTRACT_FEED(contract, .run_id = "b", .row = ++row, .fields = {{key, keys[i].large}});
        CONTRACT_FEED(contract, .run_id = "a", .row = ++row, .fields = {{key, keys[i].small}});
        EXPECT_TEXT(LIST(arena_format(contract->arena, "ORDER BY %s ASC", key)), "a c b d");
        EXPECT_TEXT(LIST(arena_format(contract->arena, "ORDER BY %s DESC", key)), "c b a d");
    }
    CONTRACT_FEED(contract, .run_id = "a", .row = ++row, .start_ms = 3, .is_closed = true);
    CONTRACT_FEED(contract, .run_id = "b", .row = ++row, .start_ms = 2, .is_closed = true,
                  .close_status = 4);
    EXPECT_TEXT(LIST("ORDER BY CloseTime"), "b a c d");
    EXPECT_TEXT(LIST("ORDER BY CloseStatus DESC"), "b a d c");
    EXPECT_TEXT(LIST("ORDER BY HistoryLength"), "a b c d");
}

void
visibility_contract_a_count_is_the_length_of_the_list(struct visibility_contract *contract)
{
    feed_six(contract);
    EXPECT_EQ(visibility_contract_count(contract, ""), 6);
    EXPECT_EQ(visibility_contract_count(contract, "StartTime >= 2000000"), 4);
    EXPECT_EQ(visibility_contract_count(contract, "WorkflowType = 'none' ORDER BY RunID"), 0);
}

void
visibility_contract_a_token_that_is_none_is_refused(struct visibility_contract *contract)
{
    feed_six(contract);
    struct query query = visibility_contract_parse(contract, "ORDER BY WorkflowID");
    struct visibility_question question = {.domain_id = "domain", .query = &query, .page_size = 2};
    struct visibility_page page = visibility_contract_page(contract, &question);
    struct query other = visibility_contract_parse(contract, "ORDER BY StartTime");
    question = (struct visibility_question){
        .domain_id = "domain", .query = &other, .page_size = 2, .token = page.token};
    struct error *err = visibility_list(contract->visibility, &question, contract->arena, &page);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    question.token = slice_text("\x07");
    err = visibility_list(contract->visibility, &question, contract->arena, &page);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
}

/* --- queries -------------------------------------------------------------------------------- */

/* a: open; b: closed, failed, list of checksums; c: cron, delayed; d: closed, of two clusters. */
static void
feed_four(struct visibility_contract *contract)
{
    CONTRACT_FEED(contract, .run_id = "a", .row = 1, .start_ms = 4, .workflow_id = "w-a",
                  .fields = {{"CustomIntField", "5"},
                             {"CustomStringField", "\"Some quick words\""},
                             {"CustomBoolField", "true"}});
    CONTRACT_FEED(contract, .run_id = "b", .row = 2, .start_ms = 3, .is_closed = true,
                  .close_status = 1, .type = "order", .workflow_id = "w-b",
                  .fields = {{"BinaryChecksums", "[\"binary-v1\",\"binary-v2\"]"},
                             {"CustomIntField", "8"},
                             {"CustomDoubleField", "2.5"}});
    CONTRACT_FEED(contract, .run_id = "c", .row = 3, .start_ms = 2, .cron_schedule = "@daily",
                  .delay_ms = 60000, .workflow_id = "W-c", .task_list = "slow",
                  .fields = {{"CustomKeywordField", "\"100%\""},
                             {"CustomDatetimeField", "\"2026-11-15T12:00:00.0019+01:00\""}});
    CONTRACT_FEED(contract, .run_id = "d", .row = 4, .start_ms = 1, .is_closed = true,
                  .close_status = 5, .num_clusters = 2, .cluster_attribute = "europe",
                  .workflow_id = "x");
}

struct question {
    const char *query;
    const char *answer;
};

static const struct question questions[] = {
    {"", "a b c d"},
    {"CloseTime = missing", "a c"},
    {"CloseTime != missing", "b d"},
    {"CloseStatus = 1", "b"},
    {"CloseStatus = 'FAILED' or CloseStatus = \"timed_out\"", "b d"},
    {"CloseStatus IN (0, 'failed', 2)", "b"},
    {"CloseStatus != 1", "a c d"},
    {"ExecutionStatus = 'started'", "a"},
    {"ExecutionStatus = 0", "c"},
    {"ExecutionStatus IN ('failed', 'TIMED_OUT')", "b d"},
    {"StartTime > 2000000", "a b"},
    {"StartTime >= '1970-01-01T00:00:00.002Z' AND StartTime < '1970-01-01T01:00:00.004+01:00'",
     "b c"},
    {"StartTime = '1970-01-01T00:00:00.003Z'", "b"},
    {"StartTime = 3123456", "b"},
    {"StartTime != 3999999", "a c d"},
    {"StartTime <= 3000000", "b c d"},
    {"StartTime BETWEEN 2000000 AND 3000000", "b c"},
    {"StartTime NOT BETWEEN 2000000 AND 3000000", "a d"},
    {"CloseTime > '1970-01-01T00:00:01.001Z'", "b"},
    {"ExecutionTime > 0", "c"},
    {"ExecutionTime < '2030-01-01T00:00:00Z'", "c"},
    {"ScheduledExecutionTime < 1000000000", "a b d"},
    {"UpdateTime >= 1000000000", "b d"},
    {"CustomIntField = 5", "a"},
    {"CustomIntField != 5", "b c d"},
    {"CustomIntField = '8' OR CustomIntField = 5", "a b"},
    {"(CustomIntField = 8 OR CustomIntField = 5) AND CloseTime = missing", "a"},
    {"CustomIntField = 8 OR CustomIntField = 5 AND CloseTime = missing", "a b"},
    {"NOT CustomIntField > 5", "a c d"},
    {"Attr.CustomIntField between 5 and 8", "a b"},
    {"`Attr.CustomIntField` in (5, 6)", "a"},
    {"`CustomIntField` not in (5, 6)", "b c d"},
    {"CustomDoubleField >= 2.5 and CustomDoubleField < 1e1", "b"},
    {"CustomBoolField = true", "a"},
    {"CustomBoolField != 'true'", "b c d"},
    {"CustomStringField = 'QUICK words'", "a"},
    {"CustomStringField = 'words quick'", ""},
    {"CustomStringField != 'quick'", "b c d"},
    {"CustomKeywordField = '100%'", "c"},
    {"CustomKeywordField LIKE '100\\\\%'", "c"},
    {"CustomDatetimeField = '2026-11-15T11:00:00.0019Z'", "c"},
    {"CustomDatetimeField = '2026-11-15T11:00:00.001Z'", ""},
    {"CustomDatetimeField > '2026-11-15T11:00:00.001899999Z'", "c"},
    {"CustomDatetimeField < '2026-11-15T11:00:00.001900001Z'", "c"},
    {"CustomDatetimeField < '2027-01-01T00:00:00Z'", "c"},
    {"BinaryChecksums = 'binary-v1'", "b"},
    {"BinaryChecksums = 'binary-v2' AND BinaryChecksums != 'binary-v3'", "b"},
    {"BinaryChecksums != 'binary-v2'", "a c d"},
    {"IsCron = \"true\"", "c"},
    {"IsCron = 'false'", "a b d"},
    {"IsCron = true AND CronSchedule = '@daily'", "c"},
    {"NumClusters = \"1\"", "a b c"},
    {"NumClusters = 2", "d"},
    {"TaskList = 'slow'", "c"},
    {"ClusterAttributeScope = 'region' AND ClusterAttributeName = 'europe'", "d"},
    {"WorkflowType = 'order'", "b"},
    {"WorkflowType = 'Order'", ""},
    {"WorkflowID LIKE 'w-%'", "a b c"},
    {"WorkflowID LIKE '%-_' and WorkflowID NOT LIKE 'w_b'", "a c"},
    {"WorkflowID LIKE 'w'", "a b c"},
    {"RunID > 'b'", "c d"},
    {"HistoryLength = 6", "b"},
    {"HistoryLength < 100", "b d"},
};

void
visibility_contract_queries_find_what_they_say(struct visibility_contract *contract)
{
    feed_four(contract);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        const char *found = LIST(questions[i].query);
        if (strcmp(found, questions[i].answer) != 0)
            TEST_FAIL("%s: found \"%s\" instead of \"%s\"", questions[i].query, found,
                      questions[i].answer);
    }
}

/* Attributes whose names begin with w are active in west, with n nowhere, others in east. */
static const char *
find_by_letter(const void *context, struct slice scope, struct slice name)
{
    size_t *asked = (size_t *)context;
    (*asked)++;
    EXPECT(slice_equal(scope, slice_text("region")));
    return name.data[0] == 'n' ? "" : name.data[0] == 'w' ? "west" : "east";
}

void
visibility_contract_where_runs_are_active_is_asked_of_what_they_belong_to(
    struct visibility_contract *contract)
{
    static const char *const names[] = {"w1", "e1", "w2", NULL, "n1", "e2", "w3", NULL, "w4", "n2"};
    size_t asked = 0;
    struct query_clusters clusters = {
        .cluster_name = "north", .find = find_by_letter, .context = &asked};
    contract->clusters = &clusters;
    for (unsigned i = 0; i < 10; i++)
        CONTRACT_FEED(contract, .run_id = arena_format(contract->arena, "%c", 'a' + (int)i),
                      .row = i + 1, .start_ms = i, .cluster_attribute = names[i],
                      .is_closed = i >= 8, .close_status = i >= 8 ? 1 : 0);
    EXPECT_TEXT(LIST("ActiveCluster = 'west'"), "i g c a");
    EXPECT(asked >= 8);
    EXPECT_TEXT(LIST("ActiveCluster = 'west' AND CloseTime = missing"), "g c a");
    EXPECT_TEXT(LIST("ActiveCluster = 'north'"), "h d");
    EXPECT_TEXT(LIST("ActiveCluster IN ('north', 'east') ORDER BY StartTime ASC"), "b d f h");
    EXPECT_TEXT(LIST("ActiveCluster != 'west'"), "j h f e d b");
    EXPECT_TEXT(LIST("ActiveCluster = missing"), "j e");
    EXPECT_TEXT(LIST("ActiveCluster != missing AND NOT ActiveCluster = 'west'"), "h f d b");
    EXPECT_TEXT(LIST("ActiveCluster = 'moon' OR RunID = 'e'"), "e");
    EXPECT_EQ(visibility_contract_count(contract, "ActiveCluster = 'west'"), 4);
    EXPECT_EQ(visibility_contract_count(contract, "ActiveCluster = missing"), 2);
    clusters.is_one = true;
    EXPECT_EQ(visibility_contract_count(contract, "ActiveCluster = 'north'"), 10);
    EXPECT_EQ(visibility_contract_count(contract, "ActiveCluster = missing"), 0);
    contract->clusters = NULL;
}
