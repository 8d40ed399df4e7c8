/* history.c - where a run's history stands, and its stored batches. See engine.h. */
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/branches/history_message.h"
#include "engine/inside.h"
#include "wire/message.h"

#define FOLD_BYTES ((size_t)1024 * 1024) /* of a history, at a time */

/* --- where it stands ---- */

static void
look_history(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    const STORED(RunRecord) *core = run->core;
    INTERNAL(HistoryState) *answer = look->answer;
    struct history_lineage lineage = run_lineage(run, look->arena);
    answer->workflow_type = message_new(look->arena, API_TYPE(workflow_type));
    if (core->workflow_type != NULL)
        answer->workflow_type->name = arena_text(look->arena, core->workflow_type->name);
    answer->run_id = arena_text(look->arena, core->run_id);
    answer->lineage = history_lineage_to_message(&lineage, look->arena);
    answer->next_event_id = core->next_event_id;
    answer->close_batch_event_id = core->close_batch_event_id;
    answer->last_first_event_id = core->last_first_event_id;
    answer->is_open = run_is_open(run);
    answer->history_bytes = core->history_bytes;
    answer->jitter_start = core->jitter_start;
}

static struct error *
serve_state(void *engine, struct owner owner, const void *request, struct arena *arena,
            void *answer)
{
    return engine_serve_look(engine, owner, request, look_history, arena, answer);
}

/* Lost: who reads the history asks again, or their client does. Twice: it only reads. */
static const struct route_question history_state_question = {
    .name = "shard.history_state",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(history_state),
    .serve = serve_state,
    .may_come_twice = true,
};

struct error *
engine_history_state(struct engine *engine, const struct run_key *key, struct arena *arena,
                     struct history_state *state)
{
    INTERNAL(HistoryState) answer = INTERNAL_VALUE(HISTORY_STATE__INIT);
    struct error *err = engine_ask_look(engine, key, &history_state_question, arena, &answer);
    if (err != NULL)
        return err;
    *state = (struct history_state){
        .run_id = answer.run_id,
        .lineage = history_lineage_from_message(answer.lineage, arena),
        .next_event_id = answer.next_event_id,
        .close_batch_event_id = answer.close_batch_event_id,
        .last_first_event_id = answer.last_first_event_id,
        .is_open = answer.is_open,
        .history_bytes = answer.history_bytes,
        .jitter_start = answer.jitter_start,
        .workflow_type = answer.workflow_type,
    };
    return NULL;
}

/* --- all of them ---- */

static void
look_branches(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    struct run_branches branches = branches_read(run->core, look->arena);
    branches_to_message(&branches, look->arena, look->answer);
}

static struct error *
serve_branches(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    return engine_serve_look(engine, owner, request, look_branches, arena, answer);
}

/* As the one above. */
static const struct route_question branches_question = {
    .name = "shard.branches",
    .request = INTERNAL_TYPE(run_look),
    .answer = INTERNAL_TYPE(branches_of_run),
    .serve = serve_branches,
    .may_come_twice = true,
};

struct error *
engine_find_branches(struct engine *engine, const struct run_key *key, struct arena *arena,
                     struct run_branches *branches)
{
    INTERNAL(BranchesOfRun) answer = INTERNAL_VALUE(BRANCHES_OF_RUN__INIT);
    struct error *err = engine_ask_look(engine, key, &branches_question, arena, &answer);
    if (err == NULL)
        *branches = branches_from_message(&answer, arena);
    return err;
}

/* --- its batches ---- */

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
