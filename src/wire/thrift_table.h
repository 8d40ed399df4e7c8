/* thrift_table.h - what thrift_fields.h becomes: structs, fields and events that code can walk.
 *
 * Inside wire/ only. All of it is constant. Offsets are those of the structs that the protobuf
 * compiler makes, so a field is read and written without a search. */
#ifndef CADENZA_WIRE_THRIFT_TABLE_H
#define CADENZA_WIRE_THRIFT_TABLE_H

#include <protobuf-c/protobuf-c.h>

#include "uber/cadence/api/v1/history.pb-c.h"
#include "wire/names.h"

#define THRIFT_PREAMBLE    0x59 /* the first byte of a blob: this layout, no envelope */
#define THRIFT_HISTORY_ID  10   /* of the list of events in History, its only field */
#define THRIFT_EVENT_COUNT 42

/* The types of the binary protocol. */
enum thrift_type {
    THRIFT_STOP = 0, /* ends a struct */
    THRIFT_TYPE_BOOL = 2,
    THRIFT_TYPE_I8 = 3,
    THRIFT_TYPE_DOUBLE = 4,
    THRIFT_TYPE_I16 = 6,
    THRIFT_TYPE_I32 = 8,
    THRIFT_TYPE_I64 = 10,
    THRIFT_TYPE_BINARY = 11, /* strings too */
    THRIFT_TYPE_STRUCT = 12,
    THRIFT_TYPE_MAP = 13,
    THRIFT_TYPE_SET = 14,
    THRIFT_TYPE_LIST = 15,
};

/* How a value travels: X(kind, its type in thrift), and what it is in the message. */
#define THRIFT_KINDS(X)                                                                            \
    X(TEXT, BINARY)      /* string */                                                              \
    X(BYTES, BINARY)     /* bytes */                                                               \
    X(PAYLOAD, BINARY)   /* Payload; an empty one is not an absent one */                          \
    X(BOOL, BOOL)        /* bool */                                                                \
    X(I32, I32)          /* int32 */                                                               \
    X(LONG_I32, I64)     /* int32 */                                                               \
    X(I64, I64)          /* int64 */                                                               \
    X(DOUBLE, DOUBLE)    /* double */                                                              \
    X(ENUM, I32)         /* enum; its numbers are one more than in thrift, 0 is absent */          \
    X(SECONDS, I32)      /* Duration */                                                            \
    X(LONG_SECONDS, I64) /* Duration */                                                            \
    X(TIME, I64)         /* Timestamp; nanoseconds since 1970 in thrift */                         \
    X(EVENT_TYPE, I32)   /* the case of the oneof: which arm is set */                             \
    X(STRUCT, STRUCT)    /* message */                                                             \
    X(STRUCT_LIST, LIST) /* repeated message */                                                    \
    X(TEXT_LIST, LIST)   /* repeated string */                                                     \
    X(TEXT_MAP, MAP)     /* map<string, string> */                                                 \
    X(PAYLOAD_MAP, MAP)  /* map<string, Payload>; the value is binary in thrift */

enum thrift_kind {
#define X(kind, type) THRIFT_##kind,
    THRIFT_KINDS(X)
#undef X
        THRIFT_KIND_COUNT
};

struct thrift_struct;

struct thrift_field {
    int16_t id; /* 0: behind the last field */
    enum thrift_kind kind;
    size_t offset;       /* of the value in its message */
    size_t count_offset; /* lists and maps: of the number of elements */
    /* A message that thrift does not have, in which the value is: its type (NULL: there is none)
     * and where the struct's message points to it. */
    const ProtobufCMessageDescriptor *group;
    size_t group_offset;
    const struct thrift_struct *(*structure)(void); /* STRUCT, STRUCT_LIST: of the elements */
    const ProtobufCMessageDescriptor *entry;        /* maps: the message of a pair */
};

struct thrift_struct {
    const ProtobufCMessageDescriptor *type; /* the message that it is */
    struct thrift_field fields[];           /* by id; ends with id 0 */
};

/* A kind of event. Its attributes are the arm of the oneof in protobuf, and in thrift one of many
 * fields, told apart by eventType. */
struct thrift_event {
    int16_t id;                            /* of the attributes in HistoryEvent */
    int32_t type;                          /* eventType */
    API(HistoryEvent__AttributesCase) arm; /* the same in protobuf */
    const struct thrift_struct *(*attributes)(void);
};

/* The fields of HistoryEvent but for the attributes. */
const struct thrift_struct *thrift_history_event(void);
/* The kinds of events, THRIFT_EVENT_COUNT of them, by id. */
const struct thrift_event *thrift_events(void);
/* One of them, or NULL. */
const struct thrift_event *thrift_event_of_id(int16_t id);
const struct thrift_event *thrift_event_of_type(int32_t type);
const struct thrift_event *thrift_event_of_arm(API(HistoryEvent__AttributesCase) arm);

/* The field with this id, or NULL. */
const struct thrift_field *thrift_find_field(const struct thrift_struct *structure, int16_t id);
/* The type that a kind has in thrift. */
enum thrift_type thrift_kind_type(enum thrift_kind kind);

#endif
