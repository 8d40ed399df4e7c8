/* workflows.c - the workflow ids that the owner knows: a lock, the current-run record, loaded runs.
 *
 * An id is found or made, pinned and locked by a fiber, and read from the store under the lock. It
 * is forgotten, the longest unused first, once too many are in memory; one that is pinned is not,
 * so an id with a step that is not durable is never read from the store (it would lack the step).
 *
 * Invariants:
 *   1. pins == 0 exactly while the id is in workflows.idle; then nobody has or wants its lock.
 *   2. weight is the number of ids plus the number of loaded runs. */
#include "engine/shard/workflows.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/watches.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RUNS_KEPT 4 /* of one id, while it is in use; more only as long as they have to */

/* --- ids ---- */

void
workflows_init(struct tenure *tenure, size_t weight_max)
{
    struct workflows *workflows = &tenure->workflows;
    check(weight_max > 0);
    workflows->by_key = map_new();
    workflows->weight_max = weight_max;
    list_init(&workflows->idle);
    list_init(&workflows->undurable);
}

/* Is the workflow's own state what its lock and its pins allow? */
static void
state_check(const struct workflow *workflow)
{
    check(workflow->pins == 0 || list_is_empty(&workflow->node)); /* 1 */
    check(workflow->pins > 0 || workflow->lock.owner == NULL);    /* 1 */
    check(workflow->has_current || workflow->current == NULL);
    check((workflow->current == NULL) == (workflow->current_arena == NULL));
}

static void
run_of_workflow_check(const struct workflow *workflow, const struct loaded_run *loaded)
{
    const STORED(RunRecord) *core = loaded->run->core;
    check(strcmp(core->workflow_id, workflow->workflow_id) == 0);
    check(strcmp(core->domain_id, workflow->domain_id) == 0);
    check(workflow_find_run(workflow, core->run_id) == loaded); /* nobody else has its id */
    check(loaded->undurable <= workflow->pins);
}

void
workflow_check(const struct workflow *workflow)
{
    check(workflow->lock.owner == fiber_self() && workflow->pins > 0);
    state_check(workflow);
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &workflow->runs)
        run_of_workflow_check(workflow, list_entry(node, struct loaded_run, node));
}

/* Walks over all ids. */
static void
workflows_weight_check(const struct workflows *workflows)
{
    size_t cursor = 0, runs = 0;
    void *value;
    while (map_next(workflows->by_key, &cursor, NULL, &value)) {
        const struct workflow *workflow = value;
        state_check(workflow);
        list_each(node, &workflow->runs)
            runs++;
    }
    check(map_count(workflows->by_key) + runs == workflows->weight); /* 2 */
}

void
workflows_check(const struct workflows *workflows)
{
    check(map_count(workflows->by_key) <= workflows->weight); /* 2 */
    if (!CHECK_DEEPLY || workflows->weight > CHECK_ROWS_MAX)
        return;
    ticket_t ticket = 0;
    list_each(node, &workflows->undurable) {
        const struct aftermath *aftermath = list_entry(node, struct aftermath, node);
        check(aftermath->ticket > ticket && aftermath->workflow->pins > 0);
        ticket = aftermath->ticket;
    }
    list_each(node, &workflows->idle)
        check(list_entry(node, struct workflow, node)->pins == 0); /* 1 */
    workflows_weight_check(workflows);
}

static void
weigh(struct tenure *tenure, int by)
{
    check(by == 1 || (by == -1 && tenure->workflows.weight > 0));
    tenure->workflows.weight += (size_t)by;
    metrics_cache_grew(tenure->shard, by);
}

/* A domain id is a UUID: it has no slash. */
static struct slice
workflow_key(const struct run_key *key, struct arena *arena)
{
    size_t domain = strlen(key->domain_id), workflow = strlen(key->workflow_id);
    char *text = arena_alloc(arena, domain + workflow + 1);
    char *at = mempcpy(text, key->domain_id, domain);
    *at++ = '/';
    memcpy(at, key->workflow_id, workflow);
    return slice_of(text, domain + workflow + 1);
}

static struct workflow *
workflow_new(struct tenure *tenure, const struct run_key *key, struct slice map_key)
{
    size_t domain_size = strlen(key->domain_id) + 1, id_size = strlen(key->workflow_id) + 1;
    struct workflow *workflow = memory_zalloc(1, sizeof *workflow + domain_size + id_size);
    char *text = (char *)(workflow + 1);
    workflow->domain_id = memcpy(text, key->domain_id, domain_size);
    workflow->workflow_id = memcpy(text + domain_size, key->workflow_id, id_size);
    fiber_mutex_init(&workflow->lock);
    list_init(&workflow->node);
    list_init(&workflow->runs);
    struct workflow *before = map_put(tenure->workflows.by_key, map_key, workflow);
    check(before == NULL);
    weigh(tenure, 1);
    return workflow;
}

