/* ndc_operations.c - clients that read a history page by page and put the workflow back to one of
 * its decisions, and operators who fetch events of a run again, out of order. See ndc_load.h. */
#include <inttypes.h>
#include <stdio.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "sim/clusters/ndc_load.h"
#include "sim/workflow/workflow_inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

#define EVENT(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define PAGE_SIZE   5
#define PAGES_MAX   20 /* a reader who waits for more need not wait for the end */
#define PAGE_PAUSE                                                                                 \
    (600 * NS_PER_MS) /* between two pages: histories may change places meanwhile                  \
                       */
#define READ_TIMEOUT (10 * NS_PER_S)

/* --- reading ---- */

/* The pages of one read are of one history, whatever becomes of the run meanwhile. */
static void
check_pages(struct ndc_load *load, const char *id, const struct history_seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        const API(HistoryEvent) *event = seen->events[i];
        bool falls = i > 0 && event->version < seen->events[i - 1]->version;
        if (event->event_id != (int64_t)i + 1 || falls)
            verdict_violate(&load->verdict,
                            "%s: pages are of two histories: event %zu has id %" PRId64
                            " and version %" PRId64,
                            id, i + 1, event->event_id, event->version);
    }
}

static void
add_page(struct history_seen *seen, const API(History) *page, struct arena *arena)
{
    API(HistoryEvent) **all = arena_zalloc(arena, seen->count + page->n_events + 1, sizeof *all);
    for (size_t i = 0; i < seen->count; i++)
        all[i] = seen->events[i];
    for (size_t i = 0; i < page->n_events; i++)
        all[seen->count++] = page->events[i];
    seen->events = all;
}

/* The current run, at one cluster, slowly. */
static struct error *
read_slowly(struct ndc_load *load, struct load_call *call, const char *id,
            struct history_seen *seen)
{
    API(GetWorkflowExecutionHistoryRequest) *request =
        API_NEW(call->arena, get_workflow_execution_history_request, .domain = NDC_DOMAIN,
                .workflow_execution = workflow_execution(call->arena, id, ""),
                .page_size = PAGE_SIZE, .wait_for_new_event = entropy_below(2) == 0);
    unsigned pages = 0;
    *seen = (struct history_seen){0};
    do {
        API(GetWorkflowExecutionHistoryResponse) *page = NULL;
        fiber_set_deadline(clock_monotonic() + READ_TIMEOUT);
        struct error *err = ndc_call(load, call, request, &page);
        if (err != NULL)
            return err;
        bool begins = page->history->n_events > 0 && page->history->events[0]->event_id == 1;
        if (begins && seen->count > 0) { /* a waiting reader gets another history from its start */
            world_probe(load->sim->world, "reader_begins_again");
            check_pages(load, id, seen);
            *seen = (struct history_seen){0};
        }
        add_page(seen, page->history, call->arena);
        request->next_page_token = page->next_page_token;
        if (request->next_page_token.len > 0)
            ndc_pass_time(PAGE_PAUSE);
    } while (request->next_page_token.len > 0 && ++pages < PAGES_MAX);
    check_pages(load, id, seen);
    return NULL;
}

/* --- resets ---- */

static int64_t
choose_fork(const struct history_seen *seen)
{
    int64_t fork = 0;
    uint64_t found = 0;
    for (size_t i = 0; i < seen->count; i++) {
        if ((int)seen->events[i]->attributes_case == EVENT(DECISION_TASK_COMPLETED) &&
            entropy_below(++found) == 0)
            fork = seen->events[i]->event_id;
    }
    return fork;
}

/* Where another history is meant than the one that was read, the event may not be a decision's: any
 * refusal is fine. */
void
ndc_reset(struct ndc_load *load, struct load_clients *clients, const struct workflow_entry *entry)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {
        .clients = clients, .host = (unsigned)entropy_below(load->sim->count), .arena = arena};
    struct history_seen seen;
    int64_t fork = 0;
    if (read_slowly(load, &call, entry->id, &seen) == NULL)
        fork = choose_fork(&seen);
    if (fork == 0)
        return;
    char request_id[40];
    ndc_random_id(request_id, sizeof request_id);
    API(ResetWorkflowExecutionRequest) *request =
        API_NEW(arena, reset_workflow_execution_request, .domain = NDC_DOMAIN,
                .workflow_execution = workflow_execution(arena, entry->id, ""),
                .reason = "once more", .decision_finish_event_id = fork, .request_id = request_id);
    fiber_set_deadline(clock_monotonic() + READ_TIMEOUT);
    struct error *err = load_send(&call, request, NULL);
    load->resets += err == NULL;
}

/* --- events that come again ---- */

/* A cluster is asked to fetch all events of a run from another one, beside what it follows: known
 * ones, later ones, those of a history that has lost. */
void
ndc_resend(struct ndc_load *load, struct load_clients *clients, const struct workflow_entry *entry)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    unsigned count = load->sim->count;
    unsigned to = (unsigned)entropy_below(count);
    unsigned from = (to + 1 + (unsigned)entropy_below(count - 1)) % count;
    struct load_call call = {.clients = clients, .host = to, .arena = arena};
    ADMIN(ResendReplicationTasksRequest) *request =
        ADMIN_NEW(arena, resend_replication_tasks_request, .domain_id = load->domain_id,
                  .workflow_execution = workflow_execution(arena, entry->id, entry->run_id),
                  .remote_cluster = arena_format(arena, "cluster%u", from));
    fiber_set_deadline(clock_monotonic() + READ_TIMEOUT);
    struct error *err = load_send(&call, request, NULL);
    if (err == NULL)
        world_probe(load->sim->world, "events_fetched_again");
}

/* --- rebuilding runs ---- */

/* At any cluster, whatever the run is there just now: refusals are fine. */
void
ndc_rebuild(struct ndc_load *load, struct load_clients *clients, const struct workflow_entry *entry)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = {
        .clients = clients, .host = (unsigned)entropy_below(load->sim->count), .arena = arena};
    STORE_API(RebuildRunRequest) *request =
        message_new(arena, &cadenza__admin__v1__rebuild_run_request__descriptor);
    STORE_API(RebuildRunResponse) *response = NULL;
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(arena, entry->id, "");
    fiber_set_deadline(clock_monotonic() + READ_TIMEOUT);
    struct error *err = load_send(&call, request, &response);
    if (err == NULL && strcmp(response->old_checksum, response->new_checksum) != 0)
        verdict_violate(&load->verdict, "%s: in cluster%u it was not what its history says",
                        entry->id, call.host);
}
