/* inspect.c - what operators ask about runs and shards from inside.
 *
 * A run is shown in the shape that Cadence's tools read (ExecutionInfo, VersionHistories), as far
 * as they do, and whole under "Record", with what is pending under "Pending". */
#include "base/text.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "engine/inside.h"
#include "wire/message_json.h"
#include "wire/presence.h"

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

static void
look_inspect(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    INTERNAL(RunInspection) *answer = look->answer;
    answer->in_memory = presence_make_bytes(slice_text(show_run(run, look->arena)));
    answer->run_id = arena_text(look->arena, run->core->run_id);
}

static struct error *
serve_inspect(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    return engine_serve_look(engine, owner, request, look_inspect, arena, answer);
}

/* Lost: the operator asks again. Twice: it only reads. */
static const struct route_question inspect_question = {
    .name = "shard.inspect",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(run_inspection),
    .serve = serve_inspect,
    .may_come_twice = true,
};

struct error *
engine_inspect_run(struct engine *engine, const struct run_key *key, struct arena *arena,
                   struct run_inspection *inspection)
{
    INTERNAL(RunInspection) answer = INTERNAL_VALUE(RUN_INSPECTION__INIT);
    *inspection = (struct run_inspection){.shard = engine_shard_of(engine, key->workflow_id)};
    struct error *err = engine_ask_look(engine, key, &inspect_question, arena, &answer);
    if (err != NULL)
        return err;
    inspection->in_memory = arena_text_of(arena, presence_read_bytes(answer.in_memory));
    struct run_key stored = {key->domain_id, key->workflow_id, answer.run_id};
    struct run *run = NULL;
    err = run_load(engine->options.store, PARTITION_OF_SHARD(inspection->shard), &stored, arena,
                   &run, NULL);
    if (err == NULL && run != NULL) {
        inspection->in_store = show_run(run, arena);
        run_free(run);
    }
    return err;
}

/* --- shards ---- */

static struct error *
serve_state(void *engine, struct owner owner, const void *request, struct arena *arena,
            void *answer)
{
    INTERNAL(ShardState) *shown = answer;
    struct shard_state state = shard_state(engine_served_shard(engine, owner));
    shown->is_owned = state.is_owned;
    shown->range_id = state.range_id;
    shown->runs = state.runs;
    shown->transfers = state.transfers;
    shown->transfers_held = state.transfers_held;
    shown->has_unread_transfers = state.has_unread_transfers;
    shown->wakeups = state.wakeups;
    shown->wakeups_held = state.wakeups_held;
    shown->wakeup_level = state.wakeup_level;
    return NULL;
}

/* Lost: the operator asks again. Twice: it only reads. */
static const struct route_question state_question = {
    .name = "shard.state",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(shard_state),
    .serve = serve_state,
    .may_come_twice = true,
};

static struct error *
serve_give_up(void *engine, struct owner owner, const void *request, struct arena *arena,
              void *answer)
{
    shard_give_up(engine_served_shard(engine, owner));
    return NULL;
}

/* Lost: the operator sees whether the shard has a new range id. Twice: it is given up twice, which
 * is harmless, but nobody asked for it. */
static const struct route_question give_up_question = {
    .name = "shard.give_up",
    .request = INTERNAL_TYPE(empty),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_give_up,
};

static struct error *
ask_number(struct engine *engine, uint32_t number, const struct route_question *question,
           struct arena *arena, void *answer)
{
    INTERNAL(Empty) request = INTERNAL_VALUE(EMPTY__INIT);
    if (number >= engine->options.shard_count)
        return error_new(arena, ERR_BAD_REQUEST, "There is no shard %u: there are %u.", number,
                         engine->options.shard_count);
    return engine_ask_shard(engine, number, question, &request, arena, answer);
}

struct error *
engine_shard_state(struct engine *engine, uint32_t number, struct arena *arena,
                   struct shard_state *state)
{
    INTERNAL(ShardState) answer = INTERNAL_VALUE(SHARD_STATE__INIT);
    struct error *err = ask_number(engine, number, &state_question, arena, &answer);
    if (err != NULL)
        return err;
    *state = (struct shard_state){
        .is_owned = answer.is_owned,
        .range_id = answer.range_id,
        .runs = answer.runs,
        .transfers = answer.transfers,
        .transfers_held = answer.transfers_held,
        .has_unread_transfers = answer.has_unread_transfers,
        .wakeups = answer.wakeups,
        .wakeups_held = answer.wakeups_held,
        .wakeup_level = answer.wakeup_level,
    };
    return NULL;
}

struct error *
engine_close_shard(struct engine *engine, uint32_t number, struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    return ask_number(engine, number, &give_up_question, arena, &answer);
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
