/* decision_task.c - the life of a decision task: the moves of the table in decision_state.c.
 *
 * A move of an ordinary decision is an event, which apply.c turns into state. A move of a transient
 * one leaves no event, so the state is set here. Every move begins with decision_leave and ends
 * with decision_arrive: what is not in the table is a bug. */
#include "engine/command/decision_task.h"

#include "base/check.h"
#include "engine/command/inside.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A decision that its worker fails is tried again at once so many times, then after a pause that
 * doubles (seconds). Cadence's server has no such pause: its Go client lets later attempts time
 * out, and their timeout grows. But other clients report every failure, and a list that is refused
 * comes back as fast as the worker decides. */
#define RETRY_AT_ONCE     3
#define RETRY_PAUSE_FIRST 1
#define RETRY_PAUSE_MAX   300
#define RETRY_REASON_MAX  200 /* bytes of a reason that are kept */
#define SECOND            1000000000LL
/* How the timeout of a decision that fails again and again grows, seconds. */
#define RETRY_TIMEOUT_FIRST 60
#define RETRY_TIMEOUT_MAX   300
#define RETRY_JITTER_PART   5 /* one fifth of it is chance */

static unsigned
decision_leave(const struct mutation *mutation, enum decision_move move)
{
    enum decision_state state = decision_state_of(mutation_run(mutation));
    unsigned wanted = decision_targets(state, move);
    check_that(wanted != 0, "a decision that is %s cannot %s", decision_state_name(state),
               decision_move_name(move));
    return wanted;
}

static void
decision_arrive(const struct mutation *mutation, unsigned wanted)
{
    enum decision_state state = decision_state_of(mutation_run(mutation));
    check_that((wanted & 1u << state) != 0, "a decision came to be %s", decision_state_name(state));
    decision_check(mutation_run(mutation));
}

/* Was the run last written under another failover version? Then what is new must be in the history,
 * or the other clusters would not learn of the change. */
static bool
decision_has_new_version(const struct mutation *mutation)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    return core->n_versions > 0 && core->versions[core->n_versions - 1]->event_version !=
                                       mutation_context(mutation)->event_version;
}

/* Now, but not before the newest event. */
static int64_t
decision_now(const struct mutation *mutation)
{
    int64_t now = mutation_context(mutation)->now;
    int64_t last = mutation_run(mutation)->core->last_event_time;
    return now > last ? now : last;
}

/* Takes the pending one away without an event. */
static void
decision_forget(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision->attempt > 0);
    mutation_drop_transfer(mutation, core->decision->row);
    core->decision = NULL;
}

/* ---- schedule ---- */

static int64_t
decision_write_scheduled(struct mutation *mutation, const API(TaskList) *list, int64_t timeout,
                         int32_t attempt, int64_t time)
{
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_SCHEDULED));
    API(DecisionTaskScheduledEventAttributes) *attributes =
        event->decision_task_scheduled_event_attributes;
    attributes->task_list = command_name_list(list, mutation_arena(mutation));
    attributes->start_to_close_timeout = presence_make_duration(mutation_arena(mutation), timeout);
    attributes->attempt = attempt;
    check(attempt >= 0);
    if (time != 0)
        event->event_time = presence_make_timestamp(mutation_arena(mutation), time);
    return mutation_add_event(mutation, event);
}

