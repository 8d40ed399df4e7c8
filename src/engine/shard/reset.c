/* reset.c - a workflow is reset: its histories are read, the run is rebuilt up to the fork, and one
 * step makes it the current one. See shard.h, docs/design/007.
 *
 * Everything is read under the lock of the workflow id. The batches before the fork are copied to
 * the new branch: a page at a time ahead of the step, the last page with it. What is written ahead
 * and never used, because the shard was lost, is garbage under a name that nobody knows. */
#include <stdlib.h>

#include "base/check.h"
#include "base/vector.h"
#include "engine/run/rebuild.h"
#include "engine/shard/inside.h"
#include "engine/shard/step.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define PAGE_BYTES ((size_t)1 << 20)
#define CHAIN_MAX  10000 /* of a chain; more is a ring */

typedef API(WorkflowExecutionSignaledEventAttributes) signal_t;

struct reset_request {
    const API(ResetWorkflowExecutionRequest) *request;
    struct arena *arena;
    struct reset_command command;
    vector_of(const signal_t *) signals;
    vector_of(struct history_node) nodes; /* of the last page; in the arena */
    const char *only_current;             /* nothing is done if another run is; NULL: any */
    const char *run_id;                   /* the answer */
    bool is_repeat;
};

/* A history on its way into the new run. */
struct reset_scan {
    struct reset_request *resetting;
    struct shard_reader *reader;
    struct rebuild rebuild;
    struct history_lineage lineage;
    struct history_branch new_branch;
    int64_t fork, next_event_id; /* of the base run */
    bool is_final;               /* the page has the event at the fork: it goes with the step */
    vector_of(struct history_node) copies; /* of this page */
    const char *next_run_id;               /* that the last event names; NULL: none */
};

/* ---- signals that come again ---- */

static void
take_signal(struct reset_request *resetting, const API(HistoryEvent) *event)
{
    if (event->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED) ||
        resetting->request->skip_signal_reapply)
        return;
    const signal_t *signal = event->workflow_execution_signaled_event_attributes;
    vector_push_in(&resetting->signals, resetting->arena,
                   message_copy(resetting->arena, &signal->base));
}

