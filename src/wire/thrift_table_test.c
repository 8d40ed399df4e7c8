/* thrift_table_test.c - the table against the descriptors of protobuf.
 *
 * That a row names a field that exists is the compiler's work. Here: that its kind goes with the
 * field's type, that ids rise, that no field was forgotten, and that enums are numbered alike. */
#include "wire/thrift_table.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/test.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define STRUCTS_MAX 64

/* Every struct of the table, each once. */
struct structs {
    const struct thrift_struct *items[STRUCTS_MAX];
    size_t count;
};

static void
structs_add(struct structs *structs, const struct thrift_struct *structure)
{
    for (size_t i = 0; i < structs->count; i++)
        if (structs->items[i] == structure)
            return;
    EXPECT(structs->count < STRUCTS_MAX);
    structs->items[structs->count++] = structure;
    for (const struct thrift_field *row = structure->fields; row->id != 0; row++)
        if (row->structure != NULL)
            structs_add(structs, row->structure());
}

static struct structs
structs_all(void)
{
    struct structs structs = {0};
    structs_add(&structs, thrift_history_event());
    for (size_t i = 0; i < THRIFT_EVENT_COUNT; i++)
        structs_add(&structs, thrift_events()[i].attributes());
    return structs;
}

static const ProtobufCFieldDescriptor *
field_at(const ProtobufCMessageDescriptor *type, size_t offset)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].offset == offset)
            return &type->fields[i];
    return NULL;
}

/* What a field of this kind must be in protobuf. */
static bool
kind_fits(const struct thrift_field *row, const ProtobufCFieldDescriptor *field)
{
    const void *type = field->descriptor;
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (is_repeated != (row->count_offset != 0))
        return false;
    switch (row->kind) {
    case THRIFT_TEXT:
    case THRIFT_TEXT_LIST:
        return field->type == PROTOBUF_C_TYPE_STRING;
    case THRIFT_BYTES:
        return field->type == PROTOBUF_C_TYPE_BYTES;
    case THRIFT_BOOL:
        return field->type == PROTOBUF_C_TYPE_BOOL;
    case THRIFT_I32:
    case THRIFT_LONG_I32:
        return field->type == PROTOBUF_C_TYPE_INT32;
    case THRIFT_I64:
        return field->type == PROTOBUF_C_TYPE_INT64;
    case THRIFT_DOUBLE:
        return field->type == PROTOBUF_C_TYPE_DOUBLE;
    case THRIFT_ENUM:
        return field->type == PROTOBUF_C_TYPE_ENUM;
    case THRIFT_PAYLOAD:
        return type == API_TYPE(payload);
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return type == GOOGLE_TYPE(duration);
    case THRIFT_TIME:
        return type == GOOGLE_TYPE(timestamp);
    case THRIFT_STRUCT:
    case THRIFT_STRUCT_LIST:
        return type == row->structure()->type;
    case THRIFT_TEXT_MAP:
        return type == row->entry && row->entry->fields[1].type == PROTOBUF_C_TYPE_STRING;
    case THRIFT_PAYLOAD_MAP:
        return type == row->entry && row->entry->fields[1].descriptor == API_TYPE(payload);
    default:
        return false;
    }
}

TEST(thrift_table, the_kind_of_every_row_goes_with_the_type_of_its_field)
{
    struct structs structs = structs_all();
    for (size_t i = 0; i < structs.count; i++) {
        const struct thrift_struct *structure = structs.items[i];
        for (const struct thrift_field *row = structure->fields; row->id != 0; row++) {
            if (row->kind == THRIFT_EVENT_TYPE)
                continue; /* the case of a oneof is not a field */
            const ProtobufCMessageDescriptor *type = row->group ? row->group : structure->type;
            const ProtobufCFieldDescriptor *field = field_at(type, row->offset);
            if (field == NULL || !kind_fits(row, field))
                TEST_FAIL("%s, id %d: kind %d", structure->type->short_name, row->id, row->kind);
            if (row->group != NULL)
                EXPECT(field_at(structure->type, row->group_offset)->descriptor == row->group);
            if (row->count_offset != 0)
                EXPECT_EQ(field->quantifier_offset, row->count_offset);
        }
    }
}

/* The numbers are those of the description of thrift's History: 56 structs, 333 fields, among them
 * the list of events in History and the 42 kinds of attributes in HistoryEvent. */
TEST(thrift_table, it_has_as_many_structs_and_fields_as_thrift_has)
{
    struct structs structs = structs_all();
    size_t count = 1 + THRIFT_EVENT_COUNT;
    for (size_t i = 0; i < structs.count; i++)
        for (const struct thrift_field *row = structs.items[i]->fields; row->id != 0; row++)
            count++;
    EXPECT_EQ(structs.count, 56);
    EXPECT_EQ(count, 333);
}

