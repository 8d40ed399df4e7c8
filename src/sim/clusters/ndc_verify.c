/* ndc_verify.c - when all is healed: do all clusters agree, and is everything there that
 * was acknowledged? See ndc_load.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "sim/clusters/ndc_inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CONVERGE_LIMIT (1800 * NS_PER_S)
#define CALL_TIMEOUT   (20 * NS_PER_S)

struct load_call
ndc_call_to(struct ndc_audit *audit, unsigned cluster)
{
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    return (struct load_call){.clients = audit->clients, .host = cluster, .arena = audit->arena};
}

/* --- reading ---- */

struct error *
ndc_read_history(struct ndc_audit *audit, unsigned cluster, const char *id, const char *run_id,
                 API(History) *history)
{
    struct load_call call = ndc_call_to(audit, cluster);
    API(GetWorkflowExecutionHistoryRequest) *request =
        API_NEW(audit->arena, get_workflow_execution_history_request, .domain = NDC_DOMAIN,
                .workflow_execution = workflow_execution(audit->arena, id, run_id), .page_size = 9);
    uber__cadence__api__v1__history__init(history);
    do {
        API(GetWorkflowExecutionHistoryResponse) *page = NULL;
        struct error *err = ndc_call(audit->load, &call, request, &page);
        if (err != NULL)
            return err;
        size_t count = history->n_events + page->history->n_events;
        API(HistoryEvent) **all = arena_zalloc(audit->arena, count + 1, sizeof *all);
        for (size_t i = 0; i < count; i++)
            all[i] = i < history->n_events ? history->events[i]
                                           : page->history->events[i - history->n_events];
        history->events = all;
        history->n_events = count;
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
    return NULL;
}

/* The current run; NULL: none, or no answer. */
static const API(WorkflowExecutionInfo) *
describe(struct ndc_audit *audit, unsigned cluster, const char *id, const char *run_id)
{
    struct load_call call = ndc_call_to(audit, cluster);
    API(DescribeWorkflowExecutionResponse) *response = NULL;
    struct error *err =
        ndc_call(audit->load, &call,
                 API_NEW(audit->arena, describe_workflow_execution_request, .domain = NDC_DOMAIN,
                         .workflow_execution = workflow_execution(audit->arena, id, run_id)),
                 &response);
    return err != NULL ? NULL : response->workflow_execution_info;
}

static bool
is_closed(const API(WorkflowExecutionInfo) *info)
{
    return info->close_status !=
           API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_INVALID);
}

/* --- has it settled? ---- */

static bool
same_history(struct ndc_audit *audit, const char *id, const char *run_id)
{
    struct slice first = {0};
    snprintf(audit->run_id, sizeof audit->run_id, "%s", run_id);
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        API(History) history;
        struct error *err = ndc_read_history(audit, i, id, run_id, &history);
        if (err != NULL) {
            snprintf(audit->why, sizeof audit->why, "%s/%s: cluster%u has no history: %s", id,
                     run_id, i, err->message);
            return false;
        }
        struct slice bytes = message_encode(audit->arena, &history.base);
        if (i == 0)
            first = bytes;
        else if (!slice_equal(first, bytes)) {
            snprintf(audit->why, sizeof audit->why,
                     "%s/%s: cluster%u has another history than cluster0 (%zu events)", id, run_id,
                     i, history.n_events);
            return false;
        }
    }
    return true;
}

/* --- is everything there? ---- */

/* Does any cluster have the acknowledged run? It may have been lost before it was replicated. */
static bool
is_lost(struct ndc_audit *audit, const struct workflow_entry *entry)
{
    bool is_lost = audit->load->options.may_lose && entry->run_id[0] != '\0';
    for (unsigned i = 0; is_lost && i < audit->load->sim->count; i++)
        is_lost = describe(audit, i, entry->id, entry->run_id) == NULL;
    if (is_lost)
        probe("acknowledged_run_lost");
    return is_lost;
}

