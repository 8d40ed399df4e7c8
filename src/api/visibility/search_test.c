/* search_test.c - search attributes: which are taken, what upserts mean, how keys are added. */
#include "api/test/listing.h"
#include "fiber/fiber.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

#define KIND(name) API_VALUE(INDEXED_VALUE_TYPE__INDEXED_VALUE_TYPE_##name)

#define EXPECT_REFUSED(err_, text_)                                                                \
    do {                                                                                           \
        const struct error *refusal_ = (err_);                                                     \
        EXPECT_KIND(refusal_, ERR_BAD_REQUEST);                                                    \
        EXPECT_TEXT(refusal_->message, text_);                                                     \
    } while (0)

static struct error *
try_start(struct fixture *fixture, API(SearchAttributes) *attributes)
{
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->search_attributes = attributes;
    return fixture_call(fixture, request, NULL);
}

/* So many pairs of the same key, each with a text of this length. */
static API(SearchAttributes) *
make_many(struct fixture *fixture, size_t count, size_t length)
{
    char *json = arena_alloc(fixture->arena, length + 1);
    memset(json, 'x', length);
    json[0] = json[length - 1] = '"';
    json[length] = '\0';
    API(SearchAttributes) *one = listing_attributes(fixture, "CustomKeywordField", json);
    API(SearchAttributes) *many = API_NEW(fixture->arena, search_attributes);
    many->indexed_fields = arena_zalloc(fixture->arena, count, sizeof many->indexed_fields[0]);
    for (many->n_indexed_fields = 0; many->n_indexed_fields < count; many->n_indexed_fields++) {
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(fixture->arena, API_TYPE(search_attributes__indexed_fields_entry));
        static const char *const keys[] = {"CustomKeywordField", "CustomStringField",
                                           "CustomDomain", "Operator"};
        entry->key = (char *)keys[many->n_indexed_fields % array_length(keys)];
        entry->value = one->indexed_fields[0]->value;
        many->indexed_fields[many->n_indexed_fields] = entry;
    }
    return many;
}

SERVER_TEST(search, a_start_with_search_attributes_that_are_not_good_is_refused, "A-243", "A-244")
{
    EXPECT_REFUSED(try_start(fixture, listing_attributes(fixture, "Colour", "\"blue\"")),
                   "Colour is not a valid search attribute key");
    EXPECT_REFUSED(try_start(fixture, listing_attributes(fixture, "CustomIntField", "\"blue\"")),
                   "\"blue\" is not a valid search attribute value for key CustomIntField");
    EXPECT_REFUSED(try_start(fixture, listing_attributes(fixture, "CustomIntField", "1 2")),
                   "1 2 is not a valid search attribute value for key CustomIntField");
    EXPECT_REFUSED(try_start(fixture, listing_attributes(fixture, "WorkflowID", "\"wf\"")),
                   "WorkflowID is read-only Cadence reserved attribute");
    EXPECT_REFUSED(try_start(fixture, make_many(fixture, 1, 2049)),
                   "size limit exceed for key CustomKeywordField");
    fixture_set(fixture, "frontend.searchAttributesTotalSizeLimit: [{value: 400}]\n"
                         "frontend.searchAttributesNumberOfKeysLimit: [{value: 3}]\n");
    EXPECT_REFUSED(try_start(fixture, make_many(fixture, 3, 200)), "total size 647 exceed limit");
    EXPECT_REFUSED(try_start(fixture, make_many(fixture, 4, 10)), "number of keys 4 exceed limit");
    EXPECT_OK(try_start(fixture, listing_attributes(fixture, "CustomIntField", "7")));
}

/* --- upserts ---- */

static API(Decision) *
decide_upsert(struct fixture *fixture, API(SearchAttributes) *attributes)
{
    return API_DECISION(fixture->arena, upsert_workflow_search_attributes,
                        .search_attributes = attributes);
}

SERVER_TEST(search, what_a_worker_upserts_is_listed_and_merged_by_key, "A-245", "A-246", "B-033")
{
    listing_wait(fixture);
    API(StartWorkflowExecutionRequest) *request = fixture_start(fixture, "wf");
    request->search_attributes = listing_attributes(fixture, "CustomIntField", "7");
    run_start_by(fixture, request);
    EXPECT_TEXT(list_ids(fixture, "CustomIntField = 7"), "wf");
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(SearchAttributes) *attributes =
        listing_attributes(fixture, "CustomKeywordField", "\"blue\"");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_upsert(fixture, attributes)));
    EXPECT_TEXT(list_ids(fixture, "CustomIntField = 7 AND CustomKeywordField = 'blue'"), "wf");
    run_signal(fixture, "wf", "go");
    task = poll_decision(fixture, "work");
    attributes = listing_attributes(fixture, "CustomIntField", "8");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_upsert(fixture, attributes)));
    EXPECT_TEXT(list_ids(fixture, "CustomIntField = 7"), "");
    EXPECT_TEXT(list_ids(fixture, "CustomIntField = 8 AND CustomKeywordField = 'blue'"), "wf");
    EXPECT_EQ(list_one(fixture, "wf")->search_attributes->n_indexed_fields, 2);
}

