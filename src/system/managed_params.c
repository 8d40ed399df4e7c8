/* managed_params.c - the input of a managed failover, and that of its activities, as JSON in
 * Cadence's names. See managed.h. */
#include "base/check.h"
#include "base/json.h"
#include "fiber/clock.h"
#include "system/managed.h"

#define BATCH_USUAL 20
#define WAIT_USUAL  30 /* seconds */

bool
managed_kind_find(const char *type, enum managed_kind *kind)
{
    static const char *const types[] = {[KIND_FAILOVER] = MANAGED_FAILOVER,
                                        [KIND_FAILOVER_V2] = MANAGED_FAILOVER_V2,
                                        [KIND_REBALANCE] = MANAGED_REBALANCE,
                                        [KIND_REBALANCE_V2] = MANAGED_REBALANCE_V2};
    for (size_t i = 0; i < array_length(types); i++) {
        *kind = (enum managed_kind)i;
        if (strcmp(types[i], type) == 0)
            return true;
    }
    return false;
}

/* --- parts ---- */

static void
read_attribute(struct json_reader *reader, struct managed_attribute *attribute)
{
    const char *name;
    bool outer = object_enter(reader);
    *attribute = (struct managed_attribute){"", "", "", ""};
    while (object_next(reader, &name)) {
        if (strcmp(name, "scope") == 0)
            object_text(reader, &attribute->scope);
        else if (strcmp(name, "name") == 0)
            object_text(reader, &attribute->name);
        else if (strcmp(name, "preferredCluster") == 0)
            object_text(reader, &attribute->target);
        else if (strcmp(name, "previousCluster") == 0)
            object_text(reader, &attribute->previous);
        else
            object_skip(reader);
    }
    object_leave(reader, outer);
}

/* Room for one more in an array of `count` that doubles when it is full. */
static void *
grow(void *all, size_t count, size_t size, struct arena *arena)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return all;
    void *larger = arena_zalloc(arena, count == 0 ? 1 : 2 * count, size);
    if (count > 0)
        memcpy(larger, all, count * size);
    return larger;
}

static void
read_attributes(struct json_reader *reader, struct managed_attribute **all, size_t *count)
{
    size_t begun = 0;
    *count = 0;
    if (object_null(reader))
        return;
    array_enter(reader);
    while (array_next(reader, &begun)) {
        *all = grow(*all, *count, sizeof **all, reader->arena);
        read_attribute(reader, &(*all)[(*count)++]);
    }
}

bool
managed_read_preferences(const char *text, struct arena *arena, struct managed_attribute **all,
                         size_t *count)
{
    const char *name;
    *all = NULL;
    *count = 0;
    struct json_reader reader =
        object_begin(slice_text(arena_format(arena, "{\"preferences\":%s}", text)), arena);
    while (object_next(&reader, &name))
        read_attributes(&reader, all, count);
    return object_end(&reader);
}

/* --- parameters ---- */

static bool
read_number(struct json_reader *reader, const char *name, struct managed_params *params)
{
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {
        {"BatchFailoverSize", &params->batch_size},
        {"BatchSize", &params->batch_size},
        {"BatchFailoverWaitTimeInSeconds", &params->wait},
        {"WaitBetweenBatchSeconds", &params->wait},
        {"DrillWaitTime", &params->drill_wait},
        {"GracefulFailoverTimeoutInSeconds", &params->timeout},
    };
    for (size_t i = 0; i < array_length(numbers); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            object_integer(reader, numbers[i].value);
            return true;
        }
    }
    return false;
}

static void
read_member(struct json_reader *reader, const char *name, struct managed_params *params,
            const char **source)
{
    if (strcmp(name, "TargetCluster") == 0)
        object_text(reader, &params->target);
    else if (strcmp(name, "SourceCluster") == 0)
        object_text(reader, source);
    else if (strcmp(name, "SourceClusters") == 0)
        object_texts(reader, &params->sources, &params->source_count);
    else if (strcmp(name, "Domains") == 0)
        object_texts(reader, &params->domains, &params->domain_count);
    else if (strcmp(name, "ClusterAttributes") == 0)
        read_attributes(reader, &params->attributes, &params->attribute_count);
    else if (!read_number(reader, name, params))
        object_skip(reader);
}

/* A failover must name its source and its target. */
static struct error *
check_clusters(const struct managed_params *params, bool is_second, struct arena *arena)
{
    const char *what = NULL;
    if (params->target[0] == '\0')
        what = "targetCluster is empty";
    else if (params->source_count == 0)
        what = is_second ? "sourceClusters is empty" : "sourceCluster is empty";
    for (size_t i = 0; what == NULL && i < params->source_count; i++) {
        if (params->sources[i][0] == '\0')
            what = is_second ? "sourceClusters is empty" : "sourceCluster is empty";
        else if (strcmp(params->sources[i], params->target) == 0)
            what = is_second ? "targetCluster is also listed as a sourceCluster"
                             : "targetCluster is same as sourceCluster";
    }
    return what == NULL ? NULL : error_new(arena, ERR_BAD_REQUEST, "%s", what);
}

static int64_t
usual(int64_t value, int64_t otherwise)
{
    if (value <= 0)
        return otherwise;
    return value > INT32_MAX ? INT32_MAX : value; /* no timer takes more */
}

