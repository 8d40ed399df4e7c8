/* ndc_check.c - what no history of several clusters may have, and whether each run is what its
 * history says. See ndc_load.h. */
#include <inttypes.h>
#include <stdio.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "sim/clusters/ndc_inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define EVENT(name) API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define LOST_MAX    500
#define WAIT_MAX    (120 * NS_PER_S) /* all workflows, two deciders, a slow disk: about 40 s */

void
ndc_add_run(struct ndc_found *found, const char *run_id)
{
    for (size_t i = 0; i < found->run_count; i++) {
        if (strcmp(found->runs[i], run_id) == 0)
            return;
    }
    if (run_id[0] == '\0' || found->run_count == NDC_RUNS_MAX)
        return;
    snprintf(found->runs[found->run_count++], sizeof found->runs[0], "%s", run_id);
}

/* --- what no history may have ---- */

static int64_t
time_of(const API(HistoryEvent) *event)
{
    return event->event_time->seconds * NS_PER_S + event->event_time->nanos;
}

static void
check_versions(struct ndc_audit *audit, const char *id, const API(History) *history)
{
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        bool falls = i > 0 && event->version < history->events[i - 1]->version;
        if (event->event_id != (int64_t)i + 1 || falls)
            verdict_violate(&audit->load->verdict,
                            "%s: event %zu has id %" PRId64 " and version %" PRId64, id, i + 1,
                            event->event_id, event->version);
    }
}

static void
check_timer(struct ndc_audit *audit, const char *id, const API(History) *history,
            const API(HistoryEvent) *fired)
{
    int64_t from = fired->timer_fired_event_attributes->started_event_id;
    bool is_there = from >= 1 && (size_t)from <= history->n_events;
    const API(HistoryEvent) *started = is_there ? history->events[from - 1] : NULL;
    if (started == NULL || (int)started->attributes_case != EVENT(TIMER_STARTED)) {
        verdict_violate(&audit->load->verdict, "%s: a timer fired that was not started", id);
        return;
    }
    int64_t asked =
        started->timer_started_event_attributes->start_to_fire_timeout->seconds * NS_PER_S;
    if (time_of(fired) - time_of(started) < asked)
        verdict_violate(&audit->load->verdict, "%s: timer %s fired early", id,
                        fired->timer_fired_event_attributes->timer_id);
}

/* The cluster that handed it out wrote its start with a version of its own. */
static void
check_decision(struct ndc_audit *audit, const char *id, const API(HistoryEvent) *started)
{
    int worked = ndc_cluster_of_identity(started->decision_task_started_event_attributes->identity);
    if (worked >= 0 && worked != sim_group_of_version(started->version))
        verdict_violate(&audit->load->verdict,
                        "%s: a worker of cluster%d has decision %" PRId64 " of version %" PRId64,
                        id, worked, started->event_id, started->version);
}

/* The event that ended the wait of a decision for a worker: its start or timeout, or the last one
 * of the run. */
static const API(HistoryEvent) *
find_wait_end(const API(History) *history, int64_t scheduled_id)
{
    for (size_t i = (size_t)scheduled_id; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        int kind = (int)event->attributes_case;
        bool is_start =
            kind == EVENT(DECISION_TASK_STARTED) &&
            event->decision_task_started_event_attributes->scheduled_event_id == scheduled_id;
        bool is_timeout =
            kind == EVENT(DECISION_TASK_TIMED_OUT) &&
            event->decision_task_timed_out_event_attributes->scheduled_event_id == scheduled_id;
        if (is_start || is_timeout)
            return event;
    }
    return history->events[history->n_events - 1];
}

/* What waited before that waited for what was cut and crashed. */
static void
check_wait(struct ndc_audit *audit, const char *id, const API(History) *history,
           const API(HistoryEvent) *scheduled)
{
    struct ndc_load *load = audit->load;
    int64_t from = time_of(scheduled);
    from = from > load->calm_time ? from : load->calm_time;
    int64_t wait = time_of(find_wait_end(history, scheduled->event_id)) - from;
    load->wait_max = wait > load->wait_max ? wait : load->wait_max;
    if (wait > WAIT_MAX)
        verdict_violate(&load->verdict,
                        "%s: decision %" PRId64
                        " on list %s waited for %lld s, though workers polled",
                        id, scheduled->event_id,
                        scheduled->decision_task_scheduled_event_attributes->task_list->name,
                        (long long)(wait / NS_PER_S));
}

static bool
is_signal(const API(HistoryEvent) *event)
{
    return (int)event->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED);
}

/* A signal that comes again has its name from where it was first: so each is in a history once. */
static void
check_signals(struct ndc_audit *audit, const char *id, const API(History) *history)
{
    for (size_t i = 0; i < history->n_events; i++) {
        if (!is_signal(history->events[i]))
            continue;
        const char *request =
            history->events[i]->workflow_execution_signaled_event_attributes->request_id;
        for (size_t j = 0; request[0] != '\0' && j < i; j++) {
            if (is_signal(history->events[j]) &&
                strcmp(history->events[j]->workflow_execution_signaled_event_attributes->request_id,
                       request) == 0)
                verdict_violate(&audit->load->verdict, "%s: signal %s is in one history twice", id,
                                request);
        }
    }
}

/* --- what a run has ---- */

static void
count_event(const API(HistoryEvent) *event, struct ndc_found *found)
{
    unsigned which;
    switch ((int)event->attributes_case) {
    case EVENT(WORKFLOW_EXECUTION_SIGNALED):
        if (sscanf(event->workflow_execution_signaled_event_attributes->signal_name, "s%u",
                   &which) == 1 &&
            which < WORKFLOW_SIGNALS_FEW)
            found->signals[which]++;
        break;
    case EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        found->cancels++;
        break;
    case EVENT(WORKFLOW_EXECUTION_TERMINATED):
        found->terminates +=
            strcmp(event->workflow_execution_terminated_event_attributes->reason, "enough") == 0;
        break;
    default:
        break;
    }
}

