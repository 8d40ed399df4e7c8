/* histories.c - see histories.h.
 *
 * A node of history says its branch and not its run, whose record follows in the same commit, or
 * was there before. So events of a branch wait until a record names it; a branch that is never
 * named is garbage, and nobody reads it. */
#include "sim/world/histories.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"
#include "engine/run/run.h"
#include "sim/world/verdict.h"
#include "store/key.h"
#include "wire/message.h"

#define NODE_HEAD    9 /* bytes before the events (store/history.c) */
#define FIELD_EVENTS 0x0a

/* What one run has under one id and version. */
struct event_seen {
    struct slice bytes;
    uint64_t landed[SIM_GROUP_MAX]; /* when it reached a cluster's disk; 0: it is not there */
};

struct event_waiting {
    unsigned cluster;
    int64_t event_id, version;
    struct slice bytes;
};

struct branch_seen {
    const char *run; /* NULL: no record has named it yet */
    vector_of(struct event_waiting) waiting;
};

struct sim_histories {
    struct sim *sim;
    struct arena *arena;
    struct map *events;   /* run, event id, version → struct event_seen */
    struct map *branches; /* branch → struct branch_seen */
    uint64_t landed;      /* events so far */
    uint64_t kept[SIM_GROUP_MAX];
    struct verdict verdict;
    char missing[160]; /* the last one found */
    struct watched {
        struct sim_histories *histories;
        unsigned cluster;
    } watched[SIM_GROUP_MAX];
};

/* --- events ---- */

static void
note_event(struct sim_histories *histories, const char *run, const struct event_waiting *event)
{
    char name[128];
    snprintf(name, sizeof name, "%s event %" PRId64 " version %" PRId64, run, event->event_id,
             event->version);
    struct event_seen *seen = map_get(histories->events, slice_text(name));
    uint64_t now = ++histories->landed;
    bool is_known = false;
    for (unsigned i = 0; seen != NULL && i < SIM_GROUP_MAX; i++)
        is_known = is_known || seen->landed[i] > 0;
    bool is_same = seen != NULL && slice_equal(seen->bytes, event->bytes);
    if (seen == NULL) {
        seen = arena_zalloc(histories->arena, 1, sizeof *seen);
        map_put(histories->events, slice_text(name), seen);
    }
    if (is_known && !is_same)
        verdict_violate(&histories->verdict, "%s is another one in cluster%u (%zu bytes, not %zu)",
                        name, event->cluster, event->bytes.length, seen->bytes.length);
    if (!is_known && !is_same && seen->bytes.length > 0)
        world_probe(histories->sim->world, "lost_event_replaced");
    if (!is_same)
        seen->bytes = event->bytes;
    if (seen->landed[event->cluster] == 0)
        seen->landed[event->cluster] = now;
}

static struct branch_seen *
branch_of(struct sim_histories *histories, struct slice id)
{
    struct branch_seen *branch = map_get(histories->branches, id);
    if (branch != NULL)
        return branch;
    branch = arena_zalloc(histories->arena, 1, sizeof *branch);
    map_put(histories->branches, id, branch);
    return branch;
}

static void
see_event(struct watched *watched, struct branch_seen *branch, struct slice bytes)
{
    struct sim_histories *histories = watched->histories;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(HistoryEvent) *event = NULL;
    struct error *err = message_decode_as(
        arena, ERR_CORRUPT, &uber__cadence__api__v1__history_event__descriptor, bytes, &event);
    check(err == NULL);
    struct event_waiting waiting = {
        .cluster = watched->cluster,
        .event_id = event->event_id,
        .version = event->version,
        .bytes = arena_slice(histories->arena, bytes),
    };
    if (branch->run != NULL)
        note_event(histories, branch->run, &waiting);
    else
        vector_push_in(&branch->waiting, histories->arena, waiting);
}

static uint64_t
take_varint(struct slice *bytes)
{
    uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        check(bytes->length > 0 && shift < 64);
        uint8_t byte = bytes->data[0];
        *bytes = slice_skip(*bytes, 1);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
}

