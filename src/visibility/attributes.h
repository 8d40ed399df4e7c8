/* attributes.h - what a run can be searched by: the system's own columns and the users' attributes.
 *
 * System attributes (StartTime, WorkflowID, CloseStatus, ...) are columns of every run; custom ones
 * are what a start or an upsert brought, each a JSON value of the type that its key is registered
 * with. A set is made by one, then shared and never changed again. Pure. */
#ifndef CADENZA_VISIBILITY_ATTRIBUTES_H
#define CADENZA_VISIBILITY_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "wire/names.h"

/* The numbers are those of settings; IndexedValueType of the wire is one more: convert. */
enum attribute_type {
    ATTRIBUTE_STRING,  /* text, matched by words */
    ATTRIBUTE_KEYWORD, /* text, matched as a whole; may be a list */
    ATTRIBUTE_INT,
    ATTRIBUTE_DOUBLE,
    ATTRIBUTE_BOOL,
    ATTRIBUTE_DATETIME, /* ns since 1970, compared by whole ms; also columns that the wire calls INT
                         */
    ATTRIBUTE_TYPE_COUNT,
};

/* System columns; COLUMN_NONE: a custom attribute. */
enum attribute_column {
    COLUMN_NONE,
    COLUMN_DOMAIN_ID,
    COLUMN_WORKFLOW_ID,
    COLUMN_RUN_ID,
    COLUMN_WORKFLOW_TYPE,
    COLUMN_START_TIME,
    COLUMN_EXECUTION_TIME, /* of runs whose first decision is delayed only (B-019) */
    COLUMN_CLOSE_TIME,
    COLUMN_CLOSE_STATUS,
    COLUMN_HISTORY_LENGTH,
    COLUMN_TASK_LIST,
    COLUMN_IS_CRON,
    COLUMN_NUM_CLUSTERS,
    COLUMN_UPDATE_TIME,
    COLUMN_CRON_SCHEDULE,
    COLUMN_EXECUTION_STATUS,
    COLUMN_SCHEDULED_EXECUTION_TIME,
    COLUMN_CLUSTER_ATTRIBUTE_SCOPE,
    COLUMN_CLUSTER_ATTRIBUTE_NAME,
    COLUMN_COUNT,
};

struct search_attribute {
    const char *name;
    enum attribute_type type;
    enum attribute_column column;
};

struct attribute_value {
    enum attribute_type type;
    struct slice text; /* string, keyword */
    int64_t integer;   /* int, bool (0, 1), datetime (ns) */
    double number;     /* double */
};

struct attribute_set;

/* The default keys and those of the map (name → IndexedValueType by name or number: the setting
 * frontend.validSearchAttributes), and added ones. Lives in the arena. */
struct attribute_set *attribute_set_new(struct arena *arena);
/* Errors: ERR_BAD_REQUEST (a system key, another type; B-032). The same again changes nothing. */
must_use struct error *attribute_set_add(struct attribute_set *set, const char *name,
                                         enum attribute_type type, struct arena *arena);
/* By exact name; a custom one also as Attr.name. NULL: there is none. */
const struct search_attribute *attribute_find(const struct attribute_set *set, const char *name);
size_t attribute_count(const struct attribute_set *set);
/* In the order of their names. */
const struct search_attribute *attribute_at(const struct attribute_set *set, size_t index);
/* Its IndexedValueType on the wire: time columns are INT there, as in Cadence. */
int attribute_wire_type(const struct search_attribute *attribute);
/* "KEYWORD", in any case, or a number 0 .. 5. False: no type. */
must_use bool attribute_type_parse(struct slice text, enum attribute_type *type);

/* The values of a custom attribute out of its JSON bytes: one, or each of a list; null is none.
 * Times outside 64 bits of ns are cut to the nearest one inside. Errors:
 * ERR_BAD_REQUEST in Cadence's words when it is not a value of the type. */
must_use struct error *attribute_read(const struct search_attribute *attribute, struct slice json,
                                      struct arena *arena, struct attribute_value **values,
                                      size_t *count);

/* Down to the whole millisecond. */
int64_t attribute_floor_time(int64_t nanoseconds);

#endif
