/* read.c - what has to be read before events of another cluster are applied. See incoming.h.
 *
 * A history that wins becomes the state of its run: it is applied from its first event on, to a run
 * of its own, along its lineage. A run that begins with a reset has the first events of another
 * run: they are copied, as the cluster that reset it has copied them, so that the two runs may go
 * at different times. */
#include "base/check.h"
#include "engine/incoming/incoming.h"
#include "engine/run/rebuild.h"
#include "engine/shard/context.h"
#include "engine/shard/step.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_BYTES ((size_t)1 << 20)

struct run *
incoming_name_run(const struct run_key *key)
{
    struct run *run = run_new();
    run->core->format = RUN_RECORD_FORMAT;
    run->core->domain_id = run_keep_text(run, key->domain_id);
    run->core->workflow_id = run_keep_text(run, key->workflow_id);
    run->core->run_id = run_keep_text(run, key->run_id);
    return run;
}

void
incoming_name_branch(struct run *run, const struct history_branch *branch)
{
    run->core->tree_id = presence_make_bytes(run_keep_bytes(run, slice_of(branch->tree.bytes, 16)));
    run->core->branch_id =
        presence_make_bytes(run_keep_bytes(run, slice_of(branch->branch.bytes, 16)));
}

static struct error *
wrong(const struct incoming *incoming, const char *why)
{
    return error_new(incoming->arena, ERR_BAD_REQUEST, "The batch is wrong: %s.", why);
}

/* ---- another history wins ---- */

static struct error *
rebuild_branch(struct incoming *incoming)
{
    struct shard *shard = incoming->tenure->shard;
    check(incoming->verdict.branch < incoming->local.count && incoming->rebuilt == NULL);
    const struct run_branch *from = &incoming->local.branch[incoming->verdict.branch];
    int64_t next_event_id = incoming->verdict.base.event_id + 1;
    check(next_event_id > 1);
    struct run_context context;
    struct error *err = tenure_read_context(incoming->tenure, incoming->workflow->domain_id,
                                            incoming->arena, &context);
    if (err != NULL)
        return err;
    struct run *run = incoming_name_run(&incoming->events->key);
    incoming->rebuilt = run;
    branches_store(&(struct run_branches){from, 1}, run->core, run->arena);
    run->core->n_versions = 0; /* they come with the events */
    err = run_rebuild(shard->options.store, shard->partition, next_event_id, PAGE_BYTES, &context,
                      run, incoming->arena);
    if (err == NULL && run->core->next_event_id != next_event_id)
        err = wrong(incoming, "it begins inside a batch that is here");
    return err;
}

/* A fork is where a batch ends. */
static struct error *
check_fork(struct incoming *incoming)
{
    struct shard *shard = incoming->tenure->shard;
    check(incoming->verdict.branch < incoming->local.count);
    const struct run_branch *from = &incoming->local.branch[incoming->verdict.branch];
    int64_t base = incoming->verdict.base.event_id;
    check(base > 0);
    struct history_page page;
    struct error *err = store_read_lineage(shard->options.store, shard->partition, &from->lineage,
                                           base, base + 1, 1, incoming->arena, &page);
    if (err != NULL)
        return err;
    bool is_end = page.count > 0 && page.node[page.count - 1].next_event_id == base + 1;
    return is_end ? NULL : wrong(incoming, "it forks inside a batch that is here");
}

/* ---- a reset ---- */

struct reset_copy {
    struct incoming *incoming;
    struct rebuild rebuild;
    struct history_lineage lineage; /* of the base run's history that has the fork */
    struct history_branch branch;
    int64_t fork; /* the first event that is not copied */
};

/* The run that the events begin with, and the version of the last event that they take. */
static const char *
read_base_name(const struct incoming *incoming, int64_t *version)
{
    const API(HistoryEvent) *event = incoming->events->events[0];
    if (event->attributes_case == EVENT_KIND(DECISION_TASK_FAILED)) {
        *version = event->decision_task_failed_event_attributes->fork_event_version;
        return event->decision_task_failed_event_attributes->base_run_id;
    }
    check(event->attributes_case == EVENT_KIND(DECISION_TASK_TIMED_OUT));
    *version = event->decision_task_timed_out_event_attributes->fork_event_version;
    return event->decision_task_timed_out_event_attributes->base_run_id;
}

/* Applies a batch of the base run, or what is before the fork of it. */
static struct error *
copy_node(struct reset_copy *copy, struct history_node *node, struct arena *scratch)
{
    const API(History) *history;
    struct error *err = rebuild_decode(node, scratch, &history);
    if (err != NULL)
        return err;
    API(History) kept = *history;
    if (node->next_event_id > copy->fork) {
        kept.n_events = (size_t)(copy->fork - node->first_event_id);
        node->events = message_encode(scratch, &kept.base);
        node->next_event_id = copy->fork;
    }
    const char *misfit =
        rebuild_try(&copy->rebuild, kept.events, kept.n_events, node->events.length, scratch);
    return misfit == NULL ? NULL : wrong(copy->incoming, misfit);
}

/* All but the last page is written ahead. */
static struct error *
keep_page(struct reset_copy *copy, struct history_page *page, bool is_last)
{
    struct incoming *incoming = copy->incoming;
    struct shard_reader reader = {incoming->tenure, incoming->workflow, incoming->arena};
    check(incoming->nodes.count == 0); /* only those of the last one wait */
    if (!is_last)
        return shard_reader_write(&reader, &copy->branch, page->node, page->count);
    for (size_t i = 0; i < page->count; i++) {
        struct history_node node = page->node[i];
        node.events = arena_slice(incoming->arena, node.events);
        vector_push_in(&incoming->nodes, incoming->arena, node);
    }
    return NULL;
}

