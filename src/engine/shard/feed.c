/* feed.c - see feed.h. */
#include "engine/shard/feed.h"

#include "base/check.h"
#include "domain/samples.h"
#include "engine/ndc/sample.h"
#include "engine/run/apply.h"
#include "engine/run/rebuild.h"
#include "engine/shard/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- the cluster ---- */

void
feed_move(struct rig *rig, int cluster)
{
    API(FailoverDomainRequest) *request = sample_failover(sample_names[cluster], NULL, rig->arena);
    request->domain_name = (char *)"moving";
    EXPECT_OK(domains_failover(rig->domains, request, rig->arena, NULL));
}

void
feed_open(struct rig *rig)
{
    struct domains_options options = {
        .store = rig->store, .group = sample_group(EAST), .dynamic = rig->dynamic};
    domains_close(rig->domains);
    EXPECT_OK(domains_open(&options, rig->arena, &rig->domains));
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, rig->arena);
    request->name = (char *)"moving";
    EXPECT_OK(domains_register(rig->domains, request, rig->arena, NULL));
    rig->options.domains = rig->domains;
    rig->options.group = options.group;
    rig->domain_id = arena_text(rig->arena, domains_find_name(rig->domains, "moving")->id);
    feed_move(rig, WEST);
    rig_take(rig);
}

struct feed
feed_begin(struct rig *rig, const char *workflow_id, const char *run_id)
{
    if (run_id[0] == '\0')
        run_id =
            arena_format(rig->arena, "11111111-2222-4333-8444-5555555555%02x", ++rig->runs_named);
    return (struct feed){.rig = rig,
                         .key = {rig->domain_id, workflow_id, run_id},
                         .next_event_id = 1,
                         .task_id = 1000,
                         .time = clock_wall() - 60 * NS_PER_S};
}

/* --- events ---- */

static API(TaskList) *
make_list(struct arena *arena)
{
    API(TaskList) *list = message_new(arena, API_TYPE(task_list));
    list->name = (char *)"list";
    list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    return list;
}

static API(WorkflowExecution) *
name_run(const struct run_key *key, struct arena *arena)
{
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)key->workflow_id;
    execution->run_id = (char *)key->run_id;
    return execution;
}

static API(WorkflowType) *
name_type(struct arena *arena)
{
    API(WorkflowType) *type = message_new(arena, API_TYPE(workflow_type));
    type->name = (char *)"type";
    return type;
}

static API(ActiveClusterSelectionPolicy) *
make_policy(const char *region, struct arena *arena)
{
    API(ActiveClusterSelectionPolicy) *policy =
        message_new(arena, API_TYPE(active_cluster_selection_policy));
    policy->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
    policy->cluster_attribute->scope = (char *)"region";
    policy->cluster_attribute->name = (char *)region;
    return policy;
}

static void
fill_started(struct feed *feed, API(WorkflowExecutionStartedEventAttributes) *started)
{
    struct arena *arena = feed->rig->arena;
    started->workflow_type = message_new(arena, API_TYPE(workflow_type));
    started->workflow_type->name = (char *)"type";
    started->task_list = make_list(arena);
    started->execution_start_to_close_timeout = presence_make_duration(arena, 1000);
    started->active_cluster_selection_policy = feed->rig->policy;
    if (feed->region != NULL)
        started->active_cluster_selection_policy = make_policy(feed->region, arena);
    started->task_start_to_close_timeout = presence_make_duration(arena, 10);
    started->original_execution_run_id = started->first_execution_run_id = (char *)feed->key.run_id;
    if (feed->original_run_id != NULL)
        started->original_execution_run_id = (char *)feed->original_run_id;
    started->identity = (char *)"client";
    if (feed->parent == NULL)
        return;
    started->parent_execution_info = message_new(arena, API_TYPE(parent_execution_info));
    started->parent_execution_info->domain_name = (char *)"moving";
    started->parent_execution_info->workflow_execution = name_run(&feed->parent->key, arena);
    started->parent_execution_info->initiated_id = feed->parent->child_id;
}

