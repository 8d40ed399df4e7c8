/* ndc_grace.c - who moves the domain gracefully, and who sees whether causes come with their
 * effects. See ndc_load.h.
 *
 * A witness signals one workflow, hears that it was taken, and signals another one. The cluster
 * that took the second signal must have the first: it is told by the version of the event, and
 * asked at once. That it has it later proves nothing, but it cannot be wrong to miss it then. Where
 * a drain ran out of time nothing is promised: what is found wrong counts only if none did. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "sim/ndc_load.h"
#include "sim/workflow_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CALL_TIMEOUT (4 * NS_PER_S)
#define END_LIMIT    (1200 * NS_PER_S)
#define CHAIN_MAX    16
#define WRITER_TRIES 200

#define ENTRIES_NEWEST 8

static void
pass_time(int64_t at_most)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(NEVER);
    struct error *err = fiber_sleep((int64_t)entropy_below((uint64_t)at_most), arena);
    check(err == NULL);
}

static struct load_call
call_to(struct load_clients *clients, unsigned cluster, struct arena *arena)
{
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return (struct load_call){.clients = clients, .host = cluster, .arena = arena};
}

/* --- who moves the domain ---- */

/* Asks a cluster to take the domain. True: it does, or begins to. */
static bool
ask_for_move(struct ndc_load *load, struct load_clients *clients, unsigned to, int64_t timeout)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, to, arena);
    struct load_failover failover = {
        .name = NDC_DOMAIN, .cluster = arena_format(arena, "cluster%u", to), .timeout = timeout};
    API(Domain) *domain = NULL;
    bool is_taken = load_failover(&call, &failover, &domain) == NULL;
    load->failovers += is_taken;
    return is_taken;
}

/* Is the domain there, and nothing under way? */
static bool
is_settled(struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *now = NULL;
    return load_describe(&call, NDC_DOMAIN, &now) == NULL && now->failover_info == NULL &&
           strcmp(now->active_cluster_name, arena_format(arena, "cluster%u", cluster)) == 0;
}

static void
move_once(struct ndc_load *load, struct load_clients *clients)
{
    const struct ndc_options *options = &load->options;
    unsigned to = (unsigned)entropy_below(load->sim->count);
    if (is_settled(clients, to))
        return;
    if (!options->has_force) {
        ask_for_move(load, clients, to, options->grace_seconds_max);
        return;
    }
    uint64_t what = entropy_below(6);
    int64_t timeout = 1 + (int64_t)entropy_below((uint64_t)options->grace_seconds_max);
    bool is_taken = ask_for_move(load, clients, to, what == 0 ? 0 : timeout);
    if (is_taken && what == 1) /* somebody does not want to wait for it */
        ask_for_move(load, clients, to, 0);
    if (is_taken && what == 2) /* or wants it elsewhere */
        ask_for_move(load, clients, (to + 1) % load->sim->count, 0);
}

/* Is nothing under way in this cluster? */
static bool
has_ended(struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *domain = NULL;
    return load_describe(&call, NDC_DOMAIN, &domain) == NULL && domain->failover_info == NULL;
}

static void
check_outcome(struct ndc_load *load, const API(FailoverEvent) *event, bool is_to_here,
              bool *is_open)
{
    if (event->n_outcomes == 0) {
        *is_open = true;
        return;
    }
    const API(FailoverOutcome) *outcome = event->outcomes[0];
    bool is_complete = strcmp(outcome->result, "complete") == 0;
    bool is_late = strcmp(outcome->result, "timed out") == 0;
    bool lacks_some = outcome->n_missing > 0;
    if ((is_complete && lacks_some) || (is_late && !lacks_some) || event->n_outcomes > 1)
        verdict_violate(&load->verdict,
                        "a graceful failover is %s, with %zu of %d shards missing (%zu outcomes)",
                        outcome->result, outcome->n_missing, outcome->shard_count,
                        event->n_outcomes);
    load->completed += is_complete && is_to_here;
    load->timed_out += is_late && is_to_here;
}

/* What a cluster knows of graceful failovers, also to others: every one of them has ended, and it
 * knows how, whoever crashed. False: not yet. Each is counted where it went to. */
static bool
read_reports(struct ndc_load *load, struct load_clients *clients, unsigned cluster)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct load_call call = call_to(clients, cluster, arena);
    API(Domain) *domain = NULL;
    if (load_describe(&call, NDC_DOMAIN, &domain) != NULL)
        return false;
    API(ListFailoverHistoryRequest) *request =
        message_new(arena, API_TYPE(list_failover_history_request));
    request->filters = message_new(arena, API_TYPE(list_failover_history_request_filters));
    request->filters->domain_id = domain->id;
    request->pagination = message_new(arena, API_TYPE(pagination_options));
    request->pagination->page_size = 1000;
    API(ListFailoverHistoryResponse) *response = NULL;
    if (ndc_call(load, &call, "DomainAPI/ListFailoverHistory", request,
                 list_failover_history_response, &response) != NULL)
        return false;
    bool is_open = false;
    const char *name = arena_format(arena, "cluster%u", cluster);
    for (size_t i = 0; i < response->n_failover_events && !is_open; i++) {
        const API(FailoverEvent) *event = response->failover_events[i];
        bool is_to_here =
            event->n_cluster_failovers > 0 && event->cluster_failovers[0]->to_cluster != NULL &&
            strcmp(event->cluster_failovers[0]->to_cluster->active_cluster_name, name) == 0;
        if (event->failover_type == API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_GRACEFUL))
            check_outcome(load, event, is_to_here, &is_open);
    }
    return !is_open;
}