TEST(thrift_table, ids_rise)
{
    struct structs structs = structs_all();
    for (size_t i = 0; i < structs.count; i++)
        for (const struct thrift_field *row = structs.items[i]->fields; row->id != 0; row++) {
            EXPECT(row == structs.items[i]->fields || row[-1].id < row->id);
            EXPECT(thrift_find_field(structs.items[i], row->id) == row);
            EXPECT(thrift_find_field(structs.items[i], row->id + 1) != row);
        }
    EXPECT(thrift_find_field(thrift_history_event(), 0) == NULL);
    EXPECT(thrift_find_field(thrift_history_event(), -1) == NULL);
    EXPECT(thrift_find_field(thrift_history_event(), INT16_MAX) == NULL);
}

TEST(thrift_table, every_kind_of_event_is_found_by_id_type_and_arm)
{
    bool is_type_seen[THRIFT_EVENT_COUNT] = {false};
    for (size_t i = 0; i < THRIFT_EVENT_COUNT; i++) {
        const struct thrift_event *event = &thrift_events()[i];
        EXPECT_EQ(event->id, 40 + 10 * i);
        EXPECT(thrift_event_of_id(event->id) == event);
        EXPECT(thrift_event_of_type(event->type) == event);
        EXPECT(thrift_event_of_arm(event->arm) == event);
        const ProtobufCFieldDescriptor *field =
            message_find_field(API_TYPE(history_event), event->arm);
        EXPECT(field->descriptor == event->attributes()->type);
        EXPECT(!is_type_seen[event->type]);
        is_type_seen[event->type] = true;
    }
    EXPECT(thrift_event_of_id(36) == NULL && thrift_event_of_id(41) == NULL);
    EXPECT(thrift_event_of_id(460) == NULL && thrift_event_of_id(-40) == NULL);
    EXPECT(thrift_event_of_type(-1) == NULL && thrift_event_of_type(42) == NULL);
    EXPECT(thrift_event_of_arm(0) == NULL && thrift_event_of_arm(47) == NULL);
}

/* "Failure.options ParentExecutionInfo.domain_id ", of this message and those in it. */
static void
list_unknown(const ProtobufCMessageDescriptor *type, char *list, size_t size)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        char name[128];
        snprintf(name, sizeof name, "%s.%s ", type->short_name, field->name);
        if (!thrift_field_is_known(type, field->id) && strstr(list, name) == NULL)
            snprintf(list + strlen(list), size - strlen(list), "%s", name);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            list_unknown(field->descriptor, list, size);
    }
}

TEST(thrift_table, the_fields_of_events_that_thrift_does_not_have_are_these)
{
    char list[1024] = "";
    list_unknown(API_TYPE(history_event), list, sizeof list);
    EXPECT_TEXT(list, "ParentExecutionInfo.domain_id Duration.nanos ");
    EXPECT(!thrift_field_is_known(API_TYPE(history_event), 47));
    EXPECT(!thrift_field_is_known(API_TYPE(data_blob), 1)); /* not part of an event */
    EXPECT(thrift_field_is_known(API_TYPE(failure), 3));    /* of activities */
}

/* Thrift's numbers are one less than protobuf's, which has one more for "unset". */
TEST(thrift_table, enums_have_as_many_numbers_as_in_thrift_and_one_more)
{
    static const struct {
        const ProtobufCEnumDescriptor *type;
        unsigned count; /* in thrift */
    } enums[] = {
        {API_TYPE(task_list_kind), 3},
        {API_TYPE(continue_as_new_initiator), 3},
        {API_TYPE(cron_overlap_policy), 2},
        {API_TYPE(timeout_type), 4},
        {API_TYPE(decision_task_timed_out_cause), 2},
        {API_TYPE(decision_task_failed_cause), 23},
        {API_TYPE(failure_category), 3},
        {API_TYPE(cancel_external_workflow_execution_failed_cause), 2},
        {API_TYPE(parent_close_policy), 3},
        {API_TYPE(workflow_id_reuse_policy), 4},
        {API_TYPE(child_workflow_execution_failed_cause), 1},
        {API_TYPE(signal_external_workflow_execution_failed_cause), 2},
    };
    for (size_t i = 0; i < array_length(enums); i++) {
        EXPECT_EQ(enums[i].type->n_values, enums[i].count + 1);
        EXPECT(presence_is_enum(enums[i].type, 0));
        EXPECT(presence_is_enum(enums[i].type, (int)enums[i].count));
        EXPECT(strstr(enums[i].type->values[0].name, "_INVALID") != NULL);
    }
}