static void
fill_activity(struct feed *feed, API(ActivityTaskScheduledEventAttributes) *scheduled)
{
    struct arena *arena = feed->rig->arena;
    scheduled->activity_id = arena_format(arena, "%lld", (long long)feed->next_event_id);
    scheduled->activity_type = message_new(arena, API_TYPE(activity_type));
    scheduled->activity_type->name = (char *)"type";
    scheduled->task_list = make_list(arena);
    scheduled->schedule_to_close_timeout = presence_make_duration(arena, 90);
    scheduled->schedule_to_start_timeout = presence_make_duration(arena, 90);
    scheduled->start_to_close_timeout = presence_make_duration(arena, 90);
    scheduled->heartbeat_timeout = presence_make_duration(arena, 90);
    scheduled->decision_task_completed_event_id = feed->completed_id;
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
fill_decision(struct feed *feed, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = feed->rig->arena;
    if (letter == 'd') {
        MAKE(decision_task_scheduled, DECISION_TASK_SCHEDULED, decision_task_scheduled);
        event->decision_task_scheduled_event_attributes->task_list = make_list(arena);
        event->decision_task_scheduled_event_attributes->start_to_close_timeout =
            presence_make_duration(arena, 10);
        feed->scheduled_id = feed->next_event_id;
    } else if (letter == 'b') {
        MAKE(decision_task_started, DECISION_TASK_STARTED, decision_task_started);
        event->decision_task_started_event_attributes->scheduled_event_id = feed->scheduled_id;
        event->decision_task_started_event_attributes->request_id = (char *)"poll";
        feed->started_id = feed->next_event_id;
    } else if (letter == 'c') {
        MAKE(decision_task_completed, DECISION_TASK_COMPLETED, decision_task_completed);
        event->decision_task_completed_event_attributes->scheduled_event_id = feed->scheduled_id;
        event->decision_task_completed_event_attributes->started_event_id = feed->started_id;
        feed->completed_id = feed->next_event_id;
    } else if (letter == 't') {
        MAKE(decision_task_timed_out, DECISION_TASK_TIMED_OUT, decision_task_timed_out);
        event->decision_task_timed_out_event_attributes->scheduled_event_id = feed->scheduled_id;
        event->decision_task_timed_out_event_attributes->started_event_id = feed->started_id;
        event->decision_task_timed_out_event_attributes->timeout_type =
            API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE);
    } else {
        MAKE(decision_task_failed, DECISION_TASK_FAILED, decision_task_failed);
        API(DecisionTaskFailedEventAttributes) *failed =
            event->decision_task_failed_event_attributes;
        failed->scheduled_event_id = feed->scheduled_id;
        failed->started_event_id = feed->started_id;
        failed->cause = cause_of(letter);
        if (letter == 'R') {
            failed->base_run_id = (char *)feed->base_run_id;
            failed->new_run_id = (char *)feed->key.run_id;
            failed->fork_event_version = feed->fork_version;
        }
    }
}

static void
fill_work(struct feed *feed, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = feed->rig->arena;
    if (letter == 'a') {
        MAKE(activity_task_scheduled, ACTIVITY_TASK_SCHEDULED, activity_task_scheduled);
        fill_activity(feed, event->activity_task_scheduled_event_attributes);
        feed->activity_id = feed->next_event_id;
    } else if (letter == 'A') {
        MAKE(activity_task_started, ACTIVITY_TASK_STARTED, activity_task_started);
        event->activity_task_started_event_attributes->scheduled_event_id = feed->activity_id;
        feed->activity_started_id = feed->next_event_id;
    } else if (letter == 'x') {
        MAKE(activity_task_completed, ACTIVITY_TASK_COMPLETED, activity_task_completed);
        event->activity_task_completed_event_attributes->scheduled_event_id = feed->activity_id;
        event->activity_task_completed_event_attributes->started_event_id =
            feed->activity_started_id;
    } else if (letter == 'm') {
        MAKE(timer_started, TIMER_STARTED, timer_started);
        event->timer_started_event_attributes->timer_id = (char *)"timer";
        event->timer_started_event_attributes->start_to_fire_timeout =
            presence_make_duration(arena, 500);
        feed->timer_id = feed->next_event_id;
    } else {
        MAKE(timer_fired, TIMER_FIRED, timer_fired);
        event->timer_fired_event_attributes->timer_id = (char *)"timer";
        event->timer_fired_event_attributes->started_event_id = feed->timer_id;
    }
}

