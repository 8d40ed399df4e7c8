/* ndc_witness.c - who sees whether causes come with their effects. See ndc_load.h.
 *
 * A witness signals one workflow, hears that it was taken, and signals another one. The cluster
 * that took the second signal must have the first: it is told by the version of the event, and
 * asked at once. That it has it later proves nothing, but it cannot be wrong to miss it then. Where
 * a drain ran out of time nothing is promised: what is found wrong counts only if none did.
 *
 * A cause that is not there is looked for until it is found, in every run of its workflow id in
 * every cluster: if the one that took the effect wrote it later, it had it all the time, behind a
 * decision that was started. One that is in no history is reported as lost: so it is with what a
 * closed run that cannot be reset would have had to take (E-050). Else it is counted: there is
 * none. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "sim/clusters/ndc_inside.h"
#include "sim/workflow/workflow_inside.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT   (4 * NS_PER_S)
#define RUNS_MAX       64
#define RUNS_PAGE      50
#define WRITER_TRIES   200
#define ENTRIES_NEWEST 8

struct witness {
    struct ndc_load *load;
    struct load_clients *clients;
    struct arena *arena;
};

static struct load_call
call_to(struct load_clients *clients, unsigned cluster, struct arena *arena)
{
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return (struct load_call){.clients = clients, .host = cluster, .arena = arena};
}

/* True: it was taken. */
static bool
signal_one(struct witness *witness, const struct workflow_entry *entry, const char *name)
{
    struct arena *arena = witness->arena;
    unsigned cluster = (unsigned)entropy_below(witness->load->sim->count);
    struct load_call call = call_to(witness->clients, cluster, arena);
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(arena, signal_workflow_execution_request, .domain = NDC_DOMAIN,
                .workflow_execution = workflow_execution(arena, entry->id, ""),
                .signal_name = (char *)name, .signal_input = workflow_payload(arena, "seen"));
    uint8_t bytes[16];
    entropy_bytes(bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    request->request_id = arena_zalloc(arena, 1, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, request->request_id);
    return ndc_call(witness->load, &call, request, NULL) == NULL;
}

enum finding { SEEN, NOT_THERE, NOT_KNOWN };

/* Runs of one workflow id: those that were looked at, and those that are to be. */
struct runs {
    const char *ids[RUNS_MAX];
    size_t count, next;
};

static void
add_run(struct runs *runs, const char *run_id)
{
    for (size_t i = 0; i < runs->count; i++) {
        if (strcmp(runs->ids[i], run_id) == 0)
            return;
    }
    if (runs->count < RUNS_MAX)
        runs->ids[runs->count++] = run_id;
}

/* One run: is the signal in it, with which version; and which run follows. */
static enum finding
read_run(struct witness *witness, unsigned cluster, const char *id, const char *name,
         struct runs *runs, int64_t *version)
{
    struct load_call call = call_to(witness->clients, cluster, witness->arena);
    API(GetWorkflowExecutionHistoryRequest) *request = API_NEW(
        witness->arena, get_workflow_execution_history_request, .domain = NDC_DOMAIN,
        .workflow_execution = workflow_execution(witness->arena, id, runs->ids[runs->next++]),
        .page_size = 1000);
    API(GetWorkflowExecutionHistoryResponse) *page = NULL;
    struct error *err = ndc_call(witness->load, &call, request, &page);
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NOT_THERE : NOT_KNOWN;
    for (size_t i = 0; i < page->history->n_events; i++) {
        const API(HistoryEvent) *event = page->history->events[i];
        if (event->attributes_case ==
            API_VALUE(
                HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
            add_run(
                runs,
                event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
        bool is_it =
            event->attributes_case ==
                API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES) &&
            strcmp(event->workflow_execution_signaled_event_attributes->signal_name, name) == 0;
        if (is_it) {
            *version = event->version;
            return SEEN;
        }
    }
    return page->next_page_token.len > 0 ? NOT_KNOWN : NOT_THERE;
}

/* Runs that the cluster lists as closed: one that a reset left behind is in no chain. */
static void
add_closed(struct witness *witness, unsigned cluster, const char *id, struct runs *runs)
{
    struct arena *arena = witness->arena;
    struct load_call call = call_to(witness->clients, cluster, arena);
    API(ListClosedWorkflowExecutionsRequest) *request = API_NEW(
        arena, list_closed_workflow_executions_request, .domain = NDC_DOMAIN,
        .page_size = RUNS_PAGE,
        .start_time_filter =
            API_NEW(arena, start_time_filter, .earliest_time = presence_make_timestamp(arena, 0),
                    .latest_time = presence_make_timestamp(arena, clock_wall())),
        .filters_case =
            API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_EXECUTION_FILTER),
        .execution_filter = API_NEW(arena, workflow_execution_filter, .workflow_id = (char *)id));
    API(ListClosedWorkflowExecutionsResponse) *response = NULL;
    struct error *err = ndc_call(witness->load, &call, request, &response);
    for (size_t i = 0; err == NULL && i < response->n_executions; i++)
        add_run(runs, response->executions[i]->workflow_execution->run_id);
}

static enum finding
read_all_runs(struct witness *witness, unsigned cluster, const char *id, const char *name,
              struct runs *runs, int64_t *version)
{
    enum finding all = NOT_THERE;
    while (runs->next < runs->count) {
        enum finding finding = read_run(witness, cluster, id, name, runs, version);
        if (finding == SEEN)
            return SEEN;
        all = finding == NOT_KNOWN ? NOT_KNOWN : all;
    }
    return all;
}

/* All runs of the chain that began with the acknowledged start, the current run, which may be one
 * that a reset made, then all that are closed. */
static enum finding
find_signal(struct witness *witness, unsigned cluster, const struct workflow_entry *entry,
            const char *name, int64_t *version)
{
    struct runs runs = {0};
    add_run(&runs, entry->run_id);
    add_run(&runs, "");
    enum finding finding = read_all_runs(witness, cluster, entry->id, name, &runs, version);
    if (finding != NOT_THERE)
        return finding;
    add_closed(witness, cluster, entry->id, &runs);
    return read_all_runs(witness, cluster, entry->id, name, &runs, version);
}

/* The cluster that wrote it; below 0: it is nowhere. A signal that comes while a decision is
 * started is in the history when that ends: until then only the cluster that took it has it, and
 * that one is not asked for it here. */
static int
find_writer(struct witness *witness, const struct workflow_entry *entry, const char *name)
{
    int64_t version = -1;
    for (int try = 0; version < 0 && try < WRITER_TRIES; try++) {
        for (unsigned i = 0; i < witness->load->sim->count && version < 0; i++)
            find_signal(witness, i, entry, name, &version);
        ndc_pass_time(NS_PER_S);
    }
    return version < 0 ? -1 : sim_group_of_version(version);
}

/* One of the newest: they are open, mostly. */
static const struct workflow_entry *
pick_entry(const struct ndc_load *load)
{
    unsigned back = 1 + (unsigned)entropy_below(ENTRIES_NEWEST);
    return &load->entries[load->entry_count > back ? load->entry_count - back : 0];
}

/* The taker has not got the cause, as far as one can see. */
static void
investigate(struct witness *witness, unsigned taker, const struct workflow_entry *first,
            const char *cause, const char *what)
{
    struct ndc_load *load = witness->load;
    struct ndc_audit audit = {.load = load, .clients = witness->clients, .arena = witness->arena};
    int writer = find_writer(witness, first, cause);
    bool is_reported = writer < 0 && ndc_is_reported_lost(&audit, first->id, cause);
    probe(is_reported            ? "cause_reported_lost"
          : writer < 0           ? "cause_nowhere"
          : writer == (int)taker ? "cause_written_later"
                                 : "cause_missing");
    load->causes_nowhere += writer < 0 && !is_reported;
    if (writer >= 0 && writer != (int)taker && load->broken[0] == '\0')
        snprintf(load->broken, sizeof load->broken, "cluster%u %s and had not %s of %s", taker,
                 what, cause, first->id);
}

static void
testify(struct witness *witness)
{
    struct ndc_load *load = witness->load;
    const struct workflow_entry *first = pick_entry(load), *second = pick_entry(load);
    if (first == second || first->run_id[0] == '\0' || second->run_id[0] == '\0')
        return;
    unsigned number = load->testimonies++;
    const char *cause = arena_format(witness->arena, "c%u", number);
    const char *effect = arena_format(witness->arena, "e%u", number);
    if (!signal_one(witness, first, cause) || !signal_one(witness, second, effect))
        return;
    int64_t version = -1, ignored = -1;
    for (unsigned i = 0; i < load->sim->count && version < 0; i++)
        find_signal(witness, i, second, effect, &version);
    if (version < 0) {
        probe("effect_not_written_yet");
        return;
    }
    unsigned taker = (unsigned)sim_group_of_version(version);
    enum finding finding = find_signal(witness, taker, first, cause, &ignored);
    if (finding == NOT_THERE)
        investigate(witness, taker, first, cause,
                    arena_format(witness->arena, "took %s of %s (version %" PRId64 ")", effect,
                                 second->id, version));
    else
        probe(finding == SEEN ? "cause_came_with_effect" : "taker_does_not_answer");
    load->causes_seen += finding == SEEN;
}

void
ndc_witness_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct witness witness = {.load = load, .clients = clients, .arena = arena};
        if (load->entry_count > 1)
            testify(&witness);
        ndc_pass_time(load->options.think_max);
    }
    load_clients_free(clients);
    load->witnesses_running--;
}