static void
see_node(struct watched *watched, struct slice key, struct slice value)
{
    struct uuid tree, id;
    bool is_key = key_take_uuid(&key, &tree) && key_take_uuid(&key, &id);
    check(is_key && value.length > NODE_HEAD);
    struct branch_seen *branch =
        branch_of(watched->histories, slice_of((const uint8_t *)&id, sizeof id));
    struct slice rest = slice_skip(value, NODE_HEAD);
    while (rest.length > 0) {
        check(rest.data[0] == FIELD_EVENTS);
        rest = slice_skip(rest, 1);
        uint64_t length = take_varint(&rest);
        check(length <= rest.length);
        see_event(watched, branch, slice_of(rest.data, (size_t)length));
        rest = slice_skip(rest, (size_t)length);
    }
}

/* --- whose they are ---- */

static void
name_branch(struct sim_histories *histories, ProtobufCBinaryData id, const char *run)
{
    struct branch_seen *branch = branch_of(histories, slice_of(id.data, id.len));
    if (branch->run != NULL)
        return;
    branch->run = arena_text(histories->arena, run);
    for (size_t i = 0; i < branch->waiting.count; i++)
        note_event(histories, branch->run, &branch->waiting.items[i]);
    vector_clear(&branch->waiting);
}

static void
see_run(struct sim_histories *histories, struct slice key, struct slice value)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    STORED(RunRecord) *core = NULL;
    struct error *err = run_read_row(key, value, arena, &core);
    check(err == NULL);
    const char *run = arena_format(arena, "%s/%s", core->workflow_id, core->run_id);
    name_branch(histories, core->branch_id, run);
    for (size_t i = 0; i < core->n_side_branches; i++)
        name_branch(histories, core->side_branches[i]->branch_id, run);
}

static void
see_row(void *context, struct partition partition, enum row_kind kind, struct slice key,
        struct slice value)
{
    struct watched *watched = context;
    if (kind == ROW_HISTORY)
        see_node(watched, key, value);
    if (kind == ROW_RUN)
        see_run(watched->histories, key, value);
}

/* --- life ---- */

struct sim_histories *
sim_histories_watch(struct sim *sim)
{
    check(sim->is_group && sim->histories == NULL);
    struct sim_histories *histories = memory_zalloc(1, sizeof *histories);
    histories->sim = sim;
    histories->arena = arena_new(0);
    histories->events = map_new();
    histories->branches = map_new();
    for (unsigned i = 0; i < sim->count; i++) {
        histories->watched[i] = (struct watched){.histories = histories, .cluster = i};
        memory_base_watch(
            sim->hosts[i].base,
            (struct memory_watch){.landed = see_row, .context = &histories->watched[i]});
    }
    sim->histories = histories;
    return histories;
}

void
sim_histories_free(struct sim_histories *histories)
{
    struct sim *sim = histories->sim;
    for (unsigned i = 0; i < sim->count; i++)
        memory_base_watch(sim->hosts[i].base, (struct memory_watch){0});
    sim->histories = NULL;
    map_free(histories->events);
    map_free(histories->branches);
    arena_free(histories->arena);
    memory_free(histories);
}

void
sim_histories_keep(struct sim_histories *histories, unsigned cluster)
{
    histories->kept[cluster] = histories->landed;
}

void
sim_histories_restore(struct sim_histories *histories, unsigned cluster)
{
    size_t cursor = 0;
    void *value;
    while (map_next(histories->events, &cursor, NULL, &value)) {
        struct event_seen *seen = value;
        if (seen->landed[cluster] > histories->kept[cluster])
            seen->landed[cluster] = 0;
    }
}

const char *
sim_histories_violation(const struct sim_histories *histories)
{
    return histories->verdict.violation;
}

const char *
sim_histories_missing(struct sim_histories *histories)
{
    size_t cursor = 0;
    struct slice name;
    void *value;
    while (map_next(histories->events, &cursor, &name, &value)) {
        const struct event_seen *seen = value;
        unsigned known = 0, lacking = 0;
        for (unsigned i = 0; i < histories->sim->count; i++) {
            known += seen->landed[i] > 0;
            lacking = seen->landed[i] > 0 ? lacking : i;
        }
        if (known == 0 || known == histories->sim->count)
            continue;
        snprintf(histories->missing, sizeof histories->missing, "%.*s is not in cluster%u",
                 (int)name.length, (const char *)name.data, lacking);
        return histories->missing;
    }
    return NULL;
}

size_t
sim_histories_count(const struct sim_histories *histories)
{
    return map_count(histories->events);
}