static void
fill_child(struct feed *feed, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = feed->rig->arena;
    if (letter == 'i') {
        MAKE(start_child_workflow_execution_initiated, START_CHILD_WORKFLOW_EXECUTION_INITIATED,
             start_child_workflow_execution_initiated);
        API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated =
            event->start_child_workflow_execution_initiated_event_attributes;
        initiated->domain = (char *)"moving";
        initiated->workflow_id = (char *)feed->child->key.workflow_id;
        initiated->workflow_type = name_type(arena);
        initiated->task_list = make_list(arena);
        feed->child_id = feed->next_event_id;
        return;
    }
    MAKE(child_workflow_execution_started, CHILD_WORKFLOW_EXECUTION_STARTED,
         child_workflow_execution_started);
    API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    started->domain = (char *)"moving";
    started->workflow_execution = name_run(&feed->child->key, arena);
    started->workflow_type = name_type(arena);
    started->initiated_event_id = feed->child_id;
}

static void
fill_signal(struct feed *feed, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = feed->rig->arena;
    MAKE(workflow_execution_signaled, WORKFLOW_EXECUTION_SIGNALED, workflow_execution_signaled);
    API(WorkflowExecutionSignaledEventAttributes) *signaled =
        event->workflow_execution_signaled_event_attributes;
    signaled->signal_name = arena_format(arena, "signal-%lld", (long long)feed->next_event_id);
    signaled->identity = (char *)"client";
    if (letter == 'G')
        signaled->request_id = arena_format(arena, "request-%lld", (long long)feed->next_event_id);
}

static void
fill_end(struct feed *feed, char letter, API(HistoryEvent) *event)
{
    struct arena *arena = feed->rig->arena;
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
            (char *)feed->begun_run_id;
    } else {
        MAKE(workflow_execution_terminated, WORKFLOW_EXECUTION_TERMINATED,
             workflow_execution_terminated);
        event->workflow_execution_terminated_event_attributes->identity = (char *)"client";
        event->workflow_execution_terminated_event_attributes->reason = (char *)"enough";
    }
}

static API(HistoryEvent) *
make_event(struct feed *feed, int64_t event_version, char letter)
{
    struct arena *arena = feed->rig->arena;
    API(HistoryEvent) *event = message_new(arena, API_TYPE(history_event));
    event->event_id = feed->next_event_id;
    event->version = event_version;
    event->task_id = feed->task_id++;
    event->event_time = presence_make_timestamp(arena, feed->time += NS_PER_MS);
    if (letter == 's') {
        MAKE(workflow_execution_started, WORKFLOW_EXECUTION_STARTED, workflow_execution_started);
        fill_started(feed, event->workflow_execution_started_event_attributes);
    } else if (letter == 'k') {
        MAKE(workflow_execution_cancel_requested, WORKFLOW_EXECUTION_CANCEL_REQUESTED,
             workflow_execution_cancel_requested);
        event->workflow_execution_cancel_requested_event_attributes->identity = (char *)"client";
    } else if (strchr("dbcftFR", letter) != NULL) {
        fill_decision(feed, letter, event);
    } else if (strchr("aAxmM", letter) != NULL) {
        fill_work(feed, letter, event);
    } else if (letter == 'i' || letter == 'I') {
        fill_child(feed, letter, event);
    } else if (letter == 'g' || letter == 'G') {
        fill_signal(feed, letter, event);
    } else {
        check_that(strchr("ELTON", letter) != NULL, "no event %c", letter);
        fill_end(feed, letter, event);
    }
    feed->next_event_id++;
    return event;
}

/* --- batches ---- */

static void
note_versions(struct feed *feed, int64_t event_version)
{
    bool is_same =
        feed->item_count > 0 && feed->items[feed->item_count - 1].event_version == event_version;
    if (!is_same)
        feed->item_count++;
    check(feed->item_count <= FEED_VERSIONS);
    feed->items[feed->item_count - 1] =
        (struct version_item){feed->next_event_id - 1, event_version};
}

struct foreign_events
feed_make(struct feed *feed, int64_t event_version, const char *letters)
{
    struct arena *arena = feed->rig->arena;
    size_t count = strlen(letters);
    API(HistoryEvent) **events = arena_zalloc(arena, count, sizeof *events);
    for (size_t i = 0; i < count; i++)
        events[i] = make_event(feed, event_version, letters[i]);
    note_versions(feed, event_version);
    struct version_item *items = arena_zalloc(arena, feed->item_count, sizeof *items);
    memcpy(items, feed->items, feed->item_count * sizeof *items);
    return (struct foreign_events){
        .key = feed->key, .versions = {items, feed->item_count}, .events = events, .count = count};
}

