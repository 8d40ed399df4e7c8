/* source_history.c - see source_history.h. */
#include "engine/test/source_history.h"

#include "base/check.h"
#include "domain/test/samples.h"
#include "engine/run/apply.h"
#include "engine/run/rebuild.h"
#include "engine/shard/inside.h"
#include "engine/test/history_sample.h"
#include "route/test_answers.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- the cluster ---- */

void
source_move(struct shard_fixture *fixture, int cluster)
{
    API(FailoverDomainRequest) *request =
        sample_failover(sample_names[cluster], NULL, fixture->arena);
    request->domain_name = "moving";
    EXPECT_MADE(domains_failover(fixture->domains, request, fixture->arena, NULL));
}

void
source_open(struct shard_fixture *fixture)
{
    struct domains_options options = {
        .store = fixture->store, .group = sample_group(EAST), .dynamic = fixture->dynamic};
    domains_close(fixture->domains);
    EXPECT_OK(domains_open(&options, fixture->arena, &fixture->domains));
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
    request->name = "moving";
    EXPECT_MADE(domains_register(fixture->domains, request, fixture->arena, NULL));
    fixture->options.domains = fixture->domains;
    fixture->options.group = options.group;
    fixture->domain_id =
        arena_text(fixture->arena, domains_find_name(fixture->domains, "moving")->id);
    source_move(fixture, WEST);
    shard_fixture_take(fixture);
}

struct source_history
source_begin(struct shard_fixture *fixture, const char *workflow_id, const char *run_id)
{
    if (run_id[0] == '\0')
        run_id = arena_format(fixture->arena, "11111111-2222-4333-8444-5555555555%02x",
                              ++fixture->runs_named);
    return (struct source_history){.fixture = fixture,
                                   .key = {fixture->domain_id, workflow_id, run_id},
                                   .next_event_id = 1,
                                   .task_id = 1000,
                                   .time = clock_wall() - 60 * NS_PER_S};
}

/* --- events ---- */