/* The outbox row of a transient decision; that of an ordinary one comes with its event. */
static uint64_t
decision_send(struct mutation *mutation, const STORED(PendingDecision) *decision)
{
    STORED(TransferRow) *transfer =
        message_new(mutation_arena(mutation), STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION;
    transfer->schedule_id = decision->schedule_id;
    transfer->attempt = decision->attempt;
    transfer->task_list = decision->task_list;
    return mutation_add_transfer(mutation, transfer);
}

static void
decision_schedule_transient(struct mutation *mutation)
{
    struct run *run = mutation_run(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision_attempt > 0 && !run_has_buffered(run));
    STORED(PendingDecision) *decision = message_new(run->arena, STORED_TYPE(pending_decision));
    decision->event_version = mutation_context(mutation)->event_version;
    decision->schedule_id = core->next_event_id;
    decision->started_id = EVENT_NONE;
    decision->timeout = core->decision_timeout;
    decision->attempt = core->decision_attempt;
    decision->scheduled_time = decision_now(mutation);
    decision->task_list = core->task_list; /* a failure ends stickiness */
    decision->row = decision_send(mutation, decision);
    core->decision = decision;
}

void
decision_schedule(struct mutation *mutation, int64_t original_scheduled_time)
{
    unsigned wanted = decision_leave(mutation, DECISION_SCHEDULE);
    STORED(RunRecord) *core = mutation_core(mutation);
    check(run_is_open(mutation_run(mutation)));
    core->first_decision_time = 0;
    core->waits_for_parent = false;
    /* There is news: not the same attempt again, and it does not wait for its time. */
    if (mutation_flush_buffered(mutation) || core->decision_retry_time != 0)
        core->decision_attempt = 0;
    core->decision_retry_time = 0;
    if (mutation_decision_list(mutation) != core->sticky_task_list)
        mutation_clear_sticky(mutation); /* none, or too old */

    if (core->decision_attempt == 0 || decision_has_new_version(mutation))
        decision_write_scheduled(mutation, mutation_decision_list(mutation), core->decision_timeout,
                                 core->decision_attempt, 0);
    else
        decision_schedule_transient(mutation);

    STORED(PendingDecision) *decision = mutation_change_decision(mutation);
    if (decision->schedule_id < core->next_event_id)
        decision->attempt = 0; /* it is in the history */
    decision->original_scheduled_time =
        original_scheduled_time != 0 ? original_scheduled_time : decision->scheduled_time;
    core->decision_attempt = 0; /* counted in the pending one now */
    decision_arrive(mutation, wanted);
}

/* Too many events wait behind a started decision: they get their ids at the price of its work. */
static void
decision_limit_buffered(struct mutation *mutation)
{
    int64_t limit = run_context_integer(mutation_context(mutation), DYNAMIC_BUFFERED_EVENTS_MAX);
    check(run_has_started_decision(mutation_run(mutation)));
    if ((int64_t)map64_count(mutation_run(mutation)->buffered) <= limit)
        return;
    decision_fail(mutation, &(struct decision_failure){
                                .cause = FAILED_CAUSE(FORCE_CLOSE_DECISION),
                                .identity = HISTORY_SERVICE,
                            });
    decision_schedule(mutation, 0);
}

void
decision_schedule_if_needed(struct mutation *mutation)
{
    const struct run *run = mutation_run(mutation);
    if (!run_is_open(run))
        return;
    if (run_has_started_decision(run))
        decision_limit_buffered(mutation);
    else if (!run_has_pending_decision(run) && run->core->first_decision_time == 0 &&
             !run->core->waits_for_parent)
        decision_schedule(mutation, 0);
}

/* ---- start ---- */

static int64_t
decision_write_started(struct mutation *mutation, int64_t schedule_id, const char *request_id,
                       const char *identity, int64_t time)
{
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_STARTED));
    API(DecisionTaskStartedEventAttributes) *attributes =
        event->decision_task_started_event_attributes;
    attributes->scheduled_event_id = schedule_id;
    attributes->request_id = presence_make_text(request_id);
    attributes->identity = presence_make_text(identity);
    if (time != 0)
        event->event_time = presence_make_timestamp(mutation_arena(mutation), time);
    return mutation_add_event(mutation, event);
}

/* News came since the transient one was scheduled: it is written down after all, as a first
 * attempt. */
static void
decision_make_ordinary(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    STORED(PendingDecision) old = *core->decision;
    check(old.started_id == EVENT_NONE);
    decision_forget(mutation);
    decision_write_scheduled(mutation, old.task_list, old.timeout, 0, 0);
    mutation_change_decision(mutation)->original_scheduled_time = old.original_scheduled_time;
}

static void
decision_start_transient(struct mutation *mutation, const char *request_id, const char *identity)
{
    struct run *run = mutation_run(mutation);
    STORED(PendingDecision) *decision = mutation_change_decision(mutation);
    check(decision->attempt > 0 && decision->started_id == EVENT_NONE);
    check(decision->schedule_id == run->core->next_event_id);
    mutation_drop_transfer(mutation, decision->row);
#ifndef CADENZA_FAULT_started_attempt_keeps_row
    decision->row = 0;
#endif
    decision->event_version = mutation_context(mutation)->event_version;
    decision->started_id = decision->schedule_id + 1;
    decision->started_time = decision_now(mutation);
    decision->request_id = run_keep_text(run, request_id);
    decision->identity = run_keep_text(run, identity);
}

