/* settings_test.c - dynamic settings by call, through the door (H-022). */
#include "api/test/fixture.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/names.h"

#define ADMIN_API "/uber.cadence.admin.v1.AdminAPI/"
#define KEY       "limit.signalNameLength"

static API(DataBlob) *
blob(struct fixture *fixture, const char *json)
{
    API(DataBlob) *made = message_new(fixture->arena, API_TYPE(data_blob));
    made->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_JSON);
    made->data = (ProtobufCBinaryData){.len = strlen(json), .data = (uint8_t *)json};
    return made;
}

static struct error *
update(struct fixture *fixture, const char *name, const char *json)
{
    ADMIN(UpdateDynamicConfigRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(update_dynamic_config_request));
    ADMIN(UpdateDynamicConfigResponse) *response;
    ADMIN(DynamicConfigValue) *value =
        message_new(fixture->arena, ADMIN_TYPE(dynamic_config_value));
    ADMIN(DynamicConfigFilter) *filter =
        message_new(fixture->arena, ADMIN_TYPE(dynamic_config_filter));
    filter->name = "domainName";
    filter->value = blob(fixture, "\"orders\"");
    value->value = blob(fixture, json);
    value->n_filters = 1;
    value->filters = &filter;
    request->config_name = (char *)name;
    request->n_config_values = 1;
    request->config_values = &value;
    return fixture_call(fixture, ADMIN_API "UpdateDynamicConfig", &request->base,
                        ADMIN_TYPE(update_dynamic_config_response), &response);
}

static struct error *
signal_with(struct fixture *fixture, const char *name)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, "wf");
    request->signal_name = (char *)name;
    return fixture_call(fixture, WORKFLOW_API "SignalWorkflowExecution", &request->base,
                        API_TYPE(signal_workflow_execution_response), &response);
}

static void
changed_by_call(struct fixture *fixture)
{
    run_start(fixture, "wf");
    EXPECT_OK(signal_with(fixture, "a long name"));
    EXPECT_OK(update(fixture, KEY, "5"));
    EXPECT_KIND(signal_with(fixture, "a long name"), ERR_BAD_REQUEST);
    EXPECT_KIND(update(fixture, KEY, "\"x\""), ERR_BAD_REQUEST);
    EXPECT_KIND(update(fixture, "no.such", "5"), ERR_BAD_REQUEST);

    ADMIN(ListDynamicConfigRequest) *list =
        message_new(fixture->arena, ADMIN_TYPE(list_dynamic_config_request));
    ADMIN(ListDynamicConfigResponse) *listed;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "ListDynamicConfig", &list->base,
                           ADMIN_TYPE(list_dynamic_config_response), &listed));
    EXPECT_EQ(listed->n_entries, 1);
    EXPECT_TEXT(listed->entries[0]->name, KEY);
    EXPECT_TEXT(listed->entries[0]->values[0]->filters[0]->name, "domainName");

    ADMIN(GetDynamicConfigRequest) *get =
        message_new(fixture->arena, ADMIN_TYPE(get_dynamic_config_request));
    ADMIN(GetDynamicConfigResponse) *got;
    get->config_name = KEY;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDynamicConfig", &get->base,
                           ADMIN_TYPE(get_dynamic_config_response), &got));
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("1000")));
    get->n_filters = 1;
    get->filters = listed->entries[0]->values[0]->filters;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDynamicConfig", &get->base,
                           ADMIN_TYPE(get_dynamic_config_response), &got));
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("5")));

    ADMIN(RestoreDynamicConfigRequest) *restore =
        message_new(fixture->arena, ADMIN_TYPE(restore_dynamic_config_request));
    ADMIN(RestoreDynamicConfigResponse) *restored;
    restore->config_name = KEY;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "RestoreDynamicConfig", &restore->base,
                           ADMIN_TYPE(restore_dynamic_config_response), &restored));
    EXPECT_OK(signal_with(fixture, "a long name"));
}

/* What the operational calls set, the plain ones show. */
static void
operational(struct fixture *fixture)
{
    ADMIN(DynamicConfigValue) *value =
        message_new(fixture->arena, ADMIN_TYPE(dynamic_config_value));
    ADMIN(UpdateOperationalDynamicConfigRequest) *request =
        message_new(fixture->arena, ADMIN_TYPE(update_operational_dynamic_config_request));
    ADMIN(UpdateOperationalDynamicConfigResponse) *updated;
    value->value = blob(fixture, "7");
    request->config_name = KEY;
    request->n_config_values = 1;
    request->config_values = &value;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "UpdateOperationalDynamicConfig", &request->base,
                           ADMIN_TYPE(update_operational_dynamic_config_response), &updated));
    ADMIN(GetDynamicConfigRequest) *get =
        message_new(fixture->arena, ADMIN_TYPE(get_dynamic_config_request));
    ADMIN(GetDynamicConfigResponse) *got;
    get->config_name = KEY;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDynamicConfig", &get->base,
                           ADMIN_TYPE(get_dynamic_config_response), &got));
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("7")));
    ADMIN(GetOperationalDynamicConfigResponse) *shown;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetOperationalDynamicConfig", &get->base,
                           ADMIN_TYPE(get_operational_dynamic_config_response), &shown));
    EXPECT(slice_equal(presence_read_bytes(shown->value->data), slice_text("7")));
    ADMIN(ListOperationalDynamicConfigRequest) *list =
        message_new(fixture->arena, ADMIN_TYPE(list_operational_dynamic_config_request));
    ADMIN(ListOperationalDynamicConfigResponse) *listed;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "ListOperationalDynamicConfig", &list->base,
                           ADMIN_TYPE(list_operational_dynamic_config_response), &listed));
    EXPECT_EQ(listed->n_entries, 1);
    ADMIN(RestoreOperationalDynamicConfigRequest) *restore =
        message_new(fixture->arena, ADMIN_TYPE(restore_operational_dynamic_config_request));
    ADMIN(RestoreOperationalDynamicConfigResponse) *restored;
    restore->config_name = KEY;
    EXPECT_OK(fixture_call(fixture, ADMIN_API "RestoreOperationalDynamicConfig", &restore->base,
                           ADMIN_TYPE(restore_operational_dynamic_config_response), &restored));
    EXPECT_OK(fixture_call(fixture, ADMIN_API "GetDynamicConfig", &get->base,
                           ADMIN_TYPE(get_dynamic_config_response), &got));
    EXPECT(slice_equal(presence_read_bytes(got->value->data), slice_text("1000")));
}

TEST(settings, the_operational_calls_are_about_the_same_store, "H-022")
{
    fixture_run(operational);
}

TEST(settings, a_call_changes_them_shows_them_and_takes_them_back, "H-022")
{
    fixture_run(changed_by_call);
}