void
ndc_grace_mover_main(void *argument)
{
    struct ndc_part *part = argument;
    struct ndc_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (!load->is_over && load->verdict.violation == NULL) {
        pass_time(load->options.move_pause_max);
        move_once(load, clients);
    }
    int64_t limit = clock_monotonic() + END_LIMIT;
    for (unsigned i = 0; i < load->sim->count && load->verdict.violation == NULL;) {
        uint64_t completed = load->completed, timed_out = load->timed_out;
        if (has_ended(clients, i) && read_reports(load, clients, i)) {
            i++;
            continue;
        }
        load->completed = completed; /* it is read once more */
        load->timed_out = timed_out;
        pass_time(NS_PER_S);
        if (clock_monotonic() > limit)
            verdict_violate(&load->verdict, "cluster%u knows no end of a graceful failover", i);
    }
    load_clients_free(clients);
    load->movers_running--;
}

/* --- witnesses ---- */

struct witness {
    struct ndc_load *load;
    struct load_clients *clients;
    struct arena *arena;
    unsigned number;
};

/* True: it was taken. */
static bool
signal_one(struct witness *witness, const struct workflow_entry *entry, const char *name)
{
    struct arena *arena = witness->arena;
    unsigned cluster = (unsigned)entropy_below(witness->load->sim->count);
    struct load_call call = call_to(witness->clients, cluster, arena);
    API(SignalWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(signal_workflow_execution_request));
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(arena, entry->id, "");
    request->signal_name = (char *)name;
    request->signal_input = workflow_payload(arena, "seen");
    uint8_t bytes[16];
    entropy_bytes(bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    request->request_id = arena_zalloc(arena, 1, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, request->request_id);
    API(SignalWorkflowExecutionResponse) *response = NULL;
    return ndc_call(witness->load, &call, "WorkflowAPI/SignalWorkflowExecution", request,
                    signal_workflow_execution_response, &response) == NULL;
}

enum sight { SEEN, NOT_THERE, NOT_KNOWN };

/* One run: is the signal in it, with which version; and which run follows. */
static enum sight
look_at_run(struct witness *witness, unsigned cluster, const char *id, const char *name,
            const char **run_id, int64_t *version)
{
    struct load_call call = call_to(witness->clients, cluster, witness->arena);
    API(GetWorkflowExecutionHistoryRequest) *request =
        message_new(witness->arena, API_TYPE(get_workflow_execution_history_request));
    request->domain = NDC_DOMAIN;
    request->workflow_execution = workflow_execution(witness->arena, id, *run_id);
    request->page_size = 1000;
    API(GetWorkflowExecutionHistoryResponse) *page = NULL;
    struct error *err = ndc_call(witness->load, &call, "WorkflowAPI/GetWorkflowExecutionHistory",
                                 request, get_workflow_execution_history_response, &page);
    *run_id = "";
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NOT_THERE : NOT_KNOWN;
    for (size_t i = 0; i < page->history->n_events; i++) {
        const API(HistoryEvent) *event = page->history->events[i];
        if (event->attributes_case ==
            API_VALUE(
                HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CONTINUED_AS_NEW_EVENT_ATTRIBUTES))
            *run_id =
                event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
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

/* All runs of the chain that began with the acknowledged start, and the current run: that may be
 * one that a reset made. */
static enum sight
look_for(struct witness *witness, unsigned cluster, const struct workflow_entry *entry,
         const char *name, int64_t *version)
{
    const char *run_id = entry->run_id;
    for (int i = 0; i < CHAIN_MAX && run_id[0] != '\0'; i++) {
        enum sight sight = look_at_run(witness, cluster, entry->id, name, &run_id, version);
        if (sight != NOT_THERE)
            return sight;
    }
    run_id = "";
    return look_at_run(witness, cluster, entry->id, name, &run_id, version);
}

/* The cluster that wrote it; below 0: it is in no run that is known here (a reset took it from the
 * chain, and another one followed). A signal that comes while a decision is started is in the
 * history when that ends: until then it is with whoever took it, who is not asked for it here. */
static int
find_writer(struct witness *witness, const struct workflow_entry *entry, const char *name)
{
    int64_t version = -1;
    for (int try = 0; version < 0 && try < WRITER_TRIES; try++) {
        for (unsigned i = 0; i < witness->load->sim->count && version < 0; i++)
            look_for(witness, i, entry, name, &version);
        pass_time(NS_PER_S);
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
        look_for(witness, i, second, effect, &version);
    if (version < 0)
        return;
    unsigned taker = (unsigned)sim_group_of_version(version);
    enum sight sight = look_for(witness, taker, first, cause, &ignored);
    mark(sight == SEEN ? "cause_came_with_effect" : "cause_not_seen");
    if (sight != NOT_THERE || load->broken[0] != '\0')
        return;
    int writer = find_writer(witness, first, cause);
    if (writer < 0 || writer == (int)taker)
        return;
    snprintf(load->broken, sizeof load->broken,
             "cluster%u took %s of %s (version %" PRId64 ") and had not %s of %s", taker, effect,
             second->id, version, cause, first->id);
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
        pass_time(load->options.think_max);
    }
    load_clients_free(clients);
    load->witnesses_running--;
}