static void
fill_usual(struct managed_params *params)
{
    int64_t drill = params->drill_wait; /* it comes in ns */
    params->batch_size = usual(params->batch_size, BATCH_USUAL);
    params->wait = usual(params->wait, WAIT_USUAL);
    params->drill_wait = usual(drill / NS_PER_S + (drill % NS_PER_S > 0), 0);
}

static void
managed_params_check(const struct managed_params *params)
{
    check(params->batch_size > 0 && params->batch_size <= INT32_MAX);
    check(params->wait > 0 && params->wait <= INT32_MAX);
    check(params->drill_wait >= 0 && params->drill_wait <= INT32_MAX);
}

struct error *
managed_read_params(struct slice input, enum managed_kind kind, struct arena *arena,
                    struct managed_params *params)
{
    const char *name, *source = "";
    bool is_failover = kind == KIND_FAILOVER || kind == KIND_FAILOVER_V2;
    *params = (struct managed_params){.target = ""};
    if (input.length == 0)
        return error_new(arena, ERR_BAD_REQUEST, "params is nil");
    struct json_reader reader = object_begin(input, arena);
    while (object_next(&reader, &name))
        read_member(&reader, name, params, &source);
    if (!object_end(&reader))
        return error_new(arena, ERR_BAD_REQUEST, "params cannot be read");
    if (kind == KIND_FAILOVER) {
        params->sources = arena_zalloc(arena, 1, sizeof params->sources[0]);
        params->sources[0] = source;
        params->source_count = 1;
    }
    fill_usual(params);
    managed_params_check(params);
    return is_failover ? check_clusters(params, kind == KIND_FAILOVER_V2, arena) : NULL;
}

/* --- moves ---- */

static void
append_member(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, "\"%s\":", name);
    object_append_text(out, value);
}

static void
append_attribute(struct buffer *out, const struct managed_attribute *attribute)
{
    append_member(out, "scope", attribute->scope);
    buffer_append_text(out, ",");
    append_member(out, "name", attribute->name);
    buffer_append_text(out, ",");
    append_member(out, "preferredCluster", attribute->target);
    buffer_append_text(out, ",");
    append_member(out, "previousCluster", attribute->previous);
}

static void
append_move(struct buffer *out, const struct managed_move *move)
{
    append_member(out, "DomainName", move->domain);
    buffer_append_text(out, ",");
    append_member(out, "TargetCluster", move->target);
    buffer_append_text(out, ",");
    append_member(out, "PreviousCluster", move->previous);
    buffer_append_format(out, ",\"FailoverTimeoutSeconds\":%lld,\"ClusterAttributeUpdates\":[",
                         (long long)move->timeout);
    for (size_t i = 0; i < move->attribute_count; i++) {
        buffer_append_text(out, i == 0 ? "{" : ",{");
        append_attribute(out, &move->attributes[i]);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]");
}

struct slice
managed_write_moves(const struct managed_moves *moves, struct arena *arena)
{
    struct buffer out = {0};
    buffer_append_text(&out, "{\"DomainPreferences\":[");
    for (size_t i = 0; i < moves->count; i++) {
        buffer_append_text(&out, i == 0 ? "{" : ",{");
        append_move(&out, &moves->all[i]);
        buffer_append_text(&out, "}");
    }
    buffer_append_text(&out, "]}");
    return managed_take(&out, arena);
}

static void
read_move(struct json_reader *reader, struct managed_move *move)
{
    const char *name;
    bool outer = object_enter(reader);
    *move = (struct managed_move){.domain = "", .target = "", .previous = ""};
    while (object_next(reader, &name)) {
        if (strcmp(name, "DomainName") == 0)
            object_text(reader, &move->domain);
        else if (strcmp(name, "TargetCluster") == 0)
            object_text(reader, &move->target);
        else if (strcmp(name, "PreviousCluster") == 0)
            object_text(reader, &move->previous);
        else if (strcmp(name, "FailoverTimeoutSeconds") == 0)
            object_integer(reader, &move->timeout);
        else if (strcmp(name, "ClusterAttributeUpdates") == 0)
            read_attributes(reader, &move->attributes, &move->attribute_count);
        else
            object_skip(reader);
    }
    object_leave(reader, outer);
}

bool
managed_read_moves(struct slice bytes, struct arena *arena, struct managed_moves *moves)
{
    struct json_reader reader = object_begin(bytes, arena);
    const char *name;
    *moves = (struct managed_moves){0};
    while (object_next(&reader, &name)) {
        size_t begun = 0;
        if (strcmp(name, "DomainPreferences") != 0) {
            object_skip(&reader);
            continue;
        }
        array_enter(&reader);
        while (array_next(&reader, &begun)) {
            moves->all = grow(moves->all, moves->count, sizeof moves->all[0], arena);
            read_move(&reader, &moves->all[moves->count++]);
        }
    }
    return object_end(&reader);
}

struct managed_move
managed_reverse(const struct managed_move *move, struct arena *arena)
{
    struct managed_move back = *move;
    back.target = move->previous;
    back.previous = move->target;
    if (move->attribute_count > 0)
        back.attributes = arena_zalloc(arena, move->attribute_count, sizeof back.attributes[0]);
    for (size_t i = 0; i < move->attribute_count; i++) {
        const struct managed_attribute *one = &move->attributes[i];
        back.attributes[i] =
            (struct managed_attribute){one->scope, one->name, one->previous, one->target};
    }
    return back;
}