SERVER_TEST(search, an_upsert_of_an_unknown_key_fails_the_decision, "A-245")
{
    run_start(fixture, "wf");
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(SearchAttributes) *attributes = listing_attributes(fixture, "Colour", "\"blue\"");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_upsert(fixture, attributes)));
    const API(History) *history = read_history(fixture, fixture_history(fixture, "wf"))->history;
    const API(HistoryEvent) *event = history->events[3];
    const API(DecisionTaskFailedEventAttributes) *failed =
        event->decision_task_failed_event_attributes;
    EXPECT_EQ(event->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_DECISION_TASK_FAILED_EVENT_ATTRIBUTES));
    EXPECT_EQ(
        failed->cause,
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES));
    EXPECT(strstr(arena_text_of(fixture->arena, presence_read_bytes(failed->failure->details)),
                  "Colour is not a valid search attribute key") != NULL);
}

/* A worker's markers of versions are searched by as a list. */
SERVER_TEST(search, versions_of_changes_are_a_list_of_keywords, "A-248")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(SearchAttributes) *attributes =
        listing_attributes(fixture, "CadenceChangeVersion", "[\"one-1\",\"two-3\"]");
    run_complete(fixture,
                 fixture_complete(fixture, task->task_token, decide_upsert(fixture, attributes)));
    EXPECT_TEXT(list_ids(fixture, "CadenceChangeVersion = 'two-3'"), "wf");
    EXPECT_TEXT(list_ids(fixture, "CadenceChangeVersion = 'two-4'"), "");
}

SERVER_TEST(search, a_run_is_found_by_each_binary_that_worked_on_it, "B-023")
{
    listing_wait(fixture);
    run_start(fixture, "wf");
    static const char *const binaries[] = {"binary-v1", "binary-v2"};
    for (size_t i = 0; i < array_length(binaries); i++) {
        const API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
        API(RespondDecisionTaskCompletedRequest) *request =
            fixture_complete(fixture, task->task_token, NULL);
        request->binary_checksum = (char *)binaries[i];
        run_complete(fixture, request);
        run_signal(fixture, "wf", "go");
    }
    EXPECT_TEXT(list_ids(fixture, "BinaryChecksums = 'binary-v1'"), "wf");
    EXPECT_TEXT(list_ids(fixture, "BinaryChecksums = 'binary-v2'"), "wf");
    EXPECT_TEXT(list_ids(fixture, "BinaryChecksums = 'binary-v3'"), "");
}

/* --- adding ---- */

static struct error *
try_add(struct fixture *fixture, const char *key, int kind)
{
    ADMIN(AddSearchAttributeRequest) *request =
        ADMIN_NEW(fixture->arena, add_search_attribute_request);
    if (key != NULL) {
        ADMIN(AddSearchAttributeRequest__SearchAttributeEntry) *entry = message_new(
            fixture->arena, ADMIN_TYPE(add_search_attribute_request__search_attribute_entry));
        entry->key = (char *)key;
        entry->value = (API(IndexedValueType))kind;
        request->search_attribute = arena_zalloc(fixture->arena, 1, sizeof(void *));
        request->search_attribute[request->n_search_attribute++] = entry;
    }
    return fixture_call(fixture, request, NULL);
}

SERVER_TEST(search, keys_can_be_added_and_stay, "B-032")
{
    listing_wait(fixture);
    EXPECT_REFUSED(try_add(fixture, NULL, 0), "SearchAttributes are not provided");
    EXPECT_REFUSED(try_add(fixture, "WorkflowID", KIND(KEYWORD)),
                   "Key [WorkflowID] is reserved by system");
    EXPECT_REFUSED(try_add(fixture, "CustomIntField", KIND(BOOL)),
                   "Key [CustomIntField] is already whitelisted as a different type");
    EXPECT_REFUSED(try_add(fixture, "Colour", 7), "Unknown value type, 7");
    EXPECT_OK(try_add(fixture, "Colour", KIND(KEYWORD)));
    EXPECT_OK(try_add(fixture, "Colour", KIND(KEYWORD))); /* the same again */
    EXPECT_REFUSED(try_add(fixture, "Colour", KIND(INT)),
                   "Key [Colour] is already whitelisted as a different type");
    EXPECT_OK(try_start(fixture, listing_attributes(fixture, "Colour", "\"blue\"")));
    EXPECT_TEXT(list_ids(fixture, "Colour = 'blue'"), "wf");
    struct registry *again; /* as after a restart */
    EXPECT_OK(registry_open(fixture->store, fixture->arena, &again));
    const struct search_attribute *attribute = attribute_find(registry_set(again), "Colour");
    EXPECT(attribute != NULL && attribute->type == ATTRIBUTE_KEYWORD);
    registry_close(again);
}