/* All runs of the id that anybody knows of. */
static void
find_runs(struct ndc_audit *audit, const struct workflow_entry *entry, struct ndc_found *found)
{
    if (!is_lost(audit, entry))
        ndc_add_run(found, entry->run_id);
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        struct load_call call = ndc_call_to(audit, i);
        API(ListClosedWorkflowExecutionsRequest) *request = API_NEW(
            audit->arena, list_closed_workflow_executions_request, .domain = NDC_DOMAIN,
            .page_size = 50,
            .start_time_filter =
                API_NEW(audit->arena, start_time_filter,
                        .earliest_time = presence_make_timestamp(audit->arena, 0),
                        .latest_time = presence_make_timestamp(audit->arena, clock_wall())),
            .filters_case =
                API_VALUE(LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST__FILTERS_EXECUTION_FILTER),
            .execution_filter =
                API_NEW(audit->arena, workflow_execution_filter, .workflow_id = (char *)entry->id));
        API(ListClosedWorkflowExecutionsResponse) *response = NULL;
        struct error *err = ndc_call(audit->load, &call, request, &response);
        for (size_t j = 0; err == NULL && j < response->n_executions; j++)
            ndc_add_run(found, response->executions[j]->workflow_execution->run_id);
    }
    const API(WorkflowExecutionInfo) *info = describe(audit, 0, entry->id, "");
    if (info != NULL)
        ndc_add_run(found, info->workflow_execution->run_id);
}

/* A child need not have been started; what was may be lost. */
static bool
is_nowhere(struct ndc_audit *audit, const struct workflow_entry *entry)
{
    bool is_nowhere = entry->run_id[0] == '\0' || audit->load->options.may_lose;
    for (unsigned i = 0; is_nowhere && i < audit->load->sim->count; i++)
        is_nowhere = describe(audit, i, entry->id, "") == NULL;
    return is_nowhere;
}

/* A parent whose child was lost, as its history was not, waits for it for ever: nobody can know
 * that there is none. An operator ends it. */
static void
end_without_child(struct ndc_audit *audit, const struct workflow_entry *entry)
{
    struct load_call call = ndc_call_to(audit, 0);
    API(DescribeWorkflowExecutionResponse) *parent = NULL;
    struct error *err =
        ndc_call(audit->load, &call,
                 API_NEW(audit->arena, describe_workflow_execution_request, .domain = NDC_DOMAIN,
                         .workflow_execution = workflow_execution(audit->arena, entry->id, "")),
                 &parent);
    bool is_waiting = false;
    for (size_t i = 0; err == NULL && i < parent->n_pending_children; i++) {
        const API(WorkflowExecution) *child = parent->pending_children[i]->workflow_execution;
        bool is_somewhere = false;
        for (unsigned j = 0; j < audit->load->sim->count; j++)
            is_somewhere =
                is_somewhere || describe(audit, j, child->workflow_id, child->run_id) != NULL;
        is_waiting = is_waiting || !is_somewhere;
    }
    API(TerminateWorkflowExecutionResponse) *ended = NULL;
    if (!is_waiting)
        return;
    probe("parent_of_lost_child_ended");
    err = ndc_call(audit->load, &call,
                   API_NEW(audit->arena, terminate_workflow_execution_request, .domain = NDC_DOMAIN,
                           .workflow_execution = workflow_execution(audit->arena, entry->id, "")),
                   &ended);
    if (err != NULL)
        probe("parent_of_lost_child_goes_on"); /* it is asked again */
}