static void
name_runs(const API(HistoryEvent) *event, struct ndc_found *found)
{
    switch ((int)event->attributes_case) {
    case EVENT(WORKFLOW_EXECUTION_CONTINUED_AS_NEW):
        ndc_add_run(
            found,
            event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
        break;
    case EVENT(WORKFLOW_EXECUTION_STARTED):
        ndc_add_run(found,
                    event->workflow_execution_started_event_attributes->continued_execution_run_id);
        break;
    case EVENT(DECISION_TASK_FAILED):
        ndc_add_run(found, event->decision_task_failed_event_attributes->base_run_id);
        ndc_add_run(found, event->decision_task_failed_event_attributes->new_run_id);
        break;
    default:
        break;
    }
}

void
ndc_collect_run(struct ndc_audit *audit, const char *id, const char *run_id,
                struct ndc_found *found)
{
    API(History) history;
    if (ndc_read_history(audit, 0, id, run_id, &history) != NULL)
        return;
    check_versions(audit, id, &history);
    check_signals(audit, id, &history);
    for (size_t i = 0; i < history.n_events; i++) {
        const API(HistoryEvent) *event = history.events[i];
        count_event(event, found);
        name_runs(event, found);
        if ((int)event->attributes_case == EVENT(TIMER_FIRED))
            check_timer(audit, id, &history, event);
        if ((int)event->attributes_case == EVENT(DECISION_TASK_STARTED))
            check_decision(audit, id, event);
        if ((int)event->attributes_case == EVENT(DECISION_TASK_SCHEDULED))
            check_wait(audit, id, &history, event);
    }
}

static bool
is_of_beginner(const struct ndc_current *current, const char *run_id,
               const API(HistoryEvent) *event)
{
    return strcmp(current->run_id, run_id) != 0 && event->version == current->version;
}

/* What one cluster reports of a workflow id, or of all (""). NULL: it cannot be asked. */
static const STORE_API(ListDivergencesResponse) *
list_lost(struct ndc_audit *audit, unsigned cluster, const char *id)
{
    struct load_call call = ndc_call_to(audit, cluster);
    STORE_API(ListDivergencesRequest) *request =
        message_new(audit->arena, &cadenza__admin__v1__list_divergences_request__descriptor);
    STORE_API(ListDivergencesResponse) *response = NULL;
    request->domain = NDC_DOMAIN;
    request->workflow_id = (char *)id;
    request->count = LOST_MAX;
    request->has_events = true;
    struct error *err = ndc_call(audit->load, &call, request, &response);
    return err == NULL ? response : NULL;
}

void
ndc_collect_lost(struct ndc_audit *audit, const char *id, const struct ndc_current *current,
                 struct ndc_found *found)
{
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        const STORE_API(ListDivergencesResponse) *response = list_lost(audit, i, id);
        for (size_t j = 0; response != NULL && j < response->n_divergences; j++) {
            const STORE_API(Divergence) *lost = response->divergences[j];
            for (size_t e = 0; e < lost->n_events; e++) {
                if (current == NULL || is_of_beginner(current, lost->run_id, lost->events[e]))
                    count_event(lost->events[e], found);
            }
        }
    }
}

bool
ndc_is_reported_lost(struct ndc_audit *audit, const char *id, const char *signal_name)
{
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        const STORE_API(ListDivergencesResponse) *response = list_lost(audit, i, id);
        for (size_t j = 0; response != NULL && j < response->n_divergences; j++) {
            const STORE_API(Divergence) *lost = response->divergences[j];
            for (size_t e = 0; e < lost->n_events; e++)
                if (lost->events[e]->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED) &&
                    strcmp(
                        lost->events[e]->workflow_execution_signaled_event_attributes->signal_name,
                        signal_name) == 0)
                    return true;
        }
    }
    return false;
}

void
ndc_count_lost(struct ndc_audit *audit, unsigned cluster)
{
    const STORE_API(ListDivergencesResponse) *response = list_lost(audit, cluster, "");
    if (response == NULL)
        verdict_violate(&audit->load->verdict, "cluster%u does not say what was lost", cluster);
    else
        audit->load->divergences += response->n_divergences;
}

/* --- is it what its history says? ---- */

void
ndc_check_rebuild(struct ndc_audit *audit, const char *id, const char *run_id)
{
    const char *first = NULL;
    for (unsigned i = 0; i < audit->load->sim->count; i++) {
        struct load_call call = ndc_call_to(audit, i);
        STORE_API(DescribeRebuildRequest) *request =
            message_new(audit->arena, &cadenza__admin__v1__describe_rebuild_request__descriptor);
        STORE_API(DescribeRebuildResponse) *response = NULL;
        request->domain = NDC_DOMAIN;
        request->workflow_id = (char *)id;
        request->run_id = (char *)run_id;
        struct error *err = ndc_call(audit->load, &call, request, &response);
        if (err != NULL || !response->is_comparable ||
            strcmp(response->stored_checksum, response->rebuilt_checksum) != 0) {
            verdict_violate(&audit->load->verdict,
                            "%s/%s: in cluster%u it is not what its history says: %s", id, run_id,
                            i, err != NULL ? err->message : response->stored_checksum);
            return;
        }
        first = first == NULL ? response->stored_checksum : first;
        if (strcmp(first, response->stored_checksum) != 0)
            verdict_violate(&audit->load->verdict,
                            "%s/%s: cluster%u has another state than cluster0", id, run_id, i);
    }
}
