/* attributes.c - see attributes.h. A set is an array of pointers in the order of the names. */
#include "visibility/attributes.h"

#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "base/vector.h"
#include "uber/cadence/api/v1/visibility.pb-c.h"

struct attribute_set {
    vector_of(const struct search_attribute *) all;
};

/* The system's columns, then what every cluster knows from the start (B-031). */
static const struct search_attribute default_attributes[] = {
    {"DomainID", ATTRIBUTE_KEYWORD, COLUMN_DOMAIN_ID},
    {"WorkflowID", ATTRIBUTE_KEYWORD, COLUMN_WORKFLOW_ID},
    {"RunID", ATTRIBUTE_KEYWORD, COLUMN_RUN_ID},
    {"WorkflowType", ATTRIBUTE_KEYWORD, COLUMN_WORKFLOW_TYPE},
    {"StartTime", ATTRIBUTE_DATETIME, COLUMN_START_TIME},
    {"ExecutionTime", ATTRIBUTE_DATETIME, COLUMN_EXECUTION_TIME},
    {"CloseTime", ATTRIBUTE_DATETIME, COLUMN_CLOSE_TIME},
    {"CloseStatus", ATTRIBUTE_INT, COLUMN_CLOSE_STATUS},
    {"HistoryLength", ATTRIBUTE_INT, COLUMN_HISTORY_LENGTH},
    {"TaskList", ATTRIBUTE_KEYWORD, COLUMN_TASK_LIST},
    {"IsCron", ATTRIBUTE_BOOL, COLUMN_IS_CRON},
    {"NumClusters", ATTRIBUTE_INT, COLUMN_NUM_CLUSTERS},
    {"UpdateTime", ATTRIBUTE_DATETIME, COLUMN_UPDATE_TIME},
    {"CronSchedule", ATTRIBUTE_KEYWORD, COLUMN_CRON_SCHEDULE},
    {"ExecutionStatus", ATTRIBUTE_INT, COLUMN_EXECUTION_STATUS},
    {"ScheduledExecutionTime", ATTRIBUTE_DATETIME, COLUMN_SCHEDULED_EXECUTION_TIME},
    {"ClusterAttributeScope", ATTRIBUTE_KEYWORD, COLUMN_CLUSTER_ATTRIBUTE_SCOPE},
    {"ClusterAttributeName", ATTRIBUTE_KEYWORD, COLUMN_CLUSTER_ATTRIBUTE_NAME},
    {"CustomStringField", ATTRIBUTE_STRING, COLUMN_NONE},
    {"CustomKeywordField", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CustomIntField", ATTRIBUTE_INT, COLUMN_NONE},
    {"CustomBoolField", ATTRIBUTE_BOOL, COLUMN_NONE},
    {"CustomDoubleField", ATTRIBUTE_DOUBLE, COLUMN_NONE},
    {"CustomDatetimeField", ATTRIBUTE_DATETIME, COLUMN_NONE},
    {"CadenceChangeVersion", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"BinaryChecksums", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CustomDomain", ATTRIBUTE_STRING, COLUMN_NONE},
    {"Operator", ATTRIBUTE_STRING, COLUMN_NONE},
    {"CadenceScheduleID", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CadenceScheduleTime", ATTRIBUTE_DATETIME, COLUMN_NONE},
    {"CadenceScheduleIsBackfill", ATTRIBUTE_BOOL, COLUMN_NONE},
    {"CadenceScheduleBackfillID", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CadenceScheduleState", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CadenceScheduleCron", ATTRIBUTE_KEYWORD, COLUMN_NONE},
    {"CadenceScheduleWorkflowType", ATTRIBUTE_KEYWORD, COLUMN_NONE},
};

/* --- a set ---------------------------------------------------------------------------------- */

/* Where the name stands, or would stand. */
static size_t
index_of(const struct attribute_set *set, const char *name)
{
    size_t low = 0, high = set->all.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(set->all.items[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
set_insert(struct attribute_set *set, const struct search_attribute *attribute, struct arena *arena)
{
    size_t place = index_of(set, attribute->name);
    vector_push_in(&set->all, arena, attribute);
    memmove(set->all.items + place + 1, set->all.items + place,
            (set->all.count - 1 - place) * sizeof set->all.items[0]);
    set->all.items[place] = attribute;
    check(place == 0 || strcmp(set->all.items[place - 1]->name, attribute->name) < 0);
}

struct attribute_set *
attribute_set_new(struct arena *arena)
{
    struct attribute_set *set = arena_make(arena, struct attribute_set);
    for (size_t i = 0; i < array_length(default_attributes); i++)
        set_insert(set, &default_attributes[i], arena);
    return set;
}

static const struct search_attribute *
find_exactly(const struct attribute_set *set, const char *name)
{
    size_t place = index_of(set, name);
    if (place == set->all.count || strcmp(set->all.items[place]->name, name) != 0)
        return NULL;
    return set->all.items[place];
}

struct error *
attribute_set_add(struct attribute_set *set, const char *name, enum attribute_type type,
                  struct arena *arena)
{
    check(type < ATTRIBUTE_TYPE_COUNT);
    const struct search_attribute *known = find_exactly(set, name);
    if (known != NULL && known->column != COLUMN_NONE)
        return error_new(arena, ERR_BAD_REQUEST, "Key [%s] is reserved by system", name);
    if (known != NULL && known->type != type)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Key [%s] is already whitelisted as a different type", name);
    if (known != NULL)
        return NULL;
    struct search_attribute *attribute = arena_make(arena, struct search_attribute);
    *attribute = (struct search_attribute){arena_text(arena, name), type, COLUMN_NONE};
    set_insert(set, attribute, arena);
    return NULL;
}

const struct search_attribute *
attribute_find(const struct attribute_set *set, const char *name)
{
    const struct search_attribute *attribute = find_exactly(set, name);
    if (attribute != NULL || strncmp(name, "Attr.", 5) != 0)
        return attribute;
    attribute = find_exactly(set, name + 5);
    return attribute != NULL && attribute->column == COLUMN_NONE ? attribute : NULL;
}

size_t
attribute_count(const struct attribute_set *set)
{
    return set->all.count;
}

const struct search_attribute *
attribute_at(const struct attribute_set *set, size_t index)
{
    return vector_at(&set->all, index);
}

/* --- types ---------------------------------------------------------------------------------- */

int
attribute_wire_type(const struct search_attribute *attribute)
{
    enum attribute_type type = attribute->type;
    if (type == ATTRIBUTE_DATETIME && attribute->column != COLUMN_NONE)
        type = ATTRIBUTE_INT;
    return (int)type + API_VALUE(INDEXED_VALUE_TYPE__INDEXED_VALUE_TYPE_STRING);
}

bool
attribute_type_parse(struct slice text, enum attribute_type *type)
{
    static const char *const names[ATTRIBUTE_TYPE_COUNT] = {
        [ATTRIBUTE_STRING] = "STRING", [ATTRIBUTE_KEYWORD] = "KEYWORD",
        [ATTRIBUTE_INT] = "INT",       [ATTRIBUTE_DOUBLE] = "DOUBLE",
        [ATTRIBUTE_BOOL] = "BOOL",     [ATTRIBUTE_DATETIME] = "DATETIME",
    };
    int64_t number;
    if (text_parse_int64(text, 0, ATTRIBUTE_TYPE_COUNT - 1, &number)) {
        *type = (enum attribute_type)number;
        return true;
    }
    for (size_t i = 0; i < ATTRIBUTE_TYPE_COUNT; i++) {
        if (text.length != strlen(names[i]) ||
            strncasecmp((const char *)text.data, names[i], text.length) != 0)
            continue;
        *type = (enum attribute_type)i;
        return true;
    }
    return false;
}