static void
take_after_fork(struct reset_scan *reset_scan, const API(HistoryEvent) *event)
{
    take_signal(reset_scan->resetting, event);
    reset_scan->next_run_id = NULL;
    if (event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        reset_scan->next_run_id = arena_text(
            reset_scan->resetting->arena,
            event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
}

/* What the run has taken and not yet written into its history. */
static int
compare_buffered(const void *one, const void *other)
{
    uint64_t a = (*(STORED(BufferedEvent) *const *)one)->number;
    uint64_t b = (*(STORED(BufferedEvent) *const *)other)->number;
    return (a > b) - (a < b);
}

static void
take_buffered(struct reset_request *resetting, const struct run *run)
{
    vector_of(STORED(BufferedEvent) *) all = {0};
    void *value;
    for (size_t cursor = 0; map64_next(run->buffered, &cursor, NULL, &value);)
        vector_push_in(&all, resetting->arena, value);
    if (all.count > 1)
        qsort(all.items, all.count, sizeof(all.items[0]), compare_buffered);
    for (size_t i = 0; i < all.count; i++)
        take_signal(resetting, all.items[i]->event);
}

static struct error *
read_rest(struct reset_scan *reset_scan, const struct history_lineage *lineage, int64_t from,
          int64_t to)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    while (from < to) {
        struct history_page page;
        arena_reset(scratch);
        struct history_range_wanted wanted = {*lineage, from, to, PAGE_BYTES};
        struct error *err = shard_reader_history(reset_scan->reader, &wanted, scratch, &page);
        for (size_t i = 0; err == NULL && i < page.count; i++) {
            const API(History) *history;
            err = rebuild_decode(&page.node[i], scratch, &history);
            for (size_t e = 0; err == NULL && e < history->n_events; e++)
                take_after_fork(reset_scan, history->events[e]);
        }
        if (err != NULL)
            return error_copy(reset_scan->resetting->arena, err);
        from = page.next_event_id;
    }
    return NULL;
}

/* The runs that the base run went on as. One that is gone by its age ends the chain. */
static struct error *
read_chain(struct reset_scan *reset_scan, const struct run *base)
{
    const struct run *run = base;
    struct error *err = NULL;
    for (int i = 0; i < CHAIN_MAX && err == NULL && reset_scan->next_run_id != NULL; i++) {
        err = shard_reader_run(reset_scan->reader, reset_scan->next_run_id, &run);
        reset_scan->next_run_id = NULL;
        if (err != NULL || run == NULL)
            return err;
        struct history_lineage lineage = run_lineage(run, reset_scan->resetting->arena);
        err = read_rest(reset_scan, &lineage, 1, run->core->next_event_id);
    }
    if (err == NULL)
        take_buffered(reset_scan->resetting, run);
    return err;
}

/* ---- events that are kept ---- */

static void
copy_node(struct reset_scan *reset_scan, const struct history_node *node,
          const API(History) *history, size_t kept, struct arena *scratch)
{
    struct history_node copy = *node;
    if (kept < history->n_events) {
        API(History) cut = *history;
        cut.n_events = kept;
        copy.events = message_encode(scratch, &cut.base);
        copy.next_event_id = node->first_event_id + (int64_t)kept;
    }
    rebuild_add(&reset_scan->rebuild, history->events, kept, copy.events.length, scratch);
    if (kept > 0)
        vector_push_in(&reset_scan->copies, scratch, copy);
}

/* One batch: what is before the fork is kept, what is behind it is looked through. */
static struct error *
read_node(struct reset_scan *reset_scan, const struct history_node *node, struct arena *scratch)
{
    const API(History) *history;
    struct error *err = rebuild_decode(node, scratch, &history);
    if (err != NULL)
        return err;
    int64_t before = reset_scan->fork - node->first_event_id;
    size_t kept = before >= (int64_t)history->n_events ? history->n_events : (size_t)before;
    copy_node(reset_scan, node, history, kept, scratch);
    if (kept == history->n_events)
        return NULL;
    reset_scan->is_final = true;
    err = reset_check_event(history->events[kept], reset_scan->resetting->arena);
    for (size_t i = kept; err == NULL && i < history->n_events; i++)
        take_after_fork(reset_scan, history->events[i]);
    return err;
}

/* The batches of the last page wait for the step. */
static void
keep_copies(struct reset_scan *reset_scan)
{
    struct arena *arena = reset_scan->resetting->arena;
    for (size_t i = 0; i < reset_scan->copies.count; i++) {
        struct history_node node = reset_scan->copies.items[i];
        node.events = arena_slice(arena, node.events);
        vector_push_in(&reset_scan->resetting->nodes, arena, node);
    }
}

static struct error *
read_page(struct reset_scan *reset_scan, int64_t from, struct arena *scratch, int64_t *next)
{
    struct history_page page;
    bool is_whole = reset_scan->fork == reset_scan->next_event_id; /* nothing is behind the fork */
    struct history_range_wanted wanted = {reset_scan->lineage, from, reset_scan->fork + !is_whole,
                                          PAGE_BYTES};
    struct error *err = shard_reader_history(reset_scan->reader, &wanted, scratch, &page);
    if (err != NULL)
        return err;
    memset(&reset_scan->copies, 0, sizeof reset_scan->copies);
    for (size_t i = 0; err == NULL && i < page.count && !reset_scan->is_final; i++) {
        err = read_node(reset_scan, &page.node[i], scratch);
        *next = page.node[i].next_event_id;
    }
    if (err != NULL)
        return err;
    run_compact(reset_scan->rebuild.run);
    reset_scan->is_final = reset_scan->is_final || *next == reset_scan->next_event_id;
    if (reset_scan->is_final) {
        keep_copies(reset_scan);
        return NULL;
    }
    probe("reset_page_written_ahead");
    return shard_reader_write(reset_scan->reader, &reset_scan->new_branch, reset_scan->copies.items,
                              reset_scan->copies.count);
}

static struct error *
read_base(struct reset_scan *reset_scan)
{
    int64_t next = 1;
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    while (!reset_scan->is_final) {
        arena_reset(scratch);
        struct error *err = read_page(reset_scan, next, scratch, &next);
        if (err != NULL)
            return error_copy(reset_scan->resetting->arena, err);
    }
    rebuild_end(&reset_scan->rebuild);
    return read_rest(reset_scan, &reset_scan->lineage, next, reset_scan->next_event_id);
}

/* ---- the step ---- */

static void
reset_drop_run(struct reset_request *resetting)
{
    if (resetting->command.rebuilt != NULL)
        run_free(resetting->command.rebuilt);
    resetting->command.rebuilt = NULL;
}

static struct error *
find_runs(struct reset_request *resetting, struct shard_reader *reader, const struct run **base)
{
    const API(ResetWorkflowExecutionRequest) *request = resetting->request;
    const STORED(CurrentRecord) *record = shard_reader_current(reader);
    const char *asked = request->workflow_execution->run_id;
    const struct run *current = NULL;
    struct error *err = NULL;
    *base = NULL;
    const char *current_id = record == NULL ? "" : arena_text(resetting->arena, record->run_id);
    if (record != NULL)
        err = shard_reader_run(reader, asked[0] == '\0' ? current_id : asked, base);
    if (err == NULL && *base == NULL)
        err = errors_entity_not_exists(
            resetting->arena, NULL, "Workflow execution not found.  WorkflowId: %s%s%s",
            request->workflow_execution->workflow_id, asked[0] == '\0' ? "" : ", RunId: ", asked);
    if (err == NULL)
        err = shard_reader_run(reader, current_id, &current);
    if (err != NULL)
        return err;
    const char *repeat = current == NULL ? NULL : reset_find_repeat(current, request);
    bool is_late =
        resetting->only_current != NULL && strcmp(resetting->only_current, current_id) != 0;
    resetting->is_repeat = repeat != NULL || is_late;
    resetting->run_id = repeat == NULL ? NULL : arena_text(resetting->arena, repeat);
    return resetting->is_repeat ? NULL : reset_check_base(*base, request, resetting->arena);
}

/* Starts over: it may be asked again after the shard was lost. */
static void
fill_command(struct reset_request *resetting, const struct run *base,
             const struct run_context *context)
{
    const STORED(RunRecord) *core = base->core;
    const char *chain = core->chain_request_id;
    memset(&resetting->signals, 0, sizeof resetting->signals);
    memset(&resetting->nodes, 0, sizeof resetting->nodes);
    resetting->command = (struct reset_command){
        .request = resetting->request,
        .rebuilt = reset_new_run(base, context),
        .base_run_id = arena_text(resetting->arena, core->run_id),
        .chain_request_id =
            arena_text(resetting->arena, chain[0] == '\0' ? core->create_request_id : chain),
        .jitter_start = core->jitter_start,
    };
}

static struct error *
read_all(struct reset_request *resetting, struct shard_reader *reader, const struct run *base)
{
    struct run_context context;
    struct error *err = shard_reader_context(reader, &context);
    if (err != NULL)
        return err;
    fill_command(resetting, base, &context);
    struct reset_command *command = &resetting->command;
    struct reset_scan reset_scan = {.resetting = resetting,
                                    .reader = reader,
                                    .lineage = run_lineage(base, resetting->arena),
                                    .new_branch = run_branch(command->rebuilt),
                                    .fork = resetting->request->decision_finish_event_id,
                                    .next_event_id = base->core->next_event_id};
    rebuild_begin(&reset_scan.rebuild, command->rebuilt, &context, resetting->arena);
    err = read_base(&reset_scan);
    if (err == NULL && !resetting->request->skip_signal_reapply)
        err = read_chain(&reset_scan, base);
    const STORED(RunRecord) *core = command->rebuilt->core;
    if (err == NULL)
        command->fork_version = core->versions[core->n_versions - 1]->event_version;
    command->children = (int64_t)map64_count(command->rebuilt->children);
    command->signals = resetting->signals.items;
    command->signal_count = resetting->signals.count;
    return err;
}

static struct error *
prepare_reset(void *context, struct shard_reader *reader)
{
    struct reset_request *resetting = context;
    const struct run *base;
    check(reader->workflow->lock.owner == fiber_self());
    reset_drop_run(resetting);
    struct error *err = find_runs(resetting, reader, &base);
    if (err != NULL || resetting->is_repeat)
        return err;
    return read_all(resetting, reader, base);
}

static struct error *
decide_reset(void *context, struct step *step)
{
    struct reset_request *resetting = context;
    if (resetting->is_repeat) {
        probe("request_deduplicated");
        return NULL;
    }
    check(resetting->command.rebuilt != NULL);
    step->nodes = resetting->nodes.items;
    step->node_count = resetting->nodes.count;
    return command_reset(step, &resetting->command, &resetting->run_id);
}

struct error *
shard_reset(struct shard *shard, const struct shard_reset *wanted, struct arena *arena,
            const char **run_id)
{
    const API(ResetWorkflowExecutionRequest) *request = wanted->request;
    struct reset_request resetting = {
        .request = request, .arena = arena, .only_current = wanted->only_current_run_id};
    struct shard_step step = {
        .key = {wanted->domain_id, request->workflow_execution->workflow_id, ""},
        .needs_run = true,
        .begins_again = true,
        .range_id = wanted->range_id,
        .prepare = prepare_reset,
        .decide = decide_reset,
        .context = &resetting};
    struct error *err = shard_step(shard, &step, arena);
    reset_drop_run(&resetting);
    *run_id = resetting.run_id;
    return err;
}

struct error *
tenure_auto_reset(struct tenure *tenure, const struct run_key *key, const struct auto_reset *reset,
                  struct arena *arena)
{
    struct shard *shard = tenure->shard;
    struct run_context context = {.random = &shard->random};
    struct uuid uuid = run_context_uuid(&context);
    char request_id[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, request_id);
    API(WorkflowExecution) execution;
    uber__cadence__api__v1__workflow_execution__init(&execution);
    execution.workflow_id = (char *)key->workflow_id;
    execution.run_id = (char *)reset->run_id;
    API(ResetWorkflowExecutionRequest) request;
    uber__cadence__api__v1__reset_workflow_execution_request__init(&request);
    request.workflow_execution = &execution;
    request.reason = (char *)reset->reason;
    request.decision_finish_event_id = reset->fork;
    request.request_id = request_id;
    struct shard_reset wanted = {.domain_id = key->domain_id,
                                 .request = &request,
                                 .only_current_run_id = reset->current_run_id,
                                 .range_id = tenure->range_id};
    const char *run_id;
    struct error *err = shard_reset(shard, &wanted, arena, &run_id);
    if (err == NULL)
        probe("run_reset_by_bad_binary");
    return err;
}
