/* inspect.c - what operators ask about runs and shards from inside.
 *
 * A run is shown in the shape that Cadence's tools read (ExecutionInfo, VersionHistories), as far
 * as they do, and whole under "Record", with what is pending under "Pending". */
#include "base/text.h"
#include "engine/inside.h"
#include "route/route.h"
#include "wire/message_json.h"

#define THRIFT_TEXT 11
#define THRIFT_MARK 0x59 /* of a blob in the binary protocol */

/* --- runs ---- */

static void
thrift_text(struct buffer *out, uint16_t field, const char *text)
{
    buffer_append_u8(out, THRIFT_TEXT);
    buffer_append_u16be(out, field);
    buffer_append_u32be(out, (uint32_t)strlen(text));
    buffer_append_text(out, text);
}

/* A branch as tools take it apart: its tree and itself. */
static struct slice
branch_token(struct history_branch names, struct arena *arena)
{
    char tree[UUID_TEXT_LENGTH + 1], branch[UUID_TEXT_LENGTH + 1];
    struct buffer out = {0};
    uuid_format(&names.tree, tree);
    uuid_format(&names.branch, branch);
    buffer_append_u8(&out, THRIFT_MARK);
    thrift_text(&out, 10, tree);
    thrift_text(&out, 20, branch);
    buffer_append_u8(&out, 0);
    struct slice token = arena_slice(arena, buffer_slice(&out));
    buffer_free(&out);
    return text_base64_encode(arena, token, TEXT_BASE64_STANDARD);
}

/* The number by which Cadence's tools know a state. */
static int
state_number(STORED(RunState) state)
{
    static const int numbers[] = {
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_INVALID] = 4, /* void */
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED] = 0,
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING] = 1,
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_COMPLETED] = 2,
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_ZOMBIE] = 3,
        [CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CORRUPTED] = 5,
    };
    check((size_t)state < array_length(numbers));
    return numbers[state];
}

static void
append_member(struct buffer *out, const char *name, const char *text)
{
    buffer_append_format(out, "\"%s\":", name);
    message_json_append_text(out, slice_text(text));
    buffer_append_u8(out, ',');
}

static void
append_execution(struct buffer *out, const struct run *run, struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    struct slice token = branch_token(run_branch(run), arena);
    buffer_append_text(out, "\"ExecutionInfo\":{");
    append_member(out, "DomainID", core->domain_id);
    append_member(out, "WorkflowID", core->workflow_id);
    append_member(out, "RunID", core->run_id);
    buffer_append_format(out, "\"State\":%d,\"CloseStatus\":%d,", state_number(core->state),
                         (int)core->close_status);
    buffer_append_format(out, "\"NextEventID\":%lld,\"LastFirstEventID\":%lld,",
                         (long long)core->next_event_id, (long long)core->last_first_event_id);
    buffer_append_format(out, "\"BranchToken\":\"%.*s\"}", SLICE_ARG(token));
}

static void
append_history(struct buffer *out, const struct run_branch *branch, struct arena *arena)
{
    struct slice token = branch_token(history_lineage_own(&branch->lineage), arena);
    buffer_append_format(out, "{\"BranchToken\":\"%.*s\",\"Items\":[", SLICE_ARG(token));
    for (size_t i = 0; i < branch->versions.count; i++)
        buffer_append_format(out, "%s{\"EventID\":%lld,\"Version\":%lld}", i == 0 ? "" : ",",
                             (long long)branch->versions.items[i].event_id,
                             (long long)branch->versions.items[i].event_version);
    buffer_append_text(out, "]}");
}

/* All that the run has; the current one is the first (branches.h). */
static void
append_versions(struct buffer *out, const struct run *run, struct arena *arena)
{
    struct run_branches branches = branches_read(run->core, arena);
    buffer_append_text(out,
                       ",\"VersionHistories\":{\"CurrentVersionHistoryIndex\":0,\"Histories\":[");
    for (size_t i = 0; i < branches.count; i++) {
        if (i > 0)
            buffer_append_u8(out, ',');
        append_history(out, &branches.branch[i], arena);
    }
    buffer_append_text(out, "]}");
}

