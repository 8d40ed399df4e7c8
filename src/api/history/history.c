/* history.c - GetWorkflowExecutionHistory: pages of a run's history, in the bytes they are stored
 * in.
 *
 * A reader without a token gets the history as it is now, in pages; the first page fixes where it
 * ends. A reader that waits gets, behind the last page, a token as long as the run is open, and
 * with it what came since, or waits for it. The close filter gives the last event of a closed run
 * alone. Where it is switched on, clients that can read them get blobs instead of events. What is
 * gone is looked for in the archive (visibility/archived.h). */
#include "api/history/history.h"

#include "api/call/validate.h"
#include "api/visibility/archived.h"
#include "base/check.h"
#include "engine/branches/branches.h"
#include "fiber/clock.h"
#include "wire/presence.h"

#define RESPONSE_HISTORY 1 /* field of GetWorkflowExecutionHistoryResponse */
#define NODES_MAX        1000
#define WAIT_MARGIN      (50 * NS_PER_MS) /* before the caller's deadline */

/* --- the question ---- */

static struct error *
read_token(struct rpc_call *call, const API(GetWorkflowExecutionHistoryRequest) *request,
           struct history_question *question)
{
    question->has_token = request->next_page_token.len > 0;
    if (!question->has_token)
        return NULL;
    struct error *err = history_token_read(presence_read_bytes(request->next_page_token),
                                           call->arena, &question->token);
    if (err != NULL)
        return err;
    const char *run_id = question->key.run_id;
    if (run_id[0] != '\0' && strcmp(run_id, question->token.run_id) != 0)
        return error_new(call->arena, ERR_BAD_REQUEST,
                         "RunID in the request does not match the NextPageToken.");
    question->key.run_id = question->token.run_id;
    return NULL;
}

static size_t
page_size(const struct limits *limits, int32_t asked)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    int64_t size =
        asked > 0 ? asked : dynamic_integer(limits->dynamic, DYNAMIC_HISTORY_PAGE_SIZE, &filter);
    return size <= 0 ? 1 : size > NODES_MAX ? NODES_MAX : (size_t)size;
}

/* When a reader that waits is answered at the latest. */
static int64_t
wait_until(struct rpc_call *call, const struct limits *limits)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    int64_t most = dynamic_duration(limits->dynamic, DYNAMIC_HISTORY_LONG_POLL, &filter);
    int64_t latest = call->arrival.deadline - WAIT_MARGIN;
    int64_t end = clock_monotonic() + most;
    return end < latest ? end : latest;
}

static bool
wants_raw(struct rpc_call *call, const struct limits *limits)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    return dynamic_flag(limits->dynamic, DYNAMIC_RAW_HISTORY, &filter) &&
           api_caller_reads_raw_history(call);
}

static struct error *
read_question(struct rpc_call *call, struct history_question *question)
{
    const API(GetWorkflowExecutionHistoryRequest) *request =
        (const API(GetWorkflowExecutionHistoryRequest) *)call->request;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err != NULL)
        return err;
    *question = (struct history_question){
        .key = key,
        .wants_close_only = request->history_event_filter_type ==
                            API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT),
        .waits = request->wait_for_new_event,
        .wants_raw = wants_raw(call, &limits),
        .nodes_max = page_size(&limits, request->page_size),
        .wait_until = wait_until(call, &limits),
    };
    return read_token(call, request, question);
}

/* --- the answer ----------------------------------------------------------------------------------
 */

/* A batch begins where the pages before ended. If none does, the token was tampered with, or the
 * history is damaged: is there anything at that place? */
static struct error *
explain_page(struct api *api, const struct history_question *question, struct history_range range,
             struct error *err, struct arena *arena)
{
    struct history_page page;
    range.is_first = true;
    range.nodes_max = 1;
    bool is_forged = question->has_token && err->kind == ERR_CORRUPT &&
                     engine_read_history(api->options.engine, &range, arena, &page) == NULL;
    return is_forged ? error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.") : err;
}

