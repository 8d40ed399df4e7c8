/* managed_outcome.c - the outcome of a managed failover, domain by domain. See managed.h. */
#include "base/json.h"
#include "system/managed.h"

#define OUTCOMES_FIRST 16

struct slice
managed_take(struct buffer *out, struct arena *arena)
{
    struct slice taken = arena_slice(arena, buffer_slice(out));
    buffer_free(out);
    return taken;
}

void
managed_add_outcome(struct managed_outcomes *outcomes, const char *domain, const char *error,
                    struct arena *arena)
{
    check(outcomes->count <= outcomes->capacity);
    if (outcomes->count == outcomes->capacity) {
        size_t capacity = outcomes->capacity == 0 ? OUTCOMES_FIRST : 2 * outcomes->capacity;
        struct managed_outcome *all = arena_zalloc(arena, capacity, sizeof *all);
        if (outcomes->count > 0)
            memcpy(all, outcomes->all, outcomes->count * sizeof *all);
        outcomes->all = all;
        outcomes->capacity = capacity;
    }
    outcomes->all[outcomes->count++] = (struct managed_outcome){domain, error};
}

static void
read_outcome(struct json_reader *reader, struct managed_outcomes *outcomes, bool has_failed)
{
    const char *name, *domain = "", *error = "";
    bool outer = object_enter(reader);
    while (object_next(reader, &name)) {
        if (strcmp(name, "DomainName") == 0)
            object_text(reader, &domain);
        else if (strcmp(name, "Error") == 0)
            object_text(reader, &error);
        else
            object_skip(reader);
    }
    object_leave(reader, outer);
    managed_add_outcome(outcomes, domain, has_failed ? error : NULL, reader->arena);
}

bool
managed_add_outcomes(struct managed_outcomes *outcomes, struct slice bytes, struct arena *arena)
{
    struct json_reader reader = object_begin(bytes, arena);
    struct managed_outcomes before = *outcomes;
    const char *name;
    while (object_next(&reader, &name)) {
        size_t begun = 0;
        bool has_failed = strcmp(name, "FailedDomains") == 0;
        if (!has_failed && strcmp(name, "SuccessDomains") != 0) {
            object_skip(&reader);
            continue;
        }
        array_enter(&reader);
        while (array_next(&reader, &begun))
            read_outcome(&reader, outcomes, has_failed);
    }
    if (object_end(&reader))
        return true;
    *outcomes = before;
    return false;
}

size_t
managed_count(const struct managed_outcomes *outcomes, bool has_failed)
{
    size_t count = 0;
    for (size_t i = 0; i < outcomes->count; i++)
        count += (outcomes->all[i].error != NULL) == has_failed;
    return count;
}

void
managed_append_names(struct buffer *out, const char *member,
                     const struct managed_outcomes *outcomes, bool has_failed)
{
    const char *before = "[";
    buffer_append_format(out, "\"%s\":", member);
    for (size_t i = 0; i < outcomes->count; i++) {
        if ((outcomes->all[i].error != NULL) != has_failed)
            continue;
        buffer_append_text(out, before);
        object_append_text(out, outcomes->all[i].domain);
        before = ",";
    }
    buffer_append_text(out, before[0] == '[' ? "null" : "]"); /* as Go writes an empty list */
}

static void
append_described(struct buffer *out, const struct managed_outcomes *outcomes, bool has_failed)
{
    const char *before = "{\"DomainName\":";
    for (size_t i = 0; i < outcomes->count; i++) {
        const struct managed_outcome *outcome = &outcomes->all[i];
        if ((outcome->error != NULL) != has_failed)
            continue;
        buffer_append_text(out, before);
        object_append_text(out, outcome->domain);
        if (has_failed) {
            buffer_append_text(out, ",\"Error\":");
            object_append_text(out, outcome->error);
        }
        buffer_append_text(out, "}");
        before = ",{\"DomainName\":";
    }
}

void
managed_append_outcomes(struct buffer *out, const struct managed_outcomes *outcomes)
{
    buffer_append_text(out, "\"SuccessDomains\":[");
    append_described(out, outcomes, false);
    buffer_append_text(out, "],\"FailedDomains\":[");
    append_described(out, outcomes, true);
    buffer_append_text(out, "]");
}

static void
append_snapshot(struct buffer *out, const struct managed_move *move)
{
    buffer_append_text(out, "{\"DomainName\":");
    object_append_text(out, move->domain);
    buffer_append_text(out, ",\"PreviousActiveCluster\":");
    object_append_text(out, move->previous);
    buffer_append_text(out, ",\"PreviousClusterAttributes\":[");
    for (size_t i = 0; i < move->attribute_count; i++) {
        buffer_append_text(out, i == 0 ? "{\"scope\":" : ",{\"scope\":");
        object_append_text(out, move->attributes[i].scope);
        buffer_append_text(out, ",\"name\":");
        object_append_text(out, move->attributes[i].name);
        buffer_append_text(out, ",\"preferredCluster\":");
        object_append_text(out, move->attributes[i].previous);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]}");
}

void
managed_append_snapshots(struct buffer *out, const struct managed_moves *moves)
{
    buffer_append_text(out, "\"Snapshots\":[");
    for (size_t i = 0; i < moves->count; i++) {
        if (i > 0)
            buffer_append_text(out, ",");
        append_snapshot(out, &moves->all[i]);
    }
    buffer_append_text(out, "]");
}
