/* event_json_names.h - what fields, events and values of enums are called in JSON. Only for
 * event_json*.c. */
#ifndef CADENZA_WIRE_EVENT_JSON_NAMES_H
#define CADENZA_WIRE_EVENT_JSON_NAMES_H

#include "wire/thrift_table.h"

#define NAME_ROOM 96

/* The member that a row of the table is; in `name`, which is returned. */
const char *event_json_field_name(const struct thrift_struct *structure,
                                  const struct thrift_field *field, char name[NAME_ROOM]);
/* The member with the attributes of such an event. */
const char *event_json_attributes_name(const struct thrift_event *event, char name[NAME_ROOM]);
/* Its eventType. */
const char *event_json_type_name(const struct thrift_event *event, char name[NAME_ROOM]);
/* The field of the message that a row is. */
const ProtobufCFieldDescriptor *event_json_descriptor(const struct thrift_struct *structure,
                                                      const struct thrift_field *field);
/* The value of an enum as Cadence writes it; "": by its number in thrift. */
const char *event_json_value_name(const ProtobufCEnumDescriptor *type, int32_t value,
                                  char name[NAME_ROOM]);

#endif