/* Start-to-close of an attempt, seconds. */
static int64_t
decision_attempt_timeout(const struct mutation *mutation, int32_t attempt)
{
    if (attempt <= 1)
        return mutation_run(mutation)->core->decision_timeout;
    int64_t timeout = RETRY_TIMEOUT_FIRST;
    for (int32_t i = 2; i < attempt && timeout < RETRY_TIMEOUT_MAX; i++)
        timeout *= 2;
    if (timeout > RETRY_TIMEOUT_MAX)
        timeout = RETRY_TIMEOUT_MAX;
    int64_t chance = timeout / RETRY_JITTER_PART;
    struct random *random = mutation_context(mutation)->random;
    return timeout - chance + (int64_t)random_below(random, (uint64_t)chance);
}

void
decision_start(struct mutation *mutation, const char *request_id, const char *identity)
{
    unsigned wanted = decision_leave(mutation, DECISION_START);
    STORED(RunRecord) *core = mutation_core(mutation);
    check(request_id[0] != '\0');
    if (core->decision->attempt > 0 &&
        (core->decision->schedule_id != core->next_event_id || decision_has_new_version(mutation)))
        decision_make_ordinary(mutation);
    if (core->decision->attempt > 0)
        decision_start_transient(mutation, request_id, identity);
    else
        decision_write_started(mutation, core->decision->schedule_id, request_id, identity, 0);
    STORED(PendingDecision) *decision = mutation_change_decision(mutation);
    decision->timeout = decision_attempt_timeout(mutation, decision->attempt);
    decision->schedule_timeout_time = 0;
    decision_arrive(mutation, wanted);
}

/* ---- complete, fail, time out ---- */

int64_t
decision_complete(struct mutation *mutation,
                  const API(RespondDecisionTaskCompletedRequest) *request)
{
    unsigned wanted = decision_leave(mutation, DECISION_COMPLETE);
    const STORED(PendingDecision) decision = *mutation_core(mutation)->decision;
    int64_t schedule_id = decision.schedule_id, started_id = decision.started_id;
    if (decision.attempt > 0) {
        decision_forget(mutation);
        schedule_id = decision_write_scheduled(mutation, decision.task_list, decision.timeout,
                                               decision.attempt, decision.scheduled_time);
        started_id = decision_write_started(mutation, schedule_id, decision.request_id,
                                            decision.identity, decision.started_time);
        check(schedule_id == decision.schedule_id && started_id == decision.started_id);
    }
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_COMPLETED));
    API(DecisionTaskCompletedEventAttributes) *attributes =
        event->decision_task_completed_event_attributes;
    attributes->scheduled_event_id = schedule_id;
    attributes->started_event_id = started_id;
    attributes->identity = presence_make_text(request->identity);
    attributes->binary_checksum = presence_make_text(request->binary_checksum);
    attributes->execution_context = request->execution_context;
    int64_t completed_id = mutation_add_event(mutation, event);
    mutation_core(mutation)->decision_attempt = 0;
    check(completed_id > started_id && started_id > schedule_id);
    decision_arrive(mutation, wanted);
    return completed_id;
}

static void
decision_write_failed(struct mutation *mutation, const struct decision_failure *failure)
{
    const STORED(PendingDecision) *decision = mutation_run(mutation)->core->decision;
    check(decision->started_id > decision->schedule_id);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_FAILED));
    API(DecisionTaskFailedEventAttributes) *attributes =
        event->decision_task_failed_event_attributes;
    attributes->scheduled_event_id = decision->schedule_id;
    attributes->started_event_id = decision->started_id;
    attributes->cause = failure->cause;
    attributes->identity = presence_make_text(failure->identity);
    attributes->binary_checksum = presence_make_text(failure->binary_checksum);
    attributes->failure = (API(Failure) *)failure->failure;
    if (failure->failure == NULL) {
        attributes->failure = message_new(mutation_arena(mutation), API_TYPE(failure));
        attributes->failure->details = presence_make_bytes(slice_text(failure->details));
    }
    mutation_add_event(mutation, event);
}

/* An attempt that is not in the history is over; the next one may come. */
static void
decision_end_transient(struct mutation *mutation)
{
    int32_t attempt = mutation_run(mutation)->core->decision->attempt;
    decision_forget(mutation);
    mutation_core(mutation)->decision_attempt = attempt + 1;
}

void
decision_fail(struct mutation *mutation, const struct decision_failure *failure)
{
    unsigned wanted = decision_leave(mutation, DECISION_FAIL);
    if (mutation_core(mutation)->decision->attempt == 0)
        decision_write_failed(mutation, failure);
    else
        decision_end_transient(mutation);
    decision_arrive(mutation, wanted);
}