static void
append_numbered(struct buffer *out, const char *name, const struct map64 *records)
{
    size_t cursor = 0;
    void *record;
    const char *gap = "";
    buffer_append_format(out, ",\"%s\":[", name);
    while (map64_next(records, &cursor, NULL, &record)) {
        buffer_append_text(out, gap);
        message_json_append(out, record);
        gap = ",";
    }
    buffer_append_u8(out, ']');
}

static void
append_named(struct buffer *out, const char *name, const struct map *records)
{
    size_t cursor = 0;
    void *record;
    const char *gap = "";
    buffer_append_format(out, ",\"%s\":[", name);
    while (map_next(records, &cursor, NULL, &record)) {
        buffer_append_text(out, gap);
        message_json_append(out, record);
        gap = ",";
    }
    buffer_append_u8(out, ']');
}

static const char *
show_run(const struct run *run, struct arena *arena)
{
    struct buffer out = {0};
    buffer_append_u8(&out, '{');
    append_execution(&out, run, arena);
    append_versions(&out, run, arena);
    buffer_append_text(&out, ",\"Record\":");
    message_json_append(&out, &run->core->base);
    append_numbered(&out, "PendingActivities", run->activities);
    append_named(&out, "PendingTimers", run->timers);
    append_numbered(&out, "PendingChildren", run->children);
    append_numbered(&out, "PendingExternals", run->externals);
    buffer_append_u8(&out, '}');
    const char *text = arena_text_of(arena, buffer_slice(&out));
    buffer_free(&out);
    return text;
}

struct look_inspect {
    struct arena *arena;
    const char *text, *run_id;
};

static void
look_inspect(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct look_inspect *look = context;
    look->text = show_run(run, look->arena);
    look->run_id = arena_text(look->arena, run->core->run_id);
}

struct error *
engine_inspect_run(struct engine *engine, const struct run_key *key, struct arena *arena,
                   struct run_inspection *inspection)
{
    struct look_inspect look = {.arena = arena};
    *inspection = (struct run_inspection){.shard = engine_shard_of(engine, key->workflow_id)};
    struct error *err = engine_look(engine, key, look_inspect, &look, arena);
    if (err != NULL)
        return err;
    inspection->in_memory = look.text;
    struct run_key stored = {key->domain_id, key->workflow_id, look.run_id};
    struct run *run = NULL;
    err = run_load(engine->options.store, PARTITION_OF_SHARD(inspection->shard), &stored, arena,
                   &run);
    if (err == NULL && run != NULL) {
        inspection->in_store = show_run(run, arena);
        run_free(run);
    }
    return err;
}

/* --- shards ---- */

struct shard_question {
    struct engine *engine;
    uint32_t number;
    struct shard_state *state; /* NULL: give it up */
    struct arena *arena;
};

static void
ask_on_loop(void *argument)
{
    struct shard_question *question = argument;
    struct shard *shard = question->engine->shards[question->number];
    if (question->state != NULL)
        *question->state = shard_state(shard);
    else
        shard_give_up(shard);
}

static struct error *
ask_shard(struct engine *engine, uint32_t number, struct shard_state *state, struct arena *arena)
{
    struct shard_question question = {engine, number, state, arena};
    if (number >= engine->options.shard_count)
        return error_new(arena, ERR_BAD_REQUEST, "There is no shard %u: there are %u.", number,
                         engine->options.shard_count);
    return route_to_shard(number, ask_on_loop, &question, arena);
}

struct error *
engine_shard_state(struct engine *engine, uint32_t number, struct arena *arena,
                   struct shard_state *state)
{
    return ask_shard(engine, number, state, arena);
}

struct error *
engine_close_shard(struct engine *engine, uint32_t number, struct arena *arena)
{
    return ask_shard(engine, number, NULL, arena);
}

uint32_t
engine_shard_count(const struct engine *engine)
{
    return engine->options.shard_count;
}

const char *
engine_host(const struct engine *engine)
{
    return engine->options.host;
}
