/* reset_points.c - where the work of each binary began: a bad deployment can be undone from there.
 *
 * The list is replaced, never written to (run.h): its points are shared between old and new lists.
 */
#include "base/buffer.h"
#include "base/check.h"
#include "engine/run/inside.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The search attribute that lists the binaries, as JSON. */
#define BINARY_CHECKSUMS "BinaryChecksums"

static bool
reset_points_have(const API(ResetPoints) *points, const char *binary_checksum)
{
    for (size_t i = 0; points != NULL && i < points->n_points; i++)
        if (strcmp(points->points[i]->binary_checksum, binary_checksum) == 0)
            return true;
    return false;
}

/* A list with room for one more behind the newest of the old one. */
static API(ResetPoints) *
reset_points_copy(struct run *run, const API(ResetPoints) *old, size_t keep_max)
{
    API(ResetPoints) *points = message_new(run->arena, API_TYPE(reset_points));
    size_t count = old == NULL ? 0 : old->n_points;
    size_t skip = count > keep_max ? count - keep_max : 0;
    points->points = arena_zalloc(run->arena, count - skip + 1, sizeof *points->points);
    for (size_t i = skip; i < count; i++)
        points->points[points->n_points++] = old->points[i];
    return points;
}

static void
json_append_text(struct buffer *json, const char *text)
{
    buffer_append_text(json, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            buffer_append_format(json, "\\%c", *c);
        else if (*c < 0x20)
            buffer_append_format(json, "\\u%04x", *c);
        else
            buffer_append_u8(json, *c);
    }
    buffer_append_text(json, "\"");
}

/* ["one","two"], in the run. */
static struct slice
reset_points_list(struct run *run, const API(ResetPoints) *points)
{
    struct buffer json = {0};
    for (size_t i = 0; i < points->n_points; i++) {
        buffer_append_text(&json, i == 0 ? "[" : ",");
        json_append_text(&json, points->points[i]->binary_checksum);
    }
    buffer_append_text(&json, "]");
    struct slice list = run_keep_bytes(run, buffer_slice(&json));
    buffer_free(&json);
    return list;
}

/* The binaries of the run can be searched for. */
static void
reset_points_show(struct mutation *mutation, const API(ResetPoints) *points)
{
    typedef API(SearchAttributes__IndexedFieldsEntry) entry_t;
    struct run *run = mutation_run(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    const API(SearchAttributes) *old = core->search_attributes;
    size_t count = old == NULL ? 0 : old->n_indexed_fields;
    entry_t *entry = message_new(run->arena, API_TYPE(search_attributes__indexed_fields_entry));
    entry->key = (char *)BINARY_CHECKSUMS;
    entry->value = message_new(run->arena, API_TYPE(payload));
    entry->value->data = presence_make_bytes(reset_points_list(run, points));

    API(SearchAttributes) *fields = message_new(run->arena, API_TYPE(search_attributes));
    fields->indexed_fields = arena_zalloc(run->arena, count + 1, sizeof(entry_t *));
    for (size_t i = 0; i < count; i++)
        fields->indexed_fields[i] = old->indexed_fields[i];
    fields->indexed_fields[count] = entry;
    fields->n_indexed_fields = count + 1;
    wire_map_sort(run->arena, fields->indexed_fields, &fields->n_indexed_fields);
    core->search_attributes = fields;
}

void
reset_points_add(struct mutation *mutation, const API(HistoryEvent) *completed)
{
    const char *binary_checksum =
        completed->decision_task_completed_event_attributes->binary_checksum;
    struct run *run = mutation_run(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    check(completed->event_id > 0);
    if (binary_checksum[0] == '\0' || reset_points_have(core->auto_reset_points, binary_checksum))
        return;
    int64_t limit = run_context_integer(mutation_context(mutation), DYNAMIC_RESET_POINTS_MAX);
    API(ResetPoints) *points =
        reset_points_copy(run, core->auto_reset_points, limit > 1 ? (size_t)limit - 1 : 0);
    API(ResetPointInfo) *point = message_new(run->arena, API_TYPE(reset_point_info));
    point->binary_checksum = run_keep_text(run, binary_checksum);
    point->run_id = core->run_id;
    point->first_decision_completed_id = completed->event_id;
    point->created_time = presence_make_timestamp(run->arena, event_time(completed));
    point->resettable = true;
    points->points[points->n_points++] = point;
    core->auto_reset_points = points;
    reset_points_show(mutation, points);
}

void
reset_points_take_over(struct mutation *mutation, const API(ResetPoints) *points,
                       const char *run_id_before)
{
    struct run *run = mutation_run(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    if (points == NULL || run_id_before[0] == '\0')
        return;
    const API(Domain) *domain = mutation_context(mutation)->domain->record->domain;
    int64_t retention = duration_seconds(domain->workflow_execution_retention_period);
    API(ResetPoints) *kept = run_keep(run, (API(ResetPoints) *)points);
    for (size_t i = 0; i < kept->n_points; i++)
        if (strcmp(kept->points[i]->run_id, run_id_before) == 0)
            kept->points[i]->expiring_time =
                presence_make_timestamp(run->arena, core->start_time + retention * SECOND);
    core->auto_reset_points = kept;
}

const API(ResetPointInfo) *
run_find_bad_point(const struct run *run, const struct run_context *context, const char **reason)
{
    const API(BadBinaries) *bad =
        context->domain == NULL ? NULL : context->domain->record->domain->bad_binaries;
    const API(ResetPoints) *points = run->core->auto_reset_points;
    if (bad == NULL || bad->n_binaries == 0 || points == NULL || !run_is_open(run))
        return NULL;
    for (size_t i = 0; i < points->n_points; i++) {
        const API(ResetPointInfo) *point = points->points[i];
        const API(BadBinaries__BinariesEntry) *entry =
            wire_map_find(bad->binaries, bad->n_binaries, point->binary_checksum);
        int64_t expiry = presence_time(point->expiring_time);
        bool is_gone = expiry > 0 && context->now > expiry;
        if (entry == NULL || !point->resettable || is_gone)
            continue;
        *reason = entry->value == NULL ? "" : entry->value->reason;
        return point;
    }
    return NULL;
}
