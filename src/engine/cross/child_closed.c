/* child_closed.c - a child that its parent waits for has ended already.
 *
 * The end of a child is told to its parent by a row of the child. That may have been told to a
 * history of the parent that lost, after a failover by force, and the row is gone. So when a parent
 * comes back to a child that it has started (its history was replaced by another one, or the start
 * was repeated), it looks for itself: along the chain of runs that it started, even if another
 * workflow has their id now. */
#include "base/check.h"
#include "engine/inside.h"
#include "engine/run/rebuild.h"
#include "engine/run/run_key.h"
#include "fiber/probe.h"

#define BATCH_BYTES ((size_t)1 << 20)

struct closed_look {
    INTERNAL(ChildRun) * told;
    struct arena *arena;
};

static void
look_closed(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct closed_look *look = context;
    look->told->run_id = (char *)arena_text(look->arena, run->core->run_id);
    look->told->first_run_id = (char *)arena_text(look->arena, run->core->first_execution_run_id);
    look->told->is_open = run_is_open(run);
}

static struct error *
serve_find_child(void *engine, struct owner owner, const void *request, struct arena *arena,
                 void *answer)
{
    struct closed_look look = {answer, arena};
    struct run_key key = run_key_from_message(request);
    return shard_look(engine_served_shard(engine, owner), &key, look_closed, &look, arena);
}

/* It only looks. No answer: the parent's row is worked off again. */
static const struct route_question find_child_question = {
    .name = "shard.find_child",
    .request = INTERNAL_TYPE(run_key),
    .answer = INTERNAL_TYPE(child_run),
    .serve = serve_find_child,
    .may_come_twice = true,
};

/* The last event of a closed run; NULL: it is not closed. */
static struct error *
read_end(struct cross_task_work *work, const struct run_key *key, const API(HistoryEvent) **end)
{
    struct history_state state;
    check(*end == NULL && key->run_id[0] != '\0');
    struct error *err = engine_history_state(work->engine, key, work->arena, &state);
    if (err != NULL || state.is_open)
        return err;
    struct history_range range = {.shard = engine_shard_of(work->engine, key->workflow_id),
                                  .lineage = state.lineage,
                                  .from_event_id = state.next_event_id - 1,
                                  .to_event_id = state.next_event_id,
                                  .is_first = true,
                                  .bytes_max = BATCH_BYTES};
    struct history_page page = {0};
    err = engine_read_history(work->engine, &range, work->arena, &page);
    if (err != NULL || page.count == 0)
        return err;
    const API(History) *history;
    err = rebuild_decode(&page.node[page.count - 1], work->arena, &history);
    /* The batch may be another history's, too, and go on there. */
    for (size_t i = 0; err == NULL && i < history->n_events; i++)
        if (history->events[i]->event_id == state.next_event_id - 1)
            *end = history->events[i];
    return err;
}

/* From the run that `key` names to the last one of its chain, which the key names then, and its
 * end. NULL: that run is open, and will tell. One that is not here yet will tell when it comes. */
static struct error *
follow_chain(struct cross_task_work *work, struct run_key *key, const API(HistoryEvent) **end)
{
    for (;;) {
        *end = NULL;
        struct error *err = read_end(work, key, end);
        bool goes_on = err == NULL && *end != NULL &&
                       (*end)->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW);
        if (!goes_on)
            return err;
        probe("child_goes_on_elsewhere");
        key->run_id =
            (*end)->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    }
}

struct closed_request {
    int64_t initiated_id;
    struct child_close close;
};

static struct error *
decide_closed(void *context, struct step *step)
{
    const struct closed_request *wanted = context;
    return command_child_closed(step, wanted->initiated_id, &wanted->close);
}

struct error *
cross_task_report_closed(struct cross_task_work *work, const STORED(PendingChild) *child,
                         const char *run_id)
{
    struct run_key key = {child->domain_id, child->workflow_id, ""};
    check(run_id[0] != '\0'); /* it was started */
    INTERNAL(RunKey) names = run_key_to_message(&key);
    INTERNAL(ChildRun) found = INTERNAL_VALUE(CHILD_RUN__INIT);
    struct error *err = engine_ask(work->engine, key.workflow_id, &find_child_question, &names,
                                   work->arena, &found);
    if (err != NULL)
        return cross_task_is_void(err) ? NULL : err;
    bool has_id = strcmp(found.first_run_id, run_id) == 0;
    if (has_id && found.is_open)
        return NULL; /* it will tell */
    if (!has_id)
        probe("id_of_child_is_used_again");
    key.run_id = has_id ? found.run_id : run_id;
    const API(HistoryEvent) *end = NULL;
    err = follow_chain(work, &key, &end);
    if (err != NULL || end == NULL)
        return cross_task_is_void(err) ? NULL : err;
    probe("parent_finds_child_closed");
    struct closed_request wanted = {.initiated_id = child->initiated_id,
                                    .close = {.workflow_id = child->workflow_id,
                                              .run_id = key.run_id,
                                              .first_run_id = run_id,
                                              .event = end}};
    err = cross_task_step_source(work, decide_closed, &wanted);
    return cross_task_is_void(err) ? NULL : err;
}
