/* attributes.c - search attributes of schedules and of what they start. See schedule.h. */
#include <stdio.h>

#include "schedule/inside.h"

#define STATE SCHEDULE_ATTRIBUTE "State"
#define CRON  SCHEDULE_ATTRIBUTE "Cron"
#define TYPE  SCHEDULE_ATTRIBUTE "WorkflowType"

struct slice
schedule_quote(const char *text, struct arena *arena)
{
    size_t length = strlen(text), at = 0;
    char *quoted = arena_zalloc(arena, length * 6 + 3, 1);
    quoted[at++] = '"';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20) {
            at += (size_t)snprintf(quoted + at, 7, "\\u%04x", byte);
            continue;
        }
        if (byte == '"' || byte == '\\')
            quoted[at++] = '\\';
        quoted[at++] = (char)byte;
    }
    quoted[at++] = '"';
    check(at < length * 6 + 3);
    return slice_of(quoted, at);
}

/* The reverse, of what was written above. */
static char *
unquote(struct slice json, struct arena *arena)
{
    char *text = arena_zalloc(arena, json.length + 1, 1);
    size_t at = 0;
    for (size_t i = 1; i + 1 < json.length; i++) {
        if (json.data[i] == '\\' && json.data[i + 1] == 'u') {
            text[at++] = ' '; /* a control character: not worth restoring */
            i += 5;
            continue;
        }
        i += json.data[i] == '\\';
        if (i + 1 < json.length)
            text[at++] = (char)json.data[i];
    }
    return text;
}

void
schedule_attribute(API(SearchAttributes) *attributes, const char *key, struct slice json,
                   struct arena *arena)
{
    API(SearchAttributes__IndexedFieldsEntry) *entry =
        message_new(arena, API_TYPE(search_attributes__indexed_fields_entry));
    entry->key = (char *)key;
    entry->value =
        presence_make_payload(arena, (struct maybe_bytes){.is_set = true, .bytes = json});
    array_push(arena, attributes->indexed_fields, attributes->n_indexed_fields, entry);
}

API(SearchAttributes) *
schedule_attributes(const STORED(ScheduleDefinition) *definition, bool is_paused,
                    struct arena *arena)
{
    const API(SearchAttributes) *own = definition->search_attributes;
    const API(ScheduleAction__StartWorkflowAction) *action =
        definition->action == NULL ? NULL : definition->action->start_workflow;
    API(SearchAttributes) *all = own == NULL ? message_new(arena, API_TYPE(search_attributes))
                                             : message_copy(arena, &own->base);
    schedule_attribute(all, STATE, slice_text(is_paused ? "\"paused\"" : "\"active\""), arena);
    if (definition->spec->cron_expression[0] != '\0')
        schedule_attribute(all, CRON, schedule_quote(definition->spec->cron_expression, arena),
                           arena);
    if (action != NULL && action->workflow_type != NULL && action->workflow_type->name[0] != '\0')
        schedule_attribute(all, TYPE, schedule_quote(action->workflow_type->name, arena), arena);
    wire_map_sort(arena, all->indexed_fields, &all->n_indexed_fields);
    return all;
}

/* --- lists ---- */

static char *
find_text(const API(SearchAttributes) *attributes, const char *key, struct arena *arena)
{
    for (size_t i = 0; attributes != NULL && i < attributes->n_indexed_fields; i++)
        if (strcmp(attributes->indexed_fields[i]->key, key) == 0)
            return unquote(presence_read_payload(attributes->indexed_fields[i]->value).bytes,
                           arena);
    return "";
}

API(ScheduleListEntry) *
schedule_list_entry(const char *workflow_id, const API(SearchAttributes) *attributes,
                    struct arena *arena)
{
    if (strncmp(workflow_id, SCHEDULE_PREFIX, strlen(SCHEDULE_PREFIX)) != 0)
        return NULL;
    API(ScheduleListEntry) *entry = message_new(arena, API_TYPE(schedule_list_entry));
    char *type = find_text(attributes, TYPE, arena);
    entry->schedule_id = arena_text(arena, workflow_id + strlen(SCHEDULE_PREFIX));
    entry->state = message_new(arena, API_TYPE(schedule_state));
    entry->state->paused = strcmp(find_text(attributes, STATE, arena), "paused") == 0;
    entry->cron_expression = find_text(attributes, CRON, arena);
    if (type[0] != '\0') {
        entry->workflow_type = message_new(arena, API_TYPE(workflow_type));
        entry->workflow_type->name = type;
    }
    return entry;
}