static void
loaded_drop(struct tenure *tenure, struct loaded_run *loaded)
{
    list_remove(&loaded->node);
    run_free(loaded->run);
    memory_free(loaded);
    weigh(tenure, -1);
}

static void
workflow_free(struct tenure *tenure, struct workflow *workflow)
{
    check(workflow->lock.owner == NULL && list_is_empty(&workflow->lock.waiters)); /* 1 */
    list_each_safe(node, &workflow->runs)
        loaded_drop(tenure, list_entry(node, struct loaded_run, node));
    list_remove(&workflow->node);
    arena_free(workflow->current_arena);
    memory_free(workflow);
    weigh(tenure, -1);
}

/* Nobody has a pin. */
static void
workflow_forget(struct tenure *tenure, struct workflow *workflow)
{
    struct arena *arena = arena_new(1024);
    struct run_key key = {.domain_id = workflow->domain_id, .workflow_id = workflow->workflow_id};
    check(workflow->pins == 0);
    struct workflow *removed = map_remove(tenure->workflows.by_key, workflow_key(&key, arena));
    check(removed == workflow);
    workflow_free(tenure, workflow);
    arena_free(arena);
}

/* Forgets what was not used for long. */
static void
workflows_trim(struct tenure *tenure)
{
    struct workflows *workflows = &tenure->workflows;
    while (workflows->weight > workflows->weight_max && !list_is_empty(&workflows->idle))
        workflow_forget(tenure, list_entry(workflows->idle.next, struct workflow, node));
}

static void
workflow_pin(struct workflow *workflow)
{
    workflow->pins++;
    list_remove(&workflow->node);
}

static void
workflow_unpin(struct tenure *tenure, struct workflow *workflow)
{
    check(workflow->pins > 0);
    check(list_is_empty(&workflow->node)); /* 1 */
    if (--workflow->pins > 0)
        return;
    list_push_back(&tenure->workflows.idle, &workflow->node);
    /* Ids that nobody ever used are not kept: there are too many, and callers may make them long.
     */
    if (workflow->current == NULL && list_is_empty(&workflow->runs))
        workflow_forget(tenure, workflow);
    else
        workflows_trim(tenure);
}

struct workflow *
workflow_find(struct tenure *tenure, const struct run_key *key, struct arena *arena)
{
    return map_get(tenure->workflows.by_key, workflow_key(key, arena));
}

struct error *
workflow_lock(struct tenure *tenure, const struct run_key *key, struct arena *arena,
              struct workflow **locked)
{
    struct slice map_key = workflow_key(key, arena);
    struct workflow *workflow = map_get(tenure->workflows.by_key, map_key);
    if (workflow == NULL)
        workflow = workflow_new(tenure, key, map_key);
    workflow_pin(workflow);
    int64_t began = clock_monotonic();
    struct error *err = fiber_mutex_lock(&workflow->lock, arena);
    metrics_cache_waited(tenure->shard, began);
    if (err != NULL) {
        workflow_unpin(tenure, workflow);
        return err;
    }
    if (tenure->is_over) {
        workflow_unlock(tenure, workflow);
        return tenure_error(tenure, arena);
    }
    workflow_check(workflow);
    *locked = workflow;
    return NULL;
}

void
workflow_unlock(struct tenure *tenure, struct workflow *workflow)
{
    workflow_check(workflow);
    check(workflow->newest <= writer_newest(tenure->writer));
    fiber_mutex_unlock(&workflow->lock);
    workflow_unpin(tenure, workflow);
}

/* --- reading ---- */

void
workflow_set_current(struct workflow *workflow, const STORED(CurrentRecord) *current)
{
    struct arena *arena = NULL;
    STORED(CurrentRecord) *copy = NULL;
    check(workflow->lock.owner == fiber_self());
    workflow->has_current = true;
    if (current != NULL) {
        arena = arena_new(512);
        copy = arena_alloc(arena, sizeof *copy);
        *copy = *current;
        copy->run_id = arena_text(arena, current->run_id);
        copy->create_request_id = arena_text(arena, current->create_request_id);
        copy->chain_request_id = arena_text(arena, current->chain_request_id);
        copy->chain_run_id = arena_text(arena, current->chain_run_id);
        if (current->cluster_attribute != NULL)
            copy->cluster_attribute = message_copy(arena, &current->cluster_attribute->base);
        copy->contenders = arena_zalloc(arena, current->n_contenders, sizeof *copy->contenders);
        for (size_t i = 0; i < current->n_contenders; i++)
            copy->contenders[i] = message_copy(arena, &current->contenders[i]->base);
    }
    arena_free(workflow->current_arena); /* `current` may lie in it, until now */
    workflow->current_arena = arena;
    workflow->current = copy;
}