/* One page of the range. */
static struct error *
read_page(struct api *api, const struct history_question *question,
          const struct history_state *state, int64_t from, int64_t to, struct arena *arena,
          struct history_page *page)
{
    struct history_range range = {
        .shard = engine_shard_of(api->options.engine, question->key.workflow_id),
        .lineage = state->lineage,
        .from_event_id = from,
        .to_event_id = to,
        .bytes_max = PAGE_BYTES_MAX,
        .nodes_max = question->nodes_max,
    };
    struct error *err = engine_read_history(api->options.engine, &range, arena, page);
    return err == NULL ? NULL : explain_page(api, question, range, err, arena);
}

static struct slice
make_token(const struct history_state *state, struct arena *arena, struct history_token token)
{
    token.run_id = state->run_id;
    token.branch = lineage_bytes(&state->lineage, arena);
    return history_token_write(&token, arena);
}

/* The close filter: the last event of a closed run; nothing while it is open. */
static struct error *
ask_close(struct api *api, const struct history_question *question,
          const struct history_state *state, struct arena *arena, struct history_answer *answer)
{
    if (!state->is_open) {
        struct history_page page = {0};
        struct error *err = read_page(api, question, state, state->close_batch_event_id,
                                      state->next_event_id, arena, &page);
        if (err == NULL && question->wants_raw) /* all of the last batch */
            return raw_add_page(&answer->raw, &page, state->close_batch_event_id,
                                state->next_event_id, arena);
        return err != NULL ? err : pieces_add_last(&answer->history, &page);
    }
    answer->must_wait = question->waits;
    answer->next_event_id = HISTORY_END_ONLY;
    if (question->waits)
        answer->token = make_token(state, arena,
                                   (struct history_token){.first_event_id = 1,
                                                          .next_event_id = state->next_event_id,
                                                          .is_running = true});
    return NULL;
}

/* What part of the history is meant: all of it as it is now, what is left of what was found before,
 * or what came since. */
static void
choose_range(const struct history_question *question, const struct history_state *state,
             int64_t *from, int64_t *to)
{
    const struct history_token *token = &question->token;
    *from = 1;
    *to = state->next_event_id;
    if (question->has_token && token->position > 0) {
        *from = token->position;
        *to = token->next_event_id < *to ? token->next_event_id : *to;
    } else if (question->has_token) {
        *from = token->next_event_id;
    }
    check(*from >= 1); /* history_token_read promises it of tokens */
}

static struct error *
add_page(const struct history_question *question, const struct history_page *page, int64_t from,
         int64_t to, struct history_answer *answer)
{
    if (question->wants_raw)
        return raw_add_page(&answer->raw, page, from, to, answer->history.arena);
    return pieces_add_page(&answer->history, page, from, to);
}

static struct error *
add_transient(const struct history_question *question, struct history_answer *answer)
{
    if (question->wants_raw)
        return raw_add_records(&answer->raw, question->token.transient, answer->history.arena);
    pieces_add(&answer->history, question->token.transient);
    return NULL;
}

static struct error *
ask_all(struct api *api, const struct history_question *question, const struct history_state *state,
        struct arena *arena, struct history_answer *answer)
{
    int64_t from, to;
    struct history_page page = {0};
    choose_range(question, state, &from, &to);
    bool is_empty = from >= to;
    if (!is_empty) {
        struct error *err = read_page(api, question, state, from, to, arena, &page);
        if (err == NULL)
            err = add_page(question, &page, from, to, answer);
        if (err != NULL)
            return err;
    }
    bool has_next_page = !is_empty && page.next_event_id < to;
    bool may_get_more = question->waits && (state->is_open || to < state->next_event_id);
    if (!has_next_page) {
        struct error *err = add_transient(question, answer);
        if (err != NULL)
            return err;
    }
    if (has_next_page || may_get_more)
        answer->token =
            make_token(state, arena,
                       (struct history_token){.first_event_id = from < to ? from : to,
                                              .next_event_id = to,
                                              .is_running = state->is_open,
                                              .position = has_next_page ? page.next_event_id : 0,
                                              .transient = question->token.transient});
    answer->must_wait = is_empty && may_get_more;
    answer->next_event_id = to;
    return NULL;
}

