/* history.c - where a run's history stands, and its stored batches. See engine.h. */
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/inside.h"
#include "wire/message.h"

#define FOLD_BYTES ((size_t)1024 * 1024) /* of a history, at a time */

struct history_look {
    struct history_state *state;
    struct arena *arena;
};

static void
look_history(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct history_look *look = context;
    const STORED(RunRecord) *core = run->core;
    API(WorkflowType) *type = message_new(look->arena, API_TYPE(workflow_type));
    if (core->workflow_type != NULL)
        type->name = arena_text(look->arena, core->workflow_type->name);
    *look->state = (struct history_state){
        .run_id = arena_text(look->arena, core->run_id),
        .lineage = run_lineage(run, look->arena),
        .next_event_id = core->next_event_id,
        .close_batch_event_id = core->close_batch_event_id,
        .last_first_event_id = core->last_first_event_id,
        .is_open = run_is_open(run),
        .history_bytes = core->history_bytes,
        .jitter_start = core->jitter_start,
        .workflow_type = type,
    };
}

struct error *
engine_history_state(struct engine *engine, const struct run_key *key, struct arena *arena,
                     struct history_state *state)
{
    struct history_look look = {state, arena};
    return engine_look(engine, key, look_history, &look, arena);
}

struct branches_look {
    struct run_branches *branches;
    struct arena *arena;
};

static void
look_branches(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct branches_look *look = context;
    *look->branches = branches_read(run->core, look->arena);
}

struct error *
engine_find_branches(struct engine *engine, const struct run_key *key, struct arena *arena,
                     struct run_branches *branches)
{
    struct branches_look look = {branches, arena};
    return engine_look(engine, key, look_branches, &look, arena);
}

struct error *
engine_read_history(struct engine *engine, const struct history_range *range, struct arena *arena,
                    struct history_page *page)
{
    check(range->shard < engine->options.shard_count);
    /* The first event always begins a batch. */
    bool is_known = !range->is_first || range->from_event_id == 1;
    struct error *err = (is_known ? store_read_lineage_on : store_read_lineage)(
        engine->options.store, PARTITION_OF_SHARD(range->shard), &range->lineage,
        range->from_event_id, range->to_event_id, range->bytes_max, arena, page);
    if (err == NULL)
        history_page_cut(page, range->nodes_max);
    return err;
}

static struct error *
fold_page(const struct history_fold *fold, const struct history_page *page, struct arena *arena)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    for (size_t i = 0; i < page->count; i++) {
        API(History) *history = NULL;
        struct error *err = message_decode_as(scratch, ERR_CORRUPT, API_TYPE(history),
                                              page->node[i].events, &history);
        if (err != NULL)
            return error_copy(arena, err);
        for (size_t e = 0; e < history->n_events; e++)
            fold->add(fold->state, history->events[e], arena);
        arena_reset(scratch);
    }
    return NULL;
}

struct error *
engine_fold_history(struct engine *engine, const struct history_fold *fold, struct arena *arena)
{
    struct history_range range = {.shard = engine_shard_of(engine, fold->workflow_id),
                                  .lineage = *fold->lineage,
                                  .from_event_id = 1,
                                  .to_event_id = fold->next_event_id,
                                  .bytes_max = FOLD_BYTES};
    while (range.from_event_id < range.to_event_id) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        struct history_page page = {0};
        struct error *err = engine_read_history(engine, &range, scratch, &page);
        err = err != NULL ? error_copy(arena, err) : fold_page(fold, &page, arena);
        if (err != NULL)
            return err;
        check(page.next_event_id > range.from_event_id);
        range.from_event_id = page.next_event_id;
    }
    return NULL;
}

void
history_page_cut(struct history_page *page, size_t nodes_max)
{
    if (nodes_max == 0 || page->count <= nodes_max)
        return;
    page->count = nodes_max;
    page->next_event_id = page->node[nodes_max - 1].next_event_id;
}
