/* workflow_visibility.c - do lists show what is true? See workflow_load.h.
 *
 * While all goes on: a list that asks for everything committed shows each run whose start was
 * acknowledged before. At the end: lists of all hosts have exactly the runs that a scan of the
 * stores finds, each as its record says, page by page. */
#include <stdio.h>

#include "engine/run/run.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "store/key.h"
#include "store/memory/memory.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/message.h"

#define CALL_TIMEOUT (10 * NS_PER_S)
#define TRIES_MAX    120 /* a second apart */
#define PAGE         7   /* small: the way over pages is tested too */
#define SCAN_PAGE    100

/* --- while all goes on ---- */

static struct error *
list_page(struct workflow_load *load, struct load_call *call, const char *query,
          ProtobufCBinaryData token, API(ListWorkflowExecutionsResponse) **response)
{
    API(ListWorkflowExecutionsRequest) *request =
        API_NEW(call->arena, list_workflow_executions_request, .domain = WORKFLOW_DOMAIN,
                .query = (char *)query, .page_size = PAGE, .next_page_token = token);
    call->wants_committed = true;
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = workflow_call(load, call, request, response);
    fiber_set_deadline(NEVER);
    return err;
}

void
workflow_ask_visibility(struct workflow_load *load, const struct workflow_entry *entry,
                        struct load_clients *clients)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {.clients = clients, .host = workflow_any_host(load), .arena = arena};
    const char *query =
        arena_format(arena, "WorkflowID = '%s' AND RunID = '%s'", entry->id, entry->run_id);
    API(ListWorkflowExecutionsResponse) *response = NULL;
    if (list_page(load, &call, query, (ProtobufCBinaryData){0}, &response) != NULL)
        return;
    world_probe(load->sim->world, "committed_list_answered");
    if (response->n_executions != 1)
        verdict_violate(&load->verdict, "%s: its start was acknowledged and %zu lists show it",
                        entry->id, response->n_executions);
}

/* --- at the end ---- */

/* What of a run is compared, as bytes; steps of a closed run that lists do not show move the time
 * of its update. */
static struct slice
comparable(API(WorkflowExecutionInfo) *info, struct arena *arena)
{
    info->update_time = NULL;
    info->auto_reset_points = NULL;
    return message_encode(arena, &info->base);
}

/* run id → struct slice, of what the stores hold. */
static struct error *
read_shard(struct store *store, unsigned shard, struct arena *arena, struct map *truth)
{
    struct scan scan = {
        .partition = PARTITION_OF_SHARD(shard), .kind = ROW_RUN, .rows_max = SCAN_PAGE};
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        struct error *err = store_scan(store, &scan, arena, &rows);
        for (size_t i = 0; err == NULL && i < rows.count; i++) {
            STORED(RunRecord) *core = NULL;
            err = run_read_row(rows.row[i].key, rows.row[i].value, arena, &core);
            if (err != NULL)
                break;
            struct slice *bytes = arena_make(arena, struct slice);
            *bytes = comparable(run_info(core, arena), arena);
            map_put(truth, slice_text(core->run_id), bytes);
        }
        if (err != NULL)
            return err;
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
    }
    return NULL;
}

static struct error *
read_truth(struct workflow_load *load, struct arena *arena, struct map *truth)
{
    struct store *store = memory_open(load->sim->hosts[0].base);
    struct error *err = NULL;
    for (unsigned i = 0; err == NULL && i < SIM_SHARDS; i++)
        err = read_shard(store, i, arena, truth);
    store_close(store);
    return err;
}

/* NULL: the run is as it should be. */
static const char *
judge_run(API(WorkflowExecutionInfo) *info, const struct map *truth, struct map *seen,
          struct arena *arena)
{
    const char *run_id = info->workflow_execution->run_id;
    const struct slice *bytes = map_get(truth, slice_text(run_id));
    if (map_put(seen, slice_text(run_id), info) != NULL)
        return arena_format(arena, "run %s is listed twice", run_id);
    if (bytes == NULL)
        return arena_format(arena, "run %s is listed and is not there", run_id);
    if (!slice_equal(comparable(info, arena), *bytes))
        return arena_format(arena, "run %s of %s is listed with status %d, which is not as it is",
                            run_id, info->workflow_execution->workflow_id, (int)info->close_status);
    return NULL;
}

/* All pages from one host. *fault: what is wrong. Errors: of the calls. */
static struct error *
compare(struct workflow_load *load, struct load_call *call, const struct map *truth,
        const char **fault)
{
    struct map *seen = map_new();
    ProtobufCBinaryData token = {0};
    struct error *err = NULL;
    bool has_more = true;
    *fault = NULL;
    while (err == NULL && has_more && *fault == NULL) {
        API(ListWorkflowExecutionsResponse) *page = NULL;
        err = list_page(load, call, "", token, &page);
        for (size_t i = 0; err == NULL && *fault == NULL && i < page->n_executions; i++)
            *fault = judge_run(page->executions[i], truth, seen, call->arena);
        if (err == NULL)
            token = page->next_page_token;
        has_more = token.len > 0;
    }
    if (err == NULL && *fault == NULL && map_count(seen) != map_count(truth))
        *fault = arena_format(call->arena, "%zu runs are listed of %zu", map_count(seen),
                              map_count(truth));
    map_free(seen);
    return err;
}

/* Until a host answers; what it says then counts. */
static void
check_host(struct workflow_load *load, struct load_clients *clients, unsigned host,
           const struct map *truth)
{
    for (int i = 0; i < TRIES_MAX && load->verdict.violation == NULL; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {.clients = clients, .host = host, .arena = arena};
        const char *fault;
        struct error *err = compare(load, &call, truth, &fault);
        if (err == NULL && fault != NULL)
            verdict_violate(&load->verdict, "host %u: %s", host, fault);
        if (err == NULL)
            return;
        if (i + 1 == TRIES_MAX)
            verdict_violate(&load->verdict, "host %u cannot list: %s", host, err->message);
        if (fiber_sleep(NS_PER_S, arena) != NULL)
            return;
    }
}

void
workflow_check_visibility(struct workflow_load *load)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct map *truth = map_new();
    struct load_clients *clients = load_clients_new(load->sim);
    struct error *err = read_truth(load, arena, truth);
    if (err != NULL)
        verdict_violate(&load->verdict, "the store cannot be read: %s", err->message);
    for (unsigned i = 0; i < load->sim->count; i++)
        check_host(load, clients, i, truth);
    load_clients_free(clients);
    map_free(truth);
}
