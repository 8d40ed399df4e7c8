/* history.c - a run becomes the state of its type: its events, page by page. See worker.h. */
#include "base/check.h"
#include "system/inside.h"
#include "wire/message.h"

#define PAGE_BYTES ((size_t)1024 * 1024)

static struct error *
fold_page(const struct system_workflow *workflow, const struct history_page *page, void *state,
          struct arena *arena)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    for (size_t i = 0; i < page->count; i++) {
        API(History) *history = NULL;
        struct error *err = message_decode_as(scratch, ERR_CORRUPT, API_TYPE(history),
                                              page->node[i].events, &history);
        if (err != NULL)
            return error_copy(arena, err);
        for (size_t e = 0; e < history->n_events; e++)
            workflow->fold(state, history->events[e], arena);
        arena_reset(scratch);
    }
    return NULL;
}

struct error *
system_fold(struct engine *engine, const struct system_workflow *workflow, const char *workflow_id,
            const struct history_lineage *lineage, int64_t next_event_id, struct arena *arena,
            void **state)
{
    struct history_range range = {.shard = engine_shard_of(engine, workflow_id),
                                  .lineage = *lineage,
                                  .from_event_id = 1,
                                  .to_event_id = next_event_id,
                                  .bytes_max = PAGE_BYTES};
    check(workflow->state_size > 0 && next_event_id > 1);
    *state = arena_zalloc(arena, 1, workflow->state_size);
    while (range.from_event_id < range.to_event_id) {
        scoped(arena_drop) struct arena *scratch = arena_new(0);
        struct history_page page = {0};
        struct error *err = engine_read_history(engine, &range, scratch, &page);
        if (err != NULL)
            return error_copy(arena, err);
        err = fold_page(workflow, &page, *state, arena);
        if (err != NULL)
            return err;
        check(page.next_event_id > range.from_event_id);
        range.from_event_id = page.next_event_id;
    }
    return NULL;
}
