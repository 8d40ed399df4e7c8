/* settings_test.c - dynamic settings by call, through the door (H-022). */
#include "api/test/fixture.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

#define KEY "limit.signalNameLength"

static API(DataBlob) *
blob(struct fixture *fixture, const char *json)
{
    return API_NEW(fixture->arena, data_blob,
                   .encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON),
                   .data = (ProtobufCBinaryData){.len = strlen(json), .data = (uint8_t *)json});
}

static struct error *
update(struct fixture *fixture, const char *name, const char *json)
{
    ADMIN(UpdateDynamicConfigRequest) *request =
        ADMIN_NEW(fixture->arena, update_dynamic_config_request);
    ADMIN(DynamicConfigValue) *value = ADMIN_NEW(fixture->arena, dynamic_config_value,
                                                 .value = blob(fixture, json), .n_filters = 1);
    ADMIN(DynamicConfigFilter) *filter =
        ADMIN_NEW(fixture->arena, dynamic_config_filter, .name = "domainName",
                  .value = blob(fixture, "\"orders\""));
    value->filters = &filter;
    request->config_name = (char *)name;
    request->n_config_values = 1;
    request->config_values = &value;
    return fixture_call(fixture, request, NULL);
}

static struct error *
signal_with(struct fixture *fixture, const char *name)
{
    API(SignalWorkflowExecutionRequest) *request = API_NEW(
        fixture->arena, signal_workflow_execution_request, .domain = "orders",
        .workflow_execution = fixture_execution(fixture, "wf"), .signal_name = (char *)name);
    return fixture_call(fixture, request, NULL);
}

SERVER_TEST(settings, a_call_changes_them_shows_them_and_takes_them_back, "H-022")
{
    run_start(fixture, "wf");
    EXPECT_OK(signal_with(fixture, "a long name"));
    EXPECT_OK(update(fixture, KEY, "5"));
    EXPECT_KIND(signal_with(fixture, "a long name"), ERR_BAD_REQUEST);
    EXPECT_KIND(update(fixture, KEY, "\"x\""), ERR_BAD_REQUEST);
    EXPECT_KIND(update(fixture, "no.such", "5"), ERR_BAD_REQUEST);

    ADMIN(ListDynamicConfigResponse) *listed = ADMIN_OK(fixture, list_dynamic_config);
    EXPECT_EQ(listed->n_entries, 1);
    EXPECT_TEXT(listed->entries[0]->name, KEY);
    EXPECT_TEXT(listed->entries[0]->values[0]->filters[0]->name, "domainName");

    ADMIN(GetDynamicConfigRequest) *get =
        ADMIN_NEW(fixture->arena, get_dynamic_config_request, .config_name = KEY);
    ADMIN(GetDynamicConfigResponse) *got = fixture_ok(fixture, get);
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("1000")));
    get->n_filters = 1;
    get->filters = listed->entries[0]->values[0]->filters;
    got = fixture_ok(fixture, get);
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("5")));

    EXPECT_OK(ADMIN_CALL(fixture, NULL, restore_dynamic_config, .config_name = KEY));
    EXPECT_OK(signal_with(fixture, "a long name"));
}

/* What the operational calls set, the plain ones show. */
static void
operational(struct fixture *fixture)
{
    ADMIN(DynamicConfigValue) *value =
        ADMIN_NEW(fixture->arena, dynamic_config_value, .value = blob(fixture, "7"));
    EXPECT_OK(ADMIN_CALL(fixture, NULL, update_operational_dynamic_config, .config_name = KEY,
                         .n_config_values = 1, .config_values = &value));
    ADMIN(GetDynamicConfigRequest) *get =
        ADMIN_NEW(fixture->arena, get_dynamic_config_request, .config_name = KEY);
    ADMIN(GetDynamicConfigResponse) *got = fixture_ok(fixture, get);
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("7")));
    ADMIN(GetOperationalDynamicConfigResponse) *shown = fixture_ok(fixture, get);
    EXPECT(slice_equal(presence_read_bytes(shown->value->data), slice_text("7")));
    ADMIN(ListOperationalDynamicConfigResponse) *listed =
        ADMIN_OK(fixture, list_operational_dynamic_config);
    EXPECT_EQ(listed->n_entries, 1);
    EXPECT_OK(ADMIN_CALL(fixture, NULL, restore_operational_dynamic_config, .config_name = KEY));
    got = fixture_ok(fixture, get);
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("1000")));
}

TEST(settings, the_operational_calls_are_about_the_same_store, "H-022")
{
    fixture_run(operational);
}