static struct error *
copy_base(struct reset_copy *copy)
{
    struct shard *shard = copy->incoming->tenure->shard;
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    for (int64_t from = 1; from < copy->fork;) {
        struct history_page page;
        arena_reset(scratch);
        struct error *err =
            store_read_lineage_on(shard->options.store, shard->partition, &copy->lineage, from,
                                  copy->fork, PAGE_BYTES, scratch, &page);
        for (size_t i = 0; err == NULL && i < page.count; i++)
            err = copy_node(copy, &page.node[i], scratch);
        check(err != NULL || page.next_event_id > from);
        from = page.next_event_id;
        if (err == NULL)
            err = keep_page(copy, &page, from >= copy->fork);
        if (err != NULL)
            return error_copy(copy->incoming->arena, err);
        run_compact(copy->rebuild.run);
    }
    rebuild_end(&copy->rebuild);
    return NULL;
}

static void
lack_all(struct incoming *incoming)
{
    check(incoming->target == NULL && incoming->rebuilt == NULL);
    incoming->verdict.place = BATCH_LACKS_EVENTS;
    incoming->verdict.base = (struct version_item){0};
    incoming->verdict.end =
        (struct version_item){incoming->batch.first_event_id, incoming->batch.event_version};
}

/* The history of the base run that has the event before the fork; false: it is not here. */
static struct error *
find_base(struct incoming *incoming, struct reset_copy *copy, bool *is_here)
{
    int64_t version;
    const char *run_id = read_base_name(incoming, &version);
    struct loaded_run *base = NULL;
    struct error *err =
        workflow_load_run(incoming->tenure, incoming->workflow, run_id, incoming->arena, &base);
    *is_here = false;
    if (err != NULL || base == NULL || base->run->core->is_deleting)
        return err;
    struct run_branches branches = branches_read(base->run->core, incoming->arena);
    size_t index = branches_find_event(&branches, (struct version_item){copy->fork - 1, version});
    *is_here = index < branches.count;
    if (*is_here)
        copy->lineage = branches.branch[index].lineage;
    return NULL;
}

static struct error *
begin_reset(struct incoming *incoming)
{
    struct reset_copy copy = {.incoming = incoming, .fork = incoming->batch.first_event_id};
    check(incoming->target == NULL && incoming->rebuilt == NULL && copy.fork > 1);
    bool is_here;
    struct error *err = find_base(incoming, &copy, &is_here);
    if (err != NULL)
        return err;
    if (!is_here) {
        lack_all(incoming);
        return NULL;
    }
    struct run_context context;
    err = tenure_read_context(incoming->tenure, incoming->workflow->domain_id, incoming->arena,
                              &context);
    if (err != NULL)
        return err;
    struct run *run = incoming_name_run(&incoming->events->key);
    incoming->rebuilt = run;
    copy.branch = (struct history_branch){copy.lineage.tree, run_context_uuid(&context)};
    incoming_name_branch(run, &copy.branch);
    rebuild_begin(&copy.rebuild, run, &context, incoming->arena);
    probe("replicated_reset_begun");
    return copy_base(&copy);
}

/* ---- all of it ---- */

/* What is read from the store must have all that is in memory. */
static struct error *
wait_until_stored(struct incoming *incoming)
{
    struct tenure *tenure = incoming->tenure;
    check(incoming->workflow->lock.owner == fiber_self());
    struct error *err = tenure_wait(tenure, incoming->workflow->newest, incoming->arena);
    return err != NULL ? err : tenure_check_owned(tenure, incoming->arena);
}

static struct error *
read_history(struct incoming *incoming)
{
    struct error *err = wait_until_stored(incoming);
    if (err == NULL && incoming->verdict.place == BATCH_BEGINS_AT_RESET)
        return begin_reset(incoming);
    if (err == NULL && incoming->verdict.place == BATCH_FORKS)
        err = check_fork(incoming);
    if (err == NULL && (incoming->verdict.is_switch || incoming->drops_buffered))
        err = rebuild_branch(incoming);
    return err;
}

struct error *
incoming_read(struct incoming *incoming)
{
    struct loaded_run *begun = NULL;
    struct error *err = NULL;
    bool needs_history = incoming->verdict.place == BATCH_BEGINS_AT_RESET ||
                         incoming->verdict.place == BATCH_FORKS || incoming->verdict.is_switch ||
                         incoming->drops_buffered;
    if (needs_history)
        err = read_history(incoming);
    if (err == NULL && incoming->begun_run_id != NULL)
        err = workflow_load_run(incoming->tenure, incoming->workflow, incoming->begun_run_id,
                                incoming->arena, &begun);
    incoming->has_begun_run = begun != NULL;
    const char *origin = incoming_origin(incoming);
    struct loaded_run *prior = NULL;
    if (err == NULL && origin != NULL) {
        err = workflow_load_run(incoming->tenure, incoming->workflow, origin, incoming->arena,
                                &prior);
        incoming->lacks_prior = prior == NULL;
    }
    if (err == NULL && incoming->verdict.place != BATCH_LACKS_EVENTS)
        err = incoming_load_candidates(incoming);
    if (err == NULL && incoming->tenure->is_over)
        err = tenure_error(incoming->tenure, incoming->arena);
    return err;
}