/* May somebody have overtaken this tenure? Then it has to ask. */
static bool
may_be_overtaken(const struct tenure *tenure)
{
#ifdef CADENZA_FAULT_overtaken_owner_reads
    return false;
#endif
    return !tenure->shard->options.is_alone;
}

struct error *
tenure_check_owned(struct tenure *tenure, struct arena *arena)
{
    struct error *err = NULL;
    if (!tenure->is_over && may_be_overtaken(tenure))
        err = writer_wait(tenure->writer, writer_confirm(tenure->writer), arena);
    if (err != NULL && err->kind == ERR_FENCED)
        probe("overtaken_owner_read");
    check(err == NULL || err->kind != ERR_FENCED || tenure->is_over); /* tenure_on_durable */
    if (tenure->is_over)
        return tenure_error(tenure, arena);
    return err == NULL ? NULL : tenure_caller_error(err, arena);
}

/* The same for what was just read, which came with the guard of its moment. No yield. */
static struct error *
check_read(struct tenure *tenure, uint64_t guard, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    check(guard == 0 || guard >= tenure->range_first); /* guards never fall */
    if (!tenure->is_over && guard > tenure->range_id) {
        probe("overtaken_owner_read");
        shard_lose(tenure, error_new(arena, ERR_FENCED, "shard %u has guard %llu, not %llu",
                                     shard->options.number, (unsigned long long)guard,
                                     (unsigned long long)tenure->range_id));
    }
    return tenure->is_over ? tenure_error(tenure, arena) : NULL;
}

struct error *
workflow_load_current(struct tenure *tenure, struct workflow *workflow, struct arena *arena)
{
    check(workflow->lock.owner == fiber_self());
    if (workflow->has_current)
        return NULL;
    STORED(CurrentRecord) *current = NULL;
    struct shard *shard = tenure->shard;
    uint64_t guard = 0;
    struct error *err = current_load(shard->options.store, shard->partition, workflow->domain_id,
                                     workflow->workflow_id, arena, &current,
                                     may_be_overtaken(tenure) ? &guard : NULL);
    if (err == NULL)
        err = check_read(tenure, guard, arena);
    check(!workflow->has_current); /* under the lock nobody else reads it */
    if (err == NULL)
        workflow_set_current(workflow, current);
    return err;
}

struct loaded_run *
workflow_find_run(const struct workflow *workflow, const char *run_id)
{
    list_each(node, &workflow->runs) {
        struct loaded_run *loaded = list_entry(node, struct loaded_run, node);
        if (strcmp(loaded->run->core->run_id, run_id) == 0)
            return loaded;
    }
    return NULL;
}

struct loaded_run *
workflow_add_run(struct tenure *tenure, struct workflow *workflow, struct run *run)
{
    check(workflow->lock.owner == fiber_self());
    check(workflow_find_run(workflow, run->core->run_id) == NULL);
    struct loaded_run *loaded = memory_zalloc(1, sizeof *loaded);
    loaded->run = run;
    list_push_front(&workflow->runs, &loaded->node);
    weigh(tenure, 1);
    return loaded;
}

#ifdef CADENZA_FAULT_stale_cache_kept
/* The run as it was when the shard was lost. */
static struct loaded_run *
take_stale(struct tenure *tenure, struct workflow *workflow, const char *run_id,
           struct arena *arena)
{
    struct tenure *old = tenure->shard->buried;
    struct run_key key = {workflow->domain_id, workflow->workflow_id, run_id};
    struct workflow *before = old == NULL ? NULL : workflow_find(old, &key, arena);
    struct loaded_run *stale = before == NULL ? NULL : workflow_find_run(before, run_id);
    if (stale == NULL)
        return NULL;
    list_remove(&stale->node);
    list_push_front(&workflow->runs, &stale->node);
    old->workflows.weight--;
    tenure->workflows.weight++;
    stale->undurable = 0;
    return stale;
}
#endif

struct error *
workflow_load_run(struct tenure *tenure, struct workflow *workflow, const char *run_id,
                  struct arena *arena, struct loaded_run **loaded)
{
    check(workflow->lock.owner == fiber_self());
    *loaded = workflow_find_run(workflow, run_id);
#ifdef CADENZA_FAULT_stale_cache_kept
    if (*loaded == NULL)
        *loaded = take_stale(tenure, workflow, run_id, arena);
#endif
    metrics_cache_asked(tenure->shard, *loaded != NULL);
    if (*loaded != NULL)
        return NULL;
    struct run *run = NULL;
    struct shard *shard = tenure->shard;
    struct run_key key = {workflow->domain_id, workflow->workflow_id, run_id};
    uint64_t guard = 0;
    struct error *err = run_load(shard->options.store, shard->partition, &key, arena, &run,
                                 may_be_overtaken(tenure) ? &guard : NULL);
    if (err == NULL)
        err = check_read(tenure, guard, arena);
    if (err != NULL && run != NULL)
        run_free(run);
    if (err != NULL || run == NULL)
        return err;
    *loaded = workflow_add_run(tenure, workflow, run);
    (*loaded)->durable_next_event_id = run->core->next_event_id;
    (*loaded)->is_durably_closed = !run_is_open(run);
    return NULL;
}

