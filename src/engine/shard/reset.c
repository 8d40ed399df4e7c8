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
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"

#define PAGE_BYTES ((size_t)1 << 20)
#define CHAIN_MAX  10000 /* of a chain; more is a ring */

typedef API(WorkflowExecutionSignaledEventAttributes) signal_t;

struct reset_wish {
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
struct reading {
    struct reset_wish *wish;
    struct shard_reader *reader;
    struct rebuild rebuild;
    struct history_line line;
    struct history_branch new_branch;
    int64_t fork, next_event_id; /* of the base run */
    bool is_final;               /* the page has the event at the fork: it goes with the step */
    vector_of(struct history_node) copies; /* of this page */
    const char *next_run_id;               /* that the last event names; NULL: none */
};

/* ---- signals that come again ---- */

static void
take_signal(struct reset_wish *wish, const API(HistoryEvent) *event)
{
    if (event->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED) ||
        wish->request->skip_signal_reapply)
        return;
    const signal_t *signal = event->workflow_execution_signaled_event_attributes;
    vector_push_in(&wish->signals, wish->arena, message_copy(wish->arena, &signal->base));
}

static void
take_after_fork(struct reading *reading, const API(HistoryEvent) *event)
{
    take_signal(reading->wish, event);
    reading->next_run_id = NULL;
    if (event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        reading->next_run_id = arena_text(
            reading->wish->arena,
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
take_buffered(struct reset_wish *wish, const struct run *run)
{
    vector_of(STORED(BufferedEvent) *) all = {0};
    void *value;
    for (size_t cursor = 0; map64_next(run->buffered, &cursor, NULL, &value);)
        vector_push_in(&all, wish->arena, value);
    if (all.count > 1)
        qsort(all.items, all.count, sizeof(all.items[0]), compare_buffered);
    for (size_t i = 0; i < all.count; i++)
        take_signal(wish, all.items[i]->event);
}

static struct error *
read_rest(struct reading *reading, const struct history_line *line, int64_t from, int64_t to)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    while (from < to) {
        struct history_page page;
        arena_reset(scratch);
        struct history_range_wanted wanted = {*line, from, to, PAGE_BYTES};
        struct error *err = shard_reader_history(reading->reader, &wanted, scratch, &page);
        for (size_t i = 0; err == NULL && i < page.count; i++) {
            const API(History) *history;
            err = rebuild_decode(&page.node[i], scratch, &history);
            for (size_t e = 0; err == NULL && e < history->n_events; e++)
                take_after_fork(reading, history->events[e]);
        }
        if (err != NULL)
            return error_copy(reading->wish->arena, err);
        from = page.next_event_id;
    }
    return NULL;
}

/* The runs that the base run went on as. One that is gone by its age ends the chain. */
static struct error *
read_chain(struct reading *reading, const struct run *base)
{
    const struct run *run = base;
    struct error *err = NULL;
    for (int i = 0; i < CHAIN_MAX && err == NULL && reading->next_run_id != NULL; i++) {
        err = shard_reader_run(reading->reader, reading->next_run_id, &run);
        reading->next_run_id = NULL;
        if (err != NULL || run == NULL)
            return err;
        struct history_line line = run_line(run, reading->wish->arena);
        err = read_rest(reading, &line, 1, run->core->next_event_id);
    }
    if (err == NULL)
        take_buffered(reading->wish, run);
    return err;
}

/* ---- events that are kept ---- */

static void
copy_node(struct reading *reading, const struct history_node *node, const API(History) *history,
          size_t kept, struct arena *scratch)
{
    struct history_node copy = *node;
    if (kept < history->n_events) {
        API(History) cut = *history;
        cut.n_events = kept;
        copy.events = message_encode(scratch, &cut.base);
        copy.next_event_id = node->first_event_id + (int64_t)kept;
    }
    rebuild_add(&reading->rebuild, history->events, kept, copy.events.length, scratch);
    if (kept > 0)
        vector_push_in(&reading->copies, scratch, copy);
}

/* One batch: what is before the fork is kept, what is behind it is looked through. */
static struct error *
read_node(struct reading *reading, const struct history_node *node, struct arena *scratch)
{
    const API(History) *history;
    struct error *err = rebuild_decode(node, scratch, &history);
    if (err != NULL)
        return err;
    int64_t before = reading->fork - node->first_event_id;
    size_t kept = before >= (int64_t)history->n_events ? history->n_events : (size_t)before;
    copy_node(reading, node, history, kept, scratch);
    if (kept == history->n_events)
        return NULL;
    reading->is_final = true;
    err = reset_check_event(history->events[kept], reading->wish->arena);
    for (size_t i = kept; err == NULL && i < history->n_events; i++)
        take_after_fork(reading, history->events[i]);
    return err;
}

/* The batches of the last page wait for the step. */
static void
keep_copies(struct reading *reading)
{
    struct arena *arena = reading->wish->arena;
    for (size_t i = 0; i < reading->copies.count; i++) {
        struct history_node node = reading->copies.items[i];
        node.events = arena_slice(arena, node.events);
        vector_push_in(&reading->wish->nodes, arena, node);
    }
}

static struct error *
read_page(struct reading *reading, int64_t from, struct arena *scratch, int64_t *next)
{
    struct history_page page;
    bool is_whole = reading->fork == reading->next_event_id; /* nothing is behind the fork */
    struct history_range_wanted wanted = {reading->line, from, reading->fork + !is_whole,
                                          PAGE_BYTES};
    struct error *err = shard_reader_history(reading->reader, &wanted, scratch, &page);
    if (err != NULL)
        return err;
    memset(&reading->copies, 0, sizeof reading->copies);
    for (size_t i = 0; err == NULL && i < page.count && !reading->is_final; i++) {
        err = read_node(reading, &page.node[i], scratch);
        *next = page.node[i].next_event_id;
    }
    if (err != NULL)
        return err;
    run_compact(reading->rebuild.run);
    reading->is_final = reading->is_final || *next == reading->next_event_id;
    if (reading->is_final) {
        keep_copies(reading);
        return NULL;
    }
    mark("reset_page_written_ahead");
    return shard_reader_write(reading->reader, &reading->new_branch, reading->copies.items,
                              reading->copies.count);
}

static struct error *
read_base(struct reading *reading)
{
    int64_t next = 1;
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    while (!reading->is_final) {
        arena_reset(scratch);
        struct error *err = read_page(reading, next, scratch, &next);
        if (err != NULL)
            return error_copy(reading->wish->arena, err);
    }
    rebuild_end(&reading->rebuild);
    return read_rest(reading, &reading->line, next, reading->next_event_id);
}

/* ---- the step ---- */

static void
wish_drop_run(struct reset_wish *wish)
{
    if (wish->command.rebuilt != NULL)
        run_free(wish->command.rebuilt);
    wish->command.rebuilt = NULL;
}

static struct error *
find_runs(struct reset_wish *wish, struct shard_reader *reader, const struct run **base)
{
    const API(ResetWorkflowExecutionRequest) *request = wish->request;
    const STORED(CurrentRecord) *record = shard_reader_current(reader);
    const char *asked = request->workflow_execution->run_id;
    const struct run *current = NULL;
    struct error *err = NULL;
    *base = NULL;
    const char *current_id = record == NULL ? "" : arena_text(wish->arena, record->run_id);
    if (record != NULL)
        err = shard_reader_run(reader, asked[0] == '\0' ? current_id : asked, base);
    if (err == NULL && *base == NULL)
        err = errors_entity_not_exists(
            wish->arena, NULL, "Workflow execution not found.  WorkflowId: %s%s%s",
            request->workflow_execution->workflow_id, asked[0] == '\0' ? "" : ", RunId: ", asked);
    if (err == NULL)
        err = shard_reader_run(reader, current_id, &current);
    if (err != NULL)
        return err;
    const char *repeat = current == NULL ? NULL : reset_find_repeat(current, request);
    bool is_late = wish->only_current != NULL && strcmp(wish->only_current, current_id) != 0;
    wish->is_repeat = repeat != NULL || is_late;
    wish->run_id = repeat == NULL ? NULL : arena_text(wish->arena, repeat);
    return wish->is_repeat ? NULL : reset_check_base(*base, request, wish->arena);
}

/* Begins anew: it may be asked again after the shard was lost. */
static void
fill_command(struct reset_wish *wish, const struct run *base, const struct facts *facts)
{
    const STORED(RunRecord) *core = base->core;
    const char *chain = core->chain_request_id;
    memset(&wish->signals, 0, sizeof wish->signals);
    memset(&wish->nodes, 0, sizeof wish->nodes);
    wish->command = (struct reset_command){
        .request = wish->request,
        .rebuilt = reset_new_run(base, facts),
        .base_run_id = arena_text(wish->arena, core->run_id),
        .chain_request_id =
            arena_text(wish->arena, chain[0] == '\0' ? core->create_request_id : chain),
        .jitter_start = core->jitter_start,
    };
}

static struct error *
read_all(struct reset_wish *wish, struct shard_reader *reader, const struct run *base)
{
    struct facts facts;
    struct error *err = shard_reader_facts(reader, &facts);
    if (err != NULL)
        return err;
    fill_command(wish, base, &facts);
    struct reset_command *command = &wish->command;
    struct reading reading = {.wish = wish,
                              .reader = reader,
                              .line = run_line(base, wish->arena),
                              .new_branch = run_branch(command->rebuilt),
                              .fork = wish->request->decision_finish_event_id,
                              .next_event_id = base->core->next_event_id};
    rebuild_begin(&reading.rebuild, command->rebuilt, &facts, wish->arena);
    err = read_base(&reading);
    if (err == NULL && !wish->request->skip_signal_reapply)
        err = read_chain(&reading, base);
    const STORED(RunRecord) *core = command->rebuilt->core;
    if (err == NULL)
        command->fork_version = core->versions[core->n_versions - 1]->event_version;
    command->children = (int64_t)map64_count(command->rebuilt->children);
    command->signals = wish->signals.items;
    command->signal_count = wish->signals.count;
    return err;
}

static struct error *
prepare_reset(void *context, struct shard_reader *reader)
{
    struct reset_wish *wish = context;
    const struct run *base;
    wish_drop_run(wish);
    struct error *err = find_runs(wish, reader, &base);
    if (err != NULL || wish->is_repeat)
        return err;
    return read_all(wish, reader, base);
}

static struct error *
decide_reset(void *context, struct step *step)
{
    struct reset_wish *wish = context;
    if (wish->is_repeat) {
        mark("request_deduplicated");
        return NULL;
    }
    step->nodes = wish->nodes.items;
    step->node_count = wish->nodes.count;
    return command_reset(step, &wish->command, &wish->run_id);
}

struct error *
shard_reset(struct shard *shard, const struct shard_reset *wanted, struct arena *arena,
            const char **run_id)
{
    const API(ResetWorkflowExecutionRequest) *request = wanted->request;
    struct reset_wish wish = {
        .request = request, .arena = arena, .only_current = wanted->only_current_run_id};
    struct shard_step step = {
        .key = {wanted->domain_id, request->workflow_execution->workflow_id, ""},
        .needs_run = true,
        .begins_anew = true,
        .range_id = wanted->range_id,
        .prepare = prepare_reset,
        .decide = decide_reset,
        .context = &wish};
    struct error *err = shard_step(shard, &step, arena);
    wish_drop_run(&wish);
    *run_id = wish.run_id;
    return err;
}

struct error *
tenure_auto_reset(struct tenure *tenure, const struct run_key *key, const struct auto_reset *reset,
                  struct arena *arena)
{
    struct shard *shard = tenure->shard;
    struct facts facts = {.random = &shard->random};
    struct uuid uuid = facts_uuid(&facts);
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
        mark("run_reset_by_bad_binary");
    return err;
}