static const struct search_attribute *
find_key(struct fixture *fixture, const char *name)
{
    return attribute_find(registry_set(fixture->registry), name);
}

static void
settle(struct fixture *fixture, const char *yaml)
{
    fixture_set(fixture, yaml);
    EXPECT_OK(fiber_sleep(2 * DYNAMIC_INTERVAL_MAX, fixture->arena));
}

SERVER_TEST(search, keys_of_the_setting_are_followed)
{
    listing_wait(fixture);
    /* As Cadence wants it: with the usual keys. One has a type that it cannot have, one has none.
     */
    settle(fixture, "frontend.validSearchAttributes:\n- value: {StartTime: 2, WorkflowID: 1, "
                    "CustomIntField: BOOL, Colour: 1, Size: int, Wrong: colour}\n");
    EXPECT(find_key(fixture, "Colour") != NULL && find_key(fixture, "Wrong") == NULL);
    EXPECT_EQ(find_key(fixture, "Colour")->type, ATTRIBUTE_KEYWORD);
    EXPECT_EQ(find_key(fixture, "Size")->type, ATTRIBUTE_INT);
    EXPECT_EQ(find_key(fixture, "CustomIntField")->type, ATTRIBUTE_INT);
    EXPECT_EQ(find_key(fixture, "StartTime")->column, COLUMN_START_TIME);
    EXPECT_OK(try_start(fixture, listing_attributes(fixture, "Colour", "\"blue\"")));
    EXPECT_TEXT(list_ids(fixture, "Colour = 'blue' and Size = missing"), "wf");
    EXPECT_OK(try_add(fixture, "Shape", KIND(KEYWORD))); /* what is set stays beside it */
    EXPECT_REFUSED(try_add(fixture, "Size", KIND(BOOL)),
                   "Key [Size] is already whitelisted as a different type");
    EXPECT(find_key(fixture, "Colour") != NULL && find_key(fixture, "Shape") != NULL);
    settle(fixture, "frontend.validSearchAttributes: [{value: {Size: 2}}]\n");
    EXPECT(find_key(fixture, "Colour") == NULL && find_key(fixture, "Size") != NULL);
    const struct attribute_set *set = registry_set(fixture->registry);
    settle(fixture, "frontend.validSearchAttributes: [{value: {Size: 2}}]\n"
                    "frontend.maxBadBinaries: [{value: 7}]\n");
    EXPECT(registry_set(fixture->registry) == set); /* nothing changed */
    settle(fixture, "");
    EXPECT(find_key(fixture, "Size") == NULL && find_key(fixture, "Shape") != NULL);
}

static void protected(struct fixture *fixture)
{
    fixture_set(fixture, "history.enableAdminProtection: [{value: true}]\n");
    EXPECT_REFUSED(try_add(fixture, "Colour", KIND(KEYWORD)),
                   "No permission to do this operation.");
}

TEST(search, adding_keys_needs_the_admin_token_where_that_is_wanted)
{
    fixture_run(protected);
}

/* --- cadence-web ---- */

static void
web(struct fixture *fixture)
{
    ADMIN(DescribeClusterResponse) *response = ADMIN_OK(fixture, describe_cluster);
    bool is_advanced = false;
    for (size_t i = 0; i < response->n_persistence_info; i++) {
        const ADMIN(PersistenceInfo) *info = response->persistence_info[i]->value;
        if (strcmp(response->persistence_info[i]->key, "visibilityStore") == 0)
            is_advanced = info->n_features == 1 && info->features[0]->enabled &&
                          strcmp(info->features[0]->key, "advancedVisibilityEnabled") == 0;
    }
    EXPECT(is_advanced);
    EXPECT(response->supported_client_versions != NULL);
    EXPECT(response->supported_client_versions->go_sdk[0] != '\0');
    EXPECT(response->membership_info != NULL && response->membership_info->n_rings > 0);
}

TEST(search, the_description_of_the_cluster_turns_on_searching_in_the_web_ui, "J-018")
{
    fixture_run(web);
}