/* The current branch of the run has changed since the first page. A reader of pages goes on with
 * the branch that it began with; one that waits for more gets the new branch from its first event
 * on, and tokens of that: no page, and no sequence of pages, has events of both. */
static struct error *
find_other_history(struct api *api, struct history_question *question, struct arena *arena,
                   struct history_state *state)
{
    struct run_branches branches;
    struct error *err = engine_find_branches(api->options.engine, &question->key, arena, &branches);
    if (err != NULL)
        return err;
    for (size_t i = 0; i < branches.count; i++) {
        const struct run_branch *branch = &branches.branch[i];
        if (!slice_equal(question->token.branch, lineage_bytes(&branch->lineage, arena)))
            continue;
        if (question->waits) {
            question->has_token = false;
            question->token = (struct history_token){0};
            return NULL;
        }
        state->lineage = branch->lineage;
        state->next_event_id = versions_last(branch->versions).event_id + 1;
        state->is_open = false;
        return NULL;
    }
    return error_new(arena, ERR_BAD_REQUEST, "Invalid NextPageToken.");
}

struct error *
history_read(struct api *api, struct history_question *question, bool may_wait, struct arena *arena,
             struct history_answer *answer)
{
    struct history_state state = {0};
    struct error *err = engine_history_state(api->options.engine, &question->key, arena, &state);
    if (err != NULL)
        return err;
    question->key.run_id = state.run_id;
    struct slice branch = lineage_bytes(&state.lineage, arena);
    if (question->has_token && !slice_equal(question->token.branch, branch))
        err = find_other_history(api, question, arena, &state);
    if (err != NULL)
        return err;
    *answer = (struct history_answer){.history = pieces_begin(arena)};
    err = question->wants_close_only ? ask_close(api, question, &state, arena, answer)
                                     : ask_all(api, question, &state, arena, answer);
    if (err != NULL && err->kind == ERR_CORRUPT) { /* perhaps it was deleted meanwhile */
        struct error *gone =
            engine_history_state(api->options.engine, &question->key, arena, &state);
        return gone != NULL ? gone : err;
    }
    answer->must_wait = answer->must_wait && may_wait;
    if (err == NULL)
        pieces_wrap(&answer->history, RESPONSE_HISTORY);
    return err;
}

void
history_fill(struct rpc_call *call, const struct history_answer *answer)
{
    API(GetWorkflowExecutionHistoryResponse) *response =
        (API(GetWorkflowExecutionHistoryResponse) *)call->response;
    check(!answer->must_wait);
    response->next_page_token = presence_make_bytes(answer->token);
    response->raw_history = answer->raw.blobs.items;
    response->n_raw_history = answer->raw.blobs.count;
    call->pieces = answer->history.list.items;
    call->piece_count = answer->history.list.count;
}

struct error *
api_get_history(struct rpc_call *call)
{
    struct history_question question;
    struct history_answer answer;
    if (archived_has_history(call, NULL)) /* the pages before came from there */
        return archived_get_history(call);
    struct error *err = read_question(call, &question);
    if (err != NULL)
        return err;
    bool may_wait = question.wait_until > clock_monotonic();
    err = history_read(api_of(call), &question, may_wait, call->arena, &answer);
    if (err != NULL)
        return archived_has_history(call, err) ? archived_get_history(call) : err;
    if (answer.must_wait && !atomic_load(&api_of(call)->is_draining))
        return history_wait_begin(call, &question, answer.next_event_id);
    answer.must_wait = false;
    history_fill(call, &answer);
    return NULL;
}