static bool
has_converged(struct ndc_audit *audit, const struct workflow_entry *entry)
{
    const char *run_id = NULL;
    audit->run_id[0] = '\0';
    if (is_nowhere(audit, entry))
        return true;
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        const API(WorkflowExecutionInfo) *info = describe(audit, i, entry->id, "");
        const char *found = info == NULL ? "none" : info->workflow_execution->run_id;
        if (info != NULL && !is_closed(info) && audit->load->options.may_lose)
            end_without_child(audit, entry);
        if (info == NULL || !is_closed(info) || (run_id != NULL && strcmp(run_id, found) != 0)) {
            snprintf(audit->why, sizeof audit->why, "%s: cluster%u has run %s (%s), cluster0 %s",
                     entry->id, i, found,
                     info == NULL      ? "none"
                     : is_closed(info) ? "closed"
                                       : "open",
                     run_id == NULL ? "-" : run_id);
            return false;
        }
        run_id = found;
    }
    struct ndc_found found = {0};
    find_runs(audit, entry, &found);
    while (found.next < found.run_count) {
        run_id = found.runs[found.next++];
        if (!same_history(audit, entry->id, run_id))
            return false;
        ndc_collect_run(audit, entry->id, run_id, &found);
    }
    return true;
}

/* What each cluster has of a workflow that did not settle, for the person who looks into it. */
static void
print_histories(struct ndc_audit *audit, const struct workflow_entry *entry, const char *wanted)
{
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        const API(WorkflowExecutionInfo) *info = describe(audit, i, entry->id, wanted);
        const char *run_id = info == NULL ? entry->run_id : info->workflow_execution->run_id;
        API(History) history = {0};
        struct error *err = ndc_read_history(audit, i, entry->id, run_id, &history);
        printf("    cluster%u %s/%s %s\n", i, entry->id, run_id,
               err != NULL       ? err->message
               : info == NULL    ? "has no current run"
               : is_closed(info) ? "is closed"
                                 : "is open");
        for (size_t j = 0; err == NULL && j < history.n_events; j++) {
            const API(HistoryEvent) *event = history.events[j];
            const ProtobufCFieldDescriptor *field =
                message_find_field(API_TYPE(history_event), (uint32_t)event->attributes_case);
            printf("      %" PRId64 " v%" PRId64 " %s\n", event->event_id, event->version,
                   field == NULL ? "?" : field->name);
        }
    }
}

/* Who began the current run wrote the signal too, to a run that was over for him by then: he knew
 * what goes on without it, and a history that this other run loses later brings it back to nobody.
 */
static bool
is_of_beginner(struct ndc_audit *audit, const struct workflow_entry *entry, unsigned which)
{
    const API(WorkflowExecutionInfo) *info = describe(audit, 0, entry->id, "");
    const char *run_id = info == NULL ? "" : info->workflow_execution->run_id;
    API(History) history = {0};
    if (info == NULL || ndc_read_history(audit, 0, entry->id, run_id, &history) != NULL)
        return false;
    struct ndc_current current = {run_id, history.events[0]->version};
    struct ndc_found known = {0};
    ndc_collect_lost(audit, entry->id, &current, &known);
    return known.signals[which] > 0;
}

/* A run that is closed and cannot be reset takes no signal any more: the reports have it. */
static bool
is_in_report(struct ndc_audit *audit, const struct workflow_entry *entry, unsigned which)
{
    struct ndc_found lost = {0};
    ndc_collect_lost(audit, entry->id, NULL, &lost);
    if (lost.signals[which] == 0)
        return false;
    if (is_of_beginner(audit, entry, which))
        world_probe(audit->load->sim->world, "signal_of_beginner");
    else if (world_probe_count(audit->load->sim->world, "reapplication_dropped") == 0)
        return false;
    world_probe(audit->load->sim->world, "signal_found_in_report");
    return true;
}