/* --- when steps become durable ---- */

struct aftermath *
workflow_add_aftermath(struct tenure *tenure, struct workflow *workflow, ticket_t ticket)
{
    check(ticket == writer_newest(tenure->writer) && ticket > workflow->newest);
    check(workflow->lock.owner == fiber_self());
    struct aftermath *aftermath = memory_take(sizeof *aftermath);
    *aftermath = (struct aftermath){.ticket = ticket, .workflow = workflow};
    workflow_pin(workflow);
    workflow->newest = ticket;
    list_push_back(&tenure->workflows.undurable, &aftermath->node);
    return aftermath;
}

void
workflow_replace_run(struct loaded_run *loaded, struct run *run)
{
    check(loaded->run != run && strcmp(loaded->run->core->run_id, run->core->run_id) == 0);
    check(!loaded->is_replaced);
    run_free(loaded->run);
    loaded->run = run;
    loaded->is_replaced = true;
}

void
aftermath_add_run(struct aftermath *aftermath, struct loaded_run *loaded)
{
    check(aftermath->run_count < STEP_RUNS_MAX);
    check(loaded->undurable < aftermath->workflow->pins); /* each step of it has one */
    loaded->undurable++;
    aftermath->runs[aftermath->run_count++] =
        (struct aftermath_run){.loaded = loaded,
                               .next_event_id = loaded->run->core->next_event_id,
                               .is_closed = !run_is_open(loaded->run),
                               .is_replaced = loaded->is_replaced};
    loaded->is_replaced = false;
}

/* Runs of an id in constant use would gather: those that are over go. */
static void
workflow_trim_runs(struct tenure *tenure, struct workflow *workflow)
{
    size_t kept = 0;
    list_each_safe(node, &workflow->runs) {
        struct loaded_run *loaded = list_entry(node, struct loaded_run, node);
        bool is_needed = loaded->undurable > 0 || run_is_open(loaded->run);
        if (!is_needed && kept >= RUNS_KEPT)
            loaded_drop(tenure, loaded);
        else
            kept++;
    }
}

static void
aftermath_run_done(struct tenure *tenure, const struct aftermath_run *done)
{
    struct loaded_run *loaded = done->loaded;
    check(loaded->undurable > 0);
    loaded->undurable--;
    loaded->durable_next_event_id = done->next_event_id;
    if (done->is_closed && !loaded->is_durably_closed)
        metrics_closed(tenure->shard, loaded->run);
    loaded->is_durably_closed = done->is_closed;
    run_compact(loaded->run);
    if (tenure->is_over)
        return;
    /* Who waits for events of a history that lost looks again. */
    int64_t next_event_id = done->is_replaced ? INT64_MAX : done->next_event_id;
    watches_fire(tenure, loaded->run->core->run_id, next_event_id, done->is_closed);
    queries_release(tenure, loaded->run);
}

static void
aftermath_done(struct tenure *tenure, struct aftermath *aftermath)
{
    list_remove(&aftermath->node);
    for (size_t i = 0; i < aftermath->run_count; i++)
        aftermath_run_done(tenure, &aftermath->runs[i]);
    if (aftermath->workflow->lock.owner == NULL)
        workflow_trim_runs(tenure, aftermath->workflow);
    workflow_unpin(tenure, aftermath->workflow);
    memory_give(aftermath, sizeof *aftermath);
}

void
workflows_release(struct tenure *tenure, ticket_t durable)
{
    struct list *undurable = &tenure->workflows.undurable;
    check(durable <= writer_durable(tenure->writer));
    while (!list_is_empty(undurable)) {
        struct aftermath *aftermath = list_entry(undurable->next, struct aftermath, node);
        if (aftermath->ticket > durable)
            return;
        aftermath_done(tenure, aftermath);
    }
}

void
workflows_free(struct tenure *tenure)
{
    struct workflows *workflows = &tenure->workflows;
    for (struct list *node; (node = list_pop_front(&workflows->undurable)) != NULL;) {
        struct aftermath *aftermath = list_entry(node, struct aftermath, node);
        workflow_unpin(tenure, aftermath->workflow);
        memory_give(aftermath, sizeof *aftermath);
    }
    size_t cursor = 0;
    void *value;
    while (map_next(workflows->by_key, &cursor, NULL, &value)) {
        check(((struct workflow *)value)->pins == 0);
        workflow_free(tenure, value);
    }
    check(workflows->weight == 0); /* 2 */
    map_free(workflows->by_key);
}
