/* decision.c - see decision.h.
 *
 * The history of a decision begins at its first event, or, for a worker that has the run in its
 * cache, behind the last decision it saw. It ends with the event that the decision was started. A
 * transient decision has two events that are not stored: they go behind the stored ones, with the
 * last page. */
#include "api/worker/decision.h"

#include "api/call/tokens.h"
#include "base/check.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RESPONSE_HISTORY 8 /* field of PollForDecisionTaskResponse */

struct slice
lineage_bytes(const struct history_lineage *lineage, struct arena *arena)
{
    struct history_branch own = history_lineage_own(lineage), *branch = &own;
    uint8_t *bytes = arena_alloc(arena, sizeof branch->tree.bytes + sizeof branch->branch.bytes);
    memcpy(bytes, branch->tree.bytes, sizeof branch->tree.bytes);
    memcpy(bytes + sizeof branch->tree.bytes, branch->branch.bytes, sizeof branch->branch.bytes);
    return slice_of(bytes, sizeof branch->tree.bytes + sizeof branch->branch.bytes);
}

static struct slice
transient_records(const struct decision_start *start, struct arena *arena)
{
    if (start->transient_started == NULL)
        return (struct slice){0};
    check(start->transient_scheduled != NULL);
    struct pieces records = pieces_begin(arena);
    pieces_add_event(&records, start->transient_scheduled);
    pieces_add_event(&records, start->transient_started);
    return pieces_join(&records);
}

static size_t
page_nodes_max(const struct api *api, const char *domain_name)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name;
    int64_t size = dynamic_integer(api->options.dynamic, DYNAMIC_HISTORY_PAGE_SIZE, &filter);
    return size <= 0 ? 1 : (size_t)size;
}

/* A batch begins where the history begins, but for one case: the decision before was transient, and
 * its events were stored in one batch when it was completed. Then that batch is looked for. */
static struct error *
read_first_page(struct api *api, const struct started_decision *decision, struct arena *arena,
                struct history_page *page)
{
    struct engine *engine = api->options.engine;
    const struct decision_start *start = decision->start;
    struct history_range range = {
        .shard = engine_shard_of(engine, decision->workflow_id),
        .lineage = start->lineage,
        .from_event_id = start->first_event_id,
        .to_event_id = start->next_event_id,
        .bytes_max = PAGE_BYTES_MAX,
        .nodes_max = page_nodes_max(api, decision->domain_name),
    };
    if (range.from_event_id >= range.to_event_id) {
        *page = (struct history_page){.next_event_id = range.to_event_id};
        return NULL;
    }
    if (start->recent.count > 0) {
        *page = start->recent;
        history_page_cut(page, range.nodes_max);
        return NULL;
    }
    struct error *err = engine_read_history(engine, &range, arena, page);
    if (err == NULL || err->kind != ERR_CORRUPT || start->first_event_id == 1)
        return err;
    range.is_first = true;
    return engine_read_history(engine, &range, arena, page);
}

static struct error *
show_history(struct api *api, const struct started_decision *decision, struct arena *arena,
             API(PollForDecisionTaskResponse) *response, struct pieces *history)
{
    const struct decision_start *start = decision->start;
    struct history_page page = {0};
    struct error *err = read_first_page(api, decision, arena, &page);
    if (err != NULL)
        return err;
    *history = pieces_begin(arena);
    err = pieces_add_page(history, &page, start->first_event_id, start->next_event_id);
    if (err != NULL)
        return err;
    struct slice transient = transient_records(start, arena);
    if (page.next_event_id < start->next_event_id) {
        struct history_token token = {
            .run_id = start->run_id,
            .first_event_id = start->first_event_id,
            .next_event_id = start->next_event_id,
            .position = page.next_event_id,
            .transient = transient,
            .branch = lineage_bytes(&start->lineage, arena),
        };
        response->next_page_token = presence_make_bytes(history_token_write(&token, arena));
    } else {
        pieces_add(history, transient);
    }
    pieces_wrap(history, RESPONSE_HISTORY);
    return NULL;
}

static struct slice
decision_token(const struct started_decision *decision, struct arena *arena)
{
    struct task_token token = {
        .domain_id = decision->domain_id,
        .workflow_id = decision->workflow_id,
        .workflow_type = "",
        .run_id = decision->start->run_id,
        .schedule_id = decision->start->schedule_id,
        .schedule_attempt = decision->start->attempt,
        .activity_id = "",
        .activity_type = "",
    };
    return task_token_write(&token, arena);
}

static API(WorkflowExecution) *
name_execution(const char *workflow_id, const char *run_id, struct arena *arena)
{
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)workflow_id;
    execution->run_id = (char *)run_id;
    return execution;
}

struct error *
decision_show(struct api *api, const struct started_decision *decision, struct arena *arena,
              API(PollForDecisionTaskResponse) *response, struct pieces *history)
{
    const struct decision_start *start = decision->start;
    check(start->next_event_id > 0 && start->started_id > start->schedule_id);
    response->task_token = presence_make_bytes(decision_token(decision, arena));
    response->workflow_execution = name_execution(decision->workflow_id, start->run_id, arena);
    response->workflow_type = (API(WorkflowType) *)start->workflow_type;
    response->previous_started_event_id =
        presence_make_int64(arena, (struct maybe_int64){.is_set = start->previous_started_id > 0,
                                                        .value = start->previous_started_id});
    response->started_event_id = start->started_id;
    response->attempt = start->attempt;
    response->workflow_execution_task_list = (API(TaskList) *)start->task_list;
    response->scheduled_time = presence_make_timestamp(arena, start->scheduled_time);
    response->started_time = presence_make_timestamp(arena, start->started_time);
    response->next_event_id = start->next_event_id;
    response->total_history_bytes = start->history_bytes;
    response->queries = start->queries;
    response->n_queries = start->query_count;
    if (response->n_queries > 0)
        wire_map_sort(arena, response->queries, &response->n_queries);
    return show_history(api, decision, arena, response, history);
}

struct error *
decision_show_query(struct api *api, const struct started_query *query, struct arena *arena,
                    API(PollForDecisionTaskResponse) *response, struct pieces *history)
{
    const struct query_view *view = query->view;
    check(view->next_event_id > 0);
    struct decision_start start = {
        .next_event_id = view->next_event_id,
        .first_event_id = query->is_sticky ? view->next_event_id : 1,
        .run_id = view->run_id,
        .lineage = view->lineage,
    };
    struct started_decision decision = {.domain_id = "",
                                        .domain_name = query->domain_name,
                                        .workflow_id = query->workflow_id,
                                        .start = &start};
    response->workflow_execution = name_execution(query->workflow_id, view->run_id, arena);
    response->workflow_type = (API(WorkflowType) *)view->workflow_type;
    response->previous_started_event_id = presence_make_int64(
        arena, (struct maybe_int64){.is_set = true, .value = view->previous_started_id});
    response->workflow_execution_task_list = message_new(arena, API_TYPE(task_list));
    response->workflow_execution_task_list->name = (char *)view->list;
    response->workflow_execution_task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    response->next_event_id = view->next_event_id;
    response->total_history_bytes = view->history_bytes;
    return show_history(api, &decision, arena, response, history);
}