static void
check_signals(struct ndc_audit *audit, const struct workflow_entry *entry,
              const struct ndc_found *found)
{
    for (unsigned i = 0; i < WORKFLOW_SIGNALS_FEW; i++) {
        bool is_missing = entry->is_signal_acknowledged[i] && found->signals[i] == 0;
        if (is_missing && !audit->load->options.may_lose && !is_in_report(audit, entry, i)) {
            verdict_violate(&audit->load->verdict,
                            "%s: signal s%u was acknowledged and is nowhere (%zu runs)", entry->id,
                            i, found->run_count);
            for (size_t j = 0; j < found->run_count; j++)
                print_histories(audit, entry, found->runs[j]);
        }
        bool is_sent = (entry->signals_sent >> i & 1) != 0 || entry->run_id[0] == '\0';
        if (found->signals[i] > 0 && !is_sent)
            verdict_violate(&audit->load->verdict, "%s: nobody sent signal s%u", entry->id, i);
    }
}

/* An end may be on a history that lost: then the reports have it. */
static void
check_end(struct ndc_audit *audit, const struct workflow_entry *entry, struct ndc_found *found)
{
    bool is_cancel = entry->fate == FATE_CANCEL;
    if (!entry->is_end_acknowledged || audit->load->options.may_lose)
        return;
    if ((is_cancel ? found->cancels : found->terminates) == 0) {
        ndc_collect_lost(audit, entry->id, NULL, found);
        world_probe(audit->load->sim->world, "end_found_in_report");
    }
    if ((is_cancel ? found->cancels : found->terminates) == 0)
        verdict_violate(&audit->load->verdict, "%s: its %s was acknowledged and is nowhere",
                        entry->id, is_cancel ? "cancel request" : "termination");
}

/* Children belong to what their parents do, and are not asked, unless they named a user. */
static void
check_home(struct ndc_audit *audit, const struct workflow_entry *entry, const char *run_id)
{
    struct ndc_load *load = audit->load;
    bool is_child = entry < load->entries || entry >= load->entries + load->entry_count;
    API(History) history;
    if (load->homes == NULL || (is_child && !load->options.has_strangers) ||
        ndc_read_history(audit, 0, entry->id, run_id, &history) != NULL)
        return;
    if (is_child)
        ndc_home_check_child(load, entry, &history);
    else
        ndc_home_check_run(load, entry, &history);
}

static void
check_entry(struct ndc_audit *audit, const struct workflow_entry *entry)
{
    struct ndc_found found = {0};
    find_runs(audit, entry, &found);
    while (found.next < found.run_count && audit->load->verdict.violation == NULL) {
        const char *run_id = arena_text(audit->arena, found.runs[found.next++]);
        if (!same_history(audit, entry->id, run_id)) {
            verdict_violate(&audit->load->verdict, "%s", audit->why);
            print_histories(audit, entry, run_id);
            return;
        }
        ndc_collect_run(audit, entry->id, run_id, &found);
        ndc_check_rebuild(audit, entry->id, run_id);
        check_home(audit, entry, run_id);
        if (audit->load->verdict.violation != NULL)
            print_histories(audit, entry, run_id);
    }
    check_signals(audit, entry, &found);
    check_end(audit, entry, &found);
}

/* Does no cluster list an open run? Events that lost may have begun one just now. */
static bool
is_at_rest(struct ndc_audit *audit)
{
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        struct load_call call = ndc_call_to(audit, i);
        API(ListOpenWorkflowExecutionsRequest) *list =
            API_NEW(audit->arena, list_open_workflow_executions_request, .domain = NDC_DOMAIN,
                    .page_size = 10,
                    .start_time_filter = API_NEW(
                        audit->arena, start_time_filter,
                        .earliest_time = presence_make_timestamp(audit->arena, 0),
                        .latest_time = presence_make_timestamp(audit->arena, clock_wall())));
        API(ListOpenWorkflowExecutionsResponse) *listed = NULL;
        call.wants_committed = true;
        struct error *err = ndc_call(audit->load, &call, list, &listed);
        if (err == NULL && listed->n_executions == 0)
            continue;
        snprintf(audit->why, sizeof audit->why, "cluster%u lists an open run, or none: %s", i,
                 err != NULL ? err->message
                             : listed->executions[0]->workflow_execution->workflow_id);
        return false;
    }
    return true;
}

