/* filters.c - see filters.h. */
#include "visibility/filters.h"

#include "base/check.h"
#include "visibility/language.h"
#include "wire/presence.h"

#define FILTERS_MAX 7

#define ONE_OF_OPEN(name)   API_VALUE(LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_##name)
#define ONE_OF_CLOSED(name) API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_##name)

static void
set_times(struct query_filters *filters, const API(StartTimeFilter) *time)
{
    check(time != NULL && time->earliest_time != NULL && time->latest_time != NULL);
    filters->earliest = presence_time(time->earliest_time);
    filters->latest = presence_time(time->latest_time);
}

static void
set_execution(struct query_filters *filters, const API(WorkflowExecutionFilter) *execution)
{
    filters->workflow_id = execution->workflow_id;
    filters->run_id = execution->run_id;
}

struct query_filters
query_filters_of_open(const API(ListOpenWorkflowExecutionsRequest) *request)
{
    struct query_filters filters = {.is_closed = false};
    set_times(&filters, request->start_time_filter);
    if (request->filters_case == ONE_OF_OPEN(EXECUTION_FILTER))
        set_execution(&filters, request->execution_filter);
    if (request->filters_case == ONE_OF_OPEN(TYPE_FILTER))
        filters.workflow_type = request->type_filter->name;
    return filters;
}

struct query_filters
query_filters_of_closed(const API(ListClosedWorkflowExecutionsRequest) *request)
{
    struct query_filters filters = {.is_closed = true};
    set_times(&filters, request->start_time_filter);
    if (request->filters_case == ONE_OF_CLOSED(EXECUTION_FILTER))
        set_execution(&filters, request->execution_filter);
    if (request->filters_case == ONE_OF_CLOSED(TYPE_FILTER))
        filters.workflow_type = request->type_filter->name;
    filters.has_status = request->filters_case == ONE_OF_CLOSED(STATUS_FILTER);
    if (filters.has_status)
        filters.status = (int)request->status_filter->status;
    return filters;
}

/* --- as a tree ------------------------------------------------------------------------------ */

struct filter_tree {
    struct query_node *nodes[FILTERS_MAX];
    size_t count;
    const struct attribute_set *attributes;
    struct arena *arena;
};

static void
add(struct filter_tree *filter_tree, const char *name, enum query_operator comparison,
    struct attribute_value value)
{
    const struct search_attribute *attribute = attribute_find(filter_tree->attributes, name);
    check(attribute != NULL && filter_tree->count < FILTERS_MAX);
    value.type = attribute->type;
    filter_tree->nodes[filter_tree->count++] =
        query_compare(filter_tree->arena, attribute, comparison, value);
}

static void
add_text(struct filter_tree *filter_tree, const char *name, const char *text)
{
    add(filter_tree, name, QUERY_EQUAL, (struct attribute_value){.text = slice_text(text)});
}

static void
add_integer(struct filter_tree *filter_tree, const char *name, enum query_operator comparison,
            int64_t integer)
{
    add(filter_tree, name, comparison, (struct attribute_value){.integer = integer});
}

void
query_of_filters(const struct query_filters *filters, const struct attribute_set *attributes,
                 struct arena *arena, struct query *query)
{
    struct filter_tree filter_tree = {.attributes = attributes, .arena = arena};
    add_integer(&filter_tree, "CloseTime", filters->is_closed ? QUERY_NOT_MISSING : QUERY_MISSING,
                0);
    add_integer(&filter_tree, "StartTime", QUERY_GREATER_OR_EQUAL, filters->earliest);
    add_integer(&filter_tree, "StartTime", QUERY_LESS_OR_EQUAL, filters->latest);
    if (filters->workflow_id != NULL)
        add_text(&filter_tree, "WorkflowID", filters->workflow_id);
    if (filters->run_id != NULL && filters->run_id[0] != '\0')
        add_text(&filter_tree, "RunID", filters->run_id);
    if (filters->workflow_type != NULL)
        add_text(&filter_tree, "WorkflowType", filters->workflow_type);
    if (filters->has_status)
        add_integer(&filter_tree, "CloseStatus", QUERY_EQUAL,
                    filters->status - 1); /* 0 is unset there */
    *query =
        (struct query){.where = query_join(arena, QUERY_AND, filter_tree.nodes, filter_tree.count)};
}