static API(TaskList) *
make_list(struct arena *arena)
{
    return API_NEW(arena, task_list, .name = "list",
                   .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
}

static API(WorkflowExecution) *
name_run(const struct run_key *key, struct arena *arena)
{
    return API_NEW(arena, workflow_execution, .workflow_id = (char *)key->workflow_id,
                   .run_id = (char *)key->run_id);
}

static API(WorkflowType) *
name_type(struct arena *arena)
{
    return API_NEW(arena, workflow_type, .name = "type");
}

static API(ActiveClusterSelectionPolicy) *
make_policy(const char *region, struct arena *arena)
{
    return API_NEW(arena, active_cluster_selection_policy,
                   .cluster_attribute = API_NEW(arena, cluster_attribute, .scope = "region",
                                                .name = (char *)region));
}

static void
fill_started(struct source_history *source_history,
             API(WorkflowExecutionStartedEventAttributes) *started)
{
    struct arena *arena = source_history->fixture->arena;
    started->workflow_type = API_NEW(arena, workflow_type, .name = "type");
    started->task_list = make_list(arena);
    started->execution_start_to_close_timeout = presence_make_duration(arena, 1000);
    started->active_cluster_selection_policy = source_history->fixture->policy;
    if (source_history->region != NULL)
        started->active_cluster_selection_policy = make_policy(source_history->region, arena);
    started->task_start_to_close_timeout = presence_make_duration(arena, 10);
    started->original_execution_run_id = started->first_execution_run_id =
        (char *)source_history->key.run_id;
    if (source_history->original_run_id != NULL)
        started->original_execution_run_id = (char *)source_history->original_run_id;
    started->identity = "client";
    if (source_history->parent == NULL)
        return;
    started->parent_execution_info =
        API_NEW(arena, parent_execution_info, .domain_name = "moving",
                .workflow_execution = name_run(&source_history->parent->key, arena),
                .initiated_id = source_history->parent->child_id);
}

static void
fill_activity(struct source_history *source_history,
              API(ActivityTaskScheduledEventAttributes) *scheduled)
{
    struct arena *arena = source_history->fixture->arena;
    scheduled->activity_id = arena_format(arena, "%lld", (long long)source_history->next_event_id);
    scheduled->activity_type = API_NEW(arena, activity_type, .name = "type");
    scheduled->task_list = make_list(arena);
    scheduled->schedule_to_close_timeout = presence_make_duration(arena, 90);
    scheduled->schedule_to_start_timeout = presence_make_duration(arena, 90);
    scheduled->start_to_close_timeout = presence_make_duration(arena, 90);
    scheduled->heartbeat_timeout = presence_make_duration(arena, 90);
    scheduled->decision_task_completed_event_id = source_history->completed_id;
}

/* The event with attributes of a kind. */
#define MAKE(field, KIND, type)                                                                    \
    do {                                                                                           \
        event->attributes_case = EVENT_KIND(KIND);                                                 \
        event->field##_event_attributes = message_new(arena, API_TYPE(type##_event_attributes));   \
    } while (0)

static API(DecisionTaskFailedCause)
cause_of(char letter)
{
#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)
    if (letter == 'R')
        return CAUSE(RESET_WORKFLOW);
    return letter == 'F' ? CAUSE(FAILOVER_CLOSE_DECISION) : CAUSE(UNHANDLED_DECISION);
#undef CAUSE
}

static void
fill_decision(struct source_history *source_history, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = source_history->fixture->arena;
    if (letter == 'd') {
        MAKE(decision_task_scheduled, DECISION_TASK_SCHEDULED, decision_task_scheduled);
        event->decision_task_scheduled_event_attributes->task_list = make_list(arena);
        event->decision_task_scheduled_event_attributes->start_to_close_timeout =
            presence_make_duration(arena, 10);
        source_history->scheduled_id = source_history->next_event_id;
    } else if (letter == 'b') {
        MAKE(decision_task_started, DECISION_TASK_STARTED, decision_task_started);
        event->decision_task_started_event_attributes->scheduled_event_id =
            source_history->scheduled_id;
        event->decision_task_started_event_attributes->request_id = "poll";
        source_history->started_id = source_history->next_event_id;
    } else if (letter == 'c') {
        MAKE(decision_task_completed, DECISION_TASK_COMPLETED, decision_task_completed);
        event->decision_task_completed_event_attributes->scheduled_event_id =
            source_history->scheduled_id;
        event->decision_task_completed_event_attributes->started_event_id =
            source_history->started_id;
        source_history->completed_id = source_history->next_event_id;
    } else if (letter == 't') {
        MAKE(decision_task_timed_out, DECISION_TASK_TIMED_OUT, decision_task_timed_out);
        event->decision_task_timed_out_event_attributes->scheduled_event_id =
            source_history->scheduled_id;
        event->decision_task_timed_out_event_attributes->started_event_id =
            source_history->started_id;
        event->decision_task_timed_out_event_attributes->timeout_type =
            API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    } else {
        MAKE(decision_task_failed, DECISION_TASK_FAILED, decision_task_failed);
        API(DecisionTaskFailedEventAttributes) *failed =
            event->decision_task_failed_event_attributes;
        failed->scheduled_event_id = source_history->scheduled_id;
        failed->started_event_id = source_history->started_id;
        failed->cause = cause_of(letter);
        if (letter == 'R') {
            failed->base_run_id = (char *)source_history->base_run_id;
            failed->new_run_id = (char *)source_history->key.run_id;
            failed->fork_event_version = source_history->fork_version;
        }
    }
}

static void
fill_work(struct source_history *source_history, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = source_history->fixture->arena;
    if (letter == 'a') {
        MAKE(activity_task_scheduled, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled);
        fill_activity(source_history, event->activity_task_scheduled_event_attributes);
        source_history->activity_id = source_history->next_event_id;
    } else if (letter == 'A') {
        MAKE(activity_task_started, ACTIVITY_TASK_STARTED, activity_task_started);
        event->activity_task_started_event_attributes->scheduled_event_id =
            source_history->activity_id;
        source_history->activity_started_id = source_history->next_event_id;
    } else if (letter == 'x') {
        MAKE(activity_task_completed, ACTIVITY_TASK_COMPLETED, activity_task_completed);
        event->activity_task_completed_event_attributes->scheduled_event_id =
            source_history->activity_id;
        event->activity_task_completed_event_attributes->started_event_id =
            source_history->activity_started_id;
    } else if (letter == 'm') {
        MAKE(timer_started, TIMER_STARTED, timer_started);
        event->timer_started_event_attributes->timer_id = "timer";
        event->timer_started_event_attributes->start_to_fire_timeout =
            presence_make_duration(arena, 500);
        source_history->timer_id = source_history->next_event_id;
    } else {
        MAKE(timer_fired, TIMER_FIRED, timer_fired);
        event->timer_fired_event_attributes->timer_id = "timer";
        event->timer_fired_event_attributes->started_event_id = source_history->timer_id;
    }
}

static void
fill_child(struct source_history *source_history, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = source_history->fixture->arena;
    if (letter == 'i') {
        MAKE(start_child_workflow_execution_initiated, START_CHILD_WORKFLOW_EXECUTION_INITIATED,
             start_child_workflow_execution_initiated);
        API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated =
            event->start_child_workflow_execution_initiated_event_attributes;
        initiated->domain = "moving";
        initiated->workflow_id = (char *)source_history->child->key.workflow_id;
        initiated->workflow_type = name_type(arena);
        initiated->task_list = make_list(arena);
        source_history->child_id = source_history->next_event_id;
        return;
    }
    MAKE(child_workflow_execution_started, CHILD_WORKFLOW_EXECUTION_STARTED,
         child_workflow_execution_started);
    API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    started->domain = "moving";
    started->workflow_execution = name_run(&source_history->child->key, arena);
    started->workflow_type = name_type(arena);
    started->initiated_event_id = source_history->child_id;
}

static void
fill_signal(struct source_history *source_history, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = source_history->fixture->arena;
    MAKE(workflow_execution_signaled, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled);
    API(WorkflowExecutionSignaledEventAttributes) *signaled =
        event->workflow_execution_signaled_event_attributes;
    signaled->signal_name =
        arena_format(arena, "signal-%lld", (long long)source_history->next_event_id);
    signaled->identity = "client";
    if (letter == 'G')
        signaled->request_id =
            arena_format(arena, "request-%lld", (long long)source_history->next_event_id);
}

static void
fill_end(struct source_history *source_history, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = source_history->fixture->arena;
    if (letter == 'E') {
        MAKE(workflow_execution_completed, WORKFLOW_EXECUTION_COMPLETED,
             workflow_execution_completed);
    } else if (letter == 'L') {
        MAKE(workflow_execution_failed, WORKFLOW_EXECUTION_FAILED, workflow_execution_failed);
    } else if (letter == 'O') {
        MAKE(workflow_execution_timed_out, WORKFLOW_EXECUTION_TIMED_OUT,
             workflow_execution_timed_out);
    } else if (letter == 'N') {
        MAKE(workflow_execution_continued_as_new, WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
             workflow_execution_continued_as_new);
        event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id =
            (char *)source_history->begun_run_id;
    } else {
        MAKE(workflow_execution_terminated, WORKFLOW_EXECUTION_TERMINATED,
             workflow_execution_terminated);
        event->workflow_execution_terminated_event_attributes->identity = "client";
        event->workflow_execution_terminated_event_attributes->reason =
            letter == 'V' ? (char *)"Terminate Workflow Due To Version Conflict."
                          : (char *)"enough";
    }
}

static API(HistoryEvent) *
make_event(struct source_history *source_history, int64_t event_version, char letter)
{
    struct arena *arena = source_history->fixture->arena;
    API(HistoryEvent) *event =
        API_NEW(arena, history_event, .event_id = source_history->next_event_id,
                .version = event_version, .task_id = source_history->task_id++);
    event->event_time = presence_make_timestamp(arena, source_history->time += NS_PER_MS);
    if (letter == 's') {
        MAKE(workflow_execution_started, WORKFLOW_EXECUTION_STARTED, workflow_execution_started);
        fill_started(source_history, event->workflow_execution_started_event_attributes);
    } else if (letter == 'k') {
        MAKE(workflow_execution_cancel_requested, WORKFLOW_EXECUTION_CANCEL_REQUESTED,
             workflow_execution_cancel_requested);
        event->workflow_execution_cancel_requested_event_attributes->identity = "client";
    } else if (strchr("dbcftFR", letter) != NULL) {
        fill_decision(source_history, letter, event);
    } else if (strchr("aAxmM", letter) != NULL) {
        fill_work(source_history, letter, event);
    } else if (letter == 'i' || letter == 'I') {
        fill_child(source_history, letter, event);
    } else if (letter == 'g' || letter == 'G') {
        fill_signal(source_history, letter, event);
    } else {
        check_that(strchr("ELTVON", letter) != NULL, "no event %c", letter);
        fill_end(source_history, letter, event);
    }
    source_history->next_event_id++;
    return event;
}

/* --- batches ---- */

static void
note_versions(struct source_history *source_history, int64_t event_version)
{
    bool is_same =
        source_history->item_count > 0 &&
        source_history->items[source_history->item_count - 1].event_version == event_version;
    if (!is_same)
        source_history->item_count++;
    check(source_history->item_count <= SOURCE_VERSIONS);
    source_history->items[source_history->item_count - 1] =
        (struct version_item){source_history->next_event_id - 1, event_version};
}

struct replicated_events
source_make(struct source_history *source_history, int64_t event_version, const char *letters)
{
    struct arena *arena = source_history->fixture->arena;
    size_t count = strlen(letters);
    API(HistoryEvent) **events = arena_zalloc(arena, count, sizeof *events);
    for (size_t i = 0; i < count; i++)
        events[i] = make_event(source_history, event_version, letters[i]);
    note_versions(source_history, event_version);
    struct version_item *items = arena_zalloc(arena, source_history->item_count, sizeof *items);
    memcpy(items, source_history->items, source_history->item_count * sizeof *items);
    return (struct replicated_events){.key = source_history->key,
                                      .versions = {items, source_history->item_count},
                                      .events = events,
                                      .count = count};
}

struct error *
source_try(struct shard_fixture *fixture, const struct replicated_events *events,
           struct replicated_outcome *outcome)
{
    return shard_apply_replicated(fixture->shard, events, fixture->arena, outcome);
}

static void
send_twice(struct source_history *source_history, const struct replicated_events *events)
{
    struct replicated_outcome outcome = {0};
    EXPECT_OK(source_try(source_history->fixture, events, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_APPLIED);
    if (source_history->is_sent_once)
        return;
    EXPECT_OK(source_try(source_history->fixture, events, &outcome));
    EXPECT_EQ(outcome.place, REPLICATED_KNOWN);
}

void
source_send(struct source_history *source_history, int64_t event_version, const char *letters)
{
    struct replicated_events events = source_make(source_history, event_version, letters);
    send_twice(source_history, &events);
}

void
source_send_with(struct source_history *source_history, int64_t event_version, const char *letters,
                 struct source_history *begun, const char *begun_letters)
{
    source_history->begun_run_id = begun->key.run_id;
    struct replicated_events events = source_make(source_history, event_version, letters);
    begun->task_id = source_history->task_id + 1;
    struct replicated_events first = source_make(begun, event_version, begun_letters);
    events.begun_events = first.events;
    events.begun_count = first.count;
    send_twice(source_history, &events);
}

/* --- looking ---- */

struct source_looking {
    struct shard_fixture *fixture;
    struct source_run_view view;
    struct run_branches branches;
};

static void
look_run(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct source_looking *source_looking = context;
    struct arena *arena = source_looking->fixture->arena;
    const STORED(RunRecord) *core = run->core;
    run_check(run);
    source_looking->branches = branches_read(core, arena);
    branches_check(&source_looking->branches);
    source_looking->view = (struct source_run_view){
        .branches = sample_branches(&source_looking->branches, arena),
        .is_open = run_is_open(run),
        .is_zombie = run_is_zombie(run),
        .is_current = current != NULL && strcmp(current->run_id, core->run_id) == 0,
        .next_event_id = core->next_event_id,
        .has_decision = core->decision != NULL,
        .decision_schedule_id = core->decision == NULL ? 0 : core->decision->schedule_id,
        .decision_started_id = core->decision == NULL ? 0 : core->decision->started_id,
        .signals = core->signal_count,
        .start_time = core->start_time,
        .has_wakeup = core->alarm_row != 0,
        .activities = map64_count(run->activities),
        .timers = map_count(run->timers),
        .last_version = run_last_version(run),
    };
}

static struct source_looking
look_at(struct shard_fixture *fixture, const struct run_key *key)
{
    struct source_looking source_looking = {.fixture = fixture, .view = {.branches = ""}};
    struct error *err = shard_look(fixture->shard, key, look_run, &source_looking, fixture->arena);
    if (err != NULL)
        EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    return source_looking;
}

API(HistoryEvent) **
source_events(struct shard_fixture *fixture, const struct run_key *key, size_t branch,
              size_t *count)
{
    struct source_looking source_looking = look_at(fixture, key);
    EXPECT(branch < source_looking.branches.count);
    const struct run_branch *of = &source_looking.branches.branch[branch];
    int64_t next = versions_last(of->versions).event_id + 1;
    struct history_page page;
    EXPECT_OK(store_read_lineage_on(fixture->store, PARTITION_OF_SHARD(fixture->options.number),
                                    &of->lineage, 1, next, 0, fixture->arena, &page));
    EXPECT_EQ(page.next_event_id, next);
    API(HistoryEvent) **events = arena_zalloc(fixture->arena, (size_t)next, sizeof *events);
    *count = 0;
    for (size_t i = 0; i < page.count; i++) {
        const API(History) *history = NULL;
        EXPECT_OK(rebuild_decode(&page.node[i], fixture->arena, &history));
        for (size_t j = 0; j < history->n_events; j++) {
            events[*count] = history->events[j];
            EXPECT_EQ(events[*count]->event_id, (int64_t)*count + 1);
            EXPECT_EQ(events[*count]->version,
                      versions_of_event(of->versions, events[*count]->event_id));
            ++*count;
        }
    }
    return events;
}

struct source_run_view
source_look_here(struct shard_fixture *fixture, const struct run_key *key)
{
    struct source_looking source_looking = look_at(fixture, key);
    if (source_looking.branches.count == 0)
        return source_looking.view;
    size_t count;
    API(HistoryEvent) **events = source_events(fixture, key, 0, &count);
    source_looking.view.last_event = event_name(events[count - 1]->attributes_case);
    return source_looking.view;
}

static char
letter_of(const API(HistoryEvent) *event)
{
    static const struct {
        API(HistoryEvent__AttributesCase) kind;
        char letter;
    } table[] = {
        {EVENT_KIND(WORKFLOW_EXECUTION_STARTED), 's'},
        {EVENT_KIND(DECISION_TASK_SCHEDULED), 'd'},
        {EVENT_KIND(DECISION_TASK_STARTED), 'b'},
        {EVENT_KIND(DECISION_TASK_COMPLETED), 'c'},
        {EVENT_KIND(DECISION_TASK_FAILED), 'f'},
        {EVENT_KIND(DECISION_TASK_TIMED_OUT), 't'},
        {EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED), 'g'},
        {EVENT_KIND(ACTIVITY_TASK_SCHEDULED), 'a'},
        {EVENT_KIND(ACTIVITY_TASK_STARTED), 'A'},
        {EVENT_KIND(ACTIVITY_TASK_COMPLETED), 'x'},
        {EVENT_KIND(TIMER_STARTED), 'm'},
        {EVENT_KIND(TIMER_FIRED), 'M'},
        {EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED), 'k'},
        {EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED), 'i'},
        {EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED), 'I'},
        {EVENT_KIND(CHILD_WORKFLOW_EXECUTION_COMPLETED), 'X'},
        {EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED), 'E'},
        {EVENT_KIND(WORKFLOW_EXECUTION_FAILED), 'L'},
        {EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED), 'T'},
        {EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT), 'O'},
        {EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW), 'N'},
    };
    for (size_t i = 0; i < array_length(table); i++)
        if (table[i].kind == event->attributes_case)
            return table[i].letter;
    return '?';
}

const char *
source_read_here(struct shard_fixture *fixture, const struct run_key *key, size_t branch)
{
    size_t count;
    API(HistoryEvent) **events = source_events(fixture, key, branch, &count);
    char *letters = arena_zalloc(fixture->arena, count + 1, 1);
    for (size_t i = 0; i < count; i++)
        letters[i] = letter_of(events[i]);
    return letters;
}