static void
check_dead_letters(struct ndc_audit *audit, unsigned cluster)
{
    ADMIN(CountDLQMessagesResponse) *counted = NULL;
    struct error *err = NULL;
    do { /* an answer between owners may be lost */
        struct load_call call = ndc_call_to(audit, cluster);
        err = ndc_call(audit->load, &call, ADMIN_NEW(audit->arena, count_dlqmessages_request),
                       &counted);
    } while (err != NULL && err->kind == ERR_UNAVAILABLE);
    if (err != NULL || counted->n_history > 0)
        verdict_violate(&audit->load->verdict, "cluster%u has dead letters", cluster);
}

/* The workflows, each with its children behind it; false: there are no more. */
struct round {
    unsigned entry, child;
    struct workflow_entry own; /* a child */
};

static const struct workflow_entry *
next_of(const struct ndc_load *load, struct round *round)
{
    while (round->entry < load->entry_count) {
        const struct workflow_entry *entry = &load->entries[round->entry];
        unsigned child = round->child++;
        if (child == 0 && entry->run_id[0] != '\0')
            return entry;
        if (child > 0 && child <= entry->workload.children) {
            round->own = (struct workflow_entry){.fate = FATE_COMPLETE};
            snprintf(round->own.id, sizeof round->own.id, "%.19s-c%u", entry->id, child - 1);
            return &round->own;
        }
        if (child > 0) {
            round->entry++;
            round->child = 0;
        }
    }
    return NULL;
}

/* All in one go, without anything that has not settled. */
static bool
have_converged(struct ndc_audit *audit, struct workflow_entry *which)
{
    struct round round = {0};
    const struct workflow_entry *entry;
    bool is_converged;
    which->id[0] = '\0';
    while ((entry = next_of(audit->load, &round)) != NULL) {
        audit->arena = arena_new(0);
        is_converged = has_converged(audit, entry);
        arena_free(audit->arena);
        if (!is_converged) {
            *which = *entry;
            return false;
        }
    }
    audit->arena = arena_new(0);
    is_converged = is_at_rest(audit);
    arena_free(audit->arena);
    return is_converged;
}

static void
converge(struct ndc_audit *audit)
{
    struct ndc_load *load = audit->load;
    int64_t limit = clock_monotonic() + CONVERGE_LIMIT;
    struct workflow_entry which;
    while (load->verdict.violation == NULL && !have_converged(audit, &which)) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        fiber_set_deadline(NEVER);
        if (clock_monotonic() > limit) {
            verdict_violate(&load->verdict, "not settled: %s", audit->why);
            audit->arena = arena;
            if (which.id[0] != '\0')
                print_histories(audit, &which, audit->run_id);
        }
        if (fiber_sleep(NS_PER_S, arena) != NULL)
            return;
    }
}

void
ndc_audit(struct ndc_load *load)
{
    struct ndc_audit audit = {.load = load, .clients = load_clients_new(load->sim)};
    converge(&audit);
    if (load->homes != NULL && load->verdict.violation == NULL)
        ndc_homes_audit(load, audit.clients);
    struct round round = {0};
    const struct workflow_entry *entry;
    while (load->verdict.violation == NULL && (entry = next_of(load, &round)) != NULL) {
        audit.arena = arena_new(0);
        check_entry(&audit, entry);
        arena_free(audit.arena);
    }
    for (unsigned i = 0; i < load->sim->count && load->verdict.violation == NULL; i++) {
        audit.arena = arena_new(0);
        check_dead_letters(&audit, i);
        ndc_count_lost(&audit, i);
        arena_free(audit.arena);
    }
    /* Also when the clusters agree by chance (branches/runs.h). */
    if (world_probe_count(load->sim->world, "current_run_does_not_lead") > 0)
        verdict_violate(&load->verdict, "a run had a workflow id that another one should have");
    load_clients_free(audit.clients);
}