struct error *
feed_try(struct rig *rig, const struct foreign_events *events, struct foreign_outcome *outcome)
{
    return shard_apply_foreign(rig->shard, events, rig->arena, outcome);
}

static void
send_twice(struct feed *feed, const struct foreign_events *events)
{
    struct foreign_outcome outcome = {0};
    EXPECT_OK(feed_try(feed->rig, events, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_APPLIED);
    if (feed->is_sent_once)
        return;
    EXPECT_OK(feed_try(feed->rig, events, &outcome));
    EXPECT_EQ(outcome.place, FOREIGN_KNOWN);
}

void
feed_send(struct feed *feed, int64_t event_version, const char *letters)
{
    struct foreign_events events = feed_make(feed, event_version, letters);
    send_twice(feed, &events);
}

void
feed_send_with(struct feed *feed, int64_t event_version, const char *letters, struct feed *begun,
               const char *begun_letters)
{
    feed->begun_run_id = begun->key.run_id;
    struct foreign_events events = feed_make(feed, event_version, letters);
    begun->task_id = feed->task_id + 1;
    struct foreign_events first = feed_make(begun, event_version, begun_letters);
    events.begun_events = first.events;
    events.begun_count = first.count;
    send_twice(feed, &events);
}

/* --- looking ---- */

struct looking {
    struct rig *rig;
    struct feed_view view;
    struct run_branches branches;
};

static void
look_run(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct looking *looking = context;
    struct arena *arena = looking->rig->arena;
    const STORED(RunRecord) *core = run->core;
    run_check(run);
    looking->branches = branches_read(core, arena);
    branches_check(&looking->branches);
    looking->view = (struct feed_view){
        .branches = sample_branches(&looking->branches, arena),
        .is_open = run_is_open(run),
        .is_zombie = run_is_zombie(run),
        .is_current = current != NULL && strcmp(current->run_id, core->run_id) == 0,
        .next_event_id = core->next_event_id,
        .has_decision = core->decision != NULL,
        .decision_schedule_id = core->decision == NULL ? 0 : core->decision->schedule_id,
        .decision_started_id = core->decision == NULL ? 0 : core->decision->started_id,
        .signals = core->signal_count,
        .start_time = core->start_time,
        .has_alarm = core->alarm_row != 0,
        .activities = map64_count(run->activities),
        .timers = map_count(run->timers),
        .last_version = run_last_version(run),
    };
}

static struct looking
look_at(struct rig *rig, const struct run_key *key)
{
    struct looking looking = {.rig = rig, .view = {.branches = ""}};
    struct error *err = shard_look(rig->shard, key, look_run, &looking, rig->arena);
    if (err != NULL)
        EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    return looking;
}

API(HistoryEvent) **
feed_events(struct rig *rig, const struct run_key *key, size_t branch, size_t *count)
{
    struct looking looking = look_at(rig, key);
    EXPECT(branch < looking.branches.count);
    const struct run_branch *of = &looking.branches.branch[branch];
    int64_t next = versions_last(of->versions).event_id + 1;
    struct history_page page;
    EXPECT_OK(store_read_line_on(rig->store, PARTITION_OF_SHARD(rig->options.number), &of->line, 1,
                                 next, 0, rig->arena, &page));
    EXPECT_EQ(page.next_event_id, next);
    API(HistoryEvent) **events = arena_zalloc(rig->arena, (size_t)next, sizeof *events);
    *count = 0;
    for (size_t i = 0; i < page.count; i++) {
        const API(History) *history = NULL;
        EXPECT_OK(rebuild_decode(&page.node[i], rig->arena, &history));
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

struct feed_view
feed_look(struct rig *rig, const struct run_key *key)
{
    struct looking looking = look_at(rig, key);
    if (looking.branches.count == 0)
        return looking.view;
    size_t count;
    API(HistoryEvent) **events = feed_events(rig, key, 0, &count);
    looking.view.last_event = event_name(events[count - 1]->attributes_case);
    return looking.view;
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
feed_read(struct rig *rig, const struct run_key *key, size_t branch)
{
    size_t count;
    API(HistoryEvent) **events = feed_events(rig, key, branch, &count);
    char *letters = arena_zalloc(rig->arena, count + 1, 1);
    for (size_t i = 0; i < count; i++)
        letters[i] = letter_of(events[i]);
    return letters;
}