/* ---- a pause before the next attempt ---- */

static int64_t
decision_pause_seconds(int32_t attempt)
{
    if (attempt <= RETRY_AT_ONCE)
        return 0;
    int64_t pause = RETRY_PAUSE_FIRST;
    for (int32_t i = RETRY_AT_ONCE + 1; i < attempt && pause < RETRY_PAUSE_MAX; i++)
        pause *= 2;
    return pause < RETRY_PAUSE_MAX ? pause : RETRY_PAUSE_MAX;
}

static const char *
cause_name(API(DecisionTaskFailedCause) cause, struct arena *arena)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &uber__cadence__api__v1__decision_task_failed_cause__descriptor, (int)cause);
    return value == NULL ? arena_format(arena, "%d", (int)cause)
                         : value->name + strlen("DECISION_TASK_FAILED_CAUSE_");
}

/* "BAD_BINARY: why", cut, with what does not print replaced. */
static char *
decision_reason(struct run *run, const struct decision_failure *failure)
{
    const char *name = cause_name(failure->cause, run->arena);
    struct slice details = failure->failure == NULL
                               ? slice_text(failure->details == NULL ? "" : failure->details)
                               : presence_read_bytes(failure->failure->details);
    size_t length = details.length < RETRY_REASON_MAX ? details.length : RETRY_REASON_MAX;
    char *text = arena_format(run->arena, "%s%s%.*s", name, length > 0 ? ": " : "", (int)length,
                              length > 0 ? (const char *)details.data : "");
    for (char *at = text; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return text;
}

bool
decision_pause(struct mutation *mutation, const struct decision_failure *failure)
{
    struct run *run = mutation_run(mutation);
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision == NULL && core->decision_retry_time == 0);
    int64_t pause = decision_pause_seconds(core->decision_attempt);
#ifdef CADENZA_FAULT_failed_at_once
    pause = 0;
#endif
    if (pause == 0 || !run_is_open(run) || run_has_buffered(run))
        return false;
    probe("failed_decision_waits");
    core->decision_retry_time = decision_now(mutation) + pause * SECOND;
    core->decision_failure = decision_reason(run, failure);
    return true;
}

void
decision_retry_due(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision == NULL && core->decision_retry_time <= mutation_context(mutation)->now);
    core->decision_retry_time = 0;
    decision_schedule(mutation, 0);
}

static void
decision_write_timed_out(struct mutation *mutation, API(TimeoutType) type)
{
    const STORED(PendingDecision) *decision = mutation_run(mutation)->core->decision;
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_TIMED_OUT));
    API(DecisionTaskTimedOutEventAttributes) *attributes =
        event->decision_task_timed_out_event_attributes;
    attributes->scheduled_event_id = decision->schedule_id;
    attributes->started_event_id = decision->started_id == EVENT_NONE ? 0 : decision->started_id;
    attributes->timeout_type = type;
    attributes->cause =
        API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_TIMEOUT);
    mutation_add_event(mutation, event);
}

void
decision_time_out(struct mutation *mutation, API(TimeoutType) type)
{
    bool is_started = type == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    unsigned wanted =
        decision_leave(mutation, is_started ? DECISION_TIME_OUT : DECISION_TIME_OUT_UNSTARTED);
    if (mutation_core(mutation)->decision->attempt == 0)
        decision_write_timed_out(mutation, type);
    else
        decision_end_transient(mutation);
    decision_arrive(mutation, wanted);
    if (is_started &&
        run_context_flag(mutation_context(mutation), DYNAMIC_ENFORCE_DECISION_ATTEMPTS))
        decision_limit_attempts(mutation, "Decision attempt exceeds limit. Last decision attempt "
                                          "failed due to start-to-close timeout.");
}

void
decision_limit_attempts(struct mutation *mutation, const char *details)
{
    int64_t limit = run_context_integer(mutation_context(mutation), DYNAMIC_DECISION_ATTEMPTS_MAX);
    check(!run_has_pending_decision(mutation_run(mutation)));
    if (limit <= 0 || mutation_run(mutation)->core->decision_attempt <= limit)
        return;
    run_terminate(mutation, "DECISION_ATTEMPTS_EXCEEDS_LIMIT",
                  command_text_payload(details, mutation_arena(mutation)), HISTORY_SERVICE);
}
